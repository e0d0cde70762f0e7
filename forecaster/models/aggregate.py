r"""Several models as one: each number of s(y) follows the models that were good at it.

Polynomial weights of second order (Gaillard, Stoltz and van Erven 2014, ML-Poly), with the
gradient of the squared error for a loss. Of models k that predict p_k, the mean q = sum_k w_k p_k
has weights w_k proportional to

    (R_k)_+ / (c + V_k),    R_k = sum_t r_(k,t),    V_k = sum_t r_(k,t)^2,
    r_(k,t) = (q_t - s_i(y_t)) (q_t - p_(k,t)),

alike where no R_k is positive. As sum_k w_k r_k = 0, the potential sum_k (R_k)_+^2 / (c + V_k)
grows by no more than sum_k r_k^2 / (c + V_k) with the V_k of the round before; summed up, with
B = max |r| <= 1,

    R_k <= sqrt((c + V_k) sum_j (B^2 / c + ln(1 + V_j / c)))    for every model k,

and as the squared error is convex, its sum exceeds that of any fixed convex combination of the
models by at most twice the mean of their R_k with its weights. The proof wants c near B^2, which is
1 at worst and far less where the models are good; ``SCALE`` lies between.

Weights come in two kinds. **Own** ones weigh the models in each coordinate i by itself: a model
may be good at some numbers and bad at others. **Common** ones go by r averaged over coordinates,
and learn faster where the same model is good at all of them. In each coordinate the aggregate
weighs the two means as if they were models in their turn, so that R_k of coordinate i is at most
that of the own weights plus that of this choice, and the average of R_k over the coordinates at
most that of the common weights plus the average of this choice.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, kept
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import handed
from regretless.market.game.protocols import Forecaster

SCALE = 0.001  # c


class PolynomialWeights(Checkpointable):
    """ML-Poly weights of M models, in each of m coordinates by itself."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_regret", "_variation")

    def __init__(self, models: int, coordinates: int) -> None:
        self._regret = np.zeros((models, coordinates))
        self._variation = np.zeros_like(self._regret)

    @property
    def shares(self) -> Array:
        """Weight (M, m) of every model in the next round."""
        raised = np.maximum(self._regret, 0.0) / (SCALE + self._variation)
        total = raised.sum(0)
        even = np.full(raised.shape, 1 / len(raised))
        return np.asarray(np.divide(raised, total, out=even, where=total > 0))

    def add(self, gain: Array) -> None:
        """Learn r (M, m) of a round."""
        self._regret += gain
        self._variation += gain * gain


class Aggregate(Model):
    """A convex combination of models in every coordinate, so that it stays in their hull.

    It predicts n = ``size`` numbers, as each of the models, by name; in place of the combination
    that of the one ``chosen``, if any.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("members", "_own", "_common", "_choice")

    def __init__(
        self, models: Mapping[str, Forecaster], size: int, *, chosen: str | None = None
    ) -> None:
        super().__init__(size)
        if not models:
            raise ValueError("an aggregate needs a model at least")
        self.members = dict(models)
        self.made_of = tuple(self.members)
        self._chosen = None if chosen is None else self.made_of.index(chosen)
        self._points = np.full((len(self.made_of), size), 0.5)
        self._own = PolynomialWeights(len(self.made_of), size)
        self._common = PolynomialWeights(len(self.made_of), 1)
        self._choice = PolynomialWeights(2, size)
        self._shares = self._weighed()

    @property
    def points(self) -> Array:
        """What each model predicted when the aggregate was last asked (M, n), kept to [0, 1]."""
        return self._points

    def _weighed(self) -> tuple[Array, Array, Array]:
        return self._own.shares, self._common.shares, self._choice.shares

    def _predicted(self, x: object) -> Array:
        for model in self.members.values():
            model.ahead = self.ahead
            model.newer = self.newer
        self._points = kept(np.array([model.point(x) for model in self.members.values()]))
        self._shares = own, common, choice = self._weighed()
        if self._chosen is not None:
            return np.array(self._points[self._chosen])
        return np.asarray(((choice[0] * own + choice[1] * common) * self._points).sum(0))

    def opened(self) -> Any:
        members = {name: model.opened() for name, model in self.members.items()}
        shares = dict(zip(("own", "common", "choice"), self._shares, strict=True))
        return {"points": self._points.copy(), "members": members, **shares}

    def reopen(self, x: object, opened: Any) -> None:
        for name, model in self.members.items():
            model.ahead = self.ahead
            model.newer = self.newer
            model.reopen(x, opened["members"][name])
        self._points = opened["points"]
        self._shares = opened["own"], opened["common"], opened["choice"]

    def observe_outcome(self, outcome: Array) -> None:
        for model in self.members.values():
            model.observe_outcome(outcome)

    def _learn(self, truth: Array) -> None:
        own, common, choice = self._shares
        means = np.stack([(own * self._points).sum(0), (common * self._points).sum(0)])
        told = (choice * means).sum(0)
        gains = (means - truth)[:, None] * (means[:, None] - self._points)  # (2, M, n)
        self._own.add(gains[0])
        self._common.add(gains[1].mean(1, keepdims=True))
        self._choice.add((told - truth) * (told - means))
        for model in self.members.values():
            model.update(handed(model.update, truth))


# the models that come with the forecaster, as data that a scenario file could write
PANEL: dict[str, dict[str, Any]] = {
    "running-mean": {"kind": "running-mean"},
    "smoothing-0.2": {"kind": "exponential-smoothing", "rate": 0.2},
    "last-value": {"kind": "last-value"},
    "seasonal-naive": {"kind": "seasonal-naive"},
    "seasonal-0.2": {"kind": "seasonal-naive", "rate": 0.2},
    "least-squares": {"kind": "least-squares"},
    "least-squares-0.99": {"kind": "least-squares", "forgetting": 0.99},
}


def made(panel: Mapping[str, Mapping[str, Any]], size: int) -> dict[str, Model]:
    """Make the models of a panel for n = ``size`` numbers: their kinds and parameters, by name."""
    models: dict[str, Model] = {}
    for name, table in panel.items():
        parameters = {key: value for key, value in table.items() if key != "kind"}
        models[name] = register.forecaster[table["kind"]](size, **parameters)
    return models


@register.forecaster("aggregate")
def aggregate(size: int) -> Aggregate:
    """Make the aggregate of the default panel."""
    return Aggregate(made(PANEL, size), size)
