"""What a scenario or a study may not say is one line with the cure: ``refusals/cases.txt``.

Every case goes through a file and the command, which ends with status 2 and writes nothing.
"""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli_w
from command_results import RefusalOf

from regretless.scenarios.config.files import find, override, read

HOME = Path(__file__).parent / "refusals"


class Case(NamedTuple):
    """A scenario, what is changed in it, and what the line has to say."""

    base: str
    changes: tuple[str, ...]
    says: tuple[str, ...]


def read_cases() -> list[Case]:
    """Read ``cases.txt``: what is changed in which file, and what the refusal says."""
    cases = []
    base = ""
    form = ""
    for line in (HOME / "cases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            base, _, form = (part.strip() for part in line[3:].partition(":"))
        elif line and not line.startswith("#"):
            keys, _, complaint = line.partition(" | ")
            changes = tuple(keys.split(" & "))
            if form:
                changes = tuple((form % changes).split(" & "))
            cases.append(Case(base, changes, tuple(complaint.split(" & "))))
    return cases


def with_change(raw: dict[str, Any], change: str) -> dict[str, Any]:
    """Return a table with one key set, or dropped if the change begins with a minus sign."""
    if not change.startswith("-"):
        return override(raw, [change])
    *above, last = change[1:].split(".")
    table: Any = raw
    for step in above:
        table = (
            {row["name"]: row for row in table}[step] if isinstance(table, list) else table[step]
        )
    del table[last]
    return raw


def line_of(case: Case, refusal_of: RefusalOf) -> str:
    """Return the line with which a case is refused, in this folder."""
    base_file = HOME / f"{case.base}.toml"
    raw = read(base_file if base_file.exists() else find(case.base))
    for change in case.changes:
        raw = with_change(raw, change)
    Path("bad.toml").write_text(tomli_w.dumps(raw), encoding="utf-8")
    command = ("study", "--jobs", "1") if case.base == "sweep" else ("run",)
    return refusal_of(*command, "bad.toml", "--out", "out", "--quiet")


CASES = read_cases()


@pytest.mark.parametrize("base", dict.fromkeys(case.base for case in CASES))
def test_it_is_one_line_with_the_key_and_the_cure(
    base: str, working_folder: Path, refusal_of: RefusalOf
) -> None:
    for input_file in (*HOME.glob("*.csv"), HOME / "tiny.toml"):
        shutil.copy(input_file, working_folder)
    for case in (case for case in CASES if case.base == base):
        line = line_of(case, refusal_of)
        assert [part for part in case.says if part not in line] == [], (case.changes, line)
        assert len(line) < 1000, line
        assert not Path("out").exists(), case
