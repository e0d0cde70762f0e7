"""Offline omniprediction: the conditional distribution, the paper's bounds, certificates, files."""

import copy
import math
import subprocess
import sys
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from regretless import OfflineOmnipredictor, UserError, decision_swap_regret, omniprediction_regret
from regretless.agents.utilities.forms import CARA, CES, Newsvendor
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.offline import Pinball, SquaredError, Threshold, certificate, theta_net
from regretless.forecaster.offline.certificate import RATES, certify
from regretless.forecaster.offline.conditional import MEMBERS, Sample, folds_of, support_points
from regretless.forecaster.offline.continuous_actions import ActionLoss, radius, snap, theorem_theta
from regretless.forecaster.offline.online_to_batch import errors
from regretless.forecaster.offline.tables import Rows
from regretless.market.best_response import expected_losses
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear, LipschitzLoss

SIDES = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))  # y for low, 1 - y for high
OTHER = Linear(np.array([[0.0], [-1.0]]), np.array([0.3, 1.0]))
RULES = (Threshold(0, 0.5, 0, 1), Threshold(1, 0.5, 2, 0))
MEASURES: Any = ("decision_swap", "omniprediction")
terms = partial(errors, kappa=0.05)


def draw_examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw two features and two outcomes a row, which depend on them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 2))
    return features, np.clip(0.2 + 0.6 * features + 0.1 * rng.standard_normal((rows, 2)), 0, 1)


def ces_losses(seed: int = 0) -> CES:
    """Return four CES losses of three actions and two outcomes."""
    rng = np.random.default_rng(seed)
    return CES(rng.dirichlet(np.ones(2), (4, 3)), np.array([0.5, 1.0, 0.5, 1.0]))


def draw_one_outcome(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 3) and outcomes (m,) that depend on two of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 3))
    mean = 0.2 + 0.5 * (features[:, 0] > 0.5) + 0.2 * features[:, 1]
    return features, np.clip(mean + 0.1 * rng.standard_normal(rows), 0, 1)


def fit_model(*table: Any, **parameters: Any) -> OfflineOmnipredictor:
    """Fit an estimator, which protects SIDES unless told otherwise."""
    return OfflineOmnipredictor(**{"losses": [SIDES]} | parameters).fit(*table)


def gain_over_constant(
    model: OfflineOmnipredictor, features: Array, outcomes: Array, loss: Any = SIDES
) -> float:
    """Return by how much it loses less than the best constant."""
    table = loss.losses(outcomes[:, None])
    return float(table.mean(0).min() - (model.act_proba(loss, features) * table).sum(1).mean())


def save_and_load(model: OfflineOmnipredictor, folder: Path) -> OfflineOmnipredictor:
    """Save a model, see that nothing else lies in the folder, and load it."""
    pytest.importorskip("skops")
    model.save(folder / "model.skops")
    assert [path.name for path in folder.iterdir()] == ["model.skops"]
    return OfflineOmnipredictor.load(folder / "model.skops")


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    """Return a model with a policy and a held-out part."""
    rules = [Threshold(0, 0.5, 0, 1)]
    return fit_model(*draw_one_outcome(400), policies=rules, trees=30, holdout=0.4)


@pytest.mark.parametrize("name", MEMBERS)
def test_no_row_is_learned_from_its_own_outcome(name: str) -> None:
    """Pure noise: what is expected of a row by cross-fitting has nothing to do with its outcome."""
    features = draw_one_outcome(300)[0]
    noise = np.random.default_rng(2).random((300, 1))
    rng = np.random.default_rng(1)
    weights = 0.5 + rng.random(300)
    points = support_points(noise, weights)
    folds = list(KFold(5, shuffle=True, random_state=0).split(features))
    sample = Sample(features, noise, weights, folds, 7, rng, points, points, noise)
    distribution, expected = MEMBERS[name](sample)
    assert np.corrcoef(expected[:, 0], noise[:, 0])[0, 1] < 0.15
    if name == "extra trees":  # the finished distribution has seen them
        seen = distribution.expected(sample.features, sample.points)
        assert np.corrcoef(seen[:, 0], noise[:, 0])[0, 1] > 0.5


def test_folds_keep_groups_together() -> None:
    groups = np.repeat(np.arange(12), 5)
    (features, outcomes) = draw_one_outcome(60)
    rows = Rows(features, outcomes[:, None], np.ones(60), groups)
    for learned, tested in folds_of(4, rows, 0):
        assert not set(groups[learned]) & set(groups[tested])
        assert len(learned) + len(tested) == 60


def test_it_beats_a_constant_and_serves_later_losses(model: OfflineOmnipredictor) -> None:
    fresh = draw_one_outcome(2000, 9)
    for loss in (SIDES, OTHER):
        assert gain_over_constant(model, *fresh, loss) > 0.03
        ours = loss.losses(fresh[1][:, None]).mean(0).min() - gain_over_constant(
            model, *fresh, loss
        )
        assert model.expected_loss(loss, fresh[0]).mean() == pytest.approx(ours, abs=0.02)
    table = SIDES.losses(fresh[1][:, None])
    score = (model.act_proba(SIDES, fresh[0]) * table).sum(1).mean()
    assert model.score(*fresh) == pytest.approx(-score)


def test_quantiles_cover_what_they_say(model: OfflineOmnipredictor) -> None:
    features, outcomes = draw_one_outcome(3000, 4)
    levels = (0.1, 0.5, 0.9)
    quantiles = model.predict_quantiles(features, levels)
    assert (np.diff(quantiles, axis=2) >= 0).all()
    covered = (outcomes[:, None] <= quantiles[:, 0]).mean(0)
    assert covered == pytest.approx(levels, abs=0.08)


def test_a_row_of_weight_0_might_as_well_not_be_there() -> None:
    """A row of weight 0 might as well not be there."""
    features, outcomes = draw_one_outcome(200)
    half = np.arange(200) < 100
    fresh = draw_one_outcome(500, 3)[0]
    away = np.where(half, outcomes, 1 - outcomes)
    weighted = fit_model(features, away, half.astype(float), base="ridge")
    first_half_only = fit_model(features[:100], outcomes[:100], base="ridge")
    assert (weighted.act(SIDES, fresh) == first_half_only.act(SIDES, fresh)).mean() > 0.9
    assert weighted.certified_on_holdout_ is None


def test_time_splits_learn_from_the_past_alone() -> None:
    split = TimeSeriesSplit(4)
    ordered = fit_model(*draw_one_outcome(1100), trees=5, cv=split)
    assert ordered.held_ is None  # rows in an order are no independent draws
    assert gain_over_constant(ordered, *draw_one_outcome(500, 3)) > 0.03
    with pytest.raises(UserError, match="no certificate holds"):
        fit_model(*draw_one_outcome(60), cv=split, holdout=0.2)


def test_without_features_it_is_the_distribution_of_all_rows() -> None:
    outcomes = draw_one_outcome(200)[1]
    blank = np.empty((1, 0))
    model = fit_model(None, outcomes, losses=[SquaredError(), Pinball(0.8)], theta=0.05)
    assert model.predict_outcome(blank)[0, 0] == pytest.approx(outcomes.mean())
    assert model.act(SquaredError(), blank)[0, 0] == pytest.approx(outcomes.mean(), abs=0.05)
    quantile = model.act(Pinball(0.8), blank)[0, 0]
    assert quantile == pytest.approx(np.quantile(outcomes, 0.8), abs=0.051)


def test_the_distribution_in_use_is_learned_again_from_all_rows(tmp_path: Path) -> None:
    """It is that of ``holdout=0``; the certificate is that of the one that was not refitted."""
    fit_with = partial(fit_model, *draw_one_outcome(300), base="ridge")
    model = fit_with(holdout=0.4)
    certified = fit_with(holdout=0.4, refit=False)
    fitted_on_all = fit_with(holdout=0)
    fresh = draw_one_outcome(50, 6)[0]
    assert model.predict(fresh).tobytes() == fitted_on_all.predict(fresh).tobytes()
    assert model.predict(fresh).tobytes() != certified.predict(fresh).tobytes()
    assert model.certified_on_holdout_ == certified.certified_on_holdout_ == model.bound_
    assert (model.fitted_.rounds, model.certified_fit_.rounds) == (300, 180)
    for fitted in (model, certified):
        again = save_and_load(fitted, tmp_path)
        assert again.certificate(OTHER) == certified.certificate(OTHER)
        assert again.predict(fresh).tobytes() == fitted.predict(fresh).tobytes()


def test_a_certificate_is_the_worst_over_assignments() -> None:
    """The search against all assignments, whose shares, and those of all rates, sum to one."""
    for actions, comparators in ((1, 4), (2, 2), (3, 5)):
        charges = certificate._charges(actions, comparators)
        assert np.exp(-charges).sum(1).prod() == pytest.approx(1)
    assert ((RATES > 0) & (RATES < 1)).all()
    rng = np.random.default_rng(0)
    table = rng.random((60, 2))
    play = np.eye(2)[rng.integers(2, size=60)]
    comparators = np.stack([np.zeros(60), np.ones(60), rng.integers(2, size=60)]).astype(int)
    gains = table[:, :, None] - table[np.arange(60)[:, None], comparators.T][:, None, :]
    charges = certificate._charges(2, 3)
    log_rates_over_kappa = np.log(len(RATES) / 0.05)
    bounds_of_rates = []
    for rate in RATES:
        worst = 0.0
        for chosen in product(range(3), repeat=2):
            gained = sum(play[:, a] * gains[:, a, c] for a, c in enumerate(chosen))
            log_odds = log_rates_over_kappa + sum(charges[a, c] for a, c in enumerate(chosen))
            # the capital of mu is e^log_odds, or more, above this mean
            tried = np.linspace(0, 0.99, 10_001)
            capital = np.log1p(-rate * gained).sum() - 60 * np.log1p(-rate * tried)
            refuted = tried[capital >= log_odds]
            worst = max(worst, refuted.min() if len(refuted) else 1.0)
        bounds_of_rates.append(worst)
    certified = certify(table, play, comparators, measure="decision_swap", kappa=0.05)
    assert certified.total == pytest.approx(min(bounds_of_rates), abs=1e-3)
    assert certified.mean_loss == pytest.approx((play * table).sum(1).mean())


def test_certificates_hold_as_often_as_they_say() -> None:
    """Regret known: an action that loses 0.05 more than the other, in 300 tables."""
    failures = 0
    play = np.tile([1.0, 0.0], (120, 1))
    for seed in range(300):
        table = (np.random.default_rng(seed).random((120, 2)) < [0.55, 0.5]).astype(float)
        constants = np.tile([[0], [1]], 120)
        certified = certify(table, play, constants, measure="decision_swap", kappa=0.2)
        assert certified.measured <= certified.total
        failures += certified.total < 0.05
    assert failures <= 0.2 * 300


def test_certificates_fall_with_the_rows_and_randomised_play_is_covered() -> None:
    rng = np.random.default_rng(0)
    totals = []
    for rows in (100, 400, 1600, 6400):
        table = rng.random((rows, 3))
        play = rng.dirichlet(np.ones(3), rows)
        log = table, play, np.tile(np.arange(3)[:, None], rows)
        certified = certify(*log, measure="decision_swap", kappa=0.01)
        assert certify(*log, measure="omniprediction", kappa=0.01).total <= certified.total
        totals.append(certified.total)
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < 0.06


def test_a_thousand_rows_certify_five_losses_of_four_actions_below_a_tenth() -> None:
    four = [Pinball(float(q)) for q in np.linspace(0.2, 0.8, 5)]
    model = fit_model(*draw_one_outcome(1000), losses=four, theta=0.125, trees=20)
    assert model.held_ is not None
    assert model.certified_on_holdout_ < 0.1
    fresh = draw_one_outcome(4000, 77)
    for loss in four:
        assert model.decision_swap_regret(loss, *fresh) <= model.certified_on_holdout_
    assert model.bound(Pinball(0.65)).total < 0.15


@pytest.fixture(scope="module")
def model_of_growing_fits() -> OfflineOmnipredictor:
    """Return a model that is certified on growing parts of its rows."""
    return fit_model(
        *draw_one_outcome(330), losses=[SIDES, OTHER], base="ridge", holdout="prequential"
    )


def test_growing_fits_are_tested_on_rows_that_they_have_not_seen(
    model_of_growing_fits: OfflineOmnipredictor,
) -> None:
    """Each fit has learned from the first half and all parts before its own."""
    features, outcomes = draw_one_outcome(330)
    fits = model_of_growing_fits.fitted_.fits
    assert [fit.rounds for fit in fits] == [166, 207, 248, 289]
    held_out = model_of_growing_fits.held_
    assert held_out is not None
    assert len(held_out.seen) == 4 * 41
    for fit, part in model_of_growing_fits.fitted_.test_parts(held_out):
        assert len(part.seen) == 41
        if fit is not fits[0]:  # supports hold all values of one outcome that were learned from
            continue
        assert not np.isin(np.round(part.outcomes, 12), fit.points).any()
    assert model_of_growing_fits.certified_fit_ is model_of_growing_fits.fitted_
    rows = np.column_stack([features, outcomes])
    tested = np.column_stack([held_out.seen, held_out.outcomes])
    assert {*map(tuple, tested)} <= {*map(tuple, rows)}


def test_growing_fits_play_the_mean_of_their_strategies(
    model_of_growing_fits: OfflineOmnipredictor,
) -> None:
    fresh = draw_one_outcome(500, 8)[0]
    strategies = [fit.play(OTHER, fresh)[0] for fit in model_of_growing_fits.fitted_.fits]
    np.testing.assert_allclose(
        model_of_growing_fits.act_proba(OTHER, fresh), np.mean(strategies, axis=0)
    )
    is_mixed = (model_of_growing_fits.act_proba(OTHER, fresh).max(1) < 1).mean()
    assert 0 < is_mixed < 0.2
    drawn = np.eye(2)[model_of_growing_fits.act(OTHER, fresh)]
    assert (drawn[model_of_growing_fits.act_proba(OTHER, fresh) == 1] == 1).all()
    levels = model_of_growing_fits.predict_quantiles(fresh[:20])[:, 0]
    assert (np.diff(levels, axis=1) >= 0).all()
    outcomes = [fit.outcomes(fresh) for fit in model_of_growing_fits.fitted_.fits]
    np.testing.assert_allclose(
        model_of_growing_fits.predict_outcome(fresh), np.mean(outcomes, axis=0)
    )


def test_regret_of_growing_fits_is_that_of_one_drawn_among_them(
    model_of_growing_fits: OfflineOmnipredictor,
) -> None:
    fresh = draw_one_outcome(400, 9)
    table = OTHER.losses(fresh[1][:, None])
    regret = model_of_growing_fits.decision_swap_regret(OTHER, *fresh)
    of_constants = decision_swap_regret(
        table, model_of_growing_fits.act_proba(OTHER, fresh[0]), np.tile([[0], [1]], 400)
    )
    assert of_constants <= regret + 1e-12  # members are comparators, too
    assert regret <= model_of_growing_fits.certificate(OTHER).total


def test_growing_fits_certify_more_from_the_same_rows() -> None:
    table = draw_one_outcome(600)
    for measure in MEASURES:
        by_parts = fit_model(*table, base="ridge", holdout="prequential").certificate(
            SIDES, measure
        )
        by_one_part = fit_model(*table, base="ridge", holdout=0.2).certificate(SIDES, measure)
        assert by_parts.total < by_one_part.total
        assert by_parts.rows == 300
        assert by_parts.mean_loss == pytest.approx(by_one_part.mean_loss, abs=0.05)


def test_growing_fits_are_certified_as_often_as_they_say() -> None:
    """Pure chance, where what each fit plays depends on the rows of the parts before."""
    failures = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        outcomes = (rng.random(80) < 0.4).astype(float)
        model = fit_model(None, outcomes, kappa=0.3, holdout="prequential", ends=[[0, 1]])
        plays_high = [fit.play(SIDES, np.empty((1, 0)))[0][0, 1] for fit in model.fitted_.fits]
        true_regret = 0.2 * np.mean(plays_high)  # high loses 0.6, low 0.4
        failures += model.certificate(SIDES).total < true_regret
    assert failures <= 0.3 * 40


def test_growing_fits_are_saved(
    tmp_path: Path, model_of_growing_fits: OfflineOmnipredictor
) -> None:
    again = save_and_load(model_of_growing_fits, tmp_path)
    fresh = draw_one_outcome(50, 8)[0]
    assert np.array_equal(
        again.act_proba(SIDES, fresh), model_of_growing_fits.act_proba(SIDES, fresh)
    )
    assert again.certificate(SIDES) == model_of_growing_fits.certificate(SIDES)


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
    features, outcomes = draw_examples(400)
    best = SIDES.losses(outcomes[:, :1]).argmin(1)
    rule = LogisticRegression().fit(features[:100], best[:100])
    fresh = np.random.default_rng(1).random((500, 2))
    agree = []
    for policies in ([rule], []):
        table = features[100:], outcomes[100:, :1]
        model = fit_model(*table, policies=policies, base="none", rounds_kept=50)
        agree.append((model.act(SIDES, fresh) == rule.predict(fresh)).mean())
    assert agree[0] > 0.8
    assert agree[1] < 0.7


def test_outcomes_in_units_of_their_own() -> None:
    """A table in other units has the same actions, and forecasts in its units."""
    features, outcomes = draw_examples(150)
    outcomes = (outcomes[:, 0] - outcomes[:, 0].min()) / np.ptp(outcomes[:, 0])
    plain, scaled = (fit_model(features, y, trees=5) for y in (outcomes, 40 * outcomes - 8))
    assert scaled.ends_.tolist() == [[-8.0, 32.0]]
    assert plain.ends_.tolist() == [[0.0, 1.0]]
    assert (plain.act(SIDES, features) == scaled.act(SIDES, features)).all()
    score = plain.score(features, outcomes)
    assert score == pytest.approx(scaled.score(features, 40 * outcomes - 8))
    for name in ("predict_outcome", "predict_quantiles"):
        expected = 40 * getattr(plain, name)(features) - 8
        assert getattr(scaled, name)(features) == pytest.approx(expected)


def test_a_frame_goes_in_and_comes_out() -> None:
    features, outcomes = draw_examples(120)
    frame = pd.DataFrame(features, columns=["a", "b"], index=np.arange(120) + 7)
    model = fit_model(frame, outcomes[:, 0], losses=[SIDES, OTHER], trees=5)
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
    fit_with = partial(
        fit_model, *draw_examples(90), losses=[ces_losses()], policies=RULES, base=base
    )
    models = [fit_with(trees=4, rounds_kept=9, random_state=seed) for seed in (4, 4, 5)]
    predictions = [model.predict(draw_examples(20, 3)[0]).tobytes() for model in models]
    assert predictions[0] == predictions[1] != predictions[2]


def tree_policy(features: Array, outcomes: Array) -> Any:
    """Return a small decision tree that chooses the best action of a loss."""
    best = ces_losses()[1].losses(outcomes).argmin(1)
    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(features, best)


OWN: list[Any] = [ces_losses(), Newsvendor([0.2, 0.5, 0.8], 3.0, 1.0, outcomes=2)]
LISTED = {
    "losses": OWN,
    "policies": [RULES[0], tree_policy(*draw_examples(150))],
    "rounds_kept": 20,
}
SAVED: list[dict[str, Any]] = [
    {"losses": [SquaredError(), Pinball(0.8)], "theta": 0.1},
    LISTED | {"base": "auto", "events": "losses", "holdout": 0.3},
    LISTED | {"base": "none", "events": "losses", "holdout": 0.3},
    LISTED | {"base": "none", "events": "coordinates", "holdout": 0.3},
]


@pytest.mark.parametrize("parameters", SAVED)
def test_a_saved_model_is_the_same(tmp_path: Path, parameters: dict[str, Any]) -> None:
    (features, outcomes) = draw_examples(150)
    fresh = draw_examples(40, 9)[0]
    listed = parameters is not SAVED[0]
    table = features, outcomes if listed else outcomes[:, 0]
    first = fit_model(*table, **parameters, random_state=3, trees=2)
    second = save_and_load(first, tmp_path)
    for loss in (OWN[0][1], OWN[1]) if listed else parameters["losses"]:
        assert (first.act(loss, fresh) == second.act(loss, fresh)).all()
        assert first.bound(loss) == second.bound(loss)
        assert first.certificate(loss) == second.certificate(loss)
    assert first.predict(fresh).tobytes() == second.predict(fresh).tobytes()
    assert str(second.get_params()) == str(first.get_params())
    if listed:
        pd.testing.assert_frame_equal(first.predict_frame(fresh), second.predict_frame(fresh))


def test_code_is_neither_saved_nor_run(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    steep = LipschitzLoss(lambda y: np.abs(y - 0.3), np.array(1.0), (1,), 1)
    action_loss = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    line = np.linspace(0, 1, 9)
    for table, keys in (
        ((None, line), {"losses": [steep]}),
        (draw_examples(9), {"losses": [ces_losses()], "policies": [lambda _: 0]}),
        ((None, line), {"losses": [action_loss], "theta": 0.2}),
    ):
        model = fit_model(*table, base="none", rounds_kept=2, **keys)
        with pytest.raises(UserError, match="cannot be saved") as refused:
            model.save(tmp_path / "model.skops")
        assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())
    io.dump({"a": subprocess.run}, tmp_path / "model.skops")
    with pytest.raises(UserError, match=r"names subprocess\.run, which is not read"):
        OfflineOmnipredictor.load(tmp_path / "model.skops")


DAMAGED = {"missing": "does not exist", "other": "holds no OfflineOmnipredictor"}
DAMAGED |= dict.fromkeys(("short", "forged", "forged by one", "bomb", "deep"), "no readable model")


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_model_is_refused(tmp_path: Path, damage: str) -> None:
    """Also one whose trees would lead a walk off their arrays."""
    io = pytest.importorskip("skops.io")
    out = tmp_path / "model.skops"
    rule = tree_policy(*draw_examples(60))
    model = fit_model(*draw_examples(60), losses=[ces_losses()], policies=[rule], base="ridge")
    if damage == "other":
        io.dump(StandardScaler(), out)
    elif damage == "short":
        model.save(out)
        out.write_bytes(out.read_bytes()[:-2000])
    elif damage == "forged":
        rule.tree_.children_left[0] = 10**6
        model.save(out)
    elif damage == "forged by one":
        rule.tree_.children_left[0] = rule.tree_.node_count
        model.save(out)
    elif damage in {"bomb", "deep"}:
        bomb = damage == "bomb"
        with ZipFile(out, "w", ZIP_DEFLATED if bomb else ZIP_STORED) as archive:
            archive.writestr("schema.json", bytes(2**22) if bomb else b"[" * 100_000)
    with pytest.raises(UserError, match=DAMAGED[damage]):
        OfflineOmnipredictor.load(out)


def test_a_missing_extra_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit_model(None, np.linspace(0, 1, 9), base="none", rounds_kept=2)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(UserError, match=r"^.* needs skops; install regretless\[learn\].*$"):
        model.save("unwritten")
    code = "import sys; sys.modules['sklearn'] = None; from regretless import OfflineOmnipredictor"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = done.stderr.splitlines()[-1]
    assert line.startswith("regretless.market.core.errors.UserError: ")
    assert "needs scikit-learn; install regretless[learn]" in line


fit_by_rounds = partial(fit_model, base="none")  # the paper's online-to-batch estimator
X, Y = draw_examples(12)
LARGE = {
    "x": draw_examples(400)[0],
    "y": draw_examples(400)[1],
    "policies": RULES,
    "rounds_kept": 200,
}
MANY = np.ones((3000, 8, 2)) / 2 + 0.1 * np.random.default_rng(0).random((3000, 8, 2))
WRONG = {"base": "all", "delta": 0.0, "events": "all", "holdout": 1.0, "kappa": 0.0}
WRONG |= {"refit": "no", "rounds_kept": 0, "trees": 0}
BAD: list[tuple[dict[str, Any], str]] = [
    *(({name: value}, f"'{name}' parameter .* Got {value!r}") for name, value in WRONG.items()),
    ({"x": np.where(np.eye(12, 2) > 0, np.nan, X)}, "contains NaN"),
    ({"y": np.full((12, 2), np.nan)}, "Input y contains NaN"),
    ({"x": X[:0], "y": Y[:0]}, "minimum of 1 is required"),
    ({"y": Y[:, :1]}, "y has 1 outcomes, a loss has 2"),
    ({"ends": [(0, 1)]}, "a low and a high for each outcome"),
    ({"weights": "flat"}, "weights = 'flat'"),
    ({"losses": []}, "losses is empty"),
    ({"losses": LinearBasis(2)}, "holds a LinearBasis; give"),
    ({"losses": [Linear(np.eye(2) * 9)]}, r"use loss.normalised\(\)"),
    ({"basis": LinearBasis(2)}, "leave basis out"),
    ({"policies": [lambda _: 0.5]}, "suggests 0.5"),
    ({"holdout": "prequential"}, "base = 'none' has a bound of its own; use base='auto'"),
    ({"holdout": "prequential", "base": "ridge"}, "12 rows; give 16 or more"),
    ({"holdout": "prequential", "rows": {"groups": np.arange(12)}}, "rows are not alike"),
    ({"rows": {"groups": np.zeros(12)}}, "all rows .* are in one group"),
    ({"rows": {"sample_weight": np.zeros(12)}}, "weight"),
    ({"rows": {"sample_weight": -np.ones(12)}}, "Negative values in data passed to `sample_w"),
    ({"losses": [CES(MANY, 0.5)], **LARGE}, "use events='losses'"),
    ({"losses": [SquaredError(), Linear(np.eye(1))], "y": Y[:, :1]}, "mix finite and continuous"),
    ({"losses": [SquaredError(2), Pinball(0.5, outcomes=2)]}, "several dimensions"),
    ({"losses": [SquaredError()], "policies": [lambda _: 1.5], "y": Y[:, :1]}, "points of"),
]
LATER: list[tuple[str, tuple[Any, ...], str]] = [
    ("predict_quantiles", (X,), "no distribution of outcomes"),
    ("predict_outcome", (X,), "no distribution of outcomes"),
    ("predict", (X[:, :1],), "expecting 2 features"),
    ("act", (ces_losses(), X), "give one of them"),
    ("act", (SquaredError(), X), "continuous actions"),
    ("sample_size", (0.0,), "give a number between 0 and 1"),
    ("sample_size", (1.0,), "give a number between 0 and 1"),
]


def fit_small(x: Any = X, y: Any = Y, rows: Any = None, **parameters: Any) -> OfflineOmnipredictor:
    """Fit an estimator by few rounds to twelve rows."""
    parameters = {"losses": [ces_losses()], "base": "none", "rounds_kept": 3} | parameters
    return OfflineOmnipredictor(**parameters).fit(x, y, **(rows or {}))


def refused_in_one_line(message: str) -> Any:
    """Expect a refusal of one line that holds the message."""
    return pytest.raises(UserError, match=rf"\A[^\n]*{message}[^\n]*\Z")


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_input_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with refused_in_one_line(message):
        fit_small(**changes)


def test_bad_questions_are_refused_in_one_line() -> None:
    model = fit_small()
    for name, arguments, message in LATER:
        with refused_in_one_line(message):
            getattr(model, name)(*arguments)
    frame = pd.DataFrame(X, columns=["a", "b"])
    with refused_in_one_line("feature names should match"):
        fit_small(frame).predict(frame[["b", "a"]])
    with refused_in_one_line("level = 1"):
        Pinball(1)
    for name, arguments in (("predict", (X,)), ("act", (ces_losses()[0], X))):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(OfflineOmnipredictor([ces_losses()]), name)(*arguments)


@pytest.mark.parametrize("events", ["coordinates", "losses"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_regret_on_fresh_examples_stays_below_the_bound(events: str, seed: int) -> None:
    stack = ces_losses(seed)
    fresh = draw_examples(4000, seed + 100)
    parameters = {"losses": [stack], "policies": RULES, "rounds_kept": 60, "random_state": seed}
    model = fit_by_rounds(*draw_examples(400, seed), **parameters, events=events)
    for loss in stack:
        swap = model.decision_swap_regret(loss, *fresh)
        best = model.omniprediction_regret(loss, *fresh)
        for measure, measured in zip(MEASURES, (swap, best), strict=True):
            bound = model.bound(loss, measure)
            assert bound.total == pytest.approx(sum(vars(bound).values()))
            assert measured <= bound.total
            assert measured <= bound.online + 0.05  # far below: the terms are worst cases
        assert best <= swap + 1e-12
    assert model.bound_ == max(model.bound(loss).total for loss in stack)


def test_sample_size_grows_as_the_theorem_says_and_is_enough() -> None:
    """Sixteen times the rows: a quarter of the regret where there is nothing to learn but noise."""
    model = OfflineOmnipredictor([SIDES], base="none")
    coins = np.random.default_rng(0)
    regrets = []
    sizes = [model.sample_size(regret) for regret in (0.4, 0.2, 0.1)]
    assert all(4 <= more / fewer <= 6 for fewer, more in pairwise(sizes))
    for rows in (50, 800):
        fits = [fit_by_rounds(None, coins.integers(2, size=rows), rounds_kept=9) for _ in range(8)]
        regrets.append(np.mean([fit.bound(SIDES).online for fit in fits]))
        assert rows < model.sample_size(float(regrets[-1]))
    assert 2 < regrets[0] / regrets[1] < 8
    assert model.fit(None, coins.integers(2, size=sizes[0])).bound(SIDES).online < 0.4


def test_online_regret_is_that_of_the_log() -> None:
    """All rounds' predictors on their own rows: the log, replayed from the kept states."""
    stack = ces_losses()
    (features, outcomes) = draw_examples(200)
    model = fit_by_rounds(features, outcomes, losses=[stack], policies=RULES, rounds_kept=200)
    rows = stream(0, "omniprediction").permutation(200)
    suggestions = np.stack([rule.predict(features[rows]) for rule in RULES])
    form = [part[None] for part in model.basis_.coefficients(stack[0])]
    play = np.zeros((200, 3))
    for t, suggested_actions in enumerate(suggestions.T):
        distribution = model.fitted_.in_round(t, tuple(suggested_actions))
        for point, weight in zip(distribution.points, distribution.weights, strict=True):
            play[t, expected_losses(*form, point)[0].argmin()] += weight
    comparators = np.concatenate([np.tile(np.arange(3)[:, None], 200), suggestions])
    log = stack[0].losses(outcomes[rows]), play / play.sum(1, keepdims=True), comparators
    for measure, rule in zip(MEASURES, (decision_swap_regret, omniprediction_regret), strict=True):
        bound = model.bound(stack[0], measure)
        assert bound.kept == 0.0  # all rounds are kept
        assert bound.online == pytest.approx(rule(*log), abs=1e-9)


@given(
    losses=some.integers(1, 50),
    actions=some.integers(1, 9),
    policies=some.integers(0, 9),
    rounds=some.integers(1, 3000),
    share=some.floats(0.001, 1.0),
)
def test_the_online_term_is_the_root_of_assignments_over_rounds(
    rounds: int, share: float, **sizes: int
) -> None:
    arguments = sizes | {"rounds": rounds, "kept": max(1, int(share * rounds))}
    (swap, keeping), (best, _) = (terms(measure, **arguments) for measure in MEASURES)
    assert best <= swap + 1e-12
    assignments = (sizes["actions"] + sizes["policies"]) ** sizes["actions"]
    expected = math.sqrt(2 * math.log(2 * sizes["losses"] * assignments / 0.05) / rounds)
    assert swap == pytest.approx(expected)
    assert (keeping == 0) == (arguments["kept"] == rounds)


def test_kept_term_covers_what_sampling_rounds_does() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(500) < 0.5, -1.0, 1.0)  # the widest spread
    allowed_excess = terms("omniprediction", losses=1, actions=1, policies=0, rounds=500, kept=50)[
        1
    ]
    excess = [rng.choice(values, 50, replace=False).mean() - values.mean() for _ in range(4000)]
    assert np.mean(np.array(excess) > allowed_excess) <= 0.05 / 2
    assert np.max(excess) > 0.5 * allowed_excess  # of the right size


def test_a_prediction_is_the_uniform_mixture_of_the_kept_rounds() -> None:
    model = fit_by_rounds(
        *draw_examples(300), losses=[ces_losses()], policies=RULES, rounds_kept=40
    )
    features = draw_examples(50, 5)[0]
    suggested_actions = np.stack([rule.predict(features) for rule in RULES], axis=1)
    mixture_of_row, distributions = model.fitted_.mixtures(suggested_actions)
    assert len(distributions) == len(np.unique(suggested_actions, axis=0)) == 4
    for row, key in zip(mixture_of_row, suggested_actions, strict=True):
        rounds = [model.fitted_.in_round(i, tuple(key)) for i in range(40)]
        assert (distributions[row].points == np.concatenate([r.points for r in rounds])).all()
        assert distributions[row].mean == pytest.approx(np.mean([r.mean for r in rounds], axis=0))
        assert distributions[row].weights.sum() == pytest.approx(1)
    means = np.array([distributions[i].mean for i in mixture_of_row])
    assert model.predict(features) == pytest.approx(means)
    offset, weights = model.basis_.coefficients(ces_losses()[0])
    best = [d.weights @ (offset + d.points @ weights.T).min(1) for d in distributions]
    assert model.expected_loss(ces_losses()[0], features) == pytest.approx(
        np.take(best, mixture_of_row)
    )


def test_a_loss_that_was_not_listed_acts_and_has_a_bound_only_within_gamma() -> None:
    outcomes = draw_examples(60)[1]
    blank = np.empty((1, 0))
    model = fit_by_rounds(None, outcomes, losses=[ces_losses()[0]], rounds_kept=10)
    with pytest.raises(UserError, match="basis does not serve"):
        model.act(CARA(np.eye(2), 1.0), blank)
    linear = fit_by_rounds(None, outcomes, losses=[Linear(np.eye(2))], gamma=0.1, rounds_kept=10)
    close = Linear(np.eye(2) * 0.95)
    far = Linear(np.eye(2) * 0.5)
    bound = linear.bound(close)
    listed = linear.bound(Linear(np.eye(2)))
    assert bound.basis == pytest.approx(2 * 0.05)
    assert bound.total == pytest.approx(listed.total + 0.1)
    assert linear.bound(far) is None
    assert linear.act_proba(far, blank).shape == (1, 2)


@given(theta=some.floats(0.02, 2.0), dimension=some.integers(1, 2), seed=some.integers(0, 99))
def test_every_point_is_within_theta_of_the_net(theta: float, dimension: int, seed: int) -> None:
    net = theta_net(theta, dimension)
    points = np.random.default_rng(seed).random((200, dimension))
    points[0] = 0.0
    points[1] = 1.0
    distances = np.abs(points[:, None] - net).max(2)
    assert (distances.min(1) <= radius(net) + 1e-12).all()
    assert radius(net) <= theta + 1e-12
    assert len(net) <= max(1, np.ceil(1 / (2 * theta))) ** dimension
    assert distances[np.arange(200), snap(points, net)] == pytest.approx(distances.min(1))


def test_theta_is_the_theorems_and_the_net_keeps_it() -> None:
    assert theorem_theta(size=4, lipschitz=2.0, rounds=16 * 10**5) == pytest.approx(0.1)
    assert theorem_theta(size=9, lipschitz=2.0, rounds=9) == 0.5
    model = fit_by_rounds(*draw_one_outcome(100), losses=[SquaredError()], rounds_kept=5)
    size: Any = {"size": model.basis_.size, "lipschitz": model.basis_.lipschitz}
    assert radius(model.net_) <= theorem_theta(**size, rounds=100)
    for theta in (0.0, -1.0, np.nan, 1e-6):
        with pytest.raises(UserError, match="theta"):
            theta_net(theta)


CONTINUOUS: list[Any] = [SquaredError(), SquaredError(2), Pinball(0.9)]
CONTINUOUS += [Pinball(0.2, coordinate=1, outcomes=2)]
CONTINUOUS += [ActionLoss(lambda a, y: np.abs(a[:, 0] - y) / 2, 0.5, 0.5)]


@pytest.mark.parametrize("loss", CONTINUOUS)
def test_declared_constants_hold_and_smaller_ones_are_refused(loss: Any) -> None:
    loss.check()
    small = copy.copy(loss)
    object.__setattr__(small, "constant", loss.constant * 0.7)
    with pytest.raises(UserError, match=r"constant = .* has slope"):
        small.check()


class Sides:
    """Forecasts 0.27 on the left and 0.73 on the right: no points of the nets below."""

    def predict(self, X: Array) -> Array:  # noqa: N803
        return np.where(X[:, 0] > 0.5, 0.73, 0.27)


@pytest.mark.parametrize("seed", [0, 1])
def test_forecasts_from_the_net_stay_below_the_bound_with_its_error(seed: int) -> None:
    parameters = {"losses": [SquaredError(), Pinball(0.5), Pinball(0.8)], "policies": [Sides()]}
    model = fit_by_rounds(
        *draw_one_outcome(500, seed), **parameters, theta=0.1, rounds_kept=60, random_state=seed
    )
    features, outcomes = draw_one_outcome(3000, seed + 50)
    net = model.net_
    policy = Sides().predict(features)[:, None]
    for loss in parameters["losses"]:
        bound = model.bound(loss)
        table = loss.on(net).losses(outcomes[:, None])
        assert bound.net == pytest.approx(loss.constant * 0.1)
        assert model.decision_swap_regret(loss, features, outcomes) <= bound.total
        # against the policy itself, not rounded to the net
        pairs = zip(policy, outcomes[:, None], strict=True)
        policy_loss = float(np.mean([loss.on(point[None]).losses(y) for point, y in pairs]))
        model_loss = (model.act_proba(loss, features) * table).sum() / len(table)
        assert abs(table[np.arange(3000), snap(policy, net)].mean() - policy_loss) <= bound.net
        assert model_loss - policy_loss <= 0.1


def test_a_loss_of_ones_own_is_known_again() -> None:
    action_loss = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    model = fit_by_rounds(*draw_one_outcome(60), losses=[action_loss], theta=0.2, rounds_kept=9)
    assert model.bound(action_loss).basis == 0.0
    assert action_loss.on(theta_net(0.2)).identity == action_loss.on(theta_net(0.2)).identity
    assert action_loss.on(theta_net(0.2)).identity != action_loss.on(theta_net(0.1)).identity
    steep = ActionLoss(lambda a, y: 2 * np.abs(a[:, 0] - y), 2.0, 2.0)
    with pytest.raises(ValueError, match="range"):
        fit_by_rounds(*draw_one_outcome(20), losses=[steep])
