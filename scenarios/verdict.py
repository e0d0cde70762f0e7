"""The verdict of a run in words: who was better off listening, against what, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table

KINDS = {
    "broadcast": "the broadcast",
    "model": "model",
    "policy": "policy",
    "action": "fixed action",
}


def sentences(verdict: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence per cohort: the broadcast against the best model, and the worst swap.

    Parameters
    ----------
    verdict, agents : DataFrame
        The tables of a run.
    """
    for name, rows in verdict.groupby("cohort", sort=False):
        own, models = rows[rows["kind"] == "broadcast"].iloc[0], rows[rows["kind"] == "model"]
        if not len(models):
            continue
        best = models.sort_values("mean_loss", kind="stable").iloc[0]
        swap = agents.loc[agents["cohort"] == name, "decision_swap_regret"].max()
        worst = "" if np.isnan(swap) else f"; the worst of {own['agents']} would have gained "
        worst += "" if np.isnan(swap) else f"{max(swap, 0.0):.4f} by swapping actions"
        yield _compared(str(name), float(own["mean_loss"]), best) + worst


def _compared(name: str, own: float, best: pd.Series[Any]) -> str:
    """Say what listening cost or saved against a model."""
    share = own / best["mean_loss"] - 1 if best["mean_loss"] > 0 else 0.0
    half = best["gain_half"]
    sure = "" if np.isnan(half) else f" ± {half:.2g}"
    worth = f"worth {best['gain']:+.2g}{sure} a round"
    if abs(share) < 0.0005:
        return f"Listening is as good for {name} as the best model, {best['name']} ({worth})"
    verb = "costs" if share > 0 else "saves"
    return (
        f"Listening {verb} {name} {abs(share):.1%} against the best model, {best['name']} ({worth})"
    )


def stood(block: str, base: str, kept: float, lost: int | None) -> str:
    """Say in which share of the rounds a base was broadcast as it was, and when trust was lost."""
    who = "the models' aggregate" if base == "aggregate" else base
    trust = "trusted throughout" if lost is None else f"trusted in the first {lost:,} rounds"
    trust = trust if lost != 0 else "corrected from the start"
    return f"{block}: the forecast of {who} stood in {kept:.0%} of the rounds, {trust}"


def verdict_table(verdict: pd.DataFrame) -> Table:
    """Lay out what every alternative would have cost each cohort, best first."""
    table = Table(title="Who is better off with what", title_justify="left", expand=False)
    table.box, table.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
    for head in ("cohort", "alternative"):
        table.add_column(head, overflow="fold")
    for head in ("mean\nloss", "worth\na round", "better off\nwith it", "listening\nis worth"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in lines(verdict):
        table.add_row(*map(escape, row))
    return table


def lines(verdict: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each alternative's line, best first, the cohort named once."""
    for name, rows in verdict.groupby("cohort", sort=False):
        for place, (_, row) in enumerate(rows.sort_values("mean_loss", kind="stable").iterrows()):
            yield ["" if place else str(name), *_cells(row)]


def _cells(row: pd.Series[Any]) -> list[str]:
    """Write an alternative, its mean loss, worth, who is better off with it, what listening is."""
    kind = KINDS[str(row["kind"])]
    what = kind if row["kind"] == "broadcast" else f"{kind} {row['name']}"
    numbers = [what, f"{row['mean_loss']:.4f}", f"{row['worth']:.4g}"]
    if row["kind"] == "broadcast":
        return [*numbers, "", ""]
    half = "" if np.isnan(row["gain_half"]) else f" ± {row['gain_half']:.2g}"
    return [*numbers, f"{row['better_off']} of {row['agents']}", f"{row['gain']:+.3g}{half}"]
