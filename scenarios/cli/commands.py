"""The command line. A user's mistake is one line on standard error and exit status 2.

Heavy libraries are imported by the commands that need them, so that ``list`` and ``--help`` are
quick.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.market.core.errors import UserError
from regretless.scenarios.cli import exits
from regretless.scenarios.cli.audit_command import audit
from regretless.scenarios.cli.live_commands import dashboard
from regretless.scenarios.cli.options import (
    Assignments,
    DryRun,
    Format,
    Imports,
    LogAgents,
    LogEvery,
    Name,
    Out,
    Overwrite,
    Quiet,
    Resume,
    Rounds,
    Scheduler,
    Seed,
    Seeds,
    Verbose,
    Workers,
    free_directory,
    progress_bar,
)
from regretless.scenarios.cli.options import loaded as _loaded
from regretless.scenarios.cli.train_commands import train
from regretless.scenarios.imports import import_for_good, import_modules

app = typer.Typer(name="regretless", rich_markup_mode=None)
app.command()(audit)
app.command()(dashboard)
app.command()(train)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if asked:
        from regretless import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback(
    help="Simulate markets in which many agents act on one forecast, and measure their regret."
)
def _whole(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Answer what is asked of the command as a whole."""


@app.command("list")
def list_names(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="[KIND]",
            help="scenarios, studies, utilities, responses, learners, adversaries, policies,"
            " forecasters, models or markets",
        ),
    ] = "scenarios",
    *,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print whole descriptions.")] = False,
) -> None:
    """List scenarios and what they show, or other names for files."""
    import shutil

    from regretless.scenarios.listing import listing
    from regretless.scenarios.terminal import WIDTH

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    for line in listing(kind, width, verbose=verbose):
        typer.echo(line)


@app.command()
def run(  # noqa: PLR0913 - one parameter per option
    scenario: Name,
    *,
    rounds: Rounds = None,
    seed: Seed = None,
    out: Out = None,
    format: Format = "parquet",  # noqa: A002 - the option's name
    assignments: Assignments = None,
    log_every: LogEvery = 1,
    log_agents: LogAgents = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    imports: Imports = None,
    dry_run: DryRun = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario and write its logs."""
    import_for_good("regretless.scenarios.assembly.scenario")
    from regretless.scenarios.logs.directory import check_format

    check_format(format)
    import_modules(imports or [])
    chosen = {"rounds": rounds, "seed": seed, "log_agents": log_agents}
    loaded = _loaded(scenario, assignments or [], chosen)
    if dry_run:
        _show(loaded)
        return
    from regretless.scenarios.logs.directory import interrupted
    from regretless.scenarios.run import Options
    from regretless.scenarios.run import run as run_scenario

    given = {"resume": resume, "overwrite": overwrite, "quiet": quiet}
    target = out or free_directory(loaded.spec.name, "run", interrupted, **given)
    options = Options(target, format, log_every, resume, overwrite)
    with (
        exits.traced(wanted=verbose),
        _players(loaded, options, workers, scheduler, tuple(imports or ())) as player,
        progress_bar(loaded.spec.name, loaded.spec.rounds, quiet=quiet) as advance,
    ):
        model = run_scenario(loaded, options, progress=advance, player=player, warn=exits.warn)
    if not quiet:
        from regretless.scenarios.summary import print_summary

        print_summary(loaded, model, target, player.closed, verbose=verbose)


def _players(
    loaded: Any, options: Any, workers: int | None, scheduler: str | None, imports: tuple[str, ...]
) -> AbstractContextManager[Any]:
    """Return who plays: this process, or all among whom the agents are shared out."""
    if workers is None and scheduler is None:
        from regretless.scenarios.run import Player

        return nullcontext(Player())
    from regretless.scenarios.distributed.conduct import conductor_of

    return conductor_of(loaded, options, workers, scheduler, imports=imports, warn=exits.warn)


def _show(loaded: Any) -> None:
    """Check what a run would be, and print its file with every default in it."""
    import tomli_w

    from regretless.scenarios.assembly.scenario import Scenario, sampled
    from regretless.scenarios.config.scenario import resolved

    Scenario(sampled(loaded.spec)).build()  # which checks what only a market shows
    typer.echo(tomli_w.dumps(resolved(loaded.spec)), nl=False)


@app.command()
def report(
    run_directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of a run or a study.")
    ],
    *,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write its tables there too, as CSV and LaTeX."),
    ] = None,
) -> None:
    """Write an HTML page from the logs of a run or a study."""
    from regretless.scenarios.report.write import write_report, write_tables

    typer.echo(f"Report: {write_report(run_directory)}")
    if tables is not None:
        typer.echo(f"Tables: {len(write_tables(run_directory, tables))} files in {tables}")


@app.command()
def study(  # noqa: PLR0913 - one parameter per option
    file: Annotated[
        str, typer.Argument(metavar="STUDY|FILE.toml", help="Name of a bundled one, or a file.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Study directory.")],
    rounds: Rounds = None,
    seeds: Seeds = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes.")] = None,
    scheduler: Scheduler = None,
    patience: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="SECONDS", help="End a run that makes no progress for so long; 1800."
        ),
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    imports: Imports = None,
    quiet: Quiet = False,
) -> None:
    """Sweep a scenario over parameters and seeds."""
    if jobs is not None and scheduler is not None:
        raise UserError("--jobs is for local processes and --scheduler for a cluster; drop one")
    import_modules(imports or [])
    from regretless.scenarios.studies.answers import print_summary
    from regretless.scenarios.studies.conduct import PATIENCE, Options, conduct
    from regretless.scenarios.studies.design import read_study

    design = read_study(file).sized(rounds=rounds, seeds=seeds)
    options = Options(
        out, jobs, scheduler, resume, overwrite, tuple(imports or []), patience or PATIENCE
    )
    with progress_bar(design.name, len(design), quiet=quiet) as advance:
        done = conduct(design, options, progress=advance, warn=exits.warn)
    if not quiet:
        print_summary(done)
    if not done.runs():
        exits.fail(f"all {len(design)} runs failed; see {out / 'failures.parquet'}", 1)


@app.command()
def describe(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet file.")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Write a starter scenario there.")
    ] = None,
) -> None:
    """Inspect the columns of a table. With --out, write a scenario."""
    from regretless.scenarios.describe import describe

    describe(data, out)


@app.command()
def schema(
    file: Annotated[str, typer.Argument(metavar="scenario|study", help="Kind of file.")],
) -> None:
    """Print the JSON Schema of scenario or study files, for editors."""
    import json

    from regretless.scenarios.schema import schema

    typer.echo(json.dumps(schema(file), indent=2))


def main() -> None:
    """Run the command."""
    try:
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
    except UserError as error:
        exits.fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        exits.interrupted()
    except BaseException as error:
        if hasattr(error, "format_message"):
            exits.misused(error)
        from regretless.market.core.own_code import blamed

        if (where := blamed(error)) is not None:
            exits.fail(where, 2)
        if isinstance(error, OSError | MemoryError):
            exits.unusable(error)
        raise
    if status == exits.INTERRUPTED:  # what the parser makes of Ctrl-C
        exits.interrupted()
    sys.exit(status)
