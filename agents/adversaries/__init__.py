"""Who chooses the outcomes: replayed data, nature, opponents of the forecast, and leaders.

Leaders have a motive: a payoff of their own (``strategic``).
"""

from agents.adversaries.base import Adversary
from agents.adversaries.breaker import Breaker
from agents.adversaries.coalition import Coalition
from agents.adversaries.committed import PumpAndDump, StackelbergCommitter, UpThenDown
from agents.adversaries.confined import Confined
from agents.adversaries.payoffs import JointPayoff, LinearPayoff, Payoff, ZeroSum
from agents.adversaries.replay import Replay
from agents.adversaries.responsive import DrawSeer, LookAhead, Myopic
from agents.adversaries.sellers import BaitSeller, StaggeredSeller
from agents.adversaries.stochastic import IID, Cyclic, Drifting, Switching
from agents.adversaries.strategic import Strategic

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
    "PumpAndDump",
    "Replay",
    "StackelbergCommitter",
    "StaggeredSeller",
    "Strategic",
    "Switching",
    "UpThenDown",
    "ZeroSum",
]
