"""Scalar events: gains by their definition, regret below them, and the bound without lambda."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.forecaster.events.bounds import BiasBound, GainBound, gain_range
from regretless.forecaster.events.protected import ProtectedLosses, played_of
from regretless.forecaster.events.scalar import GainEvents
from regretless.forecaster.events.weights import RULES, AdaptiveWeights, Moment, rule_of
from regretless.forecaster.reference import Band
from regretless.market.core.arrays import Array
from regretless.market.response import best_response, expected_losses

POLICIES = (lambda x: int(x) % 3, lambda x: (int(x) // 3) % 3)


def groups(seed: int = 0) -> list[ProtectedLosses]:
    rng = np.random.default_rng(seed)
    first, second = -rng.dirichlet(np.ones(4), (3, 3)), rng.dirichlet(np.ones(4), (2, 2))
    return [
        ProtectedLosses(np.ones((3, 3)), first, POLICIES),
        ProtectedLosses(np.zeros((2, 2)), second),
    ]


def gains(group: ProtectedLosses, rounds: list[tuple[int, Array, Array, Array]]) -> Array:
    """Add up a group's gains (K, A, A + C) from their definition, in units of the loss."""
    losses, actions, _ = group.weights.shape
    total = np.zeros((losses, actions, actions + len(group.policies)))
    for x, points, mass, truth in rounds:
        comparators = [*range(actions), *(policy(x) for policy in group.policies)]
        for k in range(losses):
            for point, weight in zip(points, mass, strict=True):
                rows = group.weights[k]
                a = int(best_response(expected_losses(group.offset, group.weights, point))[k])
                for c, other in enumerate(comparators):
                    total[k, a, c] += weight * (rows[other] - rows[a]) @ (point - truth)
    return total


def some_rounds(count: int) -> list[tuple[int, Array, Array, Array]]:
    rng = np.random.default_rng(7)
    return [(x, rng.random((3, 4)), rng.dirichlet(np.ones(3)), rng.random(4)) for x in range(count)]


def test_gains_are_those_of_the_definition() -> None:
    events = GainEvents(groups())
    rounds = some_rounds(12)
    for x, points, mass, truth in rounds:
        events.charge(events.active(x), played_of(events.rows, points, mass, truth))
    logged = [row[5] for row in events.table()]
    expected = [gains(group, rounds) for group in events.groups]
    flat = [row for table in expected for row in table.reshape(-1, table.shape[2])]
    assert len(logged) == len(flat) == 3 * 3 + 2 * 2
    for row, own in zip(logged, flat, strict=True):
        assert row == pytest.approx(own, abs=1e-12)
    assert sum(row[4] for row in events.table()) == pytest.approx(12 * 5)


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("name", RULES)
def test_the_table_pulls_towards_what_comparators_gain(name: str, zone: float) -> None:
    """H_(k, a) = sum_c w_c (r(c) - r(a)) / scale, no weight for the action itself, total 1."""
    events = GainEvents(groups(), rule_of(name))
    for x, points, mass, truth in some_rounds(9):
        events.charge(events.active(x), played_of(events.rows, points, mass, truth))
    x = 4
    moment = Moment(10, events.experts, Band(zone))
    table = events.table_of(events.active(x), moment)
    found = events.rule.weigh(*events.arrays["sums"][:2], moment)
    weights, total = found.weights(found.top, 1.0)
    weights /= total
    expected, first = [], 0
    for group in events.groups:
        losses, actions, _ = group.weights.shape
        comparators = [*range(actions), *(policy(x) for policy in group.policies)]
        scale = gain_range(group.weights, None)
        for k in range(losses):
            for a in range(actions):
                own = weights[first : first + len(comparators)]
                first += len(comparators)
                assert own[a] == 0
                pulls = group.weights[k][comparators] - group.weights[k, a]
                expected.append(own @ pulls / scale[k])
    assert first == len(weights)
    assert table == pytest.approx(np.array(expected), abs=1e-12)
    assert events.experts == 3 * 3 * (3 - 1 + 2) + 2 * 2 * 1


def test_the_bound_of_a_simplex_knows_no_number_of_cells() -> None:
    """Where predictions stay in conv s(Y) the range of a gain is 2, whatever lambda and n."""
    weights = np.random.default_rng(0).random((2, 3, 40))
    inside, box = (
        GainBound(AdaptiveWeights(), 500, 1000, 0.0, within=within) for within in (2.0, None)
    )
    assert gain_range(weights, 2.0) == pytest.approx(2.0)
    assert (inside.regret(weights) < box.regret(weights) / 4).all()
    assert (inside.regret(weights, policies=5) == inside.regret(weights)).all()
    assert (
        inside.regret(weights) < BiasBound(AdaptiveWeights(), 500, 1000, 0.0).regret(weights)
    ).all()


def test_a_grid_is_served_by_scalar_events() -> None:
    shops = {"name": "shops", "utility": "newsvendor", "count": 5, "actions": 4}
    shops["basis"] = {"kind": "lipschitz-grid", "error": 0.05}
    given = {"adversary": {"kind": "anti-forecast", "outcomes": 1, "strength": 0.5}}
    given |= {"forecaster": {"kind": "decision-swap", "events": "losses"}}
    model = worlds.played(worlds.scenario(shops, rounds=300, **given))
    agents = model.agents_frame()
    player: Any = model.game.blocks[0].forecaster
    assert player.events.within == pytest.approx(2.2)
    assert (agents["swap_regret"] <= agents["bound_from_bias"]).all()
    assert (agents["bound_from_bias"] <= agents["bound"]).all()
