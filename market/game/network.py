"""Who hears the forecast, and when: subscribers at once, everybody else along a graph.

The distance of an agent is the number of hops from it to the nearest subscriber, and news travels
one hop a round: at distance h it is h rounds old (``market.game.delay``). Graphs are undirected:

    small-world   a ring lattice of which some edges are rewired (Watts and Strogatz, Collective
                  dynamics of 'small-world' networks, Nature 1998), in a connected draw of it
    scale-free    new agents attach to old ones by their degree (Barabasi and Albert, Emergence of
                  scaling in random networks, Science 1999)
    edge-list     a user's own

Agents are numbered from 0 here, from 1 in tables and files.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse.csgraph import dijkstra

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Basis
from regretless.market.game.delay import NEVER, Relay

REGRETS = ("decision_swap_regret", "swap_regret")
COLUMNS = ("cohort", "distance", "agents", "regret_mean", "regret_worst", "exploitability_mean")


@dataclass(frozen=True, eq=False)
class Network:
    """Who hears the forecast, and how late.

    Parameters
    ----------
    distance : int array (N,)
        Hops from each agent to the nearest subscriber, ``NEVER`` where there is no path.
    edges : int array (E, 2) or None
        Neighbours, the lower number first; None where there is no graph.
    """

    distance: Indices
    edges: Indices | None = None

    @property
    def farthest(self) -> int:
        """Greatest distance from which the forecast is still heard."""
        return max(int(self.distance.max(initial=0)), 0)

    @cached_property
    def neighbours(self) -> list[Indices]:
        """The agents next to each agent, in order."""
        if self.edges is None:
            return [np.zeros(0, dtype=np.intp)] * len(self.distance)
        ways = np.concatenate([self.edges, self.edges[:, ::-1]])
        ways = ways[np.lexsort((ways[:, 1], ways[:, 0]))]
        ends = np.searchsorted(ways[:, 0], np.arange(1, len(self.distance)))
        return np.split(ways[:, 1], ends)

    def relay(self, basis: Basis) -> Relay:
        """Return what passes the news of a block on, as far as anybody hears it."""
        return Relay(basis, self.farthest)

    def frame(self) -> pd.DataFrame:
        """Return a row per edge, agents numbered as in the agents table."""
        edges = np.zeros((0, 2), dtype=np.intp) if self.edges is None else self.edges
        return pd.DataFrame({"source": edges[:, 0] + 1, "target": edges[:, 1] + 1})


def small_world(agents: int, rng: np.random.Generator, *, neighbours: int, rewiring: float) -> Any:
    """Draw a connected small world.

    Parameters
    ----------
    agents : int
        At least 3.
    neighbours : int
        Of each agent in the ring: even, at least 2 and below ``agents``.
    rewiring : float
        Probability with which an edge is rewired, in [0, 1].

    Raises
    ------
    UserError
        If the agents are too few, or a hundred draws fall apart.
    """
    if agents <= neighbours:
        raise UserError(f"network.neighbours = {neighbours}: there are {agents} agents; lower it")
    seed = int(rng.integers(2**32))
    try:
        return nx.connected_watts_strogatz_graph(agents, neighbours, rewiring, seed=seed)
    except nx.NetworkXError as error:
        raise UserError(f"network: {str(error).lower()}; give more neighbours") from error


def scale_free(agents: int, rng: np.random.Generator, *, attachments: int) -> Any:
    """Draw a scale-free graph in which every new agent attaches to so many old ones."""
    if agents <= attachments:
        raise UserError(f"network.attachments = {attachments}: there are {agents} agents; lower it")
    return nx.barabasi_albert_graph(agents, attachments, seed=int(rng.integers(2**32)))


def edge_list(agents: int, edges: Indices) -> Any:
    """Make the graph of a user's edges (E, 2), between agents numbered from 0."""
    graph = nx.Graph()
    graph.add_nodes_from(range(agents))
    graph.add_edges_from(edges.tolist())
    return graph


def networked(agents: int, subscribers: Indices, graph: Any | None = None) -> Network:
    """Measure everybody's distance from the subscribers.

    Parameters
    ----------
    agents : int
        N.
    subscribers : int array
        Those who hear at once.
    graph : networkx graph, optional
        On the nodes 0 to N - 1; without one nobody hears but subscribers.
    """
    distance = np.full(agents, NEVER)
    if graph is None:
        distance[subscribers] = 0
        return Network(distance)
    if len(subscribers):
        links = nx.to_scipy_sparse_array(graph, nodelist=range(agents), weight=None)
        links.indices = links.indices.astype(np.int32)  # SciPy before 1.15 takes no others
        links.indptr = links.indptr.astype(np.int32)
        hops = dijkstra(links, indices=subscribers, unweighted=True, min_only=True)
        distance = np.where(np.isinf(hops), NEVER, hops).astype(np.intp)
    edges = np.array(sorted(sorted(edge) for edge in graph.edges), dtype=np.intp).reshape(-1, 2)
    return Network(distance, edges)


def rings(network: Network) -> Array:
    """Lay a graph out in rings around the forecaster (N, 2), subscribers on the innermost.

    An agent at distance h is h further out, those who never hear are on the outermost ring; on its
    ring it stands in the order of the first neighbour that is nearer.
    """
    edges = np.zeros((0, 2), dtype=np.intp) if network.edges is None else network.edges
    never = network.farthest + 1
    ring = np.where(network.distance == NEVER, never, network.distance)
    turn = np.zeros(len(ring))
    ways = np.concatenate([edges, edges[:, ::-1]])
    for hops in np.unique(ring):
        here = np.flatnonzero(ring == hops)
        wanted = np.ones(len(ring))
        nearer = ways[(ring[ways[:, 0]] == hops) & (ring[ways[:, 1]] == hops - 1)]
        np.minimum.at(wanted, nearer[:, 0], turn[nearer[:, 1]])
        order = here[np.argsort(wanted[here], kind="stable")]
        turn[order] = (np.arange(len(order)) + 0.5) / len(order)
    angle, radius = 2 * np.pi * turn, max(1.0, never / 3) + ring
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def by_distance(agents: pd.DataFrame) -> pd.DataFrame:
    """Summarise an agents table by cohort and distance from the forecaster.

    Parameters
    ----------
    agents : frame
        With the columns ``cohort``, ``kind``, ``distance``, regrets and ``exploitability``.

    Returns
    -------
    frame
        A row per cohort and distance, nearest first and those who never hear last (empty
        distance): ``agents`` who played, mean and worst decision swap regret (swap regret where
        that was not kept), mean exploitability. Learners listen to nobody and have no rows.
    """
    first, second = (agents[name] for name in REGRETS)
    frame = agents.assign(regret=first.fillna(second))
    frame = frame[(frame["kind"] == "trader") & frame["mean_loss"].notna()]
    groups = frame.groupby(["cohort", "distance"], sort=False, dropna=False)
    table = groups.agg(
        agents=("agent", "size"),
        regret_mean=("regret", "mean"),
        regret_worst=("regret", "max"),
        exploitability_mean=("exploitability", "mean"),
    ).reset_index()
    order = {name: place for place, name in enumerate(frame["cohort"].unique())}
    table["place"] = table["cohort"].map(order)
    table = table.sort_values(["place", "distance"], na_position="last", kind="stable")
    return table[list(COLUMNS)].reset_index(drop=True)
