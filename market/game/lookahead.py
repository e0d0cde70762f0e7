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
Scripted agents take no part: a call of their ``act`` could have side effects.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.fixed import Fixed
from regretless.market.core.own_code import read_only
from regretless.market.core.randomness import stream
from regretless.market.game.seats import Seat
from regretless.market.losses.basis import Basis
from regretless.market.records import Context, Mixture

Strategies = tuple[Array | None, ...]


@dataclass(frozen=True, eq=False)
class GameView:
    """Who takes part in the game after so many rounds."""

    blocks: Sequence[Any]
    seats: Sequence[Seat]
    rounds: int
    # From outcomes (m, d) to what a market would make of them in the next round, if there is one.
    moved: Callable[[Array], Array | None] | None = None


def strategies_of_play(view: GameView, mixtures: Sequence[Mixture], context: Context) -> Strategies:
    """Return each cohort's mixed strategy (K, A) given the mixtures; None if absent or scripted.

    That of a row that is absent is zero; where nobody is there at all, so is everybody's.
    """
    presence = [seat.attendance.present_rows(view.rounds) for seat in view.seats]
    is_anybody_there = any(present is None or present.any() for present in presence)
    strategies: list[Array | None] = []
    for seat, present_rows in zip(view.seats, presence, strict=True):
        cohort = seat.cohort
        strategy = None
        if cohort.foreseeable and (present_rows is None or present_rows.any()):
            planned = cohort.strategy(mixtures[cohort.block], context)
            planned = seat.deviations.apply_to_strategy(planned, context)
            if present_rows is not None:
                planned = np.where(present_rows[:, None], planned, 0.0)
            strategy = read_only(planned)
        elif cohort.foreseeable and not is_anybody_there:
            strategy = np.zeros(cohort.ledger.count.shape)
        strategies.append(strategy)
    return tuple(strategies)


class Rollout:
    """Plays copies of forecasters and cohorts against imagined outcomes, in a round's context."""

    def __init__(self, view: GameView, context: Context) -> None:
        self._view = view
        self._context = context
        self._reachable_parts: dict[str, list[Any]] = {}  # by player, what ``_parts_within`` yields

    def __call__(self, outcome: ArrayLike, rounds: int, *, seed: int) -> list[Strategies]:
        """Return the mixed strategies of the rounds to come if one outcome happens in all of them.

        The present round is one of the ``rounds``; ``seed`` is of the copies' fresh streams.
        """
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; roll out at least 1")
        imagined_outcome = np.asarray(outcome, dtype=np.float64)
        view = self._cloned(seed)
        # What follows from the outcome alone is computed once: it is the same in all rounds.
        statistics = [block.basis.transform(imagined_outcome) for block in view.blocks]
        learning_seats = []
        losses_of_learning_seats = []
        for seat in view.seats:
            if seat.cohort.foreseeable and seat.cohort.has_memory:
                learning_seats.append(seat)
                losses_of_learning_seats.append(seat.cohort.loss.losses(imagined_outcome))
        forecast_stream = stream(seed, "rehearsal", "forecast")
        strategies: list[Strategies] = []
        while True:
            mixtures = [block.mixture(self._context) for block in view.blocks]
            strategies.append(strategies_of_play(view, mixtures, self._context))
            if len(strategies) == rounds:
                return strategies
            forecasts = [mixture.draw(forecast_stream) for mixture in mixtures]
            for seat, losses in zip(learning_seats, losses_of_learning_seats, strict=True):
                cohort = seat.cohort
                if seat.is_present(view.rounds):
                    decision = cohort.decide(forecasts[cohort.block], self._context)
                    cohort.learn(decision, losses, imagined_outcome)
            for index, block in enumerate(view.blocks):
                block.tell(forecasts[index], imagined_outcome, statistics[index])
            view = GameView(view.blocks, view.seats, rounds=view.rounds + 1, moved=view.moved)

    def _cloned(self, seed: int) -> GameView:
        """Copy forecasters and foreseeable cohorts that change, with fresh random streams."""
        view = self._view
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
