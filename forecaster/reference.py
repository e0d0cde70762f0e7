"""A reference model: its forecast is left alone until it costs more than chance explains.

A model's forecast b_t is broadcast as it is while the model is **trusted**: until some listed loss
regrets it, or the bias of some event of coordinates grows, by more than would happen to a
calibrated model in 2 % of all runs, or until losses exceed what was expected by as much and some
loss has a regret (``trust``). Trust does not return. From then on every round's b_t is weighed with
the events' gains so far, each with a **tolerance band** z: H holds only what exceeds z sqrt(C). If
the certificate of b_t alone is within the tolerance, b_t is broadcast still: no loss whose owner
would act on it has a bias that matters. Otherwise the game is solved, with the walk starting at
b_t, until the biases are back in their bands. Every bias stays below z sqrt(n_T(E)) more than the
weights' own bound (``events.bounds``), whatever the model does.

A model that is disproved within 64 rounds has shown nothing that a band could keep: from then on z
= 0, and b_t is no candidate. Models that it was made of (``models.aggregate``) are comparators,
trusted or not; they have failed with it, and theirs is y, since nobody would have followed them.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.events.weights import Band
from regretless.forecaster.trust import Bets, Trust
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import handed
from regretless.market.game.foreign import as_forecaster

# Of the bands of `python -m paper anchoring` the widest that meets its aims on every stream.
BAND = 0.25
EARLY = 64  # rounds within which a model that is disproved has earned no band
MODELS_ZONE = 1.0  # y: its models failed with it, and their gains are left alone so far


class Evidence(NamedTuple):
    """What a round says for or against a reference.

    ``surprise`` is s_t / m_t, by how much losses exceeded what was expected at its forecast, over
    the most that they could fall short; ``doubtful`` says whether it has cost more than nothing,
    which matters only where bets on surprises are won.
    """

    unchanged: bool  # whether its forecast was broadcast as it was
    beyond: bool = False  # whether it has cost more than it may
    surprise: float = 0.0
    doubtful: Callable[[], bool] = bool


class Reference(Checkpointable):
    """A model whose forecast is kept where it is good, and the test of it.

    Parameters
    ----------
    model : Forecaster, or any object with ``predict`` and ``update``
        Predicts the same vectors (``models.adapted``). The models that it is ``made_of`` become
        comparators.
    band : float
        z, at least 0: how many times sqrt(C) a bias may reach before it counts.
    give_up : float
        u, at least 0: how many times what chance explains it may cost before it is corrected.
    turns : int
        How many forecasters take turns with it.

    Attributes
    ----------
    unchanged_rounds : int
        Rounds in which the model's forecast was broadcast as it was.
    disproved_at : int or None
        After how many rounds the model was disproved; None if it is not, 0 if u = 0.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "model", "unchanged_rounds", "disproved_at", "time", "_bets"
    )  # fmt: skip

    def __init__(
        self, model: Any, *, band: float = BAND, give_up: float = 1.0, turns: int = 1
    ) -> None:
        for name, given in (("band", band), ("give_up", give_up)):
            if not given >= 0:
                raise ValueError(f"{name} is {given}; give a number of at least 0")
        self.model, self.zone, self.give_up = as_forecaster(model), band, give_up
        self.turns, self.unchanged_rounds, self.time = turns, 0, 0
        self.disproved_at: int | None = None if give_up else 0
        self._bets = Bets(give_up)

    @property
    def trusted(self) -> bool:
        """Whether the model has not been disproved yet."""
        return self.disproved_at is None

    @property
    def early(self) -> bool:
        """Whether it was disproved before it had shown anything."""
        return self.disproved_at is not None and 0 < self.disproved_at < EARLY

    @property
    def band(self) -> Band:
        """What is not weighed of the gains."""
        return Band(0.0, MODELS_ZONE) if self.early else Band(self.zone)

    def trust(self, experts: int) -> Trust | None:
        """Return how it is tested among so many experts; None if it never is trusted."""
        return Trust(experts, self.give_up, turns=self.turns) if self.give_up else None

    def advise(self, x: Any, size: int) -> Array:
        """Return the model's forecast (n,); UserError if it is not ``size`` finite numbers."""
        point = np.array(self.model.point(x), dtype=np.float64)
        if point.shape != (size,) or not np.isfinite(point).all():
            wanted = f"{size} finite numbers"
            raise UserError(f"the base model predicted {point!s}; it must predict {wanted}")
        return point

    def judge(self, evidence: Evidence) -> None:
        """Go on trusting the model, or not, after a round."""
        self.time += 1
        self.unchanged_rounds += evidence.unchanged
        if self.trusted:
            self._bets.add(evidence.surprise)
            if evidence.beyond or (self._bets.won and evidence.doubtful()):
                self.disproved_at = self.time

    def learn(self, truth: Array) -> None:
        """Teach the model s(y) (n,)."""
        self.model.update(handed(self.model.update, truth))

    def described(self) -> dict[str, Any]:
        """Return what a run's manifest says of it."""
        kept = self.unchanged_rounds / max(self.time, 1)
        return {"kept": kept, "disproved_at": self.disproved_at}
