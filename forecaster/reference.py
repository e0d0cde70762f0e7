"""A reference model: its forecast is left alone until it costs more than chance explains.

A model's forecast b_t is broadcast as it is while the model is **trusted**, until the test below
rejects it in 2 % of all runs of a calibrated one. Trust does not return. From then on H holds only
what of the events' gains exceeds a **tolerance band**, z sqrt(C). If the certificate of b_t alone
is within the tolerance, b_t is broadcast still; otherwise the walk that solves the game starts at
it. Every bias stays below z sqrt(n_T(E)) more than the weights' own bound, whatever it predicts.

A model that is disproved within 64 rounds has shown nothing that a band could keep: from then on z
= 0, and b_t is no candidate. Models that it was made of (``models.aggregate``) are comparators,
trusted or not; they have failed with it, and theirs is y, since nobody would have followed them.

**The test** is in ``switch_test``: what a model may cost before it is rejected.

**When the games begin** R <= L(V) + 1, L the test's limit, and R <= C, C >= V the sum of
increments' sizes, which allow no R above ``reach`` times sqrt(C) (docs/theory.md, 9).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.late_model import LateModel
from regretless.forecaster.switch_test import Bets, SwitchTest
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import as_forecaster

# Of the bands of `python -m paper anchoring` the widest that meets its aims on every stream.
BAND = 0.25
EARLY = 64  # rounds within which a model that is disproved has earned no band
MODELS_ZONE = 1.0  # y: its models failed with it, and their gains are left alone so far


@dataclass(frozen=True)
class Band:
    """What of a cumulative gain its noise explains, and is not weighed."""

    zone: float = 0.0  # z, in units of the root of the gain's variation
    models: float = 0.0  # y, by how much that of the gains against models is wider


PLAIN = Band()


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
        u, at least 0: about how many times what chance explains it may cost before it is corrected.
    turns : int
        How many forecasters take turns with it: it learns outcomes, and what rounds say of it, so
        many rounds late but one.
    blocks : int
        How many references the run has: the chance of a false alarm is shared among them.

    Attributes
    ----------
    unchanged_rounds : int
        Rounds in which the model's forecast was broadcast as it was.
    disproved_at : int or None
        After how many rounds the model was disproved; None if it is not, 0 if u = 0.
    bets : Bets
        On surprises.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("model", "unchanged_rounds", "disproved_at", "time", "bets"),
    )

    def __init__(
        self,
        model: object,
        *,
        band: float = BAND,
        give_up: float = 1.0,
        turns: int = 1,
        blocks: int = 1,
    ) -> None:
        for name, given in (("band", band), ("give_up", give_up)):
            if not given >= 0:
                raise ValueError(f"{name} is {given}; give a number of at least 0")
        self.model = LateModel(as_forecaster(model), turns - 1)
        self.zone, self.give_up = band, give_up
        self.turns, self.unchanged_rounds, self.time = turns, 0, 0
        self.blocks = blocks
        self.disproved_at: int | None = None if give_up else 0
        self.bets = Bets(width=give_up, turns=turns, blocks=blocks)

    @property
    def trusted(self) -> bool:
        """Whether the model has not been disproved yet."""
        return self.disproved_at is None

    @property
    def early(self) -> bool:
        """Whether it was disproved before it had shown anything."""
        return 0 < (self.disproved_at or 0) < EARLY

    @property
    def band(self) -> Band:
        """What is not weighed of the gains."""
        return Band(0.0, MODELS_ZONE) if self.early else Band(self.zone)

    def trust(self, tests: int) -> SwitchTest | None:
        """Return its test, alpha shared among so many regrets; None if it never is trusted."""
        if not self.give_up:
            return None
        return SwitchTest(tests, self.give_up, turns=self.turns, blocks=self.blocks)

    def advise(self, x: object, size: int) -> Array:
        """Return the model's forecast (n,); UserError if it is not ``size`` finite numbers."""
        point = np.array(self.model.point(x), dtype=np.float64)
        if point.shape != (size,) or not np.isfinite(point).all():
            wanted = f"it must predict {size} finite numbers"
            raise UserError(f"the base model predicted {point!s}; {wanted}")
        return point

    def learn(self, truth: Array, **evidence: Any) -> None:
        """Learn s(y) of a round, and what ``judge`` is told of the round, once that is known."""
        if (known := self.model.learn(truth, **evidence)) is not None:
            self.judge(**known)

    def judge(
        self,
        *,
        unchanged: bool,
        beyond: bool = False,
        surprise: float = 0.0,
        doubtful: bool = False,
    ) -> None:
        """Go on trusting the model, or not, after a round.

        Its forecast was broadcast ``unchanged`` or not; while it is trusted, it has cost more than
        it may (``beyond``), or than nothing (``doubtful``); ``surprise`` is s_t / m_t.
        """
        turn = self.time % self.turns
        self.time += 1
        self.unchanged_rounds += unchanged
        if self.trusted:
            surprising = self.bets.add(surprise, turn=turn)
            if beyond or (doubtful and surprising):
                self.disproved_at = self.time

    def described(self) -> dict[str, object]:
        """Return what a run's manifest says of it."""
        kept = self.unchanged_rounds / max(self.time, 1)
        return {"kept": kept, "disproved_at": self.disproved_at}
