r"""`reproduce covers`: swap regret against the radius of a cover, on the adaptive stream.

The forecaster protects representatives instead of every agent. 400 agents with five actions and
three goods: each action has shares drawn from the simplex, each agent its own shares around them
(Dirichlet, concentration 40) and rho 0.5, 1 or 2, so that no two losses are equal. The outcomes
are those of ``streams``: the breaker at strength 1/2.

    cluster r          members of the population, until none is further than r from one of them
    snap gamma         coefficients rounded to multiples of gamma; gamma paper is 1 / (2 n sqrt(T))
    representative     agents play their representative's best response; the theorem holds, with
                       twice the radius added
    own                agents play their own best response, without a guarantee

``bound`` is a priori, for the agent with the greatest one, and empty without a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.randomness import stream
from regretless.market.model import MarketModel
from regretless.scenarios.build.cohorts import covered
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.reproduce import streams
from regretless.scenarios.reproduce.covers_figure import covers_figure
from regretless.scenarios.reproduce.workers import collect
from regretless.scenarios.spec.scenario import resolved, validated

AGENTS, ACTIONS, GOODS, CONCENTRATION = 400, 5, 3, 40.0
NONE = "none"
COVERS: dict[str, dict[str, Any]] = {
    **{f"cluster {r}": {"kind": "cluster", "radius": r} for r in (0.4, 0.2, 0.1, 0.05)},
    **{f"snap {g}": {"kind": "snap", "gamma": g} for g in (0.5, 0.25, 0.1)},
    "snap paper": {"kind": "snap"},
}
PLAYS = ("representative", "own")
CELLS = [(NONE, "own"), *product(COVERS, PLAYS)]

Run = tuple[str, str, int, int, int]


def scenario(cover: str, play: str, *, rounds: int, seed: int, agents: int = AGENTS) -> Scenario:
    """Return the scenario of one cell and seed: that of ``streams`` with another population."""
    base = streams.scenario("adaptive", "decision-swap, adaptive", rounds=rounds, seed=seed)
    raw = resolved(base.spec)
    shares = stream(0, "reproduce covers").dirichlet(np.ones(GOODS), ACTIONS)
    cohort = raw["cohort"][0]
    cohort |= {"count": agents, "actions": ACTIONS}
    cohort["parameters"] |= {"weights": shares.tolist(), "concentration": CONCENTRATION}
    if cover != NONE:
        cohort["cover"] = COVERS[cover] | {"play": play}
    return Scenario(validated(raw, origin=Path()))


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(CELLS) * seeds


def one_run(run: Run) -> dict[str, Any]:
    """Play one run: cover, play, rounds, seed and number of agents.

    Returns
    -------
    dict
        How many ``representatives`` there are and their greatest ``radius``, the worst agent's
        ``swap_regret`` and the ``mean_swap_regret``, the greatest ``bound``, and ``milliseconds``
        per round.
    """
    cover, play, rounds, seed, agents = run
    built = scenario(cover, play, rounds=rounds, seed=seed, agents=agents)
    model, milliseconds = streams.timed(built)
    table = model.agents_frame()
    representatives, radius = served(built, model)
    return {
        "cover": cover,
        "play": play,
        "seed": seed,
        "rounds": rounds,
        "agents": agents,
        "representatives": representatives,
        "radius": radius,
        "swap_regret": table["swap_regret"].max(),
        "mean_swap_regret": table["swap_regret"].mean(),
        "bound": table["bound"].max(),
        "milliseconds": milliseconds,
    }


def served(built: Scenario, model: MarketModel) -> tuple[int, float]:
    """Count the losses that the forecaster protects, and how far they are from the agents'."""
    own, asked = model.game.cohorts[0].loss, built.spec.cohort[0].cover
    if asked is None:
        return len(own), 0.0
    coefficients = model.game.blocks[0].basis.coefficients(own)
    cover = covered(asked, coefficients, built.spec.rounds)
    return len(cover.offset), float(cover.radius.max())


def measure(
    *,
    rounds: int,
    seeds: int,
    agents: int = AGENTS,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every cell.

    Parameters
    ----------
    rounds, seeds, agents : int
        Rounds and agents per run, runs per cell.
    jobs, progress : as in ``workers.collect``

    Returns
    -------
    DataFrame
        One row per run, in a fixed order.
    """
    runs = [(*cell, rounds, seed, agents) for cell, seed in product(CELLS, range(seeds))]
    return collect(one_run, runs, jobs=jobs, progress=progress)


def text(table: pd.DataFrame) -> str:
    """Lay the table out: means over the seeds, the worst agent's regret with its range."""
    groups = table.groupby(["cover", "play"], sort=False)
    worst = groups["swap_regret"].agg(["mean", "min", "max"])
    means = groups.mean(numeric_only=True)
    shown = {
        "representatives": means["representatives"].map("{:.0f}".format),
        "radius": means["radius"].map("{:.4f}".format),
        "worst agent": [f"{m:.4f} ({a:.4f}-{b:.4f})" for m, a, b in worst.itertuples(index=False)],
        "mean agent": means["mean_swap_regret"].map("{:.4f}".format),
        "bound": means["bound"].map("{:.3f}".format).replace("nan", ""),
        "ms": means["milliseconds"].map("{:.2f}".format),
    }
    title = (
        f"swap regret per round of {table['agents'].iloc[0]} agents, T = "
        f"{table['rounds'].iloc[0]}: mean over {table['seed'].nunique()} seeds (least-greatest)"
    )
    frame = pd.DataFrame(shown, index=means.index).reset_index()
    return f"{title}\n{frame.to_string(index=False)}"


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs as CSV and the table as a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    rows, figure = out / "covers.csv", out / "covers.png"
    table.to_csv(rows, index=False)
    covers_figure(table).savefig(figure, dpi=150)
    return [rows, figure]
