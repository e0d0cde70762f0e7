"""One round of the game: four functions after one another.

    offer            context   what everybody sees before the round
                     mixture   the forecaster's distribution over predictions, per block
    commit_and_draw  commit    the adversary commits to a distribution of outcomes: it has seen the
                               mixture (and what else it declared, ``market.game.adversary_view``)
                     draw      one prediction per block is drawn and broadcast; the referee draws
                               the outcome, too, and shows it to a declared signal alone
    decide           decide    every agent chooses
    finish           reveal    a market may move the outcome (``market.game.market``), losses are
                               charged
                     record    the ledger adds the round; forecaster, agents and adversary learn

Whoever is asked from outside (an environment, a part of the run on another machine) is asked
between two of them. Prediction and outcome are drawn from two streams that no player holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import Checkpointable, remembers
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import handed, is_ours, name_of
from regretless.market.core.randomness import stream
from regretless.market.game.adversary_view import announcement, introduce, sight_of, summed, teach
from regretless.market.game.lookahead import GameView
from regretless.market.game.market import (
    PERSONAL,
    UNPROMISED,
    Market,
    check_leader,
    cleared,
    personal_losses,
)
from regretless.market.game.network import DelayedForecasts, Network
from regretless.market.game.protocols import Adversary, Cohort, Forecaster
from regretless.market.game.seats import Seat
from regretless.market.losses.basis import Basis
from regretless.market.records import (
    Context,
    Forecast,
    History,
    Mixture,
    OutcomeDistribution,
    Round,
)

KEPT = 4096  # rounds, the last ones; a power of 2 times ``LEAST``
LEAST = 64  # for which there is room at first


class ForecastRecord(Checkpointable):
    """The last label forecasts of a block, and the outcomes that came; ``rounds`` were added."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rounds", "models", "_labels", "_outcomes")

    def __init__(self) -> None:
        self.rounds, self.models = 0, list[str]()
        self._labels, self._outcomes = np.zeros((0, 1, 0)), np.zeros((0, 0))

    def add(self, labels: Array, outcome: Array, models: Sequence[str]) -> None:
        """Add a round: what the broadcast and then each model said (1 + M, d), and y (d,).

        With other models than before it begins anew.
        """
        if list(models) != self.models or not self.rounds:
            self.models, self.rounds = list(models), 0
            self._labels = np.zeros((LEAST, *labels.shape))
            self._outcomes = np.zeros((LEAST, *outcome.shape))
        place = self.rounds % KEPT
        if place == len(self._labels):  # room for twice as many
            self._labels = np.concatenate([self._labels, self._labels])
            self._outcomes = np.concatenate([self._outcomes, self._outcomes])
        self._labels[place], self._outcomes[place] = labels, outcome
        self.rounds += 1

    def last(self) -> tuple[Array, Array]:
        """Return the labels (T, 1 + M, d) and outcomes (T, d) that are kept, in order."""
        last = np.arange(max(self.rounds - KEPT, 0), self.rounds) % KEPT
        return self._labels[last], self._outcomes[last]


@dataclass(frozen=True, eq=False)
class Block:
    """One basis of the broadcast and the forecaster instance that predicts its statistics."""

    name: str
    basis: Basis
    forecaster: Forecaster
    relay: DelayedForecasts | None = None  # for those who hear it late; None where all hear at once
    record: ForecastRecord = field(default_factory=ForecastRecord)

    def mixture(self, context: Context) -> Mixture:
        """Return the forecaster's mixture with labels; a user's forecaster may go on with its own.

        UserError if it is no mixture.
        """
        ask = self.forecaster.mixture
        mixture = ask(context)
        if not isinstance(mixture, Mixture):
            raise UserError(f"{name_of(ask)} returned {brief(mixture)}; return a Mixture")
        labels = self.basis.inverse(mixture.points)
        if is_ours(ask):
            return replace(mixture, labels=labels)
        points, weights = np.array(mixture.points), np.array(mixture.weights)
        return replace(mixture, points=points, weights=weights, labels=labels)

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Keep what was said, tell the forecaster the outcome (d,), and pass on what it said."""
        vector, labels = self.basis.transform(outcome), [forecast.label]
        if names := self.forecaster.models:
            labels += [*self.basis.inverse(np.asarray(self.forecaster.points))]
        self.record.add(np.array(labels), outcome, names)
        self.forecaster.observe_outcome(outcome)
        self.forecaster.drew(forecast.index)
        self.forecaster.update(handed(self.forecaster.update, vector))
        if self.relay is not None:
            self.relay.add(forecast, vector)


class Game:
    """The players, and the referee's own belongings and streams.

    Each cohort hears the block that it names. ``market`` and ``network`` are None where what agents
    do moves no outcome, and where everybody hears the forecast at once.
    """

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        blocks: Sequence[Block],
        seats: Sequence[Seat],
        *,
        adversary: Adversary,
        seed: int,
        market: Market | None = None,
        network: Network | None = None,
    ) -> None:
        self.blocks, self.seats, self.adversary = tuple(blocks), tuple(seats), adversary
        self.network, self.market = network, market
        self.history = History(adversary.outcomes)
        self.forecast_stream = stream(seed, "referee", "forecast")
        self.outcome_stream = stream(seed, "referee", "outcome")
        if market is not None:
            check_leader(adversary, market)
        introduce(adversary, self.cohorts)

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        """The cohorts, in the order of their seats."""
        return tuple(seat.cohort for seat in self.seats)

    @property
    def breaks_the_rule(self) -> bool:
        """Whether the adversary sees the draw before it commits; then nothing is guaranteed."""
        return "draw" in sight_of(self.adversary)

    @property
    def flaw(self) -> str:
        """Why nothing is guaranteed; empty where outcomes, settled before the draw, say it all."""
        if self.breaks_the_rule:
            return "no guarantee, since the adversary sees the drawn forecast before it commits"
        if self.personal:
            return PERSONAL
        answers = self.market is not None and self.market.answers_at_once
        return UNPROMISED if answers else ""

    @property
    def personal(self) -> bool:
        """Whether agents have losses of their own, which are no functions of the outcome."""
        return self.market is not None and self.market.personal

    @property
    def view(self) -> GameView:
        """Who takes part in the next round."""
        moved = None if self.market is None else self.market.foreseen
        return GameView(self.blocks, self.seats, self.history.rounds, moved)

    def load(self, begun: Round) -> Array | None:
        """Return what all come to in the market, elsewhere too; None where all are here."""
        return None

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to (``market.game.adversary_view``)."""
        return summed(self.adversary.payoff, self.cohorts, played)

    def affordable(self, place: int) -> Mask | None:
        """Return which actions the agents of a cohort choose among (N, A); None for all."""
        limited = self.seats[place].budget.limits and self.market is not None
        return self.market.affordable(place) if limited and self.market is not None else None

    def awaited(self, place: int) -> Mask:
        """Return which rows of a cohort, of those that come late, have not played yet (K,)."""
        seat = self.seats[place]
        entered = seat.attendance.entered
        return np.broadcast_to((entered > 0) & (entered >= self.history.rounds), seat.rows)

    def players(self) -> dict[str, Any]:
        """Everything with a memory of its own, by name, for checkpoints."""
        named: dict[str, Any] = {"adversary": self.adversary, "history": self.history}
        if self.market is not None:
            named["market"] = self.market
        named |= {f"block {block.name}": block.forecaster for block in self.blocks}
        named |= {f"record {block.name}": block.record for block in self.blocks}
        named |= {f"relay {b.name}": b.relay for b in self.blocks if b.relay is not None}
        for seat in self.seats:
            named |= seat.players()
        return named

    def forgetful(self) -> list[str]:
        """Names of the players that offer no ``state`` and ``restore``."""
        return [name for name, who in self.players().items() if not remembers(who)]


@dataclass(frozen=True, eq=False)
class Offered:
    """A round of which everybody knows the context and the mixtures, one per block."""

    context: Context
    mixtures: tuple[Mixture, ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A round whose outcome is settled but for the market, and whose forecasts are broadcast."""

    context: Context
    forecasts: tuple[Forecast, ...]
    distribution: OutcomeDistribution  # to which the adversary committed
    outcome: Array  # drawn from it (d,); shown to signals alone


@dataclass(frozen=True, eq=False)
class Decided:
    """A round in which everybody has chosen."""

    begun: Round  # without losses
    seen: tuple[Context, ...]  # what each cohort saw before it decided
    affordable: tuple[Mask | None, ...]  # per cohort: which actions agents could pay for (N, A)


def play_round(game: Game) -> Round:
    """Play one round, and return everything that happened."""
    return finish(game, decide(game, commit_and_draw(game, offer(game))))


def offer(game: Game) -> Offered:
    """Ask for the context and the forecasters' mixtures."""
    context = game.adversary.context(game.history)
    if not isinstance(context, Context):
        who = name_of(game.adversary.context)
        raise UserError(f"{who} returned {brief(context)}; return a Context")
    return Offered(context, tuple(block.mixture(context) for block in game.blocks))


def commit_and_draw(game: Game, offered: Offered) -> Drawn:
    """Let the adversary commit, then draw; one that breaks the rule is shown the draw before."""
    shown = _drawn(game, offered) if game.breaks_the_rule else None
    distribution = _committed(game, offered, shown)
    forecasts = _drawn(game, offered) if shown is None else shown
    return Drawn(offered.context, forecasts, distribution, distribution.draw(game.outcome_stream))


def _drawn(game: Game, offered: Offered) -> tuple[Forecast, ...]:
    return tuple(mixture.draw(game.forecast_stream) for mixture in offered.mixtures)


def _committed(
    game: Game, offered: Offered, seen: tuple[Forecast, ...] | None
) -> OutcomeDistribution:
    """Ask the adversary for its distribution, and check it."""
    sees, context = sight_of(game.adversary), offered.context
    shown = announcement(sees, game.view, offered.mixtures, forecasts=seen, context=context)
    distribution = game.adversary.commit(context, game.history, shown)
    who, wanted = name_of(game.adversary.innermost.commit), game.adversary.outcomes
    if not isinstance(distribution, OutcomeDistribution):
        raise UserError(f"{who} returned {brief(distribution)}; return an OutcomeDistribution")
    if (size := distribution.points.shape[1]) != wanted:
        told = f"returned a distribution over {size} outcomes; return one over {wanted}"
        raise UserError(f"{who} {told}")
    return distribution


def decide(game: Game, drawn: Drawn) -> Decided:
    """Let every cohort decide on what it hears, sees and can afford."""
    number, context = game.history.rounds, drawn.context
    seen = tuple(seat.signal.seen(context, drawn.outcome) for seat in game.seats)
    affordable = tuple(game.affordable(place) for place in range(len(game.seats)))
    decisions = tuple(
        seat.decide(drawn.forecasts[seat.cohort.block], sees, number=number, affordable=can)
        for seat, sees, can in zip(game.seats, seen, affordable, strict=True)
    )
    begun = Round(number, context, drawn.forecasts, drawn.distribution, decisions, drawn.outcome)
    return Decided(begun, seen, affordable)


def finish(game: Game, decided: Decided) -> Round:
    """Reveal the outcome, charge everybody, and let all learn."""
    played = _reveal(game, decided)
    rows = zip(game.seats, played.decisions, played.losses, decided.seen, strict=True)
    for seat, decision, losses, seen in rows:
        seat.record(decision, losses, seen, number=played.number, outcome=played.outcome)
    for block, forecast in zip(game.blocks, played.forecasts, strict=True):
        block.learn(forecast, played.outcome)
    game.history.add(played.outcome)
    if game.adversary.observes_play:
        played = replace(played, sums=game.sums(played))
        teach(game.adversary, game.cohorts, played)
    return played


def _reveal(game: Game, decided: Decided) -> Round:
    """Let the market move the outcome, and charge everybody."""
    begun, market = decided.begun, game.market
    outcome = begun.outcome
    personal: Sequence[Array | None] = (None,) * len(game.seats)
    if market is not None:
        outcome = cleared(market, outcome, begun.decisions, game.load(begun))
        personal = personal_losses(market, begun.decisions)
    rows = zip(game.seats, begun.decisions, personal, decided.affordable, strict=True)
    losses = tuple(seat.charge(choice, own, outcome, can) for seat, choice, own, can in rows)
    return replace(begun, outcome=outcome, losses=losses)
