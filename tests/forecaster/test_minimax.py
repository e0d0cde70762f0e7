"""The per-round game: true certificates, a solver near the value, weights as defined."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.forecaster.events.bounds import GROWTH
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.weights import AdaptiveWeights, Awake, ExponentialWeights
from regretless.forecaster.minimax.box import (
    FINE,
    WALK,
    closer_for,
    explore,
    field_at,
    walk_for,
    worst_case,
)
from regretless.forecaster.minimax.program import best_mixture
from regretless.forecaster.minimax.solver import CubeSolver
from regretless.forecaster.tolerance import slack_limit, tolerance_at
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.game.basis import Hull
from regretless.market.kernels.linear_programs import Program
from regretless.market.kernels.linear_programs import solver as highs
from regretless.market.response import best_response, expected_losses

Array = NDArray[np.float64]


def group(seed: int, *, losses: int = 4, actions: int = 3, size: int = 3) -> LossGroup:
    """Draw random linear losses in [0, 1]."""
    rng = np.random.default_rng(seed)
    weights = -rng.dirichlet(np.ones(size), (losses, actions))
    return LossGroup(np.ones((losses, actions)), weights)


def paid(events: Events, table: Array, points: Array, mass: Array, outcome: Array) -> float:
    """Compute E[h(p) . (p - s)] from its definition."""
    total = 0.0
    for point, weight in zip(points, mass, strict=True):
        field = np.zeros(events.size)
        for first, end in zip(events.rows.start[:-1], events.rows.start[1:], strict=True):
            rows = events.rows.offset[None, first:end], events.rows.weights[None, first:end]
            field += table[first + int(best_response(expected_losses(*rows, point))[0])]
        total += weight * field @ (point - outcome)
    return float(total)


def random_table(seed: int, events: Events) -> Array:
    """Draw a normalised table of signed weights."""
    table = np.random.default_rng(seed).standard_normal(events.rows.weights.shape)
    return table / np.abs(table).sum()


@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_is_the_worst_case_over_all_corners(seed: int) -> None:
    events = Events([group(seed)])
    table = random_table(seed + 100, events)
    solution = CubeSolver(3).solve(events.rows, table, tolerance=1e-3)
    assert solution.mass.sum() == pytest.approx(1.0)
    assert ((solution.points >= 0) & (solution.points <= 1)).all()
    worst = max(
        paid(events, table, solution.points, solution.mass, np.array(corner))
        for corner in product([0.0, 1.0], repeat=3)
    )
    assert solution.certificate == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize(("size", "tolerance"), [(9, 1e-3), (34, 1e-4)])
@pytest.mark.parametrize("seed", range(10))
def test_the_value_of_a_game_is_at_most_zero(seed: int, size: int, tolerance: float) -> None:
    """With enough walks from nature's answers, every random game's certificate gets there."""
    events = Events([group(seed, losses=20, actions=5, size=size)])
    table = random_table(seed, events)
    solution = CubeSolver(size).solve(events.rows, table, tolerance=tolerance)
    assert solution.certificate <= tolerance


def test_the_points_of_the_last_mixture_spare_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables change little from round to round, so that points which were good are good again."""
    solved: list[int] = []

    def counted(points: Array, fields: Array, *, hull: Hull) -> tuple[Array, Array]:
        solved.append(len(points))
        return best_mixture(points, fields, hull=hull)

    monkeypatch.setattr("regretless.forecaster.minimax.solver.best_mixture", counted)
    programs = []
    for seed in range(5):
        events = Events([group(seed, losses=20, actions=5, size=34)])
        table, drift = random_table(seed, events), random_table(seed + 100, events)
        warm, cold = CubeSolver(34), CubeSolver(34)
        warm.remember(warm.solve(events.rows, table, tolerance=1e-5))
        cold.origin = warm.origin
        for solver in (warm, cold):
            solved.clear()
            solver.solve(events.rows, 0.999 * table + 0.001 * drift, tolerance=5e-5)
            programs.append(len(solved))
    assert sum(programs[::2]) < sum(programs[1::2])


def test_a_restored_solver_goes_on_as_the_first_would() -> None:
    events = Events([group(0, losses=20, actions=5, size=34)])
    table, solver, twin = random_table(0, events), CubeSolver(34), CubeSolver(34)
    solver.remember(solver.solve(events.rows, table, tolerance=1e-4))
    twin.restore(solver.state())
    found, same = (one.solve(events.rows, table, tolerance=5e-5) for one in (solver, twin))
    assert found.points.tobytes() == same.points.tobytes()
    assert found.mass.tobytes() == same.mass.tobytes()


def test_a_late_walk_ends_closer() -> None:
    for tolerance in (0.5, 1e-2, 2e-3):
        assert np.array_equal(walk_for(tolerance).steps, WALK)
    late = walk_for(tolerance_at(10_000)).steps
    assert np.array_equal(late[:41], WALK[:41])
    assert late[-1] == pytest.approx(WALK[-1] * tolerance_at(10_000) / FINE)
    assert (np.diff(late) <= 0).all()
    for tolerance in (1e-2, 1e-5):
        steps = closer_for(tolerance).steps
        assert steps[0] == steps[-1] == min(1e-3, tolerance)
        assert steps.max() == pytest.approx(0.1)


def test_what_is_let_pass_adds_up_to_less_than_the_limit_and_the_logarithm() -> None:
    total = np.cumsum([tolerance_at(t) for t in range(1, 100_001)])
    assert tolerance_at(63) > tolerance_at(64) == pytest.approx(0.4 / 64) == 0.05 / 8
    for rounds in (1, 2, 10, 64, 65, 1000, 100_000):
        assert total[rounds - 1] <= slack_limit(rounds) + 1e-12
        assert slack_limit(rounds) <= 1.3 * total[rounds - 1]
        assert rounds == 1 or slack_limit(rounds) < np.log(rounds)


def value_of(points: Array, fields: Array, hull: Hull) -> float:
    """Solve the restricted game by HiGHS: minimise w . c + u's, with u >= -sum_j w_j h_ji."""
    count, size = points.shape
    own = np.ones((size, 1)) if hull == "simplex" else np.eye(size)
    rows = np.vstack([np.hstack([fields.T, own]), [*np.ones(count), *np.zeros(own.shape[1])]])
    program = Program(
        cost=np.append((points * fields).sum(1), np.ones(own.shape[1])),
        matrix=rows,
        row_lower=np.append(np.zeros(size), 1.0),
        row_upper=np.append(np.full(size, np.inf), 1.0),
        lower=np.append(np.zeros(count), np.full(own.shape[1], 0.0 if hull == "box" else -np.inf)),
    )
    return highs().solve(program).value


@pytest.mark.parametrize("hull", ["box", "simplex"])
@given(st.integers(0, 10_000))
def test_the_restricted_program_is_solved_to_optimality(hull: Hull, seed: int) -> None:
    """HiGHS finds nothing better, and nature's mean proves it: ties, copies and zeros included."""
    rng = np.random.default_rng(seed)
    points, fields = rng.random((2, *rng.integers(1, 12, 2)))
    fields -= rng.random()
    if seed % 3 == 0:
        points, fields = np.round(2 * points) / 2, np.round(2 * fields)
    if seed % 4 == 0:
        fields = fields[rng.integers(0, len(fields), len(fields))]
    if hull == "simplex":
        points = (points + 1e-3) / (points + 1e-3).sum(1, keepdims=True)
    mass, mean = best_mixture(points, fields, hull=hull)
    assert (mass >= 0).all()
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((mean >= 0) & (mean <= 1)).all()
    worst = worst_case(mass, points, fields, hull=hull)
    assert worst == pytest.approx((fields * (points - mean)).sum(1).min(), abs=1e-10)
    assert worst == pytest.approx(value_of(points, fields, hull), abs=1e-7)


# A restricted game of an anchored forecaster (points in thousandths, fields in hundred-millionths),
# cut down. HiGHS 1.15's dual simplex method ends without a verdict, its row of ones off by 0.001.
STUBBORN_POINTS = [
    [637, 502, 378, 495, 369, 639, 503, 378],
    [574, 277, 168, 509, 365, 768, 439, 424],
    [560, 177, 128, 517, 375, 752, 465, 423],
    [534, 209, 160, 517, 383, 852, 417, 421],
    [520, 109, 121, 525, 394, 824, 442, 420],
    [503, 9, 74, 536, 408, 805, 409, 419],
    [486, 0, 25, 546, 421, 787, 424, 418],
    [469, 0, 0, 556, 435, 768, 391, 416],
    [374, 0, 0, 597, 496, 733, 441, 409],
    [296, 104, 0, 691, 601, 503, 413, 227],
    [296, 104, 0, 811, 677, 456, 395, 159],
]
STUBBORN_FIELDS = [
    [8637, 26676, 83071, 4383, 21504, -36692, -59755, -26418],
    [1984, 14101, 5607, -1172, -1543, 2145, -3626, 144],
    [1984, -2465, -2521, -14, -623, -7828, 3799, 144],
    [1984, 14101, 5481, -1158, -1543, 4022, -3626, 144],
    [1984, 11488, 5481, -1158, -1537, 2145, 3799, 144],
    [1984, 11488, 5607, -1172, -1537, 2145, -1664, 144],
    [1984, 11488, 5607, -1172, -1537, 2145, 3799, 144],
    [1984, -2465, -2521, -14, -628, -7828, -2538, 144],
    [587, -2465, 126, -14, -623, -4378, -1655, 144],
    [0, 0, 126, -63, -6, 210, 9, 144],
    [0, 0, 126, -63, -6, 0, 9, 150],
]


def test_a_program_that_the_dual_simplex_method_gives_up_is_solved() -> None:
    points, fields = np.array(STUBBORN_POINTS) / 1e3, np.array(STUBBORN_FIELDS) / 1e8
    mass, mean = best_mixture(points, fields)
    against_mean = (fields * (points - mean)).sum(1)
    assert worst_case(mass, points, fields) == pytest.approx(against_mean.min(), abs=1e-15)
    mass, _ = best_mixture(points, np.zeros_like(fields))  # where nothing matters, any mixture
    assert mass.sum() == 1.0


def test_dominated_points_are_dropped_and_none_other() -> None:
    """Of equal fields the cheapest point stays, and the program's value does not change."""
    events = Events([group(5)])
    table = random_table(5, events)
    points, fields = explore(events.rows, table, np.full(3, 0.5))
    assert len(np.unique(fields, axis=0)) == len(fields)
    for point, field in zip(points, fields, strict=True):
        assert (field_at(events.rows, table, point) == field).all()


def test_one_dimension_is_solved_exactly() -> None:
    """Two actions, one coordinate: mixing on both sides of the threshold leaves next to nothing."""
    rows = LossGroup(np.array([[0.0, 0.5]]), np.array([[[1.0], [0.0]]]))
    events = Events([rows])
    table = np.array([[-0.5], [0.5]])
    solution = CubeSolver(1).solve(events.rows, table, tolerance=1e-6)
    assert solution.certificate <= 0.05


@given(st.floats(-200, 200), st.floats(0, 400), st.floats(-1, 1))
def test_the_potential_grows_as_the_lemma_says(regret: float, slack: float, gain: float) -> None:
    """Luo and Schapire, Lemma 5, and the growth constant of the bound's derivation."""
    variation = abs(regret) + slack

    def potential(r: float, c: float) -> float:
        return float(np.exp(max(r, 0.0) ** 2 / (3 * c))) if c > 0 else 1.0

    weight = (potential(regret + 1, variation + 1) - potential(regret - 1, variation + 1)) / 2
    before = potential(regret, variation)
    after = potential(regret + gain, variation + abs(gain))
    limit = before + weight * gain + 1.5 * abs(gain) / (variation + 1)
    assert after <= limit * (1 + 1e-9)
    assert weight <= GROWTH * before * (1 + 1e-9)


def awake(bias: Array, variation: Array) -> list[Awake]:
    """Wrap accumulators as one view."""
    return [Awake(slice(0, len(bias)), bias, variation, variation[:, 0])]


@given(st.integers(0, 10_000))
def test_adaptive_weights_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variation = rng.uniform(0, 30, (4, 3))
    bias = variation * rng.uniform(-1, 1, (4, 3))

    def weight(r: Array) -> Array:
        up, down = np.maximum(r + 1, 0) ** 2, np.maximum(r - 1, 0) ** 2
        scale = 3 * (variation + 1)
        return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)

    plus, minus = weight(bias), weight(-bias)
    expected = (plus - minus) / (plus + minus).sum()
    table = AdaptiveWeights().table(awake(bias, variation), bias.shape, 1)
    assert table == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("horizon", [None, 400])
def test_exponential_weights_are_those_printed(horizon: int | None) -> None:
    bias = np.random.default_rng(0).uniform(-20, 20, (4, 3))
    rule = ExponentialWeights(24, horizon)
    rate = np.sqrt(2 * np.log(24) / 400) if horizon else np.sqrt(np.log(24) / 9)
    plus, minus = np.exp(rate * bias), np.exp(-rate * bias)
    expected = (plus - minus) / (plus + minus).sum()
    assert rule.table(awake(bias, np.abs(bias)), bias.shape, 9) == pytest.approx(expected)


@pytest.mark.parametrize("rule", [AdaptiveWeights(), ExponentialWeights(24)])
def test_huge_biases_do_not_overflow(rule: AdaptiveWeights | ExponentialWeights) -> None:
    bias = np.array([[1e6, -1e6], [3.0, 0.0]])
    table = rule.table(awake(bias, np.abs(bias)), bias.shape, 10)
    assert np.isfinite(table).all()
    assert np.abs(table).sum() <= 1 + 1e-12
    assert table[0, 0] > 0 > table[0, 1]


def test_biases_are_accumulated_in_expectation() -> None:
    """Against the definition, with a policy's cross events and a mixture of three points."""
    losses = group(1)
    tests = LossGroup(losses.offset, losses.weights, policies=(int,))
    events = Events([tests])
    points, mass = np.random.default_rng(2).random((3, 3)), np.array([0.2, 0.3, 0.5])
    truth = np.array([0.1, 0.9, 0.4])
    events.charge(events.awake(1), points, mass, truth)
    expected = np.zeros((12, 3))
    for point, weight in zip(points, mass, strict=True):
        choice = (losses.offset + losses.weights @ point).argmin(1)
        expected[np.arange(4) * 3 + choice] += weight * (point - truth)
    rows = list(events.table())
    decision = np.array([row[5] for row in rows[:12]])
    assert decision == pytest.approx(expected)
    cross = {(row[0], row[1], row[3]): row[5] for row in rows[12:]}
    for loss, action in product(range(4), range(3)):
        assert cross[loss, action, 1] == pytest.approx(expected[loss * 3 + action])
        assert (cross[loss, action, 0] == 0).all()
    assert events.count == len(rows) == 12 * (1 + 3)


def test_calls_out_of_order_are_refused() -> None:
    forecaster = UnbiasedPrediction([group(0)])
    with pytest.raises(ValueError, match="before a prediction"):
        forecaster.update(np.zeros(3))
    forecaster.predict()
    with pytest.raises(ValueError, match="3 numbers"):
        forecaster.update(np.full(3, 1.5))
