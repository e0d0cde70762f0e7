"""What the distribution that is served costs beside the best of the models that it is mixed of.

``served-distribution``: newsvendors at four critical ratios (``paper.decisions``) are served one
step ahead on ten public series, with the defaults of ``OnlineOmnipredictor``. A line is a series:
the mean loss in ratio to that of the best model in hindsight, a geometric mean over the critical
ratios; the least and the greatest of the four; how many models are best for some ratio; and how
often a central 90 % interval held the outcome after the first rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from paper.decisions import COSTS, N_ORDERS, scaled
from paper.harness import Row, Table
from paper.public_series import MAX_ROUNDS, PACKAGES, PUBLIC_SERIES
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor

LEVELS = (0.05, 0.95)
FIRST_COVERED = 200  # rounds before coverage is counted


def serve(name: str, rounds: int | None, seed: int) -> Iterator[Row]:
    """Serve a series; yield a row for each critical ratio."""
    series, highest = scaled(PUBLIC_SERIES[name]().first_rounds(rounds or MAX_ROUNDS))
    orders = np.linspace(0.0, highest, N_ORDERS)
    losses = {}
    for ratio, (underage, overage) in COSTS.items():
        losses[ratio] = Newsvendor(orders=orders, underage=underage, overage=overage)
    server = OnlineOmnipredictor(losses, scale={"y": (0.0, highest)}, seed=seed)
    covered = []
    for t, (context, outcome) in enumerate(zip(series.contexts, series.outcomes, strict=True)):
        forecast = server.predict_one(context)
        if t >= FIRST_COVERED:
            low, high = (forecast.quantile(level) for level in LEVELS)
            covered.append(low <= outcome <= high)
        server.learn_one(context, float(outcome))
    for row in server.regrets().to_dict("records"):
        loss_of_best = row["mean_loss"] - row["regret_to_model"]
        yield {
            "series": name,
            "critical_ratio": row["loss"],
            "rounds": row["rounds"],
            "mean_loss": row["mean_loss"] / highest,
            "best_model": row["best_model"],
            "loss_ratio": row["mean_loss"] / loss_of_best,
            "coverage": float(np.mean(covered)) if covered else np.nan,
        }


def text(table: pd.DataFrame) -> str:
    """Lay the table out: a line for each series, and the geometric mean."""
    log_ratios = np.log(table["loss_ratio"])
    by_series = table.groupby("series", sort=False)
    lines = pd.DataFrame(
        {
            "rounds": by_series["rounds"].first(),
            "loss, ratio": np.exp(log_ratios.groupby(table["series"], sort=False).mean()),
            "least": by_series["loss_ratio"].min(),
            "greatest": by_series["loss_ratio"].max(),
            "best models": by_series["best_model"].nunique(),
            "coverage of 90 %": by_series["coverage"].mean(),
        }
    )
    mean_ratio = float(np.exp(log_ratios.mean()))
    mean_coverage = float(lines["coverage of 90 %"].mean())
    return (
        f"{lines.round(3).to_string()}\n"
        f"geometric mean {mean_ratio:.3f}, mean coverage {mean_coverage:.3f}"
    )


TABLES = {
    "served-distribution": Table(
        serve,
        by=("series", "critical_ratio"),
        instances=lambda: list(PUBLIC_SERIES),
        rounds=MAX_ROUNDS,
        seeds=1,
        layout=text,
        packages=PACKAGES,
    )
}
