"""A starter scenario for a table: a commented file that plays as it stands.

It forecasts up to three outcomes, scaled by the range in which 98 % of their values lie, for two
cohorts with different wants: newsvendors and quadratic planners where there is one outcome, linear
and CES utilities where there are several. The first context column cuts a policy to compare with.
"""

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import DATA
from regretless.scenarios.describe.columns import FEW_NUMBERS, Column, Description
from regretless.scenarios.frames import TRUTHS, spelled

TEMPLATE = Path(__file__).with_name("starter.toml.jinja")
COHORTS = {  # of one outcome, and of several: name, utility, parameters
    False: (
        ("stockists", "newsvendor", "{ underage = [1.0, 4.0], overage = [0.5, 2.0] }"),
        ("planners", "lp-target", ""),
    ),
    True: (
        ("producers", "linear", ""),
        ("households", "ces", "{ rho = { choices = [0.5, 1.0, 2.0] } }"),
    ),
}
MOST_OUTCOMES, MOST_CONTEXT, MOST_REASONS = 3, 6, 4
INNER = (0.01, 0.99)


def starter(table: Description, home: Path) -> str:
    """Write a scenario file for a table that was described.

    ``home``: the folder in which the file will lie. UserError if no column can be an outcome.
    """
    outcomes = table.named("outcome")[:MOST_OUTCOMES]
    if not outcomes:
        raise UserError(
            f"{table.file.name} has no column that can be an outcome; {_reasons(table)}"
        )
    context = table.named("context")[:MOST_CONTEXT]
    there = table.complete([*outcomes, *context])
    drop = not there[0]  # there is no row before it
    values: dict[str, Any] = {
        "table": table,
        "name": (re.sub(r"[^\w-]+", "-", table.file.stem).strip("-_") or "mine").lower(),
        "rounds": int(there.sum()) if drop else len(there),
        "file": _beside(table.file, home),
        "outcomes": outcomes,
        "context": context,
        "missing": "" if there.all() else "drop" if drop else "previous",
        "scale": [(spelled(own.name), *_ends(table.numbers(own))) for own in outcomes],
        "codes": [
            f"{spelled(own.name)} = {{ {', '.join(pairs)} }}"
            for own in context
            if (pairs := [f"{spelled(word)} = {code}" for word, code in _code(own).items()])
        ],
        "cohorts": COHORTS[len(outcomes) > 1],
    }
    if context:  # a rule on the first column: another action in each third of the rows
        first, code = context[0], _code(context[0])
        words = [code[word] for word in table.words(first)] if code else []
        edges = _cuts(np.array(words, dtype=np.float64) if code else table.numbers(first))
        values |= {"edges": edges, "actions": {1: [0, 4], 2: [0, 2, 4]}[len(edges)]}
    pages = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)  # noqa: S701 - no HTML
    pages.filters["text"] = lambda value: json.dumps(value, ensure_ascii=False)
    return pages.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)


def _reasons(table: Description) -> str:
    """Say why the first columns, those of numbers before others, are no outcomes; and the cure."""
    columns = sorted(table.columns, key=lambda column: "numbers" not in column.kind)
    reasons = [
        f"'{column.name}': {column.note or f'{column.kind}, {column.distinct} different'}"
        for column in columns[:MOST_REASONS]
    ]
    reasons += [f"and {len(columns) - len(reasons)} more"] * (len(columns) > len(reasons))
    wanted = f"numbers that are not whole, or of more than {FEW_NUMBERS} different values"
    return f"{'; '.join(reasons)}; add a column of {wanted}, or write the scenario by hand"


def _beside(file: Path, home: Path) -> str:
    """Return a path from a folder, where there is one; the bare name of a bundled table."""
    if file.resolve().parent == DATA:
        return file.name
    try:
        return Path(os.path.relpath(file.resolve(), home.resolve())).as_posix()
    except ValueError:  # on another drive
        return file.resolve().as_posix()


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


def _code(column: Column) -> dict[str, int]:
    """Return the numbers that stand for a column's words."""
    return {word: TRUTHS.get(word.casefold(), i) for i, word in enumerate(column.values)}


def _cuts(values: Array) -> list[float]:
    """Return one or two cuts, midway between neighbouring values, nearest to thirds of the rows."""
    different, counts = np.unique(values, return_counts=True)
    below = counts.cumsum()[:-1] / len(values)
    places = np.unique([np.abs(below - third).argmin() for third in (1 / 3, 2 / 3)])
    return [float(cut) for cut in (different[places] + different[places + 1]) / 2]
