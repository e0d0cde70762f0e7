"""A training's directory, and what training leaves there: a table, a curve, the best plans.

    training.json    what is trained, how far it came, and the files that are its own
    training.npz     the state of the search, while it goes on
    attackers.csv    a row per cohort (``COLUMNS``)
    curve.csv        a row per run: what the leader was paid
    attack-COHORT.toml    the scenario with the best plan against a cohort

Of an earlier training only the files that its record lists are replaced.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.core.checkpoint import Checkpointable, replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import AGAIN, RecordedDirectory

CHECKPOINT, TABLE, CURVE = "training.npz", "attackers.csv", "curve.csv"
ROUNDING = 1e-9  # of means, and of numbers in files
COLUMNS = ["cohort", "value", "surplus", "low", "high", "cap", "certified", "gap", "most"]
PRINTED = {"cap": "cap, tried", "certified": "cap, any"}
NOTE = (
    "value: the most that the leader gets by commitment\n"
    "surplus: payoff of the leader per round and agent minus that value, in runs\n"
    "  with new seeds, with a 95 % interval from low to high\n"
    "cap, tried: upper bound on the surplus in these runs, from their swap regret\n"
    "cap, any: upper bound for every attacker, by the theorem before the run\n"
    "gap: cap, any minus surplus; most: the largest surplus that payoffs allow"
)
SAYS_NOTHING = "cap, any is above the largest surplus that payoffs allow, {:.3f}"


def file_of(cohort: str) -> str:
    """Return the name of the file with the best plan against a cohort, different for each."""
    plain = re.sub(r"[^\w-]+", "-", cohort)
    if plain != cohort:
        plain += "-" + blake2b(cohort.encode(), digest_size=3).hexdigest()
    return f"attack-{plain}.toml"


def text(table: pd.DataFrame) -> str:
    """Write the table out; a cap without a theorem is ``none``, one that says nothing is named."""
    shown = table.rename(columns=PRINTED).round(3)
    lines = shown.to_string(index=False, na_rep="none", float_format="{:.3f}".format)
    empty = [
        f"{row['cohort']}: {SAYS_NOTHING.format(row['most'])}."
        for row in table.to_dict("records")
        if says_nothing(row)
    ]
    return "\n".join([lines, NOTE, *empty])


def says_nothing(row: Mapping[Any, Any]) -> bool:
    """Whether a certified cap is above what payoffs allow; False without a theorem."""
    return bool(row["certified"] >= row["most"] - ROUNDING)


class TrainingDirectory(RecordedDirectory):
    """Where a training goes; ``about`` is what is trained, and how."""

    KIND = "training"
    RECORD = "training.json"
    RECORD_KEYS: ClassVar = {"training": dict, "files": list}
    FILE_NAMES = re.compile(rf"{re.escape(CHECKPOINT)}|{TABLE}|{CURVE}|attack-[\w-]+\.toml")

    def __init__(self, path: Path, about: dict[str, Any], cohorts: Iterable[str]) -> None:
        super().__init__(path, {CHECKPOINT, TABLE, CURVE, *map(file_of, cohorts)})
        self._about = about

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if ``resume`` has nothing to go on with, or something else."""
        if resume and record["status"] == "complete":
            raise UserError(f"--resume: the training in {self.path} is complete; nothing to resume")
        if resume:
            self.check_same(record, "training", self._about)

    def start(self) -> None:
        """Make room for a new training: an earlier one's files give way."""
        before = self.listed(self.record_in(self.path))
        self._record("interrupted", before)  # first: from now on it is known whose they are
        self.remove_files(before)
        self._record("interrupted", {CHECKPOINT})

    def save(self, found: Sequence[Checkpointable]) -> None:
        """Keep the state of the search."""
        state = {str(place): one.state() for place, one in enumerate(found)}
        checkpoint.save(self.path / CHECKPOINT, state)

    def restore(self, found: Sequence[Checkpointable]) -> bool:
        """Let the search go on from what was kept; False if nothing was, UserError if damaged."""
        if not (self.path / CHECKPOINT).is_file():
            return False
        try:
            state = checkpoint.load(self.path / CHECKPOINT)
            for place, one in enumerate(found):
                checkpoint.check_like(state[str(place)], one.state())
                one.restore(state[str(place)])
        except checkpoint.DAMAGED as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            where = f"--resume: {self.path / CHECKPOINT} is damaged: {reason}"
            raise UserError(f"{where}; {AGAIN}") from error
        return True

    def finish(self, results: Mapping[str, str]) -> None:
        """Write the results, files by their names, and remove the state of the search."""
        self.check_writable(set(results))
        self._record("interrupted", {CHECKPOINT, *results})
        for name, content in results.items():
            with replacing(self.path / name) as draft:
                draft.write_text(content, encoding="utf-8")
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self._record("complete", set(results))

    def abandon(self) -> None:
        """Leave nothing of a training that came to grief, unless it can go on."""
        if not (self.path / CHECKPOINT).exists():
            with suppress(OSError):  # what cannot be written cannot be removed either
                (self.path / self.RECORD).unlink(missing_ok=True)

    def _record(self, status: str, files: set[str]) -> None:
        about = {"training": self._about, "versions": {"regretless": version("regretless")}}
        self.write_record(about | {"status": status, "files": sorted(files)})
