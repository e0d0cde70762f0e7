"""`reproduce streams`: the worst agent's swap regret, forecast by forecast, on four streams.

Twenty agents with five actions each (shares drawn uniformly from the simplex of three goods, rho
0.5, 1 or 2) best-respond to one forecast in the exact basis of nine powers. The streams:

    iid        uniform on the cube
    switching  a mean drawn from the cube, kept for 400 rounds, with noise
    cyclic     sine waves of period 200, a third of a period apart
    adaptive   the breaker at strength 1/2: away from the mean of the forecast's mixture

A cell is the mean over the seeds with their range; a seed draws population and stream.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.reproduce.figure import streams_figure
from regretless.scenarios.reproduce.workers import collect
from regretless.scenarios.spec.scenario import validated

STREAMS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid"},
    "switching": {"kind": "switching", "length": 400, "concentration": 20.0},
    "cyclic": {"kind": "cyclic", "period": 200.0},
    "adaptive": {"kind": "breaker", "strength": 0.5},
}
FORECASTS: dict[str, dict[str, Any]] = {
    "running mean": {"kind": "running-mean"},
    "exponential smoothing": {"kind": "exponential-smoothing"},
    "last value": {"kind": "last-value"},
    "decision-swap, exponential": {"kind": "decision-swap", "weights": "exponential"},
    "decision-swap, adaptive": {"kind": "decision-swap", "weights": "adaptive"},
}


COHORT: dict[str, Any] = {
    "name": "agents",
    "utility": "ces",
    "count": 20,
    "actions": 5,
    "parameters": {"rho": {"choices": [0.5, 1.0, 2.0]}},
    "measures": ["external", "swap"],
}


def market(
    adversary: dict[str, Any], forecaster: dict[str, Any], *, rounds: int, seed: int, **cohort: Any
) -> Scenario:
    """Return the scenario of one stream and forecast; ``cohort`` changes the agents' table."""
    raw = {
        "name": "table",
        "rounds": rounds,
        "seed": seed,
        "adversary": {"outcomes": 3} | adversary,
        "forecaster": forecaster,
        "cohort": [COHORT | cohort],
    }
    return Scenario(validated(raw, origin=Path()))


def scenario(stream: str, forecast: str, *, rounds: int, seed: int) -> Scenario:
    """Return the scenario of one cell and seed."""
    return market(STREAMS[stream], FORECASTS[forecast], rounds=rounds, seed=seed)


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(STREAMS) * len(FORECASTS) * seeds


def timed(chosen: Scenario) -> tuple[MarketModel, float]:
    """Play a scenario to its end without logs; the model, and milliseconds per round."""
    rounds = chosen.spec.rounds
    model = chosen.build(log_every=rounds)
    model.stream_logs_to(lambda _: None)
    model.run(1)  # compiles the kernels, outside the timing
    started = perf_counter()
    model.run()
    return model, 1e3 * (perf_counter() - started) / max(rounds - 1, 1)


def played(chosen: Scenario) -> tuple[MarketModel, dict[str, Any]]:
    """Play a scenario to its end without logs.

    Returns
    -------
    MarketModel
        After its last round.
    dict
        Worst agent's ``swap_regret`` with its ``bound`` and ``bound_from_bias``, the mean
        positive ``certificate``, and ``milliseconds`` per round.
    """
    model, milliseconds = timed(chosen)
    agents = model.agents_frame()
    worst = agents.iloc[int(agents["swap_regret"].to_numpy().argmax())]
    slack = getattr(model.game.blocks[0].forecaster, "slack", float("nan"))
    return model, {
        "swap_regret": worst["swap_regret"],
        "bound": worst["bound"],
        "bound_from_bias": worst["bound_from_bias"],
        "certificate": slack / chosen.spec.rounds,
        "milliseconds": milliseconds,
    }


def one_run(stream: str, forecast: str, rounds: int, seed: int) -> dict[str, Any]:
    """Play one run: its cell, and what ``played`` measures."""
    cell = {"stream": stream, "forecast": forecast, "seed": seed, "rounds": rounds}
    return cell | played(scenario(stream, forecast, rounds=rounds, seed=seed))[1]


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
    runs = [(s, f, rounds, seed) for s, f, seed in product(STREAMS, FORECASTS, range(seeds))]
    return collect(_one_of, runs, jobs=jobs, progress=progress)


def _one_of(run: tuple[str, str, int, int]) -> dict[str, Any]:
    return one_run(*run)


def text(table: pd.DataFrame) -> str:
    """Lay the table out: streams by forecasts, mean (least to greatest) over the seeds."""
    groups = table.groupby(["stream", "forecast"], sort=False)
    regrets = groups["swap_regret"].agg(["mean", "min", "max"])
    cells_ = regrets.apply(lambda r: f"{r['mean']:.4f} ({r['min']:.4f}-{r['max']:.4f})", axis=1)
    grid = cells_.unstack(sort=False)  # noqa: PD010 - two index levels, nothing to aggregate
    beside = ["bound", "bound_from_bias", "certificate", "milliseconds"]
    speed = groups[beside].mean().reset_index()
    ours = speed[speed["forecast"].str.startswith("decision-swap")]
    title = (
        f"worst of 20 agents' swap regret per round, T = {table['rounds'].iloc[0]}: "
        f"mean over {table['seed'].nunique()} seeds (least-greatest)"
    )
    lines = [
        title,
        grid.to_string(),
        "",
        "decision-swap: bounds, mean positive certificate, milliseconds per round",
        ours.to_string(index=False, float_format=lambda value: f"{value:.2g}"),
    ]
    return "\n".join(lines)


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs as CSV and the table as a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    rows, figure = out / "streams.csv", out / "streams.png"
    table.to_csv(rows, index=False)
    streams_figure(table).savefig(figure, dpi=150)
    return [rows, figure]
