"""Order books meet their known answers at their own seeds; where learning ends elsewhere, how far.

Surplus of random traders (Gode and Sunder 1993), the spread of Glosten and Milgrom (1985), Kyle's
lambda (1985), and what snipers earn (Budish, Cramton and Shim 2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import worlds

from regretless import load
from regretless.market.model import MarketModel


def played(name: str, **keys: Any) -> MarketModel:
    """Play a named scenario with some keys replaced, its agents logged once."""
    return worlds.played(load(name, **keys), log_every=10**6)


def gains(model: MarketModel) -> Any:
    """Return what the agents of each cohort gain per round, mean over them."""
    agents = model.agents_frame()
    gain = -(agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"])
    return gain.groupby(agents["cohort"]).mean()


SCHEDULES = {
    "steep": (
        [0.95, 0.88, 0.81, 0.74, 0.67, 0.6, 0.53, 0.3],
        [0.05, 0.12, 0.19, 0.26, 0.33, 0.4, 0.47, 0.7],
    ),
    "flat supply": (np.linspace(0.95, 0.25, 8), np.linspace(0.38, 0.42, 8)),
    "flat demand": (np.linspace(0.62, 0.58, 8), np.linspace(0.05, 0.75, 8)),
    "few gains": (
        [0.9, 0.8, 0.7, 0.3, 0.25, 0.2, 0.15, 0.1],
        [0.3, 0.4, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95],
    ),
    "many gains": (np.linspace(0.95, 0.6, 8), np.linspace(0.05, 0.65, 8)),
}


def surplus(schedule: str, *, constrained: bool) -> float:
    """Return the share of the greatest surplus that random traders realise."""
    keys: dict[str, Any] = {"rounds": 1000}
    for who, side, values in zip(
        ("buyers", "sellers"), ("buy", "sell"), SCHEDULES[schedule], strict=True
    ):
        keys[f"cohort.{who}.parameters"] = {"side": side, "value": [float(v) for v in values]}
        keys[f"cohort.{who}.count"] = 8
        keys[f"cohort.{who}.settings"] = {"constrained": constrained}
    market: Any = played("zero-intelligence", **keys).game.market
    return float(market.described()["efficiency"])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_random_traders_who_cannot_lose_realise_nearly_all_surplus(schedule: str) -> None:
    """Gode and Sunder's five markets gave 97 to 99.9 %; these five give 94 to 99 %."""
    assert 0.94 < surplus(schedule, constrained=True) <= 1


@pytest.mark.parametrize("schedule", ["steep", "few gains"])
def test_random_traders_who_may_lose_realise_far_less(schedule: str) -> None:
    assert surplus(schedule, constrained=False) < 0.93


@pytest.mark.parametrize("informed", [2, 4, 6])
def test_makers_learn_the_spread_that_breaks_even(informed: int) -> None:
    """At a value of 0 or 1 it is the share of informed traders; theirs is within a step of 1/16."""
    keys = {"cohort.informed.count": informed, "cohort.noise.count": 10 - informed}
    model = played("adverse-selection", **keys)
    quotes = model.quotes_frame().query("round >= 1000")
    spread = (quotes["ask"] - quotes["bid"]).mean()
    assert informed / 10 - 0.01 < spread < informed / 10 + 1 / 16 + 0.01
    regret = model.agents_frame().query("cohort == 'makers'").eval("swap_regret * loss_scale")
    assert regret.max() < 0.03  # of 10 units


def supplied(model: MarketModel) -> float:
    """Return the price impact of a unit that learning makers come to, all together."""
    counts = model.game.cohorts[0].ledger.count
    depth = counts @ np.linspace(0.25, 1.125, counts.shape[1]) / counts.sum(1)
    return float(1 / 128 / depth.sum())


def test_makers_break_even_at_kyles_lambda() -> None:
    """It is sigma_v / (2 sigma_u); every depth's gain is read off a lone maker's exact losses."""
    makers = {"common": 1.0, "low": 1.0, "high": 4.5, "levels": 36, "step": 1 / 128, "most": 324.0}
    keys = {"cohort.makers.count": 1, "rounds": 1000, "cohort.makers.parameters": makers}
    model = load("insider", **keys).build(log_every=10**6)
    market: Any = model.game.market
    total = np.zeros(15)
    for _ in range(model.rounds):
        model.step()
        total += market.losses([None] * 3)[0][0]
    loss = model.game.cohorts[0].loss
    gain = -(loss.unit_offset[0] + loss.unit_scale[0] * total / model.rounds)
    impact = 1 / 128 / np.linspace(1.0, 4.5, 15)
    values = model.rounds_frame()["fundamental_0"].to_numpy()
    formula = values.std() / (2 * 16)
    assert (np.diff(gain) < 0).all()
    assert np.interp(0, gain[::-1], impact[::-1]) == pytest.approx(formula, rel=0.03)


def test_makers_who_compete_in_depth_come_near_their_equilibrium_above_kyles_lambda() -> None:
    """M makers who choose depths: lambda is (M - 1) / (M - 2) times that at which they break even.

    With D = sum of depths and E(lambda) = 2 sigma_u^2 lambda - sigma_u sigma_v, maker i gains
    (D_i / D) E(step / D); its first-order condition at equal depths is the formula.
    """
    model = played("insider")
    kyle = 0.1 / (2 * 16)
    assert supplied(model) == pytest.approx(1.5 * kyle, rel=0.1)
    assert supplied(model) > 1.3 * kyle  # four do not reach the competitive price


def test_rents_of_snipers_vanish_in_batches() -> None:
    book, batch = played("sniping"), played("sniping", **{"market.matching": "batch"})
    spreads = [model.game.market.described()["spread"] for model in (book, batch)]  # type: ignore[union-attr]
    assert gains(book)["snipers"] > 0.01
    assert gains(batch)["snipers"] == pytest.approx(0, abs=1e-4)
    assert spreads[1] < 0.5 * spreads[0]
    assert gains(book)["noise"] < gains(batch)["noise"]
