"""What an agent alone sees, meets or draws: signals, noise of its own, its own prediction."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless import MarketModel, load, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.cohorts.responding import PrivateCohort
from regretless.agents.responses import Private
from regretless.agents.utilities import CES
from regretless.forecaster.guarantees.draws import swap_draws
from regretless.market.core.arrays import draw_index, draw_rows
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear, SeparablePower, averaged
from regretless.market.records import Context, Decision, Forecast, Mixture
from regretless.market.regret.ledger import Ledger

WEIGHTS = np.array([[[0.2, 0.8], [0.6, 0.4]], [[0.5, 0.1], [0.9, 0.3]]])
LOSS = CES(WEIGHTS, rho=0.5, v=1.0, y_min=0.05).normalised()
COHORT = {"own-draws": "followers", "el-farol": "guests", "pigou": "drivers", "oligopoly": "firms"}


def test_noise_is_averaged_within_the_range_and_the_slope() -> None:
    """Three nodes integrate polynomials of the fifth degree: a smooth loss nearly exactly."""
    rng, y = np.random.default_rng(0), np.array([0.5, 0.6])
    noise = rng.standard_normal((400_000, 1)) * [0.08, 0.0]
    drawn = LOSS.losses(np.clip(y + noise, 0, 1)).mean(0)
    assert averaged(LOSS, 0.08, [0]).losses(y) == pytest.approx(drawn, abs=4e-4)
    shaken, points = averaged(LOSS, 0.3, [0, 1]), rng.uniform(0, 1, (500, 2))
    values = shaken.losses(points)
    assert 0 <= values.min() <= values.max() <= 1
    far = np.abs(np.diff(points, axis=0)).max(-1)[:, None]
    rise = np.abs(values[1:] - values[:-1]).max(-1) / far
    assert (rise <= shaken.lipschitz() + 1e-9).all()
    assert shaken[1].losses(points) == pytest.approx(values[:, 1])


def test_a_cohort_with_noise_keeps_its_promise() -> None:
    parameters = {"rho": 0.5, "v": 1.0, "y_min": 0.05}
    own = worlds.cohort("own", 4, 3, "ces", parameters=parameters, idiosyncratic={"deviation": 0.2})
    model = worlds.played(worlds.scenario(own, rounds=200), seed=2)
    agents, cohort = model.agents_frame(), model.game.cohorts[0]
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    played = model.regret_frame().query("agent == 2")["action"].to_numpy()
    expected = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[np.arange(200), played].mean()
    assert agents["mean_loss"][1] == pytest.approx(expected, abs=1e-12)


@register.agent("listener")
class Listener(ScriptedAgent):
    """Plays 1 where its signal is high."""

    columns, seen = ("seen",), 0.0

    def act(self, forecast: Any, context: Any) -> int:
        self.seen = context["signal"]
        return int(self.seen > 0.5)


@register.agent("listeners")
class Listeners(ScriptedCrowd):
    """The same, all at once."""

    columns, seen = ("seen",), 0.0

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        self.seen = contexts["signal"]
        return (self.seen > 0.5).astype(int)


@pytest.mark.parametrize("response", ["listener", "listeners"])
def test_a_signal_is_the_outcome_and_own_noise_and_policies_are_scored_by_it(response: str) -> None:
    signal = {"coordinate": "sun", "noise": {"choices": [0.0, 0.3]}}
    own = worlds.cohort("own", 4, response=response, signal=signal, policies=["high"])
    high = {"kind": "threshold", "feature": "signal", "at": 0.5, "below": 0, "above": 1}
    given = {"adversary": {"kind": "iid", "outcomes": ["rain", "sun"]}, "policy": {"high": high}}
    model = worlds.played(worlds.scenario(own, worlds.cohort("x", 2), rounds=200, **given))
    noise, cohort = model.game.seats[0].signal.noise, model.game.cohorts[0]  # type: ignore[union-attr]
    assert set(noise) == {0.0, 0.3}
    truth = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    seen = model.states_frame().pivot(index="round", columns="agent", values="seen").to_numpy()
    error = seen - truth[:, [1]]
    assert error.std(0) == pytest.approx(noise, rel=0.2)
    assert not error[:, noise == 0].any()
    noisy = error[:, noise > 0]
    assert noisy.shape[1] < 2 or abs(np.corrcoef(noisy.T)[0, 1]) < 0.25
    log, found = model.regret_frame(), model.agents_frame()["decision_swap_regret"]
    for agent, row in enumerate(cohort.row_of):
        losses, played = cohort.loss[int(row)].losses(truth), log[log["agent"] == agent + 1]
        told = (seen[:, agent] >= 0.5).astype(int)
        fixed = np.stack([np.zeros(200, dtype=int), np.ones(200, dtype=int), told])
        expected = worlds.measured("decision_swap", losses, played["action"].to_numpy(), fixed)
        assert found[agent] == pytest.approx(expected, abs=1e-12)


def draw_term(rounds: int, **sizes: int) -> float:
    """Return what private draws add per round to a bound, whatever the mixtures were."""
    return float(swap_draws(np.array([[rounds], [2.0 * rounds]]), **sizes)[0] / rounds)


def built(name: str, *assignments: str) -> MarketModel:
    """Build a named market that answers at once, whose agents draw for themselves."""
    own = [f"cohort.{COHORT[name]}.response='private'", *assignments]
    if name != "el-farol":
        own += ["market.feedback='same-round'", "market.adjustment=1.0"]
    return worlds.lean(name, *own, measures=worlds.FEW[1:]).build(seed=1, log_every=10**6)


def test_each_agent_hears_its_own_draw_and_the_shares_are_those_of_the_mixture() -> None:
    loss = Linear(np.tile([[[1.0], [0.0]]], (4000, 1, 1)), np.tile([0.0, 0.5], (4000, 1)))
    own: Any = {"row_of": np.arange(4000), "coefficients": (loss.offset, loss.weights)}
    own |= {"loss": loss, "ledger": Ledger(4000, 2), "rng": stream(1, "referee", "own", "play")}
    cohort = PrivateCohort("own", "linear", block=0, response=Private(), **own)
    mixture = Mixture(np.array([[0.4], [0.6], [0.9]]), np.array([0.25, 0.25, 0.5]))
    decision = cohort.decide(Forecast(mixture, 0), Context())
    heard, counts = np.unique(decision.predicted[:, 0], return_counts=True)
    assert heard == pytest.approx(mixture.points[:, 0])
    assert counts / 4000 == pytest.approx(mixture.weights, abs=4 * 0.5 / np.sqrt(4000))
    assert (decision.actions == (decision.predicted[:, 0] > 0.5)).all()
    strategy = cohort.strategy(mixture, Context())
    assert strategy == pytest.approx(np.tile([0.25, 0.75], (4000, 1)))


def test_without_a_market_the_bound_is_the_theorems_with_a_union_over_agents() -> None:
    bounds = {}
    for response in ("best-response", "private"):
        keys = {"rounds": 20, "forecaster": {"models": []}, "cohort.growers.types": 5}
        given = load("crop-choice", **keys, **{"cohort.growers.response": response})
        frame = worlds.played(given).agents_frame()
        assert (frame["guarantee"] == "decision-swap").all()
        assert (frame["decision_swap_regret"] <= frame["bound_from_bias"] + 1e-9).all()
        bounds[response] = frame["bound"].to_numpy()
    wider = bounds["private"] - bounds["best-response"]
    terms = [draw_term(20, promises=losses, actions=6, comparators=8) for losses in (5, 200)]
    assert (wider >= terms[1] - terms[0] - 1e-12).all()  # and the common draw's variance is known
    assert (wider <= terms[1] + 1e-12).all()


@pytest.mark.parametrize("name", COHORT)
def test_nobody_moves_outcomes_by_more_than_its_market_says(name: str) -> None:
    model = built(name, "rounds=1")
    market, (cohort,) = model.game.market, model.game.cohorts
    claimed, rng = market.price_impact(0), np.random.default_rng(0)
    state, most = market.state(), np.zeros(claimed.shape[1])
    fundamental = np.full(cohort.loss.outcomes, 0.5)
    for _ in range(20):
        play, came = rng.integers(cohort.loss.actions, size=len(cohort.row_of)), []
        for play[0] in range(cohort.loss.actions):
            market.restore(state)
            made = Decision(np.zeros(cohort.loss.offset.shape), play.copy())
            came.append(market.clear(fundamental, [made]))
        most = np.maximum(most, np.abs(np.subtract(came, came[0])).max(0))
    assert (most <= claimed[0] + 1e-12).all()
    assert most.max() >= 0.99 * claimed[0].max()


def test_what_own_actions_matter_is_the_widest_gap_over_all_small_moves() -> None:
    rng, corners = np.random.default_rng(2), np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    loss = Linear(rng.normal(size=(5, 3, 2)), rng.normal(size=(5, 3)))
    price_impact, moved = rng.random((5, 2)), []
    for k, impact in enumerate(price_impact):
        gaps = loss[k].losses(0.3 + corners * impact) - loss[k].losses([0.3, 0.3])
        moved.append((gaps[:, :, None] - gaps[:, None]).max())
    assert loss.moved(price_impact) == pytest.approx(np.array(moved))
    curved = SeparablePower(np.ones((1, 2, 1)), np.array([2.0]))
    assert curved.moved(np.array([[0.1]])) == pytest.approx(0.1 * 2 * curved.lipschitz())


@pytest.mark.parametrize("name", ["own-draws", "el-farol"])
def test_regret_exceeds_that_of_the_induced_strategy_by_less_than_the_own_sway(name: str) -> None:
    """The proof's steps 2 and 3, and step 1: regret of the strategy is the theorem's."""
    model = built(name, "rounds=400", f"cohort.{COHORT[name]}.count=20")
    cohort, block = model.game.cohorts[0], model.game.blocks[0]
    rows, actions = cohort.loss.offset.shape
    induced = np.zeros((rows, actions, actions))
    while model.played < 400:
        strategy = cohort.strategy(block.mixture(Context()), Context())
        losses = cohort.loss.losses(model.conclude(model.begin()).outcome)
        induced += strategy[:, :, None] * losses[:, None, :]
    of_strategy = (np.einsum("kaa->ka", induced) - induced.min(2)).sum(1) / 400
    sway = cohort.loss.moved(model.game.market.price_impact(0))
    drawn = draw_term(400, promises=rows, actions=actions, comparators=actions)
    own = cohort.ledger.regret("swap")
    assert (own <= of_strategy + drawn + sway).all()
    theorem = block.forecaster.bias_bound().a_priori(cohort.coefficients[1])  # type: ignore[attr-defined]
    assert (of_strategy <= theorem).all()
    assert of_strategy.mean() < 0.6 * own.mean()


def test_draws_follow_the_inverse_distribution_function() -> None:
    rng = np.random.default_rng(0)
    weights, uniforms = rng.dirichlet(np.ones(5), 7), rng.random(500)
    row_of, sums = rng.integers(0, 7, 500), np.cumsum(weights, axis=1)
    expected = [np.searchsorted(sums[row], u, side="right") for row, u in zip(row_of, uniforms)]  # noqa: B905
    assert draw_rows(weights, uniforms, row_of).tolist() == expected
    on_a_boundary = draw_rows(np.array([[0.25, 0.75]] * 2), np.array([0.25, 0.0]))
    assert on_a_boundary.tolist() == [1, 0]
    one, same = np.random.default_rng(2), np.random.default_rng(2)  # a draw takes one number
    drawn = [draw_index(weights[0], one) for _ in range(50)]
    assert drawn == draw_rows(np.tile(weights[0], (50, 1)), same.random(50)).tolist()
    for size in (3, 10, 100):  # rounding never draws a weight of 0
        weights = np.append(rng.dirichlet(np.ones(size), 500) * (1 - 1e-9), np.zeros((500, 1)), 1)
        assert (draw_rows(weights, np.full(500, np.nextafter(1.0, 0.0))) < size).all()
        assert (draw_rows(weights[:, ::-1], np.zeros(500)) > 0).all()
