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
        """Forget everything and prepare for K rows of A actions.

        UserError if a number is below 1, or the horizon is needed and missing.

        Parameters
        ----------
        rows, actions : int
            K and A, at least 1.
        horizon : int, optional
            T, the rounds that will be played, for what is tuned to it.
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
        """Be told a round.

        ValueError if a shape does not fit.

        Parameters
        ----------
        losses : array (K, A)
            In [0, 1]; bandit learners read the loss of their own action alone.
        actions : int array (K,)
            What was played; only bandit learners read it.
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

        ``rounds``: at least 1; any number, whatever the horizon. Returns None where none holds.
        """
        return None

    def restore(self, state: dict[str, Any]) -> None:
        self._check_started()
        super().restore(state)

    def _check_started(self) -> None:
        if not self.rows:
            raise ValueError(f"{type(self).__name__}: call start(rows, actions) first")


class TotalLearner(RowLearner):
    """A learner that remembers cumulative losses, or estimates of them (K, A)."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("total",)
    total: Array

    def begin(self) -> None:
        self.total = np.zeros((self.rows, self.actions))


class Rate:
    """The rate of each round: falling like 1 / sqrt(t), unless a subclass says otherwise.

    Attributes
    ----------
    constant : float or None
        The rate of all rounds; None where it falls.
    """

    constant: float | None = None
    _falling: float = math.nan

    def start(self, scales: tuple[float, float], horizon: int | None) -> None:
        """Prepare for a run; UserError if the horizon is needed and missing.

        ``scales``: what sqrt(t) divides where the rate falls, what sqrt(T) divides where it is
        tuned to the horizon.
        """
        self._falling = scales[0]

    def at(self, number: int) -> float:
        """Return the rate of a round, counted from 1."""
        return self._falling / math.sqrt(number) if self.constant is None else self.constant

    def check(self, most: float, why: str) -> None:
        """Raise UserError if it was given as a number above ``most``."""


class TunedRate(Rate):
    """One rate for all rounds, tuned to the horizon."""

    def start(self, scales: tuple[float, float], horizon: int | None) -> None:
        if horizon is None:
            raise UserError("rate = 'fixed': it needs the horizon; give one or use 'anytime'")
        self.constant = scales[1] / math.sqrt(horizon)


class GivenRate(Rate):
    """One rate for all rounds, a number of the user's."""

    def __init__(self, number: float) -> None:
        self.constant = number

    def check(self, most: float, why: str) -> None:
        if self.at(1) > most:
            raise UserError(f"rate = {self.constant}: {why}")


RATES = {"anytime": Rate, "fixed": TunedRate}


def rate_of(given: str | float) -> Rate:
    """Return the rate that a parameter names, or is; UserError unless it is one.

    Examples
    --------
    >>> rate_of(0.5).at(100), rate_of("anytime").constant is None
    (0.5, True)
    """
    if isinstance(given, str) and given in RATES:
        return RATES[given]()
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not 0 < float(given) < math.inf:
        raise UserError(f"rate = {brief(given)}: write 'anytime', 'fixed' or a positive number")
    return GivenRate(float(given))


class RatedLearner(RowLearner):
    """A learner with a rate.

    Parameters
    ----------
    rate : "anytime", "fixed" or float
        Falling like 1 / sqrt(t), tuned to the horizon, or a positive number.
    """

    def __init__(self, *, rate: str | float = "anytime") -> None:
        self.rate = rate_of(rate)

    def scales(self) -> tuple[float, float]:
        """Return the numbers that sqrt(t) divides (anytime) and that sqrt(T) divides (fixed)."""
        raise NotImplementedError

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        super().start(rows, actions, horizon=horizon)
        self.rate.start(self.scales(), horizon)
