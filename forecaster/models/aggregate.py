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
1 at worst and far less where the models are good; ``VARIATION_OFFSET`` lies between.

Weights come in two kinds. **Own** ones weigh the models in each coordinate i by itself: a model
may be good at some numbers and bad at others. **Common** ones go by r averaged over coordinates,
and learn faster where the same model is good at all of them. In each coordinate the aggregate
weighs the two means as if they were models in their turn, so that R_k of coordinate i is at most
that of the own weights plus that of this choice, and the average of R_k over the coordinates at
most that of the common weights plus the average of this choice.
"""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.models.base import Model, predicts_as_model, teacher_of
from regretless.forecaster.models.least_squares import share_features
from regretless.forecaster.models.outcomes import DistributionModel, expected_statistics
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import ParameterError, UserError, brief
from regretless.market.core.validation import check_name
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.numerics.pairwise_sum import pairwise_sum

VARIATION_OFFSET = 0.001  # c


@compiled(error_model="numpy")
def _write_shares(regret: Array, variation: Array, shares: Array) -> None:
    """Write (R_k)_+ / (c + V_k) over its sum over models k, alike where none is positive.

    ``regret`` and ``variation`` (M, m) are R and V of M models in m coordinates; ``shares`` (M, m)
    is written (compiled).
    """
    n_models = regret.shape[0]
    for i in range(regret.shape[1]):
        total = 0.0
        for k in range(n_models):
            shares[k, i] = max(regret[k, i], 0.0) / (VARIATION_OFFSET + variation[k, i])
            total += shares[k, i]
        for k in range(n_models):
            shares[k, i] = shares[k, i] / total if total > 0.0 else 1.0 / n_models


@compiled(error_model="numpy")
def _weigh_and_combine(
    points: Array,
    regret_of_own: Array,
    variation_of_own: Array,
    regret_of_common: Array,
    variation_of_common: Array,
    regret_of_choice: Array,
    variation_of_choice: Array,
    own: Array,
    common: Array,
    choice: Array,
    prediction: Array,
) -> None:
    """Write the ``Shares`` of a round, and the prediction that they make of the models' (compiled).

    Parameters
    ----------
    points : array (M, n)
        p_k, what each model predicted; moved into [0, 1] in place.
    regret_of_own, variation_of_own, own : array (M, n)
        R and V of the own weights, and their shares; written.
    regret_of_common, variation_of_common, common : array (M, 1)
        Those of the common weights; written.
    regret_of_choice, variation_of_choice, choice : array (2, n)
        Those of the choice; written.
    prediction : array (n,)
        Written (``combine``).
    """
    _write_shares(regret_of_own, variation_of_own, own)
    _write_shares(regret_of_common, variation_of_common, common)
    _write_shares(regret_of_choice, variation_of_choice, choice)
    combine(points, own, common, choice, prediction)


@compiled()
def combine(points: Array, own: Array, common: Array, choice: Array, prediction: Array) -> None:
    """Write sum_k (choice_own own_k + choice_common common_k) p_k in each coordinate (compiled).

    Parameters
    ----------
    points : array (M, n)
        p_k, what each model predicted; moved into [0, 1] in place.
    own, common, choice : array (M, n), (M, 1), (2, n)
        The round's ``Shares``.
    prediction : array (n,)
        Written.
    """
    for i in range(points.shape[1]):
        prediction[i] = 0.0
        for k in range(points.shape[0]):
            points[k, i] = min(max(points[k, i], 0.0), 1.0)
            share = choice[0, i] * own[k, i] + choice[1, i] * common[k, 0]
            prediction[i] += share * points[k, i]


@compiled()
def _learn_gains(
    points: Array,
    statistics: Array,
    own: Array,
    common: Array,
    choice: Array,
    regret_of_own: Array,
    variation_of_own: Array,
    regret_of_common: Array,
    variation_of_common: Array,
    regret_of_choice: Array,
    variation_of_choice: Array,
) -> None:
    """Add a round's r of every model and of the two means to R and V (compiled).

    With q_own = sum_k own_k p_k, q_common likewise and q = choice_own q_own + choice_common
    q_common, a model gains (q_own - s) (q_own - p_k) on the one mean, as much with q_common on the
    other, where the mean over coordinates counts, and each mean gains (q - s) (q - q_own), or with
    q_common.

    Parameters
    ----------
    points : array (M, n)
        p_k, what each model predicted.
    statistics : array (n,)
        s(y).
    own, common, choice : array (M, n), (M, 1), (2, n)
        The round's ``Shares``.
    regret_of_own, variation_of_own : array (M, n)
        R and V of the own weights; added to in place.
    regret_of_common, variation_of_common : array (M, 1)
        Those of the common weights; added to in place.
    regret_of_choice, variation_of_choice : array (2, n)
        Those of the choice; added to in place.
    """
    n_models, size = points.shape
    own_mean = np.zeros(size)
    common_mean = np.zeros(size)
    for i in range(size):
        for k in range(n_models):
            own_mean[i] += own[k, i] * points[k, i]
            common_mean[i] += common[k, 0] * points[k, i]
        prediction = choice[0, i] * own_mean[i] + choice[1, i] * common_mean[i]
        error = prediction - statistics[i]
        for mean_index in range(2):
            mean = own_mean[i] if mean_index == 0 else common_mean[i]
            gain = error * (prediction - mean)
            regret_of_choice[mean_index, i] += gain
            variation_of_choice[mean_index, i] += gain * gain
    gains_on_common = np.empty(size)
    for k in range(n_models):
        for i in range(size):
            own_error = own_mean[i] - statistics[i]
            common_error = common_mean[i] - statistics[i]
            gain_on_own = own_error * (own_mean[i] - points[k, i])
            regret_of_own[k, i] += gain_on_own
            variation_of_own[k, i] += gain_on_own * gain_on_own
            gains_on_common[i] = common_error * (common_mean[i] - points[k, i])
        mean_gain = pairwise_sum(gains_on_common) / size
        regret_of_common[k, 0] += mean_gain
        variation_of_common[k, 0] += mean_gain * mean_gain


class PolynomialWeights(Checkpointable):
    """ML-Poly weights of M models, in each of m coordinates by itself."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_regret", "_variation")
    IN_PLACE = True

    def __init__(self, models: int, coordinates: int) -> None:
        self.shape = (models, coordinates)
        self._regret = np.zeros(self.shape)
        self._variation = np.zeros(self.shape)

    @property
    def shares(self) -> Array:
        """Weight (M, m) of every model in the next round."""
        shares = np.empty(self._regret.shape)
        _write_shares(self._regret, self._variation, shares)
        return shares

    def add(self, gain: Array) -> None:
        """Learn r (M, m) of a round."""
        self._regret += gain
        self._variation += gain * gain

    @property
    def sums(self) -> tuple[Array, Array]:
        """R and V (M, m), to which rounds are added in place; always the same two arrays."""
        return self._regret, self._variation


class Shares(NamedTuple):
    """The weights of M models in a round's prediction."""

    own: Array  # (M, n) of the models in each coordinate, by how good they were at it
    common: Array  # (M, 1) by how good they were at all coordinates
    choice: Array  # (2, n) of the own and of the common weights in each coordinate


def _check_models(models: Mapping[str, Forecaster], size: int) -> None:
    """Raise ParameterError unless these are forecasters of ``size`` numbers, by name."""
    if not isinstance(models, Mapping) or not models:
        raise ParameterError(f"models = {brief(models)}: an aggregate needs a model, by name")
    for name, model in models.items():
        if not isinstance(name, str) or not isinstance(model, Forecaster):
            hint = "give forecasters by name; forecaster.adapted makes one of another model"
            raise ParameterError(f"models[{brief(name)}] = {brief(model)}: {hint}")
        if isinstance(model, Model) and model.size != size:
            fault = f"models['{name}'] predicts {model.size} numbers"
            raise ParameterError(f"{fault}, size is {size}; make them alike")


def _models_of_one_basis(models: Mapping[str, Forecaster]) -> dict[int, DistributionModel]:
    """Return the models that are distributions, by their index; those of the first's basis.

    These are asked for their expectations of s(y) together.
    """
    models_of_one_basis: dict[int, DistributionModel] = {}
    for model_index, model in enumerate(models.values()):
        if not isinstance(model, DistributionModel):
            continue
        first_model = next(iter(models_of_one_basis.values()), model)
        if model.basis is first_model.basis:
            models_of_one_basis[model_index] = model
    return models_of_one_basis


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
        _check_models(models, self.size)
        self.members = dict(models)
        self.made_of = tuple(self.members)  # the models' names, in the order of all arrays
        self._chosen_index: int | None = None
        if chosen is not None:
            name_of_chosen = check_name("model", chosen, self.made_of)
            self._chosen_index = self.made_of.index(name_of_chosen)
        n_models = len(self.made_of)
        # the models' last predictions; until they are asked, the middle of [0, 1]
        self._points = np.full((n_models, size), 0.5)
        # Three sets of weights, which ``combine`` puts together: each coordinate's own
        # weights of the models, one set of weights that is common to all coordinates, and in each
        # coordinate the choice between these two.
        self._own = PolynomialWeights(n_models, size)
        self._common = PolynomialWeights(n_models, 1)
        self._choice = PolynomialWeights(2, size)
        self._sums = (*self._own.sums, *self._common.sums, *self._choice.sums)
        self._shares = Shares(
            own=np.empty(self._own.shape),
            common=np.empty(self._common.shape),
            choice=np.empty(self._choice.shape),
        )
        self._combined()  # so that a round may be learned that nobody asked for
        # the models that are distributions and predict the same statistics, by their index
        self._distribution_models = _models_of_one_basis(self.members)
        # The others, by their index: ours, of which nothing need be checked in a round, and users'.
        self._our_models: dict[int, Model] = {}
        self._other_models: dict[int, Forecaster] = {}
        for model_index, model in enumerate(self.members.values()):
            if model_index in self._distribution_models:
                continue
            if isinstance(model, Model) and predicts_as_model(type(model)):
                self._our_models[model_index] = model
            else:
                self._other_models[model_index] = model
        self._teachers = [teacher_of(model) for model in self.members.values()]

    @property
    def points(self) -> Array:
        """What each model predicted when the aggregate was last asked (M, n), kept to [0, 1]."""
        return self._points

    def _combined(self) -> Array:
        """Weigh the models by what was learned so far, and return their combination (n,)."""
        prediction = np.empty(self.size)
        _weigh_and_combine(self._points, *self._sums, *self._shares, prediction)
        return prediction

    def _predicted(self, x: object) -> Array:
        self._points = self._points_of_models(x)
        prediction = self._combined()
        if self._chosen_index is not None:
            return np.array(self._points[self._chosen_index])
        return prediction

    def _points_of_models(self, x: object) -> Array:
        """Ask every model for its prediction (M, n); UserError if it is not n numbers.

        They are not all in [0, 1] yet.
        """
        self._tell_lead_to_models()
        points = np.empty((len(self.members), self.size))
        if self._distribution_models:
            indices = list(self._distribution_models)
            points[indices] = expected_statistics(list(self._distribution_models.values()), x)
        for model_index, our_model in self._our_models.items():
            our_model.write_prediction(x, points[model_index])
        for model_index, model in self._other_models.items():
            point = np.asarray(model.point(x))
            if point.shape != (self.size,):
                name = self.made_of[model_index]
                fault = f"models['{name}'] predicted an array of shape {point.shape}"
                raise UserError(f"{fault}; it must predict {self.size} numbers")
            points[model_index] = point
        return points

    def _tell_lead_to_models(self) -> None:
        """Tell the models how many rounds ahead they predict, and how late they learn."""
        for model in self.members.values():
            model.ahead = self.ahead  # rounds between the last known outcome and the one predicted
            model.newer = self.newer  # how many later outcomes are known when one is learned

    def opened(self) -> Any:
        return {
            "points": self._points.copy(),
            "members": {name: model.opened() for name, model in self.members.items()},
            "own": self._shares.own.copy(),
            "common": self._shares.common.copy(),
            "choice": self._shares.choice.copy(),
        }

    def reopen(self, x: object, opened: Any) -> None:
        self._tell_lead_to_models()
        for name, model in self.members.items():
            model.reopen(x, opened["members"][name])
        self._points = opened["points"]
        # as copies, into which the shares of the next round are written
        self._shares = Shares(
            own=np.array(opened["own"]),
            common=np.array(opened["common"]),
            choice=np.array(opened["choice"]),
        )

    def skip_round(self, x: object = None) -> None:
        self._tell_lead_to_models()
        for model in self.members.values():
            if isinstance(model, Model):
                model.skip_round(x)

    def _learn(self, statistics: Array) -> None:
        outcome = self._outcome  # as it was observed, None where only s(y) is known
        self._outcome = None
        _learn_gains(self._points, statistics, *self._shares, *self._sums)
        for teach_model in self._teachers:
            teach_model(statistics, outcome)


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


LONG_REGRESSION = {"kind": "least-squares", "lags": 12, "ridge": 0.01, "forgetting": 0.99}
# the same seven and two that carry their errors, "panel-with-errors" of a scenario file
PANEL_WITH_ERRORS: dict[str, dict[str, Any]] = PANEL | {
    "last-value-with-errors": {"kind": "with-errors", "model": "last-value"},
    "regression-with-errors": {"kind": "with-errors", "model": LONG_REGRESSION},
}
# names that stand for several models in a scenario file
MODELS_OF_PANEL = {"panel": PANEL, "panel-with-errors": PANEL_WITH_ERRORS}
# ten models that are distributions: what ``OnlineOmnipredictor`` calls its panel
PANEL_OF_DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "running-mean": {"kind": "past-outcomes"},
    "smoothing-0.2": {"kind": "past-outcomes", "rate": 0.2},
    "last-value": {"kind": "past-outcomes", "rate": 1.0},
    "seasonal-naive": {"kind": "past-outcomes", "rate": 1.0, "seasonal": True},
    "seasonal-0.2": {"kind": "past-outcomes", "rate": 0.2, "seasonal": True},
    "least-squares": {"kind": "with-errors", "model": "least-squares"},
    "least-squares-0.99": {
        "kind": "with-errors",
        "model": {"kind": "least-squares", "forgetting": 0.99},
    },
    "last-value-with-errors": {"kind": "with-errors", "model": "last-value"},
    "regression-with-errors": {"kind": "with-errors", "model": LONG_REGRESSION},
    "seasonal-regression": {"kind": "with-errors", "model": "seasonal-regression"},
}


def make_panel(
    panel: Mapping[str, Mapping[str, Any]], size: int, basis: Basis | None = None
) -> dict[str, Model]:
    """Make the models of a panel for n = ``size`` numbers: their kinds and parameters, by name.

    Models of outcomes are made for the ``basis`` of these numbers, where it is given.
    """
    models: dict[str, Model] = {}
    for name, table in panel.items():
        parameters = {key: value for key, value in table.items() if key != "kind"}
        takes_basis = "basis" in inspect.signature(register.forecaster[table["kind"]]).parameters
        if takes_basis and basis is not None:
            parameters["basis"] = basis
        models[name] = register.forecaster[table["kind"]](size, **parameters)
    return models


@register.forecaster("aggregate")
def aggregate(size: int) -> Aggregate:
    """Make the aggregate of the default panel, whose regressions share their features."""
    panel = make_panel(PANEL, size)
    share_features(panel.values())
    return Aggregate(panel, size)
