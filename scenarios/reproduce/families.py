"""The loss families in the table of bases, with the bases that serve each and the errors asked.

A basis is built for the population that is measured: its Lipschitz constant, its reach, its g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regretless.forecaster import bases
from regretless.market.game.basis import Basis
from regretless.market.losses import Loss
from regretless.scenarios.reproduce import printed, samples

Plan = dict[int, tuple[float, ...]]
Build = Callable[[list[Any], float], Basis]

EXACT = (math.nan,)


@dataclass(frozen=True)
class Choice:
    """One basis of a family.

    Parameters
    ----------
    role : "paper", "default" or "alternative"
    build : callable
        From the population and the wanted error to the basis.
    plan : dict
        The wanted errors for each number of outcomes d; NaN where the basis is exact.
    raw : bool
        Lambda is declared for the paper's losses as they stand, not for normalised ones.
    fitted : bool
        The basis's own error is a measured one; what holds is its certificate.
    """

    role: str
    build: Build
    plan: Plan
    raw: bool = False
    fitted: bool = False


@dataclass(frozen=True)
class Family:
    """A family of losses.

    Parameters
    ----------
    note : str
        The population in words.
    losses : callable
        From the number of outcomes d to the population.
    paper : callable
        From the population and the error to the paper's formulas, by column.
    choices : dict
        Bases by name.
    """

    note: str
    losses: Callable[[int], list[Loss]]
    paper: Callable[[list[Loss], float], dict[str, float]]
    choices: dict[str, Choice]


def grid(*, centred: bool) -> Build:
    """Return the maker of a grid."""
    return lambda losses, error: bases.LipschitzGridBasis(
        losses[0].outcomes, constant=printed.steepest(losses), error=error, centred=centred
    )


def series(kind: Callable[..., Basis]) -> Build:
    """Return the maker of a series for exponentials of a sum."""
    return lambda losses, error: kind(losses[0].outcomes, error=error, **printed.inner(losses))


def leontief(*, nearest: bool) -> Build:
    """Return the maker of the paper's basis for Leontief losses."""
    return lambda losses, error: bases.LeontiefBasis.covering(
        losses[0].outcomes, constant=printed.steepest(losses), error=error, nearest=nearest
    )


def reduced(plan: Plan, *, role: str = "default") -> Choice:
    """Real losses of the population as functions."""

    def build(losses: list[Any], error: float) -> Basis:
        return bases.ReducedBasis(losses, error=error)

    return Choice(role, build, plan, fitted=True)


def ramps(plan: Plan, *, floor: float = 0.0) -> Choice:
    """Interpolation in cumulative form."""

    def build(losses: list[Any], error: float) -> Basis:
        return bases.RampBasis(losses, error=error, floor=floor)

    return Choice("alternative", build, plan)


def exact(plan: Plan) -> Choice:
    """All losses of the population as functions."""
    return Choice("alternative", lambda losses, _: bases.ExactLossesBasis(losses), plan)


def target(power: int, goods: int) -> Family:
    """L_p losses of one power."""
    return Family(
        "targets in the cube, a quarter at corners",
        samples.targets(power),
        printed.powers,
        {
            "powers": Choice(
                "paper",
                lambda losses, _: bases.PowerBasis.binomial(power, losses[0].outcomes),
                {goods: EXACT},
                raw=True,
            ),
            "Bernstein": Choice(
                "default",
                lambda losses, _: bases.BernsteinBasis(losses[0].outcomes, power),
                {goods: EXACT},
                raw=True,
            ),
        },
    )


def monomial(degree: int, outcomes: tuple[int, ...], errors: tuple[float, ...] = ()) -> Family:
    """Powers of one sum."""
    return Family(
        "CES with rho = 1/2 and v = beta / 2, shares in the simplex",
        samples.monomials(degree),
        printed.monomials,
        {
            "multisets": Choice(
                "default",
                lambda losses, _: bases.MonomialBasis(
                    losses[0].outcomes, degree, power=0.5, homogeneous=True
                ),
                dict.fromkeys(outcomes, EXACT),
            ),
            "reduced": reduced(dict.fromkeys(outcomes, errors), role="alternative"),
        },
    )


EVERY = (0.2, 0.1, 0.05, 0.02, 0.01)
CONVEX = Family(
    "mixtures of |y - t| and y with slopes up to 1",
    samples.convex,
    printed.convex,
    {
        "Gopalan et al.": Choice(
            "paper", lambda _, error: bases.ConvexRankBasis(error=error), {1: EVERY}
        ),
        "ReLU grid": Choice("default", lambda _, error: bases.ReLUBasis(error=error), {1: EVERY}),
        "optimised": Choice(
            "alternative",
            lambda _, error: bases.OptimisedConvexBasis(error=error),
            {1: EVERY[1:]},
        ),
        "optimised, cap 3": Choice(
            "alternative",
            lambda _, error: bases.OptimisedConvexBasis(error=error, cap=3.0),
            {1: (0.05, 0.02)},
        ),
    },
)
LIPSCHITZ = Family(
    "cones, their reverse and waves, L = 1",
    samples.lipschitz,
    printed.grid,
    {
        "grid, corners": Choice(
            "paper", grid(centred=False), {1: (0.1, 0.01), 2: EVERY[:4], 3: EVERY[:2]}
        ),
        "grid, centred": Choice(
            "default", grid(centred=True), {1: (0.1, 0.01), 2: EVERY, 3: EVERY[:3]}
        ),
    },
)
EXPONENTIAL = Family(
    f"Cobb-Douglas, returns up to {samples.REACH:g}, y_min = {samples.LEAST_LOG}",
    samples.cobb_douglas,
    printed.exponential,
    {
        "Taylor at 0": Choice(
            "paper",
            series(bases.TaylorExponentialBasis),
            {1: (0.1,), 3: EVERY, 5: (0.1,)},
            raw=True,
        ),
        "Chebyshev": Choice(
            "default",
            series(bases.ChebyshevExponentialBasis),
            {1: (0.1,), 3: EVERY, 5: (0.1, 0.01)},
        ),
        "ramps": ramps({3: (0.2,)}, floor=samples.LEAST_LOG),
        "reduced": reduced({3: EVERY[:4]}, role="alternative"),
    },
)
INVESTORS = Family(
    f"CARA, risk aversion up to {samples.AVERSION:g}",
    samples.cara,
    printed.exponential,
    {
        "Taylor at 0": Choice("paper", series(bases.TaylorExponentialBasis), {3: EVERY}, raw=True),
        "Chebyshev": Choice("default", series(bases.ChebyshevExponentialBasis), {3: EVERY}),
    },
)
LEONTIEF = Family(
    f"requirements in [1/L, 1] with L = {samples.STEEPEST:g}",
    samples.leontief,
    printed.leontief,
    {
        "MReLU, as printed": Choice(
            "paper", leontief(nearest=False), {2: (0.4, 0.2, 0.1), 3: (0.4, 0.2)}
        ),
        "MReLU, nearest": Choice(
            "alternative", leontief(nearest=True), {2: (0.4, 0.2, 0.1, 0.05), 3: (0.4, 0.2)}
        ),
        "grid, centred": Choice(
            "alternative", grid(centred=True), {2: (0.4, *EVERY[:4]), 3: (0.4, *EVERY[:2])}
        ),
        "ramps": ramps({2: (0.2, 0.05), 3: (0.2,)}),
        "reduced": reduced({2: EVERY[:4], 3: EVERY[:3]}),
    },
)
SUBSTITUTES = Family(
    f"rho in [0.2, 0.8], v in [0.5, 1], y_min = {samples.LEAST_GOOD}",
    samples.ces,
    printed.grid,
    {
        "grid, corners": Choice("paper", grid(centred=False), {3: (0.4,)}),
        "grid, centred": Choice("alternative", grid(centred=True), {3: (0.4, 0.2)}),
        "ramps": ramps({3: EVERY[:4]}, floor=samples.LEAST_GOOD),
        "reduced": reduced({3: EVERY[:4]}),
        "all losses": exact({3: EXACT}),
    },
)
MIXED = Family(
    f"{samples.MIXED_AGENTS} agents each, {samples.MIXED_ACTIONS} actions: CES (rho in [0.3, 0.9], "
    "v in [0.5, 1]), Cobb-Douglas (returns in [0.5, 1]), Leontief (requirements in [1/L, 1], L in "
    f"[1, {samples.STEEPEST:g}]); y_min = {samples.LEAST_GOOD}",
    samples.mixed,
    printed.grid,
    {
        "ramps": ramps({3: (0.2,)}),
        "reduced": reduced({3: EVERY[1:3]}),
        "all losses": exact({3: EXACT}),
    },
)
FAMILIES: dict[str, Family] = {
    "convex, 1-Lipschitz": CONVEX,
    "L-Lipschitz": LIPSCHITZ,
    **{f"L_p, p = {p}": target(p, d) for p, d in ((2, 3), (4, 3), (8, 3), (16, 5))},
    "monomials, beta = 2": monomial(2, (3, 5)),
    "monomials, beta = 3": monomial(3, (3,), EVERY[1:4]),
    "monomials, beta = 4": monomial(4, (3,)),
    "exponential of ln y": EXPONENTIAL,
    "exponential of y": INVESTORS,
    "Leontief": LEONTIEF,
    "CES": SUBSTITUTES,
    "mixed population": MIXED,
}
