"""Utilities by the names that economists use, each a constructor of a loss in [0, 1].

Users call these functions to make the loss of one agent or of a stack of agents; the populations of
scenario files (``agents.utilities.populations``) call them, too. A ParameterError names the
parameter, its value and what to write instead. ``docs/utilities.md`` has the formulas.

The outcome y_j in [0, 1] is how well good j did; an action a has parameters of its own. A loss is
minus the utility, mapped onto [0, 1] by its exact range over the cube. The map is kept: the utility
in its own units is ``-(unit_offset + unit_scale * loss)``.

Shapes: tables of actions (weights, alpha, a, targets) are (..., A, d), orders (..., A), all else is
a number or an array (...). Leading axes stack agents, of the table, of the other parameters or of
both: a table (A, d) with an exponent (N,) is N agents who share the table. Coordinates below
``y_min`` count as ``y_min``, which keeps logarithms and negative powers finite.
"""

from collections.abc import Iterator
from contextlib import contextmanager

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

MAX_OUTCOMES = 1_000_000  # coordinates of an outcome; an array of them must fit into memory
MIN_CURVATURE = 1e-6  # nearer to 0 it drowns in rounding; its limit is another utility here
INTEGER_ROUNDING = 1e-12  # a ratio of exponents this near to a whole number is meant to be it
RISK_AVERSE = Rule(
    lambda values: values >= MIN_CURVATURE,
    f"must be at least {MIN_CURVATURE:g}; use linear utility for risk-neutral agents",
)


def LinearUtility(weights: ArrayLike) -> losses.Linear:  # noqa: N802 - beside CES
    """Linear utility, by the value of each good under each action.

    Examples
    --------
    >>> LinearUtility([[1.0, 0.0], [0.0, 1.0]]).losses([0.25, 0.75])  # one good or the other
    array([0.75, 0.25])
    """
    value_table = table("weights", weights)
    with _explained(hint="lower the weights"):
        return losses.Linear(-value_table).normalised()


def CES(  # noqa: N802 - the economist's name
    weights: ArrayLike, rho: ArrayLike, v: ArrayLike | None = None, y_min: float = 0.0
) -> losses.SeparablePower | losses.PowerOfSum:
    """Constant elasticity of substitution, 1 / (1 - rho).

    The utility of an action with weights w is (sum_j w_j y_j^rho)^(v / rho). ``rho`` is below 1 for
    a taste for balance, above 1 for extremes; 0 is the Cobb-Douglas limit. ``v`` are the returns to
    scale, None for the additive utility sum_j w_j y_j^rho; with v weights are at least 0, and
    ``y_min`` is above 0 where rho is negative.

    Examples
    --------
    >>> CES([[0.5, 0.5]], 0.5).losses([0.25, 1.0])  # utility (0.5 + 1) / 2
    array([0.25])
    >>> CES([[0.5, 0.5]], 0.5, 1.0).losses([0.25, 1.0])  # with constant returns to scale its square
    array([0.4375])
    """
    power = numbers("rho", rho)
    floor = _checked_floor(y_min)
    if v is None:
        hint = "must be positive; at 0 use Cobb-Douglas, below 0 give v and y_min"
        require("rho", power, power > 0, hint)
        require("y_min", floor, floor == 0, "needs v; the additive form starts at 0")
        value_table = table("weights", weights, [power])
        with _explained(hint="lower the weights"):
            return losses.SeparablePower(-value_table, exponent=power).normalised()
    degree = numbers("v", v, POSITIVE)
    shares = table("weights", weights, [power, degree])
    is_curved = np.abs(power) >= MIN_CURVATURE
    require("rho", power, is_curved, "too near 0; use Cobb-Douglas, the limit there")
    require("weights", shares, shares >= 0, "with v they must be at least 0")
    hint = "below 0 it needs y_min above 0, such as y_min = 0.01"
    require("rho", power, (power > 0) | (floor > 0), hint)
    has_positive_weight = (power > 0)[..., None] | (shares.max(-1) > 0)
    hint = "must be positive for some good of each action, as rho is below 0"
    require("weights", shares, has_positive_weight[..., None], hint)
    outer_power = degree / power
    nearest_integer = np.round(outer_power)  # 0.6 / 0.2 is not quite 3
    is_integer = np.abs(outer_power - nearest_integer) < INTEGER_ROUNDING
    outer_power = np.where(is_integer, nearest_integer, outer_power)
    with _explained(
        hint="make each action's weights sum to 1, raise y_min or take rho further from 0"
    ):
        return losses.PowerOfSum(
            shares, exponent=outer_power, power=power, floor=floor, amplitude=np.array(-1.0)
        ).normalised()


def CobbDouglas(  # noqa: N802
    alpha: ArrayLike,
    A: ArrayLike = 1.0,  # noqa: N803 - total factor productivity
    y_min: float = 0.01,
) -> losses.ExponentialOfSum:
    """Cobb-Douglas utility or output, by its elasticity in each good.

    The output is A prod_j y_j^alpha_j. Elasticities ``alpha`` sum to the returns to scale; ``A``
    (..., A) is the productivity of each action, or one number.

    Examples
    --------
    >>> CobbDouglas([[0.5, 0.5]], y_min=0.25).losses([0.25, 1.0]).round(3)  # output 0.5
    array([0.667])
    """
    productivity = numbers("A", A, POSITIVE)
    floor = _checked_floor(y_min)
    require("y_min", floor, floor > 0, "must be above 0, such as 0.01: ln 0 is no number")
    if 0 in productivity.shape:
        raise ParameterError(
            f"A has shape {productivity.shape}; give one number, or one for each action"
        )
    one_per_agent = productivity
    if productivity.ndim:
        one_per_agent = productivity[..., 0]  # without the axis of actions: it stacks agents alone
    exponents = table("alpha", alpha, [one_per_agent], rule=NOT_NEGATIVE)
    with _explained(hint="lower A"):
        return losses.ExponentialOfSum(
            exponents,
            power=np.array(0.0),  # for the logarithm of each outcome
            floor=floor,
            amplitude=-productivity,
        ).normalised()


def Leontief(a: ArrayLike) -> losses.MinimumOfRatios:  # noqa: N802
    """Goods in fixed proportions, by how much of each a unit takes, 0 for what is not needed.

    The utility is the number of units that can be made, the least y_j / a_j.

    Examples
    --------
    >>> Leontief([[1.0, 0.5]]).losses([0.25, 0.25])  # the first good is short
    array([0.75])
    """
    requirements = table("a", a, rule=NOT_NEGATIVE)
    needs_some_good = requirements.max(-1, keepdims=True) > 0
    require("a", requirements, needs_some_good, "each action must need some good")
    with _explained(hint="raise the smallest positive a"):
        return losses.MinimumOfRatios(requirements).normalised()


def CARA(weights: ArrayLike, risk_aversion: ArrayLike) -> losses.ExponentialOfSum:  # noqa: N802
    """Constant absolute risk aversion gamma, by holdings: wealth is ``weights @ y``.

    The utility is -exp(-gamma wealth); gamma is ``risk_aversion``.

    Examples
    --------
    >>> CARA([[1.0]], 2.0).losses([[0.0], [0.5], [1.0]]).round(3).ravel()  # concave in wealth
    array([1.   , 0.269, 0.   ])
    """
    gamma = numbers("risk_aversion", risk_aversion, RISK_AVERSE)
    exponents = -gamma[..., None, None] * table("weights", weights, [gamma])
    with _explained(hint="lower risk_aversion"):
        return losses.ExponentialOfSum(exponents, amplitude=np.array(1.0)).normalised()


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
    gamma = numbers("risk_aversion", risk_aversion, RISK_AVERSE)
    reference_return = numbers("reference", reference)
    holdings = table("weights", weights, [gamma, reference_return])
    with _explained(hint="lower the weights"):
        return losses.PowerOfSum(
            holdings,
            exponent=np.array(2.0),
            intercept=-(reference_return + 1 / gamma)[..., None],
            amplitude=gamma[..., None] / 2,
            offset=-(reference_return + 1 / (2 * gamma))[..., None],
        ).normalised()


def Newsvendor(  # noqa: N802
    orders: ArrayLike,
    underage: ArrayLike,
    overage: ArrayLike,
    *,
    coordinate: int = 0,
    outcomes: int = 1,
) -> losses.Convex1D:
    """Cost of an order, in the units of the demand, before this is known.

    ``underage`` and ``overage`` are the costs of a unit short and of one left over, not both 0.
    Demand is the ``coordinate`` of an outcome that has so many ``outcomes`` in all.

    Examples
    --------
    An order of 0, 0.5 or 1 meets a demand of 0.75: costs are 2.25, 0.75 and 0.25, of 3 at most.

    >>> Newsvendor([0.0, 0.5, 1.0], 3.0, 1.0).losses([0.75]).round(3)
    array([0.75 , 0.25 , 0.083])
    """
    underage_cost = numbers("underage", underage, NOT_NEGATIVE)
    overage_cost = numbers("overage", overage, NOT_NEGATIVE)
    order_sizes = table(
        "orders", orders, [underage_cost, overage_cost], axes="actions", rule=NOT_NEGATIVE
    )
    costs_something = underage_cost + overage_cost > 0
    require("underage", underage_cost, costs_something, "must be positive where overage is 0")
    n_outcomes = check_int("outcomes", outcomes, least=1, below=MAX_OUTCOMES)
    demand_coordinate = check_int("coordinate", coordinate, least=0, below=n_outcomes)
    # The cost of an order is overage * order at demand 0, falls with slope -overage as demand grows
    # up to the order, and has a slope that is larger by overage + underage from there on.
    slope_below_order = -overage_cost[..., None]  # (..., A or 1)
    cost_at_no_demand = overage_cost[..., None] * order_sizes  # (..., A)
    slope_change = underage_cost[..., None] + overage_cost[..., None]  # (..., A or 1)
    slope_change_per_action = np.broadcast_to(slope_change, order_sizes.shape)
    with _explained(hint="lower underage, overage or orders"):
        return losses.Convex1D(
            kinks=slope_change_per_action[..., None],  # one kink of each action (..., A, 1)
            knots=order_sizes[..., None],  # where it is
            slope=slope_below_order,
            offset=cost_at_no_demand,
            coordinate=demand_coordinate,
            dimension=n_outcomes,
        ).normalised()


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
    power = numbers("p", p)
    importance = numbers("weights", weights, NOT_NEGATIVE)
    require("p", power, power >= 1, "must be at least 1")
    target_table = table("targets", targets, [power])
    try:
        importance = np.broadcast_to(importance, target_table.shape)
    except ValueError:
        raise ParameterError(
            f"weights have shape {importance.shape}, targets {target_table.shape}; "
            "give one weight for each good"
        ) from None
    with _explained(hint="lower p or the targets"):
        return losses.SeparablePower(importance, exponent=power, centre=target_table).normalised()


def _checked_floor(y_min: float) -> Array:
    """Return the floor of outcomes as an array (); ParameterError unless one number in [0, 1)."""
    floor = numbers("y_min", y_min)
    if floor.ndim:
        raise ParameterError("y_min must be one number for all agents; write y_min = 0.01, say")
    require("y_min", floor, (floor >= 0) & (floor < 1), "must lie in [0, 1)")
    return floor


@contextmanager
def _explained(*, hint: str) -> Iterator[None]:
    """Turn numbers that are too large, or make no loss, into a ParameterError with a hint."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except FloatingPointError:
        raise ParameterError(f"the utility overflows; {hint}") from None
    except ValueError as error:
        raise ParameterError(f"{error}; {hint}") from error
