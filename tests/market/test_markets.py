"""What every market offers: outcomes in [0, 1], a memory, mistakes in a line; and prices."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from resuming import check_resumes

from regretless import UserError, load, register
from regretless.market.game.market import Market
from regretless.market.losses import Linear
from regretless.market.markets import price_impact
from regretless.market.markets.aggregate import Moments
from regretless.market.records import Decision, OutcomeDistribution
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue, find, read

MARKETS = [name for name in catalogue() if "market" in read(find(name))]
RNG = np.random.default_rng(0)
LAGGED = {"feedback": "lagged", "impact": 0.4, "adjustment": 0.7}
PUMP = {"exposure": [1.0, 0.0, 0.0], "pump": 20, "dump": 20}


def small(name: str, *assignments: str, rounds: int = 24) -> Scenario:
    return worlds.lean(name, f"rounds={rounds}", *assignments, measures=["swap"])


@pytest.mark.parametrize("name", MARKETS)
def test_a_market_resumes_conserves_and_promises_if_it_lags(name: str, tmp_path: Path) -> None:
    chosen = small(name)
    straight = check_resumes(chosen.build, 11, tmp_path)
    market, before = straight.game.market, chosen.build().game.market
    assert market.accounts is None or (market.accounts.totals() == before.accounts.totals()).all()
    assert market.summary() != ""
    listeners = straight.agents_frame().query("kind == 'follower' and response != 'private'")
    listeners = listeners[listeners["mean_loss"].notna()]
    assert ((listeners["guarantee"] == "none") == market.answers_at_once).all()
    assert (listeners["bound"].isna() == market.answers_at_once).all()


@pytest.mark.parametrize("name", MARKETS)
def test_what_is_settled_before_is_foreseen(name: str) -> None:
    """Each round's outcome is what was foreseen of its fundamental, and nothing else is changed."""
    chosen = small(name, rounds=12)
    model, plain = chosen.build(), chosen.build()
    market, adversary = model.game.market, model.game.adversary
    commit, foreseen = adversary.commit, []

    def asking(*given: Any) -> OutcomeDistribution:
        distribution = commit(*given)
        foreseen.append((distribution.points, market.next_outcomes(distribution.points)))
        return distribution

    adversary.commit = asking  # type: ignore[method-assign]
    model.run()
    plain.run()
    outcomes = model.rounds_frame().filter(regex="^y_").to_numpy()
    assert model.rounds_frame().equals(plain.rounds_frame())
    for (points, moved), outcome in zip(foreseen, outcomes, strict=True):
        assert (moved is None) == market.answers_at_once
        if moved is not None:
            assert moved.shape == points.shape
            assert (moved == outcome).all(1).any()


@pytest.mark.parametrize(("kind", "feedback"), [("myopic", "lagged"), ("cma", "same-round")])
def test_who_plans_in_a_market_plans_with_it(kind: str, feedback: str) -> None:
    adversary = {"kind": kind, "outcomes": 3}
    worlds.played(load("crowding", rounds=3, market={"feedback": feedback}, adversary=adversary))


def test_running_moments_are_those_of_the_whole() -> None:
    rows, moments = RNG.normal(size=(50, 3)), Moments(3)
    for row in rows:
        moments.add(row)
    assert moments.mean == pytest.approx(rows.mean(0))
    assert moments.deviation() == pytest.approx(rows.std(0))


def test_a_shop_orders_no_more_than_it_can_pay() -> None:
    model = worlds.played(small("shops", "market.cash=0.25", rounds=1))
    market: Any = model.game.market
    assert market.levels.mean[0] == pytest.approx(0.25, abs=1e-6)
    assert (market.accounts.cash[:-1] >= 0).all()


@register.market("own-broken")
class Broken(Market):
    """Returns what is no outcome."""

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        return fundamental + self.rng.random() + 1.0


register.market("own-function")(lambda *_: object())


def test_what_a_market_returns_is_checked() -> None:
    with pytest.raises(UserError, match=r"Broken.clear returned .*; return 1 numbers in \[0, 1\]"):
        small("oligopoly", "market={kind='own-broken'}").build().run()
    with pytest.raises(UserError, match="is no Market"):
        small("oligopoly", "market={kind='own-function'}").build()
    with pytest.raises(TypeError, match="clear"):
        Market(load("oligopoly").build().game.cohorts, RNG)  # type: ignore[abstract]


def chosen(*actions: int) -> Decision:
    return Decision(np.zeros((1, 1)), np.array(actions))


def test_prices_by_hand() -> None:
    """Two goods, pure baskets: three agents buy the first, then all the second."""
    own: Any = SimpleNamespace(multiplicity=None, multiplicity_of=lambda _: None)
    own.loss, own.row_of = Linear(-np.eye(2)[None]), np.zeros(2, dtype=int)
    people = [own, own]
    market = price_impact.Prices(people, RNG, feedback="lagged", impact=0.5, adjustment=0.5)
    at_once = price_impact.Prices(people, RNG, feedback="same-round", impact=0.5, adjustment=0.5)
    first, half = [chosen(0, 0), chosen(0, 1)], np.full(2, 0.5)
    assert market.clear(half, first) == pytest.approx([0.5, 0.5])
    assert market.level == pytest.approx([0.625, 0.375])
    assert market.clear(half, [chosen(1, 1), None]) == pytest.approx([0.4375, 0.5625])
    assert market.last["demand"] == pytest.approx([0.0, 1.0])
    assert market.last["price"] == pytest.approx([0.625, 0.375])
    assert at_once.clear(half, first) == pytest.approx([0.4375, 0.5625])
    assert market.clear(np.array([1.0, 0.0]), [None, None]) == pytest.approx([1.0, 0.0])
    assert market.clipped_share == pytest.approx(1 / 3)
    assert not market.aggregate([None, chosen(-1, -1)]).any()
    assert market.aggregate([None, chosen(-1, 1)]).sum(0) == pytest.approx([1.0, 0.0, 1.0])


def priced(market: dict[str, Any] | None, **tables: Any) -> Scenario:
    shares = {"weights": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], "concentration": 6.0}
    responses = {"followers": {}, "noisy": {"response": "quantal", "eta": 20.0}}
    responses["learners"] = {"response": "hedge"}
    cohorts = [worlds.cohort(n, 8, 3, parameters=shares, **own) for n, own in responses.items()]
    keys: dict[str, Any] = {"rounds": 120, "seed": 1, "market": market}
    if "data" not in tables:
        keys["adversary"] = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    return worlds.scenario(*cohorts, **keys | tables)


def test_a_lagged_market_is_a_replay_of_its_outcomes(tmp_path: Path) -> None:
    """The same agents who face the recorded outcomes as data do and lose exactly the same."""
    model, goods = worlds.played(priced(LAGGED)), ["y_0", "y_1", "y_2"]
    rounds = model.rounds_frame()
    rounds[goods].to_parquet(tmp_path / "lived.parquet")
    data = {"file": str(tmp_path / "lived.parquet"), "outcomes": goods}
    again = worlds.played(priced(None, data=data, forecaster={"models": []}))
    assert (rounds[goods] != rounds.filter(like="fundamental_").to_numpy()).any(axis=None)
    pd.testing.assert_frame_equal(model.regret_frame(), again.regret_frame())
    pd.testing.assert_frame_equal(model.agents_frame(), again.agents_frame())


@pytest.mark.parametrize("shocks", ["iid", "anti-forecast", "pump-and-dump"])
@pytest.mark.parametrize("impact", [-0.6, 0.6])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_theorem_holds_where_feedback_is_lagged(shocks: str, impact: float, seed: int) -> None:
    adversary = {"kind": shocks, "outcomes": 3} | (PUMP if shocks == "pump-and-dump" else {})
    model = worlds.played(priced(LAGGED | {"impact": impact}, adversary=adversary, seed=seed))
    agents = model.agents_frame()
    bound = agents[agents["cohort"] != "learners"]
    assert (bound["guarantee"] != "none").all()
    assert (bound["decision_swap_regret"] <= bound["bound_from_bias"] + 1e-9).all()
    assert (bound["bound_from_bias"] <= bound["bound"]).all()
    forecaster: Any = model.game.blocks[0].forecaster
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert np.abs(bias).max() <= float(np.max(limits.bias(occupancy))) + 1e-9
    if shocks == "pump-and-dump":
        assert (agents["leader_surplus"] <= agents["surplus_cap"] + 1e-9).all()


def test_crowding_on_cases_worked_out_by_hand() -> None:
    demand = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    assert price_impact.concentration(demand) == pytest.approx([0.5, 1.0, 1.0, np.nan], nan_ok=True)
    assert price_impact.churn(demand) == pytest.approx([np.nan, 0.5, 0.75, 0.25], nan_ok=True)
    tally = price_impact.Tally(2)
    for row in demand:
        tally.add(row)
    assert tally.means() == pytest.approx({"concentration": 2.5 / 3, "churn": 0.5})
    rounds = pd.DataFrame(
        {"round": [0], "y_0": [0.5], "y_1": [0.5], "demand_0": [0.2], "demand_1": [0.8]}
        | {"fundamental_0": [0.1], "fundamental_1": [0.5]}
    )
    forecasts = pd.DataFrame({"drawn": [False, True], "label_0": [0.9, 0.6], "label_1": [0.9, 0.4]})
    (row,) = price_impact.crowding(rounds, forecasts).to_dict("records")
    expected = {"round": 0, "concentration": 0.68, "miss": 0.1, "miss_before": 0.3}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["confirmed"] == pytest.approx(0.2)
    assert np.isnan(price_impact.drawn_labels(forecasts[["drawn"]], 1, 2)).all()
    with pytest.raises(ValueError, match="market"):
        price_impact.crowding(rounds.drop(columns=["demand_0", "demand_1"]), forecasts)
