"""A forecaster that wraps another one: whatever it does not do itself the inner one does."""

from typing import ClassVar

from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.game.protocols import Forecaster


class Wrapping(Checkpointable, Forecaster):
    """Passes on what it is told and asked. It promises nothing: it has no ``instances``."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("inner",)

    def __init__(self, inner: Forecaster) -> None:
        self.inner, self.models = inner, inner.models

    rng = Delegated("inner")
    points = Delegated("inner")
    suggested = Delegated("inner")
    observe_outcome = Delegated("inner")
    update = Delegated("inner")
    described = Delegated("inner")
    latest = Delegated("inner")
    prefer = Delegated("inner")
    event_table = Delegated("inner")
    event_bounds = Delegated("inner")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inner!r}>"
