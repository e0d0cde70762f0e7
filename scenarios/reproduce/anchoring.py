"""`reproduce anchoring`: what a base model gains and costs, by the width of the dead zone.

The market of ``streams`` and a fifth stream, ``drifting``: a mean that walks at random (step 0.01
a round) with noise. A base model alone, the plain forecaster, and the forecaster anchored at that
base with dead zones z: small zones follow the plain forecaster, wide ones the base.

    benign     iid, drifting: wanted at most 1.2 times the base's regret, plus 0.002
    hostile    switching, cyclic, adaptive: at most 1.2 times the plain forecaster's, plus 0.002

A cell is the mean over the seeds; ``wanted`` applies that rule to the means of the same table.
``kept`` is the share of the rounds in which the base's forecast was broadcast as it was. Beside
every anchored regret stand its bounds, means over the seeds too: the theorem's (``bound``, the dead
zone's constant in it) and the one from the run's own biases (``bound_from_bias``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.forecaster.anchored import AnchoredPrediction
from regretless.scenarios.reproduce.anchoring_figure import anchoring_figure
from regretless.scenarios.reproduce.streams import STREAMS, market, played
from regretless.scenarios.reproduce.workers import collect

BENIGN: dict[str, dict[str, Any]] = {
    "iid": STREAMS["iid"],
    "drifting": {"kind": "drifting", "step": 0.01, "concentration": 20.0},
}
HOSTILE = {name: stream for name, stream in STREAMS.items() if name not in BENIGN}
ALL = BENIGN | HOSTILE
BASES = ("running-mean", "exponential-smoothing")
ZONES = (0.25, 0.5, 1.0, 2.0)
FACTOR, MARGIN = 1.2, 0.002

MEANS = ["swap_regret", "kept", "bound", "bound_from_bias"]
PLAIN = ("none", None)
CELLS: list[tuple[str, float | None]] = [
    PLAIN,
    *((base, None) for base in BASES),
    *product(BASES, ZONES),
]
Run = tuple[str, str, float | None, int, int]


def forecaster(base: str, zone: float | None) -> dict[str, Any]:
    """Return the [forecaster] table of a cell; without a zone the base predicts alone."""
    if (base, zone) == PLAIN:
        return {"kind": "decision-swap"}
    if zone is None:
        return {"kind": base}
    return {"kind": "decision-swap", "base": base, "dead_zone": zone}


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(ALL) * len(CELLS) * seeds


def one_run(run: Run) -> dict[str, Any]:
    """Play one run: its cell, what ``streams.played`` measures, and the share ``kept``."""
    stream, base, zone, rounds, seed = run
    model, row = played(market(ALL[stream], forecaster(base, zone), rounds=rounds, seed=seed))
    player = model.game.blocks[0].forecaster
    kept = player.kept / rounds if isinstance(player, AnchoredPrediction) else np.nan
    cell = {"stream": stream, "base": base, "zone": np.nan if zone is None else zone}
    return cell | {"seed": seed, "rounds": rounds, "kept": kept} | row


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
    runs = [(s, *cell, rounds, seed) for s, cell, seed in product(ALL, CELLS, range(seeds))]
    return collect(one_run, runs, jobs=jobs, progress=progress)


def curve(table: pd.DataFrame) -> pd.DataFrame:
    """Put every anchored cell beside its base, the plain forecaster and what is wanted.

    Returns
    -------
    DataFrame
        One row per stream, base and zone: mean ``regret``, ``alone`` (the base), ``plain``,
        ``wanted``, ``kept``, ``met``, ``bound`` and ``bound_from_bias``.
    """
    groups = table.groupby(["stream", "base", "zone"], sort=False, dropna=False)
    means = groups[MEANS].mean().reset_index()
    unanchored = means[means["zone"].isna()]
    single = dict(
        zip(
            zip(unanchored["stream"], unanchored["base"], strict=True),
            unanchored["swap_regret"],
            strict=True,
        )
    )
    rows: pd.DataFrame = means[means["zone"].notna()].rename(columns={"swap_regret": "regret"})
    rows["alone"] = [single[cell] for cell in zip(rows["stream"], rows["base"], strict=True)]
    rows["plain"] = [single[s, PLAIN[0]] for s in rows["stream"]]
    judged_by = np.where(rows["stream"].isin(list(BENIGN)), rows["alone"], rows["plain"])
    rows["wanted"] = FACTOR * judged_by + MARGIN
    rows["met"] = rows["regret"] <= rows["wanted"]
    return rows.reset_index(drop=True)


def text(table: pd.DataFrame) -> str:
    """Lay the curve out."""
    title = (
        f"worst of 20 agents' swap regret per round, T = {table['rounds'].iloc[0]}: "
        f"mean over {table['seed'].nunique()} seeds"
    )
    columns = ["stream", "base", "zone", "regret", "alone", "plain", "wanted", "met", "kept"]
    rows = curve(table)[[*columns, "bound", "bound_from_bias"]]
    return f"{title}\n{rows.to_string(index=False, float_format=lambda value: f'{value:.4f}')}"


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs and the curve as CSV and a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    runs, means, figure = (out / f"{name}" for name in ("runs.csv", "curve.csv", "anchoring.png"))
    table.to_csv(runs, index=False)
    curve(table).to_csv(means, index=False)
    anchoring_figure(curve(table)).savefig(figure, dpi=150)
    return [runs, means, figure]
