"""What draws of a few agents add to the risk of an announcement, beside a simulation.

``announcements``: guests of ``el-farol``, who respond smoothly (``eta = 1``), hear 0.5 in every
round. A line is a number of guests and an adjustment of the market: the risk of a continuum, the
risk that ``announcement_risk`` returns, and the mean squared error of the announcement in a run,
without the first rounds, in which the market comes to rest.
"""

from collections.abc import Iterator
from typing import Any

from paper.harness import Row, Table
from regretless import load

ANNOUNCED = 0.5  # by the forecaster "constant"
ROUNDS = 1000
ROUNDS_TO_REST = 100
SEEDS = 1
CROWDS = ((1, 1.0), (20, 1.0), (20, 0.4), (100, 1.0))  # guests, weight of the newest attendance


def announce(crowd: tuple[int, float], rounds: int | None, seed: int) -> Iterator[Row]:
    """Let a crowd hear one announcement; yield its risk and its mean squared error."""
    guests, adjustment = crowd
    changes: dict[str, Any] = {
        "market.adjustment": adjustment,
        "forecaster": {"kind": "constant"},
        "cohort.guests.count": guests,
        "cohort.guests.response": "quantal",
        "cohort.guests.eta": 1.0,
    }
    model = load("el-farol", rounds=rounds or ROUNDS, **changes).build(seed=seed + 1)
    model.run()
    (row,) = model.announcement_risk([ANNOUNCED]).to_dict("records")
    attendance = model.rounds_frame()["y_0"].iloc[ROUNDS_TO_REST:]
    yield {
        "guests": guests,
        "adjustment": adjustment,
        "risk of a continuum": row["risk"] - row["variance_of_draws"],
        "risk": row["risk"],
        "mean squared error": ((attendance - ANNOUNCED) ** 2).mean(),
    }


TABLES = {
    "announcements": Table(
        announce,
        by=("guests", "adjustment"),
        instances=lambda: CROWDS,
        rounds=ROUNDS,
        seeds=SEEDS,
        min_rounds=ROUNDS_TO_REST + 1,
        why_min_rounds=f"the first {ROUNDS_TO_REST} do not count",
    )
}
