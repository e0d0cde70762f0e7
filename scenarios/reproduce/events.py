"""`reproduce events`: what to condition on, in regret, time and memory.

    coordinates    the paper's vector events: every number of the forecast is unbiased
    losses         scalar events: only what the listed losses would have gained
    calibration    the older recipe: unbiased on every cell of a grid of predictions, and
                   multiaccurate; on the small problem alone, since its cells grow like m^n
    image          predictions kept among the means of s(y) instead of anywhere in the box

Two problems on the four streams of ``streams``: its own (nine powers of three goods), and a small
one (linear losses of two goods, hence two numbers to predict). A cell is the mean over the seeds.
``numbers`` counts the accumulators that the forecaster keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.game.protocols import Forecaster
from regretless.scenarios.reproduce.figure import streams_figure
from regretless.scenarios.reproduce.streams import STREAMS, market, played
from regretless.scenarios.reproduce.workers import collect

PROBLEMS: dict[str, dict[str, Any]] = {
    "nine powers": {},
    "two goods": {"utility": "linear", "parameters": {}},
}
GOODS = {"nine powers": 3, "two goods": 2}
EVENTS: dict[str, dict[str, Any]] = {
    "coordinates": {"kind": "decision-swap"},
    "coordinates, image": {"kind": "decision-swap", "hull": "image"},
    "losses": {"kind": "decision-swap", "events": "losses"},
    "losses, image": {"kind": "decision-swap", "events": "losses", "hull": "image"},
    "calibration": {"kind": "calibration"},
}
CELLS = [
    *(("nine powers", events) for events in EVENTS if events != "calibration"),
    *(("two goods", events) for events in EVENTS if not events.endswith("image")),
]
Run = tuple[str, str, str, int, int]


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(STREAMS) * len(CELLS) * seeds


def one_run(run: Run) -> dict[str, Any]:
    """Play one run: its cell, what ``streams.played`` measures, and the ``numbers`` kept."""
    stream, problem, events, rounds, seed = run
    adversary = STREAMS[stream] | {"outcomes": GOODS[problem]}
    agents = PROBLEMS[problem]
    model, row = played(market(adversary, EVENTS[events], rounds=rounds, seed=seed, **agents))
    cell = {"stream": stream, "problem": problem, "events": events, "seed": seed, "rounds": rounds}
    return cell | row | {"numbers": numbers(model.game.blocks[0].forecaster)}


def numbers(forecaster: Forecaster) -> int:
    """Count the accumulators of a forecaster."""
    events: Any = forecaster.events  # type: ignore[attr-defined]
    return sum(int(np.size(array)) for array in events.arrays.values())


def measure(
    *,
    rounds: int,
    seeds: int,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every cell.

    Parameters
    ----------
    rounds, seeds : int
        Rounds per run, runs per cell.
    jobs, progress : as in ``workers.collect``

    Returns
    -------
    DataFrame
        One row per run, in a fixed order.
    """
    runs = [(s, *cell, rounds, seed) for s, cell, seed in product(STREAMS, CELLS, range(seeds))]
    return collect(one_run, runs, jobs=jobs, progress=progress)


def text(table: pd.DataFrame) -> str:
    """Lay the means out, a row per problem and kind of events."""
    groups = table.groupby(["problem", "events"], sort=False)
    regrets = table.pivot_table(
        index=["problem", "events"], columns="stream", values="swap_regret", sort=False
    )
    costs = groups[["bound", "bound_from_bias", "certificate", "milliseconds"]].mean()
    rows = regrets.join(costs).join(groups["numbers"].first()).reset_index()
    title = (
        f"worst of 20 agents' swap regret per round, T = {table['rounds'].iloc[0]}: "
        f"mean over {table['seed'].nunique()} seeds; bounds and costs over all streams"
    )
    layout = rows.to_string(index=False, float_format=lambda value: f"{value:.4f}", na_rep="none")
    return f"{title}\n{layout}"


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs as CSV and a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    rows, figure = out / "events.csv", out / "events.png"
    table.to_csv(rows, index=False)
    shown = table.assign(forecast=table["problem"] + ", " + table["events"])
    streams_figure(shown).savefig(figure, dpi=150)
    return [rows, figure]
