"""The offline omnipredictor: its bound on fresh examples, its cache, its files, its refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy.typing import NDArray

from regretless.agents.utilities.forms import CARA, CES, CobbDouglas, Newsvendor
from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.events.bounds import spread
from regretless.forecaster.omniprediction import LinearScore, Threshold, Tree, best_tree
from regretless.forecaster.omniprediction.batch_bounds import OnlineRegret, Trial
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear, LipschitzLoss
from regretless.market.regret import definitions
from regretless.market.response import expected_losses

Array = NDArray[np.float64]
online = partial(OfflineOmnipredictor, base="none")  # the paper's, without a law

RULES = (Threshold(0, 0.5, 0, 1), Threshold(1, 0.5, 2, 0))


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 2) and outcomes (m, 2) that depend on them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 2))
    means = np.stack([0.2 + 0.6 * (features[:, 0] > 0.5), 0.3 + 0.4 * features[:, 1]], axis=1)
    return features, np.clip(means + 0.15 * rng.standard_normal((rows, 2)), 0, 1)


def losses(seed: int = 0) -> Any:
    """Draw four CES losses with three actions."""
    rng = np.random.default_rng(seed)
    return CES(rng.dirichlet(np.ones(2), (4, 3)), np.array([0.5, 1.0, 0.5, 1.0]))


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    return online([losses()], RULES, rounds_kept=40).fit(*examples(300))


@pytest.mark.parametrize("events", ["coordinates", "losses"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_regret_on_fresh_examples_stays_below_the_bound(events: Any, seed: int) -> None:
    own, fresh = losses(seed), examples(4000, seed + 100)
    fitted = online([own], RULES, events=events, rounds_kept=60, random_state=seed).fit(
        *examples(400, seed)
    )
    for k in range(len(own)):
        swap = fitted.decision_swap_regret(own[k], None, *fresh)
        best = fitted.omniprediction_regret(own[k], None, *fresh)
        for measure, measured in (("decision_swap", swap), ("omniprediction", best)):
            bound = fitted.bound(own[k], measure)  # type: ignore[arg-type]
            assert bound is not None
            assert measured <= bound.total
            assert bound.basis == bound.net == 0.0
            assert measured <= bound.online + 0.05  # far below: the terms are worst cases
        assert best <= swap + 1e-12


def test_it_learns_what_the_policies_tell_apart() -> None:
    features, outcomes = examples(2000)
    fitted = online([losses()], RULES[:1], rounds_kept=100).fit(features, outcomes)
    for side, least, most in ((0.2, 0.15, 0.3), (0.8, 0.7, 0.85)):
        forecast = fitted.predict_outcome(np.array([[side, 0.5]]))[0, 0]
        assert least < forecast < most


def test_a_forecast_of_the_outcome_is_the_mean_of_what_came() -> None:
    """Also where no function of the basis is the outcome itself, and the outcomes are lopsided."""
    rng = np.random.default_rng(3)
    outcomes = rng.beta(0.3, 6.0, (400, 2))
    losses = [
        CES(rng.dirichlet(np.ones(2), (3, 3)), 0.5),
        CobbDouglas(rng.dirichlet(np.ones(2), (3, 3))),
    ]
    model = online(losses, rounds_kept=50).fit(None, outcomes)
    forecast = model.predict_outcome(np.empty((1, 0)))[0]
    assert np.abs(forecast - outcomes.mean(0)).max() < 0.03


def test_online_regret_is_that_of_the_log_and_below_its_own_bound() -> None:
    own, (features, outcomes) = losses(), examples(200)
    fitted = online([own], RULES, rounds_kept=200).fit(features, outcomes)
    trial = fitted.bound(own[0])
    assert trial is not None
    assert trial.kept == 0.0  # all rounds are kept
    promised = fitted.online_bound(own[0])
    assert promised is not None
    assert trial.online <= promised
    # all rounds' predictors on their own rows: the log, replayed from the kept memories
    rows = stream(0, "omniprediction").permutation(200)
    play = np.empty((200, 3))
    offset, weights = fitted.basis_.coefficients(own[0])
    for t, row in enumerate(rows):
        key = tuple(int(rule.predict(features[[row]])[0]) for rule in RULES)
        law = fitted.fitted_.predictors.snapshots.mixture(t, key)
        chosen = [
            int(expected_losses(offset[None], weights[None], p)[0].argmin()) for p in law.points
        ]
        play[t] = np.bincount(chosen, law.weights, minlength=3)
    suggestions = np.stack([rule.predict(features[rows]) for rule in RULES])
    constants = np.tile(np.arange(3)[:, None], 200)
    comparators = np.concatenate([constants, suggestions])
    table = own[0].losses(outcomes[rows])
    play /= play.sum(1, keepdims=True)
    assert trial.online == pytest.approx(
        definitions.decision_swap_regret(table, play, comparators), abs=1e-9
    )
    best = fitted.bound(own[0], "omniprediction")
    assert best is not None
    assert best.online == pytest.approx(
        definitions.omniprediction_regret(table, play, comparators), abs=1e-9
    )


@given(
    losses=some.integers(1, 50),
    actions=some.integers(1, 9),
    policies=some.integers(0, 9),
    rounds=some.integers(1, 3000),
    share=some.floats(0.001, 1.0),
)
def test_terms_of_the_bound(
    losses: int, actions: int, policies: int, rounds: int, share: float
) -> None:
    kept = max(1, int(share * rounds))
    trial = Trial(rounds, kept, losses, actions, actions + policies, 0.05)
    swap, best = trial.sampling("decision_swap"), trial.sampling("omniprediction")
    assert best <= swap + 1e-12
    assignments = (actions + policies) ** actions
    wanted = math.sqrt(2 * math.log(2 * losses * assignments / 0.05) / rounds)
    assert swap == pytest.approx(wanted)
    assert (trial.keeping("decision_swap") == 0) == (kept == rounds)


@pytest.mark.parametrize("events", ["coordinates", "losses"])
def test_a_burn_in_leaves_the_first_rounds_out(tmp_path: Path, events: Any) -> None:
    own, (features, outcomes) = losses(), examples(200)
    fitted = online([own], RULES, burn_in=0.6, events=events, rounds_kept=500)
    fitted.fit(features, outcomes).save(tmp_path / "m.npz")
    assert fitted.fitted_.rounds == fitted.fitted_.online[0].rounds == 80
    assert fitted.fitted_.predictors.snapshots.times.tolist() == list(range(120, 200))
    bound, a_priori = fitted.bound(own[0]), fitted.online_bound(own[0])
    assert bound is not None
    assert bound.kept == 0.0
    assert bound.sampling == pytest.approx(fitted.fitted_.trial(3, 0.01).sampling("decision_swap"))
    assert (a_priori is None) == (events == "losses")
    assert a_priori is None or bound.online <= a_priori
    again = OfflineOmnipredictor.load(tmp_path / "m.npz")
    assert again.bound(own[0]) == bound
    assert again.online_bound(own[0]) == a_priori
    assert fitted.decision_swap_regret(own[0], None, *examples(2000, 7)) <= bound.total


def test_kept_term_covers_what_sampling_rounds_does() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(500) < 0.5, -1.0, 1.0)  # the widest spread
    trial = Trial(500, 50, 1, 1, 1, 0.05)
    excess = [rng.choice(values, 50, replace=False).mean() - values.mean() for _ in range(4000)]
    assert np.mean(np.array(excess) > trial.keeping("omniprediction")) <= 0.05 / 2
    assert np.max(excess) > 0.5 * trial.keeping("omniprediction")  # of the right size


def test_running_sums_are_the_regrets_of_a_log() -> None:
    rng = np.random.default_rng(1)
    table, play = rng.random((60, 1, 4)), rng.dirichlet(np.ones(4), (60, 1))
    policies = rng.integers(4, size=(60, 3))
    sums = OnlineRegret(1, 4, 3)
    for t in range(60):
        sums.charge(play[t], table[t], policies[t])
    comparators = np.concatenate([np.tile(np.arange(4)[:, None], 60), policies.T])
    own = table[:, 0], play[:, 0], comparators
    assert sums.regret("decision_swap")[0] == pytest.approx(definitions.decision_swap_regret(*own))
    expected = definitions.omniprediction_regret(*own)
    assert sums.regret("omniprediction")[0] == pytest.approx(expected)


def test_cached_predictions_equal_those_solved_anew(model: OfflineOmnipredictor) -> None:
    features, _ = examples(50, 5)
    asked = np.stack([rule.predict(features) for rule in RULES], axis=1)
    place, laws = model.predict_mixture(features)
    distinct = np.unique(asked, axis=0)
    assert len(laws) == len(distinct) == 4
    for suggestions in distinct:
        key = tuple(int(b) for b in suggestions)
        cached, anew = model.fitted_.predictors.at(key), model.fitted_.predictors.uncached(key)
        assert laws[place[(asked == suggestions).all(1).argmax()]] is cached
        assert (cached.points == anew.points).all()
        assert (cached.weights == anew.weights).all()


def test_a_law_is_the_uniform_mixture_of_the_kept_rounds(model: OfflineOmnipredictor) -> None:
    key = (1, 2)
    law = model.fitted_.predictors.at(key)
    means = [model.fitted_.predictors.snapshots.mixture(i, key).mean for i in range(40)]
    assert law.mean == pytest.approx(np.mean(means, axis=0))
    assert law.weights.sum() == pytest.approx(1)


def test_play_is_the_best_response_to_each_atom(model: OfflineOmnipredictor) -> None:
    own, (features, _) = losses()[2], examples(20, 7)
    offset, weights = model.basis_.coefficients(own)
    place, laws = model.predict_mixture(features)
    proba = model.act_proba(own, features)
    for row, law in zip(proba, (laws[i] for i in place), strict=True):
        wanted = np.zeros(3)
        for point, mass in zip(law.points, law.weights, strict=True):
            wanted[(offset + weights @ point).argmin()] += mass
        assert row == pytest.approx(wanted)


def test_draws_follow_the_law(model: OfflineOmnipredictor) -> None:
    features = np.tile([[0.2, 0.2]], (4000, 1))
    own = losses()[0]
    shares = np.bincount(model.act(own, features), minlength=3) / 4000
    assert shares == pytest.approx(model.act_proba(own, features)[0], abs=0.04)
    drawn = model.predict(features, draw=True)
    assert drawn.mean(0) == pytest.approx(model.predict(features)[0], abs=0.04)
    _, laws = model.predict_mixture(features)
    assert {tuple(p) for p in drawn} <= {tuple(p) for p in laws[0].points}


def test_a_loss_that_was_not_listed_acts_and_has_a_bound_only_within_gamma() -> None:
    own = losses()[0]
    fitted = online([own], rounds_kept=10).fit(None, examples(60)[1])
    blank = np.empty((1, 0))
    with pytest.raises(UserError, match="basis does not serve"):
        fitted.act(CARA(np.eye(2), 1.0), blank)
    linear = online([Linear(np.eye(2))], gamma=0.1, rounds_kept=10)
    linear.fit(None, examples(60)[1])
    close, far = Linear(np.eye(2) * 0.95), Linear(np.eye(2) * 0.5)
    bound, listed = linear.bound(close), linear.bound(Linear(np.eye(2)))
    assert bound is not None
    assert listed is not None
    assert bound.basis == pytest.approx(2 * 0.05)
    assert bound.total == pytest.approx(listed.total + 0.1)
    assert linear.bound(far) is None
    assert linear.online_bound(far) is None
    assert linear.act_proba(far, blank).shape == (1, 2)


def test_no_policies_and_no_features_predict_the_mean() -> None:
    _, outcomes = examples(1500)
    weights = np.array([[0.5, -0.5], [-0.5, 0.5]])
    fitted = online([Linear(weights, 0.5)], rounds_kept=1500).fit([], outcomes)
    assert fitted.predict(np.empty((3, 0)))[2] == pytest.approx(outcomes.mean(0), abs=0.05)


def test_policies_are_asked_once_per_table() -> None:
    asked = []

    class Counting(Threshold):
        def predict(self, X: Any) -> Any:  # noqa: N803
            asked.append(len(X))
            return super().predict(X)

    online([losses()], [Counting(0, 0.5, 0, 1)], rounds_kept=5).fit(*examples(80))
    assert asked == [80]


def test_callables_see_rows_and_names() -> None:
    features, outcomes = examples(60)
    frame = pd.DataFrame(features, columns=["rain", "sun"])
    by_name = online([losses()], [lambda x: int(x["rain"] > 0.5)], rounds_kept=9)
    by_place = online([losses()], [lambda x: int(x[0] > 0.5)], rounds_kept=9)
    rule = online([losses()], [Threshold(0, 0.5, 0, 1)], rounds_kept=9)
    named = by_name.fit(frame, outcomes).predict(frame)
    assert (named == by_place.fit(features, outcomes).predict(features)).all()
    assert (named == rule.fit(features, outcomes).predict(features)).all()


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    made = [
        online([losses()], RULES, rounds_kept=9, random_state=seed)
        .fit(*examples(60))
        .predict(examples(20, 3)[0])
        .tobytes()
        for seed in (4, 4, 5)
    ]
    assert made[0] == made[1] != made[2]


# Files.


@pytest.mark.parametrize("events", ["coordinates", "losses"])
def test_a_saved_model_predicts_the_same(tmp_path: Path, events: Any) -> None:
    features, outcomes = examples(150)
    rules = [
        RULES[0],
        LinearScore(np.array([1.0, -1.0]), np.array([0.0]), np.array([2, 0])),
        best_tree(features, losses()[1].losses(outcomes)),
    ]
    own = [losses(), Newsvendor([0.2, 0.5, 0.8], 3.0, 1.0, outcomes=2)]
    first = online(own, rules, events=events, rounds_kept=20, random_state=3)
    first.fit(features, outcomes).save(tmp_path / "model.npz", notes={"who": "me"})
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    second = OfflineOmnipredictor.load(tmp_path / "model.npz")
    fresh = examples(40, 9)
    assert (first.predict(fresh[0]) == second.predict(fresh[0])).all()
    assert (first.act(own[1], fresh[0]) == second.act(own[1], fresh[0])).all()
    assert first.bound(own[1]) == second.bound(own[1])
    assert first.online_bound(own[1]) == second.online_bound(own[1])
    assert second.notes_ == {"who": "me"}
    assert second.get_params()["events"] == events


def test_code_is_not_saved(tmp_path: Path) -> None:
    out = tmp_path / "model.npz"
    steep = LipschitzLoss(lambda y: np.abs(y - 0.3), np.array(1.0), (1,), 1)
    with pytest.raises(UserError, match="cannot be saved"):
        online([steep], rounds_kept=2).fit(None, np.linspace(0, 1, 9)).save(out)
    coded = online([losses()], [lambda _: 0], rounds_kept=2).fit(*examples(9))
    with pytest.raises(UserError, match="is code and cannot be saved; use one of: Threshold"):
        coded.save(out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["missing", "text", "short", "other"])
def test_a_damaged_model_is_refused(
    tmp_path: Path, model: OfflineOmnipredictor, damage: str
) -> None:
    out = tmp_path / "model.npz"
    if damage == "text":
        out.write_text("hello")
    elif damage == "other":
        np.savez(out, a=np.zeros(3))
    elif damage == "short":
        model.save(out)
        out.write_bytes(out.read_bytes()[:-2000])
    with pytest.raises(UserError, match=r"does not exist|no readable model"):
        OfflineOmnipredictor.load(out)


# Policies.


def test_a_copied_tree_is_the_classifier() -> None:
    tree = pytest.importorskip("sklearn.tree")
    features, outcomes = examples(300)
    best = losses()[0].losses(outcomes).argmin(1)
    fitted = tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(features, best)
    fresh = examples(500, 8)[0]
    assert (Tree.of(fitted).predict(fresh) == fitted.predict(fresh)).all()


def test_a_score_falls_into_its_interval() -> None:
    rule = LinearScore(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([5, 3, 4]))
    table = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.9], [0.0, 1.0]])
    assert rule.predict(table).tolist() == [5, 3, 3, 4]
    with pytest.raises(ValueError, match="ascend"):
        LinearScore(np.ones(1), np.array([2.0, 1.0]), np.arange(3))


# Refusals.

GOOD = examples(12)
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "nan": (lambda: _fit(np.where(np.eye(12, 2) > 0, np.nan, GOOD[0]), GOOD[1]), "NaN in row 0"),
    "base": (lambda: _fit(*GOOD, base="all"), "base = 'all': choose from auto, ridge, none"),
    "trees": (lambda: _fit(*GOOD, trees=0), "trees = 0"),
    "folds": (lambda: _fit(*GOOD, cv=1), "cv = 1"),
    "refit": (lambda: _fit(*GOOD, refit="no"), "refit = 'no': give True or False"),
    "holdout": (lambda: _fit(*GOOD, holdout=1.0), "holdout = 1.0"),
    "ends": (lambda: _fit(*GOOD, ends=[(0, 1)]), "a low and a high for each outcome"),
    "levels": (
        lambda: _fit(*GOOD, base="ridge").predict_quantiles(GOOD[0], [1.5]),
        "levels = ",
    ),
    "no law": (lambda: _fit(*GOOD).predict_quantiles(GOOD[0]), "has no law of outcomes"),
    "names": (
        lambda: _fit(pd.DataFrame(GOOD[0], columns=["a", "b"]), GOOD[1]).predict(
            pd.DataFrame(GOOD[0], columns=["b", "a"])
        ),
        "feature names should match",
    ),
    "missing": (lambda: _fit(GOOD[0], np.full((12, 2), np.nan)), "leave none missing"),
    "text": (lambda: _fit(GOOD[0], np.full((12, 2), "a")), "no number"),
    "rows": (lambda: _fit(GOOD[0][:5], GOOD[1]), "5 rows and Y 12"),
    "no rows": (lambda: _fit(GOOD[0][:0], GOOD[1][:0]), "at least one row"),
    "flat": (lambda: _fit(GOOD[0][:, 0], GOOD[1]), "Expected 2D"),
    "width": (lambda: _fit(GOOD[0], GOOD[1][:, :1]), "Y has 1 outcomes, a loss has 2"),
    "kappa": (lambda: _fit(*GOOD, kappa=0.0), "kappa = 0.0"),
    "kept": (lambda: _fit(*GOOD, rounds_kept=0), "rounds_kept = 0"),
    "burn-in": (lambda: _fit(*GOOD, burn_in=1.0), "burn_in = 1.0"),
    "gamma": (lambda: _fit(*GOOD, gamma=-1.0), "gamma = -1.0"),
    "seed": (lambda: _fit(*GOOD, random_state=-1), "random_state = -1"),
    "events": (lambda: _fit(*GOOD, events="all"), "events = 'all'"),
    "weights": (lambda: _fit(*GOOD, weights="flat"), "weights 'flat'"),
    "no losses": (lambda: online([]).fit(*GOOD), "losses is empty"),
    "no loss": (lambda: online([3]).fit(*GOOD), "holds a int"),  # type: ignore[list-item]
    "a basis": (lambda: online(LinearBasis(2)).fit(*GOOD), "is a LinearBasis; give"),  # type: ignore[arg-type]
    "basis": (lambda: _fit(*GOOD, basis=LinearBasis(2)), "leave basis out"),
    "action": (lambda: _fit(*GOOD, policies=[Threshold(0, 0.5, 0, 7)]), "suggests 7; actions are"),
    "fraction": (lambda: _fit(*GOOD, policies=[lambda _: 0.5]), "suggests 0.5"),
    "unscaled": (
        lambda: online([Linear(np.eye(2) * 9)], rounds_kept=2).fit(*GOOD),
        r"use loss.normalised\(\)",
    ),
    "features": (
        lambda: _fit(*GOOD).predict(GOOD[0][:, :1]),
        "X has 1 features, but OfflineOmnipredictor is expecting 2 features",
    ),
    "stack": (lambda: _fit(*GOOD).act(losses(), GOOD[0]), "give one of them"),
    "parameter": (lambda: online([losses()]).set_params(kept=3), "Invalid parameter"),
    "memory": (
        lambda: online([CES(np.ones((3000, 8, 2)) / 2 + _jitter(), 0.5)], RULES).fit(
            *examples(400)
        ),
        "use events='losses'",
    ),
}


def _jitter() -> Array:
    return 0.1 * np.random.default_rng(0).random((3000, 8, 2))


def _fit(features: Any, outcomes: Any, **parameters: Any) -> OfflineOmnipredictor:
    given = {"base": "none", "rounds_kept": 3} | parameters
    return OfflineOmnipredictor([losses()], **given).fit(features, outcomes)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line(case: str) -> None:
    act, told = BAD[case]
    with pytest.raises(UserError, match=told) as refused:
        act()
    assert "\n" not in str(refused.value)


def test_use_before_fit_is_refused() -> None:
    for act in (lambda m: m.predict(GOOD[0]), lambda m: m.act(losses()[0], GOOD[0])):
        with pytest.raises(ValueError, match="not fitted"):
            act(online([losses()]))


def test_the_bound_in_coordinates_knows_the_spread_of_the_losses() -> None:
    own = losses()
    fitted = online([own], rounds_kept=2).fit(None, examples(100)[1])
    offset, weights = fitted.basis_.coefficients(own)
    ratio = spread(weights)[1] / spread(weights)[0]
    first, second = fitted.online_bound(own[0]), fitted.online_bound(own[1])
    assert first is not None
    assert second is not None
    assert second / first == pytest.approx(ratio)
    assert offset.shape == (4, 3)
