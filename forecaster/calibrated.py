"""The older recipe for omniprediction: a calibrated and multiaccurate forecast, as a baseline.

Calibration asks for predictions without bias given the prediction itself, multiaccuracy given what
a policy suggests (Gopalan et al., 2023, "Loss minimization through the lens of outcome
indistinguishability"). With M grid points v, ``cells`` per coordinate of [0, 1]^n, and
h = 1 / (2 (cells - 1)) half their distance, the events are

    cell            [v is the grid point nearest to p]
    multiaccuracy   [c(x) = b]                           for each policy c, suggestion b

**Both are best responses**: argmin_v |p - v|^2 = argmin_v |v|^2 - 2 v.p is that of one linear
pseudo-loss with M actions; a loss that is zero always plays action 0, so its cross events are
[c(x) = b] alone. Unbiased-Prediction on these losses is the whole algorithm.

**The grid point is announced, not p**: p = 1/2 - e before every 1 and p = 1/2 + e before every 0 is
calibrated on a cell around 1/2, and whoever acts on [p > 1/2] is wrong every round.

**What it guarantees.** Let B be the events' biases, K = sum_v |B_v| / T the calibration error and
M_c = sum_b |B_{c = b}| / T. As the sum of s_t over a cell is that of p_t minus B_v, per round and
in expectation over the draws

    swap regret               <=  D (K + h)                      D = max_{a, b} ||r(a) - r(b)||_1
    omniprediction regret(c)  <=  lambda (K + M_c) + D h         lambda as in ``bounds``

Neither bounds **decision** swap regret, so a run carries the label ``none``. K <= sqrt(3 M Lambda /
T) with M about (1 / (2 h))^n: everything is exponential in n.
"""

from collections.abc import Callable, Sequence

import numpy as np

from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.wrapping import Wrapping
from regretless.market.core.arrays import grid_points
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Mixture

# grid points by default, and at most
USUAL_GRID_POINTS = 1000
MAX_GRID_POINTS = 20_000


class CalibratedMultiaccurate(Wrapping):
    """Announces grid points, unbiased given the grid point and given each policy's suggestion.

    It wraps a forecaster whose events, ``biases.parquet`` and ``certificate`` are those of
    predictions before they are rounded: loss 0 is the grid, its actions the cells; later losses
    carry policies.

    Parameters
    ----------
    groups : sequence of ProtectedLosses
        The losses of the agents; only policies and numbers of actions and of basis functions
        matter.
    cells : int, optional
        Grid points per coordinate, at least 2. By default the most that leave 1,000 points in all.
    make : callable, optional
        Makes the forecaster of the pseudo-losses; by default unbiased prediction in the box.
    """

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        *,
        cells: int | None = None,
        make: Callable[[Sequence[ProtectedLosses]], Forecaster] | None = None,
    ) -> None:
        if not groups:
            raise ValueError("a forecaster needs at least one loss to protect")
        size = int(groups[0].weights.shape[-1])
        if cells is None:
            cells = 2
            while (cells + 1) ** size <= USUAL_GRID_POINTS:
                cells += 1
        if not isinstance(cells, int) or isinstance(cells, bool) or cells < 2:
            raise UserError(f"forecaster.cells = {cells!r}: give a whole number of at least 2")
        if cells**size > MAX_GRID_POINTS:
            raise UserError(
                f"forecaster 'calibration': n = {size} numbers need {cells}^{size} grid points, "
                f"above {MAX_GRID_POINTS:,}; this recipe is for small problems: lower cells or use "
                "'decision-swap'"
            )
        self.grid = grid_points(np.linspace(0.0, 1.0, cells), size)
        self.radius = float(self.grid[1, -1] - self.grid[0, -1]) / 2
        # the pseudo-loss of grid point v is (n + |v|^2 - 2 v.p) / 2n, in [0, 1]
        offset = (size + (self.grid**2).sum(1)) / (2 * size)
        weights = -self.grid[None] / size
        losses = [ProtectedLosses(offset[None], weights)]
        for group in groups:
            if len(group.policies):
                zero_weights = np.zeros((1, *group.weights.shape[1:]))
                losses.append(ProtectedLosses(zero_weights[..., 0], zero_weights, group.policies))
        super().__init__(make(losses) if make else UnbiasedPrediction(VectorEvents(losses)))

    @property
    def time(self) -> int:
        """Rounds learned."""
        return sum(forecaster.time for forecaster in self.inner.instances)

    def mixture(self, x: object = None) -> Mixture:
        mixture = self.inner.mixture(x)
        rows = self.inner.instances[0].events.rows
        no_outcome = np.zeros(mixture.points.shape[1])  # only how rows are played is read
        played = played_of(rows, mixture.points, mixture.weights, no_outcome)
        mass_of_grid = played.play_chance[: len(self.grid)]
        announced = np.flatnonzero(mass_of_grid)
        return Mixture(self.grid[announced], mass_of_grid[announced], mixture.certificate)
