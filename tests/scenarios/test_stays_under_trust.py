"""Agents who come or go around the round in which the base loses its trust: bounds hold for them.

Until then a bias may be as large as w(V). Here it is when some agents leave, and small again
when the base is disproved by what happens to others.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless import register
from regretless.agents.utilities import forms
from regretless.forecaster.models.base import Baseline
from regretless.forecaster.reference import Trust
from regretless.market.core.arrays import Array

POINT, LAST, AFTER = [0.5, 0.499, 0.5, 0.499], 25, 12
CROWD = worlds.cohort("crowd", 600, utility="one-of-two", parameters={"first": 2, "spread": 0.01})
CROWD |= {"measures": ["swap", "decision_swap"]}
WORLD: dict[str, Any] = {
    "data": {"file": "path.csv", "outcomes": [*"abcd"]},
    "forecaster": {"models": [], "reference": "one-point"},
}


def stay(joins: int, leaves: int, rounds: int) -> dict[str, Any]:
    """Describe one agent who is there from a round to another."""
    ends = ({"enters": joins} if joins else {}) | ({"exits": leaves} if leaves < rounds else {})
    return CROWD | {"name": f"{joins} to {leaves}", "count": 1, "parameters": {}} | ends


@register.forecaster("one-point")
class OnePoint(Baseline):
    """The same point in every round."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._value = np.resize(POINT, size)

    def _learn(self, truth: Array) -> None:
        """Learn nothing."""


@register.utility("one-of-two")
def one_of_two(population: Any, *, first: int = 0, spread: float = 0.0) -> Any:
    """Want one good or the next one, with a little of the second beside the first."""
    share = population.rng.random(population.count) * spread
    held = np.zeros((population.count, 2, population.goods))
    held[:, 0, first], held[:, 0, first + 1], held[:, 1, first + 1] = 1 - share, share, 1.0
    return forms.LinearUtility(held)


def path(seed: int) -> tuple[Array, int, int, int]:
    """Return outcomes, and when the bias begins to grow, is greatest, and the base is disproved."""
    rng = np.random.default_rng(seed)
    calm = rng.permuted(np.tile([0.45, -0.45], (40 + 10 * seed, 1)), axis=1).ravel()
    bias, squares, pushed = 0.0, (calm**2).sum(), 0
    while bias + 1 < Trust(1000).limit(squares):  # of more experts than these
        bias, squares, pushed = bias + 0.5, squares + 0.25, pushed + 1
    back = np.full(int(bias / 0.45), 0.95)
    first = np.concatenate([0.5 + calm, np.zeros(pushed), back, np.full(LAST, 0.5)])
    outcomes = np.tile(POINT, (len(first) + AFTER, 1))
    outcomes[:, 0] = np.append(first, rng.random(AFTER))
    outcomes[len(first) - LAST :, 2] = 0.0  # worse than the crowd expects
    return outcomes, len(calm), len(calm) + pushed, len(first)


@pytest.mark.parametrize("seed", range(2))
def test_no_bound_is_below_the_regret_of_who_comes_or_goes(seed: int, tmp_path: Path) -> None:
    outcomes, calm, peak, lost = path(seed)
    rounds = len(outcomes)
    pd.DataFrame(outcomes, columns=[*"abcd"]).to_csv(tmp_path / "path.csv", index=False)
    stays = [(0, peak), (0, peak + 3), (calm, peak), (5, peak - 1), (peak, rounds), (calm, lost)]
    cohorts = [CROWD, *(stay(*ends, rounds) for ends in stays)]
    model = worlds.scenario(*cohorts, rounds=rounds, origin=tmp_path, **WORLD).build(seed=1)
    while model.running and model.played < rounds:
        model.step()
        if not lost - 8 <= model.played <= lost and model.played < rounds:
            continue
        agents = model.agents_frame()
        for bound in ("bound", "bound_from_variation", "bound_from_bias"):
            assert agents[bound].notna().all()
            assert (agents["decision_swap_regret"] <= agents[bound] + 1e-9).all()
    hurt = agents.set_index("cohort").loc[f"0 to {peak}", "decision_swap_regret"]
    assert hurt == pytest.approx((outcomes[:peak, 1] - outcomes[:peak, 0]).mean())
    player: Any = model.game.blocks[0].forecaster
    assert lost - LAST < player.reference.disproved_at <= lost
