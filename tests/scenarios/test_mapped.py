"""Losses in a file that is mapped into memory: the same market to the last bit, and it says so."""

from pathlib import Path
from typing import Any

import pytest
import worlds

from regretless.market.model import MarketModel
from regretless.market.numerics import storage
from regretless.scenarios.assembly import populations
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.run import Options, run

PARAMETERS: dict[str, dict[str, Any]] = {
    "linear": {},
    "ces": {"rho": [0.3, 0.9]},
    "cara": {"risk_aversion": [0.5, 2.0]},
}


def crowd(utility: str = "linear", *, count: int = 1200, **keys: Any) -> Scenario:
    """Make a crowd of agents who all differ, more of them than have their numbers side by side."""
    cohort = {"name": "crowd", "utility": utility, "parameters": PARAMETERS[utility]}
    if utility != "linear":  # the program of exploitability is solved for one utility
        cohort["measures"] = ["external", "swap", "decision_swap"]
    raw = {
        "name": "mapped",
        "rounds": 12,
        "seed": 3,
        "forecaster": {"kind": "running-mean"},
        "adversary": {"kind": "iid", "outcomes": 3},
        "cohort": [cohort | {"actions": 4, "count": count} | keys],
    }
    return worlds.told(raw)


def lies_on_disk(model: MarketModel) -> bool:
    loss: Any = model.game.cohorts[0].loss
    return storage.is_mapped(getattr(loss, next(iter(loss.AXES))))


@pytest.mark.parametrize("count", [900, 1200])
@pytest.mark.parametrize("utility", sorted(PARAMETERS))
def test_the_tables_are_the_same_to_the_byte(
    utility: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "LARGE", 100)
    for mapped in (False, True):
        model = run(crowd(utility, count=count, mapped=mapped), Options(tmp_path / str(mapped)))
        assert lies_on_disk(model) == mapped
    for table in ("agents", "swaps", "regret_log", "rounds", "forecasts"):
        one, other = (tmp_path / f"{mapped}/{table}.parquet" for mapped in (False, True))
        assert one.read_bytes() == other.read_bytes()


def test_what_memory_has_no_room_for_is_mapped_unasked_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = 1200 * 4 * 3
    monkeypatch.setattr(storage, "LARGE", 100)
    for free, mapped in ((3 * 8 * numbers, False), (3 * 8 * numbers - 1, True)):
        monkeypatch.setattr(populations, "free", lambda free=free: free)
        model = crowd().build()
        assert lies_on_disk(model) == mapped
        (promise,) = model.guarantees
        assert ("0.000115 GB of losses are mapped from disk" in promise.note) == mapped
    assert not lies_on_disk(crowd(mapped=False).build())


def test_a_disk_without_room_is_refused_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "LARGE", 100)
    monkeypatch.setattr(storage.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        crowd(mapped=True).build()


def test_what_is_free_is_less_than_there_is() -> None:
    if Path("/proc/meminfo").exists():
        assert 1e6 < storage.free() < 1e15
    else:
        assert storage.free() == float("inf")
