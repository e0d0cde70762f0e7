"""Rounds of a cohort that were played and that nobody has added up yet.

No decision depends on a sum over rounds: not on a ledger, a comparison with alternatives, a row of
the regret log or the outcomes that exploitability is computed from. A seat therefore copies what
its cohort did into the ``PendingRounds`` of the cohort's ledger, and all of these, its readers, add
up many rounds at a time, in the order in which they were played. The sums are the same to the last
bit whenever that happens. It happens when there is no more room, and before anybody reads a sum:
whatever is read from a ledger, a comparison, the log or a tracker calls ``add_up`` first.

Of a large population rounds are not kept but added up at once, from its own arrays.

Shapes: T rounds, K rows of a ledger, A actions, C policies, M models, d coordinates of an outcome.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled
from regretless.market.core.own_code import NumberArray
from regretless.market.records import Decision

MAX_PENDING_ROUNDS = 64
MAX_PENDING_LOSSES = 16_384  # numbers of the table of losses of all pending rounds
NO_TABLES: Array = np.empty((0, 0, 0))  # of rounds in which nobody has such a table
NO_ROWS: Array = np.empty((0, 0))  # the same of one round
NO_CHOICES: Indices = np.empty((0, 0), dtype=np.intp)  # of rounds in which play is mixed
NO_CHOICES_OF_ROUND: Indices = np.empty(0, dtype=np.intp)  # of one round
ALL_PRESENT: Mask = np.empty((0, 0), dtype=np.bool_)  # of rounds in which all rows took part
NOT_LOGGED: Mask = np.zeros(1, dtype=np.bool_)  # of one round
NO_REGRETS: Array = np.empty((0, 4, 0))  # of rounds of which none is logged
NO_OUTCOME: Array = np.empty(0)


class PlayedRounds(NamedTuple):
    """What K rows did and lost in T rounds, one after the other.

    Attributes
    ----------
    round_indices : int array (T,)
        Counted from 0.
    strategies : array (T, K, A), or empty
        Mixed strategies, zeros for an absent row.
    choices : int array (T, K), or empty
        The action of each row, -1 for an absent one, where all play is pure: one of the two is
        empty.
    predicted : array (T, K, A), or empty
        Losses that the rows expected; empty where they expect none.
    losses : array (T, K, A)
        Losses of all actions at the outcome.
    present : bool array (T, K), or empty
        Which rows took part; empty where all did.
    suggested : int array (T, C, 1) or (T, C, K)
        The action that each policy suggested to all rows, or to each.
    model_actions : int array (T, K, M)
        The action that each model suggested to each row.
    outcomes : array (T, d)
    is_logged : bool array (T,)
        After which rounds the regret log has the regrets so far.
    regret_sums : array (n, 4, K)
        These regrets, summed over the rounds so far: the ledger writes them.
    """

    round_indices: Indices
    strategies: Array
    choices: Indices
    predicted: Array
    losses: Array
    present: Mask
    suggested: Indices
    model_actions: Indices
    outcomes: Array
    is_logged: Mask = NOT_LOGGED
    regret_sums: Array = NO_REGRETS

    def since(self, place: int) -> "PlayedRounds":
        """Return the rounds from a place on, as of who did not want those before it."""
        return self if place == 0 else self._between(place, len(self.losses))

    def until(self, place: int) -> "PlayedRounds":
        """Return the rounds before a place."""
        return self if place == len(self.losses) else self._between(0, place)

    def _between(self, first: int, end: int) -> "PlayedRounds":
        """Return the rounds from the place ``first`` to the one before ``end``."""
        n_logged_before = int(self.is_logged[:first].sum())
        n_logged_until_end = int(self.is_logged[:end].sum())
        return PlayedRounds(
            round_indices=self.round_indices[first:end],
            strategies=self.strategies[first:end],
            choices=self.choices[first:end],
            predicted=self.predicted[first:end],
            losses=self.losses[first:end],
            present=self.present[first:end],
            suggested=self.suggested[first:end],
            model_actions=self.model_actions[first:end],
            outcomes=self.outcomes[first:end],
            is_logged=self.is_logged[first:end],
            regret_sums=self.regret_sums[n_logged_before:n_logged_until_end],
        )


def one_round(
    decision: Decision,
    losses: Array,
    *,
    suggested: Indices,
    model_actions: Indices = NO_CHOICES,
    round_index: int = 0,
    outcome: Array = NO_OUTCOME,
) -> PlayedRounds:
    """Return a single round as ``PlayedRounds``, whose arrays are views of those of the round.

    Parameters
    ----------
    decision : Decision
        Of the K rows.
    losses : array (K, A)
        Losses of all actions at the outcome.
    suggested : int array (C,), or (C, K)
        What each policy suggested, or what it did to each row.
    model_actions : int array (K, M)
        What each model suggested to each row.
    round_index : int
        Counted from 0.
    outcome : array (d,)
    """
    strategies = NO_TABLES
    choices = NO_CHOICES
    if decision.choices is None:
        strategies = decision.probabilities[np.newaxis]
    else:
        choices = decision.choices[np.newaxis]
    if suggested.ndim == 1:
        suggested = suggested[:, np.newaxis]
    return PlayedRounds(
        round_indices=np.array([round_index]),
        strategies=strategies,
        choices=choices,
        predicted=NO_TABLES if decision.predicted is None else decision.predicted[np.newaxis],
        losses=losses[np.newaxis],
        present=ALL_PRESENT if decision.present is None else decision.present[np.newaxis],
        suggested=suggested[np.newaxis],
        model_actions=model_actions[np.newaxis],
        outcomes=outcome[np.newaxis],
    )


@compiled()
def _keep_round(
    place: int,
    round_index: int,
    strategies: Array,
    choices: Indices,
    predicted: Array,
    losses: Array,
    outcome: Array,
    kept_round_indices: Indices,
    kept_strategies: Array,
    kept_choices: Indices,
    kept_predicted: Array,
    kept_losses: Array,
    kept_outcomes: Array,
) -> None:
    """Copy a round to its place among those that are kept (compiled).

    Parameters
    ----------
    place : int
        One of T.
    round_index : int
        Counted from 0.
    strategies, choices : arrays (K, A) and (K,), one of them empty
        What each row played, mixed or pure.
    predicted : array (K, A), or empty
        Losses that the rows expected.
    losses : array (K, A)
        Losses of all actions.
    outcome : array (d,)
    kept_round_indices, kept_strategies, kept_choices, kept_predicted, kept_losses, kept_outcomes
        Arrays (T, ...), written at the place; those of what is empty may be empty.
    """
    kept_round_indices[place] = round_index
    if len(choices):
        kept_choices[place] = choices
    else:
        kept_strategies[place] = strategies
    if len(predicted):
        kept_predicted[place] = predicted
    kept_losses[place] = losses
    kept_outcomes[place] = outcome


class PendingRounds:
    """Copies of the rounds of a cohort that its readers have not added up yet.

    Attributes
    ----------
    n_rounds : int
        How many rounds are kept.
    """

    def __init__(self) -> None:
        self.n_rounds = 0
        self._room = 0  # rounds
        self._kind: object = None  # of the rounds that there is room for: their shapes
        self._kept: PlayedRounds | None = None  # with room for more than were played
        self._is_logged = NOT_LOGGED
        # Who waits for the rounds that are kept, in this order, and the place of the first that it
        # waits for: that of a round to come where it has added up all of them.
        self._waiting: dict[RoundReader, int] = {}
        # The regrets that were written when their writer added up alone (n, 4, K), in this order.
        self._written_regret_sums: list[Array] = []

    def add(
        self,
        decision: Decision,
        losses: Array,
        *,
        suggested: Indices,
        model_actions: Indices,
        round_index: int,
        outcome: Array,
        readers: Sequence["RoundReader"],
    ) -> None:
        """Keep a copy of a round, or add it up at once where the population is large.

        ``readers`` add it up, in this order; the other parameters are those of ``one_round``.
        """
        kind = (
            decision.choices is None,
            decision.predicted is None,
            decision.present is None,
            suggested.shape,
            model_actions.shape,
        )
        if self.n_rounds == self._room or kind != self._kind:
            self.add_up()
            if kind != self._kind:
                self._make_room(
                    one_round(
                        decision,
                        losses,
                        suggested=suggested,
                        model_actions=model_actions,
                        outcome=outcome,
                    )
                )
                self._kind = kind
        kept = self._kept
        if kept is None:
            played = one_round(
                decision,
                losses,
                suggested=suggested,
                model_actions=model_actions,
                round_index=round_index,
                outcome=outcome,
            )
            for reader in readers:
                reader.add_played(played)
            return
        place = self.n_rounds
        choices = decision.choices
        predicted = decision.predicted
        _keep_round(
            place,
            round_index,
            decision.probabilities if choices is None else NO_ROWS,
            NO_CHOICES_OF_ROUND if choices is None else choices,
            NO_ROWS if predicted is None else predicted,
            losses,
            outcome,
            kept.round_indices,
            kept.strategies,
            kept.choices,
            kept.predicted,
            kept.losses,
            kept.outcomes,
        )
        if decision.present is not None:
            kept.present[place] = decision.present
        if suggested.ndim > 1:
            kept.suggested[place] = suggested
        elif len(suggested):
            kept.suggested[place, :, 0] = suggested
        if model_actions.size:
            kept.model_actions[place] = model_actions
        self.n_rounds = place + 1
        if place == 0:
            for reader in readers:
                self.wait(reader)

    def wait(self, reader: "RoundReader") -> None:
        """Let somebody add up the last round that was kept, too, and those that will be."""
        if reader not in self._waiting:
            reader.pending = self
            self._waiting[reader] = self.n_rounds - 1

    def is_awaited_by(self, reader: "RoundReader") -> bool:
        """Whether a reader has not added up the last round that was kept."""
        return self._waiting.get(reader, self.n_rounds) < self.n_rounds

    def log_last(self, reader: "RoundReader") -> None:
        """Let somebody log the last round that was kept, with the regrets after it.

        The ledger that writes these regrets must not have added it up yet.
        """
        self._is_logged[self.n_rounds - 1] = True
        self.wait(reader)

    def add_up_of(self, reader: "RoundReader") -> None:
        """Let one reader add up the rounds that it waits for, while others go on waiting.

        It waits for some (``is_awaited_by``).
        """
        place = self._waiting[reader]
        self._waiting[reader] = self.n_rounds  # so that its own reading meanwhile adds nothing up
        is_logged = self._is_logged[place : self.n_rounds]
        rounds = self._rounds_from(place, self._room_for_regrets(is_logged))
        reader.add_played(rounds)
        if reader.writes_regrets:
            self._written_regret_sums.append(rounds.regret_sums)

    def add_up(self) -> None:
        """Let all who wait add up the rounds that are kept, of which none is left then."""
        if self._kept is None or self.n_rounds == 0:
            return
        n_rounds = self.n_rounds
        waiting = self._waiting
        regret_sums = self._room_for_regrets(self._is_logged[:n_rounds])
        if self._written_regret_sums:
            written = np.concatenate(self._written_regret_sums)
            regret_sums[: len(written)] = written
        rounds = self._rounds_from(0, regret_sums)
        self.n_rounds = 0  # so that nobody who reads meanwhile adds them up again
        self._waiting = {}
        self._written_regret_sums = []
        self._is_logged = np.zeros(self._room, dtype=np.bool_)
        for reader, place in waiting.items():
            if place < n_rounds:
                reader.add_played(rounds.since(place))

    def _room_for_regrets(self, is_logged: Mask) -> Array:
        """Return room for the regrets after those of some rounds that are logged (n, 4, K)."""
        assert self._kept is not None  # noqa: S101 - there are rounds
        return np.empty((np.count_nonzero(is_logged), 4, self._kept.losses.shape[1]))

    def _rounds_from(self, first: int, regret_sums: Array) -> PlayedRounds:
        """Return the rounds that are kept from a place on, with the regrets of the logged ones."""
        kept = self._kept
        assert kept is not None  # noqa: S101 - there are rounds
        rounds = slice(first, self.n_rounds)
        return PlayedRounds(
            round_indices=kept.round_indices[rounds],
            strategies=kept.strategies[rounds],
            choices=kept.choices[rounds],
            predicted=kept.predicted[rounds],
            losses=kept.losses[rounds],
            present=kept.present[rounds],
            suggested=kept.suggested[rounds],
            model_actions=kept.model_actions[rounds],
            outcomes=kept.outcomes[rounds],
            is_logged=self._is_logged[rounds],
            regret_sums=regret_sums,
        )

    def _make_room(self, first: PlayedRounds) -> None:
        """Make room for rounds like a first one; for none of a large population."""
        room = min(MAX_PENDING_ROUNDS, MAX_PENDING_LOSSES // max(first.losses.size, 1))
        self._room = room
        self._kept = None
        if room < 2:  # a single round is as well added up at once
            return
        self._kept = PlayedRounds(
            round_indices=np.empty(room, dtype=np.intp),
            strategies=_with_room(first.strategies, room),
            choices=_with_room(first.choices, room),
            predicted=_with_room(first.predicted, room),
            losses=_with_room(first.losses, room),
            present=_with_room(first.present, room),
            suggested=_with_room(first.suggested, room),
            model_actions=_with_room(first.model_actions, room),
            outcomes=_with_room(first.outcomes, room),
        )
        self._is_logged = np.zeros(room, dtype=np.bool_)


def _with_room(table: NumberArray, rounds: int) -> NumberArray:
    """Return a table (T, ...) for so many rounds, not set; an empty one stays as it is."""
    if len(table) == 0:
        return table
    roomy_table: NumberArray = np.empty_like(table, shape=(rounds, *table.shape[1:]))
    return roomy_table


class RoundReader:
    """Who adds rounds up.

    Attributes
    ----------
    pending : PendingRounds
        The rounds that it has not added up yet; none until it waits for some.
    writes_regrets : bool
        Whether it writes the regrets after the rounds that are logged: a ledger does, and no other.
    """

    pending = PendingRounds()
    writes_regrets: ClassVar[bool] = False

    def add_played(self, rounds: PlayedRounds) -> None:
        """Add rounds that follow those before; nothing may be kept of their arrays."""
        raise NotImplementedError


class SumOfRounds:
    """A table of a ``RoundReader``, to which pending rounds are added before it is read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = f"_{name}"

    def __get__(self, reader: RoundReader | None, owner: type) -> Any:
        if reader is None:  # asked of the class, as by ``help``
            return self
        if reader.pending.is_awaited_by(reader):
            reader.pending.add_up_of(reader)
        return vars(reader)[self._attribute]

    def __set__(self, reader: RoundReader, table: Any) -> None:
        vars(reader)[self._attribute] = table
