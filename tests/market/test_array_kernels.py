"""The kernels of small arrays beside the same formulas in NumPy."""

import numpy as np
import pytest

from regretless.market.core import arrays
from regretless.market.core.randomness import stream
from regretless.market.records import one_hot

each_seed = pytest.mark.parametrize("seed", [1, 2, 3])


@pytest.mark.parametrize(
    "numbers", [[], [0.0], [1.0, 0.0], [-0.0], [0.5, -1e-300], [np.nan], [0.5, 1.0 + 1e-15]]
)
def test_numbers_of_the_unit_interval_are_told_from_others(numbers: list[float]) -> None:
    array = np.array(numbers)

    are_within = arrays._are_within_unit_interval(array)

    assert are_within == ((array >= 0.0) & (array <= 1.0)).all()


@each_seed
@pytest.mark.parametrize("n_indices", [1, 2, 5])
def test_draws_are_those_of_the_inverse_distribution_function(seed: int, n_indices: int) -> None:
    """No index of weight 0 is drawn, by the uniform number 0 either."""
    rng = stream(seed, "draws of rows")
    weights = rng.random((4, n_indices)) * rng.integers(0, 2, (4, n_indices))
    weights[:, rng.integers(n_indices)] = 0.3
    uniforms = np.append(rng.random(20), [0.0, 1.0 - 2.0**-53])
    row_of = rng.integers(0, 4, len(uniforms))

    drawn = arrays.draw_rows(weights, uniforms, row_of)

    cumulative = np.cumsum(weights, axis=1)[row_of]
    exceeds = cumulative > uniforms[:, np.newaxis] * cumulative[:, -1:]
    exceeds[:, -1] = True  # where rounding leaves no other
    assert np.array_equal(drawn, exceeds.argmax(1))
    assert (weights[row_of, drawn][:-1] > 0.0).all()
    for uniform, row, index in zip(uniforms, row_of, drawn, strict=True):
        assert arrays._index_at_share(weights[row], uniform) == index


@pytest.mark.parametrize("actions", [[], [0], [2, -1, 0, 1], [3, 2]])
def test_a_row_is_certain_of_its_action_if_it_has_that_one(actions: list[int]) -> None:
    chosen = np.array(actions, dtype=np.intp)

    probabilities = one_hot(chosen, 3)

    assert np.array_equal(probabilities, chosen[:, np.newaxis] == np.arange(3))
