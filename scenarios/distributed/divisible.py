"""Who can be shared out: agents who meet nobody but in what they come to together.

All others are played where the game is, by the process that conducts, which says so in a line. So
are counted crowds, which have a row for each type.
"""

from collections.abc import Iterator

from regretless.agents.responses import BUILT_IN
from regretless.market import register
from regretless.market.core.own_code import is_ours
from regretless.market.game.adversary_view import sight_of
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.round import Game
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.markets.aggregate import Settling
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec

Kept = dict[str, str]  # from a key, or the name of what is at fault, to why


def divisible(spec: ScenarioSpec, game: Game | None = None) -> tuple[list[int], Kept]:
    """Return which cohorts can be shared out, by place, and why others, not counted, cannot.

    Parameters
    ----------
    spec : ScenarioSpec
        Without empty cohorts.
    game : Game, optional
        As it is built, where that is known; without it more may be in the list.
    """
    kept = dict(_whole(spec, game))
    if kept:
        return [], kept
    places = []
    for place, cohort in enumerate(spec.cohort):
        why = _alone(cohort, spec, None if game is None else game.seats[place])
        if why:
            kept[f"cohort.{cohort.name}"] = why
        elif not cohort.multiplicity:
            places.append(place)
    return places, kept


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
