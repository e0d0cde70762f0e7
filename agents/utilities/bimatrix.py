r"""Followers in a game of a file: the outcome is the leader's action, as a one-hot vector.

A loss that is linear in the outcome y, ``l_a(y) = sum_i y_i l[i, a]``, is the follower's expected
loss when y is a mixed action of the leader. Since the y_i sum to 1, any constant c_a may be taken
off the weights and added to the offset; the middle of the losses of a is, which keeps weights, and
with them the forecaster's bounds, small. The loss lies in [0, 1] wherever y is a mixed action.
"""

import numpy as np

from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.losses import Linear


@register.utility("game")
def game_population(population: Population) -> Linear:
    """Followers of the scenario's [game], all alike.

    Raises
    ------
    ValueError
        If the scenario has no game, or the numbers of actions differ.
    """
    game = population.game
    if game is None:
        raise ValueError("there is no game; add a table [game] with its file")
    outcomes, actions = game.follower_loss.shape
    if (population.goods, population.actions) != (outcomes, actions):
        raise ValueError(
            f"the game has {outcomes} actions of the leader and {actions} of the follower; "
            f"give actions = {actions}"
        )
    middle = (game.follower_loss.max(0) + game.follower_loss.min(0)) / 2
    weights = np.broadcast_to(
        (game.follower_loss - middle).T, (population.count, actions, outcomes)
    )
    units = np.ones(population.count)
    return Linear(
        weights,
        np.broadcast_to(middle, (population.count, actions)),
        unit_scale=game.unit_scale * units,
        unit_offset=game.unit_offset * units,
    )
