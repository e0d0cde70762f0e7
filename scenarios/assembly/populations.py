"""Who takes part: each cohort of the file with its agents' losses, policies, stays and signals.

A **draft** is a cohort between its population and its seat in the game. Its agents are scored in
**rows**: agents with equal losses who hear as late and are there at the same times share one.
``root`` is the root seed of a run, ``goods`` the number d of coordinates of an outcome.
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
from regretless.market.exploitability.bimatrix import Bimatrix
from regretless.market.game.attendance import ALWAYS, Attendance, drawn_stays
from regretless.market.game.network import Network
from regretless.market.game.seats import PUBLIC, NoSignal, Signal
from regretless.market.losses import Linear, Loss, averaged, unique_losses
from regretless.market.numerics.storage import available_memory, on_disk
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.scenarios.assembly.construct import construct, drawn_values
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec

COPIES = 3  # of the losses' numbers, while they are made
MOST_SHAKEN = 6  # coordinates with noise of one's own, 3 nodes each


@dataclass(frozen=True, eq=False)
class Draft:
    """A cohort between its population and its seat in the game; N agents, or types if counted."""

    spec: CohortSpec
    loss: Loss  # of each agent, or of each type of a cohort that is counted
    policies: tuple[NamedPolicy, ...]
    attendance: Attendance = ALWAYS  # of each agent
    distance: Indices | None = None  # (N,) from the forecaster; None where all hear at once
    apart: bool = False  # whether every agent has a row of its own
    reported: Loss | None = None  # what agents say that their losses are; None for the truth
    multiplicity: Indices | None = None  # (N,) agents of each type, where the cohort is counted
    parameters: Mapping[str, Any] = field(default_factory=dict)  # the utility's; (N,) if drawn
    units: Units = field(default_factory=Units)  # of losses and actions

    @cached_property
    def entries(self) -> Indices:
        """The agent whom each entry of the table of agents lists, or the first of a type."""
        if self.multiplicity is None:
            return np.arange(len(self.loss))
        return first_of(self.split(unique_losses(self.declared)[1])[1])

    @property
    def namer(self) -> Callable[[Indices, Indices], Any] | None:
        """What names an action of each entry, by their numbers; None where there are no names."""
        if self.spec.action_names:
            listed = np.array(self.spec.action_names, dtype=object)
            return lambda _, actions: listed[actions]
        if self.units.quantities is None:
            return None
        return lambda places, actions: self.units.names(self.entries[places], actions)

    @property
    def called(self) -> list[str] | None:
        """What the actions are called, of all agents together; None where there are no names."""
        known = self.units.quantities is not None
        return self.spec.action_names or (self.units.common() if known else None)

    @property
    def traits(self) -> pd.DataFrame:
        """What the table of agents says of each entry: its parameters, and the unit of its loss."""
        rows, entries = len(self.loss), self.entries
        drawn = {
            f"param_{name}": np.broadcast_to(np.asarray(value), rows)[entries]
            for name, value in self.parameters.items()
            if np.ndim(value) == 0 or (isinstance(value, np.ndarray) and value.shape == (rows,))
        }
        units: dict[str, Any] = {"unit": self.units.name}
        if self.units.name:  # to losses in the utility's own units
            units |= {"scale": self.units.scale, "shift": self.units.shift}
        return pd.DataFrame(drawn | units, index=entries)

    @property
    def declared(self) -> Loss:
        """The losses that the forecaster hears of."""
        return self.loss if self.reported is None else self.reported

    def split(self, type_of: Indices) -> tuple[Indices, Indices]:
        """Give agents who differ in more than their loss rows of their own.

        Takes the distinct loss of each agent (N,); returns that of each row (K,), in order, and the
        row of each agent (N,).
        """
        if self.apart or self.spec.draws_alone or self.spec.budget_constraint:
            return type_of, np.arange(len(type_of))
        keys = [type_of]
        keys += [] if self.reported is None else [unique_losses(self.loss)[1]]
        keys += [] if self.distance is None else [self.distance]
        stay = self.attendance
        keys += [] if stay.throughout else [stay.entered, stay.left]
        if len(keys) == 1:
            return np.arange(type_of.max() + 1), type_of
        found, row_of = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        return found[:, 0], row_of.ravel()

    def with_spare(self, count: int, rounds: int, *, apart: bool) -> "Draft":
        """Return the draft with its last agents kept out of a run of so many rounds."""
        if not count:
            return replace(self, apart=apart)
        stay = self.attendance.span(self.spec.count)
        entered, left = stay.entered.copy(), stay.left.copy()
        entered[-count:] = left[-count:] = rounds
        return replace(self, attendance=Attendance(entered, left), apart=True)

    def attendance_of(self, row_of: Indices) -> Attendance:
        """Return when each row is there."""
        return self.attendance.of(first_of(row_of))

    @property
    def public(self) -> tuple[NamedPolicy, ...]:
        """The policies that read no private signal: what a forecaster can know of."""
        own = self.spec.signal.name if self.spec.signal else None
        return tuple(p for p in self.policies if own is None or p.feature not in (None, own))

    def ledger(self, rows: int) -> Ledger:
        """Return an empty ledger for so many rows."""
        return Ledger(
            rows,
            self.spec.actions,
            policies=len(self.policies),
            measures=[measure for measure in self.spec.measures if measure in MEASURES],
            constants=self.spec.constants,
        )


def first_of(row_of: Indices) -> Indices:
    """Return the first agent of each row (K,)."""
    return np.unique(row_of, return_index=True)[1]


def drafted(
    scenario: ScenarioSpec,
    root: int,
    *,
    goods: int,
    game: Bimatrix | None = None,
    network: Network | None = None,
) -> list[Draft]:
    """Draw the populations of all cohorts, in the order of the file.

    ``network``: its agents are numbered through all cohorts.
    """
    drafts, first = list[Draft](), 0
    for spec in scenario.cohort:
        stay, rates = ALWAYS, (spec.entry_rate, spec.exit_rate)
        if spec.enters or spec.exits is not None or rates != (None, None):
            window = spec.enters, min(spec.exits or scenario.rounds, scenario.rounds)
            rng = stream(root, "cohort", spec.name, "presence")
            stay = drawn_stays(rng, spec.entries, window=window, rates=rates)
        draft = Draft(
            spec,
            policies=tuple(_policy(name, spec, scenario) for name in spec.policies),
            attendance=stay,
            distance=None if network is None else network.distance[first : first + spec.count],
            multiplicity=drawn_multiplicity(spec, root) if spec.multiplicity else None,
            **_population(spec, scenario, root, goods=goods, game=game),
        )
        drafts.append(draft)
        first += spec.count
    return drafts


def _population(
    spec: CohortSpec, scenario: ScenarioSpec, root: int, *, goods: int, game: Bimatrix | None
) -> dict[str, Any]:
    """Draw a cohort's losses in [0, 1], true and reported, with their parameters and units.

    Parameters are as they were drawn or given. A follower's loss in a ``game`` is in [0, 1] at
    mixed actions and needs no other range. UserError if a parameter does not fit the utility.
    """
    needed = 8 * COPIES * (spec.types or spec.count) * spec.actions * goods
    with on_disk(wanted=needed > available_memory() if spec.mapped is None else spec.mapped):
        plain, rng, drawn = _distinct(spec, root, goods, game)
        loss = _shaken(spec, plain)
    reported: Loss | None = None
    if spec.reports:
        said, _, _ = _distinct(spec, root, goods, game, spec.reports)
        if said.identity != plain.identity or not np.array_equal(said.rows(), plain.rows()):
            reported = _shaken(spec, said)  # else all of them tell the truth
    say, source, units = register.utility.units.get(spec.utility), scenario.measured, Units()
    if say is not None and source is not None:
        names = scenario.outcome_names or [f"outcome {j}" for j in range(goods)]
        ends = np.array([source.scale.get(name, (0.0, 1.0)) for name in names], dtype=np.float64)
        known = scenario.data is not None or bool(source.scale or source.units)
        called = [source.units.get(name, "") for name in names]
        units = say(OutcomeUnits(names, ends[:, 0], ends[:, 1], called, known), plain, drawn)
    if scenario.market is None and (units.scale != 1 or units.shift):
        offset = units.shift + units.scale * loss.unit_offset
        loss = replace(loss, unit_scale=units.scale * loss.unit_scale, unit_offset=offset)
        units = replace(units, scale=1.0, shift=0.0)  # a market reads the utility's own units
    if spec.types is not None and not spec.multiplicity:
        whose, types = _shared(spec, rng), spec.types
        drawn = {n: v[whose] if np.shape(v) == (types,) else v for n, v in drawn.items()}
        if units.quantities is not None and len(units.quantities) == types:
            units = replace(units, quantities=units.quantities[whose])
        loss, reported = loss[whose], None if reported is None else reported[whose]
    return {"loss": loss, "reported": reported, "parameters": drawn, "units": units}


def drawn_multiplicity(spec: CohortSpec, root: int) -> Indices:
    """Draw how many agents each type of a cohort has; every one has somebody."""
    types, rng = spec.entries, stream(root, "cohort", spec.name, "heads")
    others = rng.multinomial(spec.count - types, np.full(types, 1 / types))
    return np.asarray(1 + others, dtype=np.intp)


def _shared(spec: CohortSpec, rng: np.random.Generator) -> Indices:
    """Draw which type each agent is of; every one has somebody."""
    types = spec.types or spec.count
    others = rng.integers(types, size=spec.count - types)
    return rng.permutation(np.concatenate([np.arange(types), others]))


def _distinct(
    spec: CohortSpec,
    root: int,
    goods: int,
    game: Bimatrix | None,
    reports: dict[str, Any] | None = None,
) -> tuple[Loss, np.random.Generator, dict[str, Any]]:
    """Make the losses of a cohort's agents, or of its types, with their stream and parameters.

    What is not reported is as in truth, drawn or not; what is has a stream of its own.
    """
    rng, own = (stream(root, "cohort", spec.name, name) for name in ("population", "reports"))
    population = Population(rng, spec.types or spec.count, spec.actions, goods, game)
    at, drawn = f"cohort.{spec.name}", dict[str, Any]()
    tables = ("parameters", spec.parameters, rng), ("reports", reports or {}, own)
    for table, values, draws in tables:
        for key, value in values.items():
            drawn[key] = drawn_values(f"{at}.{table}.{key}", value, draws, population.count)
    where = f"{at}.{'reports' if reports else 'parameters'} of utility '{spec.utility}'"
    loss: Loss = construct(where, register.utility[spec.utility], population, **drawn)
    wanted = population.count, population.actions, population.goods
    got = (*loss.offset.shape, loss.outcomes) if isinstance(loss, Loss) else type(loss).__name__
    if got != wanted:
        raise UserError(f"{where}: gave {got}; return a stacked loss of shape {wanted}")
    low, high = loss.range()
    if spec.utility != "game" and (low.min() < -1e-9 or high.max() > 1 + 1e-9):
        loss = loss.normalised()
    if spec.precision == "single":
        if not isinstance(loss, Linear):
            cure = "it is for utility 'linear'; leave it out"
            raise UserError(f'{at}.precision = "single" does not fit a {loss.form} loss: {cure}')
        loss = loss.in_single_precision()
    return loss, rng, drawn


def _shaken(spec: CohortSpec, loss: Loss) -> Loss:
    """Average a cohort's losses over its own noise, if any; UserError where that cannot be."""
    if spec.idiosyncratic is None:
        return loss
    where, given = f"cohort.{spec.name}.idiosyncratic", spec.idiosyncratic
    which = list(range(loss.outcomes)) if given.coordinates is None else given.coordinates
    if spec.utility == "game":
        raise UserError(f"{where}: a game's outcomes are its leader's actions; drop it")
    if max(which) >= loss.outcomes or len(set(which)) < len(which) or len(which) > MOST_SHAKEN:
        wanted = f"give up to {MOST_SHAKEN} different numbers from 0 to {loss.outcomes - 1}"
        raise UserError(f"{where}.coordinates = {which}: {wanted}")
    if not np.isfinite(loss.lipschitz()).all():
        cure = "choose parameters that bound its slope, for ces v and y_min"
        raise UserError(f"{where}: utility '{spec.utility}' is infinitely steep; {cure}")
    return averaged(loss, given.deviation, which)


def _policy(name: str, cohort: CohortSpec, scenario: ScenarioSpec) -> NamedPolicy:
    """Make a benchmark policy that the file defines or that is registered as it stands."""
    where = f"policy '{name}' of cohort.{cohort.name}"
    ready = [n for n in register.policy.names() if not isinstance(register.policy[n], type)]
    if name in scenario.policy:
        spec = scenario.policy[name]
        rule = construct(where, register.policy[spec.kind], **spec.parameters)
    elif name in ready:
        rule = register.policy[name]
    else:
        known = closest(name, [*scenario.policy, *ready])
        raise UserError(f"{where} is not defined; {known} or add [policy.{name}]")
    if not isinstance(rule, Steps):  # of a callable nothing more is known
        return NamedPolicy(name, rule)
    for action in rule.actions:
        if not 0 <= action < cohort.actions:
            raise UserError(f"{where} suggests action {action}; use 0 to {cohort.actions - 1}")
    features = [*scenario.data.context] if scenario.data else []
    features += [cohort.signal.name] if cohort.signal else []
    if rule.feature not in features:
        raise UserError(f"{where}: no feature '{rule.feature}'; {closest(rule.feature, features)}")
    return NamedPolicy(name, rule, rule.feature)


def drawn_signal(spec: CohortSpec, scenario: ScenarioSpec, root: int, goods: int) -> NoSignal:
    """Make a cohort's signal."""
    if spec.signal is None:
        return PUBLIC
    where, signal = f"cohort.{spec.name}.signal", spec.signal
    rng = stream(root, "cohort", spec.name, "noise")
    drawn = np.asarray(drawn_values(f"{where}.noise", signal.noise, rng, spec.count))
    if drawn.dtype.kind not in "iuf" or drawn.ndim > 1 or drawn.min() < 0:
        raise UserError(f"{where}.noise = {signal.noise}: give numbers of at least 0")
    known: list[int | str] = [*range(goods), *scenario.outcome_names]
    if signal.coordinate not in known:
        cure = closest(str(signal.coordinate), map(str, known))
        raise UserError(f"{where}.coordinate = {signal.coordinate!r}: no outcome; {cure}")
    coordinate = known.index(signal.coordinate) % goods
    noise = np.broadcast_to(drawn.astype(np.float64), spec.count)
    own = stream(root, "referee", "signal", spec.name)
    return Signal(signal.name, coordinate, noise=noise, rng=own)
