"""Who broadcasts ensembles: the solver of a basis, and baselines with the nearest ensembles.

Where s(y) are the indicators of cells, a prediction in the simplex is its own ensemble: the points
of the cells with the prediction as weights, and the game is the one over the simplex. Any other
basis has the game over conv s(Y). A baseline's point may lie outside of conv s(Y); what is
broadcast then is the nearest point inside.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.minimax.base import HullSolver, Solution
from regretless.forecaster.minimax.cube import Simplex
from regretless.forecaster.minimax.image import Image
from regretless.forecaster.wrapping import Wrapping
from regretless.market.core.delegated import Delegated
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.records import Forecast, Mixture


def ensemble_solver(basis: Basis, *, off_ties: bool = False) -> HullSolver:
    """Make the solver over conv s(Y) whose predictions are ensembles; ValueError without one."""
    if basis.points is not None:
        return Simplex(basis.size, places=basis.points, off_ties=off_ties)
    return Image(basis.support(), off_ties=off_ties)


class EnsembleBroadcast(Wrapping):
    """A forecaster of points, broadcast as the nearest ensembles in a solver's hull."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("solver",)
    spelled = True

    def __init__(self, forecaster: Forecaster, solver: HullSolver) -> None:
        super().__init__(forecaster)
        self.solver = solver
        self._latest: Solution | None = None

    def mixture(self, x: Any = None) -> Mixture:
        """Return the forecaster's mixture with every point moved to its ensemble's mean."""
        return self._spelled(self.inner.mixture(x))

    def _spelled(self, mixture: Mixture) -> Mixture:
        nearest = [self.solver.single(point) for point in mixture.points]
        self._latest = nearest[0]
        ensembles = tuple(found.ensembles[0] for found in nearest if found.ensembles)
        points = np.vstack([found.points for found in nearest])
        return Mixture(points, mixture.weights, ensembles=ensembles)

    def predict(self, x: Any = None) -> Forecast:
        forecast = self.inner.predict(x)
        return Forecast(self._spelled(forecast.mixture), forecast.index)

    drew = Delegated("inner")

    def update(self, y: ArrayLike) -> None:
        super().update(y)
        if self._latest is not None:
            self.solver.remember(self._latest)
