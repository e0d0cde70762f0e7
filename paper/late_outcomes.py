"""What late outcomes and forecasts of later rounds cost who is served round by round.

``late-outcomes``: mean loss of three newsvendors whom an ``OnlineOmnipredictor`` serves, in units
of the outcome's scale, on series of the project and on one that the package ``river`` holds.
Outcomes come at once, one or six rounds late in order, up to six rounds late in any order, or at
once to who forecasts seven steps ahead. ``slots`` counts the instances of the theorem, ``swap
regret`` is the greatest of the three losses, ``promised`` the greatest bound, added up over slots.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.scenarios.studies.design import CATALOGUE

COSTS = {"careful": (4.0, 1.0), "even": (1.0, 1.0), "frugal": (1.0, 4.0)}  # underage, overage
N_ORDERS = 11  # that a newsvendor may place
MARGIN = 0.05  # of the range, by which the scale is wider on either side
STEPS_AHEAD = 7


@dataclass(frozen=True)
class Series:
    """Outcomes (T,) and the context of each."""

    contexts: Sequence[dict[str, float]]
    outcomes: Array


def bundled(file: str, outcome: str, context: list[str]) -> Series:
    """Read columns of a table of the project."""
    table = pd.read_csv(CATALOGUE.parents[1] / "data" / file)
    rows = table[context].to_numpy(float).tolist()
    contexts = [dict(zip(context, row, strict=True)) for row in rows]
    return Series(contexts, table[outcome].to_numpy(float))


def bikes() -> Series:
    """Read the hourly demand for bicycles, with the hour and whether people work."""
    return bundled("bike-demand.csv", "bikers", ["hour", "workingday"])


def weather() -> Series:
    """Read the highest temperature of each day, with the month."""
    return bundled("seattle-weather.csv", "temp_max", ["month"])


def passengers() -> Series:
    """Read the monthly passengers of airlines, in thousands, with the month."""
    datasets: Any = import_module("river.datasets")
    rows = list(datasets.AirlinePassengers())
    contexts = [{"month": float(features["month"].month)} for features, _ in rows]
    return Series(contexts, np.array([count for _, count in rows], dtype=np.float64))


SERIES: dict[str, Callable[[], Series]] = {
    "bikes": bikes,
    "weather": weather,
}
if find_spec("river") is not None:
    SERIES["passengers"] = passengers

ARRIVALS: dict[str, int] = {  # rounds that an outcome comes late, at most
    "at once": 0,
    "one late": 1,
    "six late": 6,
    "up to six late, in any order": 6,
}
MIN_ROUNDS = max(ARRIVALS.values()) + 1  # of which the latest first outcome comes in the last one
AHEAD = "seven steps ahead"
Round = tuple[dict[str, float], float]  # a context and its outcome


def serve_late(server: OnlineOmnipredictor, rounds: Sequence[Round], delays: Array) -> None:
    """Serve a series of contexts and outcomes, each told so many rounds late.

    What has not come when the series ends is never told.
    """
    due: dict[int, list[int]] = {}  # rounds whose outcomes come in a round
    for round_index, (context, _) in enumerate(rounds):
        server.predict_one(context, key=round_index)
        arrival = round_index + int(delays[round_index])
        due.setdefault(arrival, []).append(round_index)
        for past_round in due.pop(round_index, []):
            _, outcome = rounds[past_round]
            server.learn_late(past_round, outcome)


def serve_ahead(server: OnlineOmnipredictor, rounds: Sequence[Round]) -> None:
    """Serve a series whose outcomes come at once, and forecast ``STEPS_AHEAD`` steps ahead."""
    for round_index, (context, outcome) in enumerate(rounds):
        foretold = round_index + STEPS_AHEAD - 1
        if foretold < len(rounds):
            later_context, _ = rounds[foretold]
            server.predict_one(later_context)
        server.learn_one(context, outcome)


def serve(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Serve a series whose outcomes arrive in one way; yield its mean loss."""
    name, arrival = instance
    series = SERIES[name]()
    values = series.outcomes[:rounds]
    margin = MARGIN * float(np.ptp(values))
    above_least = values - values.min() + margin  # no order is negative
    highest = float(above_least.max()) + margin
    played = list(zip(series.contexts[:rounds], above_least.tolist(), strict=True))
    orders = np.linspace(0.0, highest, N_ORDERS)
    losses = {
        owner: Newsvendor(orders=orders, underage=underage, overage=overage)
        for owner, (underage, overage) in COSTS.items()
    }
    options: dict[str, Any] = {"steps_ahead": STEPS_AHEAD} if arrival == AHEAD else {}
    server = OnlineOmnipredictor(losses, scale={"y": (0.0, highest)}, seed=seed, **options)
    if arrival == AHEAD:
        serve_ahead(server, played)
    else:
        delays = np.full(len(played), ARRIVALS[arrival])
        if "any order" in arrival:
            rng = stream(seed, "benchmarks", "late-outcomes")
            delays = rng.integers(0, ARRIVALS[arrival] + 1, len(played))
        serve_late(server, played, delays)
    regrets = server.regrets()
    row: Row = {
        "series": name,
        "outcomes": arrival,
        "rounds": int(regrets["rounds"].iloc[0]),
        "mean loss": float(regrets["mean_loss"].mean()) / highest,
        "swap regret": float(regrets["swap_regret"].max()) / highest,
    }
    if "bound_from_variation" in regrets:
        row["promised"] = float(regrets["bound_from_variation"].max()) / highest
        row["slots"] = int(regrets["slots"].iloc[0])
    yield row


TABLES = {
    "late-outcomes": Table(
        rows=serve,
        by=("series", "outcomes"),
        instances=lambda: list(product(SERIES, [*ARRIVALS, AHEAD])),
        rounds=1500,
        seeds=1,
        min_rounds=MIN_ROUNDS,
        why_min_rounds=f"no outcome that is {MIN_ROUNDS - 1} rounds late is learned by then",
    )
}
