"""The sums over draws, against the formulas of ``forecaster.guarantees.draws`` in NumPy."""

import numpy as np
import pytest

from regretless.forecaster.events.draws import GroupDraws
from regretless.market.core.arrays import Array

ROUNDS = 40
LOSSES = 12


def sums_by_definition(probabilities: Array, losses: Array) -> tuple[Array, Array, Array, Array]:
    """Return near, the greatest step (T, K), far (T, K, A) and pairs (T, K, A, A) of rounds."""
    width = np.ptp(losses, axis=2)
    spread = (probabilities * (1 - probabilities)).sum(2)
    gaps = np.abs(losses[:, :, :, None] - losses[:, :, None, :])
    moments = probabilities * gaps.max(3) ** 2
    variance_if_near = 2 * width**2 * spread
    is_random = spread > 1e-12
    is_near = is_random & (variance_if_near < moments.sum(2))
    is_far = is_random & ~is_near
    smallest_chance = np.where(probabilities > 1e-12, probabilities, 1.0).min(2)
    return (
        np.where(is_near, variance_if_near, 0.0),
        np.where(is_random, 2 * width * (1 - smallest_chance), 0.0),
        np.where(is_far[:, :, None], moments, 0.0),
        np.where(is_far[:, :, None, None], probabilities[..., None] * gaps**2, 0.0),
    )


@pytest.mark.parametrize("actions", [2, 3, 9])
def test_sums_over_draws_are_those_of_their_definition(actions: int) -> None:
    rng = np.random.default_rng(actions)
    probabilities = rng.dirichlet(np.full(actions, 0.3), (ROUNDS, LOSSES))
    probabilities[:, 0] = np.eye(actions)[0]  # a loss whose owner never draws
    losses = rng.random((ROUNDS, LOSSES, actions))
    draws = GroupDraws(LOSSES, actions)
    for probabilities_of_round, losses_of_round in zip(probabilities, losses, strict=True):
        draws.add(probabilities_of_round.ravel(), losses_of_round.ravel())

    near, greatest_step, far, pairs = sums_by_definition(probabilities, losses)
    assert draws.ends[0] == pytest.approx(near.sum(0), abs=1e-12)
    assert draws.ends[1] == pytest.approx(greatest_step.sum(0), abs=1e-12)
    assert draws.far == pytest.approx(far.sum(0), abs=1e-12)
    assert draws.pairs == pytest.approx(pairs.sum(0), abs=1e-12)
    assert not draws.ends[:, 0].any()
