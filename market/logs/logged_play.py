"""What the logged agents of a cohort did round by round, and their regrets so far.

The journal has one ``LoggedPlay`` per cohort, and calls ``add`` in every round of the regret log. A
round writes no more than the actions. Losses and the ledger's sums of regrets come when the ledger
adds up what is pending (``market.regret.pending_rounds``). ``columns_of_play`` makes the columns of
the regret log of all cohorts at once.
"""

from collections.abc import Sequence

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.own_code import NumberArray
from regretless.market.game.protocols import Cohort
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, concatenate_columns
from regretless.market.records import Decision
from regretless.market.regret.ledger import MEASURES
from regretless.market.regret.pending_rounds import PlayedRounds, RoundReader
from regretless.market.regret.played_losses import fill_losses_of_rounds, write_played_losses

LOGGED_MEASURES = ("external", "swap", "decision_swap")
FIRST_ROOM = 16  # rounds for which there is room at first


class LoggedPlay(RoundReader):
    """Rounds of the n logged agents of one cohort, whom k rows of the ledger score.

    Parameters
    ----------
    cohort : Cohort
        Whose agents they are.
    logged : Logged
        Which of them are logged.
    """

    def __init__(self, cohort: Cohort, logged: Logged) -> None:
        self._cohort = cohort
        self._logged = logged
        self._row_numbers = np.arange(cohort.ledger.shape[0])[logged.rows]  # (k,)
        cohort.ledger.pending.add_up()  # rounds of another log, of which this one has none
        self._rounds: list[int] = []  # that were added
        # How many rounds the rows had played by then: one number, or one for each row (k,).
        self._rounds_of_rows: list[int | Indices] = []
        n_agents = len(logged.ids)
        n_rows = len(self._row_numbers)
        # By round the actions, -1 for the absent (T, n), with room for more.
        self._actions: Indices = np.empty((0, n_agents), dtype=np.intp)
        # By round the losses of the rows' mixed strategies (t, k), and the rows' regrets by measure
        # (t, 4, k), summed over the rounds so far: in parts below one another, as they came.
        self._losses: list[Array] = [np.empty((0, n_rows))]
        self._regrets: list[Array] = [np.empty((0, 4, n_rows))]

    def add(self, round_index: int, decision: Decision, losses: Array) -> None:
        """Note a round after which the ledger stands as it is now; ``losses`` are (K, A)."""
        n_logged = len(self._rounds)
        if n_logged == len(self._actions):
            self._actions = _with_room(self._actions, max(2 * n_logged, FIRST_ROOM))
        rows = self._logged.rows
        ledger = self._cohort.ledger
        self._rounds.append(round_index)
        rounds_of_rows = ledger.rounds
        if isinstance(rounds_of_rows, np.ndarray):
            rounds_of_rows = rounds_of_rows[rows]
        self._rounds_of_rows.append(rounds_of_rows)
        self._actions[n_logged] = decision.actions[self._logged.agents]
        if ledger.pending.is_awaited_by(ledger):
            ledger.pending.log_last(self)
            return
        # of a large population, or somebody has read the ledger within the round
        ledger.pending.add_up()
        played_losses = np.empty((1, len(self._row_numbers)))
        write_played_losses(decision, losses, self._row_numbers, played_losses[0])
        self._losses.append(played_losses)
        self._regrets.append(ledger.regret_sums(rows)[np.newaxis])

    def add_played(self, rounds: PlayedRounds) -> None:
        played_losses = np.empty((len(rounds.regret_sums), len(self._row_numbers)))
        fill_losses_of_rounds(
            rounds.strategies,
            rounds.choices,
            rounds.losses,
            rounds.is_logged,
            self._row_numbers,
            played_losses,
        )
        self._losses.append(played_losses)
        self._regrets.append(rounds.regret_sums[:, :, self._logged.rows])

    def columns(self) -> Columns:
        """Return a row per round and logged agent, absent ones with action -1, in this order."""
        self._cohort.ledger.pending.add_up()
        n_rounds = len(self._rounds)
        losses = np.concatenate(self._losses)
        ids = self._logged.ids
        row_of = self._logged.row_of
        rounds_of_rows = self._rounds_of_rows_by_round()[:, np.newaxis]  # (T, 1, k) or (T, 1, 1)
        regrets_per_round = np.concatenate(self._regrets) / np.maximum(rounds_of_rows, 1.0)
        columns: Columns = {
            "round": np.repeat(np.array(self._rounds, dtype=np.intp), len(ids)),
            "agent": np.tile(ids, n_rounds),
            "action": self._actions[:n_rounds].ravel(),
            "loss": losses[:, row_of].ravel(),
        }
        for measure in LOGGED_MEASURES:
            if self._cohort.ledger.has_regret(measure):
                regrets = regrets_per_round[:, MEASURES.index(measure)]  # (T, k)
                columns[f"{measure}_regret"] = regrets[:, row_of].ravel()
            else:
                columns[f"{measure}_regret"] = np.full(n_rounds * len(ids), np.nan)
        return columns

    def _rounds_of_rows_by_round(self) -> Indices:
        """Return how many rounds each row had played by then (T, k), or all of them (T, 1)."""
        if all(isinstance(rounds, int) for rounds in self._rounds_of_rows):
            return np.array(self._rounds_of_rows)[:, np.newaxis]
        n_rows = len(self._row_numbers)
        return np.array([np.broadcast_to(rounds, n_rows) for rounds in self._rounds_of_rows])

    def __len__(self) -> int:
        """Return how many rounds were added."""
        return len(self._rounds)


def _with_room(table: NumberArray, rounds: int) -> NumberArray:
    """Return a table (T, ...) with room for so many rounds, the later ones not set."""
    larger: NumberArray = np.empty_like(table, shape=(rounds, *table.shape[1:]))
    larger[: len(table)] = table
    return larger


def columns_of_play(plays: Sequence[LoggedPlay]) -> Columns:
    """Return the columns of the regret log: a row per round and logged agent who was present.

    Rounds follow one another, in each of them the cohorts in their order. There are no columns
    where nobody was.
    """
    parts = [play.columns() for play in plays if len(play)]
    columns = concatenate_columns(parts)
    if not columns:
        return {}
    is_present = columns["action"] >= 0
    if not is_present.any():
        return {}
    if not is_present.all():
        columns = {name: values[is_present] for name, values in columns.items()}
    if len(parts) > 1:
        by_round = np.argsort(columns["round"], kind="stable")
        columns = {name: values[by_round] for name, values in columns.items()}
    return columns
