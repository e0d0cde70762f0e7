"""The verdict of a run in words: what agents lost, what else would have cost, the worst regret.

Every number is one of the tables ``verdict`` and ``agents``, rounded as it is printed there. Losses
count as alike where they are printed alike, or where the interval of their difference holds zero.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table

from regretless.market.logs.welfare import agents_in
from regretless.scenarios.digits import decimals
from regretless.scenarios.logs.curves import leading_regret

MANY = 3  # cohorts, of more of whom the words would be a page
LEAST = 5e-5  # what is smaller would be printed as zero
KINDS = {
    "broadcast": "what they did",
    "model": "model",
    "policy": "policy",
    "action": "best fixed action",
}


def sentences(verdict: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    """Yield two sentences per cohort: its loss beside the best alternatives', and its worst regret.

    Of more than ``MANY`` cohorts three are said: who fares best and worst beside the best
    alternative to what they did, by losses in [0, 1], and the worst regret of all.

    Parameters
    ----------
    verdict, agents : DataFrame
        The tables of a run.
    """
    cohorts = [rows for _, rows in verdict.groupby("cohort", sort=False)]
    if len(cohorts) > MANY:
        yield from _in_short(cohorts, agents)
        return
    for rows in cohorts:
        best = best_of_each(rows).iloc[1:]
        policy = (best["kind"] == "policy") & (best["mean_loss"] >= rows["mean_loss"].iloc[0])
        own = agents[agents["cohort"] == rows["cohort"].iloc[0]]
        yield " ".join([_lost(rows, best[~policy], agents, "", ":"), *_regretted(own)])


def _in_short(cohorts: list[pd.DataFrame], agents: pd.DataFrame) -> Iterator[str]:
    """Yield who fares best and who worst beside the best alternative, and the worst regret."""
    best = [best_of_each(rows).iloc[1:].nsmallest(1, "mean_loss") for rows in cohorts]
    pairs = zip(cohorts, best, strict=True)
    gains = [other["mean_loss"].item() - rows["mean_loss"].iloc[0] for rows, other in pairs]
    first = f"Best off of {len(cohorts)} cohorts, beside the best alternative of each, are"
    for word, place in ((first, np.argmax(gains)), ("Worst off are", np.argmin(gains))):
        yield f"{word} {_lost(cohorts[place], best[place], agents, ', who', ',')}"
    regret = leading_regret(agents)
    if regret.notna().any():
        yield from _regretted(agents, f", one of {agents['cohort'].iloc[int(regret.argmax())]}")


def _lost(
    rows: pd.DataFrame, others: pd.DataFrame, agents: pd.DataFrame, who: str, then: str
) -> str:
    """Say what a cohort lost, and whether that is more than with the others."""
    own = rows.iloc[0]
    heard = agents.loc[agents["cohort"] == own["cohort"], "bound_from_bias"].notna().any()
    how = "by listening" if heard else "by their own rules"
    told = ", ".join(_compared(own, row, rows) for _, row in others.iterrows())
    return f"{own['cohort']}{who} lost {own['mean_loss']:.4f} a round {how}{then} {told}."


def best_of_each(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a cohort did and, of the alternatives of each kind, the one that lost least."""
    ranked = rows.sort_values("mean_loss", kind="stable").drop_duplicates("kind")
    return rows.loc[ranked.index.sort_values()]


def _compared(own: "pd.Series[Any]", other: "pd.Series[Any]", rows: pd.DataFrame) -> str:
    """Say whether a cohort lost more or less than with an alternative."""
    losses = [f"{row['mean_loss']:.4f}" for row in (own, other)]
    if losses[0] == losses[1] or abs(other["gain"]) <= other["gain_half"]:
        word = "about as much as"
    else:
        word = "less than" if own["mean_loss"] < other["mean_loss"] else "more than"
    models = int((rows["kind"] == "model").sum())
    what = {
        "model": f"the best of {models} models, {other['name']}" if models > 1 else other["name"],
        "policy": f"the policy {other['name']}",
        "action": f"the best fixed action{' of each' if own['agents'] > 1 else ''}",
    }
    return f"{word} with {what[other['kind']]} ({losses[1]})"


def _regretted(agents: pd.DataFrame, of: str = "") -> Iterator[str]:
    """Say the worst agent's regret per round, by the name of the measure."""
    regret, many = leading_regret(agents), agents_in(agents)
    if regret.notna().any():
        kept = agents["decision_swap_regret"].iloc[int(regret.argmax())]
        measure = "Swap regret" if np.isnan(kept) else "Decision swap regret"
        whom = f"the worst of {many:,} agents{of}" if many > 1 else "the agent"
        worst = regret.max()
        size = f"{worst:.4f}" if worst >= LEAST else "less than 0.0001"
        yield f"{measure} of {whom}: {size} per round."


def stood(block: str, base: str, kept: float, lost: int | None) -> str:
    """Say in which share of the rounds a base was broadcast as it was, and from when it was not."""
    who = "the models' weighted mean" if base == "aggregate" else base
    if lost == 0:
        then = "and was corrected from the start"
    else:
        when = "" if lost is None else f" before round {lost + 1:,}"
        then = f"and was not corrected{when}"
    return f"{block}: {who} was broadcast as it was in {kept:.0%} of the rounds, {then}"


def verdict_table(verdict: pd.DataFrame) -> Table:
    """Lay out what every cohort did beside the best alternative of each kind, best first."""
    best = [best_of_each(rows) for _, rows in verdict.groupby("cohort", sort=False)]
    table = Table(title="What else they could have done", title_justify="left", expand=False)
    table.box, table.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
    table.add_column("cohort", overflow="fold", max_width=14)
    table.add_column("best of its kind", overflow="fold")
    for head in ("mean\nloss", "better off\nwith it", "what they did\nis worth, a round"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, what, loss, _, better, gain in lines(pd.concat(best)):
        table.add_row(*map(escape, (name, what, loss, better, gain)))
    return table


def lines(verdict: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each alternative's line, best first, the cohort named once."""
    cohorts = [rows for _, rows in verdict.groupby("cohort", sort=False)]
    places = {
        name: max(decimals(rows[name], digits) for rows in cohorts)
        for name, digits in {"worth": 4, "gain": 3}.items()
    }
    for rows in cohorts:
        for place, (_, row) in enumerate(rows.sort_values("mean_loss", kind="stable").iterrows()):
            yield ["" if place else str(row["cohort"]), *_cells(row, places)]


def _cells(row: "pd.Series[Any]", places: dict[str, int]) -> list[str]:
    """Write an alternative, its mean loss, worth, who is better off with it, and by how much.

    ``places`` are the decimals of worth and gain, the same for all rows of a table.
    """
    kind = KINDS[str(row["kind"])]
    what = f"{kind} {row['name']}" if row["kind"] in {"model", "policy"} else kind
    worth, gain = (round(row[name], at) + 0.0 for name, at in places.items())  # no -0
    numbers = [what, f"{row['mean_loss']:.4f}", f"{worth:.{places['worth']}f}"]
    if row["kind"] == "broadcast":
        return [*numbers, "", ""]
    at = places["gain"]
    half = "" if np.isnan(row["gain_half"]) else f" ± {row['gain_half']:.{at}f}"
    return [*numbers, f"{row['better_off']:,} of {row['agents']:,}", f"{gain:+.{at}f}{half}"]
