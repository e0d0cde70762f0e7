"""The composition root: from a validated specification to a playable market.

In this order: who chooses the outcomes and moves them, and who hears when (``world``); losses,
drawn from each cohort's stream (``populations``); blocks of the broadcast and seats around them
(``cohorts``); a forecaster for each block (``forecasters``), and what is promised (``theorems``);
who joins a broadcast that does not know of them (``latecomers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

# First: while Mesa is imported it looks several times through all loaded modules and the whole
# stack of calls, which are short here.
import regretless.market.model  # noqa: F401
from regretless.market.core.errors import UserError, closest
from regretless.market.exploitability.tracker import MEASURES, Tracker
from regretless.market.game.network import Network
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.branches import Parts, carry_on, changes_of, deviate, grafted
from regretless.scenarios.assembly.cohorts import Place, layout, seat_of
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.assembly.forecasters import followed, make_forecaster
from regretless.scenarios.assembly.latecomers import home, idle, in_own_block, latecomers
from regretless.scenarios.assembly.objectives import wish
from regretless.scenarios.assembly.populations import Draft, drafted, drawn_signal
from regretless.scenarios.assembly.theorems import Member, guarantee
from regretless.scenarios.assembly.world import (
    drawn_network,
    game_of,
    make_adversary,
    make_market,
    means_of,
)
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import check, with_counts
from regretless.scenarios.config.world import gives_own_losses
from regretless.scenarios.notes import annotate

FEW = 20  # agents of a cohort that a dry run draws: its parameters are checked with any number


class Scenario:
    """A validated scenario, ready to be built with any seed.

    UserError if cohorts do not go together, or a data or game file cannot be used.

    Parameters
    ----------
    drawer : callable, optional
        Draws figures of its models (``market.model``), given the specification first.
    """

    def __init__(self, spec: ScenarioSpec, *, drawer: Callable[..., Any] | None = None) -> None:
        if not (cohorts := [cohort for cohort in spec.cohort if cohort.count]):
            raise UserError("every cohort has count = 0; give one of them agents")
        self.spec, self._drawer = spec, drawer
        self.peopled = with_counts(spec.model_copy(update={"cohort": cohorts}))
        check(self.peopled)
        self.table: Table | None = read_table(spec.data) if spec.data else None
        self.game = game_of(spec)

    def build(
        self,
        *,
        seed: int | None = None,
        log_every: int = 1,
        apart: bool = False,
        spare: Mapping[str, int] | None = None,
    ) -> MarketModel:
        """Return a model that has played no round yet.

        UserError if a name is unknown or a parameter does not fit.

        Parameters
        ----------
        seed : int, optional
            Root seed; the scenario's own by default.
        log_every : int
            Rounds between two entries of the regret log.
        apart : bool
            Whether every agent has a row of its own, so that it can be taken out alone, where
            agents of equal losses would share one. In a market that gives each agent losses of its
            own they have one anyway.
        spare : dict, optional
            Agents of each cohort that ``model.add`` may let in later. They are
            drawn with the others, and each has a row of its own.
        """
        root = self.spec.seed if seed is None else seed
        if not isinstance(root, int | np.integer) or root < 0:
            raise UserError(f"seed = {root!r}: give a whole number of at least 0")
        apart = apart or gives_own_losses(self.spec.market)
        order = Order(root, log_every, apart, spare or {})
        for cohort in self.peopled.cohort:
            if cohort.multiplicity and (apart or cohort.name in order.spare):
                why = "is counted, and no agent of it is apart from the others"
                raise UserError(f"build: cohort.{cohort.name} {why}; give it multiplicity = false")
        model = self._model(order, self._parts(order))
        model.recipe = partial(self._branch, order)
        rows, shares = (self.table.outcomes, self.table.shares) if self.table else (None, {})
        annotate(model, self.spec, rows, shares)
        return model

    def _branch(
        self,
        order: Order,
        trunk: MarketModel,
        changes: Mapping[str, Any],
        players: Mapping[str, Any],
    ) -> MarketModel:
        """Build a second market in the state of the first, with something changed."""
        asked = changes_of(changes)
        parts, other = self._parts(order), self
        if asked.keys:
            other = Scenario(asked.altered(self.spec))
            parts = grafted(parts, other._parts(order), asked.whom)
        branch = self._model(order, parts, other)
        if not {"forecaster"}.issuperset(asked.whom):
            branch.tracker = None
        carry_on(trunk, branch, asked.whom)
        branch.recipe = partial(self._branch, order)
        if asked.keys or asked.agents or players:
            branch.replace(**players)
            deviate(branch, asked.agents)
        return branch

    def _parts(self, order: Order) -> Parts:
        root, names = order.root, [cohort.name for cohort in self.peopled.cohort]
        for name in order.spare:
            if name not in names:
                raise UserError(f"spare: there is no cohort '{name}'; {closest(name, names)}")
        spare = [order.spare.get(name, 0) for name in names]
        cohorts = [
            cohort.model_copy(update={"count": cohort.count + more})
            for cohort, more in zip(self.peopled.cohort, spare, strict=True)
        ]
        spec = self.peopled.model_copy(update={"cohort": cohorts})
        adversary = make_adversary(spec, root, table=self.table, game=self.game)
        network, goods = drawn_network(spec, root), adversary.outcomes
        drafts = [
            draft.with_spare(more, spec.rounds, apart=order.apart)
            for draft, more in zip(
                drafted(spec, root, goods=goods, game=self.game, network=network),
                spare,
                strict=True,
            )
        ]
        return Parts(adversary, network, drafts, *self._seated(drafts, root, network))

    def _model(self, order: Order, parts: Parts, other: Scenario | None = None) -> MarketModel:
        """Put parts together, with the market of another scenario, if one is given."""
        spec, drafts = self.peopled, parts.drafts
        game = self._game(order.root, parts, (other or self).spec)
        kept = [not set(MEASURES).isdisjoint(draft.spec.measures) for draft in drafts]
        tracker: Tracker | None = None  # of the cohorts that keep their exploitability
        if any(kept):
            whom = game.cohorts, game.adversary, kept
            tracker = Tracker(*whom, seed=order.root, market=game.market)
        model = MarketModel(
            game,
            [promise for _, promise in parts.members],
            seed=order.root,
            rounds=spec.rounds,
            tracker=tracker,
            log_every=order.log_every,
            log_agents=spec.log_agents,
            measures=spec.measures,
            namers={d.spec.name: d.namer for d in drafts if d.namer is not None},
            called={d.spec.name: d.called for d in drafts if d.called is not None},
            traits={draft.spec.name: draft.traits for draft in drafts},
            windows=spec.windows.spans(spec.rounds) if spec.windows else (),
        )
        for place, cohort in enumerate(game.cohorts):
            if cohort.name in order.spare:
                model.keep_spare(place, order.spare[cohort.name])
        model.name = self.spec.name
        if self._drawer is not None:
            model.drawer = partial(self._drawer, self.spec)
        return model

    def _seated(
        self, drafts: list[Draft], root: int, network: Network | None
    ) -> tuple[list[Block], list[Member]]:
        """Seat all cohorts around a broadcast, in the order of the file."""
        rounds = self.peopled.rounds
        early = [draft for draft in drafts if not draft.spec.enters]
        heard = [draft for draft in early if not draft.spec.learns] or early  # who listen, if any
        late = [own for own in drafts if own.spec.enters and not own.spec.learns]
        sitting = layout(heard, root, rounds, network)
        places = list({place.block: place for _, place in sitting}.values())
        places.sort(key=lambda place: place.block)
        seats = [seat_of(draft, place) for draft, place in sitting]
        homes = dict[str, Place]()  # of those who hear a block that is made for others
        unhoused = []
        for own in late:
            found = home(own, places)
            if found is None:
                unhoused.append(own)
            else:
                homes[own.spec.name] = found
        own_blocks = layout(unhoused, root, rounds, network, existing=places)
        places += {place.block: place for _, place in own_blocks}.values()
        seats += [seat_of(draft, place) for draft, place in own_blocks]
        late_specs = {draft.spec.name: draft.spec for draft in unhoused}
        blocks = []
        for place in places:
            near = [one for one in seats if one.cohort.block == place.block]
            groups = [one.group for one in near if one.group is not None]
            ensembles = [one.cohort.name for one in near if one.cohort.hears_ensemble]
            guests = [own.spec for own in late if own.spec.name in homes]
            later = [spec.name for spec in guests if spec.response == "ensemble"]
            ensembles += [name for name in later if homes[name].block == place.block]
            hears = next(iter(ensembles), None)
            forecaster = make_forecaster(
                self.peopled, place.basis, groups, listener=hears, blocks=len(places)
            )
            blocks.append(Block(place.name, place.basis, forecaster, place.relay))
        promises = sum(one.promises for one in seats)
        members = list[Member]()
        for seat in seats:
            block = blocks[seat.cohort.block]
            late_spec = late_specs.get(seat.cohort.name)
            if late_spec is None:
                members.append((seat, guarantee(seat, block, promises)))
            else:
                members.append(in_own_block(seat, late_spec, block, promises))
        members += latecomers([own for own in late if own.spec.name in homes], homes, blocks)
        others = [own for own in drafts if own not in heard and own not in late]
        members += [idle(own, root, rounds=rounds) for own in others]
        order = [draft.spec.name for draft in drafts]
        return blocks, sorted(members, key=lambda member: order.index(member[0].cohort.name))

    def _game(self, root: int, parts: Parts, other: ScenarioSpec) -> Game:
        members, adversary = parts.members, parts.adversary
        market = make_market(other, [one.cohort for one, _ in members], root)
        seats = [
            Seat(
                one.cohort,
                one.attendance,
                drawn_signal(spec, self.peopled, root, adversary.outcomes),
                means_of(spec, one.cohort, market, root),
                followed(one, parts.blocks[one.cohort.block]),
            )
            for spec, (one, _) in zip(self.peopled.cohort, members, strict=True)
        ]
        told: dict[str, Any] = {"market": market, "network": parts.network}
        game = Game(parts.blocks, seats, adversary=adversary, seed=root, **told)
        wish(game, other.forecaster.objective)
        return game


class Order(NamedTuple):
    """How a market is to be built, as ``Scenario.build`` is told."""

    root: int
    log_every: int
    apart: bool
    spare: Mapping[str, int]


def sampled(spec: ScenarioSpec) -> ScenarioSpec:
    """Return a scenario with at most ``FEW`` agents of each cohort that names none singly."""
    if spec.network is not None:
        return spec
    cohorts = []
    for own in spec.cohort:
        given = [*own.parameters.values(), *own.reports.values(), *own.settings.values()]
        listed = any(isinstance(value, list) and len(value) == own.count for value in given)
        few = {"count": FEW, "types": own.types and min(own.types, FEW)}
        whole = own.count <= FEW or own.multiplicity or own.cover is not None or listed
        cohorts.append(own if whole else own.model_copy(update=few))
    return spec.model_copy(update={"cohort": cohorts})
