"""What can be shared out: agents who meet nobody but in what they come to together.

Everything else is refused in a line that names the key. A market that knows agents one by one and
an adversary that sees how each would play would need all of them in every round. A crowd that is
counted has a row for each type, which every share plays and the first one tells.
"""

from collections.abc import Iterator

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import is_ours
from regretless.market.game.adversary_view import sight_of
from regretless.market.markets.aggregate import Settling
from regretless.market.model import MarketModel
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.scenario import ScenarioSpec

ROW_BY_ROW = ("best-response", "private", "quantal", "certainty-equivalent")
CURE = "drop it, or run on one machine, without --workers and --scheduler"


def check_spec(spec: ScenarioSpec, shares: int | None = None) -> None:
    """Raise UserError at the first key of a scenario whose agents cannot be shared out so."""
    most = max((cohort.count for cohort in spec.cohort if not cohort.multiplicity), default=0)
    if not most:
        why = f"cohort.{spec.cohort[0].name}.multiplicity: all are counted, nobody is listed"
        raise UserError(f"{why}; one machine plays them as fast, without --workers and --scheduler")
    if shares is not None and shares > most:
        told = f"--workers {shares}: the largest listed cohort has {most} agents"
        raise UserError(f"{told}; give at most as many")
    for key, why in _faults(spec):
        raise UserError(f"{key}: {why}, so that agents cannot be shared out; {CURE}")


def _faults(spec: ScenarioSpec) -> Iterator[tuple[str, str]]:
    if spec.measures:
        yield "measures", "a measure of your own may look at all agents"
    for cohort in spec.cohort:
        for key, why in _of_cohort(cohort):
            yield f"cohort.{cohort.name}.{key}", why


def _of_cohort(cohort: CohortSpec) -> Iterator[tuple[str, str]]:
    if not _one_by_one(cohort):
        why = f"only {', '.join(ROW_BY_ROW)} and the learners that come with the program answer"
        yield f"response = '{cohort.response}'", f"{why} one by one"


def _one_by_one(cohort: CohortSpec) -> bool:
    return (
        is_ours(register.learner[cohort.response])
        if cohort.learns
        else cohort.response in ROW_BY_ROW
    )


def check_built(market: MarketModel) -> None:
    """Raise UserError if a market, or its adversary, knows agents one by one."""
    adversary, clears = market.game.adversary, market.game.market
    kind = getattr(type(adversary), "name", type(adversary).__name__)
    for sight in sorted(sight_of(adversary) & {"play", "draw"}):
        why = f"{kind} sees '{sight}', which takes all agents in every round"
        raise UserError(f"adversary: {why}; {CURE}")
    if clears is not None and (clears.personal or type(clears).clear is not Settling.clear):
        why = f"{type(clears).__name__} clears agent by agent"
        raise UserError(f"market: {why}, so that they cannot be shared out; {CURE}")
