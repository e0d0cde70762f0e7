r"""Anchoring: a base model's forecast, left alone until its bias exceeds its noise.

Any model may serve as base. Its forecast b_t is broadcast as it is while it is **trusted**: until
some event's bias exceeds

    |B| > w sqrt(C),   C = sum_t |increment of B|,

which the noise of one event seldom does, though that of many events may, or until the losses that
best responses to it expect fall short of what they cost, on average over all losses l, by

    S > 3 sqrt(sum_t s_t^2),   s_t = mean over l of l(a_t, y_t) - l(a_t, b_t),   S = sum_t s_t.

Noise alone gets so far in 2 % of runs of 1,000 rounds; a base that nature leads on is found out in
ten. From then on every round's b_t is weighed with the events' biases so far, each with a **dead
zone**, z < w (``weights``): H holds only what exceeds z sqrt(C). If the certificate of the single
prediction b_t is within the tolerance, b_t is broadcast still: no loss whose owner would act on it
has a bias that matters. Otherwise the game is solved as ever, with the walk starting at b_t, and
the correction lasts until the biases are back in their zones. A base that is disproved within 64
rounds has shown nothing that a zone could keep: from then on z = 0. A w of at most z trusts nobody.
Models that it was made of have failed with it: theirs is y, since nobody would have followed them.

A base that is made of models (``models.aggregate``) makes each of them a comparator, trusted or
not: nobody who acts on the broadcast regrets much that they did not act on one of the models.

Every bias stays below z sqrt(n_T(E)) + sqrt(3 n_T(E) Lambda) (``bounds``), whatever the base does:
a bad base costs the dead zone and what it did while it was trusted, a good one is kept.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.protected import LossGroup, moved_mass
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.events.weights import AdaptiveWeights
from regretless.forecaster.minimax.base import HullSolver, Solution
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.models.base import Base
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import handed
from regretless.market.game.protocols import tell
from regretless.market.losses.basis import Hull

# Of the zones of `python -m paper anchoring` the widest that meets its aims on every stream.
DEAD_ZONE = 0.25
# As wide as hostile streams allow among coordinates; among scalar events, which are fewer and say
# nothing of biases that hurt nobody, the narrowest of those tried that leaves good bases alone.
TRUST = 2.0
TRUST_IN_LOSSES = 1.5
ALARM = 3.0  # standard deviations by which expectations may fall short before a base is disproved
EARLY = 64  # rounds within which a base that is disproved has earned no zone
MODELS_ZONE = 1.0  # y: its models failed with it, and their gains are left alone so far


class AnchoredPrediction(UnbiasedPrediction):
    """Unbiased prediction that stays at a base model's forecast as long as it can.

    Parameters
    ----------
    groups : sequence of LossGroup, or LossEvents
        The losses to protect.
    base : Base
        Predicts the same vectors; see ``models.adapted`` for models of other libraries. One that
        has ``points`` (M, n), what models of its own predict in the open round, makes comparators
        of them; ready-made events must then be for M models.
    dead_zone : float
        z, at least 0: how many times sqrt(C) a bias may reach before it counts.
    trust : float
        w: how many times sqrt(C) a bias may reach before the base is corrected at all.
    hull : "box" or "simplex"
    solver : HullSolver, optional
        Solves the rounds' games, over a hull of its own; over ``hull`` by default.

    Attributes
    ----------
    kept : int
        Rounds in which the base's forecast was broadcast as it was.
    lost : int or None
        After how many rounds the base was disproved; None if it is not, 0 if w trusts nobody.
    """

    REMEMBERED = ("kept", "lost", "base", "_start", "_spent", "_surprise")

    def __init__(  # noqa: PLR0913 - keyword-only description of an instance
        self,
        groups: Sequence[LossGroup] | LossEvents,
        base: Base,
        *,
        dead_zone: float = DEAD_ZONE,
        trust: float = TRUST,
        hull: Hull = "box",
        solver: HullSolver | None = None,
        seed: int = 0,
    ) -> None:
        self.base: Any = base
        self.models = tuple(getattr(base, "names", ()))
        many = len(self.models)
        events = groups if isinstance(groups, LossEvents) else Events(groups, models=many)
        super().__init__(events, solver=solver or cube(events.size, hull), seed=seed)
        self.rule, self.trust = AdaptiveWeights(dead_zone), trust
        self.kept, self.lost = 0, None if trust > dead_zone else 0
        self._single, self._alone = self.solver.single(np.zeros(events.size)), False
        self._surprise = np.zeros(2)  # S, and the sum of squares

    @property
    def trusted(self) -> bool:
        """Whether the base has not been disproved yet."""
        return self.lost is None

    def _advice(self, x: Any) -> Array | None:
        """Ask the base, and return what its own models predict (M, n)."""
        self._single = self._anchor(x)
        return np.asarray(self.base.points) if self.models else None

    def _answer(self, awake: Any) -> Solution:
        kept = self.trusted and not self.solver.preferring
        solution = self._single if kept else super()._answer(awake)
        self._alone = solution.unchanged
        return solution

    def _solve(self, table: Array, tolerance: float) -> Solution:
        candidate = self._single.points[0]
        return self.solver.solve(self.events.rows, table, tolerance=tolerance, candidate=candidate)

    def _anchor(self, x: Any) -> Solution:
        """Return the base's forecast, moved into the hull."""
        point = np.array(self.base.predict(x).point, dtype=np.float64)
        if point.shape != (self.events.size,) or not np.isfinite(point).all():
            wanted = f"{self.events.size} finite numbers"
            raise UserError(f"the base model predicted {point!s}; it must predict {wanted}")
        return self.solver.single(point)

    def witness(self, outcome: Array) -> None:
        """Pass the outcome (d,) on to the base, if it wants to know."""
        tell(self.base, outcome)

    def suggested(self, group: int) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in the open round.

        ValueError if no round is open.
        """
        if self._pending is None:
            raise ValueError("no round is open; call mixture or predict first")
        return self.events.suggested(self._pending[0], group)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, and teach it to the base."""
        awake: Any = None if self._pending is None else self._pending[0]
        super().update(y)
        self.kept += self._alone
        if self.trusted:
            surprised = self._surprised_by(np.asarray(y, dtype=np.float64))
            if self.events.exceeds(awake, self.trust) or surprised:
                self.lost, self._spent = self.time, self.events.spent()
                self._narrow()
                self._start = self.events.potential(self.rule.dead_zone)
        self.base.update(handed(self.base.update, np.asarray(y, dtype=np.float64)))

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        super().restore(state)
        self._narrow()

    def _narrow(self) -> None:
        """Close the zone of a base that was disproved early."""
        if self.lost is not None and 0 < self.lost < EARLY:
            self.rule = AdaptiveWeights(0.0)
            self.events.widen(MODELS_ZONE)

    def _surprised_by(self, truth: Array) -> bool:
        """Add a round's mean surprise, and say whether the sum is beyond noise."""
        rows = self.events.rows
        told = self._single
        seen, _ = moved_mass(rows, told.points, told.mass)
        worse = float(seen @ rows.times(truth - told.points[0])) / (len(rows.start) - 1)
        self._surprise = self._surprise + np.array([worse, worse**2])
        total, squares = self._surprise
        return bool(total > ALARM * np.sqrt(squares))

    def bias_bound(self) -> BiasBound:
        """Bound on every event's bias so far."""
        return replace(super().bias_bound(), trust=self.trust, trusted=self.trusted)
