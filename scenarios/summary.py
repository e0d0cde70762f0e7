"""What a run says at its end: a row per cohort, and where the logs lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from forecaster.anchoring import AnchoredPrediction
from market.model import MarketModel
from market.transcript import TOLERANCE
from scenarios.build import Scenario
from scenarios.exploitation import notes

WIDTH = 108  # the columns beside the cohorts' names

REGRETS = {
    "external": "external_regret",
    "swap": "swap_regret",
    "decision swap": "decision_swap_regret",
}


def print_summary(scenario: Scenario, model: MarketModel, out: Path) -> None:
    """Print the closing table of a run.

    Parameters
    ----------
    scenario : Scenario
    model : MarketModel
        After its last round.
    out : Path
        The run directory.
    """
    agents = model.agents_frame()
    console = Console(markup=False, highlight=False)
    width = WIDTH + max(len(name) for name in ("cohort", *agents["cohort"].unique()))
    if console.width < width:
        console = Console(markup=False, highlight=False, width=width)
    console.print(summary_table(agents, title=f"{scenario.spec.name}, {model.played} rounds"))
    console.print(
        "Regret per round, losses in [0, 1]: mean over agents and worst agent. Bounds on decision "
        "swap regret, worst agent: the theorem's, with probability 0.99, and from measured biases. "
        f"Exploitability: worst agent, {TOLERANCE} of swap regret forgiven.",
        style="dim",
    )
    if scenario.table is not None and scenario.table.clipped:
        console.print(f"{scenario.table.clipped:.1%} of the data rows were clipped into the scale.")
    rounds = model.played
    if scenario.table is not None and rounds > len(scenario.table.outcomes):
        console.print(f"The {len(scenario.table.outcomes)} data rows were replayed in a loop.")
    console.print(f"Forecast: {broadcast(model)}.")
    for block in model.game.blocks:
        if isinstance(block.forecaster, AnchoredPrediction):
            base, share = scenario.spec.forecaster.base.kind, block.forecaster.kept / rounds
            console.print(
                f"{block.name}: the forecast of {base} stood in {share:.0%} of the rounds."
            )
    for guarantee in model.guarantees:
        if guarantee.note:
            console.print(f"{guarantee.note}.")
    for note in notes(model, agents):
        console.print(f"{note}.")
    console.print(f"Logs: {out}", soft_wrap=True)


def broadcast(model: MarketModel) -> str:
    """Describe the blocks of the forecast: basis, size, and error where there is one."""
    blocks = [
        f"{block.name} {block.basis.size}"
        + (f" (error {block.basis.error:.2g})" if block.basis.error else "")
        for block in model.game.blocks
    ]
    total = sum(block.basis.size for block in model.game.blocks)
    return f"{total} numbers a round, {', '.join(blocks)}"


def summary_table(agents: pd.DataFrame, *, title: str) -> Table:
    """Lay out one row per cohort of an ``agents`` table."""
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=False
    )
    table.add_column("cohort", no_wrap=True)
    split = [name.replace(" ", "\n") for name in REGRETS]
    measured = [f"{name}\n{which}" for name in split for which in ("mean", "worst")]
    for name in (
        "agents",
        "mean\nloss",
        *measured,
        "bound",
        "bound\nfrom bias",
        "exploit-\nability",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for cohort, rows in agents.groupby("cohort", sort=False):
        regrets = [rows[column] for column in REGRETS.values()]
        table.add_row(
            escape(str(cohort)),
            str(len(rows)),
            f"{rows['mean_loss'].mean():.4f}",
            *(figure(value, "-") for regret in regrets for value in (regret.mean(), regret.max())),
            figure(rows["bound"].max(), "none", 2),
            figure(rows["bound_from_bias"].max(), "none"),
            figure(rows["exploitability"].max(), "-"),
        )
    return table


def mean_and_worst(values: pd.Series[float]) -> str:
    """Write mean and maximum; a dash where the measure was not kept."""
    if values.isna().all():
        return "-"
    return f"{values.mean():.4f} / {values.max():.4f}"


def figure(value: float, absent: str, digits: int = 4) -> str:
    """Write a number, or what stands for its absence."""
    return absent if np.isnan(value) else f"{value:.{digits}f}"
