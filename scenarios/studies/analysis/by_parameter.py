"""Effects and contrasts among agents alike in a parameter that was drawn for each.

Agents of a cohort are put into thirds by a parameter of their utility, over all runs, or by its
value where it has few. Runs with the same seed have the same agents, so that each third is compared
with itself.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from regretless.scenarios.studies.analysis.measures import COHORTS, cohorts_of

PREFIX, BETWEEN = "param_", "\0"
PARTS, FEW = 3, 5  # parts by quantiles; values that are parts of their own
PARTED = ["cohort", "parameter", "range"]


def varied(agents: pd.DataFrame) -> Iterator[tuple[str, str, "pd.Series[str]"]]:
    """Yield cohort, parameter, and the range of each of its agents, in the order of its values."""
    for cohort, own in agents.groupby("cohort", sort=False):
        for column in map(str, own.filter(regex=f"^{PREFIX}")):
            values = own[column].dropna().sort_values(kind="stable")
            distinct = values.nunique()
            if distinct < 2:
                continue
            if distinct <= FEW:
                texts = values.map(lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))
                yield str(cohort), column.removeprefix(PREFIX), texts
            elif pd.api.types.is_numeric_dtype(values):  # thirds, named by their ends
                ends = np.unique(np.quantile(values, np.linspace(0, 1, PARTS + 1)))
                place = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2)
                names = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(ends)]
                named = pd.Series(np.array(names, dtype=object)[place], index=values.index)
                yield str(cohort), column.removeprefix(PREFIX), named


def parted(agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up each part of each cohort as a cohort of its own.

    ``agents``: of all runs, with their ``run``. Returns frame: the columns ``COHORTS``; ``cohort``
    is cohort, parameter and range, for ``named``.
    """
    found = []
    for cohort, parameter, ranges in varied(agents):
        labels = BETWEEN.join([cohort, parameter, ""]) + ranges
        own = agents.loc[ranges.index].assign(cohort=labels)
        rows = [cohorts_of(part, int(str(run))) for run, part in own.groupby("run")]
        parts = pd.concat(rows)
        found += [parts[parts["cohort"] == label] for label in labels.unique()]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COHORTS)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Give a table of parts their ``cohort``, ``parameter`` and ``range``."""
    parts = table["cohort"].str.split(BETWEEN, expand=True, regex=False)
    parts = parts.reindex(columns=range(len(PARTED)))
    place = list(table).index("cohort")
    rest = table.drop(columns="cohort")
    for i, name in enumerate(PARTED):
        rest.insert(place + i, name, parts[i].astype("str"))
    return rest
