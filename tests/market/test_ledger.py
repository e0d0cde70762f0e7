"""Regret measures against brute force, the ledger's running sums against the measures, bounds."""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_measures import mean_loss_and_regrets, measure_log, play_and_log
from numpy.typing import ArrayLike
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless.market.best_response import best_response, quantal_gap, quantal_response
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.records import Decision, one_hot
from regretless.market.regret.ledger import (
    MEASURES,
    Ledger,
    _add_mixed_play,
    _add_pure_play,
)
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
        n_actions, rounds, n_policies = rng.integers([2, 1, 1], [4, 6, 4])
        losses = rng.integers(-16, 17, (rounds, n_actions)) / 8
        actions = rng.integers(0, n_actions, rounds)
        strategies = np.eye(n_actions)[actions]
        if play == "strategies":
            ballots = rng.integers(0, 5, (rounds, n_actions)) + strategies
            strategies = ballots / ballots.sum(1, keepdims=True)
        policies = rng.integers(0, n_actions, (n_policies, rounds))

        loss_instead = losses[np.arange(rounds), replacements(measure, losses, policies)]
        savings = (strategies.T * (losses.T - loss_instead)).sum((-1, -2))
        expected = savings.max() / rounds

        log = actions if play == "actions" else strategies
        regret = measure_log(measure, losses, log, policies)
        assert regret == pytest.approx(expected, abs=1e-11), f"seed {seed}"


@pytest.mark.parametrize(
    ("measure", "regret"),
    [
        ("external", 1 / 4),
        ("swap", 2 / 4),
        ("omniprediction", 2 / 4),
        ("decision_swap", 3 / 4),
        ("contextual_swap", 3 / 4),
    ],
)
def test_a_regret_of_four_rounds_is_what_it_is_by_hand(measure: str, regret: float) -> None:
    """Three of four rounds lose 1."""
    losses = [[0, 1], [1, 0], [1, 0], [0, 1]]
    actions = [0, 0, 0, 1]
    policies = [[0, 1, 1, 1], [1, 0, 1, 0]]
    assert measure_log(measure, losses, actions, policies) == regret


def assert_log_refused(measure: str, message: str, **parts: ArrayLike) -> None:
    """Check that a log of three rounds and two actions with these parts is refused."""
    log = {"losses": [[0, 1], [1, 0], [0.5, 0.5]], "play": [0, 1, 1], "policies": [[0, 0, 1]]}
    with pytest.raises(ValueError, match=message):
        measure_log(measure, **log | parts)


@every_measure
@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([0.0, 1.0, 0.5], r"losses have shape \(3,\)"),
        (np.empty((0, 2)), r"losses have shape \(0, 2\)"),
        (np.empty((3, 0)), r"losses have shape \(3, 0\)"),
        ([[0.0, 1.0], [np.nan, 0.0], [0.5, 0.5]], "losses = (nan|inf): give finite numbers"),
        ([[0.0, 1.0], [np.inf, 0.0], [0.5, 0.5]], "losses = (nan|inf): give finite numbers"),
    ],
)
def test_losses_that_are_no_table_of_numbers_are_refused(
    measure: str, losses: ArrayLike, message: str
) -> None:
    assert_log_refused(measure, message, losses=losses)


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
    assert_log_refused(measure, message, play=actions)


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
        play = quantal_response(predicted, eta)
        gap = quantal_gap(actions, eta)
    log = Log(losses, play, suggested)
    ledger = ledger_of(log, list(predicted), constants=constants)
    constant_actions = np.arange(actions if constants else 0)
    constant_policies = np.repeat(constant_actions[:, None], rounds, axis=1)
    comparators = np.concatenate([constant_policies, suggested.T])
    return RespondedLog(log, ledger, comparators, gap)


SEEDS = st.integers(0, 2**32 - 1)
POLICIES = st.integers(0, 3)
ETAS = st.none() | st.floats(0.1, 100)
with_and_without_constants = pytest.mark.parametrize("constants", [True, False])


@with_and_without_constants
@given(seed=SEEDS, policies=POLICIES, eta=ETAS)
@settings(max_examples=100)
def test_running_sums_give_the_regrets_of_the_log(
    seed: int, policies: int, eta: float | None, *, constants: bool
) -> None:
    log, ledger, comparators, _ = responded_log(seed, policies, eta, constants=constants)
    for measure in MEASURES:
        regrets = ledger.regret(measure)
        if measure in MEASURES_OF_POLICIES and len(comparators) == 0:
            assert regrets is None, measure
            continue
        for row, regret in enumerate(regrets):
            losses = log.losses[:, row]
            expected = measure_log(measure, losses, log.play[:, row], comparators)
            assert regret == pytest.approx(expected, abs=1e-9), (measure, row)


@with_and_without_constants
@given(seed=SEEDS, policies=POLICIES, eta=ETAS)
@settings(max_examples=100)
def test_biases_bound_whoever_responds_however_wrong_predictions_are(
    seed: int, policies: int, eta: float | None, *, constants: bool
) -> None:
    """But for ln(A) / eta where responses are smooth."""
    _, ledger, comparators, gap = responded_log(seed, policies, eta, constants=constants)
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


@with_and_without_constants
@pytest.mark.parametrize("n_actions", [3, 12])
def test_the_bound_from_biases_is_that_of_the_formula_to_the_last_bit(
    n_actions: int, *, constants: bool
) -> None:
    """Beside the same formula in NumPy."""
    rng = np.random.default_rng(8)
    ledger = Ledger(5, n_actions, policies=2, constants=constants)
    for _ in range(20):
        strategies = rng.dirichlet(np.ones(n_actions), 5)
        decision = Decision(
            strategies, actions=strategies.argmax(1), predicted=rng.random((5, n_actions))
        )
        ledger.add(decision, rng.random((5, n_actions)), rng.integers(0, n_actions, 2))

    bound = ledger.bound_from_bias()

    surprise_of_played = ledger.surprise_fixed.diagonal(axis1=1, axis2=2)
    comparators = [ledger.surprise_followed]
    if constants:
        comparators.append(ledger.surprise_fixed)
    excess = np.concatenate(comparators, axis=2).max(2) - surprise_of_played
    assert np.array_equal(bound, np.ascontiguousarray(excess).sum(1) / 20)


@pytest.mark.parametrize("silent_round", [0, 3, 7])
def test_there_is_no_bound_from_biases_once_a_prediction_is_missing(
    mixed_log: Log, silent_round: int
) -> None:
    predicted: list[Array | None] = list(mixed_log.losses)
    predicted[silent_round] = None
    for rounds in range(1, 9):
        bound = ledger_of(mixed_log.until(rounds), predicted[:rounds]).bound_from_bias()
        assert (bound is None) == (rounds > silent_round), f"after {rounds} rounds"


COHORTS = [
    cohort_table("early", 4, 3),
    cohort_table("late", 2, 3, enters=40),
    cohort_table("noisy", 2, 3, response="quantal", eta=5.0),
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
    windows: TomlTable, logged_agents: int | None
) -> None:
    """Of the recorded losses and plays, of latecomers over their own rounds."""
    model = make_scenario(
        *COHORTS,
        seed=5,
        adversary={"kind": "switching", "outcomes": 2, "length": 30},
        rounds=90,
        windows=windows,
        log_agents=logged_agents,
    ).build()
    logs = play_and_log(model)
    agents = model.agents_frame()
    numbers = agents["agent"]
    if logged_agents is not None:
        numbers = agents.loc[agents["logged"], "agent"]

    expected = {}
    spans = WindowsSpec(**windows).spans(90)
    for agent, (first, last) in itertools.product(numbers, spans):
        slice_of_log = [entry for entry in logs[agent] if first <= entry[0] <= last]
        if slice_of_log:
            _, losses, play = zip(*slice_of_log, strict=True)
            regrets = mean_loss_and_regrets(np.array(losses), np.array(play))
            expected[first, last, agent] = pytest.approx(regrets, abs=1e-12)

    table = model.windows_frame().set_index(["first", "last", "agent"]).drop(columns="bound")
    assert dict(zip(table.index, table.to_numpy().tolist(), strict=True)) == expected
    assert len(table) == len(expected)


def test_each_row_is_compared_with_what_a_policy_does_to_that_row() -> None:
    """Of two agents who mix alike the policy sends one to the best action, and one to the worst."""
    ledger = Ledger(2, 3, measures=("omniprediction",), policies=1, constants=False)
    strategy = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    losses = np.array([[0.25, 0.75, 1.0], [0.25, 0.75, 1.0]])
    ledger.add(Decision(strategy, np.zeros(2, dtype=np.intp)), losses, np.array([[0, 2]]))
    regret = ledger.regret("omniprediction")
    np.testing.assert_array_equal(regret, [0.25, -0.5])


ROWS = 4
ACTIONS = 5  # one more than kernels compare side by side


class Sums(NamedTuple):
    """What kernels of a ledger of 4 rows, 5 actions and 2 policies add to."""

    count: Array
    fixed: Array
    followed: Array
    surprise_fixed: Array
    surprise_followed: Array


def random_sums(rng: np.random.Generator) -> Sums:
    """Return sums of some rounds before."""
    return Sums(
        count=rng.random((ROWS, ACTIONS)),
        fixed=rng.random((ROWS, ACTIONS, ACTIONS)),
        followed=rng.random((ROWS, ACTIONS, 2)),
        surprise_fixed=rng.normal(size=(ROWS, ACTIONS, ACTIONS)),
        surprise_followed=rng.normal(size=(ROWS, ACTIONS, 2)),
    )


def sums_after(
    sums: Sums, play: Array, predicted: Array, losses: Array, suggested: Indices
) -> Sums:
    """Return sums with rounds added: play, predicted, losses (T, K, A), suggestions (T, C, K)."""
    suggestions = suggested.swapaxes(1, 2)  # (T, K, C)
    surprise = predicted - losses
    losses_of_policies = np.take_along_axis(losses, suggestions, axis=2)
    surprise_of_policies = np.take_along_axis(surprise, suggestions, axis=2)
    return Sums(
        sums.count + play.sum(0),
        sums.fixed + np.einsum("tka,tkb->kab", play, losses),
        sums.followed + np.einsum("tka,tkc->kac", play, losses_of_policies),
        sums.surprise_fixed + np.einsum("tka,tkb->kab", play, surprise),
        sums.surprise_followed + np.einsum("tka,tkc->kac", play, surprise_of_policies),
    )


def sums_by_suggestion(play: Array, losses: Array, suggested: Indices) -> Array:
    """Return sums of losses by row, policy, suggestion, action and comparator (K, C, A, A, A)."""
    is_suggested = suggested[..., np.newaxis] == np.arange(ACTIONS)  # (T, C, K, A)
    return np.asarray(np.einsum("tcks,tka,tkb->kcsab", is_suggested, play, losses))


def regrets_by_definition(sums: Sums, *, constants: bool) -> Array:
    """Return external, swap, omniprediction and decision swap regrets (4, K)."""
    suffered = sums.fixed.diagonal(axis1=1, axis2=2)
    compared = sums.followed
    if constants:
        compared = np.concatenate([sums.followed, sums.fixed], axis=2)
    total = suffered.sum(1)
    return np.array(
        [
            total - sums.fixed.sum(1).min(1),
            (suffered - sums.fixed.min(2)).sum(1),
            total - compared.sum(1).min(1),
            (suffered - compared.min(2)).sum(1),
        ]
    )


@with_and_without_constants
@pytest.mark.parametrize("suggested_to", [1, ROWS])
@pytest.mark.parametrize("rounds", [1, 6])
def test_rounds_of_choices_are_added_as_certain_strategies(
    rounds: int, suggested_to: int, *, constants: bool
) -> None:
    """An absent row adds nothing; regrets are written after the rounds that are logged."""
    rng = stream(1, "choices of rounds")
    choices = rng.integers(-1, ACTIONS, (rounds, ROWS))
    play = np.eye(ACTIONS + 1)[choices][:, :, :ACTIONS]
    losses = rng.random((rounds, ROWS, ACTIONS))
    predicted = rng.random((rounds, ROWS, ACTIONS))
    suggested = rng.integers(0, ACTIONS, (rounds, 2, suggested_to))
    is_logged = np.arange(rounds) % 2 == 0
    regret_sums = np.empty((int(is_logged.sum()), 4, ROWS))
    contextual = np.zeros((ROWS, 2, ACTIONS, ACTIONS, ACTIONS))
    before = random_sums(rng)
    sums = Sums(*(part.copy() for part in before))

    _add_pure_play(
        choices, predicted, losses, suggested, is_logged, constants, sums.count, sums.fixed,
        sums.followed, contextual, sums.surprise_fixed, sums.surprise_followed, regret_sums,
        0, ROWS,
    )  # fmt: skip

    suggested_to_rows = np.broadcast_to(suggested, (rounds, 2, ROWS))
    expected = sums_after(before, play, predicted, losses, suggested_to_rows)
    for name, part in expected._asdict().items():
        assert getattr(sums, name) == pytest.approx(part, abs=1e-13), name
    by_suggestion = sums_by_suggestion(play, losses, suggested_to_rows)
    assert contextual == pytest.approx(by_suggestion, abs=1e-13)
    for logged, t in enumerate(np.flatnonzero(is_logged)):
        log = (play, predicted, losses, suggested_to_rows)
        sums_then = sums_after(before, *(table[: t + 1] for table in log))
        regrets = regrets_by_definition(sums_then, constants=constants)
        assert regret_sums[logged] == pytest.approx(regrets, abs=1e-13)


def test_choices_of_rows_that_expect_nothing_add_no_surprise() -> None:
    rng = stream(3, "choices of rounds")
    choices = rng.integers(-1, ACTIONS, (6, ROWS))
    losses = rng.random((6, ROWS, ACTIONS))
    suggested = rng.integers(0, ACTIONS, (6, 2, 1))
    before = random_sums(rng)
    sums = Sums(*(part.copy() for part in before))

    _add_pure_play(
        choices, np.empty((0, 0, 0)), losses, suggested, np.zeros(6, dtype=np.bool_), True,  # noqa: FBT003
        sums.count, sums.fixed, sums.followed, np.empty((0, 0, 0, 0, 0)), sums.surprise_fixed,
        sums.surprise_followed, np.empty((0, 4, ROWS)), 0, ROWS,
    )  # fmt: skip

    play = np.eye(ACTIONS + 1)[choices][:, :, :ACTIONS]
    expected = sums_after(before, play, losses, losses, np.broadcast_to(suggested, (6, 2, ROWS)))
    for name, part in expected._asdict().items():  # losses that are as expected surprise nobody
        assert getattr(sums, name) == pytest.approx(part, abs=1e-13), name


@with_and_without_constants
@pytest.mark.parametrize("suggested_to", [1, ROWS])
@pytest.mark.parametrize("rounds", [1, 6])
def test_rounds_of_mixed_play_are_added_by_probability(
    rounds: int, suggested_to: int, *, constants: bool
) -> None:
    """Suggestions are to all rows, or to each. One row is absent, one is certain."""
    rng = stream(2, "strategies of rounds")
    play = rng.dirichlet(np.ones(ACTIONS), (rounds, ROWS))
    play[:, 1] = 0.0
    play[:, 2] = np.arange(ACTIONS) == 1
    losses = rng.random((rounds, ROWS, ACTIONS))
    predicted = rng.random((rounds, ROWS, ACTIONS))
    suggested = rng.integers(0, ACTIONS, (rounds, 2, suggested_to))
    is_logged = np.arange(rounds) % 2 == 0
    regret_sums = np.empty((int(is_logged.sum()), 4, ROWS))
    contextual = np.zeros((ROWS, 2, ACTIONS, ACTIONS, ACTIONS))
    before = random_sums(rng)
    sums = Sums(*(part.copy() for part in before))

    _add_mixed_play(
        play, predicted, losses, suggested, is_logged, constants, sums.count, sums.fixed,
        sums.followed, contextual, sums.surprise_fixed, sums.surprise_followed, regret_sums,
        0, ROWS,
    )  # fmt: skip

    suggested_to_rows = np.broadcast_to(suggested, (rounds, 2, ROWS))
    expected = sums_after(before, play, predicted, losses, suggested_to_rows)
    for name, part in expected._asdict().items():
        assert getattr(sums, name) == pytest.approx(part, abs=1e-13), name
    by_suggestion = sums_by_suggestion(play, losses, suggested_to_rows)
    assert contextual == pytest.approx(by_suggestion, abs=1e-13)
    for logged, t in enumerate(np.flatnonzero(is_logged)):
        log = (play, predicted, losses, suggested_to_rows)
        sums_then = sums_after(before, *(table[: t + 1] for table in log))
        regrets = regrets_by_definition(sums_then, constants=constants)
        assert regret_sums[logged] == pytest.approx(regrets, abs=1e-13)
