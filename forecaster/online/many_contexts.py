"""The contexts of many shops: features for regressions, and seasons, shop by shop.

Each shop has a memory of the contexts whose outcomes it has learned. Shops whose memories are alike
share one: as long as all have the same contexts and learn in the same rounds, a calendar is read
once for all of them.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from regretless.forecaster.models.least_squares import MAX_FEATURES, Columns
from regretless.forecaster.models.seasons import MAX_SEASONS, NO_SEASON, IntegerFeatures
from regretless.market.core.arrays import Indices, Mask

Context = Mapping[str, float]


class ContextMemory:
    """What is known of the contexts of one shop, or of several whose contexts are the same."""

    def __init__(self) -> None:
        self.columns = Columns(MAX_FEATURES)  # of a regression
        self.has_forgotten_seasons = False  # whether the last round that was learned did so
        self.remaining: Indices | None = None  # old features after it; None for all
        self.replaced_season = NO_SEASON  # whose code it gave to a new one
        self._integers = IntegerFeatures()
        self._code_of_season: dict[str, int] = {}

    def state(self) -> dict[str, Any]:
        """Return what a file needs."""
        return {
            "columns": self.columns.state(),
            "integers": self._integers.state(),
            "code_of_season": dict(self._code_of_season),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""
        self.columns.restore(state["columns"])
        self._integers.restore(state["integers"])
        self._code_of_season = dict(state["code_of_season"])

    def season(self, context: Context) -> int:
        """Return the code of a context's season, -1 where it has none or a new one."""
        return self._code_of_season.get(self._integers.combination(context), NO_SEASON)

    def learn(self, context: Context) -> int:
        """Learn a context, and return the code of its season."""
        self.remaining = self.columns.learn(context)
        self.has_forgotten_seasons = self._integers.learn(context)
        self.replaced_season = NO_SEASON
        if self.has_forgotten_seasons:  # a feature turned out to be no integer
            self._code_of_season.clear()
        season = self._integers.combination(context)
        if not season:
            return NO_SEASON
        if season not in self._code_of_season:
            code = len(self._code_of_season)
            if code == MAX_SEASONS:
                code = self._code_of_season.pop(next(iter(self._code_of_season)))
                self.replaced_season = code
            self._code_of_season[season] = code
        return self._code_of_season[season]


class ManyContexts:
    """The memories of all shops, and what they say of the round that is open.

    Attributes
    ----------
    encoded : array (S, q)
        Features of every shop's context, 0 beyond its own.
    seasons : array (S,)
        Codes of their seasons, -1 where there is none.
    """

    def __init__(self, n_shops: int) -> None:
        self.n_shops = n_shops
        shared = ContextMemory()
        self._memories = [shared] * n_shops
        self._are_shared = True
        self.current: Sequence[Context] = [{}] * n_shops  # of the open round
        self.encoded = np.zeros((n_shops, 0))
        self.seasons = np.full(n_shops, NO_SEASON)

    def open(self, contexts: Sequence[Context]) -> None:
        """Read the contexts (S,) of a round."""
        self.current = contexts
        if self._are_shared and _are_same(contexts):
            self.seasons[:] = self._memories[0].season(contexts[0])
        else:
            for shop, (memory, context) in enumerate(zip(self._memories, contexts, strict=True)):
                self.seasons[shop] = memory.season(context)
        self._encode(contexts)

    def learn(self, is_learned: Mask) -> None:
        """Learn the contexts of the open round, of some shops (S,).

        ``encoded`` and ``seasons`` are those that the contexts have from now on.
        """
        contexts = self.current
        if self._are_shared and not (_are_same(contexts) and is_learned.all()):
            self._memories = [deepcopy(self._memories[0]) for _ in range(self.n_shops)]
            self._are_shared = False
        if self._are_shared:
            self.seasons[:] = self._memories[0].learn(contexts[0])
        else:
            for shop in np.flatnonzero(is_learned).tolist():
                self.seasons[shop] = self._memories[shop].learn(contexts[shop])
        self._encode(contexts)

    def _encode(self, contexts: Sequence[Context]) -> None:
        n_features = max(memory.columns.size for memory in set(self._memories))
        self.encoded = np.zeros((self.n_shops, n_features))
        if self._are_shared and _are_same(contexts):
            self.encoded[:] = self._memories[0].columns.encoded(contexts[0])
            return
        for shop, (memory, context) in enumerate(zip(self._memories, contexts, strict=True)):
            features = memory.columns.encoded(context)
            self.encoded[shop, : len(features)] = features

    def state(self) -> dict[str, Any]:
        """Return what a file needs: each memory once, and which one a shop has."""
        memories: dict[int, ContextMemory] = {}
        for memory in self._memories:
            memories.setdefault(id(memory), memory)
        index_of_memory = {identity: index for index, identity in enumerate(memories)}
        states = [memory.state() for memory in memories.values()]
        return {
            "memories": {str(index): state for index, state in enumerate(states)},
            "memory_of_shop": np.array([index_of_memory[id(memory)] for memory in self._memories]),
            "are_shared": self._are_shared,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""
        memories = {}
        for index, state_of_memory in state["memories"].items():
            memories[int(index)] = ContextMemory()
            memories[int(index)].restore(state_of_memory)
        self._memories = [memories[index] for index in state["memory_of_shop"].tolist()]
        self._are_shared = bool(state["are_shared"])

    def memory(self, shop: int) -> ContextMemory:
        """Return what is known of a shop's contexts."""
        return self._memories[shop]

    def columns(self, shop: int) -> Columns:
        """Return a copy of what a shop's regressions know of columns."""
        return deepcopy(self._memories[shop].columns)


def _are_same(contexts: Sequence[Context]) -> bool:
    """Whether all shops have one context, as the same object."""
    return all(context is contexts[0] for context in contexts)
