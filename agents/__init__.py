"""Who listens, and who attacks. Importing the package registers every name it offers."""

from agents import adversaries, policies, populations, responses, utilities
from agents.scripted import ScriptedAgent

__all__ = ["ScriptedAgent", "adversaries", "policies", "populations", "responses", "utilities"]
