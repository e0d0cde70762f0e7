"""Every registered learner: play, streams, checkpoints, bounds, brute force, published figures."""

import copy
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from small_scenarios import TomlTable, make_scenario

from regretless import UserError, external_regret, register, swap_regret
from regretless.agents.learners import EXP3, Hedge, TreeSwap
from regretless.agents.learners.base import RowLearner, TotalLearner
from regretless.agents.learners.kernels import stationary
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import remembers
from regretless.market.records import one_hot

Adversary = Callable[[int, Array], Array]  # round, strategies (K, A) -> losses (K, A)
CONTROLS = {"coin", "always"}  # they learn nothing
NEEDED_SETTINGS: dict[str, TomlTable] = {
    "quantal-fictitious-play": {"eta": 10.0},
    "discrete-choice": {"beta": 4.0},
}
TREE: TomlTable = {"depth": 2, "breadth": 5}
# Tests of other folders may have imported a learner of a study, such as one of paper/sellers.py.
LEARNERS_OF_THE_PACKAGE = [
    name
    for name in register.learner.names()
    if register.learner[name].__module__.startswith("regretless.")
]
VARIANTS = [
    *((name, NEEDED_SETTINGS.get(name, {})) for name in LEARNERS_OF_THE_PACKAGE),
    ("hedge", {"rate": "fixed"}),
    ("hedge", {"rate": 0.3}),
    ("exp3", {"rate": "fixed"}),
    ("exp3", {"rate": 0.05}),
    ("exp3", {"exploration": False}),
    ("exp3", {"exploration": False, "rate": "fixed"}),
    ("blum-mansour", {"rate": "fixed"}),
    ("blum-mansour", {"rate": 2.0}),
    ("tree-swap", TREE),
    ("discrete-choice", {"beta": 4.0, "discount": 0.9}),
    ("q-learning", {"memory": 0, "beta": 0.01}),
    ("q-learning", {"memory": 2, "initial": 20.0}),
]
every_learner = pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)


class Log(NamedTuple):
    """What a learner was given and what it did."""

    strategies: Array  # (T, K, A)
    losses: Array  # (T, K, A)
    actions: Indices  # (T, K), drawn from the strategies


def started_learner(
    name: str, settings: TomlTable, *, rows: int, actions: int, horizon: int
) -> RowLearner:
    learner: RowLearner = register.learner[name](**settings)
    learner.start(rows, actions, horizon=horizon)
    return learner


def play_against(adversary: Adversary, learner: RowLearner, *, rounds: int, seed: int = 0) -> Log:
    """Let a learner play; its strategies must be distributions in every round."""
    rng = np.random.default_rng(seed)
    strategies = []
    losses = []
    actions = []
    for round_index in range(rounds):
        strategy = learner.play()
        cumulative = strategy.cumsum(1)
        uniform = rng.random(len(strategy))[:, None] * cumulative[:, -1:]
        drawn = (uniform >= cumulative).sum(1)
        losses_now = adversary(round_index, strategy)
        learner.learn(losses_now, drawn)
        strategies.append(strategy)
        losses.append(losses_now)
        actions.append(drawn)
    log = Log(np.array(strategies), np.array(losses), np.array(actions))
    assert (log.strategies >= 0).all()
    assert np.abs(log.strategies.sum(2) - 1).max() < 1e-12
    return log


def replay(table: Array) -> Adversary:
    """Return an adversary that shows the losses of a table (T, A) or (T, K, A)."""
    return lambda round_index, strategies: np.broadcast_to(table[round_index], strategies.shape)


def dyadic_losses(rounds: int, rows: int, actions: int, *, seed: int = 0) -> Array:
    """Return losses in [0, 3/4] whose sums are exact."""
    return np.random.default_rng(seed).integers(0, 13, (rounds, rows, actions)) / 16


def hit_the_favourite(_: int, strategies: Array) -> Array:
    return one_hot(strategies.argmax(1), strategies.shape[1])


def spare_the_least_likely(_: int, strategies: Array) -> Array:
    return 1 - one_hot(strategies.argmin(1), strategies.shape[1])


@every_learner
def test_a_learner_goes_on_from_a_checkpoint_exactly(name: str, settings: TomlTable) -> None:
    learner = started_learner(name, settings, rows=3, actions=4, horizon=60)
    resumed = started_learner(name, settings, rows=3, actions=4, horizon=60)
    play_against(hit_the_favourite, learner, rounds=27)
    saved = learner.state()
    expected = play_against(hit_the_favourite, learner, rounds=33, seed=5)
    resumed.restore(saved)
    continued = play_against(hit_the_favourite, resumed, rounds=33, seed=5)
    assert np.array_equal(continued.strategies, expected.strategies)


@every_learner
def test_a_learner_that_plays_on_does_not_change_the_state_it_gave(
    name: str, settings: TomlTable
) -> None:
    learner = started_learner(name, settings, rows=3, actions=4, horizon=60)
    play_against(hit_the_favourite, learner, rounds=27)
    saved = learner.state()
    copied = copy.deepcopy(saved)
    play_against(hit_the_favourite, learner, rounds=33, seed=5)
    for key in copied:
        assert np.array_equal(saved[key], copied[key]), key
    assert remembers(learner)


@every_learner
def test_rows_learn_without_each_other(name: str, settings: TomlTable) -> None:
    losses = dyadic_losses(50, rows=5, actions=4)
    together = started_learner(name, settings, rows=5, actions=4, horizon=50)
    if together.has_distinct_rows:
        pytest.skip("a row alone would draw something else; its own tests compare rows")
    log = play_against(replay(losses), together, rounds=50)
    if name not in CONTROLS:
        assert len(np.unique(log.strategies, axis=1)[0]) > 1, "rows do not differ"
    for row in range(5):
        single_learner = started_learner(name, settings, rows=1, actions=4, horizon=50)
        for round_index in range(50):
            assert np.array_equal(single_learner.play()[0], log.strategies[round_index, row])
            single_learner.learn(losses[round_index, [row]], log.actions[round_index, [row]])


@every_learner
def test_a_million_rounds_do_not_overflow(name: str, settings: TomlTable) -> None:
    learner = started_learner(name, settings, rows=2, actions=3, horizon=10**6)
    play_against(replay(dyadic_losses(5, rows=2, actions=3)), learner, rounds=5)
    aged = learner.state()
    # what sums of 10^6 losses look like, those that came from probabilities of 10^-6 included
    growth = 1e12 if learner.bandit else 1e6
    for key in aged.keys() - {"strategy", "strategies", "rounds"}:
        is_sum = aged[key].dtype == np.float64  # and not a number of an action or a state
        if is_sum:
            aged[key] = aged[key] * growth
    learner.restore(aged | {"rounds": 10**6 - 1})
    play_against(replay(dyadic_losses(30, rows=2, actions=3, seed=1)), learner, rounds=30)


def loss_streams(actions: int, rounds: int) -> dict[str, Adversary]:
    """Return loss streams of four rows, the last two chosen in sight of the strategy."""
    rng = np.random.default_rng(3)
    noise = rng.random((rounds, 4, actions))
    means = rng.random((4, actions))
    action_numbers = np.arange(actions)
    round_numbers = np.arange(rounds)[:, None]
    is_odd_action = action_numbers % 2
    is_odd_quarter = round_numbers * 4 // rounds % 2
    return {
        "noise": replay(noise),
        "biased": replay((noise < means).astype(np.float64)),
        "phases": replay(np.where(is_odd_action == is_odd_quarter, 1.0, 0.4)),
        "cycle": replay((action_numbers + round_numbers) % actions / max(actions - 1, 1)),
        "alternating": replay(np.eye(actions)[round_numbers[:, 0] % 2 % actions]),
        "favourite": hit_the_favourite,
        "least likely": spare_the_least_likely,
    }


def has_pathwise_bound(learner: RowLearner) -> bool:
    return not learner.bandit and learner.bound(300) is not None


@every_learner
def test_a_learner_names_what_it_bounds_exactly_if_it_has_a_bound(
    name: str, settings: TomlTable
) -> None:
    learner = started_learner(name, settings, rows=4, actions=2, horizon=300)
    assert (learner.measure is None) == (learner.bound(300) is None)


@every_learner
@pytest.mark.parametrize("actions", [2, 5])
def test_regret_stays_below_the_bound_on_every_stream_at_any_time(
    name: str, settings: TomlTable, actions: int
) -> None:
    rounds = 300
    learner = started_learner(name, settings, rows=4, actions=actions, horizon=rounds)
    if not has_pathwise_bound(learner):
        pytest.skip("bounded in expectation only, or not at all")
    regret = {"external": external_regret, "swap": swap_regret}[str(learner.measure)]
    for stream_name, adversary in loss_streams(actions, rounds).items():
        learner.start(4, actions, horizon=rounds)
        log = play_against(adversary, learner, rounds=rounds)
        for time in (1, 7, 60, rounds):
            bound = learner.bound(time)
            for row in range(4):
                regret_of_row = regret(log.losses[:time, row], log.strategies[:time, row])
                assert regret_of_row <= bound + 1e-12, (stream_name, time, row)


def test_who_has_a_single_action_regrets_nothing_at_any_rate() -> None:
    learner = started_learner("hedge", {"rate": 0.3}, rows=1, actions=1, horizon=100)
    assert learner.bound(100) == 0.0


@pytest.mark.parametrize("exploration", [True, False], ids=["exploring", "not exploring"])
@pytest.mark.parametrize("rate", ["anytime", "fixed"])
@pytest.mark.parametrize("stream_name", ["phases", "cycle", "alternating"])
def test_the_mean_regret_of_exp3_stays_below_its_bound(
    stream_name: str,
    rate: str,
    exploration: bool,  # noqa: FBT001 - a parameter
) -> None:
    rounds = 2000
    seeds = 200  # one row for each
    settings = {"rate": rate, "exploration": exploration}
    learner = started_learner("exp3", settings, rows=seeds, actions=3, horizon=rounds)
    log = play_against(loss_streams(3, rounds)[stream_name], learner, rounds=rounds)
    own_losses = np.take_along_axis(log.losses, log.actions[..., None], axis=2)[..., 0]
    best_fixed_action = log.losses[:, 0].sum(0).min()
    regrets = (own_losses.sum(0) - best_fixed_action) / rounds
    three_errors = 3 * regrets.std() / math.sqrt(seeds)
    assert regrets.mean() - three_errors <= learner.bound(rounds)


def exp3_with_exploration(estimated_gains: Array, time: int) -> Array:
    """Auer, Cesa-Bianchi, Freund and Schapire (2002): gains, mixed with uniform play."""
    rate = math.sqrt(math.log(3) / (3 * time))
    gamma = 3 * rate if 3 * rate < 1 else 1.0
    weights = np.exp(gamma / 3 * estimated_gains)
    return np.asarray((1 - gamma) * weights / weights.sum() + gamma / 3)


def exp3_without_exploration(estimated_losses: Array, time: int) -> Array:
    """Bubeck and Cesa-Bianchi (2012): losses, never mixed."""
    rate = math.sqrt(math.log(3) / (3 * time))
    weights = np.exp(-rate * estimated_losses)
    return np.asarray(weights / weights.sum())


def test_exp3_that_explores_is_the_formula_of_its_source() -> None:
    rng = np.random.default_rng(2)
    learner = EXP3(exploration=True)
    learner.start(1, 3)
    estimated_gains = np.zeros(3)
    for time, losses in enumerate(dyadic_losses(30, rows=1, actions=3)[:, 0], start=1):
        strategy = exp3_with_exploration(estimated_gains, time)
        np.testing.assert_allclose(learner.play()[0], strategy, atol=1e-12)
        action = int(rng.integers(3))
        estimated_gains[action] += (1 - losses[action]) / strategy[action]
        learner.learn(losses[None], np.array([action]))


def test_exp3_that_does_not_explore_is_the_formula_of_its_source() -> None:
    rng = np.random.default_rng(2)
    learner = EXP3(exploration=False)
    learner.start(1, 3)
    estimated_losses = np.zeros(3)
    for time, losses in enumerate(dyadic_losses(30, rows=1, actions=3)[:, 0], start=1):
        strategy = exp3_without_exploration(estimated_losses, time)
        np.testing.assert_allclose(learner.play()[0], strategy, atol=1e-12)
        action = int(rng.integers(3))
        estimated_losses[action] += losses[action] / strategy[action]
        learner.learn(losses[None], np.array([action]))


@pytest.mark.parametrize("action", [3, 10**9, -4])
def test_a_played_action_that_there_is_not_is_refused_before_it_is_written(action: int) -> None:
    learner = EXP3()
    learner.start(1, 3)
    with pytest.raises(IndexError, match="an action that it does not have"):
        learner.learn(np.zeros((1, 3)), np.array([action]))
    assert not learner.total.any()


def normalised(weights: Array) -> Array:
    """Return weights as a distribution, uniform where all are 0."""
    if not weights.any():
        return np.full(len(weights), 1 / len(weights))
    return np.asarray(weights / weights.sum())


# A learner's next strategy by its definition, of the past losses (t, 3), the past strategies (t, 3)
# and, where it is a fixed point, the strategy itself, which the definition must give back.


def hedge(losses: Array, strategies: Array, strategy: Array) -> Array:
    rate = math.sqrt(8 * math.log(3) / (len(losses) + 1))
    return normalised(np.exp(-rate * losses.sum(0)))


def quantal_fictitious_play(losses: Array, strategies: Array, strategy: Array) -> Array:
    return normalised(np.exp(-10.0 * losses.sum(0) / max(len(losses), 1)))


def follow_the_leader(losses: Array, strategies: Array, strategy: Array) -> Array:
    leader = np.argmin(losses.sum(0))
    return np.asarray(np.eye(3)[leader])


def regret_matching(losses: Array, strategies: Array, strategy: Array) -> Array:
    own_losses = (strategies * losses).sum(1, keepdims=True)
    return normalised(np.maximum((own_losses - losses).sum(0), 0))


def regret_matching_plus(losses: Array, strategies: Array, strategy: Array) -> Array:
    own_losses = (strategies * losses).sum(1, keepdims=True)
    positive_regret = np.zeros(3)
    for gain in own_losses - losses:
        positive_regret = np.maximum(positive_regret + gain, 0)
    return normalised(positive_regret)


def blum_mansour(losses: Array, strategies: Array, strategy: Array) -> Array:
    rate = math.sqrt(4 * 3 * math.log(3) / (len(losses) + 1))
    loss_of_replacement = np.einsum("ta,tb->ab", strategies, losses)
    weights = np.exp(-rate * loss_of_replacement)
    return normalised(strategy @ (weights / weights.sum(1, keepdims=True)))


def swap_regret_matching(losses: Array, strategies: Array, strategy: Array) -> Array:
    own_losses = np.einsum("ta,ta->a", strategies, losses)[:, None]
    loss_of_replacement = np.einsum("ta,tb->ab", strategies, losses)
    positive_regret = np.maximum(own_losses - loss_of_replacement, 0)
    if not positive_regret.any():
        return np.full(3, 1 / 3)
    moving = positive_regret / (2 * positive_regret.sum(1).max())
    return normalised(strategy @ moving + strategy * (1 - moving.sum(1)))


def tree_swap(losses: Array, strategies: Array, strategy: Array) -> Array:
    """Average Hedge over the two nodes of the path, each on the steps that it has seen."""
    time = len(losses)
    rate = math.sqrt(8 * math.log(3) / 5)
    mean_of_nodes = np.zeros(3)
    for lifetime, step in ((25, 5), (5, 1)):  # depth 2, breadth 5
        born = time // lifetime * lifetime
        last_whole_step = time - (time - born) % step
        losses_of_steps = losses[born:last_whole_step].reshape(-1, step, 3).mean(1)
        mean_of_nodes += normalised(np.exp(-rate * losses_of_steps.sum(0))) / 2
    return normalised(mean_of_nodes)


# tolerances: sums in another order; a strategy is as stationary as doubles are
DEFINITIONS = {
    "follow-the-leader": (follow_the_leader, 0.0),
    "regret-matching": (regret_matching, 1e-9),
    "regret-matching-plus": (regret_matching_plus, 1e-9),
    "hedge": (hedge, 1e-12),
    "quantal-fictitious-play": (quantal_fictitious_play, 1e-12),
    "blum-mansour": (blum_mansour, 1e-12),
    "swap-regret-matching": (swap_regret_matching, 1e-12),
    "tree-swap": (tree_swap, 1e-12),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_learner_plays_its_definition(name: str) -> None:
    settings = TREE if name == "tree-swap" else NEEDED_SETTINGS.get(name, {})
    define, tolerance = DEFINITIONS[name]
    learner = started_learner(name, settings, rows=1, actions=3, horizon=70)
    log = play_against(replay(np.random.default_rng(4).random((70, 3))), learner, rounds=70)
    for time, strategy in enumerate(log.strategies[:, 0]):
        expected = define(log.losses[:time, 0], log.strategies[:time, 0], strategy)
        message = f"round {time}"
        np.testing.assert_allclose(strategy, expected, rtol=0, atol=tolerance, err_msg=message)


@pytest.mark.parametrize("name", ["regret-matching", "regret-matching-plus", "tree-swap"])
def test_sums_over_many_actions_are_those_of_numpy_to_the_last_bit(name: str) -> None:
    """What is played is the same as where NumPy adds up, in pairs from eight numbers on."""
    settings = TREE if name == "tree-swap" else {}
    learner = started_learner(name, settings, rows=2, actions=40, horizon=9)
    rng = np.random.default_rng(5)
    for _ in range(9):
        total_before = learner.state()["total"]
        strategy_before = learner.play()
        losses = rng.random((2, 40))
        learner.learn(losses, np.zeros(2, dtype=np.intp))
        if name == "tree-swap":
            weights = learner.state()["strategies"].sum(1)
        else:
            expected_loss = (strategy_before * losses).sum(1, keepdims=True)
            weights = np.maximum(total_before + (expected_loss - losses), 0.0)
        by_formula = weights / weights.sum(1, keepdims=True)
        assert learner.play().tobytes() == by_formula.tobytes()


TRANSITION_RATES = st.sampled_from([0.0, 1e-300, 1e-200, 1e-30, 1e-9, 0.1, 0.5, 1.0, 3.0])


def square_tables(states: int) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.float64, (states, states), elements=TRANSITION_RATES)


@given(st.integers(1, 6).flatmap(square_tables))
def test_stationary_strategies_balance_every_state(rates: Array) -> None:
    """Also where the chain is reducible, or nearly so."""
    strategy = np.empty(len(rates))
    stationary(rates.copy(), strategy)
    rates_between_states = rates * (1 - np.eye(len(rates)))
    inflow = strategy @ rates_between_states
    outflow = strategy * rates_between_states.sum(1)
    assert (strategy >= 0).all()
    assert strategy.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(inflow, outflow, rtol=1e-9, atol=1e-280)


@pytest.mark.parametrize(
    ("rate", "named"), [(True, "True"), ([0.1, 0.2], r"\[0.1, 0.2\]"), ("fixed", "'fixed'")]
)
def test_a_rate_that_is_none_is_refused_by_its_value(rate: object, named: str) -> None:
    with pytest.raises(UserError, match=f"rate = {named}"):
        Hedge(rate=rate).start(1, 2)  # type: ignore[arg-type]


class HedgeAtOwnRates(Hedge):
    """Exponential weights in which every row has a rate of its own."""

    name = "hedge-at-own-rates"

    def __init__(self, rates: object) -> None:
        super().__init__()
        self.rates = rates

    def rate_at(self, round_number: int) -> object:  # type: ignore[override]
        return self.rates


def test_each_row_of_a_hedge_may_have_a_rate_of_its_own() -> None:
    hedge = HedgeAtOwnRates(np.array([0.5, 2.0]))
    hedge.start(2, 2)

    hedge.learn(np.array([[0.0, 1.0], [0.0, 1.0]]), np.zeros(2, dtype=np.intp))

    odds = hedge.play()[:, 1] / hedge.play()[:, 0]
    assert odds == pytest.approx([math.exp(-0.5), math.exp(-2.0)])


@pytest.mark.parametrize("rates", [np.array([0.5, 0.5, 0.5]), "fast"])
def test_rates_that_are_not_one_for_each_row_are_refused(rates: object) -> None:
    hedge = HedgeAtOwnRates(rates)
    hedge.start(2, 2)
    with pytest.raises(UserError, match=r"rate_at returned .* one for each of 2 rows"):
        hedge.learn(np.zeros((2, 2)), np.zeros(2, dtype=np.intp))


def test_tree_swap_asks_for_the_horizon() -> None:
    with pytest.raises(UserError, match="needs the horizon"):
        TreeSwap().start(1, 2)


def test_a_learner_of_no_rows_is_refused() -> None:
    with pytest.raises(UserError, match="rows = 0"):
        Hedge().start(0, 2)


def test_a_horizon_of_no_rounds_is_refused() -> None:
    with pytest.raises(UserError, match="horizon = 0"):
        Hedge().start(1, 2, horizon=0)


def test_a_learner_of_ones_own_without_a_name_is_refused() -> None:
    nameless = type("Nameless", (TotalLearner,), {"step": lambda learner, *_: learner.strategy})
    register.learner("nameless")(nameless)
    cohort = {"name": "learners", "utility": "linear", "actions": 3, "response": "nameless"}
    with pytest.raises(UserError, match="learner 'nameless' has no name; add it"):
        make_scenario(cohort).build()
