"""A reference model: its forecast is left alone until it costs more than chance explains.

A model's forecast b_t is broadcast as it is while the model is **trusted**, until the test below
rejects it in 2 % of all runs of a calibrated one. Trust does not return. From then on H holds only
what of the events' gains exceeds a **tolerance band**, z sqrt(C). If the certificate of b_t alone
is within the tolerance, b_t is broadcast still; otherwise the walk that solves the game starts at
it. Every bias stays below z sqrt(n_T(E)) more than the weights' own bound, whatever it predicts.

A model that is disproved within 64 rounds has shown nothing that a band could keep: from then on z
= 0, and b_t is no candidate. Models that it was made of (``models.aggregate``) are comparators,
trusted or not; they have failed with it, and theirs is y, since nobody would have followed them.

**The test** (docs/theory.md, 9). For a listed loss k, an action a and a comparator c let R be the
regret so far,

    R = sum_t q_t(a) (l_k(a, y_t) - l_k(c_t, y_t)),

and for events of coordinates, which protect losses that nobody listed, the bias of either sign. If
the reference is calibrated, every R is a supermartingale and every bias a martingale. With V the
sum of squared increments, in [-1, 1], and m experts, the reference is **given up** when some R
exceeds

    w(V) = u sqrt( 2 (V + 1) ( ln(1 + V) / 2 + ln(m / alpha) ) ),    alpha = .01, u = 1

(normal mixture: Robbins 1970; Howard et al. 2021, arXiv:1810.08240), or when the greatest of a
loss's C^A sums sum_a R(a, phi(a)), or a regret to one of M models, exceeds w of its own V, with m =
K C^A or K M.

**Hints.** With thousands of experts that takes some fifty rounds, however hostile nature is. One
number is faster: by how much losses exceed what best responses expect,

    s_t = mean over l of l(a_t, y_t) - l(a_t, b_t)  >=  -m_t,

m_t the most that they could fall short by, known before y_t. If the model is calibrated, who bets a
share h of their wealth on s_t > 0 has prod_t (1 + h s_t / m_t), a martingale, or less where a gain
above 2 is cut; the mean over h = .9, .45, ... exceeds 1 / alpha with probability alpha at most. As
an overconfident model loses such bets as well, the model is then given up only if some R, or its
sum over a loss's actions, exceeds 1.5 u sqrt(V + 1) in that round.

**When the games begin** R <= w(V) + 1 and R <= C, C >= V the sum of increments' sizes, which allow
no R above ``reach`` times sqrt(C) (docs/theory.md, 9), as C >= 2 u^2 ln(m / alpha) where w(C) <= C,
and R <= C below.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.late_model import LateModel
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import as_forecaster

ALARM = 0.01  # alpha
HINT = 1.5  # roots of V + 1
SHARES = 0.9 * 0.5 ** np.arange(7)  # h
MOST = 2.0  # s / m that counts
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


@dataclass(frozen=True)
class Trust:
    """The test of a reference."""

    tests: int  # m / D, how many R are watched
    width: float = 1.0  # u, above 0
    turns: int = 1  # D, how many forecasters watch as many

    @property
    def evidence(self) -> float:
        """L."""
        return math.log(self.tests * self.turns) - math.log(ALARM)

    def most(self, squares: Array | float) -> Array:
        """Return what no R exceeds as long as the model is trusted."""
        return self.limit(squares) + (self.turns > 1)  # a round that is judged later

    def limit(self, squares: Array | float) -> Array:
        """Return w(V)."""
        known = 1.0 + np.asarray(squares, dtype=np.float64)
        chances = np.log(known) / 2 + self.evidence
        return np.asarray(self.width * np.sqrt(2 * known * chances))

    def hint(self, squares: Array | float) -> Array:
        """Return the R that is cause for doubt."""
        return np.asarray(self.width * HINT * np.sqrt(1.0 + squares))

    def reach(self, rounds: int) -> float:
        """Return how many roots of its C no R exceeds after so many rounds, once it is lost."""
        first = 2 * self.width**2 * self.evidence
        return math.sqrt(2 * (1 + 1 / first) * self.strength(rounds)) + 1 / math.sqrt(first)

    def strength(self, rounds: int) -> float:
        """Return the most that w(V)^2 / (2 (V + 1)) is within so many rounds."""
        return self.width**2 * (math.log1p(rounds) / 2 + self.evidence)

    def rejects(self, regret: Array, squares: Array, *, hint: bool = False) -> bool:
        """Whether some R is above its limit at V, or gives cause for doubt."""
        least = self.width * (HINT if hint else math.sqrt(2 * self.evidence))
        large = regret > least  # limits grow with V
        if not large.any():
            return False
        limit = self.hint if hint else self.limit
        return bool((regret[large] > limit(squares[large])).any())


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
        How many forecasters take turns with it: it learns outcomes, and what rounds say of it, so
        many rounds late but one.

    Attributes
    ----------
    unchanged_rounds : int
        Rounds in which the model's forecast was broadcast as it was.
    disproved_at : int or None
        After how many rounds the model was disproved; None if it is not, 0 if u = 0.
    wealth : ndarray
        Logarithms (J,) of what bets on a surprise have grown to, from alpha^(-u^2) on.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("model", "unchanged_rounds", "disproved_at", "time", "wealth"),
    )

    def __init__(
        self, model: object, *, band: float = BAND, give_up: float = 1.0, turns: int = 1
    ) -> None:
        for name, given in (("band", band), ("give_up", give_up)):
            if not given >= 0:
                raise ValueError(f"{name} is {given}; give a number of at least 0")
        self.model = LateModel(as_forecaster(model), turns - 1)
        self.zone, self.give_up = band, give_up
        self.turns, self.unchanged_rounds, self.time = turns, 0, 0
        self.disproved_at: int | None = None if give_up else 0
        self.wealth: Array = np.zeros(len(SHARES))

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

    def trust(self, experts: int) -> Trust | None:
        """Return how it is tested among so many experts; None if it never is trusted."""
        return Trust(experts, self.give_up, turns=self.turns) if self.give_up else None

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
        self.time += 1
        self.unchanged_rounds += unchanged
        if self.trusted:
            self.wealth = self.wealth + np.log1p(SHARES * min(surprise, MOST))
            enough = math.log(len(SHARES)) - self.give_up**2 * math.log(ALARM)
            if beyond or (doubtful and np.logaddexp.reduce(self.wealth) > enough):
                self.disproved_at = self.time

    def described(self) -> dict[str, object]:
        """Return what a run's manifest says of it."""
        kept = self.unchanged_rounds / max(self.time, 1)
        return {"kept": kept, "disproved_at": self.disproved_at}
