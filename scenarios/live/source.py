"""A scenario as it was read, and as it was changed on the live page."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import assign, find, override, read
from regretless.scenarios.config.validation import validated


@dataclass(frozen=True)
class Source:
    """A scenario: its name or path, the parsed file as it was changed, and the file's folder."""

    name: str
    raw: dict[str, Any]
    origin: Path

    @classmethod
    def of(cls, name: str, assignments: tuple[str, ...] = ()) -> "Source":
        """Read a scenario by name or path; UserError if there is none."""
        path = find(name)
        return cls(name, override(read(path), assignments), path.resolve().parent)

    def scenario(self) -> Scenario:
        """Return what is to be built; UserError if the file does not validate."""
        return Scenario(validated(copy.deepcopy(self.raw), origin=self.origin))

    def changed(self, key: str, value: Any) -> "Source":
        """Return it with a value under a dotted key."""
        raw = copy.deepcopy(self.raw)
        assign(raw, key, value)
        return replace(self, raw=raw)

    def portable(self, folder: Path) -> dict[str, Any]:
        """Return the parsed file for another folder.

        Paths that count from the file's own folder become absolute.
        """
        raw = copy.deepcopy(self.raw)
        if folder == self.origin:
            return raw
        for table in ("data", "game", "network"):
            file_name = raw.get(table, {}).get("file")
            if file_name and (self.origin / file_name).is_file():
                raw[table]["file"] = str((self.origin / file_name).resolve())
        return raw
