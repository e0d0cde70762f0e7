"""What only the whole file shows: cohorts that come, go or learn, and keys that they cannot have.

Names are looked up in ``market.register``; nothing is built or played.
"""

from regretless.market.core.errors import UserError
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec


def check(spec: ScenarioSpec) -> None:
    """Raise UserError at the first cohort whose keys do not go together, or with the others'."""
    _check_joins(spec)
    for cohort in spec.cohort:
        _check_leaving(cohort, spec)
    listeners = [c for c in spec.cohort if not c.enters and not c.learns]
    for cohort in spec.cohort:
        if cohort.learns and cohort.basis.given and (listeners or cohort.enters):
            raise UserError(f"cohort.{cohort.name}.basis: learners hear no forecast; drop it")


def _check_joins(spec: ScenarioSpec) -> None:
    """Nobody comes too late, or asks for what whoever comes late cannot have."""
    for cohort in spec.cohort:
        key = f"cohort.{cohort.name}"
        there = f"there are {spec.rounds} rounds, from 0"
        if cohort.enters >= spec.rounds:
            raise UserError(f"{key}.enters = {cohort.enters}: {there}; join earlier")
    if all(cohort.enters for cohort in spec.cohort):
        raise UserError(
            "all cohorts join late; leave enters out of one, the forecast is made for it"
        )


def _check_leaving(cohort: CohortSpec, spec: ScenarioSpec) -> None:
    """Somebody is left in every round."""
    key = f"cohort.{cohort.name}"
    last = cohort.exits or spec.rounds
    kept = (c.enters <= last < (c.exits or spec.rounds) for c in spec.cohort)
    if last < spec.rounds and not any(kept):
        raise UserError(f"{key}.exits = {last}: no cohort is left in that round; keep one")
