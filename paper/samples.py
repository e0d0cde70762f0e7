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

AGENTS = 40
ACTIONS = 3
EXTREME = AGENTS // 4  # agents
MIXED_AGENTS = 200  # of each utility
MIXED_ACTIONS = 8
Y_MIN_COBB_DOUGLAS = 0.01  # least amount of a good, of Cobb-Douglas by itself
Y_MIN = 0.1  # and elsewhere
MAX_STEEPNESS = 2.0  # L of the Leontief losses
MAX_RETURNS = 1.0  # to scale, of Cobb-Douglas
MAX_AVERSION = 2.0  # to risk, of the CARA investors
MASSES = 6  # of a convex mixture: one for y, the others for |y - t| at a t each


def stream_of(name: str) -> np.random.Generator:
    """Return the stream of one population."""
    return stream(0, "reproduce bases", name)


def shares(name: str, goods: int) -> Array:
    """Draw shares (AGENTS, ACTIONS, d), some of a single good and some equal."""
    all_shares = stream_of(name).dirichlet(np.full(goods, 0.5), (AGENTS, ACTIONS))
    n_single = EXTREME // 2
    single_good = np.arange(n_single * ACTIONS) % goods  # of each action, in turn
    all_shares[:n_single] = np.eye(goods)[single_good].reshape(n_single, ACTIONS, goods)
    all_shares[n_single:EXTREME] = 1 / goods
    return all_shares


def convex(_: int) -> list[Loss]:
    """Draw mixtures of |y - t| and y with slopes up to 1, a quarter of them a single |y - t|."""
    rng = stream_of("convex")
    all_masses = rng.dirichlet(np.full(MASSES, 0.5), (AGENTS, ACTIONS))
    slope = all_masses[..., 0] * rng.choice([-1.0, 1.0], (AGENTS, ACTIONS))
    masses = all_masses[..., 1:]
    knots = rng.random(masses.shape)
    slope[:EXTREME] = 0.0
    masses[:EXTREME] = np.eye(MASSES - 1)[0]
    single_knots = (np.arange(EXTREME * ACTIONS) + 0.5) / (EXTREME * ACTIONS)
    knots[:EXTREME, :, 0] = single_knots.reshape(EXTREME, -1)
    loss = Convex1D(kinks=2 * masses, knots=knots, slope=slope - masses.sum(-1))
    return [replace(loss, offset=-loss.enclosure(np.zeros(1), np.ones(1))[0])]


def lipschitz(outcomes: int) -> list[Loss]:
    """Draw 1-Lipschitz cones, their reverse, and waves along the first coordinate."""
    rng = stream_of("lipschitz")
    tips = rng.random((AGENTS, outcomes))  # of the cones
    tips[:EXTREME] = rng.integers(0, 2, (EXTREME, outcomes))
    half_period = rng.uniform(0.1, 1.0, AGENTS)  # of the waves

    def values(y: Array) -> Array:
        distance = np.abs(y[:, np.newaxis, :] - tips).max(-1)
        first = y[:, :1]
        wave = np.abs(first - 2 * half_period * np.round(first / (2 * half_period)))
        return np.stack([distance, 1 - distance, wave], axis=-1)

    return [LipschitzLoss(values, np.array(1.0), (AGENTS, ACTIONS), outcomes)]


def targets(power: int) -> Callable[[int], list[Loss]]:
    """Draw L_p losses with targets in the cube, a quarter at corners."""

    def losses(goods: int) -> list[Loss]:
        rng = stream_of("targets")
        points = rng.random((AGENTS, ACTIONS, goods))
        points[:EXTREME] = np.round(points[:EXTREME])
        return [forms.LpTarget(points, power)]

    return losses


def monomials(degree: int) -> Callable[[int], list[Loss]]:
    """Draw CES losses with rho = 1/2 and v = degree / 2."""
    return lambda goods: [forms.CES(shares("monomials", goods), 0.5, degree / 2)]


def cobb_douglas(goods: int) -> list[Loss]:
    """Draw Cobb-Douglas losses, half of them with constant returns."""
    drawn_returns = stream_of("returns").uniform(-MAX_RETURNS, MAX_RETURNS, AGENTS)
    returns = np.maximum(drawn_returns, 0.2)
    returns[: AGENTS // 2] = MAX_RETURNS
    alpha = returns[:, np.newaxis, np.newaxis] * shares("cobb-douglas", goods)
    return [forms.CobbDouglas(alpha, y_min=Y_MIN_COBB_DOUGLAS)]


def cara(goods: int) -> list[Loss]:
    """Draw investors, half of them with the greatest risk aversion."""
    aversion = stream_of("aversion").uniform(0.1, MAX_AVERSION, AGENTS)
    aversion[: AGENTS // 2] = MAX_AVERSION
    return [forms.CARA(shares("cara", goods), aversion)]


def leontief(goods: int) -> list[Loss]:
    """Draw requirements in [1/L, 1], the largest of each row 1, some rows at the ends alone."""
    rng = stream_of("leontief")
    least = 1 / MAX_STEEPNESS
    requirements = rng.uniform(least, 1, (AGENTS, ACTIONS, goods))
    requirements[:EXTREME] = rng.choice([least, 1.0], (EXTREME, ACTIONS, goods))
    is_below_one = requirements.max(-1) < 1
    requirements[..., 0] = np.where(is_below_one, 1.0, requirements[..., 0])
    return [forms.Leontief(requirements)]


def ces(goods: int) -> list[Loss]:
    """Draw CES losses with rho and returns of their own."""
    rng = stream_of("ces")
    rho = rng.uniform(0.2, 0.8, AGENTS)
    returns = rng.uniform(0.5, 1.0, AGENTS)
    return [forms.CES(shares("ces", goods), rho, v=returns, y_min=Y_MIN)]


@cache
def mixed(goods: int) -> list[Loss]:
    """Draw the population of three utilities."""
    ces_rng = stream_of("ces_population")
    ces_agents = populations.Population(ces_rng, MIXED_AGENTS, MIXED_ACTIONS, goods)
    rho = ces_rng.uniform(0.3, 0.9, MIXED_AGENTS)
    v = ces_rng.uniform(0.5, 1.0, MIXED_AGENTS)
    cobb_douglas_rng = stream_of("cobb_douglas_population")
    cobb_douglas_agents = populations.Population(
        cobb_douglas_rng, MIXED_AGENTS, MIXED_ACTIONS, goods
    )
    returns = cobb_douglas_rng.uniform(0.5, 1.0, MIXED_AGENTS)
    leontief_rng = stream_of("leontief_population")
    leontief_agents = populations.Population(leontief_rng, MIXED_AGENTS, MIXED_ACTIONS, goods)
    steepness = leontief_rng.uniform(1.0, MAX_STEEPNESS, MIXED_AGENTS)
    return [
        populations.ces_population(ces_agents, rho=rho, v=v, y_min=Y_MIN),
        populations.cobb_douglas_population(cobb_douglas_agents, returns=returns, y_min=Y_MIN),
        populations.leontief_population(leontief_agents, steepness=steepness),
    ]
