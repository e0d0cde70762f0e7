"""Agents who learn for themselves; importing the package registers every name it offers."""

from regretless.agents.learners.base import GameFacts, RatedLearner, RowLearner, TotalLearner
from regretless.agents.learners.by_stay import LearnersByStay
from regretless.agents.learners.controls import Always, Coin
from regretless.agents.learners.discrete_choice import DiscreteChoice
from regretless.agents.learners.external import (
    EXP3,
    FollowTheLeader,
    Hedge,
    QuantalFictitiousPlay,
    RegretMatching,
    RegretMatchingPlus,
)
from regretless.agents.learners.q_learning import QLearning
from regretless.agents.learners.strategy_tables import StrategyTables
from regretless.agents.learners.swap import BlumMansour, SwapRegretMatching, TreeSwap

__all__ = [
    "EXP3",
    "Always",
    "BlumMansour",
    "Coin",
    "DiscreteChoice",
    "FollowTheLeader",
    "GameFacts",
    "Hedge",
    "LearnersByStay",
    "QLearning",
    "QuantalFictitiousPlay",
    "RatedLearner",
    "RegretMatching",
    "RegretMatchingPlus",
    "RowLearner",
    "StrategyTables",
    "SwapRegretMatching",
    "TotalLearner",
    "TreeSwap",
]
