"""What a scenario file may say of a market: prices that follow demand, or a registered one."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from regretless.market import markets, register
from regretless.market.markets import Market
from regretless.scenarios.config.tables import Name, Open, Strict

assert markets  # noqa: S101 - importing the package registers its names


class PricesSpec(Strict):
    """How demand moves prices, and prices outcomes (``market.markets.price_impact``)."""

    feedback: Literal["lagged", "same-round"] = "lagged"
    """Whether demand moves the next round's outcome, or that of its own round."""
    impact: Annotated[float, Field(ge=-1, le=1)] = 0.4
    """How far demand moves outcomes: above 0 congestion, below 0 momentum."""
    adjustment: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Weight of the newest demand in a price."""


class MarketSpec(Open):
    """A market by name."""

    kind: Name
    """A registered name; keys beside it are the market's own."""


def gives_own_losses(spec: PricesSpec | MarketSpec | None) -> bool:
    """Whether agents have losses of their own in a market (``Market.losses``)."""
    kind = spec.kind if isinstance(spec, MarketSpec) else "prices"
    maker = register.market[kind] if spec is not None and kind in register.market else None
    return isinstance(maker, type) and issubclass(maker, Market) and maker.personal


def _branch(table: Any) -> str:
    """Tell which of the two a table is: it is prices that follow demand if it has no kind."""
    named = isinstance(table, MarketSpec) or (isinstance(table, dict) and "kind" in table)
    return "named" if named else "prices"


AnyMarketSpec = Annotated[
    Annotated[PricesSpec, Tag("prices")] | Annotated[MarketSpec, Tag("named")],
    Discriminator(_branch),
]
