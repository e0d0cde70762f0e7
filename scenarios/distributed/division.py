"""Which cohorts of a game can be shared out: those whose agents meet only in their sums."""

from dataclasses import dataclass, field

from regretless.agents.responses import BUILT_IN
from regretless.market import register
from regretless.market.core.own_code import is_ours
from regretless.market.game.adversary_view import sight_of
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.round import Game
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.markets import Market
from regretless.market.markets.aggregate import Settling
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec


@dataclass
class Division:
    """Which cohorts can be shared out, and why others cannot.

    Attributes
    ----------
    places : list of int
        The places, in the game, of the cohorts that can.
    reasons : dict of str to str
        Why others cannot, by the key of the scenario from which that follows.

    Cohorts that are counted, by type, are in neither.
    """

    places: list[int] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


def divide(scenario: ResolvedScenario, game: Game) -> Division:
    """Return which cohorts of a game can be shared out; ``scenario`` is what it was built from."""
    division = Division(reasons=_reasons_against_all(scenario.spec, game))
    if division.reasons:
        return division
    for cohort_index, (cohort, seat) in enumerate(zip(scenario.cohorts, game.seats, strict=True)):
        reason = _reason_against_cohort(cohort, scenario.spec, seat)
        if reason:
            division.reasons[f"cohort.{cohort.name}"] = reason
        elif not cohort.multiplicity:
            division.places.append(cohort_index)
    return division


def _reasons_against_all(spec: ScenarioSpec, game: Game) -> dict[str, str]:
    """Return why nobody can be shared out, by key; nothing if some can."""
    reasons: dict[str, str] = {}
    if spec.measures:
        reasons["measures"] = "a measure of your own may look at all agents"
    for sight in sorted(sight_of(game.adversary) & {"play", "draw"}):
        reasons["adversary"] = f"it sees '{sight}', which takes all agents in every round"
    if game.market is not None and not _clears_by_sums(game.market):
        reasons["market"] = f"{type(game.market).__name__} clears agent by agent"
    for cohort in game.cohorts:
        if cohort.watches_actions:
            reasons[f"cohort.{cohort.name}"] = "it watches what all agents play"
    return reasons


def _clears_by_sums(market: Market) -> bool:
    """Whether a market needs nothing of agents but what their decisions add up to."""
    if market.has_personal_losses or market.accounts is not None:
        return False
    return type(market).clear is Settling.clear


def _reason_against_cohort(cohort: CohortSpec, spec: ScenarioSpec, seat: Seat) -> str:
    """Say why agents of a cohort do not answer one by one; nothing if they do."""
    if cohort.learns and spec.forecaster.objective != "none":
        return "the forecaster's objective asks learners what they are about to play"
    if not _answers_row_by_row(cohort):
        return f"response '{cohort.response}' does not answer agent by agent"
    if seat.signal is not PUBLIC or seat.budget is not UNLIMITED:
        return "its agents have signals or means of their own"
    return ""


def _answers_row_by_row(cohort: CohortSpec) -> bool:
    """Whether what an agent of a cohort does depends on nobody else in it."""
    if cohort.learns:
        return is_ours(register.learner[cohort.response])
    return any(rule.name == cohort.response and rule.row_by_row for rule in BUILT_IN)
