"""Regret measures against brute force, the ledger's running sums against the measures, bounds."""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_measures import mean_loss_and_regrets, measure_log, play_and_log
from small_scenarios import cohort_table, make_scenario

from regretless.market.best_response import best_response, quantal_gap, quantal_response
from regretless.market.core.arrays import Array, Indices
from regretless.market.records import Decision, one_hot
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.scenarios.config.scenario import WindowsSpec

MEASURES_OF_POLICIES = MEASURES[2:]
every_measure = pytest.mark.parametrize("measure", MEASURES)


@cache
def all_maps(domain: int, values: int) -> Indices:
    """List every function from ``domain`` arguments to so many values, a row for each."""
    return np.array(list(itertools.product(range(values), repeat=domain)))


def replacements(measure: str, losses: Array, policies: Indices) -> Indices:
    """List every replacement (..., A, T) that a measure lets the agent regret."""
    rounds, actions = losses.shape
    if measure == "external":
        return np.repeat(np.arange(actions)[:, None, None], rounds, axis=2)
    if measure == "omniprediction":
        return policies[:, None, :]
    if measure == "swap":
        return np.repeat(all_maps(actions, actions)[..., None], rounds, axis=-1)
    if measure == "decision_swap":
        return policies[all_maps(actions, len(policies))]
    by_action_and_suggestion = all_maps(actions * actions, actions).reshape(-1, actions, actions)
    return np.concatenate([by_action_and_suggestion[:, :, policy] for policy in policies])


@every_measure
@pytest.mark.parametrize("play", ["actions", "strategies"])
def test_a_regret_is_the_saving_of_the_best_replacement_of_all(measure: str, play: str) -> None:
    """Of an exhaustive search over the replacements that it allows, in short logs."""
    for seed in range(40):
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
        assert measure_log(name, losses, played, suggested) == pytest.approx(best, abs=1e-11)


def test_known_values() -> None:
    """Four rounds worked out by hand: a loss of 1 in rounds 1, 2 and 3."""
    log = [[0, 1], [1, 0], [1, 0], [0, 1]], [0, 0, 0, 1], [[0, 1, 1, 1], [1, 0, 1, 0]]
    assert [measure_log(name, *log) for name in MEASURES] == [1 / 4, 2 / 4, 2 / 4, 3 / 4, 3 / 4]


def assert_log_refused(measure: str, message: str, **parts: ArrayLike) -> None:
    """Check that a log of three rounds and two actions with these parts is refused."""
    log = {"losses": [[0, 1], [1, 0], [0.5, 0.5]], "actions": [0, 1, 1], "policies": [[0, 0, 1]]}
    with pytest.raises(ValueError, match=message):
        worlds.measured(measure, **log | parts)


@every_measure
def test_what_is_no_log_is_refused(name: str) -> None:
    for wrong, value, says in WRONG:
        if wrong != "policies" or name in MEASURES[2:]:
            with pytest.raises(ValueError, match=says):
                measure_log(name, **RIGHT | {wrong: value})


@every_measure
@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], r"actions have shape \(2,\)"),
        ([[0.5, 0.5]] * 2, r"actions have shape \(2, 2\)"),
        ([[0.2, 0.3, 0.5]] * 3, r"actions have shape \(3, 3\)"),
        ([0, 1, 2], "actions must be whole numbers from 0 to 1"),
        ([0, -1, 1], "actions must be whole numbers from 0 to 1"),
        ([0, 0.5, 1], "actions must be whole numbers from 0 to 1"),
        ([0, np.nan, 1], "actions"),
        ([[0.5, 0.4]] * 3, "probabilities .* sum to 1"),
        ([[1.5, -0.5]] * 3, "probabilities .* at least 0"),
        ([[0.5, 0.5], [np.nan, 1.0], [1.0, 0.0]], "actions = nan: give finite numbers"),
    ],
)
def test_actions_that_nobody_can_have_played_are_refused(
    measure: str, actions: ArrayLike, message: str
) -> None:
    assert_log_refused(measure, message, actions=actions)


@pytest.mark.parametrize("measure", MEASURES_OF_POLICIES)
@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([[0, 1]], r"policies have shape \(1, 2\)"),
        ([[[0, 1, 1]]], r"policies have shape \(1, 1, 3\)"),
        ([], r"policies have shape \(1, 0\)"),
        (np.empty((0, 3), dtype=np.intp), r"policies have shape \(0, 3\)"),
        ([[0, 1, 2]], "policies must be whole numbers from 0 to 1"),
    ],
)
def test_policies_that_suggest_no_action_in_each_round_are_refused(
    measure: str, policies: ArrayLike, message: str
) -> None:
    assert_log_refused(measure, message, policies=policies)


class Log(NamedTuple):
    """Rounds of K rows of A actions with C policies."""

    losses: Array  # (T, K, A)
    play: Array  # (T, K, A)
    suggested: Indices  # (T, C)

    def until(self, round_index: int) -> "Log":
        return Log(self.losses[:round_index], self.play[:round_index], self.suggested[:round_index])


def ledger_of(log: Log, predicted: list[Array | None], *, constants: bool = True) -> Ledger:
    """Add a log to a ledger, with the losses (K, A) that each round's rows expected, or None."""
    _, rows, actions = log.losses.shape
    policies = log.suggested.shape[1]
    ledger = Ledger(rows, actions, policies=policies, measures=MEASURES, constants=constants)
    for losses, play, suggested, expected in zip(*log, predicted, strict=True):
        ledger.add(Decision(play, play.argmax(1), expected), losses, suggested)
    return ledger


class RespondedLog(NamedTuple):
    """A log of rows that respond to predictions, however wrong these are."""

    log: Log
    ledger: Ledger
    comparators: Indices  # (constants and policies, T)
    gap: float  # by which a smooth response may lose


def responded_log(seed: int, policies: int, eta: float | None, *, constants: bool) -> RespondedLog:
    rng = np.random.default_rng(seed)
    shape = rng.integers([1, 1, 2], [41, 5, 5])
    rounds, _, actions = shape
    losses = rng.random(shape)
    suggested = rng.integers(0, actions, (rounds, policies))
    predicted = losses + rng.normal(0, rng.choice([0.01, 0.3, 3.0]), shape)
    if eta is None:
        play = np.stack([one_hot(best_response(table), actions) for table in predicted])
        gap = 0.0
    else:
        play, gap = quantal_response(predicted, eta), quantal_gap(actions, eta)
    ledger = entered(losses, play, suggested, predicted, constants=constants)
    fixed = np.repeat(np.arange(actions * constants)[:, None], rounds, axis=1)
    benchmark = np.concatenate([fixed, suggested.T])
    for name in MEASURES:
        kept = ledger.regret(name)
        assert (kept is None) == (name in MEASURES[2:] and len(benchmark) == 0)
        for row in range(rows) if kept is not None else ():
            known = measure_log(name, losses[:, row], play[:, row], benchmark)
            assert kept[row] == pytest.approx(known, abs=1e-9)
    bound = ledger.bound_from_bias()
    if len(comparators) == 0:
        assert bound is None
        return
    assert (ledger.regret("decision_swap") <= bound + gap + 1e-12).all()


@pytest.fixture
def mixed_log() -> Log:
    """Return eight rounds of four rows who play at random."""
    rng = np.random.default_rng(5)
    losses = rng.random((8, 4, 3))
    suggested = rng.integers(0, 3, (8, 2))
    return Log(losses, rng.dirichlet(np.full(3, 0.5), (8, 4)), suggested)


def test_true_predictions_leave_a_bound_from_biases_of_0(mixed_log: Log) -> None:
    ledger = ledger_of(mixed_log, list(mixed_log.losses))
    assert np.array_equal(ledger.bound_from_bias(), np.zeros(4))


def test_flat_predictions_leave_the_decision_swap_regret_itself(mixed_log: Log) -> None:
    flat = np.full(mixed_log.losses.shape, 0.5)
    ledger = ledger_of(mixed_log, list(flat))
    assert ledger.bound_from_bias() == pytest.approx(ledger.regret("decision_swap"), abs=1e-12)


COHORTS = [cohort_table("early", 4, 3), cohort_table("late", 2, 3, enters=40)]
COHORTS += [cohort_table("noisy", 2, 3, response="quantal", eta=5.0)]


COHORTS = [
    worlds.cohort("early", 4, 3),
    worlds.cohort("late", 2, 3, enters=40),
    worlds.cohort("noisy", 2, 3, response="quantal", eta=5.0),
]


@pytest.mark.parametrize(
    ("windows", "logged_agents"),
    [
        ({"every": 25}, None),
        ({"starts": [10, 40, 70], "length": 20}, 5),
        ({"starts": [30, 60]}, None),
    ],
    ids=["every 25 rounds", "of one length, of a sample", "between starts"],
)
def test_a_windows_regret_is_that_of_its_slice(
    windows: worlds.Raw, logged_agents: int | None
) -> None:
    """Of the recorded losses and plays, of latecomers over their own rounds."""
    sample = 5 if "length" in windows else None
    keys = {"seed": 5, "adversary": {"kind": "switching", "outcomes": 2, "length": 30}}
    keys |= {"rounds": 90, "windows": windows, "log_agents": sample}
    model = make_scenario(*COHORTS, **keys).build()
    log, agents, spans = play_and_log(model), model.agents_frame(), WindowsSpec(**windows).spans(90)
    logged = agents["agent"] if sample is None else agents.loc[agents["logged"], "agent"]
    expected = {}
    for agent, (first, last) in itertools.product(logged, spans):
        here = [entry for entry in log[agent] if first <= entry[0] <= last]
        if here:
            _, losses, play = (np.array(part) for part in zip(*here, strict=True))
            known = mean_loss_and_regrets(losses, play)
            expected[first, last, agent] = pytest.approx(known, abs=1e-12)
    table = model.windows_frame().set_index(["first", "last", "agent"])
    assert dict(zip(table.index, table.to_numpy().tolist(), strict=True)) == expected
    assert len(table) == len(expected)
