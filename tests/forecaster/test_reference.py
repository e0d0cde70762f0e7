"""A reference is kept where it is good, corrected where it is not, compared with, and bounded."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from streams_study import STREAMS, streams_scenario

from regretless import UserError, register
from regretless.forecaster import Aggregate, Constant, LastValue, RunningMean, VectorEvents
from regretless.forecaster import weights as rules
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.guarantees.norms import spread
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.reference import Band, Reference
from regretless.forecaster.switch_test import FALSE_ALARMS, SwitchTest
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs, SecondOrderWeights
from regretless.market.records import Forecast, Mixture
from regretless.scenarios.run import Options, run

SIZE = 3
# two actions, one better where y is above a half and one below; the margin is large
CHOICE = ProtectedLosses(np.array([[0.25, 0.75]]), np.array([[[0.5], [-0.5]]]))


def random_losses(seed: int = 0) -> ProtectedLosses:
    """Return four random linear losses of three actions."""
    rng = np.random.default_rng(seed)
    return ProtectedLosses(np.ones((4, 3)), -rng.dirichlet(np.ones(SIZE), (4, 3)))


def player_with_reference(
    events: Any, model: Any, *, hull: Any = "box", **parameters: Any
) -> UnbiasedPrediction:
    """Return a forecaster that broadcasts a model as long as it trusts it."""
    return UnbiasedPrediction(events, cube(events.size, hull), Reference(model, **parameters))


def teach(player: UnbiasedPrediction, *truths: Any) -> None:
    """Let a forecaster predict and learn each of these outcomes."""
    for truth in truths:
        player.predict()
        player.update(truth)


class ScriptedBase:
    """A base that is told what to say."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, dtype=np.float64)

    def predict(self, x: Any = None) -> Forecast:
        return Forecast(Mixture(np.atleast_2d(self.value), np.ones(1)), 0)

    def update(self, y: Any) -> None:
        """Learn nothing."""


def test_a_base_that_is_right_is_left_alone() -> None:
    """Unbiased noise stays in its tolerance band: the base's own forecast is broadcast."""
    rng = np.random.default_rng(1)
    player = player_with_reference(
        VectorEvents([random_losses()]), ScriptedBase(np.full(SIZE, 0.5)), band=3.0, give_up=0.0
    )
    for _ in range(300):
        assert (player.mixture().points == 0.5).all()
        player.update(rng.random(SIZE))
    assert player.reference.unchanged_rounds == player.time == 300
    assert player.certificate_sum <= 0.1 * np.sqrt(300)


def test_predictions_of_a_base_are_moved_into_the_hull() -> None:
    events = VectorEvents([random_losses()])
    for hull, prediction, moved in (
        ("box", [-1.0, 0.5, 3.0], [0.0, 0.5, 1.0]),
        ("simplex", [0.9, 0.9, 0.0], [0.5, 0.5, 0.0]),
    ):
        assert player_with_reference(events, ScriptedBase(prediction), hull=hull).mixture().points[
            0
        ] == pytest.approx(moved)
    for value in ([0.1, np.nan, 0.1], [0.1, 0.2]):
        with pytest.raises(UserError, match="must predict 3 finite numbers"):
            player_with_reference(events, ScriptedBase(value)).mixture()


def test_a_model_of_the_user_serves_as_base(tmp_path: Path) -> None:
    """Registered like a forecaster, named in the file; without state it cannot be resumed."""
    register.forecaster("by-day")(lambda _: DummyRegressor())
    scenario = streams_scenario(STREAMS["iid"], {"reference": "by-day"}, rounds=60, seed=0)
    run(scenario, Options(tmp_path / "out"))
    with pytest.raises(UserError, match="block powers offers no state"):
        run(scenario, Options(tmp_path / "out", resume=True))


@pytest.mark.parametrize("events", [GainEvents, Assignments])
def test_a_base_that_is_too_sure_and_right_is_left_alone(events: Any) -> None:
    """It says 1 where 0.8 is true: biases grow, no loss has a regret. Then it is wrong."""
    rng = np.random.default_rng(0)
    player, restored = (
        player_with_reference(events([CHOICE]), Constant(1, value=1.0)) for _ in range(2)
    )
    teach(player, *(rng.random((1000, 1)) < 0.8).astype(float))
    assert player.reference.disproved_at is None
    restored.restore(player.state())
    for each_player in (player, restored):
        teach(each_player, *np.zeros((1000, 1)))
    assert player.reference.disproved_at == restored.reference.disproved_at > 1000


@pytest.mark.parametrize("seed", range(3))
def test_gains_go_on_from_the_regret_of_the_trusted_rounds(seed: int) -> None:
    """Each gain is what following the base lost against an action; bounds hold ever after."""
    protected = random_losses(seed)
    gained = np.zeros((4, 3, 3))
    player = player_with_reference(GainEvents([protected]), ScriptedBase([0.9, 0.1, 0.5]))
    for t in range(300):
        mixture = player.mixture()
        truth = np.array([0.0, 1.0, 0.5 * (t % 2)])
        realised_losses = protected.offset + protected.weights @ truth
        expected = protected.offset[:, :, None] + protected.weights @ mixture.points.T
        chosen = np.eye(3)[expected.argmin(1)].transpose(0, 2, 1) @ mixture.weights
        gained += chosen[:, :, None] * (realised_losses[:, :, None] - realised_losses[:, None])
        player.update(truth)
        regret = gained.max(2).sum(1)
        assert (regret <= player.from_variation(protected) + 1e-9).all()
        gains = np.array([event[5] for event in player.events.table()]).reshape(4, 3, 3)
        if player.reference.trusted:
            assert gains.clip(0) == pytest.approx(gained.clip(0), abs=1e-12)
        assert (gains.max(2).sum(1) >= regret - 1e-9).all()
    assert player.reference.disproved_at


@pytest.mark.parametrize("make", [GainEvents, Assignments])
def test_what_a_base_costs_every_action_a_little_adds_up(make: Any) -> None:
    """It is given up before the regret of a single action would do it, and within bounds."""
    protected = ProtectedLosses(np.ones((1, 4)), -np.eye(4)[None])
    base = ScriptedBase(np.zeros(4))
    player = player_with_reference(make([protected]), base)
    while player.reference.trusted:
        right = np.eye(4)[player.time % 4]
        base.value = 0.02 * right
        teach(player, np.roll(right, 1))
        max_regret = player.time * player.bias_bound().a_priori(protected.weights)
        assert player.time <= max_regret + (not player.reference.trusted)
    test_of_one_action = SwitchTest(player.events.experts)
    assert player.time / 4 + 3 < float(test_of_one_action.limit(player.time / 4))


def test_a_base_that_failed_at_once_is_no_candidate() -> None:
    """Nor has it a band; a checkpoint remembers both."""
    player, again = (
        player_with_reference(GainEvents([CHOICE]), Constant(1, value=1.0)) for _ in range(2)
    )
    teach(player, *np.zeros((100, 1)))
    assert 0 < player.reference.disproved_at < 64
    again.restore(player.state())
    assert again.band == player.band == Band(0.0, 1.0)
    assert player.reference.unchanged_rounds == player.reference.disproved_at


@pytest.mark.parametrize("beside", [True, False], ids=["beside coordinates", "among scalars"])
@pytest.mark.parametrize("stream", ["turncoat", "noise", "against the base"])
@pytest.mark.parametrize("trust", [0.0, 2.0])
def test_nobody_regrets_not_following_a_model(*, beside: bool, stream: str, trust: float) -> None:
    """Regret to every model is at most the sum of its gains, and they are below the bound."""
    rng = np.random.default_rng(1)
    protected = random_losses()
    scalars: Any = GainEvents([protected], models=3, fixed=not beside)
    models = {"mean": RunningMean(SIZE), "last": LastValue(SIZE), "low": Constant(SIZE, value=0.2)}
    events = VectorEvents([protected]) + scalars if beside else scalars
    player = player_with_reference(events, Aggregate(models, SIZE), give_up=trust)
    regret = np.zeros((4, 3))
    rounds = 400
    for t in range(rounds):
        mixture = player.mixture()
        truth = rng.random(SIZE)
        suggested_actions = player.suggested(protected)
        if stream == "against the base" or (stream == "turncoat" and t > rounds // 2):
            truth = (mixture.mean < 0.5).astype(float)
        lost = protected.offset + protected.weights @ truth
        for p, q in zip(mixture.points, mixture.weights, strict=True):
            action = (protected.offset + protected.weights @ p).argmin(1)
            regret += q * (lost[np.arange(4), action][:, None])
        regret -= np.take_along_axis(lost, suggested_actions, axis=1)
        player.update(truth)
    (gained,) = scalars.members
    summed_gains = (gained.gain[:, :, -3:].clip(0) * gained.scale[:, None, None]).sum(1)
    assert (regret <= summed_gains + 1e-9).all()
    assert (summed_gains.max(1) <= rounds * player.bias_bound().to_models(protected.weights)).all()


@pytest.mark.parametrize("kind", [CoordinateBound, GainBound])
def test_the_models_zone_is_in_their_bound_alone(kind: Any) -> None:
    """D (z + y + sqrt(3 Lambda)) sqrt(A / T) for models, without y for swaps."""
    weights = random_losses().weights
    inputs = BoundInputs(50, 300, 0.2, band=Band(0.25, 1.0), switch_test=SwitchTest(50))
    bound = kind(AdaptiveWeights(), inputs)
    root = spread(weights) * np.sqrt(3 / 300)
    beyond = 0.25 + np.sqrt(3 * bound.exponent)
    assert bound.to_models(weights) == pytest.approx(root * (beyond + 1))
    swaps = bound.a_priori(weights)
    assert swaps == pytest.approx(bound.with_inputs(band=Band(0.25)).a_priori(weights))


def test_a_base_is_broadcast_until_a_bias_exceeds_trust() -> None:
    """Trust is lost in the first round in which some |B| > L(V), and never comes back."""
    player = player_with_reference(VectorEvents([random_losses()]), Constant(SIZE, value=0.9))
    trusted = []
    for _ in range(60):
        trusted.append(player.reference.trusted)
        assert (player.mixture().certificate is None) is trusted[-1]
        player.update(np.full(SIZE, 0.4))
    lost = trusted.index(False)
    assert not any(trusted[lost:])
    assert 0.5 * lost > float(SwitchTest(player.events.experts).hint(0.25 * lost))
    described = player.described()["disproved_at"]
    assert player.reference.unchanged_rounds == player.reference.disproved_at == described == lost


def test_a_head_start_is_the_potential_of_a_bias_that_has_just_lost_its_trust() -> None:
    """No R that the test lets through has a potential above e^(u^2 / 3), u = reach - z."""
    for rule in (AdaptiveWeights(), SecondOrderWeights()):
        tests = [SwitchTest(10, width) for width in (1, 10, 1000)]
        wide = [rule.budget(BoundInputs(10, 1000, 0.3, switch_test=test)) for test in tests]
        # e^u^2 is no double, its logarithm is; no gain exceeds the number of rounds
        assert wide[0] < wide[1] <= wide[2] < np.inf
    for width, zone in [(1.0, 0.25), (0.3, 0.0), (2.0, 1.0)]:
        trust = SwitchTest(10, width)
        inputs = BoundInputs(10, 1000, 0.3, band=Band(zone), switch_test=trust)
        total = (np.exp(AdaptiveWeights().budget(inputs)) - 1) / 10 + 1
        max_potential = total * np.exp(-rules.GROWTH * 0.3) - rules.LOGARITHM * np.log1p(1000)
        variation = np.linspace(0.01, 1000, 20_000)
        regret = np.minimum(trust.limit(variation) + 1, variation) - zone * np.sqrt(variation)
        assert np.exp(regret.clip(0) ** 2 / (3 * variation)).max() <= max_potential * (1 + 1e-12)
        start = SecondOrderWeights().budget(replace(inputs, certificate_sum=0.0))
        squares = np.linspace(0.0, 1000, 20_000)
        held = trust.limit(squares) + 1 - zone * np.sqrt(squares)
        greatest_potential = SecondOrderWeights().potentials(held, squares, 0.0).max()
        assert greatest_potential <= start - np.log(10) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_calibrated_base_is_kept(seed: int) -> None:
    """Coins whose chances it knows: none of the runs is given up, in a test of 2 %."""
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.2, 0.8)
    for make in (VectorEvents, GainEvents):
        player = player_with_reference(make([random_losses()]), Constant(SIZE, value=chances))
        teach(player, *(rng.random((300, SIZE)) < chances).astype(float))
        assert player.reference.trusted


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_who_bets_against_a_calibrated_model_gains_nothing(p: float) -> None:
    """Over all sequences of 11 outcomes the mean of W is 1 at most, and at most alpha ever win."""
    mean = winning = 0.0
    for outcomes in product([0, 1], repeat=11):
        bets = {doubtful: Reference(Constant(1)) for doubtful in (False, True)}
        for (doubtful, bettor), y in product(bets.items(), outcomes):
            # of a loss y: it can fall short by p
            bettor.judge(unchanged=True, surprise=(y - p) / p, doubtful=doubtful)
        chance = p ** sum(outcomes) * (1 - p) ** (11 - sum(outcomes))
        mean += chance * np.exp(bets[False].bets.wealth).mean()
        winning += chance * (not bets[True].trusted)
    assert mean <= 1 + 1e-12
    assert (mean == pytest.approx(1)) == (p != 0.2)  # where no gain is above 2
    assert winning <= FALSE_ALARMS
    worst = Reference(Constant(1))
    for _ in range(11):
        worst.judge(unchanged=True, surprise=1.0, doubtful=True)
    assert not worst.trusted


def test_a_surprise_is_told_in_units_of_the_most_that_losses_could_fall_short() -> None:
    """By brute force over the corners of the outcomes."""
    rng = np.random.default_rng(0)
    seen = list[float]()
    protected = ProtectedLosses(rng.random((5, 3)), rng.normal(size=(5, 3, 2)) / 4)
    for prediction in rng.random((20, 2)):
        player = player_with_reference(GainEvents([protected]), ScriptedBase(prediction))
        truth = rng.random(2)
        player.reference.judge = lambda surprise, **_: seen.append(surprise)  # type: ignore[union-attr, method-assign]
        teach(player, truth)
        action = (protected.offset + protected.weights @ prediction).argmin(1)
        slopes = protected.weights[np.arange(5), action].sum(0)
        lowest_change = min(
            slopes @ (np.array(corner) - prediction) for corner in product([0, 1], repeat=2)
        )
        assert seen[-1] == pytest.approx(slopes @ (truth - prediction) / -lowest_change)
    assert len(seen) == 20
