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

from typing import ClassVar

import numpy as np

from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses
from regretless.forecaster.mixture_of_rates import greatest_of
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable

RISK = 0.01
ASSIGNED = RISK / 4  # of it is for potentials that are charged with what was drawn
ROUNDING = 1e-12  # of what is 0 or 1 but for the order of a sum: atoms weigh more
_STEPS = np.array([4.0 * 0.5**j for j in range(14)])


class Draws(Checkpointable):
    """What is known of the draws of all protected losses so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_any", "_known")
    IN_PLACE = True

    def __init__(self, rows: LossTable) -> None:
        self._rows, self._any = rows, np.zeros(2)
        self._known = list[tuple[Array, Array, Array]]()  # of groups: near and surely, far, U
        for count, actions in (group.offset.shape for group in rows.groups):
            far, pairs = np.zeros((count, actions)), np.zeros((count, actions, actions))
            self._known.append((np.zeros((2, count)), far, pairs))

    def add(self, seen: Array, truth: Array, mass: Array) -> None:
        """Add a round: probabilities of rows (R,), s(y) (n,), probabilities of the draw (m,)."""
        losses = self._rows.offset + self._rows.times(truth)
        for known, group in zip(self._known, self._rows.groups, strict=True):
            own, shape = self._rows.slice(group), group.offset.shape
            _add(known, seen[own].reshape(shape), losses[own].reshape(shape))
        self._any += min(2 * float(mass @ (1 - mass)), 1.0), 2 * (1 - float(mass.min()))

    def of_anybody(self, width: Array) -> Array:
        """Return V and what is sure, of losses of any ranges (K,): each atom has its own action."""
        return np.outer(self._any, width) * np.stack([width, np.ones_like(width)])

    def of(self, group: ProtectedLosses, *, fixed: bool) -> Array:
        """Return V and what is sure, of a group's losses (2, K); ``fixed``: against actions."""
        (near, surely), far, pairs = self._known[self._rows.place(group)]
        return np.stack([near + (pairs.max(2) if fixed else far).sum(1), surely])


def _add(known: tuple[Array, Array, Array], seen: Array, losses: Array) -> None:
    """Add a round of a group: probabilities and losses of actions (K, A)."""
    ends, far, pairs = known
    low, high = losses.min(1, keepdims=True), losses.max(1, keepdims=True)
    width, least = (high - low)[:, 0], np.where(seen > ROUNDING, seen, 1.0).min(1)
    spread = (seen * (1 - seen)).sum(1)
    moments = seen * np.maximum(high - losses, losses - low) ** 2
    near, choice = 2 * width**2 * spread, spread > ROUNDING
    close = near < moments.sum(1)
    ends += choice * np.stack([close * near, 2 * width * (1 - least)])
    others = (choice & ~close)[:, None]
    far += others * moments
    pairs += (others * seen)[:, :, None] * (losses[:, :, None] - losses[:, None]) ** 2


def swap_draws(
    known: Array, *, promises: int, actions: int, comparators: int, width: Array | float = 1.0
) -> Array:
    """Bound what draws add to the sum of decision swap regret (K,), with probability 1 - ``RISK``.

    Of ``promises`` losses and stays at once, A ``actions``, A + C ``comparators``, V and what is
    sure ``known`` (2, K), losses of range ``width``. Contextual regret to policies, promises each,
    has A^2 cells for actions and A comparators, that to models none.
    """
    chances = np.log(promises) + actions * float(np.log(comparators))
    return drawn(known, chances, 2 * np.asarray(width))


def drawn(known: Array, log_chances: float, step: Array | float = 1.0) -> Array:
    """Bound so many martingales of steps of at most ``step``, of V and what is sure (2, ...)."""
    variance, surely = known
    chances = log_chances - np.log(RISK - ASSIGNED)
    own = {"rates": _STEPS, "costs": np.expm1(_STEPS) - _STEPS}
    within = step * greatest_of(variance / np.square(step), chances, **own)
    return np.asarray(np.minimum(within, surely))
