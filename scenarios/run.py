"""Run one scenario and write its logs."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.checkpoint import DAMAGED, check_like, check_tree
from regretless.market.core.errors import UserError
from regretless.market.core.interrupts import RoundInterrupted, interrupts_between_rounds
from regretless.market.game.round import Block
from regretless.market.logs.welfare import welfare_record
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import resolved
from regretless.scenarios.logs.ownership import AGAIN
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.notes import exploitability_record

# what a round raises where the restored state is not its own
ERRORS_OF_MISFIT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
SECONDS_BETWEEN_CHECKPOINTS = 20.0  # of a run that logs few rounds
PACKAGES = ("regretless", "mesa", "numpy", "numba", "highspy", "pandas", "pyarrow")


@dataclass(frozen=True)
class Options:
    """How to run.

    ``log_every``: rounds between two entries of the regret log, as in ``Scenario.build``.
    ``resume`` continues an interrupted run in ``out``, ``overwrite`` replaces one; without either
    ``out`` must be a new directory.
    """

    out: Path
    format: str = "parquet"
    log_every: int | None = None
    resume: bool = False
    overwrite: bool = False


class Player:
    """Plays a model in this process; ``closed`` are the tables that closed the run."""

    model: MarketModel
    closed: dict[str, pd.DataFrame]

    @property
    def shared(self) -> bool:
        """Whether anybody is elsewhere."""
        return False

    def take(self, model: MarketModel) -> None:
        """Be given the model, which has played no round."""
        self.model = model

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint; one of ``DAMAGED`` if it is of something else."""
        check_like(state, self.model.state())
        self.model.restore(state)

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left; KeyboardInterrupt between two rounds."""
        model = self.model
        resumable = not model.game.forgetful()
        will_save = model.rounds > model.journal.chunk_rounds or not model.journal.logs_every_round
        if resumable and will_save:
            check_tree(model.state())  # now, and not after hours of play
        model.stream_logs_to(directory.add_chunk)
        with interrupts_between_rounds() as stopped:
            saved = time.monotonic()
            while not model.is_finished:
                model.advance(model.rounds)
                if progress is not None:
                    progress(model.played)
                if model.journal.logs_every_round:
                    is_due = model.journal.at_chunk_end
                else:  # chunks may fill in hours, or never
                    is_late = time.monotonic() > saved + SECONDS_BETWEEN_CHECKPOINTS
                    is_due = is_late or stopped.is_set()
                if resumable and is_due:
                    model.journal.flush()
                    directory.save_checkpoint(model.state(), config)
                    saved = time.monotonic()
                if stopped.is_set():
                    raise KeyboardInterrupt

    def tables(self) -> dict[str, pd.DataFrame]:
        """Hand on what is left of the logs; return, and keep, the tables that close the run."""
        model = self.model
        model.journal.flush()
        bounds = model.bounds_frame()
        tables = {
            "agents": model.agents_frame(),
            "swaps": model.swaps_frame(),
            "biases": model.biases_frame(),
        }
        if len(bounds):
            tables["bounds"] = bounds
        tables["verdict"] = model.verdict_frame()
        tables["forecast_scores"] = model.scores_frame()
        coverage = model.coverage_frame()
        if len(coverage):
            tables["coverage"] = coverage
        if any(seat.comparison.names for seat in model.game.seats):
            tables["models"] = model.models_frame()
        network = model.game.network
        if network is not None and network.edges is not None:
            tables["edges"] = network.frame()
        if model.solved.names:
            tables["solutions"] = model.solutions()
        self.closed = tables
        return tables


def run(
    scenario: Scenario,
    options: Options,
    *,
    progress: Callable[[int], Any] | None = None,
    player: Player | None = None,
    warn: Callable[[str], Any] = lambda _: None,
) -> MarketModel:
    """Play a scenario to its end, write its run directory, and return the model.

    ``progress`` is called with the number of rounds played, ``warn`` with each of the model's
    warnings, before the first round; ``player`` is this process alone by default.
    """
    model = scenario.build(log_every=options.log_every)
    for warning in model.warnings:
        warn(warning)
    player = player or Player()
    player.take(model)
    if player.shared:
        if scenario.spec.impulse is not None:
            hint = "drop --workers and --scheduler, or [impulse]"
            raise UserError(f"impulse: a run whose agents are shared out has no branches; {hint}")
        model.solved.leave_play_uncounted("agents are shared out among workers")
    directory = RunDirectory(options.out, options.format)
    with directory.claimed(resume=options.resume, overwrite=options.overwrite):
        _write(scenario, player, directory, options, progress, warn)
    return model


def _write(
    scenario: Scenario,
    player: Player,
    directory: RunDirectory,
    options: Options,
    progress: Callable[[int], Any] | None,
    warn: Callable[[str], Any],
) -> None:
    """Play a model from its start or its checkpoint, and write the directory that is held."""
    model = player.model
    config = resolved(scenario.spec) | {"log_every": model.journal.log_every}
    manifest = _manifest(scenario, model, config)
    state = None
    if options.resume:
        was_begun = directory.record_in(directory.path) is not None
        state = _state_to_resume(directory, model, config, is_shared=player.shared)
        if was_begun and state is None:
            warn(f"--resume: {directory.path} has no checkpoint yet; the run begins at round 0")
    if state is None:
        directory.start(manifest)
    else:
        try:
            player.restore(state)
        except DAMAGED as error:
            raise _misfit(directory, error) from error
    start_time = time.perf_counter()
    n_played_before = model.played
    interrupt: KeyboardInterrupt | None = None
    try:
        try:
            player.play(directory, config, progress)
            manifest["status"] = "complete"
        except RoundInterrupted:
            directory.abandon()
            raise
        except KeyboardInterrupt as error:
            interrupt = error
        tables = player.tables()
        if scenario.spec.impulse is not None and interrupt is None:
            tables["impulse"] = _impulse_table(scenario, model)
        manifest["played"] = model.played
        manifest["wall_seconds"] = round(time.perf_counter() - start_time, 3)
        manifest["exploitability"] = exploitability_record(model)
        manifest["blocks"] = [
            _describe_basis(block) | block.forecaster.described() for block in model.game.blocks
        ]
        if model.game.market is not None:
            manifest["market"] = model.game.market.described()
        manifest["welfare"] = welfare_record(tables["agents"])
        directory.finish(tables, manifest)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a mistake, or no room; once mended, --resume goes on
        directory.abandon()
        has_played_nothing = model.played == n_played_before
        if state is not None and has_played_nothing and isinstance(error, ERRORS_OF_MISFIT):
            raise _misfit(directory, error) from error  # what was restored cannot be played
        raise
    if interrupt is not None:
        raise interrupt


def _impulse_table(scenario: Scenario, model: MarketModel) -> pd.DataFrame:
    """Return the table of the impulse: after a run that is played, or in a copy of it before."""
    impulse = scenario.spec.impulse
    if impulse is None or impulse.round is None:
        return scenario.impulse_path(model)
    twin = scenario.build(log_every=model.rounds)
    first_round = impulse.round - impulse.before
    if model.played < first_round:
        fault = (
            f"impulse.round = {impulse.round}: 'until' ended the run after {model.played} rounds"
        )
        raise UserError(f"{fault}; leave round out for an impulse after its end")
    twin.run(first_round)
    return scenario.impulse_path(twin)


def _misfit(directory: RunDirectory, error: BaseException) -> UserError:
    """Return the error of a checkpoint that is not one of this run."""
    reason = f"{type(error).__name__}: {error}"
    return UserError(
        f"--resume: the checkpoint in {directory.path} does not fit this run ({reason}); {AGAIN}"
    )


def _state_to_resume(
    directory: RunDirectory, model: MarketModel, config: dict[str, Any], *, is_shared: bool
) -> dict[str, Any] | None:
    """Return the state to go on from, None where no round was kept.

    ``is_shared`` is whether workers play a part of the agents now; UserError if they did not when
    the run was begun, or the other way round.
    """
    forgetful_players = model.game.forgetful()
    if forgetful_players:
        names = ", ".join(forgetful_players)
        raise UserError(
            f"--resume: {names} offers no state() and restore(state); add them or {AGAIN}"
        )
    manifest = directory.record_in(directory.path)
    if manifest is not None:
        directory.check_same(manifest, "configuration", config)
        if manifest["status"] == "complete":
            directory.tidy()
            raise UserError(f"--resume: the run in {directory.path} is complete; nothing to resume")
    state = directory.load_checkpoint(config)
    if state is None or ("shared" in state) == is_shared:
        return state
    options = "--workers or --scheduler"
    if is_shared:
        raise UserError(f"--resume: the run was begun without {options}; drop them")
    raise UserError(f"--resume: the run was begun with {options}; give them")


def _manifest(scenario: Scenario, model: MarketModel, config: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a run that begins."""
    cohorts = model.game.cohorts
    label_of_cohort = {}
    remarks_on_guarantees = [guarantee.note for guarantee in model.guarantees if guarantee.note]
    for cohort, guarantee in zip(cohorts, model.guarantees, strict=True):
        label_of_cohort[cohort.name] = guarantee.summary(cohort)
        remarks_on_guarantees += guarantee.unbounded
    manifest: dict[str, Any] = {
        "scenario": scenario.spec.name,
        "config": config,
        "seed": scenario.spec.seed,
        "rounds": scenario.spec.rounds,
        "status": "interrupted",
        "guarantee": label_of_cohort,
        "blocks": [_describe_basis(block) for block in model.game.blocks],
        "covers": remarks_on_guarantees,
        "notes": list(model.notes),
        "actions": {name: list(names) for name, names in model.called.items()},
        "versions": versions(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_seconds": None,
    }
    if model.journal.samples:
        manifest["logged_agents"] = {
            cohort.name: len(logged.ids)
            for cohort, logged in zip(cohorts, model.journal.logged, strict=True)
        }
    if scenario.table is not None:
        manifest["clipped_rows"] = scenario.table.clipped
        manifest["data"] = list(scenario.table.notes)
    return manifest


def versions() -> dict[str, str]:
    """Return the versions that a manifest or record notes."""
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}


def _describe_basis(block: Block) -> dict[str, Any]:
    """Return the manifest's entry on the basis of a block."""
    basis = block.basis
    return {
        "name": block.name,
        "basis": type(basis).__name__,
        "size": basis.size,
        "lipschitz": basis.lipschitz,
        "error": basis.error,
    }
