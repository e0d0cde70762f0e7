"""What the draws add to an expected regret, at all times at once (docs/theory.md, 5).

An agent acts on one prediction, drawn from the round's mixture. With q the distribution of its
action under the draw and pi the same under the mixture, realised regret exceeds expected regret by
at most max_c M_c, where an assignment c of comparators to actions has the martingale

    M_c = sum_t sum_a (q_a - pi_a) (l_t(a) - l_t(c(a))).

With w the range of the round's losses, the conditional variance of an increment is at most the
second moment sum_a pi_a (l(a) - l(c(a)))^2, and at most 2 w^2 sum_a pi_a (1 - pi_a), as two terms
differ by 2 w at most. So the variances add up to at most

    V = near + sum_a max_c U_{a,c},   U_{a,c} = sum_t pi_a (l_t(a) - l_t(c))^2,

where ``near`` has the second number of rounds in which it is the smaller one and U all others. A
policy has max_b (l(a) - l(b))^2 in its place. Surely M_c is at most the sum of 2 w (1 - min pi)
over rounds that leave a choice.

**Uniform in time** (docs/theory.md, 5): by Bennett's inequality and Ville's M_t <= u(V_t) in every
round, u(V) the greatest M that a mixture over a grid of h of exp(h M / b - (e^h - 1 - h) V / b^2)
allows, b the greatest increment. With alpha = risk / (K (A + C)^A) that holds for K promises and
all assignments at once. Losses in [0, 1] give b = 2, and b / 2 is their range in a basis with an
error. Over a part of the rounds M starts anew, and V is at most that of all, at most T a priori.
**Against a model** the martingale is that of one constant assignment. **Contextual** regret to a
policy has A^(A^2) assignments.
"""

import numpy as np

from regretless.forecaster.mixture_of_rates import greatest_of
from regretless.market.core.arrays import Array

RISK = 0.01
ASSIGNED = RISK / 4  # of it is for potentials that are charged with what was drawn
STEPS = np.array([4.0 * 0.5**j for j in range(14)])
COSTS = np.expm1(STEPS) - STEPS


def swap_draws(
    variance_and_range: Array,
    *,
    promises: int,
    actions: int,
    comparators: int,
    width: Array | float = 1.0,
) -> Array:
    """Bound what draws add to the sum of decision swap regret, with probability 1 - ``RISK``.

    Parameters
    ----------
    variance_and_range : array (2, K)
        For every loss V, and what is sure: the most that the martingale can be.
    promises : int
        How many losses and stays the bound shall hold for at once.
    actions, comparators : int
        A and A + C. Contextual regret to policies, promises each, has A^2 cells for actions and A
        comparators, that to models no actions.
    width : array (K,) or float
        The range of each loss in the basis.

    Returns
    -------
    array (K,)
    """
    log_martingales = np.log(promises) + actions * float(np.log(comparators))
    return drawn(variance_and_range, log_martingales, 2 * np.asarray(width))


def drawn(variance_and_range: Array, log_martingales: float, step: Array | float = 1.0) -> Array:
    """Bound many martingales at once, in all rounds, with probability 1 - ``RISK``.

    ``variance_and_range`` (2, ...) has V and what is sure, ``log_martingales`` is the logarithm of
    how many there are, ``step`` the most that one moves in a round.
    """
    variance, surely = variance_and_range
    budget = log_martingales - np.log(RISK - ASSIGNED)
    in_steps = greatest_of(variance / np.square(step), budget, rates=STEPS, costs=COSTS)
    return np.asarray(np.minimum(step * in_steps, surely))
