"""A run directory as an object whose tables are read when they are asked for."""

from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.logs import directory

SHORT = {"scores": "forecast_scores"}


class PlayedRun:
    """What a run left behind: ``manifest``, and its tables as attributes by their names.

    ``run.scores`` is the table ``forecast_scores``.

    Parameters
    ----------
    path : str or Path
        A directory that ``regretless run`` wrote.

    Raises
    ------
    UserError
        If it is no run directory, or a table is asked for that the run did not keep.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest: dict[str, Any] = self._read(None)[0]

    def table(self, name: str) -> pd.DataFrame:
        """Read a table by its name without the ending."""
        _, found = self._read(name)
        if name not in found:
            raise UserError(f"{self.path} has no table '{name}'; {closest(name, self.tables)}")
        return found[name]

    @property
    def tables(self) -> list[str]:
        """Names of the tables that are there."""
        return sorted({file.stem for file in self.path.iterdir() if file.name in directory.KNOWN})

    def _read(self, name: str | None) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
        others = {file.partition(".")[0] for file in directory.KNOWN} - {name}
        return directory.read_run(self.path, without=others)

    def __getattr__(self, name: str) -> pd.DataFrame:
        wanted = SHORT.get(name, name)
        if any(file.startswith(f"{wanted}.") for file in directory.KNOWN):
            return self.table(wanted)
        raise AttributeError(f"a run has no '{name}'; it has {', '.join(self.tables)}")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self.tables, *SHORT])

    def __repr__(self) -> str:
        return f"<run of {self.manifest['scenario']} in {self.path}: {', '.join(self.tables)}>"


def read_run(path: str | Path) -> PlayedRun:
    """Open a run directory; UserError if it is none."""
    return PlayedRun(path)
