"""Decision-Swap, its smooth sister, and the paper's algorithm for non-linear losses.

All three are Unbiased-Prediction on the decision and cross events of the losses to protect:

    DecisionSwap           linear losses of the outcome, best-responding agents
    SmoothDecisionSwap     linear losses of the outcome, quantal agents with smoothness eta
    NonLinearDecisionSwap  any losses, through a basis in which they are linear

The constant policies need no cross events: the decision events already bound swap regret.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecaster.protected import LossGroup, Policy
from forecaster.unbiased import UnbiasedPrediction
from market.basis import Basis
from market.losses import Linear, Loss

Array = NDArray[np.float64]


class DecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with linear losses who best-respond.

    Parameters
    ----------
    losses : sequence of Linear
        The losses it protects, each single (A, d) or a stack (K, A, d), in [0, 1].
    policies : sequence of callables
        Benchmark policies, each from a context to an action index.
    weights : "adaptive" or "exponential"
    horizon : int or None
        For the exponential rate.
    seed : int
    """

    def __init__(
        self,
        losses: Sequence[Linear],
        policies: Sequence[Policy] = (),
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        tables = [(loss.offset, loss.weights) for loss in losses]
        groups = grouped(tables, policies)
        super().__init__(groups, weights=weights, horizon=horizon, seed=seed)


class SmoothDecisionSwap(UnbiasedPrediction):
    """No decision swap regret beyond ln(A) / eta for agents with linear losses who play quantal.

    Parameters
    ----------
    losses : sequence of Linear
    policies : sequence of callables
    eta : float
        The agents' smoothness.
    weights : "adaptive" or "exponential"
    horizon : int or None
    seed : int
    """

    def __init__(  # noqa: PLR0913 - the names are promised to users
        self,
        losses: Sequence[Linear],
        policies: Sequence[Policy] = (),
        *,
        eta: float,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        tables = [(loss.offset, loss.weights) for loss in losses]
        groups = grouped(tables, policies, eta=eta)
        super().__init__(groups, weights=weights, horizon=horizon, seed=seed)


class NonLinearDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with any losses that a basis spans.

    It predicts s(y), and ``update`` takes s(y); ``observe`` takes the outcome itself.

    Parameters
    ----------
    losses : sequence of loss forms
        Each single or a stack.
    basis : Basis
    policies : sequence of callables
    weights : "adaptive" or "exponential"
    horizon : int or None
    seed : int
    """

    def __init__(  # noqa: PLR0913 - the names are promised to users
        self,
        losses: Sequence[Loss],
        basis: Basis,
        policies: Sequence[Policy] = (),
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        self.basis = basis
        tables = [basis.coefficients(loss) for loss in losses]
        groups = grouped(tables, policies)
        super().__init__(groups, weights=weights, horizon=horizon, hull=basis.hull, seed=seed)

    def observe(self, outcome: ArrayLike) -> None:
        """Learn the outcome (d,)."""
        self.update(self.basis.transform(outcome))


def grouped(
    tables: Sequence[tuple[Array, Array]], policies: Sequence[Policy], *, eta: float | None = None
) -> list[LossGroup]:
    """Collect coefficient tables, (A,) with (A, n) or stacked, by their number of actions."""
    stacks: dict[int, list[tuple[Array, Array]]] = {}
    for offset, weights in tables:
        stack = np.atleast_2d(offset), weights.reshape(-1, *weights.shape[-2:])
        stacks.setdefault(int(offset.shape[-1]), []).append(stack)
    return [
        LossGroup(
            np.concatenate([offset for offset, _ in stack]),
            np.concatenate([weights for _, weights in stack]),
            policies,
            eta,
        )
        for stack in stacks.values()
    ]
