"""Whether models that are weighed by the losses of who listens serve them better.

The aggregate of the panel weighs models by the squared error of each number, and chooses between
weights of each number and common ones by the same error (``forecaster.models.aggregate``). Here
the choice is by the mean loss of those who act on either, with a mean that weighs models by these
losses for a third candidate, and weights start from the running mean in place of all models alike.
Played are the bundled series and those of ``series``. The size of the head start was first tried on
series among which were nine of the latter, so these favour it, if anything. Told are the losses of
acting on each, relative to that of the best model of the cohort: means, the worst, how many are
above 1.005, and the differences to the aggregate as it is with their standard errors, by series.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from paper.series import market, outcomes, tables
from regretless.forecaster.models import Aggregate
from regretless.forecaster.models.aggregate import PANEL, PolynomialWeights, make_panel
from regretless.market.core.arrays import Array

DATA = Path(__file__).parents[1] / "scenarios/data"
START = 0.02  # R_k of the running mean before the first round
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "head start": {"start": START},
    "by losses": {"by_losses": 2},
    "three, by losses": {"by_losses": 3},
    "by losses, head start": {"by_losses": 2, "start": START},
}


class Weighed(Aggregate):
    """The aggregate with another choice, told the losses of acting on each candidate."""

    def __init__(self, size: int, *, by_losses: int = 0, start: float = 0.0) -> None:
        super().__init__(make_panel(PANEL, size), size)
        for weights in (self._own, self._common):
            weights._regret[0] = start  # noqa: SLF001 - nobody else needs to set it
        self.by_losses = by_losses
        self._heard = PolynomialWeights(len(self.made_of), 1)
        self._chosen_by_loss = PolynomialWeights(max(by_losses, 1), 1)

    @property
    def candidates(self) -> Array:
        """The means that it chooses from (C, n); the aggregate's own alone without a choice."""
        if not self.by_losses:
            return np.empty((0, self.size))
        shares = self._own.shares, self._common.shares, self._heard.shares
        return np.array([(one * self._points).sum(0) for one in shares[: self.by_losses]])

    def _predicted(self, x: object) -> Array:
        usual = super()._predicted(x)
        if not self.by_losses:
            return usual
        return np.asarray((self._chosen_by_loss.shares * self.candidates).sum(0))

    def hear(self, own: float, candidates: Array, models: Array) -> None:
        """Learn the mean losses of acting on it, on each candidate and on each model."""
        if self.by_losses:
            self._chosen_by_loss.add((own - candidates)[:, None])
            self._heard.add((candidates[-1] - models)[:, None])


def suffered(offset: Array, weights: Array, points: Array, truth: Array) -> Array:
    """Mean loss (m,) of all listeners who act on points (m, n), with coefficients (K, A, n)."""
    chosen = (offset + np.einsum("kan,mn->mka", weights, points)).argmin(2)
    losses = offset + weights @ truth
    return np.asarray(losses[np.arange(len(losses)), chosen].mean(1))


def played(table: pd.DataFrame, loss: Any, basis: Any, rounds: int) -> dict[str, float]:
    """Return the mean loss with each way over that with the best model of the panel."""
    told = table[outcomes(table)].to_numpy(dtype=float)[:rounds]
    low, high = told.min(0), told.max(0)
    truths = basis.transform((told - low) / (high - low))
    contexts = table.drop(columns=outcomes(table)).to_dict("records")[:rounds]
    ratios: dict[str, float] = {}
    offset, weights = basis.coefficients(loss)
    for way, keys in WAYS.items():
        one, sums = Weighed(basis.size, **keys), np.zeros(1 + len(PANEL))
        for x, truth in zip(contexts, truths, strict=True):
            points = np.concatenate([one.point(x)[None], one.candidates, one.points])
            lost = suffered(offset, weights, points, truth)
            own, candidates, models = lost[0], lost[1 : -len(PANEL)], lost[-len(PANEL) :]
            one.hear(own, candidates, models)
            one.update(truth)
            sums += [own, *models]
        ratios[way] = sums[0] / sums[1:].min()
    return ratios


BUNDLED = {
    "bike-demand": ["hour", "bikers"],
    "seattle-weather": ["precipitation", "temp_max", "wind"],
    "factor-returns": ["mtum", "usmv", "vlue"],
}


def known() -> dict[str, pd.DataFrame]:
    """Return all series."""
    own = {name: pd.read_csv(DATA / f"{name}.csv")[told] for name, told in BUNDLED.items()}
    return own | tables()


def on_series(name: str, rounds: int) -> Iterator[Row]:
    """Compare all ways for each cohort of a series."""
    table = known()[name]
    model = market(name, table, rounds=1, seed=1)
    for cohort, block in zip(model.game.cohorts, model.game.blocks, strict=True):
        found = played(table, cohort.loss, block.basis, rounds)
        where = "tuned" if name in BUNDLED else "not tuned"
        yield {"where": where, "series": name, "cohort": cohort.name} | found


def layout(table: pd.DataFrame) -> str:
    """Lay the comparison out."""
    parts = [table.to_string(index=False)]
    for where, own in table.groupby("where", sort=False):
        series = own.groupby("series")[list(WAYS)].mean()
        gap = series.sub(series["as it is"], axis=0)
        told = pd.DataFrame({"mean": own[list(WAYS)].mean(), "worst": own[list(WAYS)].max()})
        told["above 1.005"] = (own[list(WAYS)] > 1.005).sum()
        told["difference"], told["error"] = gap.mean(), gap.sem()
        parts.append(f"\n{where}, {len(own)} cohorts\n{told.round(5).to_string()}")
    return "\n".join(parts)


TABLES = {
    "listeners": Table(on_series, ["series"], lambda: list(known()), 1000, layout=layout),
}
