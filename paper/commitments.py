"""What a leader earns who commits to a distribution in a run of finite length, by its margin.

``commitment-margins``: a leader commits in Conitzer and Sandholm's game, whose payoffs are divided
by 4, and in games with three actions a side whose payoffs and losses are uniform on [0, 1]. Three
cohorts of one agent answer: followers of the forecast, Hedge, Blum-Mansour. A line is a game: the
value of commitment, the surplus over it per round with each margin, means over seeds and cohorts,
and the margin that is the default for the length of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load, stackelberg
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.exploitability.sampled_commitment import commitment_for_run

SCENARIO = "setting-a-standard"  # whose cohorts answer
ROUNDS = 1000
SEEDS = 2
N_RANDOM_GAMES = 4
N_ACTIONS = 3  # of the leader, and of a follower
MARGINS: tuple[float | str, ...] = (0.0, 0.06, "auto")


@dataclass(frozen=True)
class Game:
    """A game by its name: payoffs of the leader and losses of the follower, both (m, A)."""

    name: str
    leader_payoff: Array
    follower_loss: Array

    def write(self, path: Path) -> None:
        """Write the file that a scenario reads."""
        rows = []
        for leader, follower in np.ndindex(self.leader_payoff.shape):
            rows.append(
                {
                    "leader": f"action {leader}",
                    "follower": f"action {follower}",
                    "leader_payoff": self.leader_payoff[leader, follower],
                    "follower_loss": self.follower_loss[leader, follower],
                }
            )
        pd.DataFrame(rows).to_csv(path, index=False)


def conitzer_and_sandholm() -> Game:
    """Return the game of Conitzer and Sandholm (2006) with payoffs and losses in [0, 1]."""
    payoff = np.array([[2.0, 4.0], [1.0, 3.0]]) / 4
    loss = np.array([[0.0, 1.0], [1.0, 0.0]])
    return Game("Conitzer and Sandholm", payoff, loss)


def games() -> list[Game]:
    """Return the game of the literature and the random ones."""
    listed = [conitzer_and_sandholm()]
    shape = (N_ACTIONS, N_ACTIONS)
    for number in range(1, N_RANDOM_GAMES + 1):
        rng = stream(number, "paper", "commitment-margins")
        listed.append(Game(f"random, {number}", rng.random(shape), rng.random(shape)))
    return listed


def commit(game: Game, rounds: int | None, seed: int) -> Iterator[Row]:
    """Play a game with each margin; yield a row for each."""
    rounds = rounds or ROUNDS
    value = stackelberg(game.leader_payoff, game.follower_loss).value
    _, own_margin = commitment_for_run(game.leader_payoff, game.follower_loss, rounds=rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.csv"
        game.write(path)
        for margin in MARGINS:
            changes = {"game.file": str(path), "adversary.margin": margin}
            for name in ("followers", "hedge", "blum-mansour"):
                changes[f"cohort.{name}.actions"] = game.leader_payoff.shape[1]
            model = load(SCENARIO, rounds=rounds, **changes).build(seed=seed)
            model.run()
            yield {
                "game": game.name,
                "value": value,
                "margin": str(margin),
                "surplus": model.agents_frame()["leader_surplus"].mean(),
                "its margin": own_margin,
            }


def text(table: pd.DataFrame) -> str:
    """Lay the table out: a line for each game, a column for each margin."""
    by_game = table.groupby("game", sort=False)
    lines = by_game[["value"]].mean()
    surplus = table.pivot_table(index="game", columns="margin", values="surplus", sort=False)
    lines = lines.join(surplus).join(by_game[["its margin"]].mean())
    return lines.round(3).to_string()


TABLES = {
    "commitment-margins": Table(
        commit,
        by=("game", "margin"),
        instances=games,
        rounds=ROUNDS,
        seeds=SEEDS,
        layout=text,
    )
}
