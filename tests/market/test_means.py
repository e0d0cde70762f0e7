"""Agents who choose within their means: what they play, regret and are promised."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents import ScriptedCrowd
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Market
from regretless.market.model import MarketModel
from regretless.market.records import Decision

COST = np.array([0.0, 0.25, 0.5])  # of each action in ``Tolls``


@register.market("tolls")
class Tolls(Market):
    """Every action has a price in cash; the outcome is the adversary's."""

    answers_at_once = False

    def __init__(self, cohorts: Any, rng: Any, *, cash: float = 1.0, wage: float = 0.25) -> None:
        super().__init__(cohorts, rng)
        self.accounts: Accounts = Accounts(cohorts, cash)
        self.wage = wage

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        costs = [np.tile(COST, (len(cohort.ledger.count), 1)) for cohort in self.cohorts]
        self.accounts.move(-self.chosen(costs, decisions))
        self.accounts.move(self.wage)
        return fundamental

    def affordable(self, place: int) -> Any:
        own = self.accounts.places[self.cohorts[place].name]
        return self.accounts.cash[own, None] >= COST


@register.agent("toll-payer")
class Spender(ScriptedCrowd):
    """Plays the dearest action, or the dearest that it can pay for."""

    def __init__(self, loss: Any, rng: Any, *, careful: Any = 1.0) -> None:
        super().__init__(loss, rng)
        self.careful = bool(np.all(careful))

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        can = self.affordable if self.careful else np.ones((len(self.loss), 3))
        return np.where(can, COST, -1.0).argmax(1)


def tolls(response: str = "best-response", *, cash: float = 0.5, **keys: Any) -> MarketModel:
    own = {"budget_constraint": True, "measures": ["swap", "decision_swap"]} | keys
    own = worlds.cohort("own", own.pop("count", 6), 3, response=response, **own)
    other = worlds.cohort("x", 2, measures=["swap"])
    given = {"market": {"kind": "tolls", "cash": cash}, "rounds": 120}
    given |= {"adversary": {"kind": "anti-forecast", "outcomes": 2}}
    return worlds.scenario(own, other, **given).build(seed=3)


def watched(model: MarketModel) -> Iterator[tuple[Any, Any, Any]]:
    """Play a model; yield what was affordable, played and lost by the first cohort."""
    market, cohort = model.game.market, model.game.cohorts[0]
    for _ in range(model.rounds):
        awake, played = market.affordable(0), model.conclude(model.begin())
        losses = cohort.loss.losses(played.outcome)[cohort.row_of]
        yield awake, played.decisions[0].actions, losses  # type: ignore[union-attr]


@pytest.mark.parametrize("response", ["best-response", "quantal", "hedge", "toll-payer"])
def test_regret_counts_what_could_be_afforded_and_nothing_else(response: str) -> None:
    eta = {"eta": 4.0} if response == "quantal" else {}
    model = tolls(response, **eta)
    seen = [*watched(model)]
    told = model.agents_frame().query("cohort == 'own'")
    for agent in range(6):
        awake, played, losses = zip(
            *[(a[agent], p[agent], lost[agent]) for a, p, lost in seen], strict=True
        )
        assert all(awake[t][played[t]] for t in range(120))
        if response in ("quantal", "hedge"):
            continue  # rounds in which nothing slept are charged in expectation
        own = np.array(losses)[np.arange(120), played]
        charged = np.where(awake, losses, own[:, None])
        best = worlds.regrets(charged, np.array(played))[-1]
        assert told["decision_swap_regret"].iloc[agent] == pytest.approx(best, abs=1e-12)
    assert not np.concatenate([a for a, _, _ in seen]).all()


def test_the_promise_pays_for_the_rounds_in_which_something_slept() -> None:
    model = tolls()
    seen = [*watched(model)]
    table = model.agents_frame().query("cohort == 'own'")
    slept = np.sum([~awake.all(1) for awake, _, _ in seen], axis=0)
    promised = model.guarantees[0].bound
    budget: Any = model.game.seats[0].budget
    assert (budget.scarce == slept).all()
    without = promised() - 2 * slept / 120
    assert slept.min() > 0
    assert (without > 0).all()
    assert table["bound"].to_numpy() == pytest.approx(promised())
    assert (table["decision_swap_regret"] <= table["bound_from_bias"] + 1e-9).all()
    assert (table["decision_swap_regret"] <= table["bound"]).all()


def test_a_distribution_of_play_is_that_given_what_is_affordable() -> None:
    model = tolls("hedge", count=1, cash=0.25)
    means, rng = model.game.seats[0].budget, np.random.default_rng(0)
    distribution, can = np.array([[0.2, 0.3, 0.5]]), np.array([[True, True, False]])
    decided = [Decision(distribution, rng.choice(3, 1, p=distribution[0])) for _ in range(4000)]
    drawn = [means.limited(decision, can, None).actions[0] for decision in decided]
    assert np.mean(drawn) == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 4000))


def test_mistakes_are_a_line() -> None:
    with pytest.raises(UserError, match="agent 1 of own chose what it cannot afford"):
        tolls("toll-payer", settings={"careful": 0.0}, cash=0.25).run()
    with pytest.raises(UserError, match="exp3 takes every action to be possible"):
        tolls("exp3")
