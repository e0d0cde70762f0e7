"""A starter scenario for a table: a commented file that plays as it stands.

It forecasts up to three outcomes, scaled by the range in which 98 % of their values lie, for two
cohorts with different wants: newsvendors and quadratic planners where there is one outcome, linear
and CES utilities where there are several. The first context column cuts a policy to compare with.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import DATA
from regretless.scenarios.describe.columns import FEW_NUMBERS, Column, Description
from regretless.scenarios.frames import TRUTHS, spelled

MOST_OUTCOMES, MOST_CONTEXT, MOST_REASONS = 3, 6, 4
INNER = (0.01, 0.99)


def starter(table: Description, home: Path) -> str:
    """Write a scenario file for a table that was described.

    Parameters
    ----------
    home : Path
        The folder in which the file will lie.

    Raises
    ------
    UserError
        If no column can be an outcome.
    """
    outcomes = table.named("outcome")[:MOST_OUTCOMES]
    if not outcomes:
        raise UserError(
            f"{table.file.name} has no column that can be an outcome; {_reasons(table)}"
        )
    context = table.named("context")[:MOST_CONTEXT]
    there = table.complete([*outcomes, *context])
    drop = not there[0]  # there is no row before it
    parts = [
        _head(table, int(there.sum()) if drop else len(there)),
        "\n".join(_data(table, outcomes, context, home)) + _gaps(there),
        "\n".join(_scale(table, outcomes)),
    ]
    parts += ["\n".join(_codes(context))] if any(column.values for column in context) else []
    parts += [_cohorts(len(outcomes), policy=bool(context))]
    parts += [_policy(table, context[0])] if context else []
    return "\n\n".join(parts) + "\n"


def _reasons(table: Description) -> str:
    """Say why the first columns, those of numbers before others, are no outcomes; and the cure."""
    columns = sorted(table.columns, key=lambda column: "numbers" not in column.kind)
    told = [
        f"'{column.name}': {column.note or f'{column.kind}, {column.distinct} different'}"
        for column in columns[:MOST_REASONS]
    ]
    told += [f"and {len(columns) - len(told)} more"] * (len(columns) > len(told))
    wanted = f"numbers that are not whole, or of more than {FEW_NUMBERS} different values"
    return f"{'; '.join(told)}; add a column of {wanted}, or write the scenario by hand"


def _head(table: Description, rounds: int) -> str:
    name = re.sub(r"[^\w-]+", "-", table.file.stem).strip("-_") or "mine"
    return "\n".join(
        [
            f"# Written from the columns of {table.file.name}; everything here may be changed.",
            f"name = {_text(name.lower())}",
            f"rounds = {rounds}",
            "seed = 1",
        ]
    )


def _data(
    table: Description, outcomes: list[Column], context: list[Column], home: Path
) -> Iterator[str]:
    yield "# A round is a row."
    yield "[data]"
    yield f"file = {_text(_beside(table.file, home))}"
    yield f"outcomes = {_texts(outcomes)}" + _left(table.named("outcome")[MOST_OUTCOMES:])
    if context:
        yield "# What everybody knows before the round: strike out what is known only after it."
        yield f"context = {_texts(context)}" + _left(table.named("context")[MOST_CONTEXT:])
    if index := table.named("index"):
        yield f"index = {_text(index[0].name)}"
    if table.form.separator != ",":
        yield f"separator = {_text(table.form.separator)}"
    if table.form.decimal != ".":
        yield f"decimal = {_text(table.form.decimal)}"


def _gaps(there: Mask) -> str:
    if there.all():
        return ""
    if there[0]:
        return '\nmissing = "previous"       # or "drop"'
    return '\nmissing = "drop"           # the first row has no row before it'


def _beside(file: Path, home: Path) -> str:
    """Return a path from a folder, where there is one; the bare name of a bundled table."""
    if file.resolve().parent == DATA:
        return file.name
    try:
        return Path(os.path.relpath(file.resolve(), home.resolve())).as_posix()
    except ValueError:  # on another drive
        return file.resolve().as_posix()


def _left(others: list[Column]) -> str:
    return f"  # also: {', '.join(column.name for column in others)}" if others else ""


def _scale(table: Description, outcomes: list[Column]) -> Iterator[str]:
    """Write the ends of every outcome: round numbers about the range of 98 % of its values."""
    yield "# What becomes 0 and 1; what lies beyond is clipped. Swap the ends where less is better."
    yield "[data.scale]"
    for column in outcomes:
        low, high, clipped = _ends(table.numbers(column))
        note = f"  # {100 * clipped:.1f} % of the rows lie beyond" if clipped else ""
        yield f"{spelled(column.name)} = [{low!r}, {high!r}]{note}"


def _ends(values: Array) -> tuple[float, float, float]:
    """Return round ends for values, and the share of values beyond them."""
    least, most = float(values.min()), float(values.max())
    low, high = np.quantile(values, INNER)
    low = least if low - least <= 0.5 * (high - low) else float(low)
    high = most if most - high <= 0.5 * (high - low) else float(high)
    low, high = (low, high) if low < high else (least, most)
    unit = 10.0 ** math.floor(math.log10(high - low) - 1)
    first, last = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    first = 0.0 if least >= 0 and first <= 0.2 * last else first
    first, last = float(f"{first:.10g}"), float(f"{last:.10g}")
    low, high = (first, last) if first < last else (low, high)
    return low, high, float(((values < low) | (values > high)).mean())


def _codes(context: list[Column]) -> Iterator[str]:
    yield "# Numbers that stand for words."
    yield "[data.codes]"
    for column in context:
        if column.values:
            pairs = (f"{spelled(word)} = {code}" for word, code in _code(column).items())
            yield f"{spelled(column.name)} = {{ {', '.join(pairs)} }}"


def _code(column: Column) -> dict[str, int]:
    """Return the numbers that stand for a column's words."""
    return {word: TRUTHS.get(word.casefold(), i) for i, word in enumerate(column.values)}


def _coded(table: Description, column: Column) -> Array:
    """Return the numbers that stand for the words of a column that are there (t,)."""
    codes = _code(column)
    return np.array([codes[word] for word in table.words(column)], dtype=np.float64)


def _cohorts(goods: int, *, policy: bool) -> str:
    if goods == 1:
        kinds = [
            ("stockists", "newsvendor", "{ underage = [1.0, 4.0], overage = [0.5, 2.0] }"),
            ("planners", "lp-target", "{}"),
        ]
    else:
        kinds = [
            ("linear", "linear", "{}"),
            ("balanced", "ces", "{ rho = { choices = [0.5, 1.0, 2.0] } }"),
        ]
    lines = [
        "# Agents who follow the forecast. An action is a stock, a plan, a crop: five for each."
    ]
    for name, utility, parameters in kinds:
        lines += ["[[cohort]]", f"name = {_text(name)}", f"utility = {_text(utility)}"]
        lines += [] if parameters == "{}" else [f"parameters = {parameters}"]
        lines += ["count = 20", "actions = 5"]
        lines += ['policies = ["rule"]', ""] if policy else [""]
    return "\n".join(lines).rstrip()


def _policy(table: Description, column: Column) -> str:
    """Write a rule on the first context column: another action in each third of the rows."""
    values = table.numbers(column) if not column.values else _coded(table, column)
    edges = _cuts(values)
    actions = {1: [0, 4], 2: [0, 2, 4]}[len(edges)]
    return "\n".join(
        [
            "# A rule of thumb, which is an alternative in hindsight for every agent.",
            "[policy.rule]",
            'kind = "steps"',
            f"feature = {_text(column.name)}",
            f"edges = {edges}",
            f"actions = {actions}",
        ]
    )


def _cuts(values: Array) -> list[float]:
    """Return one or two cuts, midway between neighbouring values, nearest to thirds of the rows."""
    different, counts = np.unique(values, return_counts=True)
    below = counts.cumsum()[:-1] / len(values)
    places = np.unique([np.abs(below - third).argmin() for third in (1 / 3, 2 / 3)])
    return [float(cut) for cut in (different[places] + different[places + 1]) / 2]


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _texts(columns: list[Column]) -> str:
    return json.dumps([column.name for column in columns], ensure_ascii=False)
