"""What leaders can have taken from the agents of a run, read from a transcript of all rounds.

The joint law of action and outcome of every agent is collected on a finite support of outcomes
(``market.outcomes``): exactly while few distinct ones occur, else on a grid, whose quantisation
error is kept beside the result. From it

    exploitability        distance to the laws with swap regret at most 0.01
    exploitability_exact  distance to the laws without swap regret
    leader_surplus        of an adversary with a payoff: what it earned above its commitment value
    surplus_cap           kappa times the swap regret of the law, which the surplus never exceeds

as ``market.exploitability`` defines them. The commitment value is taken over the outcomes that
occurred and those that the adversary declares as its ``support`` (over the former alone where a
market moves its outcomes). Nothing is solved for an agent
without swap regret: its exploitability is 0.

Of many agents a sample of ``MOST`` rows is followed, drawn before the first round and shared out
among the cohorts: small cohorts are followed completely. All others have NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from market.errors import UserError
from market.exploited import exploitabilities
from market.leaders import stackelberg, surplus_cap, swap_regret_of
from market.losses import Loss
from market.outcomes import OutcomeBins
from market.presence import present
from market.programs import UnsolvedError
from market.randomness import stream
from market.records import Round
from market.roles import Adversary, Cohort

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MEASURES = ("exploitability",)  # what a cohort may keep beside its regrets
COLUMNS = ("exploitability", "exploitability_exact")
LEADER_COLUMNS = ("leader_surplus", "surplus_cap")
TOLERANCE = 0.01  # swap regret that the headline forgives
MOST = 500  # rows that are followed

# Points of the support, by the size of a linear program and by what a checkpoint holds.
FEWEST, FINEST = 64, 2048
ENTRIES, COUNTS = 60_000, 2_000_000


@dataclass(frozen=True)
class Extent:
    """What was followed of a cohort, and how finely.

    Parameters
    ----------
    agents, followed : int
        N, and how many of them have a value.
    points : int
        Of the support.
    quantisation_error : float
        Largest quantisation error of a followed loss; 0 where outcomes stand for themselves.
    unsolved : int
        Followed agents who played and have no value, since no method solved their programs.
    """

    agents: int
    followed: int
    points: int
    quantisation_error: float
    unsolved: int = 0


class Transcript:
    """Follows the agents of a game.

    Parameters
    ----------
    cohorts : sequence of Cohort
    adversary : Adversary
    kept : sequence of bool
        Which cohorts are followed.
    seed : int
        Root of the sample's stream.
    most : int
        Rows that are followed, at most; at least one per cohort.
    unmoved : bool
        Whether what the adversary chooses is what happens; else its ``support`` is left out.
    """

    def __init__(  # noqa: PLR0913 - keyword-only from the fourth
        self,
        cohorts: Sequence[Cohort],
        adversary: Adversary,
        kept: Sequence[bool],
        *,
        seed: int,
        most: int = MOST,
        unmoved: bool = True,
    ) -> None:
        self._cohorts, self._adversary, self._unmoved = tuple(cohorts), adversary, unmoved
        places = [place for place, wanted in enumerate(kept) if wanted]
        counts = [len(cohorts[place].ledger.count) for place in places]
        self.rows = {
            place: _sample(cohorts[place].name, count, quota, seed)
            for place, count, quota in zip(places, counts, quotas(counts, most), strict=True)
        }
        sizes = [(len(rows), cohorts[place].loss.actions) for place, rows in self.rows.items()]
        self.bins = OutcomeBins(sizes, adversary.outcomes, most=most_points(sizes))
        self._found: dict[int, dict[str, Array]] = {}
        if self.leads:
            self._check_payoff()

    @property
    def leads(self) -> bool:
        """Whether the adversary has a payoff."""
        return self._payoff is not None

    @property
    def _payoff(self) -> Any:
        return getattr(self._adversary, "payoff", None)

    @property
    def columns(self) -> tuple[str, ...]:
        """What ``measured`` gives."""
        return (*COLUMNS, *LEADER_COLUMNS) if self.leads else COLUMNS

    def add(self, played: Round) -> None:
        """Add a round."""
        here = {place: decision for place, _, decision, _ in present(self._cohorts, played)}
        laws = [
            here[place].probabilities[rows] if place in here else np.zeros(size)
            for (place, rows), size in zip(self.rows.items(), self.bins.sizes, strict=True)
        ]
        self.bins.add(laws, played.outcome)
        self._found.clear()

    def measured(self, cohort: int) -> dict[str, Array]:
        """Return every column of a cohort's rows (K,), computed once per round.

        NaN for rows that are not followed or have not played, or whose program was not solved.
        """
        if cohort not in self._found:
            self._found[cohort] = self._computed(cohort)
        return self._found[cohort]

    def paid(self, cohort: int) -> float:
        """Return what the leader is paid per round, mean over the agents who are followed.

        NaN where nobody is or nobody has played, or the adversary has no payoff.
        """
        if cohort not in self.rows or not self.leads:
            return float("nan")
        rows, joints = self.rows[cohort], self.bins.joints(list(self.rows).index(cohort))
        if not joints.any():
            return float("nan")
        payoffs = self._payoff.values(self._cohorts[cohort].loss[rows], self.bins.points)
        counts = np.bincount(self._cohorts[cohort].row_of)[rows]
        return float(np.einsum("kam,mka->k", joints, payoffs) @ counts / counts.sum())

    def extent(self, cohort: int) -> Extent:
        """Say how many of a cohort's agents are followed, and how finely."""
        row_of = self._cohorts[cohort].row_of
        if cohort not in self.rows:
            return Extent(len(row_of), 0, 0, 0.0)
        rows = self.rows[cohort]
        followed = int(np.isin(row_of, rows).sum())
        error = self.bins.error(self._cohorts[cohort].loss[rows])
        played = self.bins.joints(list(self.rows).index(cohort)).any((1, 2))
        lacking = np.any([np.isnan(v[rows]) for v in self.measured(cohort).values()], axis=0)
        unsolved = int(np.isin(row_of, rows[played & lacking]).sum())
        points, largest = len(self.bins.points), float(np.max(error))
        return Extent(len(row_of), followed, points, largest, unsolved)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return self.bins.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.bins.restore(state)
        self._found.clear()

    def _check_payoff(self) -> None:
        """Raise UserError unless the adversary is paid for the actions of all that are followed."""
        anywhere = np.zeros((1, self._adversary.outcomes))
        for place in self.rows:
            cohort = self._cohorts[place]
            try:
                self._payoff.values(cohort.loss[:1], anywhere)
            except ValueError as error:
                raise UserError(f"the adversary's payoff, cohort.{cohort.name}: {error}") from error

    def _computed(self, place: int) -> dict[str, Array]:
        cohort = self._cohorts[place]
        count = len(cohort.ledger.count)
        columns = {name: np.full(count, np.nan) for name in self.columns}
        if place not in self.rows:
            return columns
        rows, joints = self.rows[place], self.bins.joints(list(self.rows).index(place))
        played = np.flatnonzero(joints.any((1, 2)))
        if not len(played):
            return columns
        mine, laws = rows[played], joints[played]
        found = self._exploited(cohort, mine, laws)
        if self.leads:
            found |= self._led(cohort.loss[mine], laws)
        for name, values in found.items():
            columns[name][mine] = values
        return columns

    def _exploited(self, cohort: Cohort, rows: Rows, laws: Array) -> dict[str, Array]:
        """Solve for rows with swap regret; what is known of the true one settles the rest."""
        ledger, tolerances = cohort.ledger, (0.0, TOLERANCE)
        regret = ((ledger.own - ledger.fixed.min(2)).sum(1) / np.maximum(ledger.rounds, 1))[rows]
        values = np.zeros((len(rows), len(tolerances)))
        open_ = np.flatnonzero(regret > 0)
        if len(open_):
            tables = self.bins.losses(cohort.loss[rows[open_]])
            found = exploitabilities(laws[open_], tables, tolerances=tolerances, most=len(open_))
            values[open_] = found.values
        values[regret[:, None] <= np.array(tolerances)] = 0.0
        return {"exploitability": values[:, 1], "exploitability_exact": values[:, 0]}

    def _led(self, loss: Loss, laws: Array) -> dict[str, Array]:
        """Return surplus and cap of rows with their joint laws (K, A, m)."""
        points = self._support()
        beyond = np.zeros((*laws.shape[:2], len(points) - laws.shape[2]))
        laws = np.concatenate([laws, beyond], axis=2)
        tables = np.moveaxis(loss.losses(points), 0, 1)  # (K, m, A)
        payoffs = np.moveaxis(self._payoff.values(loss, points), 0, 1)
        solved: dict[tuple[bytes, bytes], tuple[float, float]] = {}
        surplus, cap = np.empty(len(laws)), np.empty(len(laws))
        for k, (law, table, payoff) in enumerate(zip(laws, tables, payoffs, strict=True)):
            key = table.tobytes(), payoff.tobytes()
            if key not in solved:
                try:
                    solved[key] = stackelberg(payoff, table).value, surplus_cap(payoff, table)
                except UnsolvedError:
                    solved[key] = np.nan, np.nan
            value, kappa = solved[key]
            surplus[k] = (law.T * payoff).sum() - value
            cap[k] = kappa * swap_regret_of(law, table)
        return {"leader_surplus": surplus, "surplus_cap": cap}

    def _support(self) -> Array:
        """Outcomes that occurred, and after them those that the adversary could have chosen."""
        points, own = self.bins.points, getattr(self._adversary, "support", None)
        if own is None or not self._unmoved:
            return points
        further = np.atleast_2d(np.asarray(own, dtype=np.float64))
        new = ~(further[:, None] == points[None]).all(2).any(1)
        return np.concatenate([points, further[new]])


def quotas(counts: Sequence[int], most: int) -> list[int]:
    """Share out a sample: small groups whole, the others alike.

    Parameters
    ----------
    counts : sequence of int
        Members of each group.
    most : int
        Size of the sample, but at least one member of each group belongs to it.
    """
    shares, left = [0] * len(counts), most
    for done, place in enumerate(np.argsort(counts, kind="stable")):
        shares[place] = min(counts[place], max(1, left // (len(counts) - done)))
        left -= shares[place]
    return shares


def most_points(sizes: Sequence[tuple[int, int]]) -> int:
    """Points of the support that linear programs and checkpoints can bear.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Rows and actions of each cohort.
    """
    entries = max((actions * (actions - 1) for _, actions in sizes), default=0)
    counts = sum(rows * actions for rows, actions in sizes)
    bearable = min(ENTRIES // max(entries, 1), COUNTS // max(counts, 1), FINEST)
    return max(bearable, FEWEST)


def _sample(name: str, count: int, quota: int, seed: int) -> Rows:
    if quota >= count:
        return np.arange(count)
    return np.sort(stream(seed, "exploitability", name).permutation(count)[:quota])
