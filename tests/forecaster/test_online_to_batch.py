"""The paper's offline omnipredictor: its bound on fresh examples, its mixture, its sample size."""

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("sklearn")
from learned import RULES, SIDES, examples, losses

from regretless import OfflineOmnipredictor, UserError, decision_swap_regret, omniprediction_regret
from regretless.agents.utilities.forms import CARA
from regretless.forecaster.offline.online_to_batch import errors
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear
from regretless.market.response import expected_losses

online = partial(OfflineOmnipredictor, base="none")

MEASURES: Any = ("decision_swap", "omniprediction")


@pytest.fixture(scope="module")
def model() -> OfflineOmnipredictor:
    return online([losses()], RULES, rounds_kept=40).fit(*examples(300))


@pytest.mark.parametrize("events", ["coordinates", "losses"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_regret_on_fresh_examples_stays_below_the_bound(events: str, seed: int) -> None:
    own, fresh = losses(seed), examples(4000, seed + 100)
    fitted = online([own], RULES, events=events, rounds_kept=60, random_state=seed)
    fitted.fit(*examples(400, seed))
    for loss in own:
        swap = fitted.decision_swap_regret(loss, *fresh)
        best = fitted.omniprediction_regret(loss, *fresh)
        for measure, measured in zip(MEASURES, (swap, best), strict=True):
            bound = fitted.bound(loss, measure)
            assert measured <= bound.total
            assert measured <= bound.online + 0.05  # far below: the terms are worst cases
        assert best <= swap + 1e-12
    assert fitted.bound_ == max(fitted.bound(loss).total for loss in own)


def test_sample_size_grows_as_the_theorem_says_and_is_enough() -> None:
    """Sixteen times the rows: a quarter of the regret where there is nothing to learn but noise."""
    model = online([SIDES])
    sizes = [model.sample_size(regret) for regret in (0.4, 0.2, 0.1)]
    assert all(4 <= more / fewer <= 6 for fewer, more in pairwise(sizes))
    coins, regrets = np.random.default_rng(0), []
    for rows in (50, 800):
        fits = [
            online([SIDES], rounds_kept=9).fit(None, coins.integers(2, size=rows))
            for _ in "12345678"
        ]
        regrets.append(np.mean([fit.bound(SIDES).online for fit in fits]))
        assert rows < model.sample_size(float(regrets[-1]))
    assert 2 < regrets[0] / regrets[1] < 8
    run = model.fit(None, coins.integers(2, size=sizes[0]))
    assert run.bound(SIDES).online < 0.4


@pytest.mark.parametrize("regret", [0.0, 1.0])
def test_sample_sizes_are_of_regrets_between_0_and_1(regret: float) -> None:
    with pytest.raises(UserError, match="give a number between 0 and 1"):
        online([losses()]).sample_size(regret)


def test_online_regret_is_that_of_the_log() -> None:
    """All rounds' predictors on their own rows: the log, replayed from the kept states."""
    own, (features, outcomes) = losses(), examples(200)
    fitted = online([own], RULES, rounds_kept=200).fit(features, outcomes)
    rows = stream(0, "omniprediction").permutation(200)
    suggestions = np.stack([rule.predict(features[rows]) for rule in RULES])
    form = [part[None] for part in fitted.basis_.coefficients(own[0])]
    play = np.zeros((200, 3))
    for t, asked in enumerate(suggestions.T):
        distribution = fitted.fitted_.in_round(t, tuple(asked))
        for point, weight in zip(distribution.points, distribution.weights, strict=True):
            play[t, expected_losses(*form, point)[0].argmin()] += weight
    comparators = np.concatenate([np.tile(np.arange(3)[:, None], 200), suggestions])
    log = own[0].losses(outcomes[rows]), play / play.sum(1, keepdims=True), comparators
    for measure, rule in zip(MEASURES, (decision_swap_regret, omniprediction_regret), strict=True):
        bound = fitted.bound(own[0], measure)
        assert bound.kept == 0.0  # all rounds are kept
        assert bound.online == pytest.approx(rule(*log), abs=1e-9)


def terms(measure: Any, rounds: int, kept: int, **more: int) -> tuple[float, float]:
    given = {"losses": 1, "actions": 1, "policies": 0} | more
    return errors(measure, kappa=0.05, rounds=rounds, kept=kept, **given)


@given(
    losses=some.integers(1, 50),
    actions=some.integers(1, 9),
    policies=some.integers(0, 9),
    rounds=some.integers(1, 3000),
    share=some.floats(0.001, 1.0),
)
def test_terms_of_the_bound(rounds: int, share: float, **own: int) -> None:
    kept = max(1, int(share * rounds))
    (swap, keeping), (best, _) = (terms(measure, rounds, kept, **own) for measure in MEASURES)
    assert best <= swap + 1e-12
    assignments = (own["actions"] + own["policies"]) ** own["actions"]
    wanted = math.sqrt(2 * math.log(2 * own["losses"] * assignments / 0.05) / rounds)
    assert swap == pytest.approx(wanted)
    assert (keeping == 0) == (kept == rounds)


def test_kept_term_covers_what_sampling_rounds_does() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(500) < 0.5, -1.0, 1.0)  # the widest spread
    most = terms("omniprediction", 500, 50)[1]
    excess = [rng.choice(values, 50, replace=False).mean() - values.mean() for _ in range(4000)]
    assert np.mean(np.array(excess) > most) <= 0.05 / 2
    assert np.max(excess) > 0.5 * most  # of the right size


def test_a_prediction_is_the_uniform_mixture_of_the_kept_rounds(
    model: OfflineOmnipredictor,
) -> None:
    features = examples(50, 5)[0]
    asked = np.stack([rule.predict(features) for rule in RULES], axis=1)
    place, distributions = model.fitted_.mixtures(asked)
    assert len(distributions) == len(np.unique(asked, axis=0)) == 4
    for row, key in zip(place, asked, strict=True):
        rounds = [model.fitted_.in_round(i, tuple(key)) for i in range(40)]
        assert (
            distributions[row].points.tobytes()
            == np.concatenate([r.points for r in rounds]).tobytes()
        )
        assert distributions[row].mean == pytest.approx(np.mean([r.mean for r in rounds], axis=0))
        assert distributions[row].weights.sum() == pytest.approx(1)
    assert model.predict(features) == pytest.approx(
        np.array([distributions[i].mean for i in place])
    )


def test_a_loss_that_was_not_listed_acts_and_has_a_bound_only_within_gamma() -> None:
    outcomes, blank = examples(60)[1], np.empty((1, 0))
    with pytest.raises(UserError, match="basis does not serve"):
        online([losses()[0]], rounds_kept=10).fit(None, outcomes).act(CARA(np.eye(2), 1.0), blank)
    linear = online([Linear(np.eye(2))], gamma=0.1, rounds_kept=10).fit(None, outcomes)
    close, far = Linear(np.eye(2) * 0.95), Linear(np.eye(2) * 0.5)
    bound, listed = linear.bound(close), linear.bound(Linear(np.eye(2)))
    assert bound.basis == pytest.approx(2 * 0.05)
    assert bound.total == pytest.approx(listed.total + 0.1)
    assert linear.bound(far) is None
    assert linear.act_proba(far, blank).shape == (1, 2)


def test_no_policies_and_no_features_predict_the_mean() -> None:
    _, outcomes = examples(600)
    loss = Linear(np.array([[0.5, -0.5], [-0.5, 0.5]]), 0.5)
    fitted = online([loss], rounds_kept=600).fit([], outcomes)
    assert fitted.predict(np.empty((3, 0)))[2] == pytest.approx(outcomes.mean(0), abs=0.05)
