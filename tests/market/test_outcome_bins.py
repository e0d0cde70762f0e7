"""Outcomes on a finite support: exact while few, honest about the error afterwards."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability import swap_regret_of
from regretless.market.exploitability.outcome_bins import MAX_HALVINGS, OutcomeBins, code_bytes
from regretless.market.losses import Linear, Loss, PowerOfSum, SeparablePower
from regretless.market.regret.definitions import swap_regret

SIZE = (3, 4)  # rows and actions


def cells_of(outcomes: Array, halvings: Indices) -> list[tuple[int, ...]]:
    """Return the cell of each outcome (T, d) in a grid that halves each coordinate so often."""
    cells = np.minimum(outcomes * 2**halvings, 2**halvings - 1).astype(int)
    return [tuple(cell) for cell in cells.tolist()]


class FilledBins(NamedTuple):
    """Bins, what was counted in them, and the point of each outcome by the definition."""

    bins: OutcomeBins
    outcomes: Array  # (T, d)
    play: Array  # (T, K, A)
    point_of_round: Indices  # (T,)
    widest_interval: float


def filled(bins: OutcomeBins, outcomes: Array) -> Array:
    """Count outcomes in bins; return the play (T, K, A) that was counted with them."""
    play = np.random.default_rng(7).dirichlet(np.ones(SIZE[1]), size=(len(outcomes), SIZE[0]))
    for strategies, outcome in zip(play, outcomes, strict=True):
        bins.add(strategies, outcome)
    return play


def test_pure_choices_are_counted_as_strategies_that_are_certain() -> None:
    by_choice = OutcomeBins(*SIZE, 1)
    by_strategy = OutcomeBins(*SIZE, 1)
    choices = np.array([2, -1, 0])  # the second row is not there
    strategies = np.array([[0.0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    by_choice.add(np.empty((0, 0)), [0.25], choices=choices)
    by_strategy.add(strategies, [0.25])
    assert np.array_equal(by_choice.counts(), by_strategy.counts())


def bins_of_few_outcomes() -> FilledBins:
    """Fill bins with no more different outcomes than they have room for."""
    rng = np.random.default_rng(1)
    support = rng.random((64, 3))
    point_of_round = np.concatenate([range(64), rng.integers(64, size=300)])
    bins = OutcomeBins(*SIZE, 3, max_points=64)
    outcomes = support[point_of_round]
    play = filled(bins, outcomes)
    return FilledBins(bins, outcomes, play, point_of_round, widest_interval=0.0)


def bins_of_many_outcomes(dimension: int, max_points: int, seed: int) -> FilledBins:
    """Fill bins with more outcomes than they have room for, most of them near one end."""
    outcomes = np.random.default_rng(seed).random((150, dimension)) ** 8
    if seed % 2:
        outcomes = 1 - outcomes
    outcomes[0] = 1.0
    bins = OutcomeBins(*SIZE, dimension, max_points=max_points)
    play = filled(bins, outcomes)
    cell_of_point = cells_of(bins._table("low"), bins.halvings)
    cell_of_round = cells_of(outcomes, bins.halvings)
    point_of_round = [cell_of_point.index(cell) for cell in cell_of_round]
    widest_interval = float(np.max(0.5**bins.halvings))
    return FilledBins(bins, outcomes, play, np.array(point_of_round), widest_interval)


def assert_points_are_mean_outcomes(filling: FilledBins) -> None:
    bins = filling.bins
    for point in range(len(bins.points)):
        outcomes_of_point = filling.outcomes[filling.point_of_round == point]
        assert bins.points[point] == pytest.approx(outcomes_of_point.mean(0)), f"point {point}"


def assert_joints_count_the_play(filling: FilledBins) -> None:
    bins = filling.bins
    rounds = len(filling.outcomes)
    expected = np.zeros((*SIZE, len(bins.points)))
    for strategies, point in zip(filling.play, filling.point_of_round, strict=True):
        expected[:, :, point] += strategies / rounds
    assert bins.joints() == pytest.approx(expected)
    assert bins.shares == pytest.approx(np.bincount(filling.point_of_round) / rounds)


def losses_of_every_form(dimension: int) -> list[Loss]:
    rng = np.random.default_rng(8)
    weights = rng.random((*SIZE, dimension))
    centre = rng.random((*SIZE, dimension))
    return [
        Linear(weights, rng.random(SIZE)).normalised(),
        SeparablePower(weights, np.array(2.0), centre=centre).normalised(),
        PowerOfSum(weights, np.array(2.0)).normalised(),
    ]


def mean_change_of_losses(filling: FilledBins, loss: Loss) -> Array:
    """Return how much the losses (K,) change where outcomes are moved to their points."""
    losses = loss.losses(filling.outcomes)
    losses_at_points = loss.losses(filling.bins.points[filling.point_of_round])
    return np.asarray(np.abs(losses - losses_at_points).max(-1).mean(0))


def assert_error_bounds_the_change_of_losses(filling: FilledBins) -> None:
    for loss in losses_of_every_form(filling.outcomes.shape[1]):
        name = type(loss).__name__
        bound = filling.bins.error(loss)
        assert (mean_change_of_losses(filling, loss) <= bound + 1e-12).all(), name
        assert (bound <= loss.lipschitz() * filling.widest_interval + 1e-12).all(), name


def assert_swap_regret_changes_by_twice_the_losses_at_most(filling: FilledBins) -> None:
    for loss in losses_of_every_form(filling.outcomes.shape[1]):
        losses = loss.losses(filling.outcomes)
        losses_at_points = np.moveaxis(loss.losses(filling.bins.points), 0, -2)
        change_of_losses = mean_change_of_losses(filling, loss)
        for row in range(SIZE[0]):
            exact = swap_regret(losses[:, row], filling.play[:, row])
            joint = filling.bins.joints()[row]
            quantised = swap_regret_of(joint.T, losses_at_points[row])
            assert abs(exact - quantised) <= 2 * change_of_losses[row] + 1e-12


def test_a_code_has_the_first_halvings_of_all_coordinates_first() -> None:
    outcomes = np.random.default_rng(4).random((50, 3))
    outcomes[:2] = [[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]
    highest_bit_first = np.arange(MAX_HALVINGS - 1, -1, -1)[:, None]
    for outcome in outcomes:
        cells = np.minimum(np.floor(outcome * 2**MAX_HALVINGS), 2**MAX_HALVINGS - 1).astype(int)
        bits = (cells >> highest_bit_first) & 1  # by halving and coordinate
        assert code_bytes(outcome).tolist() == np.packbits(bits.ravel()).tolist()


def test_few_outcomes_are_points_of_their_own() -> None:
    filling = bins_of_few_outcomes()
    assert filling.bins.exact
    assert (filling.bins.points == filling.outcomes[:64]).all()


def test_the_distribution_of_few_outcomes_is_exact() -> None:
    filling = bins_of_few_outcomes()
    assert_joints_count_the_play(filling)
    assert_error_bounds_the_change_of_losses(filling)
    assert_swap_regret_changes_by_twice_the_losses_at_most(filling)


DIMENSIONS = st.integers(1, 4)
MAX_POINTS = st.integers(1, 64)
SEEDS = st.integers(0, 9)


@given(DIMENSIONS, MAX_POINTS, SEEDS)
@settings(max_examples=25)
def test_many_outcomes_fill_at_most_so_many_cells(
    dimension: int, max_points: int, seed: int
) -> None:
    bins = bins_of_many_outcomes(dimension, max_points, seed).bins
    assert not bins.exact
    assert 1 <= len(bins.points) <= max_points


@given(DIMENSIONS, MAX_POINTS, SEEDS)
@settings(max_examples=25)
def test_intervals_are_doubled_no_more_than_is_needed(
    dimension: int, max_points: int, seed: int
) -> None:
    filling = bins_of_many_outcomes(dimension, max_points, seed)
    one_step_finer = filling.bins.halvings.copy()
    one_step_finer[one_step_finer.argmin()] += 1  # whose intervals were doubled last
    cells_in_use = {*cells_of(filling.outcomes, one_step_finer)}
    assert len(cells_in_use) > max_points


@given(DIMENSIONS, MAX_POINTS, SEEDS)
@settings(max_examples=25)
def test_a_cell_stands_for_the_mean_of_its_outcomes_and_counts_their_play(
    dimension: int, max_points: int, seed: int
) -> None:
    filling = bins_of_many_outcomes(dimension, max_points, seed)
    assert_points_are_mean_outcomes(filling)
    assert_joints_count_the_play(filling)


@given(DIMENSIONS, MAX_POINTS, SEEDS)
@settings(max_examples=25)
def test_the_error_of_a_grid_bounds_what_it_changes(
    dimension: int, max_points: int, seed: int
) -> None:
    filling = bins_of_many_outcomes(dimension, max_points, seed)
    assert_error_bounds_the_change_of_losses(filling)
    assert_swap_regret_changes_by_twice_the_losses_at_most(filling)


def coarsest_needed(outcomes: Array, max_points: int) -> Indices:
    """Double intervals one after the other, the finest first, until few enough cells are in use."""
    dimension = outcomes.shape[1]
    halvings = np.full(dimension, MAX_HALVINGS)
    halvings[-1] -= 1
    while len({*cells_of(outcomes, halvings)}) > max_points:
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
    assert bins.halvings.tolist() == coarsest_needed(outcomes, max_points=8).tolist()


def test_a_coarse_grid_goes_on_as_if_it_had_never_been_stopped() -> None:
    rng = np.random.default_rng(3)
    outcomes = rng.random((120, 2))
    strategies = rng.dirichlet(np.ones(4), size=(120, 3))
    undisturbed_bins = OutcomeBins(*SIZE, 2, max_points=16)
    stopped = OutcomeBins(*SIZE, 2, max_points=16)
    for strategy, outcome in zip(strategies[:60], outcomes[:60], strict=True):
        undisturbed_bins.add(strategy, outcome)
        stopped.add(strategy, outcome)
    resumed = OutcomeBins(*SIZE, 2, max_points=16)
    resumed.restore(stopped.state())
    for strategy, outcome in zip(strategies[60:], outcomes[60:], strict=True):
        undisturbed_bins.add(strategy, outcome)
        resumed.add(strategy, outcome)
    assert (resumed.counts() == undisturbed_bins.counts()).all()
    assert (resumed.points == undisturbed_bins.points).all()


def test_a_damaged_grid_is_refused() -> None:
    bins = OutcomeBins(*SIZE, 2, max_points=4)
    for outcome in np.random.default_rng(5).random((20, 2)):
        bins.add(np.full(SIZE, 0.25), outcome)
    damaged = bins.state() | {"halvings": np.array([9, 2])}
    with pytest.raises(ValueError, match="no grid"):
        OutcomeBins(*SIZE, 2, max_points=4).restore(damaged)
