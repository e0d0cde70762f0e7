"""Means over seeds with their 95 % Student intervals: computed, looked up, written and compared."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from regretless.scenarios.studies.analysis.measures import interval


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and the ends of its 95 % interval.

    ``f"{estimate:.3f}"`` writes all three with three digits: ``0.300 (0.285 to 0.316)``.
    """

    mean: float
    low: float
    high: float

    def __format__(self, number_format: str) -> str:
        """Write the mean and the interval, each number in this format."""
        interval_text = f"{self.low:{number_format}} to {self.high:{number_format}}"
        return f"{self.mean:{number_format}} ({interval_text})"


def estimate_means(
    runs: pd.DataFrame,
    keys: list[str],
    measure: str,
    within: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Average a measure over all runs that agree in the keys.

    Returns a table with the keys and the columns ``mean``, ``low`` and ``high``, a row for each
    combination of keys in the order of their first run. ``within`` is the range of the measure, (0,
    1) for a share: an interval that would leave it is taken on the logit scale.
    """
    rows = []
    for values_of_keys, sample in runs.groupby(keys, sort=False)[measure]:
        mean, low, high = interval(sample.to_numpy(), within)
        rows.append((*values_of_keys, mean, low, high))
    return pd.DataFrame(rows, columns=[*keys, "mean", "low", "high"])


def find_estimate(means: pd.DataFrame, **values_of_keys: object) -> Estimate:
    """Return the estimate in the one row of ``means`` where the keys have these values."""
    rows = means
    for key, value in values_of_keys.items():
        rows = rows[rows[key] == value]
    return Estimate(rows["mean"].item(), rows["low"].item(), rows["high"].item())


def answer_whether_below(smaller: Estimate, larger: Estimate) -> str:
    """Say whether ``smaller`` is below ``larger``, as far as their intervals are apart."""
    if smaller.high < larger.low:
        return "Yes"
    if larger.high < smaller.low:
        return "No"
    return "No difference found"
