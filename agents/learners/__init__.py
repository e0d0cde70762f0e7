"""Agents who learn for themselves; importing the package registers every name it offers."""

from agents.learners.bandit import EXP3
from agents.learners.base import Learner, RatedLearner, RowLearner, TotalLearner
from agents.learners.cohort import LearnerCohort
from agents.learners.external import (
    FollowTheLeader,
    Hedge,
    QuantalFictitiousPlay,
    RegretMatching,
    RegretMatchingPlus,
)
from agents.learners.swap import BlumMansour, SwapRegretMatching
from agents.learners.tree import TreeSwap

__all__ = [
    "EXP3",
    "BlumMansour",
    "FollowTheLeader",
    "Hedge",
    "Learner",
    "LearnerCohort",
    "QuantalFictitiousPlay",
    "RatedLearner",
    "RegretMatching",
    "RegretMatchingPlus",
    "RowLearner",
    "SwapRegretMatching",
    "TotalLearner",
    "TreeSwap",
]
