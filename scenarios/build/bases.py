"""Which basis serves which losses: the default of every loss form, and the ones a file may name.

    linear                linear losses, exact
    powers                separable powers about 0, exact or interpolated between exponents
    bernstein             separable integer powers about a target, exact
    monomials             integer powers of one sum, exact
    chebyshev, taylor     exponentials of a sum
    relu                  convex losses of one coordinate, with their own kinks where these are few
    convex-rank, optimised-convex          the same
    lipschitz-grid        any losses with a Lipschitz constant
    leontief              minima of ratios, by the paper's construction
    ramps                 any losses, by interpolation
    exact, reduced        the losses of the cohorts themselves, all or a few

Losses without an exact or small basis of their own share one reduced basis.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from regretless.forecaster import bases
from regretless.market.core.errors import UserError, closest
from regretless.market.losses import (
    Convex1D,
    ExponentialOfSum,
    Loss,
    MinimumOfRatios,
    PowerOfSum,
    SeparablePower,
    unique_losses,
)
from regretless.market.losses.basis import Basis
from regretless.scenarios.build.construct import construct

Form = TypeVar("Form", bound=Loss)

MOST_EXACT = 6  # distinct exponents that are listed one by one; more are interpolated
# Default error of a reduced basis. It enters regret, but a fine one takes minutes for many losses.
FEW, FINE, COARSE = 1000, 0.04, 0.1
ERROR_OF_CONVEX = (
    0.01  # of losses in [0, 1], of one coordinate, with more kinks than a grid's knots
)
MOST_DEGREE = 32  # of Bernstein polynomials
MOST_CELLS = 400  # of a grid; above, a reduced basis is smaller
MOST_MONOMIALS = 100  # functions; above, a reduced basis is smaller


def natural_kind(loss: Loss) -> str:
    """Name the default basis of a stack of losses."""
    kinds: dict[str, Callable[[Any], str]] = {
        "linear": lambda _: "linear",
        "separable-power": _of_separable,
        "power-of-sum": _of_power,
        "exponential-of-sum": lambda own: "chebyshev" if _common(own) else "reduced",
        "convex-1d": lambda _: "relu",
        "lipschitz": _of_lipschitz,
    }
    return kinds.get(loss.form, lambda _: "reduced")(loss)


def _of_separable(loss: SeparablePower) -> str:
    if not loss.centred:
        return "linear" if (loss.exponent == 1).all() else "powers"
    even = (loss.exponent % 2 == 0).all() and loss.exponent.max() <= MOST_DEGREE
    return "bernstein" if even else "reduced"


def _of_power(loss: PowerOfSum) -> str:
    beta = loss.exponent
    if not _common(loss) or (beta != np.round(beta)).any() or (loss.power <= 0).any():
        return "reduced"
    degree, alike = int(beta.max()), np.ptp(beta) == 0 and not loss.intercept.any()
    variables = loss.outcomes - 1 if alike else loss.outcomes  # one less where all have one degree
    small = math.comb(variables + degree, degree) <= MOST_MONOMIALS
    return "monomials" if small else "reduced"


def _of_lipschitz(loss: Loss) -> str:
    """Take a grid where it is small, as for few outcomes that matter little."""
    cells = np.ceil(_steepest([loss]) / (2 * COARSE)) ** loss.outcomes
    return "lipschitz-grid" if cells <= MOST_CELLS else "reduced"


def _common(loss: PowerOfSum | ExponentialOfSum) -> bool:
    """Whether all losses of a stack have the same function g."""
    return bool(np.ptp(loss.power) == 0 and np.ptp(loss.floor) == 0)


def variant(kind: str, loss: Loss) -> tuple[float, ...]:
    """Tell losses of one kind apart that cannot share a basis: their g, or their coordinate."""
    if kind in {"monomials", "chebyshev", "taylor"} and isinstance(
        loss, PowerOfSum | ExponentialOfSum
    ):
        return float(loss.power.flat[0]), float(loss.floor.flat[0])
    return (loss.coordinate,) if isinstance(loss, Convex1D) and kind in CONVEX else ()


def make(where: str, kind: str, losses: Sequence[Loss], **parameters: Any) -> Basis:
    """Make the basis for cohorts with these losses.

    Parameters
    ----------
    where : str
        The key in the scenario file, for error lines.
    losses : sequence of stacks
    **parameters
        From the scenario file.

    Raises
    ------
    UserError
        If the kind is unknown, or the losses or parameters do not fit it.
    """
    if kind not in MAKERS:
        raise UserError(f"{where}: unknown basis '{kind}'; {closest(kind, ['auto', *MAKERS])}")
    error = parameters.get("error", 1.0)
    if isinstance(error, bool) or not isinstance(error, int | float) or error <= 0:
        raise UserError(f"{where}: error = {error!r}; give a positive number")
    basis: Basis = construct(f"{where} '{kind}'", MAKERS[kind], losses, **parameters)
    return basis


def _forms(losses: Sequence[Loss], form: type[Form]) -> list[Form]:
    """Return the losses if all have this form; ValueError otherwise."""
    own = [loss for loss in losses if isinstance(loss, form)]
    if len(own) != len(losses):
        other = next(loss.form for loss in losses if not isinstance(loss, form))
        raise ValueError(f"it does not serve {other} losses; leave the basis out for the default")
    return own


def _powers(losses: Sequence[Loss], *, error: float = 0.01) -> Basis:
    stacks = _forms(losses, SeparablePower)
    exponents = np.unique(np.concatenate([loss.exponent for loss in stacks]))
    if len(exponents) <= MOST_EXACT:
        return bases.PowerBasis(exponents, losses[0].outcomes)
    low, high = float(exponents[0]), float(exponents[-1])
    try:
        return bases.PowerBasis.covering(low, high, losses[0].outcomes, error=error)
    except ValueError as reason:
        raise UserError(f"cohort parameters rho: {reason}") from reason


def _bernstein(losses: Sequence[Loss]) -> Basis:
    degree = max(float(loss.exponent.max()) for loss in _forms(losses, SeparablePower))
    return bases.BernsteinBasis(losses[0].outcomes, int(degree))


def _monomials(losses: Sequence[Loss]) -> Basis:
    stacks = _forms(losses, PowerOfSum)
    power, floor = variant("monomials", stacks[0])
    degree = int(max(float(loss.exponent.max()) for loss in stacks))
    alike = all((loss.exponent == degree).all() and not loss.intercept.any() for loss in stacks)
    return bases.MonomialBasis(
        losses[0].outcomes, degree, power=power, floor=floor, homogeneous=alike
    )


def _exponential(maker: Callable[..., Basis]) -> Callable[..., Basis]:
    def make_it(losses: Sequence[Loss], *, error: float = 0.02) -> Basis:
        stacks = _forms(losses, ExponentialOfSum)
        power, floor = variant("chebyshev", stacks[0])
        reach = max(float(np.abs(loss.weights).sum(-1).max()) for loss in stacks)
        return maker(losses[0].outcomes, reach=reach, error=error, power=power, floor=floor)

    return make_it


def _convex(maker: Callable[..., Basis]) -> Callable[..., Basis]:
    def make_it(losses: Sequence[Loss], *, error: float = 0.02) -> Basis:
        stacks = _forms(losses, Convex1D)
        return maker(
            error=error,
            outcomes=losses[0].outcomes,
            coordinate=stacks[0].coordinate,
            constant=_steepest(stacks),
        )

    return make_it


def _relu(losses: Sequence[Loss], *, error: float | None = None) -> Basis:
    """Put knots at the losses' own kinks where that takes fewer functions than a fine even grid."""
    stacks = _forms(losses, Convex1D)
    described: dict[str, Any] = {
        "error": ERROR_OF_CONVEX if error is None else error,
        "outcomes": losses[0].outcomes,
        "coordinate": stacks[0].coordinate,
        "constant": _steepest(stacks),
    }
    even = bases.ReLUBasis(**described)
    kinks = np.unique(np.concatenate([np.unique(loss.knots) for loss in stacks]))
    own = kinks[(kinks > 0) & (kinks < 1)]
    if error is not None or len(own) >= even.size:
        return even
    return bases.ReLUBasis(**described, knots=own)


def _steepest(losses: Sequence[Loss]) -> float:
    return max(float(loss.lipschitz().max()) for loss in losses)


def _grid(losses: Sequence[Loss], *, error: float = 0.1, centred: bool = True) -> Basis:
    steepest = _steepest(losses)
    if not np.isfinite(steepest):
        raise ValueError("a loss is infinitely steep; a grid needs a Lipschitz constant")
    return bases.LipschitzGridBasis(
        losses[0].outcomes, constant=steepest, error=error, centred=centred
    )


def _reduced(
    losses: Sequence[Loss],
    *,
    error: float | None = None,
    cap: float = 1.0,
    quick: bool = False,
    seed: int = 0,
) -> Basis:
    if not isinstance(quick, bool):
        raise TypeError("quick must be true or false")
    if error is None:
        few = sum(unique_losses(loss)[0].offset.size for loss in losses) <= FEW
        error = FINE if few else COARSE
    return bases.ReducedBasis(losses, error=error, cap=cap, quick=quick, seed=seed)


def _leontief(losses: Sequence[Loss], *, error: float = 0.2, nearest: bool = True) -> Basis:
    steepest = _steepest(_forms(losses, MinimumOfRatios))
    return bases.LeontiefBasis.covering(
        losses[0].outcomes, constant=steepest, error=error, nearest=nearest
    )


CONVEX = {"relu", "convex-rank", "optimised-convex"}
MAKERS: dict[str, Callable[..., Basis]] = {
    "linear": lambda losses: bases.LinearBasis(losses[0].outcomes),
    "powers": _powers,
    "bernstein": _bernstein,
    "monomials": _monomials,
    "chebyshev": _exponential(bases.ChebyshevExponentialBasis),
    "taylor": _exponential(bases.TaylorExponentialBasis),
    "relu": _relu,
    "convex-rank": _convex(bases.ConvexRankBasis),
    "optimised-convex": _convex(bases.OptimisedConvexBasis),
    "lipschitz-grid": _grid,
    "leontief": _leontief,
    "ramps": bases.RampBasis,
    "exact": bases.ExactLossesBasis,
    "reduced": _reduced,
}
