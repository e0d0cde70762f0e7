"""What the command prints of an audit of bandit logs, and the files that it writes."""

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from regretless.market.core.checkpoint import replacing
from regretless.scenarios.audit.bandit_audit import BanditAudit
from regretless.scenarios.terminal import console, print_plainly
from regretless.scenarios.terminal import table as laid_out

MEASURE_WORDS = {
    "external": "one fixed action",
    "swap": "another for each action",
    "pessimistic": "the same, any untried action",
}
NOTE = (
    "Regret: what the best alternative would have gained per round, as a share of {scale}. Another "
    "for each action: swap (calibrated) regret among the actions that were taken. Any untried "
    "action: pessimistic regret, the greatest that the log allows; the verdict is on it. "
    "Effective: rounds with equal weights that would say as much about an action."
)
MAX_ACTIONS = 12  # that are printed of an overlap table; the least tried


def print_bandit_audit(audit: BanditAudit) -> None:
    """Print, for each decision maker, estimates, overlap and what the verdict means."""
    screen = console()
    for verdict in audit.verdicts.to_dict("records"):
        agent = verdict["agent"]
        print_plainly(screen, _headline(audit, verdict))
        for note in audit.notes[agent]:
            print_plainly(screen, note)
        screen.print()
        print_plainly(screen, _estimates_table(audit, agent, screen.width))
        screen.print()
        print_plainly(screen, _overlap_table(audit, agent, screen.width))
        n_actions = int((audit.overlap["agent"] == agent).sum())
        if n_actions > MAX_ACTIONS:
            noun = action_noun(audit)
            print_plainly(screen, f"({MAX_ACTIONS} least tried of {n_actions} {noun}s)")
        screen.print()
        for sentence in audit.texts[agent]:
            print_plainly(screen, sentence)
        if audit.unknowns[agent]:
            screen.print()
            print_plainly(screen, "What would have to be known:")
            for sentence in audit.unknowns[agent]:
                print_plainly(screen, f"- {sentence}")
        screen.print()
    print_plainly(screen, NOTE.format(scale=scale_words(is_price=audit.is_price)))


def _headline(audit: BanditAudit, verdict: Mapping[Hashable, Any]) -> str:
    """Return the line that names a decision maker, its verdict and what its rounds came to."""
    mean_value = verdict["mean_value"] * verdict["scale"]
    if audit.is_price:
        result = f"mean profit {mean_value:.4g} per round at cost {verdict['cost']:.4g}"
    else:
        result = f"mean loss {-mean_value:.4g} per round"
    return (
        f"{verdict['agent']}: {verdict['verdict']}. {verdict['rounds']:,} rounds, {result}; "
        f"probabilities: {verdict['propensities']}."
    )


def scale_words(*, is_price: bool) -> str:
    """Say what regrets are shares of."""
    if is_price:
        return "the largest revenue of a round (highest price times largest quantity)"
    return "the range of losses"


def action_noun(audit: BanditAudit) -> str:
    """Return what an action of the log is called."""
    return "price" if audit.is_price else "action"


def estimate_cells(audit: BanditAudit, agent: str) -> list[list[str]]:
    """Return a row of texts for each estimate: alternative, estimator, regret, interval, cost."""
    cells = []
    estimates = audit.estimates[audit.estimates["agent"] == agent]
    estimates = estimates.sort_values("measure", key=_measure_order, kind="stable")
    for row in estimates.to_dict("records"):
        interval = f"{row['low']:.4f} to {row['high']:.4f}"
        cost = "" if math.isnan(row["cost"]) else f"{row['cost']:.4g}"
        alternative = MEASURE_WORDS[row["measure"]]
        cells.append([alternative, row["estimator"], f"{row['regret']:.4f}", interval, cost])
    return cells


def _measure_order(measures: "pd.Series[str]") -> "pd.Series[int]":
    order = {name: rank for rank, name in enumerate(MEASURE_WORDS)}
    return measures.map(order)


def estimate_heads(audit: BanditAudit) -> list[str]:
    """Return the heads of the table of estimates; intervals are named by their level."""
    level = 100 * (1 - 2 * audit.verdicts["error_bound"].iloc[0])
    heads = ["alternative", "estimator", "regret", f"{level:g} % interval"]
    return [*heads, "cost"] if audit.is_price else heads


def overlap_cells(audit: BanditAudit, agent: str) -> list[list[str]]:
    """Return a row of texts for each action."""
    cells = []
    for row in audit.overlap[audit.overlap["agent"] == agent].to_dict("records"):
        deviation = row["discrepancy"]
        cells.append(
            [
                row["action"],
                f"{row['taken']:,}",
                f"{row['mean_propensity']:.3f}",
                f"{row['least_propensity']:.2g}",
                f"{100 * row['tried']:.0f} %",
                f"{row['effective_rounds']:,.0f}",
                "" if math.isnan(deviation) else f"{deviation:+.1f}",
            ]
        )
    return cells


def overlap_heads(audit: BanditAudit) -> list[str]:
    """Return the heads of the table of overlap."""
    return [
        action_noun(audit),
        "taken",
        "mean prob.",
        "least",
        "tried",
        "effective",
        "deviation",
    ]


def _estimates_table(audit: BanditAudit, agent: str, width: int) -> Table:
    heads = estimate_heads(audit)
    cells = [row[: len(heads)] for row in estimate_cells(audit, agent)]
    return laid_out(heads, cells, width=width, words=(0, 1))


def _overlap_table(audit: BanditAudit, agent: str, width: int) -> Table:
    cells = overlap_cells(audit, agent)
    if len(cells) > MAX_ACTIONS:
        overlap = audit.overlap[audit.overlap["agent"] == agent].reset_index(drop=True)
        least_tried = sorted(overlap["tried"].nsmallest(MAX_ACTIONS).index)
        cells = [cells[index] for index in least_tried]
    return laid_out(overlap_heads(audit), cells, width=width)


def write_bandit_audit(audit: BanditAudit, folder: Path) -> None:
    """Write the tables into a directory, as CSV, and the texts as ``verdict.txt``."""
    for name, table in audit.tables.items():
        with replacing(folder / f"{name}.csv") as file:
            table.to_csv(file, index=False, lineterminator="\n")
    paragraphs = []
    for agent, sentences in audit.texts.items():
        lines = [*audit.notes[agent], *sentences, *audit.unknowns[agent]]
        paragraphs.append("\n".join(lines))
    with replacing(folder / "verdict.txt") as file:
        file.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8", newline="\n")
