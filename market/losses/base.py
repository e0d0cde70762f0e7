r"""The base class of all losses: what every loss form offers, and how a new one is written.

Utilities make losses, cohorts and ledgers evaluate them (``losses``), and bases read their
coefficients and certify errors by ``enclosure`` and ``slopes``, the ranges of a loss and of its
partial derivatives over boxes of outcomes. At kinks the slopes hold the derivatives of both sides,
which is what the mean value theorem needs. A loss never changes, its ranges are exact, and K losses
of one form can be stacked: arrays then carry a leading axis, as weights ``(K, A, d)`` do.

``normalised`` maps the exact range of a loss over the cube onto [0, 1]: in the utility's own units
it is ``unit_offset + unit_scale * l``.

A form subclasses ``Loss`` with frozen array fields, says their axes in ``AXES`` and which of them
scale with the loss in ``PROPORTIONAL``, and overrides ``_at``, ``_between`` and ``lipschitz``;
``_slopes`` and ``in_unit_cube`` where they can be said.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.numerics.storage import (
    UnsharedTable,
    as_unshared,
    copy_in_layout,
    zeros_in_layout,
)

Range = tuple[Array, Array]  # the least and the greatest value

MAX_LOSSES_AT_ONCE = 50_000  # whose ranges are computed at a time, to bound memory
UNIT_AXES = {"offset": "a", "unit_scale": "", "unit_offset": ""}  # axes of the fields that all have
AXIS_NAMES = {"a": "actions", "d": "outcomes", "m": "terms"}
STEEPEST = 1e150  # stands for an infinite slope, and can be multiplied and added up
ROWS_PER_BLOCK = 4096  # rows compared at a time


def default(value: float) -> Any:
    """Return a field whose default is this number for all."""
    return field(default_factory=lambda: np.full((), value))


@dataclass(frozen=True, eq=False, kw_only=True)
class Loss(ABC):
    """A loss form: frozen arrays and formulas over them.

    ValueError where the arrays do not fit, or a number is not finite.

    Attributes
    ----------
    form : str
        Name of the functional form, for the logs and for choosing a basis.
    AXES : mapping of str to str
        Trailing axes of each array field: a for actions, d for coordinates, m for anything else.
        The first field decides the sizes, the others are broadcast to them.
    PROPORTIONAL : tuple of str
        Fields that scale with the loss.
    offset : array (..., A)
        The constant of each action.
    unit_scale, unit_offset : array (...)
        The loss in the utility's own units is ``unit_offset + unit_scale * loss``. Like the offset
        they are keyword arguments of every form.
    """

    form: ClassVar[str]
    # Whether an action's loss depends on its own entries of the arrays alone, not on other actions.
    # It is said of one class: a subclass, which may compute losses otherwise, says it again.
    actions_are_separate: ClassVar[bool] = False
    AXES: ClassVar[Mapping[str, str]]
    PROPORTIONAL: ClassVar[tuple[str, ...]]

    offset: Array = default(0.0)
    unit_scale: Array = default(1.0)
    unit_offset: Array = default(0.0)

    def __post_init__(self) -> None:
        """Check and copy all arrays, and broadcast them to the sizes of the first."""
        first_name, first_axes = next(iter(self.AXES.items()))
        shape = np.shape(self.lead)
        stack = shape[: len(shape) - len(first_axes)]
        if len(shape) < len(first_axes) or 0 in shape:
            expected_axes = ", ".join(AXIS_NAMES[axis] for axis in first_axes)
            raise ValueError(f"{first_name} have shape {shape}; give ({expected_axes})")
        size_of_axis = dict(zip(first_axes, shape[len(stack) :], strict=True))
        for name, array in self.tables().items():
            axes = self.AXES[name]
            for axis, size in zip(axes, np.shape(array)[-len(axes) :], strict=False):
                size_of_axis.setdefault(axis, size)
            distinct = array if isinstance(array, UnsharedTable) else _without_repetitions(array)
            copied_array = copy_in_layout(distinct) if axes == "ad" else np.array(distinct)
            extremes = [np.min(copied_array, initial=0.0), np.max(copied_array, initial=0.0)]
            if not np.isfinite(extremes).all():
                raise ValueError(f"{name} holds a number that is not finite")
            full_shape = *stack, *(size_of_axis[axis] for axis in axes)
            object.__setattr__(self, name, np.broadcast_to(copied_array, full_shape))

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way is no part of a loss: copies and digests of a loss that was
        # used are those of one that was not.
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    @cached_property
    def outcomes(self) -> int:
        """Number of coordinates of an outcome, d."""
        return int(self.lead.shape[-1])

    @cached_property
    def actions(self) -> int:
        """Number of actions, A."""
        return int(self.offset.shape[-1])

    @property
    def stack(self) -> tuple[int, ...]:
        """Leading axes: () for a single loss, (K,) for K stacked ones."""
        return self.offset.shape[:-1]

    @property
    def lead(self) -> Array:
        """The first of the arrays, which decides the sizes of all."""
        first_name = next(iter(self.AXES))
        return np.asarray(vars(self)[first_name])

    def tables(self) -> dict[str, Array]:
        """Return the arrays of the loss by the names of their fields, the lead first."""
        return {name: vars(self)[name] for name in self.AXES}

    @property
    def unit_map(self) -> dict[str, Any]:
        """What maps the loss onto the utility's own units, by name."""
        return {"unit_scale": self.unit_scale, "unit_offset": self.unit_offset}

    @property
    def linear_weights(self) -> Array | None:
        """The weights (..., A, d) of losses that are linear in the outcome; None for others."""
        return None

    @property
    def identity(self) -> tuple[object, ...]:
        """Whatever decides the losses and is no array: the form, and more where there is more."""
        return (self.form,)

    @property
    def family(self) -> tuple[float, ...]:
        """What losses of this form must have in common to share a basis made for the form."""
        return ()

    def rows(self) -> Array:
        """Return the parameters that decide each action's loss, (..., A, P), units left out.

        Two actions of losses with one ``identity`` are equal functions if their rows are equal.
        """
        columns = []
        for name, table in self.tables().items():
            if name.startswith("unit_"):
                continue
            missing_axes = 2 - len(self.AXES[name])
            expanded = table.reshape(*table.shape, *(1,) * missing_axes)
            columns.append(np.broadcast_to(expanded, (*self.offset.shape, expanded.shape[-1])))
        return np.concatenate(columns, axis=-1)

    @abstractmethod
    def _at(self, y: Array) -> Array:
        """Return losses (T, ..., A) at outcomes y (T, 1 for each stacked axis, d)."""

    @abstractmethod
    def _between(self, low: Array, high: Array) -> Range:
        """Return the least and greatest loss (T, ..., A) over boxes with ends as in ``_at``."""

    def _slopes(self, low: Array, high: Array) -> Range:
        """Return the least and greatest derivatives over boxes with ends as in ``_at``.

        They are broadcast to (T, ..., A, d); ``STEEPEST`` stands where there is no bound.
        """
        return np.array(-STEEPEST), np.array(STEEPEST)

    @abstractmethod
    def lipschitz(self) -> Array:
        """Bound |l(a, y) - l(a, z)| / max_j |y_j - z_j| over the cube, shape (...)."""

    def moved(self, impact: Array) -> Array:
        """Bound how far two actions' gap moves (...) with outcomes by ``impact`` (..., d).

        It is D_kappa of ``market.game.caveats``.
        """
        return np.asarray(2 * self.lipschitz() * impact.max(-1))

    def in_unit_cube(self, low: Array, side: Array) -> "Loss":
        """Return u -> l(low + side u), for ``low`` and ``side`` (d,); ValueError if undefined."""
        raise ValueError(
            f"a {self.form} loss of transformed outcomes is defined on the unit cube only; "
            "state it there, or as a LipschitzLoss"
        )

    def losses(self, y: ArrayLike) -> Array:
        """Return losses (..., A) at one outcome y (d,), or (T, ..., A) at many (T, d)."""
        return self._at(self._spread(y))

    def enclosure(self, low: ArrayLike, high: ArrayLike) -> Range:
        """Return the least and greatest loss of every action over boxes (T, d), each (T, ..., A).

        ``low`` and ``high`` are the corners of the boxes.
        """
        return self._between(self._spread(low), self._spread(high))

    def slopes(self, low: Array, high: Array) -> Range:
        """Return the least and greatest partial derivatives over boxes (T, d).

        Each is (T, ..., A, d); ``STEEPEST`` stands where there is no bound.
        """
        axes = *(1,) * self.offset.ndim, self.outcomes
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            bounds = self._slopes(low.reshape(-1, *axes), high.reshape(-1, *axes))
        shape = len(low), *self.offset.shape, self.outcomes
        least, greatest = (np.broadcast_to(bound, shape) for bound in bounds)
        return np.maximum(least, -STEEPEST), np.minimum(greatest, STEEPEST)

    def range(self) -> Range:
        """Return the least and greatest loss of any action over the cube, each of shape (...)."""
        if len(self.stack) == 1 and len(self) >= 2 * MAX_LOSSES_AT_ONCE:
            n_parts = len(self) // MAX_LOSSES_AT_ONCE
            part_ends = np.linspace(0, len(self), n_parts + 1, dtype=np.intp)
            part_ranges = [self[first:last].range() for first, last in pairwise(part_ends)]
            lows, highs = zip(*part_ranges, strict=True)
            return np.concatenate(lows), np.concatenate(highs)
        low, high = self.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
        return low.min(-1), high.max(-1)

    def normalised(self) -> Self:
        """Return the same loss mapped onto [0, 1], with the map kept in ``unit_*``."""
        low, high = self.range()
        scale = np.where(high > low, high - low, 1.0)
        scaled = {}
        for name in self.PROPORTIONAL:
            array = vars(self)[name]
            divisor = scale.reshape((*scale.shape, *(1,) * len(self.AXES[name])))
            scaled_array = zeros_in_layout(*array.shape) if array.ndim == 3 else None
            scaled[name] = as_unshared(np.divide(array, divisor, out=scaled_array))
        return replace(
            self,
            offset=(self.offset - low[..., None]) / scale[..., None],
            unit_scale=self.unit_scale * scale,
            unit_offset=self.unit_offset + self.unit_scale * low,
            **scaled,
        )

    def __getitem__(self, index: int | slice | Indices) -> Self:
        """Pick from a stack of losses along its first axis."""
        row_indices = np.arange(len(self))[index]
        picked = {}
        for name, array in self.tables().items():
            repeats_itself = not array.strides[0]
            if repeats_itself and np.ndim(row_indices):
                picked[name] = np.broadcast_to(array[0], (len(row_indices), *array.shape[1:]))
            elif isinstance(index, np.ndarray) and _lies_by_coordinate(array):
                picked[name] = as_unshared(
                    array.swapaxes(1, 2)[index].swapaxes(1, 2)
                )  # lies so, too
            else:
                picked[name] = np.asarray(array[index])
        return replace(self, **picked)

    def one_action_each(self, actions: Indices) -> Self | None:
        """Return a stack (K,) in which loss k has its action ``actions[k]`` alone.

        None for a form that does not say that its ``actions_are_separate``.
        """
        is_declared = vars(type(self)).get("actions_are_separate", False)  # by the class itself
        if not is_declared:
            return None
        rows = np.arange(len(self))
        picked = {}
        for name, array in self.tables().items():
            axes = self.AXES[name]
            if "a" in axes:
                with_actions_second = np.moveaxis(array, 1 + axes.index("a"), 1)
                of_one_action = with_actions_second[rows, actions][:, np.newaxis]
                picked[name] = np.moveaxis(of_one_action, 1, 1 + axes.index("a"))
        return replace(self, **picked)

    def __len__(self) -> int:
        if not self.stack:
            raise TypeError("this is a single loss, not a stack")
        return self.stack[0]

    def as_stack(self) -> Self:
        """View a single loss as a stack of one; a stack is returned as it is."""
        if self.stack:
            return self
        stacked = {name: np.asarray(array)[None] for name, array in self.tables().items()}
        return replace(self, **stacked)

    def _spread(self, outcomes: ArrayLike) -> Array:
        """Return outcomes (..., d) with an axis of length 1 for each stacked axis, before d."""
        y = np.asarray(outcomes, dtype=np.float64)
        if not y.ndim or y.shape[-1] != self.outcomes:
            raise ValueError(f"an outcome has {self.outcomes} coordinates, got shape {y.shape}")
        if y.ndim == 1:
            return y.reshape(self._axes_of_outcome)
        return y.reshape(y.shape[:-1] + self._axes_of_outcome)

    @cached_property
    def _axes_of_outcome(self) -> tuple[int, ...]:
        """Shape of one outcome as ``_at`` takes it: 1 for each stacked axis, then d."""
        return (*(1,) * len(self.stack), self.outcomes)


def _without_repetitions(values: ArrayLike) -> Array:
    """Return values once along each axis on which an array only repeats itself (stride 0)."""
    array = np.asarray(values, dtype=np.float64)
    return array[tuple(slice(None, None if stride else 1) for stride in array.strides)]


def _lies_by_coordinate(array: Array) -> bool:
    """Whether an array (K, A, d) lies in memory by loss, coordinate, action."""
    return array.ndim == 3 and bool(array.swapaxes(1, 2).flags.c_contiguous)


def product(first: Range, second: Range) -> Range:
    """Return the range of a product of two quantities in these ranges: that of its four corners."""
    first_low, first_high = (np.clip(end, -STEEPEST, STEEPEST) for end in first)
    second_low, second_high = (np.clip(end, -STEEPEST, STEEPEST) for end in second)
    low_low = first_low * second_low
    low_high = first_low * second_high
    high_low = first_high * second_low
    high_high = first_high * second_high
    return (
        np.minimum(np.minimum(low_low, low_high), np.minimum(high_low, high_high)),
        np.maximum(np.maximum(low_low, low_high), np.maximum(high_low, high_high)),
    )


Form = TypeVar("Form", bound=Loss)


def unique_losses(loss: Form) -> tuple[Form, Indices]:
    """Keep one of each loss of a stack, so that equal agents are computed once.

    Returns the distinct losses in order of first appearance, and for each loss of the stack the row
    of its equal among them, (K,).

    Rows are compared by sum_j c_j bits_j modulo 2^64 with odd random c_j (multilinear hashing).
    Where two that differ agree, which is next to impossible, all are kept.

    Examples
    --------
    >>> from regretless.market.losses import Linear
    >>> types, type_of = unique_losses(Linear([[[1.0]], [[0.5]], [[1.0]]]))
    >>> len(types), type_of
    (2, array([0, 1, 0]))
    """
    rng = stream(0, "distinct losses")
    hashes = np.zeros(len(loss), dtype=np.uint64)
    # An array with stride 0 has the same values for all losses, and tells none apart.
    arrays = [array for array in loss.tables().values() if array.strides[0]]
    block_starts = range(0, len(loss), ROWS_PER_BLOCK)
    row_blocks = [slice(start, start + ROWS_PER_BLOCK) for start in block_starts]
    for array in arrays:
        factors = rng.integers(1 << 63, size=array[0].size, dtype=np.uint64) * 2 + 1
        for rows in row_blocks:
            bits = (array[rows].reshape(-1, factors.size) + 0.0).view(np.uint64)  # no minus zero
            hashes[rows] += (bits * factors).sum(1, dtype=np.uint64)
    _, first_rows, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first_rows)
    first_rows = first_rows[order]
    row_of_loss = np.argsort(order)[inverse]
    if len(first_rows) == len(loss):
        return loss, np.arange(len(loss))
    for array in arrays:
        for rows in row_blocks:
            if not np.array_equal(array[rows], array[first_rows[row_of_loss[rows]]]):
                return loss, np.arange(len(loss))
    return loss[first_rows], row_of_loss
