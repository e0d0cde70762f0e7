"""Who listens, and who attacks. Importing the package registers every name it offers."""

from regretless.agents import adversaries, learners, policies, responses, utilities
from regretless.agents.cohorts.crowd import ScriptedCrowd
from regretless.agents.cohorts.scripted import ScriptedAgent

__all__ = [
    "ScriptedAgent",
    "ScriptedCrowd",
    "adversaries",
    "learners",
    "policies",
    "responses",
    "utilities",
]
