"""Outcomes that come late: a forecaster for each round that is open, in turn.

**Outcomes that arrive D rounds late** are learned by D + 1 forecasters of the plain kind that take
turns (Weinberger and Ordentlich 2002; Joulani, Gyorgy and Szepesvari 2013): the outcome of round t
is told before round t + D + 1, and so each plays a game without delay (docs/theory.md, 10). Since
nobody asks a forecaster between its turns, it may learn an outcome when it happens: what it
predicts is the same as if it waited.

The **reference** is asked every round, and so it waits (``models.late_model``): it learns each
outcome once, D rounds late, with the context of its own round and what it had said then, and it
predicts as many rounds ahead as are open. What the rounds say for or against it waits as long. A
forecaster whose events are told at once has gains of at most L(V) + 1 when trust is lost, as
without delay: it has no turn until then.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import pandas as pd
from numpy.typing import ArrayLike

from regretless.forecaster.minimax.game import Objective
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Event, RoundFeedback


class Delayed(Checkpointable, Forecaster):
    """Forecasters who take turns, each of whom learns an outcome before it predicts again.

    ``make`` makes one of the D + 1, who share a reference of as many ``turns``, if any; outcomes
    are known D = ``rounds`` rounds late, at least 0. ``seed`` is for ``predict``, which draws from
    the mixture by itself.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("instances", "time", "rng", "reference")

    def __init__(
        self, make: Callable[[], UnbiasedPrediction], rounds: int, *, seed: int = 0
    ) -> None:
        delay = rounds
        if delay < 0:
            raise ValueError(f"the delay is {delay} rounds; give at least 0")
        self.time = 0  # rounds learned, by all of them together
        self.rng = stream(seed, "forecaster")  # for the draws of ``predict``
        self.instances: list[UnbiasedPrediction] = [make() for _ in range(delay + 1)]
        first_instance = self.instances[0]  # all are alike in these
        self.basis = first_instance.basis
        self.models = first_instance.models
        # whether predictions come with their ensembles of outcomes
        self.has_ensembles = first_instance.has_ensembles
        self.reference = first_instance.reference  # shared by all

    @property
    def current(self) -> UnbiasedPrediction:
        """Whose turn it is."""
        return self.instances[self.time % len(self.instances)]

    points = Delegated("current")
    suggested = Delegated("current")
    mixture = Delegated("current")
    described = Delegated("current")
    latest = Delegated("current")

    def __repr__(self) -> str:
        return f"<Delayed: round {self.time}, {len(self.instances)} of {self.instances[0]!r}>"

    def observe(self, feedback: RoundFeedback) -> None:
        self.current.observe(feedback)
        self.time += 1

    def update(self, y: ArrayLike) -> None:
        self.current.update(y)
        self.time += 1

    def coverage(
        self, names: Sequence[str], *, is_proved: bool, turns: Sequence[object] = ()
    ) -> pd.DataFrame | None:
        return self.instances[0].coverage(names, is_proved=is_proved, turns=self.instances)

    def prefer(self, values: Objective) -> None:
        for forecaster in self.instances:
            forecaster.prefer(values)

    def event_table(self) -> Iterator[Event]:
        """Yield every event, its occupancy and bias added up over all turns."""
        tables = [forecaster.event_table() for forecaster in self.instances]
        for same_event in zip(*tables, strict=True):  # in the tables of all turns
            total_occupancy = sum(event.occupancy for event in same_event)
            total_bias = sum(event.bias for event in same_event)
            yield same_event[0]._replace(occupancy=total_occupancy, bias=total_bias)
