r"""Anchoring: a base model's forecast, left alone until its bias exceeds its noise.

Any model may serve as base. Every round its forecast b_t is weighed with the events' biases so
far, each with a dead zone (``weights``): H holds only what the noise of a bias does not explain,

    |B| > z sqrt(C),   C = sum_t |increment of B|.

If the certificate of the single prediction b_t is within the tolerance, b_t is broadcast as it is:
no loss whose owner would act on it has a bias that matters. Otherwise the game is solved as ever,
with the walk starting at b_t, and the correction lasts until the biases are back in their zones.

Every bias stays below z sqrt(n_T(E)) + sqrt(3 n_T(E) Lambda) (``bounds``), whatever the base does:
a bad base costs the dead zone, a good one is kept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.events.weights import AdaptiveWeights
from regretless.forecaster.minimax.box import field_at, worst_case
from regretless.forecaster.minimax.solver import CubeSolver, Solution
from regretless.forecaster.models.base import Base, tell
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Hull

# Of the zones of `reproduce anchoring` the widest that meets its aims on every stream.
DEAD_ZONE = 0.25


class AnchoredPrediction(UnbiasedPrediction):
    """Unbiased prediction that stays at a base model's forecast as long as it can.

    Parameters
    ----------
    groups : sequence of LossGroup, or LossEvents
        The losses to protect.
    base : Base
        Predicts the same vectors; see ``models.adapted`` for models of other libraries.
    dead_zone : float
        z, at least 0: how many times sqrt(C) a bias may reach before it counts.
    hull : "box" or "simplex"

    Attributes
    ----------
    kept : int
        Rounds in which the base's forecast was broadcast as it was.
    """

    REMEMBERED = ("kept", "base")

    def __init__(
        self,
        groups: Sequence[LossGroup] | LossEvents,
        base: Base,
        *,
        dead_zone: float = DEAD_ZONE,
        hull: Hull = "box",
        seed: int = 0,
    ) -> None:
        size = groups.size if isinstance(groups, LossEvents) else groups[0].weights.shape[-1]
        self._walker = CubeSolver(size, hull)
        super().__init__(groups, solver=self._walker, seed=seed)
        self.rule = AdaptiveWeights(dead_zone)
        self.base = base
        self.kept, self._alone = 0, False

    def _solve(self, table: Array, tolerance: float, x: Any) -> Solution:
        point = self._anchor(x)
        field = field_at(self.events.rows, table, point)
        alone = np.ones(1), point[None], field[None]
        certificate = worst_case(*alone, hull=self._walker.hull)
        self._alone = certificate <= tolerance
        if self._alone:
            return Solution(point[None], np.ones(1), certificate)
        self._walker.origin = point
        return self._walker.solve(self.events.rows, table, tolerance=tolerance)

    def _anchor(self, x: Any) -> Array:
        """Return the base's forecast, moved into the hull."""
        point = np.array(self.base.predict(x).point, dtype=np.float64)
        if point.shape != (self.events.size,) or not np.isfinite(point).all():
            wanted = f"{self.events.size} finite numbers"
            raise UserError(f"the base model predicted {point!s}; it must predict {wanted}")
        return self._walker.confined(point)

    def witness(self, outcome: Array) -> None:
        """Pass the outcome (d,) on to the base, if it wants to know."""
        tell(self.base, outcome)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, and teach it to the base."""
        super().update(y)
        self.kept += self._alone
        self.base.update(y)
