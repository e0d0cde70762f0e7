"""What a sender who knows can get: the published value, brute force, and what it lies between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.exploitability import persuasion, stackelberg, swap_regret_of

CONVICTED = np.array([[0.0, 1.0], [0.0, 1.0]])
JUDGE = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("guilty", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_the_prosecutor_of_kamenica_and_gentzkow_convicts_twice_as_many_as_are_guilty(
    guilty: float,
) -> None:
    found = persuasion([1 - guilty, guilty], CONVICTED, JUDGE)
    assert found.value == pytest.approx(min(1.0, 2 * guilty))
    assert found.candour == pytest.approx(guilty)
    assert found.silence == float(guilty >= 0.5)


def concave_closure(guilty: float, payoff: Array, loss: Array) -> float:
    """Best split of a prior over two outcomes into two posteriors of a grid."""
    at = np.unique(np.append(np.linspace(0, 1, 401), guilty))
    distributions = np.stack([1 - at, at], axis=1)
    lost = distributions @ loss
    tied = lost <= lost.min(1, keepdims=True) + 1e-12
    worth = np.where(tied, distributions @ payoff, -np.inf).max(1)
    low, high = at[at <= guilty], at[at >= guilty]
    width = high[None, :] - low[:, None]
    share = np.divide(guilty - low[:, None], width, out=np.zeros_like(width), where=width > 0)
    split = (1 - share) * worth[: len(low), None] + share * worth[-len(high) :]
    return float(split.max())


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_concave_closure_of_what_silence_pays(seed: int) -> None:
    rng = stream(seed, "test persuasion")
    payoff, guilty = rng.random((2, 3)), float(rng.random())
    # whole hundredths with slopes that divide 400: where actions tie lies on the grid
    loss = np.stack([np.array([0.0, 0.25, 0.5]), np.array([1.0, 0.5, 0.25])])
    found = persuasion([1 - guilty, guilty], payoff, loss).value
    brute = concave_closure(guilty, payoff, loss)
    assert brute <= found + 1e-9
    assert found <= brute + 0.01


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_no_distribution_that_is_obeyed_pays_more_and_a_leader_gets_no_less(
    seed: int, outcomes: int, actions: int
) -> None:
    rng = stream(seed, "test orders")
    payoff, loss = rng.random((outcomes, actions)), rng.random((outcomes, actions))
    prior = rng.dirichlet(np.ones(outcomes))
    found = persuasion(prior, payoff, loss)
    assert max(found.silence, found.candour) <= found.value + 1e-9
    assert found.value <= stackelberg(payoff, loss).value + 1e-9
    assert found.joint.sum(1) == pytest.approx(prior)
    assert swap_regret_of(found.joint / found.joint.sum(), loss) <= 1e-8
    assert (found.joint * payoff).sum() == pytest.approx(found.value)


@pytest.mark.parametrize("prior", [[0.5], [0.7, 0.7], [1.5, -0.5], [np.nan, 1.0]])
def test_a_prior_that_is_no_distribution_is_refused(prior: list[float]) -> None:
    with pytest.raises(ValueError, match="give 2 numbers from 0 that sum to 1"):
        persuasion(prior, CONVICTED, JUDGE)
