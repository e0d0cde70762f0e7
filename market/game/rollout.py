"""What would be played if: the game from here on against imagined outcomes, on clones.

The forecasters and all cohorts whose law of play is foreseeable are copied and play on; the true
ones notice nothing. Every random generator of a copy is replaced by a fresh stream: a copied one
would give away draws that are still to come. Nobody gets to see the copies, only their laws of
play.

Functions are shared as they are, whatever their closures hold: a player keeps its generators in
attributes. A cohort's losses, ledger and coefficients are shared with its copy, which never writes
to them (``Foreseeable.fixed_parts``). The context is that of the present round throughout.
Scripted agents take no part: a call of their ``act`` could have side effects.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.basis import Basis
from regretless.market.game.presence import Stay
from regretless.market.game.protocols import Cohort, Foreseeable
from regretless.market.records import Context, Mixture
from regretless.market.records.deviations import Deviations

Laws = tuple[Array | None, ...]


@dataclass(frozen=True, eq=False)
class Seating:
    """Who takes part in the game, and from when.

    Parameters
    ----------
    stays : sequence of Stay or None
        When each cohort's rows are there; None for throughout.
    rounds : int
        Rounds played so far.
    deviations : dict of int to Deviations
        By the place of a cohort, those of it who play something else than their rule.
    moved : callable or None
        From outcomes (m, d) to what a market would make of them in the next round, if there is one.
    """

    blocks: Sequence[Any]
    cohorts: Sequence[Cohort]
    stays: Sequence[Stay | None]
    rounds: int
    deviations: Mapping[int, Deviations] = field(default_factory=dict)
    moved: Callable[[Array], Array | None] | None = None

    def here(self, place: int) -> Mask | None:
        """Return which rows of a cohort take part in the next round (K,); None for all."""
        stay = self.stays[place]
        return None if stay is None else stay.some(self.rounds)

    def present(self, place: int) -> bool:
        """Whether anybody of a cohort takes part in the next round."""
        here = self.here(place)
        return here is None or bool(here.any())


def laws_of_play(seating: Seating, mixtures: Sequence[Mixture], context: Context) -> Laws:
    """Return each cohort's law of play (K, A) given the mixtures; None if absent or scripted.

    The law of a row that is absent is zero; where nobody is there at all, so is everybody's.
    """
    laws: list[Array | None] = []
    anybody = any(seating.present(place) for place in range(len(seating.cohorts)))
    for place, cohort in enumerate(seating.cohorts):
        law = None
        if isinstance(cohort, Foreseeable) and seating.present(place):
            law, here = cohort.law(mixtures[cohort.block], context), seating.here(place)
            if (who := seating.deviations.get(place)) is not None:
                law = who.law(law, context)
            law = law if here is None else np.where(here[:, None], law, 0.0)
        elif isinstance(cohort, Foreseeable) and not anybody:
            law = np.zeros(cohort.ledger.count.shape)
        laws.append(law)
    return tuple(laws)


class Rollout:
    """Plays copies of forecasters and cohorts against imagined outcomes.

    Parameters
    ----------
    context : Context
        Of the present round.
    """

    def __init__(self, seating: Seating, context: Context) -> None:
        self._seating, self._context = seating, context

    def __call__(self, outcome: ArrayLike, rounds: int, *, seed: int) -> list[Laws]:
        """Return the laws of play of the rounds to come if one outcome happens in all of them.

        Parameters
        ----------
        outcome : array (d,)
            In [0, 1].
        rounds : int
            How many, the present one included; at least 1.
        seed : int
            Of the copies' fresh streams.

        Returns
        -------
        list of tuples
            One tuple per round, in it an array (K, A) or None per cohort, as in ``Announcement``.
        """
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; roll out at least 1")
        y = np.asarray(outcome, dtype=np.float64)
        seating = cloned(self._seating, seed)
        fresh = stream(seed, "rehearsal", "forecast")
        laws = []
        for ahead in range(rounds):
            now = replace(seating, rounds=seating.rounds + ahead)
            mixtures = tuple(block.mixture(self._context) for block in now.blocks)
            laws.append(laws_of_play(now, mixtures, self._context))
            if ahead + 1 < rounds:
                self._live_through(now, mixtures, y, fresh)
        return laws

    def _live_through(
        self, seating: Seating, mixtures: Sequence[Mixture], y: Array, fresh: np.random.Generator
    ) -> None:
        """Let all copies play a round and learn from it."""
        forecasts = [mixture.draw(fresh) for mixture in mixtures]
        for place, cohort in enumerate(seating.cohorts):
            if isinstance(cohort, Foreseeable) and seating.present(place):
                decision = cohort.decide(forecasts[cohort.block], self._context)
                cohort.learn(decision, cohort.loss.losses(y), y)
        for block, forecast in zip(seating.blocks, forecasts, strict=True):
            block.learn(forecast, y)


def cloned(seating: Seating, seed: int) -> Seating:
    """Copy forecasters and foreseeable cohorts, with fresh random streams."""
    relays = {id(block.relay): block.relay.copied() for block in seating.blocks if block.relay}
    blocks = [
        replace(
            block,
            forecaster=_copied(block.forecaster, seed, f"block {block.name}", {}),
            relay=relays.get(id(block.relay)),
        )
        for block in seating.blocks
    ]
    cohorts = [_cohort(cohort, seed, relays) for cohort in seating.cohorts]
    return replace(seating, blocks=blocks, cohorts=cohorts)


def _cohort(cohort: Cohort, seed: int, relays: dict[int, Any]) -> Cohort:
    """Copy a cohort that can be foreseen; return any other as it is."""
    if not isinstance(cohort, Foreseeable):
        return cohort
    known = {id(part): part for part in cohort.fixed_parts()} | relays
    copied: Cohort = _copied(cohort, seed, f"cohort {cohort.name}", known)
    return copied


def _copied(thing: Any, seed: int, name: str, known: dict[int, Any]) -> Any:
    """Copy a thing; what is ``known`` (by id) is put in as it is given."""
    memo = dict(known)
    for number, found in enumerate(_within(thing, set(memo))):
        fresh = stream(seed, "rehearsal", name, str(number))
        memo[id(found)] = fresh if isinstance(found, np.random.Generator) else found
    try:
        return copy.deepcopy(thing, memo)
    except (TypeError, AttributeError) as error:
        raise UserError(f"{name} cannot be rolled out: {error}; give it __deepcopy__") from error


def _within(thing: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every generator, and every basis, that a copy of a thing would reach."""
    if id(thing) in seen or isinstance(thing, str | bytes | np.ndarray | type | ModuleType):
        return
    seen.add(id(thing))
    if isinstance(thing, np.random.Generator | Basis):
        yield thing
    elif isinstance(thing, dict):
        for part in (*thing.keys(), *thing.values()):
            yield from _within(part, seen)
    elif isinstance(thing, list | tuple | set | frozenset):
        for part in thing:
            yield from _within(part, seen)
    else:
        yield from _within(getattr(thing, "__dict__", None), seen)
