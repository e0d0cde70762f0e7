"""Who hears which block of the broadcast.

``assign_blocks`` is a step of ``build``. Cohorts whose losses live in the same basis share a
**block**: a basis of functions of the outcome, whose values one forecaster predicts. Learners do
not listen and shape no block. Where nobody else is there from the start, the forecast is made for
their losses all the same, as if they trusted it: a forecaster needs losses to protect, and
adversaries that answer to the forecast need one.

**Latecomers** do not shape what others hear. One hears the first block whose basis spans its
losses, an exact one before others. Where no basis does, or the cohort names a basis, has a cover or
reports losses, a block of its own is made for it from the start, as for any other cohort.
"""

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from regretless.forecaster.bases.default import natural_kind, variant
from regretless.forecaster.bases.indicators import WithIndicators
from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.events.quantile_grid import QuantileGrid
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.network import DelayedForecasts, Network
from regretless.market.losses import unique_losses
from regretless.market.losses.basis import Basis
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.assembly.populations import DrawnPopulation

QUANTILES = "quantiles"  # name of the block that announces them


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """A block of the broadcast that has no forecaster yet."""

    index: int  # among all blocks
    name: str
    basis: Basis
    relay: DelayedForecasts | None  # for those who hear it late; None where all hear at once
    served: tuple[str, ...]  # the cohorts for whose losses its forecast is made
    guests: tuple[str, ...] = ()  # latecomers, who hear what is made for others
    grid: QuantileGrid | None = None  # of the quantiles that it announces, to nobody's losses


def assign_blocks(
    populations: Sequence[DrawnPopulation], network: Network | None
) -> list[BlockPlan]:
    """Plan the blocks of a broadcast, those of latecomers last.

    A cohort that no plan names hears none: learners beside a broadcast that is made for others.
    UserError if a basis is unknown or cannot be made.
    """
    from_the_start = [population for population in populations if not population.spec.enters]
    listeners = [population for population in from_the_start if not population.spec.learns]
    shared_plans = _plan_blocks(listeners or from_the_start, network)
    guests_of_block: dict[int, list[str]] = {plan.index: [] for plan in shared_plans}
    without_host = []
    for population in populations:
        if not population.spec.enters or population.spec.learns:
            continue
        host = find_host(population, shared_plans)
        if host is None:
            without_host.append(population)
        else:
            guests_of_block[host.index].append(population.spec.name)
    plans = [replace(plan, guests=tuple(guests_of_block[plan.index])) for plan in shared_plans]
    return plans + _plan_blocks(without_host, network, existing=plans)


def plan_quantiles(
    levels: Sequence[float], *, n_outcomes: int, steps: int, existing: Sequence[BlockPlan]
) -> list[BlockPlan]:
    """Plan the block that announces quantiles of so many outcomes; none without levels.

    It comes after the ``existing`` ones. Nobody responds to it.
    """
    if not levels:
        return []
    plan = BlockPlan(
        index=len(existing),
        name=_new_name(QUANTILES, [plan.name for plan in existing]),
        basis=WithIndicators(LinearBasis(n_outcomes), steps=steps),
        relay=None,
        served=(),
        grid=QuantileGrid(tuple(levels), n_outcomes, steps),
    )
    return [plan]


def plan_of(name: str, plans: Sequence[BlockPlan]) -> BlockPlan | None:
    """Return the block that a cohort hears; None for one that hears none."""
    for plan in plans:
        if name in plan.served or name in plan.guests:
            return plan
    return None


def find_host(population: DrawnPopulation, plans: Sequence[BlockPlan]) -> BlockPlan | None:
    """Choose the block that a late cohort hears: exact if possible, else of least certified error.

    None if it needs a block of its own: no basis of the others spans its losses, or it names a
    basis, has a cover or reports, so that something is to be protected for it from the start.
    """
    spec = population.spec
    if spec.basis.given or spec.cover is not None or spec.reports:
        return None
    losses, _ = unique_losses(population.loss)
    spanning = []
    for plan in plans:
        with suppress(ValueError):  # it does not span them
            plan.basis.coefficients(losses)
            spanning.append(plan)
    if not spanning:
        return None
    for plan in spanning:
        if plan.basis.error == 0:
            return plan
    if len(spanning) == 1:
        return spanning[0]
    return min(spanning, key=lambda plan: plan.basis.certified_error(losses))


def _plan_blocks(
    populations: Sequence[DrawnPopulation],
    network: Network | None,
    *,
    existing: Sequence[BlockPlan] = (),
) -> list[BlockPlan]:
    """Plan a block for each basis in which losses of the populations live.

    The blocks are numbered after the ``existing`` ones and have other names.
    """
    groups: dict[tuple[Any, ...], list[DrawnPopulation]] = {}
    for population in populations:
        basis_spec = population.spec.basis
        kind = basis_spec.kind
        if kind == "auto":
            kind = natural_kind(population.declared)
        parameters = repr(sorted(basis_spec.parameters.items()))
        key = (kind, variant(kind, population.declared), parameters)
        groups.setdefault(key, []).append(population)
    kinds = [kind for kind, _, _ in groups]
    taken_names = [plan.name for plan in existing]
    plans = []
    for position, members in enumerate(groups.values()):
        kind = kinds[position]
        if existing:
            name = _new_name(kind, taken_names)
        elif kinds.count(kind) == 1:
            name = kind
        else:
            name = f"{kind}-{1 + kinds[:position].count(kind)}"
        taken_names.append(name)
        basis = _make_basis(kind, members)
        plan = BlockPlan(
            index=len(existing) + position,
            name=name,
            basis=basis,
            relay=None if network is None else network.relay(basis),
            served=tuple(population.spec.name for population in members),
        )
        plans.append(plan)
    return plans


def _make_basis(kind: str, populations: Sequence[DrawnPopulation]) -> Basis:
    """Make a basis for the losses of populations who name the same one; UserError if it cannot."""
    first = populations[0].spec
    where = f"cohort.{first.name}.basis"
    losses = [population.declared for population in populations]
    losses += [population.loss for population in populations if population.reported is not None]
    if kind not in register.basis:
        hint = closest(kind, ["auto", *register.basis.names()])
        raise UserError(f"{where}: unknown basis '{kind}'; {hint}")
    parameters = first.basis.parameters
    error = parameters.get("error")
    if isinstance(error, int | float) and error <= 0:
        raise UserError(f"{where}: error = {error!r}; give a positive number")
    basis: Basis = construct(f"{where} '{kind}'", register.basis[kind], losses, **parameters)
    return basis


def _new_name(kind: str, taken_names: Container[str]) -> str:
    """Return the kind of a basis as the name of a block, numbered from 2 if it is taken."""
    if kind not in taken_names:
        return kind
    return next(f"{kind}-{i}" for i in count(2) if f"{kind}-{i}" not in taken_names)
