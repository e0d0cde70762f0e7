"""One suite that every adversary, response, forecaster, policy kind and market passes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from registered import built_in

from regretless.agents.adversaries import Adversary, Coalition, Leader, Replay
from regretless.agents.adversaries.wrappers import Confined
from regretless.forecaster import DecisionSwap, NonLinearDecisionSwap, SmoothDecisionSwap, bases
from regretless.market import register
from regretless.market.core.checkpoint import remembers
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.market import Market
from regretless.market.game.protocols import Adversary as AdversaryRole
from regretless.market.game.protocols import Forecaster
from regretless.market.game.round import commit_and_draw, decide, finish, offer
from regretless.market.losses import Linear
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import AdversaryView, Context, Ensemble, Forecast, History, Mixture
from regretless.market.response import TIE
from regretless.scenarios import load
from regretless.scenarios.config.files import catalogue, find, read

SIZE = 3


def announced(mean: float = 0.3) -> AdversaryView:
    point = np.full((1, SIZE), mean)
    return AdversaryView((Mixture(point, np.ones(1), labels=point),))


def adversary(name: str, seed: int = 0) -> Any:
    if name == "replay":
        rows = np.random.default_rng(seed).random((7, SIZE))
        return Replay(rows, np.arange(7.0)[:, None], ("day",))
    return register.adversary[name](SIZE, stream(seed, "adversary"))


def outcomes(player: Any, rounds: int, history: History | None = None) -> np.ndarray[Any, Any]:
    """Play an adversary against a forecast that moves."""
    history = history or History(SIZE)
    rows = []
    for _ in range(rounds):
        context = player.context(history)
        distribution = player.commit(context, history, announced((history.rounds % 5) / 5))
        rows.append(distribution.draw(stream(history.rounds, "outcome")))
        history.add(rows[-1])
    return np.array(rows)


def impartial(name: str) -> bool:
    """Whether an adversary has no motive; those with one are in test_strategic."""
    maker = register.adversary[name]
    return not issubclass(maker, Leader | Coalition) if isinstance(maker, type) else True


ADVERSARIES = [*filter(impartial, built_in(register.adversary)), "replay"]


@pytest.mark.parametrize("name", ADVERSARIES)
def test_adversaries_play_their_role_follow_their_seed_and_resume(name: str) -> None:
    player, history = adversary(name), History(SIZE)
    assert isinstance(player, AdversaryRole)
    assert player.innermost is player
    whole = outcomes(adversary(name), 40)
    assert whole.shape == (40, SIZE)
    assert ((whole >= 0) & (whole <= 1)).all()
    assert (outcomes(player, 12, history) == whole[:12]).all()
    if name in {"iid", "drifting", "switching", "replay"}:
        assert (outcomes(adversary(name, 1), 40) != whole).any()
    assert remembers(player)
    second = adversary(name, 5 if name != "replay" else 0)
    second.restore(player.state())
    assert (outcomes(second, 28, history) == whole[12:]).all()


def test_an_adversary_kept_to_a_space_names_who_decides() -> None:
    player = adversary("iid")
    assert Confined(player, Box([0.0] * SIZE, [1.0] * SIZE)).innermost is player


def test_the_breaker_moves_away() -> None:
    for mean, away in (([[0.5, 0.1, 0.2]], [0.0, 1.0, 0.0]), ([[0.4]], [1.0])):
        point = np.array(mean)
        player = register.adversary["anti-forecast"](point.size, stream(0, "x"))
        seen = AdversaryView((Mixture(point, np.ones(1), labels=point),))
        assert (player.commit(Context(), History(point.size), seen).points == away).all()


def test_cycles_and_regimes_are_as_declared() -> None:
    wave = outcomes(register.adversary["cyclic"](SIZE, stream(0, "x"), period=10.0), 20)
    assert wave[:10] == pytest.approx(wave[10:])
    switching = register.adversary["switching"](SIZE, stream(0, "x"), length=5, concentration=0.0)
    rows = outcomes(switching, 15)
    assert len(np.unique(rows, axis=0)) == 3
    still = register.adversary["iid"](
        SIZE, stream(0, "x"), mean=[0.1, 0.5, 0.9], concentration=50.0
    )
    assert outcomes(still, 3000).mean(0) == pytest.approx([0.1, 0.5, 0.9], abs=0.01)


def forecasters() -> dict[str, Any]:
    loss = Linear(-np.random.default_rng(0).dirichlet(np.ones(SIZE), (4, 3)), 1.0)
    policies = (lambda x: 0 if x is None else int(x),)
    basis = bases.LinearBasis(SIZE)
    made: dict[str, Any] = {
        "decision-swap": DecisionSwap([loss], policies),
        "exponential": DecisionSwap([loss], policies, weights="exponential"),
        "fixed rate": DecisionSwap([loss], policies, weights="exponential", horizon=50),
        "smooth": SmoothDecisionSwap([loss], policies, eta=20.0),
        "non-linear": NonLinearDecisionSwap([loss], basis, policies),
    }
    return made | {name: register.forecaster[name](SIZE) for name in built_in(register.forecaster)}


def replayed(player: Any, rounds: int, start: int = 0) -> list[Forecast]:
    made = []
    for t in range(start, start + rounds):
        made.append(player.predict(t % 3))
        player.update(0.5 + 0.5 * np.sin(t / 7 + np.arange(SIZE)))
    return made


@pytest.mark.parametrize("name", forecasters())
def test_forecasters_play_their_role_and_resume(name: str) -> None:
    """A mixture is a function of the past: an adversary's simulation of it is harmless."""
    player, first, second = (forecasters()[name] for _ in range(3))
    assert isinstance(player, Forecaster)
    whole = replayed(player, 40)
    for forecast in whole:
        mixture = forecast.mixture
        assert ((mixture.points >= 0) & (mixture.points <= 1)).all()
        assert mixture.weights.sum() == pytest.approx(1.0)
        assert (mixture.weights > 0).all()
        assert (forecast.statistics == mixture.points[forecast.index]).all()
    assert repr(player).startswith(f"<{type(player).__name__}")
    assert f"{SIZE} numbers" in repr(player)
    assert "round 40" in repr(player)
    assert " at 0x" not in repr(player)
    replayed(first, 12)
    one, again = first.mixture(1), first.mixture(1)
    assert (one.points == again.points).all()
    assert (one.weights == again.weights).all()
    second.restore(first.state())
    later = [forecast.statistics for forecast in replayed(second, 28, start=12)]
    assert (np.array([forecast.statistics for forecast in whole[12:]]) == np.array(later)).all()


def test_baselines_are_what_they_say() -> None:
    rows = np.random.default_rng(0).random((20, SIZE))
    made = {name: register.forecaster[name](SIZE) for name in built_in(register.forecaster)}
    for row in rows:
        for player in made.values():
            player.predict()
            player.update(row)
    point = {name: player.predict().statistics for name, player in made.items()}
    assert (point["constant"] == 0.5).all()
    assert (point["last-value"] == rows[-1]).all()
    assert point["running-mean"] == pytest.approx(rows.mean(0))
    smooth = np.full(SIZE, 0.5)
    for row in rows:
        smooth += 0.1 * (row - smooth)
    assert point["exponential-smoothing"] == pytest.approx(smooth)


@pytest.mark.parametrize("name", built_in(register.response))
def test_responses_play_their_role(name: str) -> None:
    rule = register.response[name](**({"eta": 15.0} if name == "quantal" else {}))
    loss = Linear(-np.random.default_rng(1).dirichlet(np.ones(SIZE), (6, 4)), 1.0)
    point = np.random.default_rng(2).random((1, SIZE))
    certain = (Ensemble(point, np.ones(1)),)
    forecast = Forecast(Mixture(point, np.ones(1), labels=point, ensembles=certain), 0)
    predicted = rule.predicted(forecast, loss, (loss.offset, loss.weights))
    play = rule.play(predicted)
    assert predicted == pytest.approx(loss.losses(point[0]))
    assert play.sum(1) == pytest.approx(1.0)
    excess = (play * predicted).sum(1) - predicted.min(1)
    assert (excess <= rule.gap(4) + 1e-12).all()
    assert (rule.eta is None) == (rule.gap(4) <= TIE)


def test_policies_follow_their_numbers() -> None:
    at = {day: Context(("day",), np.array([float(day)])) for day in range(12)}
    steps = register.policy["steps"](feature="day", edges=[3, 6], actions=[2, 0, 1])
    assert [steps(at[day]) for day in (0, 2, 3, 5, 6, 11)] == [2, 2, 0, 0, 1, 1]
    rule = register.policy["threshold"](feature="day", at=4, below=1, above=0)
    assert [rule(at[day]) for day in (3, 4, 5)] == [1, 0, 0]


def personal(kind: str) -> bool:
    """Whether a market gives each agent losses of its own."""
    maker = register.market[kind]
    return isinstance(maker, type) and issubclass(maker, Market) and maker.personal


def scenario_of(kind: str) -> str:
    """Return the catalogue's scenario of a market."""
    return next(n for n in catalogue() if read(find(n)).get("market", {}).get("kind") == kind)


def places(decisions: Any, tables: Any) -> Iterator[tuple[int, int, int]]:
    """Yield cohort, agent and action for all who are here."""
    for place, decision in enumerate(decisions):
        for agent in [] if decision is None else np.flatnonzero(decision.actions >= 0).tolist():
            for action in range(tables[place].shape[1]):
                yield place, agent, action


def playing(decisions: Any, place: int, agent: int, action: int) -> tuple[Any, ...]:
    """Return decisions in which one agent plays something else."""
    actions = decisions[place].actions.copy()
    actions[agent] = action
    changed = decisions[place].changed(actions=actions)
    return *decisions[:place], changed, *decisions[place + 1 :]


def regretted(market: Any, outcome: Any, decisions: Any, before: Any) -> Any:
    """Clear from a state on, and return every cohort's losses."""
    market.restore(before)
    market.clear(outcome, decisions)
    return market.losses(decisions)


@pytest.mark.parametrize("kind", [kind for kind in built_in(register.market) if personal(kind)])
def test_personal_losses_are_those_of_clearing_again(kind: str) -> None:
    """Entry (i, b) is what agent i loses if it plays b and all others play what they played."""
    game = load(scenario_of(kind), rounds=12).build(seed=1).game
    market: Any = game.market
    for _ in range(12):
        drawn = commit_and_draw(game, offer(game))
        decided, before = decide(game, drawn), market.state()
        decisions = decided.decisions
        told = regretted(market, drawn.outcome, decisions, before)
        for place, agent, action in places(decisions, told):
            other = playing(decisions, place, agent, action)
            again = regretted(market, drawn.outcome, other, before)[place][agent, action]
            assert again == pytest.approx(told[place][agent, action])
        market.restore(before)
        finish(game, decided)


def test_names_are_registered_once_and_found_by_near_misses() -> None:
    registry = register.Registry("thing")
    registry("one")(int)
    with pytest.raises(UserError, match="registered twice"):
        registry("one")(float)
    with pytest.raises(UserError, match="did you mean 'one'"):
        registry["onee"]
    assert registry.names() == ["one"]
    assert issubclass(register.adversary["anti-forecast"], Adversary)
