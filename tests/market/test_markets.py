"""What every market offers: outcomes in [0, 1], a memory, and mistakes in a line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from resuming import check_resumes

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.market import Market
from regretless.market.markets.aggregate import Moments
from regretless.market.model import MarketModel
from regretless.market.records import OutcomeDistribution
from regretless.scenarios import load
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue, find, override, read

MARKETS = [name for name in catalogue() if "market" in read(find(name))]
RNG = np.random.default_rng(0)


def small(name: str, *assignments: str, rounds: int = 24) -> Scenario:
    raw = override(read(find(name)), [f"rounds={rounds}", *assignments])
    for cohort in raw["cohort"]:
        cohort["measures"] = ["swap"]
    return worlds.told(raw, origin=find(name).parent)


@pytest.mark.parametrize("name", MARKETS)
def test_a_market_resumes_conserves_and_keeps_a_promise_only_if_it_answers_later(
    name: str, tmp_path: Path
) -> None:
    chosen = small(name)
    straight = check_resumes(chosen.build, 11, tmp_path)
    assert (totals(straight) == totals(chosen.build())).all()
    assert straight.game.market.summary() != ""
    at_once = straight.game.market.answers_at_once
    listeners = straight.agents_frame().query("kind == 'follower' and response != 'private'")
    listeners = listeners[listeners["mean_loss"].notna()]
    assert ((listeners["guarantee"] == "none") == at_once).all()
    assert (listeners["bound"].isna() == at_once).all()


def totals(model: MarketModel) -> Any:
    market = model.game.market
    return np.zeros(0) if market.accounts is None else market.accounts.totals()


@pytest.mark.parametrize("name", MARKETS)
def test_what_is_settled_before_is_foreseen(name: str) -> None:
    """Each round's outcome is what was foreseen of its fundamental, and nothing else is changed."""
    chosen = small(name, rounds=12)
    model, plain = chosen.build(), chosen.build()
    market, adversary = model.game.market, model.game.adversary
    commit, foreseen = adversary.commit, []

    def asking(*given: Any) -> OutcomeDistribution:
        distribution = commit(*given)
        foreseen.append((distribution.points, market.foreseen(distribution.points)))
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


@register.market("own-function")
def no_market(cohorts: Any, rng: Any) -> object:
    return object()


def test_what_a_market_returns_is_checked() -> None:
    with pytest.raises(UserError, match=r"Broken.clear returned .*; return 1 numbers in \[0, 1\]"):
        small("oligopoly", "market={kind='own-broken'}").build().run()
    with pytest.raises(UserError, match="is no Market"):
        small("oligopoly", "market={kind='own-function'}").build()
    with pytest.raises(TypeError, match="clear"):
        Market(load("oligopoly").build().game.cohorts, RNG)  # type: ignore[abstract]
