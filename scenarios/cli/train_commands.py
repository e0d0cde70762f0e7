"""The command that trains attackers. Heavy libraries are imported by it, as in ``commands``."""

from pathlib import Path
from typing import Annotated

import typer

from regretless.market.core.errors import UserError
from regretless.scenarios.cli import exits
from regretless.scenarios.cli.options import (
    Assignments,
    Imports,
    Name,
    Overwrite,
    Quiet,
    Resume,
    Rounds,
    Seed,
    free_directory,
    loaded,
    progress_bar,
)
from regretless.scenarios.imports import import_for_good, import_modules

NEEDED = "train needs --algorithm (cem, es or exp3) and --budget (how many runs to learn from)"


def train(  # noqa: PLR0913 - one parameter per option
    scenario: Name,
    *,
    algorithm: Annotated[str | None, typer.Option(help="Required: cem, es or exp3.")] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Runs to learn from, for each cohort; needed.")
    ] = None,
    cohort: Annotated[
        str | None, typer.Option(help="Cohort to attack; each in turn by default.")
    ] = None,
    phases: Annotated[int, typer.Option(min=1, help="Number of phases of a plan.")] = 8,
    looking: Annotated[
        bool, typer.Option("--looking", help="Plans depend on what was played last.")
    ] = False,
    rounds: Rounds = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory; runs/NAME-ALGORITHM by default, or the next free one."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes.")] = None,
    assignments: Assignments = None,
    imports: Imports = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Train an attacker against a scenario. Prints its surplus beside its cap."""
    import_for_good("regretless.scenarios.assembly.scenario")
    import_modules(imports or [])
    if algorithm is None or budget is None:
        raise UserError(NEEDED)
    from regretless.scenarios.training import results
    from regretless.scenarios.training.directory import interrupted
    from regretless.scenarios.training.train import Order, prepared
    from regretless.scenarios.training.train import train as train_attackers

    chosen = loaded(scenario, assignments or [], {"rounds": rounds, "seed": seed})
    order = Order(algorithm, budget, phases, looking, cohort, jobs, tuple(imports or []))
    runs = budget * len(prepared(chosen, order))
    given = {"resume": resume, "overwrite": overwrite}
    name = f"{chosen.spec.name}-{algorithm}"
    target = out or free_directory(name, "training", interrupted, **given, quiet=quiet)
    with progress_bar(f"{chosen.spec.name}, {algorithm}", runs, quiet=quiet) as advance:
        table = train_attackers(chosen, order, target, **given, progress=advance, warn=exits.warn)
    if not quiet:
        typer.echo(results.text(table))
        typer.echo(f"Plans to run, curve and table: {target}")
