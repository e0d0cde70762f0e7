"""Two rules that learn nothing, as controls: a fair coin, and one action for ever.

A study compares agents who follow a forecast, or who learn, with agents who do neither. If a coin
does as well, the forecast is not what helped. Both rules ignore the forecast and what happened, and
promise nothing.
"""

from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, RowLearner
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.validation import check_int


@register.learner("coin")
class Coin(RowLearner):
    """Plays an action drawn evenly from all, in every round, and is charged for that action.

    Were it charged its mixed strategy in expectation, it would not feel what its own draw does to
    the outcome, as an agent does who follows a forecast in a crowded market.
    """

    name = "coin"
    bandit: ClassVar[bool] = True
    REMEMBERED: ClassVar[tuple[str, ...]] = ()

    def begin(self) -> None:
        pass

    def step(self, losses: Array, actions: Actions) -> Array:
        return self.strategy


@register.learner("always")
class Always(RowLearner):
    """Plays one action in every round.

    Parameters
    ----------
    action : int
        The number of the action, from 0.
    """

    name = "always"
    REMEMBERED: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, action: int = 0) -> None:
        self.action = check_int("action", action, least=0)

    def begin(self) -> None:
        if self.action >= self.actions:
            last = self.actions - 1
            raise UserError(f"action = {self.action}: give an action from 0 to {last}")
        self.strategy = np.zeros((self.rows, self.actions))
        self.strategy[:, self.action] = 1.0

    def step(self, losses: Array, actions: Actions) -> Array:
        return self.strategy
