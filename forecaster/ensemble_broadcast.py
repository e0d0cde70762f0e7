"""Who broadcasts ensembles: the solver of a basis, and baselines with the nearest ensembles.

Where s(y) are the indicators of cells, a prediction in the simplex is its own ensemble: the points
of the cells with the prediction as weights, and the game is the one over the simplex. Any other
basis has the game over conv s(Y). A baseline's point may lie outside of conv s(Y); what is
broadcast then is the nearest point inside.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases import LipschitzGridBasis
from regretless.forecaster.events.protected import Rows
from regretless.forecaster.minimax.box import field_at, worst_case
from regretless.forecaster.minimax.ensembles import Cloud, candidates, nearest_cloud
from regretless.forecaster.minimax.image import ImageSolver
from regretless.forecaster.minimax.solver import CubeSolver, Solution, Solver
from regretless.forecaster.minimax.support import Support
from regretless.forecaster.minimax.supports_of_bases import support_of
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.basis import Basis
from regretless.market.game.protocols import Forecaster, tell
from regretless.market.records import Ensemble, Forecast, Mixture


def ensemble_solver(basis: Basis) -> Solver:
    """Make the solver that keeps to conv s(Y) and gives every prediction its ensemble.

    Raises
    ------
    ValueError
        If there is none for this basis.
    """
    if isinstance(basis, LipschitzGridBasis):
        return CellsSolver(basis.points)
    return ImageSolver(support_of(basis))


def has_ensembles(forecaster: Forecaster) -> bool:
    """Whether every forecast of this forecaster has an ensemble."""
    solver = getattr(forecaster, "solver", None)
    return isinstance(forecaster, EnsembleBroadcast) or isinstance(
        solver, ImageSolver | CellsSolver
    )


class CellsSolver(CubeSolver):
    """The game over the simplex, whose predictions are weights of the cells' points.

    Parameters
    ----------
    places : array (n, d)
        One outcome in every cell.
    """

    def __init__(self, places: Array) -> None:
        super().__init__(len(places), "simplex")
        self._places = places

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture with its certificate, and the cells with weight as ensembles."""
        found = super().solve(rows, table, tolerance=tolerance)
        points = np.maximum(found.points, 0.0)
        points /= points.sum(1, keepdims=True)
        fields = np.array([field_at(rows, table, point) for point in points])
        ensembles = tuple(Ensemble(self._places[p > 0], p[p > 0]) for p in points)
        certificate = worst_case(found.mass, points, fields, hull="simplex")
        return Solution(points, found.mass, certificate, ensembles)


class EnsembleBroadcast(Remembering):
    """A forecaster of points, broadcast as the nearest ensembles.

    Parameters
    ----------
    forecaster : Forecaster
        With ``state`` and ``restore`` where the run is to be resumed.
    support : Support
        Of the basis that it predicts.
    """

    REMEMBERED = ("forecaster",)

    def __init__(self, forecaster: Forecaster, support: Support) -> None:
        self.forecaster, self.support = forecaster, support
        outcomes, images = candidates(support)
        self._start = Cloud.of(outcomes, images, np.full(len(images), 1 / len(images)))
        self._next = self._start

    def mixture(self, x: Any = None) -> Mixture:
        """Return the forecaster's mixture with every point moved to its ensemble's mean."""
        return self._spelled(self.forecaster.mixture(x))

    def _spelled(self, told: Mixture) -> Mixture:
        clouds = tuple(nearest_cloud(point, self.support, self._start) for point in told.points)
        self._next = clouds[0]
        points = np.array([cloud.point for cloud in clouds])
        return Mixture(points, told.weights, ensembles=clouds)

    def __repr__(self) -> str:
        return f"<EnsembleBroadcast of {self.forecaster!r}>"

    def predict(self, x: Any = None) -> Forecast:
        """Return the mixture and the forecaster's own draw."""
        told = self.forecaster.predict(x)
        return Forecast(self._spelled(told.mixture), told.index)

    def witness(self, outcome: Array) -> None:
        """Pass the outcome (d,) on, if the forecaster wants to know."""
        tell(self.forecaster, outcome)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector that was predicted."""
        self.forecaster.update(y)
        self._start = self._next

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return super().state() | {"start": dict(vars(self._start))}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        super().restore(state)
        self._start = self._next = Cloud(**state["start"])
