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

CHECKPOINT = "training.npz"
TABLE = "attackers.csv"
CURVE = "curve.csv"
ROUNDING_ERROR = 1e-9  # of means, and of numbers in files
PRINTED_COLUMNS = ["cohort", "value", "surplus", "low", "high", "cap", "certified", "gap", "most"]
# Of the best commitment, judged in the same runs: its columns, by those of the attacker.
COMMITMENT_COLUMNS = {
    "surplus": "commitment",
    "low": "commitment_low",
    "high": "commitment_high",
    "cap": "commitment_cap",
    "paid": "commitment_paid",
}
COLUMNS = [
    *PRINTED_COLUMNS,
    *("paid", "paid_low", "paid_high"),
    *COMMITMENT_COLUMNS.values(),
    "margin",
]
PRINTED_NAMES = {"cap": "cap, tried", "certified": "cap, any"}
NOTE = (
    "paid: payoff of the leader per round and agent; best commitment: of the same distribution in\n"
    "  every round, with the margin that was paid most in rehearsals\n"
    "value: the most that the leader gets by commitment\n"
    "surplus: payoff of the leader per round and agent minus that value, in runs\n"
    "  with new seeds, with a 95 % interval from low to high\n"
    "cap, tried: upper bound on the surplus in these runs, from their swap regret\n"
    "cap, any: upper bound for every attacker, by the theorem before the run\n"
    "gap: cap, any minus surplus; most: the largest surplus that payoffs allow"
)
VACUOUS_CAP = "cap, any is above the largest surplus that payoffs allow, {:.3f}"


def file_of(cohort: str) -> str:
    """Return the name of the file with the best plan against a cohort, different for each."""
    safe_name = re.sub(r"[^\w-]+", "-", cohort)
    if safe_name != cohort:
        safe_name += "-" + blake2b(cohort.encode(), digest_size=3).hexdigest()
    return f"attack-{safe_name}.toml"


def format_table(table: pd.DataFrame) -> str:
    """Return the table as text, with what its columns mean.

    Below the row of a cohort is that of the best commitment against it. A cap without a theorem is
    printed as ``none``. A line names each cap that says nothing.
    """
    printed_rows: list[dict[Any, Any]] = []
    for row in table.to_dict("records"):
        committed = row | {name: row[column] for name, column in COMMITMENT_COLUMNS.items()}
        committed["cohort"] = f"  best commitment to {row['cohort']}"
        committed["gap"] = committed["certified"] - committed["surplus"]
        printed_rows += [row, committed]
    printed = pd.DataFrame(printed_rows)[[*PRINTED_COLUMNS[:1], "paid", *PRINTED_COLUMNS[1:]]]
    rounded = printed.rename(columns=PRINTED_NAMES).round(3)
    table_text = rounded.to_string(index=False, na_rep="none", float_format="{:.3f}".format)
    vacuous_caps = [
        f"{row['cohort']}: {VACUOUS_CAP.format(row['most'])}."
        for row in table.to_dict("records")
        if says_nothing(row)
    ]
    return "\n".join([table_text, NOTE, *vacuous_caps])


def says_nothing(row: Mapping[Any, Any]) -> bool:
    """Whether a certified cap is above what payoffs allow; False without a theorem."""
    return bool(row["certified"] >= row["most"] - ROUNDING_ERROR)


class TrainingDirectory(RecordedDirectory):
    """The folder of a training; ``description`` says what is trained, and how."""

    KIND = "training"
    RECORD = "training.json"
    RECORD_KEYS: ClassVar = {"training": dict, "files": list}
    FILE_NAMES = re.compile(rf"{re.escape(CHECKPOINT)}|{TABLE}|{CURVE}|attack-[\w-]+\.toml")

    def __init__(self, path: Path, description: dict[str, Any], cohorts: Iterable[str]) -> None:
        super().__init__(path, {CHECKPOINT, TABLE, CURVE, *map(file_of, cohorts)})
        self._description = description

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if a complete or another training lies where one is to be resumed."""
        if resume and record["status"] == "complete":
            raise UserError(f"--resume: the training in {self.path} is complete; nothing to resume")
        if resume:
            self.check_same(record, "training", self._description)

    def start(self) -> None:
        """Make room for a new training: an earlier one's files give way."""
        earlier_files = self.listed(self.record_in(self.path))
        # The record comes first: from now on it is known whose files these are.
        self._record("interrupted", earlier_files)
        self.remove_files(earlier_files)
        self._record("interrupted", {CHECKPOINT})

    def save(self, trainings: Sequence[Checkpointable]) -> None:
        """Write the state of all searches."""
        state = {str(index): training.state() for index, training in enumerate(trainings)}
        checkpoint.save(self.path / CHECKPOINT, state)

    def restore(self, trainings: Sequence[Checkpointable]) -> bool:
        """Restore the saved state of all searches.

        Returns False if no state was saved. UserError if the file is damaged.
        """
        if not (self.path / CHECKPOINT).is_file():
            return False
        try:
            state = checkpoint.load(self.path / CHECKPOINT)
            for index, training in enumerate(trainings):
                checkpoint.check_like(state[str(index)], training.state())
                training.restore(state[str(index)])
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
        """Remove the record of a training that failed before any state was saved."""
        if not (self.path / CHECKPOINT).exists():
            with suppress(OSError):  # a folder that cannot be written stays as it is
                (self.path / self.RECORD).unlink(missing_ok=True)

    def _record(self, status: str, files: set[str]) -> None:
        self.write_record(
            {
                "training": self._description,
                "versions": {"regretless": version("regretless")},
                "status": status,
                "files": sorted(files),
            }
        )
