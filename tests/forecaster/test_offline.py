"""The estimator for tables: scikit-learn's checks, frames, files, refusals."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from learned import OTHER, RULES, SIDES, examples, losses
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from regretless.agents.utilities.forms import CES, Newsvendor
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.offline import OfflineOmnipredictor, Pinball, SquaredError
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear, LipschitzLoss


def tree(features: Array, outcomes: Array) -> Any:
    """Fit a policy of scikit-learn's to the best actions of a loss."""
    best = losses()[1].losses(outcomes).argmin(1)
    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(features, best)


EXPECTED = {
    "check_estimators_empty_data_messages": "a table without features is fine",
    "check_sample_weight_equivalence_on_dense_data": "rows are split into folds at random",
}
ONLINE = EXPECTED | {"check_sample_weights_not_overwritten": "the online run has no weights"}


class Numbered(OfflineOmnipredictor):
    """The estimator behind a numbering of outcomes that are text, as some checks have."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Self:  # noqa: N803
        if y is not None and np.asarray(y).dtype.kind in "OUS":
            y = np.unique(np.asarray(y).astype(str), return_inverse=True)[1]
        return super().fit(X, y, sample_weight, **more)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["auto", "none"])
def test_estimator_checks_of_scikit_learn(base: str) -> None:
    model = Numbered([Linear(np.array([[0.0], [1.0]]))], base=base, rounds_kept=3, trees=1)
    expected = EXPECTED if base == "auto" else ONLINE
    results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 20
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


def test_clones_pipelines_searches_and_cross_validation() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((120, 2))
    outcomes = 30 * features[:, 0] + 5 * rng.random(120)  # in units of its own
    model = OfflineOmnipredictor([SIDES], RULES[:1], trees=5, kappa=0.1)
    plain = cross_val_score(model, features, outcomes, cv=3)
    assert (plain > -0.35).all()  # a coin's loss is 0.5, a perfect one 0.25
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(model).set_params(policies=())),
        {"offlineomnipredictor__base": ["ridge", "auto"]},
        cv=3,
    ).fit(features, outcomes)
    assert search.best_score_ == pytest.approx(plain.mean(), abs=0.03)
    assert search.predict(features).shape == (120, 1)
    fitted = model.fit(features, outcomes)
    assert not hasattr(clone(fitted), "fitted_")
    assert clone(fitted).get_params()["kappa"] == 0.1


def test_a_fitted_classifier_is_a_policy() -> None:
    features, outcomes = examples(400)
    best = SIDES.losses(outcomes[:, :1]).argmin(1)
    classifier = LogisticRegression().fit(features[:100], best[:100])
    fresh, agree = np.random.default_rng(1).random((500, 2)), []
    for policies in ([classifier], []):
        model = OfflineOmnipredictor([SIDES], policies, base="none", rounds_kept=50)
        acts = model.fit(features[100:], outcomes[100:, :1]).act(SIDES, fresh)
        agree.append((acts == classifier.predict(fresh)).mean())
    assert agree[0] > 0.8
    assert agree[1] < 0.7


def test_outcomes_in_units_of_their_own() -> None:
    """A table in other units has the same actions, and forecasts in its units."""
    features, outcomes = examples(150)
    outcomes = (outcomes[:, 0] - outcomes[:, 0].min()) / np.ptp(outcomes[:, 0])
    plain = OfflineOmnipredictor([SIDES], trees=5).fit(features, outcomes)
    scaled = OfflineOmnipredictor([SIDES], trees=5).fit(features, 40 * outcomes - 8)
    assert scaled.ends_.tolist() == [[-8.0, 32.0]]
    assert plain.ends_.tolist() == [[0.0, 1.0]]
    assert (plain.act(SIDES, features) == scaled.act(SIDES, features)).all()
    for name in ("predict_outcome", "predict_quantiles"):
        wanted = 40 * getattr(plain, name)(features) - 8
        assert getattr(scaled, name)(features) == pytest.approx(wanted)


def test_a_frame_goes_in_and_comes_out() -> None:
    features, outcomes = examples(120)
    frame = pd.DataFrame(features, columns=["a", "b"], index=np.arange(120) + 7)
    fitted = OfflineOmnipredictor([SIDES, OTHER], trees=5).fit(frame, outcomes[:, 0])
    assert list(fitted.feature_names_in_) == ["a", "b"]
    table = fitted.predict_frame(frame[:6], levels=[0.25])
    assert list(table.index) == list(range(7, 13))
    assert list(table) == ["y_0", "y_0_q25"] + [
        f"loss{s}_{what}" for s in (0, 1) for what in ("action", "expected_loss")
    ]
    assert (table["loss1_action"] == fitted.act(OTHER, frame[:6])).all()
    assert table["y_0"].to_numpy() == pytest.approx(fitted.predict_outcome(frame[:6])[:, 0])
    assert list(fitted.predict_frame(frame[:6], levels=()))[:2] == ["y_0", "loss0_action"]


@pytest.mark.parametrize("base", ["auto", "none"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(base: str) -> None:
    own = partial(OfflineOmnipredictor, [losses()], RULES, base=base, trees=4, rounds_kept=9)
    models = [own(random_state=seed).fit(*examples(90)) for seed in (4, 4, 5)]
    made = [model.predict(examples(20, 3)[0]).tobytes() for model in models]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("given", [("auto", "losses"), ("none", "coordinates"), ("none", "losses")])
def test_a_saved_model_is_the_same(tmp_path: Path, given: tuple[str, str]) -> None:
    pytest.importorskip("skops")
    features, outcomes = examples(150)
    rules = [RULES[0], tree(features, outcomes)]
    own = [losses(), Newsvendor([0.2, 0.5, 0.8], 3.0, 1.0, outcomes=2)]
    base, events = given
    first = OfflineOmnipredictor(
        own, rules, base=base, events=events, rounds_kept=20, random_state=3, trees=2, holdout=0.3
    ).fit(features, outcomes)
    first.save(tmp_path / "model.skops")
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]
    second, fresh = OfflineOmnipredictor.load(tmp_path / "model.skops"), examples(40, 9)[0]
    pd.testing.assert_frame_equal(first.predict_frame(fresh), second.predict_frame(fresh))
    for loss in (own[0][1], own[1]):
        assert first.bound(loss) == second.bound(loss)
        assert first.certificate(loss) == second.certificate(loss)
    assert second.get_params()["events"] == events


def test_a_model_of_forecasts_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    features, outcomes = examples(80)
    served = [SquaredError(), Pinball(0.8)]
    model = OfflineOmnipredictor(served, theta=0.1, trees=5).fit(features, outcomes[:, 0])
    model.save(tmp_path / "m.skops")
    again = OfflineOmnipredictor.load(tmp_path / "m.skops")
    for loss in served:
        assert (model.act(loss, features) == again.act(loss, features)).all()


def test_code_is_not_saved(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    steep = LipschitzLoss(lambda y: np.abs(y - 0.3), np.array(1.0), (1,), 1)
    one = OfflineOmnipredictor([steep], base="none", rounds_kept=2).fit(None, np.linspace(0, 1, 9))
    two = OfflineOmnipredictor([losses()], [lambda _: 0], base="none", rounds_kept=2)
    for model in (one, two.fit(*examples(9))):
        with pytest.raises(UserError, match="cannot be saved") as refused:
            model.save(tmp_path / "model.skops")
        assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["missing", "short", "other", "forged", "bomb", "deep"])
def test_a_damaged_model_is_refused(tmp_path: Path, damage: str) -> None:
    """Also one whose trees would lead a walk off their arrays."""
    io = pytest.importorskip("skops.io")
    features, outcomes = examples(60)
    rule = tree(features, outcomes)
    model = OfflineOmnipredictor([losses()], [rule], base="ridge").fit(features, outcomes)
    out = tmp_path / "model.skops"
    if damage == "other":
        io.dump(StandardScaler(), out)
    elif damage == "short":
        model.save(out)
        out.write_bytes(out.read_bytes()[:-2000])
    elif damage == "forged":
        rule.tree_.children_left[0] = 10**6
        model.save(out)
    elif damage in {"bomb", "deep"}:
        packing = ZIP_DEFLATED if damage == "bomb" else ZIP_STORED
        text = {"bomb": bytes(2**22), "deep": b"[" * 100_000}[damage]
        with ZipFile(out, "w", packing) as archive:
            archive.writestr("schema.json", text)
    told = {"missing": "does not exist", "other": "holds no OfflineOmnipredictor"}
    with pytest.raises(UserError, match=told.get(damage, "no readable model")):
        OfflineOmnipredictor.load(out)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    io.dump({"a": subprocess.run}, tmp_path / "model.skops")
    with pytest.raises(UserError, match=r"names subprocess\.run, which is not read"):
        OfflineOmnipredictor.load(tmp_path / "model.skops")


@pytest.mark.parametrize(("missing", "told"), [("sklearn", "scikit-learn"), ("skops", "skops")])
def test_a_missing_extra_is_named_in_one_line(missing: str, told: str) -> None:
    code = f"""
import sys; sys.modules[{missing!r}] = None
import numpy as np
from regretless.market.core.errors import UserError
try:
    from regretless import OfflineOmnipredictor
    from regretless.market.losses import Linear
    OfflineOmnipredictor([Linear(np.eye(1))]).fit(None, [0.0, 1.0]).save("unwritten")
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"needs {told}; install regretless[learn]" in done.stdout
    assert done.stdout.count("\n") == 1


X, Y = examples(12)
MANY = np.ones((3000, 8, 2)) / 2 + 0.1 * np.random.default_rng(0).random((3000, 8, 2))
BAD: list[tuple[dict[str, Any], str]] = [
    ({"x": np.where(np.eye(12, 2) > 0, np.nan, X)}, "contains NaN"),
    ({"y": np.full((12, 2), np.nan)}, "Input y contains NaN"),
    ({"x": X[:0], "y": Y[:0]}, "minimum of 1 is required"),
    ({"y": Y[:, :1]}, "y has 1 outcomes, a loss has 2"),
    ({"ends": [(0, 1)]}, "a low and a high for each outcome"),
    ({"events": "all"}, "'events' parameter .* Got 'all'"),
    ({"weights": "flat"}, "weights 'flat'"),
    ({"losses": []}, "losses is empty"),
    ({"losses": LinearBasis(2)}, "holds a LinearBasis; give"),
    ({"losses": [Linear(np.eye(2) * 9)]}, r"use loss.normalised\(\)"),
    ({"basis": LinearBasis(2)}, "leave basis out"),
    ({"policies": [lambda _: 0.5]}, "suggests 0.5"),
    ({"rows": {"groups": np.zeros(12)}}, "all rows .* are in one group"),
    ({"rows": {"sample_weight": np.zeros(12)}}, "weight"),
    (
        {"rows": {"sample_weight": -np.ones(12)}},
        "Negative values in data passed to `sample_weight`",
    ),
    (
        dict(zip("xy", examples(400), strict=True))
        | {"losses": [CES(MANY, 0.5)], "policies": RULES, "rounds_kept": 200},
        "use events='losses'",
    ),
    ({"kappa": 0.0}, "'kappa' parameter .* Got 0.0"),
    ({"rounds_kept": 0}, "'rounds_kept' parameter .* Got 0"),
    ({"base": "all"}, "'base' parameter .* Got 'all'"),
    ({"trees": 0}, "'trees' parameter .* Got 0"),
    ({"refit": "no"}, "'refit' parameter .* Got 'no'"),
    ({"holdout": 1.0}, "'holdout' parameter .* Got 1.0"),
    ({"delta": 0.0}, "'delta' parameter .* Got 0.0"),
]
LATER: list[tuple[Callable[[OfflineOmnipredictor], Any], str]] = [
    (lambda model: model.predict_quantiles(X), "no distribution of outcomes"),
    (lambda model: model.predict_outcome(X), "no distribution of outcomes"),
    (lambda model: model.predict(X[:, :1]), "expecting 2 features"),
    (lambda model: model.act(losses(), X), "give one of them"),
    (lambda model: model.fit(FRAME, Y).predict(FRAME[["b", "a"]]), "feature names should match"),
]
FRAME = pd.DataFrame(X, columns=["a", "b"])


def fitted(x: Any = X, y: Any = Y, rows: Any = None, **given: Any) -> OfflineOmnipredictor:
    given = {"losses": [losses()], "base": "none", "rounds_kept": 3} | given
    return OfflineOmnipredictor(**given).fit(x, y, **(rows or {}))


def in_one_line(act: Callable[[], Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        act()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("given", "told"), BAD)
def test_bad_input_is_refused_in_one_line(given: dict[str, Any], told: str) -> None:
    in_one_line(lambda: fitted(**given), told)


@pytest.mark.parametrize(("act", "told"), LATER)
def test_bad_questions_are_refused_in_one_line(act: Any, told: str) -> None:
    model = fitted()
    in_one_line(lambda: act(model), told)


def test_use_before_fit_is_refused() -> None:
    for act in (lambda m: m.predict(X), lambda m: m.act(losses()[0], X)):
        with pytest.raises(ValueError, match="not fitted"):
            act(OfflineOmnipredictor([losses()]))
