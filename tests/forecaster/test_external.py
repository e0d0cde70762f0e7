"""Models of other libraries, by fakes of their habits: what they see, when they are fitted."""

import copy
from typing import Any

import numpy as np
import pytest

from regretless import RunningMean, UserError
from regretless.forecaster.bases import PowerBasis
from regretless.forecaster.models.external import SHORT, OnlineModel, SeriesModel, adapted
from regretless.market.core.arrays import Array
from regretless.market.records import Context

SIZE = 3


class MeanPerFeature:
    """The habits of scikit-learn: the mean target of the rows with the same first feature."""

    def fit(self, rows: Array, targets: Array) -> None:
        self.rows, self.targets = rows, targets.reshape(len(rows), -1)

    def predict(self, rows: Array) -> Array:
        alike = self.rows[:, 0] == rows[0, 0]
        return np.asarray(self.targets[alike if alike.any() else slice(None)].mean(0)[None])


class RunningPerFeature:
    """The habits of River: one number, one example at a time."""

    def __init__(self) -> None:
        self.seen: dict[float, list[float]] = {}

    def learn_one(self, x: dict[str, float], y: float) -> None:
        self.seen.setdefault(x["day"], []).append(y)

    def predict_one(self, x: dict[str, float]) -> float:
        return float(np.mean(self.seen.get(x["day"], [0.5])))


def at(day: float) -> Context:
    return Context(("day",), np.array([day]))


@pytest.mark.parametrize("model", [MeanPerFeature(), RunningPerFeature()])
def test_models_of_other_libraries_learn_from_context(model: Any) -> None:
    base = adapted(model, SIZE)
    truths = {0.0: np.array([0.1, 0.2, 0.3]), 1.0: np.array([0.9, 0.8, 0.7])}
    assert (base.predict(at(0)).statistics == 0.5).all()
    for day in [0.0, 1.0] * 10:
        base.predict(at(day))
        base.update(truths[day])
    for day, truth in truths.items():
        assert base.predict(at(day)).statistics == pytest.approx(truth)
    assert not hasattr(model, "rows"), "the user's own object is left as it was"
    assert not getattr(model, "seen", {})


def test_what_a_model_must_offer() -> None:
    assert isinstance(adapted(RunningPerFeature(), 2), OnlineModel)
    own = RunningMean(2)
    assert adapted(own, 2) is own
    with pytest.raises(ValueError, match="object cannot be a base model"):
        adapted(object(), 2)


class Fitted:
    """Counts its fits; a series is predicted to go on with its last step, or to stay."""

    fits = 0

    def fit(self, y: Any, X: Any = None, fh: Any = None) -> Any:  # noqa: N803 - sktime's name
        assert X is None
        assert fh is None
        if len(y) < 3:
            raise ValueError("too short")
        self.fits += 1
        self.end, self.step = y[-1], y[-1] - y[-2]
        return self


class Sktime(Fitted):
    """The habits of sktime."""

    def predict(self, fh: Any = None, X: Any = None) -> Array:  # noqa: N803
        assert X is None
        return np.asarray(self.end + self.step * np.asarray(fh))[:, None]

    def update(self, y: Any) -> None:
        raise AssertionError(y)  # it is no vector that was predicted


class Statsforecast(Fitted):
    """The habits of statsforecast."""

    def predict(self, h: int, X: Any = None) -> dict[str, Array]:  # noqa: N803
        assert X is None
        return {"mean": self.end + self.step * np.arange(1, h + 1)}

    def forecast(self, y: Array, h: int) -> dict[str, Array]:
        return self.fit(y).predict(h)  # type: ignore[no-any-return]


class Forward(Statsforecast):
    """The same, which can follow what comes: it repeats the last number."""

    def predict(self, h: int, X: Any = None) -> dict[str, Array]:  # noqa: N803
        return {"mean": np.full(h, self.end)}

    def forward(self, y: Array, h: int) -> dict[str, Array]:
        return {"mean": np.full(h, y[-1])}


class AtOnce:
    """The habits of statsforecast without a fit that lasts, or a second step."""

    def forecast(self, y: Array, h: int) -> dict[str, Array]:
        return {"mean": np.array([y[-1], *np.full(h - 1, np.nan)])}


def series(model: Any, truths: Array) -> tuple[SeriesModel, Array]:
    """Let a model of a series predict the mean of one coordinate, and its square."""
    base: Any = adapted(model, 2, PowerBasis([1.0, 2.0], 1))
    told = []
    for t, truth in enumerate(truths):
        told.append(base.predict(at(t)).statistics)
        base.observe_outcome(np.array([truth]))
        base.update(np.array([truth, truth**2]))
    return base, np.array(told)


@pytest.mark.parametrize("model", [Sktime(), Statsforecast()])
def test_series_models_answer_until_the_next_fit(model: Any) -> None:
    truths = np.linspace(0.1, 0.8, 300)
    base, told = series(model, truths)
    assert isinstance(base, SeriesModel)
    assert told[20:] == pytest.approx(np.column_stack([truths, truths**2])[20:], abs=0.01)
    assert 15 < base._models[0].fits < 30
    assert model.fits == 0, "the user's own object is left as it was"
    assert base.resumable
    copied = copy.deepcopy(base)
    assert (copied.predict().statistics == base.predict().statistics).all()


@pytest.mark.parametrize("model", [Forward(), AtOnce()])
def test_series_models_follow_what_comes(model: Any) -> None:
    """Each repeats the last number, whether asked or where it knows none."""
    base, told = series(model, np.tile([0.2, 0.8], 60))
    residuals = np.tile([-0.6, 0.6], 32)
    for t in (100, 101):
        last = 0.8 if t % 2 == 0 else 0.2
        mean = np.clip(last + residuals, 0, 1).mean()
        assert told[t, 0] == pytest.approx(mean)
    assert base.predict().statistics[0] == pytest.approx((0.8 - 0.6 + 1.0) / 2)


def test_a_series_that_stays_too_short_is_the_users_to_mend() -> None:
    class Long(Sktime):
        def fit(self, y: Any, X: Any = None, fh: Any = None) -> Any:  # noqa: N803
            raise ValueError("give 400")

    _, told = series(Long(), np.full(SHORT - 1, 0.3))
    assert told[-1] == pytest.approx([0.3, 0.09])
    with pytest.raises(UserError, match=r"Long on 101 rounds: give 400"):
        series(Long(), np.full(2 * SHORT, 0.3))
    with pytest.raises(ValueError, match="give the basis as well"):
        adapted(Long(), 2)
