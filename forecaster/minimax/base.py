"""What every solver of a round's game does: ``HullSolver``.

A solver works over one set of possible s(y): the box, the simplex or conv s(Y). It returns a
mixture of predictions in that set with a certificate: the mixture's worst case over the whole set,
so that it holds whatever the outcome is. A solver remembers where the last round ended.

    Box, Simplex    ``cube``       predictions are points
    Image           ``image``      predictions are weighted outcomes in conv s(Y)
    WithObjective   ``objective``  any of them, with a preference among good mixtures
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.forecaster.events.protected import LossTable
from regretless.forecaster.minimax.walk import INSET, field_at
from regretless.market.core.arrays import Array
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


Objective = Callable[[Solution], Array]  # of its points: values (m,), the less the better


class HullSolver(ABC):
    """Solves every round's game over one set of possible s(y), starting from the last round's."""

    size: int  # numbers of a prediction, n
    hull: Hull  # the set, as bounds and tables call it
    spelled: bool = False  # whether every point comes with its weighted outcomes
    preferring: bool = False  # whether it plays a game where a model could be broadcast as it is

    @abstractmethod
    def single(self, point: Array) -> Solution:
        """Return the nearest point of the hull to ``point`` (n,), without a certificate."""

    @abstractmethod
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

    @property
    @abstractmethod
    def origin(self) -> Solution:
        """The single point from which the next round starts: the mean of the last mixture."""

    @abstractmethod
    def remember(self, solution: Solution) -> None:
        """Start the next round from this one."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""

    def prefer(self, values: Objective) -> None:  # noqa: B027 - most have no preference
        """Prefer mixtures with a low objective among those that are good enough."""

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""
        if truth.shape != (self.size,) or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(f"update needs {self.size} numbers in [0, 1]")


class PlainSolver(HullSolver):
    """A solver without an objective: what one over a hull of its own writes."""

    off_ties: bool = False  # whether points keep off the sides of the hull

    def _inset(self, tolerance: float) -> float:
        return INSET * tolerance if self.off_ties else 0.0

    @abstractmethod
    def worst(self, mass: Array, points: Array, fields: Array) -> float:
        """Worst case over the hull of a mixture (m,) of points with fields (m, n)."""

    @abstractmethod
    def choices(
        self, rows: LossTable, table: Array, *, tolerance: float, start: Solution
    ) -> Solution:
        """Return points of the hull for an objective to choose from; their masses mean nothing."""

    @abstractmethod
    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        """Return the masses (m,) of least mean value with a worst case within a limit, or None."""

    @abstractmethod
    def _play(
        self, rows: LossTable, table: Array, *, tolerance: float, start: Solution
    ) -> Solution:
        """Solve a game, starting from a single point."""

    def solve(
        self, rows: LossTable, table: Array, *, tolerance: float, candidate: Array | None = None
    ) -> Solution:
        """Return the candidate, or a mixture, with its certificate."""
        if candidate is None:
            return self._play(rows, table, tolerance=tolerance, start=self.origin)
        start = self.single(candidate)
        worst = self.worst(start.mass, start.points, fields_at(rows, table, start.points))
        if worst <= tolerance:
            return replace(start, certificate=worst)
        return self._play(rows, table, tolerance=tolerance, start=start)


def fields_at(rows: LossTable, table: Array, points: Array) -> Array:
    """Compute h (m, n) at points (m, n); cells that hold a point add to it (``line``)."""
    own, cells = np.split(table, [rows.shape[0]])
    fields = np.array([field_at(rows, own, point) for point in points]).reshape(points.shape)
    return fields + pulls(cells[:, 0], points[:, 0])[:, None] if len(cells) else fields


@compiled
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
