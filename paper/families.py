"""The loss families in the table of bases, with the bases that serve each and the errors asked.

A basis is built for the population that is measured: its Lipschitz constant, its reach, its g.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paper import printed, samples
from regretless.forecaster import bases
from regretless.market.game.basis import Basis
from regretless.market.losses import Loss

Plan = dict[int, tuple[float, ...]]
Build = Callable[[list[Any], float], Basis]

EXACT = (math.nan,)  # the wanted errors of an exact basis
EVERY = (0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Choice:
    """One basis of a family."""

    role: str  # "paper", "default" or "alternative"
    build: Build  # from the population and the wanted error
    plan: Plan  # the wanted errors for each number of outcomes d
    raw: bool = False  # lambda is declared for the paper's losses as they stand
    fitted: bool = False  # the basis's own error is a measured one; its certificate holds


@dataclass(frozen=True)
class Family:
    """A family of losses."""

    note: str  # the population in words
    losses: Callable[[int], list[Loss]]  # the population, from the number of outcomes d
    paper: Callable[[list[Loss], float], dict[str, float]]  # the paper's formulas, by column
    choices: dict[str, Choice]


def convex(kind: Callable[..., Basis], **options: float) -> Build:
    """Return the maker of a basis for all convex losses of one outcome."""
    return lambda _, error: kind(error=error, **options)


def listed(kind: Callable[..., Basis], **options: float) -> Build:
    """Return the maker of a basis for the losses of the population."""
    return lambda losses, error: kind(losses, error=error, **options)


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
    return Choice(role, listed(bases.ReducedBasis), plan, fitted=True)


def ramps(plan: Plan, *, floor: float = 0.0) -> Choice:
    """Interpolation in cumulative form."""
    return Choice("alternative", listed(bases.RampBasis, floor=floor), plan)


ALL = Choice("alternative", lambda losses, _: bases.ExactLossesBasis(losses), {3: EXACT})


def target(power: int, goods: int) -> Family:
    """L_p losses of one power."""
    kinds = {
        "powers": ("paper", lambda *_: bases.PowerBasis.binomial(power, goods)),
        "Bernstein": ("default", lambda *_: bases.BernsteinBasis(goods, power)),
    }
    return Family(
        "targets in the cube, a quarter at corners",
        samples.targets(power),
        printed.powers,
        {name: Choice(*made, {goods: EXACT}, raw=True) for name, made in kinds.items()},
    )


def monomial(degree: int, outcomes: tuple[int, ...], errors: tuple[float, ...] = ()) -> Family:
    """Powers of one sum."""

    def multisets(losses: list[Any], _: float) -> Basis:
        goods = losses[0].outcomes
        return bases.MonomialBasis(goods, degree, power=0.5, homogeneous=True)

    return Family(
        "CES with rho = 1/2 and v = beta / 2, shares in the simplex",
        samples.monomials(degree),
        printed.monomials,
        {
            "multisets": Choice("default", multisets, dict.fromkeys(outcomes, EXACT)),
            "reduced": reduced(dict.fromkeys(outcomes, errors), role="alternative"),
        },
    )


CORNERS, CENTRED = grid(centred=False), grid(centred=True)
TAYLOR, CHEBYSHEV = series(bases.TaylorExponentialBasis), series(bases.ChebyshevExponentialBasis)
OPTIMISED = bases.OptimisedConvexBasis
CONVEX = Family(
    "mixtures of |y - t| and y with slopes up to 1",
    samples.convex,
    printed.convex,
    {
        "Gopalan et al.": Choice("paper", convex(bases.ConvexRankBasis), {1: EVERY}),
        "ReLU grid": Choice("default", convex(bases.ReLUBasis), {1: EVERY}),
        "optimised": Choice("alternative", convex(OPTIMISED), {1: EVERY[1:]}),
        "optimised, cap 3": Choice("alternative", convex(OPTIMISED, cap=3.0), {1: EVERY[2:4]}),
    },
)
LIPSCHITZ = Family(
    "cones, their reverse and waves, L = 1",
    samples.lipschitz,
    printed.grid,
    {
        "grid, corners": Choice("paper", CORNERS, {1: (0.1, 0.01), 2: EVERY[:4], 3: EVERY[:2]}),
        "grid, centred": Choice("default", CENTRED, {1: (0.1, 0.01), 2: EVERY, 3: EVERY[:3]}),
    },
)
EXPONENTIAL = Family(
    f"Cobb-Douglas, returns up to {samples.REACH:g}, y_min = {samples.LEAST_LOG}",
    samples.cobb_douglas,
    printed.exponential,
    {
        "Taylor at 0": Choice("paper", TAYLOR, {1: (0.1,), 3: EVERY, 5: (0.1,)}, raw=True),
        "Chebyshev": Choice("default", CHEBYSHEV, {1: (0.1,), 3: EVERY, 5: (0.1, 0.01)}),
        "ramps": ramps({3: (0.2,)}, floor=samples.LEAST_LOG),
        "reduced": reduced({3: EVERY[:4]}, role="alternative"),
    },
)
INVESTORS = Family(
    f"CARA, risk aversion up to {samples.AVERSION:g}",
    samples.cara,
    printed.exponential,
    {
        "Taylor at 0": Choice("paper", TAYLOR, {3: EVERY}, raw=True),
        "Chebyshev": Choice("default", CHEBYSHEV, {3: EVERY}),
    },
)
WIDE = (0.4, *EVERY)
LEONTIEF = Family(
    f"requirements in [1/L, 1] with L = {samples.STEEPEST:g}",
    samples.leontief,
    printed.leontief,
    {
        "MReLU, as printed": Choice("paper", leontief(nearest=False), {2: WIDE[:3], 3: WIDE[:2]}),
        "MReLU, nearest": Choice("alternative", leontief(nearest=True), {2: WIDE[:4], 3: WIDE[:2]}),
        "grid, centred": Choice("alternative", CENTRED, {2: WIDE[:5], 3: WIDE[:3]}),
        "ramps": ramps({2: (0.2, 0.05), 3: (0.2,)}),
        "reduced": reduced({2: EVERY[:4], 3: EVERY[:3]}),
    },
)
SUBSTITUTES = Family(
    f"rho in [0.2, 0.8], v in [0.5, 1], y_min = {samples.LEAST_GOOD}",
    samples.ces,
    printed.grid,
    {
        "grid, corners": Choice("paper", CORNERS, {3: (0.4,)}),
        "grid, centred": Choice("alternative", CENTRED, {3: (0.4, 0.2)}),
        "ramps": ramps({3: EVERY[:4]}, floor=samples.LEAST_GOOD),
        "reduced": reduced({3: EVERY[:4]}),
        "all losses": ALL,
    },
)
MIXED = Family(
    f"{samples.MIXED_AGENTS} agents each, {samples.MIXED_ACTIONS} actions: CES (rho in [0.3, 0.9], "
    "v in [0.5, 1]), Cobb-Douglas (returns in [0.5, 1]), Leontief (requirements in [1/L, 1], L in "
    f"[1, {samples.STEEPEST:g}]); y_min = {samples.LEAST_GOOD}",
    samples.mixed,
    printed.grid,
    {"ramps": ramps({3: (0.2,)}), "reduced": reduced({3: EVERY[1:3]}), "all losses": ALL},
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
