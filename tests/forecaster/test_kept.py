"""Weights that are kept until their events are touched, in place of finding all every round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from regretless.forecaster.events import coordinate
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.events.weights import Moment
from regretless.forecaster.models import Constant
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

LOSSES, ACTIONS, SIZE, POLICIES = 12, 4, 3, 2
Make = Callable[[], UnbiasedPrediction]


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep weights of small tables, too."""
    monkeypatch.setattr(coordinate, "MANY", 0)


def groups() -> list[ProtectedLosses]:
    """Draw losses with policies that read the context, and some without."""
    rng = stream(0, "kept")
    shares = rng.dirichlet(np.ones(SIZE), (2, LOSSES, ACTIONS))
    rules = [itemgetter(j) for j in range(POLICIES)]
    constant = np.ones((LOSSES, ACTIONS))
    return [ProtectedLosses(constant, -shares[0], rules), ProtectedLosses(constant, -shares[1])]


def plain() -> UnbiasedPrediction:
    """Return a forecaster of the coordinates."""
    return UnbiasedPrediction(VectorEvents(groups()))


def anchored() -> UnbiasedPrediction:
    """Return a forecaster that loses its trust, and with it its tolerance band."""
    reference = Reference(Constant(SIZE, value=0.9), give_up=4.0)
    return UnbiasedPrediction(VectorEvents(groups()), reference=reference)


def play(player: UnbiasedPrediction, rounds: range) -> list[Array]:
    """Play rounds against outcomes that move away; tables of weights of a fresh context each."""
    tables = []
    for t in rounds:
        rng = stream(t, "kept", "round")
        context = rng.integers(ACTIONS, size=POLICIES)
        mean = player.mixture(context).mean
        player.update(np.where(rng.random(SIZE) < 0.7, mean < 0.5, rng.random(SIZE)).astype(float))
        tables.append(weighed(player, context))
    return tables


def weighed(player: UnbiasedPrediction, context: Any, *, anew: bool = False) -> Array:
    """Return H of the coming round, from what is kept or from all biases."""
    active: Any = player.events.active(context)
    if anew:
        active = [replace(view, kept=None) for view in active]
    moment = Moment(player.time + 1, player.events.experts, player.band)
    return np.array(player.events.table_of(active, moment))


@pytest.mark.parametrize("make", [plain, anchored])
def test_kept_weights_are_those_of_all_biases(make: Make) -> None:
    player = make()
    for t in range(60):
        play(player, range(t, t + 1))
        context = np.array([t % ACTIONS, t // 2 % ACTIONS])
        anew = weighed(player, context, anew=True)
        assert weighed(player, context) == pytest.approx(anew, rel=1e-12, abs=1e-15)
    assert np.abs(anew).sum() > 0.1


def test_a_restored_forecaster_goes_on_with_the_same_bytes() -> None:
    first, second = plain(), plain()
    play(second, range(100, 130))  # what it keeps is of another past
    play(first, range(20))
    second.restore(first.state())
    for one, other in zip(play(first, range(20, 40)), play(second, range(20, 40)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_exponents_too_great_to_be_kept_are_taken_relative_to_the_greatest() -> None:
    """A bias of 4,000 in as many rounds: e^1333 is no number."""
    player = plain()
    context = np.zeros(POLICIES, dtype=int)
    active: Any = player.events.active(context)
    for view in active:
        view.bias[:] = view.variation[:] = np.linspace(0, 4000, view.bias.size).reshape(-1, SIZE)
    table = weighed(player, context)
    assert table.tobytes() == weighed(player, context, anew=True).tobytes()
    assert table.sum() == pytest.approx(1)
