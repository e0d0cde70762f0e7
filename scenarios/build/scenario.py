"""The composition root: from a validated specification to a playable market.

In this order, each step knowing only what stands above it:

    adversaries  who chooses the outcomes
    network      who hears the forecast, and when
    populations  each cohort's losses are drawn from its stream
    blocks       cohorts whose losses live in the same basis share a block of the broadcast
    cohorts      each takes its seat; equal losses become one row
    forecasters  one independent instance per block, protecting the cohorts that hear it
    guarantees   which theorem covers a cohort, if any
    latecomers   who joins a broadcast that does not know of them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regretless.market.core.errors import UserError
from regretless.market.exploitability.tracker import MEASURES, Tracker
from regretless.market.game.network import Network
from regretless.market.game.prices import Market
from regretless.market.game.protocols import Adversary
from regretless.market.game.round import Block, Game
from regretless.market.model import MarketModel
from regretless.scenarios.build.adversaries import make_adversary
from regretless.scenarios.build.bimatrix import game_of
from regretless.scenarios.build.blocks import layout
from regretless.scenarios.build.cohorts import Place, Seat, seat_of
from regretless.scenarios.build.data import Table, read_table
from regretless.scenarios.build.forecasters import make_forecaster
from regretless.scenarios.build.guarantees import (
    Member,
    check_hearing,
    followed,
    guarantee,
    listener,
)
from regretless.scenarios.build.latecomers import idle, latecomers
from regretless.scenarios.build.learners import audience
from regretless.scenarios.build.network import drawn_network
from regretless.scenarios.build.populations import Draft, drafted
from regretless.scenarios.spec.checks import check
from regretless.scenarios.spec.scenario import ScenarioSpec


class Scenario:
    """A validated scenario, ready to be built with any seed.

    Raises
    ------
    UserError
        If cohorts do not go together, or a data or game file cannot be used.
    """

    def __init__(self, spec: ScenarioSpec) -> None:
        check(spec)
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
        spec, root = self.spec, self.spec.seed if seed is None else seed
        if not isinstance(root, int | np.integer) or root < 0:
            raise UserError(f"seed = {root!r}: give a whole number of at least 0")
        adversary = make_adversary(spec, root, table=self.table, game=self.game)
        network = drawn_network(spec, root)
        goods = adversary.outcomes
        drafts = drafted(spec, root, goods=goods, game=self.game, network=network)
        blocks, members = self._seated(drafts, root, network)
        game = self._game(adversary, blocks, members, root=root, network=network)
        return MarketModel(
            game,
            [promise for _, promise in members],
            seed=root,
            rounds=spec.rounds,
            tracker=_tracker(game, drafts, root),
            log_every=log_every,
            log_agents=spec.log_agents,
            windows=spec.windows.spans(spec.rounds) if spec.windows else (),
        )

    def _seated(
        self, drafts: list[Draft], root: int, network: Network | None
    ) -> tuple[list[Block], list[Member]]:
        """Seat all cohorts around a broadcast, in the order of the file."""
        heard, rounds = audience(drafts), self.spec.rounds
        plan = layout(heard)
        places = [
            Place(root, rounds, at, basis, None if network is None else network.relay(basis))
            for at, basis in enumerate(plan.bases)
        ]
        seats = [seat_of(draft, places[at]) for draft, at in zip(heard, plan.block_of, strict=True)]
        blocks = [
            self._block(name, place, seats) for name, place in zip(plan.names, places, strict=True)
        ]
        promises = sum(one.promises for one in seats)
        members = [(one, guarantee(one, blocks[one.cohort.block], promises)) for one in seats]
        others = [draft for draft in drafts if draft not in heard]
        here = [draft for draft in others if not draft.spec.joins]
        late = [draft for draft in others if draft.spec.joins]
        members += [idle(draft, root, rounds=rounds) for draft in here]
        members += latecomers(late, blocks, root=root, rounds=rounds)
        check_hearing([one.cohort for one, _ in members], blocks)
        order = [draft.spec.name for draft in drafts]
        return blocks, sorted(members, key=lambda member: order.index(member[0].cohort.name))

    def _block(self, name: str, place: Place, seats: Sequence[Seat]) -> Block:
        """Make the forecaster of those who hear a block."""
        listeners = [one for one in seats if one.cohort.block == place.block]
        forecaster = make_forecaster(
            self.spec,
            place.basis,
            [one.group for one in listeners if one.group is not None],
            listener=listener(listeners),
        )
        return Block(name, place.basis, forecaster, place.relay)

    def _game(
        self,
        adversary: Adversary,
        blocks: Sequence[Block],
        members: Sequence[Member],
        *,
        root: int,
        network: Network | None,
    ) -> Game:
        """Put the players around a table, with the market that moves their outcomes, if any."""
        cohorts, spec = [one.cohort for one, _ in members], self.spec.market
        return Game(
            blocks,
            cohorts,
            adversary=adversary,
            seed=root,
            market=None if spec is None else Market(cohorts, **spec.model_dump()),
            stays=[one.stay for one, _ in members],
            network=network,
            followed=[followed(one, blocks[one.cohort.block]) for one, _ in members],
        )


def _tracker(game: Game, drafts: Sequence[Draft], root: int) -> Tracker | None:
    """Follow the cohorts that keep their exploitability; None where none does."""
    followed = [not set(MEASURES).isdisjoint(draft.spec.measures) for draft in drafts]
    if not any(followed):
        return None
    unmoved = game.market is None
    return Tracker(game.cohorts, game.adversary, followed, seed=root, unmoved=unmoved)
