"""What the draws add to an expected regret, at all times at once.

An agent acts on one prediction, drawn from the round's mixture. With q the distribution of its
action under the draw and pi the same under the mixture, an assignment c of comparators to actions
(each an action or a policy) has the martingale

    M_c = sum_t sum_a (q_a - pi_a) (l_t(a) - l_t(c(a))),

as outcome and mixture are settled before the draw. Realised regret exceeds expected regret by at
most max_c M_c. With w the range of the round's losses, the conditional variance of an increment is
at most the second moment sum_a pi_a (l(a) - l(c(a)))^2, which the forecaster knows, and at most
2 w^2 sum_a pi_a (1 - pi_a), as two terms differ by 2 w at most. So the variances add up to at most

    V = near + sum_a max_c U_{a,c},   U_{a,c} = sum_t pi_a (l_t(a) - l_t(c))^2,

where ``near`` has the second number of rounds in which it is the smaller one (most rounds near a
single action) and U all others. A policy has max_b (l(a) - l(b))^2 in its place. Rounds whose
mixture leaves an agent no choice add nothing, and surely M_c is at most the sum of 2 w (1 - min
pi). A distribution q that is no single action has no more variance than an action drawn from it.

**Uniform in time** (Freedman 1975; Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform,
nonparametric, nonasymptotic confidence sequences"). A martingale difference X <= b with conditional
variance v has E exp(h X / b) <= exp((e^h - 1 - h) v / b^2) (Bennett). So

    sum_j exp(h_j M / b - (e^h_j - 1 - h_j) V / b^2) / J

is a supermartingale that starts at 1 at most, for any grid of h, and by Ville's inequality exceeds
1 / alpha at some time with probability alpha at most. Otherwise M_t <= u(V_t) in every round t,
u(V) being the greatest M that this allows: about sqrt(2 V ln(J / alpha)). With alpha = risk /
(K (A + C)^A) for K promises it holds for all of them, all rounds and all assignments (each of A
played actions has A + C comparators, itself among them): a bound that is watched and stops a run
early still holds.

Losses in [0, 1] give b = 2; where the basis has an error, their range is 1 + 2 delta at most, and b
is twice that. Over a part of the rounds M starts anew, and V is at most that of all. A priori,
V <= T, as no moment of losses in [0, 1] is above 1.

**Against a model** the comparator is known before the draw: its martingale is that of a constant
assignment, and one for all models. **Contextual** regret to a policy assigns one of A actions to
each of A^2 pairs of a played action and a suggestion: A^(A^2) assignments for every policy.
"""

from typing import ClassVar

import numpy as np

from regretless.forecaster.events.protected import LossTable, ProtectedLosses
from regretless.forecaster.events.weights import ExponentialMixture
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled

RISK = 0.01
ASSIGNED = RISK / 4  # of it is for potentials that are charged with what was drawn
ROUNDING = 1e-12  # of what is 0 or 1 but for the order of a sum: atoms weigh more
_STEPS = np.array([4.0 * 0.5**j for j in range(14)])
BENNETT = ExponentialMixture(
    _STEPS, np.expm1(_STEPS) - _STEPS, np.full(len(_STEPS), 1 / len(_STEPS))
)


@compiled()
def _add(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    start: Integers, seen: Array, losses: Array, pairs: Array, far: Array, ends: Array
) -> None:
    place = 0
    for k in range(start.shape[0] - 1):
        first, end = start[k], start[k + 1]
        spread, least, low, high = 0.0, 1.0, losses[first], losses[first]
        for r in range(first, end):
            spread += seen[r] * (1.0 - seen[r])
            if seen[r] > ROUNDING:
                least = min(least, seen[r])
            low, high = min(low, losses[r]), max(high, losses[r])
        if spread > ROUNDING:
            moment = 0.0
            for r in range(first, end):
                moment += seen[r] * max(high - losses[r], losses[r] - low) ** 2
            ends[1, k] += 2.0 * (high - low) * (1.0 - least)
            if 2.0 * (high - low) ** 2 * spread < moment:
                ends[0, k] += 2.0 * (high - low) ** 2 * spread
            else:
                for r in range(first, end):
                    far[r] += seen[r] * max(high - losses[r], losses[r] - low) ** 2
                    for c in range(first, end):
                        at = place + (r - first) * (end - first) + c - first
                        pairs[at] += seen[r] * (losses[r] - losses[c]) ** 2
        place += (end - first) ** 2


class Draws(Checkpointable):
    """What is known of the draws of all protected losses so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True

    def __init__(self, rows: LossTable) -> None:
        self._rows = rows
        sizes = np.diff(rows.start)
        self._pairs, self._far = np.zeros(int((sizes**2).sum())), np.zeros(len(rows.offset))
        self._ends, self._any = np.zeros((2, len(sizes))), np.zeros(2)
        self.arrays = {
            "pairs": self._pairs, "far": self._far, "ends": self._ends, "any": self._any
        }  # fmt: skip

    def add(self, seen: Array, truth: Array, mass: Array) -> None:
        """Add a round: probabilities of rows (R,), s(y) (n,), probabilities of the draw (m,)."""
        losses = self._rows.offset + self._rows.times(truth)
        _add(self._rows.start, seen, losses, self._pairs, self._far, self._ends)
        self._any += min(2 * float(mass @ (1 - mass)), 1.0), 2 * (1 - float(mass.min()))

    def of_anybody(self, width: Array) -> Array:
        """Return V and what is sure, of losses of these ranges (K,) that are not listed (2, K).

        As if every atom of the mixture had an action of its own.
        """
        return np.outer(self._any, width) * np.stack([width, np.ones_like(width)])

    def of(self, group: ProtectedLosses, *, fixed: bool) -> Array:
        """Return V and what is sure, of a group's losses (2, K); ``fixed``: against actions."""
        rows, (count, actions) = self._rows, group.offset.shape
        near, surely = self._ends[:, rows.losses(group)]
        far = self._far[rows.slice(group)].reshape(count, actions)
        if fixed:
            before = rows.groups[: rows.place(group)]
            first = sum(own.offset.size * own.offset.shape[1] for own in before)
            pairs = self._pairs[first : first + count * actions**2]
            far = pairs.reshape(count, actions, actions).max(2)
        return np.stack([near + far.sum(1), surely])


def log_assignments(cells: int, comparators: int) -> float:
    """Return the logarithm of the number of assignments of a comparator to every cell."""
    return cells * float(np.log(comparators))


def swap_draws(
    known: Array, *, promises: int, actions: int, comparators: int, width: Array | float = 1.0
) -> Array:
    """Bound what draws add to the sum of decision swap regret (K,), with probability 1 - ``RISK``.

    For ``promises`` losses (and stays) of the run at once, A ``actions``, A + C ``comparators``, V
    and what is sure ``known`` (2, K), and losses of this range ``width`` (K,). Contextual regret to
    policies, promises each, has A^2 cells for actions and A comparators, that to models none.
    """
    chances = np.log(promises) + log_assignments(actions, comparators)
    return drawn(known, chances, 2 * np.asarray(width))


def drawn(known: Array, log_chances: float, step: Array | float = 1.0) -> Array:
    """Bound so many martingales of steps of at most ``step``, of V and what is sure (2, ...)."""
    variance, surely = known
    within = step * BENNETT.greatest(
        variance / np.square(step), log_chances - np.log(RISK - ASSIGNED)
    )
    return np.asarray(np.minimum(within, surely))
