"""A scenario file for a table that was described, which plays as it stands.

The starter forecasts up to three outcomes, scaled by the range of 98 % of their values, for two
cohorts with different wants; the first context column cuts a policy to compare with.
"""

import json
import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import DATA
from regretless.scenarios.table_description import (
    FEW_NUMBERS,
    Description,
    codes_of,
    written_cells,
)
from regretless.scenarios.table_files import spelled

TEMPLATE = Path(__file__).with_name("starter.toml.jinja")
MOST_OUTCOMES, MOST_CONTEXT, MOST_REASONS = 3, 6, 4
INNER = (0.01, 0.99)


def starter(table: Description, home: Path) -> str:
    """Write a scenario file for a table that was described.

    ``home``: the folder in which the file will lie. UserError if no column can be an outcome.
    """
    outcomes = table.named("outcome")[:MOST_OUTCOMES]
    if not outcomes:
        columns = sorted(table.columns, key=lambda own: "numbers" not in own.kind)
        reasons = [
            f"'{own.name}': {own.note or f'{own.kind}, {own.distinct} different'}"
            for own in columns[:MOST_REASONS]
        ]
        reasons += [f"and {len(columns) - len(reasons)} more"] * (len(columns) > len(reasons))
        wanted = f"numbers that are not whole, or of more than {FEW_NUMBERS} different values"
        cure = f"add a column of {wanted}, or write the scenario by hand"
        none = f"{table.file.name} has no column that can be an outcome"
        raise UserError(f"{none}; {'; '.join(reasons)}; {cure}")
    context, place = table.named("context")[:MOST_CONTEXT], table.file.resolve()
    gone = [written_cells(table.frame, column.name)[1] for column in (*outcomes, *context)]
    there = ~np.any(gone, axis=0)
    drop = not there[0]  # there is no row before it
    file = Path(table.file.name)
    if place.parent != DATA:
        with suppress(ValueError):  # on another drive
            place = Path(os.path.relpath(place, home.resolve()))
        file = place
    values: dict[str, Any] = {
        "table": table,
        "name": (re.sub(r"[^\w-]+", "-", table.file.stem).strip("-_") or "mine").lower(),
        "rounds": int(there.sum()) if drop else len(there),
        "file": file.as_posix(),
        "outcomes": outcomes,
        "context": context,
        "missing": "" if there.all() else "drop" if drop else "previous",
    }
    if context:  # a rule on the first column: another action in each third of the rows
        different, counts = np.unique(table.numbers(context[0]), return_counts=True)
        below = counts.cumsum()[:-1] / counts.sum()
        cuts = np.unique([np.abs(below - third).argmin() for third in (1 / 3, 2 / 3)])
        edges = ((different[cuts] + different[cuts + 1]) / 2).tolist()
        values |= {"edges": edges, "actions": {1: [0, 4], 2: [0, 2, 4]}[len(edges)]}
    pages = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)  # noqa: S701 - no HTML
    pages.filters |= {"key": spelled, "ends": _ends, "code": codes_of}
    pages.filters["text"] = lambda value: json.dumps(value, ensure_ascii=False)
    return pages.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)


def _ends(values: Array) -> tuple[float, float, float]:
    """Return round ends for values, and the share of values beyond them."""
    least, most = float(values.min()), float(values.max())
    low, high = map(float, np.quantile(values, INNER))
    low = least if low - least <= 0.5 * (high - low) else low
    high = most if most - high <= 0.5 * (high - low) else high
    low, high = (low, high) if low < high else (least, most)
    unit = 10.0 ** math.floor(math.log10(high - low) - 1)
    first, last = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    first = 0.0 if least >= 0 and first <= 0.2 * last else first
    first, last = float(f"{first:.10g}"), float(f"{last:.10g}")
    low, high = (first, last) if first < last else (low, high)
    return low, high, float(((values < low) | (values > high)).mean())
