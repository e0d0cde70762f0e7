"""Ends, or fails, the command at its k-th file operation, and checks that a resumed one mends it.

    python tests/file_faults.py FOLDER run|study MOST|each [KIND OF FAULT ...]

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
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from regretless import load
from regretless.market.logs import journal
from regretless.scenarios import run as run_of_a_scenario
from regretless.scenarios.cli import commands
from regretless.scenarios.executor.base import Executor
from regretless.scenarios.studies import conduct

ENDED_STATUS = 77  # of a process that was ended here
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
OPERATIONS = {"open", "os.remove", "os.rmdir", "os.rename", "os.mkdir"}  # as Python audits them
FAULT_KINDS = ("kill", "torn", "full", "error", "twice")
CHUNK_ROUNDS = 8  # of a journal: several chunks in a run of 20 rounds
TINY_SCENARIO = """\
name = "tiny"
rounds = 20
adversary = { kind = "drifting", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [{ name = "farmers", utility = "linear", count = 2, actions = 2 }]
"""
SWEEP_STUDY = """\
scenario = "tiny.toml"
seeds = 2
rounds = 10
"""


class FileFaults:
    """Counts file operations in a folder, from 1, and strikes at one, where a kind is given."""

    def __init__(self, folder: Path, kind: str = "", at: int = 0) -> None:
        self.folder = str(folder)
        self.kind = kind
        self.at = at
        self.count = 0

    def step(self, half: Callable[[], Any] | None = None, *, needs_room: bool = True) -> None:
        """Count an operation, and strike if it is its turn; ``half`` does half of it."""
        self.count += 1
        is_disk_full = self.kind == "full" and self.count > self.at and needs_room
        is_turn = self.kind != "" and self.count == self.at
        if not is_turn and not is_disk_full:
            return
        if half is not None and self.kind != "kill":
            half()
        if self.kind not in {"full", "error"}:
            os._exit(ENDED_STATUS)
        if self.kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if needs_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def holds(self, path: Any) -> bool:
        """Return whether a path lies in the folder."""
        is_path = isinstance(path, str | os.PathLike)
        return is_path and str(Path.cwd() / path).startswith(self.folder)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an operation of which Python's audit hooks are told."""
        if event not in OPERATIONS:
            return
        removes_in_open_folder = event in {"os.remove", "os.rmdir"} and arguments[1] != -1
        if not removes_in_open_folder and not self.holds(arguments[0]):
            return
        is_read = event == "open" and not (arguments[2] or 0) & WRITING
        if not is_read:
            self.step(needs_room=event in {"open", "os.mkdir"})

    def install(self) -> None:
        """Count from now on what this process opens, writes, syncs, renames and removes."""
        sync = os.fsync
        open_file = io.open
        write_table = pq.write_table
        new_journal = pa.ipc.new_file
        new_writer = pq.ParquetWriter

        def counted_sync(handle: int) -> None:
            self.step()
            sync(handle)

        def counted_open(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            stream = open_file(file, mode, *args, **options)
            writes = set(mode) & set("wax+") and self.holds(file)
            return CountedStream(stream, self) if writes else stream

        def counted_table(rows: Any, path: Path) -> None:
            self.step(lambda: (write_table(rows, path), halve(path)))
            write_table(rows, path)

        def counted_journal(path: Any, schema: Any) -> Any:
            return CountedStream(new_journal(path, schema), self, path)

        def counted_writer(path: Any, *args: Any, **options: Any) -> Any:
            return CountedStream(new_writer(path, *args, **options), self, path)

        os.fsync = counted_sync
        pq.write_table = counted_table
        pa.ipc.new_file = counted_journal
        pq.ParquetWriter = counted_writer
        builtins.open = io.open = counted_open
        sys.addaudithook(self.audit)


class CountedStream:
    """A stream, or a writer of tables to a path, whose writes, and whose end, are counted."""

    def __init__(self, stream: Any, faults: FileFaults, path: Any = None) -> None:
        self.stream = stream
        self.faults = faults
        self.path = path

    def write(self, data: Any) -> Any:
        """Write, or half of it."""
        content = data if isinstance(data, str) else bytes(data)

        def write_half() -> None:
            self.stream.write(content[: len(content) // 2])
            self.stream.flush()

        self.faults.step(write_half)
        return self.stream.write(data)

    def write_table(self, rows: Any, **options: Any) -> None:
        """Write, or leave half of what was written so far."""

        def leave_half() -> None:
            self.stream.write_table(rows, **options)
            self.stream.close()
            halve(self.path)

        self.faults.step(leave_half)
        self.stream.write_table(rows, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.path is not None and kind is None:
            self.faults.step()
        self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def halve(path: Path | str) -> None:
    """Cut a file to half of its length."""
    os.truncate(path, Path(path).stat().st_size // 2)


class Bench:
    """A folder in which one command is played again and again.

    ``operations`` is the number of file operations of a run that nothing disturbed, ``undisturbed``
    its tables and ``listing`` its file names.
    """

    def __init__(self, home: Path, command: str) -> None:
        self.home = home.resolve()
        self.command = command
        self.operations = int(self.wait(self.start("whole")).splitlines()[-1])
        self.undisturbed = self.tables("whole")
        self.listing = self.file_names("whole")

    def folder(self, name: str) -> Path:
        """Return the folder to which the command writes under this name."""
        return self.home / f"{self.command}-{name}"

    def start(self, name: str, kind: str = "", at: int = 0, *options: str) -> int:
        """Start the command in a process of its own, and return the process's number.

        What it prints, and without a fault the number of its operations, is left to ``wait``.
        """
        process = os.fork()
        if process:
            return process
        output = os.open(self.home / f"printed-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        file = "tiny.toml" if self.command == "run" else "sweep.toml"
        out = f"{self.command}-{name}"
        sys.argv = ["regretless", self.command, file, "--out", out, "--quiet", *options]
        faults = FileFaults(self.folder(name), kind, at)
        faults.install()
        status: Any = 1
        try:
            commands.main()
        except SystemExit as ended:
            status = ended.code
        if not kind:
            os.write(output, f"{faults.count}\n".encode())
        os._exit(int(status or 0))

    def wait(self, process: int, *statuses: int) -> str:
        """Wait for a process that must end with one of these statuses; return what it printed."""
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        file = self.home / f"printed-{process}"
        printed = file.read_text(encoding="utf-8")
        file.unlink()
        assert status in (statuses or (0,)), f"status {status}: {printed}"
        return printed

    def tables(self, name: str) -> dict[str, bytes]:
        """Return the bytes of every table that a reader sees."""
        folder = self.folder(name)
        files = [path for path in folder.rglob("*.parquet") if "/." not in str(path)]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    def file_names(self, name: str) -> list[str]:
        """Return the names of everything that lies there."""
        folder = self.folder(name)
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def strike(self, kind: str, at: int) -> None:
        """Strike once, look at what lies there, resume, and compare."""
        shutil.rmtree(self.folder("cut"), ignore_errors=True)
        rival = self.start("cut", "", 0, "--resume") if kind == "twice" else None
        struck = self.start("cut", kind, at)
        statuses = (0, 1, 2) if kind in {"full", "error"} else (0, 2, ENDED_STATUS)
        printed = self.wait(struck, *statuses)
        assert printed.count("\n") <= 1, printed
        if rival is not None:
            self.wait(rival, 0, 2)
        self.check_what_lies_there()
        printed = self.wait(self.start("cut", "", 0, "--resume"), 0, 2)
        lines = [line for line in printed.splitlines() if "no checkpoint yet" not in line]
        assert "nothing to resume" in printed or len(lines) == 1, printed
        assert self.tables("cut") == self.undisturbed, "other bytes"
        assert self.file_names("cut") == self.listing, "something else lies there"

    def check_what_lies_there(self) -> None:
        """Assert that after a fault JSON files, and the tables of a run, are whole."""
        for file in self.folder("cut").rglob("*.json"):
            json.loads(file.read_text(encoding="utf-8"))
        if self.command == "run":
            for name, table in self.tables("cut").items():
                assert table == self.undisturbed[name], f"{name} is not whole"


def prepare(home: Path) -> None:
    """Write the scenario and the study, and import and compile what forks will then have."""
    journal.CHUNK_ROUNDS = CHUNK_ROUNDS
    conduct.executor = lambda *_: closing(Executor())  # whose file operations are watched as well
    os.chdir(home)
    Path("tiny.toml").write_text(TINY_SCENARIO, encoding="utf-8")
    Path("sweep.toml").write_text(SWEEP_STUDY, encoding="utf-8")
    assert run_of_a_scenario is not None
    model = load("tiny.toml").build()
    model.run()
    model.agents_frame()
    model.biases_frame()
    model.swaps_frame()


def main(home: str, command: str, most: str, *kinds: str) -> int:
    """Strike, count, and print what went wrong."""
    prepare(Path(home))
    bench = Bench(Path(home), command)
    last = bench.operations
    step = len(FAULT_KINDS) if most == "each" else max(1, last // int(most))
    counts = Counter[str]()
    n_wrong = 0
    for index, kind in enumerate(FAULT_KINDS):
        first = 1 + index * step // len(FAULT_KINDS)  # each kind between the others' operations
        if kinds and kind not in kinds:
            continue
        for at in sorted({1, *range(first, last + 1, step), last}):
            try:
                bench.strike(kind, at)
            except AssertionError as error:
                sys.stdout.write(f"{command}, {kind} at {at}: {error}\n")
                sys.stdout.flush()  # or forks say it again
                n_wrong += 1
            counts[kind] += 1
    summary = f"struck: {dict(counts)}; wrong: {n_wrong}"
    sys.stdout.write(f"{command}: {bench.operations} file operations; {summary}\n")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
