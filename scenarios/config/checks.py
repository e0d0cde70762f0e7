"""What only the whole file shows: cohorts that come, go or learn, and which crowds are counted.

A cohort is counted, with a row for every type and how many agents it has, that says ``multiplicity
= true``, and one of more than ``MANY`` agents with types that can be, unless it says ``multiplicity
= false``. It cannot be where agents of equal losses differ in anything else: when they come, what
they own, remember, know or are told. Nothing is built or played.
"""

import os
from collections.abc import Iterator

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.config import reasons
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.market import MarketSpec, gives_own_losses
from regretless.scenarios.config.scenario import ScenarioSpec


def check(spec: ScenarioSpec) -> None:
    """Raise UserError at the first cohort whose keys do not go together, or with the others'."""
    for cohort in spec.cohort:
        if cohort.enters >= spec.rounds:
            there = f"there are {spec.rounds} rounds, from 0; join earlier"
            raise UserError(f"cohort.{cohort.name}.enters = {cohort.enters}: {there}")
    if all(cohort.enters for cohort in spec.cohort):
        why = "the forecast is made for it"
        raise UserError(f"all cohorts join late; leave enters out of one, {why}")
    for cohort in spec.cohort:
        last = cohort.exits or spec.rounds
        left = (c.enters <= last < (c.exits or spec.rounds) for c in spec.cohort)
        if last < spec.rounds and not any(left):
            why = "no cohort is left in that round; keep one"
            raise UserError(f"cohort.{cohort.name}.exits = {last}: {why}")
    listeners = [c for c in spec.cohort if not c.enters and not c.learns]
    for cohort in spec.cohort:
        if cohort.learns and cohort.basis.given and (listeners or cohort.enters):
            raise UserError(f"cohort.{cohort.name}.basis: learners hear no forecast; drop it")


MANY = 1_000_000
LISTED = 300  # bytes that an agent of a list takes at the very least; 500 were measured


def with_counts(spec: ScenarioSpec) -> ScenarioSpec:
    """Settle which cohorts are counted.

    UserError where one cannot be that asks for it, or memory is too short to list the agents.
    """
    cohorts = [_settled(cohort, next(_obstacles(cohort, spec), "")) for cohort in spec.cohort]
    settled = all(one is other for one, other in zip(cohorts, spec.cohort, strict=True))
    return spec if settled else spec.model_copy(update={"cohort": cohorts})


def _settled(cohort: CohortSpec, obstacle: str) -> CohortSpec:
    """Settle whether a cohort is counted, given what stands in the way, if anything."""
    if cohort.multiplicity and obstacle:
        raise UserError(f"cohort.{cohort.name}.multiplicity: {obstacle}")
    if cohort.multiplicity is None and cohort.count > MANY and not obstacle:
        return cohort.model_copy(update={"multiplicity": True})
    if not cohort.multiplicity:
        _check_memory(cohort, obstacle or "multiplicity is false; leave that out")
    return cohort


def _obstacles(cohort: CohortSpec, spec: ScenarioSpec) -> Iterator[str]:
    """Yield why a cohort cannot be counted, and what to do about it."""
    if cohort.types is None:
        yield "its agents have a loss each; give types, how many losses they share"
    if "multiplicity" in cohort.BARRED:
        yield cohort.BARRED["multiplicity"]
    for key in ("entry_rate", "exit_rate", "signal", "budget_constraint"):
        if getattr(cohort, key):
            yield f"{key} {reasons.APART}; drop it"
    if spec.network is not None:
        yield f"[network] {reasons.HOPS}; drop it"
    if spec.market is not None:
        kind = spec.market.kind if isinstance(spec.market, MarketSpec) else "prices"
        if gives_own_losses(spec.market):
            yield f"in market '{kind}' each agent has losses of its own; drop multiplicity"
        made = vars(register.market[kind]) if kind in register.market else {}
        if made and not made.get("supports_multiplicity", False):
            yield f"market '{kind}' {reasons.SINGLY}; choose another, or fewer agents"


def _check_memory(cohort: CohortSpec, obstacle: str) -> None:
    """Raise UserError where a list of the agents exceeds the machine's memory by far."""
    needed = LISTED * cohort.count
    if hasattr(os, "sysconf") and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        where = f"cohort.{cohort.name}.count = {cohort.count}"
        short = f"a list of agents takes {needed / 1e9:,.0f} GB and more, which are not there"
        raise UserError(f"{where}: {short}, and they are not counted, since {obstacle}")
