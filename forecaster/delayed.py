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

The **reference** is asked every round, and so it waits: it learns each outcome once, D rounds late,
with the context of its own round and what it had said then, and it predicts as many rounds ahead as
are open. What the rounds say for or against it waits as long. A forecaster whose events are told at
once has gains of at most w sqrt(C) + 1 when trust is lost, as without delay: it has no turn until
then.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.reference import Evidence, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Mixture


class Delayed(Remembering, Forecaster):
    """Forecasters of whom each is told what it predicted before it predicts again.

    Parameters
    ----------
    make : callable
        Makes one of them, without a reference's update of its own: ``make()`` is called D + 1
        times, and all that it makes share ``reference``.
    rounds : int
        D, at least 0: how many rounds late an outcome is told.
    reference : Reference, optional
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Attributes
    ----------
    time : int
        Rounds played by all together.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("instances", "time", "rng", "reference", "_waiting")

    def __init__(
        self,
        make: Callable[[], UnbiasedPrediction],
        rounds: int,
        reference: Reference | None = None,
        *,
        seed: int = 0,
    ) -> None:
        if rounds < 0:
            raise ValueError(f"the delay is {rounds} rounds; give at least 0")
        self.delay, self.time, self.reference = rounds, 0, reference
        self.instances = [make() for _ in range(rounds + 1)]
        self.models, self.spelled = self.current.models, self.current.spelled
        self.rng = stream(seed, "forecaster")
        self._waiting = list[dict[str, Any]]()  # rounds that the reference is not told yet
        self._context: Any = None
        self._outcome: Array | None = None

    @property
    def current(self) -> UnbiasedPrediction:
        """Whose turn it is."""
        own: UnbiasedPrediction = self.instances[self.time % len(self.instances)]
        return own

    @property
    def points(self) -> Array:
        """What each model that is a comparator predicts in the open round (M, n)."""
        return self.current.points

    def suggested(self, group: Any) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in the open round."""
        return self.current.suggested(group)

    def mixture(self, x: Any = None) -> Mixture:
        """Return the distribution over predictions of the one whose turn it is."""
        self._context = x
        if self.reference is not None:
            self.reference.model.ahead = len(self._waiting)
        return self.current.mixture(x)

    def __repr__(self) -> str:
        return f"<Delayed: round {self.time}, {len(self.instances)} of {self.instances[0]!r}>"

    def witness(self, outcome: Array) -> None:
        """Remember the outcome (d,) for the reference."""
        self._outcome = np.array(outcome, dtype=np.float64)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, and pass the turn on."""
        truth = np.asarray(y, dtype=np.float64)
        evidence = self.current.charge(truth)
        self.time += 1
        if self.reference is not None:
            self._waiting.append(
                {
                    "context": _noted(self._context),
                    "opened": self.reference.model.opened(),
                    "outcome": self._outcome,
                    "truth": truth.copy(),
                    "evidence": list(evidence),
                }
            )
            if len(self._waiting) > self.delay:
                self._tell(self.reference, self._waiting.pop(0))

    def _tell(self, reference: Reference, late: dict[str, Any]) -> None:
        """Teach the reference the oldest round that it has not been told."""
        reference.judge(Evidence(*late["evidence"]))
        model = reference.model
        model.ahead = 0
        model.reopen(_context(late["context"]), late["opened"])
        if late["outcome"] is not None:
            model.witness(late["outcome"])
        reference.learn(late["truth"])

    def described(self) -> dict[str, Any]:
        """Return what a run's manifest says of it."""
        return {} if self.reference is None else self.reference.described()

    @property
    def latest(self) -> Mixture | None:
        """The mean of the last mixture of the one whose turn it is."""
        return self.current.latest

    def prefer(self, values: Any) -> None:
        """Let every turn prefer mixtures with a low objective."""
        for own in self.instances:
            own.prefer(values)

    def event_table(self) -> Iterator[tuple[Any, ...]]:
        """Yield every event, its occupancy and bias added up over all turns."""
        for rows in zip(*(own.event_table() for own in self.instances), strict=True):
            yield (*rows[0][:4], sum(row[4] for row in rows), sum(row[5] for row in rows))


def _noted(x: Any) -> Any:
    """Write a context as a checkpoint can hold it."""
    if isinstance(x, Context):
        return {"names": list(x.names), "values": np.array(x.values)}
    return x


def _context(noted: Any) -> Any:
    """Read what ``_noted`` wrote."""
    if isinstance(noted, dict) and noted.keys() == {"names", "values"}:
        return Context(tuple(noted["names"]), np.asarray(noted["values"]))
    return noted
