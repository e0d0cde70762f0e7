"""What several commands share: their options, the scenario that they name, a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from regretless.scenarios.assembly.scenario import Scenario


def _scenarios(begun: str) -> list[str]:
    """Complete a scenario's name."""
    from regretless.scenarios.config.files import catalogue

    return [name for name in catalogue() if name.startswith(begun)]


Name = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO|FILE.toml",
        help="Name of a bundled one, or a file.",
        autocompletion=_scenarios,
    ),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Number of rounds.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Root seed.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Number of seeds: 0, 1, ...")]
Out = Annotated[Path | None, typer.Option(help="Run directory; runs/NAME by default, or NAME-2.")]
Format = Annotated[str, typer.Option(help="parquet or csv.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a key; repeatable.")
]
LogAgents = Annotated[int | None, typer.Option(min=1, help="Log a sample of this many agents.")]
LogEvery = Annotated[int, typer.Option(min=1, help="Rounds between two regret log entries.")]
Imports = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Your module with agents; repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved file and stop.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue what was interrupted.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an earlier run in the directory.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Divide the agents of one run among so many workers.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, in place of processes.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print all tables, definitions and tracebacks.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]


def loaded(name: str, assignments: list[str], chosen: dict[str, Any]) -> Scenario:
    """Load the scenario that a command names, with keys replaced; None leaves one as it is."""
    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.config.files import assign, find, override, read
    from regretless.scenarios.config.scenario import validated

    path = find(name)
    raw = override(read(path), assignments)
    for key, value in chosen.items():
        if value is not None:
            assign(raw, key, value)
    return Scenario(validated(raw, origin=path.parent))


def free_directory(  # noqa: PLR0913 - options
    name: str,
    kind: str,
    interrupted: Callable[[Path], bool],
    *,
    resume: bool,
    overwrite: bool,
    quiet: bool,
) -> Path:
    """Choose a directory in ``runs`` for what is given none; say so if it is not the usual one."""
    from regretless.scenarios.logs.ownership import default_directory

    usual = Path("runs") / name
    target = default_directory(usual, interrupted, resume=resume, overwrite=overwrite)
    if target != usual and not quiet and not resume:
        typer.echo(f"{usual} is taken; this {kind} is written to {target}.")
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
