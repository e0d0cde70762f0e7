"""A market in which a round was cut off refuses to play the round twice."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import FollowersEnv, MarketModel, ScriptedAgent, UserError, register
from regretless.agents.adversaries import IID
from regretless.agents.learners import TotalLearner
from regretless.market.core.arrays import Array
from regretless.market.game.adversary_view import AdversaryView
from regretless.market.records import Context, Forecast, History, Mixture, OutcomeDistribution
from regretless.market.regret.pending_rounds import MAX_PENDING_ROUNDS

CUT_OFF_ROUND = 20


class Fault:
    """Is raised once, by whoever is told so, when the model has played so many rounds."""

    def __init__(self) -> None:
        self.faulty_call = ""
        self.error: type[BaseException] = ZeroDivisionError
        self.calls_left = 0

    def set(self, faulty_call: str, error: type[BaseException] = ZeroDivisionError) -> None:
        self.faulty_call = faulty_call
        self.error = error
        self.calls_left = CUT_OFF_ROUND + 1

    def reach(self, call: str) -> None:
        if call == self.faulty_call:
            self.calls_left -= 1
            if self.calls_left == 0:
                raise self.error


FAULT = Fault()


class OwnAgent(ScriptedAgent):
    """Plays what has cost little so far, perturbed."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.total = np.zeros(loss.actions)

    def act(self, forecast: Any, context: Any) -> int:
        perturbed_losses = self.total + self.rng.random(len(self.total))
        FAULT.reach("agent's act")
        return int(perturbed_losses.argmin())

    def learn(self, losses: Array, outcome: Array) -> None:
        self.total += losses
        FAULT.reach("agent's learn")

    def state(self) -> TomlTable:
        return {"total": self.total.copy()}

    def restore(self, state: TomlTable) -> None:
        self.total = state["total"].copy()


class OwnLearner(TotalLearner):
    """Mostly plays what has cost the least so far."""

    name = "own-learner"

    def step(self, losses: Array, actions: Any) -> Array:
        FAULT.reach("learner's step")
        return np.where(losses == losses.min(axis=1, keepdims=True), 0.7, 0.15)


class OwnForecaster:
    """Forecasts an average in which late outcomes weigh more."""

    def __init__(self, size: int) -> None:
        self.points = np.full((1, size), 0.5)

    def predict(self, x: Any = None) -> Forecast:
        FAULT.reach("forecaster's predict")
        return Forecast(Mixture(self.points, np.ones(1)), 0)

    def update(self, y: Array) -> None:
        FAULT.reach("forecaster's update")
        self.points = 0.9 * self.points + 0.1 * y

    def state(self) -> TomlTable:
        return {"points": self.points.copy()}

    def restore(self, state: TomlTable) -> None:
        self.points = state["points"].copy()


class OwnAdversary(IID):
    """Draws as the project's own, and is told of play."""

    def context(self, history: History) -> Context:
        context = super().context(history)
        FAULT.reach("adversary's context")
        return context

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        distribution = super().commit(context, history, announced)
        FAULT.reach("adversary's commit")
        return distribution

    def learn(self, payoff: Any, observation: Any) -> None:
        FAULT.reach("adversary's learn")


def own_measure(_model: MarketModel) -> float:
    FAULT.reach("measure")
    return 0.0


CALLS_THAT_LEARN = [
    "agent's learn",
    "learner's step",
    "forecaster's update",
    "adversary's learn",
    "measure",
]
CALLS_BEFORE_LEARNING = [
    "agent's act",
    "forecaster's predict",
    "adversary's context",
    "adversary's commit",
]


@pytest.fixture
def own_players(registries: None) -> None:
    """Register a player of each kind, none of whom fails so far."""
    FAULT.set("nowhere")
    register.agent("own-agent")(OwnAgent)
    register.learner("own-learner")(OwnLearner)
    register.forecaster("own-forecaster")(OwnForecaster)
    register.adversary("own-adversary")(OwnAdversary)
    register.measure("own-measure")(own_measure)


def build() -> MarketModel:
    return make_scenario(
        cohort_table("agents", 1, 3, response="own-agent"),
        cohort_table("learners", 1, 3, response="own-learner"),
        cohort_table("followers", 2, 3),
        adversary={"kind": "own-adversary", "outcomes": 2},
        forecaster={"kind": "own-forecaster"},
        measures=["own-measure"],
    ).build()


def cut_off_model(faulty_call: str, error: type[BaseException] = ZeroDivisionError) -> MarketModel:
    """Return a market whose round was cut off."""
    model = build()
    FAULT.set(faulty_call, error)
    with pytest.raises(UserError if issubclass(error, Exception) else error):
        model.run()
    return model


@pytest.mark.usefixtures("own_players")
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("faulty_call", CALLS_THAT_LEARN + CALLS_BEFORE_LEARNING)
def test_a_market_that_was_cut_off_refuses_to_go_on(
    faulty_call: str, error: type[BaseException]
) -> None:
    model = cut_off_model(faulty_call, error)
    ledgers = [cohort.ledger.state() for cohort in model.game.cohorts]
    refusal = f"^round 20 was cut off by {error.__name__}, .*build the market again.*"
    for go_on in (model.step, model.run, model.begin, lambda: model.run(CUT_OFF_ROUND + 2)):
        with pytest.raises(UserError, match=refusal) as refused:
            go_on()
        assert "\n" not in str(refused.value)
    for cohort, ledger in zip(model.game.cohorts, ledgers, strict=True):
        np.testing.assert_equal(cohort.ledger.state(), ledger)
    assert len(model.agents_frame()) == 4  # what there is can be read


@pytest.mark.usefixtures("own_players")
@pytest.mark.parametrize("faulty_call", CALLS_THAT_LEARN + CALLS_BEFORE_LEARNING)
def test_a_market_that_was_cut_off_and_is_restored_goes_on_as_if_it_had_not_been(
    faulty_call: str,
) -> None:
    undisturbed = build()
    undisturbed.run()
    model = build()
    model.run(CUT_OFF_ROUND - 5)
    state = model.state()
    FAULT.set(faulty_call)
    FAULT.calls_left = 3
    with pytest.raises(UserError):
        model.run()
    model.restore(state)
    assert model.steps == model.played
    model.run()
    assert model.steps == undisturbed.steps
    for name in ("agents", "swaps", "scores"):
        table = getattr(model, f"{name}_frame")()
        assert table.equals(getattr(undisturbed, f"{name}_frame")()), name


@pytest.mark.usefixtures("own_players")
def test_a_market_that_was_cut_off_is_neither_kept_nor_branched() -> None:
    model = cut_off_model("agent's learn")
    with pytest.raises(UserError, match=r"^round 20 was cut off by ZeroDivisionError"):
        model.state()
    with pytest.raises(UserError, match=r"^branch: round 20 was cut off by ZeroDivisionError"):
        model.branch()


@pytest.mark.usefixtures("own_players")
def test_a_market_that_was_cut_off_in_a_choice_is_neither_kept_nor_branched() -> None:
    model = cut_off_model("agent's act")
    with pytest.raises(UserError, match=r"^round 20 was cut off by ZeroDivisionError"):
        model.state()
    with pytest.raises(UserError, match=r"^branch: round 20 was cut off by ZeroDivisionError"):
        model.branch()


@pytest.mark.usefixtures("own_players")
def test_an_environment_that_was_cut_off_refuses_to_go_on_until_it_is_reset() -> None:
    scenario = make_scenario(
        cohort_table("agents", 1, 3, response="own-agent"), cohort_table("followers", 2, 3)
    )
    env = FollowersEnv(scenario)
    env.reset(seed=1)
    actions = dict.fromkeys(env.agents, 0)
    FAULT.set("agent's learn")
    FAULT.calls_left = 1
    with pytest.raises(ZeroDivisionError):
        env.step(actions)
    with pytest.raises(UserError, match=r"^round 0 was cut off by ZeroDivisionError"):
        env.step(actions)
    env.reset(seed=1)
    env.step(actions)


def model_whose_exploitability_is_followed() -> MarketModel:
    """Return a market of three agents of one's own."""
    agents = cohort_table("agents", 3, 3, response="own-agent", measures=["swap", "exploitability"])
    return make_scenario(agents, rounds=100).build()


def cut_off_in_an_agents_learn(model: MarketModel, *, finished_rounds: int) -> None:
    """Play until an agent fails to learn of the round after so many."""
    model.run(finished_rounds)
    FAULT.set("agent's learn")
    FAULT.calls_left = 1
    with pytest.raises(UserError):
        model.run()


def joint_distributions(model: MarketModel) -> Array:
    """Return how often each agent played each action at each outcome (K, A, m)."""
    assert model.tracker is not None
    return model.tracker.counts(0)


@pytest.mark.usefixtures("own_players")
@pytest.mark.parametrize("finished_rounds", [MAX_PENDING_ROUNDS, MAX_PENDING_ROUNDS + 1])
def test_exploitability_is_of_the_finished_rounds_where_agents_fail_to_learn_of_the_next(
    finished_rounds: int,
) -> None:
    finished = model_whose_exploitability_is_followed()
    finished.run(finished_rounds)
    cut_off = model_whose_exploitability_is_followed()
    cut_off_in_an_agents_learn(cut_off, finished_rounds=finished_rounds)

    np.testing.assert_array_equal(joint_distributions(cut_off), joint_distributions(finished))
    columns = ["exploitability", "exploitability_exact"]
    assert cut_off.agents_frame()[columns].equals(finished.agents_frame()[columns])
    assert finished.agents_frame()["exploitability_exact"].gt(0).any()


class CuriousAgent(OwnAgent):
    """Has somebody look at its regret when it learns of a round."""

    def learn(self, losses: Array, outcome: Array) -> None:
        super().learn(losses, outcome)
        look_at_regret()


def look_at_regret() -> None:
    """Do nothing, until a test looks at a ledger here."""


@pytest.mark.usefixtures("own_players")
def test_a_round_counts_once_in_exploitability_if_regret_is_read_before_it_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register.agent("curious-agent")(CuriousAgent)
    agents = cohort_table("agents", 3, 3, response="curious-agent", measures=["exploitability"])
    model = make_scenario(agents, rounds=100).build()
    model.run(5)

    ledger = model.game.cohorts[0].ledger
    monkeypatch.setitem(globals(), "look_at_regret", ledger.regret_sums)
    model.run(8)

    assert np.array_equal(joint_distributions(model).sum((1, 2)), [8, 8, 8])
