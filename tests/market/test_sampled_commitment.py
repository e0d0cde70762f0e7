"""What a leader commits to in a run of finite length, and what the margin earns it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless import UserError, stackelberg
from regretless.market.exploitability.commitment import largest_margin
from regretless.market.exploitability.sampled_commitment import (
    commitment_for_run,
    expected_earnings,
)

# Conitzer and Sandholm 2006: committed to a half each the leader gets 3.5.
PAYOFF = np.array([[2.0, 4.0], [1.0, 3.0]])
LOSS = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("margin", [0.0, 0.06, 0.5, 1.0])
def test_the_known_optimum_with_a_margin_is_found(margin: float) -> None:
    """The share p of the second outcome has p - (1 - p) = margin; payoff 4 (1 - p) + 3 p."""
    commitment = stackelberg(PAYOFF, LOSS, margin=margin)
    share_of_second = (1 + margin) / 2
    assert commitment.value == pytest.approx(4 - share_of_second)
    assert commitment.mixture == pytest.approx([1 - share_of_second, share_of_second])
    assert commitment.action == 1


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), share=st.floats(0.01, 0.99))
def test_the_induced_action_has_the_margin_over_every_other(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    payoff, loss = rng.random((2, 3, 3))
    margin = share * largest_margin(loss)
    commitment = stackelberg(payoff, loss, margin=margin)
    expected_losses = commitment.mixture @ loss
    other_losses = np.delete(expected_losses, commitment.action)
    assert other_losses.min() - expected_losses[commitment.action] >= margin - 1e-8
    assert commitment.value <= stackelberg(payoff, loss).value + 1e-8


def test_the_largest_margin_is_that_of_the_best_corner_of_a_game_of_two_actions() -> None:
    """The margin between two actions is linear in the distribution."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        loss = rng.random((4, 2))
        assert largest_margin(loss) == pytest.approx(np.abs(loss[:, 0] - loss[:, 1]).max())


def test_a_margin_that_no_action_has_is_refused_with_the_largest() -> None:
    with pytest.raises(UserError, match=r"margin = 1\.5: no action has it; give at most 1$"):
        stackelberg(PAYOFF, LOSS, margin=1.5)


def test_actions_of_equal_losses_need_no_margin_over_each_other() -> None:
    payoff = np.array([[1.0, 0.0, 5.0], [1.0, 0.0, 5.0]])
    loss = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert stackelberg(payoff, loss, margin=0.5).value == pytest.approx(5.0)


def test_a_longer_run_needs_a_smaller_margin() -> None:
    margins = [commitment_for_run(PAYOFF, LOSS, rounds=rounds)[1] for rounds in (100, 1000, 10_000)]
    assert margins[0] > margins[1] > margins[2] > 0


def test_no_margin_is_taken_where_errors_of_the_follower_pay_the_leader() -> None:
    commitment, margin = commitment_for_run(LOSS, LOSS, rounds=1000)
    assert margin == 0.0
    assert commitment.value == pytest.approx(0.5)


def test_expected_earnings_are_those_of_played_followers_of_every_third_outcome() -> None:
    """Of 2,000 drawn runs of 40 rounds, within five standard errors of both averages."""
    rng = np.random.default_rng(1)
    mixture = np.array([0.4, 0.6])
    rounds = 40
    earned = []
    for _ in range(2000):
        outcomes = rng.choice(2, size=rounds, p=mixture)
        counts_after = np.cumsum(np.eye(2)[outcomes], axis=0)
        sample_sizes = np.maximum(1, np.arange(rounds) // 3)
        counts = counts_after[sample_sizes - 1]
        counts[0] = 0.0
        actions = (counts @ LOSS).argmin(1)
        earned.append((mixture @ PAYOFF)[actions].mean())
    expected = expected_earnings(mixture, PAYOFF, LOSS, rounds=rounds)
    standard_error = np.std(earned) * (2000**-0.5 + 256**-0.5)
    assert expected == pytest.approx(np.mean(earned), abs=5 * standard_error)


def mean_surplus(margin: float | str) -> float:
    """Return the leader's surplus over followers and Hedge, in 200 rounds of the known game."""
    weights = (PAYOFF / 4).T.tolist()
    parameters = {"weights": (-LOSS.T).tolist()}
    cohorts = [
        cohort_table(response, 1, 2, "affine", parameters=parameters, response=response)
        for response in ("best-response", "hedge")
    ]
    adversary = {
        "kind": "stackelberg-committer",
        "outcomes": 2,
        "weights": weights,
        "margin": margin,
    }
    model = play_to_end(make_scenario(*cohorts, rounds=200, adversary=adversary))
    return float(model.agents_frame()["leader_surplus"].mean())


def test_the_margin_of_the_length_earns_more_than_the_exact_optimum() -> None:
    assert mean_surplus("auto") > mean_surplus(0) + 0.05


def test_a_run_refuses_a_margin_that_no_action_has() -> None:
    with pytest.raises(UserError, match=r"adversary\.margin = 1\.5: no action has it"):
        mean_surplus(1.5)
