"""Means beyond a limit, of samples in which some values are limits themselves."""

from pathlib import Path

import numpy as np
import pytest
from resuming import check_resumes

from regretless import load
from regretless.market.numerics import censored_sample
from regretless.market.numerics.censored_sample import (
    EVEN_SHARE,
    CensoredSample,
    kaplan_meier,
    with_room,
)


def test_weights_are_those_of_kaplan_and_meier() -> None:
    """Three of six values, a limit, the first of the two that are left, and a limit."""
    is_limit = np.array([False, False, False, True, False, True])
    weights, left_over = kaplan_meier(is_limit)
    np.testing.assert_allclose(weights, [1 / 6, 1 / 6, 1 / 6, 0.0, 1 / 4, 0.0])
    assert left_over == pytest.approx(1 / 4)


def test_the_mean_beyond_counts_what_limits_handed_on() -> None:
    sample = CensoredSample()
    for value, is_limit in ((0.1, False), (0.3, True), (0.5, False), (0.9, False)):
        sample.add(value, is_limit=is_limit)
    share = EVEN_SHARE / (EVEN_SHARE + (1 - EVEN_SHARE) * 0.75)
    assert sample.mean_beyond(0.4) == pytest.approx(share * 0.7 + (1 - share) * 0.7)


def test_beyond_everything_that_was_seen_values_are_even() -> None:
    sample = CensoredSample()
    assert sample.mean_beyond(0.6) == pytest.approx(0.8)
    sample.add(0.2, is_limit=False)
    assert sample.mean_beyond(0.6) == pytest.approx(0.8)


def test_values_are_kept_in_their_order_however_many_come_and_go_on_from_a_state() -> None:
    sample = CensoredSample()
    values = np.arange(1, 201) / 200
    for number, value in enumerate(values[:150]):
        sample.add(value, is_limit=number % 3 == 0)
    restored = CensoredSample()
    restored.restore(sample.state())
    for number, value in enumerate(values[150:], start=150):
        sample.add(value, is_limit=number % 3 == 0)
        restored.add(value, is_limit=number % 3 == 0)
    np.testing.assert_array_equal(restored.values, values)
    np.testing.assert_array_equal(restored.is_limit, np.arange(200) % 3 == 0)
    assert restored.mean_beyond(0.5) == sample.mean_beyond(0.5)


def test_adding_a_value_copies_the_others_only_when_the_room_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied_sizes: list[int] = []

    def counted_copy(values: np.ndarray, room: int) -> np.ndarray:
        copied_sizes.append(len(values))
        return with_room(values, room)

    monkeypatch.setattr(censored_sample, "with_room", counted_copy)
    sample = CensoredSample()
    for _ in range(1000):
        sample.add(0.5, is_limit=False)
    assert sum(copied_sizes) <= 2 * 2 * 1000  # twice as many as there are, of two arrays


def test_shops_that_know_what_was_sold_out_stock_as_if_they_saw_demand() -> None:
    """The quantile is 0.75; of sales alone they come to about 0.4."""
    levels = {}
    for seen in ("sales", "censored"):
        model = load("shops", rounds=500, **{"market.seen": seen}).build(seed=1)
        model.run()
        assert model.game.market is not None
        levels[seen] = model.game.market.described()["level"]
        assert set(model.agents_frame()["guarantee"]) == {"none"}
    assert levels["sales"] < 0.6
    assert levels["censored"] == pytest.approx(0.75, abs=0.06)


def test_a_market_of_censored_sales_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    scenario = load("shops", rounds=60, **{"market.seen": "censored"})
    check_resumes(lambda: scenario.build(seed=2), 30, tmp_path)
