"""Announced quantiles: what their swap regret says of coverage, and what is promised and kept."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless import OnlineOmnipredictor, UserError
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.bases import LinearBasis, WithIndicators
from regretless.forecaster.coverage import CoverageRecord
from regretless.forecaster.events.coverage_events import AT, BELOW, CoverageEvents
from regretless.forecaster.events.loss_table import LossTable, played_of
from regretless.forecaster.events.quantile_grid import QuantileGrid, checked_levels
from regretless.forecaster.reference import PLAIN
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import Moment
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

LEVELS = (0.1, 0.5, 0.9)
STEPS = 8
FEW_MODELS = {"mean": "running-mean", "last": "last-value"}
ROUNDING = 1e-9


def pinball(level: float, value: Array, outcome: Array) -> Array:
    """Return the pinball loss of announcing a value."""
    return np.asarray(
        level * np.maximum(outcome - value, 0) + (1 - level) * np.maximum(value - outcome, 0)
    )


def make_server(steps: int = STEPS, **options: Any) -> OnlineOmnipredictor:
    """Make a server of a store with demand between 0 and 80 that announces three quantiles."""
    store = Newsvendor(orders=[20.0, 40.0, 60.0], underage=2.0, overage=1.0)
    given = {"models": FEW_MODELS, "quantiles": LEVELS, "quantile_steps": steps} | options
    return OnlineOmnipredictor({"store": store}, scale={"demand": (0.0, 80.0)}, **given)


def play(server: OnlineOmnipredictor, outcomes: Sequence[float]) -> None:
    for outcome in outcomes:
        server.learn_one(None, outcome)


def make_group(basis: WithIndicators, grid: QuantileGrid) -> tuple[Any, Array]:
    """Return the pinball losses over a basis, and where their indicators begin."""
    first = np.array([basis.first_indicator(int(j)) for j in grid.coordinate_of_loss])
    return grid.protected(basis.size, first), first


# the inequality


@pytest.mark.parametrize("seed", range(40))
def test_swap_regret_of_pinball_losses_bounds_coverage_by_value(seed: int) -> None:
    """Whatever is announced and comes; with pinball losses of outcomes and of rounded ones."""
    rng = np.random.default_rng(seed)
    n_steps = int(rng.integers(2, 8))
    step = 1 / n_steps
    grid_values = np.arange(n_steps + 1) / n_steps
    level = float(rng.uniform(0.02, 0.98))
    n_rounds = int(rng.integers(1, 60))
    announced = rng.integers(0, n_steps + 1, n_rounds)
    on_grid = rng.integers(0, n_steps + 1, n_rounds) / n_steps
    outcomes = np.where(rng.random(n_rounds) < 0.5, on_grid, rng.random(n_rounds))
    rounded_up = np.ceil(outcomes * n_steps - ROUNDING) / n_steps
    for index in range(n_steps + 1):
        is_announced = announced == index
        count = is_announced.sum()
        # by the pinball loss of the outcome: coverage at the neighbours
        losses = pinball(level, grid_values[:, None], outcomes[is_announced]).sum(1)
        regret = losses[index] - losses.min()
        above = np.inf if index == n_steps else grid_values[index + 1]
        before = -np.inf if index == 0 else grid_values[index - 1]
        n_up_to_next = (outcomes[is_announced] < above).sum()
        n_up_to_previous = (outcomes[is_announced] <= before).sum()
        assert n_up_to_next >= level * count - regret / step - ROUNDING
        assert n_up_to_previous <= level * count + regret / step + ROUNDING
        # by that of the outcome rounded up: coverage at the value itself
        losses = pinball(level, grid_values[:, None], rounded_up[is_announced]).sum(1)
        regret = losses[index] - losses.min()
        n_up_to_value = (outcomes[is_announced] <= grid_values[index] + ROUNDING).sum()
        assert n_up_to_value >= level * count - regret / step - ROUNDING
        n_up_to_previous = (outcomes[is_announced] <= before + ROUNDING).sum()
        assert n_up_to_previous <= level * count + regret / step + ROUNDING


def test_the_losses_are_pinball_losses_of_the_outcome_rounded_up() -> None:
    grid = QuantileGrid(LEVELS, outcomes=2, steps=STEPS)
    basis = WithIndicators(LinearBasis(2), steps=STEPS)
    group, _first = make_group(basis, grid)
    outcomes = np.random.default_rng(0).random((50, 2))
    statistics = basis.transform(outcomes)
    losses = group.offset[:, None] + np.einsum("kan,tn->kta", group.weights, statistics)
    rounded_up = np.ceil(outcomes * STEPS) / STEPS
    for k in range(grid.n_losses):
        outcome = rounded_up[:, grid.coordinate_of_loss[k], None]
        expected = pinball(float(grid.level_of_loss[k]), grid.unit_values, outcome)
        assert losses[k] == pytest.approx(expected, abs=1e-12)


def test_the_announced_value_is_where_the_forecast_reaches_the_level_whatever_it_is() -> None:
    """Also of predictions of indicators that no distribution has."""
    grid = QuantileGrid(LEVELS, outcomes=1, steps=STEPS)
    group, first = make_group(WithIndicators(LinearBasis(1), steps=STEPS), grid)
    predictions = np.random.default_rng(1).random((200, group.weights.shape[2]))
    announced = LossTable([group]).best_responses(predictions)
    for k, level in enumerate(LEVELS):
        for prediction, value in zip(predictions, announced[k], strict=True):
            up_to = np.concatenate([[0.0], prediction[first[k] :], [1.0]])
            assert up_to[value + 1] >= level - ROUNDING
            assert up_to[value] < level + ROUNDING


# the events


def make_events() -> tuple[CoverageEvents, QuantileGrid, Array]:
    grid = QuantileGrid(LEVELS, outcomes=1, steps=4)
    group, first = make_group(WithIndicators(LinearBasis(1), steps=4), grid)
    return CoverageEvents(LossTable([group]), group, grid, first_indicators=first), grid, first


def charge_rounds(events: CoverageEvents, rounds: int, n_points: int) -> list[Any]:
    """Charge random mixtures and outcomes; return them."""
    rng = np.random.default_rng(2)
    basis = WithIndicators(LinearBasis(1), steps=4)
    charged = []
    for _ in range(rounds):
        points = rng.random((n_points, basis.size))
        mass = rng.dirichlet(np.ones(n_points))
        statistics = basis.transform(rng.random(1))
        played = played_of(events.rows, points, mass, statistics)
        events.charge(None, played)
        charged.append((points, mass, statistics))
    return charged


def test_gains_are_the_biases_of_what_is_announced_by_definition() -> None:
    events, grid, first = make_events()
    charged = charge_rounds(events, rounds=30, n_points=3)
    gain = np.zeros(events.shape)
    second_moment = np.zeros(events.shape)
    for points, mass, statistics in charged:
        announced = events.rows.best_responses(points)
        for k in range(len(LEVELS)):
            for j, weight in enumerate(mass):
                value = announced[k, j]
                for kind, indicator in ((AT, value), (BELOW, value - 1)):
                    if not 0 <= indicator < grid.steps:
                        continue
                    column = first[k] + indicator
                    bias = points[j, column] - statistics[column]
                    for event in (0, 1 + value):
                        gain[k, kind, event] += weight * bias
                        second_moment[k, kind, event] += weight * bias**2
    (view,) = events.views
    assert view.gain.reshape(events.shape) == pytest.approx(gain)
    assert events.moments_of_draws[0] == pytest.approx(second_moment)
    assert view.occupancy.reshape(events.shape)[:, :, 0] == pytest.approx(np.full((3, 2), 30.0))


def test_the_game_s_table_pays_the_weighted_biases() -> None:
    """Whatever the past is, h . (p - s) is the weighted sum of the round's gains."""
    events, _grid, _first = make_events()
    charge_rounds(events, rounds=10, n_points=2)
    moment = Moment(11, events.experts, PLAIN)
    (weighted,) = events.weigh(None, moment)
    weights, _total = weighted.weights.relative_to(0.0)
    table = np.zeros(events.rows.shape)
    weighted.add_to(table, weights)
    rng = np.random.default_rng(3)
    basis = WithIndicators(LinearBasis(1), steps=4)
    for _ in range(20):
        point = rng.random((1, basis.size))
        statistics = basis.transform(rng.random(1))
        played = played_of(events.rows, point, np.ones(1), statistics)
        payment = float((table * played.bias).sum())
        before = events.views[0].gain.copy()
        events.charge(None, played)
        gain_of_round = events.views[0].gain - before
        events.views[0].gain[:] = before
        assert payment == pytest.approx(float(weights @ gain_of_round))


def test_the_switch_test_watches_coverage() -> None:
    """A model whose 90 % quantile is always exceeded is rejected; one that is right is not."""
    store = Newsvendor(orders=[0.0, 1.0], underage=1.0, overage=1.0)  # which regrets little

    def make(**options: Any) -> OnlineOmnipredictor:
        models = {"sure": {"kind": "past-outcomes", "rate": 1.0}}
        return OnlineOmnipredictor({"store": store}, models=models, **options)

    outcomes = np.random.default_rng(0).uniform(0.0, 0.4, 200).tolist()
    with_quantiles = make(quantiles=[0.1, 0.9], quantile_steps=4)
    reference = with_quantiles._slots[0].reference
    while reference.trusted and with_quantiles.counts["learned"] < len(outcomes):
        with_quantiles.learn_one(None, outcomes[with_quantiles.counts["learned"]])
    without = make()
    play(without, outcomes)
    assert without._slots[0].reference.trusted
    assert not reference.trusted
    events, _grid, _first = make_events()
    test = SwitchTest(events.alarms)
    assert not events.exceeds(None, test)
    events.views[0].gain[0] = -150.0
    events.views[0].squares[0] = 150.0
    assert events.exceeds(None, test)


# what is promised, and kept


def check_promise(server: OnlineOmnipredictor) -> pd.DataFrame:
    """Check both inequalities in all rows; return those over all rounds."""
    for by_value in (False, True):
        table = server.coverage(by_value=by_value)
        level = table["quantile"]
        assert (table["guarantee"] == "coverage").all()
        assert (table["coverage"] >= level - table["bound"] - ROUNDING).all()
        assert (table["below"] <= level + table["bound_below"] + ROUNDING).all()
        distance = (table["coverage"] - level - table["overshoot"]).abs()
        assert (distance <= table["bound"] + ROUNDING).all()
        assert (table["overshoot"] >= -ROUNDING).all()
    return server.coverage().set_index("quantile")


def outside(forecast: Any, round_index: int) -> float:
    """Return an outcome outside of the announced interval, where there is one."""
    low = forecast.quantiles[0.1]
    high = forecast.quantiles[0.9]
    if high < 80.0:
        return float(high + 1.0)
    if low > 0.0:
        return float(low - 10.0)
    return 40.0 + round_index % 3


def beyond_median(forecast: Any, round_index: int) -> float:
    """Return the outcome that is farther from the median."""
    return 0.0 if forecast.quantiles[0.5] > 40.0 else 80.0


def just_above(forecast: Any, round_index: int) -> float:
    """Return an outcome right above one of the quantiles, in turn."""
    level = LEVELS[round_index % len(LEVELS)]
    return min(float(forecast.quantiles[level]) + 0.1, 80.0)


@pytest.mark.parametrize("adversary", [outside, beyond_median, just_above])
def test_an_adversary_that_wants_to_be_outside_cannot_break_the_promise(
    adversary: Callable[[Any, int], float],
) -> None:
    server = make_server(steps=4)
    for round_index in range(160):
        server.learn_one(None, adversary(server.predict_one(), round_index))
        if round_index % 40 == 39:
            check_promise(server)
    overall = check_promise(server)
    # and the sums over all rounds are not only bounded: the game keeps them small
    assert (overall["coverage"] >= overall.index - 0.1).all()
    assert (overall["below"] <= overall.index + 0.1).all()


def test_of_independent_outcomes_coverage_is_near_the_level() -> None:
    server = make_server(steps=40, models="panel")
    play(server, (80 * np.random.default_rng(4).beta(2, 3, 250)).tolist())
    overall = check_promise(server)
    assert overall["coverage"].to_numpy() == pytest.approx(LEVELS, abs=0.05)
    assert (overall["bound"] < 0.3).all()
    assert (overall["rounds"] == 250).all()


def test_an_atom_is_reported_as_overshoot() -> None:
    """Half of the demands are 0: the 10 % quantile is 0, and covers half."""
    rng = np.random.default_rng(5)
    demands = np.where(rng.random(200) < 0.5, 0.0, 10 + 60 * rng.random(200))
    server = make_server(steps=8)
    play(server, demands.tolist())
    row = check_promise(server).loc[0.1]
    assert row["coverage"] > 0.4
    assert row["below"] < 0.1
    assert row["overshoot"] == pytest.approx(row["coverage"] - 0.1, abs=row["bound"])


def test_the_announced_quantile_is_that_of_the_distribution_rounded_up_to_the_grid() -> None:
    server = make_server()
    play(server, (80 * np.random.default_rng(6).random(30)).tolist())
    forecast = server.predict_one()
    for level in LEVELS:
        quantile = forecast.quantile(level)
        assert forecast.quantiles[level] == pytest.approx(np.ceil(quantile / 10) * 10)
    assert make_server(quantiles=()).predict_one().quantiles == {}


def test_measured_shares_are_those_of_the_forecasts_that_were_made() -> None:
    server = make_server()
    outcomes = 80 * np.random.default_rng(7).random(60)
    was_covered = []
    for outcome in outcomes:
        was_covered.append(outcome <= server.predict_one().quantiles[0.5])
        server.learn_one(None, outcome)
    row = server.coverage().set_index("quantile").loc[0.5]
    assert row["coverage"] == pytest.approx(np.mean(was_covered))
    by_value = server.coverage(by_value=True)
    of_median = by_value[by_value["quantile"] == 0.5]
    assert of_median["rounds"].sum() == 60
    assert (of_median["rounds"] * of_median["coverage"]).sum() == pytest.approx(sum(was_covered))


def test_several_outcomes_have_quantiles_of_their_own() -> None:
    server = OnlineOmnipredictor(
        {"task": Linear([[0.01, 0.0], [0.0, 0.5]])},
        scale={"a": (0.0, 50.0), "b": (-1.0, 1.0)},
        models=FEW_MODELS,
        quantiles=[0.5],
        quantile_steps=4,
    )
    rng = np.random.default_rng(8)
    for _ in range(40):
        server.learn_one(None, {"a": 50 * rng.random(), "b": rng.uniform(-1, 1)})
    quantiles = server.predict_one().quantiles[0.5]
    assert quantiles["a"] in (0.0, 12.5, 25.0, 37.5, 50.0)
    assert quantiles["b"] in (-1.0, -0.5, 0.0, 0.5, 1.0)
    assert server.coverage()["outcome"].tolist() == ["a", "b"]
    coverage = server.coverage()
    assert (coverage["coverage"] >= 0.5 - coverage["bound"]).all()


def test_late_outcomes_and_steps_ahead_keep_the_promise() -> None:
    server = make_server(steps=4)
    rng = np.random.default_rng(9)
    for day in range(0, 60, 3):
        for late in range(3):
            server.predict_one(None, key=day + late)
        for late in (2, 0, 1):
            server.learn_late(day + late, 80 * rng.random())
    assert len(server._slots) == 3
    check_promise(server)
    ahead = make_server(steps=4, steps_ahead=4)
    play(ahead, (80 * rng.random(30)).tolist())
    check_promise(ahead)


def test_a_server_that_is_saved_goes_on_the_same(tmp_path: Path) -> None:
    outcomes = 80 * np.random.default_rng(10).random(60)
    server = make_server()
    play(server, outcomes[:40].tolist())
    server._slots[0].reference.disproved_at = 40  # games from here on
    play(server, outcomes[40:50].tolist())
    server.save(tmp_path / "server.bin")
    loaded = OnlineOmnipredictor.load(tmp_path / "server.bin")
    play(server, outcomes[50:].tolist())
    play(loaded, outcomes[50:].tolist())
    pd.testing.assert_frame_equal(server.coverage(by_value=True), loaded.coverage(by_value=True))
    assert server.predict_one().quantiles == loaded.predict_one().quantiles


def test_records_of_two_forecasters_who_take_turns_add_up_to_that_of_all_rounds() -> None:
    server = make_server()
    announced = server._announced
    assert announced is not None
    rng = np.random.default_rng(11)
    whole, *halves = (CoverageRecord(announced) for _ in range(3))
    for round_index in range(40):
        outcome = rng.random(1)
        prediction = server.basis.transform(rng.random(1))
        whole.note(prediction, outcome)
        halves[round_index % 2].note(prediction, outcome)
    halves[0].add(halves[1])
    for by_value in (False, True):
        of_whole, of_sum = (
            record.table(["demand"], None, by_value=by_value, guarantee="none")
            for record in (whole, halves[0])
        )
        pd.testing.assert_frame_equal(of_sum, of_whole)


def test_nothing_is_promised_of_censored_outcomes() -> None:
    server = make_server()
    server.learn_one(None, 20.0)
    server.learn_one(None, 20.0, censored=True)
    table = server.coverage()
    assert (table["guarantee"] == "none").all()
    assert table["bound"].isna().all()


@pytest.mark.parametrize(
    "levels", [[0.0], [1.0], [0.5, 0.5], "0.5", [np.nan], 0.5, [[0.1, 0.2]], ["a"], [0.01] * 21]
)
def test_levels_that_are_none_are_refused(levels: Any) -> None:
    with pytest.raises(UserError, match=r"quantiles = .*between 0 and 1"):
        checked_levels("quantiles", levels)


def test_coverage_without_quantiles_is_refused_with_the_cure() -> None:
    with pytest.raises(UserError, match=r"give quantiles=\[0.05, 0.95\]"):
        make_server(quantiles=()).coverage()
