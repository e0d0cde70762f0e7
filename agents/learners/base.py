r"""What a learner is, and what all of ours share: K rows of state, one mixed strategy each.

A learner ignores the forecast. Round after round it plays a strategy over its actions, is told the
losses, and promises, whatever they are, that its regret per round vanishes: against the best fixed
action (external regret) or against the best replacement of each action played (swap regret).

**Rates.** The bounds of the logit learners rest on one inequality (Cesa-Bianchi and Lugosi 2006,
section 2.3; Bubeck and Cesa-Bianchi 2012, proof of Theorem 3.1). With losses in an interval of
length s_t at round t and rates that never rise,

    sum_t <q_t, l_t> - min_b sum_t l_t(b) <= ln(A) / rate_T + sum_t rate_t s_t^2 / 8:

by Hoeffding's lemma <q_t, l_t> is at most the increase of Phi(rate_t) = -ln(mean_b exp(-rate_t
L_b)) / rate_t plus rate_t s_t^2 / 8, and Phi at given totals only rises as the rate falls.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import handed, name_of, numbers_of

Actions = Indices


class RowLearner(Checkpointable):
    """A learner whose next strategy is computed as soon as the losses are known.

    Subclasses name in ``REMEMBERED`` the arrays that they remember, make them in ``begin`` and
    return the next strategies from ``step``.

    Attributes
    ----------
    name : str
        The registered name.
    bandit : bool
        Whether a row is told the loss of its own action only.
    measure : str or None
        The regret that ``bound`` bounds: "external", "swap", or None.
    """

    name: ClassVar[str]
    bandit: ClassVar[bool] = False
    measure: ClassVar[str | None] = None
    REMEMBERED: ClassVar[tuple[str, ...]] = ("strategy", "rounds")
    IN_PLACE = True

    rows, actions, rounds = 0, 0, 0
    horizon: int | None = None
    strategy: Array

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        """Forget everything and prepare for K rows of A actions, and T rounds where that is known.

        UserError if a number is below 1, or the horizon is needed and missing.
        """
        given = {"rows": rows, "actions": actions, "horizon": 1 if horizon is None else horizon}
        for key, value in given.items():
            if value < 1:
                raise UserError(f"{key} = {value}: a learner needs at least 1")
        self.rows, self.actions, self.horizon, self.rounds = rows, actions, horizon, 0
        self.strategy = np.full((rows, actions), 1.0 / actions)
        self.begin()

    def begin(self) -> None:
        """Make the arrays of ``REMEMBERED`` for ``rows`` and ``actions``."""
        raise NotImplementedError

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the ``rounds``-th round; return the next strategies (K, A), a new array."""
        raise NotImplementedError

    def play(self) -> Array:
        """Return this round's mixed strategies (K, A)."""
        self._check_started()
        return self.strategy.copy()

    def learn(self, losses: Array, actions: Actions) -> None:
        """Be told a round: losses (K, A) in [0, 1], and what was played (K,).

        Bandit learners alone read what was played, and of the losses that one.
        """
        self._check_started()
        told = np.ascontiguousarray(losses, dtype=np.float64)
        if told.shape != self.strategy.shape or (self.bandit and len(actions) != self.rows):
            raise ValueError(f"losses have shape {told.shape}; the rows are {self.strategy.shape}")
        self.rounds += 1
        wanted = f"return mixed strategies of shape {self.strategy.shape}"
        answer = self.step(handed(self.step, told), handed(self.step, actions))
        strategy = numbers_of(self.step, answer, wanted).astype(np.float64, copy=False)
        if strategy.shape != self.strategy.shape:
            raise UserError(f"{name_of(self.step)} returned {brief(answer)}; {wanted}")
        self.strategy = strategy

    def bound(self, rounds: int) -> float | None:
        """Bound the regret per round named by ``measure`` after some rounds of losses in [0, 1].

        Any number of them, whatever the horizon; None where no bound holds.
        """
        return None

    def restore(self, state: dict[str, Any]) -> None:
        self._check_started()
        super().restore(state)

    def _check_started(self) -> None:
        if not self.rows:
            raise ValueError(f"{type(self).__name__}: call start(rows, actions) first")


class TotalLearner(RowLearner):
    """A learner that remembers cumulative losses, or estimates or regrets (K, A)."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("total",)
    total: Array

    def begin(self) -> None:
        self.total = np.zeros((self.rows, self.actions))


class PairLearner(TotalLearner):
    """A learner that remembers them for every pair of actions (K, A, A)."""

    measure: ClassVar[str | None] = "swap"

    def begin(self) -> None:
        self.total = np.zeros((self.rows, self.actions, self.actions))


def _fixed(tuned: float, horizon: int | None) -> float:
    if horizon is None:
        raise UserError("rate = 'fixed': it needs the horizon; give one or use 'anytime'")
    return tuned / math.sqrt(horizon)


RATES: dict[str, Callable[[float, int | None], float | None]] = {
    "anytime": lambda _tuned, _horizon: None,
    "fixed": _fixed,
}  # the rate of all rounds, None where it falls


class RatedLearner(RowLearner):
    """A learner with a rate: "anytime", falling like 1 / sqrt(t), "fixed", or a positive number.

    ``constant`` is the rate of all rounds, None where it falls; "fixed" is tuned to the horizon.
    ``given`` is the number, where it is one.
    """

    constant: float | None = None
    given: float | None = None

    def __init__(self, *, rate: str | float = "anytime") -> None:
        if isinstance(rate, str) and rate in RATES:
            self._constant = RATES[rate]
            return
        number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if not number or not 0 < float(rate) < math.inf:
            raise UserError(f"rate = {brief(rate)}: write 'anytime', 'fixed' or a positive number")
        self.given = float(rate)
        self._constant = lambda _tuned, _horizon: self.given

    def scales(self) -> tuple[float, float]:
        """Return the numbers that sqrt(t) divides (anytime) and that sqrt(T) divides (fixed)."""
        raise NotImplementedError

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        super().start(rows, actions, horizon=horizon)
        self.constant = self._constant(self.scales()[1], horizon)

    def rate_at(self, number: int) -> float:
        """Return the rate of a round, counted from 1."""
        return self.scales()[0] / math.sqrt(number) if self.constant is None else self.constant
