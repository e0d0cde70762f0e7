"""What can be shared out: agents who meet nobody, and whom no outcome answers.

Everything else is refused in a line that names the key. A market, a network and an adversary that
sees what agents do would need all of them in every round.
"""

from collections.abc import Iterator

from regretless.market.core.errors import UserError
from regretless.market.game.information import sight_of
from regretless.market.model import MarketModel
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.scenario import ScenarioSpec

ROW_BY_ROW = ("best-response", "private", "quantal", "certainty-equivalent")
CURE = "drop it, or run on one machine, without --workers and --scheduler"


def check_spec(spec: ScenarioSpec, shares: int | None = None) -> None:
    """Raise UserError at the first key of a scenario whose agents cannot be shared out so."""
    most = max(cohort.count for cohort in spec.cohort)
    if shares is not None and shares > most:
        told = f"--workers {shares}: the largest cohort has {most} agents"
        raise UserError(f"{told}; give at most as many")
    for key, why in _faults(spec):
        raise UserError(f"{key}: {why}, so that agents cannot be shared out; {CURE}")


def _faults(spec: ScenarioSpec) -> Iterator[tuple[str, str]]:
    if spec.market is not None:
        yield "market", "outcomes answer to what all agents do"
    if spec.network is not None:
        yield "network", "agents hear from each other"
    if spec.measures:
        yield "measures", "a measure of your own may look at all agents"
    if spec.forecaster.models:
        yield "forecaster.models", "all agents are compared with models in every round"
    for cohort in spec.cohort:
        for key, why in _of_cohort(cohort):
            yield f"cohort.{cohort.name}.{key}", why


def _of_cohort(cohort: CohortSpec) -> Iterator[tuple[str, str]]:
    if cohort.response not in ROW_BY_ROW:
        yield f"response = '{cohort.response}'", f"only {', '.join(ROW_BY_ROW)} answer one by one"
    if cohort.counted:
        yield "counted", "a crowd that is counted has a row per archetype, which one machine plays"
    for key in ("joins", "leaves", "entry_rate", "exit_rate"):
        if getattr(cohort, key):
            yield key, "they come and go"


def check_built(market: MarketModel) -> None:
    """Raise UserError if the adversary of a market sees, or is paid by, what agents do."""
    adversary = market.game.adversary
    kind = getattr(type(adversary), "name", type(adversary).__name__)
    for sight in sorted(sight_of(adversary) - {"history", "mixture"}):
        why = f"{kind} sees '{sight}', which takes all agents in every round"
        raise UserError(f"adversary: {why}; {CURE}")
    for part, why in {"payoff": "is paid by", "learn": "learns from"}.items():
        if getattr(adversary, part, None) is not None:
            raise UserError(f"adversary: {kind} {why} what all agents do in every round; {CURE}")
