"""Random populations of the loss families in the table of bases.

A population has 40 agents with three actions each, normalised into [0, 1]; a quarter of them are
extreme: a single good, equal shares, targets at corners, one kink. The mixed population has 200
agents of each of three utilities with eight actions each.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from regretless.agents.utilities import forms, populations
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses import Convex1D, LipschitzLoss, Loss

AGENTS, ACTIONS = 40, 3
MIXED_AGENTS, MIXED_ACTIONS = 200, 8
LEAST_LOG, LEAST_GOOD = 0.01, 0.1  # y_min: of Cobb-Douglas by itself, and elsewhere
STEEPEST = 2.0  # L of the Leontief losses
REACH = 1.0  # greatest returns to scale of Cobb-Douglas
AVERSION = 2.0  # greatest of the CARA investors


def drawn(name: str) -> np.random.Generator:
    """Return the stream of one population."""
    return stream(0, "reproduce bases", name)


def shares(name: str, goods: int) -> Array:
    """Rows (AGENTS, ACTIONS, d) of the simplex, some at corners and some in the middle."""
    table = drawn(name).dirichlet(np.full(goods, 0.5), (AGENTS, ACTIONS))
    few = AGENTS // 8
    table[:few] = np.eye(goods)[np.arange(few * ACTIONS) % goods].reshape(few, ACTIONS, goods)
    table[few : 2 * few] = 1 / goods
    return table


def convex(_: int) -> list[Loss]:
    """Draw mixtures of |y - t| and y with slopes up to 1, a quarter of them a single |y - t|."""
    rng, lone = drawn("convex"), AGENTS // 4
    masses = rng.dirichlet(np.full(6, 0.5), (AGENTS, ACTIONS))
    slope, masses = masses[..., 0] * rng.choice([-1.0, 1.0], (AGENTS, ACTIONS)), masses[..., 1:]
    knots = rng.random(masses.shape)
    slope[:lone], masses[:lone] = 0.0, np.eye(5)[0]
    knots[:lone, :, 0] = (np.arange(lone * ACTIONS) + 0.5).reshape(lone, -1) / (lone * ACTIONS)
    loss = Convex1D(kinks=2 * masses, knots=knots, slope=slope - masses.sum(-1))
    return [replace(loss, offset=-loss.enclosure(np.zeros(1), np.ones(1))[0])]


def lipschitz(outcomes: int) -> list[Loss]:
    """Draw 1-Lipschitz cones, their reverse, and waves along the first coordinate."""
    rng = drawn("lipschitz")
    tops = rng.random((AGENTS, outcomes))
    tops[: AGENTS // 4] = rng.integers(0, 2, (AGENTS // 4, outcomes))
    length = rng.uniform(0.1, 1.0, AGENTS)

    def values(y: Array) -> Array:
        distance = np.abs(y[:, None, :] - tops).max(-1)
        wave = np.abs(y[:, :1] - 2 * length * np.round(y[:, :1] / (2 * length)))
        return np.stack([distance, 1 - distance, wave], axis=-1)

    return [LipschitzLoss(values, np.array(1.0), (AGENTS, ACTIONS), outcomes)]


def targets(power: int) -> Callable[[int], list[Loss]]:
    """Draw L_p losses with targets in the cube, a quarter at corners."""

    def losses(goods: int) -> list[Loss]:
        rng = drawn("targets")
        points = rng.random((AGENTS, ACTIONS, goods))
        points[: AGENTS // 4] = np.round(points[: AGENTS // 4])
        return [forms.LpTarget(points, power)]

    return losses


def monomials(degree: int) -> Callable[[int], list[Loss]]:
    """Draw CES losses with rho = 1/2 and v = degree / 2."""
    return lambda goods: [forms.CES(shares("monomials", goods), 0.5, degree / 2)]


def cobb_douglas(goods: int) -> list[Loss]:
    """Draw Cobb-Douglas losses, half of them with constant returns."""
    returns = np.maximum(drawn("returns").uniform(-REACH, REACH, AGENTS), 0.2)
    returns[: AGENTS // 2] = REACH
    alpha = returns[:, None, None] * shares("cobb-douglas", goods)
    return [forms.CobbDouglas(alpha, y_min=LEAST_LOG)]


def cara(goods: int) -> list[Loss]:
    """Draw investors, half of them with the greatest risk aversion."""
    aversion = drawn("aversion").uniform(0.1, AVERSION, AGENTS)
    aversion[: AGENTS // 2] = AVERSION
    return [forms.CARA(shares("cara", goods), aversion)]


def leontief(goods: int) -> list[Loss]:
    """Draw requirements in [1/L, 1], the largest of each row 1, some rows at the ends alone."""
    rng = drawn("leontief")
    needs = rng.uniform(1 / STEEPEST, 1, (AGENTS, ACTIONS, goods))
    needs[: AGENTS // 4] = rng.choice([1 / STEEPEST, 1.0], (AGENTS // 4, ACTIONS, goods))
    needs[..., 0] = np.where(needs.max(-1) < 1, 1.0, needs[..., 0])
    return [forms.Leontief(needs)]


def ces(goods: int) -> list[Loss]:
    """Draw CES losses with rho and returns of their own."""
    rng = drawn("ces")
    rho, v = rng.uniform(0.2, 0.8, AGENTS), rng.uniform(0.5, 1.0, AGENTS)
    return [forms.CES(shares("ces", goods), rho, v, LEAST_GOOD)]


@cache
def mixed(goods: int) -> list[Loss]:
    """Draw the population of three utilities."""

    def of(maker: Callable[..., Loss], **ranges: tuple[float, float]) -> Loss:
        rng = drawn(maker.__name__)
        people = populations.Population(rng, MIXED_AGENTS, MIXED_ACTIONS, goods)
        parameters = {key: rng.uniform(*ends, MIXED_AGENTS) for key, ends in ranges.items()}
        floor = {} if maker is populations.leontief_population else {"y_min": LEAST_GOOD}
        return maker(people, **parameters, **floor)

    return [
        of(populations.ces_population, rho=(0.3, 0.9), v=(0.5, 1.0)),
        of(populations.cobb_douglas_population, returns=(0.5, 1.0)),
        of(populations.leontief_population, steepness=(1.0, STEEPEST)),
    ]
