"""The agents of a ``MarketModel`` as Mesa sees them: one view per agent on its cohort's arrays.

``model.agents.select(...)``, ``model.agents.get("swap_regret")`` and ``mesa.DataCollector`` read
these views. A view holds no numbers of its own, so that a million agents are stepped as arrays
whether anybody looks at them or not.

    model.agents.select(lambda agent: agent.cohort == "growers").get("decision_swap_regret")
    model.view(3).remove()                                # agent 3 plays no further round
"""

import itertools
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import mesa

from regretless.market.game.protocols import Cohort


class _NextNumbers(WeakKeyDictionary[Any, Iterator[int]]):
    """From a model to the iterator of its agents' numbers, which count from 1.

    Mesa's own table would keep every model alive for ever.
    """

    def __getitem__(self, model: Any) -> Iterator[int]:
        return self.setdefault(model, itertools.count(1))


class AgentView(mesa.Agent):  # type: ignore[misc]
    """One agent: what it is, what it did last, and its measures so far.

    Every measure is a mean per round so far of losses in [0, 1]; it is NaN until the agent has
    played.
    ``unique_id`` is the agent's number in the tables, from 1 through all cohorts. Numbers that a
    user's own agent class declares as columns, and ``cash`` and ``goods`` in a market that keeps
    accounts, are attributes as well.

    Parameters
    ----------
    model : MarketModel
    cohort_index : int
        Of the agent's cohort, in the order of the model.
    number : int
        The agent's place within its cohort, from 0.
    """

    _ids = _NextNumbers()

    def __init__(self, model: Any, cohort_index: int, number: int) -> None:
        super().__init__(model)
        self._cohort_index = cohort_index
        self.number = number

    # What the agent is.

    @property
    def cohort(self) -> str:
        """Name of the agent's cohort."""
        return self._cohort.name

    @property
    def utility(self) -> str:
        """Name of the agent's utility."""
        return self._cohort.utility

    @property
    def stands_for(self) -> int:
        """How many agents with the same losses it stands for: 1 unless its cohort is counted."""
        multiplicity = self._cohort.multiplicity
        if multiplicity is None:
            return 1
        return int(multiplicity[self.number])

    # What it did, and how it fared.

    @property
    def action(self) -> int:
        """The action played in the last round; -1 where the agent was absent."""
        return int(self.model.last_actions(self._cohort_index)[self.number])

    @property
    def mean_loss(self) -> float:
        """Loss per round so far, in [0, 1]."""
        return self._measured("mean_loss")

    @property
    def external_regret(self) -> float:
        """External regret per round so far."""
        return self._measured("external")

    @property
    def swap_regret(self) -> float:
        """Swap regret per round so far."""
        return self._measured("swap")

    @property
    def omniprediction_regret(self) -> float:
        """Omniprediction regret per round so far."""
        return self._measured("omniprediction")

    @property
    def decision_swap_regret(self) -> float:
        """Decision swap regret per round so far."""
        return self._measured("decision_swap")

    @property
    def contextual_swap_regret(self) -> float:
        """Contextual swap regret per round so far; NaN where it is not kept."""
        return self._measured("contextual_swap")

    @property
    def exploitability(self) -> float:
        """Exploitability so far; NaN where it is not kept or not sampled."""
        return self._measured("exploitability")

    # What can be done with it.

    def remove(self) -> None:
        """End the agent's stay; UserError if it cannot leave alone (``market.game.roster``)."""
        self.model.dismiss(self._cohort_index, self.number)
        super().remove()

    @property
    def _cohort(self) -> Cohort:
        cohort: Cohort = self.model.game.cohorts[self._cohort_index]
        return cohort

    def _measured(self, measure: str) -> float:
        """Return one of the ledger's measures of the agent's row."""
        values_of_rows = self.model.measured(self._cohort_index, measure)
        return float(values_of_rows[self._cohort.row_of[self.number]])

    def __getattr__(self, name: str) -> Any:
        """Return a column that the agent's own class declares, or ``cash`` or ``goods``."""
        if name.startswith("_"):
            raise AttributeError(f"agent has no '{name}'")
        if name in self._cohort.columns:
            return float(self.model.column(self._cohort_index, name)[self.number])
        account = self.model.account(self.unique_id)
        if account is not None and name in {"cash", "goods"}:
            return getattr(account, name)
        raise AttributeError(f"agent has no '{name}'")
