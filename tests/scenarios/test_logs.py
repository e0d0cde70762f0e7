"""The regret log: what is read back is the ledger, of all agents or a sample, in bounded memory."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from separate_process import run_in_separate_process
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless.market.logs import journal
from regretless.market.logs.sampling import shares
from regretless.market.model import MarketModel
from regretless.market.numerics import storage
from regretless.scenarios.assembly import populations
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.logs import table_parts
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run

SLACK = {"parquet": 0.0, "csv": 0.0 if pd.__version__ >= "3" else 1e-12}  # pandas 2 reads less well


def three_cohorts(**keys: Any) -> Scenario:
    """Return a scenario of a cohort with types, a quantal one and one that comes late."""
    cohort = {"actions": 3, "count": 6, "utility": "linear"}
    cohorts = [
        cohort | {"name": "one", "types": 3},
        cohort | {"name": "two", "response": "quantal", "eta": 4.0},
        cohort | {"name": "late", "enters": 11, "count": 3},
    ]
    return make_scenario(*cohorts, **{"rounds": 30, "seed": 2} | keys)


@pytest.mark.parametrize(
    ("form", "log_every", "sample"),
    [("parquet", 1, None), ("parquet", 7, 6), ("csv", 7, None), ("csv", 1, 6)],
)
def test_the_log_read_back_is_the_ledger(
    tmp_path: Path, form: str, log_every: int, sample: int | None
) -> None:
    """``model.measured`` at every logged round, of every logged agent, to the last bit."""
    scenario = three_cohorts(log_agents=sample)
    run(scenario, Options(tmp_path / "run", form, log_every))
    manifest, tables = read_run(tmp_path / "run")
    agents = tables["agents"]
    assert ("logged" in agents) == ("logged_agents" in manifest) == (sample is not None)
    logged = agents if sample is None else agents[agents["logged"]]
    assert len(logged) == (sample or 15)
    assert set(logged["cohort"]) == {"one", "two", "late"}
    log = tables["regret_log"].set_index(["round", "agent"])
    assert log.index.is_unique
    model = scenario.build()
    rows = 0
    while model.played < model.rounds:
        model.step()
        first = 1
        for cohort_index, cohort in enumerate(model.game.cohorts):
            ids = np.arange(first, first := first + len(cohort.row_of))
            chosen = np.isin(ids, logged["agent"]) & (model.last_actions(cohort_index) >= 0)
            if (model.played - 1) % log_every or not chosen.any():
                continue
            for name in ("external", "swap", "decision_swap"):
                mine = log.loc[model.played - 1].loc[ids[chosen], f"{name}_regret"]
                exact = model.measured(cohort_index, name)[cohort.row_of][chosen]
                np.testing.assert_allclose(mine, exact, rtol=SLACK[form])
            rows += int(chosen.sum())
    assert len(log) == rows > 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.data())
def test_places_are_shared_in_proportion(sizes: list[int], data: st.DataObject) -> None:
    """Each cohort has one at least, none more than its agents, all together the sample's size."""
    if sum(sizes) == len(sizes):
        sizes = [*sizes, 2]
    n_places = data.draw(st.integers(len(sizes), sum(sizes) - 1))
    given_out = shares(sizes, n_places)
    assert sum(given_out) == n_places
    fair = (n_places - len(sizes)) / (sum(sizes) - len(sizes))
    for size, places in zip(sizes, given_out, strict=True):
        assert 1 <= places <= size
        assert abs(places - 1 - fair * (size - 1)) < 1


def print_peak(rounds: int) -> None:
    """Print how much memory a run of a crowd takes at most, in MiB."""
    import resource  # noqa: PLC0415 - Unix alone has it

    pa.set_cpu_count(1)  # with more the peaks of equal runs differ by 60 MiB
    pa.set_memory_pool(pa.system_memory_pool())
    crowd = cohort_table("crowd", 400, 3)
    mean = {"kind": "running-mean"}
    run(three_cohorts(rounds=rounds, cohort=[crowd], forecaster=mean), Options(Path(str(rounds))))
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rounds(tmp_path: Path) -> None:
    """Peak resident memory: a log twice as long, 1.2 million rows more."""
    less, more = (
        int(run_in_separate_process(tmp_path, print_peak, rounds)[0]) for rounds in (3000, 6000)
    )
    assert more - less < 40  # kept in memory, the rows alone would be 77 MiB


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_log_holds_each_path_in_one_place(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By agent and then by round, however many parts and passes there are, and nothing is lost.

    A reader of one path skips other row groups, by the least and the greatest agent of each.
    """
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 7)
    monkeypatch.setattr(table_parts, "MIN_ROWS_PER_PASS", 40)
    monkeypatch.setattr(table_parts, "MAX_ROWS_PER_PASS", 80)
    monkeypatch.setattr(table_parts, "ROWS_PER_GROUP", 30)
    monkeypatch.setattr(table_parts, "MAX_OPEN_PARTS", 3)
    run(three_cohorts(), Options(tmp_path / "run", form))
    log = read_run(tmp_path / "run")[1]["regret_log"]
    regret_rows = play_to_end(three_cohorts()).regret_frame()
    regret_rows = regret_rows.sort_values(["agent", "round"], ignore_index=True)
    pd.testing.assert_frame_equal(log, regret_rows, rtol=SLACK[form], atol=0.0)
    if form == "parquet":
        parts = pq.read_metadata(tmp_path / "run/regret_log.parquet")
        groups = [parts.row_group(i).column(1).statistics for i in range(parts.num_row_groups)]
        assert len(groups) > 13
        assert all(group.max - group.min <= 1 for group in groups)


# Mapped tables.


def crowd(utility: str = "linear", count: int = 1200, **keys: Any) -> Scenario:
    """Make a crowd of agents who all differ, more of them than have their numbers side by side."""
    if (utility, count) != ("linear", 1200):  # the program of exploitability is solved once
        keys["measures"] = ["external", "swap", "decision_swap"]
    return make_scenario(
        cohort_table("crowd", count, 4, utility, parameters=PARAMETERS[utility], **keys),
        rounds=12,
        forecaster={"kind": "running-mean"},
        adversary={"kind": "iid", "outcomes": 3},
    )


PARAMETERS: dict[str, Any] = {
    "linear": {},
    "ces": {"rho": [0.3, 0.9]},
    "cara": {"risk_aversion": [0.5, 2.0]},
}


def lies_on_disk(model: MarketModel) -> bool:
    """Whether the losses of the first cohort are mapped from a file."""
    loss: Any = model.game.cohorts[0].loss
    return storage.is_mapped(getattr(loss, next(iter(loss.AXES))))


@pytest.mark.parametrize(
    ("utility", "count"), [("linear", 900), ("linear", 1200), ("ces", 1200), ("cara", 1200)]
)
def test_the_tables_are_the_same_to_the_byte(
    utility: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MIN_MAPPED_NUMBERS", 100)
    for mapped in (False, True):
        model = run(crowd(utility, count, mapped=mapped), Options(tmp_path / str(mapped)))
        assert lies_on_disk(model) == mapped
    for table in ("agents", "swaps", "regret_log", "rounds", "forecasts"):
        one, other = (tmp_path / f"{mapped}/{table}.parquet" for mapped in (False, True))
        assert one.read_bytes() == other.read_bytes()


def test_what_memory_has_no_room_for_is_mapped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = 1200 * 4 * 3
    monkeypatch.setattr(storage, "MIN_MAPPED_NUMBERS", 100)
    for free, mapped in ((3 * 8 * numbers, False), (3 * 8 * numbers - 1, True)):
        monkeypatch.setattr(populations, "available_memory", lambda free=free: free)
        model = crowd().build()
        assert lies_on_disk(model) == mapped
        (promise,) = model.guarantees
        assert ("0.000115 GB of losses are mapped from disk" in promise.note) == mapped
    assert not lies_on_disk(crowd(mapped=False).build())


def test_a_disk_without_room_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "MIN_MAPPED_NUMBERS", 100)
    monkeypatch.setattr(storage.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        crowd(mapped=True).build()
