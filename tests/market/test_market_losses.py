"""Followers in a market that gives each agent losses of its own: what they respond to."""

from collections.abc import Sequence

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import MarketModel, register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort
from regretless.market.markets import Market
from regretless.market.records import Decision

# By action, whatever the utility says: agents of the market below want the last action at low
# outcomes and the first at high ones.
ACTIONS = 3
DECIDING_OUTCOME = 0.5


@register.market("own-toll")
class Toll(Market):
    """Charges each agent by its action alone, in a way that no utility says."""

    def __init__(
        self, cohorts: Sequence[Cohort], rng: np.random.Generator, *, outcome: float = 0.2
    ) -> None:
        super().__init__(cohorts, rng)
        self.outcome = np.array([outcome])

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        return self.outcome

    def losses(self, decisions: Sequence[Decision | None]) -> list[Array]:
        return [self.tolls(cohort, self.outcome) for cohort in self.cohorts]

    def tolls(self, cohort: Cohort, outcome: Array) -> Array:
        toll_of_action = np.linspace(0, 1, ACTIONS)
        if outcome[0] < DECIDING_OUTCOME:  # the first action is dear
            toll_of_action = toll_of_action[::-1]
        return np.tile(toll_of_action, (len(cohort.row_of), 1))


@register.market("own-posted-toll")
class PostedToll(Toll):
    """Posts its tolls: they are known as soon as the outcome is."""

    def expected_losses(self, cohort_index: int, outcome: Array) -> Array:
        return self.tolls(self.cohorts[cohort_index], outcome)


@register.market("own-silent-toll")
class SilentToll(Toll):
    """Says that its agents respond to their utility."""

    utility_is_expected = True


@register.market("own-wrong-toll")
class WrongToll(Toll):
    """Returns one row for all agents."""

    def expected_losses(self, cohort_index: int, outcome: Array) -> Array:
        return self.tolls(self.cohorts[cohort_index], outcome)[:1]


def toll_market(kind: str, outcome: float = 0.2, **keys: object) -> MarketModel:
    """Build a market in which every outcome is the same number."""
    travellers = cohort_table("travellers", 4, ACTIONS, "linear") | keys
    adversary = {"kind": "iid", "outcomes": 1}
    market = {"kind": kind, "outcome": outcome}
    return make_scenario(travellers, adversary=adversary, market=market, rounds=60, seed=3).build()


RESPONSES: list[TomlTable] = [
    {"response": "best-response"},
    {"response": "private"},
    {"response": "certainty-equivalent"},
    {"response": "quantal", "eta": 50.0},
    {"response": "ensemble"},
]


@pytest.mark.parametrize("keys", RESPONSES, ids=lambda keys: keys["response"])
@pytest.mark.parametrize(("outcome", "best"), [(0.2, ACTIONS - 1), (0.8, 0)])
def test_followers_respond_to_what_the_market_expects_them_to_lose(
    keys: TomlTable, outcome: float, best: int
) -> None:
    model = toll_market("own-posted-toll", outcome, **keys)
    model.run()
    last_actions = [agent.action for agent in model.agents]
    assert last_actions == [best] * 4


@pytest.mark.parametrize("keys", RESPONSES, ids=lambda keys: keys["response"])
def test_followers_whose_losses_are_not_known_before_the_round_are_refused(
    keys: TomlTable,
) -> None:
    with pytest.raises(UserError) as refused:
        toll_market("own-toll", **keys)
    assert str(refused.value) == (
        "market Toll: agents of cohort.travellers cannot respond to the forecast, since their "
        "losses depend on more than the outcome; choose a learner as response, or write the "
        "market's expected_losses"
    )


def test_learners_play_in_any_market_with_losses_of_its_own() -> None:
    model = toll_market("own-toll", response="hedge")
    model.run()
    assert model.agents_frame()["mean_loss"].between(0, 1).all()


def test_a_market_may_say_that_its_agents_respond_to_their_utility() -> None:
    model = toll_market("own-silent-toll")
    model.run()
    assert model.game.cohorts[0].market_losses is None


def test_a_market_of_which_nothing_is_known_before_the_round_is_not_put_in() -> None:
    model = toll_market("own-posted-toll", 0.2)
    posted = model.game.market
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="cannot respond to the forecast"):
        model.replace(market=Toll(model.game.cohorts, rng))
    assert model.game.market is posted


def test_a_market_put_in_the_place_of_another_is_asked_from_then_on() -> None:
    model = toll_market("own-posted-toll", 0.2)
    cohorts = model.game.cohorts
    model.replace(market=SilentToll(cohorts, np.random.default_rng(0)))
    assert cohorts[0].market_losses is None


def test_expected_losses_of_a_wrong_shape_are_named() -> None:
    model = toll_market("own-wrong-toll")
    with pytest.raises(UserError, match=r"expected_losses returned .*for cohort.travellers return"):
        model.run()


@pytest.mark.parametrize(("outcome", "best"), [(0.2, ACTIONS - 1), (0.8, 0)])
def test_a_model_advises_what_the_market_expects_to_cost_least(outcome: float, best: int) -> None:
    model = toll_market("own-posted-toll", outcome, response="hedge", advice=["last-value"])
    model.run()
    assert [agent.action for agent in model.agents] == [best] * 4


def test_models_do_not_advise_where_nothing_is_known_before_the_round() -> None:
    with pytest.raises(UserError, match=r'the advice of models, .*give advice = \["actions"\]'):
        toll_market("own-toll", response="hedge", advice=["panel"])


def test_actions_advise_in_any_market() -> None:
    model = toll_market("own-toll", response="hedge", advice=["actions"])
    model.run()
    assert model.agents_frame()["mean_loss"].between(0, 1).all()
