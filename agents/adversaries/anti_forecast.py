"""The anti-forecast adversary: always where the forecast's mixture is not.

Of the vertices ``1/2 + strength (e_j - 1/2)`` (for one coordinate: its two ends) it picks the one
farthest from the mean label forecast. That is the vertex of the least predicted coordinate; ties
go to the lowest index. At strength 1 the outcomes are the unit vectors. A forecast that follows
the past (last value, smoothing) is wrong every round.
"""

import numpy as np

from regretless.market import register
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.protocols import Adversary
from regretless.market.records import Announcement, Context, History, OutcomeLaw


@register.adversary("anti-forecast")
class AntiForecast(Remembering, Adversary):
    """Moves away from the mean of the forecast's mixture.

    Parameters
    ----------
    rng : numpy Generator
        Unused: it is deterministic.
    strength : float
        Distance of the vertices from the centre, in (0, 1].
    """

    sees = frozenset({"mixture"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, strength: float = 1.0) -> None:
        super().__init__(outcomes, rng)
        if not 0 < strength <= 1:
            raise ValueError(f"strength is {strength}; give a number in (0, 1]")
        corners = np.eye(outcomes) if outcomes > 1 else np.array([[0.0], [1.0]])
        self._vertices = 0.5 + strength * (corners - 0.5)

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the vertex farthest from the mean forecast."""
        distance = ((self._vertices - announced.mean_label) ** 2).sum(1)
        return OutcomeLaw.pure(self._vertices[int(distance.argmax())])
