"""Events by brute force: biases, gains, assignments; stretches of rounds and their intervals."""

from collections import defaultdict
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, read_scenario
from streams_study import STREAMS, STREAMS_DESIGN
from weights_by_definition import adaptive_weights

from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster import guarantees as bounds
from regretless.forecaster.events.base import MIN_INTERVAL, Intervals, covering
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.events.loss_table import played_of
from regretless.forecaster.guarantees.gain_bound import ASSIGNMENT_COSTS, ASSIGNMENT_RATES
from regretless.forecaster.reference import Band
from regretless.forecaster.weights import RULES, AdaptiveWeights, BoundInputs, Moment, rule_of
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel

POLICIES = (lambda x: int(x) % 3, lambda x: (int(x) // 3) % 3)
LENGTHS = [32, 64, 128, 256]
Rounds = list[tuple[int, Array, Array, Array, Array]]


def two_groups() -> list[ProtectedLosses]:
    """Return random losses with policies, and two others without."""
    rng = np.random.default_rng(0)
    first = -rng.dirichlet(np.ones(4), (3, 3))
    second = rng.dirichlet(np.ones(4), (2, 2))
    advised = ProtectedLosses(np.ones((3, 3)), first, POLICIES)
    return [advised, ProtectedLosses(np.zeros((2, 2)), second)]


def charge_random_rounds(events: Any, count: int, models: int = 0) -> Rounds:
    """Charge random rounds: contexts, mixtures (3 points), truths, and what models say."""
    rng = np.random.default_rng(7)
    rounds = []
    for x in range(count):
        mixture = rng.random((3, 4)), rng.dirichlet(np.ones(3)), rng.random(4)
        rounds.append((x, *mixture, rng.random((models, 4))))
        suggested_actions = events.rows.best_responses(rounds[-1][-1]) if models else None
        events.charge(events.active(x, suggested_actions), played_of(events.rows, *mixture))
    return rounds


def best_responses(group: ProtectedLosses, point: Array) -> Array:
    """Return the best action of each loss at a prediction."""
    return best_response(expected_losses(group.offset, group.weights, point))


def gains_by_definition(group: ProtectedLosses, rounds: Rounds) -> Array:
    """Add up a group's gains (K, A, A + C + M) from their definition, in units of the loss."""
    losses, actions, _ = group.weights.shape
    fixed = actions + len(group.policies)
    total = np.zeros((losses, actions, fixed + len(rounds[0][-1])))
    for x, points, mass, truth, advice in rounds:
        always = [*range(actions), *(policy(x) for policy in group.policies)]
        suggested_actions = [best_responses(group, statistics) for statistics in advice]
        for point, weight in zip(points, mass, strict=True):
            for k, a in enumerate(best_responses(group, point)):
                comparator_weights = group.weights[
                    k, [*always, *(answer[k] for answer in suggested_actions)]
                ]
                total[k, a] += weight * (comparator_weights - group.weights[k, a]) @ (point - truth)
    return total


def biases_by_definition(
    protected_groups: list[ProtectedLosses], rounds: Rounds
) -> dict[tuple[Any, ...], Array]:
    """Add up the biases and the occupancy of every event (n + 1,) from their definition."""
    bias_and_occupancy: dict[tuple[Any, ...], Array] = defaultdict(lambda: np.zeros(5))
    for x, points, mass, truth, _ in rounds:
        for point, weight in zip(points, mass, strict=True):
            step = weight * np.append(point - truth, 1.0)
            played = [
                (group, a) for group in protected_groups for a in best_responses(group, point)
            ]
            for k, (group, a) in enumerate(played):
                suggestions = enumerate(policy(x) for policy in group.policies)
                for event in [(None, None), *suggestions]:
                    bias_and_occupancy[k, a, *event] += step
    return bias_and_occupancy


def coordinates_beside_gains(protected_groups: list[ProtectedLosses]) -> Any:
    """Return events of coordinates, beside which gains over two models are weighed."""
    return VectorEvents(protected_groups) + GainEvents(protected_groups, models=2, fixed=False)


def test_biases_and_gains_beside_them_and_alone_are_those_of_the_definition() -> None:
    coordinates_and_gains = coordinates_beside_gains(two_groups())
    gains_alone = GainEvents(two_groups(), models=2)
    rounds = charge_random_rounds(coordinates_and_gains, 30, models=2)
    charge_random_rounds(gains_alone, 30, models=2)
    bias_and_occupancy = biases_by_definition(two_groups(), rounds)
    table = list(coordinates_and_gains.table())
    for *event, occupancy, bias in table:
        assert np.append(bias, occupancy) == pytest.approx(bias_and_occupancy[tuple(event)])
    for beside_coordinates, standalone in zip(
        coordinates_and_gains.parts[1].members, gains_alone.members, strict=True
    ):
        expected = (
            gains_by_definition(standalone.group, rounds)
            / bounds.spread(standalone.group.weights)[:, None, None]
        )
        actions = expected.shape[1]
        assert beside_coordinates.gain == pytest.approx(expected[..., -2:])
        gains_over_others = standalone.gain.copy()
        gains_over_others[:, range(actions), range(actions)] = 0.0  # never weighed against itself
        assert gains_over_others == pytest.approx(expected)
    assert sum(row[4] for row in gains_alone.table()) == pytest.approx(30 * 5)
    assert len(table) == 9 * (1 + 2 * 3) + 4
    assert coordinates_and_gains.experts == 2 * 4 * len(table) + 2 * (3 * 3 + 2 * 2)
    assert gains_alone.experts == 3 * 3 * (3 - 1 + 2) + 2 * 2 * 1 + 2 * (3 * 3 + 2 * 2)


def test_weights_beside_coordinates_are_those_of_one_family_of_experts() -> None:
    """All weights add up to 1, each the definition's share of them; models have a zone beside."""
    (group,) = protected_groups = two_groups()[1:]
    events = coordinates_beside_gains(protected_groups)
    charge_random_rounds(events, 40, models=2)
    suggested_actions = events.rows.best_responses(np.random.default_rng(9).random((2, 4)))
    active = events.active(None, suggested_actions)
    (view,) = active[0][1]
    plus, minus = (adaptive_weights(sign * view.gain, view.variation, 0.25) for sign in (1, -1))
    gain, variation, _ = events.parts[1].arrays[0][:3]
    models = adaptive_weights(gain, variation, 0.75)
    total = plus.sum() + minus.sum() + models.sum()
    table = (plus - minus) / total
    r = group.weights
    scale = bounds.spread(group.weights)
    for (k, a, m), share in np.ndenumerate(models.reshape(2, 2, 2) / total):
        table[k * 2 + a] += share * (r[k, suggested_actions[k, m]] - r[k, a]) / scale[k]
    moment = Moment(41, events.experts, Band(0.25, 0.5))
    assert events.table_of(active, moment) == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("name", RULES)
def test_the_table_pulls_towards_what_comparators_gain(name: str, zone: float) -> None:
    """H_(k, a) = sum_c w_c (r(c) - r(a)) / scale, no weight for the action itself, total 1."""
    events = GainEvents(two_groups(), rule_of(name))
    charge_random_rounds(events, 9)
    moment = Moment(10, events.experts, Band(zone))
    experts = events.rule.weigh(*events.arrays[0][:2], moment)
    weights, total = experts.relative_to(experts.largest_exponent)
    expected: list[Array] = []
    for group in events.groups:
        losses, actions, _ = group.weights.shape
        comparators = [*range(actions), *(policy(4) for policy in group.policies)]
        group_weights, weights = np.split(weights / total, [losses * actions * len(comparators)])
        group_weights = group_weights.reshape(losses, actions, -1)
        total = 1.0
        assert not group_weights[:, range(actions), range(actions)].any()
        pulls = group.weights[:, None, comparators] - group.weights[:, :, None]
        scale = bounds.gain_range(group.weights, None)[:, None, None]
        expected.extend(((group_weights[..., None] * pulls).sum(2) / scale).reshape(-1, 4))
    assert not len(weights)
    assert events.table_of(events.active(4), moment) == pytest.approx(np.array(expected), abs=1e-12)


def test_the_bound_of_a_simplex_knows_no_number_of_cells() -> None:
    """Where predictions stay in conv s(Y) the range of a gain is 2, whatever lambda and n."""
    weights = np.random.default_rng(0).random((2, 3, 40))
    rule_and_inputs = AdaptiveWeights(), BoundInputs(500, 1000, 0.0)
    inside, box = (bounds.GainBound(*rule_and_inputs, within=within) for within in (2.0, None))
    assert bounds.gain_range(weights, 2.0) == pytest.approx(2.0)
    assert (inside.a_priori(weights) < box.a_priori(weights) / 4).all()
    assert (inside.a_priori(weights, policies=5) == inside.a_priori(weights)).all()
    assert (
        inside.a_priori(weights) < bounds.CoordinateBound(*rule_and_inputs).a_priori(weights)
    ).all()
    cells = {"kind": "lipschitz-grid", "error": 0.05}
    shops = cohort_table("shops", 5, 4, "newsvendor", basis=cells)
    nature = {"kind": "iid", "outcomes": 1}
    table = {"kind": "decision-swap", "events": "losses"}
    model = make_scenario(shops, adversary=nature, forecaster=table).build()
    events: Any = model.game.blocks[0].forecaster.instances[0].events
    assert events.within == pytest.approx(2 + 4 * 0.05)


def test_assignments_add_up_gains_and_their_squares_given_that_one_plays() -> None:
    """And, as long as a model is broadcast, what was regretted, which no game weighs."""
    events = Assignments(two_groups())
    rounds = charge_random_rounds(events, 30)
    rows = events.rows
    parts_before = [part.copy() for part in events._assignment_sums]
    point = np.array([[0.1, 0.4, 0.3, 0.7]])
    truth = np.array([0.9, 0.1, 0.4, 0.2])
    trusted = played_of(rows, point, np.ones(1), truth)
    trusted = trusted._replace(reference_is_trusted=True)
    events.charge(events.active(31), trusted)
    for member, before, after in zip(
        events.members, parts_before, events._assignment_sums, strict=True
    ):
        group = member.group
        scale = member.scale[:, None, None]
        gains_of_rounds = (
            np.stack([gains_by_definition(group, [one_round]) for one_round in rounds]) / scale
        )
        shares = (
            np.einsum(
                "m,mka->ka",
                mass,
                np.eye(len(group.offset[0]))[[best_responses(group, at) for at in points]],
            )
            for _, points, mass, *_ in rounds
        )
        chance = np.stack([*shares])[..., None]
        squares = np.divide(
            gains_of_rounds**2, chance, out=np.zeros_like(gains_of_rounds), where=chance > 0
        )
        np.testing.assert_allclose(before[:2], [gains_of_rounds.sum(0), squares.sum(0)], atol=1e-12)
        np.testing.assert_array_equal(after[:2], before[:2])
        losses = group.offset + group.weights @ truth
        suggested_actions = [policy(31) for policy in group.policies]
        comparators = [*range(group.offset.shape[1]), *suggested_actions]
        expected = np.zeros(after[2].shape)
        for k, a in enumerate(best_responses(group, point[0])):
            moved = (group.weights[k, comparators] - group.weights[k, a]) @ (point[0] - truth)
            regret = np.minimum(moved, losses[k, a] - losses[k, comparators])
            expected[k, a] = regret / member.scale[k]
        np.testing.assert_allclose(after[2], expected, atol=1e-12)


@pytest.mark.parametrize("checkpoint_round", [4, 10])  # before and after the first game
def test_assignments_know_what_was_gained_before_the_games_from_whatever_round_they_count(
    checkpoint_round: int,
) -> None:
    """Until the games begin they repeat the gains; after a checkpoint they are added up apart."""
    events = Assignments(two_groups(), risk=0.01)
    resumed = Assignments(two_groups(), risk=0.01)
    rng = np.random.default_rng(3)
    for round_index in range(12):
        broadcast = played_of(events.rows, rng.random((1, 4)), np.ones(1), rng.random(4))
        played = broadcast._replace(reference_is_trusted=round_index < 8)
        played = played._replace(as_drawn=played)
        if round_index == checkpoint_round:
            resumed.restore(events.state())
        events.charge(events.active(round_index), played)
        if round_index >= checkpoint_round:
            resumed.charge(resumed.active(round_index), played)

    for member, sums, sums_of_resumed in zip(
        events.members, events._assignment_sums, resumed._assignment_sums, strict=True
    ):
        np.testing.assert_array_equal(sums, sums_of_resumed)
        gains_in_all = np.where(np.isfinite(member.gain), member.gain, 0.0)
        np.testing.assert_allclose(sums[0] + sums[2], gains_in_all, atol=1e-12)
        np.testing.assert_allclose(sums[3], member.margin, atol=1e-12)
        assert sums[0].any()
        assert sums[2].any()


def test_assignments_that_count_draws_are_charged_what_was_broadcast() -> None:
    """The gains beside them stay those of the whole mixture."""
    rng = np.random.default_rng(2)
    events = Assignments(two_groups(), risk=0.01)
    points = rng.random((3, 4))
    truth = rng.random(4)
    mixture = played_of(events.rows, points, rng.dirichlet(np.ones(3)), truth)
    broadcast = played_of(events.rows, points[:1], np.ones(1), truth)
    events.charge(events.active(5), mixture._replace(as_drawn=broadcast))
    of_broadcast = Assignments(two_groups())
    of_broadcast.charge(of_broadcast.active(5), broadcast)
    of_mixture = GainEvents(two_groups())
    of_mixture.charge(of_mixture.active(5), mixture)
    for sums, expected_sums in zip(
        events._assignment_sums, of_broadcast._assignment_sums, strict=True
    ):
        np.testing.assert_allclose(sums, expected_sums, atol=1e-12)
    for member, expected_member in zip(events.members, of_mixture.members, strict=True):
        np.testing.assert_allclose(member.gain, expected_member.gain, atol=1e-12)


def test_the_potential_and_the_weights_are_those_of_all_assignments() -> None:
    events = Assignments(two_groups())
    charge_random_rounds(events, 60)
    price = events.prior_of_assignments * events.experts / (3 + 2)
    moment = Moment(61, events.experts)
    rates = ASSIGNMENT_RATES
    total = 0.0
    *_, assignments = events.weigh(events.active(0), moment)
    exponent = assignments.weights.largest_exponent + 1.0
    weights, _total = assignments.weights.relative_to(exponent, 2.0)
    start = 0
    for gain, squares, *_ in events._assignment_sums:
        losses, actions, comparators = gain.shape
        every = list(product(range(comparators), repeat=actions))
        expected = np.zeros(gain.shape)
        for k, phi in product(range(losses), every):
            assigned_entries = k, range(actions), list(phi)
            moved = (
                rates * gain[assigned_entries].sum()
                - ASSIGNMENT_COSTS * squares[assigned_entries].sum()
            )
            total += price * np.exp(moved).mean() / len(every)
            expected[assigned_entries] += price * (rates * np.exp(moved)).mean() / len(every)
        part_weights = weights[start : start + gain.size].reshape(gain.shape)
        np.testing.assert_allclose(part_weights, 2.0 * np.exp(-exponent) * expected, rtol=1e-9)
        start += gain.size
    with_assignments, without_assignments = (
        np.exp(kind.log_potential(events, Band())) for kind in (Assignments, GainEvents)
    )
    assert with_assignments - without_assignments == pytest.approx(total)


def play_assignments(
    kind: str, rounds: int, seed: int = 0, risk: float | None = None
) -> tuple[Any, Array]:
    """Play; the greatest gain of any assignment over what was drawn (losses,)."""
    rng = np.random.default_rng(seed)
    nature = np.random.default_rng(seed)
    weights = rng.uniform(-0.5, 0.5, (2, 3, 2))
    protected = ProtectedLosses(rng.uniform(0.3, 0.7, (2, 3)), weights, (lambda x: int(x) % 2,))
    forecaster = UnbiasedPrediction(Assignments([protected], risk=risk), seed=seed)
    gained = np.zeros((2, 3, 4))
    for t in range(rounds):
        forecast = forecaster.predict(t)
        truth = {
            "hostile": (forecast.mixture.mean < 0.5).astype(float),
            "switching": np.array([0.9, 0.1] if t // 20 % 2 else [0.1, 0.9]),
            "random": (nature.random(2) < 0.3).astype(float),
        }[kind]
        forecaster.update(truth)
        costs = protected.offset + protected.weights @ truth
        for k, a in enumerate(best_responses(protected, forecast.statistics)):
            gained[k, a] += costs[k, a] - costs[k, [0, 1, 2, t % 2]]
    return forecaster, gained.max(2).sum(1)


def test_the_potential_grows_by_no_more_than_the_certificates() -> None:
    """W of a whole run stays below N e^(k S) (1 + r + l mean ln(1 + C))."""
    forecaster, _ = play_assignments("hostile", 200)
    bound = forecaster.known_bound()
    mean = forecaster.events.log_potential(forecaster.band) - np.log(forecaster.events.experts)
    assert mean <= bound.rule.log_growth(bound.inputs) + 1e-9


@pytest.mark.parametrize("kind", ["hostile", "switching", "random"])
def test_what_is_drawn_keeps_its_bound(kind: str) -> None:
    """Realised regret, against the bound that needs nothing for the draws; it may fail in 1 %."""
    for seed in range(5):
        forecaster, regret = play_assignments(kind, 150, seed, risk=0.01)
        (protected,) = forecaster.events.groups
        assert np.all(regret <= forecaster.realised(protected))
        assert np.all(
            regret / 150 <= forecaster.known_bound().realised(protected.weights, policies=1)
        )


@given(st.integers(1, 500), st.integers(1, 500))
def test_any_stretch_is_made_of_few_intervals(first: int, rounds: int) -> None:
    lengths = list(covering(first, first + rounds, LENGTHS))
    assert sum(lengths) == rounds
    starts = first + np.cumsum([0, *lengths[:-1]])
    assert all(start % length == 0 for start, length in zip(starts, lengths, strict=True))
    assert lengths.count(1) <= 2 * (MIN_INTERVAL - 1)
    assert all(lengths.count(m) <= 2 for m in LENGTHS[:-1])
    assert [*covering(0, 64, LENGTHS)] == [1] * 32 + [32]  # none begins with the run


def test_an_interval_knows_its_own_rounds_alone() -> None:
    """What all of them have spent counts by their length, that of the run as a whole."""
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((2, 3)), rng.random((2, 3, 2)))
    events = Intervals(lambda: VectorEvents([group]), rounds=200)
    intervals = (200, 0), (32, 96), (64, 64), (32, 32), (32, 64)  # of each length, in which round
    separate_events = [VectorEvents([group]) for _ in intervals]
    for t in range(100):
        played = played_of(events.rows, rng.random((2, 2)), np.array([0.3, 0.7]), rng.random(2))
        open_ = (
            events_of_interval
            for events_of_interval, (m, t0) in zip(separate_events, intervals, strict=True)
            if t0 <= t < t0 + m
        )
        for events_of_interval in (events, *open_):
            events_of_interval.charge(events_of_interval.active(None), played)
    for part, events_of_interval in zip(events.parts[:3], separate_events[:3], strict=True):
        for kept_array, expected in zip(
            part.views[0].arrays, events_of_interval.views[0].arrays, strict=True
        ):
            assert np.array_equal(kept_array, expected)
    spent = [
        m / 200 * events_of_interval.sum_of_log_variations()
        for events_of_interval, (m, _) in zip(separate_events, intervals, strict=True)
    ]
    assert events.sum_of_log_variations() == pytest.approx(sum(spent))
    assert len(events.active(None)) == 1 + 2
    assert events.experts == separate_events[0].experts * (1 + 3)


@pytest.mark.parametrize("kind", [VectorEvents, GainEvents, Assignments])
def test_a_run_without_an_interval_is_its_events_alone(kind: Any) -> None:
    events = Intervals(lambda: kind(two_groups()), rounds=MIN_INTERVAL)
    separate_events = kind(two_groups())
    for events_kept in (events, separate_events):
        charge_random_rounds(events_kept, 20)
    assert events.log_potential(Band()) == pytest.approx(separate_events.log_potential(Band()))
    assert events.sum_of_log_variations() == separate_events.sum_of_log_variations() > 0
    moment = Moment(21, separate_events.experts)
    assert np.array_equal(
        *(
            events_kept.table_of(events_kept.active(0), moment)
            for events_kept in (events, separate_events)
        )
    )


def market_of_stream(stream: str, rounds: int, **forecaster: Any) -> MarketModel:
    """Build the market of a stream with intervals."""
    raw = dict(STREAMS_DESIGN.base) | {"rounds": rounds, "windows": {"every": 150}, "seed": 4}
    raw["adversary"] = {"outcomes": 3} | STREAMS[stream]
    raw["forecaster"] = {"intervals": True} | forecaster
    return read_scenario(raw, origin=STREAMS_DESIGN.origin).build(log_every=rounds)


KEYS: list[dict[str, Any]] = [
    {},
    {"weights": "second-order", "models": ["last-value"], "events": "coordinates"},
    {"weights": "exponential", "models": ["last-value", "running-mean"]},
    {"models": ["last-value"], "delay": 2},
    {"intervals": False, "models": ["running-mean"], "delay": 1},
]
# Every stream with two sets of keys, every set of keys with two streams.
MET = [(s, KEYS[(i + k) % len(KEYS)]) for i, s in enumerate(STREAMS) for k in range(2)]


@pytest.mark.parametrize(("stream", "keys"), MET)
def test_no_window_and_no_run_passes_its_bound(stream: str, keys: dict[str, Any]) -> None:
    played = market_of_stream(stream, 210, **keys)
    played.run()
    agents = played.agents_frame()
    windows = played.windows_frame()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    assert windows["bound"].notna().all()
    assert (windows["swap_regret"] <= windows["bound"]).all()


def test_the_margins_of_its_rounds_lower_the_bound_of_a_declared_window() -> None:
    declared = market_of_stream("switching", 300, reference={"kind": "none"}, models=[])
    declared.run()
    windows = declared.windows_frame()
    (guarantee,) = {id(one): one for one in declared.guarantees}.values()
    assert guarantee.window is not None
    for _, rows in windows.groupby("first"):
        first, last = int(rows["first"].iloc[0]), int(rows["last"].iloc[0])
        by_intervals_alone = guarantee.window(first, last - 1)  # no window that was declared
        assert rows["bound"].max() < by_intervals_alone.max() / 2


def test_every_interval_has_a_small_bias_after_a_long_past() -> None:
    """Biases of open intervals stay below what their own rounds allow, like the root of these."""
    played = market_of_stream("switching", 600)
    player: Any = played.game.blocks[0].forecaster
    for _ in range(600):
        played.step()
        bound = player.bias_bound()
        for length, level in zip(player.events.lengths, player.events.parts[1:], strict=True):
            (sums, *_) = level.views
            bias = sums.gain
            occupancy = sums.occupancy
            exponent = bound.exponent + np.log(600 / length)
            assert (np.abs(bias).max(1) <= np.sqrt(3 * occupancy * exponent) + 1e-9).all()
    assert all(short < long for short, long in pairwise(player.events.lengths))
    weights = player.events.groups[0].weights
    sums = [bound.over_window(weights, [m], run=10**6).max() for m in (4096, 65536)]
    assert sums[1] / sums[0] < 5  # of the root of 16
