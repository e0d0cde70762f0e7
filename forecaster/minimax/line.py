r"""The game in one number: two neighbouring predictions, found exactly.

Predictions lie in the finest of the dyadic cells (``events.cells``), one in each. With h(p) as in
``walk``, a prediction gains h(p) (p - s) on s(y) = s. If h >= 0 at the first of them, it alone
gains at most h p; likewise the last where h <= 0. If neither, two neighbours have h_i <= 0 <= h_j,
and their mixture with h = 0 on average gains 2^-S |h_i| h_j / (|h_i| + h_j), at most 2^-S / 2,
whatever s is. A search in strides that double, from a model's prediction or the last round's, and
then by halves finds them with O(S) looks.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regretless.forecaster.events.cells import INSIDE
from regretless.forecaster.minimax.base import Game, Solution
from regretless.forecaster.minimax.cube import MOST_POINTS, Box
from regretless.market.core.arrays import Array
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble


class Line(Box):
    """The game over [0, 1], with one prediction in every finest cell of S ``scales``.

    With ``ends`` (2, 1), the outcomes with s(y) = 0 and 1, every prediction is an ensemble of
    these. Predictions keep off the ties of round numbers in any case.
    """

    def __init__(self, scales: int, *, off_ties: bool = False, ends: Array | None = None) -> None:
        super().__init__(1, off_ties=off_ties)
        self.finest, self._ends, self.spelled = 2**scales, ends, ends is not None
        self.hull: Hull = "box" if ends is None else "image"

    def single(self, point: Array) -> Solution:
        """Return the prediction in the cell of a point."""
        one = Solution(self._near(np.asarray(point)[None]), np.ones(1), None, unchanged=True)
        return self._spelled(one)

    def _near(self, points: Array) -> Array:
        """Move points (m, 1) to the predictions of their cells."""
        cells = np.floor(np.clip(points, 0.0, 1.0) * self.finest)
        return np.asarray((np.minimum(cells, self.finest - 1) + INSIDE) / self.finest)

    def _spelled(self, solution: Solution) -> Solution:
        if self._ends is None:
            return solution
        distributions = np.hstack([1 - solution.points, solution.points])
        return replace(solution, ensembles=tuple(Ensemble(self._ends, d) for d in distributions))

    def _play(self, game: Game) -> Solution:
        def pull(cell: int) -> float:
            return float(game.field(np.array([(cell + INSIDE) / self.finest]))[0])

        first = int(self._near(game.start.points)[0, 0] * self.finest)
        low, high = _neighbours(pull, first, last=self.finest - 1)
        mass = np.array([1.0]) if low == high else np.array([pull(high), -pull(low)])
        distribution = np.unique([low, high])
        if len(distribution) == 2 and mass.sum() <= 0:
            mass = np.array([1.0, 0.0])
        kept = mass > 0
        points, mass = (distribution[kept, None] + INSIDE) / self.finest, mass[kept] / mass.sum()
        return self._spelled(Solution(points, mass, self.worst(mass, points, game.fields(points))))

    def choices(self, game: Game) -> Solution:
        """Return predictions all over the line, and the one to start from."""
        points = np.vstack([game.start.points, np.linspace(0, 1, MOST_POINTS)[:, None]])
        points = np.unique(self._near(points), axis=0)
        return self._spelled(Solution(points, np.empty(len(points)), None))


def _neighbours(pull: Callable[[int], float], first: int, *, last: int) -> tuple[int, int]:
    """Return neighbours with h <= 0 and h >= 0, or one end twice, where no outcome gains."""
    way, near, stride = (-1 if pull(first) > 0 else 1), first, 1
    while True:
        far = min(max(first + way * stride, 0), last)
        if far == near:
            return near, near
        if pull(far) * way >= 0:
            break
        near, stride = far, 2 * stride
    low, high = min(near, far), max(near, far)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pull(middle) > 0 else (middle, high)
    return low, high
