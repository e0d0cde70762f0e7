r"""Response rules: how an agent turns the forecast that it hears into a mixed strategy.

A cohort (``agents.cohorts.responding``) calls a rule twice a round: ``predicted`` gives the losses
that each row expects, ``play`` answers that table with mixed strategies. The forecaster asks
``gap``, ``lipschitz`` and ``protected`` of a rule to say what it can promise to who follows it.

    best-response         the loss form in the broadcast basis, at the drawn prediction; argmin
    private               the same, at a draw of the agent's own (``agents.cohorts.responding``)
    quantal               the agent's own loss at the label forecast; logit with smoothness eta
    certainty-equivalent  the agent's own loss at the label forecast; argmin
    ensemble              the agent's own expected loss over the ensemble; argmin, or logit with eta

The first is the sophisticated agent of Lu, Roth and Shi (arXiv:2502.12564), the second its naive
agent. The last is naive too, and its table is that of the basis, up to the basis's error, whatever
the basis's image. Its argmin takes losses within ``best_response.TIE`` as equal, because nature's
distributions lie on ties.

Argmin and logit are those of ``market.best_response``. Shapes: K rows, A actions, n statistics.

**What a rule declares.** ``gap`` is its excess over a best response to the same table: ln(A) / eta
for logit. ``lipschitz`` says how far its play moves in l1 per unit of the table in sup norm. For
logit d q_a = -eta q_a (d l_a - q . d l), whose l1 norm is at most eta.
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
    answer_as_numbers,
    answer_as_strategies,
    is_ours,
    name_of,
    read_only,
    readonly_unless_ours,
)
from regretless.market.losses import Loss
from regretless.market.records import Forecast, one_hot


class Response(ABC):
    """A response rule, to the table that it predicts: a best response, or logit with ``eta``.

    ``Checked`` wraps the rules of a user's own, which need not be subclasses.

    Attributes
    ----------
    name : str
        The registered name.
    lipschitz : float
        How far its play moves in l1 per unit of the table in sup norm.
    eta : float or None
        Smoothness of a logit distribution; None for a best response.
    tie : float
        By how much the losses of equally good actions may differ.
    hears_label, hears_ensemble : bool
        Whether it reads the label of a forecast, or its weighted outcomes.
    at_prediction : bool
        Whether its table is the linear form of the loss at the prediction.
    row_by_row : bool
        Whether a row's table is the same bits without the other rows.
    built_in : bool
        Whether the forecaster's kernels know it.
    """

    name: str
    lipschitz: float = math.inf
    eta: float | None = None
    tie: ClassVar[float] = 0.0
    hears_label: bool = False
    hears_ensemble: ClassVar[bool] = False
    at_prediction: ClassVar[bool] = False
    row_by_row: ClassVar[bool] = True
    built_in: ClassVar[bool] = True

    @property
    def pure(self) -> bool:
        """Whether it plays ``best_response``, and no strategy of a subclass's own."""
        return self.eta is None and not self.tie and type(self).play is Response.play

    def gap(self, n_actions: int) -> float:
        """Return a bound on the excess over a best response to the predicted table."""
        if self.eta is None:
            return self.tie
        return quantal_gap(n_actions, self.eta)

    @abstractmethod
    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        """Return the table of losses (K, A) that the agents expect.

        Parameters
        ----------
        forecast : Forecast
            What they hear: a prediction, and its label or ensemble where the basis has one.
        loss : Loss
            A stack of the K rows' losses.
        coefficients : pair of arrays
            Offset (K, A) and weights (K, A, n) of the losses in the broadcast basis.

        ValueError if the forecast lacks what the rule reads.
        """

    def play(self, predicted: Array) -> Array:
        """Return the mixed strategy (K, A): of several best actions the lowest index."""
        if self.eta is None:
            n_actions = predicted.shape[1]
            return one_hot(best_response(predicted, tie=self.tie), n_actions)
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
        self.eta = eta
        self.lipschitz = eta


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
        ensemble = forecast.ensemble
        if ensemble is None:
            raise ValueError("this forecast has no ensemble")
        losses_at_outcomes = loss.losses(ensemble.outcomes)
        return np.tensordot(ensemble.weights, losses_at_outcomes, axes=1)


BUILT_IN = (BestResponse, Private, CertaintyEquivalent, Quantal, ExpectedLoss)
GAP_ROUNDING = 1e-9  # by which a user's rule may exceed its declared gap


class Checked(Response):
    """A user's response rule, held to what it declares."""

    built_in = False
    row_by_row = False

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.name = rule.name
        self.hears_label = rule.hears_label
        self.lipschitz = rule.lipschitz

    def protected(self) -> dict[str, Any]:
        return {"play": self.play}

    def gap(self, n_actions: int) -> float:
        return float(self.rule.gap(n_actions))

    def predicted(self, forecast: Forecast, loss: Loss, coefficients: tuple[Array, Array]) -> Array:
        """Return the rule's table (K, A); UserError if it is none."""
        predict = self.rule.predicted
        if not is_ours(predict):
            offset, weights = coefficients
            coefficients = (read_only(offset), read_only(weights))
        table_shape = loss.offset.shape
        expected = f"return losses of shape {table_shape}"
        answer = predict(forecast, loss, coefficients)
        table = answer_as_numbers(predict, answer, expected).astype(np.float64, copy=False)
        if table.shape != table_shape:
            raise UserError(f"{name_of(predict)} returned {brief(answer)}; {expected}")
        return table

    def play(self, predicted: Array) -> Array:
        """Return the mixed strategy (K, A); UserError where it is none, or exceeds its gap."""
        play_rule = self.rule.play
        declared_gap = self.gap(predicted.shape[1])
        answer = play_rule(readonly_unless_ours(play_rule, predicted))
        strategy = answer_as_strategies(play_rule, answer, predicted.shape)
        expected_losses_of_play = (strategy * predicted).sum(1)
        excess = (expected_losses_of_play - predicted.min(1)).max()
        if excess > declared_gap + GAP_ROUNDING:
            raise UserError(
                f"response '{self.name}' declares a gap of {declared_gap:.4g} "
                f"and loses {excess:.4g}; raise it"
            )
        return strategy
