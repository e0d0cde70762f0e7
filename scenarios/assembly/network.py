"""The network that comes of a scenario file.

Agents are numbered from 1 through all cohorts in the order of the file, as in the agents table.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.network import Network, edge_list, networked, scale_free, small_world
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import EdgeListSpec, ScaleFreeSpec, SmallWorldSpec
from regretless.scenarios.frames import numeric, place, read_frame

Integers = NDArray[np.intp]


def drawn_network(scenario: ScenarioSpec, root: int) -> Network | None:
    """Draw the network of a scenario; None where it has none.

    Learners only pass the news on; all others can subscribe. UserError if the graph or the
    subscribers do not fit the agents.
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
    listens = np.array([not cohort.learns for cohort in scenario.cohort])
    candidates = np.flatnonzero(np.repeat(listens, sizes))
    return networked(agents, _subscribers(spec.subscribers, candidates, agents, rng), graph)


def _subscribers(
    given: Any, candidates: Integers, agents: int, rng: np.random.Generator
) -> Integers:
    if isinstance(given, list):
        chosen = np.array(given, dtype=np.intp) - 1
        wrong = np.setdiff1d(chosen, candidates)
        if len(wrong):
            number = int(wrong[0]) + 1
            reason = f"there are {agents} agents" if number > agents else "it is a learner"
            raise UserError(f"network.subscribers: agent {number}: {reason}; name another")
        return np.sort(chosen)
    if not len(candidates):
        raise UserError("network.subscribers: no cohort follows the forecast; drop [network]")
    share = isinstance(given, float)
    count = max(1, round(given * len(candidates))) if share else given
    if count > len(candidates):
        there = f"{len(candidates)} agents follow the forecast"
        raise UserError(f"network.subscribers = {given}: {there}; lower it")
    return np.sort(rng.choice(candidates, count, replace=False))


def read_edges(path: Path, agents: int) -> Integers:
    """Read a user's edges: a CSV of two columns of agent numbers, with a line of names above.

    Returns int array (E, 2): numbered from 0. UserError if it is not such a file, or names an agent
    that there is not.
    """
    where = f"network.file {path}"
    frame = read_frame(path, where)
    if frame.shape[1] != 2:
        raise UserError(f"{where} has {frame.shape[1]} columns; give it two")
    numbers = numeric(frame, [str(name) for name in frame], where)
    wrong = ~((numbers >= 1) & (numbers <= agents) & (numbers == np.floor(numbers)))
    for row, column in np.argwhere(wrong)[:1]:
        there = f"{place(frame, row)}: '{frame.iloc[row, column]!s}' is no agent"
        raise UserError(f"{where}, {there}; give numbers from 1 to {agents}")
    for row in np.flatnonzero(numbers[:, 0] == numbers[:, 1])[:1]:
        there = f"{place(frame, row)}: an edge from agent {numbers[row, 0]:.0f} to itself"
        raise UserError(f"{where}, {there}; drop it")
    return np.asarray(numbers.astype(np.intp) - 1)
