"""Sentences on a study: what changes welfare most, and who regrets least and most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from regretless.market.logs.alternatives import EVERYBODY
from regretless.scenarios.report import theme
from regretless.scenarios.report.study_data import StudyData, setting_names
from regretless.scenarios.studies.analysis.contrasts import unit_notes

DECISION_SWAP_REGRET = "decision_swap_regret_worst"
SWAP_REGRET = "swap_regret_worst"
REGRET_TITLES = {DECISION_SWAP_REGRET: "Decision swap regret", SWAP_REGRET: "Swap regret"}
GAIN_MEASURES = ("gain", "welfare_mean")  # the first that a study has
NEGLIGIBLE = 1e-9  # differences of rounding errors alone


def sentences(data: StudyData) -> Iterator[str]:
    """Say what changes welfare most, which keys change a unit, and who regrets least and most."""
    contrasts = data.table("contrasts")
    cohorts = data.table("cohorts")
    yield from sentence_on_welfare(
        contrasts,
        cohorts.groupby("cohort")["loss_scale"].mean(),
        n_planned_seeds=len(data.study.record["study"]["file"]["seeds"]),
    )
    yield from unit_notes(contrasts)
    yield from sentence_on_regrets(cohorts, setting_names(data.table("parameters")))


def sentence_on_welfare(
    contrasts: pd.DataFrame, scale: pd.Series[float], *, n_planned_seeds: int = 0
) -> Iterator[str]:
    """Say what changed welfare most, and for whom; ``scale`` is the unit of each cohort.

    A change that rests on fewer seeds than were planned, since runs failed, says on how many.
    """
    measure = next((name for name in GAIN_MEASURES if (contrasts["measure"] == name).any()), None)
    if measure is None:
        return
    is_of_cohort = contrasts["cohort"] != EVERYBODY
    changes = contrasts[(contrasts["measure"] == measure) & is_of_cohort]
    if changes["low"].isna().all():
        return
    sure = changes[(changes["low"] > 0) | (changes["high"] < 0)]
    if sure.empty:
        yield "No change of welfare found: every 95 % interval contains 0."
        return
    unit = sure["cohort"].map(scale.where(scale > 0, 1.0))
    sizes = (sure["mean"] / unit).abs()
    largest = sure[sizes >= sizes.max() * (1 - NEGLIGIBLE)]  # several where changes tie
    descriptions = []
    for contrast in largest.to_dict("records"):
        description = _describe_change(contrast)
        if contrast["seeds"] < n_planned_seeds:
            description += f", of {contrast['seeds']:.0f} of {n_planned_seeds} seeds"
        descriptions.append(description)
    described = ", and as large ".join(descriptions)
    if len(changes) == 1:
        yield f"Change of welfare (mean utility per round): {described}."
        return
    yield (
        f"Largest of {len(changes)} changes of welfare (mean utility per round, "
        f"relative to the range of each cohort's losses): {described}."
    )


def _describe_change(contrast: dict[str, Any]) -> str:
    """Say whose welfare a setting changed, in place of which, by how much and how surely."""
    value = theme.shorten(contrast["value"], 60)
    setting = f"{contrast['key']} = {value} in place of {theme.shorten(contrast['against'], 60)}"
    if contrast["key"] == "branch":
        setting = f"branch '{value}'"
    interval_text = f"95 % interval {contrast['low']:.3g} to {contrast['high']:.3g}"
    change = f"{contrast['mean']:+.3g} in the utility's own units ({interval_text})"
    return f"{contrast['cohort']}, {setting}, {change}"


def sentence_on_regrets(cohorts: pd.DataFrame, settings: pd.Series[str]) -> Iterator[str]:
    """Say under which settings the worst agents regret least and most, means over seeds."""
    column = DECISION_SWAP_REGRET if cohorts[DECISION_SWAP_REGRET].notna().any() else SWAP_REGRET
    parts = [cohorts["cohort"], cohorts["run"].map(settings)]
    varied = [part for part in parts if len(part.unique()) > 1]
    if not varied:
        return
    names = varied[0] if len(varied) == 1 else varied[0] + " under " + varied[1]
    means = cohorts[[column, "mean_loss"]].groupby(names.to_numpy(), sort=False).mean()
    ranked = means.dropna(subset=column).sort_values(column, kind="stable")
    if len(ranked) < 2:
        return
    regrets = ranked[column]
    subject = f"{REGRET_TITLES[column]}, worst agent, mean over seeds"
    if regrets.iloc[-1] - regrets.iloc[0] <= NEGLIGIBLE:
        yield f"{subject}: {regrets.iloc[0]:.3g} everywhere."
        return
    least_regrets = ranked[regrets <= regrets.iloc[0] + NEGLIGIBLE]
    greatest = ranked[regrets >= regrets.iloc[-1] - NEGLIGIBLE]
    yield (
        f"{REGRET_TITLES[column]}, worst agent, mean over seeds: "
        f"least {_name_tied(least_regrets)}, "
        f"greatest {_name_tied(greatest)}."
    )


def _name_tied(tied: pd.DataFrame) -> str:
    """Name who has a regret, where several tie the first of them and how many more there are."""
    regret, loss = tied.iloc[0]
    and_more = f" and {len(tied) - 1} more" if len(tied) > 1 else ""
    return f"{tied.index[0]}{and_more} ({regret:.3g}, mean loss {loss:.3g})"
