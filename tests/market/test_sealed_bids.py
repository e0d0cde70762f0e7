"""Sealed-bid auctions: learners' regrets against clearing again by hand, and the known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import worlds

from regretless import external_regret, load, swap_regret

COHORT = {"utility": "bidder", "actions": 5, "response": "blum-mansour"}
BASE: dict[str, Any] = {"seed": 5, "adversary": {"kind": "iid", "outcomes": 1}}


def auction(kind: str, cohorts: list[dict[str, Any]], **market: Any) -> Any:
    own = [COHORT | {"name": f"cohort {i}"} | one for i, one in enumerate(cohorts)]
    return worlds.scenario(*own, **BASE | {"market": {"kind": kind} | market})


def gained(kind: str, bids: list[float], who: int, market: Any) -> float:
    """Clear an auction by plain sorting, and return what one bidder gains."""
    ranked = sorted(range(len(bids)), key=lambda i: (-bids[i], market.lot[i]))
    winners = [i for i in ranked[: market.units] if bids[i] >= market.last_reserve]
    lost = [bids[i] for i in ranked if i not in winners]
    paid = bids[who] if kind == "first-price" else max([market.last_reserve, *lost])
    return market.value[who] - paid if who in winners else 0.0


@pytest.mark.parametrize("kind", ["first-price", "second-price"])
@pytest.mark.parametrize(("units", "reserve"), [(1, 0.0), (2, 0.4), (6, 0.1)])
def test_regrets_are_those_of_clearing_again_for_each_bid(
    kind: str, units: int, reserve: float
) -> None:
    cohorts = [{"count": 3}, {"count": 2, "parameters": {"value": [0.4, 0.9], "high": 1.1}}]
    model = auction(kind, cohorts, units=units, reserve=reserve).build()
    market, losses, played = model.game.market, [[] for _ in range(5)], [[] for _ in range(5)]
    for _ in range(60):
        distributions = [cohort.learner.play() for cohort in model.game.cohorts]
        model.step()
        market.last_reserve = market._floor
        grids = np.concatenate(market._shares) * market._scale[:, None]
        actions = np.concatenate([model.last_actions(0), model.last_actions(1)])
        for i in range(5):
            bids = grids[np.arange(5), actions].tolist()
            own = [gained(kind, [*bids[:i], b, *bids[i + 1 :]], i, market) for b in grids[i]]
            losses[i].append((1 - np.array(own)) / 2)
            played[i].append(np.concatenate(distributions)[i])
    frame = model.agents_frame()
    assert (frame["loss_scale"] == 2).all()
    for i in range(5):
        table, distribution = np.array(losses[i]), np.array(played[i])
        assert frame["swap_regret"][i] == pytest.approx(swap_regret(table, distribution), abs=1e-12)
        assert frame["external_regret"][i] == pytest.approx(
            external_regret(table, distribution), abs=1e-12
        )
        assert table.std() > 0


def learned(kind: str, bidders: int) -> Any:
    """Return what share of its value each learner bids in the second half of the rounds."""
    model = load("sealed-bids", **{"cohort.bidders.count": bidders, "market.kind": kind}).build(
        log_every=4000
    )
    model.run(750)
    ledger = model.game.cohorts[0].ledger
    before = ledger.count.copy()
    model.run(1500)
    count = ledger.count - before
    return count @ np.linspace(0, 1, count.shape[1]) / count.sum(1), model


@pytest.mark.slow
@pytest.mark.parametrize("bidders", [2, 4])
def test_learners_shade_first_price_bids_as_the_equilibrium_does(bidders: int) -> None:
    """Vickrey 1961: (n - 1) / n of a uniform value; a grid has equilibria a little below."""
    share, model = learned("first-price", bidders)
    assert np.abs(share - (bidders - 1) / bidders).max() < 0.08
    assert model.agents_frame()["swap_regret"].max() < 0.003
    assert model.game.market.described()["efficiency"] > 0.97


@pytest.mark.slow
def test_learners_bid_their_values_where_the_second_price_is_paid() -> None:
    share, model = learned("second-price", 3)
    assert share.min() > 0.97
    assert model.rounds_frame()["revenue_0"][750:].mean() == pytest.approx(0.5, abs=0.03)


def test_truth_regrets_nothing_at_the_second_price_whatever_the_others_bid() -> None:
    """Dominance, and not in the first-price auction: there all who win would rather bid less."""
    worst = {}
    for kind in ("first-price", "second-price"):
        model = auction(kind, [{"count": 4, "response": "exp3"}], units=2).build()
        tables = []
        for _ in range(60):
            model.step()
            tables.append(model.game.market.losses([None])[0])
        table = np.array(tables)
        worst[kind] = (table[..., -1] - table.min(-1)).max()
    assert worst["second-price"] <= 1e-12
    assert worst["first-price"] > 0.05


def test_followers_bid_where_their_believed_gain_is_greatest() -> None:
    """(v - b) (1/2 + b - y) is greatest at b = (v + y - 1/2) / 2, and b = y at v - 1/2."""
    followers = {"response": "best-response", "count": 3, "actions": 41}
    model = auction("first-price", [followers], redraw=False).build()
    model.run(30)
    assert model.rounds_frame()["y_0"].iloc[-1] == pytest.approx(0.5, abs=0.03)
    assert (model.agents_frame()["guarantee"] == "none").all()


def test_who_is_absent_neither_wins_nor_is_charged() -> None:
    cohorts = [{"count": 2}, {"count": 2, "enters": 30}]
    model = auction("second-price", cohorts).build()
    model.run(20)
    assert model.agents_frame()["mean_loss"].isna().tolist() == [False, False, True, True]
    model.run(60)
    assert model.agents_frame()["mean_loss"].notna().all()
