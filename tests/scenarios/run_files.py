"""The files that runs and studies write: read, compared byte by byte, or left by a killed run."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.run import Options, run

COMMAND = Path(sys.executable).parent / "regretless"
CHECKPOINT = ".partial/checkpoint.npz"
PATIENCE_SECONDS = 300  # a first run compiles
FinishedRun = Callable[..., Path]  # the fixture ``finished_run``


def table_bytes(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every table below a folder, by its path in it."""
    files = sorted(folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def read_manifest(run_folder: Path | str) -> dict[str, Any]:
    """Read the manifest of a run."""
    manifest: dict[str, Any] = json.loads(
        Path(run_folder, "manifest.json").read_text(encoding="utf-8")
    )
    return manifest


def run_status(run_folder: Path | str) -> str:
    """Return the status that a run's manifest states."""
    return str(read_manifest(run_folder)["status"])


def file_bytes(folder: Path | str = ".") -> dict[str, bytes]:
    """Return the bytes of everything below a folder by its path; of a link, where it leads."""
    content: dict[str, bytes] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_symlink():
            content[str(path)] = str(path.readlink()).encode()
        elif path.is_file():
            content[str(path)] = path.read_bytes()
    return content


def assert_same_run(run_folder: Path, undisturbed: Path) -> None:
    """Assert that a run wrote the tables, manifest and files of one that was never stopped."""
    tables = table_bytes(run_folder)
    expected_tables = table_bytes(undisturbed)
    differing = [name for name, table in expected_tables.items() if tables.get(name) != table]
    assert differing == []
    manifest = read_manifest(run_folder)
    expected_manifest = read_manifest(undisturbed)
    for key in ("started", "wall_seconds"):
        del manifest[key], expected_manifest[key]
    assert manifest == expected_manifest
    names = sorted(path.name for path in run_folder.iterdir())
    assert names == sorted(path.name for path in undisturbed.iterdir())


def kill_run_after_checkpoint(folder: Path, *words: str) -> None:
    """Start a run to ``logs`` in a folder, in a process of its own, and kill it at a checkpoint."""
    command = [COMMAND, "run", *words, "--out", "logs", "--quiet"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / "logs" / CHECKPOINT).exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == -signal.SIGKILL


def run_to_folder(scenario: Scenario, folder: Path, *, stop: int = 0, **options: Any) -> None:
    """Run a scenario in this process; ``stop`` interrupts it after so many rounds."""

    def interrupt(played: int) -> None:
        if played == stop:
            raise KeyboardInterrupt

    run(scenario, Options(folder, **options), progress=interrupt)
