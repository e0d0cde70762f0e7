"""One round of the game, one line per phase.

    context   what everybody sees before the round
    mixture   the forecaster's law over predictions, per block, with its certificate
    commit    the adversary seals an outcome law: it has seen the mixture (and what else it
              declared, ``market.game.information``), and the draw does not exist yet
    draw      one prediction per block is drawn and broadcast
    decide    every agent chooses
    reveal    the outcome is drawn from the sealed law (a market may move it,
              ``market.game.markets``), losses are charged; the referee draws it before agents
              decide, and shows it after
    record    the ledger adds the round; forecaster, agents and adversary are told

Randomness belongs to the referee: prediction and outcome are drawn from two streams that no
player holds.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.basis import Basis
from regretless.market.game.delay import Relay
from regretless.market.game.information import (
    announcement,
    introduce,
    sight_of,
    summed,
    teach,
    told,
)
from regretless.market.game.markets import UNPROMISED, Market, check_leader, cleared
from regretless.market.game.means import Means, held
from regretless.market.game.network import Network
from regretless.market.game.presence import Stay, checked_stays, present, seated
from regretless.market.game.protocols import Adversary, Cohort, Forecaster, Resumable, tell
from regretless.market.game.rollout import Seating
from regretless.market.game.signals import Signal, suggestions
from regretless.market.records import (
    Context,
    Decision,
    Forecast,
    History,
    Mixture,
    OutcomeLaw,
    Round,
)
from regretless.market.records.deviations import Deviations
from regretless.market.regret.followed import Followed


@dataclass(frozen=True, eq=False)
class Block:
    """One basis of the broadcast and the forecaster instance that predicts it.

    Parameters
    ----------
    forecaster : Forecaster
        Predicts ``basis.transform(y)``.
    relay : Relay or None
        What was broadcast, for those who hear it late or never; None where all hear at once.
    """

    name: str
    basis: Basis
    forecaster: Forecaster
    relay: Relay | None = None

    def mixture(self, context: Context) -> Mixture:
        """Return the forecaster's mixture with labels, sealed against writing."""
        mixture = self.forecaster.mixture(context)
        mixture = replace(mixture, labels=self.basis.inverse(mixture.points))
        for array in (mixture.points, mixture.weights, mixture.labels):
            if array is not None:
                array.flags.writeable = False
        return mixture

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Tell the forecaster what came, and pass on what it had said."""
        vector = self.basis.transform(outcome)
        tell(self.forecaster, outcome)
        self.forecaster.update(vector)
        if self.relay is not None:
            self.relay.add(forecast, vector)


class Game:
    """The players and the referee's own belongings.

    Parameters
    ----------
    cohorts : sequence of Cohort
        Each hears the block that it names.
    seed : int
        Root of the referee's streams.
    market : Market or None
        How what agents do moves the outcome; None where it does not.
    stays : sequence of Stay or None
        When each cohort's rows are there (``market.game.presence``); None for throughout, empty
        where all are.
    network : Network or None
        Who hears the forecast, for the logs; None where everybody does at once.
    followed : sequence of Followed or None
        What each cohort would have lost by following models; None where there are none, empty where
        nobody is compared with any.
    signals : sequence of Signal or None
        What the agents of each cohort learn of the outcome alone; empty where nobody does.
    means : sequence of Means or None
        Who chooses only what the market says it can pay for; empty where nobody need.
    """

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        blocks: Sequence[Block],
        cohorts: Sequence[Cohort],
        *,
        adversary: Adversary,
        seed: int,
        market: Market | None = None,
        stays: Sequence[Stay | None] = (),
        network: Network | None = None,
        followed: Sequence[Followed | None] = (),
        signals: Sequence[Signal | None] = (),
        means: Sequence[Means | None] = (),
    ) -> None:
        self.blocks, self.cohorts, self.adversary = tuple(blocks), tuple(cohorts), adversary
        self.followed = tuple(followed) or (None,) * len(self.cohorts)
        self.signals = tuple(signals) or (None,) * len(self.cohorts)
        self.means = tuple(means) or (None,) * len(self.cohorts)
        self.stays, self.network = checked_stays(stays, self.cohorts), network
        self.history = History(adversary.outcomes)
        self.forecast_stream = stream(seed, "referee", "forecast")
        self.outcome_stream = stream(seed, "referee", "outcome")
        self.market = market
        self.deviations: dict[int, Deviations] = {}  # by the cohort's place
        if market is not None:
            check_leader(adversary, market)
        introduce(adversary, self.cohorts)

    @property
    def breaks_the_rule(self) -> bool:
        """Whether the adversary sees the draw before it commits; then nothing is guaranteed."""
        return "draw" in sight_of(self.adversary)

    @property
    def flaw(self) -> str:
        """Why nothing is guaranteed; empty where the draw has no say in the outcome."""
        if self.breaks_the_rule:
            return "no promise, since the adversary sees the drawn forecast before it commits"
        answers = self.market is not None and self.market.answers_at_once
        return UNPROMISED if answers else ""

    @property
    def seating(self) -> Seating:
        """Who takes part in the next round."""
        who = Seating(self.blocks, self.cohorts, self.stays, self.history.rounds, self.deviations)
        return who if self.market is None else replace(who, moved=self.market.foreseen)

    def affordable(self, place: int) -> Mask | None:
        """Return which actions the agents of a cohort choose among (N, A); None for all."""
        limited = self.means[place] is not None and self.market is not None
        return self.market.affordable(place) if limited and self.market is not None else None

    def awaited(self, place: int) -> Mask:
        """Return which rows of a cohort, of those that come late, have not played yet (K,)."""
        stay = self.stays[place]
        if stay is None:
            return np.zeros(len(self.cohorts[place].ledger.count), dtype=np.bool_)
        return stay.awaited(self.history.rounds)

    def players(self) -> dict[str, object]:
        """Everything with a memory of its own, by name, for checkpoints."""
        named: dict[str, object] = {"adversary": self.adversary, "history": self.history}
        if self.market is not None:
            named["market"] = self.market
        named |= {f"block {block.name}": block.forecaster for block in self.blocks}
        named |= {f"relay {b.name}": b.relay for b in self.blocks if b.relay is not None}
        for cohort, followed in zip(self.cohorts, self.followed, strict=True):
            named |= {} if followed is None else {f"models of {cohort.name}": followed}
        for cohort, signal in zip(self.cohorts, self.signals, strict=True):
            named |= {} if signal is None else {f"signal of {cohort.name}": signal}
        for cohort, means in zip(self.cohorts, self.means, strict=True):
            named |= {} if means is None else {f"means of {cohort.name}": means}
        return named | {f"cohort {cohort.name}": cohort for cohort in self.cohorts}

    def forgetful(self) -> list[str]:
        """Names of the players that offer no ``state`` and ``restore``."""
        return [
            name
            for name, who in self.players().items()
            if not isinstance(who, Resumable) or not getattr(who, "resumable", True)
        ]


def play_round(game: Game) -> Round:
    """Play one round.

    Returns
    -------
    Round
        Everything that happened.
    """
    return finished(in_turns(game))


Turns = Generator[tuple[Mixture, ...] | tuple[Forecast, ...] | Round, Any, Round]


def finished(turns: Turns, sent: Any = None) -> Round:
    """Play a round that was begun to its end, after sending something to the break it is at."""
    try:
        turns.send(sent)
        while True:
            next(turns)
    except StopIteration as over:
        played: Round = over.value
        return played


def in_turns(game: Game) -> Turns:
    """Play one round with breaks, for players who are asked from outside.

    Yields the mixtures before the adversary commits, then the forecasts that were drawn before
    agents decide, the round once they have, and again when they have been charged; returns it.
    Where agents are elsewhere the third break is sent the market's load, the fourth the ``sums``.
    """
    context = game.adversary.context(game.history)
    mixtures = tuple(block.mixture(context) for block in game.blocks)
    yield mixtures
    draw = cache(partial(_drawn, game, mixtures))  # after the commitment, unless a leader cheats
    law = _committed(game, context, mixtures, draw)
    forecasts, outcome = draw(), law.draw(game.outcome_stream)  # the outcome is not shown yet
    yield forecasts
    seen = _seen(game, context, outcome)
    answers = _decided(game, seen, forecasts, outcome)
    decisions = tuple(answer.decision for answer in answers)
    begun = Round(game.history.rounds, context, forecasts, law, decisions, outcome)
    load = yield begun
    outcome, losses = _revealed(game, outcome, answers, load)
    played = replace(begun, outcome=outcome, losses=losses)
    _record(game, played, seen)
    sums = yield played
    if told(game.adversary):
        payoff = getattr(game.adversary, "payoff", None)
        sums = summed(payoff, game.cohorts, played) if sums is None else sums
        teach(game.adversary, game.cohorts, played := replace(played, sums=sums))
    return played


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a cohort decided, None where nobody is here, and its losses where they are known.

    ``awake`` are the actions that its agents could afford, None for all.
    """

    decision: Decision | None
    losses: Array | None = None
    awake: Mask | None = None


def _drawn(game: Game, mixtures: tuple[Mixture, ...]) -> tuple[Forecast, ...]:
    return tuple(mixture.draw(game.forecast_stream) for mixture in mixtures)


def _committed(
    game: Game,
    context: Context,
    mixtures: tuple[Mixture, ...],
    draw: Callable[[], tuple[Forecast, ...]],
) -> OutcomeLaw:
    """Let the adversary seal a law; only one that breaks the rule has the draw made before."""
    seen = draw() if game.breaks_the_rule else None
    sees = sight_of(game.adversary)
    shown = announcement(sees, game.seating, mixtures, forecasts=seen, context=context)
    try:
        law = game.adversary.commit(context, game.history, shown)
    except UserError as error:
        raise UserError(f"the adversary's law: {error}") from error
    if not isinstance(law, OutcomeLaw):
        raise UserError(f"the adversary committed to {law!r}; return an OutcomeLaw")
    if law.points.shape[1] != game.adversary.outcomes:
        raise UserError(
            f"the adversary announced {game.adversary.outcomes} outcomes and committed to "
            f"{law.points.shape[1]}"
        )
    return law


def _seen(game: Game, context: Context, outcome: Array) -> tuple[Context, ...]:
    """Return what each cohort sees before it decides: the context, and signals of its own."""
    return tuple(context if s is None else s.seen(context, outcome) for s in game.signals)


def _decided(
    game: Game, seen: Sequence[Context], forecasts: tuple[Forecast, ...], outcome: Array
) -> list[_Answer]:
    """Let every cohort decide; score it in the same pass where no market moves the outcome."""
    seating, settled = game.seating, outcome if game.market is None else None
    return [
        _answered(
            (cohort, game.means[place], game.affordable(place), game.deviations.get(place)),
            seating.here(place),
            forecasts[cohort.block],
            seen[place],
            settled,
        )
        for place, cohort in enumerate(game.cohorts)
    ]


def _answered(
    who: tuple[Cohort, Means | None, Mask | None, Deviations | None],
    here: Mask | None,
    forecast: Forecast,
    context: Context,
    settled: Array | None,
) -> _Answer:
    """Let those of a cohort who are here decide, and score them if the outcome is settled."""
    losses = None
    cohort, means, awake, deviations = who
    if here is not None and not here.any():
        return _Answer(None)
    if (attend := getattr(cohort, "attend", None)) is not None:
        attend(here, awake)
    score = getattr(cohort, "decide_and_score", None)  # in one pass over its losses
    if settled is not None and score is not None:
        decision, losses = score(forecast, context, settled)
    else:
        decision = cohort.decide(forecast, context)
    if deviations is not None:
        decision = deviations.decision(decision, context)
    if means is not None and awake is not None:
        decision = means.limited(decision, awake if here is None else awake | ~here[:, None])
    return _Answer(seated(decision, here, cohort.row_of), losses, awake)


def _revealed(
    game: Game, outcome: Array, answers: Sequence[_Answer], load: Array | None
) -> tuple[Array, tuple[Array | None, ...]]:
    """Let the market move the outcome, and score whoever has not been scored."""
    if game.market is not None:
        outcome = cleared(game.market, outcome, [answer.decision for answer in answers], load)
    losses = tuple(
        _charged(cohort, answer, outcome)
        for cohort, answer in zip(game.cohorts, answers, strict=True)
    )
    return outcome, losses


def _charged(cohort: Cohort, answer: _Answer, outcome: Array) -> Array | None:
    """Return a cohort's losses; what an agent cannot afford is charged what it played."""
    if answer.decision is None or answer.losses is not None:
        return answer.losses
    losses = cohort.loss.losses(outcome)
    return losses if answer.awake is None else held(losses, answer.decision.actions, answer.awake)


def _record(game: Game, played: Round, seen: Sequence[Context]) -> None:
    outcome = played.outcome
    for place, cohort, decision, losses in present(game.cohorts, played):
        suggested = suggestions(cohort.policies, seen[place], cohort.loss.actions)
        cohort.ledger.add(decision, losses, suggested)
        if (followed := game.followed[place]) is not None:
            followed.add(decision, losses)
        cohort.learn(decision, losses, outcome)
    for block, forecast in zip(game.blocks, played.forecasts, strict=True):
        block.learn(forecast, outcome)
    game.history.add(outcome)
