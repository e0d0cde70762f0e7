"""The kernels of a round's game beside the same formulas in NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from regretless.forecaster.events import loss_table
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, response_scratch
from regretless.forecaster.events.side_by_side import LossesSideBySide
from regretless.forecaster.minimax import cube, game, image
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

SIZE = 3  # numbers of a prediction

each_seed = pytest.mark.parametrize("seed", [1, 2, 3])
each_hull = pytest.mark.parametrize("simplex", [False, True])


# Offset and weights of two losses of seven actions, with nine numbers.
TWO_LOSSES = (np.arange(14.0).reshape(2, 7) % 3 / 8, np.arange(126.0).reshape(2, 7, 9) % 5 / 8)


def mixed_table(rng: np.random.Generator) -> LossTable:
    """Return losses whose owners respond best, best up to ties, and smoothly, of 1 to 5 actions.

    Numbers are coarse, so that some losses are equal.
    """

    def losses(count: int, actions: int) -> tuple[Array, Array]:
        offset = rng.integers(0, 3, (count, actions)) / 8
        weights = rng.integers(-2, 3, (count, actions, SIZE)) / 8
        return offset, weights

    return LossTable(
        [
            ProtectedLosses(*losses(3, 4)),
            ProtectedLosses(*losses(2, 5), tie=0.13),
            ProtectedLosses(*losses(2, 2), eta=3.0),
            ProtectedLosses(*losses(1, 1)),
        ]
    )


def responses_by_definition(rows: LossTable, point: Array) -> Array:
    """Return with which chance each row (R,) is played at a prediction."""
    eta, tie = rows.arrays[3:]
    losses = rows.offset + rows.weights @ point
    responses = np.zeros(len(losses))
    for k, (first, end) in enumerate(pairwise(rows.start)):
        losses_of_loss = losses[first:end]
        if np.isinf(eta[k]):
            is_near_least = losses_of_loss <= losses_of_loss.min() + tie[k]
            responses[first + is_near_least.argmax()] = 1.0
        else:
            powers = np.exp(-eta[k] * (losses_of_loss - losses_of_loss.min()))
            responses[first:end] = powers / powers.sum()
    return responses


@each_seed
def test_rows_are_played_as_their_owners_respond(seed: int) -> None:
    rng = stream(seed, "responses")
    rows = mixed_table(rng)
    point = rng.integers(0, 9, SIZE) / 8
    scratch = response_scratch(rows.arrays)

    loss_table.write_responses(*rows.arrays, point, *scratch)

    _, play_chance, played_rows = scratch
    expected = responses_by_definition(rows, point)
    is_played = np.zeros(len(expected), dtype=np.bool_)
    for first, end in played_rows:
        assert play_chance[first:end] == pytest.approx(expected[first:end], abs=1e-14)
        is_played[first:end] = True
    assert not expected[~is_played].any()


@pytest.mark.parametrize("n_losses", [1, 2, 3, 8, 11])
def test_expected_losses_are_the_same_in_blocks_of_any_width(n_losses: int) -> None:
    """Tables of 4 to 44 rows fill blocks of 8, 16 and 32 lanes, and more than one block."""
    rng = stream(n_losses, "blocks")
    offset = rng.normal(size=(n_losses, 4))
    weights = rng.normal(size=(n_losses, 4, SIZE))
    rows = LossTable([ProtectedLosses(offset, weights, eta=1.5)])
    point = rng.random(SIZE)

    responses = loss_table.responses_at(rows, point)

    expected_losses = offset + weights @ point
    chances = np.exp(-1.5 * expected_losses)
    chances /= chances.sum(axis=1, keepdims=True)
    assert responses == pytest.approx(chances.ravel(), rel=1e-12)


@each_seed
def test_best_responses_to_points_are_the_first_of_least_losses(seed: int) -> None:
    rng = stream(seed, "best responses")
    rows = mixed_table(rng)
    points = rng.integers(0, 9, (6, SIZE)) / 8

    best_actions = rows.best_responses(points)

    losses = rows.offset + points @ rows.weights.T  # (M, R)
    for k, (first, end) in enumerate(pairwise(rows.start)):
        assert np.array_equal(best_actions[k], losses[:, first:end].argmin(1))


@each_seed
@pytest.mark.parametrize("n_losses", [5, 40, 150])
def test_losses_of_several_families_respond_as_if_they_had_all_numbers(
    seed: int, n_losses: int
) -> None:
    """Each loss depends on three of nine numbers; families take turns, and fill several blocks."""
    rng = stream(seed, "families")
    weights = rng.integers(-2, 3, (n_losses, 4, 9)) / 8
    family_of_loss = rng.integers(0, 3, n_losses)
    depends = np.arange(9) // 3 == family_of_loss[:, np.newaxis]  # (K, n)
    weights *= depends[:, np.newaxis]
    offset = rng.integers(0, 3, (n_losses, 4)) / 8
    offset_of_two, weights_of_two = TWO_LOSSES
    points = rng.integers(0, 9, (6, 9)) / 8

    best_actions = LossesSideBySide([(offset, weights), TWO_LOSSES]).best_actions(points)

    expected = (offset + np.einsum("mi,kai->mka", points, weights)).argmin(2)
    expected_of_two = (offset_of_two + np.einsum("mi,kai->mka", points, weights_of_two)).argmin(2)
    assert np.array_equal(best_actions, np.concatenate([expected.T, expected_of_two.T]))


@each_seed
@pytest.mark.parametrize("mass", [[1.0], [0.25, 0.75], [0.5, 0.0, 0.5]])
def test_play_and_bias_are_expectations_over_the_mixture(seed: int, mass: list[float]) -> None:
    rng = stream(seed, "bias")
    rows = mixed_table(rng)
    points = rng.integers(0, 9, (len(mass), SIZE)) / 8
    statistics = rng.random(SIZE)

    played = loss_table.played_of(rows, points, np.array(mass), statistics)

    responses = np.array([responses_by_definition(rows, point) for point in points])  # (m, R)
    expected_bias = np.einsum("j,jr,jri->ri", mass, responses, (points - statistics)[:, None, :])
    expected_losses = rows.offset + rows.weights @ statistics
    assert played.play_chance == pytest.approx(mass @ responses, abs=1e-14)
    assert played.bias == pytest.approx(expected_bias, abs=1e-14)
    assert played.realised_losses == pytest.approx(expected_losses, abs=1e-14)


@each_seed
def test_the_field_at_a_point_is_the_weights_of_what_is_played_there(seed: int) -> None:
    rng = stream(seed, "field")
    rows = mixed_table(rng)
    point = rng.integers(0, 9, SIZE) / 8
    signed_weights = rng.normal(size=rows.shape)
    field = np.full(SIZE, np.nan)

    game.write_field(*rows.arrays, signed_weights, point, *response_scratch(rows.arrays), field)

    expected = responses_by_definition(rows, point) @ signed_weights
    assert field == pytest.approx(expected, abs=1e-13)


def corners(size: int, *, simplex: bool) -> Array:
    """Return the corners of the simplex (n, n) or of the box (2^n, n)."""
    if simplex:
        return np.eye(size)
    return np.indices((2,) * size).reshape(size, -1).T.astype(np.float64)


@each_hull
@each_seed
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 3), (4, 9)])
def test_the_worst_case_of_a_mixture_is_its_greatest_payment_at_a_corner(
    seed: int, shape: tuple[int, int], *, simplex: bool
) -> None:
    rng = stream(seed, "worst case")
    points = rng.random(shape)
    fields = rng.normal(size=shape)
    mass = rng.dirichlet(np.ones(len(points)))

    certificate = cube.certificate_of(mass, points, fields, simplex)

    payments = (fields * points).sum(1)
    at_corners = [
        mass @ (payments - fields @ corner) for corner in corners(shape[1], simplex=simplex)
    ]
    assert cube.payments_of(points, fields) == pytest.approx(payments, abs=1e-14)
    assert certificate == pytest.approx(max(at_corners), abs=1e-13)


@each_hull
@each_seed
def test_atoms_of_points_are_a_mixture_that_no_other_beats_by_much(
    seed: int, *, simplex: bool
) -> None:
    """Beside the mixtures of two of the points, tried one by one."""
    rng = stream(seed, "atoms")
    points = rng.dirichlet(np.ones(SIZE), 6)
    fields = rng.normal(size=(6, SIZE))

    worst_case, answer, atoms, mass, certificate = cube.atoms_of_points(points, fields, simplex)

    assert mass.sum() == pytest.approx(1.0, abs=1e-12)
    assert all((atom == points).all(1).any() for atom in atoms)
    assert certificate == pytest.approx(worst_case, abs=1e-7)
    assert ((answer >= 0.0) & (answer <= 1.0)).all()
    for first in range(6):
        for second in range(6):
            for share in np.linspace(0.0, 1.0, 11):
                other = np.zeros(6)
                other[first] += share
                other[second] += 1.0 - share
                case = cube.certificate_of(other, points, fields, simplex)
                assert worst_case <= case + 1e-12


@each_seed
def test_of_points_with_equal_fields_the_one_that_pays_least_is_kept(seed: int) -> None:
    rng = stream(seed, "undominated")
    fields = rng.integers(-1, 2, (12, 2)).astype(np.float64)
    points = rng.random((12, 2))

    kept = game.undominated(points, fields)

    payments = (points * fields).sum(1)
    distinct_fields = np.unique(fields, axis=0)
    assert len(kept) == len(distinct_fields)
    for field in distinct_fields:
        alike = np.flatnonzero((fields == field).all(1))
        assert alike[payments[alike].argmin()] in kept


@each_seed
@pytest.mark.parametrize("scales", [1, 4])
def test_the_field_of_cells_adds_up_every_cell_that_holds_a_point(seed: int, scales: int) -> None:
    """Cells are tried one by one."""
    rng = stream(seed, "cells")
    cell_weights = rng.normal(size=2 ** (scales + 1) - 2)
    points = np.append(rng.random(20), [0.0, 0.5, 1.0 - 2.0**-53])

    field = game.field_of_cells(cell_weights, points)

    expected = np.zeros(len(points))
    for scale in range(1, scales + 1):
        for cell in range(2**scale):
            is_inside = (points >= cell / 2**scale) & (points < (cell + 1) / 2**scale)
            expected += is_inside * cell_weights[2**scale + cell - 2]
    assert field == pytest.approx(expected, abs=1e-14)


@each_seed
@pytest.mark.parametrize("outcomes", [0, 1, 9])
def test_equal_outcomes_are_merged_at_the_place_of_the_first(seed: int, outcomes: int) -> None:
    rng = stream(seed, "merged")
    table = rng.integers(0, 2, (outcomes, 2)) / 2
    weights = rng.random(outcomes)

    first_index, total_weights = image.merged_weights(table, weights)

    is_new = [not (table[j] == table[:j]).all(1).any() for j in range(outcomes)]
    expected_first = np.flatnonzero(is_new).tolist()
    expected_weights = [weights[(table == table[j]).all(1)].sum() for j in expected_first]
    assert first_index.tolist() == expected_first
    assert total_weights == pytest.approx(expected_weights, abs=1e-15)
