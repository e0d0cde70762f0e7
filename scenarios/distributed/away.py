"""The conductor's market, without the agents who are elsewhere: their seats and cohorts there."""

from collections.abc import Sequence
from copy import copy
from typing import Any, NoReturn

from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Game
from regretless.market.game.seats import Seat
from regretless.market.logs.journal import Journal
from regretless.market.logs.windows import Windows
from regretless.market.model import MarketModel
from regretless.market.records import Context, Decision, Forecast


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
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here.

    Parameters
    ----------
    whole : Cohort
    """

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
    whole, game, logged = model.journal, model.game, list(model.journal.logged)
    for place in places:
        logged[place] = logged[place].nobody()
    spans = whole.windows.spans if whole.windows is not None else ()
    journal = Journal(
        game.cohorts,
        [block.name for block in game.blocks],
        log_every=whole.log_every,
        payoff=game.adversary.payoff,
        market=game.market,
        logged=logged,
        windows=Windows(game.cohorts, logged, spans, model.guarantees) if spans else None,
    )
    journal.chunk_rounds = whole.chunk_rounds
    return journal
