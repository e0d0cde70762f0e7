"""What every market offers: outcomes in [0, 1], a memory, mistakes in a line; and prices."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from resuming import check_resumes
from small_scenarios import (
    TomlTable,
    cohort_table,
    make_scenario,
    play_to_end,
    read_catalogue_scenario,
)

from regretless import MarketModel, UserError, load, register
from regretless.market.core.arrays import Array
from regretless.market.game.market import Market
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import play_round
from regretless.market.losses import Linear
from regretless.market.markets import congestion, price_impact
from regretless.market.markets.aggregate import Moments, Settling
from regretless.market.markets.cournot import Cournot
from regretless.market.markets.portfolio import Portfolio
from regretless.market.numerics import exact_sum
from regretless.market.records import (
    AdversaryView,
    Context,
    Decision,
    History,
    OutcomeDistribution,
)
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue, find, read

MARKETS = [name for name in catalogue() if "market" in read(find(name))]
every_market = pytest.mark.parametrize("name", MARKETS)


def short_scenario(name: str, *assignments: str, rounds: int = 24) -> Scenario:
    """Return a scenario of the catalogue with few rounds and one measure."""
    return read_catalogue_scenario(name, f"rounds={rounds}", *assignments, measures=["swap"])


@every_market
def test_a_market_goes_on_from_a_checkpoint(name: str, tmp_path: Path) -> None:
    check_resumes(short_scenario(name).build, 11, tmp_path)


@cache
def played_market(name: str) -> MarketModel:
    return play_to_end(short_scenario(name))


@every_market
def test_a_market_conserves_what_its_agents_own(name: str) -> None:
    accounts = played_market(name).game.market.accounts
    if accounts is None:
        pytest.skip("its agents own nothing")
    initial_accounts = short_scenario(name).build().game.market.accounts
    assert (accounts.totals() == initial_accounts.totals()).all()


@every_market
def test_a_market_sums_itself_up(name: str) -> None:
    assert played_market(name).game.market.summary() != ""


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("el-farol", "% of the agents take part on average"),
        ("bank-run", "% take part on average, with the 20.0 % who always do"),
    ],
)
def test_a_crowd_that_always_takes_part_is_not_counted_as_agents(name: str, who: str) -> None:
    assert who in played_market(name).game.market.summary()


@every_market
def test_followers_are_promised_something_exactly_if_the_market_lags(name: str) -> None:
    model = played_market(name)
    agents = model.agents_frame().query("kind == 'follower' and response != 'private'")
    followers = agents[agents["mean_loss"].notna()]
    answers_at_once = model.game.market.answers_at_once
    assert ((followers["guarantee"] == "none") == answers_at_once).all()
    assert (followers["bound"].isna() == answers_at_once).all()


@every_market
def test_what_is_settled_before_is_foreseen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round's outcome is what was foreseen of its fundamental, and nothing else is changed."""
    model = short_scenario(name, 'logs="full"').build()
    market = model.game.market
    adversary = model.game.adversary
    commit = adversary.commit
    fundamentals_of_round: list[Array] = []
    foreseen_in_round: list[Array | None] = []

    def commit_and_ask(
        context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        distribution = commit(context, history, announced)
        fundamentals_of_round.append(distribution.points)
        foreseen_in_round.append(market.next_outcomes(distribution.points))
        return distribution

    monkeypatch.setattr(adversary, "commit", commit_and_ask)
    model.run()

    undisturbed = play_to_end(short_scenario(name, 'logs="full"'))
    assert model.rounds_frame().equals(undisturbed.rounds_frame())
    outcomes = model.rounds_frame().filter(regex="^y_").to_numpy()
    for fundamentals, foreseen, outcome in zip(
        fundamentals_of_round, foreseen_in_round, outcomes, strict=True
    ):
        assert (foreseen is None) == market.answers_at_once
        if foreseen is not None:
            assert foreseen.shape == fundamentals.shape
            assert (foreseen == outcome).all(1).any()


@pytest.mark.parametrize(("kind", "feedback"), [("myopic", "lagged"), ("cma", "same-round")])
def test_an_adversary_that_plans_has_its_place_in_a_market(kind: str, feedback: str) -> None:
    adversary = {"kind": kind, "outcomes": 3}
    scenario = load("crowding", rounds=3, market={"feedback": feedback}, adversary=adversary)
    assert play_to_end(scenario).played == 3


def test_running_moments_are_those_of_the_whole() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    moments = Moments(3)
    for row in rows:
        moments.add(row)
    assert moments.mean == pytest.approx(rows.mean(0))
    assert moments.deviation() == pytest.approx(rows.std(0))


def test_an_outcome_is_cut_to_the_unit_interval_before_it_is_added() -> None:
    rng = np.random.default_rng(1)
    moved = rng.normal(0.5, 0.6, size=(40, 3))
    moments = Moments(3)
    was_cut = []
    for row in moved:
        outcome, cut = moments.add_cut(row)
        assert outcome.tobytes() == np.clip(row, 0.0, 1.0).tobytes()
        was_cut.append(cut)
    assert was_cut == (np.clip(moved, 0.0, 1.0) != moved).any(1).tolist()
    assert moments.mean == pytest.approx(np.clip(moved, 0.0, 1.0).mean(0))
    assert moments.deviation() == pytest.approx(np.clip(moved, 0.0, 1.0).std(0))


def test_an_outcome_that_is_no_number_is_not_cut_to_one() -> None:
    outcome, _ = Moments(2).add_cut(np.array([np.nan, 2.0]))
    assert np.isnan(outcome[0])
    assert outcome[1] == 1.0


def test_a_shop_orders_no_more_than_it_can_pay() -> None:
    model = play_to_end(short_scenario("shops", "market.cash=0.25", rounds=1))
    market = model.game.market
    assert market.levels.mean[0] == pytest.approx(0.25, abs=1e-6)
    assert (market.accounts.cash[:-1] >= 0).all()


def test_shops_that_are_away_sell_nothing_and_their_stock_is_not_in_the_mean() -> None:
    scenario = short_scenario("shops", "cohort.shops.count=300", "market.cash=100.0")
    market = scenario.build().game.market
    (cohort,) = market.cohorts
    demand = np.array([0.4])
    actions = np.arange(300) % cohort.loss.actions
    market.clear(demand, [Decision(None, actions)])  # so that some have a stock
    stock = market.accounts.goods[:-1, 0].copy()
    cash = market.accounts.cash[:-1].copy()
    is_present = np.arange(300) % 3 > 0

    market.clear(demand, [Decision(None, np.where(is_present, actions, -1))])

    order_level = actions / (cohort.loss.actions - 1)
    stock_of_day = np.where(is_present, np.maximum(stock, order_level), stock)
    sold = np.minimum(stock_of_day, demand) * is_present
    left_over = (stock_of_day - sold) * is_present
    earned = market.price * sold - market.cost * (stock_of_day - stock) - market.holding * left_over
    goods_after = market.accounts.goods[:-1, 0]
    assert goods_after == pytest.approx(stock_of_day - sold, abs=1e-6)
    assert market.accounts.cash[:-1] == pytest.approx(cash + earned, abs=1e-5)
    assert market.last["level"] == stock_of_day[is_present].mean()  # to the last bit
    assert market.last["sold"] == sold.sum()


@register.market("own-bear")
class Bear(Portfolio):
    """Accounts move at the returns that the adversary chose, and agents see half of these."""

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        return 0.5 * super().clear(fundamental, decisions)


@pytest.mark.parametrize(("kind", "share_that_is_seen"), [("portfolio", 1.0), ("own-bear", 0.5)])
def test_investors_are_charged_what_they_lose_at_the_outcome_that_the_market_returned(
    kind: str, share_that_is_seen: float
) -> None:
    model = short_scenario("survival", f"market.kind='{kind}'", rounds=5).build()
    for _ in range(5):
        begun = model.begin()
        fundamental = begun.outcome
        played = model.conclude(begun)
        assert np.array_equal(played.outcome, share_that_is_seen * fundamental)
        for cohort, charged_losses in zip(model.game.cohorts, played.losses, strict=True):
            assert np.array_equal(charged_losses, cohort.loss.losses(played.outcome))


@register.market("own-broken")
class Broken(Market):
    """Returns what is no outcome."""

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        return fundamental + self.rng.random() + 1.0


@register.market("own-minutes")
class Minutes(Market):
    """Charges every driver the same for either way, in units of its own."""

    has_own_payoffs = True

    def __init__(
        self, cohorts: Sequence[Cohort], rng: np.random.Generator, *, charge: float = 1.0
    ) -> None:
        super().__init__(cohorts, rng)
        self.charge = charge

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        return np.array([self.charge / max(self.charge, 1.0) + 3e-16])

    def losses(self, decisions: Sequence[Decision | None]) -> list[Array]:
        return [np.full((self.agents, 2), self.charge)]


register.market("own-function")(lambda *_: object())


def test_an_outcome_outside_the_unit_interval_is_refused() -> None:
    model = short_scenario("oligopoly", "market={kind='own-broken'}").build()
    with pytest.raises(UserError, match=r"Broken.clear returned .*; return one number in \[0, 1\]"):
        model.run()


def drivers_charged(charge: float) -> Scenario:
    """Return two drivers in the market that charges this for either way."""
    drivers = {"name": "drivers", "response": "hedge", "count": 2, "actions": 2}
    market = {"kind": "own-minutes", "charge": charge}
    return make_scenario(drivers, rounds=3, adversary=None, market=market)


def test_what_rounding_leaves_beyond_one_is_one() -> None:
    model = drivers_charged(1.0 + 3e-16).build()
    model.run()
    assert model.agents_frame()["mean_loss"].tolist() == [1.0, 1.0]
    assert model.rounds_frame()["y_0"].tolist() == [1.0, 1.0, 1.0]


def test_losses_in_minutes_are_refused_with_what_normalises_them() -> None:
    model = drivers_charged(45.0).build()
    with pytest.raises(UserError, match=r"returned 45.0; .*losses_of.*loss_range"):
        model.run()


def test_a_registered_function_that_makes_no_market_is_refused() -> None:
    scenario = short_scenario("oligopoly", "market={kind='own-function'}")
    with pytest.raises(UserError, match="is no Market"):
        scenario.build()


def test_a_market_without_clear_is_not_made() -> None:
    cohorts = load("oligopoly").build().game.cohorts
    with pytest.raises(TypeError, match="clear"):
        Market(cohorts, np.random.default_rng(0))  # type: ignore[abstract]


def decision(*actions: int) -> Decision:
    return Decision(np.zeros((1, 1)), np.array(actions))


ONE_LIKES_EACH_GOOD = [decision(0, 0), decision(0, 1)]  # three agents buy good 0, one good 1
HALF = np.full(2, 0.5)


def price_market(feedback: str) -> price_impact.Prices:
    """Return a market of two cohorts of two agents who choose between two goods."""
    cohort = SimpleNamespace(
        name="buyers",
        multiplicity=None,
        multiplicity_of=lambda _: None,
        loss=Linear(-np.eye(2)[None]),
        row_of=np.zeros(2, dtype=int),
    )
    rng = np.random.default_rng(0)
    cohorts = [cohort, cohort]
    return price_impact.Prices(cohorts, rng, feedback=feedback, impact=0.5, adjustment=0.5)  # type: ignore[arg-type]


def test_prices_that_lag_move_after_the_round_by_hand() -> None:
    """Three of four agents buy the first good, then all who are there the second."""
    market = price_market("lagged")
    assert market.clear(HALF, ONE_LIKES_EACH_GOOD) == pytest.approx([0.5, 0.5])
    assert market.level == pytest.approx([0.625, 0.375])
    assert market.clear(HALF, [decision(1, 1), None]) == pytest.approx([0.4375, 0.5625])
    assert market.last["demand"] == pytest.approx([0.0, 1.0])
    assert market.last["price"] == pytest.approx([0.625, 0.375])


def test_prices_that_answer_at_once_move_in_the_round_by_hand() -> None:
    market = price_market("same-round")
    assert market.clear(HALF, ONE_LIKES_EACH_GOOD) == pytest.approx([0.4375, 0.5625])


def test_prices_at_the_ends_are_clipped_and_counted() -> None:
    market = price_market("lagged")
    market.clear(HALF, ONE_LIKES_EACH_GOOD)
    market.clear(HALF, [decision(1, 1), None])
    assert market.clear(np.array([1.0, 0.0]), [None, None]) == pytest.approx([1.0, 0.0])
    assert market.clipped_share == pytest.approx(1 / 3)


@pytest.mark.parametrize("feedback", ["lagged", "same-round"])
@pytest.mark.parametrize("name", ["el-farol", "pigou", "braess", "oligopoly", "crowding"])
def test_a_round_that_a_kernel_clears_is_that_of_the_formula_at_rest(
    name: str, feedback: str
) -> None:
    model = short_scenario(name, f"market.feedback={feedback}", "market.adjustment=0.3").build()
    market = model.game.market
    fundamental = np.random.default_rng(3).random(market.goods)
    for _ in range(4):
        decisions = play_round(model.game).decisions
    level_before = market.level
    outcomes_before = market.outcomes.count

    outcome = market.clear(fundamental, decisions)

    assert not np.array_equal(market.level, level_before)
    level = level_before if feedback == "lagged" else market.level
    assert outcome.tobytes() == np.clip(market.rest(fundamental, level), 0.0, 1.0).tobytes()
    assert market.outcomes.count == outcomes_before + 1


@pytest.mark.parametrize("name", ["el-farol", "pigou", "oligopoly", "crowding"])
def test_a_fundamental_of_another_shape_is_refused_before_a_kernel_reads_it(name: str) -> None:
    market = short_scenario(name).build().game.market
    nobody_acts = [None] * len(market.cohorts)
    with pytest.raises(UserError, match=r"a fundamental of shape \(7,\)"):
        market.clear(np.zeros(7), nobody_acts)
    assert market.rounds == 0


def test_agents_who_are_absent_demand_nothing() -> None:
    market = price_market("lagged")
    assert not market.aggregate([None, decision(-1, -1)]).any()
    demand_of_one = market.aggregate([None, decision(-1, 1)])
    assert demand_of_one.sum(0) == pytest.approx([1.0, 0.0, 1.0])


def test_demand_is_the_exact_sum_of_what_was_bought_by_those_who_are_there() -> None:
    market = price_market("lagged")
    loads = np.random.default_rng(2).random((2, 2, 2))  # rows, actions, goods
    market.loads_of_actions = [loads, loads]
    row_of = market.cohorts[0].row_of
    actions = np.array([1, 0])
    demand = market.aggregate([decision(*actions), decision(-1, 1)])
    bought = [loads[row_of[0], 1], loads[row_of[1], 0], loads[row_of[1], 1]]
    assert demand[:, 1:].tobytes() == exact_sum.total(np.array(bought), np.ones(3)).tobytes()
    assert demand.sum(0)[0] == 3


def test_an_action_beyond_those_of_the_cohort_is_not_added_up() -> None:
    market = price_market("lagged")
    with pytest.raises(IndexError, match="none of its cohort's"):
        market.aggregate([decision(0, 7), None])


LAGGED = {"feedback": "lagged", "impact": 0.4, "adjustment": 0.7}


def priced_scenario(market: TomlTable | None, *, seed: int = 1, **keys: object) -> Scenario:
    """Return a scenario of best responders, quantal agents and learners who choose baskets."""
    baskets = {"weights": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]}
    parameters = baskets | {"concentration": 6.0}
    return make_scenario(
        cohort_table("followers", 8, 3, parameters=parameters),
        cohort_table("noisy", 8, 3, parameters=parameters, response="quantal", eta=20.0),
        cohort_table("learners", 8, 3, parameters=parameters, response="hedge"),
        rounds=120,
        seed=seed,
        market=market,
        **keys,
    )


def test_a_lagged_market_is_a_replay_of_its_outcomes(tmp_path: Path) -> None:
    """The same agents who face the recorded outcomes as data do and lose exactly the same."""
    adversary = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    lived = play_to_end(priced_scenario(LAGGED, adversary=adversary))
    goods = ["y_0", "y_1", "y_2"]
    outcomes = lived.rounds_frame()[goods]
    fundamentals = lived.rounds_frame().filter(like="fundamental_")
    assert (outcomes != fundamentals.to_numpy()).any(axis=None), "the market moves nothing"
    outcomes.to_parquet(tmp_path / "lived.parquet")

    data = {"file": str(tmp_path / "lived.parquet"), "outcomes": goods}
    replayed = play_to_end(priced_scenario(None, data=data, forecaster={"models": []}))

    pd.testing.assert_frame_equal(lived.regret_frame(), replayed.regret_frame())
    pd.testing.assert_frame_equal(lived.agents_frame(), replayed.agents_frame())


ADVERSARIES: dict[str, TomlTable] = {
    "iid": {},
    "anti-forecast": {},
    "pump-and-dump": {"exposure": [1.0, 0.0, 0.0], "pump": 20, "dump": 20},
}


@cache
def lagged_market(adversary: str, impact: float, seed: int) -> MarketModel:
    table = {"kind": adversary, "outcomes": 3} | ADVERSARIES[adversary]
    return play_to_end(priced_scenario(LAGGED | {"impact": impact}, adversary=table, seed=seed))


every_adversary = pytest.mark.parametrize("adversary", ADVERSARIES)
every_impact = pytest.mark.parametrize("impact", [-0.6, 0.6])
every_seed = pytest.mark.parametrize("seed", [1, 2])


@every_adversary
@every_impact
@every_seed
def test_regret_stays_below_its_bound_where_feedback_is_lagged(
    adversary: str, impact: float, seed: int
) -> None:
    agents = lagged_market(adversary, impact, seed).agents_frame()
    followers = agents[agents["cohort"] != "learners"]
    assert (followers["guarantee"] != "none").all()
    assert (followers["decision_swap_regret"] <= followers["bound_from_bias"] + 1e-9).all()
    assert (followers["bound_from_bias"] <= followers["bound"]).all()


@every_adversary
@every_impact
@every_seed
def test_biases_stay_below_their_bound_where_feedback_is_lagged(
    adversary: str, impact: float, seed: int
) -> None:
    forecaster = lagged_market(adversary, impact, seed).game.blocks[0].forecaster
    bound = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert np.abs(bias).max() <= float(np.max(bound.bias(occupancy))) + 1e-9


@every_impact
@every_seed
def test_a_leader_gains_no_more_than_its_cap_where_feedback_is_lagged(
    impact: float, seed: int
) -> None:
    agents = lagged_market("pump-and-dump", impact, seed).agents_frame()
    assert (agents["leader_surplus"] <= agents["surplus_cap"] + 1e-9).all()


# Demand for two goods in four rounds; in the last nobody wants any.
DEMAND = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])


def test_concentration_is_the_sum_of_squared_shares_by_hand() -> None:
    concentration = price_impact.concentration(DEMAND)
    assert concentration == pytest.approx([0.5, 1.0, 1.0, np.nan], nan_ok=True)


def test_churn_is_half_the_demand_that_changed_by_hand() -> None:
    churn = price_impact.churn(DEMAND)
    assert churn == pytest.approx([np.nan, 0.5, 0.75, 0.25], nan_ok=True)


def test_a_tally_has_the_means_over_the_rounds_that_have_a_value() -> None:
    tally = price_impact.Tally(2)
    for demand in DEMAND:
        tally.add(demand)
    assert tally.means() == pytest.approx({"concentration": 2.5 / 3, "churn": 0.5})


@pytest.fixture
def crowded_round() -> pd.DataFrame:
    """Return the table of one round, whose second good four fifths demand."""
    return pd.DataFrame(
        {
            "round": [0],
            "y_0": [0.5],
            "y_1": [0.5],
            "demand_0": [0.2],
            "demand_1": [0.8],
            "fundamental_0": [0.1],
            "fundamental_1": [0.5],
        }
    )


@pytest.fixture
def forecasts_of_a_round() -> pd.DataFrame:
    """Return two forecasts, of which the second was drawn."""
    return pd.DataFrame({"drawn": [False, True], "label_0": [0.9, 0.6], "label_1": [0.9, 0.4]})


def test_crowding_of_a_round_is_what_it_is_by_hand(
    crowded_round: pd.DataFrame, forecasts_of_a_round: pd.DataFrame
) -> None:
    (row,) = price_impact.crowding(crowded_round, forecasts_of_a_round).to_dict("records")
    assert row["round"] == 0
    assert row["concentration"] == pytest.approx(0.68)
    assert row["miss"] == pytest.approx(0.1)
    assert row["miss_before"] == pytest.approx(0.3)
    assert row["confirmed"] == pytest.approx(0.2)


def test_forecasts_without_labels_have_none_that_was_drawn(
    forecasts_of_a_round: pd.DataFrame,
) -> None:
    assert np.isnan(price_impact.drawn_labels(forecasts_of_a_round[["drawn"]], 1, 2)).all()


def test_crowding_without_a_market_is_refused(
    crowded_round: pd.DataFrame, forecasts_of_a_round: pd.DataFrame
) -> None:
    without_demand = crowded_round.drop(columns=["demand_0", "demand_1"])
    with pytest.raises(ValueError, match="market"):
        price_impact.crowding(without_demand, forecasts_of_a_round)


@pytest.mark.parametrize("moved", [np.zeros(3), np.zeros(0), np.zeros((1, 2)), 0.5])
def test_an_outcome_of_another_shape_is_refused_before_a_kernel_reads_it(moved: Array) -> None:
    moments = Moments(2)
    with pytest.raises(UserError, match="give an array of 2 numbers"):
        moments.add_cut(moved)
    with pytest.raises(UserError, match="give an array of 2 numbers"):
        moments.add(moved)
    assert moments.count == 0


@pytest.mark.parametrize("step", ["rest", "settle", "within_cube"])
@pytest.mark.parametrize(
    "market", [price_impact.Prices, Cournot, congestion.Routes, congestion.AttendanceMarket]
)
def test_a_step_that_a_kernel_would_not_call_is_not_written_in_vain(market: Any, step: str) -> None:
    def own_step(self: Any, *numbers: Array) -> Array:
        return numbers[0]

    expected = f"Mine writes {step}, which {market.__name__}.answer does not call; write answer"
    with pytest.raises(UserError, match=expected):
        type("Mine", (market,), {step: own_step})
    with_answer = type("Mine", (market,), {step: own_step, "answer": own_step})
    assert issubclass(type("Heir", (with_answer,), {}), market)


class Loaded(Settling):
    """Leaves the outcome as it is, whatever the loads."""

    def __init__(self, cohorts: Sequence[Cohort], loads: Sequence[Array]) -> None:
        super().__init__(
            cohorts,
            np.random.default_rng(1),
            start=np.zeros(2),
            feedback="lagged",
            adjustment=1.0,
            loads_of_actions=loads,
        )

    def answer(self, fundamental: Array, load: Array) -> Array:
        return fundamental


@pytest.mark.parametrize("shapes", [[(0, 2, 2)] * 2, [(1, 3, 2)] * 2, [(1, 2, 1), (1, 2, 9)]])
def test_loads_of_another_shape_are_refused_with_the_one_to_give(
    shapes: list[tuple[int, ...]],
) -> None:
    cohorts = price_market("lagged").cohorts
    with pytest.raises(UserError, match=r"loads_of_actions: .*; give one of shape"):
        Loaded(cohorts, [np.zeros(shape) for shape in shapes])
