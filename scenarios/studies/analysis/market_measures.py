"""Measures of a run's whole market: mean and deviation over the rounds of what it recorded.

They are numbers of a run, not of a cohort, and stand under the name ``MARKET``: outcomes, prices,
quantities, a leader's payoff. Contrasts of runs with the same seed compare them in pairs.
"""

import pandas as pd

from regretless.scenarios.studies.analysis.families import OF_MARKET

MARKET = "whole market"
LEFT_OUT = r"^(round|atoms|certificate|x_\d+)$"  # columns of rounds that are no outcome


def market_of(rounds: pd.DataFrame, run: int) -> pd.DataFrame:
    """Sum up a run's table of rounds.

    Returns
    -------
    frame
        One row: ``run``, ``cohort``, and ``NAME_mean`` and ``NAME_deviation`` for every column of
        numbers; the deviation is the standard deviation over rounds.
    """
    numbers = rounds.select_dtypes("number")
    numbers = numbers.drop(columns=list(numbers.filter(regex=LEFT_OUT)))
    both = zip((numbers.mean(), numbers.std(ddof=0)), OF_MARKET, strict=True)
    found = pd.concat([own.add_suffix(ending) for own, ending in both])
    return pd.DataFrame([found]).assign(run=run, cohort=MARKET)


def with_market(cohorts: pd.DataFrame, market: pd.DataFrame) -> pd.DataFrame:
    """Add rows of the whole market to those of the cohorts, of what differs between runs."""
    names = [str(name) for name in market if name not in {"run", "cohort"}]
    spread = market[names].max() - market[names].min()
    moving = [name for name in names if spread[name] > 1e-12]
    if not moving or MARKET in set(cohorts["cohort"]):
        return cohorts
    return pd.concat([cohorts, market[["run", "cohort", *moving]]], ignore_index=True)
