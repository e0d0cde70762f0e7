r"""Response rules: how an agent turns the forecast that it hears into a law of play.

Each rule first predicts its losses from the forecast and then responds to that table:

    best-response         the loss form in the broadcast basis, at the drawn prediction; argmin
    quantal               the agent's own loss at the label forecast; logit with smoothness eta
    certainty-equivalent  the agent's own loss at the label forecast; argmin

The first is the paper's sophisticated agent, the second its naive one. A rule declares ``gap``,
its excess over a best response to the same table (ln(A) / eta for logit), and ``lipschitz``, how
far its play moves in l1 per unit of the table in sup norm: d q_a = -eta q_a (d l_a - q . d l),
whose l1 norm is at most eta.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from market import register
from market.losses import Loss
from market.records import Forecast, one_hot
from market.response import best_response, expected_losses, quantal_gap, quantal_response

Array = NDArray[np.float64]


class Response(Protocol):
    """A response rule."""

    name: str
    hears_label: bool
    eta: float | None
    lipschitz: float

    def gap(self, actions: int) -> float:
        """Bound the excess over a best response to the predicted table."""
        ...

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        """Return the table of losses (K, A) that the agents expect."""
        ...

    def play(self, predicted: Array) -> Array:
        """Return the law of play (K, A)."""
        ...


class _Hard:
    eta: float | None = None
    lipschitz = math.inf

    def gap(self, actions: int) -> float:
        """Return 0: it is a best response."""
        return 0.0

    def play(self, predicted: Array) -> Array:
        """Play the least predicted loss, the lowest index where several tie."""
        return one_hot(best_response(predicted), predicted.shape[1])


class _AtLabel:
    hears_label = True

    def predicted(
        self,
        forecast: Forecast,
        loss: Loss,
        coefficients: tuple[Array, Array],
    ) -> Array:
        """Return the agent's own losses at the label forecast."""
        if forecast.label is None:
            raise ValueError("this forecast has no label")
        return loss.losses(forecast.label)


@register.response("best-response")
class BestResponse(_Hard):
    """The sophisticated agent: best response in the basis."""

    name = "best-response"
    hears_label = False

    def predicted(
        self,
        forecast: Forecast,
        loss: Loss,
        coefficients: tuple[Array, Array],
    ) -> Array:
        """Return the linear form at the drawn prediction, by the forecaster's own kernel."""
        return expected_losses(*coefficients, forecast.point)


@register.response("certainty-equivalent")
class CertaintyEquivalent(_AtLabel, _Hard):
    """Takes the label forecast for the outcome and best-responds to it."""

    name = "certainty-equivalent"


@register.response("quantal")
class Quantal(_AtLabel):
    """The naive agent: smooth best response to the label forecast.

    Parameters
    ----------
    eta : float
        Smoothness, positive.
    """

    name = "quantal"

    def __init__(self, eta: float) -> None:
        self.eta: float | None = eta
        self.lipschitz = eta

    def gap(self, actions: int) -> float:
        """Return ln(A) / eta."""
        return quantal_gap(actions, self.lipschitz)

    def play(self, predicted: Array) -> Array:
        """Play the logit law."""
        return quantal_response(predicted, self.lipschitz)
