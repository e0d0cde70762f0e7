"""How a scenario is saved from the live page: as a file, with a run of it, or with a study.

Everything is saved in one folder, under a name without a path; a file that is there stays. A run
is played anew, in a process of its own, from the file that was saved: players that were replaced on
the page are not in it.
"""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import format_value
from regretless.scenarios.live.source import Source

BASELINES = ("running-mean", "exponential-smoothing", "last-value")  # of a study of forecasters
SEEDS_OF_STUDY = 5
ALLOWED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")


class Saving:
    """Saves into a folder, runs into ``runs`` within it; these import the user's ``modules``."""

    def __init__(self, folder: Path, modules: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.modules = modules
        self._message = ""
        self._run_folder = Path()
        self._run_process: subprocess.Popen[str] | None = None

    def file(self, source: Source, name: str) -> Path:
        """Write a scenario file; UserError if the name is no name or the file is there."""
        if not ALLOWED_NAME.fullmatch(name):
            raise UserError(
                f"save as {format_value(name)}: give letters, digits, - and _, and no path"
            )
        path = self._new_path(name)
        self._write(path, source.portable(self.folder) | {"name": name})
        self._message = f"Saved: {path}"
        return path

    def _new_path(self, name: str) -> Path:
        """Return where a file of this name goes; UserError if one is there."""
        path = self.folder / f"{name}.toml"
        if path.exists():
            raise UserError(f"save as {name}: {path} is there already; give another name")
        return path

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        try:
            with replacing(path) as draft:
                draft.write_text(tomli_w.dumps(content), encoding="utf-8", newline="\n")
        except OSError as error:
            raise UserError(f"save as {path}: {error.strerror}; make room") from error

    def run(self, source: Source, name: str) -> None:
        """Save a scenario file and play it into ``runs/NAME``; UserError as of ``file``."""
        if self._run_process is not None and self._run_process.poll() is None:
            raise UserError(f"{self._run_folder} is being written; wait for it")
        path = self.file(source, name)
        self._run_folder = self.folder / "runs" / name
        # -P: a file of the folder, such as a typer.py, is not imported in place of a library.
        command = [sys.executable, "-P", "-m", "regretless", "run", str(path), "--quiet"]
        command += ["--out", str(self._run_folder)]
        for module in self.modules:
            command += ["--import", module]
        self._run_process = subprocess.Popen(  # noqa: S603 - our own command, its words checked
            command,
            cwd=self.folder,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def study(self, source: Source, name: str) -> None:
        """Save a scenario file and a study of it, ``NAME-study.toml``; UserError as of ``file``.

        It compares the forecaster with the baselines that the scenario can have in its place.
        """
        kinds = [source.scenario().spec.forecaster.kind]
        for baseline in BASELINES:
            if baseline in kinds:
                continue
            with suppress(UserError):  # it cannot have that one, and nothing else changed
                source.changed("forecaster.kind", baseline).scenario().build()
                kinds.append(baseline)
        path = self._new_path(f"{name}-study")
        scenario_path = self.file(source, name)
        content: dict[str, Any] = {"scenario": scenario_path.name, "seeds": SEEDS_OF_STUDY}
        if len(kinds) > 1:
            content["grid"] = {"forecaster.kind": kinds}
        self._write(path, content)
        how_to_play = f"regretless study {path} --out runs/{name}-study"
        self._message += f" and {path}. Play it: {how_to_play}"

    def summary(self) -> str:
        """Say in a line what was saved, or how far it is."""
        if self._run_process is None:
            return self._message
        if self._run_process.poll() is None:
            return f"{self._message}. Playing it into {self._run_folder} ..."
        _, complaint = self._run_process.communicate()
        if self._run_process.returncode:
            lines = complaint.strip().splitlines() or ["the run was ended"]
            self._message = lines[-1]
        else:
            how_to_report = f"regretless report {self._run_folder} makes its page"
            self._message += f". Run: {self._run_folder}; {how_to_report}"
        self._run_process = None
        return self._message
