"""What commands share: options, the scenario that they name, a progress bar, and how they end.

A command that cannot go on prints one line on standard error and exits with a status: 2 for a
user's mistake, 130 for an interruption, as shells have it, 1 for a study of which every run failed.
A fault in a module of the user's own is a user's mistake too, and the line says where it is.
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


OptionalText = str | None
OptionalTexts = list[str] | None
OptionalPath = Path | None
OptionalInteger = int | None


def _complete_scenario(prefix: str) -> list[str]:
    from regretless.scenarios.config.files import catalogue

    return [name for name in catalogue() if name.startswith(prefix)]


ScenarioName = Annotated[
    str,
    Argument(
        metavar="SCENARIO|FILE.toml",
        help="Name of a bundled one, or a file.",
        autocompletion=_complete_scenario,
    ),
]
Rounds = Annotated[OptionalInteger, Option(min=1, help="Number of rounds.")]
Seed = Annotated[OptionalInteger, Option(min=0, help="Root seed.")]
Seeds = Annotated[OptionalInteger, Option(min=1, help="Number of seeds: 0, 1, ...")]
Out = Annotated[
    OptionalPath,
    Option(parser=path_of, metavar="PATH", help="Run directory; runs/NAME by default, or NAME-2."),
]
Format = Annotated[str, Option(help="parquet or csv.")]
Assignments = Annotated[
    OptionalTexts, Option("--set", metavar="KEY=VALUE", help="Replace a key; repeatable.")
]
LogAgents = Annotated[OptionalInteger, Option(min=1, help="Log a sample of this many agents.")]
LogEvery = Annotated[
    int | None, Option(min=1, help="Rounds between two logged ones; by default each is logged.")
]
Imports = Annotated[
    OptionalTexts, Option("--import", metavar="MODULE", help="Your module with agents; repeatable.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Print the resolved file and stop.")]
Resume = Annotated[bool, Option("--resume", help="Continue what was interrupted.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace an earlier run in the directory.")]
Workers = Annotated[
    OptionalInteger, Option(min=1, help="Divide the agents of one run among so many workers.")
]
Scheduler = Annotated[
    OptionalText, Option(metavar="ADDRESS", help="Dask scheduler, in place of processes.")
]
Solutions = Annotated[
    bool, Option("--solutions", help="Solve the game behind the market: equilibria and optimum.")
]
Verbose = Annotated[bool, Option("--verbose", help="Print all tables, definitions and tracebacks.")]
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but warnings and errors.")]


def load_scenario(name: str, assignments: list[str], options: dict[str, Any]) -> Scenario:
    """Load the scenario that a command names, with keys replaced.

    ``assignments`` are those of ``--set``. ``options`` are values by key; a None leaves its key as
    it is.
    """
    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.config.files import assign, find, override, read
    from regretless.scenarios.config.validation import validated

    path = find(name)
    raw = override(read(path), assignments)
    for key, value in options.items():
        if value is not None:
            assign(raw, key, value)
    return Scenario(validated(raw, origin=path.parent))


def free_directory(
    name: str, kind: type[RecordedDirectory], *, resume: bool, overwrite: bool, quiet: bool
) -> Path:
    """Return the first free directory among runs/NAME, runs/NAME-2, ...; say so if not the first.

    With ``resume`` it is the last one that is interrupted, or the last if none is. With
    ``overwrite`` it is runs/NAME.
    """
    first = Path("runs") / name
    taken = list(takewhile(_is_taken, _numbered_directories(first)))
    if overwrite or not taken:
        return first
    if resume:
        interrupted = [directory for directory in taken if kind.interrupted(directory)]
        return (interrupted or taken)[-1]
    target = first.with_name(f"{name}-{len(taken) + 1}")
    if not quiet:
        typer.echo(f"{first} is taken; this {kind.KIND} is written to {target}.")
    return target


def _numbered_directories(first: Path) -> Iterator[Path]:
    """Yield NAME, NAME-2, NAME-3, ..."""
    yield first
    for number in count(2):
        yield first.with_name(f"{first.name}-{number}")


def _is_taken(path: Path) -> bool:
    """Whether a file is there, or a directory that holds anything."""
    from regretless.scenarios.logs.ownership import contents, exists

    return exists(path) and (not path.is_dir() or bool(contents(path)))


@contextmanager
def progress_bar(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, and nothing in a pipe.

    Yields a function to be called with how much of the total is done.
    """
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


STATUS_INTERRUPTED = 130
MAX_LINE_CHARACTERS = 2000
# Windows has no EDQUOT.
NO_SPACE_ERRORS = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
HINTS_BY_ERROR = {
    **dict.fromkeys(NO_SPACE_ERRORS, "make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable"),
    errno.ENAMETOOLONG: "shorten it",
    errno.ENOENT: "leave its folder alone",
}
PARSER_WORDS = {
    "a valid integer, unable to parse string as an integer": "a whole number, such as 100",
    "a valid number, unable to parse string as a number": "a number, such as 0.5",
}
SUCCESSORS_OF_COMMANDS = {  # of version 0.2.0; ``docs/renamed.md`` lists them for readers
    "bench": "run python -m benchmarks in a checkout",
    "reproduce": "run python -m paper in a checkout",
    "fit": "use OfflineOmnipredictor(...).fit(X, Y) in Python",
    "predict": "use the method predict(X) of a fitted OfflineOmnipredictor in Python",
    "sample-size": "use sample_size of regretless.scenarios.sample_size in Python",
}
OWN_CODE_CONDITION = ", if what is your own has state() and restore(state)"


def fail(line: str, status: int) -> NoReturn:
    """Print one line that says why, and exit with a status."""
    warn(line)
    sys.exit(status)


def warn(line: str) -> None:
    """Write one line on standard error; what cannot be printed is escaped, what is long is cut."""
    one_line = " ".join(line.split())
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in one_line)
    if len(printable) > MAX_LINE_CHARACTERS:
        half = MAX_LINE_CHARACTERS // 2
        printable = f"{printable[:half]}...{printable[-half:]}"
    typer.echo(f"regretless: {printable}", err=True)


@contextmanager
def traced(*, wanted: bool) -> Iterator[None]:
    """Print the traceback of an error before its line, where the user wants it."""
    try:
        yield
    except Exception as error:
        if wanted:
            traceback.print_exception(error)
        raise


@contextmanager
def resumable(kind: type[RecordedDirectory], path: Path, *, condition: str = "") -> Iterator[None]:
    """End by a line that says how to go on, where there is something to go on with.

    This holds after Ctrl-C, and where the system refuses a file. ``kind`` is that of the directory
    at ``path``; the ``condition`` is added to the line.
    """
    way_on = f"continue with --resume{condition}"
    try:
        yield
    except KeyboardInterrupt:
        if not kind.interrupted(path):  # nothing was written yet, or it was removed
            end_interrupted()
        fail(f"interrupted; {way_on}", STATUS_INTERRUPTED)
    except OSError as error:
        from regretless.market.core.own_code import blamed

        if blamed(error) is None and kind.interrupted(path):
            end_refused_by_system(error, next_step=way_on)
        raise


def end_interrupted() -> NoReturn:
    """Exit after Ctrl-C."""
    fail("interrupted", STATUS_INTERRUPTED)


def end_refused_by_system(
    error: OSError | MemoryError, *, next_step: str = "try again"
) -> NoReturn:
    """Exit because the system refused a file, a connection or memory; say how to go on."""
    if isinstance(error, MemoryError):
        fail("there is not enough memory; lower counts, actions or rounds", 2)
    name = os.fsdecode(error.filename) if error.filename else "the system"
    hint = HINTS_BY_ERROR.get(error.errno or 0, "mend it")
    fail(f"{name}: {error.strerror or error}; {hint}, then {next_step}", 2)


def end_misused(error: Any) -> NoReturn:
    """Exit because the parser did not understand; point to the help of the command."""
    given_command = "".join(sys.argv[1:2])
    if given_command in SUCCESSORS_OF_COMMANDS:
        successor = SUCCESSORS_OF_COMMANDS[given_command]
        fail(f"there is no command '{given_command}' any more; {successor}", 2)
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    help_command = f"regretless {command}" if command in sys.argv[1:2] else "regretless"
    message = error.format_message().rstrip(".").replace("Input should be", "must be")
    value = _value_given(error)
    for parser_words, own_words in PARSER_WORDS.items():
        subject = "must be " if value is None else f"'{value}' must be "
        message = message.replace(f"must be {parser_words}", f"{subject}{own_words}")
    fail(f"{message}; see {help_command} --help", 2)


def _value_given(error: Any) -> str | None:
    """Return what the command line gives the option that was not understood; None if unknown."""
    options = getattr(getattr(error, "param", None), "opts", [])
    for word, next_word in zip(sys.argv, [*sys.argv[1:], None], strict=True):
        name, equals, value = word.partition("=")
        if name in options:
            return value if equals else next_word
    return None
