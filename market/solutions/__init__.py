"""Solutions of the game behind a market: what play can be compared with.

A market with ``profile_losses`` has a stage game, and so has a ``NormalForm``:

    from regretless import NormalForm
    from regretless.market.solutions import solve, solutions_table, stage_game_of

    game = stage_game_of(NormalForm.read("chicken.nfg"))
    print(solutions_table(game, solve(game, ["nash", "ce", "cce", "optimum"])))

Importing this package registers ``nash``, ``ce``, ``cce``, ``optimum``, ``wardrop`` and
``potential``; one of your own is a function with ``register.solution("name")``.
"""

from regretless.market.solutions import correlated, flows, nash, optimum
from regretless.market.solutions.correlated import distance
from regretless.market.solutions.normal_form import NormalForm
from regretless.market.solutions.solution import Solution, solutions_table, solve
from regretless.market.solutions.stage_game import StageGame, stage_game_of

__all__ = [
    "NormalForm",
    "Solution",
    "StageGame",
    "correlated",
    "distance",
    "flows",
    "nash",
    "optimum",
    "solutions_table",
    "solve",
    "stage_game_of",
]
