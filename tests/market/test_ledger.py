"""Regret measures against brute force, the ledger's running sums against the measures, bounds."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.best_response import best_response, quantal_gap, quantal_response
from regretless.market.core.arrays import Array, Indices
from regretless.market.records import Decision, one_hot
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.scenarios.config.scenario import WindowsSpec

SEEDS = st.integers(0, 2**32 - 1)
every_measure = pytest.mark.parametrize("name", MEASURES)


@functools.cache
def all_maps(domain: int, values: int) -> Indices:
    return np.array(list(itertools.product(range(values), repeat=domain)))


def candidates(name: str, losses: Array, policies: Indices) -> Indices:
    """List every replacement (..., A, T) that a measure lets the agent regret."""
    rounds, count = losses.shape
    if name == "external":
        return np.repeat(np.arange(count)[:, None, None], rounds, axis=2)
    if name == "omniprediction":
        return policies[:, None, :]
    if name == "swap":
        return np.repeat(all_maps(count, count)[..., None], rounds, axis=-1)
    if name == "decision_swap":
        return policies[all_maps(count, len(policies))]
    by_pair = all_maps(count * count, count).reshape(-1, count, count)
    return np.concatenate([by_pair[:, :, suggested] for suggested in policies])


@every_measure
def test_a_regret_is_the_saving_of_the_best_replacement_of_all(name: str) -> None:
    """Of an exhaustive search over the replacements that it allows, in short logs."""
    for seed in range(80):
        rng = np.random.default_rng(seed)
        actions, rounds, policies = rng.integers([2, 1, 1], [4, 6, 4])
        losses = rng.integers(-16, 17, (rounds, actions)) / 8
        played = rng.integers(0, actions, rounds)
        play = np.eye(actions)[played]
        if seed % 2:
            ballots = rng.integers(0, 5, (rounds, actions)) + play
            played = play = ballots / ballots.sum(1, keepdims=True)
        suggested = rng.integers(0, actions, (policies, rounds))
        instead = losses[np.arange(rounds), candidates(name, losses, suggested)]
        best = (play.T * (losses.T - instead)).sum((-1, -2)).max() / rounds
        assert worlds.measured(name, losses, played, suggested) == pytest.approx(best, abs=1e-11)


def test_known_values() -> None:
    """Four rounds worked out by hand: a loss of 1 in rounds 1, 2 and 3."""
    log = [[0, 1], [1, 0], [1, 0], [0, 1]], [0, 0, 0, 1], [[0, 1, 1, 1], [1, 0, 1, 0]]
    assert [worlds.measured(name, *log) for name in MEASURES] == [1 / 4, 2 / 4, 2 / 4, 3 / 4, 3 / 4]


RIGHT = {"losses": [[0, 1], [1, 0], [0.5, 0.5]], "actions": [0, 1, 1], "policies": [[0, 0, 1]]}
WRONG: list[tuple[str, Any, str]] = [
    ("losses", [0.0, 1.0, 0.5], r"losses have shape \(3,\)"),
    ("losses", np.empty((0, 2)), r"losses have shape \(0, 2\)"),
    ("losses", np.empty((3, 0)), r"losses have shape \(3, 0\)"),
    ("losses", [[0.0, 1.0], [np.nan, 0.0], [0.5, 0.5]], "losses = (nan|inf): give finite numbers"),
    ("losses", [[0.0, 1.0], [np.inf, 0.0], [0.5, 0.5]], "losses = (nan|inf): give finite numbers"),
    ("actions", [0, 1], r"actions have shape \(2,\)"),
    ("actions", [[0.5, 0.5]] * 2, r"actions have shape \(2, 2\)"),
    ("actions", [[0.2, 0.3, 0.5]] * 3, r"actions have shape \(3, 3\)"),
    ("actions", [0, 1, 2], "actions must be whole numbers from 0 to 1"),
    ("actions", [0, -1, 1], "actions must be whole numbers from 0 to 1"),
    ("actions", [0, 0.5, 1], "actions must be whole numbers from 0 to 1"),
    ("actions", [0, np.nan, 1], "actions"),
    ("actions", [[0.5, 0.4]] * 3, "probabilities .* sum to 1"),
    ("actions", [[1.5, -0.5]] * 3, "probabilities .* at least 0"),
    ("actions", [[0.5, 0.5], [np.nan, 1.0], [1.0, 0.0]], "actions = nan: give finite numbers"),
    ("policies", [[0, 1]], r"policies have shape \(1, 2\)"),
    ("policies", [[[0, 1, 1]]], r"policies have shape \(1, 1, 3\)"),
    ("policies", [], r"policies have shape \(1, 0\)"),
    ("policies", np.empty((0, 3), dtype=np.intp), r"policies have shape \(0, 3\)"),
    ("policies", [[0, 1, 2]], "policies must be whole numbers from 0 to 1"),
]


@every_measure
def test_what_is_no_log_is_refused(name: str) -> None:
    for wrong, value, says in WRONG:
        if wrong != "policies" or name in MEASURES[2:]:
            with pytest.raises(ValueError, match=says):
                worlds.measured(name, **RIGHT | {wrong: value})


def entered(losses: Array, play: Array, suggested: Indices, predicted: Any, **keys: Any) -> Ledger:
    """Enter a log of K rows: losses, play, predicted (T, K, A), suggested (T, C)."""
    policies = suggested.shape[1]
    ledger = Ledger(*losses.shape[1:], policies=policies, measures=MEASURES, **keys)
    for t in range(len(losses)):
        ledger.add(Decision(play[t], play[t].argmax(1), predicted[t]), losses[t], suggested[t])
    return ledger


@pytest.mark.parametrize("constants", [True, False])
@given(seed=SEEDS, policies=st.integers(0, 3), eta=st.none() | st.floats(0.1, 100))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_running_sums_are_the_log(seed: int, policies: int, eta: Any, *, constants: bool) -> None:
    """And bound whoever responds, however wrong predictions are, with ln(A) / eta if smoothly."""
    rng = np.random.default_rng(seed)
    rounds, rows, actions = shape = rng.integers([1, 1, 2], [41, 5, 5])
    losses, suggested = rng.random(shape), rng.integers(0, actions, (rounds, policies))
    predicted, gap = losses + rng.normal(0, rng.choice([0.01, 0.3, 3.0]), shape), 0.0
    if eta is None:
        play = np.stack([one_hot(best_response(table), actions) for table in predicted])
    else:
        play, gap = quantal_response(predicted, eta), quantal_gap(actions, eta)
    ledger = entered(losses, play, suggested, predicted, constants=constants)
    fixed = np.repeat(np.arange(actions * constants)[:, None], rounds, axis=1)
    benchmark = np.concatenate([fixed, suggested.T])
    for name in MEASURES:
        kept = ledger.regret(name)
        assert (kept is None) == (name in MEASURES[2:] and len(benchmark) == 0)
        for row in range(rows) if kept is not None else ():
            known = worlds.measured(name, losses[:, row], play[:, row], benchmark)
            assert kept[row] == pytest.approx(known, abs=1e-9)
    bound = ledger.bound_from_bias()
    assert (bound is None) == (len(benchmark) == 0)
    if bound is not None:
        assert (ledger.regret("decision_swap") <= bound + gap + 1e-12).all()


def test_the_bound_is_exact_where_predictions_are_or_tie_and_none_where_one_is_missing() -> None:
    """True predictions leave 0; a flat prediction leaves the decision swap regret itself."""
    rng = np.random.default_rng(5)
    losses, suggested = rng.random((8, 4, 3)), rng.integers(0, 3, (8, 2))
    log = losses, rng.dirichlet(np.full(3, 0.5), (8, 4)), suggested
    assert np.array_equal(entered(*log, losses).bound_from_bias(), np.zeros(4))
    ledger = entered(*log, np.full(losses.shape, 0.5))
    assert ledger.bound_from_bias() == pytest.approx(ledger.regret("decision_swap"), abs=1e-12)
    for silent in (0, 3, 7):
        told: Any = [None if t == silent else losses[t] for t in range(8)]
        for t in range(1, 9):
            bound = entered(*(part[:t] for part in log), told).bound_from_bias()
            assert (bound is None) == (t > silent)


COHORTS = [worlds.cohort("early", 4, 3), worlds.cohort("late", 2, 3, enters=40)]
COHORTS += [worlds.cohort("noisy", 2, 3, response="quantal", eta=5.0)]


SPANS = {"every": 25}, {"starts": [10, 40, 70], "length": 20}, {"starts": [30, 60]}


@pytest.mark.parametrize("windows", SPANS)
def test_a_windows_regret_is_that_of_its_slice(windows: dict[str, Any]) -> None:
    """Of the recorded losses and plays, of latecomers over their own rounds."""
    sample = 5 if "length" in windows else None
    keys = {"seed": 5, "adversary": {"kind": "switching", "outcomes": 2, "length": 30}}
    keys |= {"rounds": 90, "windows": windows, "log_agents": sample}
    model = worlds.scenario(*COHORTS, **keys).build()
    log, agents, spans = worlds.logs(model), model.agents_frame(), WindowsSpec(**windows).spans(90)
    logged = agents["agent"] if sample is None else agents.loc[agents["logged"], "agent"]
    expected = {}
    for agent, (first, last) in itertools.product(logged, spans):
        here = [entry for entry in log[agent] if first <= entry[0] <= last]
        if here:
            _, losses, play = (np.array(part) for part in zip(*here, strict=True))
            known = worlds.regrets(losses, play)
            expected[first, last, agent] = pytest.approx(known, abs=1e-12)
    table = model.windows_frame().set_index(["first", "last", "agent"])
    assert len(table) == len(expected)
    found = zip(table.index, table.to_numpy().tolist(), strict=True)
    assert dict(found) == expected
