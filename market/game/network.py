"""Who hears the forecast and when: graphs, distances, and forecasts on their way.

**Late news.** An agent at distance h from the forecaster hears in round t the prediction that was
drawn in round t - h. Until the first one has come through to it, and for ever where none does, it
goes by the running mean of s(y) over the rounds that were played, outcomes being public: responding
to it is a best response to the empirical distribution of outcomes (follow the leader). Before the
first outcome the mean is 1/2 in every coordinate, as for the running-mean forecaster.

**Graphs.** The distance of an agent is the number of hops from it to the nearest subscriber, and
news travels one hop a round: at distance h it is h rounds old. Graphs are undirected:

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
from regretless.market.game.adversary_view import alone
from regretless.market.losses.basis import Basis
from regretless.market.records import Ensemble, Forecast, Mixture

NEVER = -1  # the distance of whom no news reaches


class DelayedForecasts:
    """The last predictions drawn of one block, and the mean of the realised outcomes.

    Parameters
    ----------
    basis : Basis
        Of the block.
    depth : int
        Rounds that are remembered: the greatest distance of an agent.
    """

    def __init__(self, basis: Basis, depth: int) -> None:
        self.basis, self.depth = basis, depth
        self.past: tuple[Forecast, ...] = ()  # newest first
        self.mean, self.rounds = np.full(basis.size, 0.5), 0

    def add(self, forecast: Forecast, vector: Array) -> None:
        """Remember a round.

        Parameters
        ----------
        forecast : Forecast
            What was broadcast.
        vector : array (n,)
            s(y) of the outcome.
        """
        kept = Forecast(alone(forecast), 0)
        self.past = (kept, *self.past)[: self.depth]
        self.rounds += 1
        self.mean = self.mean + (vector - self.mean) / self.rounds

    def heard(self, distance: int) -> Forecast | None:
        """Return what reaches a distance of at least 1 now; None where nothing has yet."""
        return self.past[distance - 1] if 1 <= distance <= len(self.past) else None

    def stand_in(self) -> Forecast:
        """Return the running mean as a forecast, with the label that goes with it."""
        points = self.mean[None].copy()
        return Forecast(Mixture(points, np.ones(1), labels=self.basis.inverse(points)), 0)

    def copied(self) -> "DelayedForecasts":
        """Return a copy that goes on by itself."""
        twin = DelayedForecasts(self.basis, self.depth)
        twin.past, twin.mean, twin.rounds = self.past, self.mean, self.rounds
        return twin

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        past = {str(i): _packed(forecast) for i, forecast in enumerate(self.past)}
        return {"mean": self.mean, "rounds": self.rounds, "past": past}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.mean, self.rounds = np.array(state["mean"]), int(state["rounds"])
        self.past = tuple(_unpacked(state["past"][str(i)]) for i in range(len(state["past"])))


def _packed(forecast: Forecast) -> dict[str, Any]:
    packed: dict[str, Any] = {"point": forecast.statistics}
    if forecast.label is not None:
        packed["label"] = forecast.label
    if forecast.ensemble is not None:
        packed |= {"outcomes": forecast.ensemble.outcomes, "weights": forecast.ensemble.weights}
    return packed


def _unpacked(packed: dict[str, Any]) -> Forecast:
    labels = np.array(packed["label"])[None] if "label" in packed else None
    ensembles = None
    if "outcomes" in packed:
        ensembles = (Ensemble(np.array(packed["outcomes"]), np.array(packed["weights"])),)
    points = np.array(packed["point"])[None]
    return Forecast(Mixture(points, np.ones(1), labels=labels, ensembles=ensembles), 0)


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

    def relay(self, basis: Basis) -> DelayedForecasts:
        """Return what passes the news of a block on, as far as anybody hears it."""
        return DelayedForecasts(basis, self.farthest)

    def frame(self) -> pd.DataFrame:
        """Return a row per edge, agents numbered as in the agents table."""
        edges = np.zeros((0, 2), dtype=np.intp) if self.edges is None else self.edges
        return pd.DataFrame({"source": edges[:, 0] + 1, "target": edges[:, 1] + 1})


def small_world(agents: int, rng: np.random.Generator, *, neighbours: int, rewiring: float) -> Any:
    """Draw a connected small world.

    UserError if the agents are too few, or a hundred draws fall apart.

    Parameters
    ----------
    agents : int
        At least 3.
    neighbours : int
        Of each agent in the ring: even, at least 2 and below ``agents``.
    rewiring : float
        Probability with which an edge is rewired, in [0, 1].
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
