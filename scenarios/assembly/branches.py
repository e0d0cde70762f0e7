"""Branches: a second market that shares the past and the random numbers of a first one.

A branch is built anew like its trunk and put into the trunk's state; whoever changes is taken from
a market that is built with the changed keys. Who gets another ``kind`` or ``response``, or a table
of its own, begins anew, with the parameters that are given and no others; of whom only a parameter
changes, the memory goes on. What is promised is cut as where players are swapped
(``market.game.roster``), and a cohort that plays by another rule is promised nothing. The keys are
those of ``HEADS``, ``cohort.NAME.KEY`` with ``ANSWERS``, and ``agent.N``, numbered as in the
tables, with an action or a policy that it plays from now on.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.market.core.checkpoint import DAMAGED
from regretless.market.core.errors import UserError, closest
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.network import Network
from regretless.market.game.protocols import Adversary
from regretless.market.game.roster import uncovered
from regretless.market.game.round import Block
from regretless.market.logs.branch_gains import Fork, total_losses
from regretless.market.losses.basis import Basis
from regretless.market.model import MarketModel
from regretless.market.records import Deviations
from regretless.scenarios.assembly.populations import Draft
from regretless.scenarios.assembly.theorems import Member
from regretless.scenarios.config.files import assign
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import resolved, validated

HEADS = ("adversary", "market", "forecaster")
ANSWERS = ("response", "eta", "settings")  # what of a cohort may change: how it answers
ANEW = ("kind", "response")
SHARED = ("outcomes", "outcome_names")  # by adversaries of all kinds


@dataclass(frozen=True, eq=False)
class Parts:
    """What a market is put together from."""

    adversary: Adversary
    network: Network | None
    drafts: Sequence[Draft]
    blocks: Sequence[Block]
    members: Sequence[Member]


class Changes(NamedTuple):
    """What is to be changed, sorted by whom it concerns."""

    keys: Mapping[str, Any]  # of the scenario
    agents: Mapping[int, Any]  # by number in the tables, an action or a policy
    whom: Mapping[str, bool]  # "adversary", "cohort NAME", ..., and whether it begins anew

    def altered(self, spec: ScenarioSpec) -> ScenarioSpec:
        """Return the scenario with the changed keys; UserError if it does not validate."""
        raw = resolved(spec)
        for head in set(HEADS) & raw.keys():
            if f"{head}.kind" in self.keys:  # what was there is of the other kind
                raw[head] = {own: raw[head][own] for own in SHARED if own in raw[head]}
        for cohort in raw["cohort"]:
            if f"cohort.{cohort['name']}.response" in self.keys:
                cohort.pop("eta", None)
                cohort.pop("settings", None)
        for key, value in self.keys.items():
            assign(raw, key, deepcopy(value))
        return validated(raw, origin=Path())


def changes_of(given: Mapping[str, Any]) -> Changes:
    """Sort changes by whom they concern; UserError for one that no branch can make."""
    keys: dict[str, Any] = {}
    agents: dict[int, Any] = {}
    whom: dict[str, bool] = {}
    for key, value in given.items():
        head, *path = key.split(".")
        if head == "agent" and len(path) == 1 and path[0].isdecimal() and int(path[0]):
            agents[int(path[0])] = value
            continue
        if head == "cohort" and len(path) > 1 and path[1] in ANSWERS:
            name = f"cohort {path[0]}"
        elif head in HEADS:
            name = head
        else:
            known = (*HEADS, "agent.NUMBER", *(f"cohort.NAME.{own}" for own in ANSWERS))
            raise UserError(f"branch: '{key}' does not change; {closest(key, known)}")
        keys[key] = value
        whom[name] = whom.get(name, False) or not path or path[-1] in ANEW
    return Changes(keys, agents, whom)


def grafted(trunk: Parts, other: Parts, whom: Iterable[str]) -> Parts:
    """Put those who change, made with the changed keys, in the place of the trunk's."""
    parts = trunk
    if "adversary" in whom:
        parts = replace(parts, adversary=other.adversary)
    if "forecaster" in whom:
        pairs = zip(trunk.blocks, other.blocks, strict=True)
        blocks = [replace(own, forecaster=there.forecaster) for own, there in pairs]
        why = "no guarantee, since the forecaster was replaced"
        promises = [
            (s, p if p.label == "none" else Guarantee(note=f"{s.cohort.name}: {why}"))
            for s, p in trunk.members
        ]
        parts = replace(parts, blocks=blocks, members=promises)
    members, there = list(parts.members), {own.cohort.name: own for own, _ in other.members}
    for place, (before, _) in enumerate(members):
        name = before.cohort.name
        if f"cohort {name}" not in whom:
            continue
        seat = there[name]  # with its other rule
        cohort: Any = seat.cohort
        wanted, cohort.block = _facts(other.blocks[cohort.block].basis), before.cohort.block
        if cohort.listens:
            facts = [_facts(block.basis) for block in parts.blocks]
            if wanted not in facts:
                why = "its new response needs a block that the broadcast does not have"
                cure = "let a cohort follow the forecast from the start"
                raise UserError(f"branch: cohort.{name}: {why}; {cure}")
            cohort.block = facts.index(wanted)
            cohort.relay = parts.blocks[cohort.block].relay
        note = f"{name}: no guarantee, since its response was replaced"
        members[place] = replace(seat, group=None), Guarantee(note=note)
    return replace(parts, members=members)


def _facts(basis: Basis) -> tuple[Any, ...]:
    """Return by what two bases are known to be one."""
    return type(basis), basis.size, basis.lipschitz, basis.error, basis.hull


def carry_on(trunk: MarketModel, branch: MarketModel, whom: Mapping[str, bool]) -> None:
    """Put a branch into its trunk's state, but for who begins anew, and note where they parted."""
    try:
        state, own = trunk.state(), branch.state()
    except ValueError as error:
        raise UserError(f"branch: {error}") from error
    players = state["players"]
    for name, fresh in own["players"].items():
        who = "forecaster" if name.startswith(("block ", "models of ")) else name
        state_of = fresh if whom.get(who, False) or name not in players else players[name]
        rebooked = name in whom and name.startswith("cohort ")
        books = _books(trunk, branch, name.removeprefix("cohort ")) if rebooked else {}
        players[name] = state_of | books
    if branch.tracker is None:
        state["tracker"] = None
    try:
        branch.restore(state)
    except DAMAGED as error:
        raise UserError(f"branch: what changes does not fit the past: {error}") from error
    branch.fork = Fork(
        shared_rounds=trunk.played,
        trunk_losses=total_losses(trunk.game.cohorts),
        branch_losses=total_losses(branch.game.cohorts),
    )


def _books(trunk: MarketModel, branch: MarketModel, name: str) -> dict[str, Any]:
    """Return a cohort's ledger and draws so far, in the rows that it has in the branch."""
    pair: list[Any] = [c for m in (trunk, branch) for c in m.game.cohorts if c.name == name]
    before, after = pair
    if len(before.row_of) != len(after.row_of):
        why = f"branch: cohort.{name} is counted, as {after.rule} cannot be"
        raise UserError(f"{why}; give it multiplicity = false")
    rows = before.row_of[np.unique(after.row_of, return_index=True)[1]]
    state, held = before.state(), len(before.ledger.count)
    ledger = {
        key: value[rows] if isinstance(value, np.ndarray) and len(value) == held else value
        for key, value in state["ledger"].items()
    }
    ledger["expects"] = ledger["expects"] and after.listens
    drawn = {"rng": state["rng"]} if "rng" in state and "rng" in after.state() else {}
    return {"ledger": ledger} | drawn


def deviate(branch: MarketModel, agents: Mapping[int, Any]) -> None:
    """Let agents play actions or policies from now on, whatever their rules say."""
    cohorts: Sequence[Any] = branch.game.cohorts
    ends, promises = np.cumsum([len(c.row_of) for c in cohorts]), list(branch.guarantees)
    rows: dict[int, dict[int, Any]] = {}  # by place of the cohort
    for number, what in agents.items():
        place = int(np.searchsorted(ends, number))
        if place == len(cohorts):
            raise UserError(f"branch: agent.{number}: there are {ends[-1]} agents; give one")
        cohort, seat = cohorts[place], branch.game.seats[place]
        agent, where = number - 1 - int(ends[place]) + len(cohort.row_of), f"cohort.{cohort.name}"
        if seat.budget.restricts:
            why = f"branch: {where} lives within its means, which a policy may exceed"
            raise UserError(f"{why}; drop budget_constraint")
        row, actions = int(cohort.row_of[agent]), cohort.loss.actions
        if (cohort.row_of == row).sum() > 1 or cohort.multiplicity is not None:
            why = f"branch: {where}: its agent {agent + 1} is one row with others"
            cure = "build(apart=True) gives each a row, if multiplicity = false and none learns"
            raise UserError(f"{why}; {cure}")
        if not callable(what) and (type(what) is bool or what not in range(actions)):
            there = f"branch: agent.{number} = {what!r}"
            raise UserError(f"{there}; give an action from 0 to {actions - 1}")
        own = rows.setdefault(place, {})
        own[row] = agent, what if callable(what) else partial(_always, int(what))
        promises[place] = uncovered(promises[place], row, len(cohort.ledger.count))
    for place, own in rows.items():
        branch.game.seats[place].deviations = Deviations(own, cohorts[place].loss.actions)
    branch.promise(tuple(promises))


def _always(action: int, _: Any) -> int:
    return action
