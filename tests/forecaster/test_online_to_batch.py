"""The paper's offline omnipredictor: its bounds, mixtures and sizes; continuous actions."""

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
from regretless.forecaster.offline import (
    ActionLoss,
    ContinuousLoss,
    Pinball,
    SquaredError,
    theta_net,
)
from regretless.forecaster.offline.continuous_actions import radius, snap, theorem_theta
from regretless.forecaster.offline.online_to_batch import errors
from regretless.market.core.arrays import Array
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
            assert bound.total == pytest.approx(sum(vars(bound).values()))
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


def one_outcome(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw a feature (m, 1) and an outcome (m, 1): low or high."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 1))
    return x, np.clip(0.25 + 0.5 * (x > 0.5) + 0.1 * rng.standard_normal((rows, 1)), 0, 1)


class Sides:
    """Forecasts 0.27 on the left and 0.73 on the right: no points of the nets below."""

    def predict(self, X: Array) -> Array:  # noqa: N803
        return np.where(X[:, 0] > 0.5, 0.73, 0.27)


@given(theta=some.floats(0.02, 2.0), dimension=some.integers(1, 2), seed=some.integers(0, 99))
def test_every_point_is_within_theta_of_the_net(theta: float, dimension: int, seed: int) -> None:
    net = theta_net(theta, dimension)
    points = np.random.default_rng(seed).random((200, dimension))
    points[0], points[1] = 0.0, 1.0
    apart = np.abs(points[:, None] - net).max(2)
    assert (apart.min(1) <= radius(net) + 1e-12).all()
    assert radius(net) <= theta + 1e-12
    assert len(net) <= max(1, np.ceil(1 / (2 * theta))) ** dimension
    assert apart[np.arange(200), snap(points, net)] == pytest.approx(apart.min(1))


@pytest.mark.parametrize("theta", [0.0, -1.0, np.nan, 1e-6])
def test_impossible_nets_are_refused(theta: float) -> None:
    with pytest.raises(UserError, match="theta"):
        theta_net(theta)


def test_the_theorems_theta() -> None:
    assert theorem_theta(size=4, lipschitz=2.0, rounds=16 * 10**5) == pytest.approx(0.1)
    assert theorem_theta(size=9, lipschitz=2.0, rounds=9) == 0.5
    model = online([SquaredError()], rounds_kept=5).fit(*one_outcome(100))
    size: Any = {"size": model.basis_.size, "lipschitz": model.basis_.lipschitz}
    assert radius(model.net_) <= theorem_theta(**size, rounds=100)


CONTINUOUS: dict[str, ContinuousLoss] = {
    "squared": SquaredError(),
    "squared in two": SquaredError(2),
    "quantile": Pinball(0.9),
    "low quantile of the second": Pinball(0.2, coordinate=1, outcomes=2),
    "own": ActionLoss(lambda a, y: np.abs(a[:, 0] - y) / 2, 0.5, 0.5),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_declared_constants_hold_and_smaller_ones_are_refused(name: str) -> None:
    loss = CONTINUOUS[name]
    loss.check()
    object.__setattr__(loss, "constant", loss.constant * 0.7)
    try:
        with pytest.raises(UserError, match=r"constant = .* has slope"):
            loss.check()
    finally:
        object.__setattr__(loss, "constant", loss.constant / 0.7)


@pytest.mark.parametrize("seed", [0, 1])
def test_forecasts_from_the_net_stay_below_the_bound_with_its_error(seed: int) -> None:
    served = [SquaredError(), Pinball(0.5), Pinball(0.8)]
    model = online(served, [Sides()], theta=0.1, rounds_kept=60, random_state=seed)
    features, outcomes = one_outcome(3000, seed + 50)
    net = model.fit(*one_outcome(500, seed)).net_
    policy = Sides().predict(features)[:, None]
    for loss in served:
        bound, table = model.bound(loss), loss.on(net).losses(outcomes)
        assert bound.net == pytest.approx(loss.constant * 0.1)
        assert model.decision_swap_regret(loss, features, outcomes) <= bound.total
        # against the policy itself, not rounded to the net
        pairs = zip(policy, outcomes, strict=True)
        own = float(np.mean([loss.on(point[None]).losses(y) for point, y in pairs]))
        ours = (model.act_proba(loss, features) * table).sum() / len(table)
        assert abs(table[np.arange(3000), snap(policy, net)].mean() - own) <= bound.net
        assert ours - own <= 0.1


def test_a_loss_of_ones_own_is_known_again() -> None:
    own = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    model = online([own], theta=0.2, rounds_kept=9).fit(*one_outcome(60))
    bound = model.bound(own)
    assert bound.basis == 0.0
    assert own.on(theta_net(0.2)).identity == own.on(theta_net(0.2)).identity
    assert own.on(theta_net(0.2)).identity != own.on(theta_net(0.1)).identity
    steep = ActionLoss(lambda a, y: 2 * np.abs(a[:, 0] - y), 2.0, 2.0)
    with pytest.raises(ValueError, match="range"):
        online([steep]).fit(*one_outcome(20))
