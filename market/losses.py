r"""Functional forms of a loss l(a, y): what an agent suffers for action a at outcome y.

Both forms here are affine in one power of each coordinate of the outcome,

    l(a, y) = offset_a + sum_j weights_aj * y_j ** exponent,        y in [0, 1]^d,

with exponent 1 in the linear form. Additive CES utility is the separable form (with the
textbook's share parameters as weights and rho as exponent). Arrays may carry leading axes: a
loss with weights ``(K, A, d)`` is K losses stacked, and every formula works on all at once.

Normalisation. Over the cube each y_j ** exponent fills [0, 1], so the exact range of a loss is
found from the signs of its weights. ``normalised`` maps that range onto [0, 1] and keeps the
affine map: the loss in the utility's own units is ``unit_offset + unit_scale * l``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeparablePower:
    """Loss ``offset + sum_j weights_j * y_j ** exponent``, one row of weights per action.

    Parameters
    ----------
    weights : array (..., A, d)
        One row per action, one column per coordinate of the outcome. Leading axes stack losses.
    exponent : array (...) or float
        The common power of the coordinates, positive, one per stacked loss.
    offset : array (..., A) or float
        The constant of each action.
    unit_scale, unit_offset : array (...)
        The loss in the utility's own units is ``unit_offset + unit_scale * loss``.

    Raises
    ------
    ValueError
        If a number is not finite or an exponent is not positive.
    """

    weights: Array
    exponent: Array = field(default_factory=lambda: np.ones(()))
    offset: Array = field(default_factory=lambda: np.zeros(()))
    unit_scale: Array = field(default_factory=lambda: np.ones(()))
    unit_offset: Array = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if weights.ndim < 2 or 0 in weights.shape:
            raise ValueError(f"weights have shape {weights.shape}; give (actions, outcomes)")
        shapes = {
            "weights": weights.shape,
            "exponent": weights.shape[:-2],
            "offset": weights.shape[:-1],
            "unit_scale": weights.shape[:-2],
            "unit_offset": weights.shape[:-2],
        }
        for name, shape in shapes.items():
            value = np.broadcast_to(np.asarray(getattr(self, name), dtype=np.float64), shape)
            if not np.isfinite(value).all():
                raise ValueError(f"{name} holds a number that is not finite")
            object.__setattr__(self, name, np.array(value))
        if (self.exponent <= 0).any():
            raise ValueError("exponent must be positive")

    @property
    def actions(self) -> int:
        """Number of actions, A."""
        return int(self.weights.shape[-2])

    @property
    def outcomes(self) -> int:
        """Number of coordinates of an outcome, d."""
        return int(self.weights.shape[-1])

    def losses(self, y: ArrayLike) -> Array:
        """Losses of all actions at one outcome or at many.

        Parameters
        ----------
        y : array (d,) or (T, d)
            Outcomes in [0, 1].

        Returns
        -------
        array (..., A) or (T, ..., A)
        """
        y = np.asarray(y, dtype=np.float64)
        if y.shape[-1:] != (self.outcomes,):
            raise ValueError(f"an outcome has {self.outcomes} coordinates, got shape {y.shape}")
        spread = y.reshape(*y.shape[:-1], *(1,) * self.exponent.ndim, self.outcomes)
        powers = spread ** self.exponent[..., None]
        result: Array = self.offset + np.einsum("...ad,...d->...a", self.weights, powers)
        return result

    def range(self) -> tuple[Array, Array]:
        """Least and greatest loss of any action over the cube, each of shape (...)."""
        low = self.offset + np.minimum(self.weights, 0).sum(-1)
        high = self.offset + np.maximum(self.weights, 0).sum(-1)
        return low.min(-1), high.max(-1)

    def normalised(self) -> Self:
        """Return the same loss mapped onto [0, 1], with the map kept in ``unit_*``."""
        low, high = self.range()
        scale = np.where(high > low, high - low, 1.0)
        return replace(
            self,
            weights=self.weights / scale[..., None, None],
            offset=(self.offset - low[..., None]) / scale[..., None],
            unit_scale=self.unit_scale * scale,
            unit_offset=self.unit_offset + self.unit_scale * low,
        )

    def __getitem__(self, index: int | slice | NDArray[np.intp]) -> Self:
        """Pick from a stack of losses along its first axis."""
        if self.exponent.ndim == 0:
            raise TypeError("this is a single loss, not a stack")
        names = ("weights", "exponent", "offset", "unit_scale", "unit_offset")
        return replace(self, **{name: getattr(self, name)[index] for name in names})

    def __len__(self) -> int:
        if self.exponent.ndim == 0:
            raise TypeError("this is a single loss, not a stack")
        return len(self.exponent)


@dataclass(frozen=True, eq=False, init=False)
class Linear(SeparablePower):
    """Loss ``offset + weights @ y``: a risk-neutral agent.

    Parameters
    ----------
    weights : array (..., A, d)
        One row per action. Leading axes stack losses.
    offset : array (..., A) or float
        The constant of each action.
    """

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **units: Array) -> None:
        if (np.asarray(units.pop("exponent", 1)) != 1).any():  # `dataclasses.replace` hands it back
            raise ValueError("a linear loss has exponent 1; use SeparablePower")
        super().__init__(np.asarray(weights), offset=np.asarray(offset), **units)


def unique_losses(loss: SeparablePower) -> tuple[SeparablePower, NDArray[np.intp]]:
    """Keep one of each loss of a stack, so that equal agents are computed once.

    Parameters
    ----------
    loss : a stack of K losses

    Returns
    -------
    types : the distinct losses in order of first appearance
    type_of : array (K,)
        For each loss of the stack the row of its equal in ``types``.
    """
    parts = (loss.weights, loss.offset, loss.exponent, loss.unit_scale, loss.unit_offset)
    table = np.concatenate([part.reshape(len(loss), -1) for part in parts], axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return loss[first[order]], rank[inverse.ravel()]
