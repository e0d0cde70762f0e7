"""What commands share: options, the scenario that they name, a progress bar, and how they end.

What cannot go on ends with one line on standard error and an exit status: 2 is a user's mistake,
130 an interruption, as shells have it, 1 a study of which every run failed. A fault in a module of
the user's own is the user's mistake too, and the line says where it is.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.logs.ownership import RecordedDirectory


def path_of(text: str) -> Path:
    """Read a path from the command line, with ``~`` expanded, which no shell does in --out=~/x."""
    from regretless.market.core.paths import expanded

    return expanded(text)


Text = str | None
Words = list[str] | None
File = Path | None
Whole = int | None


def _scenarios(begun: str) -> list[str]:
    from regretless.scenarios.config.files import catalogue

    return [name for name in catalogue() if name.startswith(begun)]


Name = Annotated[
    str,
    Argument(
        metavar="SCENARIO|FILE.toml",
        help="Name of a bundled one, or a file.",
        autocompletion=_scenarios,
    ),
]
Rounds = Annotated[Whole, Option(min=1, help="Number of rounds.")]
Seed = Annotated[Whole, Option(min=0, help="Root seed.")]
Seeds = Annotated[Whole, Option(min=1, help="Number of seeds: 0, 1, ...")]
Out = Annotated[
    File,
    Option(parser=path_of, metavar="PATH", help="Run directory; runs/NAME by default, or NAME-2."),
]
Format = Annotated[str, Option(help="parquet or csv.")]
Assignments = Annotated[
    Words, Option("--set", metavar="KEY=VALUE", help="Replace a key; repeatable.")
]
LogAgents = Annotated[Whole, Option(min=1, help="Log a sample of this many agents.")]
LogEvery = Annotated[int, Option(min=1, help="Rounds between two regret log entries.")]
Imports = Annotated[
    Words, Option("--import", metavar="MODULE", help="Your module with agents; repeatable.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Print the resolved file and stop.")]
Resume = Annotated[bool, Option("--resume", help="Continue what was interrupted.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace an earlier run in the directory.")]
Workers = Annotated[
    Whole, Option(min=1, help="Divide the agents of one run among so many workers.")
]
Scheduler = Annotated[
    Text, Option(metavar="ADDRESS", help="Dask scheduler, in place of processes.")
]
Verbose = Annotated[bool, Option("--verbose", help="Print all tables, definitions and tracebacks.")]
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but warnings and errors.")]


def loaded(name: str, assignments: list[str], chosen: dict[str, Any]) -> Scenario:
    """Load the scenario that a command names, with keys replaced; None leaves one as it is."""
    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.config.files import assign, find, override, read
    from regretless.scenarios.config.validation import validated

    path = find(name)
    raw = override(read(path), assignments)
    for key, value in chosen.items():
        if value is not None:
            assign(raw, key, value)
    return Scenario(validated(raw, origin=path.parent))


def free_directory(
    name: str, kind: type[RecordedDirectory], *, resume: bool, overwrite: bool, quiet: bool
) -> Path:
    """Choose among runs/NAME, runs/NAME-2, ...: the first that is free; say so if another.

    With ``resume`` it is the last one that is interrupted, or the last if there is none; with
    ``overwrite`` runs/NAME.
    """
    from regretless.scenarios.logs.ownership import contents, exists

    usual = Path("runs") / name
    numbered = (usual.with_name(name if n == 1 else f"{name}-{n}") for n in count(1))
    taken = list(takewhile(lambda at: exists(at) and (not at.is_dir() or contents(at)), numbered))
    if overwrite or not taken:
        return usual
    if resume:
        return (list(filter(kind.interrupted, taken)) or taken)[-1]
    target = usual.with_name(f"{name}-{len(taken) + 1}")
    if not quiet:
        typer.echo(f"{usual} is taken; this {kind.KIND} is written to {target}.")
    return target


@contextmanager
def progress_bar(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, nothing in a pipe; yields a function of how much is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if quiet or not console.is_terminal:  # a disabled bar of Rich before 15 leaves an empty line
        yield lambda _: None
        return
    with Progress(console=console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


COMPILING = "Compiling kernels, once per installation ..."


@contextmanager
def compilation_announced(*, quiet: bool) -> Iterator[None]:
    """Say in one line before kernels are compiled, which takes a while.

    The line is for who waits at a terminal: nothing is written where standard error is a pipe.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from regretless.market.core.compiled import first_compilation_announced

    with first_compilation_announced(lambda: typer.echo(COMPILING, err=True)):
        yield


INTERRUPTED = 130
LONGEST = 2000  # characters of a line
RESUMABLE = (["run"], ["study"], ["train"])
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # not on Windows
CURES = {
    **dict.fromkeys(FULL, "make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable"),
    errno.ENAMETOOLONG: "shorten it",
    errno.ENOENT: "leave its folder alone",
}
UNPARSED = "a valid integer, unable to parse string as an integer"
OWN = ", if what is your own has state() and restore(state)"


def fail(line: str, status: int) -> NoReturn:
    """Say why, in one line, and leave."""
    warn(line)
    sys.exit(status)


def warn(line: str) -> None:
    """Write one line on standard error."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(line.split()))
    if len(plain) > LONGEST:
        plain = f"{plain[: LONGEST // 2]}...{plain[-LONGEST // 2 :]}"
    typer.echo(f"regretless: {plain}", err=True)


@contextmanager
def traced(*, wanted: bool) -> Iterator[None]:
    """Print the traceback of what goes wrong, before the line that says it, where it is wanted."""
    try:
        yield
    except Exception as error:
        if wanted:
            traceback.print_exception(error)
        raise


def end_interrupted() -> NoReturn:
    """Leave after Ctrl-C; say how to go on where that can be done."""
    command = sys.argv[1:2]
    own = command == ["run"] and any(word.startswith("--import") for word in sys.argv)
    how = "; continue with --resume" if command in RESUMABLE else ""
    fail(f"interrupted{how}{OWN if own else ''}", INTERRUPTED)


def unusable(error: OSError | MemoryError) -> NoReturn:
    """Leave because the system refused a file, a connection or memory; say how to go on."""
    if isinstance(error, MemoryError):
        fail("there is not enough memory; lower counts, actions or rounds", 2)
    name = os.fsdecode(error.filename) if error.filename else "the system"
    again = "continue with --resume" if sys.argv[1:2] in RESUMABLE else "try again"
    cure = CURES.get(error.errno or 0, "mend it")
    fail(f"{name}: {error.strerror or error}; {cure}, then {again}", 2)


def misused(error: Any) -> NoReturn:
    """Leave because the parser did not understand; point to the help of the command."""
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    help_of = f"regretless {command}" if command in sys.argv[1:2] else "regretless"
    said = error.format_message().rstrip(".").replace("Input should be", "must be")
    said = said.replace(UNPARSED, "a whole number, such as 100")
    fail(f"{said}; see {help_of} --help", 2)
