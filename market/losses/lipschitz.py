r"""Any loss at all, as a function of the outcome with its Lipschitz constant; averages over noise.

Users and utilities that fit no other form give a function of outcomes and its constant L in sup
norm, |l(a, y) - l(a, z)| <= L max_j |y_j - z_j|. The constant is believed, not checked; ranges over
boxes are as wide as it allows and never wider than the declared range.

Outcomes of one's own
---------------------
Where every farm has its own rain, agent i meets z_i = clip(y + e_i, 0, 1) with noise e_i of a
distribution that is known. What it expects to lose is again a loss of y (``averaged``),

    l~(a, y) = sum_m w_m l(a, clip(y + e_m, 0, 1)),

so that forecaster, ledger and theorems need nothing new: regret is over l~, the mean over the
agent's own luck, which is no steeper than l. The distribution puts on each coordinate that it
shakes

    -sqrt(3) sigma, 0, sqrt(3) sigma    with weights 1/6, 2/3, 1/6,

whose first five moments are the normal distribution's (Gauss and Hermite's three nodes),
independently.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.losses.base import UNIT_AXES, Loss, Range, default

HERMITE_POSITIONS = (-np.sqrt(3.0), 0.0, np.sqrt(3.0))  # in standard deviations
HERMITE_WEIGHTS = (1 / 6, 2 / 3, 1 / 6)


@compiled(nogil=True)
def _pick_values(
    values_of_function: Array, rows: Indices, least: Array, greatest: Array, values: Array
) -> bool:
    """Copy the values of some losses of a function; return whether all are in range (compiled).

    values[t, k, a] = values_of_function[t, rows[k], a].

    Parameters
    ----------
    values_of_function : array (T, F, A)
        At T outcomes.
    rows : int array (K,)
        Which of the F losses each of the K is.
    least, greatest : array (K,)
        The accepted range of each of the K; NaN is in none.
    values : array (T, K, A)
        Written.
    """
    are_in_range = True
    for t in range(values.shape[0]):
        for k in range(values.shape[1]):
            for a in range(values.shape[2]):
                value = values_of_function[t, rows[k], a]
                are_in_range &= least[k] <= value <= greatest[k]
                values[t, k, a] = value
    return are_in_range


@dataclass(frozen=True, eq=False)
class LipschitzLoss(Loss):
    """Loss ``offset + amplitude * function(y)``.

    ValueError if the constant is negative, the range descends, or a row is none of the function's;
    on use, if the function returns another shape or leaves its range.

    Parameters
    ----------
    function : callable
        From outcomes (T, d) to losses (T, A) or (T, K, A).
    constant, low, high, amplitude : array (...) or float
        L of the function, in sup norm; its range over the cube, [0, 1] unless said; its factor.
    shape : tuple of int
        (A,) for a single loss, (K, A) for a stack.
    dimension : int
        Coordinates of an outcome, d.
    row : array (...)
        Which of the function's losses these are; set when a stack is cut.
    """

    form: ClassVar[str] = "lipschitz"
    _PER_LOSS: ClassVar[tuple[str, ...]] = ("constant", "low", "high", "amplitude")
    AXES: ClassVar[Mapping[str, str]] = {
        "offset": "a",
        **dict.fromkeys(_PER_LOSS, ""),
        **UNIT_AXES,
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
        super().__post_init__()
        if (self.constant < 0).any() or (self.low > self.high).any():
            raise ValueError("constant must be at least 0 and the range must ascend")
        self._check_rows()

    def _check_rows(self) -> None:
        """Raise ValueError unless the rows are losses of the function: no kernel checks them."""
        rows = np.asarray(self.row)
        n_losses = self.shape[0] if len(self.shape) == 2 else 1
        are_losses = (rows >= 0) & (rows < n_losses) & (rows == np.floor(rows))
        if not are_losses.all():
            first_fault = rows[~are_losses].flat[0]
            raise ValueError(f"row {first_fault:g}: give whole numbers from 0 to {n_losses - 1}")

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
        return np.asarray(self.constant * np.abs(self.amplitude))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        return as_lipschitz_loss(self, low, side)

    @cached_property
    def _rows_of_function(self) -> Indices:
        """Which of the function's losses these are (K,)."""
        return np.asarray(self.row, dtype=np.intp).reshape(-1)

    @cached_property
    def _accepted_range(self) -> Range:
        """The declared range, each (K,), and as much more as rounding may cost."""
        slack = 1e-9 * (1 + np.abs(self.high - self.low))
        return (self.low - slack).reshape(-1), (self.high + slack).reshape(-1)

    def _values(self, y: Array) -> Array:
        """Return the function's values (T, ..., A) at outcomes y as in ``_at``.

        ValueError if it returns another shape or leaves its declared range.
        """
        points = y.reshape(-1, self.dimension)
        returned = np.ascontiguousarray(self.function(points), np.float64)
        expected_shape = (len(points), *self.shape)
        if returned.shape != expected_shape:
            shapes = f"gave shape {returned.shape}; return {expected_shape}"
            raise ValueError(f"the loss function {shapes}")
        rows = self._rows_of_function
        least, greatest = self._accepted_range
        values = np.empty((len(points), len(rows), self.actions))
        values_of_function = returned.reshape(len(points), -1, self.actions)
        if not _pick_values(values_of_function, rows, least, greatest, values):
            raise ValueError("the loss function left its declared range; widen low and high")
        return values.reshape(*self._rounds_shape(y), *self.offset.shape)

    def _rounds_shape(self, y: Array) -> tuple[int, ...]:
        """Return the leading axes of outcomes y as in ``_at``: (T,), or () for one."""
        return y.shape[: y.ndim - 1 - len(self.stack)]

    def _at(self, y: Array) -> Array:
        return np.asarray(self.offset + self.amplitude[..., None] * self._values(y))

    def _between(self, low: Array, high: Array) -> Range:
        least = self.low[..., None]
        greatest = self.high[..., None]
        are_whole_cubes = ((low <= 0) & (high >= 1)).all()
        if not are_whole_cubes:  # of which the declared range says all
            value_at_middle = self._values((low + high) / 2)
            half_width = self.constant[..., None] * (high - low).max(-1)[..., None] / 2
            least = np.maximum(value_at_middle - half_width, least)
            greatest = np.minimum(value_at_middle + half_width, greatest)
        shape = *self._rounds_shape(low), *self.offset.shape
        first = np.broadcast_to(self.amplitude[..., None] * least, shape)
        second = np.broadcast_to(self.amplitude[..., None] * greatest, shape)
        return self.offset + np.minimum(first, second), self.offset + np.maximum(first, second)

    def _slopes(self, low: Array, high: Array) -> Range:
        bound = np.asarray(self.lipschitz()[..., None, None])
        return -bound, bound


@dataclass(frozen=True, eq=False)
class AveragedLoss(LipschitzLoss):
    """A loss averaged over noise around the outcome; ``averaged`` makes it."""

    form: ClassVar[str] = "averaged"


def averaged(loss: Loss, deviation: float, coordinates: Sequence[int]) -> AveragedLoss:
    """Return a loss averaged over normal noise on some of the outcome's coordinates.

    ``deviation`` is the noise's standard deviation, sigma, the same and independent on each of c
    ``coordinates``. Each evaluation is a mean of the loss at 3^c shifted outcomes.

    Examples
    --------
    >>> from regretless.market.losses import SeparablePower
    >>> averaged(SeparablePower([[1.0]], 2.0), 0.1, [0]).losses([0.5]).round(6)  # 0.5^2 + 0.1^2
    array([0.26])
    """
    positions = np.array(list(product(HERMITE_POSITIONS, repeat=len(coordinates))))
    shifts = np.zeros((len(positions), loss.outcomes))
    shifts[:, list(coordinates)] = deviation * positions
    node_weights = product(HERMITE_WEIGHTS, repeat=len(coordinates))
    weights = [float(np.prod(factors)) for factors in node_weights]

    def mean(y: Array) -> Array:
        total = np.zeros((len(y), *loss.offset.shape))
        for shift, weight in zip(shifts, weights, strict=True):
            total += weight * loss.losses(np.clip(y + shift, 0.0, 1.0))
        return total

    low, high = loss.range()
    return AveragedLoss(
        mean,
        constant=loss.lipschitz(),
        shape=loss.offset.shape,
        dimension=loss.outcomes,
        low=low,
        high=high,
        **loss.unit_map,
    )


def as_lipschitz_loss(loss: Loss, low: Array, side: Array) -> LipschitzLoss:
    """Return u -> l(low + side u), for ``low`` and ``side`` (d,).

    The loss must have its Lipschitz constant everywhere, beyond the cube as well.
    """
    least, greatest = loss.enclosure(low, low + side)
    return LipschitzLoss(
        lambda u: loss.losses(low + side * u),
        constant=loss.lipschitz() * side.max(),
        shape=loss.offset.shape,
        dimension=loss.outcomes,
        low=least.min(-1),
        high=greatest.max(-1),
        **loss.unit_map,
    )
