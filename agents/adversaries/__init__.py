"""Who chooses the outcomes: replayed data, nature, opponents of the forecast, and leaders.

Leaders have a motive: a payoff of their own (``strategic``).
"""

from regretless.agents.adversaries.base import Adversary
from regretless.agents.adversaries.breaker import Breaker
from regretless.agents.adversaries.coalition import Coalition
from regretless.agents.adversaries.committed import PumpAndDump, StackelbergCommitter, UpThenDown
from regretless.agents.adversaries.confined import Confined
from regretless.agents.adversaries.payoffs import JointPayoff, LinearPayoff, Payoff, ZeroSum
from regretless.agents.adversaries.plans import Planned
from regretless.agents.adversaries.replay import Replay
from regretless.agents.adversaries.responsive import DrawSeer, LookAhead, Myopic
from regretless.agents.adversaries.sellers import BaitSeller, StaggeredSeller
from regretless.agents.adversaries.stochastic import IID, Cyclic, Drifting, Switching
from regretless.agents.adversaries.strategic import Strategic
from regretless.agents.adversaries.targeted import Targeted
from regretless.agents.adversaries.trained import Trained

__all__ = [
    "IID",
    "Adversary",
    "BaitSeller",
    "Breaker",
    "Coalition",
    "Confined",
    "Cyclic",
    "DrawSeer",
    "Drifting",
    "JointPayoff",
    "LinearPayoff",
    "LookAhead",
    "Myopic",
    "Payoff",
    "Planned",
    "PumpAndDump",
    "Replay",
    "StackelbergCommitter",
    "StaggeredSeller",
    "Strategic",
    "Switching",
    "Targeted",
    "Trained",
    "UpThenDown",
    "ZeroSum",
]
