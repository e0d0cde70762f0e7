"""The kernels of the table of alarms beside the same formulas, round by round in NumPy."""

import numpy as np
import pytest

from paper.switch_test import (
    exceeds_former,
    exceeds_mixture,
    first_alarms_of_cells,
    first_alarms_of_losses,
)
from regretless.forecaster.mixture_of_rates import log_mixture
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

ROUNDS = 60


def former_limit(squares: Array, evidence: float) -> Array:
    """Return w(V) = sqrt(2 (V + 1) (ln(V + 1) / 2 + ln(m / alpha)))."""
    return np.asarray(np.sqrt(2 * (squares + 1) * (np.log(squares + 1) / 2 + evidence)))


def first_round(exceeds: Array) -> int:
    """Return the first round, from 1, in which anything exceeds its limit; 0 for none."""
    of_rounds = exceeds.reshape(len(exceeds), -1).any(1)
    return int(of_rounds.argmax()) + 1 if of_rounds.any() else 0


@pytest.mark.parametrize("evidence", [0.5, 3.0])
def test_a_limit_is_exceeded_where_its_formula_says(evidence: float) -> None:
    rng = stream(1, "limits")
    gains = rng.normal(0.0, 10.0, 200)
    squares = 30 * rng.random(200)

    for gain, square in zip(gains, squares, strict=True):
        assert exceeds_former(gain, square, evidence) == (gain > former_limit(square, evidence))
        one = log_mixture(np.array(gain), np.array(square))
        assert exceeds_mixture(gain, square, evidence) == (one > evidence)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_cells_raise_the_first_alarm_of_any_of_them(seed: int) -> None:
    rng = stream(seed, "alarms of cells")
    predictions = np.append(rng.random(ROUNDS - 1), 1.0)
    outcomes = (rng.random(ROUNDS) < 0.3 * predictions).astype(np.float64)
    evidence = np.array([1.5, 1.0, 2.5])
    scales = 2

    alarms = first_alarms_of_cells(predictions, outcomes, scales, evidence)

    error = predictions - outcomes
    is_in_cell = []
    for scale in range(1, scales + 1):
        cell = np.minimum(np.floor(predictions * 2**scale), 2**scale - 1)
        is_in_cell += [cell == number for number in range(2**scale)]
    in_cells = np.array(is_in_cell).T  # (T, cells)
    size = np.abs(np.cumsum(in_cells * error[:, np.newaxis], axis=0))
    squares = np.cumsum(in_cells * error[:, np.newaxis] ** 2, axis=0)
    expected = [first_round(log_mixture(size, squares) > evidence[0])]
    expected += [first_round(size > former_limit(squares, limit)) for limit in evidence[1:]]
    assert alarms.tolist() == expected
    assert any(expected), "no alarm to compare"


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_losses_raise_the_first_alarm_of_an_action_or_of_their_sum(seed: int) -> None:
    rng = stream(seed, "alarms of losses")
    n_losses = 3
    actions = 3
    best_actions = rng.integers(0, actions, (ROUNDS, n_losses))
    losses = rng.random((ROUNDS, n_losses, actions))
    losses[:, 0, 0] += 0.4  # an action that is regretted
    scale = 1.0 + rng.random(n_losses)
    evidence_of_one = np.array([2.0, 1.0])
    evidence_of_sums = np.array([3.0, 2.0])

    alarms = first_alarms_of_losses(best_actions, losses, scale, evidence_of_one, evidence_of_sums)

    plays = best_actions[..., np.newaxis] == np.arange(actions)  # (T, K, A)
    gaps = (losses[..., :, np.newaxis] - losses[..., np.newaxis, :]) / scale[:, None, None]
    gains = plays[..., np.newaxis] * gaps  # (T, K, A, A)
    regret = np.cumsum(gains, axis=0)
    squares = np.cumsum(gains**2, axis=0)
    # Of the comparator that an action regrets most; nothing where it regrets none.
    best = regret.argmax(3)[..., np.newaxis]
    greatest = np.take_along_axis(regret, best, axis=3)[..., 0]
    squares_of_greatest = np.take_along_axis(squares, best, axis=3)[..., 0]
    total = np.maximum(greatest, 0.0).sum(2)  # (T, K)
    total_squares = np.where(greatest > 0.0, squares_of_greatest, 0.0).sum(2)
    exceeds_mixed = (log_mixture(regret, squares) > evidence_of_one[0]).any((2, 3))
    exceeds_mixed |= log_mixture(total, total_squares) > evidence_of_sums[0]
    exceeds_w = (regret > former_limit(squares, evidence_of_one[1])).any((2, 3))
    exceeds_w |= total > former_limit(total_squares, evidence_of_sums[1])
    assert alarms.tolist() == [first_round(exceeds_mixed), first_round(exceeds_w)]
    assert alarms.any(), "no alarm to compare"
