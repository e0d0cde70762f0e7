"""Game files as scenarios: outcomes are the leader's actions, followers lose what the file says."""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.exploitability.bimatrix import Bimatrix, read_game
from regretless.market.losses.spaces import Box
from regretless.scenarios.spec.scenario import ScenarioSpec


class MixedActions(Box):
    """The simplex: an outcome is a mixed action of the leader."""

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

    UserError if the file is malformed, or outcomes or a cohort's actions do not fit it.
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
