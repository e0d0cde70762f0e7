"""The composition root: from a validated specification to a playable market.

populations  each cohort's utilities are drawn from its stream; equal losses become one row
bases        one block of the broadcast per loss form (``scenarios.blocks``, ``scenarios.bases``)
forecasters  one independent instance per block, protecting the cohorts that hear it
guarantees   which theorem covers a cohort, if any
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.adversaries import Confined, Replay
from agents.cohort import Cohort
from agents.policies import NamedPolicy
from agents.populations import Population
from agents.scripted import ScriptedCohort
from forecaster.protected import LossGroup
from market import register
from market.basis import Basis
from market.errors import UserError, closest
from market.ledger import Ledger
from market.losses import Loss, unique_losses
from market.model import MarketModel
from market.randomness import stream
from market.roles import Adversary
from market.round import Block, Game
from market.spaces import Polytope
from scenarios.blocks import (
    Seat,
    check_hearing,
    coefficients,
    covered,
    guarantee,
    layout,
    listener,
)
from scenarios.construct import construct, drawn_values
from scenarios.data import Table, read_table
from scenarios.forecasters import make_forecaster
from scenarios.latecomers import Member, admitted, check_joins, home
from scenarios.rules import response_of, told
from scenarios.spec import CohortSpec, ScenarioSpec


@dataclass(frozen=True, eq=False)
class Draft:
    """A cohort between its population and its seat in the game.

    Parameters
    ----------
    spec : CohortSpec
    loss : stack of losses, one per agent
    policies : tuple of NamedPolicy
    """

    spec: CohortSpec
    loss: Loss
    policies: tuple[NamedPolicy, ...]


class Scenario:
    """A validated scenario, ready to be built with any seed.

    Parameters
    ----------
    spec : ScenarioSpec
    """

    def __init__(self, spec: ScenarioSpec) -> None:
        check_joins(spec)
        self.spec = spec
        self.table: Table | None = read_table(spec.data) if spec.data else None

    def build(self, *, seed: int | None = None, log_every: int = 1) -> MarketModel:
        """Return a model that has played no round yet.

        Parameters
        ----------
        seed : int, optional
            Root seed; the scenario's own by default.
        log_every : int
            Rounds between two entries of the regret log.

        Raises
        ------
        UserError
            If a name is unknown or a parameter does not fit.
        """
        root = self.spec.seed if seed is None else seed
        adversary = self._confined(self._adversary(root))
        drafts = [self._draft(cohort, root, adversary.outcomes) for cohort in self.spec.cohort]
        early = [draft for draft in drafts if not draft.spec.joins]
        plan = layout([(draft.spec.name, draft.loss, draft.spec.basis) for draft in early])
        seats = [
            self._seat(draft, block, plan.basis.parts[block], root)
            for draft, block in zip(early, plan.block_of, strict=True)
        ]
        blocks = [
            Block(
                name,
                part,
                make_forecaster(
                    self.spec.forecaster,
                    part,
                    [s.group for s in seats if s.cohort.block == index],
                    rounds=self.spec.rounds,
                    listener=listener([s for s in seats if s.cohort.block == index]),
                ),
            )
            for index, (name, part) in enumerate(zip(plan.names, plan.basis.parts, strict=True))
        ]
        losses = sum(len(seat.cohort.loss) for seat in seats)
        members = [(s.cohort, guarantee(s, blocks[s.cohort.block], losses)) for s in seats]
        members += self._latecomers(drafts, blocks, root)
        check_hearing([cohort for cohort, _ in members], blocks)
        places = [draft.spec.name for draft in drafts]
        members.sort(key=lambda member: places.index(member[0].name))
        cohorts, guarantees = zip(*members, strict=True)
        joins = [draft.spec.joins for draft in drafts]
        game = Game(blocks, cohorts, adversary=adversary, seed=root, joins=joins)
        return MarketModel(
            game, guarantees, seed=root, rounds=self.spec.rounds, log_every=log_every
        )

    def _adversary(self, root: int) -> Adversary:
        if self.spec.data is not None and self.table is not None:
            names = tuple(self.spec.data.context)
            return Replay(self.table.outcomes, self.table.contexts, names)
        assert self.spec.adversary is not None  # noqa: S101 - the specification has one of the two
        kind = self.spec.adversary.kind
        adversary: Adversary = construct(
            f"adversary '{kind}'",
            register.adversary[kind],
            self.spec.adversary.outcomes,
            stream(root, "adversary"),
            **self.spec.adversary.parameters,
        )
        return adversary

    def _confined(self, adversary: Adversary) -> Adversary:
        """Keep the outcomes to the space that the file names, if it names one."""
        if self.spec.space is None:
            return adversary
        space: Polytope = construct("space", Polytope, vertices=self.spec.space.vertices)
        if space.outcomes != adversary.outcomes:
            raise UserError(
                f"space.vertices have {space.outcomes} coordinates; give {adversary.outcomes}"
            )
        return Confined(adversary, space)

    def _draft(self, spec: CohortSpec, root: int, goods: int) -> Draft:
        rng = stream(root, "cohort", spec.name, "population")
        population = Population(rng, spec.archetypes or spec.count, spec.actions, goods)
        drawn = {
            key: drawn_values(f"cohort.{spec.name}.parameters.{key}", value, population)
            for key, value in spec.parameters.items()
        }
        where = f"cohort.{spec.name}.parameters of utility '{spec.utility}'"
        loss = construct(where, register.utility[spec.utility], population, **drawn)
        check_shape(where, loss, population)
        low, high = loss.range()
        if low.min() < -1e-9 or high.max() > 1 + 1e-9:
            loss = loss.normalised()
        if spec.archetypes is not None:
            others = rng.integers(spec.archetypes, size=spec.count - spec.archetypes)
            loss = loss[rng.permutation([*range(spec.archetypes), *others])]
        return Draft(spec, loss, tuple(self._policy(name, spec) for name in spec.policies))

    def _policy(self, name: str, cohort: CohortSpec) -> NamedPolicy:
        where = f"policy '{name}' of cohort.{cohort.name}"
        if name in self.spec.policy:
            spec = self.spec.policy[name]
            rule = construct(where, register.policy[spec.kind], **spec.parameters)
        elif name in register.policy and not isinstance(register.policy[name], type):
            rule = register.policy[name]
        else:
            ready = [n for n in register.policy.names() if not isinstance(register.policy[n], type)]
            known = [*self.spec.policy, *ready]
            raise UserError(
                f"{where} is not defined; {closest(name, known)} or add [policy.{name}]"
            )
        for action in getattr(rule, "actions", ()):
            if not 0 <= action < cohort.actions:
                raise UserError(f"{where} suggests action {action}; use 0 to {cohort.actions - 1}")
        feature = getattr(rule, "feature", None)
        features = self.spec.data.context if self.spec.data else []
        if feature is not None and feature not in features:
            raise UserError(f"{where}: no feature '{feature}'; {closest(feature, features)}")
        return NamedPolicy(name, rule)

    def _latecomers(self, drafts: list[Draft], blocks: list[Block], root: int) -> list[Member]:
        """Seat those who join late beside a broadcast that does not know of them."""
        late = []
        for draft in drafts:
            if draft.spec.joins:
                block = home(draft.spec.name, draft.loss, blocks)
                seat = self._seat(draft, block, blocks[block].basis, root)
                late.append((seat, draft.spec))
        return admitted(late, blocks, rounds=self.spec.rounds)

    def _seat(self, draft: Draft, block: int, basis: Basis, root: int) -> Seat:
        if draft.spec.response in register.response:
            return self._trusting(draft, block, basis, root)
        return self._scripted(draft, block, basis, root)

    def _trusting(self, draft: Draft, block: int, basis: Basis, root: int) -> Seat:
        """Seat agents who respond to the forecast."""
        spec = draft.spec
        types, row_of = unique_losses(draft.loss)
        own_coefficients = coefficients(spec.name, basis, types)
        cover = None
        if spec.cover is not None:
            cover = covered(spec.cover, own_coefficients, self.spec.rounds)
        protected = own_coefficients if cover is None else (cover.offset, cover.weights)
        own = cover is None or (spec.cover is not None and spec.cover.play == "own")
        rule = response_of(spec, basis, types, rounds=self.spec.rounds)
        cohort = Cohort(
            name=spec.name,
            utility=spec.utility,
            block=block,
            loss=types,
            row_of=row_of,
            coefficients=own_coefficients if own else protected,
            response=rule,
            ledger=ledger(draft, len(types)),
            rng=stream(root, "cohort", spec.name, "play"),
            policies=draft.policies,
            served=None if own or cover is None else cover.served,
        )
        return Seat(cohort, LossGroup(*protected, draft.policies, **told(rule)), cover)

    def _scripted(self, draft: Draft, block: int, basis: Basis, root: int) -> Seat:
        """Seat agents with a method of their own."""
        spec = draft.spec
        if spec.response not in register.agent:
            known = [*register.response.names(), *register.agent.names()]
            raise UserError(
                f"cohort.{spec.name}.response: unknown '{spec.response}'; "
                f"{closest(spec.response, known)}"
            )
        agent = register.agent[spec.response]
        players = [
            construct(
                f"agent '{spec.response}'",
                agent,
                draft.loss[i],
                stream(root, "cohort", spec.name, "agent", str(i)),
            )
            for i in range(spec.count)
        ]
        cohort = ScriptedCohort(
            name=spec.name,
            utility=spec.utility,
            rule=spec.response,
            block=block,
            loss=draft.loss,
            agents=players,
            ledger=ledger(draft, spec.count),
            policies=draft.policies,
        )
        return Seat(cohort, LossGroup(*coefficients(spec.name, basis, draft.loss), draft.policies))


def check_shape(where: str, loss: Any, population: Population) -> None:
    """Raise UserError unless a utility gave one loss per agent, of the right shape."""
    wanted = population.count, population.actions, population.goods
    got = (*loss.offset.shape, loss.outcomes) if isinstance(loss, Loss) else type(loss).__name__
    if got != wanted:
        raise UserError(f"{where}: gave {got}; return a stacked loss of shape {wanted}")


def ledger(draft: Draft, rows: int) -> Ledger:
    """Return an empty ledger for a cohort."""
    spec = draft.spec
    return Ledger(
        rows,
        spec.actions,
        policies=len(draft.policies),
        measures=spec.measures,
        constants=spec.constants,
    )
