r"""What the draws add to an expected regret, at all times at once.

An agent acts on one prediction, drawn from the round's mixture. With q_a the probability of its
action a under the draw and pi_a the same under the mixture, each comparator c (an action or a
policy) of each action a has the martingale

    M_{a,c} = sum_t (q_a - pi_a) (l_t(a) - l_t(c)),

as outcome and mixture are settled before the draw. Realised regret exceeds expected regret by at
most sum_a max_c M_{a,c}. The forecaster knows the mixture, and with it a bound on the increments'
conditional variance: their sum is at most

    V_a = sum_t pi_a (1 - pi_a) (max_b l_t(b) - min_b l_t(b))^2,

0 in rounds whose mixture is a single point or leaves the agent no choice. And surely M_{a,c} is
at most W_a, the same sum with max(pi_a, 1 - pi_a) and no square: less where mixtures are rare.

**Uniform in time** (Freedman 1975; Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform,
nonparametric, nonasymptotic confidence sequences"). A martingale difference X <= 1 with conditional
variance v has E exp(lambda X) <= exp((e^lambda - 1 - lambda) v) (Bennett). So

    sum_j exp(lambda_j M - (e^lambda_j - 1 - lambda_j) V) / J

is a supermartingale that starts at 1 for any grid of lambda, and by Ville's inequality exceeds
1 / alpha at some time with probability alpha at most. Otherwise M_t <= u(V_t) in every round t,
u(V) being the greatest M that this allows: about sqrt(2 V ln(J / alpha)). With alpha = risk /
(K A (A + C - 1)) for K promises, sum_a u(V_a) holds for all of them, all comparators and all
rounds together: whoever watches it and stops when pleased is not deceived.

Losses in [0, 1] give X <= 1. Where the basis has an error, its losses have range b <= 1 + 2 delta:
then b u(V / b^2). Over a part of the rounds M starts anew, and V is at most that of all rounds.

**Against a model** the comparator is known before the draw, so that there is one martingale per
loss for all models, sum_t l_t(a_t) - E l_t(a_t), with V = sum_a V_a / 2. **Contextual** regret has
a martingale for each of a policy's suggestions; their V_{a,b} add up to V_a, and u is concave.

A priori, sum_a pi_a (1 - pi_a) <= 1 - 1/A.
"""

from collections.abc import Sequence

import numpy as np

from regretless.forecaster.events.mixtures import Mixture
from regretless.forecaster.events.protected import LossGroup, Rows, lines_of
from regretless.market.core.arrays import Array

RISK = 0.01
ROUNDING = 1e-12  # of what is 0 or 1 but for the order of a sum: atoms weigh more
_STEPS = np.array([4.0 * 0.5**j for j in range(14)])
BENNETT = Mixture(_STEPS, np.expm1(_STEPS) - _STEPS, np.full(len(_STEPS), 1 / len(_STEPS)))


class Draws:
    """What is known of the draws of all protected losses so far.

    Attributes
    ----------
    sums : array (2, R)
        V_a and W_a of every (loss, action).
    """

    def __init__(self, groups: Sequence[LossGroup], rows: Rows) -> None:
        self._groups, self._rows = tuple(groups), rows
        self.sums = np.zeros((2, len(rows.offset)))

    def add(self, seen: Array, truth: Array) -> None:
        """Add a round in which rows had probabilities (R,) and s(y) was ``truth`` (n,)."""
        spread, most = seen * (1 - seen), np.maximum(seen, 1 - seen)
        sure = spread <= ROUNDING
        if sure.all():
            return
        spread[sure] = most[sure] = 0.0
        start, losses = self._rows.start, self._rows.offset + self._rows.weights @ truth
        width = np.maximum.reduceat(losses, start[:-1]) - np.minimum.reduceat(losses, start[:-1])
        width = np.repeat(width, np.diff(start))
        self.sums += spread * width**2, most * width

    def of(self, group: LossGroup) -> Array:
        """Return V and W of one group (2, K, A)."""
        return self.sums[:, lines_of(self._groups, group)].reshape(2, *group.offset.shape)


def swap_draws(
    known: Array, *, promises: int, comparators: int, width: Array | float = 1.0
) -> Array:
    """Bound what draws add to the sum of decision swap regret, with probability 1 - ``RISK``.

    Parameters
    ----------
    known : array (2, K, A)
        V and W.
    promises : int
        Losses (and stays) of the run for which it shall hold at once.
    comparators : int
        A + C.
    width : array (K,) or float
        b, the range of losses.

    Returns
    -------
    array (K,)
    """
    chances = promises * known.shape[2] * max(comparators - 1, 1)
    return np.asarray(drawn(known, chances, np.asarray(width)[..., None]).sum(-1))


def contextual_draws(known: Array, *, promises: int, policies: int, width: Array) -> Array:
    """Bound what draws add to the sum of contextual swap regret (K,), likewise."""
    actions = known.shape[2]
    each = drawn(known / actions, promises * policies * actions**3, width[..., None])
    return np.asarray(actions * each.sum(-1))


def model_draws(known: Array, *, promises: int, width: Array) -> Array:
    """Bound what draws add to the sum of regret to every model (K,), likewise."""
    variance, most = known.sum(2)
    return drawn(np.stack([variance / 2, most]), promises, width)


def drawn(known: Array, chances: int, width: Array | float = 1.0) -> Array:
    """Bound as many martingales, of V and W (2, ...), as there are ``chances``, at all times."""
    variance, most = known
    within = width * BENNETT.greatest(variance / np.square(width), np.log(chances / RISK))
    return np.asarray(np.minimum(within, most))


def drawn_a_priori(rounds: int, actions: int, *, promises: int, comparators: int) -> float:
    """Bound what draws add to decision swap regret per round whatever the mixtures."""
    share = rounds * (1 - 1 / actions) / actions
    known = np.full((2, 1, actions), [[[share]], [[rounds]]])
    return float(swap_draws(known, promises=promises, comparators=comparators)[0]) / rounds
