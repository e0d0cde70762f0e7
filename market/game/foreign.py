"""A user's own forecaster that is no subclass of ``Forecaster``: its methods are taken over."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import name_of
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Forecast, Mixture

METHODS = ("mixture", "predict", "update", "observe_outcome")


class ForeignForecaster(Checkpointable, Forecaster):
    """Any object with ``predict`` and ``update``, and perhaps ``mixture`` and ``observe_outcome``.

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
        """Return the mixture of what it predicts; UserError if that is no ``Forecast``."""
        return self._told(x).mixture

    def point(self, x: Any = None) -> Array:
        """Return what it predicts (n,); UserError if that is no ``Forecast``."""
        return self._told(x).statistics

    def _told(self, x: Any) -> Forecast:
        told = self.predict(x)
        if not isinstance(told, Forecast):
            raise UserError(f"{name_of(self.predict)} returned {brief(told)}; return a Forecast")
        return told

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: an object that learns has a method of this name."""

    def __repr__(self) -> str:
        return repr(self.player)


def as_forecaster(player: Any) -> Forecaster:
    """Return a forecaster as it is, and any other object with its methods as one."""
    return player if isinstance(player, Forecaster) else ForeignForecaster(player)
