"""What a run says at its end: a row per cohort, and where the logs lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from regretless.forecaster.anchored import AnchoredPrediction
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.game.network import by_distance
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.logs.exploitability import notes
from regretless.scenarios.verdict import sentences, stood, verdict_table

WIDTH = 136  # the columns beside the cohorts' names

REGRETS = {
    "external": "external_regret",
    "swap": "swap_regret",
    "decision swap": "decision_swap_regret",
}


def print_summary(scenario: Scenario, model: MarketModel, out: Path) -> None:
    """Print the closing table of a run."""
    agents = model.agents_frame()
    console, room = _fitting(agents)
    title = f"{scenario.spec.name}, {model.played} rounds"
    for table in closing_tables(agents, title=title, room=room):
        console.print(table)
    console.print(
        "Regret per round, losses in [0, 1]: mean over agents and worst agent. Bounds on decision "
        "swap regret, worst agent: from measured biases; with probability 0.99 in all rounds, from "
        "their measured variation and the theorem's. "
        f"Exploitability: worst agent, {TOLERANCE} of swap regret forgiven.",
        style="dim",
    )
    for line in () if scenario.table is None else scenario.table.told:
        console.print(line)
    rounds = model.played
    if scenario.table is not None and rounds > len(scenario.table.outcomes):
        console.print(f"The {len(scenario.table.outcomes)} data rows were replayed in a loop.")
    console.print(f"Forecast: {broadcast(model)}.")
    for block in model.game.blocks:
        if isinstance(block.forecaster, AnchoredPrediction):
            base, own = scenario.spec.forecaster.base.kind, block.forecaster
            console.print(f"{stood(block.name, base, own.kept / max(own.time, 1), own.lost)}.")
    if any(model.game.followed):
        verdict = model.verdict_frame()
        console.print(verdict_table(verdict))
        for line in sentences(verdict, agents):
            console.print(f"{line}.")
    for line in remarks(model, agents):
        console.print(f"{line}.")
    console.print(f"Logs: {out}", soft_wrap=True)


def remarks(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield what is to be said beside the tables, a line each."""
    if model.game.market is not None and (told := model.game.market.told()):
        yield told
    yield from (guarantee.note for guarantee in model.guarantees if guarantee.note)
    yield from (*worst_windows(model), *notes(model, agents), *heard(agents))


def heard(agents: pd.DataFrame) -> Iterator[str]:
    """Yield a line per cohort on regret by distance from the forecaster, where that is told."""
    if "distance" not in agents:
        return
    for name, rows in by_distance(agents).groupby("cohort", sort=False):
        hops = rows["distance"].astype(object).where(rows["distance"].notna(), "never")
        parts = [
            f"{hop}: {figure(mean, '-')} / {figure(worst, '-')} ({count})"
            for hop, mean, worst, count in zip(
                hops, rows["regret_mean"], rows["regret_worst"], rows["agents"], strict=True
            )
        ]
        yield f"{name}: regret by distance, mean / worst (agents): {', '.join(parts)}"


def broadcast(model: MarketModel) -> str:
    """Describe the blocks of the forecast: basis, size, and error where there is one."""
    blocks = [
        f"{block.name} {block.basis.size}"
        + (f" (error {block.basis.error:.2g})" if block.basis.error else "")
        for block in model.game.blocks
    ]
    total = sum(block.basis.size for block in model.game.blocks)
    return f"{total} numbers a round, {', '.join(blocks)}"


def _fitting(agents: pd.DataFrame) -> tuple[Console, int | None]:
    """Return a console, and how long a line may be if its screen is narrower than the table."""
    console = Console(markup=False, highlight=False)
    width = WIDTH + max(len(name) for name in ("cohort", *agents["cohort"].unique()))
    if console.width >= width:
        return console, None
    if console.is_terminal:
        return console, console.width
    return Console(markup=False, highlight=False, width=width), None  # a pipe has no screen


def closing_tables(agents: pd.DataFrame, *, title: str, room: int | None = None) -> list[Table]:
    """Lay out one row per cohort of an ``agents`` table, in several tables where room is short.

    Parameters
    ----------
    room : int, optional
        Characters in a line; without it all columns stand side by side in one table.
    """
    cohorts = agents.groupby("cohort", sort=False)
    cells = [_cells(rows) for _, rows in cohorts]
    names = [escape(str(name)) for name, _ in cohorts]
    first = min(max(map(len, ["cohort", *names])), room // 3) if room else None
    left, parts = 0, list[list[str]]()
    for head in cells[0]:
        width = 1 + max(map(len, [*head.split("\n"), *(row[head] for row in cells)]))
        if not parts or (room and first is not None and left + width > room):
            left = first + 2 if first is not None else 0
            parts.append([])
        parts[-1].append(head)
        left += width
    tables = []
    for i, heads in enumerate(parts):
        table = Table(title=None if i else title, title_justify="left", expand=False)
        table.box, table.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
        table.add_column("cohort", no_wrap=room is None, max_width=first, overflow="fold")
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for name, row in zip(names, cells, strict=True):
            table.add_row(name, *(row[head] for head in heads))
        tables.append(table)
    return tables


def _cells(rows: pd.DataFrame) -> dict[str, str]:
    """Write what is said of a cohort, by the head of its column."""
    cells = {"agents": str(len(rows)), "mean\nloss": f"{rows['mean_loss'].mean():.4f}"}
    for name, column in REGRETS.items():
        head = name.replace(" ", "\n")
        cells[f"{head}\nmean"] = figure(rows[column].mean(), "-")
        cells[f"{head}\nworst"] = figure(rows[column].max(), "-")
    return cells | {
        "bound\nfrom bias": figure(rows["bound_from_bias"].max(), "none"),
        "from\nvariation": promise(rows["bound_from_variation"].max()),
        "bound": promise(rows["bound"].max()),
        "exploit-\nability": figure(rows["exploitability"].max(), "-"),
    }


def worst_windows(model: MarketModel) -> Iterator[str]:
    """Yield a line per cohort on its worst window, where regret was taken over windows."""
    windows = model.journal.windows
    for name, worst in windows.worst.items() if windows is not None else ():
        yield (
            f"{name}: worst window regret {worst.regret:.4f} "
            f"(agent {worst.agent}, rounds {worst.first} to {worst.last})"
        )


def mean_and_worst(values: pd.Series[float]) -> str:
    """Write mean and maximum; a dash where the measure was not kept."""
    if values.isna().all():
        return "-"
    return f"{values.mean():.4f} / {values.max():.4f}"


def promise(value: float) -> str:
    """Write a bound on regrets of at most 1, or that there is none, or none that says anything."""
    told = figure(value, "none", 2)
    return f"none useful ({told})" if value >= 1 else told


def figure(value: float, absent: str, digits: int = 4) -> str:
    """Write a number, or what stands for its absence."""
    return absent if np.isnan(value) else f"{value:.{digits}f}"
