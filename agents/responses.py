r"""Response rules: how an agent turns the forecast that it hears into a mixed strategy.

Each rule first predicts its losses from the forecast and then responds to that table:

    best-response         the loss form in the broadcast basis, at the drawn prediction; argmin
    private               the same, at a draw of the agent's own (``agents.cohorts.responding``)
    quantal               the agent's own loss at the label forecast; logit with smoothness eta
    certainty-equivalent  the agent's own loss at the label forecast; argmin
    ensemble              the agent's own expected loss over the ensemble; argmin, or logit with eta

The first is the paper's sophisticated agent, the second its naive one. The last is naive too, and
its table is that of the basis, up to the basis's error, whatever the basis's image. Its argmin
takes losses within ``best_response.TIE`` as equal, because nature's distributions lie on ties.

Argmin and logit are those of ``market.best_response``. A rule declares ``gap``, its excess over a
best response to the same table (ln(A) / eta for logit), and ``lipschitz``, how far its play moves
in l1 per unit of the table in sup norm: d q_a = -eta q_a (d l_a - q . d l), whose l1 norm is at
most eta.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.best_response import (
    TIE,
    best_response,
    expected_losses,
    quantal_gap,
    quantal_response,
)
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import (
    handed,
    is_ours,
    name_of,
    numbers_of,
    read_only,
    strategies_of,
)
from regretless.market.losses import Loss
from regretless.market.records import Forecast, one_hot


class Response(ABC):
    """A response rule, to the table that it predicts: a best response, or logit with ``eta``.

    ``Checked`` wraps those of a user's own, which need not be subclasses.
    """

    name: str
    lipschitz: float = math.inf  # how far its play moves in l1 per unit of the table in sup norm
    eta: float | None = None  # smoothness of a logit distribution
    tie: ClassVar[float] = 0.0  # by how much the losses of equally good actions may differ
    hears_label: bool = False  # whether it reads the label of a forecast
    hears_ensemble: ClassVar[bool] = False  # or its weighted outcomes
    at_prediction: ClassVar[bool] = False  # whether its table is the linear form at the prediction
    row_by_row: ClassVar[bool] = True  # whether a row's table is the same bits without the others'
    built_in: ClassVar[bool] = True  # whether the forecaster's kernels know it

    @property
    def pure(self) -> bool:
        """Whether it plays ``best_response``, and no strategy of a subclass's own."""
        return self.eta is None and not self.tie and type(self).play is Response.play

    def gap(self, actions: int) -> float:
        """Bound the excess over a best response to the predicted table."""
        return self.tie if self.eta is None else quantal_gap(actions, self.eta)

    @abstractmethod
    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        """Return the table of losses (K, A) that the agents expect."""

    def play(self, predicted: Array) -> Array:
        """Return the mixed strategy (K, A): of several best actions the lowest index."""
        if self.eta is None:
            return one_hot(best_response(predicted, tie=self.tie), predicted.shape[1])
        return quantal_response(predicted, self.eta)

    def protected(self) -> dict[str, Any]:
        """Return the fields of a protected loss that say how its owner responds."""
        return {"eta": self.eta, "tie": self.tie if self.eta is None else 0.0}


@register.response("best-response")
class BestResponse(Response):
    """The sophisticated agent: best response in the basis."""

    name = "best-response"
    at_prediction = True

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        return expected_losses(*coefficients, forecast.statistics)


@register.response("private")
class Private(BestResponse):
    """The sophisticated agent that draws a prediction of its own from the round's mixture."""

    name = "private"


@register.response("certainty-equivalent")
class CertaintyEquivalent(Response):
    """Takes the label forecast for the outcome and best-responds to it."""

    name = "certainty-equivalent"
    hears_label = True

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        if forecast.label is None:
            raise ValueError("this forecast has no label")
        return loss.losses(forecast.label)


@register.response("quantal")
class Quantal(CertaintyEquivalent):
    """The naive agent: smooth best response to the label forecast."""

    name = "quantal"

    def __init__(self, eta: float) -> None:
        self.eta = self.lipschitz = eta


@register.response("ensemble")
class ExpectedLoss(Response):
    """The naive agent of the ensemble forecast; a best response to it where eta is None."""

    name = "ensemble"
    tie = TIE
    hears_ensemble = True
    row_by_row = False

    def __init__(self, eta: float | None = None) -> None:
        self.eta = eta
        self.lipschitz = math.inf if eta is None else eta

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        if (ensemble := forecast.ensemble) is None:
            raise ValueError("this forecast has no ensemble")
        return np.tensordot(ensemble.weights, loss.losses(ensemble.outcomes), axes=1)


BUILT_IN = (BestResponse, Private, CertaintyEquivalent, Quantal, ExpectedLoss)  # built-in rules


class Checked(Response):
    """A user's response rule, held to what it declares."""

    built_in = row_by_row = False

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.name, self.hears_label, self.lipschitz = rule.name, rule.hears_label, rule.lipschitz

    def protected(self) -> dict[str, Any]:
        return {"play": self.play}

    def gap(self, actions: int) -> float:
        return float(self.rule.gap(actions))

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        ask, shape = self.rule.predicted, loss.offset.shape
        offset, weights = coefficients
        given = coefficients if is_ours(ask) else (read_only(offset), read_only(weights))
        wanted = f"return losses of shape {shape}"
        answer = ask(forecast, loss, given)
        table = numbers_of(ask, answer, wanted).astype(np.float64, copy=False)
        if table.shape != shape:
            raise UserError(f"{name_of(ask)} returned {brief(answer)}; {wanted}")
        return table

    def play(self, predicted: Array) -> Array:
        """Return the mixed strategy (K, A); UserError where it is none, or exceeds its gap."""
        ask, gap = self.rule.play, self.gap(predicted.shape[1])
        play = strategies_of(ask, ask(handed(ask, predicted)), predicted.shape)
        excess = ((play * predicted).sum(1) - predicted.min(1)).max()
        if excess > gap + 1e-9:
            declared = f"declares a gap of {gap:.4g}"
            raise UserError(f"response '{self.name}' {declared} and loses {excess:.4g}; raise it")
        return play
