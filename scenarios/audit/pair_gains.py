r"""What each round would have gained if one action had been replaced by another.

Mathematics
-----------
In round t the decision maker takes action a with probability pi_t(a). Action b would have had the
result D_t(b), of which only that of the action p_t taken is observed, and it has the margin m_t(b)
(``bandit_log``). The gain from playing b whenever it plays a is, per round,

    theta(a, b) = 1/T sum_t pi_t(a) [ m_t(b) D_t(b) - m_t(a) D_t(a) ],

and the **swap (calibrated) regret** is sum_a max_b theta(a, b); it is the regret of the mixed
strategies, the mean over draws of the regret of the actions. Each D_t(b) is replaced by

    M_t(b) + w_t(b) [ D_t(p_t) - M_t(b) ],    w_t(b) = 1{p_t = b} / pi_t(b),

which is D_t(b) on average over the draw of p_t, for every M_t(b) that is known before the draw:

- inverse propensity: M = 0;
- self-normalised: M is the weighted mean of the observed results, for each pair (a, b);
- doubly robust: M is a model's prediction from earlier rounds.

Given the past the error of a round has mean zero, whatever made the demand of that round: rival
sellers who answer earlier prices do no harm.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.untried_actions import NO_STAND_IN, StandIns

INVERSE_PROPENSITY = "inverse propensity"
SELF_NORMALISED = "self-normalised"
DOUBLY_ROBUST = "doubly robust"
ESTIMATORS = (INVERSE_PROPENSITY, SELF_NORMALISED, DOUBLY_ROBUST)


@dataclass(frozen=True, eq=False)
class PairGains:
    """The estimated gain of each replacement in each round.

    From action a to action b it is

        pi_t(a) [ value_t(b) + share_t(b) baseline(a, b) ] - own_value_t(a),

    and 0 where a = b. The (T, A, A) gains are not stored: with 20 prices and 100,000 rounds they
    would need 320 MB.

    Attributes
    ----------
    probability : ndarray
        Of each action in each round (T, A).
    value : ndarray
        Value of each alternative (T, A), without what its baseline adds.
    share : ndarray
        What a unit of the baseline adds (T, A).
    baseline : ndarray
        Result of each alternative, seen from each action (A, A); 0 where a model is used.
    own_value : ndarray
        Value of each action in the rounds in which it was taken (T, A).
    """

    probability: Array
    value: Array
    share: Array
    baseline: Array
    own_value: Array

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.probability)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.probability.shape[1])

    def of_rounds(self, rounds: slice) -> Array:
        """Return the gains (n, A, A) of some rounds: from each action to each."""
        gains = self.share[rounds, None, :] * self.baseline
        gains += self.value[rounds, None, :]
        gains *= self.probability[rounds, :, None]
        gains -= self.own_value[rounds, :, None]
        diagonal = np.arange(self.n_actions)
        gains[:, diagonal, diagonal] = 0.0
        return gains

    def of_action(self, action: int) -> Array:
        """Return the gains (T, A) from one action to each."""
        gains = self.probability[:, [action]] * (self.value + self.share * self.baseline[action])
        gains -= self.own_value[:, [action]]
        gains[:, action] = 0.0
        return np.asarray(gains)

    def of_fixed_actions(self) -> Array:
        """Return the gains (T, A) from the mixed strategy to each action in all rounds."""
        gains = np.zeros(self.probability.shape)
        for action in range(self.n_actions):
            gains += self.of_action(action)
        return gains


def pair_gains(
    log: BanditLog,
    probability: Array,
    cost: float | None,
    stand_ins: StandIns,
    predicted: Array | None,
    *,
    self_normalised: bool = False,
) -> PairGains:
    """Return the estimated gain of each replacement in each round, as shares of the log's scale.

    Parameters
    ----------
    log : BanditLog
    probability : ndarray
        Of each action in each round (T, A).
    cost : float or None
        In place of the log's own.
    stand_ins : StandIns
        Whose result each action has.
    predicted : ndarray or None
        Of a model (T, A); None for no model.
    self_normalised : bool, optional
        Whether weights are normalised, for each pair; without a model.
    """
    rounds, n_actions = probability.shape
    margins = log.margins(cost)
    has_stand_in = stand_ins.action != NO_STAND_IN
    source = np.where(has_stand_in, stand_ins.action, 0)
    source_probability = np.take_along_axis(probability, source, axis=1)
    is_observed = has_stand_in & (log.chosen[:, None] == source)
    weights = np.zeros((rounds, n_actions))
    np.divide(1.0, source_probability, out=weights, where=is_observed)

    # An action that was taken has the value that it had, at the very price that was set.
    was_taken = log.chosen[:, None] == np.arange(n_actions)
    value_taken = log.margins_taken(cost) * log.result
    observed_value = margins * log.result[:, None]
    observed_value = np.where(was_taken, value_taken[:, None], observed_value)

    baseline = np.zeros((n_actions, n_actions))
    if self_normalised:
        baseline = _weighted_means(probability, weights, log.result)
        own_baseline = np.broadcast_to(_mean_results(log, was_taken), probability.shape)
        modelled = np.zeros((rounds, n_actions))
        unmodelled_share = np.where(has_stand_in, 1.0 - weights, 1.0)
    else:
        own_baseline = np.zeros((rounds, n_actions)) if predicted is None else predicted
        modelled = np.take_along_axis(own_baseline, source, axis=1)
        modelled = np.where(has_stand_in, (1.0 - weights) * modelled, own_baseline)
        unmodelled_share = np.zeros((rounds, n_actions))
    if stand_ins.result is not None:  # it takes the place of any estimate
        modelled = np.where(has_stand_in, modelled, stand_ins.result)
        unmodelled_share = np.where(has_stand_in, unmodelled_share, 0.0)

    own_value = probability * margins * own_baseline
    own_value += was_taken * (value_taken[:, None] - margins * own_baseline)
    return PairGains(
        probability=probability,
        value=(weights * observed_value + margins * modelled) / log.scale,
        share=margins * unmodelled_share / log.scale,
        baseline=baseline,
        own_value=own_value / log.scale,
    )


def _mean_results(log: BanditLog, was_taken: Array) -> Array:
    """Return the mean result (A,) of the rounds in which each action was taken; 0 without one."""
    counts = was_taken.sum(0)
    means = np.zeros(len(counts))
    np.divide(log.result @ was_taken, counts, out=means, where=counts > 0)
    return means


def _weighted_means(probability: Array, weights: Array, result: Array) -> Array:
    """Return the self-normalised mean result (A, A) of each action, seen from each action's rounds.

    Where those have no observation, it is seen from all rounds; 0 if there is none at all.
    """
    totals = weights.sum(0)
    overall = np.zeros(len(totals))
    np.divide(result @ weights, totals, out=overall, where=totals > 0)
    pair_totals = probability.T @ weights
    means = np.broadcast_to(overall, pair_totals.shape).copy()
    weighted_results = (probability * result[:, None]).T @ weights
    np.divide(weighted_results, pair_totals, out=means, where=pair_totals > 0)
    return means
