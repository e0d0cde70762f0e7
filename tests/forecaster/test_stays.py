"""Bounds on the regret of agents that come and go, from what is known at both ends of a stay."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paper.games import regret_of
from regretless.forecaster import (
    Constant,
    ExponentialSmoothing,
    GainEvents,
    ProtectedLosses,
    UnbiasedPrediction,
    VectorEvents,
)
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.events.stays import StayRecord
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.reference import Reference
from regretless.forecaster.universal import CellEvents, Line
from regretless.forecaster.weights import RULES
from regretless.market.core.arrays import Array

ROUNDS = 90
ENTERED = np.array([0, 0, 0, 20, 45, 70])
LEFT = np.array([ROUNDS + 1, 30, 60, 50, ROUNDS + 1, 75])
LOSS_OF_AGENT = np.array([0, 1, 2, 0, 1, 2])
Log = tuple[list[Array], list[float], list[Array]]

EVENTS: dict[str, Callable[[ProtectedLosses, Any], EventSet]] = {
    "gains": lambda group, rule: GainEvents([group], rule),
    "assignments": lambda group, rule: Assignments([group], rule),
    "coordinates": lambda group, rule: VectorEvents([group], rule),
    "intervals": lambda group, rule: Intervals(lambda: GainEvents([group], rule), rounds=ROUNDS),
    "cells": lambda group, rule: CellEvents([group], 5, rule),
}


def one_number() -> ProtectedLosses:
    """Return three losses of three actions, linear in one number."""
    rng = np.random.default_rng(7)
    return ProtectedLosses(rng.uniform(0, 0.5, (3, 3)), rng.uniform(-0.5, 0.5, (3, 3, 1)))


def player_of(events: str, rule: str, group: ProtectedLosses, *, trusts: bool) -> Any:
    """Return a forecaster for a group, by the names of its events and weights."""
    reference = Reference(ExponentialSmoothing(1)) if trusts else None
    events_of_group = EVENTS[events](group, RULES[rule](ROUNDS))
    solver = Line(5) if events == "cells" else Box(1)
    return UnbiasedPrediction(events_of_group, solver, reference, seed=3)


def outcome_of_round(number: int) -> Array:
    """Change sides three times, so that what was lost is regained later."""
    return np.array([float(number // 23 % 2)])


def play_round(player: Any, number: int, log: Log) -> None:
    """Let a player predict and learn a round; log its mixture and the outcome."""
    mixture = player.mixture()
    truth = outcome_of_round(number)
    player.update(truth)
    points, masses, truths = log
    points += [*mixture.points]
    masses += [*mixture.weights]
    truths += [truth] * len(mixture.points)


def follow(player: Any, group: ProtectedLosses) -> StayRecord:
    """Begin to record the stay of an agent."""
    record = player.follow(group, LOSS_OF_AGENT, entered=ENTERED, left=LEFT)
    assert isinstance(record, StayRecord)
    return record


@pytest.mark.parametrize("trusts", [True, False])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("events", EVENTS)
def test_no_stay_regrets_more_than_its_bound(events: str, rule: str, *, trusts: bool) -> None:
    group = one_number()
    player = player_of(events, rule, group, trusts=trusts)
    is_proved = events != "assignments" or rule == "adaptive"
    record = follow(player, group)
    logs: list[Log] = []
    for number in range(ROUNDS):
        log: Log = ([], [], [])
        play_round(player, number, log)
        logs.append(log)
        bounds = player.over_stays(record)
        for agent, loss in enumerate(LOSS_OF_AGENT):
            own_logs = logs[ENTERED[agent] : LEFT[agent]]
            if not own_logs:
                assert bounds[agent] == 0.0
                continue
            points, masses, truths = zip(*own_logs, strict=True)
            own_log = np.concatenate(points), np.concatenate(masses), np.concatenate(truths)
            regret = regret_of(group, *own_log)[loss]
            assert regret <= bounds[agent] + 1e-9 or np.isnan(bounds[agent])
    assert np.isnan(bounds).any() == (not is_proved and not trusts)


@pytest.mark.parametrize("events", EVENTS)
def test_what_happens_after_an_exit_changes_no_bound(events: str) -> None:
    group = one_number()
    player = player_of(events, "adaptive", group, trusts=True)
    record = follow(player, group)
    for number in range(60):
        play_round(player, number, ([], [], []))
    left = LEFT <= 60
    at_exit = player.over_stays(record)[left]
    for number in range(60, ROUNDS):
        play_round(player, number, ([], [], []))
    assert (player.over_stays(record)[left] == at_exit).all()


def test_stays_go_on_from_a_checkpoint() -> None:
    group = one_number()
    player = player_of("assignments", "adaptive", group, trusts=True)
    again = player_of("assignments", "adaptive", group, trusts=True)
    record = follow(player, group)
    same_record = follow(again, group)
    for number in range(40):
        play_round(player, number, ([], [], []))
    again.restore(player.state())
    for number in range(40, ROUNDS):
        play_round(player, number, ([], [], []))
        play_round(again, number, ([], [], []))
    assert (player.over_stays(record) == again.over_stays(same_record)).all()


def test_stays_are_followed_from_the_first_round_on() -> None:
    group = one_number()
    player = player_of("gains", "adaptive", group, trusts=False)
    play_round(player, 0, ([], [], []))
    with pytest.raises(ValueError, match="call follow before it"):
        follow(player, group)


def test_a_bound_at_an_exit_counts_the_round_in_which_the_reference_is_given_up() -> None:
    """An overconfident model costs 1 in every round until it is given up, as somebody leaves."""
    group = ProtectedLosses(np.array([[0.0, 1.0]]), np.array([[[1.0], [-1.0]]]))  # y and 1 - y
    reference = Reference(Constant(1, value=1.0))
    player = UnbiasedPrediction(VectorEvents([group]), Box(1), reference)
    last_trusted = 0
    record = player.follow(group, np.array([0]), entered=np.array([0]), left=np.array([30]))
    for number in range(1, 31):
        player.predict()
        player.update(np.array([0.0]))
        if player.trusting:
            last_trusted = number
    assert last_trusted == 29
    true_regret = 30.0
    assert player.over_stays(record)[0] >= true_regret


@pytest.mark.parametrize("trusts", [True, False])
@pytest.mark.parametrize("events", ["gains", "coordinates", "intervals"])
def test_a_declared_window_is_bounded_like_a_stay_of_its_rounds(
    events: str, *, trusts: bool
) -> None:
    group = one_number()
    player = player_of(events, "adaptive", group, trusts=trusts)
    spans = [(0, 30), (30, 30), (30, 70), (75, ROUNDS)]
    windows = player.follow_windows(group, spans)
    entered, left = np.repeat(np.array(spans), 3, axis=0).T
    stays = player.follow(group, np.tile(np.arange(3), 4), entered=entered, left=left)
    assert windows.bound(0) is None
    for number in range(ROUNDS):
        play_round(player, number, ([], [], []))
        for index, (start, end) in enumerate(spans):
            if start < end == player.time:
                expected = player.over_stays(stays)[3 * index : 3 * index + 3]
                assert windows.bound(index) == pytest.approx(expected, abs=1e-12)
    assert windows.bound(1) == pytest.approx(np.zeros(3))
    assert windows.bound(0) is None  # another one has ended since


def test_a_window_goes_on_after_a_checkpoint() -> None:
    group = one_number()
    players = [player_of("gains", "adaptive", group, trusts=False) for _ in range(2)]
    records = [player.follow_windows(group, [(10, 40)]) for player in players]
    for number in range(20):
        play_round(players[0], number, ([], [], []))
    players[1].restore(players[0].state())
    for player in players:
        for number in range(20, 40):
            play_round(player, number, ([], [], []))
    bounds = [record.bound(0) for record in records]
    assert bounds[0] is not None
    assert bounds[1] == pytest.approx(bounds[0], abs=1e-12)
