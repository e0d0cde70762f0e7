"""Ensemble forecasts: their means and certificates, and naive agents against the basis.

Where the image {s(y)} is curved a label forecast does not exist for most predictions; an ensemble
does. Naive agents who minimise their expected loss over it must do what the basis would have done.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st

from regretless.agents.responses import ExpectedLoss
from regretless.forecaster import bases
from regretless.forecaster.ensemble import EnsembleBroadcast
from regretless.forecaster.events.loss_table import responses_at
from regretless.forecaster.minimax.image import (
    WeightedOutcomes,
    candidates,
    fewest,
    nearest_outcomes,
)
from regretless.market.game.round import play_round
from regretless.market.losses import SeparablePower
from regretless.market.losses.basis import Basis
from regretless.market.model import MarketModel
from regretless.market.records import Forecast, Mixture
from regretless.market.response import TIE, best_response, expected_losses, quantal_response

BASES: dict[str, Callable[[], Basis]] = {
    "powers": lambda: bases.PowerBasis([0.3, 0.6, 2.5], 3),
    "monomials": lambda: bases.MonomialBasis(3, 2, power=0.5),
    "cara": lambda: bases.ChebyshevExponentialBasis(2, reach=2.0, error=0.02, power=1.0, floor=0.0),
    "grid": lambda: bases.LipschitzGridBasis(2, constant=1.0, error=0.1),
}


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
    fewer = fewest(images, weights)
    assert (fewer >= 0).all()
    assert (fewer > 0).sum() <= size + 1
    assert fewer.sum() == pytest.approx(1.0, abs=1e-12)
    assert fewer @ images == pytest.approx(weights @ images, abs=1e-12)


@pytest.mark.parametrize("name", BASES)
def test_the_nearest_ensemble_is_nearest(name: str) -> None:
    basis = BASES[name]()
    support = basis.support()
    rng = np.random.default_rng(1)
    points = rng.random((4000, basis.outcomes))
    points[::3] **= 6
    points[1::4] = np.where(rng.random(points[1::4].shape) < 0.5, 1.0, points[1::4])
    points[2::5] = np.round(points[2::5])
    images, rng = basis.transform(points), np.random.default_rng(4)
    start = WeightedOutcomes.of(*candidates(support), np.full(len(candidates(support)[1]), 1.0))
    inside = rng.dirichlet(np.ones(50)) @ images[rng.integers(len(images), size=50)]
    for target in (inside, rng.random(basis.size), np.full(basis.size, 0.5)):
        cloud = nearest_outcomes(target, support, start)
        assert len(cloud.weights) <= basis.size + 1
        assert ((images - cloud.point) @ (target - cloud.point)).max() <= 2e-3
        assert basis.transform(cloud.outcomes) == pytest.approx(cloud.images, abs=1e-12)
    assert np.linalg.norm(nearest_outcomes(inside, support, start).point - inside) <= 0.02


@given(st.integers(0, 10_000), st.floats(0.1, 100), st.floats(0, 0.2))
def test_a_logit_distribution_moves_by_eta_delta(seed: int, eta: float, error: float) -> None:
    """What a quantal agent pays for an inexact basis, also as the paper's factor would have it."""
    rng = np.random.default_rng(seed)
    losses = rng.random((20, 5))
    other = losses + error * rng.choice([-1.0, 1.0], losses.shape)
    moved = np.abs(quantal_response(losses, eta) - quantal_response(other, eta)).sum(1).max()
    assert moved <= eta * error + 1e-9
    assert moved <= np.expm1(2 * eta * error) + 1e-9


def check_ensembles(basis: Basis, mixture: Mixture) -> None:
    """Every ensemble is a distribution of at most n + 1 outcomes whose mean of s is the point."""
    assert ((mixture.points >= 0) & (mixture.points <= 1)).all()
    for point, ensemble in zip(mixture.points, mixture.ensembles, strict=True):
        assert len(ensemble.weights) <= basis.size + 1
        assert (ensemble.weights > 0).all()
        assert ensemble.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((ensemble.outcomes >= 0) & (ensemble.outcomes <= 1)).all()
        mean = ensemble.weights @ basis.transform(ensemble.outcomes)
        assert mean == pytest.approx(point, abs=1e-9)


UTILITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "powers": ("ces", {"rho": {"choices": [0.3, 0.6, 1.0]}}),
    "monomials": ("ces", {"rho": 0.5, "v": 1.0}),
    "bernstein": ("lp-target", {}),
    "cara": ("cara", {"risk_aversion": [1.0, 4.0]}),
    "leontief": ("leontief", {}),
    "newsvendor": ("newsvendor", {}),
}


def cohort(utility: str, response: str = "ensemble", **keys: Any) -> dict[str, Any]:
    name, parameters = UTILITIES[utility]
    told = {"name": utility, "utility": name, "parameters": parameters, "count": 6, "actions": 4}
    return told | {"response": response} | keys


def market(
    *cohorts: dict[str, Any], adversary: str = "anti-forecast", outcomes: int = 2, **keys: Any
) -> MarketModel:
    keys = {"seed": 1, "adversary": {"kind": adversary, "outcomes": outcomes}} | keys
    return worlds.scenario(*cohorts, **keys).build(log_every=1000)


def played(*cohorts: dict[str, Any], **keys: Any) -> MarketModel:
    model = market(*cohorts, **keys)
    model.run()
    return model


EXACT = {
    "powers": cohort("powers"),
    "monomials": cohort("monomials"),
    "bernstein": cohort("bernstein"),
    "exact": cohort("leontief", basis="exact", count=2, actions=3),
    "grid": cohort("newsvendor", basis={"kind": "lipschitz-grid", "error": 0.3}),
}


@pytest.mark.parametrize("name", EXACT)
def test_naive_agents_do_what_the_basis_would_have_done(name: str) -> None:
    """On an exact basis: every round the action of the sophisticated agent, and of the events."""
    model = market(EXACT[name], adversary="cyclic" if name == "monomials" else "anti-forecast")
    block, listeners = model.game.blocks[0], model.game.cohorts[0]
    forecaster: Any = block.forecaster
    coefficients = listeners.coefficients  # type: ignore[attr-defined]
    for _ in range(20):
        round_ = play_round(model.game)
        (forecast,), (decision,) = round_.forecasts, round_.decisions
        check_ensembles(block.basis, forecast.mixture)
        predicted = expected_losses(*coefficients, forecast.statistics)
        assert decision.predicted == pytest.approx(predicted, abs=1e-9)
        choice = decision.probabilities.argmax(1)
        assert (choice == best_response(predicted, tie=TIE)).all()
        out = responses_at(forecaster.events.rows, np.ascontiguousarray(forecast.statistics))
        assert (choice == out.reshape(len(choice), -1).argmax(1)).all()


CROWD = [
    cohort("monomials", "best-response") | {"name": "sophisticated"},
    cohort("monomials") | {"name": "naive"},
    cohort("monomials", eta=30.0) | {"name": "smooth"},
]


@pytest.mark.parametrize(
    ("listeners", "stream"),
    [
        ([EXACT["grid"]], "anti-forecast"),
        ([cohort("cara", eta=20.0)], "anti-forecast"),
        (CROWD, "anti-forecast"),
    ],
    ids=["grid", "quantal cara", "crowd"],
)
def test_regret_stays_below_the_bound_of_the_basis(listeners: list[Any], stream: str) -> None:
    """Those who listen to points and to ensembles share a block, and its bound."""
    model = played(*listeners, adversary=stream, rounds=100)
    agents = model.agents_frame()
    assert len(model.game.blocks) == 1
    labels = agents.groupby("cohort", sort=False)["guarantee"].first()
    smooth = "smooth-decision-swap"
    assert [*labels] == [smooth if "eta" in one else "decision-swap" for one in listeners]
    regret = agents["decision_swap_regret"]
    assert (regret <= np.minimum(agents["bound_from_bias"] + 1e-9, agents["bound"])).all()
    assert regret.max() < 0.3 + np.log(4) / 20 * any("eta" in one for one in listeners)


def test_hard_agents_on_an_inexact_basis_are_promised_nothing_and_need_it() -> None:
    """Predictions lie on ties of the basis, and its error decides what a hard agent does there."""
    hard, smooth = (
        played(cohort("cara", **keys), rounds=200).agents_frame() for keys in ({}, {"eta": 20.0})
    )
    assert set(hard["guarantee"]) == {"none"}
    assert hard["bound"].isna().all()
    assert (hard["swap_regret"] <= hard["bound_from_bias"] + 1e-9).all()
    assert hard["swap_regret"].max() > 0.2
    assert smooth["swap_regret"].max() < 0.1


def test_a_label_costs_what_an_ensemble_does_not() -> None:
    """On a curved image certainty-equivalent agents keep their regret, ensemble agents do not."""
    ensemble, label, point = (
        played(cohort("cara", response), rounds=150, outcomes=3)
        .agents_frame()["swap_regret"]
        .mean()
        for response in ("ensemble", "certainty-equivalent", "best-response")
    )
    assert ensemble < 0.2 * label
    assert ensemble < 2 * point + 0.02


def test_an_error_of_the_basis_enters_a_quantal_bound() -> None:
    """The bound of ensemble agents is that of the basis and eta delta, once more."""
    model = played(cohort("cara", eta=20.0), rounds=5)
    block, seated = model.game.blocks[0], model.game.cohorts[0]
    forecaster: Any = block.forecaster
    weights = block.basis.coefficients(seated.loss)[1]
    expected = forecaster.bias_bound().regret(weights, policies=0)
    error = block.basis.certified_error(seated.loss)
    bound = model.guarantees[0].bound
    assert error > 0
    assert (bound() >= expected + (2 + 20.0) * error + np.log(4) / 20).all()


@pytest.mark.parametrize("kind", ["constant", "last-value", "running-mean", "calibration"])
def test_baselines_broadcast_the_nearest_ensemble(kind: str) -> None:
    rules: dict[str, Any] = {"kind": kind} | ({"cells": 2} if kind == "calibration" else {})
    model = market(EXACT["monomials"], forecaster=rules)
    block = model.game.blocks[0]
    assert isinstance(block.forecaster, EnsembleBroadcast)
    outcomes = []
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
    heard = Forecast(Mixture(np.zeros((1, 2)), np.ones(1)), 0)
    with pytest.raises(ValueError, match="no ensemble"):
        ExpectedLoss().predicted(heard, loss, (loss.offset, loss.weights))
