"""Who takes part: the agents of each cohort, with their losses, policies and stays.

``draw_populations`` is a step of ``build``. It makes a ``DrawnPopulation`` of every cohort of a
scenario; ``cohorts`` makes of it a cohort that plays. Every draw has a stream of the cohort's own,
so that no cohort changes what another one draws. ``seed`` is the root seed of a run, ``n_outcomes``
the number d of coordinates of an outcome.

Agents are scored in **rows**: agents with equal losses who hear as late and are there at the same
times share one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from regretless.agents.policies import NamedPolicy, Steps
from regretless.agents.utilities.populations import Population
from regretless.agents.utilities.units import OutcomeUnits, Units
from regretless.market import register
from regretless.market.core.arrays import Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.game.attendance import ALWAYS, Attendance, drawn_stays
from regretless.market.game.network import Network
from regretless.market.losses import Linear, Loss, averaged, unique_losses
from regretless.market.numerics.storage import available_memory, on_disk
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.scenarios.assembly.construct import construct, drawn_values
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec

GIVEN_GAINS = {"affine", "buyer", "game", "payoffs"}  # utilities in the unit of the gains given
COPIES_OF_LOSSES = 3  # that are held at once while losses are made
RANGE_TOLERANCE = 1e-9  # by which rounding may take a loss out of [0, 1]
MAX_NOISY_COORDINATES = 6  # with noise of one's own: 3 nodes each, 729 together


@dataclass(frozen=True, eq=False)
class DrawnPopulation:
    """The agents of a cohort as they were drawn: N of them, or as many types if it is counted."""

    spec: CohortSpec
    loss: Loss  # of each agent, or of each type of a cohort that is counted
    reported: Loss | None  # what agents say that their losses are; None for the truth
    policies: tuple[NamedPolicy, ...]
    attendance: Attendance  # of each agent
    distance: Indices | None  # (N,) from the forecaster; None where all hear at once
    has_own_rows: bool  # whether every agent has a row of its own
    multiplicity: Indices | None = None  # (N,) agents of each type, where the cohort is counted
    parameters: Mapping[str, Any] = field(default_factory=dict)  # the utility's; (N,) if drawn
    units: Units = field(default_factory=Units)  # of losses and actions

    @property
    def declared(self) -> Loss:
        """The losses that the forecaster hears of."""
        return self.loss if self.reported is None else self.reported

    @property
    def public_policies(self) -> tuple[NamedPolicy, ...]:
        """The policies that read no private signal: what a forecaster can know of."""
        if self.spec.signal is None:
            return self.policies
        private_features = (None, self.spec.signal.name)  # None: nobody knows what it reads
        return tuple(policy for policy in self.policies if policy.feature not in private_features)

    # Rows.

    def rows_of(self, type_of: Indices) -> tuple[Indices, Indices]:
        """Give agents who differ in more than their loss rows of their own.

        ``type_of`` is the distinct loss of each agent (N,). Returns the distinct loss of each row
        (K,), ascending, and the row of each agent (N,).
        """
        if self.has_own_rows or self.spec.draws_alone or self.spec.budget_constraint:
            return type_of, np.arange(len(type_of))
        keys = [type_of]
        if self.reported is not None:
            keys.append(unique_losses(self.loss)[1])
        if self.distance is not None:
            keys.append(self.distance)
        if not self.attendance.throughout:
            keys += [self.attendance.entered, self.attendance.left]
        if len(keys) == 1:
            return np.arange(type_of.max() + 1), type_of
        different, row_of = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        return different[:, 0], row_of.ravel()

    def attendance_of_rows(self, row_of: Indices) -> Attendance:
        """Return when each row is there; ``row_of`` is the row of each agent (N,)."""
        return self.attendance.of(first_of(row_of))

    def empty_ledger(self, n_rows: int) -> Ledger:
        """Return a ledger for so many rows in which nothing is booked yet."""
        return Ledger(
            n_rows,
            self.spec.actions,
            policies=len(self.policies),
            measures=[measure for measure in self.spec.measures if measure in MEASURES],
            constants=self.spec.constants,
        )

    # What the tables say of the agents.

    @cached_property
    def entries(self) -> Indices:
        """The agent whom each entry of the table of agents lists, or the first of a type."""
        if self.multiplicity is None:
            return np.arange(len(self.loss))
        _, type_of = unique_losses(self.declared)
        _, row_of = self.rows_of(type_of)
        return first_of(row_of)

    @property
    def action_namer(self) -> Callable[[Indices, Indices], Any] | None:
        """What names an action of each entry, by their numbers; None where there are no names."""
        if self.spec.action_names:
            names = np.array(self.spec.action_names, dtype=object)
            return lambda _, actions: names[actions]
        if self.units.quantities is None:
            return None
        return lambda entries, actions: self.units.names(self.entries[entries], actions)

    @property
    def common_action_names(self) -> list[str] | None:
        """The names of the actions, of all agents together; None where there are no names."""
        if self.spec.action_names:
            return self.spec.action_names
        if self.units.quantities is None:
            return None
        return self.units.common()

    @property
    def traits(self) -> pd.DataFrame:
        """What the table of agents says of each entry: its parameters, and the unit of its loss."""
        n_losses = len(self.loss)
        columns: dict[str, Any] = {}
        for name, value in self.parameters.items():
            is_drawn = isinstance(value, np.ndarray) and value.shape == (n_losses,)
            if np.ndim(value) == 0 or is_drawn:
                per_agent = np.broadcast_to(np.asarray(value), n_losses)
                columns[f"param_{name}"] = per_agent[self.entries]
        columns["unit"] = self.units.name
        if self.units.name:  # to losses in the utility's own units
            columns["scale"] = self.units.scale
            columns["shift"] = self.units.shift
        return pd.DataFrame(columns, index=self.entries)


def first_of(row_of: Indices) -> Indices:
    """Return the first agent of each row (K,), given the row of each agent (N,)."""
    return np.unique(row_of, return_index=True)[1]


def draw_populations(
    scenario: ResolvedScenario,
    seed: int,
    *,
    n_outcomes: int,
    network: Network | None,
    all_have_own_rows: bool,
) -> list[DrawnPopulation]:
    """Draw the agents of all cohorts, in the order of the file.

    ``network``: its agents are numbered through all cohorts. UserError if a parameter or a policy
    does not fit.
    """
    populations = []
    first_agent = 0
    for spec in scenario.cohorts:
        end_agent = first_agent + spec.count
        distance = None if network is None else network.distance[first_agent:end_agent]
        population = draw_population(
            spec,
            scenario,
            seed,
            n_outcomes=n_outcomes,
            distance=distance,
            has_own_rows=all_have_own_rows,
        )
        populations.append(population)
        first_agent = end_agent
    return populations


def draw_population(
    spec: CohortSpec,
    scenario: ResolvedScenario,
    seed: int,
    *,
    n_outcomes: int,
    distance: Indices | None,
    has_own_rows: bool,
) -> DrawnPopulation:
    """Draw the agents of one cohort; its spare ones come last, and each has a row of its own.

    A follower's loss in a game is in [0, 1] at mixed actions and needs no other range. UserError if
    a parameter does not fit the utility, or a policy the scenario.
    """
    attendance = _draw_attendance(spec, scenario, seed)
    policies = tuple(_make_policy(name, spec, scenario.spec) for name in spec.policies)
    multiplicity = draw_multiplicity(spec, seed) if spec.multiplicity else None
    is_mapped = spec.mapped
    if is_mapped is None:
        bytes_of_losses = 8 * (spec.types or spec.count) * spec.actions * n_outcomes
        is_mapped = COPIES_OF_LOSSES * bytes_of_losses > available_memory()
    with on_disk(wanted=is_mapped):
        truth = _draw_losses(spec, seed, scenario, n_outcomes=n_outcomes)
        loss = _averaged_over_noise(spec, truth.loss)
    reported: Loss | None = None
    if spec.reports:
        report = _draw_losses(spec, seed, scenario, n_outcomes=n_outcomes, reports=spec.reports)
        if not _are_equal(report.loss, truth.loss):  # else all of them tell the truth
            reported = _averaged_over_noise(spec, report.loss)
    units = _units_of(spec, scenario.spec, truth, n_outcomes=n_outcomes)
    if scenario.spec.market is None and (units.scale != 1 or units.shift):
        loss = replace(
            loss,
            unit_scale=units.scale * loss.unit_scale,
            unit_offset=units.shift + units.scale * loss.unit_offset,
        )
        units = replace(units, scale=1.0, shift=0.0)  # a market reads the utility's own units
    population = DrawnPopulation(
        spec=spec,
        loss=loss,
        reported=reported,
        policies=policies,
        attendance=attendance,
        distance=distance,
        has_own_rows=has_own_rows or scenario.spare.get(spec.name, 0) > 0,
        multiplicity=multiplicity,
        parameters=truth.parameters,
        units=units,
    )
    if spec.types is not None and not spec.multiplicity:
        return _listed_by_agent(population, draw_types(spec, truth.rng))
    return population


def _draw_attendance(spec: CohortSpec, scenario: ResolvedScenario, seed: int) -> Attendance:
    """Draw when each agent is there; spare ones never are."""
    attendance = ALWAYS
    rates = (spec.entry_rate, spec.exit_rate)
    if spec.enters or spec.exits is not None or rates != (None, None):
        end = min(spec.exits or scenario.rounds, scenario.rounds)
        rng = stream(seed, "cohort", spec.name, "presence")
        attendance = drawn_stays(rng, spec.entries, window=(spec.enters, end), rates=rates)
    spare = scenario.spare.get(spec.name, 0)
    if not spare:
        return attendance
    stays = attendance.span(spec.count)
    entered = stays.entered.copy()
    left = stays.left.copy()
    entered[-spare:] = scenario.rounds
    left[-spare:] = scenario.rounds
    return Attendance(entered, left)


def draw_multiplicity(spec: CohortSpec, seed: int) -> Indices:
    """Draw how many agents each type of a cohort has (N,); every one has somebody."""
    n_types = spec.entries
    rng = stream(seed, "cohort", spec.name, "heads")
    further_agents = rng.multinomial(spec.count - n_types, np.full(n_types, 1 / n_types))
    return np.asarray(1 + further_agents, dtype=np.intp)


def draw_types(spec: CohortSpec, rng: np.random.Generator) -> Indices:
    """Draw which type each agent is of (N,); every one has somebody."""
    n_types = spec.types or spec.count
    types_of_others = rng.integers(n_types, size=spec.count - n_types)
    return rng.permutation(np.concatenate([np.arange(n_types), types_of_others]))


def _listed_by_agent(population: DrawnPopulation, type_of: Indices) -> DrawnPopulation:
    """Return a population of types with what each agent has in place of what its type has.

    ``type_of`` is the type of each agent (N,).
    """
    n_types = population.spec.types
    parameters: dict[str, Any] = {}
    for name, value in population.parameters.items():
        is_drawn = np.shape(value) == (n_types,)
        parameters[name] = value[type_of] if is_drawn else value
    units = population.units
    if units.quantities is not None and len(units.quantities) == n_types:
        units = replace(units, quantities=units.quantities[type_of])
    reported = population.reported
    return replace(
        population,
        loss=population.loss[type_of],
        reported=None if reported is None else reported[type_of],
        parameters=parameters,
        units=units,
    )


@dataclass(frozen=True, eq=False)
class DrawnLosses:
    """The losses of a cohort's agents, or of its types, before noise of their own."""

    loss: Loss  # in [0, 1]
    parameters: Mapping[str, Any]  # of the utility, as they were drawn or given
    rng: np.random.Generator  # that drew them


def _draw_losses(
    spec: CohortSpec,
    seed: int,
    scenario: ResolvedScenario,
    *,
    n_outcomes: int,
    reports: Mapping[str, Any] | None = None,
) -> DrawnLosses:
    """Make the losses of a cohort's agents, or of its types.

    With ``reports`` they are those that the agents report. What is not reported is as in truth,
    drawn or not; what is reported has a stream of its own. UserError if a parameter does not fit.
    """
    rng = stream(seed, "cohort", spec.name, "population")
    rng_of_reports = stream(seed, "cohort", spec.name, "reports")
    n_losses = spec.types or spec.count  # one of each type, where the cohort is counted
    population = Population(
        rng,
        n_losses,
        spec.actions,
        n_outcomes,
        game=scenario.game,
        loss_range=scenario.loss_range,
    )
    cohort_key = f"cohort.{spec.name}"
    parameters: dict[str, Any] = {}
    for key, value in spec.parameters.items():
        where = f"{cohort_key}.parameters.{key}"
        parameters[key] = drawn_values(where, value, rng, population.count)
    for key, value in (reports or {}).items():  # which takes the place of the truth
        where = f"{cohort_key}.reports.{key}"
        parameters[key] = drawn_values(where, value, rng_of_reports, population.count)
    table = "reports" if reports else "parameters"
    where = f"{cohort_key}.{table} of utility '{spec.utility}'"
    loss: Loss = construct(where, register.utility[spec.utility], population, **parameters)
    wanted_shape = (population.count, population.actions, population.goods)
    _check_shape(where, loss, wanted_shape)
    low, high = loss.range()
    leaves_unit_range = low.min() < -RANGE_TOLERANCE or high.max() > 1 + RANGE_TOLERANCE
    is_of_game = spec.utility == "game"  # whose losses are in [0, 1] at mixed actions as they are
    if leaves_unit_range and not is_of_game:
        loss = loss.normalised()
    if spec.precision == "single":
        if not isinstance(loss, Linear):
            hint = "it is for utility 'linear'; leave it out"
            raise UserError(
                f'{cohort_key}.precision = "single" does not fit a {loss.form} loss: {hint}'
            )
        loss = loss.in_single_precision()
    return DrawnLosses(loss=loss, parameters=parameters, rng=rng)


def _check_shape(where: str, loss: object, wanted_shape: tuple[int, int, int]) -> None:
    """Raise UserError unless a utility gave a stack of losses (agents, actions, outcomes)."""
    description: object = type(loss).__name__
    if isinstance(loss, Loss):
        description = (*loss.offset.shape, loss.outcomes)
    if description != wanted_shape:
        raise UserError(
            f"{where}: gave {description}; return a stacked loss of shape {wanted_shape}"
        )


def _are_equal(loss: Loss, other: Loss) -> bool:
    """Return whether two stacks have the same losses in the same order."""
    return loss.identity == other.identity and np.array_equal(loss.rows(), other.rows())


def _averaged_over_noise(spec: CohortSpec, loss: Loss) -> Loss:
    """Average a cohort's losses over its own noise, if any; UserError where that cannot be."""
    noise = spec.idiosyncratic
    if noise is None:
        return loss
    where = f"cohort.{spec.name}.idiosyncratic"
    coordinates = noise.coordinates
    if coordinates is None:
        coordinates = list(range(loss.outcomes))
    if spec.utility == "game":
        raise UserError(f"{where}: a game's outcomes are its leader's actions; drop it")
    is_repeated = len(set(coordinates)) < len(coordinates)
    is_too_many = len(coordinates) > MAX_NOISY_COORDINATES
    if max(coordinates) >= loss.outcomes or is_repeated or is_too_many:
        last = loss.outcomes - 1
        expected = f"give up to {MAX_NOISY_COORDINATES} different numbers from 0 to {last}"
        raise UserError(f"{where}.coordinates = {coordinates}: {expected}")
    if not np.isfinite(loss.lipschitz()).all():
        hint = "choose parameters that bound its slope, for ces v and y_min"
        raise UserError(f"{where}: utility '{spec.utility}' is infinitely steep; {hint}")
    return averaged(loss, noise.deviation, coordinates)


def _units_of(
    spec: CohortSpec, scenario: ScenarioSpec, truth: DrawnLosses, *, n_outcomes: int
) -> Units:
    """Return what a cohort's losses and actions are as outcomes are measured in the scenario.

    UserError if a currency is named for losses that are no money.
    """
    make_units = register.utility.units.get(spec.utility)
    units = Units()
    if spec.currency is not None and spec.utility in GIVEN_GAINS:
        units = Units(name=spec.currency)
    elif make_units is not None and scenario.measured is not None:
        outcome_units = _outcome_units(scenario, n_outcomes, currency=spec.currency or "")
        units = make_units(outcome_units, truth.loss, truth.parameters)
    if spec.currency is not None and units.name != spec.currency:
        reason = f"the losses of utility '{spec.utility}' are no money here"
        raise UserError(f"cohort.{spec.name}.currency: {reason}; leave it out")
    return units


def _outcome_units(scenario: ScenarioSpec, n_outcomes: int, *, currency: str) -> OutcomeUnits:
    """Return what the outcomes of a scenario are that says how they are measured."""
    measured = scenario.measured
    assert measured is not None  # noqa: S101 - the caller asks only then
    names = scenario.outcome_names or [f"outcome {j}" for j in range(n_outcomes)]
    scale_limits = [measured.scale.get(name, (0.0, 1.0)) for name in names]
    low_and_high = np.array(scale_limits, dtype=np.float64)
    return OutcomeUnits(
        names=names,
        low=low_and_high[:, 0],
        high=low_and_high[:, 1],
        units=[measured.units.get(name, "") for name in names],
        known=scenario.data is not None or bool(measured.scale or measured.units),
        currency=currency,
    )


def _make_policy(name: str, cohort: CohortSpec, scenario: ScenarioSpec) -> NamedPolicy:
    """Make a benchmark policy that the file defines or that is registered as it stands."""
    where = f"policy '{name}' of cohort.{cohort.name}"
    ready_names = [
        ready for ready in register.policy.names() if not isinstance(register.policy[ready], type)
    ]
    if name in scenario.policy:
        table = scenario.policy[name]
        rule = construct(where, register.policy[table.kind], **table.parameters)
    elif name in ready_names:
        rule = register.policy[name]
    else:
        hint = closest(name, [*scenario.policy, *ready_names])
        raise UserError(f"{where} is not defined; {hint} or add [policy.{name}]")
    if not isinstance(rule, Steps):  # of a callable nothing more is known
        return NamedPolicy(name, rule)
    for action in rule.actions:
        if not 0 <= action < cohort.actions:
            raise UserError(f"{where} suggests action {action}; use 0 to {cohort.actions - 1}")
    features = list(scenario.data.context) if scenario.data else []
    if cohort.signal:
        features.append(cohort.signal.name)
    if rule.feature not in features:
        raise UserError(f"{where}: no feature '{rule.feature}'; {closest(rule.feature, features)}")
    return NamedPolicy(name, rule, rule.feature)
