"""Utilities by the names that economists use, each a constructor of a loss in [0, 1].

The outcome y_j in [0, 1] is how well good j did; an action a has parameters of its own.
``docs/utilities.md`` has the formulas.

A loss is minus the utility, mapped onto [0, 1] by its exact range over the cube. The map is kept:
the utility in its own units is ``-(unit_offset + unit_scale * loss)``.

Tables of actions (weights, alpha, a, targets) have shape (..., A, d), orders (..., A), all else is
a number or an array (...). Leading axes stack agents, of the table, of the other parameters or of
both: a table (A, d) with an exponent (N,) is N agents who share the table. Coordinates below
``y_min`` count as ``y_min``, which keeps logarithms and negative powers finite.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import (
    NOT_NEGATIVE,
    POSITIVE,
    Rule,
    check_int,
    numbers,
    require,
    table,
)
from regretless.market import losses
from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError

Form = TypeVar("Form", bound=losses.Loss)

MOST_OUTCOMES = 1_000_000  # coordinates of an outcome; an array of them must fit into memory
LEAST = 1e-6  # a curvature nearer to 0 drowns in rounding; its limit has a utility of its own
AVERSE = Rule(
    lambda found: found >= LEAST,
    f"must be at least {LEAST:g}; use linear utility for risk-neutral agents",
)


def LinearUtility(weights: ArrayLike) -> losses.Linear:  # noqa: N802 - beside CES
    """Linear utility, by the value of each good under each action.

    Examples
    --------
    >>> LinearUtility([[1.0, 0.0], [0.0, 1.0]]).losses([0.25, 0.75])  # one good or the other
    array([0.75, 0.25])
    """
    values = table("weights", weights)
    return _normalised(lambda: losses.Linear(-values), "lower the weights")


def CES(  # noqa: N802 - the economist's name
    weights: ArrayLike, rho: ArrayLike, v: ArrayLike | None = None, y_min: float = 0.0
) -> losses.SeparablePower | losses.PowerOfSum:
    """Constant elasticity of substitution, 1 / (1 - rho).

    ``rho`` is below 1 for a taste for balance, above 1 for extremes; 0 is the Cobb-Douglas limit.
    ``v`` are the returns to scale, None for the additive utility, in which v = rho; with v weights
    are at least 0, and ``y_min`` is above 0 where rho is negative.

    Examples
    --------
    >>> CES([[0.5, 0.5]], 0.5).losses([0.25, 1.0])  # utility (0.5 + 1) / 2
    array([0.25])
    >>> CES([[0.5, 0.5]], 0.5, 1.0).losses([0.25, 1.0])  # with constant returns to scale its square
    array([0.4375])
    """
    power, floor = numbers("rho", rho), _floor(y_min)
    if v is None:
        cure = "must be positive; at 0 use Cobb-Douglas, below 0 give v and y_min"
        require("rho", power, power > 0, cure)
        require("y_min", floor, floor == 0, "needs v; the additive form starts at 0")
        values = table("weights", weights, [power])
        return _normalised(lambda: losses.SeparablePower(-values, power), "lower the weights")
    degree = numbers("v", v, POSITIVE)
    shares = table("weights", weights, [power, degree])
    require("rho", power, np.abs(power) >= LEAST, "too near 0; use Cobb-Douglas, the limit there")
    require("weights", shares, shares >= 0, "with v they must be at least 0")
    cure = "below 0 it needs y_min above 0, such as y_min = 0.01"
    require("rho", power, (power > 0) | (floor > 0), cure)
    spent = (power > 0)[..., None] | (shares.max(-1) > 0)
    cure = "must be positive for some good of each action, as rho is below 0"
    require("weights", shares, spent[..., None], cure)
    ratio = degree / power
    whole = np.round(ratio)  # 0.6 / 0.2 is not quite 3
    ratio = np.where(np.abs(ratio - whole) < 1e-12, whole, ratio)
    return _normalised(
        lambda: losses.PowerOfSum(shares, ratio, power, floor, amplitude=np.array(-1.0)),
        "make each action's weights sum to 1, raise y_min or take rho further from 0",
    )


def CobbDouglas(  # noqa: N802
    alpha: ArrayLike,
    A: ArrayLike = 1.0,  # noqa: N803 - total factor productivity
    y_min: float = 0.01,
) -> losses.ExponentialOfSum:
    """Cobb-Douglas utility or output, by its elasticity in each good.

    Elasticities sum to the returns to scale; ``A`` (..., A) is the productivity of each action.

    Examples
    --------
    >>> CobbDouglas([[0.5, 0.5]], y_min=0.25).losses([0.25, 1.0]).round(3)  # output 0.5
    array([0.667])
    """
    factor, floor = numbers("A", A, POSITIVE), _floor(y_min)
    require("y_min", floor, floor > 0, "must be above 0, such as 0.01: ln 0 is no number")
    if 0 in factor.shape:
        raise ParameterError(f"A has shape {factor.shape}; give one number, or one for each action")
    each = factor[..., 0] if factor.ndim else factor
    exponents = table("alpha", alpha, [each], rule=NOT_NEGATIVE)
    return _normalised(
        lambda: losses.ExponentialOfSum(exponents, np.array(0.0), floor, amplitude=-factor),
        "lower A",
    )


def Leontief(a: ArrayLike) -> losses.MinimumOfRatios:  # noqa: N802
    """Goods in fixed proportions, by how much of each a unit takes, 0 for what is not needed.

    Examples
    --------
    >>> Leontief([[1.0, 0.5]]).losses([0.25, 0.25])  # the first good is short
    array([0.75])
    """
    needs = table("a", a, rule=NOT_NEGATIVE)
    require("a", needs, needs.max(-1, keepdims=True) > 0, "each action must need some good")
    return _normalised(lambda: losses.MinimumOfRatios(needs), "raise the smallest positive a")


def CARA(weights: ArrayLike, risk_aversion: ArrayLike) -> losses.ExponentialOfSum:  # noqa: N802
    """Constant absolute risk aversion gamma, by holdings: wealth is ``weights @ y``.

    Examples
    --------
    >>> CARA([[1.0]], 2.0).losses([[0.0], [0.5], [1.0]]).round(3).ravel()  # concave in wealth
    array([1.   , 0.269, 0.   ])
    """
    gamma = numbers("risk_aversion", risk_aversion, AVERSE)
    rates = -gamma[..., None, None] * table("weights", weights, [gamma])
    return _normalised(
        lambda: losses.ExponentialOfSum(rates, amplitude=np.array(1.0)), "lower risk_aversion"
    )


def MeanVariance(  # noqa: N802
    weights: ArrayLike, risk_aversion: ArrayLike, reference: ArrayLike = 0.0
) -> losses.PowerOfSum:
    """Mean-variance utility of a portfolio: the return is ``weights @ y``.

    With the expected return as ``reference`` m, the expected utility is E R - (gamma / 2) Var R;
    with reference 0 it is quadratic utility, which falls for returns above 1 / gamma. The loss has
    the square completed: (gamma / 2) (R - m - 1 / gamma)^2 - m - 1 / (2 gamma).

    Examples
    --------
    >>> MeanVariance([[1.0]], 1.0).losses([[0.0], [0.5], [1.0]]).ravel()  # utility R - R^2 / 2
    array([1.  , 0.25, 0.  ])
    """
    gamma, centre = numbers("risk_aversion", risk_aversion, AVERSE), numbers("reference", reference)
    portfolio = table("weights", weights, [gamma, centre])
    return _normalised(
        lambda: losses.PowerOfSum(
            portfolio,
            np.array(2.0),
            intercept=-(centre + 1 / gamma)[..., None],
            amplitude=gamma[..., None] / 2,
            offset=-(centre + 1 / (2 * gamma))[..., None],
        ),
        "lower the weights",
    )


def Newsvendor(  # noqa: N802
    orders: ArrayLike,
    underage: ArrayLike,
    overage: ArrayLike,
    *,
    coordinate: int = 0,
    outcomes: int = 1,
) -> losses.Convex1D:
    """Cost of an order, in the units of the demand, before this is known.

    ``underage`` and ``overage`` are the costs of a unit short and of one left over, not both 0; the
    ``coordinate`` of so many ``outcomes`` is demand.

    Examples
    --------
    An order of 0, 0.5 or 1 meets a demand of 0.75: costs are 2.25, 0.75 and 0.25, of 3 at most.

    >>> Newsvendor([0.0, 0.5, 1.0], 3.0, 1.0).losses([0.75]).round(3)
    array([0.75 , 0.25 , 0.083])
    """
    short = numbers("underage", underage, NOT_NEGATIVE)
    over = numbers("overage", overage, NOT_NEGATIVE)
    quantity = table("orders", orders, [short, over], axes="actions", rule=NOT_NEGATIVE)
    require("underage", short, short + over > 0, "must be positive where overage is 0")
    dimension = check_int("outcomes", outcomes, least=1, below=MOST_OUTCOMES)
    demand = check_int("coordinate", coordinate, least=0, below=dimension)
    both, over = short[..., None] + over[..., None], over[..., None]
    return _normalised(
        lambda: losses.Convex1D(
            kinks=np.broadcast_to(both, quantity.shape)[..., None],
            knots=quantity[..., None],
            slope=-over,
            offset=over * quantity,
            coordinate=demand,
            dimension=dimension,
        ),
        "lower underage, overage or orders",
    )


def LpTarget(  # noqa: N802
    targets: ArrayLike, p: ArrayLike = 2.0, weights: ArrayLike = 1.0
) -> losses.SeparablePower:
    """Distance of the outcome to the target of each action, to the power ``p``, at least 1.

    ``weights`` are the importance of each good, and broadcast against the targets.

    Examples
    --------
    >>> LpTarget([[0.5], [1.0]]).losses([0.0])  # squared distances
    array([0.25, 1.  ])
    """
    power, importance = numbers("p", p), numbers("weights", weights, NOT_NEGATIVE)
    require("p", power, power >= 1, "must be at least 1")
    centre = table("targets", targets, [power])
    try:
        importance = np.broadcast_to(importance, centre.shape)
    except ValueError:
        told = f"weights have shape {importance.shape}, targets {centre.shape}"
        raise ParameterError(f"{told}; give one weight for each good") from None
    return _normalised(
        lambda: losses.SeparablePower(importance, power, centre=centre), "lower p or the targets"
    )


def _floor(y_min: float) -> Array:
    floor = numbers("y_min", y_min)
    if floor.ndim:
        raise ParameterError("y_min must be one number for all agents; write y_min = 0.01, say")
    require("y_min", floor, (floor >= 0) & (floor < 1), "must lie in [0, 1)")
    return floor


def _normalised(make: Callable[[], Form], cure: str) -> Form:
    """Map a loss onto [0, 1]; ParameterError where it is no loss, or too large for a number."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return make().normalised()
    except FloatingPointError:
        raise ParameterError(f"the utility overflows; {cure}") from None
    except ValueError as error:
        raise ParameterError(f"{error}; {cure}") from error
