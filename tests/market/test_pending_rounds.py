"""Rounds that are kept as they were played are added up to the same sums, whoever reads when."""

import numpy as np
import pytest

from regretless import load
from regretless.market.core.randomness import stream
from regretless.market.records import Decision, Round
from regretless.market.regret import pending_rounds
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.market.regret.pending_rounds import PlayedRounds, RoundReader

ROWS = 5
ACTIONS = 3
POLICY_ACTIONS = np.array([2, 0])
NO_MODELS = np.empty((ROWS, 0), dtype=np.intp)
OUTCOME = np.array([0.5])


class RegretLog(RoundReader):
    """Keeps the regrets after each logged round."""

    def __init__(self) -> None:
        self.regret_sums: list[np.ndarray] = []

    def add_played(self, rounds: PlayedRounds) -> None:
        self.regret_sums.extend(rounds.regret_sums)


def pure_decision(rng: np.random.Generator) -> Decision:
    choices = rng.integers(ACTIONS, size=ROWS)
    return Decision(None, choices, rng.random((ROWS, ACTIONS)), choices=choices)


def mixed_decision(rng: np.random.Generator) -> Decision:
    strategies = rng.dirichlet(np.ones(ACTIONS), ROWS)
    return Decision(strategies, strategies.argmax(1), rng.random((ROWS, ACTIONS)))


def decision_without_a_row(rng: np.random.Generator) -> Decision:
    present = np.ones(ROWS, dtype=np.bool_)
    present[rng.integers(ROWS)] = False
    return pure_decision(rng).masked(present, np.arange(ROWS))


def keep(ledger: Ledger, decision: Decision, losses: np.ndarray, *, round_index: int) -> None:
    """Keep a round for a ledger, as the seat of its cohort does."""
    ledger.count_round(decision)
    ledger.pending.add(
        decision,
        losses,
        suggested=POLICY_ACTIONS,
        model_actions=NO_MODELS,
        round_index=round_index,
        outcome=OUTCOME,
        readers=[ledger],
    )


@pytest.mark.parametrize("measures", [MEASURES[:4], MEASURES])
def test_rounds_of_every_kind_add_up_to_the_sums_and_regrets_of_rounds_added_at_once(
    measures: tuple[str, ...],
) -> None:
    rng = stream(1, "pending rounds")
    at_once = Ledger(ROWS, ACTIONS, policies=2, measures=measures)
    later = Ledger(ROWS, ACTIONS, policies=2, measures=measures)
    log = RegretLog()
    regrets_at_once = []
    kinds = [pure_decision, mixed_decision, decision_without_a_row]
    for t in range(90):
        decision = kinds[t // 15 % 3](rng)
        losses = rng.random((ROWS, ACTIONS))
        at_once.add(decision, losses, POLICY_ACTIONS)
        keep(later, decision, losses, round_index=t)
        if t % 4 == 1:
            regrets_at_once.append(at_once.regret_sums())
            later.pending.log_last(log)

    assert later.pending.n_rounds > 0
    later.pending.add_up()
    for name in Ledger.SUMS:
        assert np.array_equal(getattr(later, name), getattr(at_once, name))
    assert np.array_equal(later.rounds, at_once.rounds)
    assert later.expects == at_once.expects
    assert np.array_equal(log.regret_sums, regrets_at_once)


def test_a_round_counts_as_it_was_played_whatever_is_written_into_its_arrays_later() -> None:
    rng = stream(2, "a round that is overwritten")
    ledger = Ledger(ROWS, ACTIONS, policies=2)
    decision = mixed_decision(rng)
    losses = rng.random((ROWS, ACTIONS))
    assert decision.strategy is not None
    cost = (decision.strategy * losses).sum(1)

    keep(ledger, decision, losses, round_index=0)
    losses[:] = 9.0
    decision.strategy[:] = 0.0

    np.testing.assert_allclose(ledger.mean_loss(), cost, rtol=1e-14)


def test_rounds_of_a_large_population_are_added_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rounds, "MAX_PENDING_LOSSES", ROWS * ACTIONS)
    rng = stream(3, "a large population")
    ledger = Ledger(ROWS, ACTIONS, policies=2)

    keep(ledger, pure_decision(rng), rng.random((ROWS, ACTIONS)), round_index=0)

    assert ledger.pending.n_rounds == 0
    assert ledger.count.sum() == ROWS


def test_who_waits_later_gets_no_earlier_round() -> None:
    rng = stream(4, "a late reader")
    ledger = Ledger(ROWS, ACTIONS, policies=2)
    log = RegretLog()
    for t in range(3):
        keep(ledger, pure_decision(rng), rng.random((ROWS, ACTIONS)), round_index=t)
        if t == 2:
            ledger.pending.log_last(log)
    ledger.pending.add_up()

    assert np.array_equal(log.regret_sums, [ledger.regret_sums()])


def test_a_ledger_that_is_read_early_leaves_the_regret_log_waiting_for_the_same_regrets() -> None:
    rng = stream(5, "a ledger that is read alone")
    at_once = Ledger(ROWS, ACTIONS, policies=2)
    ledger = Ledger(ROWS, ACTIONS, policies=2)
    log = RegretLog()
    regrets_at_once = []
    for t in range(12):
        decision = pure_decision(rng)
        losses = rng.random((ROWS, ACTIONS))
        at_once.add(decision, losses, POLICY_ACTIONS)
        regrets_at_once.append(at_once.regret_sums())
        keep(ledger, decision, losses, round_index=t)
        ledger.pending.log_last(log)
        if t % 5 == 2:
            assert np.array_equal(ledger.fixed, at_once.fixed)

    assert log.regret_sums == []
    ledger.pending.add_up()
    assert np.array_equal(log.regret_sums, regrets_at_once)
    assert np.array_equal(ledger.fixed, at_once.fixed)


def test_the_regret_log_has_a_round_in_which_somebody_has_read_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed = load("el-farol", rounds=12).build(seed=3)
    undisturbed.run()
    model = load("el-farol", rounds=12).build(seed=3)
    let_views_be_of = model.passed

    def read_ledgers(played: Round) -> None:
        let_views_be_of(played)
        for cohort in model.game.cohorts:
            cohort.ledger.mean_loss()

    monkeypatch.setattr(model, "passed", read_ledgers)  # called before the round is logged
    model.run()

    assert model.regret_frame().equals(undisturbed.regret_frame())


@pytest.mark.parametrize("name", ["crop-choice", "sniping", "survival"])
def test_who_reads_after_every_round_finds_the_run_of_who_reads_at_the_end(name: str) -> None:
    watched = load(name, rounds=30).build(seed=2)
    unwatched = load(name, rounds=30).build(seed=2)
    for _ in range(30):
        watched.step()
        watched.agents_frame()
        watched.verdict_frame()
        watched.regret_frame()
    unwatched.run()

    for table in ("agents_frame", "verdict_frame", "regret_frame", "models_frame", "bounds_frame"):
        expected = getattr(watched, table)()
        assert getattr(unwatched, table)().equals(expected)


def test_a_checkpoint_between_two_readings_holds_every_round_so_far() -> None:
    stopped = load("crop-choice", rounds=30).build(seed=2)
    stopped.run(17)
    resumed = load("crop-choice", rounds=30).build(seed=2)
    resumed.run(5)  # whose pending rounds the checkpoint replaces

    resumed.restore(stopped.state())
    resumed.run()
    stopped.run()

    assert resumed.agents_frame().equals(stopped.agents_frame())
    assert resumed.verdict_frame().equals(stopped.verdict_frame())


@pytest.mark.parametrize("has_predictions", [False, True])
@pytest.mark.parametrize("is_pure", [False, True])
def test_a_round_is_copied_to_its_place_alone(*, is_pure: bool, has_predictions: bool) -> None:
    rng = stream(9, "kept rounds")
    rooms: dict[str, np.ndarray] = {
        "round indices": np.zeros(3, dtype=np.intp),
        "strategies": np.zeros((3, ROWS, ACTIONS)),
        "choices": np.zeros((3, ROWS), dtype=np.intp),
        "predicted": np.zeros((3, ROWS, ACTIONS)),
        "losses": np.zeros((3, ROWS, ACTIONS)),
        "outcomes": np.zeros((3, 2)),
    }
    of_round: dict[str, np.ndarray] = {
        "strategies": rng.random((ROWS, ACTIONS)),
        "choices": rng.integers(1, ACTIONS, ROWS),
        "predicted": rng.random((ROWS, ACTIONS)),
        "losses": rng.random((ROWS, ACTIONS)),
        "outcomes": rng.random(2),
    }
    missing = {"strategies" if is_pure else "choices"}
    if not has_predictions:
        missing.add("predicted")
    for name in missing:
        of_round[name] = of_round[name][:0]

    pending_rounds._keep_round(1, 7, *of_round.values(), *rooms.values())

    assert rooms.pop("round indices").tolist() == [0, 7, 0]
    for name, room in rooms.items():
        expected = np.zeros_like(room)
        if name not in missing:
            expected[1] = of_round[name]
        assert np.array_equal(room, expected), name
