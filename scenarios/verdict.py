"""A run in words: average losses, alternatives in hindsight with their differences, and regrets.

Every number is one of the tables ``verdict`` and ``agents``. Losses and regrets are averages per
round, of losses in [0, 1]. A difference with an interval that contains 0 is told as none found; no
sentence says that two losses are equal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market import register
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import agents_in, mean_of
from regretless.market.regret.inference import MIN_EFFECTIVE_ROUNDS, MIN_ROUNDS
from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.terminal import decimals

Row = dict[str, Any]
MAX_PARAGRAPHS = 3  # of more cohorts only the extremes are described
COARSE = 0.05  # a bound below which two decimals say too little
SAYS_NOTHING = ">= 1"  # a bound on what is at most 1 anyway
REGRETS = {
    "external": "external_regret",
    "swap": "swap_regret",
    "decision swap": "decision_swap_regret",
}
NOT_NEEDED = "no correction was needed, and the bound without correction holds"
BEFORE = "before the run"
UNCORRECTED = "without correction"  # of a reference
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


def definitions(verdict: pd.DataFrame, agents: pd.DataFrame) -> dict[str, str]:
    """Return what the terms of a run mean, of those measures and models that it has."""
    has_term = {
        "Models": len(verdict) > 0 and bool((verdict["kind"] == "model").any()),
        "Bounds": any(_is_measured(agents, column) for column in BOUNDS.values()),
        "Exploitability": _is_measured(agents, "exploitability"),
        "Decision swap regret": _is_measured(agents, "decision_swap_regret"),
    }
    # Decision swap regret is defined by swap regret.
    has_term["Swap regret"] = has_term["Decision swap regret"] or _is_measured(
        agents, "swap_regret"
    )
    return {term: meaning for term, meaning in DEFINITIONS.items() if has_term.get(term, True)}


def _is_measured(agents: pd.DataFrame, column: str) -> bool:
    """Whether some agent has a value in a column, which need not be there."""
    return column in agents and bool(agents[column].notna().any())


def sentences(verdict: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    """Yield a paragraph per cohort; of more than ``MAX_PARAGRAPHS`` one on the extremes."""
    cohorts = [rows for _, rows in without_everybody(verdict).groupby("cohort", sort=False)]
    if len(cohorts) > MAX_PARAGRAPHS:
        yield " ".join([*_sentences_on_extremes(cohorts, agents), *_sentence_on_worst(agents)])
        return
    for rows in cohorts:
        members = agents[agents["cohort"] == rows["cohort"].iloc[0]]
        paragraph = [describe_play(rows, members)]
        paragraph += [compare_alternative(row, rows) for row in best_of_each_kind(rows)]
        paragraph += _sentence_on_worst(members)
        yield " ".join(paragraph)


def without_everybody(verdict: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the cohorts, without those of everybody."""
    if verdict.empty:
        return verdict
    return verdict[verdict["cohort"] != EVERYBODY]


def describe_intervals(verdict: pd.DataFrame) -> Iterator[str]:
    """Say what the intervals of a verdict assume, and how many are too narrow to trust."""
    with_interval = verdict[verdict["low"].notna()]
    if len(with_interval):
        yield "intervals: simultaneous over all alternatives, stationary outcomes assumed"
    elif len(verdict):
        yield f'no intervals: they need logs = "full" and at least {MIN_ROUNDS} rounds'
    n_narrow = int((with_interval["effective"] < MIN_EFFECTIVE_ROUNDS).sum())
    if n_narrow == 0:
        return
    if len(with_interval) == 1:
        subject = "the interval is"
    else:
        several_cohorts = len(set(with_interval["cohort"])) > 1
        unit = "each cohort and alternative" if several_cohorts else "each alternative"
        verb = "is" if n_narrow == 1 else "are"
        which = f"{n_narrow} of the {len(with_interval)}"
        if n_narrow == len(with_interval):
            which = f"all {n_narrow}"
        subject = f"{which} intervals, one for {unit}, {verb}"
    yield f"{subject} too narrow: effective sample below {MIN_EFFECTIVE_ROUNDS} rounds"


def describe_play(rows: pd.DataFrame, agents: pd.DataFrame, *, note: str = "") -> str:
    """Say what a cohort did, and its average loss per round, with a note on it.

    ``rows`` are those of the cohort in the verdict, ``agents`` its agents.
    """
    first_row = rows.iloc[0]
    loss = f"Average loss per round: {first_row['mean_loss']:.4f}"
    if first_row["cohort"] == EVERYBODY:
        return f"All {first_row['agents']:,} agents. {loss}."
    behaviour = "followed rules of their own"
    if first_row["agents"] == 1:
        behaviour = "followed a rule of its own"
    if _hear_forecast(agents):
        behaviour = "followed the forecast"
    losses_in_units = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    mean_in_units = mean_of(agents.assign(loss=losses_in_units), "loss")
    addition = _in_parentheses(in_unit(agents, mean_in_units), note)
    return f"{first_row['agents']:,} {first_row['cohort']} {behaviour}. {loss}{addition}."


def _hear_forecast(agents: pd.DataFrame) -> bool:
    """Whether some agents answer to the forecast.

    Who expects losses has a bound from the biases, unless outcomes are estimates. Then the name of
    a response tells it.
    """
    if agents["bound_from_bias"].notna().any():
        return True
    return bool(agents["response"].isin(register.response.names()).any())


def _in_parentheses(*remarks: str) -> str:
    """Write remarks that are not empty in parentheses; nothing where all are."""
    remarks = tuple(remark for remark in remarks if remark)
    return f" ({'; '.join(remarks)})" if remarks else ""


def in_unit(agents: pd.DataFrame, value: float) -> str:
    """Write a loss or regret in the unit that agents share; nothing where there is none."""
    (text,) = in_units([value], [unit_of(agents)])
    return text


def in_units(values: Sequence[float], units: Sequence[str]) -> list[str]:
    """Write values with their units, with equal decimals for each unit; nothing without a unit."""
    values_of_unit: dict[str, list[float]] = {}
    for value, unit in zip(values, units, strict=True):
        values_of_unit.setdefault(unit, []).append(value)
    n_decimals = {unit: decimals(group, 4) for unit, group in values_of_unit.items()}
    texts = []
    for value, unit in zip(values, units, strict=True):
        has_text = unit and not np.isnan(value)
        texts.append(f"{value:,.{n_decimals[unit]}f} {unit}" if has_text else "")
    return texts


def unit_of(agents: pd.DataFrame) -> str:
    """Return the unit of the data that agents share; nothing where there is none."""
    units = set(agents["unit"]) if "unit" in agents else set()
    if len(units) != 1:
        return ""
    (unit,) = units
    return unit if isinstance(unit, str) else ""


def alternatives(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a verdict without those of what was played."""
    return rows[rows["kind"] != "broadcast"]


def best_of_each_kind(rows: pd.DataFrame) -> list[Row]:
    """Return the best alternative of each kind, the least loss first."""
    ranked = alternatives(rows).sort_values("mean_loss", kind="stable")
    return records(ranked.drop_duplicates("kind"))


def records(rows: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as dictionaries by the columns' names."""
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def name_alternative(row: Row, rows: pd.DataFrame | None = None) -> str:
    """Name an alternative; with the rows of its cohort, as the best of its kind in hindsight."""
    kind = row["kind"]
    if kind == "broadcast":
        return "as played"
    if kind == "policy":
        return f"policy {row['name']}"
    if kind == "action":
        return "best fixed action of each agent" if row["agents"] > 1 else "best fixed action"
    n_models = 0 if rows is None else int((rows["kind"] == "model").sum())
    return f"best of {n_models} models: {row['name']}" if n_models > 1 else f"{row['name']}"


def compare_alternative(row: Row, rows: pd.DataFrame) -> str:
    """Say what an alternative would have cost, and whether that differs.

    ``rows`` are those of its cohort.
    """
    name, _, detail = name_alternative(row, rows).partition(": ")  # the detail names a model
    subject = f"{name[0].upper()}{name[1:]} in hindsight"
    if detail:
        subject += f" ({detail})"
    return f"{subject}: {row['mean_loss']:.4f}, {describe_difference(row)}."


def four_decimals(value: float) -> str:
    """Write a number with four decimals, never a negative zero."""
    return f"{round(value, 4) + 0.0:.4f}"


def describe_difference(row: Row) -> str:
    """Say by how much a loss differs from that of the play; with its interval where it is known."""
    low = four_decimals(row["low"])
    high = four_decimals(row["high"])
    if row["low"] <= 0 <= row["high"]:
        return f"no difference found (between {low} and {high})"
    size = f"{abs(row['difference']):.4f}"
    if float(size) == 0:
        text = "a difference below 0.0001"
    elif row["difference"] > 0:
        text = f"{size} more"
    else:
        text = f"{size} less"
    if np.isnan(row["low"]):
        return text
    return f"{text} (95 % interval {low} to {high})"


def _sentence_on_worst(agents: pd.DataFrame) -> Iterator[str]:
    """Say the greatest regret of an agent, by the name of the measure; nothing if none was."""
    regrets = leading_regret(agents)
    if regrets.isna().all():
        return
    worst = agents.iloc[int(regrets.argmax())]
    measure = "Decision swap regret"
    if np.isnan(worst["decision_swap_regret"]):
        measure = "Swap regret"
    n_agents = agents_in(agents)
    whose = f"the worst of {n_agents:,} agents" if n_agents > 1 else "the agent"
    if len(set(agents["cohort"])) > 1:
        whose += f" (of {worst['cohort']})"
    greatest_in_units = in_unit(agents, (regrets * agents["loss_scale"]).max())
    units = _in_parentheses(f"at most {greatest_in_units}" if greatest_in_units else "")
    yield f"{measure} of {whose}: {regrets.max():.4f} per round{units}."


def _sentences_on_extremes(cohorts: Sequence[pd.DataFrame], agents: pd.DataFrame) -> Iterator[str]:
    """Say for which cohorts the best alternative was furthest above and below what they did.

    ``cohorts`` has the rows of each in the verdict.
    """
    yield f"{len(cohorts)} cohorts with {agents_in(agents):,} agents."
    best_rows = [best_of_each_kind(rows)[0] for rows in cohorts]
    losses = [rows["mean_loss"].iloc[0] for rows in cohorts]  # a cohort's first row: as it played
    gaps = [row["mean_loss"] - loss for row, loss in zip(best_rows, losses, strict=True)]
    extremes = {"Largest": int(np.argmax(gaps)), "Smallest": int(np.argmin(gaps))}
    for extreme, index in extremes.items():
        row = best_rows[index]
        name = name_alternative(row, cohorts[index])
        yield (
            f"{extreme} difference of the best alternative in hindsight: {row['cohort']}, "
            f"average loss per round {losses[index]:.4f}; "
            f"{name}: {row['mean_loss']:.4f}, {describe_difference(row)}."
        )


def describe_corrections(
    reference: str, blocks: Mapping[str, Mapping[str, Any]], *, labels: Iterable[str]
) -> Iterator[str]:
    """Say from which round on a reference model is corrected, in one line if all blocks agree.

    Each of ``blocks`` has ``kept``, the share of the rounds in which the model was broadcast
    unchanged, and ``first_correction``, the round of that, counted from 0, or None. ``labels``
    name what each cohort is guaranteed: where that is nothing for all, no bound is said to hold.
    """
    has_guarantee = any(label != "none" for label in labels)
    subject = "weighted mean of the models" if reference == "aggregate" else reference
    line_of_block = {}
    for name, block in blocks.items():
        correction = _describe_correction(
            block["first_correction"], block["kept"], has_guarantee=has_guarantee
        )
        line_of_block[name] = f"{subject}, {correction}."
    different_lines = set(line_of_block.values())
    if len(different_lines) == 1:
        yield f"Models: {different_lines.pop()}"
        return
    for name, line in line_of_block.items():
        yield f"Models: {name}: {line}"


def _describe_correction(first_correction: int | None, kept: float, *, has_guarantee: bool) -> str:
    """Say when a model was corrected, and how often it was broadcast unchanged.

    A model that was never disproved gives way in a round where an objective prefers another
    forecast: then nobody can say that no correction was needed, nor where no theorem applies.
    """
    if first_correction is None and kept == 1 and not has_guarantee:
        return "never corrected"
    if first_correction is None and kept == 1:
        return f"never corrected; {NOT_NEEDED}"
    if first_correction is None:
        changed = _percentage(1 - kept)
        return f"never disproved; another forecast was preferred in {changed} of the rounds"
    share = f"unchanged in {_percentage(kept)} of the rounds"
    if first_correction == 0:
        return f"corrected from the start, {share}"
    cause = "when following it had cost more than chance explains"
    return f"corrected from round {first_correction + 1:,} on, {cause}; {share}"


def _percentage(share: float) -> str:
    """Write a share in per cent; neither none nor all if it is some."""
    if 0.995 <= share < 1:
        return "more than 99 %"
    if 0 < share < 0.005:
        return "less than 1 %"
    return f"{100 * share:.0f} %"


def alternative_cells(row: Row, rows: pd.DataFrame | None = None) -> list[str]:
    """Write an alternative, its loss, the difference, its interval, and who is better off."""
    name = name_alternative(row, rows)
    loss = f"{row['mean_loss']:.4f}"
    if row["kind"] == "broadcast":
        return [name, loss, "", "", ""]
    interval = ""
    if not np.isnan(row["low"]):
        interval = f"{four_decimals(row['low'])} .. {four_decimals(row['high'])}"
    difference = round(row["difference"], 4) + 0.0  # no -0
    better_off = f"{row['better_off']:,} of {row['agents']:,}"
    return [name, loss, f"{difference:+.4f}", interval, better_off]


def regret_rows(agents: pd.DataFrame) -> Iterator[list[str]]:
    """Yield a measure that was taken, its mean and worst agent, and both in the data's unit."""
    mean_and_worst_in_units = {}
    for name, column in REGRETS.items():
        regrets_in_units = agents[column] * agents["loss_scale"]
        worst = regrets_in_units.max()
        if not np.isnan(worst):
            mean = mean_of(agents.assign(regret=regrets_in_units), "regret")
            mean_and_worst_in_units[name] = [mean, worst]
    values = [value for pair in mean_and_worst_in_units.values() for value in pair]
    n_decimals = decimals(values, 4)
    has_unit = bool(unit_of(agents))
    for name, column in (REGRETS | {"exploitability": "exploitability"}).items():
        if agents[column].isna().all():
            continue
        in_units = ["", ""]
        if has_unit and name in mean_and_worst_in_units:
            in_units = [f"{value:,.{n_decimals}f}" for value in mean_and_worst_in_units[name]]
        mean_text = four_decimals(mean_of(agents, column))
        yield [name, mean_text, four_decimals(agents[column].max()), *in_units]


def bounds_to_print(agents: pd.DataFrame) -> dict[str, float]:
    """Return the greatest bound of each kind, by what it takes as known.

    While a reference is trusted the bound given the variation is the regret itself, and left out.
    If it is so for all agents, ``bound`` is what the switch test has allowed.
    """
    is_regret_itself = is_trusted(agents)
    greatest_bounds = {}
    for condition, column in BOUNDS.items():
        bounds = agents[column]
        if condition == GIVEN_VARIATION:
            bounds = bounds[~is_regret_itself]
        if bounds.notna().any():
            greatest_bounds[condition] = float(bounds.max())
    no_bound_given_variation = GIVEN_VARIATION not in greatest_bounds
    if is_regret_itself.any() and no_bound_given_variation and BEFORE in greatest_bounds:
        greatest_bounds[UNCORRECTED] = greatest_bounds.pop(BEFORE)
    return greatest_bounds


def is_trusted(agents: pd.DataFrame) -> "pd.Series[bool]":
    """Say of which agents the bound given the variation is the regret itself."""
    return agents["trusted"].astype("boolean").fillna(value=False).astype(bool)


def bound_text(value: float, digits: int = 2) -> str:
    """Write a bound on regrets of at most 1, or that there is none, or none that says anything."""
    if np.isnan(value):
        return "none"
    return SAYS_NOTHING if value >= 1 else f"{value:.{digits}f}"


def describe_bounds(agents: pd.DataFrame) -> list[str]:
    """Write each bound of a cohort, what it takes as known, and of how many where not of all."""
    lines = []
    is_regret_itself = is_trusted(agents)
    greatest_bounds = bounds_to_print(agents)
    for condition, column in BOUNDS.items():
        has_bound = agents[column].notna()
        if condition == GIVEN_VARIATION and is_regret_itself.any():
            lines.append(f"{TRUSTED} {condition}{of_agents(is_regret_itself, agents)}")
            has_bound &= ~is_regret_itself
        is_uncorrected = condition == BEFORE and UNCORRECTED in greatest_bounds
        shown_condition = UNCORRECTED if is_uncorrected else condition
        if shown_condition in greatest_bounds:
            value = greatest_bounds[shown_condition]
            text = bound_text(value, digits=2 if value >= COARSE else 4)
            lines.append(f"{text} {shown_condition}{of_agents(has_bound, agents)}")
    return lines


def of_agents(is_meant: "pd.Series[bool]", agents: pd.DataFrame) -> str:
    """Say how many agents are meant, where it is not all of a table."""
    if is_meant.all():
        return ""
    return f", {agents_in(agents[is_meant]):,} agents"
