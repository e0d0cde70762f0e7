"""Regret over stretches of rounds: the intervals that make them up, and what is promised."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st
from streams import DESIGN, STREAMS

from regretless.forecaster.events.base import SHORTEST, Intervals, covering
from regretless.forecaster.events.biases import VectorEvents
from regretless.forecaster.events.gains import Assignments, GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.events.weights import Moment
from regretless.forecaster.reference import Band
from regretless.market.model import MarketModel

LENGTHS = [32, 64, 128, 256]


def model(stream: str, rounds: int, **forecaster: Any) -> MarketModel:
    raw = dict(DESIGN.base) | {"rounds": rounds, "windows": {"every": 150}, "seed": 4}
    raw["adversary"] = {"outcomes": 3} | STREAMS[stream]
    raw["forecaster"] = {"intervals": True} | forecaster
    return worlds.told(raw, origin=DESIGN.origin).build(log_every=rounds)


@given(st.integers(1, 500), st.integers(1, 500))
def test_any_stretch_is_made_of_few_intervals(first: int, rounds: int) -> None:
    lengths = list(covering(first, first + rounds, LENGTHS))
    assert sum(lengths) == rounds
    starts = first + np.cumsum([0, *lengths[:-1]])
    assert all(start % length == 0 for start, length in zip(starts, lengths, strict=True))
    assert lengths.count(1) <= 2 * (SHORTEST - 1)
    assert all(lengths.count(m) <= 2 for m in LENGTHS[:-1])


def test_an_open_interval_knows_its_own_rounds_alone() -> None:
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((2, 3)), rng.random((2, 3, 2)))
    events, alone = Intervals(lambda: VectorEvents([group]), rounds=200), VectorEvents([group])
    for t in range(100):
        mixture = rng.random((2, 2)), np.array([0.3, 0.7]), rng.random(2)
        played = played_of(events.rows, *mixture)
        events.charge(events.active(None), played)
        if t >= 96:
            alone.charge(alone.active(None), played)
    short, long = (part.views[0] for part in events.parts[1:3])  # type: ignore[attr-defined]
    for known, own in zip(short.arrays, alone.views[0].arrays, strict=True):
        assert np.array_equal(known, own)
    assert long.occupancy.sum() == pytest.approx(2 * 36)
    assert len(events.active(None)) == 1 + 2
    assert events.experts == VectorEvents([group]).experts * (1 + 3)
    twin = Intervals(lambda: VectorEvents([group]), rounds=200)
    twin.restore(events.state())
    assert twin.spent() == events.spent()


@pytest.mark.parametrize("kind", [VectorEvents, GainEvents, Assignments])
def test_a_run_without_an_interval_is_its_events_alone(kind: Any) -> None:
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((2, 3)), rng.random((2, 3, 2)))
    events, alone = Intervals(lambda: kind([group]), rounds=SHORTEST), kind([group])
    for own in (events, alone):
        for t in range(20):
            mixture = np.eye(2), np.array([0.3, 0.7]), np.array([t % 2, 1.0])
            own.charge(own.active(None), played_of(own.rows, *mixture))
    assert events.log_potential(Band()) == pytest.approx(alone.log_potential(Band()))
    assert events.spent() == alone.spent() > 0
    moment = Moment(21, alone.experts)
    tables = [own.table_of(own.active(None), moment) for own in (events, alone)]
    assert np.array_equal(*tables)


KEYS: list[dict[str, Any]] = [
    {},
    {"weights": "second-order", "models": ["last-value"], "events": "coordinates"},
    {"weights": "exponential", "models": ["last-value", "running-mean"]},
    {"models": ["last-value"], "delay": 2},
]
# Every stream with two sets of keys, every set of keys with two streams.
MET = [(s, KEYS[(i + k) % len(KEYS)]) for i, s in enumerate(STREAMS) for k in range(2)]


@pytest.mark.parametrize(("stream", "keys"), MET)
def test_no_window_and_no_run_passes_its_bound(stream: str, keys: dict[str, Any]) -> None:
    played = model(stream, 210, **keys)
    played.run()
    agents, windows = played.agents_frame(), played.windows_frame()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    assert windows["bound"].notna().all()
    assert (windows["swap_regret"] <= windows["bound"]).all()


def test_the_bound_of_an_interval_is_of_the_root_of_its_length() -> None:
    player = model("iid", 60).game.blocks[0].forecaster
    player.mixture()
    player.update(np.zeros(player.events.size))
    bias, group = player.bias_bound(), player.events.groups[0]
    sums = [bias.over_intervals(group.weights, [m], run=10**6).max() for m in (4096, 65536)]
    assert sums[1] / sums[0] < 5  # of the root of 16


def test_every_interval_has_a_small_bias_after_a_long_past() -> None:
    """Biases of open intervals stay below what their own rounds allow."""
    played = model("switching", 600)
    player = played.game.blocks[0].forecaster
    for _ in range(600):
        played.step()
        for length, level in zip(player.events.lengths, player.events.parts[1:], strict=True):
            bias, *_, occupancy = level.views[0].arrays
            exponent = player.bias_bound().exponent + np.log(600 / length)
            assert (np.abs(bias).max(1) <= np.sqrt(3 * occupancy * exponent) + 1e-9).all()
    assert all(short < long for short, long in pairwise(player.events.lengths))
