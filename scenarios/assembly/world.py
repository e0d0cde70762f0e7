"""What surrounds agents: who decides on outcomes, a market that moves them, and a network.

In a game file the adversary leads: outcomes are its actions, its support the pure ones, and
followers lose what the file says. It has the file's payoff unless the scenario gives it one of its
own: as the ``weights`` of its payoff if it takes them, otherwise beside it, so that its surplus is
measured although it does not pursue it. Agents of a network are numbered from 1 through all cohorts
in the order of the file.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regretless.agents.adversaries import Confined, Replay
from regretless.agents.adversaries.leader import LinearPayoff
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.exploitability.bimatrix import Bimatrix, read_game
from regretless.market.game.budget import UNLIMITED, BudgetConstraint, Unlimited
from regretless.market.game.market import Market
from regretless.market.game.network import Network, edge_list, networked, scale_free, small_world
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.scenarios.assembly.construct import construct, with_length
from regretless.scenarios.assembly.data import Table
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import EdgeListSpec, ScaleFreeSpec, SmallWorldSpec
from regretless.scenarios.table_files import numeric, place, read_frame


class MixedActions(Box):
    """The simplex: an outcome is a mixed action of the leader."""

    def __init__(self, actions: int) -> None:
        super().__init__(np.zeros(actions), np.ones(actions))

    def move_inside(self, u: ArrayLike) -> Array:
        """Return outcomes (..., d) as they are; UserError unless each sums to 1."""
        outcomes = np.asarray(u, dtype=np.float64)
        total = np.ravel(outcomes.sum(-1))
        worst = float(total[int(np.abs(total - 1).argmax())]) if total.size else 1.0
        if abs(worst - 1) > 1e-9:
            why = f"an outcome is a mixed action, whose entries sum to 1, not {worst:.6g}"
            raise UserError(f"in a game {why}; choose an adversary that plays unit vectors")
        return outcomes


def game_of(spec: ScenarioSpec) -> Bimatrix | None:
    """Read the game of a scenario and fill in its outcomes and names; None without one."""
    if spec.game is None or spec.adversary is None:
        return None
    game = read_game(spec.game.file)
    leaders, followers = game.leader_payoff.shape
    if leaders < 2:
        raise UserError(f"game.file '{spec.game.file}': the leader has 1 action; give it more")
    if spec.adversary.outcomes not in {None, leaders}:
        given = f"adversary.outcomes = {spec.adversary.outcomes}"
        raise UserError(f"{given}: the game's leader has {leaders} actions; leave outcomes out")
    spec.adversary.outcomes = leaders
    spec.adversary.outcome_names = spec.adversary.outcome_names or list(game.leader_actions)
    for cohort in spec.cohort:
        if cohort.utility == "game" and cohort.actions != followers:
            given = f"cohort.{cohort.name}.actions = {cohort.actions}"
            raise UserError(f"{given}: the game's follower has {followers}; write {followers}")
        if cohort.utility == "game":
            cohort.action_names = cohort.action_names or list(game.follower_actions)
    return game


def make_adversary(
    spec: ScenarioSpec, root: int, *, table: Table | None = None, game: Bimatrix | None = None
) -> Adversary:
    """Make the adversary of a scenario."""
    if spec.data is not None and table is not None:
        own = spec.data
        if own.bootstrap is not None:
            table = table.resampled(own.bootstrap, spec.rounds, stream(root, "data", "bootstrap"))
        index = (own.index, table.index) if own.index else None
        sizes: dict[str, Any] = {"logged": len(own.context), "index": index}
        chosen: Adversary = Replay(table.outcomes, table.contexts, table.names, **sizes)
    else:
        assert spec.adversary is not None  # noqa: S101 - the file has data or an adversary
        kind, given = spec.adversary.kind, spec.adversary.parameters
        maker, where = register.adversary[kind], f"adversary '{kind}'"
        paid = not given.keys().isdisjoint(("weights", "offset"))  # a payoff, beside the file's
        if game is not None and not paid and takes(maker, "weights"):
            given |= {"weights": game.leader_payoff.T.tolist()}
        given = with_length(maker, given, spec.rounds)
        draws = stream(root, "adversary")
        chosen = construct(where, maker, spec.adversary.outcomes, draws, **given)
        if not isinstance(chosen, Adversary):
            raise UserError(f"{where} is no Adversary; let it subclass regretless.Adversary")
    if game is not None:
        payoff, pure = LinearPayoff(game.leader_payoff.T), np.eye(len(game.leader_actions))
        return Confined(chosen, MixedActions(chosen.outcomes), payoff=payoff, support=pure)
    if spec.space is None:
        return chosen
    hull: Polytope = construct("space", Polytope, vertices=spec.space.vertices)
    if hull.outcomes != chosen.outcomes:
        there = f"space.vertices have {hull.outcomes} coordinates"
        raise UserError(f"{there}; give {chosen.outcomes}")
    return Confined(chosen, hull)


def make_market(spec: ScenarioSpec, cohorts: Sequence[Cohort], root: int) -> Market | None:
    """Make the market of a scenario, None without one."""
    if spec.market is None:
        return None
    maker, where = register.market[spec.market.kind], f"market '{spec.market.kind}'"
    given = with_length(maker, spec.market.parameters, spec.rounds)
    made = construct(where, maker, cohorts, stream(root, "market"), **given)
    if not isinstance(made, Market):
        raise UserError(f"{where} is no Market; let it subclass regretless.market.markets.Market")
    return made


def means_of(spec: CohortSpec, cohort: Cohort, market: Market | None, root: int) -> Unlimited:
    """Return what limits a cohort's agents to what they can pay for."""
    if not spec.budget_constraint:
        return UNLIMITED
    if market is None or type(market).affordable is Market.affordable:
        where = f"cohort.{spec.name}.budget_constraint"
        raise UserError(f"{where}: no market says what its agents can afford; drop it")
    return BudgetConstraint(cohort, stream(root, "referee", "means", spec.name))


def takes(maker: Any, key: str) -> bool:
    """Whether a maker has a parameter, of its own or handed on to its base class."""
    parameters = inspect.signature(maker).parameters
    if key in parameters:
        return True
    hands_on = any(own.kind is own.VAR_KEYWORD for own in parameters.values())
    bases = maker.__bases__ if isinstance(maker, type) else ()
    return hands_on and any(takes(base, key) for base in bases if base is not object)


def drawn_network(scenario: ScenarioSpec, root: int) -> Network | None:
    """Draw the network of a scenario; None where it has none.

    Learners only pass the news on; all others can subscribe.
    """
    spec, sizes = scenario.network, [cohort.count for cohort in scenario.cohort]
    if spec is None:
        return None
    rng, agents = stream(root, "network"), sum(sizes)
    graph: Any = None
    match spec:
        case SmallWorldSpec():
            graph = small_world(agents, rng, neighbours=spec.neighbours, rewiring=spec.rewiring)
        case ScaleFreeSpec():
            graph = scale_free(agents, rng, attachments=spec.attachments)
        case EdgeListSpec():
            graph = edge_list(agents, read_edges(Path(spec.file), agents))
    listens = np.repeat([not cohort.learns for cohort in scenario.cohort], sizes)
    candidates, given = np.flatnonzero(listens), spec.subscribers
    if isinstance(given, list):
        chosen = np.sort(np.array(given, dtype=np.intp) - 1)
        for wrong in np.setdiff1d(chosen, candidates)[:1]:
            reason = f"there are {agents} agents" if wrong >= agents else "it is a learner"
            raise UserError(f"network.subscribers: agent {wrong + 1}: {reason}; name another")
        return networked(agents, chosen, graph)
    if not len(candidates):
        raise UserError("network.subscribers: no cohort follows the forecast; drop [network]")
    count = max(1, round(given * len(candidates))) if isinstance(given, float) else given
    if count > len(candidates):
        there = f"{len(candidates)} agents follow the forecast"
        raise UserError(f"network.subscribers = {given}: {there}; lower it")
    return networked(agents, np.sort(rng.choice(candidates, count, replace=False)), graph)


def read_edges(path: Path, agents: int) -> NDArray[np.intp]:
    """Read a user's edges (E, 2), numbered from 0: two columns of agent numbers, with a header."""
    where = f"network.file {path}"
    frame = read_frame(path, where)
    if frame.shape[1] != 2:
        raise UserError(f"{where} has {frame.shape[1]} columns; give it two")
    numbers = numeric(frame, [str(name) for name in frame], where)
    for row, column in np.argwhere(~np.isin(numbers, np.arange(1, agents + 1)))[:1]:
        there = f"{place(frame, row)}: '{frame.iloc[row, column]!s}' is no agent"
        raise UserError(f"{where}, {there}; give numbers from 1 to {agents}")
    for row in np.flatnonzero(numbers[:, 0] == numbers[:, 1])[:1]:
        there = f"{place(frame, row)}: an edge from agent {numbers[row, 0]:.0f} to itself"
        raise UserError(f"{where}, {there}; drop it")
    return np.asarray(numbers.astype(np.intp) - 1)
