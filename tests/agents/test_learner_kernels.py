"""A step of each learner's kernel beside the same formula in NumPy, several rows at once."""

import numpy as np
import pytest

from regretless.agents.learners.kernels import (
    TINY,
    add_estimates,
    blum_mansour_step,
    logit,
    mean_of_levels,
    regret_matching_step,
    swap_regret_matching_step,
    update_q_tables,
)
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

ROWS = 4

each_seed = pytest.mark.parametrize("seed", [1, 2])
each_number_of_actions = pytest.mark.parametrize("actions", [1, 2, 5])


def play_a_round(rng: np.random.Generator, actions: int) -> tuple[Array, Array]:
    """Return mixed strategies (K, A), of which one is pure, and losses (K, A)."""
    strategy = rng.dirichlet(np.ones(actions), ROWS)
    strategy[0] = np.eye(actions)[0]
    return strategy, rng.random((ROWS, actions))


def assert_stationary(strategy: Array, rates: Array) -> None:
    """Assert that distributions (K, A) balance chains (K, A, A)."""
    assert strategy.sum(1) == pytest.approx(np.ones(len(strategy)), abs=1e-12)
    assert (strategy >= 0.0).all()
    inflow = np.einsum("ka,kab->kb", strategy, rates)
    assert inflow == pytest.approx(strategy * rates.sum(2), abs=1e-12)


@each_seed
@each_number_of_actions
def test_logit_play_is_proportional_to_exponentials_of_losses(seed: int, actions: int) -> None:
    total = 5 * stream(seed, "logit").normal(size=actions)
    strategy = np.empty(actions)

    logit(total, 0.7, strategy)

    powers = np.exp(-0.7 * total)
    assert strategy == pytest.approx(powers / powers.sum(), rel=1e-12)


@each_seed
@each_number_of_actions
@pytest.mark.parametrize("least", [0.0, -np.inf])
def test_regret_matching_plays_positive_regrets(seed: int, actions: int, least: float) -> None:
    rng = stream(seed, "regret matching")
    strategy, losses = play_a_round(rng, actions)
    total_before = rng.normal(size=(ROWS, actions))
    total_before[1] = -5.0  # regrets nothing
    total = total_before.copy()

    next_strategy = regret_matching_step(total, strategy, losses, least)

    gains = (strategy * losses).sum(1, keepdims=True) - losses
    expected_total = np.maximum(total_before + gains, least)
    positive = np.maximum(expected_total, 0.0)
    positive_sum = positive.sum(1, keepdims=True)
    expected = np.full(positive.shape, 1 / actions)
    np.divide(positive, positive_sum, out=expected, where=positive_sum > 0)
    assert total == pytest.approx(expected_total, abs=1e-14)
    assert next_strategy == pytest.approx(expected, abs=1e-14)


@each_seed
@pytest.mark.parametrize("baseline", [0.0, 1.0])
def test_estimates_are_of_the_played_action_alone(seed: int, baseline: float) -> None:
    rng = stream(seed, "estimates")
    strategy, losses = play_a_round(rng, 3)
    actions = np.array([1, 0, 2, 1])  # the first with a chance of 0
    total = np.zeros((ROWS, 3))

    add_estimates(total, strategy, losses, actions, baseline)

    is_played = actions[:, np.newaxis] == np.arange(3)
    estimates = (losses - baseline) / np.maximum(strategy, TINY)
    assert total == pytest.approx(np.where(is_played, estimates, 0.0), rel=1e-14)


@each_seed
@each_number_of_actions
def test_levels_of_a_tree_count_alike(seed: int, actions: int) -> None:
    strategies = stream(seed, "levels").dirichlet(np.ones(actions), (ROWS, 3))

    assert mean_of_levels(strategies) == pytest.approx(strategies.mean(1), abs=1e-14)


@each_seed
@each_number_of_actions
def test_copies_of_hedge_are_charged_their_share_and_left_unchanged(
    seed: int, actions: int
) -> None:
    rng = stream(seed, "blum mansour")
    strategy, losses = play_a_round(rng, actions)
    total_before = rng.random((ROWS, actions, actions))
    total = total_before.copy()

    next_strategy = blum_mansour_step(total, strategy, losses, 1.5)

    expected_total = total_before + np.einsum("ka,kb->kab", strategy, losses)
    powers = np.exp(-1.5 * expected_total)
    assert total == pytest.approx(expected_total, abs=1e-14)
    assert_stationary(next_strategy, powers / powers.sum(2, keepdims=True))


@each_seed
@each_number_of_actions
def test_positive_swap_regrets_leave_the_next_strategy_unchanged(seed: int, actions: int) -> None:
    rng = stream(seed, "swap regret matching")
    strategy, losses = play_a_round(rng, actions)
    regret_before = rng.normal(size=(ROWS, actions, actions))
    regret_before[1] = -5.0  # regrets nothing
    regret = regret_before.copy()

    next_strategy = swap_regret_matching_step(regret, strategy, losses)

    gaps = losses[:, :, np.newaxis] - losses[:, np.newaxis]
    expected_regret = regret_before + strategy[..., np.newaxis] * gaps
    assert regret == pytest.approx(expected_regret, abs=1e-14)
    assert_stationary(next_strategy, np.maximum(expected_regret, 0.0))
    assert next_strategy[1] == pytest.approx(np.full(actions, 1 / actions), abs=1e-15)


@each_seed
@each_number_of_actions
def test_one_value_of_each_row_moves_towards_reward_and_best_next_value(
    seed: int, actions: int
) -> None:
    """Values are coarse, so that several are the greatest: the lowest action is greedy."""
    rng = stream(seed, "q-learning")
    states = 3
    all_rows = np.arange(ROWS)
    q = rng.integers(0, 3, (ROWS, states, actions)) / 4
    greedy = q.argmax(2)
    changed_at = np.zeros(ROWS, dtype=np.int64)
    for round_number in range(1, 30):
        state = rng.integers(0, states, ROWS)
        action = rng.integers(0, actions, ROWS)
        reward = rng.integers(0, 3, ROWS) / 4
        next_state = rng.integers(0, states, ROWS)
        expected = q.copy()
        best_next = q[all_rows, next_state].max(1)
        old_value = q[all_rows, state, action]
        expected[all_rows, state, action] += 0.5 * (reward + 0.5 * best_next - old_value)
        greedy_before = greedy.copy()
        expected_change = changed_at.copy()

        update_q_tables(
            q, greedy, state, action, reward, next_state, 0.5, 0.5, changed_at, round_number
        )

        assert q == pytest.approx(expected, abs=1e-15)
        assert np.array_equal(greedy, q.argmax(2))
        expected_change[(greedy != greedy_before).any(1)] = round_number
        assert np.array_equal(changed_at, expected_change)
