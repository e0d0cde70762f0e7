"""The older recipe: its events from the raw log, its bounds, what it costs and what it refuses."""

from typing import Any

import numpy as np
import pytest
from weights_by_definition import calibration_bound, calibration_error, multiaccuracy_error

from regretless import UserError, omniprediction_regret, swap_regret
from regretless.forecaster import CalibratedMultiaccurate, GainEvents, ProtectedLosses, VectorEvents
from regretless.forecaster.guarantees.norms import centred_norm, spread
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.minimax.game import Game, Solution
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.weights import rule_of
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.records import Mixture

# every stream, the hostile one with losses over one number and over two
STREAMS = [("iid", 1), ("cyclic", 2), ("anti-forecast", 1), ("anti-forecast", 2)]
every_stream = pytest.mark.parametrize(("kind", "size"), STREAMS)
# losses of three actions over one and over two numbers
LOSSES = {
    1: (np.array([0.5, 0.0, 0.2]), np.array([[0.0], [1.0], [0.5]])),
    2: (np.array([0.0, 0.0, 0.35]), np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.1]])),
}
CELLS = {1: 11, 2: 5}
POLICIES = (lambda x: int(x[0]), lambda x: 2 * int(x[1]))


class Recorder(Box):
    """Keeps what the game's solutions were before they were rounded."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.seen: list[Solution] = []

    def _play(self, game: Game) -> Solution:
        self.seen.append(super()._play(game))
        return self.seen[-1]


# The round's solution, what was announced of it, what happened, and in which context.
Said = tuple[Solution, Mixture, Array, tuple[int, int]]


def make_calibrated(
    size: int, weights: str = "adaptive"
) -> tuple[CalibratedMultiaccurate, Recorder]:
    """Return a calibrated forecaster, and the solver that records what it is asked."""
    recorder = Recorder(size)
    rule = rule_of(weights)

    def make(groups: Any) -> UnbiasedPrediction:
        return UnbiasedPrediction(VectorEvents(groups, rule), recorder)

    group = ProtectedLosses(*(table[None] for table in LOSSES[size]), POLICIES)
    return CalibratedMultiaccurate([group], cells=CELLS[size], make=make), recorder


def play(forecaster: Any, kind: str, rounds: int, *, seed: int = 0) -> list[Said]:
    """Play a stream of outcomes; one context is a clock, the other a coin."""
    recipe, recorder = forecaster
    size = recipe.grid.shape[1]
    rng = stream(seed, "outcomes", kind)
    log = []
    corners = np.eye(size) if size > 1 else np.array([[0.0], [1.0]])
    for t in range(recipe.time, recipe.time + rounds):
        x = t % 2, int(rng.integers(2))
        mixture = recipe.mixture(x)
        if kind == "iid":
            y = rng.random(size)
        elif kind == "cyclic":
            y = 0.5 + 0.5 * np.sin(2 * np.pi * (t / 200 + np.arange(size) / size))
        else:
            y = corners[((corners - mixture.mean) ** 2).sum(1).argmax()]
        recipe.update(y)
        log.append((recorder.seen[-1], mixture, y, x))
    return log


def outcome_of(log: list[Said], size: int) -> tuple[Array, Array]:
    """Return losses of all actions, and the distribution of a best-responding agent's (T, A)."""
    offset, weights = LOSSES[size]
    rows = np.zeros((len(log), len(offset)))
    for row, (_, mixture, _, _) in zip(rows, log, strict=True):
        for point, share in zip(mixture.points, mixture.weights, strict=True):
            row[best_response(expected_losses(offset[None], weights[None], point))[0]] += share
    return offset + np.array([y for _, _, y, _ in log]) @ weights.T, rows


def cells_of(size: int, gaps: list[tuple[Array, Array]]) -> Array:
    """Add gaps up by the nearest grid point, coordinate by coordinate; ties go to the lower one."""
    cell_centres = np.zeros((CELLS[size] ** size, size))
    for points, gap in gaps:
        steps: Indices = np.ceil(points * (CELLS[size] - 1) - 0.5).astype(np.intp)
        np.add.at(cell_centres, steps @ (CELLS[size] ** np.arange(size)[::-1]), gap)
    return cell_centres


@every_stream
def test_biases_are_those_of_the_raw_log(size: int, kind: str) -> None:
    forecaster = make_calibrated(size)
    gaps = []
    bias_sums = np.zeros((len(POLICIES), 3, size))
    recipe = forecaster[0]
    for solution, _, y, x in play(forecaster, kind, 400):
        gaps.append((solution.points, solution.mass[:, None] * (solution.points - y)))
        for j, policy in enumerate(POLICIES):
            bias_sums[j, policy(x)] += gaps[-1][1].sum(0)
    cells = cells_of(size, gaps)
    events = list(recipe.event_table())
    recorded_biases = np.array([bias for loss, *_, bias in events if loss == 0])
    assert recorded_biases == pytest.approx(cells, abs=1e-9)
    for loss, action, policy, suggestion, _, bias in events:
        if policy is not None:
            assert loss == 1
            expected = bias_sums[policy, suggestion] if action == 0 else np.zeros(size)
            assert bias == pytest.approx(expected, abs=1e-9)
    assert calibration_error(recipe) == pytest.approx(np.abs(cells).max(1).sum() / 400)
    assert multiaccuracy_error(recipe) == pytest.approx(np.abs(bias_sums).max(2).sum(1).max() / 400)


@every_stream
@pytest.mark.parametrize("weights", ["adaptive", "exponential"])
def test_calibration_and_multiaccuracy_errors_stay_below_their_bounds(
    weights: str, size: int, kind: str
) -> None:
    """Biases, swap regret and omniprediction regret in expectation over the draws, on every log."""
    for rounds, seed in ((60, 0), (700, 1)):
        forecaster = make_calibrated(size, weights)
        recipe = forecaster[0]
        log = play(forecaster, kind, rounds, seed=seed)
        limits = recipe.inner.instances[0].bias_bound()
        measured = calibration_error(recipe)
        for *_, occupancy, bias in recipe.event_table():
            assert np.abs(bias).max() <= limits.bias(occupancy) + 1e-9
        assert measured <= calibration_bound(recipe)
        widest, centred = (norm(LOSSES[size][1][None])[0] for norm in (spread, centred_norm))
        losses, played = outcome_of(log, size)
        regret = swap_regret(losses, played)
        assert regret <= widest * (measured + recipe.radius) + 1e-9
        assert regret <= widest * (calibration_bound(recipe) + recipe.radius)
        suggested = np.array([[policy(x) for *_, x in log] for policy in POLICIES])
        against = omniprediction_regret(losses, played, suggested)
        errors = measured + multiaccuracy_error(recipe)
        assert against <= centred * errors + widest * recipe.radius + 1e-9


def test_whoever_acts_inside_a_cell_is_not_protected() -> None:
    """Why the grid point is announced: the unrounded predictions are calibrated and harmful."""
    forecaster = make_calibrated(1)
    log = play(forecaster, "anti-forecast", 2000)
    losses = outcome_of(log, 1)[0][:, :2]  # act on [p > 1/2], in the middle of a cell
    raw = np.array([mixture.mass[mixture.points[:, 0] >= 0.5].sum() for mixture, *_ in log])
    broadcast_mass = np.array(
        [mixture.weights[mixture.points[:, 0] >= 0.5].sum() for _, mixture, *_ in log]
    )
    assert calibration_error(forecaster[0]) <= 0.02
    assert swap_regret(losses, np.column_stack([raw, 1 - raw])) >= 0.4
    assert swap_regret(losses, np.column_stack([broadcast_mass, 1 - broadcast_mass])) <= 0.03


@every_stream
def test_the_calibration_error_falls(size: int, kind: str) -> None:
    """Of the events, towards 0; of what is announced, to within half the distance of the grid."""
    forecaster = make_calibrated(size)
    errors = []
    gaps = []
    for rounds in (250, 750, 3000):
        for _, mixture, y, _ in play(forecaster, kind, rounds, seed=rounds):
            gaps.append((mixture.points, mixture.weights[:, None] * (mixture.points - y)))
        errors.append(calibration_error(forecaster[0]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] <= errors[0] / 2
    announced = np.abs(cells_of(size, gaps)).max(1).sum() / 4000
    assert announced <= errors[2] + forecaster[0].radius + 1e-9


def test_what_no_memory_holds_is_refused_in_one_line() -> None:
    wishes: list[tuple[int, Any, str]] = [
        (15, None, r"n = 15 numbers need 2\^15 grid points, above 20,000; .* small problems"),
        (2, True, r"cells = True: give a whole number of at least 2"),
        (2, "ten", r"cells = 'ten': give a whole number"),
        (9, 3, r"forecaster.events = 'losses': 387,400,806 gains .* above 200,000,000"),
    ]
    arguments: dict[str, Any] = {"make": lambda groups: UnbiasedPrediction(GainEvents(groups))}
    for size, cells, line in wishes:
        losses = ProtectedLosses(np.zeros((1, 2)), np.zeros((1, 2, size)))
        with pytest.raises(UserError, match=rf"\A[^\n]*{line}[^\n]*\Z"):
            CalibratedMultiaccurate([losses], cells=cells, **arguments)
