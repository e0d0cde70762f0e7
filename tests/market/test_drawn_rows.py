"""The one sampler: an index from weights and a uniform number."""

from __future__ import annotations

import numpy as np

from regretless.market.core.arrays import draw_index, draw_rows

BELOW_ONE = np.nextafter(1.0, 0.0)


def test_draws_follow_the_inverse_distribution_function() -> None:
    rng = np.random.default_rng(0)
    weights, row_of = rng.dirichlet(np.ones(5), 7), rng.integers(0, 7, 1000)
    uniforms = rng.random(1000)
    expected = [
        np.searchsorted(np.cumsum(weights[row]), u, side="right")
        for row, u in zip(row_of, uniforms, strict=True)
    ]
    assert draw_rows(weights, uniforms, row_of).tolist() == expected


def test_a_number_on_a_boundary_belongs_to_the_next_index() -> None:
    assert draw_rows(np.array([[0.25, 0.75]] * 2), np.array([0.25, 0.0])).tolist() == [1, 0]


def test_rounding_never_draws_a_weight_of_zero() -> None:
    rng = np.random.default_rng(1)
    for size in (3, 10, 100):
        weights = np.append(rng.dirichlet(np.ones(size), 500) * (1 - 1e-9), np.zeros((500, 1)), 1)
        assert (draw_rows(weights, np.full(500, BELOW_ONE)) < size).all()
        assert (draw_rows(weights[:, ::-1], np.zeros(500)) > 0).all()


def test_one_index_takes_one_number_of_the_stream() -> None:
    weights, first, second = np.array([0.1, 0.2, 0.7]), *(np.random.default_rng(2) for _ in "ab")
    drawn = [draw_index(weights, first) for _ in range(50)]
    assert drawn == draw_rows(np.tile(weights, (50, 1)), second.random(50)).tolist()
