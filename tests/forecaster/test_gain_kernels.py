"""The kernels of scalar events beside the same formulas in NumPy."""

import numpy as np
import pytest

from regretless.forecaster.events import decision_events, loss_events
from regretless.forecaster.unbiased import surprise_of
from regretless.market.core.randomness import stream
from regretless.market.numerics.storage import without_unused_numbers

LOSSES = 5
ACTIONS = 3
MODELS = 2
COORDINATES = 4
COMPARATORS = ACTIONS + MODELS


def gains_by_definition(
    value: np.ndarray,
    suggested: np.ndarray,
    scale: np.ndarray,
    *,
    chance: np.ndarray,
    realised_losses: np.ndarray,
    trusted: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return gains and margins (K, A, C); gains are cut to [-q, regret] while trusted."""
    gain = value - np.einsum("kaa->ka", value)[:, :, None]
    regret = chance[:, :, None] * (realised_losses[:, :, None] - realised_losses[:, None, :])
    if trusted:
        gain = np.maximum(np.minimum(gain, regret), -chance[:, :, None] * scale[:, None, None])
    of_comparators = []
    for of_actions in (gain, gain - regret):
        scaled = of_actions / scale[:, None, None]
        of_suggestions = np.take_along_axis(scaled, suggested[:, None, :], 2)
        of_comparators.append(np.concatenate([scaled, of_suggestions], axis=2))
    return of_comparators[0], of_comparators[1]


@pytest.mark.parametrize("trusted", [False, True])
def test_gains_and_margins_of_a_round_are_those_of_the_formula(*, trusted: bool) -> None:
    rng = stream(5, "gains")
    bias = rng.normal(size=(LOSSES, ACTIONS, COORDINATES))
    coefficients = rng.normal(size=(LOSSES, ACTIONS, COORDINATES))
    coefficients[:, :, 0] = 0.0  # no loss depends on the first number, and the last one on its own
    coefficients[-1, :, 1:-1] = 0.0
    numbers, coefficients_of_numbers = without_unused_numbers(coefficients)
    suggested = rng.integers(ACTIONS, size=(LOSSES, MODELS))
    scale = rng.uniform(0.5, 2.0, size=LOSSES)
    chance = rng.dirichlet(np.ones(ACTIONS), size=LOSSES)
    chance[0] = np.arange(ACTIONS) == 1  # a best response
    bias[0, chance[0] == 0.0] = 0.0  # who does not play has no bias
    realised_losses = rng.random((LOSSES, ACTIONS))
    rows = np.flatnonzero(chance)
    gain = np.empty((len(rows), COMPARATORS))
    margin = np.empty_like(gain)

    loss_events._write_gains(
        rows,
        bias.reshape(-1, COORDINATES),
        numbers,
        coefficients_of_numbers,
        suggested,
        scale,
        trusted,
        chance.ravel(),
        realised_losses.ravel(),
        gain,
        margin,
    )

    expected_gain, expected_margin = gains_by_definition(
        np.einsum("kai,kbi->kab", bias, coefficients),
        suggested,
        scale,
        chance=chance,
        realised_losses=realised_losses,
        trusted=trusted,
    )
    assert gain == pytest.approx(expected_gain.reshape(-1, COMPARATORS)[rows], abs=1e-12)
    assert margin == pytest.approx(expected_margin.reshape(-1, COMPARATORS)[rows], abs=1e-12)


def test_numbers_that_a_loss_does_not_depend_on_are_left_out() -> None:
    of_rain = [[0.5, 0.0, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0]]
    of_wind = [[0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 3.0]]

    numbers, weights = without_unused_numbers(np.array([of_rain, of_wind]))

    assert numbers.tolist() == [[0, 2], [0, 3]]
    assert weights.tolist() == [[[0.5, 0.25], [0.0, 1.0]], [[0.0, 2.0], [0.0, 3.0]]]


@pytest.mark.parametrize("squared", [False, True])
def test_a_round_is_added_to_every_sum(*, squared: bool) -> None:
    rng = stream(6, "sums of gains")
    gain = rng.normal(size=(LOSSES, ACTIONS, COMPARATORS))
    chance = rng.dirichlet(np.ones(ACTIONS), size=LOSSES)
    margin = rng.random(gain.shape)
    chance[0, 0] = 0.0
    gain[0, 0] = 0.0  # of an action that is not played
    margin[0, 0] = 0.0
    sums = rng.random((5, LOSSES, ACTIONS, COMPARATORS))
    gains_before, margins_before, squares_before, played_squares_before = sums[:4].copy()
    gains, margins, squares, played_squares, sizes = sums
    sizes_before = sizes.copy()

    rows = np.flatnonzero(chance)
    gain_of_rows = gain.reshape(-1, COMPARATORS)[rows]
    margin_of_rows = margin.reshape(-1, COMPARATORS)[rows]

    growth = loss_events._add_gains(
        rows,
        gain_of_rows,
        margin_of_rows,
        chance.ravel(),
        squared,
        True,  # noqa: FBT003 - compiled
        gains,
        margins,
        squares if squared else sizes,
        squares,
        played_squares,
    )

    assert growth == pytest.approx(np.maximum(gain.max(2), 0.0).sum(1).max(), abs=1e-15)
    assert np.array_equal(margins, margins_before + margin)
    divisor = np.where(chance > 0, chance, 1.0)[:, :, None]
    assert np.array_equal(gains, gains_before + gain)
    assert np.array_equal(sizes, sizes_before + (0.0 if squared else np.abs(gain)))
    assert np.array_equal(squares, squares_before + gain**2)
    assert np.array_equal(played_squares, played_squares_before + gain**2 / divisor)


@pytest.mark.parametrize("games_have_begun", [False, True])
def test_a_round_is_added_to_the_sums_of_assignments(*, games_have_begun: bool) -> None:
    rng = stream(8, "sums of assignments")
    gain = rng.normal(size=(LOSSES, ACTIONS, COMPARATORS))
    margin = rng.random(gain.shape)
    chance = rng.dirichlet(np.ones(ACTIONS), size=LOSSES)
    chance[0, 0] = 0.0
    gain[0, 0] = 0.0  # of an action that is not played
    margin[0, 0] = 0.0
    sums = rng.random((4, LOSSES, ACTIONS, COMPARATORS))
    expected = sums.copy()
    if games_have_begun:
        expected[0] += gain
        expected[1] += gain**2 / np.where(chance > 0, chance, 1.0)[:, :, None]
    else:
        expected[2] += gain
    expected[3] += margin

    rows = np.flatnonzero(chance)
    gain_of_rows = gain.reshape(-1, COMPARATORS)[rows]
    margin_of_rows = margin.reshape(-1, COMPARATORS)[rows]

    loss_events._add_to_assignments(
        rows, gain_of_rows, margin_of_rows, chance.ravel(), games_have_begun, sums
    )

    assert np.array_equal(sums, expected)


def test_the_greatest_sum_is_over_losses_of_the_best_comparators() -> None:
    gains = stream(7, "greatest sum").normal(size=(LOSSES, ACTIONS, COMPARATORS))
    gains[:, np.arange(ACTIONS), np.arange(ACTIONS)] = -np.inf
    expected = np.maximum(gains.max(2), 0.0).sum(1).max()
    assert loss_events._greatest_sum(gains) == pytest.approx(expected, abs=1e-15)


def test_a_surprise_is_what_losses_exceed_expectations_by_over_what_they_could_fall_short() -> None:
    rng = stream(9, "surprise")
    coefficients = rng.normal(size=(LOSSES * ACTIONS, 4))
    play_chance = rng.random(len(coefficients))
    play_chance[3] = 0.0
    prediction = rng.random(4)
    statistics = rng.random(4)
    bias = play_chance[:, None] * (prediction - statistics)

    surprise = surprise_of(play_chance, bias, coefficients, statistics)

    slopes = play_chance @ coefficients
    excess = slopes @ (statistics - prediction)
    shortfall = slopes @ prediction - np.minimum(slopes, 0.0).sum()  # at the best outcome
    assert surprise == pytest.approx(excess / shortfall, abs=1e-12)


def test_losses_that_cannot_fall_short_of_expectations_do_not_surprise() -> None:
    nobody_plays = np.zeros(3)
    assert surprise_of(nobody_plays, np.zeros((3, 2)), np.ones((3, 2)), np.full(2, 0.5)) == 0.0


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("first_row", [0, 2])
@pytest.mark.parametrize("rows", [1, 6])
def test_a_round_is_added_to_the_sums_of_coordinates(
    rows: int, first_row: int, *, squared: bool
) -> None:
    """The events have some of the rows of the game's table, from the first on."""
    rng = stream(10, "sums of coordinates")
    chance_in_table = rng.dirichlet(np.ones(first_row + rows + 1))
    chance_in_table[first_row] = 0.0  # its bias is not read
    bias_in_table = rng.normal(size=(first_row + rows + 1, COORDINATES))
    statistics = rng.random(COORDINATES)
    sums = rng.random((4, rows, COORDINATES))
    occupancy = rng.random(rows)
    chance = chance_in_table[first_row : first_row + rows]
    bias_of_round = bias_in_table[first_row : first_row + rows]
    happens = chance[:, np.newaxis] > 0.0
    gain = np.where(happens, bias_of_round, 0.0)
    sizes = gain**2 if squared else np.abs(gain)
    predicted = np.where(happens, gain + chance[:, np.newaxis] * statistics, 0.0)
    expected = sums + np.array([gain, sizes, gain**2, predicted])
    expected_occupancy = occupancy + chance

    bias, variation, squares, predicted_sums = sums
    decision_events.add_round(
        bias, variation, squares, occupancy, predicted_sums, bias_in_table, chance_in_table,
        first_row, statistics, squared,
    )  # fmt: skip

    assert sums == pytest.approx(expected, abs=1e-15)
    assert np.array_equal(occupancy, expected_occupancy)


@pytest.mark.parametrize("comparators", [[], [1], [2, 0, 2]])
def test_a_greatest_gain_is_coefficients_differences_times_greatest_biases(
    comparators: list[int],
) -> None:
    rng = stream(11, "greatest gains")
    coefficients = rng.normal(size=(LOSSES, ACTIONS, COORDINATES))
    greatest_bias = rng.random((LOSSES, ACTIONS, COORDINATES))
    compared = np.array(comparators, dtype=np.intp)

    gains = decision_events._greatest_gains(coefficients, greatest_bias, compared)

    gaps = np.abs(coefficients[:, compared][:, np.newaxis] - coefficients[:, :, np.newaxis])
    expected = (gaps * greatest_bias[:, :, np.newaxis]).sum(3)
    assert gains == pytest.approx(expected, abs=1e-14)
