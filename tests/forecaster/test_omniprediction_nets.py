"""Continuous actions: nets of the cube, best responses within them, and the error they cost."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy.typing import NDArray

from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.omniprediction import (
    ActionLoss,
    ContinuousLoss,
    Pinball,
    SquaredError,
    theta_net,
)
from regretless.forecaster.omniprediction.nets import radius, snap, theorem_theta
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear

Array = NDArray[np.float64]
online = partial(OfflineOmnipredictor, base="none")  # the paper's, without a law


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw a feature (m, 1) and an outcome (m, 1): low or high."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 1))
    return features, np.clip(
        0.25 + 0.5 * (features > 0.5) + 0.1 * rng.standard_normal((rows, 1)), 0, 1
    )


class Sides:
    """Forecasts 0.27 on the left and 0.73 on the right: no points of the nets below."""

    def predict(self, X: Array) -> Array:  # noqa: N803
        """Suggest a forecast for every row."""
        return np.where(X[:, 0] > 0.5, 0.73, 0.27)


@given(theta=some.floats(0.02, 2.0), dimension=some.integers(1, 2), seed=some.integers(0, 99))
def test_every_point_is_within_theta_of_the_net(theta: float, dimension: int, seed: int) -> None:
    net = theta_net(theta, dimension)
    points = np.random.default_rng(seed).random((200, dimension))
    points[0], points[1] = 0.0, 1.0
    apart = np.abs(points[:, None] - net).max(2)
    assert (apart.min(1) <= theta + 1e-12).all()
    assert radius(net) <= theta + 1e-12
    assert (apart.min(1) <= radius(net) + 1e-12).all()
    assert len(net) <= max(1, np.ceil(1 / (2 * theta))) ** dimension
    assert apart[np.arange(200), snap(points, net)] == pytest.approx(apart.min(1))


def test_a_net_has_corners_as_far_as_it_says() -> None:
    net = theta_net(0.1, 2)
    assert len(net) == 25
    assert np.abs(net).min(0) == pytest.approx(radius(net))
    assert [tuple(p) for p in net] == sorted(tuple(p) for p in net)


@pytest.mark.parametrize("theta", [0.0, -1.0, np.nan, 1e-6])
def test_impossible_nets_are_refused(theta: float) -> None:
    with pytest.raises(UserError, match="theta"):
        theta_net(theta)


def test_the_theorems_theta() -> None:
    assert theorem_theta(size=4, lipschitz=2.0, rounds=16 * 10**5) == pytest.approx(0.1)
    assert theorem_theta(size=9, lipschitz=2.0, rounds=9) == 0.5
    assert theorem_theta(size=1, lipschitz=1.0, rounds=2**8, dimension=2) == pytest.approx(0.5)
    features, outcomes = examples(100)
    model = online([SquaredError()], rounds_kept=5).fit(features, outcomes)
    assert model.net_ is not None
    theta = theorem_theta(size=model.basis_.size, lipschitz=model.basis_.lipschitz, rounds=100)
    assert radius(model.net_) <= theta


CONTINUOUS: dict[str, ContinuousLoss] = {
    "squared": SquaredError(),
    "squared in two": SquaredError(2),
    "median": Pinball(0.5),
    "quantile": Pinball(0.9),
    "low quantile of the second": Pinball(0.2, coordinate=1, outcomes=2),
    "own": ActionLoss(lambda a, y: np.abs(a[:, 0] - y) / 2, 0.5, 0.5),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_declared_constants_hold_and_smaller_ones_are_refused(name: str) -> None:
    loss = CONTINUOUS[name]
    loss.checked()
    object.__setattr__(loss, "constant", loss.constant * 0.7)
    try:
        with pytest.raises(UserError, match=r"constant = .* has slope") as refused:
            loss.checked()
        assert "\n" not in str(refused.value)
    finally:
        object.__setattr__(loss, "constant", loss.constant / 0.7)


def test_a_loss_outside_of_its_range_is_refused() -> None:
    steep = ActionLoss(lambda a, y: 2 * np.abs(a[:, 0] - y), 2.0, 2.0)
    with pytest.raises((UserError, ValueError), match=r"range"):
        steep.checked()


@pytest.mark.parametrize("name", ["squared", "median", "quantile"])
def test_values_on_the_net_are_those_of_the_formula(name: str) -> None:
    net, outcomes = theta_net(0.07), np.linspace(0, 1, 13)[:, None]
    a, y = net[:, 0], outcomes
    level = getattr(CONTINUOUS[name], "level", 0.5)
    pinball = np.where(y > a, level * (y - a), (1 - level) * (a - y)) / max(level, 1 - level)
    wanted = (a - y) ** 2 if name == "squared" else pinball
    assert CONTINUOUS[name].on(net).losses(outcomes) == pytest.approx(wanted)


def test_best_response_in_the_net_is_found_by_brute_force() -> None:
    features, outcomes = examples(120)
    net_loss = SquaredError()
    model = online([net_loss], [Sides()], theta=0.1, rounds_kept=15)
    model.fit(features, outcomes)
    assert model.net_ is not None
    finite = net_loss.on(model.net_)
    offset, weights = model.basis_.coefficients(finite)
    place, laws = model.predict_mixture(features[:10])
    for law, row in zip((laws[i] for i in place), model.act_proba(net_loss, features[:10])):  # noqa: B905
        wanted = np.zeros(len(model.net_))
        for point, mass in zip(law.points, law.weights, strict=True):
            best = min(range(len(model.net_)), key=lambda a: (offset[a] + weights[a] @ point, a))
            wanted[best] += mass
        assert row == pytest.approx(wanted)
    acts = model.act(net_loss, features)
    assert acts.shape == (120, 1)
    assert {float(a) for a in acts[:, 0]} <= {float(a) for a in model.net_[:, 0]}


@pytest.mark.parametrize("seed", [0, 1])
def test_forecasts_from_the_net_stay_below_the_bound_with_its_error(seed: int) -> None:
    served = [SquaredError(), Pinball(0.5), Pinball(0.8)]
    model = online(served, [Sides()], theta=0.1, rounds_kept=60, random_state=seed)
    model.fit(*examples(500, seed))
    assert model.net_ is not None
    features, outcomes = examples(3000, seed + 50)
    policy = Sides().predict(features)[:, None]
    for loss in served:
        bound = model.bound(loss)
        assert bound is not None
        assert bound.net == pytest.approx(loss.constant * 0.1)
        assert model.decision_swap_regret(loss, None, features, outcomes) <= bound.total
        # against the policy itself, unsnapped
        values = np.array([loss.on(p[None]).losses(y) for p, y in zip(policy, outcomes)])  # noqa: B905
        table = loss.on(model.net_).losses(outcomes)
        ours = (model.act_proba(loss, features) * table).sum() / len(table)
        snapped = (
            loss.on(model.net_).losses(outcomes)[np.arange(3000), snap(policy, model.net_)].mean()
        )
        assert abs(snapped - values.mean()) <= bound.net
        assert ours - values.mean() <= bound.total
        assert ours - values.mean() <= 0.1


def test_the_net_in_two_dimensions() -> None:
    rng = np.random.default_rng(0)
    outcomes = np.clip(np.array([0.3, 0.7]) + 0.05 * rng.standard_normal((400, 2)), 0, 1)
    loss = SquaredError(2)
    model = online([loss], theta=0.1, rounds_kept=60).fit(None, outcomes)
    acts = model.act(loss, np.empty((50, 0)))
    assert acts.shape == (50, 2)
    assert acts.mean(0) == pytest.approx([0.3, 0.7], abs=0.12)
    assert model.net_ is not None
    ticks = (0.1, 0.3, 0.5, 0.7, 0.9)
    assert model.net_ == pytest.approx(np.array(list(product(ticks, ticks))))


def test_a_loss_of_ones_own_is_known_again() -> None:
    features, outcomes = examples(60)
    own = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    model = online([own], theta=0.2, rounds_kept=9).fit(features, outcomes)
    bound = model.bound(own)
    assert bound is not None
    assert bound.basis == 0.0
    assert model.act(own, features).shape == (60, 1)
    assert own.on(theta_net(0.2)).identity == own.on(theta_net(0.2)).identity
    assert own.on(theta_net(0.2)).identity != own.on(theta_net(0.1)).identity


def test_a_model_of_forecasts_is_saved(tmp_path: Path) -> None:
    features, outcomes = examples(80)
    served = [SquaredError(), Pinball(0.8)]
    model = online(served, theta=0.1, rounds_kept=9).fit(features, outcomes)
    model.save(tmp_path / "m.npz")
    again = OfflineOmnipredictor.load(tmp_path / "m.npz")
    for loss in served:
        assert (model.act(loss, features) == again.act(loss, features)).all()
        assert model.bound(loss) == again.bound(loss)
    own = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    coded = online([own], theta=0.2, rounds_kept=2).fit(features, outcomes)
    with pytest.raises(UserError, match="cannot be saved"):
        coded.save(tmp_path / "n.npz")


MIXED: list[tuple[list[Any], str]] = [
    ([SquaredError(), Linear(np.eye(1))], "mix finite and continuous"),
    ([SquaredError(2), Pinball(0.5, outcomes=2)], "several dimensions"),
]


@pytest.mark.parametrize(("served", "told"), MIXED)
def test_losses_that_do_not_go_together_are_refused(served: list[Any], told: str) -> None:
    outcomes = np.full((9, served[0].outcomes), 0.5)
    with pytest.raises(UserError, match=told):
        online(served).fit(None, outcomes)


def test_policies_must_suggest_points_and_losses_must_fit() -> None:
    features, outcomes = examples(20)
    with pytest.raises(UserError, match="points of"):
        online([SquaredError()], [lambda _: 1.5]).fit(features, outcomes)
    finite = online([Linear(np.eye(1))], rounds_kept=2).fit(features, outcomes)
    with pytest.raises(UserError, match="continuous actions"):
        finite.act(SquaredError(), features)
    with pytest.raises(UserError, match="level = 1"):
        Pinball(1)
