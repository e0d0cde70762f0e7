"""What there is to be gained on i.i.d. outcomes: plain, ours, and who knows the distribution.

    python -m paper.luck [--rounds 1000] [--seeds 40] [--jobs 2]

The agents and outcomes of the first stream of the table `skill`. Who knows the distribution plays,
for each loss, the action that is best in expectation. Printed is what each loses more than the
plain forecaster, seed by seed, with the standard error over seeds and over means of ten seeds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import typer

from regretless import load
from regretless.market.core.randomness import stream
from regretless.scenarios.executor import collect
from regretless.scenarios.studies.design import CATALOGUE

DRAWS, PARTS = 200_000, 10  # of the distribution, on which actions are compared
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"forecaster.models": []},
    "ours": {"forecaster.models": ["panel"]},
}


def one_run(rounds: int, seed: int) -> list[float]:
    """Return mean losses: plain, ours, who knows the distribution."""
    found = []
    for way in WAYS.values():
        keys = {"rounds": rounds, "adversary.kind": "iid", "adversary.outcomes": 3} | way
        model = load(str(CATALOGUE / "scenarios/listeners.toml"), **keys).build(seed=seed)
        model.run()
        found.append(float(model.agents_frame()["mean_loss"].mean()))
    loss, rng = model.game.cohorts[0].loss, stream(seed, "benchmarks", "luck")
    drawn = [loss.losses(rng.random((DRAWS // PARTS, 3))).mean(0) for _ in range(PARTS)]
    best = np.mean(drawn, axis=0).argmin(1)
    lost = loss.losses(model.rounds_frame()[["y_0", "y_1", "y_2"]].to_numpy()).mean(0)
    return [*found, float(lost[np.arange(len(best)), best].mean())]


def main(rounds: int = 1000, seeds: int = 40, jobs: int = 2) -> None:
    """Play and print."""
    table = np.array(collect(partial(one_run, rounds), list(range(seeds)), jobs=jobs))
    typer.echo(f"{rounds} rounds, {seeds} seeds: plain {table[:, 0].mean():.4f}")
    for name, own in zip(("ours", "who knows the distribution"), table.T[1:], strict=True):
        more = own - table[:, 0]
        error = more.std(ddof=1) / np.array([seeds, 10]) ** 0.5
        typer.echo(f"{name:18} {more.mean():+.5f} ({error[0]:.5f}; of ten seeds {error[1]:.5f})")


if __name__ == "__main__":
    typer.run(main)
