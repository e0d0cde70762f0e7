r"""Utilities by the names that economists use, each a constructor of a loss in [0, 1].

An action is a portfolio of goods: a row of share parameters. The outcome y_j in [0, 1] is how
well good j did. Utility is negated and normalised into a loss in [0, 1]; the affine map back to
units of utility is kept.

    linear   u(a, y) = sum_j w_aj y_j
    ces      u(a, y) = sum_j w_aj y_j^rho      (additive: the CES aggregate before its outer power)

rho below 1 is a taste for balance (diminishing returns in each good), rho above 1 for extremes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market import register
from market.losses import Linear, SeparablePower

Array = NDArray[np.float64]


def CES(weights: ArrayLike, rho: ArrayLike) -> SeparablePower:  # noqa: N802 - the economist's name
    """Additive CES utility as a normalised loss.

    Parameters
    ----------
    weights : array (..., A, d)
        Share parameters of each action.
    rho : float or array (...)
        Exponent, positive.

    Returns
    -------
    SeparablePower
        Loss in [0, 1].
    """
    return SeparablePower(-np.asarray(weights, dtype=np.float64), np.asarray(rho)).normalised()


def LinearUtility(weights: ArrayLike) -> Linear:  # noqa: N802 - beside CES
    """Linear utility as a normalised loss.

    Parameters
    ----------
    weights : array (..., A, d)
        Value of each good under each action.

    Returns
    -------
    Linear
        Loss in [0, 1].
    """
    return Linear(-np.asarray(weights, dtype=np.float64)).normalised()


@dataclass(frozen=True, eq=False)
class Population:
    """What a random population is drawn from.

    Parameters
    ----------
    rng : numpy Generator
        The cohort's own stream.
    count, actions, goods : int
        N agents, A actions, d coordinates of the outcome.
    """

    rng: np.random.Generator
    count: int
    actions: int
    goods: int

    def shares(self, weights: ArrayLike | None, concentration: float | None) -> Array:
        """Share parameters (N, A, d).

        Parameters
        ----------
        weights : array (A, d) or None
            The actions' shares, common to all. None draws them uniformly from the simplex.
        concentration : float or None
            With ``weights``: each agent's shares are drawn from a Dirichlet law around them, the
            closer the larger this number. None gives everybody the same.
        """
        shape = (self.actions, self.goods)
        if weights is None:
            return self.rng.dirichlet(np.ones(self.goods), (self.count, self.actions))
        common = np.asarray(weights, dtype=np.float64)
        if common.shape != shape:
            raise ValueError(f"weights have shape {common.shape}; give {shape}, actions x goods")
        if concentration is None:
            return np.broadcast_to(common, (self.count, *shape))
        if (common < 0).any() or (np.abs(common.sum(1) - 1) > 1e-6).any():
            raise ValueError("with a concentration each action's weights must sum to 1")
        rows = [self.rng.dirichlet(concentration * row + 1e-3, self.count) for row in common]
        return np.stack(rows, axis=1)


@register.utility("linear")
def linear_population(
    population: Population,
    *,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Linear:
    """Risk-neutral agents."""
    return LinearUtility(population.shares(weights, concentration))


@register.utility("ces")
def ces_population(
    population: Population,
    *,
    rho: Array,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> SeparablePower:
    """CES agents, rho (N,) each agent's own."""
    return CES(population.shares(weights, concentration), rho)
