"""Regret over windows is the regret of the rounds in the window, and of no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.market.model import MarketModel
from regretless.market.regret import definitions
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import WindowsSpec

ROUNDS = 90


def scenario(*, rounds: int = ROUNDS, forecaster: str = "decision-swap", **keys: Any) -> Scenario:
    cohort = {"utility": "linear", "actions": 3}
    raw = {
        "name": "regimes",
        "rounds": rounds,
        "seed": 5,
        "adversary": {"kind": "switching", "outcomes": 2, "length": 30},
        "forecaster": {"kind": forecaster},
        "cohort": [
            cohort | {"name": "early", "count": 4},
            cohort | {"name": "late", "count": 2, "enters": 40},
            cohort | {"name": "noisy", "count": 2, "response": "quantal", "eta": 5.0},
        ],
    }
    return worlds.told(raw | keys)


def recorded(model: MarketModel) -> dict[int, list[tuple[int, Any, Any]]]:
    """Play a model to its end; per cohort (round, losses, strategies) as charged."""
    played: dict[int, list[tuple[int, Any, Any]]] = {}
    for place, cohort in enumerate(model.game.cohorts):
        add = cohort.ledger.add

        def spy(decision: Any, losses: Any, told: Any, *, at: int = place, add: Any = add) -> None:
            rows = played.setdefault(at, [])
            rows.append((model.played, losses.copy(), decision.probabilities.copy()))
            add(decision, losses, told)

        cohort.ledger.add = spy  # type: ignore[method-assign]
    model.run()
    return played


@pytest.mark.parametrize(
    "windows", [{"every": 25}, {"starts": [10, 40, 70], "length": 20}, {"starts": [30, 60]}]
)
@pytest.mark.parametrize("sample", [None, 5])
def test_a_windows_regret_is_that_of_its_slice(windows: dict[str, Any], sample: int | None) -> None:
    """Brute force over the recorded losses and plays, latecomers over their own rounds."""
    told = scenario(windows=windows, log_agents=sample)
    model = told.build()
    played = recorded(model)
    table = model.windows_frame()
    spans = WindowsSpec(**windows).spans(ROUNDS)
    assert list(table[["first", "last"]].drop_duplicates().itertuples(index=False)) == list(spans)
    agents = model.agents_frame()
    logged = agents["agent"] if sample is None else agents.loc[agents["logged"], "agent"]
    assert set(table["agent"]) == set(logged)
    expected = 0
    for place, cohort in enumerate(model.game.cohorts):
        firsts = 1 + sum(len(other.row_of) for other in model.game.cohorts[:place])
        for number, row in enumerate(cohort.row_of):
            for first, last in spans if firsts + number in set(logged) else ():
                here = [(x[row], q[row]) for t, x, q in played[place] if first <= t <= last]
                found = table.query(f"agent == {firsts + number} and first == {first}")
                assert len(found) == bool(here)
                expected += len(found)
                if here:
                    losses, play = (np.array(part) for part in zip(*here, strict=True))
                    constants = np.tile(np.arange(3)[:, None], len(losses))
                    np.testing.assert_allclose(
                        found.iloc[0, 3:].to_numpy(dtype=float),
                        [
                            (losses * play).sum() / len(losses),
                            definitions.external_regret(losses, play),
                            definitions.swap_regret(losses, play),
                            definitions.decision_swap_regret(losses, play, constants),
                        ],
                        atol=1e-12,
                    )
    assert expected == len(table)
