"""Commitment as a plan: the same distribution in every round, whatever anybody does.

An attacker who is trained should never take less than one who commits. So ``train`` rehearses
commitments before it searches, lets the search begin with the best of them, and judges that one
beside what the search has found.

The best distribution to commit to leaves a follower who learns it from drawn outcomes indifferent,
or nearly so. A margin makes up for that (``market.exploitability.sampled_commitment``), and which
one is best depends on the learner and on the length of the run. Several are tried: none, the one
that ``stackelberg-committer`` would take, and a geometric sequence. Where no commitment value is
known, since agents have losses of their own or no program was solved, the outcomes of the support
are tried, one by one and all alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError
from regretless.market.exploitability.commitment import largest_margin, stackelberg
from regretless.market.exploitability.sampled_commitment import commitment_for_run
from regretless.market.numerics.linear_program import UnprovedError
from regretless.scenarios.training.attack import Attack, moves_rows, planner_of, round_plan

N_MARGINS = 6  # of the geometric sequence
SMALLEST_MARGIN_SHARE = 0.01  # the least of them, as a share of the greatest that the game allows
MAX_PURE_COMMITMENTS = 16  # outcomes of the support that are tried one by one


@dataclass(frozen=True, eq=False)
class Commitment:
    """A distribution (m,) to commit to, and its margin; NaN where no margin chose it."""

    mixture: Array
    margin: float

    def plan(self, shape: tuple[int, int, int]) -> Array:
        """Return it as a plan of this shape, the same in every phase and row."""
        return round_plan(np.broadcast_to(self.mixture, shape))


def commitments_to_try(attack: Attack) -> list[Commitment]:
    """Return different commitments against the cohort of an attack, the one of margin 0 first.

    Of a cohort whose rows have different losses they are those against the average of its agents.
    """
    model = attack.model(0)
    leader: Any = model.game.adversary
    support = np.asarray(planner_of(model).support)
    if model.game.has_personal_losses or moves_rows(model):
        return _pure_and_even(len(support))
    cohort = model.game.cohorts[attack.cohort_index(model)]
    shares = cohort.counts / cohort.counts.sum()
    payoff = np.einsum("mka,k->ma", leader.payoff.values(cohort.loss, support), shares)
    loss = np.einsum("mka,k->ma", cohort.loss.losses(support), shares)
    commitments: list[Commitment] = []
    for margin in _margins(payoff, loss, rounds=model.rounds):
        try:
            mixture = stackelberg(payoff, loss, margin=margin).mixture
        except (UnprovedError, ParameterError):  # another margin will do
            continue
        is_known = any(np.allclose(mixture, other.mixture) for other in commitments)
        if not is_known:
            commitments.append(Commitment(mixture, margin))
    return commitments or _pure_and_even(len(support))


def _margins(payoff: Array, loss: Array, *, rounds: int) -> list[float]:
    """Return the margins to try in a game (m, A), without repetition."""
    margins = [0.0]
    try:
        _, margin_for_run = commitment_for_run(payoff, loss, rounds=rounds)
        margins.append(margin_for_run)
    except UnprovedError:
        pass
    greatest = largest_margin(loss)
    if 0 < greatest < np.inf:
        sequence = np.geomspace(SMALLEST_MARGIN_SHARE, 0.999, N_MARGINS) * greatest
        margins.extend(sequence.tolist())
    return list(dict.fromkeys(margins))


def _pure_and_even(n_outcomes: int) -> list[Commitment]:
    """Return an even draw of all outcomes, and outcomes of the support one by one."""
    tried = np.linspace(0, n_outcomes - 1, min(n_outcomes, MAX_PURE_COMMITMENTS)).astype(np.intp)
    mixtures = [np.full(n_outcomes, 1 / n_outcomes), *np.eye(n_outcomes)[tried]]
    return [Commitment(mixture, np.nan) for mixture in mixtures]
