"""The table ``known-answers``: models of the literature, measured here beside what is known.

A line is a figure of the page ``docs/models.md``: a bundled scenario as it stands, or with the keys
that the line names, and what was measured of it. Most scenarios are played with the seed of their
file. Where seeds differ much a figure is their mean, with its standard error, the least and the
greatest; the rows have every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import MarketModel, load
from regretless.market.core.arrays import Array

LAST_HISTORIES = 4096  # rounds in which the minority game is measured, of 10,000
FREE_FLOW = {"pigou": 0.375, "braess": 0.75}  # hours of a trip at the optimum
OF_FILE = (1,)  # the seed of the bundled scenarios


@dataclass(frozen=True)
class Answer:
    """A figure of a model: the scenario, what is changed in it, what is measured, which seeds."""

    scenario: str
    figure: str
    known: str
    measure: Callable[[MarketModel], float]  # plays the model to its end
    changes: dict[str, Any] = field(default_factory=dict)
    change: str = ""  # in words
    seeds: tuple[int, ...] = OF_FILE


def in_second_half(column: str, divided_by: float = 1.0) -> Callable[[MarketModel], float]:
    """Return the measure that averages a column of rounds over the second half of them."""

    def measure(model: MarketModel) -> float:
        model.run()
        rounds = model.rounds_frame()
        return float(rounds[column].iloc[len(rounds) // 2 :].mean()) / divided_by

    return measure


def market_value(name: str, place: int | None = None) -> Callable[[MarketModel], float]:
    """Return the measure that a market says of itself; one of several by its place."""

    def measure(model: MarketModel) -> float:
        model.run()
        value = market_of(model).described()[name]
        return float(value if place is None else value[place])

    return measure


def market_of(model: MarketModel) -> Any:
    """Return the market, whose methods are those of its kind."""
    return model.game.market


def nash_price(model: MarketModel) -> float:
    """Return the Nash price of price competition."""
    return float(np.mean(market_of(model).nash_price()))


def monopoly_price(model: MarketModel) -> float:
    """Return the monopoly price of price competition."""
    return float(np.mean(market_of(model).monopoly_price()))


def utility_in_last_window(model: MarketModel) -> Array:
    """Return the mean utility of each agent (N,) in the last complete window, in its own units."""
    windows = model.windows_frame()
    last = windows[windows["last"] == windows["last"].max()]
    agents = model.agents_frame()
    losses = agents["loss_offset"] + agents["loss_scale"] * last["mean_loss"].to_numpy()
    return np.asarray(-losses, dtype=np.float64)


def profit_gain(model: MarketModel) -> float:
    """Return how far sellers go from Nash to monopoly profit in the last complete window."""
    model.run()
    return float(market_of(model).profit_gain(utility_in_last_window(model).mean()))


def price_of_unit(model: MarketModel) -> float:
    """Return the price that winners pay in the last window for what is worth 1 to both bidders."""
    model.run()
    return 1.0 - float(utility_in_last_window(model).sum())


def bid_in_second_half(model: MarketModel) -> float:
    """Return the bids of the second half of the rounds, as a share of the bidders' values."""
    model.run(model.rounds // 2)
    market = market_of(model)
    sums_of_first_half = market.sums.copy()
    model.run()
    *_, bids, values = market.sums - sums_of_first_half
    return float(bids / values)


def variance_per_agent(model: MarketModel) -> float:
    """Return 4 N times the variance of the share on one side in the last rounds."""
    model.run()
    shares = model.rounds_frame()["share_0"].iloc[-LAST_HISTORIES:]
    return 4 * len(model.agents_frame()) * float(shares.var(ddof=0))


def distance_from_bayes_rule(model: MarketModel) -> float:
    """Return by how much a bettor's share of wealth is off its share of likelihood, at most."""
    model.run()
    logarithmic_losses = []
    for cohort in model.game.cohorts:
        loss = cohort.loss.unit_offset + cohort.loss.unit_scale * cohort.ledger.mean_loss()
        logarithmic_losses.append(loss[cohort.row_of])
    likelihood = np.exp(-model.played * np.concatenate(logarithmic_losses))
    wealth = market_of(model).accounts.cash[:-1]  # the last account is the house's
    differences = wealth / wealth.sum() - likelihood / likelihood.sum()
    return float(np.abs(differences).max())


def answers() -> list[Answer]:
    """Return all figures, in the order of the page."""
    few_histories = {"cohort.agents.settings": {"memory": 3, "strategies": 2}}
    every_round = {"logs": "full"}
    free_orders = {
        "cohort.buyers.settings": {"constrained": False},
        "cohort.sellers.settings": {"constrained": False},
    }
    listed = [
        Answer("pricing-algorithms", "Nash price", "1.473", nash_price, {"rounds": 1}),
        Answer("pricing-algorithms", "monopoly price", "1.925", monopoly_price, {"rounds": 1}),
        Answer(
            "pricing-algorithms", "profit gain", "about 0.85", profit_gain, seeds=tuple(range(100))
        ),
        Answer(
            "first-price-learners", "price", "far below 1", price_of_unit, seeds=tuple(range(10))
        ),
        Answer("second-price-learners", "price", "near 1", price_of_unit, seeds=tuple(range(10))),
        Answer(
            "minority-game",
            "variance per agent",
            "0.41 (0.05)",
            variance_per_agent,
            every_round,
            "2^m/N = 0.32",
            seeds=(0, 1, 2),
        ),
        Answer(
            "minority-game",
            "variance per agent",
            "3.3 (0.2)",
            variance_per_agent,
            {**every_round, **few_histories},
            "2^m/N = 0.08",
            seeds=(0, 1, 2),
        ),
        Answer(
            "fundamentalists",
            "distance",
            "0",
            in_second_half("deviation_0"),
            {"cohort.traders.settings": {"beta": 2.2}},
            "intensity 2.2",
        ),
        Answer("fundamentalists", "distance", "1.293", in_second_half("deviation_0")),
    ]
    price_takers = {"cohort.firms.parameters.slope": 0.0}
    listed += [
        Answer("oligopoly", "price", "0.42", in_second_half("y_0")),
        Answer("oligopoly", "output", "4.8", in_second_half("quantity_0")),
        Answer("oligopoly", "price", "0.30", in_second_half("y_0"), price_takers, "price takers"),
        Answer(
            "oligopoly", "output", "6.0", in_second_half("quantity_0"), price_takers, "price takers"
        ),
    ]
    for n_bidders, share in ((2, "0.50"), (3, "0.67"), (4, "0.75")):
        changes = {"cohort.bidders.count": n_bidders}
        words = f"{n_bidders} bidders"
        bid = Answer("sealed-bids", "bid", share, bid_in_second_half, changes, words)
        listed.append(bid)
    listed += [
        Answer("second-price", "bid", "1.00", bid_in_second_half),
        Answer("second-price", "revenue", "0.50", in_second_half("revenue_0")),
        Answer(
            "call-auction", "gains from trade", "at most 26.3", market_value("gains_from_trade")
        ),
        Answer("zero-intelligence", "efficiency", "nearly 1", market_value("efficiency")),
        Answer(
            "zero-intelligence",
            "efficiency",
            "less",
            market_value("efficiency"),
            free_orders,
            "orders may lose",
        ),
        Answer("el-farol", "mean", "0.60", market_value("mean", 0)),
        Answer("el-farol", "deviation", "0.049", market_value("deviation", 0)),
        Answer("bank-run", "share that withdraws", "0.2", in_second_half("y_0")),
        Answer(
            "bank-run",
            "share that withdraws",
            "1",
            in_second_half("y_0"),
            {"market.start": 1.0},
            "full queues",
        ),
    ]
    for cost, share in ((0.15, "0.682"), (0.2, "0.508"), (0.25, "0.368")):
        weights = [[0.0, -1.0], [-float(np.exp(cost)), 0.0]]
        informed = Answer(
            "paying-to-know",
            "share informed",
            share,
            in_second_half("share_0"),
            {"cohort.traders.parameters.weights": weights},
            f"price {cost:g}",
        )
        listed.append(informed)
    for name, hours in FREE_FLOW.items():
        ratio = Answer(name, "selfish over optimal time", "4/3", in_second_half("time_0", hours))
        listed.append(ratio)
    listed += [
        Answer("shops", "stock", "0.75", market_value("level")),
        Answer(
            "betting",
            "distance from Bayes' rule",
            "0",
            distance_from_bayes_rule,
            {"rounds": 60, "cohort.learners.response": "best-response"},
            "60 rounds",
        ),
    ]
    return listed


def jobs() -> list[tuple[Answer, int]]:
    """Return a job for each figure and each of its seeds."""
    listed: list[tuple[Answer, int]] = []
    for answer in answers():
        listed += product([answer], answer.seeds)
    return listed


def measure_answer(job: tuple[Answer, int]) -> Iterator[Row]:
    """Play one scenario with one seed; yield a row."""
    answer, seed = job
    model = load(answer.scenario, **answer.changes).build(seed=seed)
    yield {
        "model": answer.scenario,
        "figure": answer.figure,
        "change": answer.change,
        "known": answer.known,
        "seed": seed,
        "measured": answer.measure(model),
    }


def text(table: pd.DataFrame) -> str:
    """Lay the table out: a line for each figure, with its mean over seeds and their spread."""
    by_figure = table.groupby(["model", "figure", "change", "known"], sort=False)["measured"]
    lines = by_figure.agg(["mean", "sem", "min", "max", "count"])
    lines.columns = pd.Index(["measured", "error", "least", "greatest", "seeds"])
    return lines.reset_index().to_string(index=False, float_format="%.4f", na_rep="")


TABLES = {
    "known-answers": Table(
        measure_answer, by=("model", "figure", "change"), instances=jobs, layout=text
    )
}
