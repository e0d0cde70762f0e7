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
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import remembers
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
    checked_outcome,
    personal_losses,
    shown,
    tell_followers,
)
from regretless.market.game.network import DelayedForecasts, Network
from regretless.market.game.protocols import Adversary, Cohort, Forecaster
from regretless.market.game.seats import Seat
from regretless.market.losses.basis import Basis
from regretless.market.records import (
    Context,
    Forecast,
    ForecastRecord,
    History,
    Mixture,
    OutcomeDistribution,
    Round,
)


@dataclass(frozen=True, eq=False)
class Block:
    """One basis of the broadcast and the forecaster instance that predicts its statistics."""

    name: str
    basis: Basis
    forecaster: Forecaster
    relay: DelayedForecasts | None = None  # for those who hear it late; None where all hear at once
    record: ForecastRecord = field(default_factory=ForecastRecord)

    def mixture(self, context: Context) -> Mixture:
        """Return the forecaster's mixture with labels, a copy of what is a user's own."""
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
        self.record.add(np.array(labels), names)
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
        tell_followers(market, self.cohorts)
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

    def answer(self, market: Market, begun: Round) -> object:
        """Ask the market for the outcome of a round, given what all do."""
        return market.clear(begun.outcome, shown(market.clear, begun.decisions))

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to (``market.game.adversary_view``)."""
        return summed(self.adversary.payoff, self.cohorts, played)

    def awaited(self, place: int) -> Mask:
        """Return which rows of a cohort, of those that come late, have not played yet (K,)."""
        entered = self.seats[place].attendance.entered
        late = (entered > 0) & (entered >= self.history.rounds)
        return np.broadcast_to(late, self.seats[place].rows)

    def players(self) -> dict[str, Any]:
        """Everything with a memory of its own, by name, for checkpoints."""
        named: dict[str, Any] = {"adversary": self.adversary, "history": self.history}
        named |= {} if self.market is None else {"market": self.market}
        for block in self.blocks:
            named |= {f"block {block.name}": block.forecaster, f"record {block.name}": block.record}
            named |= {} if block.relay is None else {f"relay {block.name}": block.relay}
        for seat in self.seats:
            named |= seat.players()
        return named

    def forgetful(self) -> list[str]:
        """Names of the players that offer no ``state`` and ``restore``."""
        return [name for name, who in self.players().items() if not remembers(who)]


def play_round(game: Game) -> Round:
    """Play one round, and return everything that happened."""
    return finish(game, decide(game, commit_and_draw(game, offer(game))))


def offer(game: Game) -> Round:
    """Ask for the context and the forecasters' mixtures."""
    context = game.adversary.context(game.history)
    if not isinstance(context, Context):
        who = name_of(game.adversary.context)
        raise UserError(f"{who} returned {brief(context)}; return a Context")
    mixtures = tuple(block.mixture(context) for block in game.blocks)
    return Round(game.history.rounds, context, mixtures)


def commit_and_draw(game: Game, offered: Round) -> Round:
    """Let the adversary commit, then draw; one that breaks the rule is shown the draw before."""

    def drawn() -> tuple[Forecast, ...]:
        return tuple(mixture.draw(game.forecast_stream) for mixture in offered.mixtures)

    early = drawn() if game.breaks_the_rule else ()
    announced = announcement(sight_of(game.adversary), game.view, replace(offered, forecasts=early))
    distribution = game.adversary.commit(offered.context, game.history, announced)
    who, wanted = name_of(game.adversary.innermost.commit), game.adversary.outcomes
    if not isinstance(distribution, OutcomeDistribution):
        raise UserError(f"{who} returned {brief(distribution)}; return an OutcomeDistribution")
    if (size := distribution.points.shape[1]) != wanted:
        told = f"returned a distribution over {size} outcomes; return one over {wanted}"
        raise UserError(f"{who} {told}")
    forecasts = early or drawn()
    outcome = distribution.draw(game.outcome_stream)
    return replace(offered, forecasts=forecasts, distribution=distribution, outcome=outcome)


def decide(game: Game, drawn: Round) -> Round:
    """Let every cohort decide on what it hears, sees and can afford."""
    parts = []
    for place, seat in enumerate(game.seats):
        sees = seat.signal.seen(drawn.context, drawn.outcome)
        market = game.market if seat.budget.limits else None
        can = None if market is None else market.affordable(place)
        heard = drawn.forecasts[seat.cohort.block]
        parts.append((sees, can, seat.decide(heard, sees, number=drawn.number, affordable=can)))
    seen, affordable, decisions = zip(*parts, strict=True) if parts else ((), (), ())
    return replace(drawn, seen=seen, affordable=affordable, decisions=decisions)


def finish(game: Game, begun: Round) -> Round:
    """Reveal the outcome, charge everybody, and let all learn."""
    outcome, personal = begun.outcome, list[Array | None]([None] * len(game.seats))
    if (market := game.market) is not None:  # it may move the outcome, or say who lost what
        outcome = checked_outcome(market, outcome, game.answer(market, begun))
        personal = list(personal_losses(market, begun.decisions))
    rows = zip(game.seats, begun.decisions, personal, begun.affordable, strict=True)
    losses = tuple(seat.charge(choice, own, outcome, can) for seat, choice, own, can in rows)
    played = replace(begun, outcome=outcome, losses=losses)
    for seat, decision, own, seen in zip(
        game.seats, played.decisions, losses, played.seen, strict=True
    ):
        seat.record(decision, own, seen, number=played.number, outcome=outcome)
    for block, forecast in zip(game.blocks, played.forecasts, strict=True):
        block.learn(forecast, outcome)
    game.history.add(outcome)
    if game.adversary.observes_play:
        played = replace(played, sums=game.sums(played))
        teach(game.adversary, game.cohorts, played)
    return played
