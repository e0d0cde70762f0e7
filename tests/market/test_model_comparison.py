"""What agents would have lost with models and policies: the kernel beside its definition."""

import numpy as np
import pytest

from regretless.market.core.randomness import stream
from regretless.market.numerics import exact_sum
from regretless.market.records import Decision
from regretless.market.regret import model_comparison
from regretless.market.regret.model_comparison import MAX_BATCHES, ModelComparison
from regretless.market.regret.pending_rounds import PendingRounds, one_round

ROWS = 7
ACTIONS = 3


def comparison_by_definition(
    losses: np.ndarray,
    played: np.ndarray,
    present: np.ndarray,
    counts: np.ndarray,
    alternatives: np.ndarray,
) -> np.ndarray:
    """Return the sum over agents of loss with each alternative less loss as played (J,)."""
    rows = np.arange(len(losses))[:, None]
    differences = losses[rows, alternatives] - played[:, None]
    return (counts * present) @ differences


@pytest.mark.parametrize("absent_row", [None, 4])
def test_a_round_adds_what_each_alternative_would_have_cost(absent_row: int | None) -> None:
    rng = stream(3, "a round of a comparison")
    counts = np.array([1.0, 2.0, 1.0, 5.0, 1.0, 3.0, 1.0])
    model_actions = rng.integers(ACTIONS, size=(ROWS, 2))
    policy_actions = np.array([2, 0])
    losses = rng.random((ROWS, ACTIONS))
    choices = rng.integers(ACTIONS, size=ROWS)
    present = np.ones(ROWS, dtype=np.bool_)
    if absent_row is not None:
        present[absent_row] = False
        choices[absent_row] = -1
    comparison = ModelComparison(
        ("first", "second"), counts, sizes=(2, ACTIONS), suggest=lambda: model_actions
    )
    decision = Decision(
        None,
        choices,
        np.zeros((ROWS, ACTIONS)),
        present=None if absent_row is None else present,
        choices=choices,
    )

    comparison.add_played(
        one_round(
            decision,
            losses,
            suggested=policy_actions,
            model_actions=comparison.model_actions(),
        )
    )

    played = np.where(present, losses[np.arange(ROWS), choices], 0.0)
    alternatives = np.column_stack([model_actions, np.tile(policy_actions, (ROWS, 1))])
    series = comparison.series()
    assert series is not None
    expected = comparison_by_definition(losses, played, present, counts, alternatives)
    np.testing.assert_allclose(series.sums[0, :-1], expected, rtol=0, atol=1e-13)
    assert series.agent_rounds[0, 0] == (counts * present).sum()
    model_losses = losses[np.arange(ROWS)[:, None], model_actions] * present[:, None]
    assert np.array_equal(comparison.sums, model_losses)


@pytest.mark.parametrize("absent_row", [None, 4])
def test_mixed_play_is_compared_by_its_expected_loss(absent_row: int | None) -> None:
    rng = stream(4, "a mixed round of a comparison")
    counts = np.arange(1.0, ROWS + 1)
    policy_actions = np.array([1])
    losses = rng.random((ROWS, ACTIONS))
    strategies = rng.dirichlet(np.ones(ACTIONS), ROWS)
    present = np.ones(ROWS, dtype=np.bool_)
    if absent_row is not None:
        present[absent_row] = False
        strategies[absent_row] = 0.0
    no_models = np.zeros((ROWS, 0), dtype=np.intp)
    comparison = ModelComparison((), counts, sizes=(1, ACTIONS), suggest=lambda: no_models)
    decision = Decision(
        strategies,
        np.zeros(ROWS, dtype=np.intp),
        present=None if absent_row is None else present,
    )

    comparison.add_played(
        one_round(
            decision,
            losses,
            suggested=policy_actions,
            model_actions=comparison.model_actions(),
        )
    )

    series = comparison.series()
    assert series is not None
    expected = comparison_by_definition(
        losses,
        (strategies * losses).sum(1),
        present,
        counts,
        np.tile(policy_actions, (ROWS, 1)),
    )
    np.testing.assert_allclose(series.sums[0, :-1], expected, rtol=0, atol=1e-13)


def test_the_two_numbers_of_a_value_are_those_that_the_sum_adds_up() -> None:
    values = stream(4, "values").normal(size=50)
    weights = np.ones(1)
    for value in values:
        coarse, fine = exact_sum.total(np.array([[value]]), weights)[:, 0]
        assert exact_sum.split(value) == (coarse, fine)


def test_batches_that_grow_while_rounds_are_pending_are_those_of_rounds_added_one_by_one() -> None:
    rng = stream(5, "rounds of a comparison")
    n_rounds = 2 * MAX_BATCHES + 10
    model_actions = rng.integers(ACTIONS, size=(n_rounds, ROWS, 1))
    losses = rng.random((n_rounds, ROWS, ACTIONS))
    choices = rng.integers(ACTIONS, size=(n_rounds, ROWS))
    counts = np.arange(1.0, ROWS + 1)
    policy_actions = np.array([1])
    open_round = [0]

    def suggest() -> np.ndarray:
        return model_actions[open_round[0]]

    at_once = ModelComparison(("model",), counts, sizes=(1, ACTIONS), suggest=suggest)
    later = ModelComparison(("model",), counts, sizes=(1, ACTIONS), suggest=suggest)
    pending = PendingRounds()
    for t in range(n_rounds):
        open_round[0] = t
        decision = Decision(None, choices[t], losses[t], choices=choices[t])
        at_once.add_played(
            one_round(
                decision,
                losses[t],
                suggested=policy_actions,
                model_actions=at_once.model_actions(),
                round_index=t,
            )
        )
        pending.add(
            decision,
            losses[t],
            suggested=policy_actions,
            model_actions=later.model_actions(),
            round_index=t,
            outcome=np.zeros(1),
            readers=[later],
        )

    assert pending.n_rounds > 0
    state_at_once = at_once.state()
    state_later = later.state()
    assert not pending.is_awaited_by(later)
    assert state_later["batch_length"] == state_at_once["batch_length"] > 2
    for name in ("sums", "differences", "agent_rounds", "sampled"):
        assert np.array_equal(state_later[name], state_at_once[name])


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("suggested_to", [1, ROWS])
@pytest.mark.parametrize("some_are_absent", [False, True])
def test_rounds_are_added_to_their_batches(
    *, is_pure: bool, suggested_to: int, some_are_absent: bool
) -> None:
    rng = stream(6, "rounds of a comparison")
    rounds = 5
    counts = rng.integers(1, 4, ROWS).astype(np.float64)
    losses = rng.random((rounds, ROWS, ACTIONS))
    present = rng.random((rounds, ROWS)) < 0.7
    if not some_are_absent:
        present[:] = True
    choices = np.where(present, rng.integers(0, ACTIONS, (rounds, ROWS)), -1)
    strategies = rng.dirichlet(np.ones(ACTIONS), (rounds, ROWS)) * present[..., np.newaxis]
    if is_pure:
        strategies = np.eye(ACTIONS + 1)[choices][:, :, :ACTIONS]
    model_actions = rng.integers(0, ACTIONS, (rounds, ROWS, 2))
    suggested = rng.integers(0, ACTIONS, (rounds, 3, suggested_to))
    batches = np.array([0, 0, 1, 1, 2])
    sample = np.array([5, 0])
    sums = np.ones((ROWS, 2))
    differences = np.zeros((3, 2, 5))
    agent_rounds = np.ones(3)
    sampled = np.ones((3, 2, ACTIONS + 2))

    model_comparison._add_rounds(
        np.empty((0, 0, 0)) if is_pure else strategies,
        choices if is_pure else np.empty((0, 0), dtype=np.intp),
        losses,
        present if some_are_absent else np.empty((0, 0), dtype=np.bool_),
        counts,
        model_actions,
        suggested,
        batches,
        sample,
        sums,
        differences,
        agent_rounds,
        sampled,
    )

    in_batch = batches == np.arange(3)[:, np.newaxis]  # (B, T)
    played = (strategies * losses).sum(2)  # (T, K)
    policy_actions = np.broadcast_to(suggested, (rounds, 3, ROWS)).swapaxes(1, 2)  # (T, K, C)
    alternatives = np.concatenate([model_actions, policy_actions], axis=2)
    losses_of_alternatives = np.take_along_axis(losses, alternatives, axis=2)  # (T, K, J)
    added = losses_of_alternatives - played[..., np.newaxis]
    expected_differences = []
    for is_in_batch in in_batch:
        agents = (counts * present[is_in_batch]).ravel()
        added_in_batch = added[is_in_batch].reshape(len(agents), -1)
        expected_differences.append(exact_sum.total(added_in_batch, agents))
    with_models = losses_of_alternatives[:, :, :2] * present[..., np.newaxis]
    of_sample = np.dstack([losses * present[..., np.newaxis], played, present])[:, sample]
    assert sums == pytest.approx(1.0 + with_models.sum(0), abs=1e-13)
    assert differences == pytest.approx(np.array(expected_differences), abs=1e-13)
    assert np.array_equal(agent_rounds, 1.0 + in_batch @ (present @ counts))
    expected_sample = 1.0 + np.einsum("bt,tsa->bsa", in_batch, of_sample)
    assert sampled == pytest.approx(expected_sample, abs=1e-13)


def test_where_batches_are_full_every_two_become_one_and_the_rest_is_empty() -> None:
    n_rounds = MAX_BATCHES + 2
    comparison = ModelComparison(
        (), np.ones(1), sizes=(1, 2), suggest=lambda: np.empty((1, 0), dtype=np.intp)
    )
    for t in range(n_rounds):
        losses = np.array([[0.0, t / 1024]])
        decision = Decision(None, np.array([0]), losses, choices=np.array([0]))
        comparison.add_played(
            one_round(
                decision,
                losses,
                suggested=np.array([1]),
                model_actions=comparison.model_actions(),
                round_index=t,
            )
        )

    state = comparison.state()
    first_rounds = np.arange(0, n_rounds, 2)
    n_batches = len(first_rounds)
    differences = state["differences"].sum(1)[:, 0]
    assert state["batch_length"] == 2
    assert np.array_equal(differences[:n_batches], (2 * first_rounds + 1) / 1024)
    assert not differences[n_batches:].any()
    assert state["agent_rounds"].tolist() == [2.0] * n_batches + [0.0] * (MAX_BATCHES - n_batches)
    assert np.array_equal(state["sampled"][:n_batches, 0, 1], differences[:n_batches])
    assert not state["sampled"][n_batches:].any()
