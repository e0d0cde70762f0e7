"""Who listens, and who attacks. Importing the package registers every name it offers."""

from agents import (
    adversaries,
    buyers,
    games,
    learners,
    policies,
    populations,
    responses,
    utilities,
)
from agents.scripted import ScriptedAgent

__all__ = [
    "ScriptedAgent",
    "adversaries",
    "buyers",
    "games",
    "learners",
    "policies",
    "populations",
    "responses",
    "utilities",
]
