"""Run one scenario and write its logs."""

import json
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regretless.forecaster.anchored import AnchoredPrediction
from regretless.market.core.checkpoint import check_tree
from regretless.market.core.errors import UserError
from regretless.market.game.round import Block
from regretless.market.logs.welfare import welfare_record
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.logs.exploitability import recorded
from regretless.scenarios.spec.scenario import resolved

PACKAGES = ("regretless", "mesa", "numpy", "numba", "highspy", "pandas", "pyarrow")


@dataclass(frozen=True)
class Options:
    """How to run.

    Parameters
    ----------
    format : "parquet" or "csv"
    log_every : int
        Rounds between two entries of the regret log.
    resume : bool
        Continue an interrupted run in ``out``.
    """

    out: Path
    format: str = "parquet"
    log_every: int = 1
    resume: bool = False


def run(
    scenario: Scenario, options: Options, *, progress: Callable[[int], Any] | None = None
) -> MarketModel:
    """Play a scenario to its end and write its run directory.

    Parameters
    ----------
    progress : callable, optional
        Called with the number of rounds played, after every round.

    Returns
    -------
    MarketModel
        After its last round.

    Raises
    ------
    UserError
        If the directory cannot be used or the run cannot be resumed.
    KeyboardInterrupt
        After the tables so far and a manifest that says ``interrupted`` have been written.
    """
    model = scenario.build(log_every=options.log_every)
    directory = RunDirectory(options.out, options.format)
    with directory.held():
        _write(scenario, model, directory, options, progress)
    return model


def _write(
    scenario: Scenario,
    model: MarketModel,
    directory: RunDirectory,
    options: Options,
    progress: Callable[[int], Any] | None,
) -> None:
    """Play a model from its start or its checkpoint, and write the directory that is held."""
    config = resolved(scenario.spec) | {"log_every": options.log_every}
    manifest = _manifest(scenario, model, config)
    state = _resumed(directory, model, config) if options.resume else None
    if state is None:
        directory.start()
    else:
        model.restore(state)
    started = time.perf_counter()
    try:
        directory.write_manifest(manifest)
        _play_out(model, directory, manifest, started, progress)
    except UserError as error:
        directory.abandon()
        raise UserError(f"round {model.played}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException:  # in the user's own code, or no room; once mended, --resume goes on
        directory.abandon()
        raise


def _play_out(
    model: MarketModel,
    directory: RunDirectory,
    manifest: dict[str, Any],
    started: float,
    progress: Callable[[int], Any] | None,
) -> None:
    """Play what is left and write the tables, those of an interrupted run too."""
    try:
        _play(model, directory, manifest["config"], progress)
    except KeyboardInterrupt:
        _finish(model, directory, manifest, started)
        raise
    manifest["status"] = "complete"
    _finish(model, directory, manifest, started)


def _finish(
    model: MarketModel, directory: RunDirectory, manifest: dict[str, Any], started: float
) -> None:
    manifest["wall_seconds"] = round(time.perf_counter() - started, 3)
    manifest["exploitability"] = recorded(model)
    for told, block in zip(manifest["blocks"], model.game.blocks, strict=True):
        if isinstance(block.forecaster, AnchoredPrediction):
            told["kept"] = block.forecaster.kept / max(model.played, 1)
            told["trust_lost"] = block.forecaster.lost
    if model.game.market is not None:
        manifest["market"] = model.game.market.described()
    model.journal.flush()
    tables = _closing_tables(model)
    manifest["welfare"] = welfare_record(tables["agents"])
    directory.finish(tables, manifest)


def _play(
    model: MarketModel,
    directory: RunDirectory,
    config: dict[str, Any],
    progress: Callable[[int], Any] | None,
) -> None:
    resumable = not model.game.forgetful()
    if resumable and model.rounds > model.journal.chunk_rounds:  # there will be a checkpoint
        check_tree(model.state())  # now, and not after hours of play
    model.stream_logs_to(directory.add_chunk)
    with interrupts_between_rounds() as stopped:
        while model.played < model.rounds:
            model.step()
            if progress is not None:
                progress(model.played)
            if resumable and model.journal.at_chunk_end:
                directory.save_checkpoint(model.state(), config)
            if stopped.is_set():
                raise KeyboardInterrupt


@contextmanager
def interrupts_between_rounds() -> Iterator[threading.Event]:
    """Note Ctrl-C instead of raising it in the middle of a round; yields the note."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _resumed(
    directory: RunDirectory, model: MarketModel, config: dict[str, Any]
) -> dict[str, Any] | None:
    forgetful = model.game.forgetful()
    if forgetful:
        raise UserError(
            f"--resume: {', '.join(forgetful)} offers no state() and restore(state); "
            "add them or run without --resume"
        )
    recorded = directory.recorded()
    if recorded is not None and recorded["config"] != json.loads(json.dumps(config)):
        where = f"--resume: {directory.path} holds another configuration"
        raise UserError(f"{where}; give another --out or run without --resume")
    if recorded is not None and recorded["status"] == "complete":
        directory.tidy()
        raise UserError(f"--resume: the run in {directory.path} is complete; nothing to resume")
    begun = {} if recorded is None else recorded.get("versions", {})
    if recorded is not None and begun.get("regretless") != version("regretless"):
        by = f"regretless {begun['regretless']}" if "regretless" in begun else "another version"
        where = f"--resume: the run in {directory.path} was begun by {by}"
        raise UserError(f"{where}; continue it with that version or run without --resume")
    return directory.load_checkpoint(config)


def _closing_tables(model: MarketModel) -> dict[str, Any]:
    tables = {
        "agents": model.agents_frame(),
        "swaps": model.swaps_frame(),
        "biases": model.biases_frame(),
    }
    bounds = model.bounds_frame()
    if len(bounds):
        tables["bounds"] = bounds
    tables["verdict"] = model.verdict_frame()
    if any(model.game.followed):
        tables["models"] = model.models_frame()
    network = model.game.network
    if network is not None and network.edges is not None:
        tables["edges"] = model.edges_frame()
    return tables


def _manifest(scenario: Scenario, model: MarketModel, config: dict[str, Any]) -> dict[str, Any]:
    pairs = list(zip(model.game.cohorts, model.guarantees, strict=True))
    manifest: dict[str, Any] = {
        "scenario": scenario.spec.name,
        "config": config,
        "seed": scenario.spec.seed,
        "rounds": scenario.spec.rounds,
        "status": "interrupted",
        "guarantee": {cohort.name: given.told(cohort) for cohort, given in pairs},
        "blocks": [described(block) for block in model.game.blocks],
        "covers": [guarantee.note for guarantee in model.guarantees if guarantee.note],
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_seconds": None,
    }
    if model.journal.samples:
        manifest["logged_agents"] = {
            cohort.name: len(own.ids)
            for cohort, own in zip(model.game.cohorts, model.journal.logged, strict=True)
        }
    if scenario.table is not None:
        manifest["clipped_rows"] = scenario.table.clipped
        manifest["data"] = list(scenario.table.told)
    return manifest


def described(block: Block) -> dict[str, Any]:
    """Describe a block's basis for the manifest."""
    basis = block.basis
    return {
        "name": block.name,
        "basis": type(basis).__name__,
        "size": basis.size,
        "lipschitz": basis.lipschitz,
        "error": basis.error,
    }
