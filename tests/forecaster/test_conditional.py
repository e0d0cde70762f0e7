"""The conditional distribution learned from a table, and the certificate on rows held out."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from learned import OTHER, SIDES
from sklearn.model_selection import KFold, TimeSeriesSplit

from regretless import OfflineOmnipredictor, UserError
from regretless.forecaster.offline import Pinball, SquaredError, Threshold, certificate
from regretless.forecaster.offline.certificate import RATES, certify
from regretless.forecaster.offline.conditional import MEMBERS, Sample, folds_of, support
from regretless.forecaster.offline.tables import Rows
from regretless.market.core.arrays import Array


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 3) and outcomes (m,) that depend on two of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 3))
    mean = 0.2 + 0.5 * (features[:, 0] > 0.5) + 0.2 * features[:, 1]
    return features, np.clip(mean + 0.1 * rng.standard_normal(rows), 0, 1)


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    rules = [Threshold(0, 0.5, 0, 1)]
    return OfflineOmnipredictor([SIDES], rules, trees=30, holdout=0.4).fit(*examples(400))


@pytest.mark.parametrize("name", MEMBERS)
def test_no_row_is_learned_from_its_own_outcome(name: str) -> None:
    """Pure noise: what is expected of a row by cross-fitting has nothing to do with its outcome."""
    features, noise = examples(300)[0], np.random.default_rng(2).random((300, 1))
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
    groups, (features, outcomes) = np.repeat(np.arange(12), 5), examples(60)
    rows = Rows(features, outcomes[:, None], np.ones(60), groups)
    for learned, tested in folds_of(4, rows, 0):
        assert not set(groups[learned]) & set(groups[tested])
        assert len(learned) + len(tested) == 60


def test_it_beats_a_constant_and_serves_later_losses(model: OfflineOmnipredictor) -> None:
    features, outcomes = examples(2000, 9)
    for loss in (SIDES, OTHER):
        table = loss.losses(outcomes[:, None])
        ours = (model.act_proba(loss, features) * table).sum(1).mean()
        assert ours < table.mean(0).min() - 0.03
        assert model.expected_loss(loss, features).mean() == pytest.approx(ours, abs=0.02)
    assert model.score(features, outcomes) == pytest.approx(
        -(model.act_proba(SIDES, features) * SIDES.losses(outcomes[:, None])).sum(1).mean()
    )


def test_quantiles_cover_what_they_say(model: OfflineOmnipredictor) -> None:
    features, outcomes = examples(3000, 4)
    levels = (0.1, 0.5, 0.9)
    found = model.predict_quantiles(features, levels)
    assert (np.diff(found, axis=2) >= 0).all()
    covered = (outcomes[:, None] <= found[:, 0]).mean(0)
    assert covered == pytest.approx(levels, abs=0.08)


def test_weights_count_rows() -> None:
    """A row of weight 0 might as well not be there."""
    features, outcomes = examples(200)
    kept = np.arange(200) < 100
    away, fresh = np.where(kept, outcomes, 1 - outcomes), examples(500, 3)[0]
    fitted = OfflineOmnipredictor([SIDES], base="ridge").fit(features, away, kept.astype(float))
    alone = OfflineOmnipredictor([SIDES], base="ridge").fit(features[:100], outcomes[:100])
    assert (fitted.act(SIDES, fresh) == alone.act(SIDES, fresh)).mean() > 0.9
    assert fitted.certified_on_holdout_ is None


def test_time_splits_learn_from_the_past_alone() -> None:
    split, fresh = TimeSeriesSplit(4), examples(500, 3)
    fitted = OfflineOmnipredictor([SIDES], trees=5, cv=split).fit(*examples(1100))
    assert fitted.held_ is None  # rows in an order are no independent draws
    table = SIDES.losses(fresh[1][:, None])
    ours = (fitted.act_proba(SIDES, fresh[0]) * table).sum(1).mean()
    assert ours < table.mean(0).min() - 0.03
    with pytest.raises(UserError, match="no certificate holds"):
        OfflineOmnipredictor([SIDES], cv=split, holdout=0.2).fit(*examples(60))


def test_without_features_it_is_the_distribution_of_all_rows() -> None:
    outcomes, blank = examples(200)[1], np.empty((1, 0))
    fitted = OfflineOmnipredictor([SquaredError(), Pinball(0.8)], theta=0.05).fit(None, outcomes)
    assert fitted.predict_outcome(blank)[0, 0] == pytest.approx(outcomes.mean())
    assert fitted.act(SquaredError(), blank)[0, 0] == pytest.approx(outcomes.mean(), abs=0.05)
    quantile = fitted.act(Pinball(0.8), blank)[0, 0]
    assert quantile == pytest.approx(np.quantile(outcomes, 0.8), abs=0.051)


def test_the_distribution_in_use_is_learned_again_from_all_rows(tmp_path: Path) -> None:
    """It is that of ``holdout=0``; the certificate is that of the one that was not refitted."""

    def fitted(**more: Any) -> OfflineOmnipredictor:
        given: dict[str, Any] = {"base": "ridge", "holdout": 0.4} | more
        return OfflineOmnipredictor([SIDES], **given).fit(*examples(300))

    model, certified, whole = fitted(), fitted(refit=False), fitted(holdout=0)
    fresh = examples(50, 6)[0]
    assert model.predict(fresh).tobytes() == whole.predict(fresh).tobytes()
    assert model.predict(fresh).tobytes() != certified.predict(fresh).tobytes()
    assert model.certified_on_holdout_ == certified.certified_on_holdout_ == model.bound_
    assert (model.fitted_.rounds, model.certified_fit_.rounds) == (300, 180)
    pytest.importorskip("skops")
    for own in (model, certified):
        own.save(tmp_path / "m.skops")
        again = OfflineOmnipredictor.load(tmp_path / "m.skops")
        assert again.certificate(OTHER) == certified.certificate(OTHER)
        assert again.predict(fresh).tobytes() == own.predict(fresh).tobytes()


def test_charges_leave_no_more_than_kappa() -> None:
    """The shares of all assignments, and of all rates, sum to one."""
    for actions, comparators in ((1, 4), (2, 2), (3, 5)):
        charges = certificate._charges(actions, comparators)
        assert np.exp(-charges).sum(1).prod() == pytest.approx(1)
    assert ((RATES > 0) & (RATES < 1)).all()


def test_a_certificate_is_the_worst_over_assignments() -> None:
    """The action-by-action search against all assignments, one by one."""
    rng = np.random.default_rng(0)
    table, play = rng.random((60, 2)), np.eye(2)[rng.integers(2, size=60)]
    comparators = np.stack([np.zeros(60), np.ones(60), rng.integers(2, size=60)]).astype(int)
    gains = table[:, :, None] - table[np.arange(60)[:, None], comparators.T][:, None, :]
    charges, wanted, rate = certificate._charges(2, 3), 4.0, 0.4
    bound = certificate._bound(gains, play, charges, rate=rate, wanted=wanted)
    worst = 0.0
    for chosen in itertools.product(range(3), repeat=2):
        gained = sum(play[:, a] * gains[:, a, c] for a, c in enumerate(chosen))
        need = wanted + sum(charges[a, c] for a, c in enumerate(chosen))
        tried = np.linspace(0, 1, 2001)
        refuted = tried[np.log1p(rate * (tried[:, None] - gained)).sum(1) >= need]
        worst = max(worst, refuted.min() if len(refuted) else 1.0)
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


@pytest.mark.slow
def test_a_thousand_rows_certify_five_losses_of_four_actions_below_a_tenth() -> None:
    four = [Pinball(float(q)) for q in np.linspace(0.2, 0.8, 5)]
    fitted = OfflineOmnipredictor(four, theta=0.125, trees=20).fit(*examples(1000))
    assert fitted.held_ is not None
    assert fitted.certified_on_holdout_ < 0.1
    features, outcomes = examples(4000, 77)
    for loss in four:
        measured = fitted.decision_swap_regret(loss, features, outcomes)
        assert measured <= fitted.certified_on_holdout_
    later = fitted.bound(Pinball(0.65))
    assert later.total < 0.15
