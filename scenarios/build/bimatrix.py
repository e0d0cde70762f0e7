"""Game files as scenarios: outcomes are the leader's actions, followers lose what the file says.

The adversary leads. It has the file's payoff unless the scenario gives it one of its own: as the
``weights`` of its payoff if it takes them, otherwise as its attribute ``payoff``, so that its
surplus is measured although it does not pursue it. Its support are the pure actions.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regretless.agents.adversaries.payoffs import LinearPayoff
from regretless.market.core.errors import UserError
from regretless.market.exploitability.bimatrix import Bimatrix, read_game
from regretless.market.game.protocols import Adversary
from regretless.market.losses.spaces import Box
from regretless.scenarios.spec.scenario import ScenarioSpec

Array = NDArray[np.float64]


class MixedActions(Box):
    """The simplex: an outcome is a mixed action of the leader.

    Parameters
    ----------
    actions : int
    """

    def __init__(self, actions: int) -> None:
        super().__init__(np.zeros(actions), np.ones(actions))

    def confined(self, u: ArrayLike) -> Array:
        """Return outcomes (..., d) as they are; UserError unless each sums to 1."""
        outcomes = np.asarray(u, dtype=np.float64)
        total = outcomes.sum(-1)
        if (np.abs(total - 1) > 1e-9).any():
            worst = float(total.flat[int(np.abs(total - 1).argmax())])
            raise UserError(
                f"in a game an outcome is a mixed action, whose entries sum to 1, not {worst:.6g}; "
                "choose an adversary that plays unit vectors"
            )
        return outcomes


def game_of(spec: ScenarioSpec) -> Bimatrix | None:
    """Read the game of a scenario and fill in the number of outcomes; None without one.

    Raises
    ------
    UserError
        If the file is malformed, or outcomes or a cohort's actions do not fit it.
    """
    if spec.game is None or spec.adversary is None:
        return None
    game = read_game(spec.game.file)
    leaders, followers = game.leader_payoff.shape
    if leaders < 2:
        raise UserError(f"game.file '{spec.game.file}': the leader has 1 action; give it more")
    if spec.adversary.outcomes not in {None, leaders}:
        given = f"adversary.outcomes = {spec.adversary.outcomes}"
        raise UserError(f"{given}: the game's leader has {leaders} actions; leave outcomes out")
    spec.adversary.outcomes = leaders
    for cohort in spec.cohort:
        if cohort.utility == "game" and cohort.actions != followers:
            given = f"cohort.{cohort.name}.actions = {cohort.actions}"
            raise UserError(f"{given}: the game's follower has {followers}; write {followers}")
    return game


def motive(maker: Any, given: dict[str, Any], game: Bimatrix | None) -> dict[str, Any]:
    """Return the game's payoff as a parameter of an adversary that takes one and was given none."""
    if game is None or "weights" in given or "offset" in given or not takes(maker, "weights"):
        return {}
    return {"weights": game.leader_payoff.T.tolist()}


def takes(maker: Any, key: str) -> bool:
    """Whether a maker has a parameter, of its own or handed on to its base class."""
    parameters = inspect.signature(maker).parameters
    if key in parameters:
        return True
    hands_on = any(own.kind is own.VAR_KEYWORD for own in parameters.values())
    bases = maker.__bases__ if isinstance(maker, type) else ()
    return hands_on and any(takes(base, key) for base in bases if base is not object)


def paid(adversary: Adversary, game: Bimatrix) -> None:
    """Give an adversary without a payoff that of the game."""
    if getattr(adversary, "payoff", None) is None:
        vars(adversary)["payoff"] = LinearPayoff(game.leader_payoff.T)
    if getattr(adversary, "support", None) is None:
        vars(adversary)["support"] = np.eye(len(game.leader_actions))
