"""Whether models that are weighed by the losses of who listens serve them better.

The aggregate of the panel weighs models by the squared error of each number, and chooses between
weights of each number and common ones by the same error (``forecaster.models.aggregate``). Here
the choice is by the mean loss of those who act on either, with a mean that weighs models by these
losses for a third candidate, and weights start from the running mean in place of all models alike.
Played are the bundled series and those of ``series``. The size of the head start was first tried on
series among which were nine of the latter, so these favour it, if anything. Told are the losses of
acting on each, relative to that of the best model of the cohort: means, the worst, how many are
above 1.005, and the differences to the aggregate as it is with their standard errors, by series.

``WeighedByLosses`` is the aggregate with these choices; ``compare`` plays one series for a cohort.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from paper.series import market, outcomes, tables
from regretless.forecaster.models import Aggregate
from regretless.forecaster.models.aggregate import PANEL, PolynomialWeights, make_panel
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

DATA = Path(__file__).parents[1] / "scenarios/data"
HEAD_START = 0.02  # R_k of the running mean before the first round


class Way(NamedTuple):
    """A way to choose among means of the models.

    Attributes
    ----------
    candidates : int
        Means that losses choose from: 2 of the aggregate's own, or 3 with the one that weighs
        models by losses; 0 for the aggregate as it is.
    head_start : float
        R_k of the running mean before the first round.
    """

    candidates: int = 0
    head_start: float = 0.0


WAYS = {
    "as it is": Way(),
    "head start": Way(head_start=HEAD_START),
    "by losses": Way(candidates=2),
    "three, by losses": Way(candidates=3),
    "by losses, head start": Way(candidates=2, head_start=HEAD_START),
}


class WeighedByLosses(Aggregate):
    """The aggregate with another choice, told the losses of acting on each candidate."""

    def __init__(self, size: int, way: Way) -> None:
        super().__init__(make_panel(PANEL, size), size)
        for weights in (self._own, self._common):
            weights._regret[0] = way.head_start  # noqa: SLF001 - nobody else needs to set it
        self.n_candidates = way.candidates
        self._weights_by_losses = PolynomialWeights(len(self.made_of), 1)  # of models
        self._weights_of_candidates = PolynomialWeights(
            max(self.n_candidates, 1), 1
        )  # of candidates

    @property
    def candidates(self) -> Array:
        """The means that it chooses from (C, n); none for the aggregate as it is."""
        if not self.n_candidates:
            return np.empty((0, self.size))
        all_shares = (self._own.shares, self._common.shares, self._weights_by_losses.shares)
        means = [(shares * self._points).sum(0) for shares in all_shares]
        return np.array(means[: self.n_candidates])

    def _predicted(self, x: object) -> Array:
        prediction = super()._predicted(x)
        if not self.n_candidates:
            return prediction
        return np.asarray((self._weights_of_candidates.shares * self.candidates).sum(0))

    def hear(self, loss: float, losses_of_candidates: Array, losses_of_models: Array) -> None:
        """Learn the mean losses of acting on it, on each candidate and on each model."""
        if self.n_candidates:
            self._weights_of_candidates.add((loss - losses_of_candidates)[:, np.newaxis])
            self._weights_by_losses.add(
                (losses_of_candidates[-1] - losses_of_models)[:, np.newaxis]
            )


def mean_losses(offset: Array, weights: Array, points: Array, truth: Array) -> Array:
    """Return the mean loss (m,) of all listeners who act on points (m, n).

    Their losses have the coefficients ``offset`` (K, A) and ``weights`` (K, A, n).
    """
    expected_losses = offset + np.einsum("kan,mn->mka", weights, points)
    best_action = expected_losses.argmin(2)
    losses = offset + weights @ truth
    return np.asarray(losses[np.arange(len(losses)), best_action].mean(1))


def compare(table: pd.DataFrame, loss: Loss, basis: Basis, rounds: int) -> dict[str, float]:
    """Return the mean loss with each way over that with the best model of the panel."""
    values = table[outcomes(table)].to_numpy(dtype=float)[:rounds]
    low = values.min(0)
    high = values.max(0)
    width = np.where(high > low, high - low, 1.0)  # of few rounds an outcome may be always the same
    truths = basis.transform((values - low) / width)
    contexts = table.drop(columns=outcomes(table)).to_dict("records")[:rounds]
    offset, weights = basis.coefficients(loss)
    ratios: dict[str, float] = {}
    for name, way in WAYS.items():
        aggregate = WeighedByLosses(basis.size, way)
        total = 0.0
        total_of_models = np.zeros(len(PANEL))
        for context, truth in zip(contexts, truths, strict=True):
            point = aggregate.point(context)[np.newaxis]
            points = np.concatenate([point, aggregate.candidates, aggregate.points])
            losses = mean_losses(offset, weights, points, truth)
            losses_of_models = losses[-len(PANEL) :]
            aggregate.hear(losses[0], losses[1 : -len(PANEL)], losses_of_models)
            aggregate.update(truth)
            total += losses[0]
            total_of_models += losses_of_models
        ratios[name] = total / total_of_models.min()
    return ratios


BUNDLED = {
    "bike-demand": ["hour", "bikers"],
    "seattle-weather": ["precipitation", "temp_max", "wind"],
    "factor-returns": ["mtum", "usmv", "vlue"],
}


def all_series() -> dict[str, pd.DataFrame]:
    """Return all series."""
    bundled = {}
    for name, columns in BUNDLED.items():
        bundled[name] = pd.read_csv(DATA / f"{name}.csv")[columns]
    return bundled | tables()


def on_series(name: str, rounds: int) -> Iterator[Row]:
    """Compare all ways for each cohort of a series."""
    table = all_series()[name]
    model = market(name, table, rounds=1, seed=1)
    for cohort, block in zip(model.game.cohorts, model.game.blocks, strict=True):
        yield {
            "where": "tuned" if name in BUNDLED else "not tuned",
            "series": name,
            "cohort": cohort.name,
            **compare(table, cohort.loss, block.basis, rounds),
        }


def layout(table: pd.DataFrame) -> str:
    """Lay the comparison out."""
    parts = [table.to_string(index=False)]
    for where, cohorts in table.groupby("where", sort=False):
        ratios = cohorts[list(WAYS)]
        mean_by_series = cohorts.groupby("series")[list(WAYS)].mean()
        difference = mean_by_series.sub(mean_by_series["as it is"], axis=0)
        summary = pd.DataFrame(
            {
                "mean": ratios.mean(),
                "worst": ratios.max(),
                "above 1.005": (ratios > 1.005).sum(),
                "difference": difference.mean(),
                "error": difference.sem(),
            }
        )
        parts.append(f"\n{where}, {len(cohorts)} cohorts\n{summary.round(5).to_string()}")
    return "\n".join(parts)


TABLES = {
    "listeners": Table(
        on_series, ["series"], lambda: list(all_series()), rounds=1000, layout=layout
    ),
}
