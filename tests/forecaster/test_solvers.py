"""Every solver of a round's game, with every kind of response: its certificates are worst cases."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, play_to_end, read_catalogue_scenario

from regretless import load
from regretless.forecaster import ProtectedLosses, UnbiasedPrediction, VectorEvents, bases
from regretless.forecaster.events.loss_table import LossTable, response_scratch
from regretless.forecaster.minimax.cube import (
    Box,
    Simplex,
    cube,
    mixture_of_points,
    points_of_walk,
    without_light_points,
)
from regretless.forecaster.minimax.game import (
    INSET,
    WALK,
    HullSolver,
    Solution,
    field_at,
    move_inside,
    move_into_hull,
    sort_descending,
    steps_for,
    walked,
)
from regretless.forecaster.minimax.image import (
    WeightedOutcomes,
    _write_next_step,
    ensemble_solver,
)
from regretless.forecaster.minimax.support import (
    BrokenLineSupport,
    least_row,
    values,
    write_values_near_greatest,
)
from regretless.forecaster.unbiased import certificate_limit, tolerance_at
from regretless.market.core.arrays import Array
from regretless.market.losses.basis import Hull
from regretless.market.model import MarketModel

LOSSES = 5
ACTIONS = 5
LONG = 1200
QUARTERS = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)]) / 4
CORNERS = np.array(list(product([0.0, 1.0], repeat=3)))
EQUILIBRIA = [("none", 1), ("welfare", 0), ("{depositors=[1.0, 0.0]}", 0)]
NEAR = 1e-12  # losses this close are equal to somebody who sums in another order
# which of equal actions comes first; who draws has a new order every time
TIES = {"lowest": np.arange(ACTIONS, 0, -1), "highest": np.arange(1, ACTIONS + 1), "drawn": None}
ROUNDS = 6
ETA = 8.0
TOLERANCE = 1e-3
CURVED = bases.PowerBasis([0.5, 2.0], 2)
CELLS = bases.LipschitzGridBasis(1, constant=1.0, error=0.12)
FINE = np.array(list(product(np.linspace(0, 1, 201), repeat=2)))
# What solves, and every s(y) that is possible.
HULLS: dict[str, tuple[Callable[..., Any], Any, Array]] = {
    "box": (Box, 4, np.array(list(product([0.0, 1.0], repeat=4)))),
    "simplex": (Simplex, CELLS.size, np.eye(CELLS.size)),
    "cells": (ensemble_solver, CELLS, np.eye(CELLS.size)),
    "image": (ensemble_solver, CURVED, CURVED.transform(FINE)),
}


def best_responses(predicted: Array) -> Array:
    """Return the strategies (K, A) that put all on the least predicted loss."""
    return np.asarray(np.eye(predicted.shape[1])[predicted.argmin(1)])


def quantal_responses(predicted: Array) -> Array:
    """Return the logit strategies (K, A) at predicted losses."""
    raised = np.exp(-ETA * (predicted - predicted.min(1, keepdims=True)))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def stubborn(predicted: Array) -> Array:
    """Play the greatest expected loss two times of three, as no built-in rule would."""
    return 2 / 3 * best_responses(-predicted) + best_responses(predicted) / 3


RESPONSES: dict[str, tuple[dict[str, Any], Callable[[Array], Array]]] = {
    "best": ({}, best_responses),
    "quantal": ({"eta": ETA}, quantal_responses),
    "custom": ({"play": stubborn}, stubborn),
}
OPTIONS = [(ties, wish) for ties in (False, True) for wish in (False, True)]
# every hull with every response, and each of them with all options: two for a pair, in turn
SOLVED = [
    (hull, response, *OPTIONS[(i + j + 2 * k) % 4])
    for i, hull in enumerate(HULLS)
    for j, response in enumerate(RESPONSES)
    for k in range(2)
]
EACH = pytest.mark.parametrize("hull", HULLS)
CUBES = pytest.mark.parametrize("hull", ["box", "simplex"])


def high(solution: Solution) -> Array:
    """Wish for a first number that is high."""
    return -solution.points[:, 0]


def solver_of_hull(
    hull: str, *, off_ties: bool = False, wish: bool = False
) -> tuple[HullSolver, Array]:
    """Return a solver over a hull, and the vertices of the hull."""
    make, arguments, possible = HULLS[hull]
    solver = make(arguments, off_ties=off_ties)
    if wish:
        solver.prefer(high)
    return solver, possible


class Game(NamedTuple):
    """Protected losses, their owners' response, and signed weights."""

    rows: LossTable
    table: Array
    play: Callable[[Array], Array]

    def worst(self, solution: Solution, possible: Array) -> float:
        """Compute max over s of E[sum_r q_r(p) H_r . (p - s)]."""
        total = np.zeros(len(possible))
        (group,) = self.rows.groups
        for point, mass in zip(solution.points, solution.mass, strict=True):
            field = self.play(group.offset + group.weights @ point).ravel() @ self.table
            total += mass * (point @ field - possible @ field)
        return float(total.max())


def game(size: int, response: str = "best", seed: int = 1) -> Game:
    """Draw a game in which nobody ever ties."""
    described, play = RESPONSES[response]
    rng = np.random.default_rng(seed)
    group = ProtectedLosses(rng.random((5, 3)) / 10, rng.random((5, 3, size)) / size, **described)
    table = rng.standard_normal((15, size))
    return Game(LossTable([group]), table / np.abs(table).sum(), play)


def check(solution: Solution, hull: str, *, off_ties: bool) -> None:
    """Check that it mixes points of the hull, spelled out where outcomes are known."""
    points = solution.points
    assert (solution.mass > 0).all()
    assert solution.mass.sum() == pytest.approx(1.0)
    assert ((points >= 0) & (points <= 1)).all()
    if hull in ("simplex", "cells"):
        assert points.sum(1) == pytest.approx(1.0)
    if hull in ("cells", "image"):
        basis = HULLS[hull][1]
        for point, ensemble in zip(points, solution.ensembles, strict=True):
            assert (ensemble.weights > 0).all()
            assert len(ensemble.weights) <= basis.size + 1
            mean = ensemble.weights @ basis.transform(ensemble.outcomes)
            assert mean == pytest.approx(point, abs=1e-9)
    if off_ties and hull != "image":
        assert points.min() > 1e-7
        assert apart(points) > 1e-9


def apart(points: Array) -> float:
    """Return the least gap between two numbers of a point."""
    gaps = np.abs(points[:, :, None] - points[:, None])
    return float((gaps + np.eye(points.shape[1])).min())


@pytest.mark.parametrize(("hull", "response", "off_ties", "wish"), SOLVED)
def test_no_outcome_is_worse_for_a_mixture_than_its_certificate(
    *, hull: str, response: str, off_ties: bool, wish: bool
) -> None:
    """Round after round, with tables that change, and a candidate in every other one."""
    solver, possible = solver_of_hull(hull, off_ties=off_ties, wish=wish)
    first = game(solver.size, response)
    rng = np.random.default_rng(2)
    drift = game(solver.size, response, seed=3).table
    for t in range(ROUNDS):
        played = first._replace(table=(first.table + t * drift) / (1 + t))
        candidate = solver.single(rng.dirichlet(np.ones(solver.size))) if t % 2 else None
        solution = solver.solve(*played[:2], tolerance=TOLERANCE, candidate=candidate)
        check(solution, hull, off_ties=off_ties)
        measured = played.worst(solution, possible)
        assert measured <= solution.certificate + 1e-12
        assert solution.certificate <= measured + TOLERANCE  # the image's is a bound, and close
        assert solution.certificate <= TOLERANCE + 1e-8 or response == "custom"
        solver.remember(solution)


@EACH
def test_a_candidate_is_kept_where_it_is_good_enough_and_an_objective_still_acts(hull: str) -> None:
    solver, possible = solver_of_hull(hull)
    wishful, _ = solver_of_hull(hull, wish=True)
    played = game(solver.size)
    candidate = solver.single(np.random.default_rng(0).dirichlet(np.full(solver.size, 3.0)))
    assert candidate.unchanged
    assert candidate.certificate is None
    check(candidate, hull, off_ties=False)
    limit = played.worst(candidate, possible) + 1e-3
    solution = solver.solve(*played[:2], tolerance=limit, candidate=candidate)
    assert solution.unchanged
    assert solution.points == pytest.approx(candidate.points)
    assert solution.certificate == pytest.approx(limit - 1e-3, abs=1e-3)
    wished = wishful.solve(*played[:2], tolerance=limit, candidate=candidate)
    assert played.worst(wished, possible) <= limit + 1e-8
    assert wished.mass @ high(wished) <= high(solution)[0] + 1e-8
    assert not solver.solve(*played[:2], tolerance=1e-9, candidate=candidate).unchanged


@EACH
def test_a_single_point_is_the_nearest_of_the_hull(hull: str) -> None:
    """What is no possible outcome is refused, as is an outcome before a prediction."""
    solver, possible = solver_of_hull(hull)
    for target in np.random.default_rng(5).normal(0.5, 1.0, (5, solver.size)):
        near = solver.single(target).points[0]
        assert ((possible - near) @ (target - near)).max() <= 5e-3 * np.abs(target).sum()
    solver.check(possible[0])
    halves = [np.full(solver.size, 0.5)] * (solver.hull == "simplex")  # numbers that add up to more
    for wrong in (np.full(solver.size, 1.5), np.zeros(solver.size + 1), *halves):
        with pytest.raises(ValueError, match="update needs"):
            solver.check(wrong)
    forecaster = UnbiasedPrediction(VectorEvents(game(solver.size).rows.groups), solver)
    with pytest.raises(ValueError, match="before a prediction"):
        forecaster.update(possible[0])


@pytest.mark.parametrize("wish", [False, True])
@EACH
def test_a_restored_solver_goes_on_as_the_first_would(hull: str, wish: bool) -> None:  # noqa: FBT001
    solver, twin = (solver_of_hull(hull, wish=wish)[0] for _ in range(2))
    rows, table, _ = game(solver.size)
    solver.remember(solver.solve(rows, table, tolerance=1e-4))
    twin.restore(solver.state())
    mixtures = [
        each_solver.solve(rows, table, tolerance=5e-5) for each_solver in (solver, twin, twin)
    ]
    for again in mixtures[1:]:
        assert mixtures[0].points.tobytes() == again.points.tobytes()
        assert mixtures[0].mass.tobytes() == again.mass.tobytes()


def test_what_is_let_pass_adds_up_to_less_than_the_limit_and_the_logarithm() -> None:
    total = np.cumsum([tolerance_at(t) for t in range(1, 100_001)])
    assert tolerance_at(63) > tolerance_at(64) == pytest.approx(0.4 / 64) == 0.05 / 8
    for rounds in (1, 2, 10, 64, 65, 1000, 100_000):
        assert total[rounds - 1] <= certificate_limit(rounds) + 1e-12
        assert certificate_limit(rounds) <= 1.3 * total[rounds - 1]
        assert rounds == 1 or certificate_limit(rounds) < np.log(rounds)


@given(st.integers(0, 10_000), st.sampled_from([0.05, 1e-3, 1e-6]))
def test_no_point_of_a_walk_is_a_corner_or_has_equal_numbers(seed: int, tolerance: float) -> None:
    """So losses that differ expect different values; steps are as large as the box."""
    rng = np.random.default_rng(seed)
    rows = LossTable([ProtectedLosses(np.ones((4, 5)), -rng.dirichlet(np.ones(4), (4, 5)))])
    table = rng.standard_normal((20, 4))
    steps = 10 * steps_for(tolerance)
    distance_off_sides = INSET * tolerance
    for solver in (Box(4, off_ties=True), Simplex(4, off_ties=True)):
        start = solver.origin.points[0]
        keywords = {"distance_off_sides": distance_off_sides, "simplex": solver.simplex}
        points, _ = walked(rows, table / np.abs(table).sum(), start, steps=steps, **keywords)  # type: ignore[arg-type]
        assert apart(points) > (1e-9 if solver.hull == "box" else 1e-10)
        assert min(points.min(), 1 - points.max()) >= 0.02 * tolerance


@CUBES
@given(st.integers(0, 10_000))
def test_the_restricted_program_is_solved_to_optimality(hull: Hull, seed: int) -> None:
    """Nature's mean proves it, which leaves as much: ties, copies and zeros included."""
    rng = np.random.default_rng(seed)
    points, fields = rng.random((2, *rng.integers(1, 12, 2)))
    fields -= rng.random()
    if seed % 3 == 0:
        points = np.round(2 * points) / 2
        fields = np.round(2 * fields)
    if seed % 20 == 0:
        fields *= 0
    if seed % 4 == 0:
        fields = fields[rng.integers(0, len(fields), len(fields))]
    if hull == "simplex":
        points = (points + 1e-3) / (points + 1e-3).sum(1, keepdims=True)
    solver = cube(points.shape[1], hull)
    mass, mean, worst_case = mixture_of_points(points, fields, hull == "simplex")
    assert (mass >= 0).all()
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((mean >= 0) & (mean <= 1)).all()
    assert hull == "box" or mean.sum() == pytest.approx(1.0, abs=1e-12)
    value = solver.worst_case(mass, points, fields)
    assert value == pytest.approx((fields * (points - mean)).sum(1).min(), abs=1e-10)
    assert worst_case == pytest.approx(value, abs=1e-12)


@CUBES
def test_no_mixture_that_is_good_enough_is_better(hull: Hull) -> None:
    """None is found where nothing is good enough."""
    rng = np.random.default_rng(0)
    solver = cube(3, hull)
    for _ in range(20):
        points = rng.dirichlet(np.ones(3), 6)
        fields = rng.normal(size=(6, 3))
        values = rng.random(6)
        other_points = rng.dirichlet(np.full(6, 0.5), 500)
        cases = np.array([solver.worst_case(mass, points, fields) for mass in other_points])
        limit = float(np.quantile(cases, 0.3))
        mass = solver.best_mixture_within(values, points, fields, limit=limit)
        assert mass.sum() == pytest.approx(1)
        assert solver.worst_case(mass, points, fields) <= limit + 1e-8
        assert mass @ values <= (other_points[cases <= limit] @ values).min() + 1e-8
    points = np.full((2, 1), 0.5)
    fields = np.array([[1.0], [2.0]])
    assert Box(1).best_mixture_within(np.zeros(2), points, fields, limit=0.1) is None


@CUBES
def test_the_mixture_of_a_walk_is_the_best_of_the_points_that_numpy_keeps(hull: Hull) -> None:
    rng = np.random.default_rng(4)
    rows = LossTable([ProtectedLosses(rng.random((6, 4)), rng.normal(size=(6, 4, 9)))])
    signed_weights = rng.normal(size=(24, 9))
    origin = np.full(9, 1 / 9)
    is_simplex = hull == "simplex"

    points, fields = points_of_walk(origin, *rows.arrays, signed_weights, WALK, 0.0, is_simplex)

    visited, fields_of_visited = walked(rows, signed_weights, origin, simplex=is_simplex)
    kept = [0]  # of points with the same field the one that pays least, at the first one's place
    payments = (visited * fields_of_visited).sum(1)
    for t in range(1, len(WALK)):
        alike = [c for c in kept if (fields_of_visited[c] == fields_of_visited[t]).all()]
        if not alike:
            kept.append(t)
        elif payments[t] < payments[alike[0]]:
            kept[kept.index(alike[0])] = t
    assert np.array_equal(points, visited[kept])
    assert np.array_equal(fields, fields_of_visited[kept])
    mass, mean, worst_case = mixture_of_points(points, fields, is_simplex)
    assert worst_case == pytest.approx((fields * (points - mean)).sum(1).min(), abs=1e-12)
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)


@CUBES
@pytest.mark.parametrize("distance_off_sides", [0.0, 1e-3])
def test_a_walk_that_stands_still_or_goes_back_and_forth_is_one_that_looks_at_every_step(
    hull: Hull, distance_off_sides: float
) -> None:
    """One loss is indifferent in the middle, where a walk goes from side to side.

    The other has the same best action everywhere, so that a walk ends in a corner.
    """
    is_simplex = hull == "simplex"
    offset = np.array([[0.5, 0.5], [0.0, 0.5]])
    weights = np.array([[[0.25, -0.25], [-0.25, 0.25]], [[0.0, 0.0], [0.0, 0.0]]])
    rows = LossTable([ProtectedLosses(offset, weights)])
    back_and_forth = np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    into_a_corner = np.array([[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]])
    for signed_weights in (back_and_forth, into_a_corner):
        points, fields = walked(
            rows,
            signed_weights,
            np.array([0.5, 0.5]),
            distance_off_sides=distance_off_sides,
            simplex=is_simplex,
        )

        repeats = (points[2:] == points[:-2]).all(1)
        assert 20 < repeats.sum() < len(points) - 2
        point = np.array([0.5, 0.5])
        for step, visited, field_of_visited in zip(WALK, points, fields, strict=True):
            if distance_off_sides > 0.0:
                move_inside(point, distance_off_sides, is_simplex)
            field = field_at(rows, signed_weights, point, response_scratch(rows.arrays))
            assert np.array_equal(visited, point)
            assert np.array_equal(field_of_visited, field)
            point = point - step / np.abs(field).max() * field
            move_into_hull(point, is_simplex, np.empty(2))


def test_a_step_of_a_walk_over_ensembles_goes_towards_one_outcome() -> None:
    rng = np.random.default_rng(6)
    images = rng.random((5, 3))
    weights = rng.dirichlet(np.ones(5))
    point = weights @ images
    next_point = np.empty(3)
    next_weights = np.empty(5)

    _write_next_step(point, weights, 0.1, 2, images, next_point, next_weights)

    assert next_point == pytest.approx(0.9 * point + 0.1 * images[2], abs=1e-15)
    assert next_weights == pytest.approx(0.9 * weights + 0.1 * (np.arange(5) == 2), abs=1e-15)
    assert next_weights @ images == pytest.approx(next_point, abs=1e-15)


def test_an_ensemble_of_hinges_is_spread_over_their_levels_with_the_same_statistics() -> None:
    basis = bases.ReLUBasis(error=0.1, knots=[0.1, 0.35, 0.8])
    support = basis.support()
    assert isinstance(support, BrokenLineSupport)
    rng = np.random.default_rng(7)
    outcomes = np.concatenate([rng.random(300), [0.0, 0.35, 1.0]])[:, None]
    weights = rng.dirichlet(np.ones(len(outcomes)))

    levels, images, weights_of_levels = support.spread(outcomes, weights)

    assert levels[:, 0] == pytest.approx([0.0, 0.1, 0.35, 0.8, 1.0])
    assert np.array_equal(images, basis.transform(levels))
    assert weights_of_levels.sum() == pytest.approx(1.0, abs=1e-12)
    mean_of_statistics = weights @ basis.transform(outcomes)
    assert weights_of_levels @ images == pytest.approx(mean_of_statistics, abs=1e-12)


def test_equal_outcomes_of_an_ensemble_are_merged_before_others_are_dropped() -> None:
    basis = bases.ReLUBasis(error=0.1, knots=[0.5])
    outcomes = np.tile([[0.9], [0.2]], (5, 1))
    weights = np.full(10, 0.1)

    ensemble = WeightedOutcomes.of(outcomes, basis.transform(outcomes), weights)

    assert np.array_equal(ensemble.outcomes, [[0.9], [0.2]])
    assert ensemble.weights == pytest.approx([0.5, 0.5], abs=1e-12)


@pytest.mark.parametrize("n_coordinates", [1, 2, 9, 17])
def test_outcomes_whose_value_is_near_the_greatest_have_the_value_of_numpy(
    n_coordinates: int,
) -> None:
    rng = np.random.default_rng(8)
    n_rows = 100
    rows_of_chunk = 16
    images = rng.random((n_rows, n_coordinates)).cumsum(0) / n_rows  # alike within a chunk
    direction = rng.standard_normal(n_coordinates)
    margin = 0.01
    first_of_chunks = np.arange(0, n_rows, rows_of_chunk)
    highest = np.maximum.reduceat(images, first_of_chunks).T.copy()
    lowest = np.minimum.reduceat(images, first_of_chunks).T.copy()
    written = np.empty(n_rows)

    write_values_near_greatest(
        images, highest, lowest, direction, margin, np.empty(len(first_of_chunks)), written
    )

    expected = values(images, direction)
    is_near_greatest = expected >= expected.max() - margin
    is_written = np.isfinite(written)
    assert np.array_equal(written[is_written], expected[is_written])
    assert is_written[is_near_greatest].all()
    assert not is_written.all()


def test_the_worst_outcome_for_a_walk_is_the_first_of_those_with_the_least_value_in_numpy() -> None:
    rng = np.random.default_rng(9)
    distinct_images = rng.integers(0, 5, (20, 11)) / 4
    images = np.vstack([distinct_images, distinct_images])  # each outcome ties with another
    for _ in range(20):
        direction = rng.standard_normal(11)

        assert least_row(images, direction) == values(images, direction).argmin()


def test_points_with_next_to_no_mass_are_left_out_of_a_mixture() -> None:
    points = np.arange(8.0).reshape(4, 2)
    mass = np.array([0.25, 1e-10, 0.5, 0.0])

    heavy_points, mass_of_heavy, certificate = without_light_points(
        points, -points, mass, simplex=False
    )

    assert np.array_equal(heavy_points, points[[0, 2]])
    mean_field = -mass_of_heavy @ heavy_points
    mean_payment = -mass_of_heavy @ (heavy_points**2).sum(1)
    worst_case = mean_payment - np.minimum(mean_field, 0.0).sum()
    assert certificate == pytest.approx(worst_case, abs=1e-12)
    assert np.array_equal(mass_of_heavy, np.array([0.25, 0.5]) / 0.75)


def test_a_program_that_a_dual_simplex_method_gives_up_is_solved() -> None:
    """A game of an anchored forecaster, of which HiGHS 1.15 ends the dual without a verdict."""
    rows = np.loadtxt(Path(__file__).with_name("stubborn.csv"), delimiter=",")
    points = rows[:, :8] / 1e3
    fields = rows[:, 8:] / 1e8  # the units of the file
    mass, mean, _worst_case = mixture_of_points(points, fields, False)  # noqa: FBT003 - compiled
    against_mean = (fields * (points - mean)).sum(1)
    assert Box(8).worst_case(mass, points, fields) == pytest.approx(against_mean.min(), abs=1e-15)
    assert mass.sum() == pytest.approx(1.0, abs=1e-15)


def played(nature: str, tie: str, seed: int) -> float:
    """Worst swap regret where nature shuns the mean forecast or is greedy for the worst regret."""
    rng = np.random.default_rng(seed)
    weights = -np.stack([rng.choice(QUARTERS, ACTIONS, replace=False) for _ in range(LOSSES)])
    events = VectorEvents([ProtectedLosses(np.ones((LOSSES, ACTIONS)), weights)])
    forecaster = UnbiasedPrediction(events, Box(events.size, off_ties=True))
    regret = np.zeros((LOSSES, ACTIONS, ACTIONS))
    truths = 0.25 + 0.5 * np.eye(3) if nature == "away" else CORNERS
    losses = 1 + np.einsum("kan,cn->cka", weights, truths)
    for _ in range(LONG):
        mixture = forecaster.mixture()
        expected = 1 + np.einsum("kan,mn->mka", weights, mixture.points)
        near = expected <= expected.min(2, keepdims=True) + NEAR
        order = rng.random(near.shape) if TIES[tie] is None else TIES[tie]
        choices = (near * order).argmax(-1)
        distribution = np.einsum("m,mka->ka", mixture.weights, np.eye(ACTIONS)[choices])
        after = regret + distribution[..., None] * (losses[..., None] - losses[..., None, :])
        far = ((truths - mixture.mean) ** 2).sum(1)
        worst = after.max(3).sum(2).max(1)
        chosen = int((far if nature == "away" else worst).argmax())
        regret = after[chosen]
        forecaster.update(truths[chosen])
    return float(regret.max(2).sum(1).max() / LONG)


@pytest.mark.parametrize(("nature", "seed"), [("away", 0), ("greedy", 0), ("greedy", 2)])
def test_other_ways_to_break_ties_cost_a_fifth(nature: str, seed: int) -> None:
    """On the corners of the box who draws would have half to twice as much, by the seed."""
    usual = played(nature, "lowest", seed)
    for tie in ("highest", "drawn"):
        assert played(nature, tie, seed) <= 1.2 * usual


def check_promises(model: MarketModel) -> None:
    """Check the promises, which no objective touches."""
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


@pytest.mark.parametrize(("objective", "queue"), [*EQUILIBRIA, ("{depositors=[0.0, 1.0]}", 1)])
def test_of_two_equilibria_it_chooses_as_its_objective_says(objective: str, queue: int) -> None:
    """Before the bank everybody queued a round ago; certificates and bounds hold nevertheless."""
    assignments = "rounds=25", "market.start=1.0", "cohort.depositors.count=10"
    model = play_to_end(
        read_catalogue_scenario("bank-run", *assignments, f"forecaster.objective={objective}")
    )
    rounds = model.rounds_frame()
    assert abs(rounds["y_0"].iloc[-1] - queue) < (0.1 if queue else 0.5)
    assert (rounds["certificate"] <= [tolerance_at(t) + 1e-8 for t in range(1, 26)]).all()
    check_promises(model)


@pytest.mark.parametrize("payoff", [[0.0, 1.0], [[0.0, 1.0]]], ids=["each", "by guilt"])
def test_a_wish_is_no_knowledge(payoff: Any) -> None:
    """Who knew the guilty third of 300 cases could have two thirds convicted; a wish cannot."""
    objective = {"weights": [[-1.0], [1.0]], "gains": [[1.0, 0.0]]}
    judges = cohort_table("judges", 5, ["acquit", "convict"], "affine", parameters=objective)
    keys = {"adversary": {"kind": "iid", "outcomes": 1, "concentration": 0.1, "mean": [1 / 3]}}
    keys |= {"forecaster": {"kind": "decision-swap", "objective": {"judges": payoff}}}
    model = play_to_end(make_scenario(judges, rounds=300, **keys), seed=1)
    assert model.game.cohorts[0].ledger.count[:, 1].sum() <= 5 * 300 / 5
    check_promises(model)


def test_agents_who_draw_for_themselves_are_left_out_of_an_objective_which_a_line_says() -> None:
    cohorts = cohort_table("own", 4, 3, response="private"), cohort_table("other", 4, 3)
    notes = make_scenario(*cohorts, forecaster={"objective": "welfare"}).build().notes
    assert ["own" in note for note in notes if "leaves them out" in note] == [True]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_sorting_in_compiled_code_is_that_of_numpy(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size).round(1)  # with ties
    expected = np.sort(values)[::-1]
    sort_descending(values)
    assert values.tolist() == expected.tolist()


def test_projection_is_onto_the_box_or_the_simplex() -> None:
    on_the_box = np.array([-0.5, -0.0, 0.25, 1.5])
    move_into_hull(on_the_box, simplex=False, descending=np.empty(4))
    assert on_the_box.tolist() == [0.0, 0.0, 0.25, 1.0]
    assert not np.signbit(on_the_box).any()
    on_the_simplex = np.array([0.5, 1.25, -1.0])
    move_into_hull(on_the_simplex, simplex=True, descending=np.empty(3))
    assert on_the_simplex.tolist() == [0.125, 0.875, 0.0]


@pytest.mark.parametrize("size", [1, 2, 5, 32])
def test_projection_onto_the_simplex_is_that_of_all_numbers_in_order(size: int) -> None:
    """To the last bit, although only those are sorted that may stay positive."""
    rng = np.random.default_rng(size)
    for concentration in (0.1, 1.0, 10.0):
        for step in (0.0, 0.1, 3.0):
            start = rng.dirichlet(np.full(size, concentration))
            point = start - step * rng.normal(size=size).round(1)
            total = 0.0
            shift = 0.0
            for count, number in enumerate(np.sort(point)[::-1].tolist(), start=1):
                total += number
                if number * count > total - 1.0:
                    shift = (total - 1.0) / count
            expected = np.maximum(point - shift, 0.0)
            move_into_hull(point, simplex=True, descending=np.empty(size))
            assert point.tolist() == expected.tolist()


def test_welfare_leaves_out_learners_whose_losses_no_block_spans() -> None:
    """They hear no forecast, so nothing is expected of them at a prediction, and a line says so."""
    risks = {"risk_aversion": 2.0, "weights": [[0.7, 0.3], [0.2, 0.8]]}
    learners = cohort_table("learners", 4, 2, "cara", parameters=risks, response="hedge")
    followers = cohort_table("followers", 4, 2)
    adversary = {"kind": "iid", "outcomes": 2}
    keys = {"forecaster": {"objective": "welfare"}, "adversary": adversary, "rounds": 6}
    model = play_to_end(make_scenario(learners, followers, **keys))
    assert model.played == 6
    left_out = [note for note in model.notes if "leaves them out" in note]
    assert left_out == [
        "learners: forecaster.objective leaves them out, since they hear no forecast"
    ]


def test_every_round_is_solved_to_the_tolerance_that_bounds_count_on() -> None:
    """Over an image that is not convex, where walks alone do not come near enough."""
    model = load("assembly-lines", rounds=40, **{"forecaster.hull": "image"}).build(seed=1)
    model.run()
    certificates = model.rounds_frame()["certificate"]
    for round_index, certificate in enumerate(certificates):
        assert certificate <= tolerance_at(round_index + 1)
