"""What travels between the players of a round, and the past that they may see."""

from regretless.market.records.decision import Decision
from regretless.market.records.history import History
from regretless.market.records.records import (
    Announcement,
    Context,
    Ensemble,
    Forecast,
    Mixture,
    Observation,
    OutcomeLaw,
    Round,
)

__all__ = [
    "Announcement",
    "Context",
    "Decision",
    "Ensemble",
    "Forecast",
    "History",
    "Mixture",
    "Observation",
    "OutcomeLaw",
    "Round",
]
