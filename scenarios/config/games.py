"""How many actions the players of a game from a file have, where cohorts leave it out.

A file names the game by ``[game]`` or by a ``[market]`` of the kind "normal-form". With an
``[adversary]`` beside ``[game]`` the adversary leads, and cohorts with the utility "game" are its
followers; otherwise all agents are players, cohort after cohort.
"""

from pathlib import Path
from typing import Any

from regretless.market.exploitability.bimatrix import read_game
from regretless.market.solutions import NormalForm
from regretless.scenarios.config.files import DATA, find_file

GAMES = DATA / "games"


def with_actions_of_game(raw: dict[str, Any], *, origin: Path) -> dict[str, Any]:
    """Return a parsed scenario in which cohorts that play a game have its numbers of actions.

    What is no cohort, or malformed, stays as it is, to be refused by whoever reads it; cohorts that
    give ``actions`` keep them. ``origin`` is the folder of the scenario file. UserError if the
    game is needed and cannot be read.
    """
    cohorts = raw.get("cohort")
    if not isinstance(cohorts, list) or not all(isinstance(cohort, dict) for cohort in cohorts):
        return raw
    if all("actions" in cohort for cohort in cohorts):
        return raw
    game_table = raw.get("game")
    market_table = raw.get("market")
    has_leader = False
    if isinstance(game_table, dict) and "market" not in raw:
        file = game_table.get("file")
        has_leader = "adversary" in raw or "data" in raw
    elif isinstance(market_table, dict) and market_table.get("kind") == "normal-form":
        file = market_table.get("file")
    else:
        return raw
    if not isinstance(file, str) or not file:
        return raw
    path = find_file("game", file, origin, GAMES)
    if has_leader:
        return raw | {"cohort": _with_actions_of_followers(cohorts, path)}
    return raw | {"cohort": _with_actions_of_players(cohorts, path)}


def _with_actions_of_followers(cohorts: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return cohorts in which a leader's followers have as many actions as in the game."""
    n_actions = len(read_game(path).follower_actions)
    filled_cohorts = []
    for cohort in cohorts:
        is_follower = cohort.get("utility") == "game"
        filled_cohorts.append({"actions": n_actions, **cohort} if is_follower else cohort)
    return filled_cohorts


def _with_actions_of_players(cohorts: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return cohorts with as many actions as their players have, where all have equally many."""
    actions_of_players = NormalForm.read(path).actions
    filled_cohorts = []
    first_player = 0
    for cohort in cohorts:
        count = cohort.get("count", 1)
        if type(count) is not int or count < 0:
            return cohorts
        players = actions_of_players[first_player : first_player + count]
        first_player += count
        numbers = {len(actions) for actions in players}
        is_known = len(numbers) == 1
        filled_cohorts.append({"actions": numbers.pop(), **cohort} if is_known else cohort)
    return filled_cohorts
