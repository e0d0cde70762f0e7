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
from regretless.market.core.arrays import Array, is_within_unit_cube
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import ParameterError, UserError, brief
from regretless.market.core.validation import check_int, check_range
from regretless.market.game.protocols import Forecaster, as_forecaster

# Of the bands of `python -m paper anchoring` the widest that meets its aims on every stream.
BAND = 0.25
EARLY_ROUNDS = 64  # rounds within which a model that is disproved has earned no band
MODELS_BAND_FACTOR = 1.0  # y: its models failed with it, and their gains are left alone so far


@dataclass(frozen=True)
class Band:
    """What of a cumulative gain its noise explains, and is not weighed."""

    factor: float = 0.0  # z, in units of the root of the gain's variation
    extra_factor_of_models: float = 0.0  # y, by how much that of the gains against models is wider


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
        self.band_factor = check_range("band", band, 0.0, np.inf)  # z: the band is z sqrt(C)
        self.give_up = check_range("give_up", give_up, 0.0, np.inf)  # u, of the switch test
        self.turns = check_int("turns", turns, least=1)  # how many forecasters it serves by turns
        self.blocks = check_int("blocks", blocks, least=1)  # how many share the risk of an alarm
        # with forecasts by turns, a model learns an outcome turns - 1 rounds late
        self.model = LateModel(checked_model(model), self.turns - 1)
        self.unchanged_rounds = 0  # in which its forecast was broadcast as it is
        self.time = 0  # rounds judged
        # None while it is trusted, which it never is where ``give_up`` is 0
        self.disproved_at: int | None = None if self.give_up else 0
        self.bets = Bets(width=self.give_up, turns=self.turns, blocks=self.blocks)

    @property
    def trusted(self) -> bool:
        """Whether the model has not been disproved yet."""
        return self.disproved_at is None

    @property
    def first_correction(self) -> int | None:
        """The round from which on its forecast is corrected, counted from 0; None if it is trusted.

        What a round says against it is known after the ``turns`` - 1 rounds that follow.
        """
        if not self.disproved_at:
            return self.disproved_at
        return self.disproved_at + self.turns - 1

    @property
    def early(self) -> bool:
        """Whether it was disproved before it had shown anything."""
        return self.disproved_at is not None and 0 < self.disproved_at < EARLY_ROUNDS

    @property
    def band(self) -> Band:
        """What is not weighed of the gains."""
        return Band(0.0, MODELS_BAND_FACTOR) if self.early else Band(self.band_factor)

    def make_switch_test(self, tests: int) -> SwitchTest | None:
        """Return its test, alpha shared among so many regrets; None if it never is trusted."""
        if not self.give_up:
            return None
        return SwitchTest(tests, self.give_up, turns=self.turns, blocks=self.blocks)

    def advise(self, x: object, size: int) -> Array:
        """Return the model's forecast (n,); UserError if it is not ``size`` finite numbers."""
        point = np.array(self.model.point(x), dtype=np.float64)
        is_right_shape = point.shape == (size,)
        # Numbers in [0, 1] are finite: of most forecasts nothing else need be asked.
        if not is_right_shape or not (is_within_unit_cube(point) or np.isfinite(point).all()):
            cure = f"it must predict {size} finite numbers"
            raise UserError(f"the base model predicted {point!s}; {cure}")
        return point

    def learn(self, statistics: Array, outcome: Array | None = None, **evidence: Any) -> None:
        """Learn s(y) and, where it is known, y of a round, and judge the round once it is learned.

        ``evidence`` are the arguments of ``judge`` for the round. Where outcomes come late, what
        the model learns now is an earlier round, which is judged by the evidence of its own.
        """
        evidence_of_learned_round = self.model.learn(statistics, outcome, **evidence)
        if evidence_of_learned_round is not None:
            self.judge(**evidence_of_learned_round)

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

    def may_convince(self, surprise: float) -> bool:
        """Whether the bets could count against the model after a round with this s_t / m_t.

        Where forecasters take turns the round is judged later, and the answer is always True.
        """
        return self.turns > 1 or self.bets.would_convince(surprise)

    def described(self) -> dict[str, object]:
        """Return what a run's manifest says of it; ``kept`` is 1 before it has learned a round."""
        share_unchanged = 1.0
        if self.time:
            share_unchanged = self.unchanged_rounds / self.time
        return {
            "kept": share_unchanged,
            "disproved_at": self.disproved_at,
            "first_correction": self.first_correction,
        }


def checked_model(model: object) -> Forecaster:
    """Return a model as a forecaster; ParameterError unless it has ``predict`` and ``update``."""
    methods = (getattr(model, name, None) for name in ("predict", "update"))
    if isinstance(model, type) or not all(map(callable, methods)):
        cure = "give an object with predict and update, such as RunningMean(3)"
        raise ParameterError(f"model = {brief(model)}: {cure}")
    return as_forecaster(model)
