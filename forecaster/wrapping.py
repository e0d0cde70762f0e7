"""A forecaster around another one: what it is told and asked, it passes on."""

from dataclasses import replace
from typing import ClassVar

from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.game.protocols import Forecaster
from regretless.market.records import RoundFeedback


class Wrapping(Checkpointable, Forecaster):
    """Passes on what it is told and asked, and promises nothing: it has no ``instances``."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("inner",)

    def __init__(self, inner: Forecaster) -> None:
        self.inner = inner
        self.models = inner.models
        self.made_of = inner.made_of

    rng = Delegated("inner")
    points = Delegated("inner")
    suggested = Delegated("inner")
    update = Delegated("inner")
    described = Delegated("inner")
    latest = Delegated("inner")
    prefer = Delegated("inner")
    event_table = Delegated("inner")
    event_bounds = Delegated("inner")

    def observe(self, feedback: RoundFeedback) -> None:
        """Pass the round on, without the index that was drawn: the inner mixture may be another."""
        self.inner.observe(replace(feedback, drawn=None))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inner!r}>"
