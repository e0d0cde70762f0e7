r"""Discrete choice: agents who choose in proportion to how well each action did lately.

Scenario files name it as the ``response`` of a cohort, ``"discrete-choice"``. It is how agents
switch between rules in the models of Brock and Hommes (1997, 1998): with the profit u_a = - l_a of
a round in the units of the utility, the discount d and the intensity of choice beta,

    U_a <- d U_a + u_a,        q_a ~ exp(beta U_a).

With d = 0 the last round alone counts, with d = 1 it is Hedge at a constant rate. As beta grows all
choose what did best. In the code -U is ``total`` and q is ``strategy``.

No bound on regret is stated: for d < 1 the past is forgotten, and for d = 1 Hedge has one.
"""

import math
from copy import copy
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, GameFacts, TotalLearner
from regretless.market import register
from regretless.market.best_response import quantal_response
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError


@register.learner("discrete-choice")
class DiscreteChoice(TotalLearner):
    """Logit choice by discounted past profits.

    Parameters
    ----------
    beta : float
        The intensity of choice, per unit of the utility; 0 chooses uniformly.
    discount : float
        d in [0, 1], what a round counts one round later.

    Examples
    --------
    >>> learner = DiscreteChoice(beta=1.0)
    >>> learner.start(1, 2)
    >>> learner.learn(np.array([[0.0, 1.0]]), np.array([0]))
    >>> learner.play().round(3)  # in proportion to 1 and exp(-1)
    array([[0.731, 0.269]])
    """

    name: ClassVar[str] = "discrete-choice"

    def __init__(self, *, beta: float, discount: float = 0.0) -> None:
        if not 0 <= beta < math.inf:
            raise UserError(f"beta = {beta}: give a number of at least 0")
        if not 0 <= discount <= 1:
            raise UserError(f"discount = {discount}: give a number in [0, 1]")
        self.beta = float(beta)
        self.discount = float(discount)
        self.unit_scale: Array = np.ones(1)  # (K,) once it is in a market

    def meet(self, facts: GameFacts) -> None:
        self.unit_scale = np.array(facts.unit_scale)

    def part(self, rows: Indices) -> "DiscreteChoice":
        part = copy(self)
        if len(self.unit_scale) > 1:
            part.unit_scale = self.unit_scale[rows]
        return part

    def step(self, losses: Array, actions: Actions) -> Array:
        self.total *= self.discount
        self.total += losses * self.unit_scale[:, np.newaxis]
        return quantal_response(self.total, self.beta)
