"""Leaders who learn while they play: the run is cut into episodes, and each tries a plan.

After an episode the search (``agents.adversaries.search``) is told what the plan was paid per round
and agent. Followers do not forget between episodes, so that a plan is judged in the wake of those
before it; ``regretless train`` rehearses in runs that begin anew.
"""

from typing import Any, ClassVar

import numpy as np

from regretless.agents.adversaries.plans import Planned
from regretless.agents.adversaries.search import SEARCHES
from regretless.agents.adversaries.strategic import support_of, whole
from regretless.market import register
from regretless.market.records import Observation


class Trained(Planned):
    """Base of the leaders who learn: plays the plans that its search proposes.

    Parameters
    ----------
    rng : numpy Generator
        Draws what is proposed.
    length : int
        Rounds of an episode.
    phases, rows : int
        Of a plan; as many rows as followers have actions for plans that look at play.
    **motive : cohort, weights, offset, support, grid
        As in ``Planned``.
    """

    REMEMBERED = ("search", "laws", "_plans", "_payoffs", "_sum", "_count")
    algorithm: ClassVar[str]

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        length: int = 50,
        phases: int = 4,
        rows: int = 1,
        **motive: Any,
    ) -> None:
        support = support_of(outcomes, motive.get("support"), motive.get("grid"))
        shape = whole("phases", phases, least=1), whole("rows", rows, least=1), len(support)
        spent = whole("length", length, least=1)
        super().__init__(outcomes, rng, laws=np.ones(shape), rounds=spent, **motive)
        self.search = SEARCHES[self.algorithm](shape, rng, paid=self.payoff.range())
        self._sum, self._count, self._payoffs = 0.0, 0, np.zeros(0)
        self._plans = self.search.propose()
        self.laws = self._plans[0]

    def learn(self, payoff: float, observation: Observation) -> None:
        """Count the payoff; after an episode try the next plan, after a generation learn."""
        super().learn(payoff, observation)
        if np.isfinite(payoff):  # somebody was there
            self._sum, self._count = self._sum + payoff, self._count + 1
        if (observation.number + 1) % self.rounds or not self._count:
            return
        self._payoffs = np.append(self._payoffs, self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._payoffs) == len(self._plans):
            self.search.told(self._payoffs)
            self._plans, self._payoffs = self.search.propose(), np.zeros(0)
        self.laws = self._plans[len(self._payoffs)]


@register.adversary("cem")
class CrossEntropyLeader(Trained):
    """Learns a plan while it plays, by the cross-entropy method: 32 episodes, then the best 8."""

    algorithm = "cem"


@register.adversary("es")
class EvolutionLeader(Trained):
    """Learns a plan while it plays, by an evolution strategy: 16 episodes, then a step."""

    algorithm = "es"


@register.adversary("exp3")
class BanditLeader(Trained):
    """Learns while it plays which of a list of plans pays, by EXP3."""

    algorithm = "exp3"
