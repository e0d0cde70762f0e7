r"""Any loss at all, as a function of the outcome with its Lipschitz constant; averages over noise.

The constant L is in sup norm, |l(a, y) - l(a, z)| <= L max_j |y_j - z_j|. It is believed, not
checked; ranges over boxes are as wide as it allows and never wider than the declared range.

Outcomes of one's own. Where every farm has its own rain, agent i meets z_i = clip(y + e_i, 0, 1)
with noise e_i of a distribution that is known. What it expects to lose is again a loss of y,

    l~(a, y) = sum_m w_m l(a, clip(y + e_m, 0, 1)),

so that forecaster, ledger and theorems need nothing new: regret is over l~, the mean over the
agent's own luck. It is as steep as l at most, since clipping and averaging never stretch. The
distribution puts on each coordinate that it shakes

    -sqrt(3) sigma, 0, sqrt(3) sigma    with weights 1/6, 2/3, 1/6,

whose first five moments are the normal distribution's (Gauss and Hermite's three nodes),
independently.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss, Range, default

NODES = ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6))


@dataclass(frozen=True, eq=False)
class LipschitzLoss(Loss):
    """Loss ``offset + amplitude * function(y)``.

    ValueError if the constant is negative or the range descends; on use, if the function returns
    another shape or leaves its range.

    Parameters
    ----------
    function : callable
        From outcomes (T, d) to losses (T, A) or (T, K, A).
    constant : array (...) or float
        L of the function, in sup norm.
    shape : tuple of int
        (A,) for a single loss, (K, A) for a stack.
    dimension : int
        Coordinates of an outcome, d.
    low, high : array (...) or float
        Range of the function over the cube, [0, 1] unless said.
    amplitude : array (...) or float
        The factor in front.
    row : array (...)
        Which of the function's losses these are; set when a stack is cut.
    offset, unit_scale, unit_offset : as in ``Loss``
    """

    form: ClassVar[str] = "lipschitz"
    AXES: ClassVar[Mapping[str, str]] = {
        "offset": "a",
        "constant": "",
        "low": "",
        "high": "",
        "amplitude": "",
        **UNITS,
        "row": "",
    }
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)

    function: Callable[[Array], Array]
    constant: Array
    shape: tuple[int, ...]
    dimension: int
    low: Array = default(0.0)
    high: Array = default(1.0)
    amplitude: Array = default(1.0)
    row: Array | None = None

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 2):
            raise ValueError(f"shape {self.shape}; give (actions,) or (losses, actions)")
        if self.row is None:
            object.__setattr__(self, "offset", np.broadcast_to(self.offset, self.shape))
            rows = np.arange(self.shape[0]) if len(self.shape) == 2 else 0
            object.__setattr__(self, "row", np.asarray(rows, dtype=np.float64))
        self._settle()
        if (self.constant < 0).any() or (self.low > self.high).any():
            raise ValueError("constant must be at least 0 and the range must ascend")

    @property
    def outcomes(self) -> int:
        return self.dimension

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.form, self.function)

    def rows(self) -> Array:
        """Return the parameters of each action, with its number, which the function knows."""
        shared = super().rows()
        numbers = np.broadcast_to(np.arange(self.actions, dtype=np.float64), shared.shape[:-1])
        return np.concatenate([shared, numbers[..., None]], axis=-1)

    def lipschitz(self) -> Array:
        """Return the declared constant, in units of this loss."""
        return np.asarray(self.constant * np.abs(self.amplitude))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        """Wrap it: its constant holds everywhere."""
        return wrapped(self, low, side)

    def _values(self, y: Array) -> Array:
        """Evaluate the function at spread outcomes: (T, ..., A)."""
        assert self.row is not None  # noqa: S101 - set on construction
        points = y.reshape(-1, self.dimension)
        table = np.asarray(self.function(points), dtype=np.float64)
        if table.shape != (len(points), *self.shape):
            wanted = (len(points), *self.shape)
            raise ValueError(f"the loss function gave shape {table.shape}; return {wanted}")
        table = table.reshape(len(points), -1, self.actions)[:, self.row.astype(np.intp)]
        values = table.reshape(*y.shape[: y.ndim - 1 - len(self.stack)], *self.offset.shape)
        slack = 1e-9 * (1 + np.abs(self.high - self.low))[..., None]
        inside = (values >= self.low[..., None] - slack) & (values <= self.high[..., None] + slack)
        if not inside.all():
            raise ValueError("the loss function left its declared range; widen low and high")
        return values

    def _at(self, y: Array) -> Array:
        return np.asarray(self.offset + self.amplitude[..., None] * self._values(y))

    def _between(self, low: Array, high: Array) -> Range:
        if ((low <= 0) & (high >= 1)).all():
            shape = *low.shape[: low.ndim - 1 - len(self.stack)], *self.offset.shape
            least = np.broadcast_to(self.low[..., None], shape)
            greatest = np.broadcast_to(self.high[..., None], shape)
        else:
            middle = self._values((low + high) / 2)
            reach = self.constant[..., None] * (high - low).max(-1)[..., None] / 2
            least = np.maximum(middle - reach, self.low[..., None])
            greatest = np.minimum(middle + reach, self.high[..., None])
        ends = self.amplitude[..., None] * least, self.amplitude[..., None] * greatest
        return self.offset + np.minimum(*ends), self.offset + np.maximum(*ends)

    def _slopes(self, low: Array, high: Array) -> Range:
        bound = np.asarray(self.lipschitz()[..., None, None])
        return -bound, bound


@dataclass(frozen=True, eq=False)
class AveragedLoss(LipschitzLoss):
    """A loss averaged over noise around the outcome; ``averaged`` makes it."""

    form: ClassVar[str] = "averaged"


def averaged(loss: Loss, deviation: float, coordinates: Sequence[int]) -> AveragedLoss:
    """Average a loss over noise around the outcome.

    Parameters
    ----------
    loss : Loss
        One, or a stack.
    deviation : float
        sigma, at least 0.
    coordinates : sequence of int
        Which of the outcome's are shaken, 3^c nodes in all.

    Examples
    --------
    >>> from regretless.market.losses import SeparablePower
    >>> averaged(SeparablePower([[1.0]], 2.0), 0.1, [0]).losses([0.5]).round(6)  # 0.5^2 + 0.1^2
    array([0.26])
    """
    low, high = loss.range()
    return AveragedLoss(
        partial(_mean, loss, *_distribution(deviation, coordinates, loss.outcomes)),
        constant=loss.lipschitz(),
        **_around(loss, low, high),
    )


def wrapped(loss: Loss, low: Array, side: Array) -> LipschitzLoss:
    """Return u -> l(low + side u), for a loss whose Lipschitz constant holds everywhere.

    ``low``, ``side``: array (d,).
    """
    least, greatest = loss.enclosure(low, low + side)
    return LipschitzLoss(
        lambda u: loss.losses(low + side * u),
        constant=loss.lipschitz() * side.max(),
        **_around(loss, least.min(-1), greatest.max(-1)),
    )


def _around(loss: Loss, low: Array, high: Array) -> dict[str, Any]:
    """Return the fields of a loss that calls another one, within its range."""
    return {
        "shape": loss.offset.shape,
        "dimension": loss.outcomes,
        "low": low,
        "high": high,
        "unit_scale": loss.unit_scale,
        "unit_offset": loss.unit_offset,
    }


def _distribution(deviation: float, coordinates: Sequence[int], size: int) -> tuple[Array, Array]:
    """Return the nodes (m, d) and their weights (m,)."""
    nodes = list(product(NODES, repeat=len(coordinates)))
    shifts = np.zeros((len(nodes), size))
    shifts[:, list(coordinates)] = [[deviation * at for at, _ in node] for node in nodes]
    return shifts, np.array([np.prod([weight for _, weight in node]) for node in nodes])


def _mean(loss: Loss, shifts: Array, weights: Array, y: Array) -> Array:
    """Return the mean losses (T, ..., A) at outcomes (T, d)."""
    total = np.zeros((len(y), *loss.offset.shape))
    for shift, weight in zip(shifts, weights, strict=True):
        total += weight * loss.losses(np.clip(y + shift, 0.0, 1.0))
    return total
