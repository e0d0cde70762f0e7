"""The kernels of bases beside the same formulas in NumPy."""

import numpy as np
import pytest

from regretless.forecaster.bases import convex, leontief
from regretless.forecaster.bases.convex import interpolated
from regretless.forecaster.bases.leontief import MReLUCover
from regretless.market.core.randomness import stream

BOTTOM = 1
TOP = 5


@pytest.fixture
def cover() -> MReLUCover:
    return MReLUCover(dimension=2, bottom=BOTTOM, top=TOP, stride=2)


def test_coarse_functions_are_mrelus_stretched_to_the_unit_interval(cover: MReLUCover) -> None:
    points = leontief.lattice_points(BOTTOM, TOP, 2)

    functions = cover.transform(points)

    mrelus = leontief.mrelu(points[:, np.newaxis], cover.coarse_thresholds)
    expected = (mrelus - cover.coarse_least) / cover.coarse_range
    assert np.array_equal(functions[:, : len(cover.coarse_thresholds)], expected)


def test_the_other_functions_say_in_which_dyadic_boxes_a_point_is(cover: MReLUCover) -> None:
    points = leontief.lattice_points(BOTTOM, TOP, 2)
    boxes = cover._boxes

    functions = cover.transform(points)

    expected = []
    for axis, log2_sides, cell_indices in zip(*boxes, strict=True):
        coordinates = leontief.turned_coordinates(points, int(axis), BOTTOM, TOP)
        expected.append((coordinates >> log2_sides == cell_indices).all(1))
    assert np.array_equal(functions[:, len(cover.coarse_thresholds) :], np.transpose(expected))


def test_rows_of_a_table_are_interpolated_coordinate_by_coordinate() -> None:
    table = stream(1, "table").random((5, 3))
    points = np.array([[0.0, 0.1], [0.5, 1.0]])

    rows = interpolated(table, points)

    grid = np.linspace(0, 1, len(table))
    for column in range(3):
        expected = np.interp(points, grid, table[:, column])
        assert rows[..., column] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_box_holds_the_lattice_points_whose_turned_coordinates_are_in_its_intervals(
    dimension: int,
) -> None:
    rng = stream(2, "boxes")
    n_boxes = 40
    points = rng.integers(BOTTOM, TOP + 1, (25, dimension))
    axes = rng.integers(0, dimension, n_boxes)
    log2_sides = rng.integers(0, 4, (n_boxes, dimension))
    cell_indices = rng.integers(0, 3, (n_boxes, dimension))
    values = np.full((25, n_boxes + 2), 7.0)

    leontief._write_boxes(points, axes, log2_sides, cell_indices, BOTTOM, TOP, values)

    assert (values[:, :2] == 7.0).all()  # columns of the coarse functions
    for box in range(n_boxes):
        coordinates = leontief.turned_coordinates(points, int(axes[box]), BOTTOM, TOP)
        first = cell_indices[box] * 2 ** log2_sides[box]
        end = first + 2 ** log2_sides[box]
        is_inside = ((coordinates >= first) & (coordinates < end)).all(1)
        assert np.array_equal(values[:, 2 + box], is_inside)


@pytest.mark.parametrize("knots", [[], [0.3], [0.2, 0.5, 0.9]])
def test_images_of_a_level_are_itself_and_its_distances_from_knots(knots: list[float]) -> None:
    levels = np.array([0.0, 0.3, 0.41, 1.0])
    inner_knots = np.array(knots)
    greatest = np.maximum(inner_knots, 1 - inner_knots)
    images = np.empty((4, 1 + len(knots)))

    convex._write_distances(levels, inner_knots, greatest, images)

    distances = np.abs(levels[:, np.newaxis] - inner_knots) / greatest
    assert np.array_equal(images, np.column_stack([levels, distances]))
