"""What runs and studies have written: the same bytes as another, or its status."""

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
PATIENCE = 300  # seconds; a first run compiles
Reference = Callable[..., Path]


def tables(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))
    }


def manifest(out: Path | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(out, "manifest.json").read_text(encoding="utf-8"))
    return found


def files(home: Path | str = ".") -> dict[str, bytes]:
    """Read everything below a folder, links by where they lead."""
    return {
        str(path): str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        for path in sorted(Path(home).rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def status(out: Path | str) -> str:
    return str(manifest(out)["status"])


def assert_same(out: Path, alone: Path) -> None:
    """Compare tables byte by byte and manifests; nothing else is left."""
    ours, theirs = tables(out), tables(alone)
    assert [name for name in theirs if ours.get(name) != theirs[name]] == []
    told, wanted = manifest(out), manifest(alone)
    for own in (told, wanted):
        del own["started"], own["wall_seconds"]
    assert told == wanted
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in alone.iterdir())


def kill_after_a_checkpoint(home: Path, *words: str) -> None:
    """Start a run to ``logs`` in a process of its own in a folder, and kill it."""
    command = [COMMAND, "run", *words, "--out", "logs", "--quiet"]
    process = subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE
    while not (home / "logs" / CHECKPOINT).exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL


def play(told: Scenario, out: Path, *, stop: int = 0, **options: Any) -> None:
    """Run a scenario in this process; ``stop`` interrupts it after so many rounds."""

    def interrupt(played: int) -> None:
        if played == stop:
            raise KeyboardInterrupt

    run(told, Options(out, **options), progress=interrupt)
