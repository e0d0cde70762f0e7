"""What rows lose as they play: the kernel beside NumPy."""

import numpy as np
import pytest

from regretless.market.core.randomness import stream
from regretless.market.records import Decision
from regretless.market.regret.played_losses import fill_losses_of_rounds, write_played_losses

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


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("is_wanted", [[], [False], [True, False, True], [True, True, True]])
def test_losses_of_the_rounds_that_are_wanted_are_those_of_each(
    is_wanted: list[bool], *, is_pure: bool
) -> None:
    rng = stream(7, "losses of rounds")
    wanted = np.array(is_wanted, dtype=np.bool_)
    losses = rng.random((len(wanted), ROWS, 3))
    choices = rng.integers(-1, 3, (len(wanted), ROWS))
    strategies = rng.dirichlet(np.ones(3), (len(wanted), ROWS))
    if is_pure:
        strategies = np.eye(4)[choices][:, :, :3]
    some_rows = np.array([4, 0])
    played_losses = np.empty((int(wanted.sum()), 2))

    fill_losses_of_rounds(
        np.empty((0, 0, 0)) if is_pure else strategies,
        choices if is_pure else np.empty((0, 0), dtype=np.intp),
        losses,
        wanted,
        some_rows,
        played_losses,
    )

    expected = (strategies * losses).sum(2)[wanted][:, some_rows]
    np.testing.assert_allclose(played_losses, expected, rtol=1e-14, atol=0)
