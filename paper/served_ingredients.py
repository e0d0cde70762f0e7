"""What single ingredients of the served forecast cost, and of the autoregression beside it.

Newsvendors at four critical ratios are served as in ``paper.decisions``, with the defaults of
``OnlineOmnipredictor`` and with one ingredient changed (``CHANGES``), one and seven steps ahead;
the first third of a series is not counted.

    served-ingredients           each change, on the three series of ``paper.public_series`` where
                                 the autoregression of ``paper.rivals`` is cheaper than ours
    autoregression-ingredients   the other way round: the autoregression with what ours has
    ingredients-elsewhere        changes of the regressions, on the six of ``paper.further_series``
    served-recalibration         changes of the recalibration, on the ten of
                                 ``paper.public_series`` and the six of ``paper.unseen_series``
    served-seasons               no model that finds seasons by itself, on these sixteen

A row is a series, a number of steps and a change. All ratios of costs are geometric means over the
critical ratios: ``rival_ratio`` is the autoregression's mean cost in ratio to ours with the change,
``own_ratio`` ours with the change in ratio to ours without one, ``crps_ratio`` our continuous
ranked probability score likewise. ``coverage_90`` is the share of outcomes in our central 90 %
intervals, ``width_90`` their mean width in ratio to that of the autoregression's. ``time_ratio`` is
the processor time with the change in ratio to that without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from paper import further_series, public_series
from paper.decisions import (
    COVERAGES,
    STEPS,
    Played,
    costs_of,
    coverage,
    crps,
    follow,
    orders_at,
    scaled,
    serve,
)
from paper.further_series import FURTHER_SERIES
from paper.harness import Row, Table
from paper.public_series import MAX_ROUNDS, PUBLIC_SERIES, PublicSeries
from paper.rivals import Task, autoregression, check_rounds
from paper.unseen_series import UNSEEN_SERIES
from regretless import OnlineOmnipredictor
from regretless.forecaster.models.aggregate import LONG_REGRESSION, PANEL_OF_DISTRIBUTIONS
from regretless.forecaster.models.recalibration import Recalibration
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss

MANY_ERRORS = 256  # in place of 64
WARM_UP = 60  # rounds that are served before any is timed
CHEAPER_SERIES = ("calls of five minutes", "weekly gasoline", "weekly CO2")

Models = Mapping[str, Mapping[str, Any]]  # kinds and parameters, by the models' names


class NoRecalibration(Recalibration):
    """Leaves every mixture as it is."""

    def apply(self, outcomes: Array, weights: Array) -> tuple[Array, Array]:
        """Return the weights (m,) as they are, and the distribution function."""
        _, probability = super().apply(outcomes, weights)
        return weights, probability


class FullWeights(Recalibration):
    """Gives outcomes that were forecast several rounds ahead the weight of any other."""

    def learn(
        self, outcome: float, probability: Array, *, number: int, unknown_before: int = 0
    ) -> None:
        """Learn the outcome of a round, whatever was known when it was forecast."""
        super().learn(outcome, probability, number=number)


@dataclass(frozen=True)
class Change:
    """One ingredient of the served forecast that is not as by default."""

    models: Models | str = "panel"
    recalibration: type[Recalibration] = Recalibration

    def make_server(self, losses: Mapping[str, Loss], **options: Any) -> OnlineOmnipredictor:
        """Make what serves these losses."""
        server = OnlineOmnipredictor(losses, models=self.models, **options)
        pool = server._shared_models  # noqa: SLF001 - nobody else needs another recalibration
        pool._recalibration = self.recalibration()  # noqa: SLF001 - nor has it an option
        return server


def models_with(**parameters: Any) -> Models:
    """Return the panel, with these parameters of all models that carry their errors."""
    models: dict[str, Mapping[str, Any]] = {}
    for name, table in PANEL_OF_DISTRIBUTIONS.items():
        carries_errors = table["kind"] == "with-errors"
        models[name] = {**table, **parameters} if carries_errors else table
    return models


# least squares on twelve lags that weighs all rounds alike, as large or as small a ridge
OF_ALL_ROUNDS = {**LONG_REGRESSION, "forgetting": 1.0}
OF_ALL_ROUNDS_SMALL_RIDGE = {**OF_ALL_ROUNDS, "ridge": 0.0001}
MANY_ERRORS_ALIKE = {"window": MANY_ERRORS, "by_season": False}


def one_more(model: Mapping[str, Any], **parameters: Any) -> Change:
    """Return the change to have one model more, which carries its errors."""
    table = {"kind": "with-errors", "model": dict(model), **parameters}
    return Change(models={**PANEL_OF_DISTRIBUTIONS, "one-more": table})


def another_regression(model: Mapping[str, Any], **parameters: Any) -> Change:
    """Return the change to have another regression on twelve lags."""
    table = {"kind": "with-errors", "model": dict(model), **parameters}
    return Change(models={**PANEL_OF_DISTRIBUTIONS, "regression-with-errors": table})


NOTHING = "nothing"
CHANGES_OF_RECALIBRATION = {
    NOTHING: Change(),
    "no recalibration": Change(recalibration=NoRecalibration),
    "outcomes h rounds ahead weigh 1 in it": Change(recalibration=FullWeights),
}
WITHOUT_SEASONS = {
    name: table for name, table in PANEL_OF_DISTRIBUTIONS.items() if name != "seasonal-regression"
}
CHANGES_OF_SEASONS = {
    NOTHING: Change(),
    "no seasonal regression": Change(models=WITHOUT_SEASONS),
}
CHANGES = {
    **CHANGES_OF_RECALIBRATION,
    "regression does not forget": another_regression(OF_ALL_ROUNDS),
    "one more, does not forget": one_more(OF_ALL_ROUNDS_SMALL_RIDGE),
    "one more, seasonal, 256 errors alike": one_more(
        {"kind": "seasonal-regression", "forgetting": 1.0}, **MANY_ERRORS_ALIKE
    ),
    "256 errors in all models": Change(models=models_with(window=MANY_ERRORS)),
    "errors of all seasons alike": Change(models=models_with(by_season=False)),
}
CHANGES_OF_REGRESSIONS = {
    NOTHING: Change(),
    "regression does not forget": CHANGES["regression does not forget"],
    "the same, 256 errors alike": another_regression(OF_ALL_ROUNDS, **MANY_ERRORS_ALIKE),
    "one more, does not forget": CHANGES["one more, does not forget"],
    "one more, 256 errors alike": one_more(OF_ALL_ROUNDS_SMALL_RIDGE, **MANY_ERRORS_ALIKE),
}

# what the autoregression is given: parameters of its fit
CHANGES_OF_AUTOREGRESSION: dict[str, dict[str, Any]] = {
    "forgetting 0.99": {"forgetting": 0.99},
    "forgetting 0.998": {"forgetting": 0.998},
    "the last 64 residuals": {"max_residuals": 64},
    "forgetting 0.99, the last 64": {"forgetting": 0.99, "max_residuals": 64},
    "the last 256 residuals": {"max_residuals": MANY_ERRORS},
}
NO_PERIOD = "no lag of a period"
NO_CONTEXT = "no context"


@dataclass(frozen=True)
class Instance:
    """A series in the scale of its orders, and from which round on it is counted."""

    series: PublicSeries
    highest: float
    steps: int
    first: int

    @property
    def outcomes(self) -> Array:
        """Return the outcomes (m,) that are counted."""
        return self.series.outcomes[self.first :]

    def serve(self, change: Change, seed: int) -> Played:
        """Serve the series with a change."""
        return serve(
            self.series,
            self.highest,
            steps=self.steps,
            first=self.first,
            seed=seed,
            make_server=change.make_server,
        )


def instance_of(name: str, steps: int, rounds: int) -> Instance:
    """Read the first rounds of a series."""
    read = (PUBLIC_SERIES | UNSEEN_SERIES | FURTHER_SERIES)[name]
    series, highest = scaled(read().first_rounds(rounds))
    first = len(series.outcomes) // 3
    check_rounds(len(series.outcomes), first, steps)
    return Instance(series, highest, steps, first)


def mean_ratio(costs: Array, others: Array) -> float:
    """Return costs (R, m) in ratio to others: the geometric mean over critical ratios."""
    return float(np.exp(np.log(costs.mean(1) / others.mean(1)).mean()))


def mean_width(played: Played) -> float:
    """Return the mean width of central 90 % intervals."""
    low, high = COVERAGES[90]
    return float((played.quantiles[:, high] - played.quantiles[:, low]).mean())


def change_ours(
    name_and_steps: tuple[str, int], rounds: int, seed: int, changes: Mapping[str, Change]
) -> Iterator[Row]:
    """Serve a series with each change, the first of which is none; yield a row for each."""
    name, steps = name_and_steps
    instance = instance_of(name, steps, rounds)
    rival = follow(
        "autoregression", instance.series, instance.highest, steps=steps, first=instance.first
    )
    warm_up = Instance(instance.series.first_rounds(WARM_UP), instance.highest, steps, 0)
    warm_up.serve(Change(), seed)
    unchanged: Played | None = None
    seconds_unchanged = 0.0
    for changed, change in changes.items():
        start = process_time()
        ours = instance.serve(change, seed)
        seconds = process_time() - start
        if unchanged is None:
            unchanged = ours
            seconds_unchanged = seconds
        score = crps(ours.quantiles, instance.outcomes)
        yield {
            "series": name,
            "steps": steps,
            "changed": changed,
            "rival_ratio": mean_ratio(rival.costs, ours.costs),
            "own_ratio": mean_ratio(ours.costs, unchanged.costs),
            "crps_ratio": score / crps(unchanged.quantiles, instance.outcomes),
            "coverage_90": coverage(ours.quantiles, instance.outcomes, 90),
            "width_90": mean_width(ours) / mean_width(rival),
            "time_ratio": seconds / seconds_unchanged,
        }


def change_autoregression(name_and_steps: tuple[str, int], rounds: int) -> Iterator[Row]:
    """Forecast a series by autoregressions; yield the cost of each in ratio to the plain one's."""
    name, steps = name_and_steps
    instance = instance_of(name, steps, rounds)
    series = instance.series
    without_contexts = PublicSeries(series.outcomes, [{}] * len(series.outcomes), series.periods)
    without_periods = PublicSeries(series.outcomes, series.contexts, ())
    task = Task(series, steps, instance.first)
    forecasts = {NOTHING: autoregression(task)}
    for changed, parameters in CHANGES_OF_AUTOREGRESSION.items():
        forecasts[changed] = autoregression(task, **parameters)
    forecasts[NO_PERIOD] = autoregression(Task(without_periods, steps, instance.first))
    forecasts[NO_CONTEXT] = autoregression(Task(without_contexts, steps, instance.first))
    costs = {}
    for changed, quantiles in forecasts.items():
        orders = orders_at(quantiles[instance.first :], instance.highest)
        costs[changed] = costs_of(orders, instance.outcomes)
    for changed in forecasts:
        yield {
            "series": name,
            "steps": steps,
            "changed": changed,
            "cost_ratio": mean_ratio(costs[changed], costs[NOTHING]),
        }


def by_change(table: pd.DataFrame, column: str) -> str:
    """Lay a column out: a line for each change, a column for each number of steps and series."""
    wide = table.pivot_table(
        index="changed", columns=["steps", "series"], values=column, sort=False
    )
    return f"{column}\n{wide.round(3).to_string()}"


def text_by_series(table: pd.DataFrame) -> str:
    """Lay out the cost of the autoregression, and our intervals, with each change."""
    columns = ("rival_ratio", "own_ratio", "coverage_90", "width_90")
    return "\n\n".join(by_change(table, column) for column in columns)


def text_by_change(table: pd.DataFrame) -> str:
    """Lay out our costs with each change: over all series, and for each; and the times."""
    logs = table.assign(own_ratio=np.log(table["own_ratio"]))
    means = logs.pivot_table(index="changed", columns="steps", values="own_ratio", sort=False)
    ratios = means.apply(np.exp)
    times = table.groupby("changed", sort=False)["time_ratio"].agg(["min", "max"])
    return (
        "own_ratio, geometric mean over series\n"
        f"{ratios.round(3).to_string()}\n\n"
        f"{by_change(table, 'own_ratio')}\n\n"
        f"time_ratio\n{times.round(2).to_string()}"
    )


def text_by_group(table: pd.DataFrame) -> str:
    """Lay out means over the ten series and over the six that nobody had looked at; and each."""
    ratios = ["rival_ratio", "own_ratio", "crps_ratio"]
    logs = table.assign(group=np.where(table["series"].isin(list(PUBLIC_SERIES)), "ten", "six"))
    logs[ratios] = np.log(logs[ratios])
    of_group = logs.groupby(["steps", "group", "changed"], sort=False)
    means = of_group[[*ratios, "coverage_90", "width_90"]].mean()
    means[ratios] = np.exp(means[ratios])
    blocks = [f"means over series, geometric ones of ratios\n{means.round(3).to_string()}"]
    for column in ("own_ratio", "crps_ratio", "coverage_90"):
        wide = table.pivot_table(
            index=["steps", "series"], columns="changed", values=column, sort=False
        )
        blocks.append(f"{column}\n{wide.round(3).to_string()}")
    return "\n\n".join(blocks)


def with_each_step(names: Iterable[str]) -> list[tuple[str, int]]:
    """List these series, one and seven steps ahead."""
    return [(name, steps) for steps, name in product(STEPS, names)]


def table_of_changes(
    names: Sequence[str], changes: Mapping[str, Change], layout: Any, packages: Sequence[str]
) -> Table:
    """Return the table of changes of ours on some series."""
    return Table(
        rows=partial(change_ours, changes=changes),
        by=("series", "steps", "changed"),
        instances=lambda: with_each_step(names),
        rounds=MAX_ROUNDS,
        seeds=1,
        layout=layout,
        packages=packages,
    )


TABLES = {
    "served-ingredients": table_of_changes(
        CHEAPER_SERIES, CHANGES, text_by_series, public_series.PACKAGES
    ),
    "autoregression-ingredients": Table(
        rows=change_autoregression,
        by=("series", "steps", "changed"),
        instances=lambda: with_each_step(CHEAPER_SERIES),
        rounds=MAX_ROUNDS,
        layout=partial(by_change, column="cost_ratio"),
        packages=public_series.PACKAGES,
    ),
    "ingredients-elsewhere": table_of_changes(
        list(FURTHER_SERIES), CHANGES_OF_REGRESSIONS, text_by_change, further_series.PACKAGES
    ),
    "served-recalibration": table_of_changes(
        [*PUBLIC_SERIES, *UNSEEN_SERIES],
        CHANGES_OF_RECALIBRATION,
        text_by_group,
        public_series.PACKAGES,  # which hold the six, too
    ),
    "served-seasons": table_of_changes(
        [*PUBLIC_SERIES, *UNSEEN_SERIES], CHANGES_OF_SEASONS, text_by_group, public_series.PACKAGES
    ),
}
