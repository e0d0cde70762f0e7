r"""What a market is: it takes a round's decisions and returns the outcome that it is charged at.

    y = clear(fundamental, decisions),        y in [0, 1]^d

The fundamental is what the adversary's distribution gave. A loss stays a function l(a, y),
with y whatever the market says: prices, travel times, attendance. So forecaster, ledger and
measures know nothing of markets. What an action means to a market is read off the loss itself: by
Hotelling's lemma the quantity that an action sells of good g is minus the slope of its loss in the
price y_g,

    slope_ag = unit_scale (l(a, y with y_g = 1) - l(a, y with y_g = 0)),  the others at 1/2,

which is exact for linear losses (Hotelling 1932); a market may also look at the actions themselves.

    answers_at_once   y depends on actions of its own round, hence on the draw: nothing is promised
                      but to agents who draw for themselves (``market.game.caveats``)
    otherwise         y is settled before the draw: the theorem stands, regret holds outcomes fixed
    has_personal_losses
                      what an agent loses is no function of y alone: ledger, learners and logs work
                      on ``losses``. Followers hear the forecast of y all the same, and respond by
                      ``expected_losses``, or by their utility where the market says that it is
                      what they may expect (``utility_is_expected``); otherwise they are refused
    has_profile_losses
                      the market says what everybody would lose at every profile of actions
                      (``profile_losses``): the stage game, whose solutions ``market.solutions``
                      computes
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Integers, Mask, is_within_unit_cube
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.own_code import answer_as_numbers, is_ours, name_of, read_only
from regretless.market.core.validation import without_rounding
from regretless.market.game.accounts import Accounts
from regretless.market.game.adversary_view import sight_of
from regretless.market.game.profiles import ProfileTable
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.game.seats import TakenActions, actions_of_agents, taken_actions
from regretless.market.losses import Loss
from regretless.market.records import Decision, OutcomeDistribution

NO_GUARANTEE_AT_ONCE = "no guarantee, since the outcome answers actions of the same round"
NO_GUARANTEE_PERSONAL = (
    "no guarantee, since the losses of each agent depend on more than the outcome"
)
# What adversaries see who plan as if the outcome that they choose were to happen.
PLANNING_SIGHTS = frozenset({"play", "losses", "draw"})
Decisions = Sequence[Decision | None]  # one per cohort, None where nobody of it is there


def columns_before_clearing(**sizes: int) -> dict[str, Array]:
    """Return what a market's ``last`` is before the first clearing: NaN, so many in each column.

    Examples
    --------
    >>> columns_before_clearing(price=2, revenue=1)
    {'price': array([nan, nan]), 'revenue': array([nan])}
    """
    return {name: np.full(size, np.nan) for name, size in sizes.items()}


class Market(Checkpointable, ABC):
    """What every market offers; a subclass writes ``clear``.

    It clears the actions of ``cohorts``, whose losses are over d ``goods``, the coordinates of an
    outcome; ``rng`` is its own stream. UserError if the losses are over different goods, or agents
    who have losses of their own share a row of the ledger.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng", "accounts")

    # Whether the class comes with this project: it is handed decisions as they are, and what it
    # answers needs no copy.
    is_built_in: ClassVar[bool] = False
    answers_at_once: bool = True  # whether an outcome depends on the actions of its own round
    # Whether agents with multiplicity may take part: what agents do is read by ``chosen``,
    # ``agents_here`` and ``taken`` alone, not agent by agent.
    supports_multiplicity: ClassVar[bool] = False
    column_labels: ClassVar[Mapping[str, str]] = {}  # what the names of ``last`` mean in words
    by_cohort: ClassVar[bool] = False  # whether the numbers of ``last`` are the cohorts', in order
    # Whether what an agent loses is no function of the outcome alone: the class writes ``losses``.
    has_personal_losses: ClassVar[bool] = False
    # Losses (K, A) of each cohort that takes part at the outcome of the last clearing, for a market
    # that evaluates them to clear: they are charged as they are.
    losses_at_outcome: Sequence[Array | None] | None = None
    # Whether a cohort's utility at a forecast outcome is what its agents may expect to lose there,
    # although they are charged ``losses``: as where actions are orders at a forecast price.
    utility_is_expected: ClassVar[bool] = False
    # Whether agents want nothing but what the market charges them: scenario files need no utility
    # for them (it is ``own_utility``), and no adversary.
    has_own_payoffs: ClassVar[bool] = False
    own_utility: ClassVar[str] = "payoffs"
    # What happens at every profile, where that alone decides losses and outcome in every round.
    profile_table: ProfileTable | None = None
    # Whether it matters only how many agents take an action, not who, of those with equal losses.
    is_anonymous: ClassVar[bool] = False
    accounts: Accounts | None = None  # what agents own, for a market that keeps it
    # Whether the stage game is known: the class writes ``profile_losses``.
    has_profile_losses: ClassVar[bool] = False
    # What fundamentals are drawn from in every round, for ``profile_losses``; the game sets it.
    # None where they follow no fixed distribution, as when they depend on history.
    fundamentals: OutcomeDistribution | None = None

    def __init_subclass__(cls) -> None:
        """Note whose the class is, whether its losses are personal, and if it has a stage game."""
        super().__init_subclass__()
        cls.is_built_in = is_ours(cls)
        cls.has_personal_losses = cls.losses is not Market.losses
        cls.has_profile_losses = cls.profile_losses is not Market.profile_losses

    def __init__(self, cohorts: Sequence[Cohort], rng: np.random.Generator) -> None:
        goods = {cohort.loss.outcomes for cohort in cohorts}
        if len(goods) != 1:
            raise UserError(f"market: losses over {sorted(goods)} goods; give all the same number")
        self.cohorts = tuple(cohorts)
        self.rng = rng
        self.goods = goods.pop()
        # Columns of ``rounds``, of the last clearing. A market that knows which they are has them
        # before the first one, too (``columns_before_clearing``).
        self.last: dict[str, Array] = {}
        if self.has_personal_losses:
            self._check_rows()

    def _check_rows(self) -> None:
        """Raise UserError unless every agent has a row of its cohort's ledger for itself."""
        for cohort in self.cohorts:
            has_own_rows = np.array_equal(cohort.row_of, np.arange(cohort.ledger.shape[0]))
            if not has_own_rows or cohort.multiplicity is not None:
                fault = f"agents of cohort.{cohort.name} share a row, and their losses are personal"
                hint = "register the class itself, or build(apart=True) with multiplicity = false"
                raise UserError(f"market {type(self).__name__}: {fault}; {hint}")

    @abstractmethod
    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Return the outcome (d,) in [0, 1] of a fundamental (d,); who is absent has action -1."""

    def next_outcomes(self, fundamentals: Array) -> Array | None:
        """Return the outcomes (m, d) of fundamentals (m, d), were one drawn in the next round.

        None if the actions of that round move its outcome. The market is left as it was.
        """
        if self.answers_at_once:
            return None
        state = self.state()
        columns_of_last_round = self.last  # shown in tables, and no part of the state
        nobody_acts = [None] * len(self.cohorts)  # as this round's actions move nothing
        outcomes = []
        for fundamental in fundamentals:
            outcomes.append(self.clear(fundamental, nobody_acts))
            self.restore(state)
        self.last = columns_of_last_round
        return np.array(outcomes)

    def count_profiles(self, profiles: Integers) -> None:
        """Take note of rounds that were played elsewhere, by the numbers of their profiles (T,).

        It stands for ``clear`` in a market with a ``profile_table``.
        """

    def affordable(self, cohort_index: int) -> Mask | None:
        """Return which actions each agent can pay for now (N, A); None for all."""
        return None

    def losses(self, decisions: Decisions) -> Sequence[Array | None]:
        """Return each agent's own loss of each action, where it is no function of the outcome.

        It is asked for in every round, after ``clear``. Each agent of every cohort has a row of the
        ledger for itself.

        Returns
        -------
        sequence of array (N, A) or None
            One per cohort, in [0, 1]. Entry (i, b) is the loss of agent i had it played b and all
            others what they played; in the units of its utility it is ``unit_offset`` plus
            ``unit_scale`` times that. Rows of agents who are absent are not read. None for the
            losses of the cohort's utility at the outcome, as by default.
        """
        return (None,) * len(self.cohorts)

    @classmethod
    def loss_range(cls, **parameters: Any) -> tuple[float, float]:  # noqa: ARG003 - most need none
        """Return the least and the greatest loss of a market that ``has_own_payoffs``.

        They are in units of its own: minus the greatest and the least payoff that its parameters
        allow. ``losses`` maps them onto [0, 1] by the ``unit_offset`` and ``unit_scale`` of each
        cohort's loss, as ``losses_of`` does. By default losses are in [0, 1].
        """
        return 0.0, 1.0

    def profile_losses(self, profiles: Indices) -> Array:
        """Return what everybody loses in the stage game at profiles of actions.

        A market may write it. Losses are expected over the fundamental outcome
        (``expected_fundamentals``) and over all that the market draws itself, with everybody
        there and the market at rest: what its memory would settle to, were the profile played for
        ever. Nothing is modified.

        Parameters
        ----------
        profiles : int array (P, N)
            An action of each of the N agents, numbered through all cohorts, an agent with
            multiplicity as often as it counts (``agent_columns``). Small whole numbers from 0 on.

        Returns
        -------
        array (P, N)
            The loss of each agent at each profile, normalised as in ``losses``: in the units of its
            utility it is ``unit_offset`` plus ``unit_scale`` times that. It may leave [0, 1] where
            the market charges more than the utility says.

        Raises
        ------
        UserError
            If the market has none, or its losses depend on a fundamental that follows no fixed
            distribution.
        """
        name = type(self).__name__
        raise UserError(f"market {name} does not say what profiles lose; write its profile_losses")

    # Whether outcomes of shares of agents are known (``losses_of_flows``).
    has_flows: ClassVar[bool] = False

    def outcomes_of_flows(self, strategies: Sequence[Array]) -> OutcomeDistribution:
        """Return the distribution of outcomes of a continuum of agents, at rest.

        ``strategies`` are as in ``losses_of_flows``. UserError if the market has none.
        """
        raise UserError(f"market {type(self).__name__} has no outcomes of shares of agents")

    def variance_of_draws(self, strategies: Sequence[Array]) -> Array | None:
        """Return by how much agents' own draws make each outcome vary (d,), at rest.

        A continuum has no such variance. ``strategies`` are as in ``losses_of_flows``; None if the
        market does not say.
        """
        return None

    def losses_of_flows(self, strategies: Sequence[Array]) -> Sequence[Array]:
        """Return what actions lose at the outcome of a continuum of agents, at rest.

        Parameters
        ----------
        strategies : sequence of array (K, A)
            By cohort: how the agents of each row are shared out over actions.

        Returns
        -------
        sequence of array (K, A)
            Each action's loss, normalised, where no agent moves the outcome. UserError if the
            market has none.
        """
        raise UserError(f"market {type(self).__name__} has no outcomes of shares of agents")

    def imputed_losses(self, cohort_index: int) -> Array | None:
        """Return the part of a cohort's losses (K, A) by which agents count their own impact.

        It is charged while the outcome of a round is held fixed, and stands for what the outcome
        does where it moves: ``profile_losses`` leave it out. None for nothing, as by default.
        """
        return None

    def expected_fundamentals(self) -> OutcomeDistribution:
        """Return what the fundamental outcome is drawn from in every round.

        UserError if it follows no fixed distribution.
        """
        if self.fundamentals is None:
            reason = "outcomes of the adversary follow no fixed distribution"
            hint = 'use [data], or [adversary] kind = "iid", or a market without noise'
            raise UserError(f"market {type(self).__name__}: {reason}; {hint}")
        return self.fundamentals

    def agent_columns(self) -> list[tuple[slice, Indices]]:
        """Return for each cohort its agents' columns of a profile, and their rows of the ledger.

        Agents with multiplicity have as many columns as they count; rows are (n,).
        """
        columns = []
        first = 0
        for cohort in self.cohorts:
            rows = cohort.row_of
            if cohort.multiplicity is not None:
                rows = np.repeat(rows, cohort.multiplicity)
            columns.append((slice(first, first + len(rows)), rows))
            first += len(rows)
        return columns

    @property
    def can_be_played_ahead(self) -> bool:
        """Whether a forecaster can compute the next rounds.

        It knows neither accounts nor losses of each agent's own: there welfare is what agents
        expect at a prediction.
        """
        return self.accounts is None and not self.has_personal_losses

    def expected_losses(self, cohort_index: int, outcome: Array) -> Array | None:
        """Return what agents of a cohort may expect to lose in the next round, if it is known.

        Whoever responds to the forecast in a market with ``losses`` responds to these. They are
        asked for before agents decide, once for each prediction; nothing is modified.

        Parameters
        ----------
        cohort_index : int
            Of the cohort, in ``cohorts``.
        outcome : array (d,)
            The outcome that is forecast.

        Returns
        -------
        array (N, A) or None
            Each agent's loss of each action, normalised as in ``losses``. None where nothing is
            known of it before the round, as by default; then no agents may respond to a forecast.
        """
        return None

    def price_impact(self, cohort_index: int) -> Array | None:
        """Return the most by which an agent of each row can move each y_g (K, d), if known."""
        return None

    def extra_tables(self) -> Mapping[str, Mapping[str, NDArray[np.generic]]]:
        """Return rows of the last clearing for ``trades``, ``quotes`` and ``sales``, by column.

        Before the first clearing a table has no rows, or is left out where its columns are unknown.
        """
        return {}

    def book(self) -> object:
        """Return what agents see of open orders before a round, read-only; None without a book."""
        return None

    def described(self) -> dict[str, object]:
        """Describe the market and what happened in it so far, for a manifest."""
        return {}

    def summary(self) -> str:
        """Sum it up in a line, for the end of a run; empty for nothing."""
        return ""

    def chosen(self, tables: Sequence[Array], decisions: Decisions) -> Array:
        """Return what each agent's action stands for in its cohort's table (K, A, ...): (N, ...).

        0 for who is absent; of a counted cohort, what all of a row come to who played the same.
        """
        chosen_by_cohort = []
        for cohort, table, decision in zip(self.cohorts, tables, decisions, strict=True):
            if decision is None:
                chosen_by_cohort.append(np.zeros((len(cohort.row_of), *table.shape[2:])))
            elif cohort.multiplicity is not None:
                taken = taken_actions(cohort, decision.actions, decision.counts)
                chosen_by_cohort.append(taken.values_times_multiplicity(table))
            else:
                chosen_by_cohort.append(table[cohort.row_of, decision.actions])
                chosen_by_cohort[-1][decision.actions < 0] = 0.0
        return np.concatenate(chosen_by_cohort)

    def actions_of_agents(self, decisions: Decisions) -> Indices:
        """Return the action of each agent of all cohorts (N,); -1 for who is absent."""
        return actions_of_agents(self.cohorts, decisions)

    def losses_of(self, gains: Array) -> list[Array]:
        """Return each cohort's losses (N, A), normalised, of what all agents' actions gain."""
        tables = []
        first_agent = 0
        for cohort in self.cohorts:
            end_agent = first_agent + len(cohort.row_of)
            loss = cohort.loss
            cohort_gains = gains[first_agent:end_agent, : loss.actions]
            agent_losses = -cohort_gains - loss.unit_offset[:, None]
            tables.append(agent_losses / loss.unit_scale[:, None])
            first_agent = end_agent
        return tables

    @property
    def agents(self) -> int:
        """How many agents there are, here or not."""
        return sum(cohort.population for cohort in self.cohorts)

    def agents_here(self, decisions: Decisions) -> float:
        """Count the agents who take part in a round."""
        return sum(taken.agents for taken in self.taken(decisions))

    def taken(self, decisions: Decisions) -> Iterator[TakenActions]:
        """Yield who took which action, of every cohort of which somebody is here."""
        for cohort, decision in zip(self.cohorts, decisions, strict=True):
            if decision is not None:
                yield taken_actions(cohort, decision.actions, decision.counts)


def check_key(key: str, value: object, is_valid: object, expected: str) -> None:
    """Raise UserError that names a parameter of a market, unless it is fine."""
    if not is_valid:
        raise UserError(f"market.{key} = {value}: give {expected}")


def check_word(key: str, word: str, accepted: Sequence[str]) -> None:
    """Raise UserError unless a parameter of a market is one of the words that it takes."""
    if word not in accepted:
        raise UserError(f"market.{key} '{word}'; {closest(str(word), filter(None, accepted))}")


def slopes(loss: Loss) -> Array:
    """Return how much K losses, in own units, rise as y_g goes from 0 to 1: array (K, A, d)."""
    low, high = at_ends(loss)
    return np.asarray((high - low) * loss.unit_scale[..., None, None])


def at_ends(loss: Loss) -> tuple[Array, Array]:
    """Return the losses (..., A, d) with good g at 0 and those with it at 1, the others at 1/2."""
    goods = loss.outcomes
    extreme_outcomes = np.full((2, goods, goods), 0.5)
    extreme_outcomes[0, np.arange(goods), np.arange(goods)] = 0.0
    extreme_outcomes[1, np.arange(goods), np.arange(goods)] = 1.0
    values = loss.losses(extreme_outcomes.reshape(2 * goods, goods))
    return np.moveaxis(values[:goods], 0, -1), np.moveaxis(values[goods:], 0, -1)


def checked_outcome(market: Market, fundamental: Array, answer: object) -> Array:
    """Return what a market that was asked to clear answered; UserError if it is no outcome (d,)."""
    outcome: Any = answer  # of a market of this project an array, into which it writes no more
    if not market.is_built_in:
        expected = _expected_outcome(fundamental)
        outcome = answer_as_numbers(market.clear, answer, expected).astype(np.float64)
    is_within = is_within_unit_cube(outcome)
    if not is_within:
        outcome = without_rounding(outcome)
        is_within = is_within_unit_cube(outcome)
    if not is_within or outcome.shape != fundamental.shape:
        expected = _expected_outcome(fundamental)
        raise UserError(f"{name_of(market.clear)} returned {brief(outcome)}; {expected}")
    return read_only(outcome)


def _expected_outcome(fundamental: Array) -> str:
    """Say what a market is to return at a fundamental (d,)."""
    numbers = "one number" if len(fundamental) == 1 else f"{len(fundamental)} numbers"
    return f"return {numbers} in [0, 1], as many as [adversary] or [data] has outcomes"


def decisions_readonly_unless_ours(
    market: Market, method: object, decisions: Decisions
) -> Decisions:
    """Return what a market's method is handed: the decisions if it is ours, else read-only ones."""
    if market.is_built_in or is_ours(method):
        return decisions
    protected = list[Decision | None]()
    for decision in decisions:
        if decision is None:
            protected.append(None)
            continue
        arrays = {
            name: read_only(value)
            for name, value in vars(decision.changed()).items()
            if isinstance(value, np.ndarray)
        }
        protected.append(decision.changed(**arrays))
    return protected


def personal_losses(market: Market, decisions: Decisions) -> Sequence[Array | None]:
    """Ask a market that has cleared for each cohort's losses (N, A); None for those at the outcome.

    UserError unless they are numbers in [0, 1] for all who are here; it is 0 for all others.
    """
    if not market.has_personal_losses:
        return (None,) * len(decisions)
    answer = market.losses(decisions_readonly_unless_ours(market, market.losses, decisions))
    n_cohorts = len(market.cohorts)
    if not isinstance(answer, (list, tuple)) or len(answer) != n_cohorts:
        expected = f"return a list with an array, or None, for each of {n_cohorts} cohorts"
        raise UserError(f"{name_of(market.losses)} returned {brief(answer)}; {expected}")
    tables: list[Array | None] = []
    for cohort, decision, cohort_answer in zip(market.cohorts, decisions, answer, strict=True):
        if decision is None or cohort_answer is None:
            tables.append(None)
        else:
            tables.append(_checked_losses(market, cohort, decision, cohort_answer))
    return tuple(tables)


def _checked_losses(market: Market, cohort: Cohort, decision: Decision, answer: object) -> Array:
    """Return a cohort's losses (N, A) as an array of its own, 0 for agents who are absent."""
    losses: Any = answer  # of a market of this project an array that nobody else holds
    if not market.is_built_in:
        numbers = answer_as_numbers(market.losses, answer, _expected_losses(cohort))
        losses = np.array(numbers, dtype=np.float64, order="C")
    if losses.shape != cohort.ledger.shape:
        what = f"{name_of(market.losses)} returned an array {losses.shape}"
        raise UserError(f"{what}; {_expected_losses(cohort)}")
    if decision.present is not None:
        losses[~decision.present] = 0.0
    if not is_within_unit_cube(losses):
        losses = without_rounding(losses)
        is_valid = (losses >= 0) & (losses <= 1)
        if not is_valid.all():
            first_invalid = losses[~is_valid][0]
            what = f"{name_of(market.losses)} returned {first_invalid}; {_expected_losses(cohort)}"
            raise UserError(f"{what}; {_how_to_normalise(market)}")
    return np.asarray(losses)


def _expected_losses(cohort: Cohort) -> str:
    """Say what a market's ``losses`` are to return for a cohort."""
    shape = tuple(cohort.ledger.shape)
    return f"for cohort.{cohort.name} return an array {shape} of numbers in [0, 1]"


def _how_to_normalise(market: Market) -> str:
    """Say how losses in units of a market's own get into [0, 1]."""
    cure = "of losses in other units, return self.losses_of(-losses)"
    if market.has_own_payoffs:
        return f"{cure}, by the least and the greatest that loss_range declares"
    return f"{cure}, by the range of the cohort's utility"


def expected_in_market(market: Market, cohort_index: int, outcome: Array) -> Array:
    """Ask a market what agents of a cohort expect to lose at a forecast outcome: (N, A).

    UserError unless these are finite numbers.
    """
    cohort = market.cohorts[cohort_index]
    shape = cohort.ledger.shape
    expected = f"for cohort.{cohort.name} return an array {shape} of numbers"
    answer = market.expected_losses(cohort_index, outcome)
    table = answer_as_numbers(market.expected_losses, answer, expected).astype(np.float64)
    if table.shape != shape or not np.isfinite(table).all():
        raise UserError(f"{name_of(market.expected_losses)} returned {brief(answer)}; {expected}")
    return table


def tell_followers(market: Market | None, cohorts: Sequence[Cohort]) -> None:
    """Let cohorts that respond to predictions know what they may expect to lose in a market.

    They are those that respond to the forecast, and learners whom models advise.

    UserError, before anything is changed, if they have losses of their own there of which nothing
    is known before the round.
    """
    followers = [index for index, cohort in enumerate(cohorts) if cohort.expects_losses]
    if market is None or not market.has_personal_losses or market.utility_is_expected:
        for cohort_index in followers:
            cohorts[cohort_index].market_losses = None
        return
    if followers and type(market).expected_losses is Market.expected_losses:
        follower = cohorts[followers[0]]
        subject = f"market {type(market).__name__}: agents of cohort.{follower.name}"
        what = "the advice of models" if follower.unguided else "the forecast"
        fault = f"cannot respond to {what}, since their losses depend on more than the outcome"
        hint = "choose a learner as response, or write the market's expected_losses"
        if follower.unguided:
            hint = 'give advice = ["actions"], or write the market\'s expected_losses'
        raise UserError(f"{subject} {fault}; {hint}")
    for cohort_index in followers:
        cohorts[cohort_index].market_losses = partial(expected_in_market, market, cohort_index)


def tell_fundamentals(market: Market, adversary: Adversary) -> None:
    """Let a market with a stage game know what its fundamentals are drawn from."""
    if market.has_profile_losses:
        market.fundamentals = adversary.fixed_distribution()


def check_leader(adversary: Adversary, market: Market) -> None:
    """Raise UserError for an adversary that plans as if the outcome it chooses were to happen.

    One that ``minds_market`` may plan where the market is settled before the round.
    """
    planning_sights = sorted(sight_of(adversary) & PLANNING_SIGHTS)
    minds = adversary.minds_market and not market.answers_at_once and not market.has_personal_losses
    if planning_sights and not minds:
        affected = "losses" if market.has_personal_losses else "outcomes"
        raise UserError(
            f"market: the adversary sees {', '.join(planning_sights)} and plans with {affected} "
            "that the market would move; choose plan, cma or exp3, where feedback is lagged "
            "myopic, or drop [market]"
        )
