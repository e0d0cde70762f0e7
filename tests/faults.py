"""Ends, or fails, the command at its k-th file operation, and looks what a resumed one makes of it.

    python tests/faults.py FOLDER run|study MOST|each [KIND OF FAULT ...]

plays a tiny run or study in FOLDER, counts its file operations (opened, written, synced, renamed,
removed, folders made and removed), and plays it again up to about ``MOST`` of them, spread evenly,
and both ends, for each kind of fault; with "each" every operation meets one kind of fault, the
kinds in turn. It plays in a forked process, so that nothing is imported or compiled again.
Afterwards every table that is seen must be whole, and ``--resume`` must lead to the undisturbed
bytes. Writes how many there were of each; the status is 1, with a line for each, where something
went wrong.

    kill    the process ends before the operation
    torn    it ends with half of what is written there
    full    nothing can be written from there on
    error   that one operation fails
    twice   it ends there while another process wants the same folder
"""

import builtins
import errno
import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from regretless import load
from regretless.market.logs import journal
from regretless.scenarios import run as run_of_a_scenario
from regretless.scenarios.cli import commands
from regretless.scenarios.executor import Executor
from regretless.scenarios.studies import conduct

ENDED = 77  # status of a process that was ended here
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OPERATIONS = {"open", "os.remove", "os.rmdir", "os.rename", "os.mkdir"}  # as Python audits them
MODES = ("kill", "torn", "full", "error", "twice")
TINY = """\
name = "tiny"
rounds = 20
adversary = { kind = "drifting", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [{ name = "farmers", utility = "linear", count = 2, actions = 2 }]
"""
SWEEP = """\
scenario = "tiny.toml"
seeds = 2
rounds = 10
"""


class Faults:
    """Counts file operations in a folder, from 1, and strikes at one, in a mode that is not ""."""

    def __init__(self, folder: Path, mode: str = "", at: int = 0) -> None:
        self.folder, self.mode, self.at, self.count = str(folder), mode, at, 0

    def step(self, half: Callable[[], Any] | None = None, *, fills: bool = True) -> None:
        """Count an operation; ``half`` does half of it, ``fills`` says that it needs room."""
        self.count += 1
        late = self.count > self.at and self.mode == "full" and fills
        if not late and (self.count != self.at or not self.mode):
            return
        if half is not None and self.mode != "kill":
            half()
        if self.mode not in {"full", "error"}:
            os._exit(ENDED)
        if self.mode == "error" or fills:
            reason = errno.EIO if self.mode == "error" else errno.ENOSPC
            raise OSError(reason, os.strerror(reason))

    def holds(self, path: Any) -> bool:
        """Whether a path lies in the folder."""
        named = isinstance(path, str | os.PathLike)
        return named and str(Path.cwd() / path).startswith(self.folder)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Hear of what Python does."""
        within = event in {"os.remove", "os.rmdir"} and args[1] != -1  # of a folder that is open
        if event not in OPERATIONS or not (within or self.holds(args[0])):
            return
        if event != "open" or (args[2] or 0) & WRITING:
            self.step(fills=event in {"open", "os.mkdir"})

    def install(self) -> None:
        sync, opened, write = os.fsync, io.open, pq.write_table
        part, table = pa.ipc.new_file, pq.ParquetWriter

        def synced(handle: int) -> None:
            self.step()
            sync(handle)

        def watched(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            stream = opened(file, mode, *args, **options)
            writes = set(mode) & set("wax+") and self.holds(file)
            return Watched(stream, self) if writes else stream

        def written(rows: Any, path: Path) -> None:
            self.step(lambda: (write(rows, path), halve(path)))
            write(rows, path)

        pa.ipc.new_file = lambda path, schema: Watched(part(path, schema), self, path)
        pq.ParquetWriter = lambda path, *args, **options: Watched(
            table(path, *args, **options), self, path
        )
        os.fsync, pq.write_table = synced, written
        builtins.open = io.open = watched
        sys.addaudithook(self.heard)


class Watched:
    """A stream, or a writer of tables to a path, whose writes, and whose end, are counted."""

    def __init__(self, inner: Any, faults: Faults, path: Any = None) -> None:
        self.inner, self.faults, self.path = inner, faults, path

    def write(self, data: Any) -> Any:
        """Write, or half of it."""
        text = data if isinstance(data, str) else bytes(data)
        self.faults.step(lambda: (self.inner.write(text[: len(text) // 2]), self.inner.flush()))
        return self.inner.write(data)

    def write_table(self, rows: Any, **options: Any) -> None:
        """Write, or leave half of what was written so far."""
        write = partial(self.inner.write_table, rows, **options)
        self.faults.step(lambda: (write(), self.inner.close(), halve(self.path)))
        write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.path is not None and kind is None:
            self.faults.step()
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def halve(path: Path | str) -> None:
    os.truncate(path, Path(path).stat().st_size // 2)


class Bench:
    """A folder in which one command is played again and again."""

    def __init__(self, home: Path, kind: str) -> None:
        self.home, self.kind = home.resolve(), kind
        self.operations = int(self.wait(self.started("whole")).splitlines()[-1])
        self.whole = self.tables("whole")
        self.listing = self.listed("whole")

    def started(self, out: str, mode: str = "", at: int = 0, *more: str) -> int:
        """Start the command in a process of its own."""
        process = os.fork()
        if process:
            return process
        told = os.open(self.home / f"told-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
        os.dup2(told, 1)
        os.dup2(told, 2)
        file = "tiny.toml" if self.kind == "run" else "sweep.toml"
        sys.argv = ["regretless", self.kind, file, "--out", f"{self.kind}-{out}", "--quiet", *more]
        faults = Faults(self.home / f"{self.kind}-{out}", mode, at)
        faults.install()
        status: Any = 1
        try:
            commands.main()
        except SystemExit as left:
            status = left.code
        if not mode:
            os.write(told, f"{faults.count}\n".encode())
        os._exit(int(status or 0))

    def wait(self, process: int, *wanted: int) -> str:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        file = self.home / f"told-{process}"
        told = file.read_text(encoding="utf-8")
        file.unlink()
        assert status in (wanted or (0,)), f"status {status}: {told}"
        return told

    def tables(self, out: str) -> dict[str, bytes]:
        """Every table that a reader sees."""
        home = self.home / f"{self.kind}-{out}"
        files = [path for path in home.rglob("*.parquet") if "/." not in str(path)]
        return {str(path.relative_to(home)): path.read_bytes() for path in files}

    def listed(self, out: str) -> list[str]:
        home = self.home / f"{self.kind}-{out}"
        return sorted(str(path.relative_to(home)) for path in home.rglob("*"))

    def struck(self, mode: str, at: int) -> None:
        """Strike once, look, resume and compare."""
        shutil.rmtree(self.home / f"{self.kind}-cut", ignore_errors=True)
        other = self.started("cut", "", 0, "--resume") if mode == "twice" else None
        first = self.started("cut", mode, at)
        statuses = (0, 1, 2) if mode in {"full", "error"} else (0, 2, ENDED)
        told = self.wait(first, *statuses)
        assert told.count("\n") <= 1, told
        if other is not None:
            self.wait(other, 0, 2)
        cut = self.home / f"{self.kind}-cut"
        for file in cut.rglob("*.json"):
            json.loads(file.read_text(encoding="utf-8"))
        if self.kind == "run":
            for name, table in self.tables("cut").items():
                assert table == self.whole[name], f"{name} is not whole"
        again = self.wait(self.started("cut", "", 0, "--resume"), 0, 2)
        assert "nothing to resume" in again or again.count("\n") == 1, again
        assert self.tables("cut") == self.whole, "other bytes"
        assert self.listed("cut") == self.listing, "something else lies there"


def main(home: str, kind: str, most: str, *only: str) -> int:
    """Strike, count, and print what went wrong."""
    journal.CHUNK_ROUNDS = 8
    conduct.executor = lambda *_: closing(Executor())  # whose file operations are watched as well
    os.chdir(home)
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    Path("sweep.toml").write_text(SWEEP, encoding="utf-8")
    assert run_of_a_scenario is not None
    model = load("tiny.toml").build()  # what is imported and compiled by now, forks have
    model.run()
    model.agents_frame(), model.biases_frame(), model.swaps_frame()
    bench, counts, faults = Bench(Path(home), kind), Counter[str](), 0
    last = bench.operations
    step = len(MODES) if most == "each" else max(1, last // int(most))
    for place, mode in enumerate(MODES):  # each between the others'
        first = 1 + place * step // len(MODES)
        if only and mode not in only:
            continue
        for at in sorted({1, *range(first, last + 1, step), last}):
            try:
                bench.struck(mode, at)
            except AssertionError as error:
                sys.stdout.write(f"{kind}, {mode} at {at}: {error}\n")
                sys.stdout.flush()  # or forks say it again
                faults += 1
            counts[mode] += 1
    told = f"struck: {dict(counts)}; wrong: {faults}"
    sys.stdout.write(f"{kind}: {bench.operations} file operations; {told}\n")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
