"""Decision-Swap, its smooth sister, and the paper's algorithm for non-linear losses.

All three are Unbiased-Prediction on the decision and cross events of the losses to protect, named
after the paper's algorithms:

    DecisionSwap           linear losses of the outcome, best-responding agents
    SmoothDecisionSwap     naive agents who respond smoothly to a label forecast, linear losses
                           or a basis with a convex image
    NonLinearDecisionSwap  any losses, through a basis in which they are linear

The constant policies need no cross events: the decision events already bound swap regret.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import Policy, ProtectedLosses
from regretless.forecaster.events.rules import rule_of
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear, Loss
from regretless.market.losses.basis import Basis
from regretless.market.response import SmoothResponse


class DecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with linear losses who best-respond.

    Parameters
    ----------
    losses : sequence of Linear
        The losses it protects, each single (A, d) or a stack (K, A, d), in [0, 1].
    policies : sequence of callables
        Benchmark policies, each from a context to an action index.
    weights : "adaptive", "second-order" or "exponential"
    horizon : int or None
        For the exponential rate.
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
        groups = grouped([(loss.offset, loss.weights) for loss in losses], policies)
        super().__init__(VectorEvents(groups, rule_of(weights, horizon)), seed=seed)


class SmoothDecisionSwap(UnbiasedPrediction):
    """No decision swap regret beyond their gap for naive agents whose response is smooth.

    Without a basis the losses are linear and it predicts the outcome itself. With one it is the
    paper's algorithm for naive agents: it predicts s(y), and every prediction comes with its label
    forecast s^-1(p), which needs {s(y)} to be convex.

    Parameters
    ----------
    losses : sequence of loss forms
        Each single or a stack; ``Linear`` without a basis.
    policies : sequence of callables
    eta : float or None
        Smoothness of agents who play quantal, at an excess of at most ln(A) / eta;
        ``bounds.recommended_eta`` balances it against the basis's error.
    response : SmoothResponse or None
        Another rule; ValueError if not exactly one of eta and response is given.
    basis : Basis, optional
        ValueError if its image is not convex.
    weights : "adaptive", "second-order" or "exponential"
    """

    def __init__(  # noqa: PLR0913 - the names are promised to users
        self,
        losses: Sequence[Loss],
        policies: Sequence[Policy] = (),
        *,
        eta: float | None = None,
        response: SmoothResponse | None = None,
        basis: Basis | None = None,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        if (eta is None) == (response is None):
            raise ValueError("give exactly one of eta and response")
        basis = basis or LinearBasis(losses[0].outcomes)
        if not basis.convex_image:
            raise ValueError(
                f"the image of {type(basis).__name__} is curved, so that a prediction of s(y) "
                "has no label forecast; broadcast ensembles, or use NonLinearDecisionSwap"
            )
        play = response.play if response else None
        groups = grouped(
            [basis.coefficients(loss) for loss in losses], policies, eta=eta, play=play
        )
        super().__init__(VectorEvents(groups, rule_of(weights, horizon)), basis=basis, seed=seed)


class NonLinearDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with any losses that a basis spans.

    It predicts s(y), and ``update`` takes s(y); ``observe`` takes the outcome itself.

    Parameters
    ----------
    losses : sequence of loss forms
        Each single or a stack.
    policies : sequence of callables
    weights : "adaptive", "second-order" or "exponential"
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
        groups = grouped([basis.coefficients(loss) for loss in losses], policies)
        events = VectorEvents(groups, rule_of(weights, horizon))
        super().__init__(events, cube(basis.size, basis.hull), basis=basis, seed=seed)


def grouped(
    tables: Sequence[tuple[Array, Array]], policies: Sequence[Policy], **rule: Any
) -> list[ProtectedLosses]:
    """Collect coefficient tables, (A,) with (A, n) or stacked, by their number of actions.

    ``rule`` are the fields of ``ProtectedLosses`` that say how the losses' owners respond.
    """
    stacks: dict[int, list[tuple[Array, Array]]] = {}
    for offset, weights in tables:
        stack = np.atleast_2d(offset), weights.reshape(-1, *weights.shape[-2:])
        stacks.setdefault(int(offset.shape[-1]), []).append(stack)
    return [
        ProtectedLosses(
            np.concatenate([offset for offset, _ in stack]),
            np.concatenate([weights for _, weights in stack]),
            policies,
            **rule,
        )
        for stack in stacks.values()
    ]
