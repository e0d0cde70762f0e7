"""Outcomes on a finite support: exact while few, honest about the error afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.exploitability import swap_regret_of
from regretless.market.exploitability.outcome_bins import OutcomeBins
from regretless.market.losses import Linear, Loss, PowerOfSum, SeparablePower
from regretless.market.regret.definitions import swap_regret

CHECKED = settings(deadline=None, max_examples=25, derandomize=True)
SIZE = (3, 4)


def filled(outcomes: Array, seed: int = 0, *, most: int = 64) -> tuple[OutcomeBins, Array]:
    """Bins after these outcomes (T, d), and what was played (T, K, A)."""
    rng = np.random.default_rng(seed)
    bins = OutcomeBins(*SIZE, outcomes.shape[1], most=most)
    log = rng.dirichlet(np.ones(SIZE[1]), size=(len(outcomes), SIZE[0]))
    for play, outcome in zip(log, outcomes, strict=True):
        bins.add(play, outcome)
    return bins, log


def stacks(dimension: int) -> list[Loss]:
    rng = np.random.default_rng(7)
    weights = rng.random((3, 4, dimension))
    return [
        Linear(weights, rng.random((3, 4))).normalised(),
        SeparablePower(weights, np.array(2.0), centre=rng.random((3, 4, dimension))).normalised(),
        PowerOfSum(weights, np.array(2.0)).normalised(),
    ]


def place_of(bins: OutcomeBins, outcomes: Array) -> NDArray[np.intp]:
    """Point of each outcome, found from the grid alone."""
    cells = np.floor(np.minimum(outcomes, 1 - 1e-12) * 2**bins.halvings).astype(np.int64)
    order = [np.frombuffer(key, np.int64).tolist() for key in bins._places]
    return np.array([order.index(cell) for cell in cells.tolist()])


def check_joints(bins: OutcomeBins, log: Array, place: Array) -> None:
    expected = np.zeros((*SIZE, len(bins.points)))
    for play, i in zip(log, place, strict=True):
        expected[:, :, i] += play / len(place)
    assert bins.joints() == pytest.approx(expected)
    assert bins.shares == pytest.approx(np.bincount(place) / len(place))


def check_regrets(bins: OutcomeBins, log: Array, outcomes: Array, error: Array, loss: Loss) -> None:
    tables = np.moveaxis(loss.losses(bins.points), 0, -2)
    for k in range(3):
        direct = swap_regret(loss.losses(outcomes)[:, k], log[:, k])
        quantised = swap_regret_of(bins.joints()[k].T, tables[k])
        assert abs(direct - quantised) <= 2 * error[k] + 1e-12


def test_few_outcomes_are_exact() -> None:
    rng = np.random.default_rng(1)
    support = rng.random((64, 3))
    index = np.concatenate([np.arange(64), rng.integers(64, size=300)])
    bins, log = filled(support[index])
    assert bins.exact
    assert (bins.points == support).all()
    check_joints(bins, log, index)
    for loss in stacks(3):
        assert (bins.error(loss) == 0).all()
        check_regrets(bins, log, support[index], np.zeros(3), loss)


@given(dimension=st.integers(1, 4), most=st.integers(1, 64), seed=st.integers(0, 9))
@CHECKED
def test_many_outcomes_fill_at_most_so_many_cells(dimension: int, most: int, seed: int) -> None:
    outcomes = np.random.default_rng(seed).random((150, dimension))
    bins, log = filled(outcomes, seed, most=most)
    assert not bins.exact
    assert 1 <= len(bins.points) <= most
    place = place_of(bins, outcomes)
    for i, point in enumerate(bins.points):
        assert point == pytest.approx(outcomes[place == i].mean(0))
    check_joints(bins, log, place)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_error_is_bounded(dimension: int) -> None:
    outcomes = np.random.default_rng(2).random((400, dimension))
    bins, log = filled(outcomes)
    place = place_of(bins, outcomes)
    for loss in stacks(dimension):
        moved = np.abs(loss.losses(outcomes) - loss.losses(bins.points[place]))
        error = moved.max(-1).mean(0)
        bound = bins.error(loss)
        assert (error <= bound + 1e-12).all()
        widest = 0.5 ** bins.halvings.min() if bins.halvings is not None else 0.0
        assert (bound <= loss.lipschitz() * widest + 1e-12).all()
        check_regrets(bins, log, outcomes, error, loss)
