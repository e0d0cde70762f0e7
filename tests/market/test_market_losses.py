"""Followers in a market that gives each agent losses of its own: what they respond to."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless import register
from regretless.market.core.errors import UserError
from regretless.market.markets import Market

# By action, whatever the utility says: agents of the market below want the last action at low
# outcomes and the first at high ones.
ACTIONS = 3
DECIDING_OUTCOME = 0.5


@register.market("own-toll")
class Toll(Market):
    """Charges each agent by its action alone, in a way that no utility says."""

    def __init__(self, cohorts: Any, rng: Any, *, outcome: float = 0.2) -> None:
        super().__init__(cohorts, rng)
        self.outcome = np.array([outcome])

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        return self.outcome

    def losses(self, decisions: Any) -> Any:
        return [self._table(place, self.outcome) for place in range(len(self.cohorts))]

    def _table(self, place: int, outcome: Any) -> Any:
        first_is_dear = outcome[0] < DECIDING_OUTCOME
        by_action = np.linspace(1.0, 0.0, ACTIONS) if first_is_dear else np.linspace(0, 1, ACTIONS)
        return np.tile(by_action, (len(self.cohorts[place].row_of), 1))


@register.market("own-posted-toll")
class PostedToll(Toll):
    """Posts its tolls: they are known as soon as the outcome is."""

    def expected_losses(self, place: int, outcome: Any) -> Any:
        return self._table(place, outcome)


@register.market("own-silent-toll")
class SilentToll(Toll):
    """Says that its agents respond to their utility."""

    utility_is_expected = True


@register.market("own-wrong-toll")
class WrongToll(Toll):
    """Returns one row for all agents."""

    def expected_losses(self, place: int, outcome: Any) -> Any:
        return self._table(place, outcome)[:1]


def toll_market(kind: str, outcome: float = 0.2, **keys: Any) -> Any:
    """Build a market in which every outcome is the same number."""
    travellers = worlds.cohort("travellers", 4, ACTIONS, "linear") | keys
    adversary = {"kind": "iid", "outcomes": 1}
    market = {"kind": kind, "outcome": outcome}
    return worlds.scenario(
        travellers, adversary=adversary, market=market, rounds=60, seed=3
    ).build()


RESPONSES = [
    {"response": "best-response"},
    {"response": "private"},
    {"response": "certainty-equivalent"},
    {"response": "quantal", "eta": 50.0},
    {"response": "ensemble"},
]


@pytest.mark.parametrize("keys", RESPONSES, ids=lambda keys: keys["response"])
@pytest.mark.parametrize(("outcome", "best"), [(0.2, ACTIONS - 1), (0.8, 0)])
def test_followers_respond_to_what_the_market_expects_them_to_lose(
    keys: dict[str, Any], outcome: float, best: int
) -> None:
    model = toll_market("own-posted-toll", outcome, **keys)
    model.run()
    last_actions = [agent.action for agent in model.agents]
    assert last_actions == [best] * 4


@pytest.mark.parametrize("keys", RESPONSES, ids=lambda keys: keys["response"])
def test_followers_whose_losses_are_not_known_before_the_round_are_refused(
    keys: dict[str, Any],
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


def test_a_market_put_in_the_place_of_another_is_asked_from_then_on() -> None:
    """A market of which nothing is known before the round is refused, and nothing changes."""
    model = toll_market("own-posted-toll", 0.2)
    cohorts, rng = model.game.cohorts, np.random.default_rng(0)
    posted = model.game.market
    with pytest.raises(UserError, match="cannot respond to the forecast"):
        model.replace(market=Toll(cohorts, rng))
    assert model.game.market is posted
    model.replace(market=SilentToll(cohorts, rng))
    assert cohorts[0].market_losses is None


def test_expected_losses_of_a_wrong_shape_are_named() -> None:
    model = toll_market("own-wrong-toll")
    with pytest.raises(UserError, match=r"expected_losses returned .*for cohort.travellers return"):
        model.run()
