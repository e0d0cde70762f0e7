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

Each function fills in its part of the round so far, a ``Round``, and returns it. An environment
that lets somebody outside decide, or a worker that plays a part of the run, acts between two of
these functions. After an error in one of them no further round is played (``Game.cut_off``).
Prediction and outcome are drawn from two streams that no player holds. What each player must offer
says ``market.game.protocols``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from regretless.market.core.arrays import Array, Mask, is_within_unit_cube
from regretless.market.core.checkpoint import remembers
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import (
    answer_as_numbers,
    is_ours,
    name_of,
    read_only,
)
from regretless.market.core.randomness import stream
from regretless.market.core.validation import without_rounding
from regretless.market.game.adversary_view import (
    SIGHTS_OF_PLAY,
    introduce,
    make_adversary_view,
    sight_of,
    summed,
    teach,
)
from regretless.market.game.lookahead import GameView, ImaginedPath
from regretless.market.game.market import (
    NO_GUARANTEE_AT_ONCE,
    NO_GUARANTEE_PERSONAL,
    Market,
    check_leader,
    checked_outcome,
    decisions_readonly_unless_ours,
    personal_losses,
    tell_followers,
    tell_fundamentals,
)
from regretless.market.game.network import DelayedForecasts, Network
from regretless.market.game.protocols import Adversary, Cohort, Forecaster, ForeignForecaster
from regretless.market.game.seats import PUBLIC, Seat, actions_of_agents
from regretless.market.losses.basis import Basis
from regretless.market.records import (
    NO_VALUES,
    Context,
    Decision,
    Ensemble,
    Forecast,
    ForecastRecord,
    History,
    Mixture,
    OutcomeDistribution,
    Round,
    RoundFeedback,
)

if TYPE_CHECKING:
    import pandas as pd

Arguments = ParamSpec("Arguments")  # of a step of a round, besides the game
NO_POINTS = np.empty((0, 0))  # of a forecaster without models
WEIGHT_TOLERANCE = 1e-6  # of the sum of a user's weights, which may be of 32 bits


@dataclass(frozen=True, eq=False)
class Block:
    """One basis of the broadcast and the forecaster that predicts its statistics."""

    name: str
    basis: Basis
    forecaster: Forecaster
    relay: DelayedForecasts | None = None  # for those who hear it late; None where all hear at once
    record: ForecastRecord = field(default_factory=ForecastRecord)

    @cached_property
    def _mixtures_are_ours(self) -> bool:
        """Whether the forecaster's method that returns mixtures comes with this project."""
        forecaster = self.forecaster
        return is_ours(forecaster.mixture) and not isinstance(forecaster, ForeignForecaster)

    @cached_property
    def _basis_is_ours(self) -> bool:
        """Whether the basis comes with this project."""
        return is_ours(type(self.basis))

    @cached_property
    def _observer_is_ours(self) -> bool:
        """Whether the forecaster's method that is told of rounds comes with this project."""
        return is_ours(self.forecaster.observe)

    def mixture(self, context: Context) -> Mixture:
        """Return the forecaster's mixture with labels; UserError if it returns something else.

        The arrays of a user's own forecaster are checked, since kernels read them as they are; its
        arrays and those of a user's own basis are copied, since they may be written into later.
        """
        forecaster = self.forecaster
        mixture = forecaster.mixture(context)
        if forecaster.is_silent:
            return mixture
        if not isinstance(mixture, Mixture):
            method_name = name_of(forecaster.mixture)
            raise UserError(f"{method_name} returned {brief(mixture)}; return a Mixture")
        if not self._mixtures_are_ours:
            mixture = self._checked(mixture)
        elif self._basis_is_ours and mixture.has_labels and forecaster.basis is self.basis:
            return mixture  # our own code writes into nothing that it has returned
        if self._basis_is_ours:
            return mixture.labelled_by(self.basis)
        return mixture.labelled(np.array(self.basis.inverse(mixture.points)))

    def _checked(self, mixture: Mixture) -> Mixture:
        """Return a user's mixture in arrays of its own; UserError unless it fits the basis."""
        method = self.forecaster.mixture
        expected = (
            f"return points (m, {self.basis.size}) in [0, 1], and weights (m,) of at least 0 that "
            "sum to 1"
        )
        points = answer_as_numbers(method, mixture.points, expected).astype(np.float64)
        weights = answer_as_numbers(method, mixture.weights, expected).astype(np.float64)
        shapes = f"{name_of(method)} returned points {points.shape} and weights {weights.shape}"
        if points.shape != (*weights.shape, self.basis.size) or weights.ndim != 1:
            raise UserError(f"{shapes}; {expected}")
        is_distribution = (weights >= 0).all() and abs(weights.sum() - 1) <= WEIGHT_TOLERANCE
        if not is_distribution:
            raise UserError(f"{shapes}, {brief(weights)}; {expected}")
        if not is_within_unit_cube(points):
            points = without_rounding(points)
            beyond = points[~((points >= 0) & (points <= 1))]  # NaN, too
            if beyond.size:
                raise UserError(f"{shapes}, {beyond[0]:g} in points; {expected}")
        self._check_ensembles(mixture.ensembles, n_points=len(points))
        return replace(mixture.copied(), points=points, weights=weights)

    def _check_ensembles(self, ensembles: object, *, n_points: int) -> None:
        """Raise UserError unless a user's mixture has an ensemble for each point, or none."""
        if ensembles is None:
            return
        is_one_for_each = False
        if isinstance(ensembles, tuple | list):
            are_ensembles = all(isinstance(ensemble, Ensemble) for ensemble in ensembles)
            is_one_for_each = are_ensembles and len(ensembles) == n_points
        if not is_one_for_each:
            method_name = name_of(self.forecaster.mixture)
            raise UserError(
                f"{method_name} returned ensembles {brief(ensembles)}; "
                f"return a tuple of one Ensemble for each of {n_points} points, or None"
            )

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Note the forecasts, tell the forecaster the outcome (d,), and relay the forecast.

        ``forecast`` is what the block broadcast in the round.
        """
        if self.forecaster.is_silent:
            return
        model_names = self.forecaster.models
        points_of_models = NO_POINTS
        if model_names:
            points_of_models = self.forecaster.points
            if not self._mixtures_are_ours:  # a user's own may write into them later
                points_of_models = self._checked_points(points_of_models, len(model_names))
        self.record.note(forecast, points_of_models, model_names, basis=self.basis)
        statistics = self.basis.transform(outcome)
        if not self._basis_is_ours:
            statistics = np.array(statistics)
        self.tell(forecast, outcome, statistics)

    def _checked_points(self, points: object, n_models: int) -> Array:
        """Return what a user's models predicted (M, n), a copy; UserError if it is something else.

        Labels are made of it later, for many rounds together.
        """
        name = f"{type(self.forecaster).__name__}.points"
        shape = (n_models, self.basis.size)
        copied = np.array(points)
        if copied.dtype.kind not in "biuf" or copied.shape != shape:
            raise UserError(f"{name} is {brief(points)}; make it an array {shape} of numbers")
        return copied

    def tell(self, forecast: Forecast, outcome: Array, statistics: Array) -> None:
        """Tell the forecaster the outcome (d,) and its statistics (n,), and relay the forecast.

        ``forecast`` is what the block broadcast in the round; ``statistics`` is s(y).
        """
        if not self._observer_is_ours:
            statistics = read_only(statistics)
            outcome = read_only(outcome)
        self.forecaster.observe(RoundFeedback(statistics, outcome, forecast.index))
        if self.relay is not None:
            self.relay.add(forecast, statistics)


def cohorts_of(seats: Sequence[Seat]) -> tuple[Cohort, ...]:
    """Return the cohorts, in the order of their seats."""
    return tuple([seat.cohort for seat in seats])


class Game:
    """The players of a market, its history, and the referee's random streams.

    Parameters
    ----------
    blocks : sequence of Block
        The parts of the broadcast; each cohort hears the block whose index it names.
    seats : sequence of Seat
        One per cohort.
    adversary : Adversary
        Commits to the outcomes.
    seed : int
        Root seed of the referee's streams.
    market : Market, optional
        Left out where what agents do moves no outcome.
    network : Network, optional
        Left out where everybody hears the forecast at once.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        seats: Sequence[Seat],
        *,
        adversary: Adversary,
        seed: int,
        market: Market | None = None,
        network: Network | None = None,
    ) -> None:
        self.blocks = tuple(blocks)
        self.seats = tuple(seats)
        self.cohorts = cohorts_of(self.seats)
        self.adversary = adversary
        self.market = market
        self.network = network
        self.history = History(adversary.outcomes)
        self.forecast_stream = stream(seed, "referee", "forecast")
        self.outcome_stream = stream(seed, "referee", "outcome")
        if market is not None:
            check_leader(adversary, market)
            tell_fundamentals(market, adversary)
        tell_followers(market, self.cohorts)
        self._imagined_paths: list[ImaginedPath] = []  # by an adversary that looks ahead
        self._watching_cohorts = [cohort for cohort in self.cohorts if cohort.watches_actions]
        # Why no further round can be played: one was cut off. Empty as long as one can.
        self.cut_off = ""
        introduce(adversary, self.cohorts)

    @property
    def adversary_sees_draw(self) -> bool:
        """Whether the adversary sees the drawn forecast before it commits, against the rule."""
        return "draw" in sight_of(self.adversary)

    @property
    def why_no_guarantee(self) -> str:
        """Why the theorem covers nobody here; empty where it does.

        It needs an outcome that is settled before the forecast is drawn, and losses that are
        functions of the outcome.
        """
        if self.adversary_sees_draw:
            return "no guarantee, since the adversary sees the drawn forecast before it commits"
        if self.outcomes_are_estimates:
            return self.adversary.innermost.why_no_guarantee
        if self.has_personal_losses:
            return NO_GUARANTEE_PERSONAL
        if self.market is not None and self.market.answers_at_once:
            return NO_GUARANTEE_AT_ONCE
        return ""

    @property
    def outcomes_are_estimates(self) -> bool:
        """Whether the adversary says that no bound is stated of its outcomes, as of estimates."""
        return bool(self.adversary.innermost.why_no_guarantee)

    @property
    def has_personal_losses(self) -> bool:
        """Whether agents have losses of their own, which are no functions of the outcome."""
        return self.market is not None and self.market.has_personal_losses

    @property
    def outcomes_after_market(self) -> Callable[[Array], Array | None] | None:
        """From outcomes (m, d) to what the market, if any, makes of them in the next round."""
        return None if self.market is None else self.market.next_outcomes

    @property
    def view_of_next_round(self) -> GameView:
        """Who takes part in the next round, and what a market would make of outcomes."""
        return GameView(
            self.blocks,
            self.seats,
            rounds=self.history.rounds,
            moved=self.outcomes_after_market,
            last_outcome=self.history.latest,
            kept_paths=self._imagined_paths,
        )

    def forget_imagined_paths(self) -> None:
        """Forget what was imagined in the last round; the players' memories were replaced."""
        self._imagined_paths.clear()

    def note_cut_off(self, round_index: int, error: BaseException) -> None:
        """Note that an error, or Ctrl-C, cut off a round that some have played already.

        The first such note stays.
        """
        if not self.cut_off:
            fault = type(error.__cause__ or error).__name__
            self.cut_off = (
                f"round {round_index} was cut off by {fault}, and only some have played it; "
                "build the market again, or restore a checkpoint"
            )

    def refuse_after_cut_off(self) -> None:
        """Raise UserError if a round was cut off.

        Played again, it would count twice for some, or with other random numbers than in a run
        without the error.
        """
        if self.cut_off:
            raise UserError(self.cut_off)

    def refuse_if_agents_are_elsewhere(self) -> None:
        """Raise UserError if other processes play some of the agents, so that logs lack them."""

    def regret_log_of_all(self, rows: "pd.DataFrame") -> "pd.DataFrame":
        """Return the regret log of all agents, given the rows of those whom this process plays."""
        return rows

    def ask_market_to_clear(self, market: Market, current: Round) -> object:
        """Ask the market for the outcome of a round, given what all do."""
        decisions: Sequence[Decision | None] = current.decisions
        if not market.is_built_in:
            decisions = decisions_readonly_unless_ours(market, market.clear, decisions)
        return market.clear(current.outcome, decisions)

    def show_actions(self, decisions: Sequence[Decision | None]) -> None:
        """Tell cohorts that watch what all agents play what everybody did in a round."""
        if not self._watching_cohorts:
            return
        actions = actions_of_agents(self.cohorts, decisions)
        for cohort in self._watching_cohorts:
            cohort.observe_actions(actions)

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to (``market.game.adversary_view``)."""
        return summed(
            self.adversary.payoff,
            self.cohorts,
            played,
            losses_are_personal=self.has_personal_losses,
        )

    def rows_yet_to_enter(self, cohort_index: int) -> Mask:
        """Return which rows of a cohort enter late and have not played yet (K,)."""
        seat = self.seats[cohort_index]
        entered = seat.attendance.entered
        has_not_entered = (entered > 0) & (entered >= self.history.rounds)
        return np.broadcast_to(has_not_entered, seat.rows)

    def players(self) -> dict[str, Any]:
        """Return everything that has a memory of its own, by name, for checkpoints."""
        by_name: dict[str, Any] = {"adversary": self.adversary, "history": self.history}
        if self.market is not None:
            by_name["market"] = self.market
        for block in self.blocks:
            by_name[f"block {block.name}"] = block.forecaster
            by_name[f"record {block.name}"] = block.record
            if block.relay is not None:
                by_name[f"relay {block.name}"] = block.relay
        for seat in self.seats:
            by_name |= seat.players()
        return by_name

    def forgetful(self) -> list[str]:
        """Return the names of the players that offer no ``state`` and ``restore``."""
        return [name for name, player in self.players().items() if not remembers(player)]


def _cut_off_by_errors(
    step_of_round: Callable[Concatenate[Game, Arguments], Round],
) -> Callable[Concatenate[Game, Arguments], Round]:
    """Decorate a step of a round: after an error in it, or Ctrl-C, the game refuses to go on.

    By then some have drawn random numbers for the round, or have learned of it, and others have
    not.
    """

    @wraps(step_of_round)
    def guarded_step(
        game: Game, /, *arguments: Arguments.args, **named_arguments: Arguments.kwargs
    ) -> Round:
        game.refuse_after_cut_off()
        round_index = game.history.rounds
        try:
            return step_of_round(game, *arguments, **named_arguments)
        except BaseException as error:
            game.note_cut_off(round_index, error)
            raise

    return guarded_step


def play_round(game: Game) -> Round:
    """Play one round, and return everything that happened."""
    return finish(game, begin(game))


def begin(game: Game) -> Round:
    """Return a new round in which everybody has decided: ``offer`` to ``decide`` in one step."""
    if game.cut_off:
        raise UserError(game.cut_off)
    try:
        current = _offer(game)
        _commit_and_draw(game, current)
        _decide(game, current)
    except BaseException as error:
        game.note_cut_off(game.history.rounds, error)
        raise
    return current


def _offer(game: Game) -> Round:
    """Return a new round with the context and the forecasters' mixtures."""
    context = game.adversary.context(game.history)
    if not isinstance(context, Context):
        method_name = name_of(game.adversary.context)
        raise UserError(f"{method_name} returned {brief(context)}; return a Context")
    mixtures = [block.mixture(context) for block in game.blocks]
    return Round(game.history.rounds, context, tuple(mixtures), outcome=NO_VALUES)


def _commit_and_draw(game: Game, current: Round) -> Round:
    """Fill in the adversary's distribution, the drawn forecasts and the outcome; return the round.

    The forecasts are drawn after the adversary has committed; one that breaks the rule sees them
    before. UserError if the adversary returns no distribution over its outcomes.
    """
    declared_sights = sight_of(game.adversary)
    if "draw" in declared_sights:
        current.forecasts = _draw_forecasts(game, current)
        current.distribution = _ask_to_commit(game, current, declared_sights)
    else:
        current.distribution = _ask_to_commit(game, current, declared_sights)
        current.forecasts = _draw_forecasts(game, current)
    current.outcome = current.distribution.draw(game.outcome_stream)
    return current


def _ask_to_commit(
    game: Game, current: Round, declared_sights: frozenset[str]
) -> OutcomeDistribution:
    """Return the adversary's distribution, given what it declared to see of the round so far."""
    players = None
    if not declared_sights.isdisjoint(SIGHTS_OF_PLAY):
        players = game.view_of_next_round
    adversary_view = make_adversary_view(
        declared_sights,
        current,
        players=players,
        outcomes_after_market=game.outcomes_after_market,
    )
    distribution = game.adversary.commit(current.context, game.history, adversary_view)
    _check_distribution(game.adversary, distribution)
    return distribution


def _draw_forecasts(game: Game, current: Round) -> tuple[Forecast, ...]:
    forecasts = []
    for block_index, block in enumerate(game.blocks):
        mixture = current.mixtures[block_index]
        if block.forecaster.is_silent:
            forecasts.append(Forecast(mixture, 0))
        else:
            forecasts.append(mixture.draw(game.forecast_stream))
    return tuple(forecasts)


def _check_distribution(adversary: Adversary, distribution: object) -> None:
    """Raise UserError unless an adversary committed to a distribution over its outcomes."""
    if not isinstance(distribution, OutcomeDistribution):
        method_name = name_of(adversary.innermost.commit)
        raise UserError(
            f"{method_name} returned {brief(distribution)}; return an OutcomeDistribution"
        )
    coordinates = distribution.points.shape[1]
    if coordinates != adversary.outcomes:
        method_name = name_of(adversary.innermost.commit)
        raise UserError(
            f"{method_name} returned a distribution over {coordinates} outcomes; "
            f"return one over {adversary.outcomes}"
        )


def _decide(game: Game, current: Round) -> Round:
    """Fill in what every cohort saw, could afford and decided; return the round."""
    contexts: list[Context] = []
    affordable_actions: list[Mask | None] = []
    decisions: list[Decision | None] = []
    for cohort_index, seat in enumerate(game.seats):
        context = current.context
        if seat.signal is not PUBLIC:
            context = seat.signal.seen(context, current.outcome)
        affordable = None
        if seat.budget.restricts and game.market is not None:
            affordable = game.market.affordable(cohort_index)
        forecast = current.forecasts[seat.cohort.block]
        decision = seat.decide(forecast, context, round_index=current.number, affordable=affordable)
        contexts.append(context)
        affordable_actions.append(affordable)
        decisions.append(decision)
    current.seen = tuple(contexts)
    current.affordable = tuple(affordable_actions)
    current.decisions = tuple(decisions)
    return current


# The steps of ``begin`` by themselves, for who acts between two of them.
offer = _cut_off_by_errors(_offer)
commit_and_draw = _cut_off_by_errors(_commit_and_draw)
decide = _cut_off_by_errors(_decide)


def finish(game: Game, current: Round) -> Round:
    """Reveal the outcome, charge everybody and let all learn; return the round as played."""
    if game.cut_off:
        raise UserError(game.cut_off)
    try:
        _charge(game, current)
        _let_all_learn(game, current)
    except BaseException as error:
        game.note_cut_off(current.number, error)
        raise
    return current


def _charge(game: Game, current: Round) -> None:
    """Let the market, if any, move the outcome, and fill in what everybody lost at it."""
    market_losses: Sequence[Array | None] | None = None
    if game.market is not None:  # it may move the outcome, or say who lost what
        answer = game.ask_market_to_clear(game.market, current)
        current.outcome = checked_outcome(game.market, current.outcome, answer)
        if game.market.has_personal_losses:
            market_losses = personal_losses(game.market, current.decisions)
        elif game.market.is_built_in:  # what a user's class returns may be another outcome
            market_losses = game.market.losses_at_outcome
    losses: list[Array | None] = []
    for index, seat in enumerate(game.seats):
        charged_losses = seat.charge(
            current.decisions[index],
            None if market_losses is None else market_losses[index],
            outcome=current.outcome,
            affordable=current.affordable[index],
        )
        losses.append(charged_losses)
    current.losses = tuple(losses)


def _let_all_learn(game: Game, current: Round) -> None:
    """Record the round, and let agents, forecasters and adversary learn of it."""
    outcome = current.outcome
    game.show_actions(current.decisions)
    for index, seat in enumerate(game.seats):
        seat.record(
            current.decisions[index],
            current.losses[index],
            current.seen[index],
            round_index=current.number,
            outcome=outcome,
        )
    for block_index, block in enumerate(game.blocks):
        block.learn(current.forecasts[block_index], outcome)
    game.history.add(outcome)
    if game.adversary.observes_play:
        current.sums = game.sums(current)
        if game.adversary.learns:
            teach(game.adversary, current, current.sums)
