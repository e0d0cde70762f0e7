"""Forecasters around others: ensembles for points, and outcomes that come late.

**Outcomes that arrive D rounds late** are learned by D + 1 forecasters of the plain kind that take
turns (Weinberger and Ordentlich 2002; Joulani, Gyorgy and Szepesvari 2013): the outcome of round t
is told before round t + D + 1, and so each plays a game without delay (docs/theory.md, 10). Since
nobody asks a forecaster between its turns, it may learn an outcome when it happens: what it
predicts is the same as if it waited.

The **reference** is asked every round, and so it waits: it learns each outcome once, D rounds late,
with the context of its own round and what it had said then, and it predicts as many rounds ahead as
are open. What the rounds say for or against it waits as long. A forecaster whose events are told at
once has gains of at most w(V) + 1 when trust is lost, as without delay: it has no turn until then.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.minimax.game import HullSolver, Objective, Solution
from regretless.forecaster.reference import Evidence, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.core.own_code import handed
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Event, Forecast, Mixture


class Wrapping(Checkpointable, Forecaster):
    """Passes on what it is told and asked, and promises nothing: it has no ``instances``."""

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


class EnsembleBroadcast(Wrapping):
    """A forecaster of points, broadcast as the nearest ensembles in a solver's hull.

    Its point may lie outside of conv s(Y); what is broadcast then is the nearest point inside.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("solver",)
    spelled = True

    def __init__(self, forecaster: Forecaster, solver: HullSolver) -> None:
        super().__init__(forecaster)
        self.solver = solver
        self._latest: Solution | None = None

    def mixture(self, x: object = None) -> Mixture:
        return self._spelled(self.inner.mixture(x))

    def _spelled(self, mixture: Mixture) -> Mixture:
        nearest = [self.solver.single(point) for point in mixture.points]
        self._latest = nearest[0]
        ensembles = tuple(found.ensembles[0] for found in nearest if found.ensembles)
        points = np.vstack([found.points for found in nearest])
        return Mixture(points, mixture.weights, ensembles=ensembles)

    def predict(self, x: object = None) -> Forecast:
        forecast = self.inner.predict(x)
        return Forecast(self._spelled(forecast.mixture), forecast.index)

    drew = Delegated("inner")

    def update(self, y: ArrayLike) -> None:
        super().update(y)
        if self._latest is not None:
            self.solver.remember(self._latest)


class LateModel(Wrapping):
    """A model that is told every outcome D rounds late, as it was then."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_waiting",)

    def __init__(self, model: Forecaster, rounds: int) -> None:
        super().__init__(model)
        self.rounds, self._waiting = rounds, list[dict[str, Any]]()
        self._context: Any = None
        self._outcome: Array | None = None

    def ask(self, x: object) -> None:
        """Let the model know how many rounds are open before the one that it is asked for."""
        self._context, self.inner.ahead = x, len(self._waiting)

    def mixture(self, x: object = None) -> Mixture:
        self.ask(x)
        return self.inner.mixture(x)

    def predict(self, x: object = None) -> Forecast:
        self.ask(x)
        return self.inner.predict(x)

    def observe_outcome(self, outcome: Array) -> None:
        self._outcome = np.array(outcome, dtype=np.float64)

    def update(self, y: ArrayLike) -> None:
        self.learn(np.array(y, dtype=np.float64))

    def learn(self, truth: Array, beside: Sequence[Any] = ()) -> Sequence[Any] | None:
        """Add s(y) of the round that was asked for, and teach the model one that is D rounds old.

        Return what was given ``beside`` the round that it learned; None if it learned none.
        """
        x = self._context
        if isinstance(x, Context):  # as a checkpoint can hold it
            x = {"names": list(x.names), "values": np.array(x.values)}
        known = {"context": x, "opened": self.inner.opened(), "outcome": self._outcome}
        self._waiting.append(known | {"truth": truth.copy(), "beside": list(beside)})
        if len(self._waiting) <= self.rounds:
            return None
        oldest, self.inner.ahead = self._waiting.pop(0), 0
        x = oldest["context"]
        if isinstance(x, dict) and x.keys() == {"names", "values"}:
            x = Context(tuple(x["names"]), np.asarray(x["values"]))
        self.inner.reopen(x, oldest["opened"])
        if oldest["outcome"] is not None:
            self.inner.observe_outcome(oldest["outcome"])
        self.inner.update(handed(self.inner.update, oldest["truth"]))
        return list(oldest["beside"])


class Delayed(Checkpointable, Forecaster):
    """Forecasters of whom each is told what it predicted before it predicts again.

    ``make`` makes one of the D + 1, who share the ``reference``; an outcome is told D = ``rounds``
    rounds late, at least 0. ``seed`` is for ``predict``, which draws from the mixture by itself.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("instances", "time", "rng", "reference", "_backlog")

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
        self.instances: list[UnbiasedPrediction] = [make() for _ in range(rounds + 1)]
        self.models, self.spelled = self.current.models, self.current.spelled
        self.rng = stream(seed, "forecaster")
        self._backlog = None if reference is None else LateModel(reference.model, rounds)

    @property
    def current(self) -> UnbiasedPrediction:
        """Whose turn it is."""
        return self.instances[self.time % len(self.instances)]

    points = Delegated("current")
    suggested = Delegated("current")
    drew = Delegated("current")
    latest = Delegated("current")

    def mixture(self, x: object = None) -> Mixture:
        if self._backlog is not None:
            self._backlog.ask(x)
        return self.current.mixture(x)

    def __repr__(self) -> str:
        return f"<Delayed: round {self.time}, {len(self.instances)} of {self.instances[0]!r}>"

    def observe_outcome(self, outcome: Array) -> None:
        if self._backlog is not None:
            self._backlog.observe_outcome(outcome)

    def update(self, y: ArrayLike) -> None:
        truth = np.asarray(y, dtype=np.float64)
        evidence = self.current.charge(truth)
        self.time += 1
        if self.reference is not None and self._backlog is not None:
            late = self._backlog.learn(truth, evidence)
            if late is not None:
                self.reference.judge(Evidence(*late))

    def described(self) -> dict[str, Any]:
        return {} if self.reference is None else self.reference.described()

    def prefer(self, values: Objective) -> None:
        for own in self.instances:
            own.prefer(values)

    def event_table(self) -> Iterator[Event]:
        """Yield every event, its occupancy and bias added up over all turns."""
        for rows in zip(*(own.event_table() for own in self.instances), strict=True):
            yield (*rows[0][:4], sum(row[4] for row in rows), sum(row[5] for row in rows))
