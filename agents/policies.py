"""Benchmark policies: simple rules on the context that an agent could have followed instead.

A cohort of a scenario names its policies c(x); after the run each agent's loss is compared with
what they would have lost. Steps and thresholds are data: a scenario file writes their numbers. A
user's policy is any callable from a context to an action index, registered with
``market.register.policy``.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regretless.market import register
from regretless.market.core.fixed import Fixed
from regretless.market.records import Context


@register.policy("steps")
@dataclass(frozen=True)
class Steps:
    """A fixed choice per range of one feature, e.g. by season or regime.

    There is one more of the ``actions`` than there are ascending ``edges``: action i is chosen
    where the feature is at least edge i - 1 and below edge i. ValueError, with the cure, if the
    edges or the actions are not so.
    """

    feature: str
    edges: Sequence[float]
    actions: Sequence[int]

    def __post_init__(self) -> None:
        if not isinstance(self.feature, str):
            raise ValueError("feature must be the name of a context column")  # noqa: TRY004
        edges = np.asarray(self.edges)
        if edges.size and (edges.dtype.kind not in "iuf" or not np.isfinite(edges).all()):
            raise ValueError("edges and thresholds must be numbers")
        if np.asarray(self.actions).dtype.kind not in "iu":
            raise ValueError("actions must be whole numbers")
        if len(self.actions) != len(self.edges) + 1:
            raise ValueError(f"{len(self.edges)} edges need {len(self.edges) + 1} actions")
        if list(self.edges) != sorted(self.edges):
            raise ValueError("edges must ascend")

    def __call__(self, context: Context) -> int:
        interval = bisect_right(self.edges, context[self.feature])
        return int(self.actions[interval])


@register.policy("threshold")
def threshold(feature: str, at: float, below: int, above: int) -> Steps:
    """One action below a threshold on a feature, another at or above it."""
    return Steps(feature, edges=[at], actions=[below, above])


@dataclass(frozen=True)
class NamedPolicy(Fixed):
    """A policy under the name that a scenario gives it."""

    name: str
    rule: Callable[[Context], int]
    feature: str | None = None  # the one feature that it reads; None where this is not known

    @cached_property
    def is_fixed(self) -> bool:
        """Whether its rule is known to have no memory: a user's own may have one."""
        return type(self.rule) is Steps

    def __call__(self, context: Context) -> int:
        return self.rule(context)
