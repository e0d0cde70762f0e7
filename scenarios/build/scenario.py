"""The composition root: from a validated specification to a playable market.

populations  each cohort's utilities are drawn from its stream; equal losses become one row
bases        one block of the broadcast per loss form (``scenarios.build.blocks``,
             ``scenarios.build.bases``)
forecasters  one independent instance per block, protecting the cohorts that hear it
guarantees   which theorem covers a cohort, if any
"""

from __future__ import annotations

from collections.abc import Sequence

from regretless.agents.adversaries import Confined, Replay
from regretless.agents.policies import NamedPolicy
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import MEASURES, Tracker
from regretless.market.game.basis import Basis
from regretless.market.game.delay import Relay
from regretless.market.game.network import Network
from regretless.market.game.prices import Market
from regretless.market.game.protocols import Adversary, Forecaster
from regretless.market.game.round import Block, Game
from regretless.market.losses.spaces import Polytope
from regretless.market.model import Guarantee, MarketModel
from regretless.scenarios.build.bimatrix import MixedActions, game_of, motive, paid
from regretless.scenarios.build.blocks import (
    Anybody,
    Seat,
    check_hearing,
    guarantee,
    layout,
    listener,
)
from regretless.scenarios.build.construct import construct, with_length
from regretless.scenarios.build.data import Table, read_table
from regretless.scenarios.build.drafts import Draft, drawn_losses
from regretless.scenarios.build.forecasters import make_forecaster
from regretless.scenarios.build.latecomers import Member, admitted, check_joins, check_leaving, home
from regretless.scenarios.build.learners import (
    audience,
    check_learners,
    joined_late,
    learner_cohort,
    learns,
)
from regretless.scenarios.build.rows import agents_stay, placed, stay_of_rows
from regretless.scenarios.build.seats import Place, seat
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.network import drawn_network
from regretless.scenarios.spec.scenario import ScenarioSpec


class Scenario:
    """A validated scenario, ready to be built with any seed.

    Parameters
    ----------
    spec : ScenarioSpec
    """

    def __init__(self, spec: ScenarioSpec) -> None:
        check_joins(spec)
        check_leaving(spec)
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
        network = self._network(root)
        drafts = placed(
            [self._draft(cohort, root, adversary.outcomes) for cohort in self.spec.cohort], network
        )
        heard = audience(drafts)
        plan = layout([(draft.spec.name, draft.loss, draft.spec.basis) for draft in heard])
        relays = [None if network is None else Relay(p, network.farthest) for p in plan.basis.parts]
        seats = [
            seat(draft, Place(root, self.spec.rounds, at, plan.basis.parts[at], relays[at]))
            for draft, at in zip(heard, plan.block_of, strict=True)
        ]
        blocks = [
            Block(name, part, self._forecaster(part, seats, index), relays[index])
            for index, (name, part) in enumerate(zip(plan.names, plan.basis.parts, strict=True))
        ]
        losses = sum(seat.promises for seat in seats)
        members = [(s.cohort, guarantee(s, blocks[s.cohort.block], losses)) for s in seats]
        members += self._learners([draft for draft in drafts if draft not in heard], root)
        members += self._latecomers(drafts, blocks, root)
        check_hearing([cohort for cohort, _ in members], blocks)
        places = [draft.spec.name for draft in drafts]
        members.sort(key=lambda member: places.index(member[0].name))
        cohorts, guarantees = zip(*members, strict=True)
        game = Game(
            blocks,
            cohorts,
            adversary=adversary,
            seed=root,
            market=self._market(cohorts),
            stays=[stay_of_rows(d, c.row_of) for d, c in zip(drafts, cohorts, strict=True)],
            network=network,
        )
        windows = self.spec.windows
        return MarketModel(
            game,
            guarantees,
            seed=root,
            rounds=self.spec.rounds,
            tracker=_tracker(game, drafts, root),
            log_every=log_every,
            log_agents=self.spec.log_agents,
            windows=windows.spans(self.spec.rounds) if windows else (),
        )

    def _forecaster(self, basis: Basis, seats: Sequence[Seat], block: int) -> Forecaster:
        listeners = [s for s in seats if s.cohort.block == block]
        return make_forecaster(
            self.spec.forecaster,
            basis,
            [s.group for s in listeners],
            rounds=self.spec.rounds,
            listener=listener(listeners),
        )

    def _network(self, root: int) -> Network | None:
        if self.spec.network is None:
            return None
        sizes = [cohort.count for cohort in self.spec.cohort]
        listens = [not learns(cohort) for cohort in self.spec.cohort]
        return drawn_network(self.spec.network, sizes, listens, root)

    def _market(self, cohorts: Sequence[Anybody]) -> Market | None:
        spec = self.spec.market
        return None if spec is None else Market(cohorts, **spec.model_dump())

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
        stay = agents_stay(spec, root, rounds=self.spec.rounds)
        return Draft(spec, loss, tuple(self._policy(name, spec) for name in spec.policies), stay)

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
                place = Place(root, rounds, block, blocks[block].basis, blocks[block].relay)
                late.append((seat(draft, place), draft.spec))
        return [*admitted(late, blocks, rounds=rounds), *learners]


def _tracker(game: Game, drafts: Sequence[Draft], root: int) -> Tracker | None:
    """Follow the cohorts that keep their exploitability; None where none does."""
    followed = [not set(MEASURES).isdisjoint(draft.spec.measures) for draft in drafts]
    if not any(followed):
        return None
    unmoved = game.market is None
    return Tracker(game.cohorts, game.adversary, followed, seed=root, unmoved=unmoved)
