"""What a scenario file may say of its network, and the network that comes of it.

Agents are numbered from 1 through all cohorts in the order of the file, as in the agents table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.network import Network, edge_list, networked, scale_free, small_world
from regretless.scenarios.spec.cohort import Count, Name, Strict

Integers = NDArray[np.intp]
Share = Annotated[float, Field(gt=0, le=1)]

KEYS: dict[str, dict[str, Any]] = {
    "small-world": {"neighbours": 4, "rewiring": 0.1},
    "scale-free": {"attachments": 2},
    "edge-list": {"file": None},
    "none": {},
}


class NetworkSpec(Strict):
    """Who hears the forecast: subscribers at once, the others along a graph."""

    graph: Literal["small-world", "scale-free", "edge-list", "none"]
    neighbours: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    rewiring: Annotated[float, Field(ge=0, le=1)] | None = None
    attachments: Count | None = None
    file: Name | None = None
    subscribers: Any = 0.1  # a share, a count, or a list of agents

    @field_validator("subscribers")
    @classmethod
    def _who(cls, given: Any) -> Any:
        def counts(number: Any) -> bool:
            return isinstance(number, int) and not isinstance(number, bool) and number >= 1

        share = isinstance(given, float) and 0 < given <= 1
        listed = isinstance(given, list) and bool(given) and all(map(counts, given))
        if not (share or counts(given) or (listed and len(set(given)) == len(given))):
            wanted = "a share such as 0.1, a count such as 5, or a list of agents such as [1, 7]"
            raise ValueError(f"{given!r}: give {wanted}")
        return given

    @model_validator(mode="after")
    def _keys_fit(self) -> NetworkSpec:
        own = KEYS[self.graph]
        for key in ("neighbours", "rewiring", "attachments", "file"):
            if getattr(self, key) is not None and key not in own:
                raise ValueError(f"graph = '{self.graph}' has no key {key}; drop it")
            if getattr(self, key) is None and key in own:
                if own[key] is None:
                    raise ValueError(f"graph = '{self.graph}' needs the key {key}; add it")
                setattr(self, key, own[key])
        return self


def drawn_network(
    spec: NetworkSpec, sizes: Sequence[int], listens: Sequence[bool], root: int
) -> Network:
    """Draw the network of a scenario.

    Parameters
    ----------
    spec : NetworkSpec
    sizes : sequence of int
        Agents of each cohort.
    listens : sequence of bool
        Whether they can subscribe; learners only pass the news on.
    root : int
        Root seed.

    Raises
    ------
    UserError
        If the graph or the subscribers do not fit the agents.
    """
    rng, agents = stream(root, "network"), sum(sizes)
    graph: Any = None
    if spec.graph == "small-world":
        assert spec.neighbours is not None  # noqa: S101 - filled in
        assert spec.rewiring is not None  # noqa: S101 - filled in
        graph = small_world(agents, rng, neighbours=spec.neighbours, rewiring=spec.rewiring)
    elif spec.graph == "scale-free":
        assert spec.attachments is not None  # noqa: S101 - filled in
        graph = scale_free(agents, rng, attachments=spec.attachments)
    elif spec.graph == "edge-list":
        graph = edge_list(agents, read_edges(Path(str(spec.file)), agents))
    candidates = np.flatnonzero(np.repeat(np.array(listens, dtype=np.bool_), sizes))
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
        raise UserError("network.subscribers: nobody listens to forecasts; drop [network]")
    share = isinstance(given, float)
    count = max(1, round(given * len(candidates))) if share else given
    if count > len(candidates):
        there = f"{len(candidates)} agents listen"
        raise UserError(f"network.subscribers = {given}: {there}; lower it")
    return np.sort(rng.choice(candidates, count, replace=False))


def read_edges(path: Path, agents: int) -> Integers:
    """Read a user's edges: a CSV of two columns of agent numbers, with a line of names above.

    Parameters
    ----------
    path : Path
    agents : int
        N.

    Returns
    -------
    int array (E, 2)
        Numbered from 0.

    Raises
    ------
    UserError
        If it is not such a file, or names an agent that there is not.
    """
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"network.file {path} cannot be read: {reason}; mend the file") from error
    if frame.shape[1] != 2:
        raise UserError(f"network.file {path} has {frame.shape[1]} columns; give it two")
    numbers = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~((numbers >= 1) & (numbers <= agents) & (numbers == np.floor(numbers)))
    for row, column in np.argwhere(wrong)[:1]:
        there = f"data row {row + 1}: '{frame.iloc[row, column]!s}' is no agent"
        raise UserError(f"network.file {path}, {there}; give numbers from 1 to {agents}")
    for row in np.flatnonzero(numbers[:, 0] == numbers[:, 1])[:1]:
        there = f"data row {row + 1}: an edge from agent {numbers[row, 0]:.0f} to itself"
        raise UserError(f"network.file {path}, {there}; drop it")
    return np.asarray(numbers.astype(np.intp) - 1)
