"""What the command prints of an audit of bandit logs, and the files that it writes."""

import math
from pathlib import Path

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


def print_bandit_audit(found: BanditAudit) -> None:
    """Print, for each decision maker, estimates, overlap and what the verdict means."""
    screen = console()
    for verdict in found.verdicts.to_dict("records"):
        agent = verdict["agent"]
        value = "profit" if found.is_price else "loss"
        mean = -verdict["mean_value"] if value == "loss" else verdict["mean_value"]
        mean *= verdict["scale"]
        head = f"{agent}: {verdict['verdict']}. {verdict['rounds']:,} rounds, mean {value} "
        head += f"{mean:.4g} per round"
        if found.is_price:
            head += f" at cost {verdict['cost']:.4g}"
        print_plainly(screen, f"{head}; probabilities: {verdict['propensities']}.")
        screen.print()
        print_plainly(screen, _estimates(found, agent, screen.width))
        screen.print()
        print_plainly(screen, _overlap(found, agent, screen.width))
        screen.print()
        for sentence in found.texts[agent]:
            print_plainly(screen, sentence)
        if found.unknowns[agent]:
            screen.print()
            print_plainly(screen, "What would have to be known:")
            for sentence in found.unknowns[agent]:
                print_plainly(screen, f"- {sentence}")
        screen.print()
    print_plainly(screen, NOTE.format(scale=scale_words(is_price=found.is_price)))


def scale_words(*, is_price: bool) -> str:
    """Say what regrets are shares of."""
    if is_price:
        return "the largest revenue of a round (highest price times largest quantity)"
    return "the range of losses"


def estimate_cells(found: BanditAudit, agent: str) -> list[list[str]]:
    """Return a row of texts for each estimate: alternative, estimator, regret, interval, cost."""
    rows = []
    own = found.estimates[found.estimates["agent"] == agent]
    for row in own.sort_values("measure", key=_measure_order, kind="stable").to_dict("records"):
        interval = f"{row['low']:.4f} to {row['high']:.4f}"
        cost = "" if math.isnan(row["cost"]) else f"{row['cost']:.4g}"
        words = MEASURE_WORDS[row["measure"]]
        rows.append([words, row["estimator"], f"{row['regret']:.4f}", interval, cost])
    return rows


def _measure_order(measures: "pd.Series[str]") -> "pd.Series[int]":
    order = {name: place for place, name in enumerate(MEASURE_WORDS)}
    return measures.map(order)


def interval_head(found: BanditAudit) -> str:
    """Name the column of intervals by their level."""
    return f"{100 * (1 - 2 * found.verdicts['error_bound'].iloc[0]):g} % interval"


def overlap_cells(found: BanditAudit, agent: str) -> list[list[str]]:
    """Return a row of texts for each action."""
    rows = []
    for row in found.overlap[found.overlap["agent"] == agent].to_dict("records"):
        deviation = row["discrepancy"]
        rows.append(
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
    return rows


def overlap_heads(found: BanditAudit) -> list[str]:
    """Return the heads of the table of overlap."""
    word = "price" if found.is_price else "action"
    return [word, "taken", "mean prob.", "least", "tried", "effective", "deviation"]


def _estimates(found: BanditAudit, agent: str, width: int) -> Table:
    heads = ["alternative", "estimator", "regret", interval_head(found), "cost"]
    return laid_out(heads, estimate_cells(found, agent), width=width, words=(0, 1))


def _overlap(found: BanditAudit, agent: str, width: int) -> Table:
    rows = overlap_cells(found, agent)
    if len(rows) > MAX_ACTIONS:
        own = found.overlap[found.overlap["agent"] == agent].reset_index(drop=True)
        least_tried = sorted(own["tried"].nsmallest(MAX_ACTIONS).index)
        rows = [rows[place] for place in least_tried]
    return laid_out(overlap_heads(found), rows, width=width)


def write_bandit_audit(found: BanditAudit, out: Path) -> None:
    """Write the tables into a new directory, as CSV, and the texts as ``verdict.txt``."""
    out.mkdir(parents=True)
    for name, table in found.tables.items():
        with replacing(out / f"{name}.csv") as file:
            table.to_csv(file, index=False, lineterminator="\n")
    paragraphs = []
    for agent, sentences in found.texts.items():
        paragraphs.append("\n".join([*sentences, *found.unknowns[agent]]))
    with replacing(out / "verdict.txt") as file:
        file.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8", newline="\n")
