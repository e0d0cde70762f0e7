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
MAX_COUNT = 3  # agents of a cohort, so that a market is quick
ROUNDS = 2
MAX_SETTINGS = 50  # of a study
HANGS_AFTER_SECONDS = 120  # of which a loaded machine may take many
MAX_MEMORY = 4 * 2**30  # bytes beyond what the process has

Json = Any
Place = tuple[str | int, ...]  # the keys and indices that lead to a value of a file


# What is drawn: good files, with a few things changed.

EXTREME_VALUES: list[Any] = [
    *(0, 1, 2, 3, -1, 2**40, 2**62, 2**63, 10**30, True, False),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1e-12, 1e12, 1e308, -1e308, float("nan"), float("inf")),
    *("", " ", "none", "auto", "x" * 300, "a\nb", "\x00", "../..", "é", "日本", "nan", "1"),
    *([], [[]], [0, 1], [1.0, 0.0], [0.2, 0.8], ["a", "a"], [True], [[0.0], [1.0]], {}, {"a": 1}),
    *({"kind": "none"}, {"choices": []}, {"choices": [1]}, {"choices": [0.5, 2.0]}, [{}], ["none"]),
    *(dt.date(2020, 2, 29), dt.time(1, 2)),
]


def places(value: Json, prefix: Place = ()) -> list[Place]:
    """Return the places of a value and of all values in it."""
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    else:
        steps = []
    found_places = [prefix] if prefix else []
    for step, entry in steps:
        found_places += places(entry, (*prefix, step))
    return found_places


def value_at(file: Json, place: Place) -> Json:
    """Return the value at a place of a file."""
    for step in place:
        file = file[step]
    return file


def alternatives(schema: Json, node: Json) -> list[Json]:
    """Return the alternatives of a schema's node, with references followed."""
    if "$ref" in node:
        return alternatives(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    if not node.get("anyOf"):
        return [node]
    nodes = []
    for alternative in node["anyOf"]:
        nodes += alternatives(schema, alternative)
    return nodes


def child_node(node: Json, step: str | int) -> Json | None:
    """Return what a node without alternatives says of an entry or a key, if it does."""
    if isinstance(step, int):
        child = node.get("items")
    else:
        child = node.get("properties", {}).get(step, node.get("additionalProperties"))
    return child if isinstance(child, dict) else None


def nodes_at(schema: Json, place: Place) -> list[Json]:
    """Return what a schema says of a place: one node for each alternative."""
    nodes = alternatives(schema, schema)
    for step in place:
        nodes_below = []
        for node in nodes:
            child = child_node(node, step)
            if child is not None:
                nodes_below += alternatives(schema, child)
        nodes = nodes_below
    return nodes


def allowed_values(schema: Json, node: Json, depth: int = 0) -> st.SearchStrategy[Json]:
    """Draw values that one of a node's alternatives allows, more or less."""
    choices = [values_of_type(schema, choice, depth) for choice in alternatives(schema, node)]
    return st.one_of(*choices)


def values_of_type(schema: Json, node: Json, depth: int) -> st.SearchStrategy[Json]:
    """Draw values that a node without alternatives allows."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum", 2))
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        entries = allowed_values(schema, node["items"], depth + 1)
        return st.lists(entries, min_size=node.get("minItems", 0), max_size=3)
    if node.get("type") == "object" and depth < 3:
        return tables_of_node(schema, node, depth)
    if node.get("type") == "integer":
        return st.integers(int(low or 0), int(low or 0) + 3)
    if node.get("type") == "number":
        return st.floats(-2 if low is None else low, max(high, low or high))
    if node.get("type") == "boolean":
        return st.booleans()
    if node.get("type") == "string":
        return st.sampled_from(["none", "a", "running-mean", "linear", "ces"])
    return st.sampled_from(EXTREME_VALUES)


def tables_of_node(schema: Json, node: Json, depth: int) -> st.SearchStrategy[Json]:
    """Draw tables with the required keys of a node and some of the others."""
    required: dict[str, st.SearchStrategy[Json]] = {}
    optional: dict[str, st.SearchStrategy[Json]] = {}
    for key, child in node.get("properties", {}).items():
        keys = required if key in node.get("required", []) else optional
        keys[key] = allowed_values(schema, child, depth + 1)
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def changed_files(draw: st.DrawFn, schema: Json, files: list[Json]) -> Json:
    """Draw a file with one to three changes."""
    file = deepcopy(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(file) or [("name",)]))
        table = value_at(file, place[:-1])
        key = place[-1]
        nodes = nodes_at(schema, place)
        match draw(st.sampled_from(["drop", "extreme", "valid", "add", "move"])):
            case "drop" if place in places(file):
                del table[key]
            case "valid" if nodes:
                values = st.one_of(*(allowed_values(schema, node) for node in nodes))
                table[key] = deepcopy(draw(values))
            case "add" if isinstance(table, dict):
                draw(added_key(schema, table, place[:-1]))
            case "move" if isinstance(key, str):
                draw(moved_value(table, key, files))
            case _:
                table[key] = deepcopy(draw(st.sampled_from(EXTREME_VALUES)))
    return file


@st.composite
def added_key(draw: st.DrawFn, schema: Json, table: Json, place: Place) -> None:
    """Put a key into a table, in place: one that the schema knows there, or a strange one."""
    offered = []
    for node in nodes_at(schema, place):
        offered += node.get("properties", {})
    key = draw(st.sampled_from([*offered, "strange"]))
    allowed = [allowed_values(schema, node) for node in nodes_at(schema, (*place, key))]
    table[key] = deepcopy(draw(st.one_of(*allowed, st.sampled_from(EXTREME_VALUES))))


@st.composite
def moved_value(draw: st.DrawFn, table: Json, key: str, files: list[Json]) -> None:
    """Put the value that a key has in another file into a table, in place, if it is there."""
    other = draw(st.sampled_from(files))
    same_key = [place for place in places(other) if place[-1] == key]
    if same_key:
        table[key] = deepcopy(value_at(other, draw(st.sampled_from(same_key))))


ROWS = 30  # of a table
TABLE_HEAD = ["day", "y", "x"]
TABLE_ROWS = [[f"d{i}", f"{i * 7 % 11 / 10}", str(i * 5 % 7)] for i in range(ROWS)]
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
def csv_tables(draw: st.DrawFn, good_rows: list[list[str]], separators: str) -> bytes:
    """Draw a CSV of such rows, or what was one."""
    rows = deepcopy(good_rows)
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
    separator = draw(st.sampled_from(separators))
    line_end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = line_end.join(separator.join(row) for row in rows)
    content = text.encode(draw(st.sampled_from(["utf-8"] * 4 + ["utf-8-sig", "utf-16"])))
    cut = st.integers(0, len(content))
    first, last = sorted(draw(st.tuples(cut, cut)))
    damaged = [content[:last], content[first:], b"\xff" + content]
    return draw(st.sampled_from([content] * 6 + damaged))


@st.composite
def parquet_tables(draw: st.DrawFn) -> bytes:
    """Draw a Parquet file of columns day, y and x, or what was one."""
    day, y, x = zip(*TABLE_ROWS, strict=True)
    good_columns: list[list[Any]] = [
        [*day],
        [float(cell) for cell in y],
        [float(cell) for cell in x],
    ]
    columns = [draw(st.sampled_from([column, column, *COLUMNS])) for column in good_columns]
    names = draw(st.sampled_from([["day", "y", "x"]] * 4 + [["day", "y", "y"], ["", "y", "x"]]))
    n_rows = draw(st.sampled_from([ROWS, ROWS, ROWS, 1, 0]))
    arrays = [pa.array(column[:n_rows]) for column in columns]
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=names), stream)
    content = stream.getvalue()
    position = draw(st.integers(0, len(content) - 1))
    damaged = [content[:position], content[:position] + b"\xff" + content[position + 1 :]]
    return draw(st.sampled_from([content, content, content, *damaged]))


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


def small_scenario_file(path: Path) -> dict[str, Any]:
    """Read a scenario with few rounds and agents, which finds its files from any folder."""
    raw = read(path) | {"rounds": ROUNDS}
    for cohort in raw["cohort"]:
        parameters = cohort.get("parameters", {}).values()
        if not any(isinstance(value, list) for value in parameters):
            cohort["count"] = min(cohort.get("count", 1), MAX_COUNT)
        cohort.pop("types", None)
    for key, folder in {"data": DATA, "game": DATA / "games"}.items():
        if key in raw:
            raw[key]["file"] = str(folder / raw[key]["file"])
    return raw


def plays_in_two_rounds(raw: dict[str, Any]) -> bool:
    """Return whether nothing in a file needs more rounds or agents."""
    has_stays = any(cohort.get("enters") or cohort.get("exits") for cohort in raw["cohort"])
    return not has_stays and "windows" not in raw and "network" not in raw


@cache
def scenario_files() -> list[dict[str, Any]]:
    """Return the bundled scenarios that play two rounds as they are."""
    files = [small_scenario_file(path) for path in catalogue().values()]
    return [raw for raw in files if plays_in_two_rounds(raw)]


def study_files() -> list[dict[str, Any]]:
    """Return the bundled studies, which find their scenarios from any folder."""
    files = []
    for path in sorted(design.CATALOGUE.glob("*.toml")):
        raw = read(path)
        scenario_beside = path.parent / raw["scenario"]
        if scenario_beside.is_file():
            raw |= {"scenario": str(scenario_beside)}
        files.append(raw)
    return files


@contextmanager
def bounded() -> Iterator[None]:
    """Turn a hang and a hunger for memory into exceptions."""

    def raise_timeout(*_: object) -> None:
        raise TimeoutError("it hangs")

    handler = signal.signal(signal.SIGALRM, raise_timeout)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    n_pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (n_pages * resource.getpagesize() + MAX_MEMORY, limits[1])
    )
    signal.alarm(HANGS_AFTER_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def run_bounded_command(*words: str) -> tuple[int, str]:
    """Run a command in bounds; return its status and what it echoed."""
    echoed: list[str] = []
    with pytest.MonkeyPatch.context() as patch, bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow, on which a line follows
        patch.setattr(sys, "argv", ["regretless", *words])
        patch.setattr("typer.echo", lambda line, **_: echoed.append(line))
        with pytest.raises(SystemExit) as ended:
            commands.main()
    return int(ended.value.code or 0), "\n".join(echoed)


def check_runs_or_says_why(raw: dict[str, Any]) -> None:
    """Fail unless a scenario is refused in one line and writes nothing, or has losses in [0, 1]."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "strange.toml"
        out = Path(folder) / "out"
        file.write_bytes(tomli_w.dumps(raw).encode())
        options = ["--rounds", str(ROUNDS), "--out", str(out), "--quiet"]
        status, echoed = run_bounded_command("run", str(file), *options)
        for line in echoed.splitlines():
            assert line.startswith("regretless: "), echoed
        if status == 0:
            losses = pd.read_parquet(out / "agents.parquet")["mean_loss"].dropna()
            assert losses.between(-1e-9, 1 + 1e-9).all(), losses.tolist()
        else:
            assert status == 2, echoed
            assert echoed
            assert "\n" not in echoed, echoed
            assert not out.exists()


def result_or_one_line(function: Callable[[], Any]) -> Any:
    """Return what a call gives; None if it refuses, in one line."""
    try:
        return function()
    except UserError as error:
        if "\n" in str(error):
            raise AssertionError(str(error)) from error
        return None


def check_study_is_read_or_says_why(raw: dict[str, Any]) -> None:
    """Fail unless a study is refused in one line, or its first setting is played or refused so."""
    with tempfile.TemporaryDirectory() as folder, bounded():
        file = Path(folder) / "strange.toml"
        file.write_bytes(tomli_w.dumps(raw).encode())
        study = result_or_one_line(lambda: design.read_study(str(file)))
        if study is None or len(study.settings) > MAX_SETTINGS:
            return
        small_study = study.sized(rounds=ROUNDS, seeds=1)
        tasks = result_or_one_line(lambda: small_study.settings_to_check(()))
        if not tasks:
            return
        answer = check(tasks[0])
        if answer is not None and answer.failure is not None:  # of which a study makes one line
            error = answer.failure.traceback.splitlines()[-1].partition(":")[0]
            assert error.endswith(("UserError", "MemoryError")), answer.failure


def try_examples(count: int, strategy: st.SearchStrategy[Any], holds: Callable[..., None]) -> None:
    """Check so many examples, the same each time."""
    chosen = settings(
        max_examples=count, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck]
    )
    chosen(given(strategy)(holds))()


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
few_and_many = pytest.mark.parametrize(
    "times", [1, pytest.param(80, marks=pytest.mark.crashes)], ids=["few", "many"]
)


@linux
@few_and_many
def test_any_scenario_runs_or_says_why(times: int) -> None:
    files = changed_files(schema("scenario"), scenario_files())
    try_examples(25 * times, files, check_runs_or_says_why)


@linux
@few_and_many
def test_any_study_is_read_or_says_why(times: int) -> None:
    files = changed_files(schema("study"), study_files())
    try_examples(10 * times, files, check_study_is_read_or_says_why)


GAME_LINES = (DATA / "games/deng-2x3.csv").read_text(encoding="utf-8").splitlines()
GAME_ROWS = [line.split(",") for line in GAME_LINES if not line.startswith("#")]
ARRAYS = st.sampled_from([*EXTREME_VALUES, [[1e308, -1e308]], [[1, 2]]])


def check_game_is_read_or_says_why(file: Path) -> None:
    """Fail unless a game is refused in one line, or all its numbers are finite."""
    game = result_or_one_line(lambda: read_game(file))
    if game is not None:
        assert np.isfinite([game.unit_scale, game.unit_offset, *game.follower_loss.flat]).all()


def as_array(value: Any) -> Any:
    """Return an array of what is drawn, of objects where its rows are ragged."""
    return np.array(value, object if isinstance(value, list) else None)


@few_and_many
def test_any_game_in_a_csv_is_read_or_says_why(tmp_path: Path, times: int) -> None:
    file = tmp_path / "a.csv"

    def check_content(content: bytes) -> None:
        file.write_bytes(content)
        check_game_is_read_or_says_why(file)

    try_examples(50 * times, csv_tables(GAME_ROWS, ","), check_content)


@few_and_many
def test_any_game_of_arrays_is_read_or_says_why(tmp_path: Path, times: int) -> None:
    file = tmp_path / "a.npz"

    def check_arrays(arrays: tuple[Any, Any]) -> None:
        leader, follower = arrays
        np.savez(file, leader_payoff=as_array(leader), follower_loss=as_array(follower))
        check_game_is_read_or_says_why(file)

    try_examples(20 * times, st.tuples(ARRAYS, ARRAYS), check_arrays)


TRADERS = [{"name": "traders", "utility": "linear", "actions": 2}]
CSV_TABLES = csv_tables([TABLE_HEAD, *TABLE_ROWS], ",,,;\t")


@linux
@few_and_many
@pytest.mark.parametrize(
    ("ending", "contents"), [("csv", CSV_TABLES), ("parquet", parquet_tables())]
)
def test_any_table_is_played_or_says_why(
    tmp_path: Path, times: int, ending: str, contents: st.SearchStrategy[bytes]
) -> None:
    file = tmp_path / f"strange.{ending}"

    def check_table(drawn: tuple[bytes, dict[str, Any]]) -> None:
        content, keys = drawn
        file.write_bytes(content)
        data = keys | {"file": str(file)}
        check_runs_or_says_why({"name": "t", "rounds": ROUNDS, "data": data, "cohort": TRADERS})

    try_examples(13 * times, st.tuples(contents, TABLE_KEYS), check_table)


def test_the_scenarios_that_are_changed_play_as_they_are() -> None:
    """Otherwise the lines would tell of this file's own mistakes."""
    assert len(scenario_files()) >= 15
    for raw in scenario_files()[::4]:
        model = play_to_end(read_scenario(deepcopy(raw)))
        assert model.played == ROUNDS
