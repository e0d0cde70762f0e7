"""What a scenario file may say of its network."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from regretless.scenarios.config.tables import Count, Name, Strict


class NetworkSpec(Strict):
    """Who hears the forecast: subscribers at once, the others along a graph."""

    graph: str
    """Along which graph the forecast is passed on."""
    subscribers: Any = 0.1
    """Who hears the forecast at once: a share, a count, or a list of agents."""

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


class SmallWorldSpec(NetworkSpec):
    """A ring in which some edges lead elsewhere."""

    graph: Literal["small-world"]
    """A ring in which some edges lead elsewhere."""
    neighbours: Annotated[int, Field(ge=2, multiple_of=2)] = 4
    """Even number of neighbours in the ring."""
    rewiring: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the edges that lead elsewhere."""


class ScaleFreeSpec(NetworkSpec):
    """A graph in which newcomers prefer agents of many edges."""

    graph: Literal["scale-free"]
    """A graph in which newcomers prefer agents of many edges."""
    attachments: Count = 2
    """Edges that a newcomer brings."""


class EdgeListSpec(NetworkSpec):
    """A graph of one's own."""

    graph: Literal["edge-list"]
    """A graph of one's own."""
    file: Name
    """A CSV with two columns of agents."""


class UnconnectedSpec(NetworkSpec):
    """Nobody passes anything on."""

    graph: Literal["none"]
    """Nobody passes anything on."""


AnyNetworkSpec = Annotated[
    SmallWorldSpec | ScaleFreeSpec | EdgeListSpec | UnconnectedSpec, Field(discriminator="graph")
]
GRAPHS: dict[str, type[NetworkSpec]] = {
    "small-world": SmallWorldSpec,
    "scale-free": ScaleFreeSpec,
    "edge-list": EdgeListSpec,
    "none": UnconnectedSpec,
}
