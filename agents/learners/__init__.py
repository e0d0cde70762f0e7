"""Agents who learn for themselves; importing the package registers every name it offers."""

from regretless.agents.learners.base import RatedLearner, RowLearner, TotalLearner
from regretless.agents.learners.by_stay import LearnersByStay
from regretless.agents.learners.controls import Always, Coin
from regretless.agents.learners.external import (
    EXP3,
    FollowTheLeader,
    Hedge,
    QuantalFictitiousPlay,
    RegretMatching,
    RegretMatchingPlus,
)
from regretless.agents.learners.swap import BlumMansour, SwapRegretMatching, TreeSwap

__all__ = [
    "EXP3",
    "Always",
    "BlumMansour",
    "Coin",
    "FollowTheLeader",
    "Hedge",
    "LearnersByStay",
    "QuantalFictitiousPlay",
    "RatedLearner",
    "RegretMatching",
    "RegretMatchingPlus",
    "RowLearner",
    "SwapRegretMatching",
    "TotalLearner",
    "TreeSwap",
]
