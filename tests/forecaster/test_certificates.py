"""Every round's certificate is the mixture's worst case, whatever the solver and the response.

Recomputed here from the mixture alone: responses by their definition at every point, then the
greatest value over every possible s(y).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.forecaster import bases
from regretless.forecaster.anchored import AnchoredPrediction
from regretless.forecaster.ensemble_broadcast import CellsSolver, ensemble_solver
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.minimax.objective import WishfulSolver
from regretless.forecaster.minimax.solver import CubeSolver
from regretless.forecaster.models.baselines import RunningMean
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.game.basis import Basis
from regretless.market.records import Mixture

Array = NDArray[np.float64]
ROUNDS, ETA = 30, 8.0
CURVED = bases.PowerBasis([0.5, 2.0], 2)
CELLS = bases.LipschitzGridBasis(1, constant=1.0, error=0.12)


def best(predicted: Array) -> Array:
    """Play the least expected loss."""
    return np.asarray(np.eye(predicted.shape[1])[predicted.argmin(1)])


def quantal(predicted: Array) -> Array:
    """Play by the logit law."""
    raised = np.exp(-ETA * (predicted - predicted.min(1, keepdims=True)))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def stubborn(predicted: Array) -> Array:
    """Play the greatest expected loss two times of three, as no built-in rule would."""
    return 2 / 3 * best(-predicted) + best(predicted) / 3


RESPONSES: dict[str, tuple[dict[str, object], Callable[[Array], Array]]] = {
    "best": ({}, best),
    "quantal": ({"eta": ETA}, quantal),
    "custom": ({"play": stubborn}, stubborn),
    "custom quantal": ({"play": quantal}, quantal),
}
EVENTS = {"coordinates": Events, "losses": LossEvents}


def wishful(hull: str, size: int) -> WishfulSolver:
    """Make a solver that wants the first number high."""
    solver = WishfulSolver(size, hull)  # type: ignore[arg-type]
    solver.objective = lambda points: -points[:, 0]
    return solver


def corners(size: int) -> Array:
    """List the corners of the box."""
    return np.array(list(product([0.0, 1.0], repeat=size)))


def images(basis: Basis) -> Array:
    """Compute s(y) on a fine grid of outcomes."""
    level = np.linspace(0, 1, 201)
    return basis.transform(np.array(list(product(level, repeat=basis.outcomes))))


def plain(solver: Callable[[int], object]) -> Callable[[Events | LossEvents], UnbiasedPrediction]:
    """Let the forecaster play with a solver for so many numbers."""
    return lambda events: UnbiasedPrediction(events, solver=solver(events.size))  # type: ignore[arg-type]


def anchored(events: Events | LossEvents) -> AnchoredPrediction:
    """Correct a running mean from the first round on."""
    told = events if isinstance(events, LossEvents) else events.groups
    return AnchoredPrediction(told, RunningMean(events.size), trust=0.0)


# What plays, every s(y) that is possible, and s(y) of the outcomes that are played.
SOLVERS: dict[str, tuple[Callable[[Events | LossEvents], UnbiasedPrediction], Array, Array]] = {
    "box": (plain(CubeSolver), corners(4), images(CURVED)),
    "box, off ties": (
        plain(lambda size: CubeSolver(size, off_ties=True)),
        corners(4),
        images(CURVED),
    ),
    "box, objective": (plain(lambda size: wishful("box", size)), corners(4), images(CURVED)),
    "box, anchored": (anchored, corners(4), images(CURVED)),
    "simplex": (plain(lambda size: CubeSolver(size, "simplex")), np.eye(CELLS.size), images(CELLS)),
    "simplex, objective": (
        plain(lambda size: wishful("simplex", size)),
        np.eye(CELLS.size),
        images(CELLS),
    ),
    "simplex, ensembles": (
        plain(lambda _: CellsSolver(CELLS.points)),
        np.eye(CELLS.size),
        images(CELLS),
    ),
    "image": (plain(lambda _: ensemble_solver(CURVED)), images(CURVED), images(CURVED)),
}


def worst(mixture: Mixture, table: Array, group: LossGroup, play: object, possible: Array) -> float:
    """Compute max over s of E[sum_r q_r(p) H_r . (p - s)]."""
    total = np.zeros(len(possible))
    for point, mass in zip(mixture.points, mixture.weights, strict=True):
        law = play(group.offset + group.weights @ point)  # type: ignore[operator]
        field = (law[:, :, None] * table.reshape(group.weights.shape)).sum((0, 1))
        total += mass * (point @ field - possible @ field)
    return float(total.max())


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_certificate_is_the_worst_case_of_its_mixture(
    solver: str, response: str, kind: str
) -> None:
    make, possible, outcomes = SOLVERS[solver]
    described, play = RESPONSES[response]
    rng = np.random.default_rng(1)
    size = possible.shape[1]
    offset, weights = rng.random((5, 3)) / 10, rng.random((5, 3, size)) / size  # nobody ever ties
    group = LossGroup(offset, weights, **described)  # type: ignore[arg-type]
    forecaster = make(EVENTS[kind]([group]))
    for t in range(ROUNDS):
        events = forecaster.events
        table = events.weighted(events.awake(None), forecaster.rule, t + 1)  # type: ignore[arg-type]
        mixture = forecaster.mixture()
        assert mixture.certificate is not None
        measured = worst(mixture, table, group, play, possible)
        assert measured <= mixture.certificate + 1e-12
        assert mixture.certificate <= measured + 1e-3  # the image's is a bound, and close
        forecaster.update(outcomes[rng.integers(len(outcomes))])
