"""What surrounds agents: who decides on outcomes, a market that moves them, and a network.

``make_adversary``, ``draw_network`` and ``make_market`` are steps of ``build``. Agents of a network
are numbered from 1 through all cohorts in the order of the file.

In a game file the adversary leads: outcomes are its actions, its support the pure ones, and
followers lose what the file says. It has the file's payoff unless the scenario gives it one of its
own: as the ``weights`` of its payoff if it takes them, otherwise beside it, so that its surplus is
measured although it does not pursue it.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regretless.agents.adversaries import Confined, MovedRows, Replay
from regretless.agents.adversaries.leader import LinearPayoff
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.market import Market
from regretless.market.game.network import Network, edge_list, networked, scale_free, small_world
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.scenarios.assembly.construct import construct, with_length
from regretless.scenarios.assembly.data import UNIT_SCALE, Table
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import EdgeListSpec, ScaleFreeSpec, SmallWorldSpec
from regretless.scenarios.table_files import Form, header_is_data, numeric, place, read_frame

NO_GUARANTEE_CENSORED = (
    "no guarantee, since censored outcomes are estimates: no theorem covers what lies beyond them"
)


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
            reason = f"an outcome is a mixed action, whose entries sum to 1, not {worst:.6g}"
            raise UserError(f"in a game {reason}; choose an adversary that plays unit vectors")
        return outcomes


def make_adversary(scenario: ResolvedScenario, seed: int) -> Adversary:
    """Make the adversary of a scenario; UserError if a parameter of it does not fit."""
    if scenario.table is not None:
        rows = _replayed(scenario, scenario.table, seed)
        chosen: Adversary = rows
        if scenario.spec.adversary is not None:
            mover = _registered_adversary(scenario, seed)
            chosen = MovedRows(rows, mover, _budgets(scenario.spec), rounds=scenario.rounds)
    else:
        chosen = _registered_adversary(scenario, seed)
    game = scenario.game
    if game is not None:
        return Confined(
            chosen,
            MixedActions(chosen.outcomes),
            payoff=LinearPayoff(game.leader_payoff.T),
            support=np.eye(len(game.leader_actions)),
        )
    space = scenario.spec.space
    if space is None:
        return chosen
    hull: Polytope = construct("space", Polytope, vertices=space.vertices)
    if hull.outcomes != chosen.outcomes:
        fault = f"space.vertices have {hull.outcomes} coordinates"
        raise UserError(f"{fault}; give {chosen.outcomes}")
    return Confined(chosen, hull)


def _replayed(scenario: ResolvedScenario, table: Table, seed: int) -> Replay:
    """Return the rows of a table, in their order or drawn anew, as an adversary."""
    data = scenario.spec.data
    assert data is not None  # noqa: S101 - a table is of data
    if data.bootstrap is not None:
        rng = stream(seed, "data", "bootstrap")
        table = table.resampled(data.bootstrap, scenario.rounds, rng)
    return Replay(
        table.outcomes,
        table.contexts,
        table.names,
        logged=len(data.context),
        index=(data.index, table.index) if data.index else None,
        why_no_guarantee="" if table.is_censored is None else NO_GUARANTEE_CENSORED,
        is_censored=table.is_censored,
    )


def _budgets(spec: ScenarioSpec) -> Array:
    """Return by how much the adversary may move each outcome of data (d,), in their scale."""
    data = spec.data
    adversary = spec.adversary
    assert data is not None  # noqa: S101 - rows are moved
    assert adversary is not None  # noqa: S101 - somebody moves them
    moves = adversary.moves
    assert moves is not None  # noqa: S101 - else [data] and [adversary] exclude each other
    budgets = np.empty(len(data.outcomes))
    for i, name in enumerate(data.outcomes):
        budget = moves.get(name, 0.0) if isinstance(moves, dict) else moves
        low, high = data.scale.get(name, UNIT_SCALE)
        budgets[i] = budget / abs(high - low)
    return budgets


def _registered_adversary(scenario: ResolvedScenario, seed: int) -> Adversary:
    """Make the adversary that a scenario names, with the payoff of its game if it takes one."""
    spec = scenario.spec.adversary
    assert spec is not None  # noqa: S101 - the file has data or an adversary
    n_outcomes = spec.outcomes
    if scenario.spec.data is not None:
        n_outcomes = len(scenario.spec.data.outcomes)
    maker = register.adversary[spec.kind]
    where = f"adversary '{spec.kind}'"
    parameters = spec.parameters
    has_own_payoff = not parameters.keys().isdisjoint(("weights", "offset"))  # beside the file's
    if scenario.game is not None and not has_own_payoff and takes(maker, "weights"):
        parameters["weights"] = scenario.game.leader_payoff.T.tolist()
    parameters = with_length(maker, parameters, scenario.rounds)
    adversary = construct(where, maker, n_outcomes, stream(seed, "adversary"), **parameters)
    if not isinstance(adversary, Adversary):
        raise UserError(f"{where} is no Adversary; let it subclass regretless.Adversary")
    return adversary


def make_market(scenario: ResolvedScenario, cohorts: Sequence[Cohort], seed: int) -> Market | None:
    """Make the market of a scenario, None without one."""
    spec = scenario.spec.market
    if spec is None:
        return None
    maker = register.market[spec.kind]
    where = f"market '{spec.kind}'"
    parameters = with_length(maker, spec.parameters, scenario.rounds)
    market = construct(where, maker, cohorts, stream(seed, "market"), **parameters)
    if not isinstance(market, Market):
        raise UserError(f"{where} is no Market; let it subclass regretless.market.markets.Market")
    return market


def takes(maker: Any, key: str) -> bool:
    """Whether a maker has a parameter, of its own or handed on to its base class."""
    parameters = inspect.signature(maker).parameters
    if key in parameters:
        return True
    hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    bases = maker.__bases__ if isinstance(maker, type) else ()
    return hands_on and any(takes(base, key) for base in bases if base is not object)


def draw_network(scenario: ResolvedScenario, seed: int) -> Network | None:
    """Draw the network of a scenario; None where it has none.

    Learners only pass the news on; all others can subscribe. UserError if a number of agents or of
    subscribers does not fit.
    """
    spec = scenario.spec.network
    if spec is None:
        return None
    sizes = [cohort.count for cohort in scenario.cohorts]
    agents = sum(sizes)
    rng = stream(seed, "network")
    graph: Any = None
    match spec:
        case SmallWorldSpec():
            graph = small_world(agents, rng, neighbours=spec.neighbours, rewiring=spec.rewiring)
        case ScaleFreeSpec():
            graph = scale_free(agents, rng, attachments=spec.attachments)
        case EdgeListSpec():
            edges = read_edges(Path(spec.file), agents, numbered_from=spec.numbered_from)
            graph = edge_list(agents, edges)
    is_listener = np.repeat([not cohort.learns for cohort in scenario.cohorts], sizes)
    listeners = np.flatnonzero(is_listener)
    subscribers = spec.subscribers
    if isinstance(subscribers, list):
        named = np.sort(np.array(subscribers, dtype=np.intp) - 1)
        for wrong in np.setdiff1d(named, listeners)[:1]:
            reason = f"there are {agents} agents" if wrong >= agents else "it is a learner"
            raise UserError(f"network.subscribers: agent {wrong + 1}: {reason}; name another")
        return networked(agents, named, graph)
    if not len(listeners):
        raise UserError("network.subscribers: no cohort follows the forecast; drop [network]")
    n_subscribers = subscribers
    if isinstance(subscribers, float):  # a share
        n_subscribers = max(1, round(subscribers * len(listeners)))
    if n_subscribers > len(listeners):
        fault = f"{len(listeners)} agents follow the forecast"
        raise UserError(f"network.subscribers = {subscribers}: {fault}; lower it")
    drawn = rng.choice(listeners, n_subscribers, replace=False)
    return networked(agents, np.sort(drawn), graph)


def read_edges(path: Path, agents: int, *, numbered_from: int = 1) -> NDArray[np.intp]:
    """Read a user's edges (E, 2), numbered from 0, from a file with or without a header.

    ``numbered_from`` is the number of the first agent in the file. UserError if an edge is none.
    """
    where = f"network.file {path}"
    frame = read_frame(path, where)
    if header_is_data(frame):
        frame = read_frame(path, where, Form(columns=("source", "target")))
    if frame.shape[1] != 2:
        raise UserError(f"{where} has {frame.shape[1]} columns; give it two")
    numbers = numeric(frame, [str(name) for name in frame], where)
    last = agents + numbered_from - 1
    for row, column in np.argwhere(~np.isin(numbers, np.arange(numbered_from, last + 1)))[:1]:
        fault = f"{place(frame, row)}: '{frame.iloc[row, column]!s}' is no agent"
        cure = f"give numbers from {numbered_from} to {last}"
        if numbered_from and (numbers == 0).any():
            cure += ", or add numbered_from = 0 if the first agent has the number 0"
        raise UserError(f"{where}, {fault}; {cure}")
    for row in np.flatnonzero(numbers[:, 0] == numbers[:, 1])[:1]:
        fault = f"{place(frame, row)}: an edge from agent {numbers[row, 0]:.0f} to itself"
        raise UserError(f"{where}, {fault}; drop it")
    return np.asarray(numbers.astype(np.intp) - numbered_from)
