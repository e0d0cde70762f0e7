"""Rounds of a user's own agents that are played as blocks are those of the general path."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import MarketModel, ScriptedAgent, UserError, register
from regretless.agents.adversaries import IID
from regretless.agents.cohorts import scripted_rounds
from regretless.market.core.arrays import Array

N_ROUNDS = 120


class Averaging(ScriptedAgent):
    """Mostly plays the price that it thinks the best, else a random one."""

    columns = ("estimate",)

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.estimates = np.zeros(loss.actions)
        self.outcomes = 0.0

    @property
    def estimate(self) -> float:
        return float(self.estimates[0])

    def act(self, forecast: Any, context: Any) -> int:
        assert forecast.statistics.tolist() == [0.5]
        assert not context.names
        if self.rng.random() < 0.2:
            return int(self.rng.integers(len(self.estimates)))
        return int(self.estimates.argmin())

    def learn(self, losses: Array, outcome: Array) -> None:
        assert not losses.flags.writeable
        assert not outcome.flags.writeable
        self.estimates += 0.1 * (losses - self.estimates)
        self.outcomes += float(outcome[0])

    def state(self) -> TomlTable:
        return {"estimates": self.estimates.copy()}

    def restore(self, state: TomlTable) -> None:
        self.estimates = state["estimates"].copy()


class Mixing(Averaging):
    """Plays a mixed strategy."""

    def act(self, forecast: Any, context: Any) -> Any:
        weights = np.exp(-4.0 * self.estimates)
        return weights / weights.sum()


class Watching(Averaging):
    """Looks at the model from round 40 on, and does what its opponent did last."""

    def act(self, forecast: Any, context: Any) -> int:
        own_choice = super().act(forecast, context)
        self.rounds_acted = getattr(self, "rounds_acted", 0) + 1
        if self.rounds_acted <= 40:
            return own_choice
        assert self.model.played == self.rounds_acted - 1
        assert self.model.game.cohorts[0].ledger.rounds == self.model.played
        return int(self.model.last_actions(0)[0])


class Learning(Averaging):
    """Looks at the model while it learns, from round 40 on, and remembers what it saw."""

    def learn(self, losses: Array, outcome: Array) -> None:
        super().learn(losses, outcome)
        self.rounds_learned = getattr(self, "rounds_learned", 0) + 1
        if self.rounds_learned > 40:
            rounds_of_ledgers = [cohort.ledger.rounds for cohort in self.model.game.cohorts]
            counted = self.model.game.market.profile_counts.sum()
            seen = [self.model.played, self.model.steps, counted, *rounds_of_ledgers]
            self.estimates = self.estimates + 1e-3 * np.array(seen[: len(self.estimates)])
            self.outcomes += float(np.arange(1, len(seen) + 1) @ seen)


class Counting(Averaging):
    """Asks Mesa from the first round on how many rounds have begun."""

    def act(self, forecast: Any, context: Any) -> int:
        return int(self.model.steps) % len(self.estimates)


class Leaving(Averaging):
    """Leaves in round 40."""

    def act(self, forecast: Any, context: Any) -> int:
        self.rounds_acted = getattr(self, "rounds_acted", 0) + 1
        if self.rounds_acted == 41:
            self.leave()
        return super().act(forecast, context)


class Failing(Averaging):
    """Fails in round 60."""

    def learn(self, losses: Array, outcome: Array) -> None:
        self.rounds_learned = getattr(self, "rounds_learned", 0) + 1
        if self.rounds_learned == 61:
            raise ZeroDivisionError("no price is left")


class Mistaken(Averaging):
    """Plays a price that there is not in round 60."""

    def act(self, forecast: Any, context: Any) -> int:
        self.rounds_acted = getattr(self, "rounds_acted", 0) + 1
        return 99 if self.rounds_acted == 61 else 0


Build = Callable[..., MarketModel]


@pytest.fixture
def build(registries: None) -> Build:
    """Build a market of two agents of a class beside one that averages."""

    def build_market(agent_class: type[ScriptedAgent], **keys: Any) -> MarketModel:
        for name, registered in (("averaging-prices", Averaging), ("of-test", agent_class)):
            if name not in register.agent:
                register.agent(name)(registered)
        prices = {"cost": [0.9, 1.1], "quality": 2.0, "lowest": 1.4, "highest": 2.0}
        cohorts = []
        for name, count, actions in (("averaging-prices", 1, 3), ("of-test", 2, 4)):
            cohorts.append(
                cohort_table(
                    name,
                    count,
                    actions,
                    "seller",
                    parameters=prices,
                    response=name,
                    measures=["external", "swap"],
                )
            )
        tables: TomlTable = {
            "adversary": {"kind": "iid", "outcomes": 1},
            "market": {"kind": "price-competition", "outside": 0.0},
            "forecaster": {"kind": "none"},
            "logs": "summary",
            "windows": {"starts": [10, 70], "length": 30},
        }
        scenario = make_scenario(*cohorts, rounds=N_ROUNDS, **(tables | keys))
        return scenario.build(seed=3, log_every=50)

    return build_market


def assert_same(model: MarketModel, general: MarketModel) -> None:
    """Compare tables, ledgers and what agents think, bit by bit."""
    for frame in ("agents_frame", "regret_frame", "windows_frame", "rounds_frame"):
        assert getattr(model, frame)().equals(getattr(general, frame)()), frame
    for cohort, other in zip(model.game.cohorts, general.game.cohorts, strict=True):
        for name, sums in other.ledger.state().items():
            assert np.array_equal(cohort.ledger.state()[name], sums), name
        for agent, other_agent in zip(cohort.agents, other.agents, strict=True):
            assert np.array_equal(agent.estimates, other_agent.estimates)
            assert agent.outcomes == other_agent.outcomes
            assert agent.rng.bit_generator.state == other_agent.rng.bit_generator.state
    history = model.game.history
    assert np.array_equal(history.last(N_ROUNDS), general.game.history.last(N_ROUNDS))
    assert np.array_equal(history.mean, general.game.history.mean)
    market: Any = model.game.market
    general_market: Any = general.game.market
    assert (market.profile_counts == general_market.profile_counts).all()


@pytest.mark.parametrize("agent_class", [Averaging, Mixing, Watching, Learning, Counting, Leaving])
def test_blocks_are_the_rounds_of_the_general_path(
    build: Build, agent_class: type[ScriptedAgent]
) -> None:
    model = build(agent_class)
    assert model.compiled is not None
    general = build(agent_class)
    general.compiled = None
    model.run()
    general.run()
    assert_same(model, general)


def test_rounds_are_played_on_the_general_path_once_an_agent_has_looked(build: Build) -> None:
    model = build(Watching)
    player = model.compiled
    assert player is not None
    model.run(40)
    assert player.can_play
    model.run(41)
    assert not player.can_play


@pytest.mark.parametrize(
    ("agent_class", "complaint"),
    [
        (Failing, "round 60: .*Failing.learn.*no price is left"),
        (Mistaken, "round 60: .*Mistaken.act chose action 99"),
    ],
)
def test_a_fault_in_a_block_names_its_round(
    build: Build, agent_class: type[ScriptedAgent], complaint: str
) -> None:
    model = build(agent_class)
    model.run(30)
    with pytest.raises(UserError, match=complaint):
        model.run()
    assert model.played == 60


class CutOff(Averaging):
    """One agent is cut off once, in round 60, before it decides or before it learns anything."""

    method = "act"
    error: type[BaseException] = ZeroDivisionError
    was_cut_off = False
    looks_at_model = False  # in that round, while it learns
    rounds_learned = 0

    def cut_off(self, method: str) -> None:
        is_time = method == self.method and self.rounds_learned == 60 and self.number == 2
        if is_time and not CutOff.was_cut_off:
            CutOff.was_cut_off = True
            raise self.error

    def act(self, forecast: Any, context: Any) -> int:
        self.cut_off("act")
        return super().act(forecast, context)

    def learn(self, losses: Array, outcome: Array) -> None:
        if self.looks_at_model and self.rounds_learned == 60:
            assert self.model.played == 60
        self.cut_off("learn")
        super().learn(losses, outcome)
        self.rounds_learned += 1


@pytest.mark.parametrize("looks_at_model", [False, True])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("method", ["act", "learn"])
def test_a_market_that_was_cut_off_in_a_block_goes_on_as_if_it_had_not_been(
    build: Build,
    method: str,
    error: type[BaseException],
    looks_at_model: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CutOff, "method", method)
    monkeypatch.setattr(CutOff, "error", error)
    monkeypatch.setattr(CutOff, "looks_at_model", looks_at_model)
    monkeypatch.setattr(CutOff, "was_cut_off", True)  # and never again
    undisturbed = build(CutOff)
    undisturbed.run()
    monkeypatch.setattr(CutOff, "was_cut_off", False)
    model = build(CutOff)
    with pytest.raises(UserError if error is ZeroDivisionError else KeyboardInterrupt):
        model.run()
    assert model.played == 60
    model.run()
    assert_same(model, undisturbed)


def test_a_step_plays_a_round_that_was_cut_off_in_a_block_to_its_end(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CutOff, "method", "learn")
    monkeypatch.setattr(CutOff, "was_cut_off", True)
    undisturbed = build(CutOff)
    undisturbed.run()
    monkeypatch.setattr(CutOff, "was_cut_off", False)
    model = build(CutOff)
    with pytest.raises(UserError):
        model.run()
    model.step()
    assert (model.played, model.steps) == (61, 61)
    model.run()
    assert_same(model, undisturbed)


def test_a_round_that_was_cut_off_in_a_block_is_not_played_against_other_players(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CutOff, "method", "learn")
    monkeypatch.setattr(CutOff, "was_cut_off", False)
    model = build(CutOff)
    with pytest.raises(UserError):
        model.run()
    model.replace(adversary=IID(1, np.random.default_rng(1)))
    with pytest.raises(UserError, match=r"^round 60 was cut off by ZeroDivisionError"):
        model.run()


def test_a_market_that_is_restored_forgets_the_round_that_was_cut_off(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CutOff, "method", "learn")
    monkeypatch.setattr(CutOff, "was_cut_off", False)
    model = build(CutOff)
    state_at_start = model.state()
    with pytest.raises(UserError):
        model.run()
    model.restore(state_at_start)
    model.run()
    undisturbed = build(CutOff)
    undisturbed.run()
    assert model.agents_frame().equals(undisturbed.agents_frame())


class Interrupting(Averaging):
    """Presses Ctrl-C in round 60, while it learns."""

    was_pressed = False
    rounds_learned = 0

    def learn(self, losses: Array, outcome: Array) -> None:
        if self.rounds_learned == 60 and not Interrupting.was_pressed:
            Interrupting.was_pressed = True
            signal.raise_signal(signal.SIGINT)
        super().learn(losses, outcome)
        self.rounds_learned += 1


@pytest.mark.usefixtures("interrupts_as_at_a_terminal")
@pytest.mark.parametrize("plays_blocks", [True, False])
def test_a_market_that_ctrl_c_stopped_goes_on_as_if_it_had_not(
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    plays_blocks: bool,  # noqa: FBT001 - a case
) -> None:
    monkeypatch.setattr(Interrupting, "was_pressed", True)
    monkeypatch.setattr(scripted_rounds, "MAX_BLOCK_SECONDS", 0.0)  # agents are slow
    undisturbed = build(Interrupting)
    undisturbed.run()
    monkeypatch.setattr(Interrupting, "was_pressed", False)
    model = build(Interrupting)
    if not plays_blocks:
        model.compiled = None
    with pytest.raises(KeyboardInterrupt):
        model.run()
    assert model.played == 61
    model.run()
    assert_same(model, undisturbed)


def test_a_market_of_scripted_agents_resumes_within_a_block(build: Build, tmp_path: Path) -> None:
    check_resumes(lambda: build(Averaging), checkpoint_round=33, folder=tmp_path)


def test_agents_who_hear_a_forecast_are_played_on_the_general_path(build: Build) -> None:
    assert build(Averaging, forecaster={"kind": "running-mean"}).compiled is None


def test_an_adversary_of_the_users_own_is_asked_in_every_round(build: Build) -> None:
    @register.adversary("own-weather")
    class OwnWeather(IID):
        """Draws as the project's own."""

    model = build(Averaging, adversary={"kind": "own-weather", "outcomes": 1})
    assert model.compiled is None
