"""Benchmark policies c(x): simple rules on the context that an agent could have followed.

Both kinds are data: a scenario file writes their numbers. A policy of one's own is any callable
from a context to an action index, registered with ``market.register.policy``.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regretless.market import register
from regretless.market.records import Context


class ContextPolicy(ABC):
    """A rule that says what it reads and what it may suggest, so that a file is checked."""

    @abstractmethod
    def __call__(self, context: Context) -> int:
        """Return the action suggested in this context."""

    def reads(self) -> str | None:
        """Return the one feature that it reads; None where that is not known."""
        return None

    def suggests(self) -> Sequence[int]:
        """Return the actions that it may suggest, as far as they are known."""
        return ()


@dataclass(frozen=True)
class AnyPolicy(ContextPolicy):
    """A callable of which nothing more is known."""

    rule: Callable[[Context], int]

    def __call__(self, context: Context) -> int:
        return self.rule(context)


@dataclass(frozen=True)
class _OfFeature(ContextPolicy):
    feature: str

    def reads(self) -> str:
        return self.feature


@register.policy("steps")
@dataclass(frozen=True)
class Steps(_OfFeature):
    """A fixed choice per range of one feature, e.g. by season or regime.

    Parameters
    ----------
    edges : sequence of float
        Ascending; action i is chosen where the feature is at least edge i - 1 and below edge i.
    actions : sequence of int
        One more than there are edges.
    """

    edges: Sequence[float]
    actions: Sequence[int]

    def __post_init__(self) -> None:
        _check(self.feature, self.edges, self.actions)
        if len(self.actions) != len(self.edges) + 1:
            raise ValueError(f"{len(self.edges)} edges need {len(self.edges) + 1} actions")
        if list(self.edges) != sorted(self.edges):
            raise ValueError("edges must ascend")

    def __call__(self, context: Context) -> int:
        return int(self.actions[bisect_right(self.edges, context[self.feature])])

    def suggests(self) -> Sequence[int]:
        return self.actions


@register.policy("threshold")
@dataclass(frozen=True)
class ContextThreshold(_OfFeature):
    """One action below a threshold on a feature, another at or above it.

    ``below``, ``above`` (int): actions.
    """

    at: float
    below: int
    above: int

    def __post_init__(self) -> None:
        _check(self.feature, [self.at], self.suggests())

    def suggests(self) -> Sequence[int]:
        return self.below, self.above

    def __call__(self, context: Context) -> int:
        return self.above if context[self.feature] >= self.at else self.below


def _check(feature: object, numbers: object, actions: object) -> None:
    """Raise ValueError unless these are a name, finite numbers and whole numbers."""
    if not isinstance(feature, str):
        raise ValueError("feature must be the name of a context column")  # noqa: TRY004
    values = np.asarray(numbers)
    if values.size and (values.dtype.kind not in "iuf" or not np.isfinite(values).all()):
        raise ValueError("edges and thresholds must be numbers")
    if np.asarray(actions).dtype.kind not in "iu":
        raise ValueError("actions must be whole numbers")


@dataclass(frozen=True)
class NamedPolicy:
    """A policy under the name that a scenario gives it.

    ``rule``: ContextPolicy.
    """

    name: str
    rule: ContextPolicy

    def __call__(self, context: Context) -> int:
        return self.rule(context)
