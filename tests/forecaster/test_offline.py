"""The estimator for tables: the conditional distribution, its certificates, files and refusals."""

import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from learned import OTHER, RULES, SIDES, examples, losses
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from regretless import OfflineOmnipredictor, UserError
from regretless.agents.utilities.forms import CES, Newsvendor
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.offline import ActionLoss, Pinball, SquaredError, Threshold, certificate
from regretless.forecaster.offline.certificate import RATES, certify
from regretless.forecaster.offline.conditional import MEMBERS, Sample, folds_of, support
from regretless.forecaster.offline.tables import Rows
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear, LipschitzLoss


def one_outcome(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 3) and outcomes (m,) that depend on two of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 3))
    mean = 0.2 + 0.5 * (features[:, 0] > 0.5) + 0.2 * features[:, 1]
    return features, np.clip(mean + 0.1 * rng.standard_normal(rows), 0, 1)


def learned(*table: Any, **given: Any) -> OfflineOmnipredictor:
    return OfflineOmnipredictor(**{"losses": [SIDES]} | given).fit(*table)


def lead(model: OfflineOmnipredictor, features: Array, outcomes: Array, loss: Any = SIDES) -> float:
    """Return by how much it loses less than the best constant."""
    table = loss.losses(outcomes[:, None])
    return float(table.mean(0).min() - (model.act_proba(loss, features) * table).sum(1).mean())


def kept(model: OfflineOmnipredictor, folder: Path) -> OfflineOmnipredictor:
    """Save and load."""
    pytest.importorskip("skops")
    model.save(folder / "model.skops")
    assert [path.name for path in folder.iterdir()] == ["model.skops"]
    return OfflineOmnipredictor.load(folder / "model.skops")


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    rules = [Threshold(0, 0.5, 0, 1)]
    return learned(*one_outcome(400), policies=rules, trees=30, holdout=0.4)


@pytest.mark.parametrize("name", MEMBERS)
def test_no_row_is_learned_from_its_own_outcome(name: str) -> None:
    """Pure noise: what is expected of a row by cross-fitting has nothing to do with its outcome."""
    features, noise = one_outcome(300)[0], np.random.default_rng(2).random((300, 1))
    rng = np.random.default_rng(1)
    weights = 0.5 + rng.random(300)
    points = support(noise, weights)
    folds = list(KFold(5, shuffle=True, random_state=0).split(features))
    own = Sample(features, noise, weights, folds, 7, rng, points, points, noise)
    distribution, expected = MEMBERS[name](own)
    assert np.corrcoef(expected[:, 0], noise[:, 0])[0, 1] < 0.15
    if name == "extra trees":  # the finished distribution has seen them
        seen = distribution.expected(own.features, own.points)
        assert np.corrcoef(seen[:, 0], noise[:, 0])[0, 1] > 0.5


def test_folds_keep_groups_together() -> None:
    groups, (features, outcomes) = np.repeat(np.arange(12), 5), one_outcome(60)
    rows = Rows(features, outcomes[:, None], np.ones(60), groups)
    for learned, tested in folds_of(4, rows, 0):
        assert not set(groups[learned]) & set(groups[tested])
        assert len(learned) + len(tested) == 60


def test_it_beats_a_constant_and_serves_later_losses(model: OfflineOmnipredictor) -> None:
    fresh = one_outcome(2000, 9)
    for loss in (SIDES, OTHER):
        assert lead(model, *fresh, loss) > 0.03
        ours = loss.losses(fresh[1][:, None]).mean(0).min() - lead(model, *fresh, loss)
        assert model.expected_loss(loss, fresh[0]).mean() == pytest.approx(ours, abs=0.02)
    table = SIDES.losses(fresh[1][:, None])
    score = (model.act_proba(SIDES, fresh[0]) * table).sum(1).mean()
    assert model.score(*fresh) == pytest.approx(-score)


def test_quantiles_cover_what_they_say(model: OfflineOmnipredictor) -> None:
    features, outcomes = one_outcome(3000, 4)
    levels = (0.1, 0.5, 0.9)
    found = model.predict_quantiles(features, levels)
    assert (np.diff(found, axis=2) >= 0).all()
    covered = (outcomes[:, None] <= found[:, 0]).mean(0)
    assert covered == pytest.approx(levels, abs=0.08)


def test_weights_count_rows() -> None:
    """A row of weight 0 might as well not be there."""
    features, outcomes = one_outcome(200)
    half, fresh = np.arange(200) < 100, one_outcome(500, 3)[0]
    away = np.where(half, outcomes, 1 - outcomes)
    weighted = learned(features, away, half.astype(float), base="ridge")
    alone = learned(features[:100], outcomes[:100], base="ridge")
    assert (weighted.act(SIDES, fresh) == alone.act(SIDES, fresh)).mean() > 0.9
    assert weighted.certified_on_holdout_ is None


def test_time_splits_learn_from_the_past_alone() -> None:
    split = TimeSeriesSplit(4)
    ordered = learned(*one_outcome(1100), trees=5, cv=split)
    assert ordered.held_ is None  # rows in an order are no independent draws
    assert lead(ordered, *one_outcome(500, 3)) > 0.03
    with pytest.raises(UserError, match="no certificate holds"):
        learned(*one_outcome(60), cv=split, holdout=0.2)


def test_without_features_it_is_the_distribution_of_all_rows() -> None:
    outcomes, blank = one_outcome(200)[1], np.empty((1, 0))
    whole = learned(None, outcomes, losses=[SquaredError(), Pinball(0.8)], theta=0.05)
    assert whole.predict_outcome(blank)[0, 0] == pytest.approx(outcomes.mean())
    assert whole.act(SquaredError(), blank)[0, 0] == pytest.approx(outcomes.mean(), abs=0.05)
    quantile = whole.act(Pinball(0.8), blank)[0, 0]
    assert quantile == pytest.approx(np.quantile(outcomes, 0.8), abs=0.051)


def test_the_distribution_in_use_is_learned_again_from_all_rows(tmp_path: Path) -> None:
    """It is that of ``holdout=0``; the certificate is that of the one that was not refitted."""
    own = partial(learned, *one_outcome(300), base="ridge")
    model, certified, whole = own(holdout=0.4), own(holdout=0.4, refit=False), own(holdout=0)
    fresh = one_outcome(50, 6)[0]
    assert model.predict(fresh).tobytes() == whole.predict(fresh).tobytes()
    assert model.predict(fresh).tobytes() != certified.predict(fresh).tobytes()
    assert model.certified_on_holdout_ == certified.certified_on_holdout_ == model.bound_
    assert (model.fitted_.rounds, model.certified_fit_.rounds) == (300, 180)
    for one in (model, certified):
        again = kept(one, tmp_path)
        assert again.certificate(OTHER) == certified.certificate(OTHER)
        assert again.predict(fresh).tobytes() == one.predict(fresh).tobytes()


def test_a_certificate_is_the_worst_over_assignments() -> None:
    """The search against all assignments, whose shares, and those of all rates, sum to one."""
    for actions, comparators in ((1, 4), (2, 2), (3, 5)):
        charges = certificate._charges(actions, comparators)
        assert np.exp(-charges).sum(1).prod() == pytest.approx(1)
    assert ((RATES > 0) & (RATES < 1)).all()
    rng = np.random.default_rng(0)
    table, play = rng.random((60, 2)), np.eye(2)[rng.integers(2, size=60)]
    comparators = np.stack([np.zeros(60), np.ones(60), rng.integers(2, size=60)]).astype(int)
    gains = table[:, :, None] - table[np.arange(60)[:, None], comparators.T][:, None, :]
    charges, wanted, rate, worst = certificate._charges(2, 3), 4.0, 0.4, 0.0
    for chosen in product(range(3), repeat=2):
        gained = sum(play[:, a] * gains[:, a, c] for a, c in enumerate(chosen))
        need = wanted + sum(charges[a, c] for a, c in enumerate(chosen))
        tried = np.linspace(0, 1, 2001)
        refuted = tried[np.log1p(rate * (tried[:, None] - gained)).sum(1) >= need]
        worst = max(worst, refuted.min() if len(refuted) else 1.0)
    bound = certificate._bound(gains, play, charges, rate=rate, wanted=wanted)
    assert bound == pytest.approx(worst, abs=1e-3)


def test_certificates_hold_as_often_as_they_say() -> None:
    """Regret known: an action that loses 0.05 more than the other, in 300 tables."""
    failures, play = 0, np.tile([1.0, 0.0], (120, 1))
    for seed in range(300):
        table = (np.random.default_rng(seed).random((120, 2)) < [0.55, 0.5]).astype(float)
        constants = np.tile([[0], [1]], 120)
        found = certify(table, play, constants, measure="decision_swap", kappa=0.2)
        assert found.measured <= found.total
        failures += found.total < 0.05
    assert failures <= 0.2 * 300


def test_certificates_fall_with_the_rows_and_randomised_play_is_covered() -> None:
    rng, totals = np.random.default_rng(0), []
    for rows in (100, 400, 1600, 6400):
        table, play = rng.random((rows, 3)), rng.dirichlet(np.ones(3), rows)
        log = table, play, np.tile(np.arange(3)[:, None], rows)
        own = certify(*log, measure="decision_swap", kappa=0.01)
        assert certify(*log, measure="omniprediction", kappa=0.01).total <= own.total
        totals.append(own.total)
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < 0.06


def test_a_thousand_rows_certify_five_losses_of_four_actions_below_a_tenth() -> None:
    four = [Pinball(float(q)) for q in np.linspace(0.2, 0.8, 5)]
    model = learned(*one_outcome(1000), losses=four, theta=0.125, trees=20)
    assert model.held_ is not None
    assert model.certified_on_holdout_ < 0.1
    fresh = one_outcome(4000, 77)
    for loss in four:
        assert model.decision_swap_regret(loss, *fresh) <= model.certified_on_holdout_
    assert model.bound(Pinball(0.65)).total < 0.15


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


@pytest.mark.parametrize("base", ["auto", "none"])
def test_estimator_checks_of_scikit_learn(base: str) -> None:
    model = Numbered([Linear(np.array([[0.0], [1.0]]))], base=base, rounds_kept=3, trees=1)
    expected = EXPECTED if base == "auto" else ONLINE
    results = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 20
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


def test_a_fitted_classifier_is_a_policy() -> None:
    features, outcomes = examples(400)
    best = SIDES.losses(outcomes[:, :1]).argmin(1)
    rule = LogisticRegression().fit(features[:100], best[:100])
    fresh, agree = np.random.default_rng(1).random((500, 2)), []
    for policies in ([rule], []):
        table = features[100:], outcomes[100:, :1]
        model = learned(*table, policies=policies, base="none", rounds_kept=50)
        agree.append((model.act(SIDES, fresh) == rule.predict(fresh)).mean())
    assert agree[0] > 0.8
    assert agree[1] < 0.7


def test_outcomes_in_units_of_their_own() -> None:
    """A table in other units has the same actions, and forecasts in its units."""
    features, outcomes = examples(150)
    outcomes = (outcomes[:, 0] - outcomes[:, 0].min()) / np.ptp(outcomes[:, 0])
    plain, scaled = (learned(features, y, trees=5) for y in (outcomes, 40 * outcomes - 8))
    assert scaled.ends_.tolist() == [[-8.0, 32.0]]
    assert plain.ends_.tolist() == [[0.0, 1.0]]
    assert (plain.act(SIDES, features) == scaled.act(SIDES, features)).all()
    score = plain.score(features, outcomes)
    assert score == pytest.approx(scaled.score(features, 40 * outcomes - 8))
    for name in ("predict_outcome", "predict_quantiles"):
        wanted = 40 * getattr(plain, name)(features) - 8
        assert getattr(scaled, name)(features) == pytest.approx(wanted)


def test_a_frame_goes_in_and_comes_out() -> None:
    features, outcomes = examples(120)
    frame = pd.DataFrame(features, columns=["a", "b"], index=np.arange(120) + 7)
    model = learned(frame, outcomes[:, 0], losses=[SIDES, OTHER], trees=5)
    assert list(model.feature_names_in_) == ["a", "b"]
    table = model.predict_frame(frame[:6], levels=[0.25])
    assert list(table.index) == list(range(7, 13))
    of_losses = [f"loss{s}_{what}" for s in (0, 1) for what in ("action", "expected_loss")]
    assert list(table) == ["y_0", "y_0_q25", *of_losses]
    assert (table["loss1_action"] == model.act(OTHER, frame[:6])).all()
    assert table["y_0"].to_numpy() == pytest.approx(model.predict_outcome(frame[:6])[:, 0])
    assert list(model.predict_frame(frame[:6], levels=()))[:2] == ["y_0", "loss0_action"]


@pytest.mark.parametrize("base", ["auto", "none"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(base: str) -> None:
    own = partial(learned, *examples(90), losses=[losses()], policies=RULES, base=base)
    models = [own(trees=4, rounds_kept=9, random_state=seed) for seed in (4, 4, 5)]
    made = [model.predict(examples(20, 3)[0]).tobytes() for model in models]
    assert made[0] == made[1] != made[2]


def tree(features: Array, outcomes: Array) -> Any:
    """Fit a policy of scikit-learn's to the best actions of a loss."""
    best = losses()[1].losses(outcomes).argmin(1)
    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(features, best)


@pytest.mark.parametrize("given", [("auto", "losses"), ("none", "coordinates"), ("none", "losses")])
def test_a_saved_model_is_the_same(tmp_path: Path, given: tuple[str, str]) -> None:
    table, fresh = examples(150), examples(40, 9)[0]
    own = [losses(), Newsvendor([0.2, 0.5, 0.8], 3.0, 1.0, outcomes=2)]
    more = {"rounds_kept": 20, "random_state": 3, "trees": 2, "holdout": 0.3}
    keys = {"losses": own, "policies": [RULES[0], tree(*table)], "base": given[0]}
    first = learned(*table, **keys, events=given[1], **more)
    second = kept(first, tmp_path)
    pd.testing.assert_frame_equal(first.predict_frame(fresh), second.predict_frame(fresh))
    for loss in (own[0][1], own[1]):
        assert first.bound(loss) == second.bound(loss)
        assert first.certificate(loss) == second.certificate(loss)
    assert second.get_params()["events"] == given[1]


def test_a_model_of_forecasts_is_saved(tmp_path: Path) -> None:
    features, outcomes = examples(80)
    served = [SquaredError(), Pinball(0.8)]
    model = learned(features, outcomes[:, 0], losses=served, theta=0.1, trees=5)
    again = kept(model, tmp_path)
    for loss in served:
        assert (model.act(loss, features) == again.act(loss, features)).all()


def test_code_is_neither_saved_nor_run(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    steep = LipschitzLoss(lambda y: np.abs(y - 0.3), np.array(1.0), (1,), 1)
    own, line = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0), np.linspace(0, 1, 9)
    for table, given in (
        ((None, line), {"losses": [steep]}),
        (examples(9), {"losses": [losses()], "policies": [lambda _: 0]}),
        ((None, line), {"losses": [own], "theta": 0.2}),
    ):
        model = learned(*table, base="none", rounds_kept=2, **given)
        with pytest.raises(UserError, match="cannot be saved") as refused:
            model.save(tmp_path / "model.skops")
        assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())
    io.dump({"a": subprocess.run}, tmp_path / "model.skops")
    with pytest.raises(UserError, match=r"names subprocess\.run, which is not read"):
        OfflineOmnipredictor.load(tmp_path / "model.skops")


DAMAGED = {"missing": "does not exist", "other": "holds no OfflineOmnipredictor"}
DAMAGED |= dict.fromkeys(("short", "forged", "bomb", "deep"), "no readable model")


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_model_is_refused(tmp_path: Path, damage: str) -> None:
    """Also one whose trees would lead a walk off their arrays."""
    io, out, rule = pytest.importorskip("skops.io"), tmp_path / "model.skops", tree(*examples(60))
    model = learned(*examples(60), losses=[losses()], policies=[rule], base="ridge")
    if damage == "other":
        io.dump(StandardScaler(), out)
    elif damage == "short":
        model.save(out)
        out.write_bytes(out.read_bytes()[:-2000])
    elif damage == "forged":
        rule.tree_.children_left[0] = 10**6
        model.save(out)
    elif damage in {"bomb", "deep"}:
        text, packing = {
            "bomb": (bytes(2**22), ZIP_DEFLATED),
            "deep": (b"[" * 100_000, ZIP_STORED),
        }[damage]
        with ZipFile(out, "w", packing) as archive:
            archive.writestr("schema.json", text)
    with pytest.raises(UserError, match=DAMAGED[damage]):
        OfflineOmnipredictor.load(out)


MISSING = """
import sys
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear
for missing in ("sklearn", "skops"):
    sys.modules[missing] = None
    try:
        from regretless import OfflineOmnipredictor
        OfflineOmnipredictor([Linear([[1.0]])]).fit(None, [0.0, 1.0]).save("unwritten")
    except UserError as error:
        print(error)
    del sys.modules[missing]
"""


def test_a_missing_extra_is_named_in_one_line() -> None:
    said = subprocess.check_output([sys.executable, "-c", MISSING], text=True)
    for told, line in zip(("scikit-learn", "skops"), said.splitlines(), strict=True):
        assert f"needs {told}; install regretless[learn]" in line


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
    ({"losses": [SquaredError(), Linear(np.eye(1))], "y": Y[:, :1]}, "mix finite and continuous"),
    ({"losses": [SquaredError(2), Pinball(0.5, outcomes=2)]}, "several dimensions"),
    ({"losses": [SquaredError()], "policies": [lambda _: 1.5], "y": Y[:, :1]}, "points of"),
]
LATER: list[tuple[str, tuple[Any, ...], str]] = [
    ("predict_quantiles", (X,), "no distribution of outcomes"),
    ("predict_outcome", (X,), "no distribution of outcomes"),
    ("predict", (X[:, :1],), "expecting 2 features"),
    ("act", (losses(), X), "give one of them"),
    ("act", (SquaredError(), X), "continuous actions"),
    ("sample_size", (0.0,), "give a number between 0 and 1"),
    ("sample_size", (1.0,), "give a number between 0 and 1"),
]


def asked(x: Any = X, y: Any = Y, rows: Any = None, **given: Any) -> OfflineOmnipredictor:
    given = {"losses": [losses()], "base": "none", "rounds_kept": 3} | given
    return OfflineOmnipredictor(**given).fit(x, y, **(rows or {}))


def one_line(told: str) -> Any:
    """Expect a refusal whose whole text is one line."""
    return pytest.raises(UserError, match=rf"(?s)\A[^\n]*{told}[^\n]*\Z")


@pytest.mark.parametrize(("given", "told"), BAD)
def test_bad_input_is_refused_in_one_line(given: dict[str, Any], told: str) -> None:
    with one_line(told):
        asked(**given)


def test_bad_questions_are_refused_in_one_line() -> None:
    model = asked()
    for name, words, told in LATER:
        with one_line(told):
            getattr(model, name)(*words)
    frame = pd.DataFrame(X, columns=["a", "b"])
    with one_line("feature names should match"):
        asked(frame).predict(frame[["b", "a"]])
    with one_line("level = 1"):
        Pinball(1)
    for name, words in (("predict", (X,)), ("act", (losses()[0], X))):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(OfflineOmnipredictor([losses()]), name)(*words)
