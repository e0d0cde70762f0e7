"""The loss families in the table of bases, with the bases that serve each and the errors asked.

A basis is built for the population that is measured: its Lipschitz constant, its reach, its g. What
the paper prints are the formulas of its table and its proofs, with A = 1 and with R and L of the
population. An O(.) is evaluated with the constant 1, and its column ends in ``_leading``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paper import samples
from regretless.forecaster import bases
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

Plan = dict[int, tuple[float, ...]]  # the wanted errors for each number of outcomes d
Build = Callable[[list[Any], float], Basis]  # from the population and the wanted error

EXACT = (math.nan,)  # the wanted errors of an exact basis
ERRORS = (0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Choice:
    """One basis of a family.

    Parameters
    ----------
    role : str
        "paper", "default" or "alternative".
    build : function from the population and the wanted error to the basis
    plan : dict
        The wanted errors for each number of outcomes d.
    raw : bool
        Whether lambda is declared for the paper's losses as they stand.
    fitted : bool
        Whether the basis's own error is a measured one; then its certificate is declared.
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
    losses : function from the number of outcomes d to the population
    paper : function from the population and the wanted error to the paper's formulas, by column
    choices : dict
        The bases that serve it, by name.
    """

    note: str
    losses: Callable[[int], list[Loss]]
    paper: Callable[[list[Loss], float], dict[str, float]]
    choices: dict[str, Choice]


def steepest(losses: list[Loss]) -> float:
    """Return the Lipschitz constant of a population, L."""
    return max(float(loss.lipschitz().max()) for loss in losses)


def inner(losses: list[Any]) -> dict[str, float]:
    """Return what a series for exponentials needs: the function g and the reach of the sums."""
    return {
        "reach": max(float(abs(loss.weights).sum(-1).max()) for loss in losses),
        "power": float(losses[0].power.flat[0]),
        "floor": float(losses[0].floor.flat[0]),
    }


def printed_convex(_: list[Loss], error: float) -> dict[str, float]:
    """Evaluate O(ln^(4/3)(1/delta) / delta^(2/3)) and O(1)."""
    size = math.log(1 / error) ** (4 / 3) / error ** (2 / 3)
    return {"paper_n_leading": size, "paper_lipschitz_leading": 1.0}


def printed_grid(losses: list[Loss], error: float) -> dict[str, float]:
    """Evaluate (L / delta)^d and 1: the paper's answer to any Lipschitz loss."""
    return {"paper_n": (steepest(losses) / error) ** losses[0].outcomes, "paper_lipschitz": 1.0}


def printed_powers(losses: list[Any], _: float) -> dict[str, float]:
    """Evaluate p d and O(p^(p + 1) d)."""
    power = float(losses[0].exponent.max())
    goods = losses[0].outcomes
    return {"paper_n": power * goods, "paper_lipschitz_leading": power ** (power + 1) * goods}


def printed_monomials(losses: list[Any], _: float) -> dict[str, float]:
    """Evaluate d^beta and (R d)^beta with R = 1, the bound on shares."""
    size = float(losses[0].outcomes ** losses[0].exponent.max())
    return {"paper_n": size, "paper_lipschitz": size}


def printed_exponential(losses: list[Any], error: float) -> dict[str, float]:
    """Evaluate d + ... + d^k at Taylor's k, O((1/delta)^(ln d)), and e^(R d)."""
    goods = losses[0].outcomes
    largest = max(float(abs(loss.weights).max()) for loss in losses)
    degree = bases.TaylorExponentialBasis(1, error=error, **inner(losses)).degree
    return {
        "paper_n": float(sum(goods**k for k in range(1, degree + 1))),
        "paper_n_leading": (1 / error) ** math.log(goods),
        "paper_lipschitz": math.exp(largest * goods),
    }


def printed_leontief(losses: list[Loss], error: float) -> dict[str, float]:
    """Evaluate both O(.) with c = 1, at the delta whose error 3 L delta is the wanted one."""
    d = losses[0].outcomes
    constant = steepest(losses)
    delta = error / (3 * constant)
    log = math.log(1 / delta)
    size = d**4 * log ** (3 * d + 1) / delta ** ((6 * d + 8) / (d + 2))
    sums = constant * d**2.5 * log ** (2 * d + 0.5) / delta ** ((5 * d + 6) / (d + 2))
    return {"paper_n_leading": size, "paper_lipschitz_leading": sums}


def convex(kind: Callable[..., Basis], **options: float) -> Build:
    """Return the maker of a basis for all convex losses of one outcome."""
    return lambda _, error: kind(error=error, **options)


def listed(kind: Callable[..., Basis], **options: float) -> Build:
    """Return the maker of a basis for the losses of the population."""
    return lambda losses, error: kind(losses, error=error, **options)


def grid(*, centred: bool) -> Build:
    """Return the maker of a grid."""
    return lambda losses, error: bases.LipschitzGridBasis(
        losses[0].outcomes, constant=steepest(losses), error=error, centred=centred
    )


def series(kind: Callable[..., Basis]) -> Build:
    """Return the maker of a series for exponentials of a sum."""
    return lambda losses, error: kind(losses[0].outcomes, error=error, **inner(losses))


def leontief(*, nearest: bool) -> Build:
    """Return the maker of the paper's basis for Leontief losses."""
    return lambda losses, error: bases.LeontiefBasis.covering(
        losses[0].outcomes, constant=steepest(losses), error=error, nearest=nearest
    )


def reduced(plan: Plan, *, role: str = "default") -> Choice:
    """Return the choice of losses of the population as functions."""
    return Choice(role, listed(bases.ReducedBasis), plan, fitted=True)


def ramps(plan: Plan, *, floor: float = 0.0) -> Choice:
    """Return the choice of interpolation in cumulative form."""
    return Choice("alternative", listed(bases.RampBasis, floor=floor), plan)


ALL_LOSSES = Choice("alternative", lambda losses, _: bases.ExactLossesBasis(losses), {3: EXACT})


def target(power: int, goods: int) -> Family:
    """Describe L_p losses of one power."""
    plan: Plan = {goods: EXACT}

    def powers(_: list[Any], __: float) -> Basis:
        return bases.PowerBasis.binomial(power, goods)

    def bernstein(_: list[Any], __: float) -> Basis:
        return bases.BernsteinBasis(goods, power)

    return Family(
        "targets in the cube, a quarter at corners",
        samples.targets(power),
        printed_powers,
        {
            "powers": Choice("paper", powers, plan, raw=True),
            "Bernstein": Choice("default", bernstein, plan, raw=True),
        },
    )


def monomial(degree: int, outcomes: tuple[int, ...], errors: tuple[float, ...] = ()) -> Family:
    """Describe powers of one sum."""

    def multisets(losses: list[Any], _: float) -> Basis:
        goods = losses[0].outcomes
        return bases.MonomialBasis(goods, degree, power=0.5, homogeneous=True)

    return Family(
        "CES with rho = 1/2 and v = beta / 2, shares in the simplex",
        samples.monomials(degree),
        printed_monomials,
        {
            "multisets": Choice("default", multisets, dict.fromkeys(outcomes, EXACT)),
            "reduced": reduced(dict.fromkeys(outcomes, errors), role="alternative"),
        },
    )


CORNERS = grid(centred=False)
CENTRED = grid(centred=True)
TAYLOR = series(bases.TaylorExponentialBasis)
CHEBYSHEV = series(bases.ChebyshevExponentialBasis)
OPTIMISED = bases.OptimisedConvexBasis
CONVEX = Family(
    "mixtures of |y - t| and y with slopes up to 1",
    samples.convex,
    printed_convex,
    {
        "Gopalan et al.": Choice("paper", convex(bases.ConvexRankBasis), {1: ERRORS}),
        "ReLU grid": Choice("default", convex(bases.ReLUBasis), {1: ERRORS}),
        "optimised": Choice("alternative", convex(OPTIMISED), {1: ERRORS[1:]}),
        "optimised, cap 3": Choice("alternative", convex(OPTIMISED, cap=3.0), {1: ERRORS[2:4]}),
    },
)
LIPSCHITZ = Family(
    "cones, their reverse and waves, L = 1",
    samples.lipschitz,
    printed_grid,
    {
        "grid, corners": Choice("paper", CORNERS, {1: (0.1, 0.01), 2: ERRORS[:4], 3: ERRORS[:2]}),
        "grid, centred": Choice("default", CENTRED, {1: (0.1, 0.01), 2: ERRORS, 3: ERRORS[:3]}),
    },
)
EXPONENTIAL = Family(
    f"Cobb-Douglas, returns up to {samples.MAX_RETURNS:g}, y_min = {samples.Y_MIN_COBB_DOUGLAS}",
    samples.cobb_douglas,
    printed_exponential,
    {
        "Taylor at 0": Choice("paper", TAYLOR, {1: (0.1,), 3: ERRORS, 5: (0.1,)}, raw=True),
        "Chebyshev": Choice("default", CHEBYSHEV, {1: (0.1,), 3: ERRORS, 5: (0.1, 0.01)}),
        "ramps": ramps({3: (0.2,)}, floor=samples.Y_MIN_COBB_DOUGLAS),
        "reduced": reduced({3: ERRORS[:4]}, role="alternative"),
    },
)
INVESTORS = Family(
    f"CARA, risk aversion up to {samples.MAX_AVERSION:g}",
    samples.cara,
    printed_exponential,
    {
        "Taylor at 0": Choice("paper", TAYLOR, {3: ERRORS}, raw=True),
        "Chebyshev": Choice("default", CHEBYSHEV, {3: ERRORS}),
    },
)
WIDE_ERRORS = (0.4, *ERRORS)
LEONTIEF = Family(
    f"requirements in [1/L, 1] with L = {samples.MAX_STEEPNESS:g}",
    samples.leontief,
    printed_leontief,
    {
        "MReLU, as printed": Choice(
            "paper", leontief(nearest=False), {2: WIDE_ERRORS[:3], 3: WIDE_ERRORS[:2]}
        ),
        "MReLU, nearest": Choice(
            "alternative", leontief(nearest=True), {2: WIDE_ERRORS[:4], 3: WIDE_ERRORS[:2]}
        ),
        "grid, centred": Choice("alternative", CENTRED, {2: WIDE_ERRORS[:5], 3: WIDE_ERRORS[:3]}),
        "ramps": ramps({2: (0.2, 0.05), 3: (0.2,)}),
        "reduced": reduced({2: ERRORS[:4], 3: ERRORS[:3]}),
    },
)
SUBSTITUTES = Family(
    f"rho in [0.2, 0.8], v in [0.5, 1], y_min = {samples.Y_MIN}",
    samples.ces,
    printed_grid,
    {
        "grid, corners": Choice("paper", CORNERS, {3: (0.4,)}),
        "grid, centred": Choice("alternative", CENTRED, {3: (0.4, 0.2)}),
        "ramps": ramps({3: ERRORS[:4]}, floor=samples.Y_MIN),
        "reduced": reduced({3: ERRORS[:4]}),
        "all losses": ALL_LOSSES,
    },
)
MIXED = Family(
    f"{samples.MIXED_AGENTS} agents each, {samples.MIXED_ACTIONS} actions: CES (rho in [0.3, 0.9], "
    "v in [0.5, 1]), Cobb-Douglas (returns in [0.5, 1]), Leontief (requirements in [1/L, 1], L in "
    f"[1, {samples.MAX_STEEPNESS:g}]); y_min = {samples.Y_MIN}",
    samples.mixed,
    printed_grid,
    {
        "ramps": ramps({3: (0.2,)}),
        "reduced": reduced({3: ERRORS[1:3]}),
        "all losses": ALL_LOSSES,
    },
)
FAMILIES: dict[str, Family] = {
    "convex, 1-Lipschitz": CONVEX,
    "L-Lipschitz": LIPSCHITZ,
    "L_p, p = 2": target(power=2, goods=3),
    "L_p, p = 4": target(power=4, goods=3),
    "L_p, p = 8": target(power=8, goods=3),
    "L_p, p = 16": target(power=16, goods=5),
    "monomials, beta = 2": monomial(2, outcomes=(3, 5)),
    "monomials, beta = 3": monomial(3, outcomes=(3,), errors=ERRORS[1:4]),
    "monomials, beta = 4": monomial(4, outcomes=(3,)),
    "exponential of ln y": EXPONENTIAL,
    "exponential of y": INVESTORS,
    "Leontief": LEONTIEF,
    "CES": SUBSTITUTES,
    "mixed population": MIXED,
}
