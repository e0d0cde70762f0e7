"""The parts of a streamed table on disk, and how they come together in bounded memory.

A part is an Arrow file as it lies in memory: it costs little more than its bytes, and the system
maps of it what is read. Of a table with a row per agent and round, ``BY_AGENT``, each part is in
the order of the agents, and so is the whole, each agent's rounds in theirs: one agent's path lies
in one place, and a reader who wants it skips all other row groups by what they say of their least
and greatest agent. A log of any length is put together in passes over the parts, each of them for
the agents next in order: ``PASSES`` of them, if that makes neither few nor many rows.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market.core.arrays import Integers

BY_AGENT = {"regret_log", "accounts", "states"}
GROUP = 100_000  # rows of a row group: so many are read where one agent is asked for
PASSES = 20
FEWEST, MOST = 100_000, 5_000_000  # rows of a pass, unless one agent has more; two are in memory
OPEN = 200  # parts that are open at a time

Some = TypeVar("Some")


def _order(table: pa.Table) -> Integers:
    """Return which rows come first in the order of agents, each one's as they come."""
    return np.argsort(table["agent"].to_numpy(), kind="stable")


def write_part(path: Path, name: str, frame: pd.DataFrame) -> None:
    """Write the rows of a table that came together as a part of it."""
    table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
    table = table.take(_order(table)) if name in BY_AGENT else table
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def whole(name: str, parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all parts of a table, some at a time, in the order in which it is kept."""
    if name not in BY_AGENT:
        yield from map(_opened, parts)
        return
    for table, order in _ahead(_pass(parts, *span) for span in pairwise(_cuts(parts))):
        yield from (table.take(order[i : i + GROUP]) for i in range(0, len(order), GROUP))


def _pass(parts: Sequence[Path], low: int, high: int) -> tuple[pa.Table, Integers]:
    """Return all rows of some agents, and in which order they belong."""
    within = partial(_between, low=low, high=high)
    some = (parts[first : first + OPEN] for first in range(0, len(parts), OPEN))
    table = _joined([_joined(list(map(within, few))) for few in some])
    return table, _order(table)


def _ahead(made: Iterator[Some]) -> Iterator[Some]:
    """Yield what is made, the next one being made meanwhile."""
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(next, made, None)
        while (one := coming.result()) is not None:
            coming = other.submit(next, made, None)
            yield one


def _opened(part: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(part))).read_all()


def _cuts(parts: Sequence[Path]) -> Integers:
    """Return the agents with whom the passes begin, and one that is above all."""
    rows = np.zeros(0, np.int64)
    for part in parts:
        found = np.bincount(_opened(part)["agent"].to_numpy(), minlength=len(rows))
        found[: len(rows)] += rows
        rows = found
    before = np.cumsum(rows) - rows
    most = np.clip(rows.sum() // PASSES, FEWEST, MOST)
    firsts = np.flatnonzero(np.diff(before // most, prepend=-1))
    return np.append(firsts, len(rows))


def _between(part: Path, low: int, high: int) -> pa.Table:
    """Return the rows of a part whose agents are at least ``low`` and below ``high``."""
    table = _opened(part)
    first, last = np.searchsorted(table["agent"].to_numpy(), [low, high])
    return table.slice(first, last - first)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables one behind the other, and lay each column out in one piece."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other, nothing if there are none.

    Of whole numbers it is the steps that are kept, the others are split into their bytes: along a
    path steps and leading bytes hardly change. To look for equal ones would cost most of the time.
    """
    writer: pq.ParquetWriter | None = None
    for table in tables:
        if writer is None:
            fits = {"DELTA_BINARY_PACKED": pa.types.is_integer}
            fits |= {"BYTE_STREAM_SPLIT": pa.types.is_floating}
            found = {
                f.name: name for f in table.schema for name, is_ in fits.items() if is_(f.type)
            }
            options: dict[str, Any] = {"column_encoding": found, "write_batch_size": GROUP}
            options["use_dictionary"] = [n for n in table.schema.names if n not in found]
            writer = pq.ParquetWriter(path, table.schema, **options)
        writer.write_table(table.cast(writer.schema), row_group_size=GROUP)
    if writer is not None:
        writer.close()


def write_csv(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other, nothing if there are none."""
    for i, table in enumerate(tables):
        frame = table.to_pandas()
        frame.to_csv(path, mode="a" if i else "w", header=not i, index=False, lineterminator="\n")
