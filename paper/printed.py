"""What the paper prints for each family of losses: sizes and Lipschitz constants as numbers.

The formulas are those of the paper's table and its proofs, with A = 1 and with R and L of the
population that is measured. An O(.) is evaluated with the constant 1, and its column ends in
``_leading``; the other columns are as printed.
"""

import math
from typing import Any

from regretless.forecaster.bases import TaylorExponentialBasis
from regretless.market.losses import Loss

Numbers = dict[str, float]


def steepest(losses: list[Loss]) -> float:
    """Return the Lipschitz constant of a population, L."""
    return max(float(loss.lipschitz().max()) for loss in losses)


def inner(losses: list[Any]) -> dict[str, float]:
    """Return what a series for exponentials needs: the function g and the reach of the sums."""
    reach = max(float(abs(loss.weights).sum(-1).max()) for loss in losses)
    power, floor = losses[0].power.flat[0], losses[0].floor.flat[0]
    return {"reach": reach, "power": float(power), "floor": float(floor)}


def convex(_: list[Loss], error: float) -> Numbers:
    """Evaluate O(ln^(4/3)(1/delta) / delta^(2/3)) and O(1)."""
    size = math.log(1 / error) ** (4 / 3) / error ** (2 / 3)
    return {"paper_n_leading": size, "paper_lipschitz_leading": 1.0}


def grid(losses: list[Loss], error: float) -> Numbers:
    """Evaluate (L / delta)^d and 1: the paper's answer to any Lipschitz loss."""
    return {"paper_n": (steepest(losses) / error) ** losses[0].outcomes, "paper_lipschitz": 1.0}


def powers(losses: list[Any], _: float) -> Numbers:
    """Evaluate p d and O(p^(p + 1) d)."""
    power, goods = float(losses[0].exponent.max()), losses[0].outcomes
    return {"paper_n": power * goods, "paper_lipschitz_leading": power ** (power + 1) * goods}


def monomials(losses: list[Any], _: float) -> Numbers:
    """Evaluate d^beta and (R d)^beta with R = 1, the bound on shares."""
    size = float(losses[0].outcomes ** losses[0].exponent.max())
    return {"paper_n": size, "paper_lipschitz": size}


def exponential(losses: list[Any], error: float) -> Numbers:
    """Evaluate d + ... + d^k at Taylor's k, O((1/delta)^(ln d)), and e^(R d)."""
    goods = losses[0].outcomes
    largest = max(float(abs(loss.weights).max()) for loss in losses)
    degree = TaylorExponentialBasis(1, error=error, **inner(losses)).degree
    return {
        "paper_n": float(sum(goods**k for k in range(1, degree + 1))),
        "paper_n_leading": (1 / error) ** math.log(goods),
        "paper_lipschitz": math.exp(largest * goods),
    }


def leontief(losses: list[Loss], error: float) -> Numbers:
    """Evaluate both O(.) with c = 1, at the delta whose error 3 L delta is the wanted one."""
    d, constant = losses[0].outcomes, steepest(losses)
    delta = error / (3 * constant)
    log = math.log(1 / delta)
    size = d**4 * log ** (3 * d + 1) / delta ** ((6 * d + 8) / (d + 2))
    sums = constant * d**2.5 * log ** (2 * d + 0.5) / delta ** ((5 * d + 6) / (d + 2))
    return {"paper_n_leading": size, "paper_lipschitz_leading": sums}
