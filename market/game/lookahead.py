"""What would be played if: the game from here on against imagined outcomes, on copies.

Forecasters and all cohorts whose mixed strategy is foreseeable are copied and play on; the true
ones notice nothing. Every random generator of a copy is replaced by a fresh stream: a copied one
would give away draws that are still to come. Nobody gets to see the copies, only their mixed
strategies.

Only what a round changes is copied. Functions are shared as they are, whatever their closures hold:
a player keeps its generators in attributes. A cohort's losses, ledger and coefficients are shared
with its copy, which never writes to them (``Cohort.fixed_parts``); a cohort without memory
that hears every forecast at once is shared as a whole, since its ``strategy`` has no side effects.
The context is that of the present round throughout, and what follows from the outcome alone is
computed once: it is the same in all imagined rounds.

What was imagined is kept until the next round. If the outcome that then happened is that of an
imagined path, and nothing that is drawn has an effect on anybody, the true game has gone along the
path, whose later rounds are imagined already (``ImaginedPath.came_true``). The adversary's next
look ahead plays one more round of it in place of all.

Scripted agents take no part: a call of their ``act`` could have side effects.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.fixed import Fixed
from regretless.market.core.own_code import read_only
from regretless.market.core.plain_copy import NotPlainError, plain_copy
from regretless.market.core.randomness import stream
from regretless.market.game.attendance import ALWAYS
from regretless.market.game.seats import Seat
from regretless.market.losses.basis import Basis
from regretless.market.records import NO_DEVIATIONS, Context, Mixture

Strategies = tuple[Array | None, ...]
MAX_KEPT_PATHS = 2  # of a round: each holds copies of all players that change


@dataclass(eq=False, slots=True)
class GameView:
    """Who takes part in the game after so many rounds; made anew in each, and not written to."""

    blocks: Sequence[Any]
    seats: Sequence[Seat]
    rounds: int
    # From outcomes (m, d) to what a market would make of them in the next round, if there is one.
    moved: Callable[[Array], Array | None] | None = None
    last_outcome: Array | None = None  # of the round before (d,); None before the first
    # What was imagined in the round before (``Rollout``), replaced by what is imagined in this one.
    kept_paths: "list[ImaginedPath]" = field(default_factory=list)


def strategies_of_play(view: GameView, mixtures: Sequence[Mixture], context: Context) -> Strategies:
    """Return each cohort's mixed strategy (K, A) given the mixtures; None if absent or scripted.

    That of a row that is absent is zero; where nobody is there at all, so is everybody's.
    """
    strategies: list[Array | None] = []
    for seat in view.seats:
        cohort = seat.cohort
        if not cohort.foreseeable:
            strategies.append(None)
            continue
        present_rows = None  # nobody enters or leaves
        if seat.attendance is not ALWAYS:
            present_rows = seat.attendance.present_rows(view.rounds)
        if present_rows is None or present_rows.any():
            planned = cohort.strategy(mixtures[cohort.block], context)
            if seat.deviations is not NO_DEVIATIONS:
                planned = seat.deviations.apply_to_strategy(planned, context)
            if present_rows is not None:
                planned = np.where(present_rows[:, None], planned, 0.0)
            strategies.append(read_only(planned))
        elif any(seat.is_present(view.rounds) for seat in view.seats):
            strategies.append(None)
        else:
            strategies.append(np.zeros(cohort.ledger.shape))
    return tuple(strategies)


class Rollout:
    """Plays copies of forecasters and cohorts against imagined outcomes, in a round's context.

    Parameters
    ----------
    view : GameView
        The true players.
    context : Context
        Of the present round, and of all rounds that are imagined.
    mixtures : sequence of Mixture
        What the true forecasters have announced in the present round, per block.
    """

    def __init__(self, view: GameView, context: Context, mixtures: Sequence[Mixture]) -> None:
        self._view = view
        self._context = context
        self._mixtures = mixtures
        self._copier = PlayerCopier()
        self._continued_path = self._path_that_came_true()
        self._paths = view.kept_paths
        self._paths.clear()

    def __call__(self, outcome: ArrayLike, rounds: int, *, seed: int) -> list[Strategies]:
        """Return the mixed strategies of the rounds to come if one outcome happens in all of them.

        The present round is one of the ``rounds``; ``seed`` is of the copies' fresh streams. Asked
        for more rounds of the same outcome and seed, it plays on where it stopped.
        """
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; roll out at least 1")
        imagined_outcome = np.array(outcome, dtype=np.float64)
        path = self._path_of(imagined_outcome, seed)
        path.play_until(rounds)
        return path.strategies[:rounds]

    def _path_of(self, outcome: Array, seed: int) -> "ImaginedPath":
        """Return the path of an outcome: one of this round, the one that came true, or a new one.

        Of this round's paths ``MAX_KEPT_PATHS`` are kept, the first one and the newest among them.
        """
        for path in self._paths:
            if path.seed == seed and same_bytes(path.outcome, outcome):
                return path
        path_that_came_true = self._continued_path
        if path_that_came_true is not None and same_bytes(path_that_came_true.outcome, outcome):
            path = path_that_came_true
            path.seed = seed  # nothing that was drawn matters for it
            self._continued_path = None
        else:
            path = ImaginedPath(self._view, self._context, outcome, seed=seed, copier=self._copier)
        if len(self._paths) == MAX_KEPT_PATHS:
            self._paths.pop()
        self._paths.append(path)
        return path

    def _path_that_came_true(self) -> "ImaginedPath | None":
        """Return the path of the last round along which the game has gone, less that round."""
        for path in self._view.kept_paths:
            if path.came_true(self._view, self._context, self._mixtures):
                path.drop_first_round()
                return path
        return None


class ImaginedPath:
    """The game from a round on if one outcome happens in every round, played on copies.

    Attributes
    ----------
    outcome : array (d,)
        What happens in every round.
    seed : int
        Of the copies' random streams.
    strategies : list
        What ``strategies_of_play`` returns of every round played so far.
    """

    def __init__(
        self,
        view: GameView,
        context: Context,
        outcome: Array,
        *,
        seed: int,
        copier: "PlayerCopier",
    ) -> None:
        self.outcome = outcome
        self.seed = seed
        self.strategies: list[Strategies] = []
        self._mixtures: list[list[Mixture]] = []  # of the same rounds, of every block
        self._context = context
        self._true_view = view
        self._first_round = view.rounds
        self._ignores_draws = ignores_draws(view)
        self._forecast_stream = stream(seed, "rehearsal", "forecast")
        self._view = copier.copied_view(view, seed)
        # What follows from the outcome alone is computed once: it is the same in all rounds.
        self._statistics = [block.basis.transform(outcome) for block in view.blocks]
        self._learning_seats: list[Seat] = []
        self._losses_of_learning_seats: list[Array] = []
        for seat in self._view.seats:
            if seat.cohort.foreseeable and seat.cohort.has_memory:
                self._learning_seats.append(seat)
                self._losses_of_learning_seats.append(seat.cohort.loss.losses(outcome))

    def play_until(self, rounds: int) -> None:
        """Play on until the mixed strategies of so many rounds are known."""
        while len(self.strategies) < rounds:
            if self.strategies:
                self._finish_round()
            mixtures = [block.mixture(self._context) for block in self._view.blocks]
            self._mixtures.append(mixtures)
            self.strategies.append(strategies_of_play(self._view, mixtures, self._context))

    def _finish_round(self) -> None:
        """Draw the forecasts of the last round, and let all copies learn its outcome."""
        view = self._view
        forecasts = [mixture.draw(self._forecast_stream) for mixture in self._mixtures[-1]]
        for seat, losses in zip(self._learning_seats, self._losses_of_learning_seats, strict=True):
            cohort = seat.cohort
            if seat.is_present(view.rounds):
                decision = cohort.decide(forecasts[cohort.block], self._context)
                cohort.learn(decision, losses, self.outcome)
        for index, block in enumerate(view.blocks):
            block.tell(forecasts[index], self.outcome, self._statistics[index])
        self._view = replace(view, rounds=view.rounds + 1)

    def came_true(self, view: GameView, context: Context, mixtures: Sequence[Mixture]) -> bool:
        """Whether the game has gone along this path in its first round.

        Then its later rounds are, bit for bit, what a new path would play from the present round
        on. That takes players on whom nothing that was drawn has an effect, the path's outcome and
        context, and the announcements and the play that were imagined for the present round.
        """
        if len(self.strategies) < 2 or not (self._ignores_draws and ignores_draws(view)):
            return False
        if view.rounds != self._first_round + 1 or not _has_same_players(self._true_view, view):
            return False
        if view.last_outcome is None or not same_bytes(self.outcome, view.last_outcome):
            return False
        if not _is_same_context(self._context, context):
            return False
        for imagined, announced in zip(self._mixtures[1], mixtures, strict=True):
            has_same_points = same_bytes(imagined.points, announced.points)
            if not has_same_points or not same_bytes(imagined.weights, announced.weights):
                return False
        true_play = strategies_of_play(view, mixtures, context)
        return all(map(_is_same_strategy, self.strategies[1], true_play))

    def drop_first_round(self) -> None:
        """Let the path begin a round later."""
        self._first_round += 1
        del self.strategies[0]
        del self._mixtures[0]


def same_bytes(first: Array, second: Array) -> bool:
    """Whether two arrays of one type have the same shape and are equal bit by bit."""
    return first.shape == second.shape and first.tobytes() == second.tobytes()


def _is_same_strategy(first: Array | None, second: Array | None) -> bool:
    """Whether two mixed strategies of a cohort are equal bit by bit, or both None."""
    if first is None or second is None:
        return first is second
    return same_bytes(first, second)


def ignores_draws(view: GameView) -> bool:
    """Whether all players would learn from a round what they learn from it on an imagined path.

    Nobody learns from what was drawn, enters or leaves, deviates from its rule, is short of money
    or hears the forecast late, and no market stands between outcomes and losses.
    """
    if view.moved is not None:
        return False
    for block in view.blocks:
        if block.relay is not None or not block.forecaster.ignores_draws:
            return False
    for seat in view.seats:
        if not seat.attendance.throughout or seat.budget.restricts:
            return False
        if seat.deviations is not NO_DEVIATIONS:
            return False
        cohort = seat.cohort
        if cohort.foreseeable and cohort.has_memory and not cohort.ignores_draws:
            return False
    return True


def _has_same_players(earlier: GameView, view: GameView) -> bool:
    """Whether nobody was replaced since an earlier view of the game."""
    forecasters = zip(earlier.blocks, view.blocks, strict=True)
    if any(before.forecaster is not now.forecaster for before, now in forecasters):
        return False
    return all(before is now for before, now in zip(earlier.seats, view.seats, strict=True))


def _is_same_context(first: Context, second: Context) -> bool:
    """Whether two contexts say the same to everybody."""
    if first.own or second.own or first.index != second.index:
        return False
    return first.names == second.names and same_bytes(first.values, second.values)


class PlayerCopier:
    """Copies forecasters and cohorts so that they can play on, each with fresh random streams."""

    def __init__(self) -> None:
        self._reachable_parts: dict[str, list[Any]] = {}  # by player, what ``_parts_within`` yields

    def copied_view(self, view: GameView, seed: int) -> GameView:
        """Copy forecasters and foreseeable cohorts that change; the others are shared.

        ``seed`` is of the fresh streams.
        """
        # A copied cohort reads the copied relay of its block, with which its forecaster goes on.
        copied_relays = {id(block.relay): copy.copy(block.relay) for block in view.blocks}
        blocks = []
        for block in view.blocks:
            name = f"block {block.name}"
            forecaster = self._copy_player(block.forecaster, name, seed=seed, substitutes={})
            relay = copied_relays[id(block.relay)]
            blocks.append(replace(block, forecaster=forecaster, relay=relay))
        seats = []
        for seat in view.seats:
            cohort = seat.cohort
            hears_late = view.blocks[cohort.block].relay is not None
            if cohort.foreseeable and (cohort.has_memory or hears_late):
                shared_parts = {id(part): part for part in cohort.fixed_parts()}
                if id(cohort.ledger) not in shared_parts:
                    cohort.ledger.pending.add_up()  # so that the copy lacks no round
                cohort = self._copy_player(
                    cohort,
                    f"cohort {cohort.name}",
                    seed=seed,
                    substitutes=shared_parts | copied_relays,
                )
            seats.append(replace(seat, cohort=cohort))
        return replace(view, blocks=blocks, seats=seats)

    def _copy_player(
        self, player: Any, name: str, *, seed: int, substitutes: dict[int, Any]
    ) -> Any:
        """Return a deep copy of a player, with fresh streams in the place of its generators.

        ``substitutes`` has, by the id of an object that the player holds, what the copy holds in
        its place. The true players do not change while a round is looked ahead of: what a copy of
        them would reach is looked up once for all imagined outcomes.
        """
        try:
            return self._copy_plain_player(player, name, seed=seed, substitutes=substitutes)
        except NotPlainError:
            return self._copy_any_player(player, name, seed=seed, substitutes=substitutes)

    def _copy_plain_player(
        self, player: Any, name: str, *, seed: int, substitutes: dict[int, Any]
    ) -> Any:
        """Return a copy of a player that is made of arrays and plain values; NotPlainError if not.

        Parameters are those of ``_copy_player``.
        """
        number = 0  # names a generator's fresh stream, as in ``_copy_any_player``

        def substitute(part: Any) -> Any:
            nonlocal number
            if isinstance(part, Fixed) and part.is_fixed:
                return part
            if isinstance(part, Basis):
                number += not isinstance(part, Fixed)
                return part
            if isinstance(part, np.random.Generator):
                number += 1
                return stream(seed, "rehearsal", name, str(number - 1))
            return None

        return plain_copy(player, substitute, dict(substitutes))

    def _copy_any_player(
        self, player: Any, name: str, *, seed: int, substitutes: dict[int, Any]
    ) -> Any:
        """Return a copy of any player by ``copy.deepcopy``; parameters as of ``_copy_player``."""
        if name not in self._reachable_parts:
            self._reachable_parts[name] = list(_parts_within(player, set(substitutes)))
        memo = dict(substitutes)  # of ``copy.deepcopy``, which takes what is in it for copied
        for part in self._reachable_parts[name]:
            memo[id(part)] = part
        not_fixed = [part for part in self._reachable_parts[name] if not isinstance(part, Fixed)]
        for number, part in enumerate(not_fixed):  # the number names a generator's fresh stream
            if isinstance(part, np.random.Generator):
                memo[id(part)] = stream(seed, "rehearsal", name, str(number))
        try:
            return copy.deepcopy(player, memo)
        except (TypeError, AttributeError) as error:
            hint = "give it __deepcopy__"
            raise UserError(f"{name} cannot be rolled out: {error}; {hint}") from error


def _parts_within(holder: Any, visited: set[int]) -> Iterator[Any]:
    """Yield every generator, basis and fixed object that a deep copy of a holder would reach.

    ``visited`` are ids of objects that are not looked into; those that are visited are added.
    """
    no_parts = str | bytes | np.ndarray | type | ModuleType
    if id(holder) in visited or isinstance(holder, no_parts):
        return
    visited.add(id(holder))
    is_shared = isinstance(holder, Basis) or (isinstance(holder, Fixed) and holder.is_fixed)
    if isinstance(holder, np.random.Generator) or is_shared:
        yield holder
        return
    if isinstance(holder, dict):
        parts: Any = [*holder.keys(), *holder.values()]
    elif isinstance(holder, list | tuple | set | frozenset):
        parts = holder
    else:
        parts = [getattr(holder, "__dict__", None)]
    for part in parts:
        yield from _parts_within(part, visited)
