"""The composition root: from a validated specification to a playable market.

populations  each cohort's utilities are drawn from its stream; equal losses become one row
bases        one block of the broadcast per loss form (``scenarios.blocks``, ``scenarios.bases``)
forecasters  one independent instance per block, protecting the cohorts that hear it
guarantees   which theorem covers a cohort, if any
"""

from __future__ import annotations

from agents.adversaries import Confined, Replay
from agents.cohort import Cohort
from agents.policies import NamedPolicy
from agents.scripted import ScriptedCohort
from forecaster.protected import LossGroup
from market import register
from market.basis import Basis
from market.errors import UserError, closest
from market.losses import unique_losses
from market.model import Guarantee, MarketModel
from market.randomness import stream
from market.roles import Adversary
from market.round import Block, Game
from market.spaces import Polytope
from market.transcript import MEASURES
from scenarios.blocks import (
    Seat,
    check_hearing,
    coefficients,
    covered,
    guarantee,
    layout,
    listener,
)
from scenarios.cohort_spec import CohortSpec
from scenarios.construct import construct, with_length
from scenarios.data import Table, read_table
from scenarios.drafts import Draft, drawn_losses, ledger
from scenarios.forecasters import make_forecaster
from scenarios.gaming import MixedActions, game_of, motive, paid
from scenarios.latecomers import Member, admitted, check_joins, home
from scenarios.learning import audience, check_learners, joined_late, learner_cohort, learns
from scenarios.rules import response_of, told
from scenarios.spec import ScenarioSpec


class Scenario:
    """A validated scenario, ready to be built with any seed.

    Parameters
    ----------
    spec : ScenarioSpec
    """

    def __init__(self, spec: ScenarioSpec) -> None:
        check_joins(spec)
        check_learners(spec)
        self.spec = spec
        self.table: Table | None = read_table(spec.data) if spec.data else None
        self.game = game_of(spec)

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
        heard = audience(drafts)
        plan = layout([(draft.spec.name, draft.loss, draft.spec.basis) for draft in heard])
        seats = [
            self._seat(draft, block, plan.basis.parts[block], root)
            for draft, block in zip(heard, plan.block_of, strict=True)
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
        members += self._learners([draft for draft in drafts if draft not in heard], root)
        members += self._latecomers(drafts, blocks, root)
        check_hearing([cohort for cohort, _ in members], blocks)
        places = [draft.spec.name for draft in drafts]
        members.sort(key=lambda member: places.index(member[0].name))
        cohorts, guarantees = zip(*members, strict=True)
        joins = [draft.spec.joins for draft in drafts]
        followed = [not set(MEASURES).isdisjoint(draft.spec.measures) for draft in drafts]
        game = Game(blocks, cohorts, adversary=adversary, seed=root, joins=joins, followed=followed)
        return MarketModel(
            game, guarantees, seed=root, rounds=self.spec.rounds, log_every=log_every
        )

    def _adversary(self, root: int) -> Adversary:
        if self.spec.data is not None and self.table is not None:
            names = tuple(self.spec.data.context)
            return Replay(self.table.outcomes, self.table.contexts, names)
        assert self.spec.adversary is not None  # noqa: S101 - the specification has one of the two
        kind = self.spec.adversary.kind
        maker, given = register.adversary[kind], self.spec.adversary.parameters
        adversary: Adversary = construct(
            f"adversary '{kind}'",
            maker,
            self.spec.adversary.outcomes,
            stream(root, "adversary"),
            **with_length(maker, given | motive(maker, given, self.game), self.spec.rounds),
        )
        if self.game is not None:
            paid(adversary, self.game)
        return adversary

    def _confined(self, adversary: Adversary) -> Adversary:
        """Keep the outcomes to the space that the file names, or to a game's mixed actions."""
        if self.game is not None:
            return Confined(adversary, MixedActions(adversary.outcomes))
        if self.spec.space is None:
            return adversary
        space: Polytope = construct("space", Polytope, vertices=self.spec.space.vertices)
        if space.outcomes != adversary.outcomes:
            raise UserError(
                f"space.vertices have {space.outcomes} coordinates; give {adversary.outcomes}"
            )
        return Confined(adversary, space)

    def _draft(self, spec: CohortSpec, root: int, goods: int) -> Draft:
        loss = drawn_losses(spec, root, goods, self.game)
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

    def _learners(self, drafts: list[Draft], root: int) -> list[Member]:
        """Seat learners who are there from the start, beside those who listen."""
        rounds = self.spec.rounds
        here = [draft for draft in drafts if learns(draft.spec) and not draft.spec.joins]
        return [(learner_cohort(draft, root, rounds=rounds), Guarantee()) for draft in here]

    def _latecomers(self, drafts: list[Draft], blocks: list[Block], root: int) -> list[Member]:
        """Seat those who join late beside a broadcast that does not know of them."""
        rounds = self.spec.rounds
        late, learners = [], []
        for draft in drafts:
            if draft.spec.joins and learns(draft.spec):
                learners.append(joined_late(draft, root, rounds=rounds))
            elif draft.spec.joins:
                block = home(draft.spec.name, draft.loss, blocks)
                seat = self._seat(draft, block, blocks[block].basis, root)
                late.append((seat, draft.spec))
        return [*admitted(late, blocks, rounds=rounds), *learners]

    def _seat(self, draft: Draft, block: int, basis: Basis, root: int) -> Seat:
        if draft.spec.response in register.response:
            return self._trusting(draft, block, basis, root)
        if learns(draft.spec):
            member = learner_cohort(draft, root, rounds=self.spec.rounds, block=block)
            told_of = coefficients(draft.spec.name, basis, unique_losses(draft.loss)[0])
            return Seat(member, LossGroup(*told_of, draft.policies))
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
            known = [
                *register.response.names(),
                *register.learner.names(),
                *register.agent.names(),
            ]
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
