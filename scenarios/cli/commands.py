"""The command line. A user's mistake is one line on standard error and exit status 2.

Heavy libraries are imported by the commands that need them, so that ``list`` and ``--help`` are
quick.
"""

from __future__ import annotations

import gc
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from regretless.market.core.errors import UserError
from regretless.scenarios.cli import options as shared
from regretless.scenarios.cli.options import (
    OptionalInteger,
    OptionalPath,
    OptionalText,
    OptionalTexts,
    path_of,
)
from regretless.scenarios.imports import import_modules, import_without_collector

app = typer.Typer(name="regretless", rich_markup_mode=None)

# Allocations between two collections of garbage. Loading the libraries makes half a million
# objects that stay: with Python's default of 700 a tenth of the start goes into walking over them.
ALLOCATIONS_PER_COLLECTION = 100_000

MAX_PATIENCE = 365 * 24 * 3600  # seconds; clocks of some systems do not count much further


def _print_version(is_requested: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if is_requested:
        from regretless import __version__

        typer.echo(__version__)
        raise typer.Exit


Version = Option("--version", callback=_print_version, is_eager=True, help="Print the version.")


@app.callback()
def _whole(*, version: Annotated[bool, Version] = False) -> None:
    """Simulate markets in which many agents act on one forecast, and measure their regret."""


@app.command()
def audit(
    decisions: Annotated[
        Path,
        Argument(parser=path_of, metavar="DECISIONS", help="A row for each round: what was done."),
    ],
    *,
    outcomes: Annotated[
        OptionalPath,
        Option(parser=path_of, metavar="PATH", help="A row for each round: what happened."),
    ] = None,
    utility: Annotated[
        OptionalText, Option(help="By name; without it columns are the actions' losses.")
    ] = None,
    parameter: Annotated[
        OptionalTexts, Option(metavar="KEY=VALUE", help="Of the utility; repeatable.")
    ] = None,
    scale: Annotated[
        OptionalTexts, Option(metavar="COLUMN=WORST:BEST", help="What becomes 0 and 1; repeatable.")
    ] = None,
    policy: Annotated[
        OptionalTexts, Option(metavar="COLUMN", help="What a rule would have done; repeatable.")
    ] = None,
    round_: Annotated[
        OptionalText,
        Option("--round", help="Column that names a round, with outcomes; else 'round'."),
    ] = None,
    agent: Annotated[str, Option(help="Column that says who decided.")] = "agent",
    group: Annotated[
        OptionalText,
        Option(metavar="COLUMN", help="Who has the same value has the same alternatives."),
    ] = None,
    action: Annotated[
        OptionalText, Option(help="Column that says what was done; by default 'action'.")
    ] = None,
    actions: Annotated[
        OptionalText, Option(metavar="A,A,...", help="All actions that could be chosen.")
    ] = None,
    price: Annotated[
        OptionalText, Option(metavar="COLUMN", help="Without outcomes: the price that was set.")
    ] = None,
    quantity: Annotated[
        OptionalText, Option(metavar="COLUMN", help="The quantity that was sold at it.")
    ] = None,
    cost: Annotated[
        OptionalText,
        Option(
            metavar="NUMBER|LOW:HIGH|COLUMN",
            help="Of a unit; by default from 0 to the highest price.",
        ),
    ] = None,
    prices: Annotated[
        OptionalText, Option(metavar="P,P,...", help="All prices that could be set.")
    ] = None,
    max_quantity: Annotated[
        float | None,
        Option(help="The largest quantity of a round; by default that of its decision maker."),
    ] = None,
    loss: Annotated[
        OptionalText,
        Option(metavar="COLUMN", help="In place of these: the loss of the action taken."),
    ] = None,
    loss_range: Annotated[
        OptionalText,
        Option(metavar="LOW:HIGH", help="Of the losses; by default those of its decision maker."),
    ] = None,
    propensity: Annotated[
        OptionalTexts,
        Option(
            metavar="COLUMN|ACTION=COLUMN",
            help="Probability of the action taken, or of each; repeatable. Else it is estimated.",
        ),
    ] = None,
    min_propensity: Annotated[
        float | None, Option(help="Below it an action counts as untried in a round.")
    ] = None,
    demand: Annotated[
        OptionalText,
        Option(help="Model of demand: means, linear or logit; by default logit with a context."),
    ] = None,
    context: Annotated[
        OptionalTexts, Option(metavar="COLUMN", help="Known before the action; repeatable.")
    ] = None,
    threshold: Annotated[
        float | None,
        Option(help="Largest regret that passes, as a share of the largest revenue; 0.02."),
    ] = None,
    error: Annotated[
        float | None, Option(help="Probability that each limit is wrong; 0.025.")
    ] = None,
    intervals: Annotated[OptionalText, Option(help="martingale, blocks or time-uniform.")] = None,
    estimator: Annotated[
        OptionalText, Option(help="doubly robust, self-normalised or inverse propensity.")
    ] = None,
    separator: Annotated[
        OptionalText,
        Option(metavar="MARK", help="Between the values of a CSV, as ';'; else a comma."),
    ] = None,
    decimal: Annotated[
        OptionalText, Option(metavar="MARK", help="Before the decimals of numbers: ',' or '.'.")
    ] = None,
    out: Annotated[
        OptionalPath,
        Option(parser=path_of, metavar="DIR", help="Write the tables and a page there."),
    ] = None,
    imports: shared.Imports = None,
) -> None:
    """Measure the regrets of decisions that somebody else made."""
    if out is not None and out.exists():
        raise UserError(f"--out {out} is there already; give a new directory")
    import_modules(imports or [])
    from regretless.scenarios.audit.command import audit_and_print
    from regretless.scenarios.config.files import override

    full_log_options = {
        "utility": utility,
        "parameters": override({}, parameter or []),
        "scale": dict(_ends(pair) for pair in scale or []),
        "policies": policy or (),
        "round": round_,
    }
    bandit_options = {
        "price": price,
        "quantity": quantity,
        "cost": cost,
        "loss": loss,
        "propensity": propensity,
        "demand": demand,
        "context": context or (),
        "prices": prices,
        "max_quantity": max_quantity,
        "loss_range": loss_range,
        "min_propensity": min_propensity,
        "threshold": threshold,
        "error": error,
        "intervals": intervals,
        "estimator": estimator,
    }
    audit_and_print(
        decisions,
        outcomes,
        columns={"agent": agent, "group": group, "action": action, "actions": actions},
        full_log_options=full_log_options,
        bandit_options=bandit_options,
        separator=separator,
        decimal=decimal,
        out=out,
    )
    if out is not None:
        typer.echo(f"Tables: {out}")


def _ends(pair: str) -> tuple[str, tuple[float, float]]:
    column, _, column_range = pair.rpartition("=")
    try:
        worst, best = (float(end) for end in column_range.split(":"))
    except ValueError:
        raise UserError(f"--scale {pair}: write COLUMN=WORST:BEST, as demand=0:600") from None
    return column, (worst, best)


@app.command()
def dashboard(
    scenario: Annotated[
        str, Argument(metavar="[SCENARIO|FILE.toml]", help="Name of a bundled one, or a file.")
    ] = "crop-choice",
    *,
    assignments: shared.Assignments = None,
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 8642,
    no_browser: Annotated[bool, Option("--no-browser", help="Open no browser.")] = False,
    imports: shared.Imports = None,
) -> None:
    """Play a scenario live in the browser. Ctrl-C ends it."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        reason = "dashboard: this needs Starlette and Uvicorn, which are not installed"
        raise UserError(f"{reason}; run pip install 'regretless[live]'")
    import_without_collector("regretless.scenarios.live.server")
    from regretless.scenarios.live.browser import opened_in_browser
    from regretless.scenarios.live.server import Live
    from regretless.scenarios.live.source import Source

    import_modules(imports or [])
    source = Source.of(scenario, tuple(assignments or ()))
    with shared.compilation_announced(quiet=False):
        source.scenario().build()  # so that what is wrong is said here, and not on the page
    with Live(source, Path.cwd(), port, tuple(imports or ())) as server:
        typer.echo(f"Live page: {server.address} (Ctrl-C ends it)")
        opened = nullcontext() if no_browser else opened_in_browser(server.address)
        with opened, suppress(KeyboardInterrupt):  # of which the server may keep the last word
            server.serve_forever()
        typer.echo("Ended.")


HELP_ON_ALGORITHMS = "Needed: cma (CMA-ES) or exp3 (bandit)."
TRAIN_NEEDS_OPTIONS = (
    "train needs --algorithm (cma or exp3) and --budget (how many runs to learn from)"
)


@app.command()
def train(
    scenario: shared.ScenarioName,
    *,
    algorithm: Annotated[OptionalText, Option(help=HELP_ON_ALGORITHMS)] = None,
    budget: Annotated[
        OptionalInteger, Option(min=1, help="Needed: runs to learn from, for each cohort.")
    ] = None,
    cohort: Annotated[
        OptionalText, Option(help="Cohort to attack; each in turn by default.")
    ] = None,
    phases: Annotated[int, Option(min=1, help="Number of phases of a plan.")] = 8,
    depends_on_play: Annotated[
        bool, Option("--looking", help="Plans depend on what was played last.")
    ] = False,
    what_plans_see: Annotated[
        str,
        Option("--sees", help="What else plans may depend on: history, or the announced mixture."),
    ] = "history",
    rounds: shared.Rounds = None,
    seed: shared.Seed = None,
    out: Annotated[
        OptionalPath,
        Option(
            parser=path_of,
            metavar="PATH",
            help="Directory; runs/NAME-ALGORITHM by default, or the next free one.",
        ),
    ] = None,
    jobs: Annotated[OptionalInteger, Option(min=1, help="Worker processes.")] = None,
    assignments: shared.Assignments = None,
    imports: shared.Imports = None,
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
    quiet: shared.Quiet = False,
) -> None:
    """Train an attacker against a scenario. Prints its surplus beside its cap."""
    import_without_collector("regretless.scenarios.assembly.scenario")
    import_modules(imports or [])
    if algorithm is None or budget is None:
        raise UserError(TRAIN_NEEDS_OPTIONS)
    from regretless.scenarios.training.results import TrainingDirectory, format_table
    from regretless.scenarios.training.train import TrainingOptions, prepare_trainings
    from regretless.scenarios.training.train import train as train_attackers

    chosen = shared.load_scenario(scenario, assignments or [], {"rounds": rounds, "seed": seed})
    options = TrainingOptions(
        algorithm=algorithm,
        budget=budget,
        phases=phases,
        looking=depends_on_play,
        cohort=cohort,
        jobs=jobs,
        imports=tuple(imports or []),
        sees=what_plans_see,
    )
    n_runs = budget * len(prepare_trainings(chosen, options))
    options_of_folder = {"resume": resume, "overwrite": overwrite}
    name = f"{chosen.spec.name}-{algorithm}"
    target = out or shared.free_directory(name, TrainingDirectory, **options_of_folder, quiet=quiet)
    with (
        shared.resumable(TrainingDirectory, target),
        shared.compilation_announced(quiet=quiet),
        shared.progress_bar(f"{chosen.spec.name}, {algorithm}", n_runs, quiet=quiet) as advance,
    ):
        table = train_attackers(
            chosen, options, target, **options_of_folder, progress=advance, warn=shared.warn
        )
    if not quiet:
        typer.echo(format_table(table))
        typer.echo(f"Plans to run, curve and table: {target}")


@app.command("list")
def list_names(
    kind: Annotated[
        str,
        Argument(
            metavar="[KIND]",
            help="scenarios, studies, utilities, responses, learners, adversaries, policies,"
            " forecasters, models or markets",
        ),
    ] = "scenarios",
    *,
    verbose: Annotated[bool, Option("--verbose", help="Print whole descriptions.")] = False,
) -> None:
    """List scenarios and what they show, or other names for files."""
    import shutil

    from regretless.scenarios.listing import listing
    from regretless.scenarios.terminal import WIDTH

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    for line in listing(kind, width, verbose=verbose):
        typer.echo(line)


@app.command()
def run(
    scenario: shared.ScenarioName,
    *,
    rounds: shared.Rounds = None,
    seed: shared.Seed = None,
    out: shared.Out = None,
    format: shared.Format = "parquet",  # noqa: A002 - the option's name
    assignments: shared.Assignments = None,
    log_every: shared.LogEvery = None,
    log_agents: shared.LogAgents = None,
    workers: shared.Workers = None,
    scheduler: shared.Scheduler = None,
    imports: shared.Imports = None,
    dry_run: shared.DryRun = False,
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
    solutions: shared.Solutions = False,
    quiet: shared.Quiet = False,
    verbose: shared.Verbose = False,
) -> None:
    """Run a scenario and write its logs."""
    import_without_collector("regretless.scenarios.assembly.scenario")
    from regretless.scenarios.logs.run_directory import check_format

    check_format(format)
    import_modules(imports or [])
    chosen = {"rounds": rounds, "seed": seed, "log_agents": log_agents}
    loaded = shared.load_scenario(scenario, assignments or [], chosen)
    if solutions and not loaded.spec.solutions:
        from regretless.market.solutions.solution import DEFAULT_NAMES

        named = chosen | {"solutions": list(DEFAULT_NAMES)}
        loaded = shared.load_scenario(scenario, assignments or [], named)
    if dry_run:
        _show(loaded)
        return
    from regretless.scenarios.logs.run_directory import RunDirectory
    from regretless.scenarios.run import Options
    from regretless.scenarios.run import run as run_scenario

    options_of_folder = {"resume": resume, "overwrite": overwrite, "quiet": quiet}
    target = out or shared.free_directory(loaded.spec.name, RunDirectory, **options_of_folder)
    options = Options(target, format, log_every, resume, overwrite)
    with (
        shared.resumable(
            RunDirectory, target, condition=shared.OWN_CODE_CONDITION if imports else ""
        ),
        shared.traced(wanted=verbose),
        shared.compilation_announced(quiet=quiet),
        _players(loaded, options, workers, scheduler, tuple(imports or ())) as player,
        shared.progress_bar(loaded.spec.name, loaded.spec.rounds, quiet=quiet) as advance,
    ):
        model = run_scenario(loaded, options, progress=advance, player=player, warn=shared.warn)
    if not quiet:
        from regretless.scenarios.summary import print_summary

        print_summary(loaded, model, target, player.closed, verbose=verbose)


def _show(loaded: Any) -> None:
    """Check what a run would be, and print its file with every default in it."""
    import tomli_w

    from regretless.scenarios.assembly.scenario import Scenario, sampled
    from regretless.scenarios.config.validation import resolved

    Scenario(sampled(loaded.spec)).build()  # which checks what only a market shows
    typer.echo(tomli_w.dumps(resolved(loaded.spec)), nl=False)


def _players(
    loaded: Any, options: Any, workers: int | None, scheduler: str | None, imports: tuple[str, ...]
) -> AbstractContextManager[Any]:
    """Return who plays: this process, or all among whom the agents are shared out."""
    if workers is None and scheduler is None:
        from regretless.scenarios.run import Player

        return nullcontext(Player())
    from regretless.scenarios.distributed.conductor import conductor_of

    return conductor_of(loaded, options, workers, scheduler, imports=imports, warn=shared.warn)


@app.command()
def report(
    run_directory: Annotated[
        Path, Argument(parser=path_of, metavar="DIR", help="Directory of a run or a study.")
    ],
    *,
    tables: Annotated[
        OptionalPath,
        Option(
            parser=path_of, metavar="FOLDER", help="Write its tables there too, as CSV and LaTeX."
        ),
    ] = None,
) -> None:
    """Write an HTML page from the logs of a run or a study."""
    from regretless.scenarios.report.write import write_report, write_tables

    typer.echo(f"Report: {write_report(run_directory)}")
    if tables is not None:
        typer.echo(f"Tables: {len(write_tables(run_directory, tables))} files in {tables}")


@app.command()
def study(
    file: Annotated[
        str, Argument(metavar="STUDY|FILE.toml", help="Name of a bundled one, or a file.")
    ],
    *,
    out: Annotated[Path, Option(parser=path_of, metavar="PATH", help="Study directory.")],
    rounds: shared.Rounds = None,
    seeds: shared.Seeds = None,
    jobs: Annotated[OptionalInteger, Option(min=1, help="Worker processes.")] = None,
    scheduler: shared.Scheduler = None,
    patience: Annotated[
        float | None,
        Option(
            min=1,
            max=MAX_PATIENCE,
            metavar="SECONDS",
            help="End a run that makes no progress for so long; 1800.",
        ),
    ] = None,
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
    assignments: shared.Assignments = None,
    imports: shared.Imports = None,
    quiet: shared.Quiet = False,
) -> None:
    """Sweep a scenario over parameters and seeds."""
    if jobs is not None and scheduler is not None:
        raise UserError("--jobs is for local processes and --scheduler for a cluster; drop one")
    import_modules(imports or [])
    from regretless.scenarios.studies.answers import print_summary
    from regretless.scenarios.studies.conduct import PATIENCE, Options, conduct
    from regretless.scenarios.studies.design import read_study
    from regretless.scenarios.studies.directory import StudyDirectory

    design = read_study(file).with_fixed(assignments or []).sized(rounds=rounds, seeds=seeds)
    options = Options(
        out, jobs, scheduler, resume, overwrite, tuple(imports or []), patience or PATIENCE
    )
    with (
        shared.resumable(StudyDirectory, out),
        shared.compilation_announced(quiet=quiet),
        shared.progress_bar(design.name, len(design), quiet=quiet) as advance,
    ):
        done = conduct(design, options, progress=advance, warn=shared.warn)
    if not quiet:
        print_summary(done)
    if not done.runs():
        shared.fail(f"all {len(design)} runs failed; see {out / 'failures.parquet'}", 1)


@app.command()
def describe(
    data: Annotated[Path, Argument(parser=path_of, metavar="DATA", help="A CSV or Parquet file.")],
    *,
    out: Annotated[
        OptionalPath,
        Option(parser=path_of, metavar="FILE.toml", help="Write a starter scenario there."),
    ] = None,
    underage: Annotated[
        float | None, Option(metavar="COST", help="What a unit too few costs, in that scenario.")
    ] = None,
    overage: Annotated[
        float | None, Option(metavar="COST", help="What a unit too many costs, in that scenario.")
    ] = None,
    currency: Annotated[
        str | None, Option(metavar="NAME", help="The currency of both costs, as EUR.")
    ] = None,
    outcome: Annotated[
        str | None, Option(metavar="COLUMN", help="The column that the scenario forecasts.")
    ] = None,
    decimal: Annotated[
        str | None, Option(metavar="MARK", help="Decimal mark of the table's numbers: . or ,")
    ] = None,
    thousands: Annotated[
        str | None,
        Option(metavar="MARK", help="What stands between thousands: . or , or a blank, or none."),
    ] = None,
) -> None:
    """Inspect the columns of a table. With --out, write a scenario."""
    from regretless.scenarios.describe import describe, read_costs

    costs = read_costs(underage, overage, currency)
    describe(data, out, costs=costs, outcome=outcome, decimal=decimal, thousands=thousands)


@app.command()
def schema(file: Annotated[str, Argument(metavar="scenario|study", help="Kind of file.")]) -> None:
    """Print the JSON Schema of scenario or study files, for editors."""
    import json

    from regretless.scenarios.schema import schema

    typer.echo(json.dumps(schema(file), indent=2))


def main() -> None:
    """Run the command."""
    gc.set_threshold(ALLOCATIONS_PER_COLLECTION)
    try:
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
    except UserError as error:
        shared.fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        shared.end_interrupted()
    except BaseException as error:
        if hasattr(error, "format_message"):
            shared.end_misused(error)
        from regretless.market.core.own_code import blamed

        if (where := blamed(error)) is not None:
            shared.fail(where, 2)
        if isinstance(error, OSError | MemoryError):
            shared.end_refused_by_system(error)
        raise
    if status == shared.STATUS_INTERRUPTED:  # what the parser makes of Ctrl-C
        shared.end_interrupted()
    sys.exit(status)
