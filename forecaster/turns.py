r"""Outcomes that arrive D rounds late: forecasters that take turns.

The outcome of round t is told before round t + D + 1, which is when the forecaster of round t has
its next turn: D + 1 forecasters of the plain kind, each of every (D + 1)-th round, never miss an
outcome (Weinberger and Ordentlich 2002; Joulani, Gyorgy and Szepesvari 2013). Each plays a game
without delay of T_j rounds, so that with R_j its own bound

    T x regret  <=  sum_j T_j R_j(T_j)  <=  T R(T / (D + 1)),

as the comparator may differ from turn to turn on the right-hand side: a bound in T^(-1/2) is
sqrt(D + 1) times as large. Adaptive weights that are told late by themselves have none, and swings
that grow (table `exploitation`). Since nobody asks a forecaster between its turns, it may learn
an outcome when it happens: what it predicts is the same as if it waited.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Mixture


class TakingTurns(Remembering, Forecaster):
    """Forecasters of whom each is told what it predicted before it predicts again.

    Parameters
    ----------
    turns : sequence of UnbiasedPrediction
        D + 1 of them, alike.
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Attributes
    ----------
    time : int
        Rounds learned by all together.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("turns", "time", "rng")

    def __init__(self, turns: Sequence[UnbiasedPrediction], *, seed: int = 0) -> None:
        if not turns:
            raise ValueError("taking turns needs at least one forecaster")
        self.turns, self.time = list(turns), 0
        self.instances = self.turns
        self.rng = stream(seed, "forecaster")

    @property
    def delay(self) -> int:
        """D."""
        return len(self.turns) - 1

    @property
    def current(self) -> UnbiasedPrediction:
        """Whose turn it is."""
        return self.turns[self.time % len(self.turns)]

    def mixture(self, x: Any = None) -> Mixture:
        """Return the law over predictions of the one whose turn it is."""
        return self.current.mixture(x)

    def __repr__(self) -> str:
        return f"<TakingTurns: round {self.time}, {len(self.turns)} of {self.turns[0]!r}>"

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, and pass the turn on."""
        self.current.update(y)
        self.time += 1
