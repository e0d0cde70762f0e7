"""Branches: a second market that shares the past and the random numbers of a first one.

A branch is built anew like its trunk and put into the trunk's state; whoever changes is taken from
a market that is built with the changed keys. Who gets another ``kind`` or ``response``, or a table
of its own, begins anew, with the parameters that are given and no others; of whom only a parameter
changes, the memory goes on. What is promised is cut as where players are swapped
(``market.game.roster``), and a cohort that plays by another rule is promised nothing. The keys are
those of ``HEADS``, ``cohort.NAME.KEY`` with ``ANSWER_KEYS``, and ``agent.N``, numbered as in the
tables, with an action or a policy that it plays from now on.
"""

from collections.abc import Container, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.checkpoint import DAMAGED
from regretless.market.core.errors import UserError, closest
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.roster import uncovered
from regretless.market.logs.branch_gains import Fork, total_losses
from regretless.market.losses.basis import Basis
from regretless.market.model import MarketModel
from regretless.market.records import Deviations
from regretless.scenarios.assembly.build import BuildOptions, Players, make_players, seat_players
from regretless.scenarios.assembly.cohorts import ServedCohort
from regretless.scenarios.assembly.resolved import ResolvedScenario, resolve
from regretless.scenarios.config import reasons
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.files import assign
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import resolved, validated

HEADS = ("adversary", "market", "forecaster")
# What of a cohort may change: how it answers.
ANSWER_KEYS = ("response", "eta", "settings", "advice")
KEYS_OF_NEW_PLAYERS = ("kind", "response", "advice")  # who has another one begins anew
SHARED_KEYS = ("outcomes", "outcome_names", "moves")  # of adversaries of all kinds


def branch_model(
    scenario: ResolvedScenario,
    options: BuildOptions,
    trunk: MarketModel,
    changes: Mapping[str, Any],
    replacements: Mapping[str, Any],
) -> MarketModel:
    """Build a second market in the state of the first, with something changed.

    Parameters
    ----------
    scenario, options
        From which the trunk was built.
    trunk : MarketModel
        The first market; it is not changed.
    changes : mapping
        Dotted keys of the scenario, and ``agent.NUMBER``.
    replacements : mapping
        Players for ``MarketModel.replace``.

    Raises
    ------
    UserError
        If something cannot change, or does not fit the past.
    """
    sorted_changes = sort_changes(changes)
    concerned = sorted_changes.concerned
    players = make_players(scenario, options)
    altered = None
    if sorted_changes.keys:
        altered = resolve(sorted_changes.altered(scenario.spec))
        players = graft(players, make_players(altered, options), concerned)
    branch = seat_players(players, scenario, options, altered=altered)
    if not concerned.keys() <= {"forecaster"}:
        branch.tracker = None
    carry_on(trunk, branch, concerned)
    branch.recipe = partial(branch_model, scenario, options)
    if sorted_changes.keys or sorted_changes.agents or replacements:
        branch.replace(**replacements)
        deviate(branch, sorted_changes.agents)
    return branch


@dataclass(frozen=True)
class Changes:
    """What is to be changed, sorted by whom it concerns."""

    keys: Mapping[str, Any]  # of the scenario
    agents: Mapping[int, Any]  # by number in the tables, an action or a policy
    concerned: Mapping[str, bool]  # "adversary", "cohort NAME", ..., and whether it begins anew

    def altered(self, spec: ScenarioSpec) -> ScenarioSpec:
        """Return the scenario with the changed keys; UserError if it does not validate."""
        raw = resolved(spec)
        for head in set(HEADS) & raw.keys():
            if f"{head}.kind" in self.keys:  # what was there is of the other kind
                raw[head] = {key: raw[head][key] for key in SHARED_KEYS if key in raw[head]}
        for cohort in raw["cohort"]:
            if f"cohort.{cohort['name']}.response" in self.keys:
                for key in ("eta", "settings", "advice"):  # those of the response before
                    cohort.pop(key, None)
                _drop_repeated_defaults(cohort)
        for key, value in self.keys.items():
            assign(raw, key, deepcopy(value), asked_for=self.keys)
        return validated(raw, origin=Path())


def _drop_repeated_defaults(cohort: dict[str, Any]) -> None:
    """Remove keys that say no more than their default, and mean nothing to some response.

    A resolved scenario has every key, also those that nobody set; beside another response they
    would be refused.
    """
    for key in set().union(*reasons.COHORTS.values()) & cohort.keys():
        default = CohortSpec.model_fields[key].get_default(call_default_factory=True)
        if cohort[key] == default:
            del cohort[key]


def sort_changes(changes: Mapping[str, Any]) -> Changes:
    """Sort changes by whom they concern; UserError for one that no branch can make.

    Where several keys change one player, it begins anew if one of them demands so.
    """
    keys: dict[str, Any] = {}
    agents: dict[int, Any] = {}
    concerned: dict[str, bool] = {}
    for key, value in changes.items():
        head, *path = key.split(".")
        if head == "agent" and len(path) == 1 and path[0].isdecimal():
            number = int(path[0])
            if number > 0:  # agents are numbered from 1
                agents[number] = value
                continue
        if head == "cohort" and len(path) > 1 and path[1] in ANSWER_KEYS:
            name = f"cohort {path[0]}"
        elif head in HEADS:
            name = head
        else:
            cohort_keys = [f"cohort.NAME.{answer}" for answer in ANSWER_KEYS]
            known_names = (*HEADS, "agent.NUMBER", *cohort_keys)
            raise UserError(f"branch: '{key}' does not change; {closest(key, known_names)}")
        keys[key] = value
        begins_anew = not path or path[-1] in KEYS_OF_NEW_PLAYERS
        concerned[name] = concerned.get(name, False) or begins_anew
    return Changes(keys, agents, concerned)


def graft(trunk: Players, other: Players, concerned: Container[str]) -> Players:
    """Put those who change, made with the changed keys, in the place of the trunk's."""
    players = trunk
    if "adversary" in concerned:
        players = replace(players, adversary=other.adversary)
    if "forecaster" in concerned:
        players = _with_forecasters(players, other)
    cohorts = []
    changed_cohorts = {served.spec.name: served for served in other.cohorts}
    for before in players.cohorts:
        name = before.spec.name
        if f"cohort {name}" in concerned:
            cohorts.append(_moved_in(changed_cohorts[name], other, before, players))
        else:
            cohorts.append(before)
    return replace(players, cohorts=cohorts)


def _with_forecasters(trunk: Players, other: Players) -> Players:
    """Return players whose blocks have the other's forecasters, who promise nothing."""
    blocks = []
    others_by_name = {block.name: block for block in other.blocks}
    for block in trunk.blocks:
        other_block = others_by_name.get(block.name, block)
        blocks.append(replace(block, forecaster=other_block.forecaster))
    reason = "no guarantee, since the forecaster was replaced"
    cohorts = []
    for served in trunk.cohorts:
        guarantee = served.guarantee
        if guarantee.label != "none":
            guarantee = Guarantee(note=f"{served.spec.name}: {reason}")
        cohorts.append(replace(served, guarantee=guarantee))
    return replace(trunk, blocks=blocks, cohorts=cohorts)


def _moved_in(
    served: ServedCohort, other: Players, before: ServedCohort, players: Players
) -> ServedCohort:
    """Return a cohort of another market, with its other rule, in a block of these players.

    UserError if it needs a block that the broadcast does not have. Its cohort is changed in place.
    """
    name = served.spec.name
    cohort = served.cohort
    wanted_facts = _facts(other.blocks[cohort.block].basis)
    cohort.block = before.cohort.block
    if cohort.listens:
        facts_of_blocks = [_facts(block.basis) for block in players.blocks]
        if wanted_facts not in facts_of_blocks:
            reason = "its new response needs a block that the broadcast does not have"
            hint = "let a cohort follow the forecast from the start"
            raise UserError(f"branch: cohort.{name}: {reason}; {hint}")
        cohort.block = facts_of_blocks.index(wanted_facts)
        cohort.relay = players.blocks[cohort.block].relay
    note = f"{name}: no guarantee, since its response was replaced"
    return replace(served, protected=None, guarantee=Guarantee(note=note))


def _facts(basis: Basis) -> tuple[Any, ...]:
    """Return by what two bases are known to be one."""
    return type(basis), basis.size, basis.lipschitz, basis.error, basis.hull


def carry_on(trunk: MarketModel, branch: MarketModel, concerned: Mapping[str, bool]) -> None:
    """Put a branch into its trunk's state, but for who begins anew, and note where they parted.

    ``concerned``: who is changed, and whether it begins anew. UserError if what changes does not
    fit the past.
    """
    try:
        state = trunk.state()
        fresh_state = branch.state()
    except ValueError as error:
        raise UserError(f"branch: {error}") from error
    players = state["players"]
    for name, fresh in fresh_state["players"].items():
        is_of_forecaster = name.startswith(("block ", "models of "))
        begins_anew = concerned.get("forecaster" if is_of_forecaster else name, False)
        if begins_anew or name not in players:
            players[name] = fresh
        if name in concerned and name.startswith("cohort "):
            books = _books_so_far(trunk, branch, name.removeprefix("cohort "))
            players[name] = players[name] | books
    if branch.tracker is None:
        state["tracker"] = None
    is_same_game = set(concerned) <= {"forecaster"} or branch.solved.is_same_game(trunk.solved)
    if not is_same_game:  # its profiles lose something else: play is counted from here on
        branch.solved.count_from(trunk.played)
        state["play"] = None if branch.solved.play is None else branch.solved.play.state()
    try:
        branch.restore(state)
    except DAMAGED as error:
        raise UserError(f"branch: what changes does not fit the past: {error}") from error
    branch.fork = Fork(
        shared_rounds=trunk.played,
        trunk_losses=total_losses(trunk.game.cohorts),
        branch_losses=total_losses(branch.game.cohorts),
    )


def _books_so_far(trunk: MarketModel, branch: MarketModel, name: str) -> dict[str, Any]:
    """Return a cohort's ledger and draws so far, in the rows that it has in the branch."""
    before = _cohort_called(name, trunk)
    after = _cohort_called(name, branch)
    if len(before.row_of) != len(after.row_of):
        reason = f"branch: cohort.{name} is counted, as {after.rule} cannot be"
        raise UserError(f"{reason}; give it multiplicity = false")
    first_agents = np.unique(after.row_of, return_index=True)[1]
    rows_before = before.row_of[first_agents]
    n_rows_before = before.ledger.shape[0]
    state = before.state()
    ledger: dict[str, Any] = {}
    for key, value in state["ledger"].items():
        is_per_row = isinstance(value, np.ndarray) and len(value) == n_rows_before
        ledger[key] = value[rows_before] if is_per_row else value
    ledger["expects"] = ledger["expects"] and after.listens
    books = {"ledger": ledger}
    if "rng" in state and "rng" in after.state():
        books["rng"] = state["rng"]
    return books


def _cohort_called(name: str, model: MarketModel) -> Any:
    return next(cohort for cohort in model.game.cohorts if cohort.name == name)


def deviate(branch: MarketModel, agents: Mapping[int, Any]) -> None:
    """Let agents play actions or policies from now on, whatever their rules say.

    ``agents``: an action or a policy by the agent's number in the tables. UserError if an agent
    cannot be told apart from others, or there is no such action.
    """
    cohorts: Sequence[Any] = branch.game.cohorts
    end_of_agents = np.cumsum([len(cohort.row_of) for cohort in cohorts])
    promises = list(branch.guarantees)
    if agents:
        branch.compiled = None  # compiled rounds play by the agents' own rules
    rows_of_cohorts: dict[int, dict[int, tuple[int, Any]]] = {}  # by index of the cohort
    for number, behaviour in agents.items():
        index = int(np.searchsorted(end_of_agents, number))
        if index == len(cohorts):
            raise UserError(
                f"branch: agent.{number}: there are {end_of_agents[-1]} agents; give one"
            )
        cohort = cohorts[index]
        where = f"cohort.{cohort.name}"
        if branch.game.seats[index].budget.restricts:
            reason = f"branch: {where} lives within its means, which a policy may exceed"
            raise UserError(f"{reason}; drop budget_constraint")
        agent = number - 1 - int(end_of_agents[index]) + len(cohort.row_of)
        row = int(cohort.row_of[agent])
        if (cohort.row_of == row).sum() > 1 or cohort.multiplicity is not None:
            reason = f"branch: {where}: its agent {agent + 1} is one row with others"
            hint = "build(apart=True) gives each a row, if multiplicity = false and none learns"
            raise UserError(f"{reason}; {hint}")
        actions = cohort.loss.actions
        policy = behaviour
        if not callable(behaviour):
            if type(behaviour) is bool or behaviour not in range(actions):
                fault = f"branch: agent.{number} = {behaviour!r}"
                raise UserError(f"{fault}; give an action from 0 to {actions - 1}")
            policy = partial(_always, int(behaviour))
        rows_of_cohorts.setdefault(index, {})[row] = (agent, policy)
        promises[index] = uncovered(promises[index], row, cohort.ledger.shape[0])
    for index, rows in rows_of_cohorts.items():
        branch.game.seats[index].deviations = Deviations(rows, cohorts[index].loss.actions)
    branch.promise(tuple(promises))


def _always(action: int, _: Any) -> int:
    return action
