r"""What every loss form offers: losses, exact ranges over boxes, normalisation, stacking.

Arrays may carry leading axes: a loss whose weights are ``(K, A, d)`` is K losses stacked.

``normalised`` maps the exact range of a loss over the cube onto [0, 1]: in the utility's own units
it is ``unit_offset + unit_scale * l``. ``enclosure`` and ``slopes`` are the ranges of the loss and
of its partial derivatives over boxes of outcomes, with which errors of bases are certified. At
kinks the slopes hold the derivatives of both sides, which is what the mean value theorem needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.numerics.storage import Fresh, copied, fresh, laid

Range = tuple[Array, Array]

MANY = 50_000  # losses whose ranges are computed at a time
UNITS = {"offset": "a", "unit_scale": "", "unit_offset": ""}  # axes of the fields that all have
STEEPEST = 1e150  # stands for an infinite slope, and can be multiplied and added up
BLOCK = 4096  # rows compared at a time


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
    AXES: ClassVar[Mapping[str, str]]
    PROPORTIONAL: ClassVar[tuple[str, ...]]

    offset: Array = default(0.0)
    unit_scale: Array = default(1.0)
    unit_offset: Array = default(0.0)

    def __post_init__(self) -> None:
        """Broadcast all arrays to the sizes of the first."""
        lead, axes = next(iter(self.AXES.items()))
        shape = np.shape(self.lead)
        stack = shape[: len(shape) - len(axes)]
        if len(shape) < len(axes) or 0 in shape:
            names = {"a": "actions", "d": "outcomes", "m": "terms"}
            wanted = ", ".join(names[axis] for axis in axes)
            raise ValueError(f"{lead} have shape {shape}; give ({wanted})")
        sizes = dict(zip(axes, shape[len(stack) :], strict=True))
        for name, given in self.tables().items():
            trailing = self.AXES[name]
            sizes = dict(zip(trailing, np.shape(given)[-len(trailing) :], strict=False)) | sizes
            own = given
            if not isinstance(given, Fresh):  # once along the axes on which it only repeats itself
                own = np.asarray(given, dtype=np.float64)
                own = own[tuple(slice(None, None if step else 1) for step in own.strides)]
            value = copied(own) if trailing == "ad" else np.array(own)
            if not np.isfinite([np.min(value, initial=0.0), np.max(value, initial=0.0)]).all():
                raise ValueError(f"{name} holds a number that is not finite")
            full = np.broadcast_to(value, (*stack, *(sizes[axis] for axis in trailing)))
            object.__setattr__(self, name, full)

    @property
    def outcomes(self) -> int:
        """Number of coordinates of an outcome, d."""
        return int(self.lead.shape[-1])

    @property
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
        return next(iter(self.tables().values()))

    def tables(self) -> dict[str, Array]:
        """Return the arrays of the loss by the names of their fields, the lead first."""
        own = vars(self)
        return {name: own[name] for name in self.AXES}

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
        shape, parts = self.offset.shape, []
        for name, table in self.tables().items():
            if not name.startswith("unit_"):
                value = table.reshape(*table.shape, *(1,) * (2 - len(self.AXES[name])))
                parts.append(np.broadcast_to(value, (*shape, value.shape[-1])))
        return np.concatenate(parts, axis=-1)

    @abstractmethod
    def _at(self, y: Array) -> Array:
        """Losses (T, ..., A) at outcomes (T, 1 for each stacked axis, d)."""

    @abstractmethod
    def _between(self, low: Array, high: Array) -> Range:
        """Least and greatest loss (T, ..., A) over boxes with ends as in ``_at``."""

    def _slopes(self, low: Array, high: Array) -> Range:
        """Least and greatest derivatives over boxes (T, 1 for each axis, d), to be broadcast."""
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
        """Losses (..., A) of all actions at one outcome (d,), or (T, ..., A) at many (T, d)."""
        return self._at(self._spread(y))

    def enclosure(self, low: ArrayLike, high: ArrayLike) -> Range:
        """Least and greatest loss of every action over boxes (T, d): (T, ..., A) twice."""
        return self._between(self._spread(low), self._spread(high))

    def slopes(self, low: Array, high: Array) -> Range:
        """Least and greatest partial derivatives over boxes (T, d): (T, ..., A, d) twice.

        ``STEEPEST`` stands where there is no bound.
        """
        axes = *(1,) * self.offset.ndim, self.outcomes
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            ends = self._slopes(low.reshape(-1, *axes), high.reshape(-1, *axes))
        shape = len(low), *self.offset.shape, self.outcomes
        least, most = (np.broadcast_to(end, shape) for end in ends)
        return np.maximum(least, -STEEPEST), np.minimum(most, STEEPEST)

    def range(self) -> Range:
        """Least and greatest loss of any action over the cube, each of shape (...)."""
        if len(self.stack) == 1 and len(self) >= 2 * MANY:  # part by part: boxes take room
            ends = np.linspace(0, len(self), len(self) // MANY + 1, dtype=np.intp)
            parts = [self[first:last].range() for first, last in pairwise(ends)]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        low, high = self.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
        return low.min(-1), high.max(-1)

    def normalised(self) -> Self:
        """Return the same loss mapped onto [0, 1], with the map kept in ``unit_*``."""
        low, high = self.range()
        scale = np.where(high > low, high - low, 1.0)
        shrunk = {}
        for name in self.PROPORTIONAL:
            own = vars(self)[name]
            by = scale.reshape((*scale.shape, *(1,) * len(self.AXES[name])))
            to = laid(*own.shape) if own.ndim == 3 else None
            shrunk[name] = fresh(np.divide(own, by, out=to))
        return replace(
            self,
            offset=(self.offset - low[..., None]) / scale[..., None],
            unit_scale=self.unit_scale * scale,
            unit_offset=self.unit_offset + self.unit_scale * low,
            **shrunk,
        )

    def __getitem__(self, index: int | slice | Indices) -> Self:
        """Pick from a stack of losses along its first axis."""
        places, picked = np.arange(len(self))[index], {}
        for name, own in self.tables().items():
            aside = own.swapaxes(1, 2) if own.ndim == 3 else own
            if not own.strides[0] and np.ndim(places):  # what repeats itself still does so
                picked[name] = np.broadcast_to(own[0], (len(places), *own.shape[1:]))
            elif isinstance(index, np.ndarray) and own.ndim == 3 and aside.flags.c_contiguous:
                picked[name] = fresh(aside[index].swapaxes(1, 2))  # lies as the whole does
            else:
                picked[name] = np.asarray(own[index])
        return replace(self, **picked)

    def __len__(self) -> int:
        if not self.stack:
            raise TypeError("this is a single loss, not a stack")
        return self.stack[0]

    def as_stack(self) -> Self:
        """View a single loss as a stack of one; a stack is returned as it is."""
        if self.stack:
            return self
        return replace(self, **{n: np.asarray(own)[None] for n, own in self.tables().items()})

    def _spread(self, outcomes: ArrayLike) -> Array:
        y = np.asarray(outcomes, dtype=np.float64)
        if y.shape[-1:] != (self.outcomes,):
            raise ValueError(f"an outcome has {self.outcomes} coordinates, got shape {y.shape}")
        return y.reshape(*y.shape[:-1], *(1,) * len(self.stack), self.outcomes)


def product(first: Range, second: Range) -> Range:
    """Range of a product of two quantities in these ranges."""
    ones, others = ([np.clip(end, -STEEPEST, STEEPEST) for end in pair] for pair in (first, second))
    products = [one * other for one in ones for other in others]
    return (
        np.minimum(np.minimum(products[0], products[1]), np.minimum(products[2], products[3])),
        np.maximum(np.maximum(products[0], products[1]), np.maximum(products[2], products[3])),
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
    rng, keys = stream(0, "distinct losses"), np.zeros(len(loss), dtype=np.uint64)
    parts = [part for part in loss.tables().values() if part.strides[0]]  # others are all the same
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, len(loss), BLOCK)]
    for part in parts:
        factors = rng.integers(1 << 63, size=part[0].size, dtype=np.uint64) * 2 + 1
        for rows in blocks:
            bits = (part[rows].reshape(-1, factors.size) + 0.0).view(np.uint64)  # no minus zero
            keys[rows] += (bits * factors).sum(1, dtype=np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    first, kind = first[order], np.argsort(order)[inverse]
    same = (
        np.array_equal(part[rows], part[first[kind[rows]]]) for part in parts for rows in blocks
    )
    if len(first) == len(loss) or not all(same):
        return loss, np.arange(len(loss))
    return loss[first], kind
