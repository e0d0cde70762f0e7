"""The estimator under scikit-learn: its own checks, clones, classifiers as policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.omniprediction import SquaredError, Threshold
from regretless.market.losses import Linear

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

Array = NDArray[np.float64]


class Numbered(OfflineOmnipredictor):
    """The estimator behind a numbering of outcomes that are text, as some checks have."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Numbered:  # noqa: N803
        """Fit to numbered outcomes."""
        given = np.asarray(y)
        if y is not None and given.dtype.kind in "OUS":
            _, given = np.unique(given.astype(str), return_inverse=True)
        return super().fit(X, None if y is None else given, sample_weight, **more)


EXPECTED: dict[str, str] = {
    "check_estimators_overwrite_params": "losses keep what they compute once; no value changes",
    "check_estimators_empty_data_messages": "a table without features is fine: a marginal law",
}
ONLINE: dict[str, str] = EXPECTED | {
    "check_estimators_pickle": "it maps arrays read-only, and a prediction writes into its own",
    "check_sample_weights_not_overwritten": "the online run has no weights, and says so",
    "check_sample_weight_equivalence_on_dense_data": "likewise",
}


@pytest.mark.filterwarnings("ignore:Estimator Numbered does not inherit")
@pytest.mark.parametrize("base", ["auto", "none"])
def test_estimator_checks_of_scikit_learn(base: str) -> None:
    model = Numbered([Linear(np.array([[0.0], [1.0]]))], base=base, rounds_kept=3, trees=3)
    expected = EXPECTED if base == "auto" else ONLINE
    results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 20
    known = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert known == set(expected)


def test_clone_keeps_the_parameters_and_drops_the_fit() -> None:
    rng = np.random.default_rng(0)
    model = OfflineOmnipredictor([SquaredError()], [Threshold(0, 0.5, 0, 1)], kappa=0.1)
    twin = clone(model)
    assert twin is not model
    assert twin.get_params()["kappa"] == 0.1
    assert twin.policies == model.policies
    finite = OfflineOmnipredictor([Linear(np.eye(2))], base="none", rounds_kept=4).fit(
        None, rng.random((9, 2))
    )
    assert not hasattr(clone(finite), "fitted_")
    assert clone(finite).set_params(rounds_kept=7).rounds_kept == 7
    assert "rounds_kept=4" in repr(finite)


def test_a_fitted_classifier_is_a_policy() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((400, 2))
    outcomes = np.clip(features[:, :1] + 0.1 * rng.standard_normal((400, 1)), 0, 1)
    loss = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))  # 0 for low, 1 for high
    best = loss.losses(outcomes).argmin(1)
    classifier = LogisticRegression().fit(features[:100], best[:100])
    model = OfflineOmnipredictor([loss], [classifier], base="none", rounds_kept=50)
    model.fit(features[100:], outcomes[100:])
    fresh = rng.random((500, 2))
    agree = (model.act(loss, fresh) == classifier.predict(fresh)).mean()
    assert agree > 0.8
    without = OfflineOmnipredictor([loss], base="none", rounds_kept=50).fit(
        features[100:], outcomes[100:]
    )
    assert (without.act(loss, fresh) == classifier.predict(fresh)).mean() < 0.7


def test_pipelines_searches_and_cross_validation() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((120, 2))
    outcomes = 30 * features[:, 0] + 5 * rng.random(120)  # in units of its own
    loss = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))
    model = OfflineOmnipredictor([loss], trees=5)
    plain = cross_val_score(model, features, outcomes, cv=3)
    assert (plain > -0.35).all()  # a coin's loss is 0.5, a perfect one 0.25
    piped = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(piped, {"offlineomnipredictor__base": ["ridge", "auto"]}, cv=3)
    search.fit(features, outcomes)
    assert search.best_score_ == pytest.approx(plain.mean(), abs=0.03)
    assert set(search.predict(features).shape) == {120, 1}
