"""Smooth responses, rules of a user's own, and ensembles for agents who know no basis."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end
from streams_study import STREAMS, streams_scenario

from regretless import MarketModel, SmoothDecisionSwap, UserError, register
from regretless.agents.responses import BestResponse, ExpectedLoss
from regretless.forecaster import UnbiasedPrediction, VectorEvents, bases
from regretless.forecaster.ensemble import EnsembleBroadcast
from regretless.forecaster.events.loss_table import ProtectedLosses, responses_at
from regretless.forecaster.guarantees.norms import recommended_eta
from regretless.forecaster.minimax import image
from regretless.market import best_response as responding
from regretless.market.best_response import TIE, best_response, expected_losses
from regretless.market.core.arrays import Array
from regretless.market.game.round import play_round
from regretless.market.losses import SeparablePower
from regretless.market.losses.basis import Basis
from regretless.market.records import Forecast, Mixture

ETA = 25.0


class Sparsemax(BestResponse):
    """The projection of -eta l onto the simplex: argmin of q.l + |q|^2 / (2 eta)."""

    name = "sparsemax"
    lipschitz = ETA * 5  # a projection is 1-Lipschitz in l2: A eta in l1 per sup norm

    def gap(self, actions: int) -> float:
        return (1 - 1 / actions) / (2 * ETA)

    def play(self, predicted: Array) -> Array:
        ordered = -np.sort(ETA * predicted, axis=1)
        excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, predicted.shape[1] + 1)
        last = (ordered > excess).sum(1) - 1
        level = np.take_along_axis(excess, last[:, None], axis=1)
        return np.maximum(-ETA * predicted - level, 0.0)


def play_stream(stream: str, **cohort: Any) -> MarketModel:
    """Play the market of `python -m paper streams` with another cohort."""
    scenario = streams_scenario(STREAMS[stream], {}, rounds=300, seed=0, **cohort)
    return play_to_end(scenario, log_every=300)


def keeps_bounds(agents: Any) -> bool:
    """Whether nobody regrets more than the bound from biases, and that is below the bound."""
    bound_from_bias = agents["bound_from_bias"]
    return bool(
        (agents["swap_regret"] <= bound_from_bias + 1e-9).all()
        and (bound_from_bias <= agents["bound"]).all()
    )


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_a_rule_of_ones_own_is_served(stream: str) -> None:
    """The forecaster conditions on the rule's own weights, and the gap enters the bounds."""
    register.response("sparsemax")(Sparsemax)
    model = play_stream(stream, response="sparsemax")
    assert (model.agents_frame()["guarantee"] == "smooth-decision-swap").all()
    assert keeps_bounds(model.agents_frame())
    group = model.game.blocks[0].forecaster.events.groups[0]  # type: ignore[attr-defined]
    assert group.play is not None
    assert group.eta is None


def test_compiled_and_called_rules_agree() -> None:
    """Quantal weights through a user's function give the compiled forecaster's predictions."""
    rng = np.random.default_rng(0)
    tables = np.ones((4, 3)), -rng.dirichlet(np.ones(3), (4, 3))
    called = ProtectedLosses(
        *tables, play=lambda expected_losses: responding.quantal_response(expected_losses, 12.0)
    )
    groups = ProtectedLosses(*tables, eta=12.0), called
    players = [UnbiasedPrediction(VectorEvents([group])) for group in groups]
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
        ("play", lambda *arguments: 0.9 * Sparsemax.play(*arguments), "whose rows sum to 1"),
        (
            "play",
            lambda *arguments: Sparsemax.play(*arguments)[:1],
            "return probabilities of shape",
        ),
    ],
)
def test_rules_are_held_to_what_they_declare(method: str, answer: Any, message: str) -> None:
    register.response("broken")(type("Broken", (Sparsemax,), {method: answer}))
    with pytest.raises(UserError, match=message):
        play_stream("iid", response="broken")


def test_labels_need_a_convex_image() -> None:
    """One power per coordinate is monotone; two of them trace a curve."""
    rng = np.random.default_rng(0)
    losses = [SeparablePower(rng.dirichlet(np.ones(2), 3) / 2, 0.5)]
    with pytest.raises(ValueError, match="image of PowerBasis is curved"):
        SmoothDecisionSwap(losses, eta=ETA, basis=bases.PowerBasis([0.5, 1.0], 2))
    with pytest.raises(ValueError, match="eta, response: give exactly one of them"):
        SmoothDecisionSwap(losses)
    player = SmoothDecisionSwap(losses, eta=ETA, basis=bases.PowerBasis([0.5], 2))
    for outcome in rng.random((20, 2)):
        forecast = player.predict()
        assert player.basis.transform(forecast.label) == pytest.approx(forecast.statistics)
        player.learn_outcome(outcome)
    model = play_stream("iid", response="quantal", eta=ETA)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert model.agents_frame()["bound"].isna().all()
    assert "the image of s is curved" in model.guarantees[0].note
    assert play_stream("iid", response="best-response").guarantees[0].note == ""


def test_the_recommended_eta_is_the_cheapest_and_a_scenario_may_ask_for_it() -> None:
    """It minimises ln(A) / eta + eta delta, and needs no basis error to be finite."""
    best = recommended_eta(6, error=0.01, rounds=10_000)
    etas = np.geomspace(best / 10, best * 10, 41)
    assert (math.log(6) / best + best * 0.01 <= math.log(6) / etas + etas * 0.01 + 1e-12).all()
    assert responding.quantal_gap(6, recommended_eta(6, error=0.0, rounds=10_000)) == pytest.approx(
        0.01
    )
    model = play_stream("iid", parameters={"rho": 0.5}, response="quantal", eta="recommended")
    assert (model.agents_frame()["guarantee"] == "smooth-decision-swap").all()
    cohort: Any = model.game.cohorts[0]
    assert cohort.response.eta == pytest.approx(math.log(5) * math.sqrt(300))
    assert cohort.gap() == pytest.approx(1 / math.sqrt(300))


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 10_000))
def test_few_outcomes_have_the_same_mean(size: int, count: int, seed: int) -> None:
    """Caratheodory, with outcomes that repeat and lie in a plane too."""
    rng = np.random.default_rng(seed)
    images = rng.random((count, size))
    if seed % 3 == 0:
        images = images[rng.integers(count, size=count)]
    if seed % 3 == 1:
        images[:, 0] = images[:, -1]
    weights = rng.dirichlet(np.ones(count))
    fewer = image.reduced_support(images, weights)
    assert (fewer >= 0).all()
    assert (fewer > 0).sum() <= size + 1
    assert fewer.sum() == pytest.approx(1.0, abs=1e-12)
    assert fewer @ images == pytest.approx(weights @ images, abs=1e-12)


BASES: list[Basis] = [
    bases.PowerBasis([0.3, 0.6, 2.5], 3),
    bases.MonomialBasis(3, 2, power=0.5),
    bases.ChebyshevExponentialBasis(2, reach=2.0, error=0.02, power=1.0, floor=0.0),
    bases.LipschitzGridBasis(2, constant=1.0, error=0.1),
]


@pytest.mark.parametrize("basis", BASES)
def test_the_nearest_ensemble_is_nearest(basis: Basis) -> None:
    support = basis.support()
    rng = np.random.default_rng(1)
    points = rng.random((4000, basis.outcomes))
    points[::3] **= 6
    points[1::4] = np.where(rng.random(points[1::4].shape) < 0.5, 1.0, points[1::4])
    points[2::5] = np.round(points[2::5])
    images = basis.transform(points)
    rng = np.random.default_rng(4)
    candidates = image.extreme_outcomes(support)
    start = image.WeightedOutcomes.of(*candidates, np.ones(len(candidates[1])))
    inside = rng.dirichlet(np.ones(50)) @ images[rng.integers(len(images), size=50)]
    for target in (inside, rng.random(basis.size), np.full(basis.size, 0.5)):
        cloud = image.nearest_outcomes(target, support, start)
        assert len(cloud.weights) <= basis.size + 1
        assert ((images - cloud.point) @ (target - cloud.point)).max() <= 2e-3
        assert basis.transform(cloud.outcomes) == pytest.approx(cloud.images, abs=1e-12)
    assert np.linalg.norm(image.nearest_outcomes(inside, support, start).point - inside) <= 0.02


def check_ensembles(basis: Basis, mixture: Mixture) -> None:
    """Every ensemble is a distribution of outcomes whose mean of s is the point."""
    for point, ensemble in zip(mixture.points, mixture.ensembles, strict=True):
        assert ensemble.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((ensemble.outcomes >= 0) & (ensemble.outcomes <= 1)).all()
        mean = ensemble.weights @ basis.transform(ensemble.outcomes)
        assert mean == pytest.approx(point, abs=1e-9)


def small_cohort(utility: str, response: str = "ensemble", **keys: Any) -> TomlTable:
    """Return the table of six agents with four actions."""
    return cohort_table(utility, 6, 4, utility, response=response) | keys


def cara_cohort(response: str = "ensemble", **keys: Any) -> TomlTable:
    """Return the table of six investors with different aversions to risk."""
    return small_cohort("cara", response, parameters={"risk_aversion": [1.0, 4.0]}, **keys)


def ces_cohort(name: str, response: str = "ensemble", **keys: Any) -> TomlTable:
    """Return the table of six consumers."""
    return small_cohort("ces", response, name=name, parameters={"rho": 0.5, "v": 1.0}, **keys)


def build_market(
    *cohorts: Any, adversary: str = "anti-forecast", outcomes: int = 2, **keys: Any
) -> Any:
    """Build a market against an adversary."""
    keys = {"seed": 1, "adversary": {"kind": adversary, "outcomes": outcomes}} | keys
    return make_scenario(*cohorts, **keys).build(log_every=1000)


def agents(*cohorts: TomlTable, **keys: Any) -> Any:
    """Return the agents after a run, who share a block."""
    model = build_market(*cohorts, **keys)
    model.run()
    assert len(model.game.blocks) == 1
    return model.agents_frame()


GRID = small_cohort("newsvendor", basis={"kind": "lipschitz-grid", "error": 0.3})
EXACT = [
    (small_cohort("ces", parameters={"rho": {"choices": [0.3, 0.6, 1.0]}}), "anti-forecast"),
    (ces_cohort("monomials"), "cyclic"),
    (small_cohort("lp-target"), "anti-forecast"),
    (small_cohort("leontief", basis="exact", count=2, actions=3), "anti-forecast"),
    (GRID, "anti-forecast"),
]


@pytest.mark.parametrize(("listeners", "adversary"), EXACT)
def test_naive_agents_do_what_the_basis_would_have_done(listeners: Any, adversary: str) -> None:
    """On an exact basis: every round the action of the sophisticated agent, and of the events."""
    model = build_market(listeners, adversary=adversary)
    block = model.game.blocks[0]
    seated = model.game.cohorts[0]
    rows = block.forecaster.events.rows  # type: ignore[attr-defined]
    for _ in range(20):
        round_ = play_round(model.game)
        (forecast,) = round_.forecasts
        (decision,) = round_.decisions
        check_ensembles(block.basis, forecast.mixture)
        predicted = expected_losses(*seated.coefficients, forecast.statistics)  # type: ignore[attr-defined]
        assert decision.predicted == pytest.approx(predicted, abs=1e-9)
        choice = decision.probabilities.argmax(1)
        assert (choice == best_response(predicted, tie=TIE)).all()
        out = responses_at(rows, np.ascontiguousarray(forecast.statistics))
        assert (choice == out.reshape(len(choice), -1).argmax(1)).all()


def test_regret_stays_below_the_bound_of_the_basis() -> None:
    """Those who listen to points and to ensembles share a block, and its bound."""
    crowd = [
        ces_cohort("sophisticated", "best-response"),
        ces_cohort("naive"),
        ces_cohort("smooth", eta=30.0),
    ]
    for listeners in ([GRID], [cara_cohort(eta=20.0)], crowd):
        measured_agents = agents(*listeners, rounds=100)
        labels = measured_agents.groupby("cohort", sort=False)["guarantee"].first()
        smooth = "smooth-decision-swap"
        assert [*labels] == [
            smooth if "eta" in listener else "decision-swap" for listener in listeners
        ]
        regret = measured_agents["decision_swap_regret"]
        assert (
            regret
            <= np.minimum(measured_agents["bound_from_bias"] + 1e-9, measured_agents["bound"])
        ).all()
        assert regret.max() < 0.3 + np.log(4) / 20 * any(
            "eta" in listener for listener in listeners
        )


def test_hard_agents_on_an_inexact_basis_are_promised_nothing_and_need_it() -> None:
    """On ties of the basis its error decides; the bound of smooth agents has eta delta as well."""
    hard = agents(cara_cohort(), rounds=200)
    model = build_market(cara_cohort(eta=20.0), rounds=200)
    model.run()
    assert set(hard["guarantee"]) == {"none"}
    assert hard["bound"].isna().all()
    assert (hard["swap_regret"] <= hard["bound_from_bias"] + 1e-9).all()
    assert hard["swap_regret"].max() > 0.2
    assert model.agents_frame()["swap_regret"].max() < 0.1
    block = model.game.blocks[0]
    loss = model.game.cohorts[0].loss
    expected = block.forecaster.bias_bound().a_priori(block.basis.coefficients(loss)[1])  # type: ignore[attr-defined]
    error = block.basis.certified_error(loss)
    assert error > 0
    assert (model.guarantees[0].bound() >= expected + (2 + 20.0) * error + np.log(4) / 20).all()


def test_a_label_costs_what_an_ensemble_does_not() -> None:
    """On a curved image certainty-equivalent agents keep their regret, ensemble agents do not."""
    ensemble, label, point = (
        agents(cara_cohort(response), rounds=150, outcomes=3)["swap_regret"].mean()
        for response in ("ensemble", "certainty-equivalent", "best-response")
    )
    assert ensemble < 0.2 * label
    assert ensemble < 2 * point + 0.02


@pytest.mark.parametrize("kind", ["constant", "last-value", "running-mean", "calibration"])
def test_baselines_broadcast_the_nearest_ensemble(kind: str) -> None:
    rules: dict[str, Any] = {"kind": kind} | ({"cells": 2} if kind == "calibration" else {})
    model = build_market(ces_cohort("monomials"), forecaster=rules)
    block = model.game.blocks[0]
    outcomes = []
    assert isinstance(block.forecaster, EnsembleBroadcast)
    for _ in range(15):
        round_ = play_round(model.game)
        check_ensembles(block.basis, round_.forecasts[0].mixture)
        outcomes.append(round_.outcome)
    seen = block.basis.transform(outcomes)
    aim = {"last-value": seen[-1], "running-mean": seen.mean(0)}
    if kind in aim:
        assert block.forecaster.predict(None).statistics == pytest.approx(aim[kind], abs=0.01)
    assert set(model.agents_frame()["guarantee"]) == {"none"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="no ensemble forecast for DirectSumBasis"):
        bases.DirectSumBasis([bases.LinearBasis(2)]).support()
    with pytest.raises(ValueError, match="too many; use a coarser basis"):
        bases.LipschitzGridBasis(2, constant=1.0, error=0.008).support()
    loss = SeparablePower(np.ones((4, 3, 2)) / 2, np.array(0.5))
    forecast = Forecast(Mixture(np.zeros((1, 2)), np.ones(1)), 0)
    with pytest.raises(ValueError, match="no ensemble"):
        ExpectedLoss().predicted(forecast, loss, (loss.offset, loss.weights))


def test_followers_of_an_ensemble_take_the_first_of_actions_that_differ_by_rounding() -> None:
    follower = cohort_table("follower", 1, 2, response="ensemble")
    adversary = {"kind": "iid", "outcomes": 1}
    cohort = make_scenario(follower, adversary=adversary).build().game.cohorts[0]
    assert cohort._respond(np.array([[0.5, 0.5 - TIE / 2]])).actions.tolist() == [0]
    assert cohort._respond(np.array([[0.5, 0.5 - 2 * TIE]])).actions.tolist() == [1]
