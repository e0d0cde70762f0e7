"""Networks: who hears the forecast directly, who hears it late, and forecasts on their way.

**Late news.** An agent at distance h from the forecaster hears in round t the prediction that was
drawn in round t - h. Until the first one has come through to it, and for ever where none does, it
goes by the running mean of s(y) over the rounds that were played, outcomes being public: responding
to it is a best response to the empirical distribution of outcomes (follow the leader). Before the
first outcome the mean is 1/2 in every coordinate, as for the running-mean forecaster.

**Graphs.** The distance of an agent is the number of hops from it to the nearest subscriber.
Graphs are undirected (docs/networks.md). Agents are numbered from 0 here, from 1 in tables.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse.csgraph import dijkstra

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.losses.basis import Basis
from regretless.market.records import CERTAIN, Ensemble, Forecast, Mixture

NEVER = -1  # the distance of whom no news reaches


class DelayedForecasts(Checkpointable):
    """The last ``depth`` predictions drawn of one block, and the mean (n,) of realised outcomes."""

    REMEMBERED = ("mean", "rounds", "past")

    def __init__(self, basis: Basis, depth: int) -> None:
        self.basis = basis
        self.depth = depth
        # What was broadcast in each of the last rounds, the latest first.
        self._broadcasts: deque[dict[str, Array]] = deque(maxlen=depth)
        self._past_forecasts: deque[Forecast] = deque(maxlen=depth)  # the same, as they are heard
        self.mean = np.full(basis.size, 0.5)
        self.rounds = 0

    @property
    def past(self) -> dict[str, dict[str, Array]]:
        """What was broadcast, by rounds ago, from "0"."""
        return {str(rounds_ago): past for rounds_ago, past in enumerate(self._broadcasts)}

    @past.setter
    def past(self, broadcasts: dict[str, dict[str, Array]]) -> None:
        in_order = [broadcasts[str(rounds_ago)] for rounds_ago in range(len(broadcasts))]
        self._broadcasts = deque(in_order, maxlen=self.depth)
        forecasts = [_forecast_of(broadcast) for broadcast in in_order]
        self._past_forecasts = deque(forecasts, maxlen=self.depth)

    def add(self, forecast: Forecast, statistics: Array) -> None:
        """Keep what was broadcast in a round, and add s(y) of its outcome (n,) to the mean."""
        broadcast = {"point": forecast.statistics}
        if forecast.label is not None:
            broadcast["label"] = forecast.label
        if forecast.ensemble is not None:
            broadcast |= {
                "outcomes": forecast.ensemble.outcomes,
                "weights": forecast.ensemble.weights,
            }
        self._broadcasts.appendleft(broadcast)  # the farthest one drops out
        self._past_forecasts.appendleft(_forecast_of(broadcast))
        self.rounds += 1
        self.mean = self.mean + (statistics - self.mean) / self.rounds

    def forecast_heard_at(self, distance: int) -> Forecast | None:
        """Return the forecast that reaches a distance now; None where none has yet.

        ``distance`` is at least 1, in hops, or ``NEVER``.
        """
        if distance == NEVER or distance > len(self._past_forecasts):
            return None
        return self._past_forecasts[distance - 1]

    def running_mean_forecast(self) -> Forecast:
        """Return the running mean as a forecast, with the label that goes with it."""
        points = self.mean[None].copy()
        return Forecast(Mixture(points, CERTAIN, labels=self.basis.inverse(points)), 0)


def _forecast_of(broadcast: dict[str, Array]) -> Forecast:
    """Return the forecast of what ``DelayedForecasts`` keeps of a prediction that was drawn."""
    labels = None
    if "label" in broadcast:
        labels = broadcast["label"][None]
    ensembles = None
    if "outcomes" in broadcast:
        ensembles = (Ensemble(broadcast["outcomes"], broadcast["weights"]),)
    mixture = Mixture(broadcast["point"][None], CERTAIN, labels=labels, ensembles=ensembles)
    return Forecast(mixture, 0)


@dataclass(frozen=True, eq=False)
class Network:
    """Who hears the forecast, and how late."""

    distance: Indices  # hops from each agent (N,) to the nearest subscriber, or ``NEVER``
    edges: Indices | None = None  # neighbours (E, 2), the lower first; None where there is no graph

    @property
    def farthest(self) -> int:
        """Greatest distance from which the forecast is still heard."""
        return max(int(self.distance.max(initial=0)), 0)

    @cached_property
    def neighbours(self) -> list[Indices]:
        """The agents next to each agent, in order."""
        if self.edges is None:
            return [np.zeros(0, dtype=np.intp)] * len(self.distance)
        directed_edges = np.concatenate([self.edges, self.edges[:, ::-1]])
        directed_edges = directed_edges[np.lexsort((directed_edges[:, 1], directed_edges[:, 0]))]
        sources = directed_edges[:, 0]
        targets = directed_edges[:, 1]
        first_edge_of_agent = np.searchsorted(sources, np.arange(1, len(self.distance)))
        return np.split(targets, first_edge_of_agent)

    def relay(self, basis: Basis) -> DelayedForecasts:
        """Return the delayed forecasts of a block, back to the farthest agent that hears them."""
        return DelayedForecasts(basis, self.farthest)

    def frame(self) -> pd.DataFrame:
        """Return a row per edge, agents numbered as in the agents table."""
        edges = np.zeros((0, 2), dtype=np.intp) if self.edges is None else self.edges
        return pd.DataFrame({"source": edges[:, 0] + 1, "target": edges[:, 1] + 1})


def small_world(agents: int, rng: np.random.Generator, *, neighbours: int, rewiring: float) -> Any:
    """Draw a connected small world, each edge of the ring rewired with this probability."""
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
    graph = nx.empty_graph(agents)
    graph.add_edges_from(edges.tolist())
    return graph


def networked(agents: int, subscribers: Indices, graph: Any | None = None) -> Network:
    """Measure everybody's distance from the subscribers, who alone hear where there is no graph."""
    distance = np.full(agents, NEVER)
    if graph is None:
        distance[subscribers] = 0
        return Network(distance)
    if len(subscribers):
        adjacency = nx.to_scipy_sparse_array(graph, nodelist=range(agents), weight=None)
        adjacency.indices = adjacency.indices.astype(np.int32)  # SciPy before 1.15 takes no others
        adjacency.indptr = adjacency.indptr.astype(np.int32)
        hops = dijkstra(adjacency, indices=subscribers, unweighted=True, min_only=True)
        distance = np.where(np.isinf(hops), NEVER, hops).astype(np.intp)
    edges = np.array(sorted(sorted(edge) for edge in graph.edges), dtype=np.intp).reshape(-1, 2)
    return Network(distance, edges)
