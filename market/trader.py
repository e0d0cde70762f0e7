"""A thin view on one agent, as Mesa wants one: everything is read from its cohort's arrays."""

import itertools
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import mesa

from regretless.market.game.presence import heads_of
from regretless.market.game.protocols import Cohort


class _Numbers(WeakKeyDictionary[Any, Iterator[int]]):
    """From a model to its agents' next number; Mesa's own table keeps every model for ever."""

    def __getitem__(self, model: Any) -> Iterator[int]:
        return self.setdefault(model, itertools.count(1))


class Trader(mesa.Agent):  # type: ignore[misc]
    """A view on one agent: its cohort and its number within it.

    Its action is -1 while it is not there, and its measures are NaN until it has played.
    """

    _ids = _Numbers()

    def __init__(self, model: Any, cohort: int, number: int) -> None:
        super().__init__(model)
        self._cohort, self.number = cohort, number

    @property
    def cohort(self) -> str:
        """Name of the agent's cohort."""
        return self._mine.name

    @property
    def utility(self) -> str:
        """Name of the agent's utility."""
        return self._mine.utility

    @property
    def stands_for(self) -> int:
        """How many agents it is one of, with the same losses: 1 unless they are counted."""
        heads = heads_of(self._mine)
        return 1 if heads is None else int(heads[self.number])

    @property
    def action(self) -> int:
        """The action played in the last round; -1 where the agent was absent."""
        return int(self.model.last_actions(self._cohort)[self.number])

    @property
    def mean_loss(self) -> float:
        """Loss per round so far, in [0, 1]."""
        return self._read("mean_loss")

    @property
    def external_regret(self) -> float:
        """External regret per round so far."""
        return self._read("external")

    @property
    def swap_regret(self) -> float:
        """Swap regret per round so far."""
        return self._read("swap")

    @property
    def omniprediction_regret(self) -> float:
        """Omniprediction regret per round so far."""
        return self._read("omniprediction")

    @property
    def decision_swap_regret(self) -> float:
        """Decision swap regret per round so far."""
        return self._read("decision_swap")

    @property
    def contextual_swap_regret(self) -> float:
        """Contextual swap regret per round so far; NaN where it is not kept."""
        return self._read("contextual_swap")

    @property
    def exploitability(self) -> float:
        """Exploitability so far; NaN where it is not kept or not sampled."""
        return self._read("exploitability")

    @property
    def _mine(self) -> Cohort:
        cohort: Cohort = self.model.game.cohorts[self._cohort]
        return cohort

    def __getattr__(self, name: str) -> Any:
        """Read a column that the agent's own class declares, or one of its account."""
        if not name.startswith("_"):
            if name in getattr(self._mine, "columns", ()):
                return float(self.model.column(self._cohort, name)[self.number])
            account = self.model.account(self.unique_id)
            if account is not None and name in {"cash", "goods"}:
                return getattr(account, name)
        raise AttributeError(f"agent has no '{name}'")

    def remove(self) -> None:
        """End the agent's stay: it plays no further round, its measures are over its own.

        UserError if it cannot go alone (``market.game.changes``).
        """
        self.model.dismiss(self._cohort, self.number)
        super().remove()

    def _read(self, measure: str) -> float:
        return float(self.model.measured(self._cohort, measure)[self._mine.row_of[self.number]])
