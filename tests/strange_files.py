"""Strategies for strange files: good ones, with a few things changed.

What may stand at a place of a scenario or study is read from the JSON Schema; what may not is a
list of extremes. Tables have strange cells, headers, rows, types of columns and bytes.
"""

import datetime as dt
import io
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

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


def nodes(schema: Json, place: Place) -> list[Json]:
    """Return what a schema says of a place: one node for each alternative."""
    found = alternatives(schema, schema)
    for step in place:
        if isinstance(step, int):
            below = [node.get("items", {}) for node in found]
        else:
            below = [
                node.get("properties", {}).get(step, node.get("additionalProperties"))
                for node in found
            ]
        found = [node for b in below if isinstance(b, dict) for node in alternatives(schema, b)]
    return found


def alternatives(schema: Json, node: Json) -> list[Json]:
    """Follow references, and open alternatives."""
    if "$ref" in node:
        return alternatives(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return [found for branch in node["anyOf"] for found in alternatives(schema, branch)]
    return [node]


def valid(  # noqa: PLR0911 - one per type
    schema: Json, node: Json, depth: int = 0
) -> st.SearchStrategy[Json]:
    """Values that a node of a schema allows, more or less."""
    if "enum" in node or "const" in node:
        return st.sampled_from(node.get("enum", [node.get("const")]))
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum"))
    match node.get("type"):
        case "integer":
            least = int(low or 0)
            return st.integers(least, least + 3)
        case "number":
            return st.floats(low if low is not None else -2, high if high is not None else 2)
        case "boolean":
            return st.booleans()
        case "string":
            return st.sampled_from(["none", "a", "running-mean", "linear", "ces"])
        case "array":
            inside = st.one_of(
                *(valid(schema, n, depth + 1) for n in alternatives(schema, node["items"]))
            )
            return st.lists(inside, min_size=node.get("minItems", 0), max_size=3)
        case "object" if depth < 3:
            known = node.get("properties", {})
            needed = [key for key in known if key in node.get("required", [])]
            entries = {key: any_of(schema, known[key], depth + 1) for key in known}
            must = {key: entries.pop(key) for key in needed}
            return st.fixed_dictionaries(must, optional=entries)
        case _:
            return st.sampled_from(EXTREMES)


def any_of(schema: Json, node: Json, depth: int) -> st.SearchStrategy[Json]:
    """Values that one of a node's alternatives allows."""
    return st.one_of(*(valid(schema, n, depth) for n in alternatives(schema, node)))


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
                offered = [
                    key for n in nodes(schema, place[:-1]) for key in n.get("properties", {})
                ]
                key = draw(st.sampled_from([*offered, "strange"]))
                kinds = nodes(schema, (*place[:-1], key))
                made = [valid(schema, node) for node in kinds]
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
def csv_tables(draw: st.DrawFn) -> bytes:
    """Draw a CSV of columns day, y and x, or what was one."""
    rows = deepcopy([["day", "y", "x"], *GOOD])
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
    separator, end = draw(st.sampled_from(",,,;\t")), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = end.join(separator.join(row) for row in rows)
    whole = text.encode(draw(st.sampled_from(["utf-8"] * 4 + ["utf-8-sig", "utf-16"])))
    return draw(st.sampled_from([whole, whole, whole, whole[: draw(st.integers(0, len(whole)))]]))


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
