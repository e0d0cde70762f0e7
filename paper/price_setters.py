"""What sellers charge who hear a public forecast of prices, and what buyers are left with.

The bundled study ``price-forecasts`` plays two sellers with logit demand, a unit mass of buyers and
an outside good. Of each run the second half is measured, when learners have explored:

    price            mean over rounds and sellers
    profit gain      share of the way from the Nash profit to that of a monopoly
    first, second    the profit gain of each seller alone
    surplus          of buyers, mu ln(1 + sum_i exp((quality - p_i) / mu)) (Small and Rosen 1981)
    swap regret      of the seller that regrets more, in units of its normalised loss
    distance         total variation from joint play to the nearest coarse correlated equilibrium

mu is ``differentiation`` in the scenario. Intervals are Student's, of 95 %, over seeds.
"""

from typing import Any

import numpy as np
import pandas as pd

from paper.study_table import Cell, Layout, Row, Run, StudyTable
from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability import coarse_correlated_distance, swap_regret_of
from regretless.market.game.profiles import all_profiles
from regretless.scenarios.studies.analysis.measures import interval

N_SELLERS = 2
MEASURES = ["price", "profit gain", "first", "second", "surplus", "swap regret", "distance"]


def measure_prices(run: Run) -> list[Row]:
    """Measure the second half of a run of two sellers."""
    market: Any = run.unplayed.game.market
    rounds = run.table("rounds")
    second_half = rounds.iloc[len(rounds) // 2 :]
    prices = second_half[[f"price_{seller}" for seller in range(N_SELLERS)]].to_numpy()
    mean_profits = market.profits(prices).mean(0)  # of each seller
    joint = joint_play(prices, menus(run))
    losses = stage_game(market, joint.shape)
    gains = [market.profit_gain(float(profit)) for profit in mean_profits]
    return [
        {
            "price": prices.mean(),
            "profit gain": market.profit_gain(float(mean_profits.mean())),
            "first": gains[0],
            "second": gains[1],
            "surplus": buyers_surplus(prices, market).mean(),
            "swap regret": greatest_swap_regret(joint, losses),
            "distance": coarse_correlated_distance(joint, losses),
        }
    ]


def menus(run: Run) -> list[Array]:
    """Return the prices of each seller's menu, in ascending order."""
    prices = []
    for cohort in run.unplayed.game.cohorts:
        loss: Any = cohort.loss
        prices.extend(loss.price)
    return prices


def joint_play(prices: Array, menus_of_sellers: list[Array]) -> Array:
    """Return how often each profile of actions was played (A, B), as shares of the rounds.

    ``prices`` (T, 2) are on the sellers' menus.
    """
    actions: list[Indices] = []
    for seller, menu in enumerate(menus_of_sellers):
        actions.append(np.abs(prices[:, seller, None] - menu).argmin(1))
    joint = np.zeros([len(menu) for menu in menus_of_sellers])
    np.add.at(joint, tuple(actions), 1 / len(prices))
    return joint


def stage_game(market: Any, shape: tuple[int, ...]) -> Array:
    """Return each seller's loss at every profile (2, A, B)."""
    profiles = all_profiles(np.array(shape))
    losses = market.profile_losses(profiles)  # (A B, 2)
    return np.asarray(np.moveaxis(losses.reshape(*shape, N_SELLERS), -1, 0))


def greatest_swap_regret(joint: Array, losses: Array) -> float:
    """Return the greater swap regret of two sellers at joint play (A, B), losses (2, A, B)."""
    first = swap_regret_of(joint.T, losses[0].T)  # what the other one plays is its outcome
    second = swap_regret_of(joint, losses[1])
    return max(first, second)


def buyers_surplus(prices: Array, market: Any) -> Array:
    """Return the surplus of a unit mass of buyers (T,) at prices (T, 2): 0 if nobody sells."""
    worth = (market.quality - prices) / market.differentiation
    outside = market.outside / market.differentiation
    return np.asarray(
        market.differentiation * (np.log(np.exp(outside) + np.exp(worth).sum(1)) - outside)
    )


def with_interval(measure: str) -> Cell:
    """Return the cell that holds a measure's mean with its interval over seeds."""

    def cell(rows: pd.DataFrame) -> str:
        mean, low, high = interval(rows[measure].to_numpy())
        return f"{mean:.3f}" if np.isnan(low) else f"{mean:.3f} ({low:.3f} to {high:.3f})"

    return cell


PRICE_FORECASTS = StudyTable(
    study="price-forecasts",
    title="two price setters, the second half of each run",
    rows=measure_prices,
    layouts=(Layout(["sellers"], {measure: with_interval(measure) for measure in MEASURES}),),
)
