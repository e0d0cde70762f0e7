"""Who chooses the outcomes: replayed data, nature, and opponents of the forecast."""

from agents.adversaries.base import Adversary
from agents.adversaries.breaker import Breaker
from agents.adversaries.confined import Confined
from agents.adversaries.replay import Replay
from agents.adversaries.stochastic import IID, Cyclic, Drifting, Switching

__all__ = ["IID", "Adversary", "Breaker", "Confined", "Cyclic", "Drifting", "Replay", "Switching"]
