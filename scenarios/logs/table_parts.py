"""The tables of a run while they grow: parts on disk, put together into one file at the end.

While a run goes on, each chunk of its logs is a part of every streamed table, an Arrow file as it
lies in memory. At its end ``scenarios.logs.run_directory`` asks for the whole of each table
(``whole_table``) and writes it as Parquet or CSV, some rows at a time: a log may be larger than
memory.

A table with a row per agent and round (``TABLES_BY_AGENT``) is kept in the order of the agents,
each one's rounds in theirs, so that a reader of one agent's path skips all other row groups. Each
part is sorted so when it is written. The whole is put together in passes over all parts, each pass
for the agents that come next: ``N_PASSES`` of them, unless these would be very short or very long.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market.core.arrays import Integers
from regretless.market.core.checkpoint import replacing

TABLES_BY_AGENT = {"regret_log", "accounts", "states"}
ROWS_PER_GROUP = 100_000  # of a Parquet file: so many are read where one agent is asked for
N_PASSES = 20
MIN_ROWS_PER_PASS = 100_000
MAX_ROWS_PER_PASS = 5_000_000  # unless one agent has more
MAX_OPEN_PARTS = 200


def write_part(path: Path, table: str, frame: pd.DataFrame) -> None:
    """Write one part of a table whole or not at all; the folder is left to the caller to sync."""
    rows = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
    if table in TABLES_BY_AGENT:
        rows = rows.take(_order_by_agent(rows))
    with (
        replacing(path, sync_folder=False) as draft,
        pa.ipc.new_file(str(draft), rows.schema) as writer,
    ):
        writer.write_table(rows)


def whole_table(table: str, parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all parts of a table, some at a time, in the order in which it is kept.

    How many rows come at a time does not depend on how they are split into parts: a run that was
    stopped and resumed has other parts, and the same files.
    """
    if table not in TABLES_BY_AGENT:
        yield from _in_groups(_mapped(part) for part in parts)
        return
    for first_agent, next_agent in pairwise(_first_agents_of_passes(parts)):
        yield from _rows_of_agents(parts, first_agent, next_agent)
        pa.default_memory_pool().release_unused()


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of tables in groups of ``ROWS_PER_GROUP``; the last has what is left."""
    waiting: list[pa.Table] = []
    n_waiting = 0
    for table in tables:
        waiting.append(table)
        n_waiting += len(table)
        while n_waiting >= ROWS_PER_GROUP:
            rows = pa.concat_tables(waiting, promote_options="permissive")
            yield rows.slice(0, ROWS_PER_GROUP).combine_chunks()
            waiting = [rows.slice(ROWS_PER_GROUP)]
            n_waiting -= ROWS_PER_GROUP
    if n_waiting or waiting:
        yield pa.concat_tables(waiting, promote_options="permissive").combine_chunks()


def _order_by_agent(rows: pa.Table) -> Integers:
    """Return the places of the rows in the order of their agents, each one's as they come."""
    return np.argsort(rows["agent"].to_numpy(), kind="stable")


def _mapped(part: Path) -> pa.Table:
    """Return the rows of a part, which stay on disk until they are read."""
    return pa.ipc.open_file(pa.memory_map(str(part))).read_all()


def _first_agents_of_passes(parts: Sequence[Path]) -> Integers:
    """Return the agent with whom each pass begins, and last a number above all agents."""
    rows_per_agent = np.zeros(0, dtype=np.int64)
    for part in parts:
        agents = _mapped(part)["agent"].to_numpy()
        counts = np.bincount(agents, minlength=len(rows_per_agent))
        counts[: len(rows_per_agent)] += rows_per_agent
        rows_per_agent = counts
    rows_before = np.cumsum(rows_per_agent) - rows_per_agent
    rows_per_pass = rows_per_agent.sum() // N_PASSES
    rows_per_pass = np.clip(rows_per_pass, MIN_ROWS_PER_PASS, MAX_ROWS_PER_PASS)
    pass_of_agent = rows_before // rows_per_pass
    first_agents = np.flatnonzero(np.diff(pass_of_agent, prepend=-1))
    return np.append(first_agents, len(rows_per_agent))


def _rows_of_agents(parts: Sequence[Path], first: int, end: int) -> Iterator[pa.Table]:
    """Yield the rows of the agents from ``first`` to below ``end`` as row groups.

    They are in memory until the iterator ends.
    """
    gathered: list[pa.Table] = []
    for start in range(0, len(parts), MAX_OPEN_PARTS):
        for part in parts[start : start + MAX_OPEN_PARTS]:
            rows = _mapped(part)
            begin, stop = np.searchsorted(rows["agent"].to_numpy(), [first, end])
            gathered.append(rows.slice(begin, stop - begin))
        together = pa.concat_tables(gathered, promote_options="permissive")
        gathered = [together.combine_chunks()]  # in memory: the parts are closed
    (rows,) = gathered
    order = _order_by_agent(rows)
    for start in range(0, len(order), ROWS_PER_GROUP):
        yield rows.take(order[start : start + ROWS_PER_GROUP])


def write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other; nothing if there are none.

    Of whole numbers the steps are kept, and real numbers are split into their bytes: along a path
    steps and leading bytes hardly change. To look for equal numbers would cost most of the time.
    """
    for first in tables:
        encodings = {}
        for column in first.schema:
            if pa.types.is_integer(column.type):
                encodings[column.name] = "DELTA_BINARY_PACKED"
            elif pa.types.is_floating(column.type):
                encodings[column.name] = "BYTE_STREAM_SPLIT"
        options: dict[str, Any] = {
            "column_encoding": encodings,
            "use_dictionary": [name for name in first.schema.names if name not in encodings],
            "write_batch_size": ROWS_PER_GROUP,
        }
        with pq.ParquetWriter(path, first.schema, **options) as writer:
            for table in chain([first], tables):
                writer.write_table(table.cast(writer.schema), row_group_size=ROWS_PER_GROUP)


def write_csv(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other; nothing if there are none."""
    for number, table in enumerate(tables):
        is_first = number == 0
        mode = "w" if is_first else "a"
        table.to_pandas().to_csv(path, mode=mode, header=is_first, index=False, lineterminator="\n")
