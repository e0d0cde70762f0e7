"""Points that are broadcast as ensembles: forecasts spelled out as weighted outcomes."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.minimax.game import HullSolver, Solution
from regretless.forecaster.wrapping import Wrapping
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Forecast, Mixture, RoundFeedback


class EnsembleBroadcast(Wrapping):
    """A forecaster of points, broadcast as the nearest ensembles in a solver's hull.

    Its point may lie outside of conv s(Y); what is broadcast then is the nearest point inside.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("solver",)
    has_ensembles = True

    def __init__(self, forecaster: Forecaster, solver: HullSolver) -> None:
        super().__init__(forecaster)
        self.solver = solver
        self._latest: Solution | None = None

    def mixture(self, x: object = None) -> Mixture:
        return self._with_ensembles(self.inner.mixture(x))

    def _with_ensembles(self, mixture: Mixture) -> Mixture:
        """Return a mixture whose points are the nearest ones in the hull, with their ensembles."""
        solutions = [self.solver.single(point) for point in mixture.points]
        self._latest = solutions[0]
        points = np.vstack([solution.points for solution in solutions])
        ensembles = tuple(solution.ensembles[0] for solution in solutions if solution.ensembles)
        return Mixture(points, mixture.weights, ensembles=ensembles)

    def predict(self, x: object = None) -> Forecast:
        forecast = self.inner.predict(x)
        return Forecast(self._with_ensembles(forecast.mixture), forecast.index)

    def observe(self, feedback: RoundFeedback) -> None:
        self.inner.observe(feedback)  # its mixture has the same atoms as this one's
        self._remember_solution()

    def update(self, y: ArrayLike) -> None:
        super().update(y)
        self._remember_solution()

    def _remember_solution(self) -> None:
        """Let the solver begin the next round from this one's solution."""
        if self._latest is not None:
            self.solver.remember(self._latest)
