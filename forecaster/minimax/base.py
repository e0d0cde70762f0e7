"""What every solver of a round's game does: ``HullSolver``.

A solver works over one set of possible s(y): the box, the simplex or conv s(Y). It returns a
mixture of predictions in that set with a certificate: the mixture's worst case over the whole set,
so that it holds whatever the outcome is. A solver remembers where the last round ended, and may
have an objective (``objective``).

    Box, Simplex    ``cube``       predictions are points
    Line            ``line``       predictions of one number, in dyadic cells
    Image           ``image``      predictions are weighted outcomes in conv s(Y)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from regretless.forecaster.events.protected import LossTable
from regretless.forecaster.minimax.walk import INSET, field_at
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble

LIGHTEST = 1e-9  # atoms with less weight are dropped


@dataclass(frozen=True, eq=False)
class Solution:
    """A mixture with its certificate."""

    points: Array  # (m, n)
    mass: Array  # (m,)
    certificate: float | None  # worst case over the hull; None where no game was played
    ensembles: tuple[Ensemble, ...] | None = None  # each point as weighted outcomes, if known
    unchanged: bool = False  # whether this is the candidate alone

    def mixed(self, mass: Array) -> "Solution":
        """Return the mixture of its points with other masses (m,), without those near 0."""
        heavy = np.flatnonzero(mass > LIGHTEST)
        kept = None if self.ensembles is None else tuple(self.ensembles[j] for j in heavy)
        return Solution(self.points[heavy], mass[heavy] / mass[heavy].sum(), None, kept)

    def beside(self, other: "Solution") -> "Solution":
        """Collect the distinct points of both, in ascending order; their masses mean nothing."""
        whole = np.vstack([self.points, other.points])
        points, first = np.unique(whole, axis=0, return_index=True)
        known = (*(self.ensembles or ()), *(other.ensembles or ()))
        ensembles = tuple(known[j] for j in first) if known else None
        return Solution(points, np.empty(len(points)), None, ensembles)


Objective = Callable[[Solution], Array]  # of its points: values (m,), the less the better


@dataclass(frozen=True, eq=False)
class Game:
    """A round's game: how predictions are answered, and what each answer weighs."""

    rows: LossTable
    table: Array  # (lines, n) H, the normalised signed weights; cells follow the rows (``line``)
    tolerance: float  # above 0: the certificate that is good enough
    start: Solution  # the single point from which to start

    def field(self, point: Array) -> Array:
        """Compute h (n,) at a point (n,)."""
        lines = self.rows.shape[0]
        found = field_at(self.rows, self.table[:lines], point)
        if len(self.table) == lines:
            return found
        return np.asarray(found + pulls(self.table[lines:, 0], point))

    def fields(self, points: Array) -> Array:
        """Compute h (m, n) at points (m, n)."""
        return np.array([self.field(point) for point in points]).reshape(points.shape)


class HullSolver(Checkpointable, ABC):
    """Solves every round's game over one set of possible s(y), starting from the last round's.

    One that is ``preferring`` plays a game where a model could be broadcast as it is, too; of the
    mixtures that are good enough it takes the one with the least ``objective``, once it has any.
    """

    size: int  # numbers of a prediction, n
    hull: Hull  # the set, as bounds and tables call it
    spelled: bool = False  # whether every point comes with its weighted outcomes
    off_ties: bool = False  # whether points keep off the sides of the hull
    preferring: bool = False
    objective: Objective | None = None

    def prefer(self, values: Objective) -> None:
        """Prefer mixtures with a low objective among those that are good enough."""
        self.preferring, self.objective = True, values

    @abstractmethod
    def single(self, point: Array) -> Solution:
        """Return the nearest point of the hull to ``point`` (n,), without a certificate."""

    @property
    @abstractmethod
    def origin(self) -> Solution:
        """The single point from which the next round starts: the mean of the last mixture."""

    @abstractmethod
    def remember(self, solution: Solution) -> None:
        """Start the next round from this one."""

    @abstractmethod
    def worst(self, mass: Array, points: Array, fields: Array) -> float:
        """Worst case over the hull of a mixture (m,) of points with fields (m, n)."""

    @abstractmethod
    def choices(self, game: Game) -> Solution:
        """Return points of the hull for an objective to choose from; their masses mean nothing."""

    @abstractmethod
    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        """Return the masses (m,) of least mean value with a worst case within a limit, or None."""

    @abstractmethod
    def _play(self, game: Game) -> Solution:
        """Return a mixture with its certificate."""

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""
        if truth.shape != (self.size,) or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(f"update needs {self.size} numbers in [0, 1]")

    def solve(
        self, rows: LossTable, table: Array, *, tolerance: float, candidate: Array | None = None
    ) -> Solution:
        """Return a mixture with its certificate.

        Parameters
        ----------
        table : array (R, n)
            H, the normalised signed weights.
        tolerance : float
            Above 0: the certificate that is good enough.
        candidate : array (n,), optional
            A model's forecast. It is the solution, moved into the hull, where its certificate alone
            is within the tolerance, and the point to start from where it is not.
        """
        start = self.origin if candidate is None else self.single(candidate)
        game, worst = Game(rows, table, tolerance, start), np.inf
        if candidate is not None:
            worst = self.worst(start.mass, start.points, game.fields(start.points))
        kept = worst <= tolerance
        solved = replace(start, certificate=worst) if kept else self._play(game)
        return solved if self.objective is None else self._preferred(game, solved, self.objective)

    def _preferred(self, game: Game, solved: Solution, objective: Objective) -> Solution:
        """Return the best mixture for an objective of those that are good enough."""
        choices = solved.beside(self.choices(game))
        fields = game.fields(choices.points)
        # within rounding of the limit no program could be sure of it
        limit = max(game.tolerance, (solved.certificate or 0.0) + LIGHTEST)
        mass = self.best_within(objective(choices), choices.points, fields, limit=limit)
        if mass is None:
            return solved
        best = choices.mixed(mass)
        reached = self.worst(best.mass, best.points, fields[mass > LIGHTEST])
        return replace(best, certificate=reached) if reached <= limit + LIGHTEST else solved

    def _inset(self, tolerance: float) -> float:
        return INSET * tolerance if self.off_ties else 0.0


@compiled()
def pulls(cells: Array, points: Array) -> Array:
    """Add up the weights of the dyadic cells that hold points (m,) of [0, 1).

    Cell i of scale s has number 2^s + i - 2 of the ``cells`` (2^(S + 1) - 2,).
    """
    finest, out = cells.shape[0] // 2 + 1, np.zeros(points.shape[0])
    for j in range(points.shape[0]):
        node = finest + int(points[j] * finest)
        while node > 1:
            out[j] += cells[node - 2]
            node >>= 1
    return out
