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

import numpy as np

from regretless.market.core.arrays import Array
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.untried_actions import NO_STAND_IN, StandIns

INVERSE_PROPENSITY = "inverse propensity"
SELF_NORMALISED = "self-normalised"
DOUBLY_ROBUST = "doubly robust"
ESTIMATORS = (INVERSE_PROPENSITY, SELF_NORMALISED, DOUBLY_ROBUST)


def pair_gains(
    log: BanditLog,
    probability: Array,
    margins: Array,
    stand_ins: StandIns,
    predicted: Array | None,
    *,
    self_normalised: bool = False,
) -> Array:
    """Return the estimated gain of each replacement in each round.

    Parameters
    ----------
    log : BanditLog
    probability : ndarray
        Of each action in each round (T, A).
    margins : ndarray
        (T, A), or (1, A) if they are the same in all rounds.
    stand_ins : StandIns
        Whose result each action has.
    predicted : ndarray or None
        Of a model (T, A); None for no model.
    self_normalised : bool, optional
        Whether weights are normalised, for each pair; without a model.

    Returns
    -------
    ndarray
        (T, A, A): of round t, from action a to action b; 0 where a = b.
    """
    rounds, n_actions = probability.shape
    has_stand_in = stand_ins.action != NO_STAND_IN
    source = np.where(has_stand_in, stand_ins.action, 0)
    source_probability = np.take_along_axis(probability, source, axis=1)
    is_observed = has_stand_in & (log.chosen[:, None] == source)
    weights = np.zeros((rounds, n_actions))
    np.divide(1.0, source_probability, out=weights, where=is_observed)

    gains = np.empty((rounds, n_actions, n_actions))
    for action in range(n_actions):
        own_probability = probability[:, action]
        was_taken = log.chosen == action
        if self_normalised:
            baseline = _weighted_means(own_probability, weights, log.result)[None, :]
            own_baseline = np.full(rounds, log.result[was_taken].mean() if was_taken.any() else 0.0)
        elif predicted is None:
            baseline = np.zeros((1, n_actions))
            own_baseline = np.zeros(rounds)
        else:
            baseline = np.take_along_axis(predicted, source, axis=1)
            own_baseline = predicted[:, action]
        if predicted is not None and not self_normalised:
            without_stand_in = predicted
        else:
            without_stand_in = np.broadcast_to(baseline, (rounds, n_actions))
        if stand_ins.result is not None:
            without_stand_in = stand_ins.result

        corrected = baseline + weights * (log.result[:, None] - baseline)
        results = np.where(has_stand_in, corrected, without_stand_in)
        alternative_value = margins * results * own_probability[:, None]
        own_result = own_probability * own_baseline + was_taken * (log.result - own_baseline)
        own_value = np.broadcast_to(margins, probability.shape)[:, action] * own_result
        gains[:, action, :] = alternative_value - own_value[:, None]
        gains[:, action, action] = 0.0
    return gains


def _weighted_means(own_probability: Array, weights: Array, result: Array) -> Array:
    """Return the self-normalised mean result (A,) of each action, seen from one action's rounds.

    Where that has no observation, it is seen from all rounds; 0 if there is none at all.
    """
    pair_weights = own_probability[:, None] * weights
    means = np.zeros(weights.shape[1])
    for weight_table in (weights, pair_weights):
        totals = weight_table.sum(0)
        np.divide(result @ weight_table, totals, out=means, where=totals > 0)
    return means
