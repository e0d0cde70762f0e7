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
        self._view, self._context = view, context
        self._reached: dict[str, list[Any]] = {}  # by player, what ``_within`` yields

    def __call__(self, outcome: ArrayLike, rounds: int, *, seed: int) -> list[Strategies]:
        """Return the mixed strategies of the rounds to come if one outcome happens in all of them.

        The present round is one of the ``rounds``; ``seed`` is of the copies' fresh streams.
        """
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; roll out at least 1")
        imagined_outcome = np.asarray(outcome, dtype=np.float64)
        view = self._cloned(seed)
        statistics = [block.basis.transform(imagined_outcome) for block in view.blocks]
        foreseeable = [seat for seat in view.seats if seat.cohort.foreseeable]
        learning = [seat for seat in foreseeable if seat.cohort.has_memory]
        losses = [seat.cohort.loss.losses(imagined_outcome) for seat in learning]
        forecast_stream = stream(seed, "rehearsal", "forecast")
        strategies: list[Strategies] = []
        while True:
            mixtures = [block.mixture(self._context) for block in view.blocks]
            strategies.append(strategies_of_play(view, mixtures, self._context))
            if len(strategies) == rounds:
                return strategies
            forecasts = [mixture.draw(forecast_stream) for mixture in mixtures]
            for seat, losses_of_actions in zip(learning, losses, strict=True):
                cohort = seat.cohort
                if seat.is_present(view.rounds):
                    decision = cohort.decide(forecasts[cohort.block], self._context)
                    cohort.learn(decision, losses_of_actions, imagined_outcome)
            for index, block in enumerate(view.blocks):
                block.tell(forecasts[index], imagined_outcome, statistics[index])
            view = replace(view, rounds=view.rounds + 1)

    def _cloned(self, seed: int) -> GameView:
        """Copy forecasters and foreseeable cohorts that change, with fresh random streams."""
        view = self._view
        relays = {id(block.relay): copy.copy(block.relay) for block in view.blocks}
        blocks, seats = [], []
        for block in view.blocks:
            forecaster = self._copied(block.forecaster, seed, f"block {block.name}", {})
            blocks.append(replace(block, forecaster=forecaster, relay=relays[id(block.relay)]))
        for seat in view.seats:
            cohort = seat.cohort
            hears_late = view.blocks[cohort.block].relay is not None
            if cohort.foreseeable and (cohort.has_memory or hears_late):
                known = {id(part): part for part in cohort.fixed_parts()} | relays
                cohort = self._copied(cohort, seed, f"cohort {cohort.name}", known)
            seats.append(replace(seat, cohort=cohort))
        return replace(view, blocks=blocks, seats=seats)

    def _copied(self, thing: Any, seed: int, name: str, known: dict[int, Any]) -> Any:
        """Copy a thing; what is ``known`` (by id) is put in as it is given.

        The true players do not change while a round is looked ahead of: what a copy of them would
        reach is looked up once for all imagined outcomes.
        """
        if name not in self._reached:
            self._reached[name] = list(_within(thing, set(known)))
        memo = dict(known)
        for part in self._reached[name]:
            memo[id(part)] = part
        not_fixed = [part for part in self._reached[name] if not isinstance(part, Fixed)]
        for number, part in enumerate(not_fixed):  # the number names a generator's fresh stream
            if isinstance(part, np.random.Generator):
                memo[id(part)] = stream(seed, "rehearsal", name, str(number))
        try:
            return copy.deepcopy(thing, memo)
        except (TypeError, AttributeError) as error:
            cure = "give it __deepcopy__"
            raise UserError(f"{name} cannot be rolled out: {error}; {cure}") from error


def _within(thing: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every generator, every basis and what is fixed that a copy of a thing would reach."""
    if id(thing) in seen or isinstance(thing, str | bytes | np.ndarray | type | ModuleType):
        return
    seen.add(id(thing))
    parts: Any = [getattr(thing, "__dict__", None)]
    is_shared = isinstance(thing, Basis) or (isinstance(thing, Fixed) and thing.is_fixed)
    if isinstance(thing, np.random.Generator) or is_shared:
        yield thing
        return
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = thing
    for part in parts:
        yield from _within(part, seen)
