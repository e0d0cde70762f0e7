"""What an agent alone sees, meets or draws: signals, noise of its own, its own prediction."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from log_measures import measure_log
from small_scenarios import cohort_table, make_scenario, play_to_end, read_catalogue_scenario

from regretless import MarketModel, load, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.cohorts.responding import PrivateCohort
from regretless.agents.responses import Private
from regretless.agents.utilities import CES
from regretless.forecaster.guarantees.draws import swap_draws
from regretless.market.core.arrays import Array, Indices, draw_index, draw_rows
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear, SeparablePower, averaged
from regretless.market.records import Context, Decision, Forecast, Mixture
from regretless.market.regret.ledger import Ledger

WEIGHTS = np.array([[[0.2, 0.8], [0.6, 0.4]], [[0.5, 0.1], [0.9, 0.3]]])
LOSS = CES(WEIGHTS, rho=0.5, v=1.0, y_min=0.05).normalised()


def test_a_loss_averaged_over_noise_is_the_mean_over_draws() -> None:
    """Three nodes integrate polynomials of the fifth degree: a smooth loss nearly exactly."""
    outcome = np.array([0.5, 0.6])
    noise = np.random.default_rng(0).standard_normal((400_000, 1)) * [0.08, 0.0]
    mean_over_draws = LOSS.losses(np.clip(outcome + noise, 0, 1)).mean(0)
    averaged_losses = averaged(LOSS, 0.08, [0]).losses(outcome)
    assert averaged_losses == pytest.approx(mean_over_draws, abs=4e-4)


def test_a_loss_averaged_over_noise_lies_between_0_and_1() -> None:
    points = np.random.default_rng(1).uniform(0, 1, (500, 2))
    losses = averaged(LOSS, 0.3, [0, 1]).losses(points)
    assert losses.min() >= 0
    assert losses.max() <= 1


def test_a_loss_averaged_over_noise_is_no_steeper_than_it_says() -> None:
    points = np.random.default_rng(1).uniform(0, 1, (500, 2))
    averaged_loss = averaged(LOSS, 0.3, [0, 1])
    losses = averaged_loss.losses(points)
    distances = np.abs(np.diff(points, axis=0)).max(-1)[:, None]
    slopes = np.abs(np.diff(losses, axis=0)).max(-1) / distances
    assert (slopes <= averaged_loss.lipschitz() + 1e-9).all()


def test_a_loss_picked_from_an_averaged_stack_is_part_of_it() -> None:
    points = np.random.default_rng(1).uniform(0, 1, (500, 2))
    averaged_loss = averaged(LOSS, 0.3, [0, 1])
    assert averaged_loss[1].losses(points) == pytest.approx(averaged_loss.losses(points)[:, 1])


NOISY_ROUNDS = 200


@pytest.fixture(scope="module")
def market_with_noise() -> MarketModel:
    """Play four agents each of whom meets an outcome with noise of its own."""
    growers = cohort_table(
        "own",
        4,
        3,
        "ces",
        parameters={"rho": 0.5, "v": 1.0, "y_min": 0.05},
        idiosyncratic={"deviation": 0.2},
    )
    return play_to_end(make_scenario(growers, rounds=NOISY_ROUNDS), seed=2)


def test_a_cohort_with_noise_keeps_its_promise(market_with_noise: MarketModel) -> None:
    agents = market_with_noise.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


def test_an_agent_with_noise_is_charged_its_averaged_loss(market_with_noise: MarketModel) -> None:
    cohort = market_with_noise.game.cohorts[0]
    outcomes = market_with_noise.rounds_frame()[["y_0", "y_1"]].to_numpy()
    actions = market_with_noise.regret_frame().query("agent == 2")["action"].to_numpy()
    losses = cohort.loss[int(cohort.row_of[1])].losses(outcomes)
    losses_of_play = losses[np.arange(NOISY_ROUNDS), actions]
    mean_loss = market_with_noise.agents_frame()["mean_loss"][1]
    assert mean_loss == pytest.approx(losses_of_play.mean(), abs=1e-12)


@register.agent("listener")
class Listener(ScriptedAgent):
    """Plays 1 where its signal is high."""

    columns = ("signal_seen",)
    signal_seen = 0.0

    def act(self, forecast: Forecast, context: Context) -> int:
        self.signal_seen = context["signal"]
        return int(self.signal_seen > 0.5)


@register.agent("listeners")
class Listeners(ScriptedCrowd):
    """The same, all at once."""

    columns = ("signal_seen",)
    signal_seen: float | Array = 0.0

    def act_many(self, forecasts: Forecast, contexts: Context) -> Indices:
        self.signal_seen = contexts["signal"]
        return np.asarray((self.signal_seen > 0.5).astype(int))


class HeardSignals(NamedTuple):
    """A played market, the noise of each agent, what came and what each saw of it."""

    model: MarketModel
    noise: Array  # (N,)
    outcomes: Array  # (T, 2): rain and sun
    signals: Array  # (T, N)


@cache
def heard_signals(response: str) -> HeardSignals:
    """Play four agents who see the sun, two of them or so with noise."""
    listeners = cohort_table(
        "own",
        4,
        response=response,
        signal={"coordinate": "sun", "noise": {"choices": [0.0, 0.3]}},
        policies=["high"],
    )
    other_cohort = cohort_table("others", 2)
    high = {"kind": "threshold", "feature": "signal", "at": 0.5, "below": 0, "above": 1}
    scenario = make_scenario(
        listeners,
        other_cohort,
        rounds=NOISY_ROUNDS,
        adversary={"kind": "iid", "outcomes": ["rain", "sun"]},
        policy={"high": high},
    )
    model = play_to_end(scenario)
    states = model.states_frame().pivot_table(index="round", columns="agent", values="signal_seen")
    noise = model.game.seats[0].signal.noise
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    return HeardSignals(model, noise, outcomes, states.to_numpy())


every_listener = pytest.mark.parametrize("response", ["listener", "listeners"])


@every_listener
def test_a_signal_is_the_outcome_with_noise_of_the_agents_size(response: str) -> None:
    _, noise, outcomes, signals = heard_signals(response)
    errors = signals - outcomes[:, [1]]
    assert set(noise) == {0.0, 0.3}
    assert errors.std(0) == pytest.approx(noise, rel=0.2)
    assert not errors[:, noise == 0].any()


@every_listener
def test_the_noise_of_one_agent_says_nothing_of_anothers(response: str) -> None:
    _, noise, outcomes, signals = heard_signals(response)
    errors = (signals - outcomes[:, [1]])[:, noise > 0]
    if errors.shape[1] > 1:
        assert abs(np.corrcoef(errors.T)[0, 1]) < 0.25


@every_listener
def test_a_policy_that_hears_the_signal_is_scored_by_what_each_agent_saw(response: str) -> None:
    model, _, outcomes, signals = heard_signals(response)
    cohort = model.game.cohorts[0]
    log = model.regret_frame()
    agents = model.agents_frame()
    always_0 = np.zeros(NOISY_ROUNDS, dtype=int)
    always_1 = np.ones(NOISY_ROUNDS, dtype=int)
    for agent, row in enumerate(cohort.row_of):
        losses = cohort.loss[int(row)].losses(outcomes)
        actions = log[log["agent"] == agent + 1]["action"].to_numpy()
        as_the_signal_says = (signals[:, agent] >= 0.5).astype(int)
        policies = np.stack([always_0, always_1, as_the_signal_says])
        expected = measure_log("decision_swap", losses, actions, policies)
        regret = agents["decision_swap_regret"][agent]
        assert regret == pytest.approx(expected, abs=1e-12), f"agent {agent}"


HEARERS = 4000
CHOOSES_1_ABOVE_A_HALF = Linear(
    np.tile([[[1.0], [0.0]]], (HEARERS, 1, 1)), np.tile([0.0, 0.5], (HEARERS, 1))
)
MIXTURE_OF_THREE = Mixture(np.array([[0.4], [0.6], [0.9]]), np.array([0.25, 0.25, 0.5]))


@pytest.fixture
def private_cohort() -> PrivateCohort:
    """Return agents who each hear a draw of their own, and play 1 where it is above a half."""
    return PrivateCohort(
        "own",
        "linear",
        block=0,
        response=Private(),
        row_of=np.arange(HEARERS),
        coefficients=(CHOOSES_1_ABOVE_A_HALF.offset, CHOOSES_1_ABOVE_A_HALF.weights),
        loss=CHOOSES_1_ABOVE_A_HALF,
        ledger=Ledger(HEARERS, 2),
        rng=stream(1, "referee", "own", "play"),
    )


def test_each_agent_hears_its_own_draw_and_the_shares_are_those_of_the_mixture(
    private_cohort: PrivateCohort,
) -> None:
    decision = private_cohort.decide(Forecast(MIXTURE_OF_THREE, 0), Context())
    predictions = decision.predicted[:, 0]
    points, hearers = np.unique(predictions, return_counts=True)
    four_errors = 4 * 0.5 / np.sqrt(HEARERS)
    assert points == pytest.approx(MIXTURE_OF_THREE.points[:, 0])
    assert hearers / HEARERS == pytest.approx(MIXTURE_OF_THREE.weights, abs=four_errors)
    assert (decision.actions == (predictions > 0.5)).all()


def test_the_strategy_of_private_agents_is_what_they_do_over_all_draws(
    private_cohort: PrivateCohort,
) -> None:
    strategy = private_cohort.strategy(MIXTURE_OF_THREE, Context())
    assert strategy == pytest.approx(np.tile([0.25, 0.75], (HEARERS, 1)))


def bound_term_of_draws(rounds: int, *, promises: int, actions: int, comparators: int) -> float:
    """Return what private draws add per round to a bound, whatever the mixtures were."""
    variations = np.array([[rounds], [2.0 * rounds]])
    draws = swap_draws(variations, promises=promises, actions=actions, comparators=comparators)
    return float(draws[0] / rounds)


@cache
def agents_of_crop_choice(response: str) -> pd.DataFrame:
    """Play 200 growers of five types for 20 rounds."""
    scenario = load(
        "crop-choice",
        rounds=20,
        forecaster={"models": []},
        **{"cohort.growers.types": 5, "cohort.growers.response": response},
    )
    return play_to_end(scenario).agents_frame()


@pytest.mark.parametrize("response", ["best-response", "private"])
def test_private_draws_keep_the_guarantee_where_there_is_no_market(response: str) -> None:
    agents = agents_of_crop_choice(response)
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


def test_the_bound_of_private_draws_is_the_theorems_with_a_union_over_agents() -> None:
    """It is wider than that of a common draw by draws of 200 agents in place of 5 losses'."""
    bound = agents_of_crop_choice("private")["bound"]
    wider = bound - agents_of_crop_choice("best-response")["bound"]
    of_losses = bound_term_of_draws(20, promises=5, actions=6, comparators=8)
    of_agents = bound_term_of_draws(20, promises=200, actions=6, comparators=8)
    assert (wider >= of_agents - of_losses - 1e-12).all()  # a common draw's variance is known
    assert (wider <= of_agents + 1e-12).all()


COHORT_OF_MARKET = {
    "own-draws": "followers",
    "el-farol": "guests",
    "pigou": "drivers",
    "oligopoly": "firms",
}


def market_of_private_agents(name: str, *assignments: str) -> MarketModel:
    """Build a named market that answers at once, whose agents draw for themselves."""
    answers_at_once = ["market.feedback='same-round'", "market.adjustment=1.0"]
    if name == "el-farol":
        answers_at_once = []  # it always does
    scenario = read_catalogue_scenario(
        name,
        f"cohort.{COHORT_OF_MARKET[name]}.response='private'",
        *assignments,
        *answers_at_once,
        measures=["swap", "decision_swap"],
    )
    return scenario.build(seed=1, log_every=10**6)


@pytest.mark.parametrize("name", COHORT_OF_MARKET)
def test_nobody_moves_outcomes_by_more_than_its_market_says(name: str) -> None:
    """The first agent tries every action, whatever the others do."""
    model = market_of_private_agents(name, "rounds=1")
    market = model.game.market
    cohort = model.game.cohorts[0]
    claimed_impact = market.price_impact(0)[0]
    rng = np.random.default_rng(0)
    state = market.state()
    fundamental = np.full(cohort.loss.outcomes, 0.5)
    greatest_move = np.zeros(len(claimed_impact))
    for _ in range(20):
        actions = rng.integers(cohort.loss.actions, size=len(cohort.row_of))
        outcomes = []
        for own_action in range(cohort.loss.actions):
            actions[0] = own_action
            market.restore(state)
            decision = Decision(np.zeros(cohort.loss.offset.shape), actions.copy())
            outcomes.append(market.clear(fundamental, [decision]))
        moves = np.abs(np.subtract(outcomes, outcomes[0])).max(0)
        greatest_move = np.maximum(greatest_move, moves)
    assert (greatest_move <= claimed_impact + 1e-12).all()
    assert greatest_move.max() >= 0.99 * claimed_impact.max()


def test_what_own_actions_matter_is_the_widest_gap_over_all_small_moves() -> None:
    """Between the losses of two actions of a linear loss, over the corners of the moves."""
    rng = np.random.default_rng(2)
    loss = Linear(rng.normal(size=(5, 3, 2)), rng.normal(size=(5, 3)))
    price_impact = rng.random((5, 2))
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    expected = []
    for row, impact in enumerate(price_impact):
        changes = loss[row].losses(0.3 + corners * impact) - loss[row].losses([0.3, 0.3])
        gaps = changes[:, :, None] - changes[:, None]
        expected.append(gaps.max())
    assert loss.moved(price_impact) == pytest.approx(np.array(expected))


def test_what_own_actions_matter_in_a_curved_loss_is_bounded_by_its_slope() -> None:
    curved = SeparablePower(np.ones((1, 2, 1)), np.array([2.0]))
    assert curved.moved(np.array([[0.1]])) == pytest.approx(0.1 * 2 * curved.lipschitz())


class PrivateRun(NamedTuple):
    """A played market of private agents and the regret (K,) of the strategy that they follow."""

    model: MarketModel
    regret_of_strategy: Array


PRIVATE_ROUNDS = 400


@cache
def private_run(name: str) -> PrivateRun:
    count = f"cohort.{COHORT_OF_MARKET[name]}.count=20"
    model = market_of_private_agents(name, f"rounds={PRIVATE_ROUNDS}", count)
    cohort = model.game.cohorts[0]
    block = model.game.blocks[0]
    rows, actions = cohort.loss.offset.shape
    loss_of_replacement = np.zeros((rows, actions, actions))
    while model.played < PRIVATE_ROUNDS:
        strategy = cohort.strategy(block.mixture(Context()), Context())
        losses = cohort.loss.losses(model.conclude(model.begin()).outcome)
        loss_of_replacement += strategy[:, :, None] * losses[:, None, :]
    own_loss = np.einsum("kaa->ka", loss_of_replacement)
    regret = (own_loss - loss_of_replacement.min(2)).sum(1) / PRIVATE_ROUNDS
    return PrivateRun(model, regret)


every_private_market = pytest.mark.parametrize("name", ["own-draws", "el-farol"])


@every_private_market
def test_regret_exceeds_that_of_the_induced_strategy_by_less_than_the_own_sway(name: str) -> None:
    """Steps 2 and 3 of the proof: what draws and own moves of the outcome add."""
    model, regret_of_strategy = private_run(name)
    cohort = model.game.cohorts[0]
    rows, actions = cohort.loss.offset.shape
    sway = cohort.loss.moved(model.game.market.price_impact(0))
    of_draws = bound_term_of_draws(
        PRIVATE_ROUNDS, promises=rows, actions=actions, comparators=actions
    )
    regret = cohort.ledger.regret("swap")
    assert (regret <= regret_of_strategy + of_draws + sway).all()
    assert regret_of_strategy.mean() < 0.6 * regret.mean()


@every_private_market
def test_the_regret_of_the_induced_strategy_is_the_theorems(name: str) -> None:
    """Step 1 of the proof."""
    model, regret_of_strategy = private_run(name)
    _, weights = model.game.cohorts[0].coefficients
    bound = model.game.blocks[0].forecaster.bias_bound().a_priori(weights)
    assert (regret_of_strategy <= bound).all()


def test_draws_follow_the_inverse_distribution_function() -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5), 7)
    uniforms = rng.random(500)
    row_of = rng.integers(0, 7, 500)
    cumulative = np.cumsum(weights, axis=1)
    expected = []
    for row, uniform in zip(row_of, uniforms, strict=True):
        expected.append(np.searchsorted(cumulative[row], uniform, side="right"))
    assert draw_rows(weights, uniforms, row_of).tolist() == expected


def test_a_uniform_number_on_a_boundary_draws_the_action_above_it() -> None:
    weights = np.array([[0.25, 0.75]] * 2)
    assert draw_rows(weights, np.array([0.25, 0.0])).tolist() == [1, 0]


def test_a_draw_takes_one_number() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(5))
    rng = np.random.default_rng(2)
    drawn_one_by_one = [draw_index(weights, rng) for _ in range(50)]
    uniforms = np.random.default_rng(2).random(50)
    assert drawn_one_by_one == draw_rows(np.tile(weights, (50, 1)), uniforms).tolist()


def test_a_draw_is_by_the_inverse_of_the_distribution_function() -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(7)) * 3.0  # read relative to their sum
    rng = np.random.default_rng(3)
    drawn = [draw_index(weights, rng) for _ in range(200)]
    cumulative = np.cumsum(weights)
    shares = np.random.default_rng(3).random(200) * cumulative[-1]
    assert drawn == np.searchsorted(cumulative, shares, side="right").tolist()


@pytest.mark.parametrize("size", [3, 10, 100])
def test_rounding_never_draws_a_weight_of_0(size: int) -> None:
    weights = np.random.default_rng(size).dirichlet(np.ones(size), 500) * (1 - 1e-9)
    last_is_0 = np.append(weights, np.zeros((500, 1)), axis=1)
    nearly_1 = np.full(500, np.nextafter(1.0, 0.0))
    assert (draw_rows(last_is_0, nearly_1) < size).all()
    first_is_0 = last_is_0[:, ::-1]
    assert (draw_rows(first_is_0, np.zeros(500)) > 0).all()
