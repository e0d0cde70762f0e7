"""Any file is one line and status 2, or it builds and plays: never a traceback, never a hang.

Bundled files are changed at random (``strange_files``): keys dropped, added and moved, values of
another type, of the same type, and extreme ones; tables have strange cells, rows and columns.
``make crashes`` tries thousands of them.
"""

import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
import worlds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange_files import EXTREMES, TABLE_KEYS, changed, csv_tables, parquet_tables

from regretless.market.core.errors import UserError
from regretless.market.exploitability.bimatrix import read_game
from regretless.scenarios.cli import commands
from regretless.scenarios.config.files import DATA, catalogue, read
from regretless.scenarios.schema import schema
from regretless.scenarios.studies import design
from regretless.scenarios.studies.conduct import check

resource = pytest.importorskip("resource")  # Unix alone limits memory so
MOST = 3  # agents and actions of a cohort, so that a market is quick
ROUNDS = 2
MOST_SETTINGS = 50  # of a study
HUNG = 120  # seconds, of which a loaded machine may take many
MEMORY = 4 * 2**30  # bytes beyond what the process has


def small(path: Path) -> dict[str, Any]:
    raw = read(path) | {"rounds": ROUNDS}
    for cohort in raw["cohort"]:
        if not any(isinstance(value, list) for value in cohort.get("parameters", {}).values()):
            cohort["count"] = min(cohort.get("count", 1), MOST)
        cohort.pop("types", None)
    for key, folder in {"data": DATA, "game": DATA / "games"}.items():
        if key in raw:
            raw[key]["file"] = str(folder / raw[key]["file"])
    return raw


@cache
def scenarios() -> list[dict[str, Any]]:
    """Return the bundled scenarios that play two rounds as they are."""
    found = []
    for path in catalogue().values():
        raw = small(path)
        with_few = not any(c.get("enters") or c.get("exits") for c in raw["cohort"])
        if with_few and "windows" not in raw and "network" not in raw:
            found.append(raw)
    return found


@contextmanager
def bounded() -> Iterator[None]:
    """Turn a hang and a hunger for memory into exceptions."""

    def hung(*_: object) -> None:
        raise TimeoutError("it hangs")

    before, limits = signal.signal(signal.SIGALRM, hung), resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, limits[1]))
    signal.alarm(HUNG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def command(*words: str) -> tuple[int, str]:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch, bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow, on which a line follows
        patch.setattr(sys, "argv", ["regretless", *words])
        patch.setattr("typer.echo", lambda line, **_: said.append(line))
        with pytest.raises(SystemExit) as left:
            commands.main()
    return int(left.value.code or 0), "\n".join(said)


def runs_or_says_why(raw: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "strange.toml", Path(folder) / "out"
        file.write_bytes(tomli_w.dumps(raw).encode())
        words = ["--rounds", str(ROUNDS), "--out", str(out), "--quiet"]
        status, line = command("run", str(file), *words)
        assert status == 0 or (status == 2 and line and "\n" not in line), line
        assert all(said.startswith("regretless: ") for said in line.splitlines()), line
        assert status == 0 or not out.exists()
        if status == 0:
            losses = pd.read_parquet(out / "agents.parquet")["mean_loss"].dropna()
            assert losses.between(-1e-9, 1 + 1e-9).all(), losses.tolist()


def or_one_line(call: Callable[[], Any]) -> Any:
    """Return what a call gives; None if it refuses, in one line."""
    try:
        return call()
    except UserError as error:
        if "\n" in str(error):
            raise AssertionError(str(error)) from error
        return None


def reads_or_says_why(raw: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, bounded():
        file = Path(folder) / "strange.toml"
        file.write_bytes(tomli_w.dumps(raw).encode())
        found = or_one_line(lambda: design.read_study(str(file)))
        if found is None or len(found.settings) > MOST_SETTINGS:
            return
        sized = found.sized(rounds=ROUNDS, seeds=1)
        tasks = or_one_line(lambda: sized.settings_to_check(()))
        answer = check(tasks[0]) if tasks else None
        failed = None if answer is None else answer.failure
        if failed is not None:  # of these a study makes one line
            raised = failed.traceback.splitlines()[-1].partition(":")[0]
            assert raised.endswith(("UserError", "MemoryError")), failed


def studies() -> list[dict[str, Any]]:
    found = []
    for path in sorted(design.CATALOGUE.glob("*.toml")):
        raw = read(path)
        beside = path.parent / raw["scenario"]
        found.append(raw | ({"scenario": str(beside)} if beside.is_file() else {}))
    return found


def examples(count: int, strategy: st.SearchStrategy[Any], told: Callable[[Any], None]) -> None:
    chosen = settings(
        max_examples=count, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck]
    )
    chosen(given(strategy)(told))()


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
few_and_many = pytest.mark.parametrize(
    "share", [1, pytest.param(80, marks=pytest.mark.crashes)], ids=["few", "many"]
)


@linux
@few_and_many
def test_any_scenario_runs_or_says_why(share: int) -> None:
    examples(25 * share, changed(schema("scenario"), scenarios()), runs_or_says_why)


@linux
@few_and_many
def test_any_study_is_read_or_says_why(share: int) -> None:
    examples(10 * share, changed(schema("study"), studies()), reads_or_says_why)


LINES = (DATA / "games/deng-2x3.csv").read_text(encoding="utf-8").splitlines()
GAME = [line.split(",") for line in LINES if not line.startswith("#")]
CELLS = st.sampled_from(["", "x", "nan", "inf", "1e400", "9" * 400, "-1", '"', '"\n', "\x00", "é"])


@st.composite
def games(draw: st.DrawFn) -> bytes:
    """Draw a game file, as CSV, with a few cells changed."""
    rows = deepcopy(GAME)
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(CELLS)
    whole = "\n".join(",".join(row) for row in rows).encode()
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    return draw(st.sampled_from([whole, whole, whole, whole[:end], whole[start:], b"\xff" + whole]))


def says_why(file: Path) -> None:
    """Read a game, all of whose numbers are finite, or see one line."""
    game = or_one_line(lambda: read_game(file))
    if game is not None:
        assert np.isfinite([game.unit_scale, game.unit_offset, *game.follower_loss.flat]).all()


@few_and_many
def test_any_game_is_read_or_says_why(tmp_path: Path, share: int) -> None:
    def told(content: bytes) -> None:
        (tmp_path / "strange.csv").write_bytes(content)
        says_why(tmp_path / "strange.csv")

    examples(50 * share, games(), told)


@few_and_many
def test_any_arrays_are_a_game_or_say_why(tmp_path: Path, share: int) -> None:
    def told(drawn: tuple[Any, Any]) -> None:
        paid, lost = (np.array(v, dtype=object if isinstance(v, list) else None) for v in drawn)
        np.savez(tmp_path / "strange.npz", leader_payoff=paid, follower_loss=lost)
        says_why(tmp_path / "strange.npz")

    arrays = st.sampled_from([*EXTREMES, [[1e308, -1e308]], [[1, 2]]])
    examples(20 * share, st.tuples(arrays, arrays), told)


TABLES = st.tuples(st.just("csv"), csv_tables()) | st.tuples(st.just("parquet"), parquet_tables())
TRADERS = [{"name": "traders", "utility": "linear", "actions": 2}]


@linux
@few_and_many
def test_any_table_is_played_or_says_why(tmp_path: Path, share: int) -> None:
    def told(drawn: tuple[tuple[str, bytes], dict[str, Any]]) -> None:
        (ending, content), keys = drawn
        (tmp_path / f"strange.{ending}").write_bytes(content)
        data = keys | {"file": str(tmp_path / f"strange.{ending}")}
        runs_or_says_why({"name": "t", "rounds": ROUNDS, "data": data, "cohort": TRADERS})

    examples(25 * share, st.tuples(TABLES, TABLE_KEYS), told)


def test_the_scenarios_that_are_changed_play_as_they_are() -> None:
    """Otherwise the lines would tell of this file's own mistakes."""
    assert len(scenarios()) >= 15
    for raw in scenarios()[::4]:
        model = worlds.played(worlds.told(deepcopy(raw)))
        assert model.played == ROUNDS
