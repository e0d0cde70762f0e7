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
from sklearn.utils.estimator_checks import check_estimator

Array = NDArray[np.float64]


class Scaled(OfflineOmnipredictor):
    """The estimator behind a scaling of outcomes: the checks draw outcomes anywhere."""

    def fit(self, X: Any, Y: Any = None) -> Scaled:  # noqa: N803
        """Fit to scaled outcomes."""
        if Y is None:
            return super().fit(X, Y)
        given = np.asarray(Y)
        if given.dtype.kind in "OUS" or not np.isfinite(given).all():
            _, given = np.unique(given.astype(str), return_inverse=True)
        spread = np.ptp(given) or 1.0
        return super().fit(X, (given - given.min()) / spread)


EXPECTED: dict[str, str] = {
    "check_estimators_overwrite_params": "losses keep what they compute once; no value changes",
    "check_estimators_pickle": "it maps arrays read-only, and a prediction writes into its own",
    "check_estimators_empty_data_messages": "a table without features is fine: no policy asks",
}


@pytest.mark.filterwarnings("ignore:Estimator Scaled does not inherit")
def test_estimator_checks_of_scikit_learn() -> None:
    model = Scaled([Linear(np.array([[0.0], [1.0]]))], rounds_kept=3)
    results = check_estimator(model, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 20
    known = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert known == set(EXPECTED)


def test_clone_keeps_the_parameters_and_drops_the_fit() -> None:
    rng = np.random.default_rng(0)
    model = OfflineOmnipredictor([SquaredError()], [Threshold(0, 0.5, 0, 1)], kappa=0.1)
    twin = clone(model)
    assert twin is not model
    assert twin.get_params()["kappa"] == 0.1
    assert twin.policies == model.policies
    finite = OfflineOmnipredictor([Linear(np.eye(2))], rounds_kept=4).fit(None, rng.random((9, 2)))
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
    model = OfflineOmnipredictor([loss], [classifier], rounds_kept=50)
    model.fit(features[100:], outcomes[100:])
    fresh = rng.random((500, 2))
    agree = (model.act(loss, fresh) == classifier.predict(fresh)).mean()
    assert agree > 0.8
    without = OfflineOmnipredictor([loss], rounds_kept=50).fit(features[100:], outcomes[100:])
    assert (without.act(loss, fresh) == classifier.predict(fresh)).mean() < 0.7
