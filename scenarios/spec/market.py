"""What a scenario file may say of an endogenous market (``market.game.prices``)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regretless.scenarios.spec.cohort import Strict


class MarketSpec(Strict):
    """How demand moves prices, and prices outcomes."""

    feedback: Literal["lagged", "same-round"] = "lagged"
    """Whether demand moves the next round's outcome, or that of its own round."""
    impact: Annotated[float, Field(ge=-1, le=1)] = 0.4
    """How far demand moves outcomes: above 0 congestion, below 0 momentum."""
    adjustment: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Weight of the newest demand in a price."""
