"""What a shop pays that sees its sales only, told which orders were sold out.

``censored-demand``: average cost per round of a newsvendor whom an ``OnlineOmnipredictor`` serves,
in ratio to that of one who sees all of demand. It is told sales, min(order, demand), and of each
round whether all was sold; in a share of rounds it explores, by an order that probably is not sold
out. ``sales taken for demand`` is not told which were sold out. Beside it is the adaptive inventory
rule of Huh and Rusmevichientong (2009, Mathematics of Operations Research 34(1), 103-123,
doi:10.1287/moor.1080.0355) for goods that perish, which needs to know no more than whether it sold
out, and has no context: after a round with order q it moves by ``STEP`` Q / (max(b, h) sqrt(t)),
Q being the largest order, down by h times as much where something was left, else up by b times.

``tracked level`` orders, from the forecast of a server that is told which orders were sold out, the
best order for a level that is the newsvendor's b / (b + h) at first. After each round the level
moves by ``RATE`` (1{sold out} - h / (b + h)) within ``LEVELS``, as adaptive conformal inference
does (Gibbs and Candes 2021, arXiv:2106.00170): whether all was sold is seen in every round,
censored or not, so that the share of orders that are sold out is kept near h / (b + h).

The costs are b = 4 for a piece too few and h = 1 for one too many. Exploring orders are charged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from paper.harness import Row, Table
from paper.late_outcomes import SERIES
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.online.outcome_distribution import OnlineForecast
from regretless.market.core.arrays import Array

UNDERAGE = 4.0  # b
OVERAGE = 1.0  # h
N_ORDERS = 27
ROOM = 1.3  # largest order, in ratio to the largest demand
STEP = 1.0  # of the adaptive inventory rule; the authors' theorem holds for any
RATE = 0.02  # of the tracked level, in a round
LEVELS = (0.7, 0.9)  # between which it stays
EXPLORING = (0.0, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Served:
    """The orders of a newsvendor, and which of them were sold out."""

    orders: Array
    is_sold_out: Array

    def cost(self, demands: Array) -> float:
        """Return the average cost per round."""
        missing = np.maximum(demands - self.orders, 0.0)
        left = np.maximum(self.orders - demands, 0.0)
        return float(np.mean(UNDERAGE * missing + OVERAGE * left))


def serve(
    contexts: list[dict[str, float]],
    demands: Array,
    *,
    largest_order: float,
    sees_demand: bool = False,
    tells_censoring: bool = True,
    tracks_level: bool = False,
    exploring: float = 0.0,
    seed: int = 0,
) -> Served:
    """Serve a newsvendor who orders in each round what the forecast says."""
    menu = np.linspace(0.0, largest_order, N_ORDERS)
    shop = Newsvendor(orders=menu, underage=UNDERAGE, overage=OVERAGE)
    server = OnlineOmnipredictor(
        {"shop": shop}, scale={"y": (0.0, largest_order)}, exploring=exploring, seed=seed
    )
    level = UNDERAGE / (UNDERAGE + OVERAGE)
    orders = []
    is_sold_out = []
    for context, demand in zip(contexts, demands.tolist(), strict=True):
        forecast = server.predict_one(context)
        order = forecast.act("shop")
        if tracks_level:
            order = best_order_of_level(menu, forecast, level)
        sold_out = demand >= order
        level = next_level(level, sold_out=sold_out)
        if sees_demand:
            server.learn_one(context, demand)
        else:
            sold = min(order, demand)
            server.learn_one(context, sold, censored=sold_out and tells_censoring)
        orders.append(order)
        is_sold_out.append(sold_out)
    return Served(np.array(orders), np.array(is_sold_out))


def best_order_of_level(menu: Array, forecast: OnlineForecast, level: float) -> float:
    """Return the best order of a menu (A,) for a newsvendor whose quantile is of this level."""
    demands = forecast.outcomes[:, 0]
    missing = np.maximum(demands - menu[:, np.newaxis], 0.0)
    left = np.maximum(menu[:, np.newaxis] - demands, 0.0)
    costs = (level * missing + (1.0 - level) * left) @ forecast.weights
    return float(menu[costs.argmin()])


def next_level(level: float, *, sold_out: bool) -> float:
    """Return the level of the next order: higher after one that was sold out.

    Examples
    --------
    >>> round(next_level(0.8, sold_out=True), 3), round(next_level(0.8, sold_out=False), 3)
    (0.816, 0.796)
    """
    aim = OVERAGE / (UNDERAGE + OVERAGE)  # the share of orders that shall be sold out
    return float(np.clip(level + RATE * (float(sold_out) - aim), *LEVELS))


def adaptive_inventory(demands: Array, *, largest_order: float) -> Served:
    """Return the orders of Huh and Rusmevichientong's rule, which begins at half the largest."""
    order = largest_order / 2
    orders = []
    is_sold_out = []
    for round_number, demand in enumerate(demands.tolist(), start=1):
        sold_out = demand >= order
        orders.append(order)
        is_sold_out.append(sold_out)
        slope = -UNDERAGE if sold_out else OVERAGE
        step = STEP * largest_order / (max(UNDERAGE, OVERAGE) * np.sqrt(round_number))
        order = float(np.clip(order - step * slope, 0.0, largest_order))
    return Served(np.array(orders), np.array(is_sold_out))


def measure(series: str, rounds: int, seed: int) -> Iterator[Row]:
    """Serve a series in every way; yield the costs in ratio to full demand's."""
    loaded = SERIES[series]()
    demands = loaded.outcomes[:rounds]
    demands = demands - min(float(demands.min()), 0.0)  # no demand is negative
    contexts = list(loaded.contexts[:rounds])
    largest_order = ROOM * float(demands.max())

    serve_shop = partial(serve, contexts, demands, largest_order=largest_order, seed=seed)
    ways = {"demand": serve_shop(sees_demand=True)}
    for share in EXPLORING:
        ways[f"censored sales, exploring {share:g}"] = serve_shop(exploring=share)
    ways["censored sales, tracked level"] = serve_shop(tracks_level=True)
    ways["sales taken for demand"] = serve_shop(tells_censoring=False)
    ways["adaptive inventory rule"] = adaptive_inventory(demands, largest_order=largest_order)
    cost_of_full_demand = ways["demand"].cost(demands)
    for way, result in ways.items():
        yield {
            "series": series,
            "sees": way,
            "rounds": len(demands),
            "cost": result.cost(demands),
            "ratio": result.cost(demands) / cost_of_full_demand,
            "sold out": float(result.is_sold_out.mean()),
        }


TABLES = {
    "censored-demand": Table(
        rows=measure,
        by=("series", "sees"),
        instances=lambda: list(SERIES),
        rounds=300,
        seeds=1,
        digits=3,
    )
}
