"""Continuous actions: nets of the cube, best responses within them, and the error they cost."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("sklearn")
from regretless import OfflineOmnipredictor, UserError
from regretless.forecaster.offline import (
    ActionLoss,
    ContinuousLoss,
    Pinball,
    SquaredError,
    theta_net,
)
from regretless.forecaster.offline.continuous_actions import radius, snap, theorem_theta
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

online = partial(OfflineOmnipredictor, base="none")


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
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
    model = online([SquaredError()], rounds_kept=5).fit(*examples(100))
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
    features, outcomes = examples(3000, seed + 50)
    net = model.fit(*examples(500, seed)).net_
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


def test_a_loss_of_ones_own_is_known_again_and_is_not_saved(tmp_path: Path) -> None:
    own = ActionLoss(lambda a, y: np.abs(a[:, 0] - y), 1.0, 1.0)
    model = online([own], theta=0.2, rounds_kept=9).fit(*examples(60))
    bound = model.bound(own)
    assert bound.basis == 0.0
    assert own.on(theta_net(0.2)).identity == own.on(theta_net(0.2)).identity
    assert own.on(theta_net(0.2)).identity != own.on(theta_net(0.1)).identity
    with pytest.raises(UserError, match="cannot be saved"):
        model.save(tmp_path / "n.skops")
    assert not list(tmp_path.iterdir())


LINE, PAIR = examples(20)[1], np.full((9, 2), 0.5)
BAD: dict[str, tuple[Any, Any, str]] = {
    "mixed": ([SquaredError(), Linear(np.eye(1))], LINE, "mix finite and continuous"),
    "dimensions": ([SquaredError(2), Pinball(0.5, outcomes=2)], PAIR, "several dimensions"),
    "policy": ([SquaredError()], LINE, "points of"),
    "range": ([ActionLoss(lambda a, y: 2 * np.abs(a[:, 0] - y), 2.0, 2.0)], LINE, "range|leave"),
}


@pytest.mark.parametrize("case", BAD)
def test_losses_that_do_not_go_together_are_refused(case: str) -> None:
    served, outcomes, told = BAD[case]
    policies = [lambda _: 1.5] if case == "policy" else []
    with pytest.raises(ValueError, match=told):
        online(served, policies).fit(np.zeros((len(outcomes), 1)), outcomes)


def test_actions_must_fit_the_model_and_levels_their_range() -> None:
    finite = online([Linear(np.eye(1))], rounds_kept=2).fit(*examples(20))
    with pytest.raises(UserError, match="continuous actions"):
        finite.act(SquaredError(), examples(20)[0])
    with pytest.raises(UserError, match="level = 1"):
        Pinball(1)
