"""What only the whole file shows: cohorts that come, go or learn, and keys that they cannot have.

Names are looked up in ``market.register``; nothing is built or played.
"""

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.scenario import ScenarioSpec


def check(spec: ScenarioSpec) -> None:
    """Raise UserError at the first cohort whose keys do not go together, or with the others'."""
    _check_joins(spec)
    for cohort in spec.cohort:
        _check_leaving(cohort, spec)
    listeners = [c for c in spec.cohort if not c.enters and not c.learns]
    for cohort in spec.cohort:
        if cohort.signal is not None and cohort.response not in register.agent:
            cure = "name an agent of your own as response, or drop it"
            raise UserError(f"cohort.{cohort.name}.signal: nobody reads it; {cure}")
        if cohort.learns:
            _check_learner(cohort, alone=not listeners and not cohort.enters)
        elif cohort.settings and cohort.response not in register.agent:
            known = ", ".join(register.learner.names())
            reason = f"are for learners ({known}) and agents of your own; drop them"
            raise UserError(f"cohort.{cohort.name}.settings {reason}")


def _check_joins(spec: ScenarioSpec) -> None:
    """Nobody comes too late, or asks for what whoever comes late cannot have."""
    for cohort in spec.cohort:
        key = f"cohort.{cohort.name}"
        there = f"there are {spec.rounds} rounds, from 0"
        if cohort.enters >= spec.rounds:
            raise UserError(f"{key}.enters = {cohort.enters}: {there}; join earlier")
        if not cohort.enters and cohort.gamma is not None:
            raise UserError(f"{key}.gamma: how near losses must be that join late; give enters")
        if cohort.enters and cohort.cover is not None:
            raise UserError(f"{key}.cover: late agents go with protected losses; drop it")
        if cohort.enters and cohort.basis.given:
            raise UserError(f"{key}.basis: late agents hear a basis that is there; drop it")
    if all(cohort.enters for cohort in spec.cohort):
        raise UserError(
            "all cohorts join late; leave enters out of one, the forecast is made for it"
        )


def _check_leaving(cohort: CohortSpec, spec: ScenarioSpec) -> None:
    """Only agents without a memory come and go one by one, and somebody is left in every round."""
    key = f"cohort.{cohort.name}"
    for name, rate in {"entry_rate": cohort.entry_rate, "exit_rate": cohort.exit_rate}.items():
        if rate is not None and cohort.response not in register.response:
            cure = "agents with a memory come and go together; use enters and exits"
            raise UserError(f"{key}.{name} = {rate}: {cure}")
    last = cohort.exits or spec.rounds
    kept = (c.enters <= last < (c.exits or spec.rounds) for c in spec.cohort)
    if last < spec.rounds and not any(kept):
        raise UserError(f"{key}.exits = {last}: no cohort is left in that round; keep one")


def _check_learner(cohort: CohortSpec, *, alone: bool) -> None:
    """Learners have a basis only where the forecast is made for them, since nobody listens."""
    if cohort.gamma is not None:
        raise UserError(f"cohort.{cohort.name}.gamma: learners hear no forecast; drop it")
    if not alone and cohort.basis.given:
        raise UserError(f"cohort.{cohort.name}.basis: learners hear no forecast; drop it")
