"""Smooth responses: quantal agents, rules of a user's own, and labels where the image is convex."""

import math
from typing import Any

import numpy as np
import pytest
import worlds
from streams import STREAMS, market

from regretless import MarketModel, SmoothDecisionSwap, UserError, register
from regretless.agents.responses import BestResponse
from regretless.forecaster import UnbiasedPrediction, VectorEvents
from regretless.forecaster.bases import PowerBasis
from regretless.forecaster.events.bounds import recommended_eta
from regretless.forecaster.events.loss_table import ProtectedLosses, responses_at
from regretless.market.calibration import decision_calibration
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear, SeparablePower
from regretless.market.response import quantal_gap, quantal_response

ETA = 25.0


class Sparsemax(BestResponse):
    """The projection of -eta l onto the simplex: argmin of q.l + |q|^2 / (2 eta).

    Its gap is the penalty's range, (1 - 1/A) / (2 eta). A projection is 1-Lipschitz in l2, so in l1
    per sup norm it moves at most by eta A.
    """

    name = "sparsemax"
    lipschitz = ETA * 5

    def gap(self, actions: int) -> float:
        return (1 - 1 / actions) / (2 * ETA)

    def play(self, predicted: Array) -> Array:
        ordered = -np.sort(ETA * predicted, axis=1)
        excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, predicted.shape[1] + 1)
        last = (ordered > excess).sum(1) - 1
        level = np.take_along_axis(excess, last[:, None], axis=1)
        return np.maximum(-ETA * predicted - level, 0.0)


def played(stream: str, seed: int = 0, **cohort: Any) -> MarketModel:
    """Play the market of `python -m paper streams` with another cohort."""
    return worlds.played(
        market(STREAMS[stream], {}, rounds=300, seed=seed, **cohort), log_every=300
    )


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_a_rule_of_ones_own_is_served(stream: str) -> None:
    """The forecaster conditions on the rule's own weights, and the gap enters the bounds."""
    register.response("sparsemax")(Sparsemax)
    model = played(stream, response="sparsemax")
    agents = model.agents_frame()
    assert (agents["guarantee"] == "smooth-decision-swap").all()
    assert (agents["swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["bound_from_bias"] <= agents["bound"]).all()
    group = model.game.blocks[0].forecaster.events.groups[0]  # type: ignore[attr-defined]
    assert group.play is not None
    assert group.eta is None


def test_compiled_and_called_rules_agree() -> None:
    """Quantal weights through a user's function give the compiled forecaster's predictions."""
    rng = np.random.default_rng(0)
    tables = np.ones((4, 3)), -rng.dirichlet(np.ones(3), (4, 3))
    called = ProtectedLosses(*tables, play=lambda predicted: quantal_response(predicted, 12.0))
    both = ProtectedLosses(*tables, eta=12.0), called
    players = [UnbiasedPrediction(VectorEvents([one])) for one in both]
    point = rng.random(3)
    responses = [responses_at(player.events.rows, point) for player in players]
    assert responses[0] == pytest.approx(responses[1], abs=1e-12)
    for truth in rng.random((25, 3)):
        means = [player.mixture().mean for player in players]
        assert means[0] == pytest.approx(means[1], abs=1e-6)
        for player in players:
            player.update(truth)


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("gap", lambda *_: 0.0, "declares a gap of 0 and loses"),
        ("play", lambda *own: 0.9 * Sparsemax.play(*own), "whose rows sum to 1"),
        ("play", lambda *own: Sparsemax.play(*own)[:1], "return probabilities of shape"),
    ],
)
def test_rules_are_held_to_what_they_declare(method: str, answer: Any, message: str) -> None:
    register.response("broken")(type("Broken", (Sparsemax,), {method: answer}))
    with pytest.raises(UserError, match=message):
        played("iid", response="broken")


def test_labels_need_a_convex_image() -> None:
    """One power per coordinate is monotone; two of them trace a curve."""
    rng = np.random.default_rng(0)
    losses = [SeparablePower(rng.dirichlet(np.ones(2), 3) / 2, 0.5)]
    with pytest.raises(ValueError, match="image of PowerBasis is curved"):
        SmoothDecisionSwap(losses, eta=ETA, basis=PowerBasis([0.5, 1.0], 2))
    with pytest.raises(ValueError, match="exactly one of eta and response"):
        SmoothDecisionSwap(losses)
    player = SmoothDecisionSwap(losses, eta=ETA, basis=PowerBasis([0.5], 2))
    for outcome in rng.random((20, 2)):
        forecast = player.predict()
        assert player.basis.transform(forecast.label) == pytest.approx(forecast.statistics)
        player.observe(outcome)


def test_smooth_calibration_is_what_is_controlled() -> None:
    """The logged mixtures' smooth decision calibration error is below the bias bound."""
    loss = Linear(-np.random.default_rng(0).dirichlet(np.ones(2), (2, 3)), 1.0)
    player = SmoothDecisionSwap([loss], eta=ETA)
    points, mass, truths = [], [], []
    for outcome in np.random.default_rng(1).random((150, 2)) ** 2:
        mixture = player.mixture()
        points.append(mixture.points)
        mass.append(mixture.weights)
        truths.append(np.tile(outcome, (len(mixture.weights), 1)))
        player.update(outcome)
    errors = decision_calibration(
        np.concatenate(points),
        np.concatenate(truths),
        (loss.offset, loss.weights),
        smooth=ETA,
        mass=np.concatenate(mass),
    )
    occupancy = np.array([row[4] for row in player.events.table()]).reshape(errors.shape)
    assert (150 * errors <= player.bias_bound().bias(occupancy)).all()


def test_the_recommended_eta_is_the_cheapest() -> None:
    """It minimises ln(A) / eta + eta delta, and needs no basis error to be finite."""
    actions, delta = 6, 0.01
    best = recommended_eta(actions, error=delta, rounds=10_000)
    cost = math.log(actions) / best + best * delta
    for eta in np.geomspace(best / 10, best * 10, 41):
        assert cost <= math.log(actions) / eta + eta * delta + 1e-12
    assert quantal_gap(actions, recommended_eta(actions, error=0.0, rounds=10_000)) == (
        pytest.approx(0.01)
    )


def test_a_scenario_may_ask_for_the_recommended_eta() -> None:
    one_power = {"parameters": {"rho": 0.5}, "response": "quantal", "eta": "recommended"}
    model = played("iid", **one_power)
    agents = model.agents_frame()
    assert (agents["guarantee"] == "smooth-decision-swap").all()
    cohort: Any = model.game.cohorts[0]
    assert cohort.response.eta == pytest.approx(math.log(5) * math.sqrt(300))
    assert cohort.gap() == pytest.approx(1 / math.sqrt(300))


def test_labels_on_a_curved_image_promise_nothing_and_say_so() -> None:
    model = played("iid", response="quantal", eta=ETA)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert model.agents_frame()["bound"].isna().all()
    assert "the image of s is curved" in model.guarantees[0].note
    assert played("iid", response="best-response").guarantees[0].note == ""
