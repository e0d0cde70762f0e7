"""Events: scalar gains and assignments by brute force; stretches of rounds and their intervals."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st
from streams import DESIGN, STREAMS
from weighing import adaptive

from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.base import SHORTEST, Intervals, covering
from regretless.forecaster.events.bounds import (
    CURBS,
    RATES,
    BiasBound,
    GainBound,
    gain_range,
    spread,
)
from regretless.forecaster.events.gains import Assignments
from regretless.forecaster.events.loss_table import played_of
from regretless.forecaster.events.weights import RULES, AdaptiveWeights, Moment, rule_of
from regretless.forecaster.reference import Band
from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.market.response import best_response, expected_losses

POLICIES = (lambda x: int(x) % 3, lambda x: (int(x) // 3) % 3)


def groups() -> list[ProtectedLosses]:
    rng = np.random.default_rng(0)
    first, second = -rng.dirichlet(np.ones(4), (3, 3)), rng.dirichlet(np.ones(4), (2, 2))
    return [
        ProtectedLosses(np.ones((3, 3)), first, POLICIES),
        ProtectedLosses(np.zeros((2, 2)), second),
    ]


Rounds = list[tuple[int, Array, Array, Array, Array]]


def charged(events: Any, count: int, models: int = 0) -> Rounds:
    """Charge random rounds: contexts, mixtures (3 points), truths, and what models say."""
    rng, rounds = np.random.default_rng(7), []
    for x in range(count):
        mixture = rng.random((3, 4)), rng.dirichlet(np.ones(3)), rng.random(4)
        rounds.append((x, *mixture, rng.random((models, 4))))
        told = events.rows.best_responses(rounds[-1][-1]) if models else None
        events.charge(events.active(x, told), played_of(events.rows, *mixture))
    return rounds


def best(group: ProtectedLosses, point: Array) -> Array:
    return best_response(expected_losses(group.offset, group.weights, point))


def gains(group: ProtectedLosses, rounds: Rounds) -> Array:
    """Add up a group's gains (K, A, A + C + M) from their definition, in units of the loss."""
    losses, actions, _ = group.weights.shape
    fixed = actions + len(group.policies)
    total = np.zeros((losses, actions, fixed + len(rounds[0][-1])))
    for x, points, mass, truth, advice in rounds:
        always = [*range(actions), *(policy(x) for policy in group.policies)]
        told = [best(group, said) for said in advice]
        for point, weight in zip(points, mass, strict=True):
            for k, a in enumerate(best(group, point)):
                others = group.weights[k, [*always, *(answer[k] for answer in told)]]
                total[k, a] += weight * (others - group.weights[k, a]) @ (point - truth)
    return total


def beside(own: list[ProtectedLosses]) -> Any:
    return VectorEvents(own) + GainEvents(own, models=2, fixed=False)


def test_gains_are_those_of_the_definition_beside_coordinates_and_among_scalars() -> None:
    both, alone = beside(groups()), GainEvents(groups(), models=2)
    rounds = charged(both, 30, models=2)
    charged(alone, 30, models=2)
    for beside_, among in zip(both.parts[1].members, alone.members, strict=True):
        expected = gains(among.group, rounds) / spread(among.group.weights)[:, None, None]
        actions = expected.shape[1]
        assert beside_.gain == pytest.approx(expected[..., -2:])
        own = among.gain.copy()
        own[:, range(actions), range(actions)] = 0.0  # never weighed against itself
        assert own == pytest.approx(expected)
    assert sum(row[4] for row in alone.table()) == pytest.approx(30 * 5)
    assert both.experts == VectorEvents(groups()).experts + 2 * (3 * 3 + 2 * 2)
    assert alone.experts == GainEvents(groups()).experts + 2 * (3 * 3 + 2 * 2)


def test_weights_beside_coordinates_are_those_of_one_family_of_experts() -> None:
    """All weights add up to 1, each the definition's share of them; models have a zone beside."""
    (group,) = own = groups()[1:]
    events = beside(own)
    charged(events, 40, models=2)
    told = events.rows.best_responses(np.random.default_rng(9).random((2, 4)))
    active = events.active(None, told)
    (view,) = active[0][1]
    plus, minus = (adaptive(sign * view.gain, view.variation, 0.25) for sign in (1, -1))
    gain, variation, _ = events.parts[1].arrays[0][:3]
    models = adaptive(gain, variation, 0.75)
    total = plus.sum() + minus.sum() + models.sum()
    table = (plus - minus) / total
    r, scale = group.weights, spread(group.weights)
    for (k, a, m), share in np.ndenumerate(models.reshape(2, 2, 2) / total):
        table[k * 2 + a] += share * (r[k, told[k, m]] - r[k, a]) / scale[k]
    moment = Moment(41, events.experts, Band(0.25, 0.5))
    assert events.table_of(active, moment) == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("name", RULES)
def test_the_table_pulls_towards_what_comparators_gain(name: str, zone: float) -> None:
    """H_(k, a) = sum_c w_c (r(c) - r(a)) / scale, no weight for the action itself, total 1."""
    events = GainEvents(groups(), rule_of(name))
    charged(events, 9)
    x = 4
    moment = Moment(10, events.experts, Band(zone))
    table = events.table_of(events.active(x), moment)
    found = events.rule.weigh(*events.arrays[0][:2], moment)
    weights, total = found.weights(found.top, 1.0)
    weights /= total
    expected: list[Array] = []
    for group in events.groups:
        losses, actions, _ = group.weights.shape
        comparators = [*range(actions), *(policy(x) for policy in group.policies)]
        own, weights = np.split(weights, [losses * actions * len(comparators)])
        own = own.reshape(losses, actions, -1)
        assert not own[:, range(actions), range(actions)].any()
        pulls = group.weights[:, None, comparators] - group.weights[:, :, None]
        scale = gain_range(group.weights, None)[:, None, None]
        expected.extend(((own[..., None] * pulls).sum(2) / scale).reshape(-1, 4))
    assert not len(weights)
    assert table == pytest.approx(np.array(expected), abs=1e-12)
    assert events.experts == 3 * 3 * (3 - 1 + 2) + 2 * 2 * 1


def test_the_bound_of_a_simplex_knows_no_number_of_cells() -> None:
    """Where predictions stay in conv s(Y) the range of a gain is 2, whatever lambda and n."""
    weights = np.random.default_rng(0).random((2, 3, 40))
    given = AdaptiveWeights(), 500, 1000, 0.0
    inside, box = (GainBound(*given, within=within) for within in (2.0, None))
    assert gain_range(weights, 2.0) == pytest.approx(2.0)
    assert (inside.regret(weights) < box.regret(weights) / 4).all()
    assert (inside.regret(weights, policies=5) == inside.regret(weights)).all()
    assert (inside.regret(weights) < BiasBound(*given).regret(weights)).all()
    shops = worlds.cohort(
        "shops", 5, 4, "newsvendor", basis={"kind": "lipschitz-grid", "error": 0.05}
    )
    nature, table = {"kind": "iid", "outcomes": 1}, {"kind": "decision-swap", "events": "losses"}
    model = worlds.scenario(shops, adversary=nature, forecaster=table).build()
    events: Any = model.game.blocks[0].forecaster.instances[0].events
    assert events.within == pytest.approx(2 + 4 * 0.05)


LOSSES, ACTIONS, SIZE = 2, 3, 2


def group(seed: int = 0) -> ProtectedLosses:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-0.5, 0.5, (LOSSES, ACTIONS, SIZE))
    return ProtectedLosses(
        rng.uniform(0.3, 0.7, (LOSSES, ACTIONS)), weights, (lambda x: int(x) % 2,)
    )


def nature(kind: str, rng: np.random.Generator, mean: Array, t: int) -> Array:
    match kind:
        case "hostile":
            return (mean < 0.5).astype(float)
        case "switching":
            return np.array([0.9, 0.1]) if t // 20 % 2 else np.array([0.1, 0.9])
        case _:
            return (rng.random(SIZE) < 0.3).astype(float)


def played(
    kind: str, rounds: int, seed: int = 0, *, drawn: bool = False, **reference: Any
) -> tuple[UnbiasedPrediction, list[Any]]:
    """Play, and log mixtures or what was drawn of them."""
    rng, risk = np.random.default_rng(seed), 0.01 if drawn else None
    forecaster = UnbiasedPrediction(Assignments([group(seed)], risk=risk), seed=seed, **reference)
    log = []
    for t in range(rounds):
        forecast = forecaster.predict(t)
        mixture = forecast.mixture
        truth = nature(kind, rng, mixture.mean, t)
        forecaster.update(truth)
        told = (
            (forecast.statistics[None], np.ones(1)) if drawn else (mixture.points, mixture.weights)
        )
        log.append((*told, truth, t % 2))
    return forecaster, log


def regrets(protected: ProtectedLosses, log: list[Any]) -> Array:
    """Each loss's greatest gain of all assignments of comparators."""
    gains = np.zeros((LOSSES, ACTIONS, ACTIONS + 1))
    for points, masses, truth, told in log:
        costs = protected.offset + protected.weights @ truth
        for point, mass in zip(points, masses, strict=True):
            chosen = np.argmin(protected.offset + protected.weights @ point, axis=1)
            for k, a in enumerate(chosen):
                options = [*costs[k], costs[k, told]]
                gains[k, a] += mass * (costs[k, a] - np.array(options))
    return np.asarray(gains.max(2).sum(1))


def test_assignments_add_up_gains_and_their_squares_given_that_one_plays() -> None:
    """And, as long as a model is broadcast, what was regretted, which no game weighs."""
    events = Assignments(groups())
    rounds = charged(events, 30)
    rows, known = events.rows, [part.copy() for part in events._parts]
    point, truth = np.full((1, 4), 0.3), np.array([0.9, 0.1, 0.4, 0.2])
    trusted = played_of(rows, point, np.ones(1), truth)
    trusted = trusted._replace(losses=rows.offset + rows.times(truth))
    events.charge(events.active(31), trusted)
    for member, before, after in zip(events.members, known, events._parts, strict=True):
        of, scale = member.group, member.scale[:, None, None]
        each = np.stack([gains(of, [one]) for one in rounds]) / scale
        shares = (
            np.einsum("m,mka->ka", mass, np.eye(len(of.offset[0]))[[best(of, at) for at in points]])
            for _, points, mass, *_ in rounds
        )
        chance = np.stack([*shares])[..., None]
        squares = np.divide(each**2, chance, out=np.zeros_like(each), where=chance > 0)
        np.testing.assert_allclose(before[:2], [each.sum(0), squares.sum(0)], atol=1e-12)
        np.testing.assert_array_equal(after[:2], before[:2])
        losses, told = of.offset + of.weights @ truth, [policy(31) for policy in of.policies]
        comparators = [*range(of.offset.shape[1]), *told]
        expected = np.zeros(after[2].shape)
        for k, a in enumerate(best(of, point[0])):
            moved = (of.weights[k, comparators] - of.weights[k, a]) @ (point[0] - truth)
            regret = np.minimum(moved, losses[k, a] - losses[k, comparators])
            most = min(member.scale[k], 1.0)
            expected[k, a] = np.clip(regret, -most, most) / member.scale[k]
        np.testing.assert_allclose(after[2], expected, atol=1e-12)


def test_the_potential_is_that_of_all_assignments() -> None:
    forecaster, _ = played("switching", 60)
    events: Any = forecaster.events
    gain, squares, _ = events._parts[0]
    both, alone = (
        np.exp(kind.log_potential(events, forecaster.band)) for kind in (Assignments, GainEvents)
    )
    every = list(product(range(ACTIONS + 1), repeat=ACTIONS))
    total = 0.0
    for k in range(LOSSES):
        for phi in every:
            g, u = gain[k, range(ACTIONS), list(phi)].sum(), squares[k, range(ACTIONS), phi].sum()
            total += float(np.exp(RATES * g - CURBS * u).mean())
    price = events.share * events.experts / LOSSES
    assert both - alone == pytest.approx(price * total / len(every))

    moment = Moment(61, events.experts, forecaster.band)
    *_, own = events.weigh(events.active(0), moment)  # eta_j F_kj s(a, c) price / J, below the top
    found = own.weights(own.top + 1.0, 2.0)[0].reshape(gain.shape)
    powers = np.exp(RATES[:, None] * gain[:, :, None] - CURBS[:, None] * squares[:, :, None])
    sums = powers.sum(3)
    each = RATES * sums.prod(1) * price / len(RATES) / len(every)
    expected = np.einsum("kj,kajc->kac", each, powers / sums[..., None])
    np.testing.assert_allclose(found, 2.0 * np.exp(-own.top - 1.0) * expected, rtol=1e-9)


def test_the_potential_grows_by_no_more_than_the_certificates() -> None:
    """W of a whole run stays below N e^(k S) (1 + r + l mean ln(1 + C))."""
    forecaster, _ = played("hostile", 200)
    bound: Any = forecaster.known_bound()
    mean = forecaster.events.log_potential(forecaster.band) - np.log(forecaster.events.experts)
    assert mean <= bound.rule.growth(bound) + 1e-9


@pytest.mark.parametrize("kind", ["hostile", "switching", "random"])
def test_what_is_drawn_keeps_its_bound(kind: str) -> None:
    """Realised regret, against the bound that needs nothing for the draws; it may fail in 1 %."""
    for seed in range(5):
        forecaster, log = played(kind, 150, seed, drawn=True)
        protected = forecaster.events.groups[0]
        assert np.all(regrets(protected, log) <= forecaster.realised(protected))
        known = forecaster.known_bound().realised(protected.weights, policies=1)
        assert np.all(regrets(protected, log) / 150 <= known)


LENGTHS = [32, 64, 128, 256]


def market(stream: str, rounds: int, **forecaster: Any) -> MarketModel:
    raw = dict(DESIGN.base) | {"rounds": rounds, "windows": {"every": 150}, "seed": 4}
    raw["adversary"] = {"outcomes": 3} | STREAMS[stream]
    raw["forecaster"] = {"intervals": True} | forecaster
    return worlds.told(raw, origin=DESIGN.origin).build(log_every=rounds)


@given(st.integers(1, 500), st.integers(1, 500))
def test_any_stretch_is_made_of_few_intervals(first: int, rounds: int) -> None:
    lengths = list(covering(first, first + rounds, LENGTHS))
    assert sum(lengths) == rounds
    starts = first + np.cumsum([0, *lengths[:-1]])
    assert all(start % length == 0 for start, length in zip(starts, lengths, strict=True))
    assert lengths.count(1) <= 2 * (SHORTEST - 1)
    assert all(lengths.count(m) <= 2 for m in LENGTHS[:-1])


def test_an_open_interval_knows_its_own_rounds_alone() -> None:
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((2, 3)), rng.random((2, 3, 2)))
    events, alone = Intervals(lambda: VectorEvents([group]), rounds=200), VectorEvents([group])
    for t in range(100):
        mixture = rng.random((2, 2)), np.array([0.3, 0.7]), rng.random(2)
        played = played_of(events.rows, *mixture)
        events.charge(events.active(None), played)
        if t >= 96:
            alone.charge(alone.active(None), played)
    short, long = (part.views[0] for part in events.parts[1:3])  # type: ignore[attr-defined]
    for known, own in zip(short.arrays, alone.views[0].arrays, strict=True):
        assert np.array_equal(known, own)
    assert long.occupancy.sum() == pytest.approx(2 * 36)
    assert len(events.active(None)) == 1 + 2
    assert events.experts == VectorEvents([group]).experts * (1 + 3)
    twin = Intervals(lambda: VectorEvents([group]), rounds=200)
    twin.restore(events.state())
    assert twin.spent() == events.spent()


@pytest.mark.parametrize("kind", [VectorEvents, GainEvents, Assignments])
def test_a_run_without_an_interval_is_its_events_alone(kind: Any) -> None:
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((2, 3)), rng.random((2, 3, 2)))
    events, alone = Intervals(lambda: kind([group]), rounds=SHORTEST), kind([group])
    for own in (events, alone):
        for t in range(20):
            mixture = np.eye(2), np.array([0.3, 0.7]), np.array([t % 2, 1.0])
            own.charge(own.active(None), played_of(own.rows, *mixture))
    assert events.log_potential(Band()) == pytest.approx(alone.log_potential(Band()))
    assert events.spent() == alone.spent() > 0
    moment = Moment(21, alone.experts)
    tables = [own.table_of(own.active(None), moment) for own in (events, alone)]
    assert np.array_equal(*tables)


KEYS: list[dict[str, Any]] = [
    {},
    {"weights": "second-order", "models": ["last-value"], "events": "coordinates"},
    {"weights": "exponential", "models": ["last-value", "running-mean"]},
    {"models": ["last-value"], "delay": 2},
]
# Every stream with two sets of keys, every set of keys with two streams.
MET = [(s, KEYS[(i + k) % len(KEYS)]) for i, s in enumerate(STREAMS) for k in range(2)]


@pytest.mark.parametrize(("stream", "keys"), MET)
def test_no_window_and_no_run_passes_its_bound(stream: str, keys: dict[str, Any]) -> None:
    played = market(stream, 210, **keys)
    played.run()
    agents, windows = played.agents_frame(), played.windows_frame()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    assert windows["bound"].notna().all()
    assert (windows["swap_regret"] <= windows["bound"]).all()


def test_the_bound_of_an_interval_is_of_the_root_of_its_length() -> None:
    player = market("iid", 60).game.blocks[0].forecaster
    player.mixture()
    player.update(np.zeros(player.events.size))
    bias, group = player.bias_bound(), player.events.groups[0]
    sums = [bias.over_intervals(group.weights, [m], run=10**6).max() for m in (4096, 65536)]
    assert sums[1] / sums[0] < 5  # of the root of 16


def test_every_interval_has_a_small_bias_after_a_long_past() -> None:
    """Biases of open intervals stay below what their own rounds allow."""
    played = market("switching", 600)
    player = played.game.blocks[0].forecaster
    for _ in range(600):
        played.step()
        for length, level in zip(player.events.lengths, player.events.parts[1:], strict=True):
            bias, *_, occupancy = level.views[0].arrays
            exponent = player.bias_bound().exponent + np.log(600 / length)
            assert (np.abs(bias).max(1) <= np.sqrt(3 * occupancy * exponent) + 1e-9).all()
    assert all(short < long for short, long in pairwise(player.events.lengths))
