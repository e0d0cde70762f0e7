"""Outcomes on a finite support: exact while few, honest about the error afterwards."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability import swap_regret_of
from regretless.market.exploitability.outcome_bins import OutcomeBins
from regretless.market.losses import Linear, PowerOfSum, SeparablePower
from regretless.market.regret.definitions import swap_regret

SIZE = (3, 4)


def cells_of(outcomes: Array, halvings: Indices) -> Any:
    return np.minimum(outcomes * 2**halvings, 2**halvings - 1).astype(int).tolist()


def checked(outcomes: Array, index: Array | None = None, *, most: int = 64) -> OutcomeBins:
    """Fill bins with outcomes (T, d), which are at these points, else in the finest of grids."""
    rng, rounds = np.random.default_rng(7), len(outcomes)
    bins = OutcomeBins(*SIZE, outcomes.shape[1], most=most)
    log = rng.dirichlet(np.ones(SIZE[1]), size=(rounds, SIZE[0]))
    for play, outcome in zip(log, outcomes, strict=True):
        bins.add(play, outcome)
    widest = 0.0
    if index is None:
        cells, finer = cells_of(outcomes, bins.halvings), bins.halvings.copy()
        order = [np.frombuffer(key, np.int64).tolist() for key in bins._places]
        index, widest = np.array([order.index(cell) for cell in cells]), 0.5**bins.halvings
        finer[finer.argmin()] += 1  # the last coordinate whose intervals were doubled
        assert len({*map(tuple, cells_of(outcomes, finer))}) > most
    means = [outcomes[index == i].mean(0) for i in range(len(bins.points))]
    assert bins.points == pytest.approx(np.array(means))
    expected = np.zeros((*SIZE, len(bins.points)))
    for play, i in zip(log, index, strict=True):
        expected[:, :, i] += play / rounds
    assert bins.joints() == pytest.approx(expected)
    assert bins.shares == pytest.approx(np.bincount(index) / rounds)
    weights, centre = rng.random((2, *SIZE, outcomes.shape[1]))
    for loss in (
        Linear(weights, rng.random(SIZE)).normalised(),
        SeparablePower(weights, np.array(2.0), centre=centre).normalised(),
        PowerOfSum(weights, np.array(2.0)).normalised(),
    ):
        bound, tables = bins.error(loss), np.moveaxis(loss.losses(bins.points), 0, -2)
        lost = loss.losses(outcomes)
        moved = np.abs(lost - loss.losses(bins.points[index])).max(-1).mean(0)
        assert (moved <= bound + 1e-12).all()
        assert (bound <= loss.lipschitz() * np.max(widest) + 1e-12).all()
        for k in range(SIZE[0]):
            quantised = swap_regret_of(bins.joints()[k].T, tables[k])
            assert abs(swap_regret(lost[:, k], log[:, k]) - quantised) <= 2 * moved[k] + 1e-12
    return bins


def test_few_outcomes_are_exact() -> None:
    rng = np.random.default_rng(1)
    support, index = rng.random((64, 3)), np.concatenate([range(64), rng.integers(64, size=300)])
    bins = checked(support[index], index)
    assert bins.exact
    assert (bins.points == support).all()


@given(dimension=st.integers(1, 4), most=st.integers(1, 64), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_many_outcomes_fill_at_most_so_many_cells(dimension: int, most: int, seed: int) -> None:
    outcomes = np.random.default_rng(seed).random((150, dimension)) ** 8  # near one end
    outcomes = 1 - outcomes if seed % 2 else outcomes
    outcomes[0] = 1.0
    bins = checked(outcomes, most=most)
    assert not bins.exact
    assert 1 <= len(bins.points) <= most
