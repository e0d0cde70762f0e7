"""Every registered learner: play, streams, checkpoints, bounds, brute force, published figures."""

import copy
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given as drawn
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regretless import UserError, external_regret, register, swap_regret
from regretless.agents.learners import EXP3, Hedge, TreeSwap
from regretless.agents.learners.base import TotalLearner
from regretless.agents.learners.kernels import stationary
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import remembers
from regretless.market.records import one_hot

Adversary = Callable[[int, Array], Array]  # round, strategies (K, A) -> losses (K, A)
NEEDED: dict[str, dict[str, Any]] = {"quantal-fictitious-play": {"eta": 10.0}}
RATES = st.sampled_from([0.0, 1e-300, 1e-200, 1e-30, 1e-9, 0.1, 0.5, 1.0, 3.0])
TREE: dict[str, Any] = {"depth": 2, "breadth": 5}
VARIANTS = [(name, NEEDED.get(name, {})) for name in register.learner.names()]
for name, rate in (("hedge", 0.3), ("exp3", 0.05), ("blum-mansour", 2.0)):
    VARIANTS += [(name, {"rate": "fixed"}), (name, {"rate": rate})]
VARIANTS += [("exp3", {"exploration": False} | more) for more in ({}, {"rate": "fixed"})]
VARIANTS += [("tree-swap", TREE)]
every_learner = pytest.mark.parametrize("own", VARIANTS, ids=str)


def started(own: tuple[str, dict[str, Any]], rows: int, actions: int, horizon: int) -> Any:
    learner = register.learner[own[0]](**own[1])
    learner.start(rows, actions, horizon=horizon)
    return learner


def run(learner: Any, rounds: int, adversary: Adversary, *, seed: int = 0) -> tuple[Array, ...]:
    """Play and return strategies (T, K, A), losses (T, K, A) and the drawn actions (T, K)."""
    rng, logs = np.random.default_rng(seed), []
    for t in range(rounds):
        strategy = learner.play()
        ladder, told = strategy.cumsum(1), adversary(t, strategy)
        actions = (rng.random(len(strategy))[:, None] * ladder[:, -1:] >= ladder).sum(1)
        learner.learn(told, actions)
        logs.append((strategy, told, actions))
    strategies, losses, played = map(np.array, zip(*logs, strict=True))
    assert (strategies >= 0).all()
    assert np.abs(strategies.sum(2) - 1).max() < 1e-12
    return strategies, losses, played


def replay(table: Array) -> Adversary:
    return lambda t, strategies: np.broadcast_to(table[t], strategies.shape)


def dyadic(rounds: int, rows: int, actions: int, *, seed: int = 0) -> Array:
    """Losses in [0, 3/4] whose sums are exact."""
    return np.random.default_rng(seed).integers(0, 13, (rounds, rows, actions)) / 16


def hits_the_favourite(_: int, strategies: Array) -> Array:
    return one_hot(strategies.argmax(1), strategies.shape[1])


def spares_the_least_likely(_: int, strategies: Array) -> Array:
    return 1 - one_hot(strategies.argmin(1), strategies.shape[1])


@every_learner
def test_a_checkpoint_continues_exactly(own: Any) -> None:
    learner, other = (started(own, 3, 4, 60) for _ in range(2))
    run(learner, 27, hits_the_favourite)
    saved = learner.state()
    frozen = copy.deepcopy(saved)
    rest = run(learner, 33, hits_the_favourite, seed=5)[0]
    other.restore(saved)
    assert np.array_equal(rest, run(other, 33, hits_the_favourite, seed=5)[0])
    assert all(np.array_equal(saved[key], frozen[key]) for key in frozen)
    assert remembers(learner)


@every_learner
def test_rows_are_separate_runs(own: Any) -> None:
    rows, table = 5, dyadic(50, 5, 4)
    strategies, _, actions = run(started(own, rows, 4, 50), 50, replay(table))
    assert len(np.unique(strategies, axis=1)[0]) == rows  # they do differ
    for k in range(rows):
        alone = started(own, 1, 4, 50)
        for t in range(50):
            assert np.array_equal(alone.play()[0], strategies[t, k])
            alone.learn(table[t, k : k + 1], actions[t, k : k + 1])


@every_learner
def test_a_million_rounds_do_not_overflow(own: Any) -> None:
    learner = started(own, 2, 3, 10**6)
    run(learner, 5, replay(dyadic(5, 2, 3)))
    aged = learner.state()
    # what sums of 10^6 losses look like, those that came from probabilities of 10^-6 included
    for key in aged.keys() - {"strategy", "strategies", "rounds"}:
        aged[key] = aged[key] * (1e12 if learner.bandit else 1e6)
    learner.restore(aged | {"rounds": 10**6 - 1})
    run(learner, 30, replay(dyadic(30, 2, 3, seed=1)))


def streams(actions: int, rounds: int) -> dict[str, Adversary]:
    """Loss streams, the last two chosen in sight of the strategy."""
    rng, numbers = np.random.default_rng(3), np.arange(actions)
    noise, times = rng.random((rounds, 4, actions)), np.arange(rounds)[:, None]
    means = rng.random((4, actions))
    tables = {
        "noise": noise,
        "biased": (noise < means).astype(np.float64),
        "phases": np.where(numbers % 2 == times * 4 // rounds % 2, 1.0, 0.4),
        "cycle": (numbers + times) % actions / max(actions - 1, 1),
        "alternating": np.eye(actions)[times[:, 0] % 2 % actions],
    }
    hostile = {"favourite": hits_the_favourite, "least likely": spares_the_least_likely}
    return {name: replay(table) for name, table in tables.items()} | hostile


@every_learner
@pytest.mark.parametrize("actions", [2, 5])
def test_regret_stays_below_the_bound(own: Any, actions: int) -> None:
    """Full information: on every stream and row, at any number of rounds."""
    rounds = 300
    learner = started(own, 4, actions, rounds)
    if learner.bandit or learner.bound(rounds) is None:
        assert (learner.measure is None) == (learner.bound(rounds) is None)
        pytest.skip("bounded in expectation only, or not at all")
    measured = {"external": external_regret, "swap": swap_regret}[learner.measure]
    for stream_name, adversary in streams(actions, rounds).items():
        learner.start(4, actions, horizon=rounds)
        strategies, losses, _ = run(learner, rounds, adversary)
        for upto in (1, 7, 60, rounds):
            regrets = [measured(losses[:upto, k], strategies[:upto, k]) for k in range(4)]
            assert max(regrets) <= learner.bound(upto) + 1e-12, (stream_name, upto)


@pytest.mark.parametrize("exploration", [True, False])
@pytest.mark.parametrize("rate", ["anytime", "fixed"])
def test_exp3_regret_in_expectation(rate: str, exploration: bool) -> None:  # noqa: FBT001 - a parameter
    rounds, seeds = 2000, 200
    for stream_name in ("phases", "cycle", "alternating"):
        learner = started(("exp3", {"rate": rate, "exploration": exploration}), seeds, 3, rounds)
        _, losses, actions = run(learner, rounds, streams(3, rounds)[stream_name])
        own = np.take_along_axis(losses, actions[..., None], axis=2)[..., 0].sum(0)
        regrets = (own - losses[:, 0].sum(0).min()) / rounds
        slack = 3 * regrets.std() / math.sqrt(seeds)
        assert regrets.mean() - slack <= learner.bound(rounds), stream_name


def test_exp3_is_what_its_sources_print() -> None:
    """Against the formulas of both sources, written out."""
    table, rng = dyadic(30, 1, 3)[:, 0], np.random.default_rng(2)
    for exploration in (True, False):
        learner, total = EXP3(exploration=exploration), np.zeros(3)
        learner.start(1, 3)
        for t, losses in enumerate(table, start=1):
            rate = math.sqrt(math.log(3) / (3 * t))
            weights = np.exp((rate if exploration else -rate) * total)
            strategy = weights / weights.sum()
            if exploration:
                gamma = 3 * rate if 3 * rate < 1 else 1.0
                weights = np.exp(gamma / 3 * total)
                strategy = (1 - gamma) * weights / weights.sum() + gamma / 3
            np.testing.assert_allclose(learner.play()[0], strategy, atol=1e-12)
            a = int(rng.integers(3))
            total[a] += (1 - losses[a] if exploration else losses[a]) / strategy[a]
            learner.learn(losses[None], np.array([a]))


def shared(weights: Array) -> Array:
    return np.asarray(weights / weights.sum() if weights.any() else np.full(3, 1 / 3))


def swaps(past: Array, strategies: Array) -> Array:
    """Positive regrets (3, 3) of replacing one action by another."""
    own = np.einsum("ta,ta->a", strategies, past)[:, None]
    return np.maximum(own - np.einsum("ta,tb->ab", strategies, past), 0)


def defined(name: str, past: Array, strategies: Array, now: Array) -> Array:
    t = len(past)
    total, own = past.sum(0), (strategies * past).sum(1, keepdims=True)
    found = np.zeros(3)
    match name:
        case "hedge":
            found = np.exp(-math.sqrt(8 * math.log(3) / (t + 1)) * total)
        case "quantal-fictitious-play":
            found = np.exp(-10.0 * total / max(t, 1))
        case "follow-the-leader":
            found[np.argmin(total)] = 1.0
        case "regret-matching":
            found = np.maximum((own - past).sum(0), 0)
        case "regret-matching-plus":
            found = reduce(lambda kept, gain: np.maximum(kept + gain, 0), own - past, found)
        case "blum-mansour":
            rate = math.sqrt(4 * 3 * math.log(3) / (t + 1))
            weights = np.exp(-rate * np.einsum("ta,tb->ab", strategies, past))
            found = now @ (weights / weights.sum(1, keepdims=True))
        case "swap-regret-matching" if (positive := swaps(past, strategies)).any():
            moving = positive / (2 * positive.sum(1).max())
            found = now @ moving + now * (1 - moving.sum(1))
        case "tree-swap":  # depth 2, breadth 5: each node's Hedge on the steps that it has seen
            for life, step in ((25, 5), (5, 1)):
                born = t // life * life
                done = past[born : t - (t - born) % step].reshape(-1, step, 3).mean(1).sum(0)
                found = found + shared(np.exp(-math.sqrt(8 * math.log(3) / 5) * done)) / 2
    return shared(found)


# tolerances: sums in another order; a strategy is as stationary as doubles are
DEFINED = {"follow-the-leader": 0.0, "regret-matching": 1e-9, "regret-matching-plus": 1e-9}
TIGHT = "hedge", "quantal-fictitious-play", "blum-mansour", "swap-regret-matching", "tree-swap"
DEFINED |= dict.fromkeys(TIGHT, 1e-12)


@pytest.mark.parametrize("name", DEFINED)
def test_brute_force(name: str) -> None:
    learner = started((name, ({"tree-swap": TREE} | NEEDED).get(name, {})), 1, 3, 70)
    strategies, losses, _ = run(learner, 70, replay(np.random.default_rng(4).random((70, 3))))
    for t, strategy in enumerate(strategies[:, 0]):
        expected = defined(name, losses[:t, 0], strategies[:t, 0], strategy)
        np.testing.assert_allclose(strategy, expected, rtol=0, atol=DEFINED[name])


@drawn(st.integers(1, 6).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=RATES)))
def test_stationary_strategies_balance_every_state(rates: Array) -> None:
    """Also where the chain is reducible, or nearly so."""
    strategy = np.empty(len(rates))
    stationary(rates.copy(), strategy)
    flows = rates * (1 - np.eye(len(rates)))
    into, out = strategy @ flows, strategy * flows.sum(1)
    assert (strategy >= 0).all()
    assert strategy.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(into, out, rtol=1e-9, atol=1e-280)


def test_mistakes_are_one_line() -> None:
    for rate, told in ((True, "True"), ([0.1, 0.2], r"\[0.1, 0.2\]"), ("fixed", "'fixed'")):
        with pytest.raises(UserError, match=f"rate = {told}"):
            Hedge(rate=rate).start(1, 2)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="needs the horizon"):
        TreeSwap().start(1, 2)
    with pytest.raises(UserError, match="rows = 0"):
        Hedge().start(0, 2)
    with pytest.raises(UserError, match="horizon = 0"):
        Hedge().start(1, 2, horizon=0)
    unfinished = type("Nameless", (TotalLearner,), {"step": lambda own, *_: own.strategy})
    register.learner("nameless")(unfinished)
    own = {"name": "own", "utility": "linear", "actions": 3, "response": "nameless"}
    with pytest.raises(UserError, match="learner 'nameless' has no name; add it"):
        worlds.scenario(own).build()
