"""Followers, learners and adversaries. Importing the package registers every name it offers."""

from regretless.agents import adversaries, learners, policies, responses, utilities
from regretless.agents.cohorts import traders
from regretless.agents.cohorts.scripted_agents import ScriptedAgent, ScriptedCrowd

__all__ = [
    "ScriptedAgent",
    "ScriptedCrowd",
    "adversaries",
    "learners",
    "policies",
    "responses",
    "traders",
    "utilities",
]
