r"""Any loss at all, as a function of the outcome with its Lipschitz constant.

The constant L is in sup norm, |l(a, y) - l(a, z)| <= L max_j |y_j - z_j|. It is believed, not
checked; ranges over boxes are as wide as it allows and never wider than the declared range.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import Loss


@dataclass(frozen=True, eq=False)
class LipschitzLoss(Loss):
    """Loss ``offset + amplitude * function(y)``.

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
    amplitude, offset, unit_scale, unit_offset : as in the other forms
    row : array (...)
        Which of the function's losses these are; set when a stack is cut.

    Raises
    ------
    ValueError
        If the constant is negative or the range descends; on use, if the function returns another
        shape or leaves its range.
    """

    form: ClassVar[str] = "lipschitz"
    AXES: ClassVar[Mapping[str, str]] = {
        "offset": "a",
        "constant": "",
        "low": "",
        "high": "",
        "amplitude": "",
        "unit_scale": "",
        "unit_offset": "",
        "row": "",
    }
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)

    function: Callable[[Array], Array]
    constant: Array
    shape: tuple[int, ...]
    dimension: int
    low: Array = field(default_factory=lambda: np.zeros(()))
    high: Array = field(default_factory=lambda: np.ones(()))
    amplitude: Array = field(default_factory=lambda: np.ones(()))
    offset: Array = field(default_factory=lambda: np.zeros(()))
    unit_scale: Array = field(default_factory=lambda: np.ones(()))
    unit_offset: Array = field(default_factory=lambda: np.zeros(()))
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
        """Number of coordinates of an outcome, d."""
        return self.dimension

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the form and the function itself."""
        return (self.form, self.function)

    def rows(self) -> Array:
        """Return the parameters of each action, with its number, which the function knows."""
        shared = super().rows()
        numbers = np.broadcast_to(np.arange(self.actions, dtype=np.float64), shared.shape[:-1])
        return np.concatenate([shared, numbers[..., None]], axis=-1)

    def lipschitz(self) -> Array:
        """Return the declared constant, in units of this loss."""
        return np.asarray(self.constant * np.abs(self.amplitude))

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

    def _between(self, low: Array, high: Array) -> tuple[Array, Array]:
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
