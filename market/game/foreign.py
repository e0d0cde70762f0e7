"""A user's own forecaster that is no subclass of ``Forecaster``: its methods are taken over."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from regretless.market.core.checkpoint import Remembering
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Mixture

METHODS = ("mixture", "predict", "update", "witness")


class ForeignForecaster(Remembering, Forecaster):
    """Any object with ``predict`` and ``update``, and perhaps ``mixture`` and ``witness``.

    Its own methods stand in the place of this object's, so that what goes wrong in them is named.

    Parameters
    ----------
    player : object
        With ``state`` and ``restore`` where the run is to be resumed.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("player",)

    def __init__(self, player: Any) -> None:
        self.player = player
        for name in METHODS:
            if (method := getattr(player, name, None)) is not None:
                setattr(self, name, method)

    def mixture(self, x: Any = None) -> Mixture:
        """Return the mixture of what it predicts."""
        return self.predict(x).mixture

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: an object that learns has a method of this name."""

    def __repr__(self) -> str:
        return repr(self.player)


def as_forecaster(player: Any) -> Forecaster:
    """Return a forecaster as it is, and any other object with its methods as one."""
    return player if isinstance(player, Forecaster) else ForeignForecaster(player)
