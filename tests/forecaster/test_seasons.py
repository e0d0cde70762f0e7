"""Seasons of contexts, and which of the past rounds are remembered of each."""

import numpy as np
import pandas as pd
import pytest

from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster import SeasonalNaive
from regretless.forecaster.models.seasons import (
    MAX_SEASONS,
    NO_SEASON,
    ROUNDS_BETWEEN_DROPS,
    PastRounds,
    _mark_kept,
    _write_last_of_season,
)
from regretless.market.core.randomness import stream

LAST_OF_SEASON = {"kind": "past-outcomes", "rate": 1.0, "seasonal": True}


def serve(model: dict[str, object]) -> OnlineOmnipredictor:
    """Return a forecaster of a demand up to 400 with one model."""
    store = Newsvendor(orders=[100.0, 250.0, 400.0], underage=4.0, overage=1.0)
    scale = {"demand": (0.0, 400.0)}
    return OnlineOmnipredictor({"store": store}, scale=scale, models={"season": model})


def test_a_late_outcome_is_the_newest_of_its_season_after_rounds_of_another() -> None:
    server = serve(LAST_OF_SEASON)
    for _ in range(10):
        server.learn_one({"shop": 0}, 100.0)
        server.learn_one({"shop": 1}, 100.0)
    server.predict_one({"shop": 0}, key="a")
    for _ in range(6):
        server.learn_one({"shop": 1}, 100.0)
    server.learn_late("a", 300.0)
    assert server.predict_one({"shop": 0}).mean == pytest.approx(300.0)


def test_outcomes_in_any_order_leave_the_last_rounds_of_each_season() -> None:
    """By brute force: the same rounds, sorted by their time."""
    generator = np.random.default_rng(0)
    n_rounds = 3 * ROUNDS_BETWEEN_DROPS
    seasons = generator.choice(3, n_rounds, p=[0.9, 0.05, 0.05])  # the last two are rare
    delays = generator.integers(0, 20, n_rounds)
    in_order = PastRounds(1, of_all=4, of_season=2)
    late = PastRounds(1, of_all=4, of_season=2)
    for time in range(n_rounds):
        in_order.add(np.array([time]), {"hour": float(seasons[time])}, newer=0)
    learned: list[int] = []
    for time in np.argsort(np.arange(n_rounds) + delays, kind="stable").tolist():
        newer = sum(other > time for other in learned)
        late.add(np.array([time]), {"hour": float(seasons[time])}, newer=newer)
        learned.append(time)
    for season in range(3):
        features = {"hour": float(season)}
        expected = in_order.last_of_season(features, 2)
        assert late.last_of_season(features, 2).tolist() == expected.tolist()
    assert late.last(4).tolist() == in_order.last(4).tolist()
    by_time = np.arange(n_rounds)
    for season in range(3):
        of_season = by_time[seasons == season][-2:]
        kept = in_order.last_of_season({"hour": float(season)}, 2)
        assert kept.ravel().tolist() == of_season.tolist()


def test_rounds_that_are_not_kept_are_dropped_in_the_end() -> None:
    rounds = PastRounds(1, of_all=4, of_season=2)
    for row in range(10 * ROUNDS_BETWEEN_DROPS):
        rounds.add(np.array([row]), {"hour": float(row % 24)}, newer=0)
    assert rounds.rounds == 24 * 2


def test_a_checkpoint_holds_no_rounds_that_wait_to_be_dropped() -> None:
    """It has the same size after every round, and what comes of it is the same."""
    rounds = PastRounds(1, of_all=4, of_season=2)
    generator = np.random.default_rng(0)
    for row in range(4 * ROUNDS_BETWEEN_DROPS):
        newer = int(generator.integers(0, 8)) if row % 3 == 0 else 0
        rounds.add(np.array([row]), {"hour": float(row % 5)}, newer=newer)
        if row == 2 * ROUNDS_BETWEEN_DROPS:
            continued = PastRounds(1, of_all=4, of_season=2)
            continued.restore(rounds.state())
        elif row > 2 * ROUNDS_BETWEEN_DROPS:
            continued.add(np.array([row]), {"hour": float(row % 5)}, newer=newer)
            state = rounds.state()
            assert 5 * 2 <= len(state["vectors"]) <= 5 * 2 + 4
            for name, value in continued.state().items():
                assert np.array_equal(value, state[name])


def test_days_of_a_date_are_in_the_season_of_their_weekday() -> None:
    """A peak on Saturdays is forecast from the date as it is from the weekday."""
    by_date = serve(LAST_OF_SEASON)
    by_weekday = serve(LAST_OF_SEASON)
    for day in pd.date_range("2026-01-01", "2026-01-30"):
        demand = 300.0 if day.weekday() == 5 else 100.0
        by_date.learn_one({"date": day}, demand)
        by_weekday.learn_one({"weekday": day.weekday()}, demand)
    saturday = pd.Timestamp("2026-01-31")
    assert by_weekday.predict_one({"weekday": saturday.weekday()}).mean == pytest.approx(300.0)
    assert by_date.predict_one({"date": saturday}).mean == pytest.approx(300.0)


def test_the_oldest_season_makes_way_for_a_new_one() -> None:
    rounds = PastRounds(1, of_all=1, of_season=1)
    for day in range(MAX_SEASONS + 10):
        rounds.add(np.array([day]), {"day": float(day)}, newer=0)
    assert rounds.last_of_season({"day": MAX_SEASONS + 9.0}, 1).tolist() == [[MAX_SEASONS + 9]]
    assert rounds.last_of_season({"day": 10.0}, 1).tolist() == [[10]]
    assert not len(rounds.last_of_season({"day": 9.0}, 1))
    assert rounds.rounds == MAX_SEASONS


def test_seasons_are_learned_anew_once_a_feature_is_no_integer() -> None:
    """After more rounds of a row's number than there are seasons, the hour is one again."""
    rounds = PastRounds(1, of_all=4, of_season=2)
    for row in range(MAX_SEASONS + 10):
        rounds.add(np.array([0.0]), {"hour": float(row % 24), "row": float(row)}, newer=0)
    rounds.add(np.array([0.0]), {"hour": 0.0, "row": 0.5}, newer=0)
    assert rounds.rounds == 5  # the last four of that time, and the one since
    for hour in range(24):
        rounds.add(np.array([hour]), {"hour": float(hour), "row": 0.5}, newer=0)
    assert rounds.last_of_season({"hour": 5.0, "row": 0.5}, 2).tolist() == [[5.0]]


def test_a_feature_that_is_not_known_once_tells_seasons_in_other_rounds() -> None:
    model = SeasonalNaive(1)
    for day in range(3):
        for hour in range(24):
            model.predict({"hour": np.nan if day == hour == 1 else hour})
            model.update([0.9 if hour == 5 else 0.1])
    assert model.predict({"hour": 5}).statistics == [0.9]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rounds", [0, 1, 30])
def test_rounds_that_are_kept_are_the_last_of_all_and_of_each_season(
    seed: int, rounds: int
) -> None:
    codes = stream(seed, "seasons").integers(NO_SEASON, 3, rounds)
    is_kept = np.zeros(rounds, dtype=np.bool_)

    _mark_kept(codes, 4, 2, is_kept)

    expected = set(range(rounds)[-4:])
    for code in range(3):
        of_season = np.flatnonzero(codes == code)
        expected |= set(of_season[-2:].tolist())
        last_rounds = np.full(3, -1)
        n_last = _write_last_of_season(codes, code, last_rounds)
        assert n_last == min(len(of_season), 3)
        assert last_rounds[3 - n_last :].tolist() == of_season[-3:].tolist()
    assert set(np.flatnonzero(is_kept).tolist()) == expected
