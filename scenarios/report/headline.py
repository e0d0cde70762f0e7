"""What the page of a study says first: the largest change, then who regrets least and most.

Both are read off the study's own tables. The change is that of welfare, mean utility per round in
the utility's own units: of branches ``gain``, else ``welfare_mean``. Mean losses are no measure of
it, since a key may change how they are normalised. Changes of several cohorts and keys are ranked
by their size over the mean ``loss_scale`` of the cohort, one unit per cohort for the whole study. A
change whose interval contains 0 is none.
"""

from collections.abc import Iterator

import pandas as pd

from regretless.market.logs.comparisons import EVERYBODY
from regretless.scenarios.report.theme import short
from regretless.scenarios.studies.analysis.contrasts import unit_notes

DECISION, SWAP = "decision_swap_regret_worst", "swap_regret_worst"
REGRETS = {DECISION: "Decision swap regret", SWAP: "Swap regret"}
CHANGES = ("gain", "welfare_mean")  # the first that a study has


def headline(
    cohorts: pd.DataFrame, settings: "pd.Series[str]", contrasts: pd.DataFrame
) -> Iterator[str]:
    """Give the sentences that a study's numbers allow.

    ``cohorts`` has the measures of each run and cohort, ``settings`` the name of each run's
    setting, ``contrasts`` what each value and branch changes, with its interval.
    """
    yield from _change(contrasts, cohorts.groupby("cohort")["loss_scale"].mean())
    yield from unit_notes(contrasts)
    yield from _regrets(cohorts, settings)


def _change(contrasts: pd.DataFrame, scale: "pd.Series[float]") -> Iterator[str]:
    """Say what changed welfare most, and for whom; ``scale`` is the unit of each cohort."""
    measure = next((name for name in CHANGES if (contrasts["measure"] == name).any()), None)
    if measure is None:
        return
    own = contrasts[(contrasts["measure"] == measure) & (contrasts["cohort"] != EVERYBODY)]
    sure = own[(own["low"] > 0) | (own["high"] < 0)]
    if own["low"].isna().all():
        return
    if sure.empty:
        yield "No change of welfare found: every 95 % interval contains 0."
        return
    unit = sure["cohort"].map(scale.where(scale > 0, 1.0))
    row = sure.iloc[int((sure["mean"] / unit).abs().argmax())]
    value, against = (short(row[name], 60) for name in ("value", "against"))
    changed = f"{row['key']} = {value} in place of {against}"
    what = f"{row['cohort']}, " + (f"branch '{value}'" if row["key"] == "branch" else changed)
    ends = f"95 % interval {row['low']:.3g} to {row['high']:.3g}"
    first = "Change" if len(own) == 1 else f"Largest of {len(own)} changes"
    how = "" if len(own) == 1 else ", relative to the range of each cohort's losses"
    yield (
        f"{first} of welfare (mean utility per round{how}): {what}, {row['mean']:+.3g} "
        f"in the utility's own units ({ends})."
    )


def _regrets(cohorts: pd.DataFrame, settings: "pd.Series[str]") -> Iterator[str]:
    """Say under which settings the worst agents regret least and most, means over seeds."""
    column = DECISION if cohorts[DECISION].notna().any() else SWAP
    parts = [cohorts["cohort"], cohorts["run"].map(settings)]
    varied = [part for part in parts if len(part.unique()) > 1]
    if not varied:
        return
    names = varied[0] if len(varied) == 1 else varied[0] + " under " + varied[1]
    groups = cohorts[[column, "mean_loss"]].groupby(names.to_numpy(), sort=False)
    means = groups.mean().dropna(subset=column)
    if len(means) < 2:
        return
    ranked = means.sort_values(column, kind="stable")
    least, most = (
        f"{ranked.index[i]} ({row[column]:.3g}, mean loss {row['mean_loss']:.3g})"
        for i, row in zip((0, -1), ranked.iloc[[0, -1]].to_dict("records"), strict=True)
    )
    yield f"{REGRETS[column]}, worst agent, mean over seeds: least {least}, greatest {most}."
