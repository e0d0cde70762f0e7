"""The kernels of bases beside the same formulas in NumPy."""

import numpy as np
import pytest

from regretless.forecaster.bases import leontief
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
