"""Regret over windows is the regret of the rounds in the window, and of no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.market.logs import journal
from regretless.market.model import MarketModel
from regretless.market.regret import definitions
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.log import WindowsSpec
from regretless.scenarios.config.scenario import validated
from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run

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
    return Scenario(validated(raw | keys, origin=Path()))


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


def test_resumed_within_a_window_gives_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 50)
    told = scenario(rounds=130, windows={"every": 40}, log_agents=6)
    run(told, Options(tmp_path / "whole", log_every=10))

    def stop(played: int) -> None:
        if played == 110:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(told, Options(tmp_path / "cut", log_every=10), progress=stop)
    model = run(told, Options(tmp_path / "cut", log_every=10, resume=True))
    for file in sorted((tmp_path / "whole").glob("*.parquet")):
        assert file.read_bytes() == (tmp_path / "cut" / file.name).read_bytes()
    table = read_run(tmp_path / "cut")[1]["windows"]
    assert table["last"].max() == 129
    assert model.journal.windows is not None
    worst = max(worst.regret for worst in model.journal.windows.worst.values())
    assert worst == pytest.approx(table["decision_swap_regret"].max())
    page = write_report(tmp_path / "cut").read_text(encoding="utf-8")
    assert 'id="chart-windows"' in page
    assert pd.read_parquet(tmp_path / "cut" / "agents.parquet")["logged"].sum() == 6
