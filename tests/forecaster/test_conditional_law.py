"""The offline omnipredictor's conditional law, and the certificate on rows held out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.interpolate import interpn

from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.omniprediction import Pinball, SquaredError, Threshold
from regretless.forecaster.omniprediction.certificates import RATES, certify
from regretless.forecaster.omniprediction.conditional import Conditional
from regretless.forecaster.omniprediction.laws.learning import (
    DEPTH_3,
    DEPTH_6,
    Candidate,
    Sample,
    boosted,
    candidates,
    folds_of,
    leaves,
    ridge,
    shares,
)
from regretless.forecaster.omniprediction.laws.members import (
    MANY,
    Lattice,
    Marginal,
    Neighbours,
    Residuals,
)
from regretless.forecaster.omniprediction.laws.members import (
    Linear as LinearForecast,
)
from regretless.forecaster.omniprediction.laws.trees import Trees
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear

Array = NDArray[np.float64]

SIDES = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))  # y for low, 1 - y for high
OTHER = Linear(np.array([[0.0], [-1.0]]), np.array([0.3, 1.0]))


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 3) and outcomes (m,) that depend on two of them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 3))
    mean = 0.2 + 0.5 * (features[:, 0] > 0.5) + 0.2 * features[:, 1]
    return features, np.clip(mean + 0.1 * rng.standard_normal(rows), 0, 1)


def sample(rows: int = 80, trees: int = 7) -> Sample:
    features, outcomes = examples(rows)
    rng = np.random.default_rng(1)
    folds = list(folds_of(5, features, outcomes, None, rng))
    return Sample(features, outcomes[:, None], 0.5 + rng.random(rows), folds, trees, rng)


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    pytest.importorskip("sklearn")
    rules = [Threshold(0, 0.5, 0, 1)]
    return OfflineOmnipredictor([SIDES], rules, trees=10, holdout=0.4).fit(*examples(400))


def law_of(model: OfflineOmnipredictor) -> Any:
    assert isinstance(model.fitted_, Conditional)
    return model.fitted_.law


# The law.


@pytest.mark.parametrize("functions", [2, MANY])
def test_leaves_weigh_rows_as_the_definition_says(functions: int) -> None:
    """Of each tree, the weighted mean over the rows in the leaf; then the mean over trees."""
    pytest.importorskip("sklearn")
    own = sample()
    law = leaves(own, own.all[:60], "forest")
    fresh, table = examples(5, 3)[0], np.random.default_rng(0).random((80, functions))
    asked, wanted = law.trees.leaves(fresh), np.zeros((5, functions))
    for i, tree in itertools.product(range(5), range(7)):
        inside = (law.leaves[:, tree] == asked[i, tree]) & (np.arange(80) < 60)
        wanted[i] += np.average(table[inside], 0, own.weights[inside]) / 7
    assert law.expected(fresh, table) == pytest.approx(wanted)


def test_copied_trees_are_those_of_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    features, outcomes = examples(200)
    forest = ensemble.RandomForestRegressor(9, random_state=0).fit(features, outcomes)
    fresh = examples(300, 2)[0]
    copied = Trees.of(forest.estimators_, rate=1 / 9)
    assert copied.sums(fresh) == pytest.approx(forest.predict(fresh))


@pytest.mark.parametrize("forged", ["left", "right", "roots", "feature", "threshold"])
def test_forged_trees_are_refused(forged: str) -> None:
    """Nobody walks off the arrays, or in a circle."""
    good: dict[str, Any] = {
        "feature": np.array([0, 0, 0]),
        "threshold": np.zeros(3),
        "value": np.zeros(3),
        "left": np.array([1, 1, 2]),
        "right": np.array([2, 1, 2]),
        "roots": np.array([0]),
    }
    assert Trees(**good).leaves(np.array([[-1.0], [1.0]])).ravel().tolist() == [1, 2]
    bad = {"left": [1, 0, 2], "right": [9, 1, 2], "roots": [3], "feature": [-1, 0, 0]}
    wrong = np.array(bad.get(forged, [0.0]))
    with pytest.raises(ValueError, match="no trees"):
        Trees(**(good | {forged: wrong}))


def test_ridge_without_noise_is_the_line() -> None:
    own = sample()
    line = Sample(own.features, own.features @ np.ones((3, 1)), own.weights, own.folds, 1, own.rng)
    fresh = np.random.default_rng(5).random((4, 3))
    assert ridge(line, own.all).forecast(fresh) == pytest.approx(fresh @ np.ones((3, 1)), abs=0.01)


def test_deep_trees_see_features_that_act_together() -> None:
    """The sign of a product of four: no tree of three questions knows anything of it."""
    pytest.importorskip("sklearn")
    own, rng = sample(1000, 40), np.random.default_rng(4)
    features = rng.choice([-1.0, 1.0], (1000, 4))
    own = replace(own, features=features, outcomes=(features.prod(1)[:, None] > 0) * 1.0)
    shallow, deep = (
        boosted(own, own.all[:800], shape=shape).forecast(features[800:])
        for shape in (DEPTH_3, DEPTH_6)
    )
    errors = [np.abs(f - own.outcomes[800:]).mean() for f in (shallow, deep)]
    assert errors[0] > 0.4
    assert errors[1] < 0.2


@pytest.mark.parametrize("distinct", [40, 3, 1])
@pytest.mark.parametrize("outcomes", [1, 2, 3])
def test_residuals_are_shared_out_as_the_definition_says(outcomes: int, distinct: int) -> None:
    """Each point m(x) + y - m lies between nodes, among which functions are linear by axis."""
    rng = np.random.default_rng(0)
    known = rng.choice(rng.random((distinct, outcomes)), 40)
    model = LinearForecast(rng.random((2, outcomes)))
    forecasts, weights, width = (
        rng.random((30, outcomes)),
        rng.random(30),
        0.2 + rng.random(outcomes),
    )
    lattice = Lattice.of(known)
    law = Residuals.of(
        Neighbours(model, np.arange(30) + 5, forecasts, weights, width), known, lattice
    )
    fresh, function = rng.random((6, 1)), rng.random(lattice.nodes.shape[0])
    table = np.concatenate([np.zeros(40), function])[:, None]
    axes = np.split(lattice.knots, lattice.ends[1:-1])
    kept = [i for i, axis in enumerate(axes) if len(axis) > 1]  # what scipy can interpolate in
    shape = [len(axes[i]) for i in kept]
    for here, found in zip(model.forecast(fresh), law.expected(fresh, table)[:, 0], strict=True):
        apart = (((here - forecasts) / width) ** 2).sum(1)
        points = np.clip(here + known[5:35] - forecasts, known.min(0), known.max(0))[:, kept]
        mass = weights * (np.exp(-0.5 * apart) + 1e-12)
        values = (
            interpn([axes[i] for i in kept], function.reshape(shape), points)
            if kept
            else np.full(30, function[0])
        )
        assert found == pytest.approx(np.average(values, weights=mass))


def test_residuals_keep_a_slope_where_a_kernel_is_wide() -> None:
    """Neighbours within so wide a kernel are everybody, and all would have one mean."""
    rng = np.random.default_rng(1)
    features = rng.random((500, 2))
    outcomes = features + 0.01 * rng.standard_normal((500, 2))
    model = LinearForecast(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    near = Neighbours(model, np.arange(500), features, np.ones(500), np.array([9.0, 9.0]))
    asked, lattice = np.array([[0.2, 0.6], [0.7, 0.3]]), Lattice.of(outcomes)
    support = np.concatenate([outcomes, lattice.nodes])
    assert np.ptp(near.expected(asked, support), axis=0).max() < 0.01
    found = Residuals.of(near, outcomes, lattice).expected(asked, support)
    assert found == pytest.approx(asked, abs=0.01)


def test_a_lattice_takes_outcomes_that_came() -> None:
    rng = np.random.default_rng(0)
    outcomes = np.stack([rng.integers(2, size=3000), rng.random(3000) ** 3], axis=1)
    lattice = Lattice.of(outcomes)
    assert lattice.ends.tolist() == [0, 2, 26]
    assert set(lattice.knots) <= set(outcomes.ravel())
    assert lattice.nodes.min(0).tolist() == outcomes.min(0).tolist()
    assert lattice.nodes.max(0).tolist() == outcomes.max(0).tolist()
    assert len(lattice.nodes) == 48
    assert Lattice.of(rng.random((50, 4))).nodes.shape == (0, 4)


def test_a_forged_lattice_is_refused() -> None:
    """Nobody writes beside the arrays."""
    axes = Lattice(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 2, 4]))
    rows = np.zeros((5, 2))
    good: dict[str, Any] = {
        "model": LinearForecast(np.zeros((2, 2))),
        "forecasts": rows,
        "missed": rows,
        "weights": np.ones(5),
        "width": np.ones(2),
        "lattice": axes,
    }
    assert Residuals(**good).expected(np.ones((3, 1)), np.ones((4, 1))).shape == (3, 1)
    for ends in ([0, 2, 9], [1, 2, 4], [0, 3, 2, 4]):
        with pytest.raises(ValueError, match="no lattice"):
            Lattice(axes.knots, np.array(ends))
    empty = Lattice(axes.knots, np.array([0, 0, 4]))
    for bad in ({"missed": rows[:, :1]}, {"width": np.ones(3)}, {"lattice": empty}):
        with pytest.raises(ValueError, match="no place on the lattice"):
            Residuals(**(good | bad))
    other = Residuals(**(good | {"model": LinearForecast(np.zeros((2, 1)))}))
    with pytest.raises(ValueError, match="another number of outcomes"):
        other.expected(np.ones((3, 1)), np.ones((4, 1)))


@pytest.mark.parametrize(
    ("outcomes", "named"),
    [(1, ["near", "far"]), (2, ["near", "far"]), (3, ["near", "far"]), (4, ["near"])],
)
def test_a_forecast_has_two_laws_of_up_to_three_outcomes(outcomes: int, named: list[str]) -> None:
    own = sample()
    own = replace(own, outcomes=np.random.default_rng(0).random((80, outcomes)))
    found = candidates(own, own.support[:, :1], "ridge")
    assert [own.name for own in found] == [*(f"ridge {word}" for word in named), "marginal"]
    kinds = [type(own.member) for own in found]
    assert kinds[0] is (Residuals if outcomes == 1 else Neighbours)
    assert all(kind is Residuals for kind in kinds[1:-1])


def test_shares_are_least_squares_on_the_simplex() -> None:
    rng = np.random.default_rng(0)
    table, weights = rng.standard_normal((50, 3)), 0.5 + rng.random(50)
    noisy = [table + s * rng.standard_normal((50, 3)) for s in (0.5, 0.8, 3.0)]
    found = shares([Candidate("", Marginal(weights), e) for e in noisy], table, weights)

    def error(v: Any) -> float:
        mixed = sum(a * e for a, e in zip(v, noisy, strict=True))
        return float((weights[:, None] * (mixed - table) ** 2).sum())

    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    grid = np.arange(0, 1.001, 0.02)
    best = min(error((a, b, 1 - a - b)) for a in grid for b in grid if a + b <= 1)
    assert error(found) <= best + 1e-9


def test_no_row_is_learned_from_its_own_outcome() -> None:
    """Pure noise: what is expected of a row by cross-fitting has nothing to do with its outcome."""
    pytest.importorskip("sklearn")
    own = sample(300)
    noise = np.random.default_rng(2).random((300, 1))
    own = replace(own, outcomes=noise)
    for found in candidates(own, own.support, "auto"):
        assert np.corrcoef(found.expected[:, 0], noise[:, 0])[0, 1] < 0.15, found.name
        if found.name in {"forest", "extra trees"}:  # the finished law has seen them
            seen = found.member.expected(own.features, own.support)
            assert np.corrcoef(seen[:, 0], noise[:, 0])[0, 1] > 0.5


def test_folds_keep_groups_together() -> None:
    groups = np.repeat(np.arange(12), 5)
    for learned, tested in folds_of(4, *examples(60), groups, np.random.default_rng(0)):
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
    found = model.predict_quantiles(features, (0.1, 0.5, 0.9))
    assert (np.diff(found, axis=2) >= 0).all()
    for k, level in enumerate((0.1, 0.5, 0.9)):
        assert (outcomes <= found[:, 0, k]).mean() == pytest.approx(level, abs=0.06)


def test_outcomes_in_units_of_their_own() -> None:
    """A table in other units has the same actions, and forecasts in its units."""
    pytest.importorskip("sklearn")
    features, outcomes = examples(150)
    outcomes = (outcomes - outcomes.min()) / np.ptp(outcomes)
    plain = OfflineOmnipredictor([SIDES], trees=5).fit(features, outcomes)
    scaled = OfflineOmnipredictor([SIDES], trees=5).fit(features, 40 * outcomes - 8)
    assert scaled.ends_.tolist() == [[-8.0, 32.0]]
    assert plain.ends_.tolist() == [[0.0, 1.0]]
    assert (plain.act(SIDES, features) == scaled.act(SIDES, features)).all()
    expected = 40 * plain.predict_outcome(features) - 8
    assert scaled.predict_outcome(features) == pytest.approx(expected)
    quantiles = 40 * plain.predict_quantiles(features) - 8
    assert scaled.predict_quantiles(features) == pytest.approx(quantiles)


def test_a_frame_goes_in_and_comes_out() -> None:
    pytest.importorskip("sklearn")
    features, outcomes = examples(120)
    frame = pd.DataFrame(features, columns=["a", "b", "c"], index=np.arange(120) + 7)
    fitted = OfflineOmnipredictor([SIDES, OTHER], trees=5).fit(frame, outcomes)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    table = fitted.predict_frame(frame[:6], laws=True, levels=[0.25])
    assert list(table.index) == list(range(7, 13))
    assert list(table) == ["y_0", "y_0_q25"] + [
        f"loss{s}_{what}" for s in (0, 1) for what in ("action", "expected_loss", "p0", "p1")
    ]
    assert (table["loss1_action"] == fitted.act(OTHER, frame[:6])).all()
    assert (table["loss0_p0"] + table["loss0_p1"] == 1).all()
    assert table["y_0"].to_numpy() == pytest.approx(fitted.predict_outcome(frame[:6])[:, 0])


def test_weights_count_rows() -> None:
    """A row of weight 0 might as well not be there."""
    features, outcomes = examples(200)
    away = np.where(np.arange(200) < 100, outcomes, 1 - outcomes)
    kept = (np.arange(200) < 100).astype(float)
    fitted = OfflineOmnipredictor([SIDES], base="ridge").fit(features, away, kept)
    alone = OfflineOmnipredictor([SIDES], base="ridge").fit(features[:100], outcomes[:100])
    fresh = examples(500, 3)[0]
    assert (fitted.act(SIDES, fresh) == alone.act(SIDES, fresh)).mean() > 0.9
    assert fitted.certified_on_holdout_ is None


def test_time_splits_learn_from_the_past_alone() -> None:
    split = pytest.importorskip("sklearn.model_selection").TimeSeriesSplit(4)
    fitted = OfflineOmnipredictor([SIDES], trees=5, cv=split).fit(*examples(1100))
    assert fitted.held_ is None  # rows in an order are no independent draws
    table = SIDES.losses(examples(500, 3)[1][:, None])
    ours = (fitted.act_proba(SIDES, examples(500, 3)[0]) * table).sum(1).mean()
    assert ours < table.mean(0).min() - 0.03
    with pytest.raises(UserError, match="no certificate holds"):
        OfflineOmnipredictor([SIDES], cv=split, holdout=0.2).fit(*examples(60))


def test_without_features_it_is_the_marginal_law() -> None:
    outcomes = examples(200)[1]
    fitted = OfflineOmnipredictor([SquaredError(), Pinball(0.8)], theta=0.05).fit(None, outcomes)
    blank = np.empty((1, 0))
    assert fitted.predict_outcome(blank)[0, 0] == pytest.approx(outcomes.mean())
    assert fitted.act(SquaredError(), blank)[0, 0] == pytest.approx(outcomes.mean(), abs=0.05)
    assert fitted.act(Pinball(0.8), blank)[0, 0] == pytest.approx(
        np.quantile(outcomes, 0.8), abs=0.051
    )


def test_a_saved_law_predicts_the_same(tmp_path: Path, model: OfflineOmnipredictor) -> None:
    model.save(tmp_path / "m.npz")
    again, fresh = OfflineOmnipredictor.load(tmp_path / "m.npz"), examples(50, 6)[0]
    pd.testing.assert_frame_equal(again.predict_frame(fresh), model.predict_frame(fresh))
    assert again.bound(SIDES) == model.bound(SIDES)
    assert again.certificate(OTHER) == model.certificate(OTHER)
    assert again.certified_on_holdout_ == model.certified_on_holdout_


def test_the_law_in_use_is_learned_again_from_all_rows(tmp_path: Path) -> None:
    """It is the law of ``holdout=0``; the certificate is that of the law that was not refitted."""

    def fitted(**more: Any) -> OfflineOmnipredictor:
        given: dict[str, Any] = {"base": "ridge", "holdout": 0.4} | more
        return OfflineOmnipredictor([SIDES], **given).fit(*examples(300))

    model, certified, whole = fitted(), fitted(refit=False), fitted(holdout=0)
    fresh = examples(50, 6)[0]
    assert model.predict(fresh).tobytes() == whole.predict(fresh).tobytes()
    assert model.predict(fresh).tobytes() != certified.predict(fresh).tobytes()
    assert model.certified_on_holdout_ == certified.certified_on_holdout_
    assert (model.fitted_.rounds, model.certified_fit_.rounds) == (300, 180)
    assert certified.certified_fit_ is certified.fitted_
    for own in (model, certified):
        own.save(tmp_path / "m.npz")
        again = OfflineOmnipredictor.load(tmp_path / "m.npz")
        assert again.certificate(OTHER) == certified.certificate(OTHER)
        assert again.predict(fresh).tobytes() == own.predict(fresh).tobytes()


def test_the_same_seed_gives_the_same_law() -> None:
    pytest.importorskip("sklearn")
    fresh = examples(30, 3)[0]
    made = [
        OfflineOmnipredictor([SIDES], trees=4, random_state=seed).fit(*examples(90)).predict(fresh)
        for seed in (4, 4, 5)
    ]
    assert made[0].tobytes() == made[1].tobytes() != made[2].tobytes()


# The certificate.


def test_charges_leave_no_more_than_kappa() -> None:
    """The shares of all assignments, and of all rates, sum to one."""
    from regretless.forecaster.omniprediction.certificates import _charges  # noqa: PLC0415

    for actions, comparators in ((1, 4), (2, 2), (3, 5)):
        charges = _charges(actions, comparators)
        assert np.exp(-charges).sum(1).prod() == pytest.approx(1)
    assert ((RATES > 0) & (RATES < 1)).all()


def test_a_certificate_is_the_worst_over_assignments() -> None:
    """The action-by-action search against all assignments, one by one."""
    from regretless.forecaster.omniprediction.certificates import _bound, _charges  # noqa: PLC0415

    rng = np.random.default_rng(0)
    table, play = rng.random((60, 2)), np.eye(2)[rng.integers(2, size=60)]
    comparators = np.stack([np.zeros(60), np.ones(60), rng.integers(2, size=60)]).astype(int)
    gains = table[:, :, None] - table[np.arange(60)[:, None], comparators.T][:, None, :]
    charges, wanted, rate = _charges(2, 3), 4.0, 0.4
    bound = _bound(gains, play, charges, rate=rate, wanted=wanted)
    worst = 0.0
    for chosen in itertools.product(range(3), repeat=2):
        gained = sum(play[:, a] * gains[:, a, c] for a, c in enumerate(chosen))
        need = wanted + sum(charges[a, c] for a, c in enumerate(chosen))
        tried = np.linspace(0, 1, 2001)
        capital = np.log1p(rate * (tried[:, None] - gained)).sum(1)
        refuted = tried[capital >= need]
        worst = max(worst, refuted.min() if len(refuted) else 1.0)
    assert bound == pytest.approx(worst, abs=1e-3)


def test_certificates_hold_as_often_as_they_say() -> None:
    """Regret known: an action that loses 0.05 more than the other, in 300 tables."""
    failures = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        table = (rng.random((120, 2)) < [0.55, 0.5]).astype(float)
        found = certify(
            table,
            np.tile([1.0, 0.0], (120, 1)),
            np.tile([[0], [1]], 120),
            measure="decision_swap",
            kappa=0.2,
        )
        assert found.measured <= found.total
        failures += found.total < 0.05
    assert failures <= 0.2 * 300


def test_certificates_fall_with_the_rows_and_randomised_play_is_covered() -> None:
    rng = np.random.default_rng(0)
    totals = []
    for rows in (100, 400, 1600, 6400):
        table, play = rng.random((rows, 3)), rng.dirichlet(np.ones(3), rows)
        constants = np.tile(np.arange(3)[:, None], rows)
        own = certify(table, play, constants, measure="decision_swap", kappa=0.01)
        best = certify(table, play, constants, measure="omniprediction", kappa=0.01)
        assert best.total <= own.total
        totals.append(own.total)
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < 0.06


def test_a_thousand_rows_certify_five_losses_of_four_actions_below_a_tenth() -> None:
    pytest.importorskip("sklearn")
    levels = np.linspace(0.2, 0.8, 5)
    four = [Pinball(float(q)) for q in levels]
    fitted = OfflineOmnipredictor(four, theta=0.125, trees=20).fit(*examples(1000))
    assert fitted.held_ is not None
    assert fitted.net_ is not None
    assert len(fitted.net_) == 4
    assert fitted.certified_on_holdout_ is not None
    assert fitted.certified_on_holdout_ < 0.1
    features, outcomes = examples(4000, 77)
    for loss in four:
        measured = fitted.decision_swap_regret(loss, None, features, outcomes)
        assert measured <= fitted.certified_on_holdout_
    later = fitted.bound(Pinball(0.65))
    assert later is not None
    assert later.total < 0.15
