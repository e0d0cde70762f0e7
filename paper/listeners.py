"""Whether models that are weighed by the losses of who listens serve them better.

    python -m pip install bokeh_sampledata river pmdarima plotnine
    python -m paper.listeners [--rounds 1000]

The aggregate of the panel weighs models by the squared error of each number, and chooses between
weights of each number and common ones by the same error (``forecaster.models.aggregate``). Here
the choice is by the mean loss of those who act on either, with a mean that weighs models by these
losses for a third candidate, and weights start from the running mean in place of all models alike.
Played are the bundled series and those of ``paper.series``. The size of the head start was first
tried on series among which were nine of the latter, so these favour it, if anything. Printed is the
loss of acting on each, relative to that of the best model of the cohort, and the differences to the
aggregate as it is, series by series.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import tomli_w
import typer

from paper.series import COHORT, LISTENERS, SERIES, cell, outcomes
from regretless import load
from regretless.forecaster.models import Aggregate
from regretless.forecaster.models.aggregate import PolynomialWeights
from regretless.forecaster.models.panel import PANEL, made
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
        super().__init__(made(PANEL, size), size)
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

    def _predicted(self, x: Any) -> Array:
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


def listeners(name: str, table: pd.DataFrame, utility: str, folder: Path) -> tuple[Any, Any]:
    """Return the listeners' loss and basis of a series."""
    kind = "one" if len(outcomes(table)) == 1 else "many"
    count, parameters = LISTENERS[kind][utility]
    cohort = COHORT | {"name": utility, "utility": utility, "count": count}
    table.to_csv(folder / f"{name}.csv", index=False)
    data = {key.removeprefix("data."): told for key, told in cell(name, table).items()}
    told = {
        "name": name,
        "rounds": 1,
        "data": data,
        "cohort": [cohort | {"parameters": parameters}],
    }
    (folder / f"{name}.toml").write_text(tomli_w.dumps(told), "utf-8")
    (block,) = (model := load(str(folder / f"{name}.toml")).build(seed=1)).game.blocks
    return model.game.cohorts[0].loss, block.basis


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


def main(rounds: Annotated[int, typer.Option()] = 1000) -> None:
    """Play all series, and print the ratios and their differences."""
    rows = []
    read = {name: make() for name, make in SERIES.items()}
    bundled = {name: pd.read_csv(DATA / f"{name}.csv")[told] for name, told in BUNDLED.items()}
    with tempfile.TemporaryDirectory() as folder:
        for which, tables in (("tuned", bundled), ("not tuned", read)):
            for name, table in tables.items():
                kind = "one" if len(outcomes(table)) == 1 else "many"
                for utility in LISTENERS[kind]:
                    parts = listeners(name, table, utility, Path(folder))
                    found = played(table, *parts, rounds)
                    rows.append({"where": which, "series": name, "cohort": utility} | found)
                    typer.echo(" ".join(map(str, rows[-1].values())))
    table = pd.DataFrame(rows)
    for where, own in table.groupby("where", sort=False):
        series = own.groupby("series")[list(WAYS)].mean()
        gap = series.sub(series["as it is"], axis=0)
        told = pd.DataFrame({"mean": own[list(WAYS)].mean(), "worst": own[list(WAYS)].max()})
        told["above 1.005"] = (own[list(WAYS)] > 1.005).sum()
        told["difference"], told["error"] = gap.mean(), gap.sem()
        typer.echo(f"\n{where}, {len(own)} cohorts\n{told.round(5).to_string()}")


if __name__ == "__main__":
    typer.run(main)
