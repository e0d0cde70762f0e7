r"""What a learner is, and what all learners of this package share.

``agents.cohorts.learning.LearnerCohort`` calls a learner in this order: ``start`` once, then in
every round ``play`` and, when the losses are known, ``learn``. A learner ignores the forecast. It
keeps K rows of state, one per distinct loss of the cohort, and one mixed strategy for each. Rows do
not influence each other.

A learner promises, whatever the losses are, that its regret per round vanishes: against the best
fixed action (external regret) or against the best replacement of each action played (swap regret).
``bound`` says how fast.

In a market ``meet`` comes before the first round, with what a learner may know of the game, and
``observe_actions`` before ``learn`` where a learner watches what everybody plays.

A learner of a user's own subclasses ``RowLearner`` (or ``TotalLearner``, which keeps cumulative
losses) and writes ``step``; ``docs/agents.md`` has an example.

Rates of the logit learners
---------------------------
The bounds of the logit learners rest on one inequality (Cesa-Bianchi and Lugosi 2006, section 2.3;
Bubeck and Cesa-Bianchi 2012, proof of Theorem 3.1). With losses l_t in an interval of length s_t at
round t and rates that never rise,

    sum_t <q_t, l_t> - min_b sum_t l_t(b) <= ln(A) / rate_T + sum_t rate_t s_t^2 / 8.

By Hoeffding's lemma <q_t, l_t> is at most the increase of Phi(rate_t) = -ln(mean_b exp(-rate_t
L_b)) / rate_t plus rate_t s_t^2 / 8, and Phi at given totals only rises as the rate falls. In the
code q is ``strategy``, L is ``total``, rate_t is ``rate_at(t)`` and A is ``actions``.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import answer_as_numbers, is_ours, name_of, read_only

Actions = Indices


@dataclass(frozen=True, eq=False)
class GameFacts:
    """What a learner may know of the game before the first round.

    Attributes
    ----------
    action_counts : int array (M,)
        How many actions each agent of the market has, in the order of the tables.
    unit_scale : array (K,)
        A difference of 1 between losses is so much in the units of each row's utility.
    mean_losses : callable
        Returns what each action costs each row (K, A) on average over all that the others may
        play; UserError where the market has no ``profile_losses``, or they are too many.
    rng : Generator or None
        Draws what a learner draws before the first round.
    """

    action_counts: Indices
    unit_scale: Array
    mean_losses: Callable[[], Array]
    rng: np.random.Generator | None = None


class RowLearner(Checkpointable):
    """A learner whose next strategy is computed as soon as the losses are known.

    A subclass names in ``REMEMBERED`` the arrays that it remembers, makes them in ``begin`` and
    returns the next strategies from ``step``.

    Attributes
    ----------
    name : str
        The registered name.
    bandit : bool
        Whether a row is told the loss of its own action only.
    has_distinct_rows : bool
        Whether rows of equal losses play by something of their own, so that agents share none.
    measure : str or None
        The regret that ``bound`` bounds: "external", "swap", or None.
    rows, actions : int
        K and A, once it has started.
    rounds : int
        How many rounds it has learned from.
    horizon : int or None
        The number of rounds of the run, where it is known.
    strategy : (K, A)
        The mixed strategies of the coming round.
    """

    name: ClassVar[str]
    bandit: ClassVar[bool] = False
    has_distinct_rows: ClassVar[bool] = False
    measure: ClassVar[str | None] = None
    REMEMBERED: ClassVar[tuple[str, ...]] = ("strategy", "rounds")
    IN_PLACE = True

    rows: int = 0
    actions: int = 0
    rounds: int = 0
    horizon: int | None = None
    strategy: Array

    _step_is_ours: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._step_is_ours = is_ours(cls.step)  # else its answers are checked

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        """Forget everything and prepare for K rows of A actions, and T rounds where that is known.

        UserError if a number is below 1, or the horizon is needed and missing.
        """
        sizes = {"rows": rows, "actions": actions}
        if horizon is not None:
            sizes["horizon"] = horizon
        for name, size in sizes.items():
            if size < 1:
                raise UserError(f"{name} = {size}: a learner needs at least 1")
        self.rows = rows
        self.actions = actions
        self.horizon = horizon
        self.rounds = 0
        self.strategy = np.full((rows, actions), 1.0 / actions)
        self.begin()

    @property
    def rule_class(self) -> type["RowLearner"]:
        """The class whose ``step`` learns."""
        return type(self)

    def part(self, rows: Indices) -> "RowLearner":
        """Return a learner for some rows (k,), to be started."""
        return deepcopy(self)

    def attend(self, present_rows: Mask | None) -> None:
        """Receive which rows take part in the coming round (K,); None for all."""

    @property
    def unchanged_rounds(self) -> Integers | None:
        """For how many rounds what each row likes best has not changed (K,); None if unknown."""
        return None

    @property
    def watches_actions(self) -> bool:
        """Whether it is to be told what all agents of the market play."""
        return False

    def meet(self, facts: GameFacts) -> None:
        """Receive what is known of the game; in a market, after ``start``."""

    def observe_actions(self, actions: Indices) -> None:
        """Receive what all agents of the market played (M,), -1 for absent ones.

        It is called before ``learn``, in the order of the tables, of a learner that
        ``watches_actions``.
        """

    def begin(self) -> None:
        """Make the arrays of ``REMEMBERED`` for ``rows`` and ``actions``."""
        raise NotImplementedError

    def step(self, losses: Array, actions: Actions) -> Array:
        """Learn from the ``rounds``-th round; return the next strategies (K, A), a new array.

        ``losses`` (K, A) lie in [0, 1]; ``actions`` (K,) is what each row played, which bandit
        learners alone may read.
        """
        raise NotImplementedError

    def play(self) -> Array:
        """Return this round's mixed strategies (K, A), a copy."""
        if not self.rows:
            self._check_started()
        return self.strategy.copy()

    def learn(self, losses: Array, actions: Actions) -> None:
        """Be told a round: losses (K, A) in [0, 1], and what was played (K,).

        Bandit learners alone read what was played, and of the losses that one. ValueError if the
        shapes do not fit; UserError if ``step`` of a user's learner returns no strategies.
        """
        if not self.rows:
            self._check_started()
        round_losses = np.ascontiguousarray(losses, dtype=np.float64)
        lacks_actions = self.bandit and len(actions) != self.rows
        if round_losses.shape != self.strategy.shape or lacks_actions:
            raise ValueError(
                f"losses have shape {round_losses.shape}; the rows are {self.strategy.shape}"
            )
        self.rounds += 1
        if self._step_is_ours:
            self.strategy = self.step(round_losses, actions)
            return
        # What a user's own ``step`` is given is read-only, and its answer is checked.
        expected = f"return mixed strategies of shape {self.strategy.shape}"
        answer = self.step(read_only(round_losses), read_only(actions))
        strategy = answer_as_numbers(self.step, answer, expected).astype(np.float64, copy=False)
        if strategy.shape != self.strategy.shape:
            raise UserError(f"{name_of(self.step)} returned {brief(answer)}; {expected}")
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
    """A learner that remembers a ``total`` (K, A): cumulative losses, estimates or regrets."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("total",)
    total: Array

    def begin(self) -> None:
        self.total = np.zeros((self.rows, self.actions))


class PairLearner(TotalLearner):
    """A learner that remembers a ``total`` (K, A, A) for every pair of actions."""

    measure: ClassVar[str | None] = "swap"

    def begin(self) -> None:
        self.total = np.zeros((self.rows, self.actions, self.actions))


class RatedLearner(RowLearner):
    """A learner with a rate: "anytime", falling like 1 / sqrt(t), "fixed", or a positive number.

    Attributes
    ----------
    rate : str or float
        What was asked for; "fixed" is a constant rate that is tuned to the horizon.
    constant_rate : float or None
        The rate of all rounds, once it has started; None where it falls.
    """

    constant_rate: float | None = None
    _anytime_scale: float = math.nan  # the first of ``rate_scales``, once it has started

    def __init__(self, *, rate: str | float = "anytime") -> None:
        if isinstance(rate, str) and rate in {"anytime", "fixed"}:
            self.rate: str | float = rate
            return
        is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if not is_number or not 0 < float(rate) < math.inf:
            raise UserError(f"rate = {brief(rate)}: write 'anytime', 'fixed' or a positive number")
        self.rate = float(rate)

    def rate_scales(self) -> tuple[float, float]:
        """Return the numbers that sqrt(t) divides (anytime) and that sqrt(T) divides (fixed)."""
        raise NotImplementedError

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        super().start(rows, actions, horizon=horizon)
        self.constant_rate = self._find_constant_rate()
        if self.constant_rate is None:
            self._anytime_scale, _ = self.rate_scales()

    def _find_constant_rate(self) -> float | None:
        """Return the rate of all rounds, None where it falls; UserError without a horizon."""
        if isinstance(self.rate, float):
            return self.rate
        if self.rate == "anytime":
            return None
        if self.horizon is None:
            raise UserError("rate = 'fixed': it needs the horizon; give one or use 'anytime'")
        _, fixed_scale = self.rate_scales()
        return fixed_scale / math.sqrt(self.horizon)

    def rate_at(self, round_number: int) -> float:
        """Return the rate of a round, counted from 1."""
        if self.constant_rate is not None:
            return self.constant_rate
        return self._anytime_scale / math.sqrt(round_number)
