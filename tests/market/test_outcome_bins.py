"""Outcomes on a finite support: exact while few, honest about the error afterwards."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability import swap_regret_of
from regretless.market.exploitability.outcome_bins import MAX_HALVINGS, OutcomeBins
from regretless.market.losses import Linear, PowerOfSum, SeparablePower
from regretless.market.regret.definitions import swap_regret

SIZE = (3, 4)


def cells_of(outcomes: Array, halvings: Indices) -> Any:
    return np.minimum(outcomes * 2**halvings, 2**halvings - 1).astype(int).tolist()


def checked(outcomes: Array, index: Array | None = None, *, most: int = 64) -> OutcomeBins:
    """Fill bins with outcomes (T, d), which are at these points, else in the finest of grids."""
    rng, rounds = np.random.default_rng(7), len(outcomes)
    bins = OutcomeBins(*SIZE, outcomes.shape[1], max_points=most)
    log = rng.dirichlet(np.ones(SIZE[1]), size=(rounds, SIZE[0]))
    for play, outcome in zip(log, outcomes, strict=True):
        bins.add(play, outcome)
    widest = 0.0
    if index is None:
        cells, finer = cells_of(outcomes, bins.halvings), bins.halvings.copy()
        order = cells_of(bins._table("low"), bins.halvings)
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


def coarsest_needed(outcomes: Array, most: int) -> Indices:
    """Double intervals one after the other, the finest first, until few enough cells are in use."""
    dimension = outcomes.shape[1]
    halvings = np.full(dimension, MAX_HALVINGS)
    halvings[-1] -= 1
    while len(np.unique(cells_of(outcomes, halvings), axis=0)) > most:
        finest_from_the_end = int(halvings[::-1].argmax())
        halvings[dimension - 1 - finest_from_the_end] -= 1
    return halvings


@pytest.mark.parametrize("dimension", [1, 3, 9])
def test_grid_is_the_finest_that_leaves_few_enough_cells(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    near_the_ends = rng.choice([0.0, 1e-5, 1 - 1e-5, 1.0], size=(60, dimension))
    outcomes = np.clip(near_the_ends + rng.normal(0, 1e-3, (60, dimension)), 0.0, 1.0)
    bins = OutcomeBins(1, 2, dimension, max_points=8)
    for outcome in outcomes:
        bins.add(np.array([[0.5, 0.5]]), outcome)
    assert bins.halvings is not None
    assert bins.halvings.tolist() == coarsest_needed(outcomes, most=8).tolist()


def test_a_coarse_grid_goes_on_as_if_it_had_never_been_stopped() -> None:
    rng = np.random.default_rng(3)
    outcomes = rng.random((120, 2))
    strategies = rng.dirichlet(np.ones(4), size=(120, 3))
    whole = OutcomeBins(*SIZE, 2, max_points=16)
    stopped = OutcomeBins(*SIZE, 2, max_points=16)
    for strategy, outcome in zip(strategies[:60], outcomes[:60], strict=True):
        whole.add(strategy, outcome)
        stopped.add(strategy, outcome)
    resumed = OutcomeBins(*SIZE, 2, max_points=16)
    resumed.restore(stopped.state())
    for strategy, outcome in zip(strategies[60:], outcomes[60:], strict=True):
        whole.add(strategy, outcome)
        resumed.add(strategy, outcome)
    assert (resumed.counts() == whole.counts()).all()
    assert (resumed.points == whole.points).all()


def test_a_damaged_grid_is_refused() -> None:
    bins = OutcomeBins(*SIZE, 2, max_points=4)
    for outcome in np.random.default_rng(5).random((20, 2)):
        bins.add(np.full(SIZE, 0.25), outcome)
    damaged = bins.state() | {"halvings": np.array([9, 2])}
    with pytest.raises(ValueError, match="no grid"):
        OutcomeBins(*SIZE, 2, max_points=4).restore(damaged)
