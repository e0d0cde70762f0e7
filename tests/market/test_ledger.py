"""Regret measures against brute force, the ledger's running sums against the measures, bounds."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices
from regretless.market.records import Decision, one_hot
from regretless.market.regret import definitions
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.market.response import best_response, quantal_gap, quantal_response
from regretless.scenarios.config.scenario import WindowsSpec

CHECKED = settings(deadline=None, max_examples=50, derandomize=True)
ROUNDING = 1e-12

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


# The ledger.


@dataclass(frozen=True)
class Play:
    """A log of K rows: losses, play, predicted (T, K, A); suggested (T, C)."""

    losses: Array
    play: Array
    suggested: Indices
    predicted: Array | None = None

    def enter(self, ledger: Ledger) -> Ledger:
        for t in range(len(self.losses)):
            predicted = None if self.predicted is None else self.predicted[t]
            decision = Decision(self.play[t], self.play[t].argmax(1), predicted)
            ledger.add(decision, self.losses[t], self.suggested[t])
        return ledger

    def ledger(self, *, constants: bool = True) -> Ledger:
        policies, keys = self.suggested.shape[1], {"measures": MEASURES, "constants": constants}
        return Ledger(*self.losses.shape[1:], policies=policies, **keys)

    def benchmark(self, *, constants: bool) -> Indices:
        """Return what every policy suggests (C, T), the constant ones first if they count."""
        count = self.losses.shape[2] if constants else 0
        fixed = np.repeat(np.arange(count)[:, None], len(self.losses), axis=1)
        return np.concatenate([fixed, self.suggested.T])


def random_play(rng: np.random.Generator, *, policies: int, mixed: bool) -> Play:
    rounds, rows, actions = rng.integers([1, 1, 2], [41, 5, 5])
    losses = rng.random((rounds, rows, actions))
    if mixed:
        play = rng.dirichlet(np.full(actions, 0.5), (rounds, rows))
    else:
        play = np.stack([one_hot(rng.integers(0, actions, rows), actions) for _ in range(rounds)])
    return Play(losses, play, rng.integers(0, actions, (rounds, policies)))


def responding_play(rng: np.random.Generator, *, policies: int, eta: float | None) -> Play:
    """Draw a log whose rows respond to predicted tables that are wrong by a random amount."""
    drawn = random_play(rng, policies=policies, mixed=False)
    predicted = drawn.losses + rng.normal(0, rng.choice([0.01, 0.3, 3.0]), drawn.losses.shape)
    if eta is None:
        chosen = best_response(predicted)
        play = np.stack([one_hot(row, predicted.shape[2]) for row in chosen])
    else:
        play = quantal_response(predicted, eta)
    return Play(drawn.losses, play, drawn.suggested, predicted)


SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("constants", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
@given(seed=SEEDS, policies=st.integers(0, 3))
@CHECKED
def test_every_regret_agrees_with_the_reference(
    seed: int, policies: int, *, mixed: bool, constants: bool
) -> None:
    """Row by row, the running sums give what the raw log gives; None without policies."""
    log = random_play(np.random.default_rng(seed), policies=policies, mixed=mixed)
    ledger = log.enter(log.ledger(constants=constants))
    benchmark = log.benchmark(constants=constants)
    for row in range(log.losses.shape[1]):
        single = Log(log.losses[:, row], log.play[:, row], benchmark)
        for measure in ALL:
            kept = ledger.regret(measure)
            assert (kept is None) == (measure in WITH_POLICIES and len(benchmark) == 0)
            if kept is not None:
                assert kept[row] == pytest.approx(measured(measure, single), abs=1e-9)


@pytest.mark.parametrize("constants", [True, False])
@given(seed=SEEDS, policies=st.integers(0, 3), eta=st.none() | st.floats(0.1, 100))
@settings(CHECKED, max_examples=100)
def test_responders_regret_at_most_the_bound_from_their_biases_and_their_gap(
    seed: int, policies: int, eta: float | None, *, constants: bool
) -> None:
    """However wrong the predictions are; a smooth response adds ln(A) / eta and no more."""
    log = responding_play(np.random.default_rng(seed), policies=policies, eta=eta)
    ledger = log.enter(log.ledger(constants=constants))
    measured, bound = ledger.regret("decision_swap"), ledger.bound_from_bias()
    assert (bound is None) == (measured is None) == (not (constants or policies))
    if measured is not None and bound is not None:
        gap = 0.0 if eta is None else quantal_gap(log.losses.shape[2], eta)
        assert (measured <= bound + gap + ROUNDING).all()


def test_the_bound_is_exact_where_predictions_are_exact_or_tables_tie() -> None:
    """True predictions leave 0; a flat prediction leaves the decision swap regret itself."""
    drawn = random_play(np.random.default_rng(5), policies=2, mixed=True)
    ledger = replace(drawn, predicted=drawn.losses).enter(drawn.ledger())
    assert np.array_equal(ledger.bound_from_bias(), np.zeros(drawn.play.shape[1]))
    flat = np.full(drawn.losses.shape, 0.5)
    ledger = replace(drawn, predicted=flat).enter(drawn.ledger())
    assert ledger.bound_from_bias() == pytest.approx(ledger.regret("decision_swap"), abs=ROUNDING)


@pytest.mark.parametrize("silent", [0, 3, 7])
def test_one_decision_without_expectation_leaves_no_bound(silent: int) -> None:
    """A bound from biases needs the expected losses of every round."""
    log = responding_play(np.random.default_rng(2), policies=2, eta=None)
    ledger, play, losses = log.ledger(), log.play[0], log.losses[0]
    for t in range(8):
        told = None if t == silent else losses
        ledger.add(Decision(play, play.argmax(1), told), losses, log.suggested[0])
        assert (ledger.bound_from_bias() is None) == (t >= silent)


# Windows.

ROUNDS = 90

COHORTS = [
    worlds.cohort("early", 4, 3),
    worlds.cohort("late", 2, 3, enters=40),
    worlds.cohort("noisy", 2, 3, response="quantal", eta=5.0),
]


@pytest.mark.parametrize(
    ("windows", "sample"),
    [
        ({"every": 25}, None),
        ({"starts": [10, 40, 70], "length": 20}, 5),
        ({"starts": [30, 60]}, None),
    ],
)
def test_a_windows_regret_is_that_of_its_slice(windows: dict[str, Any], sample: int | None) -> None:
    """Brute force over the recorded losses and plays, latecomers over their own rounds."""
    keys = {"seed": 5, "adversary": {"kind": "switching", "outcomes": 2, "length": 30}}
    keys |= {"rounds": ROUNDS, "windows": windows, "log_agents": sample}
    model = worlds.scenario(*COHORTS, **keys).build()
    rounds = [model.conclude(model.begin()) for _ in range(ROUNDS)]
    table = model.windows_frame()
    spans = WindowsSpec(**windows).spans(ROUNDS)
    assert list(table[["first", "last"]].drop_duplicates().itertuples(index=False)) == list(spans)
    agents = model.agents_frame()
    logged = agents["agent"] if sample is None else agents.loc[agents["logged"], "agent"]
    assert set(table["agent"]) == set(logged)
    expected = 0
    for place, cohort in enumerate(model.game.cohorts):
        firsts = 1 + sum(len(other.row_of) for other in model.game.cohorts[:place])
        for number, row in enumerate(cohort.row_of):
            for first, last in spans if firsts + number in set(logged) else ():
                here = [
                    (played.losses[place][row], played.decisions[place].probabilities[row])  # type: ignore[index, union-attr]
                    for played in rounds[first : last + 1]
                    if played.decisions[place] is not None
                ]
                found = table.query(f"agent == {firsts + number} and first == {first}")
                assert len(found) == bool(here)
                expected += len(found)
                if here:
                    losses, play = (np.array(part) for part in zip(*here, strict=True))
                    known = worlds.regrets(losses, play)
                    assert found.iloc[0, 3:].to_numpy(float) == pytest.approx(known, abs=1e-12)
    assert expected == len(table)
