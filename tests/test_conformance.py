"""One suite that every adversary, response, forecaster, policy kind and market passes."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import built_in_names, names_of_models_that_can_be_made

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

SIZE = 3  # numbers of an outcome


def view_of(mean: list[float] | Array) -> AdversaryView:
    """Return what an adversary sees of a forecast that is one point."""
    point = np.atleast_2d(mean)
    return AdversaryView((Mixture(point, np.ones(1), labels=point),))


def make_adversary(name: str, seed: int = 0, **settings: Any) -> Any:
    """Make a registered adversary, or a replay of seven rows."""
    if name == "replay":
        rows = np.random.default_rng(seed).random((7, SIZE))
        return Replay(rows, np.arange(7.0)[:, None], ("t",))
    return register.adversary[name](SIZE, stream(seed, "adversary"), **settings)


def play_outcomes(adversary: Any, n_rounds: int, history: History | None = None) -> Array:
    """Let an adversary play, after a history, which grows; return the outcomes (rounds, SIZE)."""
    history = history or History(SIZE)
    outcomes = []
    for _ in range(n_rounds):
        view = view_of(np.full(SIZE, history.rounds % 5 / 5))
        distribution = adversary.commit(adversary.context(history), history, view)
        outcome = distribution.draw(stream(history.rounds, "outcome"))
        outcomes.append(outcome)
        history.add(outcome)
    return np.array(outcomes)


def built_in_names_of(registry: Any, *classes: type) -> list[str]:
    """Return the built-in names that stand for one of these classes or a relative."""
    names = []
    for name in built_in_names(registry):
        entry = registry[name]
        if isinstance(entry, type) and issubclass(entry, classes):
            names.append(name)
    return names


MOTIVATED = built_in_names_of(register.adversary, Leader, Coalition)  # tested in test_strategic
ADVERSARIES = [*sorted({*built_in_names(register.adversary)} - {*MOTIVATED}), "replay"]
SEEDED_ADVERSARIES = ["iid", "drifting", "switching", "replay"]
every_adversary = pytest.mark.parametrize("name", ADVERSARIES)


@every_adversary
def test_an_adversary_plays_its_role(name: str) -> None:
    adversary = make_adversary(name)
    assert isinstance(adversary, Adversary)
    assert remembers(adversary)


@every_adversary
def test_an_adversary_is_found_in_what_wraps_it(name: str) -> None:
    adversary = make_adversary(name)
    unit_box = Box([0.0] * SIZE, [1.0] * SIZE)
    assert adversary.innermost is adversary
    assert Confined(adversary, unit_box).innermost is adversary


@every_adversary
def test_an_adversary_s_outcomes_lie_in_the_unit_box(name: str) -> None:
    outcomes = play_outcomes(make_adversary(name), 40)
    assert outcomes.shape == (40, SIZE)
    assert ((outcomes >= 0) & (outcomes <= 1)).all()


@every_adversary
def test_adversaries_of_one_seed_play_the_same(name: str) -> None:
    first = play_outcomes(make_adversary(name), 40)
    assert (play_outcomes(make_adversary(name), 40) == first).all()


@pytest.mark.parametrize("name", SEEDED_ADVERSARIES)
def test_adversaries_of_two_seeds_play_differently(name: str) -> None:
    first = play_outcomes(make_adversary(name, seed=0), 40)
    assert (play_outcomes(make_adversary(name, seed=1), 40) != first).any()


@every_adversary
def test_a_restored_adversary_plays_on_as_the_one_that_was_saved(name: str) -> None:
    undisturbed = play_outcomes(make_adversary(name), 40)
    saved = make_adversary(name)
    history = History(SIZE)
    play_outcomes(saved, 12, history)
    # all that a restored one needs is in the state, but for the rows of a replay
    restored = make_adversary(name, seed=0 if name == "replay" else 5)
    restored.restore(saved.state())
    assert (play_outcomes(restored, 28, history) == undisturbed[12:]).all()


@pytest.mark.parametrize(("mean", "farthest"), [([0.5, 0.1, 0.2], [0.0, 1.0, 0.0]), ([0.4], [1.0])])
def test_the_anti_forecast_adversary_plays_the_side_away_from_the_forecast(
    mean: list[float], farthest: list[float]
) -> None:
    adversary = register.adversary["anti-forecast"](len(mean), stream(0, "x"))
    distribution = adversary.commit(Context(), History(len(mean)), view_of(mean))
    assert (distribution.points == farthest).all()


def test_the_cyclic_adversary_repeats_after_its_period() -> None:
    outcomes = play_outcomes(make_adversary("cyclic", period=10.0), 20)
    assert outcomes[:10] == pytest.approx(outcomes[10:])


def test_the_switching_adversary_stays_for_its_length() -> None:
    outcomes = play_outcomes(make_adversary("switching", length=5, concentration=0.0), 15)
    assert len(np.unique(outcomes, axis=0)) == 3


def test_the_iid_adversary_has_its_mean() -> None:
    adversary = make_adversary("iid", mean=[0.1, 0.5, 0.9], concentration=50.0)
    outcomes = play_outcomes(adversary, 3000)
    assert outcomes.mean(0) == pytest.approx([0.1, 0.5, 0.9], abs=0.01)


def make_baselines() -> dict[str, Any]:
    """Make the registered forecasters, which promise nothing."""
    built_in = built_in_names(register.forecaster)
    names = [name for name in names_of_models_that_can_be_made() if name in built_in]
    return {name: register.forecaster[name](SIZE) for name in names}


def make_forecasters() -> dict[str, Any]:
    """Make forecasters of all kinds, each for four losses of three actions and one policy."""
    loss = Linear(-np.random.default_rng(0).dirichlet(np.ones(SIZE), (4, 3)), 1.0)
    policies = (lambda x: 0 if x is None else int(x),)
    linear = bases.LinearBasis(SIZE)
    return {
        "decision-swap": DecisionSwap([loss], policies),
        "exponential": DecisionSwap([loss], policies, weights="exponential"),
        "fixed rate": DecisionSwap([loss], policies, weights="exponential", horizon=50),
        "smooth": SmoothDecisionSwap([loss], policies, eta=20.0),
        "non-linear": NonLinearDecisionSwap([loss], linear, policies),
        **make_baselines(),
    }


def forecast_rounds(forecaster: Any, rounds: range) -> list[Forecast]:
    """Let a forecaster predict and learn a wave; return its forecasts."""
    forecasts = []
    for t in rounds:
        forecasts.append(forecaster.predict(t % 3))
        forecaster.update(0.5 + 0.5 * np.sin(t / 7 + np.arange(SIZE)))
    return forecasts


every_forecaster = pytest.mark.parametrize("name", make_forecasters())


@every_forecaster
def test_a_forecaster_announces_mixtures_of_points_in_the_unit_box(name: str) -> None:
    forecaster = make_forecasters()[name]
    assert isinstance(forecaster, Forecaster)
    for forecast in forecast_rounds(forecaster, range(40)):
        mixture = forecast.mixture
        assert ((mixture.points >= 0) & (mixture.points <= 1)).all()
        assert mixture.weights.sum() == pytest.approx(1.0)
        assert (mixture.weights > 0).all()
        assert (forecast.statistics == mixture.points[forecast.index]).all()


@every_forecaster
def test_a_forecaster_s_repr_says_what_it_forecasts_and_how_far_it_is(name: str) -> None:
    forecaster = make_forecasters()[name]
    forecast_rounds(forecaster, range(4))
    text = repr(forecaster)
    assert text.startswith(f"<{type(forecaster).__name__}")
    assert f"{SIZE} numbers" in text
    assert "round 4" in text
    assert " at 0x" not in text


@every_forecaster
def test_to_ask_for_a_mixture_changes_nothing(name: str) -> None:
    """A mixture is a function of the past: an adversary's simulation of it is harmless."""
    forecaster = make_forecasters()[name]
    forecast_rounds(forecaster, range(12))
    mixture = forecaster.mixture(1)
    repeated = forecaster.mixture(1)
    assert (mixture.points == repeated.points).all()
    assert (mixture.weights == repeated.weights).all()


@every_forecaster
def test_a_restored_forecaster_forecasts_as_the_one_that_was_saved(name: str) -> None:
    undisturbed = forecast_rounds(make_forecasters()[name], range(40))
    saved = make_forecasters()[name]
    forecast_rounds(saved, range(12))
    saved.mixture(1)  # as an adversary that simulates it asks for
    restored = make_forecasters()[name]
    restored.restore(saved.state())
    continued = forecast_rounds(restored, range(12, 40))
    for forecast, expected in zip(continued, undisturbed[12:], strict=True):
        assert (forecast.statistics == expected.statistics).all()


def test_baselines_forecast_what_their_names_say() -> None:
    outcomes = np.random.default_rng(0).random((20, SIZE))
    baselines = make_baselines()
    smoothed = np.full(SIZE, 0.5)
    for outcome in outcomes:
        smoothed += 0.1 * (outcome - smoothed)
        for forecaster in baselines.values():
            forecaster.predict()
            forecaster.update(outcome)
    point_of = {name: forecaster.predict().statistics for name, forecaster in baselines.items()}
    assert (point_of["constant"] == 0.5).all()
    assert (point_of["last-value"] == outcomes[-1]).all()
    assert point_of["running-mean"] == pytest.approx(outcomes.mean(0))
    assert point_of["exponential-smoothing"] == pytest.approx(smoothed)


@pytest.mark.parametrize("name", built_in_names(register.response))
def test_a_response_to_a_certain_forecast_loses_at_most_its_gap(name: str) -> None:
    n_actions = 4
    settings = {"eta": 15.0} if name == "quantal" else {}
    rule = register.response[name](**settings)
    loss = Linear(-np.random.default_rng(1).dirichlet(np.ones(SIZE), (6, n_actions)), 1.0)
    point = np.random.default_rng(2).random((1, SIZE))
    certain = (Ensemble(point, np.ones(1)),)
    forecast = Forecast(Mixture(point, np.ones(1), labels=point, ensembles=certain), 0)
    predicted = rule.predicted(forecast, loss, (loss.offset, loss.weights))
    play = rule.play(predicted)
    assert predicted == pytest.approx(loss.losses(point[0]))
    assert play.sum(1) == pytest.approx(1.0)
    excess = (play * predicted).sum(1) - predicted.min(1)
    assert (excess <= rule.gap(n_actions) + 1e-12).all()
    is_exact = rule.gap(n_actions) <= TIE
    assert (rule.eta is None) == is_exact


TWELVE_DAYS = [Context(("day",), np.array([float(day)])) for day in range(12)]


def test_a_policy_of_steps_takes_the_action_of_each_interval() -> None:
    policy = register.policy["steps"](feature="day", edges=[3, 6], actions=[2, 0, 1])
    assert [policy(day) for day in TWELVE_DAYS] == [2] * 3 + [0] * 3 + [1] * 6


def test_a_policy_of_a_threshold_changes_its_action_there() -> None:
    policy = register.policy["threshold"](feature="day", at=4, below=1, above=0)
    assert [policy(day) for day in TWELVE_DAYS] == [1] * 4 + [0] * 8


PERSONAL_MARKETS = [
    kind
    for kind in built_in_names_of(register.market, Market)
    if register.market[kind].has_personal_losses
]


def bundled_scenario_of(market: str) -> str:
    """Return the first scenario of the catalogue with this kind of market."""
    for name in catalogue():
        if read(find(name)).get("market", {}).get("kind") == market:
            return name
    raise LookupError(market)


def clear_again(market: Any, state: Any, outcome: Any, decisions: Any) -> Any:
    """Return everybody's losses where the market clears these decisions from this state."""
    market.restore(state)
    market.clear(outcome, decisions)
    return market.losses(decisions)


def decisions_if(decisions: Any, cohort: int, agent: int, action: int) -> tuple[Any, ...]:
    """Return the decisions with one agent's action replaced."""
    actions = decisions[cohort].actions.copy()
    actions[agent] = action
    changed = [*decisions]
    changed[cohort] = decisions[cohort].changed(actions=actions)
    return tuple(changed)


@pytest.mark.parametrize("kind", PERSONAL_MARKETS)
def test_personal_losses_are_those_of_clearing_again(kind: str) -> None:
    """Entry (i, b) is what agent i loses if it plays b and all others play what they played."""
    n_rounds = 12
    game = load(bundled_scenario_of(kind), rounds=n_rounds).build(seed=1).game
    market: Any = game.market
    for _ in range(n_rounds):
        drawn = commit_and_draw(game, offer(game))
        decided = decide(game, drawn)
        state = market.state()
        losses = clear_again(market, state, drawn.outcome, decided.decisions)
        for cohort, decision in enumerate(decided.decisions):
            if not decision:
                continue
            for (agent, action), loss in np.ndenumerate(losses[cohort]):
                if decision.actions[agent] < 0:  # absent
                    continue
                deviating = decisions_if(decided.decisions, cohort, agent, action)
                losses_then = clear_again(market, state, drawn.outcome, deviating)
                assert losses_then[cohort][agent, action] == pytest.approx(loss)
        market.restore(state)
        finish(game, decided)


def test_a_name_is_registered_once() -> None:
    registry = register.Registry("thing")
    registry("one")(int)
    with pytest.raises(UserError, match="registered twice"):
        registry("one")(float)
    assert registry.names() == ["one"]


def test_an_unknown_name_is_refused_with_the_one_that_is_near() -> None:
    registry = register.Registry("thing")
    registry("one")(int)
    with pytest.raises(UserError, match="did you mean 'one'"):
        registry["onee"]
