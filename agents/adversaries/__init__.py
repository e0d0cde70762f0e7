"""Who chooses the outcomes: replayed data, nature, opponents of the forecast, and leaders.

One's own is a class with one method; ``docs/adversaries.md`` says what it is told:

    @register.adversary("stubborn")
    class Stubborn(Adversary):
        def commit(self, context, history, announced):
            return OutcomeDistribution.pure(np.ones(self.outcomes))
"""

from regretless.agents.adversaries.fixed_plans import (
    BaitSeller,
    PumpAndDump,
    StackelbergCommitter,
    StaggeredSeller,
    UpThenDown,
)
from regretless.agents.adversaries.leader import JointPayoff, Leader, LinearPayoff, ZeroSum
from regretless.agents.adversaries.learned import Planned, Trained
from regretless.agents.adversaries.moved_rows import MovedRows
from regretless.agents.adversaries.nature import (
    IID,
    AntiForecast,
    Cyclic,
    Drifting,
    Replay,
    Switching,
)
from regretless.agents.adversaries.reactive import DrawSeer, LookAhead, Myopic, RegretMaximiser
from regretless.agents.adversaries.wrappers import Coalition, Confined
from regretless.market.game.protocols import Adversary, Payoff

__all__ = [
    "IID",
    "Adversary",
    "AntiForecast",
    "BaitSeller",
    "Coalition",
    "Confined",
    "Cyclic",
    "DrawSeer",
    "Drifting",
    "JointPayoff",
    "Leader",
    "LinearPayoff",
    "LookAhead",
    "MovedRows",
    "Myopic",
    "Payoff",
    "Planned",
    "PumpAndDump",
    "RegretMaximiser",
    "Replay",
    "StackelbergCommitter",
    "StaggeredSeller",
    "Switching",
    "Trained",
    "UpThenDown",
    "ZeroSum",
]
