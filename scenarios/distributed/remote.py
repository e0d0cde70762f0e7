"""The game as its conductor has it: the cohorts that are shared out are stand-ins there.

What the agents of all shares come to together is asked for in the rounds in which a market or an
adversary needs it, and their regrets where an agent of the user's own reads them.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Game, cohorts_of
from regretless.market.game.seats import Seat
from regretless.market.records import Round
from regretless.scenarios.distributed.record import Record
from regretless.scenarios.distributed.share import Share
from regretless.scenarios.distributed.tasks import Question

AskAll = Callable[[Question], list[Any]]  # asks all shares, and returns what they say


def by_round_and_agent(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all frames in one, by round and agent; the first if none has rows."""
    frames_with_rows = [frame for frame in frames if len(frame)]
    if not frames_with_rows:
        return frames[0]
    return pd.concat(frames_with_rows).sort_values(["round", "agent"], ignore_index=True)


class RemoteCohort(Cohort):
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here."""

    def __init__(self, cohort: Cohort) -> None:
        self.name = cohort.name
        self.kind = cohort.kind
        self.utility = cohort.utility
        self.block = cohort.block
        self.policies = cohort.policies
        self.loss = cohort.loss

    def refuse(self, *_: object) -> NoReturn:
        """Raise UserError: workers know what its agents do."""
        raise UserError(
            f"cohort.{self.name} is played by workers, and what its agents do is not known here; "
            "run without --workers and --scheduler"
        )

    def decide(self, *_: object) -> NoReturn:
        """Raise UserError: nobody is asked here."""
        self.refuse()

    ledger = row_of = rule = property(refuse)


class RemoteSeat(Seat):
    """The seat of a cohort whose agents are elsewhere: here nobody decides, or is remembered."""

    def __init__(self, seat: Seat) -> None:
        self.whole = seat
        self.cohort = RemoteCohort(seat.cohort)

    def decide(self, *_: Any, round_index: int, affordable: Any) -> None:
        """Let nobody decide."""

    def record(self, *_: Any, round_index: int, outcome: Array) -> None:
        """Count the rounds alone, which bounds depend on."""
        self.whole.cohort.ledger.rounds = self.whole.attendance.spent(round_index + 1)

    def players(self) -> dict[str, object]:
        """Nobody has a memory here."""
        return {}


class SharedGame(Game):
    """A game some of whose cohorts are elsewhere; its other parts are those of the whole game.

    Parameters
    ----------
    whole : Game
        The game with all agents.
    places : collection of int
        The places of the cohorts that are elsewhere.
    record : Record
        What agents hear.
    ask_all : callable
        Asks all shares a question.
    """

    def __init__(
        self, whole: Game, places: Collection[int], record: Record, ask_all: AskAll
    ) -> None:
        # It is the whole game but for its seats, whatever a game consists of. The parent's __init__
        # would begin a new history, and introduce the players to each other once more.
        vars(self).update(vars(whole))
        self.seats = tuple(
            RemoteSeat(seat) if place in places else seat for place, seat in enumerate(whole.seats)
        )
        self.cohorts = cohorts_of(self.seats)
        self._record = record
        self._ask_all = ask_all

    def refuse_if_agents_are_elsewhere(self) -> None:
        """Raise UserError, which names the first cohort whose agents are elsewhere."""
        for cohort in self.cohorts:
            if isinstance(cohort, RemoteCohort):
                cohort.refuse()

    def regret_log_of_all(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Ask for the rows of agents elsewhere, and put them among ours, by round and agent."""
        return by_round_and_agent([rows, *self._ask_all(Share.regret_log)])

    def ask_market_to_clear(self, market: Any, current: Round) -> object:
        """Ask the market for the outcome, given what all come to, wherever they are."""
        load = market.aggregate(current.decisions) + sum(self._ask_all(Share.market_load))
        return market.answer(current.outcome, load)

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to, wherever they are."""
        self._record.end_round(played.outcome)
        total_of = super().sums(played)
        for sums_of_share in self._ask_all(Share.sums):
            for name, values in sums_of_share.items():
                total_of[name] = total_of[name] + values
        return total_of
