"""What a scenario file may say of what surrounds agents: outcomes' space, game, market, network."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from regretless.market import markets, register
from regretless.market.markets import Market
from regretless.scenarios.config.tables import Count, Counted, Label, Name, Open, Range, Strict

assert markets  # noqa: S101 - importing the package registers its names


class SpaceSpec(Strict):
    """Where outcomes may lie: the hull of vertices, mapped onto the cube by its bounding box."""

    vertices: Annotated[list[list[float]], Field(min_length=2)]
    """Corners of the outcomes, in units of their own."""

    @field_validator("vertices")
    @classmethod
    def _check_lengths(cls, vertices: list[list[float]]) -> list[list[float]]:
        if len({len(vertex) for vertex in vertices}) != 1:
            raise ValueError("the vertices differ in length; give each one number per outcome")
        return vertices


Budget = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AdversarySpec(Counted, Open):
    """Who chooses the outcomes, or with [data] moves them."""

    kind: Name
    """A registered name; keys beside these are the adversary's own."""
    outcomes: Count | None = None
    """How many coordinates an outcome has, or a list of their names; a game file says so itself."""
    outcome_names: list[Label] | None = None
    """What the coordinates are called; outcomes = ["rain", "wind"] sets both."""
    scale: dict[str, Range] = Field(default_factory=dict)
    """For named outcomes what 0 and 1 stand for, such as prices in euros."""
    units: dict[str, Label] = Field(default_factory=dict)
    """For named outcomes their unit, as in units = { price = "EUR" }."""
    moves: Budget | dict[str, Budget] | None = None
    """With [data]: by how much it may move each outcome, in the unit of the data."""

    COUNTS: ClassVar = "outcomes"

    @model_validator(mode="after")
    def _check_names_known(self) -> "AdversarySpec":
        for key, table in (("scale", self.scale), ("units", self.units)):
            for name in table:
                if name not in (self.outcome_names or []):
                    reason = f"{key}.{name}: no outcome has that name"
                    raise ValueError(f"{reason}; name them, as outcomes = ['{name}']")
        return self


class GameSpec(Strict):
    """A game: of a leader against followers if there is an [adversary], else of all agents."""

    file: Name
    """A .csv, .npz or .nfg file: bundled, or a path from the scenario file."""


class PricesSpec(Strict):
    """How demand moves prices, and prices outcomes (``market.markets.price_impact``)."""

    feedback: Literal["lagged", "same-round"] = "lagged"
    """Whether demand moves the next round's outcome, or that of its own round."""
    impact: Annotated[float, Field(ge=-1, le=1)] = 0.4
    """How far demand moves outcomes: above 0 congestion, below 0 momentum."""
    adjustment: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Weight of the newest demand in a price."""

    kind: ClassVar = "prices"

    @property
    def parameters(self) -> dict[str, Any]:
        """The market's own: all keys."""
        return self.model_dump()


class MarketSpec(Open):
    """A market by name."""

    kind: Name
    """A registered name; keys beside it are the market's own."""


def gives_own_losses(spec: PricesSpec | MarketSpec | None) -> bool:
    """Whether agents have losses of their own in a market (``Market.losses``)."""
    market = market_class(spec)
    return market is not None and market.has_personal_losses


def market_class(spec: PricesSpec | MarketSpec | None) -> type[Market] | None:
    """Return the class that makes a market; None without a market, or if a function makes it."""
    if spec is None or spec.kind not in register.market:
        return None
    maker = register.market[spec.kind]
    if isinstance(maker, type) and issubclass(maker, Market):
        return maker
    return None


def _choose_branch(table: Any) -> str:
    """Return the tag of the model that reads a [market] table: prices, if it has no kind."""
    has_kind = isinstance(table, MarketSpec) or (isinstance(table, dict) and "kind" in table)
    return "named" if has_kind else "prices"


AnyMarketSpec = Annotated[
    Annotated[PricesSpec, Tag("prices")] | Annotated[MarketSpec, Tag("named")],
    Discriminator(_choose_branch),
]


class NetworkSpec(Strict):
    """Who hears the forecast: subscribers at once, the others along a graph."""

    graph: str
    subscribers: Any = 0.1
    """Who hears the forecast at once: a share, a count, or a list of agents."""

    @field_validator("subscribers")
    @classmethod
    def _check_subscribers(cls, subscribers: Any) -> Any:
        is_share = isinstance(subscribers, float) and 0 < subscribers <= 1
        numbers = subscribers if isinstance(subscribers, list) else [subscribers]
        are_positive = all(type(number) is int and number >= 1 for number in numbers)
        are_distinct = are_positive and 0 < len(numbers) == len(set(numbers))
        if not is_share and not are_distinct:
            forms = "a share such as 0.1, a count such as 5, or a list of agents such as [1, 7]"
            raise ValueError(f"{subscribers!r}: give {forms}")
        return subscribers


class SmallWorldSpec(NetworkSpec):
    """A ring in which some edges lead elsewhere."""

    graph: Literal["small-world"]
    neighbours: Annotated[int, Field(ge=2, multiple_of=2)] = 4
    """Even number of neighbours in the ring."""
    rewiring: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the edges that lead elsewhere."""


class ScaleFreeSpec(NetworkSpec):
    """A graph in which newcomers prefer agents of many edges."""

    graph: Literal["scale-free"]
    attachments: Count = 2
    """Edges that a newcomer brings."""


class EdgeListSpec(NetworkSpec):
    """A graph of one's own."""

    graph: Literal["edge-list"]
    file: Name
    """A CSV with two columns of agents, with or without a header."""
    numbered_from: Literal[0, 1] = 1
    """The number that the file gives the first agent: 0 or 1."""


class UnconnectedSpec(NetworkSpec):
    """Nobody passes anything on."""

    graph: Literal["none"]


AnyNetworkSpec = Annotated[
    SmallWorldSpec | ScaleFreeSpec | EdgeListSpec | UnconnectedSpec, Field(discriminator="graph")
]
