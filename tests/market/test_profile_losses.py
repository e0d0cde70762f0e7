"""What markets say everybody loses at a profile: against rounds that are played, known values."""

import itertools
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario

from regretless import UserError, load
from regretless.agents.adversaries.nature import IID
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.markets.expected_auction import ExpectedAuction
from regretless.market.model import MarketModel
from regretless.market.records import AdversaryView, Decision, History


def all_profiles(model: MarketModel, n_actions: int) -> Indices:
    """Return every profile of a market in which all have as many actions."""
    n_agents = model.game.market.agents
    return np.array(list(itertools.product(range(n_actions), repeat=n_agents)))


def losses_when_played(model: MarketModel, profile: Indices, fundamental: Array) -> Array:
    """Return what agents lose (N,) where a profile has been played until the market rests."""
    market = model.game.market
    decisions = []
    for columns, _ in market.agent_columns():
        decisions.append(Decision(strategy=None, actions=profile[columns]))
    for _ in range(2):  # the level follows at once, and a lagged outcome in the next round
        outcome = market.clear(fundamental, decisions)
    losses = []
    for cohort, (columns, rows) in zip(market.cohorts, market.agent_columns(), strict=True):
        losses.append(cohort.loss.losses(outcome)[rows, profile[columns]])
    return np.concatenate(losses)


def small_market(name: str, **keys: Any) -> MarketModel:
    """Build a scenario of the catalogue with few agents, whose market adjusts at once."""
    return load(name, **{"market.adjustment": 1.0, "market.noise": 0.0, **keys}).build()


@pytest.mark.parametrize(
    ("name", "n_actions", "keys"),
    [
        ("pigou", 2, {"cohort.drivers.count": 4}),
        ("braess", 3, {"cohort.drivers.count": 3}),
        ("el-farol", 2, {"cohort.guests.count": 5}),
        ("oligopoly", 4, {"cohort.firms.count": 2, "cohort.firms.actions": 4}),
    ],
)
def test_profile_losses_are_those_of_rounds_in_which_the_profile_is_played(
    name: str, n_actions: int, keys: dict[str, Any]
) -> None:
    if name == "oligopoly":  # its firms take the price as given, so that losses are minus profits
        keys = {**keys, "cohort.firms.parameters": {"cost": 0.3, "capacity": 2.5, "slope": 0.0}}
    model = small_market(name, **keys)
    profiles = all_profiles(model, n_actions)
    fundamental = np.full(model.game.adversary.outcomes, 0.5)
    played = [losses_when_played(model, profile, fundamental) for profile in profiles]
    assert model.game.market.profile_losses(profiles) == pytest.approx(np.array(played), abs=1e-12)


def test_agents_with_multiplicity_have_a_column_each() -> None:
    counted = small_market(
        "pigou",
        **{
            "cohort.drivers.count": 4,
            "cohort.drivers.multiplicity": True,
            "cohort.drivers.types": 1,
        },
    )
    listed = small_market("pigou", **{"cohort.drivers.count": 4})
    profiles = all_profiles(counted, 2)
    assert profiles.shape == (16, 4)
    counted_losses = counted.game.market.profile_losses(profiles)
    assert counted_losses == pytest.approx(listed.game.market.profile_losses(profiles))


def test_firms_that_count_their_impact_are_not_charged_for_it_twice() -> None:
    """At Cournot's quantities of 1.2 each of four firms earns 1.2 (0.42 - 0.3)."""
    model = small_market("oligopoly", **{"cohort.firms.actions": 26})
    losses = model.game.market.profile_losses(np.full((1, 4), 12))
    firms = model.game.market.cohorts[0].loss
    profits = -(firms.unit_offset + firms.unit_scale * losses)
    assert profits == pytest.approx(1.2 * (0.42 - 0.3))


def test_losses_are_expected_over_a_fundamental_that_is_drawn() -> None:
    """Noise that is not cut does not move what is linear in the outcome."""
    quiet = small_market("oligopoly")
    noisy = small_market("oligopoly", **{"market.noise": 0.1})
    profiles = np.array([[10, 10, 10, 10], [4, 8, 12, 16]])
    assert noisy.game.market.profile_losses(profiles) == pytest.approx(
        quiet.game.market.profile_losses(profiles)
    )


def test_a_fundamental_without_a_fixed_distribution_is_refused_where_it_matters() -> None:
    drifting = {"kind": "drifting", "outcomes": ["price"]}
    quiet = small_market("oligopoly", adversary=drifting)
    noisy = small_market("oligopoly", adversary=drifting, **{"market.noise": 0.1})
    profiles = np.zeros((1, 4), dtype=np.intp)
    assert quiet.game.market.profile_losses(profiles).shape == (1, 4)
    with pytest.raises(UserError, match="no fixed distribution"):
        noisy.game.market.profile_losses(profiles)


def test_a_market_without_profile_losses_says_so() -> None:
    market = load("shops", rounds=5).build().game.market
    assert not market.has_profile_losses
    with pytest.raises(UserError, match="write its profile_losses"):
        market.profile_losses(np.zeros((1, market.agents), dtype=np.intp))


@pytest.mark.parametrize(("concentration", "mean"), [(2.0, 0.5), (0.3, 0.2), (50.0, 0.9)])
def test_the_strata_of_chance_have_its_mean_and_variance(concentration: float, mean: float) -> None:
    nature = IID(2, stream(0, "test"), mean=mean, concentration=concentration)
    distribution = nature.fixed_distribution()
    average = distribution.weights @ distribution.points
    variance = distribution.weights @ (distribution.points - average) ** 2
    assert average == pytest.approx(mean)
    assert variance == pytest.approx(mean * (1 - mean) / (concentration + 1), rel=0.01)


def test_chance_follows_a_mean_and_a_concentration_that_a_script_sets() -> None:
    changed = IID(2, stream(0, "test"), mean=0.5, concentration=2.0)
    made_so = IID(2, stream(0, "test"), mean=0.9, concentration=50.0)
    changed.mean = made_so.mean
    changed.concentration = made_so.concentration
    history = History(2)
    nothing_announced = AdversaryView(None)
    outcome = changed.outcome(history, nothing_announced)
    assert (outcome == made_so.outcome(history, nothing_announced)).all()
    changed.concentration = 2.0
    made_so.concentration = 2.0
    outcome = changed.outcome(history, nothing_announced)
    assert (outcome == made_so.outcome(history, nothing_announced)).all()


@pytest.mark.parametrize("kind", ["first-price", "second-price"])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("values", ["drawn", "fixed"])
def test_mean_gains_of_bidders_are_those_of_many_auctions(
    kind: str, units: int, values: str
) -> None:
    """2,500 auctions of four bidders, two of them with equal bids, and a reserve price."""
    market = {"kind": kind, "units": units, "redraw": values == "drawn", "reserve": 0.3}
    keys = {"market": market, "adversary.mean": 0.5, "adversary.concentration": 0.0}
    model = load(
        "sealed-bids", **{"cohort.bidders.count": 4, "cohort.bidders.actions": 5, **keys}
    ).build()
    auction = model.game.market
    profile = np.array([2, 3, 3, 0])
    decision = Decision(strategy=None, actions=profile)
    total = np.zeros(4)
    rounds = 2500
    for _ in range(rounds):
        auction.clear(np.array([0.5]), [decision])
        (losses,) = auction.losses([decision])
        total += losses[np.arange(4), profile]
    assert auction.profile_losses(profile[np.newaxis])[0] == pytest.approx(
        total / rounds, abs=0.016
    )


def test_no_share_of_the_value_gains_more_than_the_equilibrium_bid() -> None:
    """Of three bidders, whose values are uniform, each bids two thirds (Vickrey 1961)."""
    auction = ExpectedAuction(units=1, reserve=0.0, own_bid=True)
    shares = np.linspace(0, 1, 61)
    bids = np.full((61, 3), 2 / 3)
    bids[:, 0] = shares
    gains = auction.gains_of_drawn_values(np.ones(3), bids)[:, 0]
    assert shares[gains.argmax()] == pytest.approx(2 / 3)
    # A bidder of value u bids 2 u / 3 and wins with chance u^2: the mean of u^3 / 3 is 1 / 12.
    assert gains.max() == pytest.approx(1 / 12)


def test_a_bid_of_nothing_wins_by_lot_among_its_like() -> None:
    auction = ExpectedAuction(units=2, reserve=0.0, own_bid=True)
    gains = auction.gains_of_drawn_values(np.ones(4), np.array([[0.0, 0.0, 0.0, 0.5]]))
    assert gains[0, 0] == pytest.approx(1 / 3 * 1 / 2)  # one unit for three, of mean value 1 / 2


def test_prices_that_follow_demand_have_a_stage_game() -> None:
    cohort = cohort_table("buyers", 3, 3, response="hedge")
    market = {"impact": 0.4, "feedback": "same-round", "adjustment": 1.0}
    model = make_scenario(cohort, market=market).build()
    losses = model.game.market.profile_losses(all_profiles(model, 3))
    assert losses.shape == (27, 3)
    assert ((losses >= -1e-12) & (losses <= 1 + 1e-12)).all()


def fixed_auction(name: str, **keys: Any) -> MarketModel:
    """Build an auction of two bidders with five bids, whose values stay what they are."""
    of_bidders = {"count": 2, "actions": 5, "parameters": {"value": [0.5, 0.9]}}
    bidders = {f"cohort.bidders.{key}": value for key, value in of_bidders.items()}
    return load(name, **{"market.redraw": False, **bidders, **keys}).build()


@pytest.mark.parametrize("name", ["sealed-bids", "second-price"])
def test_bidders_of_values_below_one_lose_at_a_profile_what_they_lose_when_it_is_played(
    name: str,
) -> None:
    market = fixed_auction(name).game.market
    profiles = all_profiles(fixed_auction(name), 5)
    expected = market.profile_losses(profiles)
    mean_losses = np.zeros(profiles.shape)
    rounds = 60
    for index, profile in enumerate(profiles):
        decision = Decision(strategy=None, actions=profile)
        for _ in range(rounds):
            market.clear(np.zeros(1), [decision])
            mean_losses[index] += market.losses([decision])[0][[0, 1], profile] / rounds
    is_tie = np.isclose(*market._greatest_bids[[0, 1], profiles].T)
    np.testing.assert_allclose(mean_losses[~is_tie], expected[~is_tie], atol=1e-12)


@pytest.mark.parametrize("name", ["sealed-bids", "second-price"])
def test_equal_bids_that_share_a_unit_lose_what_lots_cost_on_average(name: str) -> None:
    split = fixed_auction(name, **{"market.ties": "split"}).game.market
    by_lot = fixed_auction(name).game.market
    profiles = all_profiles(fixed_auction(name), 5)
    expected = by_lot.profile_losses(profiles)
    np.testing.assert_allclose(split.profile_losses(profiles), expected, atol=1e-12)
    for profile, losses in zip(profiles, expected, strict=True):
        decision = Decision(strategy=None, actions=profile)
        split.clear(np.zeros(1), [decision])
        played = split.losses([decision])[0][[0, 1], profile]
        np.testing.assert_allclose(played, losses, atol=1e-12)


def test_shared_units_are_of_fixed_values() -> None:
    with pytest.raises(UserError, match=r'ties = "split" is of fixed values .*redraw = false'):
        fixed_auction("sealed-bids", **{"market.redraw": True, "market.ties": "split"})
