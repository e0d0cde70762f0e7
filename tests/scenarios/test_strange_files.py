"""Any file is one line and status 2, or it builds and plays: never a traceback, never a hang.

Bundled files are changed at random: keys dropped, added and moved, values of another type, of the
same type, which is read from the JSON Schema, and extreme ones; tables have strange cells, headers,
rows, types of columns and bytes. ``make crashes`` tries thousands of them.
"""

import datetime as dt
import io
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_scenarios import play_to_end, read_scenario

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


# What is drawn: good files, with a few things changed.

Json = Any
Place = tuple[str | int, ...]
EXTREMES: list[Any] = [
    *(0, 1, 2, 3, -1, 2**40, 2**62, 2**63, 10**30, True, False),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1e-12, 1e12, 1e308, -1e308, float("nan"), float("inf")),
    *("", " ", "none", "auto", "x" * 300, "a\nb", "\x00", "../..", "é", "日本", "nan", "1"),
    *([], [[]], [0, 1], [1.0, 0.0], [0.2, 0.8], ["a", "a"], [True], [[0.0], [1.0]], {}, {"a": 1}),
    *({"kind": "none"}, {"choices": []}, {"choices": [1]}, {"choices": [0.5, 2.0]}, [{}], ["none"]),
    *(dt.date(2020, 2, 29), dt.time(1, 2)),
]


def places(value: Json, here: Place = ()) -> list[Place]:
    steps = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        steps = list(enumerate(value))
    inside = [place for step, entry in steps for place in places(entry, (*here, step))]
    return [*([here] if here else []), *inside]


def at(value: Json, place: Place) -> Json:
    for step in place:
        value = value[step]
    return value


def alternatives(schema: Json, node: Json) -> list[Json]:
    """Follow references, and open alternatives."""
    if "$ref" in node:
        return alternatives(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    return [found for one in node.get("anyOf", []) for found in alternatives(schema, one)] or [node]


def nodes(schema: Json, place: Place) -> list[Json]:
    """Return what a schema says of a place: one node for each alternative."""
    found = alternatives(schema, schema)
    for step in place:
        below = [
            node.get("items")
            if isinstance(step, int)
            else node.get("properties", {}).get(step, node.get("additionalProperties"))
            for node in found
        ]
        found = [node for b in below if isinstance(b, dict) for node in alternatives(schema, b)]
    return found


def valid(schema: Json, node: Json, depth: int = 0) -> st.SearchStrategy[Json]:
    """Values that one of a node's alternatives allows, more or less."""
    return st.one_of(*(simple(schema, one, depth) for one in alternatives(schema, node)))


def simple(schema: Json, node: Json, depth: int) -> st.SearchStrategy[Json]:
    """Values that a node without alternatives allows."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum", 2))
    kinds: dict[str, st.SearchStrategy[Json]] = {
        "integer": st.integers(int(low or 0), int(low or 0) + 3),
        "number": st.floats(-2 if low is None else low, max(high, low or high)),
        "boolean": st.booleans(),
        "string": st.sampled_from(["none", "a", "running-mean", "linear", "ces"]),
    }
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        inside = valid(schema, node["items"], depth + 1)
        return st.lists(inside, min_size=node.get("minItems", 0), max_size=3)
    if node.get("type") == "object" and depth < 3:
        known = node.get("properties", {})
        entries = {key: valid(schema, below, depth + 1) for key, below in known.items()}
        must = {key: entries.pop(key) for key in known if key in node.get("required", [])}
        return st.fixed_dictionaries(must, optional=entries)
    return kinds.get(str(node.get("type")), st.sampled_from(EXTREMES))


@st.composite
def changed(draw: st.DrawFn, schema: Json, files: list[Json]) -> Json:
    """Draw a file with one to three changes."""
    file = deepcopy(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(file) or [("name",)]))
        table, key = at(file, place[:-1]), place[-1]
        known = nodes(schema, place)
        match draw(st.sampled_from(["drop", "extreme", "valid", "add", "move"])):
            case "drop" if place in places(file):
                del table[key]
            case "valid" if known:
                table[key] = deepcopy(draw(st.one_of(*(valid(schema, node) for node in known))))
            case "add" if isinstance(table, dict):
                above = nodes(schema, place[:-1])
                offered = [key for node in above for key in node.get("properties", {})]
                key = draw(st.sampled_from([*offered, "strange"]))
                made = [valid(schema, node) for node in nodes(schema, (*place[:-1], key))]
                table[key] = deepcopy(draw(st.one_of(*made, st.sampled_from(EXTREMES))))
            case "move" if isinstance(key, str):  # from another file
                other = draw(st.sampled_from(files))
                theirs = [p for p in places(other) if p[-1] == key]
                if theirs:
                    table[key] = deepcopy(at(other, draw(st.sampled_from(theirs))))
            case _:
                table[key] = deepcopy(draw(st.sampled_from(EXTREMES)))
    return file


ROWS = 30  # of a table
GOOD = [[f"d{i}", f"{i * 7 % 11 / 10}", str(i * 5 % 7)] for i in range(ROWS)]
HEAD = [["day", "y", "x"]]
CELLS: list[str] = [
    *("", "x", "nan", "inf", "1e400", "9" * 400, "-1", '"', '"\n', "\x00", "é", " 1 ", "1_0", "NA"),
    *("1e308", "-1e308", "1e-320", "0,5", "1.000,5", "true", "FALSE", "2020-02-29", "\u0661", "\r"),
    *(" ", "'", ";", "x" * 200_000, "-0.0", "0x1", "#N/A", "+5", "\ud7ff", "\u2028", "=1+1"),
]
COLUMNS: list[list[Any]] = [  # of a Parquet file
    *([True] * ROWS, [None] * ROWS, list(range(ROWS)), [2**63 - 1] * ROWS, [1e308, -1e308] * 15),
    *([float("nan")] * ROWS, [0.1, None] * 15, [0.5] * ROWS, ["0.5", "x"] * 15, [b"\xff"] * ROWS),
    *([Decimal("0.5")] * ROWS, [[0.5]] * ROWS, [{"a": 0.5}] * ROWS, [dt.date(2020, 2, 29)] * ROWS),
    *([dt.timedelta(1)] * ROWS, [dt.datetime(1, 1, 1, tzinfo=dt.UTC)] * ROWS, [dt.time(1)] * ROWS),
]


@st.composite
def csv_tables(draw: st.DrawFn, good: list[list[str]], separators: str) -> bytes:
    """Draw a CSV of such rows, or what was one."""
    rows = deepcopy(good)
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.sampled_from([rows[0], *rows]))
        match draw(st.sampled_from(["cell", "cell", "cell", "more", "less", "swap"])):
            case "more":
                row.append(draw(st.sampled_from(CELLS)))
            case "less":
                row.pop()
            case "swap":
                row.reverse()
            case _ if row:
                row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(CELLS))
    separator, end = draw(st.sampled_from(separators)), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = end.join(separator.join(row) for row in rows)
    whole = text.encode(draw(st.sampled_from(["utf-8"] * 4 + ["utf-8-sig", "utf-16"])))
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    return draw(st.sampled_from([whole] * 6 + [whole[:last], whole[first:], b"\xff" + whole]))


@st.composite
def parquet_tables(draw: st.DrawFn) -> bytes:
    """Draw a Parquet file of columns day, y and x, or what was one."""
    good = [[row[0] for row in GOOD], *([float(row[i]) for row in GOOD] for i in (1, 2))]
    kept = [draw(st.sampled_from([column, column, *COLUMNS])) for column in good]
    names = draw(st.sampled_from([["day", "y", "x"]] * 4 + [["day", "y", "y"], ["", "y", "x"]]))
    rows = draw(st.sampled_from([ROWS, ROWS, ROWS, 1, 0]))
    table = pa.Table.from_arrays([pa.array(column[:rows]) for column in kept], names=names)
    stream = io.BytesIO()
    pq.write_table(table, stream)
    whole = stream.getvalue()
    at = draw(st.integers(0, len(whole) - 1))
    torn = [whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]]
    return draw(st.sampled_from([whole, whole, whole, *torn]))


TABLE_KEYS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"outcomes": st.sampled_from([["y"], ["y"], ["y"], ["y", "x"], ["y", "y"], ["none"], [""]])},
    optional={
        "context": st.sampled_from([["x"], ["x", "x"], ["y"], ["day"]]),
        "separator": st.sampled_from([";", "\t", '"', "\n", "é"]),
        "decimal": st.sampled_from([",", "."]),
        "missing": st.sampled_from(["previous", "drop"]),
        "index": st.sampled_from(["day", "x", "none"]),
        "scale": st.sampled_from([{"y": [0.0, 1e-320]}, {"y": [-1e308, 1e308]}, {"y": [0, 1]}]),
        "codes": st.sampled_from([{"y": {"x": 0.5, "true": 1.0}}, {"x": {"": 1e308}}]),
    },
)


# What is done with it.


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


def or_one_line(run_command: Callable[[], Any]) -> Any:
    """Return what a call gives; None if it refuses, in one line."""
    try:
        return run_command()
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


ARRAYS = st.sampled_from([*EXTREMES, [[1e308, -1e308]], [[1, 2]]])


@few_and_many
@pytest.mark.parametrize(
    ("name", "count", "drawn"),
    [("a.csv", 50, csv_tables(GAME, ",")), ("a.npz", 20, st.tuples(ARRAYS, ARRAYS))],
)
def test_any_game_is_read_or_says_why(
    tmp_path: Path, share: int, name: str, count: int, drawn: st.SearchStrategy[Any]
) -> None:
    """All its numbers are finite."""
    file = tmp_path / name

    def told(content: Any) -> None:
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            kinds = [object if isinstance(value, list) else None for value in content]
            paid, lost = map(np.array, content, kinds)
            np.savez(file, leader_payoff=paid, follower_loss=lost)
        game = or_one_line(lambda: read_game(file))
        if game is not None:
            assert np.isfinite([game.unit_scale, game.unit_offset, *game.follower_loss.flat]).all()

    examples(count * share, drawn, told)


TRADERS = [{"name": "traders", "utility": "linear", "actions": 2}]


@linux
@few_and_many
@pytest.mark.parametrize(
    ("ending", "drawn"), [("csv", csv_tables(HEAD + GOOD, ",,,;\t")), ("parquet", parquet_tables())]
)
def test_any_table_is_played_or_says_why(
    tmp_path: Path, share: int, ending: str, drawn: st.SearchStrategy[bytes]
) -> None:
    file = tmp_path / f"strange.{ending}"

    def told(given: tuple[bytes, dict[str, Any]]) -> None:
        content, keys = given
        file.write_bytes(content)
        data = keys | {"file": str(file)}
        runs_or_says_why({"name": "t", "rounds": ROUNDS, "data": data, "cohort": TRADERS})

    examples(13 * share, st.tuples(drawn, TABLE_KEYS), told)


def test_the_scenarios_that_are_changed_play_as_they_are() -> None:
    """Otherwise the lines would tell of this file's own mistakes."""
    assert len(scenarios()) >= 15
    for raw in scenarios()[::4]:
        model = play_to_end(read_scenario(deepcopy(raw)))
        assert model.played == ROUNDS
