"""What a scenario file may say of its network."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from regretless.scenarios.config.tables import Count, Name, Strict

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
    """Along which graph the forecast is passed on; "none" passes nothing."""
    neighbours: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    """Even number of neighbours in the ring of a small world."""
    rewiring: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the edges of a small world that lead elsewhere."""
    attachments: Count | None = None
    """Edges that a newcomer brings to a scale-free graph."""
    file: Name | None = None
    """A CSV with two columns of agents, for an edge list."""
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

    @model_validator(mode="after")
    def _keys_fit(self) -> "NetworkSpec":
        own = KEYS[self.graph]
        for key in ("neighbours", "rewiring", "attachments", "file"):
            if getattr(self, key) is not None and key not in own:
                raise ValueError(f"graph = '{self.graph}' has no key {key}; drop it")
            if getattr(self, key) is None and key in own:
                if own[key] is None:
                    raise ValueError(f"graph = '{self.graph}' needs the key {key}; add it")
                setattr(self, key, own[key])
        return self
