"""Who can be shared out, and the conductor's market without the agents who are elsewhere.

Shared out are agents who meet nobody but in what they come to together. All others are played where
the game is, by the process that conducts, which says so in a line. So are crowds that are counted,
which have a row for each type.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NoReturn

from regretless.agents.responses import BUILT_IN
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import is_ours
from regretless.market.game.adversary_view import sight_of
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Game
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.logs.journal import Journal
from regretless.market.logs.sampling import Logged
from regretless.market.logs.windows import Windows
from regretless.market.markets.aggregate import Settling
from regretless.market.model import MarketModel
from regretless.market.records import Context, Decision, Forecast
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec


class Elsewhere(Seat):
    """The seat of a cohort whose agents are elsewhere: here nobody decides, or is remembered."""

    def __post_init__(self) -> None:
        """Ask nothing of the cohort."""

    def present(self, number: int) -> bool:
        """Nobody is, in any round."""
        return False

    def players(self) -> dict[str, object]:
        """Nobody has a memory here."""
        return {}


class StandIn(Cohort):
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here."""

    def __init__(self, whole: Cohort) -> None:
        self.name, self.kind, self.utility = whole.name, whole.kind, whole.utility
        self.block, self.policies, self.loss = whole.block, whole.policies, whole.loss
        self._rule = whole.rule

    @property
    def rule(self) -> str:
        """Name of the response rule."""
        return self._rule

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Raise UserError."""
        return self._unknown()

    @property
    def ledger(self) -> Any:  # type: ignore[override]
        """Raise UserError."""
        return self._unknown()

    @property
    def row_of(self) -> Any:  # type: ignore[override]
        """Raise UserError."""
        return self._unknown()

    def _unknown(self) -> NoReturn:
        why = "is played by workers, and what its agents do is not known here"
        raise UserError(f"cohort.{self.name} {why}; run without --workers and --scheduler")


def without(game: Game, places: Sequence[int]) -> Game:
    """Return a game in which some cohorts are stand-ins."""
    away, seats = copy(game), list(game.seats)
    for place in places:
        seats[place] = Elsewhere(StandIn(seats[place].cohort))
    away.seats = tuple(seats)
    return away


def journal_without(model: MarketModel, places: Sequence[int]) -> Journal:
    """Log what there is without some cohorts' agents, in chunks as the whole market's."""
    game, logged = model.game, list(model.journal.logged)
    for place in places:
        logged[place] = logged[place].nobody()
    market = {"payoff": game.adversary.payoff, "market": game.market}
    return journal_like(model, game.cohorts, logged, model.guarantees, **market)


def journal_like(
    model: MarketModel,
    cohorts: Sequence[Cohort],
    logged: Sequence[Logged],
    *promises: Sequence[Guarantee],
    **more: Any,
) -> Journal:
    """Log some cohorts, or parts of them, in chunks and windows as a market does."""
    whole, names = model.journal, [block.name for block in model.game.blocks]
    spans = whole.windows.spans if whole.windows is not None else ()
    windows = Windows(cohorts, logged, spans, *promises) if spans else None
    more |= {"log_every": whole.log_every, "logged": logged, "windows": windows}
    journal = Journal(cohorts, names, **more)
    journal.chunk_rounds = whole.chunk_rounds
    return journal


def divisible(spec: ScenarioSpec, game: Game | None = None) -> tuple[list[int], dict[str, str]]:
    """Return which cohorts can be shared out, by place, and why others, not counted, cannot.

    The reasons are by key. ``spec``: without empty cohorts; ``game``: as it is built, where that is
    known; without it more may be in the list.
    """
    alone = dict(_whole(spec, game))
    if alone:
        return [], alone
    places = []
    for place, cohort in enumerate(spec.cohort):
        why = _alone(cohort, spec, None if game is None else game.seats[place])
        if why:
            alone[f"cohort.{cohort.name}"] = why
        elif not cohort.multiplicity:
            places.append(place)
    return places, alone


def _whole(spec: ScenarioSpec, game: Game | None) -> Iterator[tuple[str, str]]:
    """Yield what takes all agents in one place."""
    if spec.measures:
        yield "measures", "a measure of your own may look at all agents"
    if game is None:
        return
    for sight in sorted(sight_of(game.adversary) & {"play", "draw"}):
        yield "adversary", f"it sees '{sight}', which takes all agents in every round"
    market = game.market
    adds_up = market is None or type(market).clear is Settling.clear
    if market is not None and (market.personal or market.accounts is not None or not adds_up):
        yield "market", f"{type(market).__name__} clears agent by agent"


def _alone(cohort: CohortSpec, spec: ScenarioSpec, seat: Seat | None) -> str:
    """Say why agents of a cohort do not answer one by one; nothing if they do."""
    if cohort.learns:
        if spec.forecaster.objective != "none":
            return "the forecaster's objective asks learners what they are about to play"
        one_by_one = is_ours(register.learner[cohort.response])
    else:
        one_by_one = any(rule.name == cohort.response and rule.row_by_row for rule in BUILT_IN)
    if not one_by_one:
        return f"response '{cohort.response}' does not answer agent by agent"
    if seat is not None and (seat.signal is not PUBLIC or seat.budget is not UNLIMITED):
        return "its agents have signals or means of their own"
    return ""
