"""A chunk of a run's logs: the rows of all tables of some rounds that follow one another.

The journal has one open chunk, to which it adds rounds and rows. A round adds no more than what
later rounds change: of the tables ``rounds``, ``forecasts`` and ``regret_log`` what came is kept as
it is. Columns of many rounds are made when the chunk is closed, and a frame when somebody asks for
one: most chunks of a run that is not written to disk are never looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.game.protocols import Cohort, Payoff
from regretless.market.logs.logged_play import LoggedPlay, columns_of_play
from regretless.market.logs.logged_rounds import (
    LoggedRound,
    columns_of_forecasts,
    columns_of_rounds,
)
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, concatenate_columns

MARKET_TABLES = ("trades", "quotes", "sales")  # have rows of every round
TABLES = (
    *("rounds", "forecasts", "regret_log", "windows", "accounts", "states", "measures"),
    *MARKET_TABLES,
)


class Chunk:
    """The rows of some rounds.

    Parameters
    ----------
    cohorts, logged : sequences
        The cohorts, and which agents of each are logged.
    payoff : Payoff or None
        What the leader of these rounds is paid.

    Attributes
    ----------
    n_rounds : int
        How many rounds have rows here.
    rounds : list of LoggedRound
        As they came, while the chunk is open.
    plays : list of LoggedPlay
        One per cohort.
    """

    def __init__(
        self, cohorts: Sequence[Cohort], logged: Sequence[Logged], payoff: Payoff | None
    ) -> None:
        self.n_rounds = 0
        self.rounds: list[LoggedRound] = []
        self.plays = [
            LoggedPlay(cohort, of_cohort) for cohort, of_cohort in zip(cohorts, logged, strict=True)
        ]
        self._payoff = payoff
        # By table the rows of one round after another, and which rounds these are.
        self._parts: dict[str, list[Mapping[str, NDArray[Any]]]] = {table: [] for table in TABLES}
        self._rounds_of_parts: dict[str, list[int]] = {table: [] for table in TABLES}
        self._closed: dict[str, Columns] = {}  # tables whose columns were made by ``close``
        self._frames: dict[str, pd.DataFrame] = {}  # tables of a closed chunk that were asked for
        self._is_open = True

    def add_rows(self, table: str, round_index: int, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows of a round, as far as there are any, to one of the tables of rounds' rows."""
        row_count = len(next(iter(columns.values()), ()))
        parts = self._parts[table]
        # A market's table keeps its columns and their types although nothing was traded.
        is_first_of_market = table in MARKET_TABLES and columns and not parts
        if row_count or is_first_of_market:
            parts.append(columns)
            self._rounds_of_parts[table].append(round_index)

    def add_windows(self, parts: Sequence[Columns]) -> None:
        """Add the rows of windows that have ended; they say themselves of which rounds."""
        self._parts["windows"] += parts

    def close(self) -> None:
        """Make columns of the rounds as they came, which take more room; no more are added."""
        for table in TABLES:
            if table != "regret_log":  # its columns take more room than what they are made of
                self._closed[table] = self.columns(table)
        self.rounds = []
        self._parts = {}
        self._rounds_of_parts = {}
        self._is_open = False

    def columns(self, table: str) -> Columns:
        """Return the columns of a table; none where there are no rows."""
        if table in self._closed:
            return self._closed[table]
        if table == "rounds":
            return columns_of_rounds(self.rounds, self._payoff) if self.rounds else {}
        if table == "forecasts":
            return columns_of_forecasts(self.rounds)
        if table == "regret_log":
            return columns_of_play(self.plays)
        parts = self._parts[table]
        if table == "windows" or not parts:
            return concatenate_columns(parts)
        row_counts = [len(next(iter(part.values()))) for part in parts]
        round_column = np.repeat(self._rounds_of_parts[table], row_counts)
        return {"round": round_column, **concatenate_columns(parts)}

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table."""
        if self._is_open:
            return make_frame(self.columns(table))
        if table not in self._frames:
            self._frames[table] = make_frame(self.columns(table))
            self._closed.pop(table, None)  # of two copies one is enough
        return self._frames[table]


def make_frame(columns: Columns) -> pd.DataFrame:
    """Make a frame of columns; text columns keep their type without rows.

    Of an empty array of objects pandas cannot tell that its values would have been text.
    """
    frame = pd.DataFrame(columns)
    if len(frame):
        return frame
    text_columns = [name for name in frame if frame[name].dtype == object]
    if not text_columns:
        return frame
    return frame.astype(dict.fromkeys(text_columns, "str"))
