"""A run in words: average losses, alternatives in hindsight with their differences, and regrets.

Every number is one of the tables ``verdict`` and ``agents``. Losses and regrets are averages per
round, of losses in [0, 1]. A difference with an interval that contains 0 is told as none found; no
sentence says that two losses are equal.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import agents_in, mean_of
from regretless.market.regret.inference import MIN_EFFECTIVE_ROUNDS, MIN_ROUNDS
from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.terminal import decimals

Row = dict[str, Any]
MANY = 3  # cohorts, of more of whom only the extremes are told
COARSE = 0.05  # a bound below which two decimals say too little
NOTHING = ">= 1"  # a bound on what is at most 1 anyway
REGRETS = {
    "external": "external_regret",
    "swap": "swap_regret",
    "decision swap": "decision_swap_regret",
}
NOT_NEEDED = "no correction was needed, and the bound without correction holds"
BEFORE, UNCORRECTED = "before the run", "without correction"  # of a reference
GIVEN_VARIATION = "given the variation"
TRUSTED = "trusted"  # in place of a bound that is the regret itself
BOUNDS = {
    "given the biases": "bound_from_bias",
    GIVEN_VARIATION: "bound_from_variation",
    BEFORE: "bound",
}
DEFINITIONS = {
    "Loss": "per round, in [0, 1]: 0 is the best possible round, 1 the worst.",
    "Difference": (
        "mean loss with the alternative minus mean loss as played; positive if the play was "
        "better. The 95 % intervals hold for all alternatives (and cohorts) at once and assume "
        "stationary outcomes. Outcomes are taken as they were realised. The best fixed action of "
        "each agent is chosen in hindsight, which favours it."
    ),
    "External regret": "average loss per round that the best fixed action would have avoided.",
    "Swap regret": (
        "average loss per round that an agent would have avoided by replacing each of its actions "
        "with the best other action in hindsight."
    ),
    "Decision swap regret": "the same, where a replacement may also be a policy.",
    "Bounds": (
        "on the worst decision swap regret of a cohort. Given the biases: from the measured "
        "errors of the forecast. Given the variation, and before the run: by the theorem, with "
        "probability 0.99 in all rounds at once. Without correction: by the theorem, while the "
        "models' forecast is broadcast as it is. Given the variation nothing is bounded then: "
        f"'{TRUSTED}' stands in place of the regret itself."
    ),
    "Exploitability": (
        "the maximum surplus per round, over commitment, that a leader with payoffs in [0, 1] "
        f"could have extracted from an agent. Swap regret up to {TOLERANCE} is tolerated."
    ),
    "Models": (
        "the number in a name is the model's rate or forgetting: smoothing-0.2 is exponential "
        "smoothing with rate 0.2, seasonal-0.2 the same within each season, least-squares-0.99 "
        "forgets 1 % per round."
    ),
}


def sentences(verdict: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    """Yield a paragraph per cohort; of more than ``MANY`` cohorts one on the extremes."""
    cohorts = [rows for _, rows in apart(verdict).groupby("cohort", sort=False)]
    if len(cohorts) > MANY:
        yield " ".join([*_extremes(cohorts, agents), *_worst(agents)])
        return
    for rows in cohorts:
        others = (compared(row, rows) for row in best_of_each(rows))
        own = agents[agents["cohort"] == rows["cohort"].iloc[0]]
        yield " ".join([played(rows, own), *others, *_worst(own)])


def apart(verdict: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the cohorts, without those of everybody."""
    return verdict[verdict["cohort"] != EVERYBODY] if len(verdict) else verdict


def assumed(verdict: pd.DataFrame) -> Iterator[str]:
    """Say what the intervals of a verdict assume, and how many are too narrow to trust."""
    known = verdict[verdict["low"].notna()]
    if len(known):
        yield "intervals: simultaneous over all alternatives, stationary outcomes assumed"
    elif len(verdict):
        yield f"no intervals: they take at least {MIN_ROUNDS} rounds"
    if few := int((known["effective"] < MIN_EFFECTIVE_ROUNDS).sum()):
        each = f"each {'cohort and ' * (len(set(known['cohort'])) > 1)}alternative"
        which = f"{few} of the {len(known)} intervals, one for {each}, are"
        which = which if len(known) > 1 else "the interval is"
        yield f"{which} too narrow: effective sample below {MIN_EFFECTIVE_ROUNDS} rounds"


def played(rows: pd.DataFrame, agents: pd.DataFrame, *, note: str = "") -> str:
    """Say what a cohort did, and its average loss per round, with a note on it."""
    own = rows.iloc[0]
    loss = f"Average loss per round: {own['mean_loss']:.4f}"
    if own["cohort"] == EVERYBODY:
        return f"All {own['agents']:,} agents. {loss}."
    heard = agents["bound_from_bias"].notna().any()
    did = "followed the forecast" if heard else "followed rules of their own"
    value = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    units = in_unit(agents, mean_of(agents.assign(loss=value), "loss"), note=note)
    return f"{own['agents']:,} {own['cohort']} {did}. {loss}{units}."


def in_unit(agents: pd.DataFrame, value: float, *, word: str = "", note: str = "") -> str:
    """Write a loss or regret in the unit that agents share, if they do, and a note."""
    (text,) = in_units([value], [unit_of(agents)])
    said = "; ".join(part for part in (f"{word}{text}" if text else "", note) if part)
    return f" ({said})" if said else ""


def in_units(values: Sequence[float], units: Sequence[str]) -> list[str]:
    """Write values with their units, with equal decimals for each unit; nothing without a unit."""
    pairs = list(zip(values, units, strict=True))
    at = {unit: decimals([v for v, own in pairs if own == unit], 4) for unit in set(units)}
    return [f"{v:,.{at[unit]}f} {unit}" if unit and not np.isnan(v) else "" for v, unit in pairs]


def unit_of(agents: pd.DataFrame) -> str:
    """Return the unit of the data that agents share; nothing where there is none."""
    units = set(agents["unit"]) if "unit" in agents else set()
    unit = units.pop() if len(units) == 1 else ""
    return unit if isinstance(unit, str) else ""


def alternatives(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a verdict without those of what was played."""
    return rows[rows["kind"] != "broadcast"]


def best_of_each(rows: pd.DataFrame) -> list[Row]:
    """Return the best alternative of each kind, the least loss first."""
    ranked = alternatives(rows).sort_values("mean_loss", kind="stable")
    return records(ranked.drop_duplicates("kind"))


def records(rows: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as dictionaries by the columns' names."""
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def named(row: Row, rows: pd.DataFrame | None = None) -> str:
    """Name an alternative; with the rows of its cohort, as the best of its kind in hindsight."""
    models = 0 if rows is None else int((rows["kind"] == "model").sum())
    names: dict[str, str] = {
        "broadcast": "as played",
        "model": f"best of {models} models: " * (models > 1) + f"{row['name']}",
        "policy": f"policy {row['name']}",
        "action": f"best fixed action{' of each agent' if row['agents'] > 1 else ''}",
    }
    return names[row["kind"]]


def compared(row: Row, rows: pd.DataFrame) -> str:
    """Say what an alternative would have cost, and whether that differs."""
    what, _, which = named(row, rows).partition(": ")
    name = f"{what[0].upper()}{what[1:]} in hindsight{f' ({which})' * bool(which)}"
    return f"{name}: {row['mean_loss']:.4f}, {difference(row)}."


def four(value: float) -> str:
    """Write a number with four decimals, never a negative zero."""
    return f"{round(value, 4) + 0.0:.4f}"


def difference(row: Row) -> str:
    """Say by how much a loss differs from that of the play; with its interval where it is known."""
    if row["low"] <= 0 <= row["high"]:
        return f"no difference found (between {four(row['low'])} and {four(row['high'])})"
    size = f"{abs(row['difference']):.4f}"
    text = f"{size} {'more' if row['difference'] > 0 else 'less'}"
    if float(size) == 0:
        text = "a difference below 0.0001"
    if np.isnan(row["low"]):
        return text
    return f"{text} (95 % interval {four(row['low'])} to {four(row['high'])})"


def _worst(agents: pd.DataFrame) -> Iterator[str]:
    """Say the greatest regret of an agent, by the name of the measure."""
    regret = leading_regret(agents)
    if regret.notna().any():
        worst = agents.iloc[int(regret.argmax())]
        decision = not np.isnan(worst["decision_swap_regret"])
        name, many = "Decision swap regret" if decision else "Swap regret", agents_in(agents)
        whose = f"the worst of {many:,} agents" if many > 1 else "the agent"
        of = f" (of {worst['cohort']})" if len(agents["cohort"].unique()) > 1 else ""
        units = in_unit(agents, (regret * agents["loss_scale"]).max(), word="at most ")
        yield f"{name} of {whose}{of}: {regret.max():.4f} per round{units}."


def _extremes(cohorts: Sequence[pd.DataFrame], agents: pd.DataFrame) -> Iterator[str]:
    """Say for which cohorts the best alternative was furthest above and below what they did."""
    best = [best_of_each(rows)[0] for rows in cohorts]
    losses = [rows["mean_loss"].iloc[0] for rows in cohorts]
    gaps = [row["mean_loss"] - loss for row, loss in zip(best, losses, strict=True)]
    yield f"{len(cohorts)} cohorts with {agents_in(agents):,} agents."
    for word, at in (("Largest", int(np.argmax(gaps))), ("Smallest", int(np.argmin(gaps)))):
        row, loss = best[at], f"average loss per round {losses[at]:.4f}"
        found = f"{named(row, cohorts[at])}: {row['mean_loss']:.4f}, {difference(row)}"
        what = f"{word} difference of the best alternative in hindsight"
        yield f"{what}: {row['cohort']}, {loss}; {found}."


def unchanged(base: str, blocks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say from which round on a reference model is corrected, in one line if all blocks agree.

    Each of ``blocks`` has ``kept``, the share of the rounds in which the model was broadcast
    unchanged, and ``first_correction``, the round of that, counted from 0, or None.
    """
    who = "weighted mean of the models" if base == "aggregate" else base
    lines = {}
    for name, block in blocks.items():
        lines[name] = f"{who}, {_corrected(block['first_correction'], block['kept'])}."
    if len(set(lines.values())) == 1:
        lines = {"": next(iter(lines.values()))}
    yield from (f"Models: {name}{': ' * bool(name)}{line}" for name, line in lines.items())


def _corrected(first_correction: int | None, kept: float) -> str:
    """Say when a model was corrected, and how often it was broadcast unchanged.

    A model that was never disproved gives way in a round where an objective prefers another
    forecast: then nobody can say that no correction was needed.
    """
    if first_correction is None and kept == 1:
        return f"never corrected; {NOT_NEEDED}"
    if first_correction is None:
        changed = _percentage(1 - kept)
        return f"never disproved; another forecast was preferred in {changed} of the rounds"
    share = f"unchanged in {_percentage(kept)} of the rounds"
    if first_correction == 0:
        return f"corrected from the start, {share}"
    return f"corrected from round {first_correction + 1:,} on, {share}"


def _percentage(share: float) -> str:
    """Write a share in per cent; neither none nor all if it is some."""
    if 0.995 <= share < 1:
        return "more than 99 %"
    if 0 < share < 0.005:
        return "less than 1 %"
    return f"{100 * share:.0f} %"


def alternative_cells(row: Row, rows: pd.DataFrame | None = None) -> list[str]:
    """Write an alternative, its loss, the difference, its interval, and who is better off."""
    if row["kind"] == "broadcast":
        return [named(row), f"{row['mean_loss']:.4f}", "", "", ""]
    ends = "" if np.isnan(row["low"]) else f"{four(row['low'])} .. {four(row['high'])}"
    gap = round(row["difference"], 4) + 0.0  # no -0
    better = f"{row['better_off']:,} of {row['agents']:,}"
    return [named(row, rows), f"{row['mean_loss']:.4f}", f"{gap:+.4f}", ends, better]


def regret_rows(agents: pd.DataFrame) -> Iterator[list[str]]:
    """Yield a measure that was taken, its mean and worst agent, and both in the data's unit."""
    scaled = agents["loss_scale"]
    ends = {
        name: (mean_of(agents.assign(own=agents[column] * scaled), "own"), most)
        for name, column in REGRETS.items()
        if not np.isnan(most := (agents[column] * scaled).max())
    }
    at = decimals([value for pair in ends.values() for value in pair], 4)
    for name, column in (REGRETS | {"exploitability": "exploitability"}).items():
        if agents[column].notna().any():
            known = ends[name] if unit_of(agents) and name in ends else ()
            units = [f"{value:,.{at}f}" for value in known] or ["", ""]
            yield [name, four(mean_of(agents, column)), four(agents[column].max()), *units]


def bounds_to_print(agents: pd.DataFrame) -> dict[str, float]:
    """Return the greatest bound of each kind, by what it takes as known.

    While a reference is trusted the bound given the variation is the regret itself, and left out.
    If it is so for all agents, ``bound`` is what the switch test has allowed.
    """
    is_regret_itself = is_trusted(agents)
    known = {}
    for word, column in BOUNDS.items():
        bounds = agents[column]
        if word == GIVEN_VARIATION:
            bounds = bounds[~is_regret_itself]
        if bounds.notna().any():
            known[word] = float(bounds.max())
    if is_regret_itself.any() and GIVEN_VARIATION not in known and BEFORE in known:
        known[UNCORRECTED] = known.pop(BEFORE)
    return known


def is_trusted(agents: pd.DataFrame) -> "pd.Series[bool]":
    """Say of which agents the bound given the variation is the regret itself."""
    return agents["trusted"].astype("boolean").fillna(value=False).astype(bool)


def promise(value: float, digits: int = 2) -> str:
    """Write a bound on regrets of at most 1, or that there is none, or none that says anything."""
    if np.isnan(value):
        return "none"
    return NOTHING if value >= 1 else f"{value:.{digits}f}"


def bounds_in_words(agents: pd.DataFrame) -> list[str]:
    """Write each bound of a cohort, what it takes as known, and of how many where not of all."""
    lines = []
    is_regret_itself = is_trusted(agents)
    known = bounds_to_print(agents)
    for word, column in BOUNDS.items():
        has_bound = agents[column].notna()
        if word == GIVEN_VARIATION and is_regret_itself.any():
            lines.append(f"{TRUSTED} {word}{_of_agents(is_regret_itself, agents)}")
            has_bound &= ~is_regret_itself
        shown_word = UNCORRECTED if word == BEFORE and UNCORRECTED in known else word
        if shown_word in known:
            value = known[shown_word]
            digits = 2 if value >= COARSE else 4
            lines.append(f"{promise(value, digits)} {shown_word}{_of_agents(has_bound, agents)}")
    return lines


def _of_agents(is_meant: "pd.Series[bool]", agents: pd.DataFrame) -> str:
    """Say how many agents are meant, where it is not all of a table."""
    if is_meant.all():
        return ""
    return f", {agents_in(agents[is_meant]):,} agents"
