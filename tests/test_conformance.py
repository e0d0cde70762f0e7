"""One suite that every adversary, response, forecaster, policy kind and market passes."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import built_in_names

from regretless import UserError, load, register
from regretless.agents.adversaries import Coalition, Leader, Replay
from regretless.agents.adversaries.wrappers import Confined
from regretless.forecaster import DecisionSwap, NonLinearDecisionSwap, SmoothDecisionSwap, bases
from regretless.market.best_response import TIE
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import remembers
from regretless.market.core.randomness import stream
from regretless.market.game.market import Market
from regretless.market.game.protocols import Adversary, Forecaster
from regretless.market.game.round import commit_and_draw, decide, finish, offer
from regretless.market.losses import Box, Linear
from regretless.market.records import AdversaryView, Context, Ensemble, Forecast, History, Mixture
from regretless.scenarios.config.files import catalogue, find, read

SIZE = 3


def announced(mean: Any) -> AdversaryView:
    point = np.atleast_2d(mean)
    return AdversaryView((Mixture(point, np.ones(1), labels=point),))


def adversary(name: str, seed: int = 0, **more: Any) -> Any:
    if name == "replay":
        rows = np.random.default_rng(seed).random((7, SIZE))
        return Replay(rows, np.arange(7.0)[:, None], ("t",))
    return register.adversary[name](SIZE, stream(seed, "adversary"), **more)


def outcomes(player: Any, rounds: int, history: History | None = None) -> Array:
    history = history or History(SIZE)
    rows = []
    for _ in range(rounds):
        view = announced(np.full(SIZE, history.rounds % 5 / 5))
        distribution = player.commit(player.context(history), history, view)
        rows.append(distribution.draw(stream(history.rounds, "outcome")))
        history.add(rows[-1])
    return np.array(rows)


def of_kind(registry: Any, *kinds: type) -> list[str]:
    found = {name: registry[name] for name in built_in_names(registry)}
    return [name for name, one in found.items() if isinstance(one, type) and issubclass(one, kinds)]


MOTIVATED = of_kind(register.adversary, Leader, Coalition)  # these are in test_strategic
IMPARTIAL = sorted({*built_in_names(register.adversary)} - {*MOTIVATED})


@pytest.mark.parametrize("name", [*IMPARTIAL, "replay"])
def test_adversaries_play_their_role_follow_their_seed_and_resume(name: str) -> None:
    player, history, whole = adversary(name), History(SIZE), outcomes(adversary(name), 40)
    assert isinstance(player, Adversary)
    assert player.innermost is Confined(player, Box([0.0] * SIZE, [1.0] * SIZE)).innermost is player
    assert whole.shape == (40, SIZE)
    assert ((whole >= 0) & (whole <= 1)).all()
    assert (outcomes(player, 12, history) == whole[:12]).all()
    if name in {"iid", "drifting", "switching", "replay"}:
        assert (outcomes(adversary(name, 1), 40) != whole).any()
    assert remembers(player)
    second = adversary(name, 0 if name == "replay" else 5)
    second.restore(player.state())
    assert (outcomes(second, 28, history) == whole[12:]).all()


def test_adversaries_do_what_they_declare() -> None:
    for mean, away in (([0.5, 0.1, 0.2], [0.0, 1.0, 0.0]), ([0.4], [1.0])):
        player = register.adversary["anti-forecast"](len(mean), stream(0, "x"))
        told = player.commit(Context(), History(len(mean)), announced(mean))
        assert (told.points == away).all()
    wave = outcomes(adversary("cyclic", period=10.0), 20)
    assert wave[:10] == pytest.approx(wave[10:])
    rows = outcomes(adversary("switching", length=5, concentration=0.0), 15)
    assert len(np.unique(rows, axis=0)) == 3
    still = outcomes(adversary("iid", mean=[0.1, 0.5, 0.9], concentration=50.0), 3000)
    assert still.mean(0) == pytest.approx([0.1, 0.5, 0.9], abs=0.01)


def forecasters() -> dict[str, Any]:
    loss = Linear(-np.random.default_rng(0).dirichlet(np.ones(SIZE), (4, 3)), 1.0)
    own = [loss], (lambda x: 0 if x is None else int(x),)
    return {
        "decision-swap": DecisionSwap(*own),
        "exponential": DecisionSwap(*own, weights="exponential"),
        "fixed rate": DecisionSwap(*own, weights="exponential", horizon=50),
        "smooth": SmoothDecisionSwap(*own, eta=20.0),
        "non-linear": NonLinearDecisionSwap([loss], bases.LinearBasis(SIZE), own[1]),
        **{name: register.forecaster[name](SIZE) for name in built_in_names(register.forecaster)},
    }


def replayed(player: Any, rounds: range) -> list[Forecast]:
    made = []
    for t in rounds:
        made.append(player.predict(t % 3))
        player.update(0.5 + 0.5 * np.sin(t / 7 + np.arange(SIZE)))
    return made


@pytest.mark.parametrize("name", forecasters())
def test_forecasters_play_their_role_and_resume(name: str) -> None:
    """A mixture is a function of the past: an adversary's simulation of it is harmless."""
    player, first, second = (forecasters()[name] for _ in range(3))
    assert isinstance(player, Forecaster)
    whole = replayed(player, range(40))
    for forecast in whole:
        mixture = forecast.mixture
        assert ((mixture.points >= 0) & (mixture.points <= 1)).all()
        assert mixture.weights.sum() == pytest.approx(1.0)
        assert (mixture.weights > 0).all()
        assert (forecast.statistics == mixture.points[forecast.index]).all()
    assert repr(player).startswith(f"<{type(player).__name__}")
    assert all(part in repr(player) for part in (f"{SIZE} numbers", "round 40"))
    assert " at 0x" not in repr(player)
    replayed(first, range(12))
    one, again = first.mixture(1), first.mixture(1)
    assert (one.points == again.points).all()
    assert (one.weights == again.weights).all()
    second.restore(first.state())
    for ours, theirs in zip(replayed(second, range(12, 40)), whole[12:], strict=True):
        assert (ours.statistics == theirs.statistics).all()


def test_baselines_are_what_they_say() -> None:
    rows, smooth = np.random.default_rng(0).random((20, SIZE)), np.full(SIZE, 0.5)
    made = {name: register.forecaster[name](SIZE) for name in built_in_names(register.forecaster)}
    for row in rows:
        smooth += 0.1 * (row - smooth)
        for player in made.values():
            player.predict()
            player.update(row)
    point = {name: player.predict().statistics for name, player in made.items()}
    assert (point["constant"] == 0.5).all()
    assert (point["last-value"] == rows[-1]).all()
    assert point["running-mean"] == pytest.approx(rows.mean(0))
    assert point["exponential-smoothing"] == pytest.approx(smooth)


@pytest.mark.parametrize("name", built_in_names(register.response))
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
    at = [Context(("day",), np.array([float(day)])) for day in range(12)]
    steps = register.policy["steps"](feature="day", edges=[3, 6], actions=[2, 0, 1])
    assert [*map(steps, at)] == [2] * 3 + [0] * 3 + [1] * 6
    rule = register.policy["threshold"](feature="day", at=4, below=1, above=0)
    assert [*map(rule, at)] == [1] * 4 + [0] * 8


def losses(market: Any, before: Any, outcome: Any, decisions: Any) -> Any:
    market.restore(before)
    market.clear(outcome, decisions)
    return market.losses(decisions)


PERSONAL = [
    kind for kind in of_kind(register.market, Market) if register.market[kind].has_personal_losses
]


@pytest.mark.parametrize("kind", PERSONAL)
def test_personal_losses_are_those_of_clearing_again(kind: str) -> None:
    """Entry (i, b) is what agent i loses if it plays b and all others play what they played."""
    name = next(n for n in catalogue() if read(find(n)).get("market", {}).get("kind") == kind)
    game = load(name, rounds=12).build(seed=1).game
    market: Any = game.market
    for _ in range(12):
        drawn = commit_and_draw(game, offer(game))
        decided, start = decide(game, drawn), (market, market.state(), drawn.outcome)
        told = losses(*start, decided.decisions)
        for place, decision in enumerate(decided.decisions):
            for (agent, action), loss in np.ndenumerate(told[place] if decision else []):
                if decision.actions[agent] >= 0:
                    actions, other = decision.actions.copy(), [*decided.decisions]
                    actions[agent] = action
                    other[place] = decision.changed(actions=actions)
                    again = losses(*start, tuple(other))[place][agent, action]
                    assert again == pytest.approx(loss)
        market.restore(start[1])
        finish(game, decided)


def test_names_are_registered_once_and_found_by_near_misses() -> None:
    registry = register.Registry("thing")
    registry("one")(int)
    with pytest.raises(UserError, match="registered twice"):
        registry("one")(float)
    with pytest.raises(UserError, match="did you mean 'one'"):
        registry["onee"]
    assert registry.names() == ["one"]
