"""What rows lose as they play: the kernel beside NumPy."""

import numpy as np
import pytest

from regretless.market.core.randomness import stream
from regretless.market.records import Decision
from regretless.market.regret.played_losses import write_played_losses

ROWS = 6


@pytest.mark.parametrize("actions", [2, 3, 11])
def test_a_mixed_strategy_loses_the_mean_of_what_its_actions_lose(actions: int) -> None:
    rng = stream(5, "losses of mixed play")
    losses = rng.random((ROWS, actions))
    strategies = rng.dirichlet(np.ones(actions), ROWS)
    absent_row = 2
    strategies[absent_row] = 0.0
    decision = Decision(strategies, np.zeros(ROWS, dtype=np.intp))
    played_losses = np.empty(ROWS)

    write_played_losses(decision, losses, np.arange(ROWS), played_losses)

    expected = (strategies * losses).sum(1)
    np.testing.assert_allclose(played_losses, expected, rtol=1e-14, atol=0)
    assert played_losses[absent_row] == 0.0


def test_a_choice_loses_its_own_loss_and_an_absent_row_nothing() -> None:
    losses = stream(6, "losses of choices").random((ROWS, 3))
    choices = np.array([2, 0, -1, 1, 1, 0])
    decision = Decision(None, choices, losses, choices=choices)
    some_rows = np.array([5, 2, 0])
    played_losses = np.empty(3)

    write_played_losses(decision, losses, some_rows, played_losses)

    assert played_losses.tolist() == [losses[5, 0], 0.0, losses[0, 2]]
