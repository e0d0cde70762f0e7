"""Regret measures against brute force and known values."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices
from regretless.market.regret import definitions

TOLERANCE = 1e-11

WITHOUT_POLICIES = ["external", "swap"]
WITH_POLICIES = ["omniprediction", "decision_swap", "contextual_swap"]
ALL = [*WITHOUT_POLICIES, *WITH_POLICIES]


@dataclass(frozen=True)
class Log:
    """One agent's log: losses (T, A), actions (T,) or probabilities (T, A), policies (C, T)."""

    losses: Array
    actions: NDArray[Any]
    policies: Indices

    @property
    def play(self) -> Array:
        pure = self.actions.ndim == 1
        return np.eye(self.losses.shape[1])[self.actions] if pure else self.actions


def logs(count: int) -> Iterator[Log]:
    """Draw short logs of two or three actions, played purely or with probabilities."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        actions, rounds, policies = rng.integers([2, 1, 1], [4, 6, 4])
        losses = rng.integers(-16, 17, (rounds, actions)) / 8
        play = rng.integers(0, actions, rounds)
        if seed % 2:
            ballots = rng.integers(0, 5, (rounds, actions)) + np.eye(actions)[play]
            play = ballots / ballots.sum(1, keepdims=True)
        yield Log(losses, play, rng.integers(0, actions, (policies, rounds)))


def measured(name: str, log: Log) -> float:
    followed = [log.policies] if name in WITH_POLICIES else []
    return float(getattr(definitions, f"{name}_regret")(log.losses, log.actions, *followed))


@functools.cache
def all_maps(domain: int, values: int) -> Indices:
    return np.array(list(itertools.product(range(values), repeat=domain)))


def gains(log: Log, replacements: Indices) -> Array:
    """Average saving of playing ``replacements[..., a, t]`` instead of a at round t."""
    instead = log.losses[np.arange(len(log.losses)), replacements]
    return np.asarray((log.play.T * (log.losses.T - instead)).sum((-1, -2)) / len(log.losses))


def candidates(name: str, log: Log) -> Indices:
    """List every replacement (..., A, T) that a measure lets the agent regret."""
    count, policies = log.losses.shape[1], log.policies
    if name == "external":
        return np.repeat(np.arange(count)[:, None, None], len(log.losses), axis=2)
    if name == "omniprediction":
        return policies[:, None, :]
    if name == "swap":
        return np.repeat(all_maps(count, count)[..., None], len(log.losses), axis=-1)
    if name == "decision_swap":
        return policies[all_maps(count, len(policies))]
    by_pair = all_maps(count * count, count).reshape(-1, count, count)
    return np.concatenate([by_pair[:, :, suggested] for suggested in policies])


@pytest.mark.parametrize("name", ALL)
def test_a_regret_is_the_saving_of_the_best_replacement_of_all(name: str) -> None:
    """Every measure equals an exhaustive search over the replacements that it allows."""
    for log in logs(80):
        best = gains(log, candidates(name, log)).max()
        assert measured(name, log) == pytest.approx(best, abs=TOLERANCE)


def test_known_values() -> None:
    """Four rounds worked out by hand: a loss of 1 in rounds 1, 2 and 3."""
    losses = [[0, 1], [1, 0], [1, 0], [0, 1]]
    log: Any = losses, [0, 0, 0, 1], [[0, 1, 1, 1], [1, 0, 1, 0]]
    known = dict(zip(ALL, [1 / 4, 2 / 4, 2 / 4, 3 / 4, 3 / 4], strict=True))
    assert {name: measured(name, Log(*log)) for name in ALL} == known


LOSSES = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
ACTIONS = [0, 1, 1]
POLICIES = [[0, 0, 1]]
NAN = float("nan")

WRONG: dict[str, list[tuple[Any, str]]] = {
    "losses": [
        ([0.0, 1.0, 0.5], r"losses have shape \(3,\)"),
        (np.empty((0, 2)), r"losses have shape \(0, 2\)"),
        (np.empty((3, 0)), r"losses have shape \(3, 0\)"),
        ([[0.0, 1.0], [NAN, 0.0], [0.5, 0.5]], "losses .* not finite"),
        ([[0.0, 1.0], [np.inf, 0.0], [0.5, 0.5]], "losses .* not finite"),
    ],
    "actions": [
        ([0, 1], r"actions have shape \(2,\)"),
        ([[0.5, 0.5]] * 2, r"actions have shape \(2, 2\)"),
        ([[0.2, 0.3, 0.5]] * 3, r"actions have shape \(3, 3\)"),
        ([0, 1, 2], "actions must be whole numbers from 0 to 1"),
        ([0, -1, 1], "actions must be whole numbers from 0 to 1"),
        ([0, 0.5, 1], "actions must be whole numbers from 0 to 1"),
        ([0, NAN, 1], "actions"),
        ([[0.5, 0.4]] * 3, "probabilities .* sum to 1"),
        ([[1.5, -0.5]] * 3, "probabilities .* at least 0"),
        ([[0.5, 0.5], [NAN, 1.0], [1.0, 0.0]], "probabilities"),
    ],
    "policies": [
        ([[0, 1]], r"policies have shape \(1, 2\)"),
        ([[[0, 1, 1]]], r"policies have shape \(1, 1, 3\)"),
        ([], r"policies have shape \(1, 0\)"),
        (np.empty((0, 3), dtype=np.intp), r"policies have shape \(0, 3\)"),
        ([[0, 1, 2]], "policies must be whole numbers from 0 to 1"),
        ([[0, -1, 1]], "policies must be whole numbers from 0 to 1"),
        ([[0, 0.5, 1]], "policies must be whole numbers from 0 to 1"),
    ],
}


@pytest.mark.parametrize("name", ALL)
def test_what_is_no_log_is_refused(name: str) -> None:
    """Finite losses, indices or probabilities, a suggestion for every round; the error says so."""
    for wrong, cases in WRONG.items():
        for value, says in cases if name in WITH_POLICIES or wrong != "policies" else ():
            log = {"losses": LOSSES, "actions": ACTIONS, "policies": POLICIES} | {wrong: value}
            with pytest.raises(ValueError, match=says):
                measured(name, Log(**log))
