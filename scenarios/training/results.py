"""A training's directory, and what training leaves there: a table, a curve, the best plans.

    training.json    what is trained, how far it came, and the files that are its own
    training.npz     the state of the search, while it goes on
    attackers.csv    a row per cohort (``COLUMNS``)
    curve.csv        a row per run: what the leader was paid
    attack-COHORT.toml    the scenario with the best plan against a cohort

Of an earlier training only the files that its record lists are replaced.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import tomli_w

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs import ownership
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training.attack import Attack, Score

T = TypeVar("T")
RECORD, CHECKPOINT = "training.json", "training.npz"
TABLE, CURVE = "attackers.csv", "curve.csv"
KNOWN = re.compile(rf"{re.escape(CHECKPOINT)}|{TABLE}|{CURVE}|attack-[\w-]+\.toml")
AGAIN = "start again with --overwrite"
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


@dataclass(frozen=True, eq=False)
class Judged:
    """The best ``plan`` (P, S, m), ``scores`` at other seeds, and n generations of G plans."""

    attack: Attack
    plan: Array
    scores: Sequence[Score]
    seeds: Integers  # (n,)
    paid: Array  # (n, G)

    @property
    def row(self) -> dict[str, str | float]:
        """What the table says: means, and 95 % of Student's interval of the surplus."""
        scores = pd.DataFrame(self.scores)
        found = scores.mean().to_dict() | {"cohort": self.attack.cohort}
        found["surplus"], found["low"], found["high"] = interval(scores["surplus"].to_numpy())
        found["gap"] = found["certified"] - found["surplus"]
        return {name: found[name] for name in COLUMNS}

    @property
    def curve(self) -> pd.DataFrame:
        """A row per run: cohort, generation, run, seed, and what the leader was paid per round."""
        (count, size), runs = self.paid.shape, np.arange(self.paid.size)
        found: dict[str, Any] = {"generation": np.repeat(np.arange(count), size), "run": runs}
        found |= {"seed": np.repeat(self.seeds, size), "paid": self.paid.ravel()}
        return pd.DataFrame({"cohort": self.attack.cohort} | found)


def file_of(cohort: str) -> str:
    """Return the name of the file with the best plan against a cohort, different for each."""
    plain = re.sub(r"[^\w-]+", "-", cohort)
    if plain != cohort:
        plain += "-" + blake2b(cohort.encode(), digest_size=3).hexdigest()
    return f"attack-{plain}.toml"


def write(out: Path, judged: Sequence[Judged]) -> pd.DataFrame:
    """Write plans, curve and, last, the table, which is returned."""
    table = pd.DataFrame([one.row for one in judged])
    curve = pd.concat([one.curve for one in judged], ignore_index=True)
    for one in judged:
        with replacing(out / file_of(one.attack.cohort)) as draft:
            draft.write_text(tomli_w.dumps(one.attack.file(one.plan)), encoding="utf-8")
    for name, content in ((CURVE, curve), (TABLE, table)):
        with replacing(out / name) as draft:
            content.to_csv(draft, index=False)
    return table


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


class TrainingDirectory:
    """Where a training goes; ``about`` is what is trained, and how."""

    def __init__(self, path: Path, about: dict[str, Any], cohorts: Iterable[str]) -> None:
        self.path, self._results = path, {TABLE, CURVE, *map(file_of, cohorts)}
        self._about = json.loads(json.dumps(about | {"version": version("regretless")}))
        self._files: set[str] = set()

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Raise UserError unless a training may be written here: what is there stays as it is."""
        ownership.check_asked(self.path, "training", resume=resume, overwrite=overwrite)
        if ownership.unused(self.path, RECORD):
            return
        recorded = ownership.known_as_ours(
            self.path, "training", read_record(self.path), resume=resume, overwrite=overwrite
        )
        self._files = ownership.listed(recorded, KNOWN.fullmatch)
        names = self._results | {CHECKPOINT, RECORD}
        ownership.check_writable(self.path, names, self._files | {RECORD})
        if resume and recorded["status"] == "complete":
            raise UserError(f"--resume: the training in {self.path} is complete; nothing to resume")
        if resume and recorded["training"] != self._about:
            where = f"--resume: {self.path} holds another training"
            raise UserError(f"{where}; give another --out or {AGAIN}")

    def start(self) -> None:
        """Make room for a new training: an earlier one's files give way."""
        self._record("interrupted", self._files)  # first: from now on it is known whose they are
        for name in self._files:
            (self.path / name).unlink(missing_ok=True)
        if ownership.our_page(self.path / ownership.REPORT):
            (self.path / ownership.REPORT).unlink()
        self._record("interrupted", {CHECKPOINT})

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state of the search."""
        checkpoint.save(self.path / CHECKPOINT, state)

    def restore(self, fresh: dict[str, Any], take: Callable[[dict[str, Any]], None]) -> bool:
        """Let the search go on from what was kept, which is like ``fresh``; False if nothing was.

        UserError if it is damaged or does not fit.
        """
        if not (self.path / CHECKPOINT).is_file():
            return False
        try:
            state = checkpoint.load(self.path / CHECKPOINT)
            checkpoint.check_like(state, fresh)
            take(state)
        except checkpoint.DAMAGED as error:
            where = f"--resume: {self.path / CHECKPOINT} is damaged"
            raise UserError(f"{where}; {AGAIN}") from error
        return True

    def finish(self, write: Callable[[], T]) -> T:
        """Write the results, and remove the state of the search."""
        ownership.check_writable(self.path, self._results, self._files)
        self._record("interrupted", {CHECKPOINT} | self._results)
        written = write()
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self._record("complete", self._results)
        return written

    def abandon(self) -> None:
        """Leave nothing of a training that came to grief, unless it can go on."""
        if not (self.path / CHECKPOINT).exists():
            with suppress(OSError):  # what cannot be written cannot be removed either
                (self.path / RECORD).unlink(missing_ok=True)

    def _record(self, status: str, files: set[str]) -> None:
        self._files = set(files)
        record = {"training": self._about, "status": status, "files": sorted(files)}
        ownership.write_record(self.path / RECORD, record)


def read_record(path: Path) -> dict[str, Any] | None:
    """Return ``training.json`` of a directory; None if there is none of ours."""
    return ownership.record_of(path / RECORD, "training", "status", "files")


def interrupted(path: Path) -> bool:
    """Say whether a training is here that is not complete."""
    recorded = read_record(path)
    return recorded is not None and recorded["status"] != "complete"
