r"""Markets that answer what all agents do together: a load settles, and outcomes are its function.

Prices, roads, attendance, Cournot firms and the information market subclass ``Settling``: they say
what a load does to an outcome (``answer``), and share how actions are added up and how the level
follows. What is added up over agents is added exactly, so that the outcome is the same to the last
bit however the agents are shared out among workers.

Mathematics
-----------
    load(t)      what the round's actions come to (quantities, flows, numbers of agents), an array
    level(t+1) = (1 - adjustment) level(t) + adjustment load(t),        level(0) = start
    y(t)       = answer(fundamental(t), level)

    feedback     level       known before the round     guarantee
    lagged       level(t)    yes                        the theorem's: regret holds outcomes fixed
    same-round   level(t+1)  no: it answers the draw    none, unless agents draw for themselves

In the lagged market moving the drawn outcome is the same as moving the distribution that was
committed to. In the same-round market the outcome depends on actions of the round, hence on the
forecast's draw. These are the aggregative games (Selten 1970) with a smoothed aggregate (Nerlove
1958).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions, Market, check_key, check_word
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import taken_actions
from regretless.market.numerics import exact_sum
from regretless.market.records import OutcomeDistribution

FEEDBACKS = ("lagged", "same-round")
MAX_LOSSES_AT_ONCE = 2_000_000  # numbers in memory, of several profiles
SLOPE_STEP = 1e-4  # of a level, to either side, by which slopes of outcomes are measured
CLIPPING_TOLERANCE = 1e-12  # an outcome beyond [0, 1] by less was not clipped


@compiled(nogil=True)
def add_observation(values: Array, count: int, mean: Array, squares: Array) -> None:
    """Add an observation x to a running mean and sum of squared deviations (compiled).

    m' = m + (x - m) / count,    s' = s + (x - m) (x - m').

    Parameters
    ----------
    values : array (d,)
        x.
    count : int
        How many observations there are with this one.
    mean, squares : array (d,)
        m and s, which become m' and s' in place.
    """
    for i in range(len(mean)):
        from_old_mean = values[i] - mean[i]
        mean[i] += from_old_mean / count
        squares[i] += from_old_mean * (values[i] - mean[i])


@compiled(nogil=True)
def cut_and_add(outcome: Array, count: int, mean: Array, squares: Array) -> bool:
    """Cut an outcome to [0, 1], and add it to a running mean (compiled).

    Parameters
    ----------
    outcome : array (d,)
        Becomes min(max(outcome, 0), 1) in place, with one zero, not two; NaN stays NaN.
    count, mean, squares
        As in ``add_observation``.

    Returns
    -------
    bool
        Whether cutting changed a coordinate by more than ``CLIPPING_TOLERANCE``.
    """
    was_cut = False
    for i in range(len(outcome)):
        uncut = outcome[i]
        outcome[i] = np.minimum(np.maximum(uncut, 0.0), 1.0) + 0.0
        was_cut |= abs(uncut - outcome[i]) > CLIPPING_TOLERANCE
    add_observation(outcome, count, mean, squares)
    return was_cut


@compiled(nogil=True, inline="always")
def follow(
    level: Array,
    load: Array,
    adjustment: float,
    answers_at_once: bool,  # noqa: FBT001
    new_level: Array,
) -> Array:
    """Let the level follow a load; return the level that the outcome answers (compiled).

    level(t+1) = (1 - adjustment) level(t) + adjustment load(t).

    It is written into the kernel that calls it: an array that a call returns takes .1 us.

    Parameters
    ----------
    level, load : array (c,)
        level(t) and load(t).
    adjustment : float
        Weight of the load.
    answers_at_once : bool
        Whether the outcome answers level(t+1), or level(t).
    new_level : array (c,)
        Written: level(t+1).

    Returns
    -------
    array (c,)
        ``new_level`` or ``level`` itself.
    """
    for i in range(len(level)):
        new_level[i] = (1 - adjustment) * level[i] + adjustment * load[i]
    return new_level if answers_at_once else level


@compiled(nogil=True)
def _add_counts(actions: Indices, counts: Array) -> None:
    """Add to ``counts`` (A,) how many of the ``actions`` (N,), -1 for an absent agent, are each.

    IndexError if an action is none of the A.
    """
    for action in actions:
        if action >= len(counts):
            raise IndexError("an agent's action is none of its cohort's")
        if action >= 0:
            counts[action] += 1.0


@compiled(nogil=True)
def _add_loads(row_of: Indices, actions: Indices, loads: Array, sums: Array) -> None:
    """Add up agents who are there, and the loads of their actions (compiled).

    Each agent i with an action a_i >= 0 adds (1, loads[row_of[i], a_i]) to the sums.

    Parameters
    ----------
    row_of, actions : int array (N,)
        The row of each agent, and its action, -1 where it is absent.
    loads : array (K, A, c)
        What each row's actions add to the load.
    sums : array (2, 1 + c)
        Agents, then their loads, each as the two numbers of ``market.numerics.exact_sum``; added to
        in place.

    Raises
    ------
    IndexError
        If there is not one action for each agent, or one is none of the A.
    """
    if len(actions) != len(row_of):
        raise IndexError("a cohort did not say one action for each of its agents")
    for agent in range(len(actions)):
        action = actions[agent]
        if action >= loads.shape[1]:
            raise IndexError("an agent's action is none of its cohort's")
        if action < 0:
            continue
        sums[0, 0] += 1.0
        for i in range(loads.shape[2]):
            coarse, fine = exact_sum.split(loads[row_of[agent], action, i])
            sums[0, 1 + i] += coarse
            sums[1, 1 + i] += fine


def _checked_loads(loads_of_actions: Sequence[Array], cohorts: Sequence[Cohort]) -> list[Array]:
    """Return the loads of each cohort's actions (K, A, c); UserError if they have another shape.

    c is the same for all cohorts. Kernels, which add loads up, check no index.
    """
    loads_of_cohorts = [np.asarray(loads, dtype=np.float64) for loads in loads_of_actions]
    if not loads_of_cohorts:
        return []
    if len(loads_of_cohorts) != len(cohorts):
        fault = f"{len(loads_of_cohorts)} arrays for {len(cohorts)} cohorts"
        raise UserError(f"loads_of_actions: {fault}; give one for each")
    n_loads = loads_of_cohorts[0].shape[-1:] or (1,)
    for cohort, loads in zip(cohorts, loads_of_cohorts, strict=True):
        expected_shape = (len(cohort.loss), cohort.loss.actions, *n_loads)
        if loads.shape != expected_shape:
            fault = f"an array of shape {loads.shape} for cohort '{cohort.name}'"
            raise UserError(f"loads_of_actions: {fault}; give one of shape {expected_shape}")
    return loads_of_cohorts


class Moments(Checkpointable):
    """Running mean and standard deviation of arrays, in bounded memory (Welford 1962)."""

    REMEMBERED = ("count", "mean", "squares")

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)  # sum of squared deviations from the mean

    def add(self, values: Array) -> None:
        """Add one observation (size,); UserError if it has another shape."""
        observation = self._checked(values)
        self.count += 1
        add_observation(observation, self.count, self.mean, self.squares)

    def add_cut(self, moved: Array) -> tuple[Array, bool]:
        """Add an outcome (size,) cut to [0, 1]; return it, and whether cutting changed it.

        UserError if it has another shape.
        """
        outcome = self._checked(moved).copy()
        self.count += 1
        was_cut = cut_and_add(outcome, self.count, self.mean, self.squares)
        return outcome, was_cut

    def _checked(self, values: Array) -> Array:
        """Return values as an array (size,), since kernels check no index; UserError if not so."""
        observation = np.asarray(values, dtype=np.float64)
        if observation.shape != self.mean.shape:
            size = len(self.mean)
            numbers = "one number" if size == 1 else f"{size} numbers"
            raise UserError(f"an array of shape {observation.shape}; give an array of {numbers}")
        return observation

    def deviation(self) -> Array:
        """Return the standard deviation so far (size,)."""
        return np.sqrt(self.squares / max(self.count, 1))


class Settling(Market):
    """A market with a level that follows the load: it has ``aggregate`` and ``answer``.

    UserError if a parameter leaves its range or the cohorts' losses are over different goods.

    Parameters
    ----------
    start : array
        The level before the first round.
    feedback : "lagged" or "same-round"
        Whether earlier rounds' load moves an outcome, or this round's too.
    adjustment : float
        In (0, 1]: weight of the newest load in the level; 1 for no memory.
    loads_of_actions : sequence of array (K, A, c)
        What each cohort's actions add to the load; left out where the load counts who takes each
        action.

    Attributes
    ----------
    level : array
        What the load has settled to.
    rounds, clipped : int
        Rounds so far, and those of them in which [0, 1] cut some outcome.
    outcomes : Moments
        Of the outcomes so far.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("level", "rounds", "clipped", "outcomes")

    is_anonymous = True
    level_is_mean: ClassVar[bool] = True  # of loads over agents, not their sum
    # Whether a class's own ``answer`` is one kernel, which calls no ``rest``, ``settle`` or
    # ``within_cube``.
    answers_by_kernel: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Note that a class has a stage game only if it says what it rests at."""
        super().__init_subclass__()
        writes_profile_losses = cls.profile_losses is not Settling.profile_losses
        cls.has_flows = cls.rest is not Settling.rest
        cls._refuse_parts_of_kernel()
        cls.has_profile_losses = writes_profile_losses or cls.has_flows

    @classmethod
    def _refuse_parts_of_kernel(cls) -> None:
        """Raise UserError if the class writes a step of an ``answer`` that works by a kernel.

        The kernel has steps of its own, and would go on as if nothing had been written.
        """
        answering_class = next(base for base in cls.__mro__ if "answer" in vars(base))
        if not vars(answering_class).get("answers_by_kernel", False):
            return
        for name in ("rest", "settle", "within_cube"):
            if getattr(cls, name) is not getattr(answering_class, name):
                raise UserError(
                    f"market {cls.__name__} writes {name}, which "
                    f"{answering_class.__name__}.answer does not call; write answer, too"
                )

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        start: Array,
        feedback: str,
        adjustment: float,
        loads_of_actions: Sequence[Array] = (),
    ) -> None:
        check_word("feedback", feedback, FEEDBACKS)
        check_key("adjustment", adjustment, 0 < adjustment <= 1, "a number in (0, 1]")
        super().__init__(cohorts, rng)
        self.feedback = feedback
        self.adjustment = adjustment
        # Whether the outcome of a round depends on its actions, or on earlier rounds' alone.
        self.answers_at_once = feedback == "same-round"
        self.level = start  # what the load has settled to
        self.rounds = 0  # so far
        self.clipped = 0  # rounds in which [0, 1] cut an outcome
        self.outcomes = Moments(self.goods)  # their mean and deviation so far
        self.loads_of_actions = _checked_loads(loads_of_actions, cohorts)  # of each (K, A, c)
        self._shape_of_sums = (2, 1)
        if self.loads_of_actions:
            self._shape_of_sums = (2, 1 + self.loads_of_actions[0].shape[2])
        self._actions = cohorts[0].loss.actions  # how many each agent has, where loads are counts

    def aggregate(self, decisions: Decisions) -> Array:
        """Return what the actions of all agents come to.

        With ``loads_of_actions`` (2, 1 + c): how many agents are there, and the sum of their
        actions' loads, each as two numbers that add up to it (``market.numerics.exact_sum``).
        Without them (A,): how many take each action.
        """
        if not self.loads_of_actions:
            return self._count_actions(decisions)
        sums = np.zeros(self._shape_of_sums)
        for index, decision in enumerate(decisions):
            if decision is None:
                continue
            cohort = self.cohorts[index]
            loads = self.loads_of_actions[index]
            if cohort.multiplicity is None:
                _add_loads(cohort.row_of, decision.actions, loads, sums)
            else:
                takers = taken_actions(cohort, decision.actions, decision.counts)
                sums[0, 0] += takers.agents
                sums[:, 1:] += takers.total(loads)
        return sums

    def _count_actions(self, decisions: Decisions) -> Array:
        """Return how many agents take each action (A,)."""
        counts = np.zeros(self._actions)
        for index, decision in enumerate(decisions):
            if decision is None:
                continue
            cohort = self.cohorts[index]
            if cohort.multiplicity is None:
                _add_counts(decision.actions, counts)
            else:
                takers = taken_actions(cohort, decision.actions, decision.counts)
                counts += takers.per_action(self._actions)
        return counts

    @abstractmethod
    def answer(self, fundamental: Array, load: Array) -> Array:
        """Return the outcome (d,) for a fundamental (d,) and what ``aggregate`` returned."""

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        return self.answer(fundamental, self.aggregate(decisions))

    def part(self, cohorts: Sequence[Cohort], rows: Mapping[int, Indices]) -> Self:
        """Return a market of some rows of ``cohorts``, for ``aggregate`` alone.

        ``rows`` has the rows of each cohort, by its index here.
        """
        part = copy(self)
        part.cohorts = tuple(cohorts)
        part.fundamentals = None
        if self.loads_of_actions:
            part.loads_of_actions = []
            for cohort_index, part_rows in rows.items():
                part.loads_of_actions.append(self.loads_of_actions[cohort_index][part_rows])
        return part

    def rest(self, fundamental: Array, level: Array) -> Array:
        """Return the outcomes (..., d) of fundamentals and levels, not yet cut.

        One of them may be (d,) or (c,), and the other have leading axes.

        A subclass that writes it has ``profile_losses``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no outcomes at rest")

    def profile_losses(self, profiles: Indices) -> Array:
        losses = np.empty(profiles.shape)
        values_per_profile = sum(cohort.loss.offset.size for cohort in self.cohorts)
        step = max(MAX_LOSSES_AT_ONCE // values_per_profile, 1)
        for first in range(0, len(profiles), step):
            block = slice(first, first + step)
            losses[block] = self._losses_at_rest(profiles[block])
        return losses

    def _losses_at_rest(self, profiles: Indices) -> Array:
        """Return what agents lose at a few profiles (P, N), with the level at the load: (P, N)."""
        level = self.level_of_profiles(profiles)
        fundamentals = self.fundamentals_that_matter(level)
        is_linear = [cohort.loss.linear_weights is not None for cohort in self.cohorts]
        losses = np.zeros(profiles.shape)
        mean_outcomes = np.zeros((len(profiles), self.goods))
        for fundamental, weight in zip(fundamentals.points, fundamentals.weights, strict=True):
            outcomes = np.clip(self.rest(fundamental, level), 0.0, 1.0)
            mean_outcomes += weight * outcomes
            for cohort_index in np.flatnonzero(~np.array(is_linear)):
                columns, at_outcomes = self._losses_at(int(cohort_index), outcomes, profiles)
                losses[:, columns] += weight * at_outcomes
        for cohort_index in np.flatnonzero(is_linear):  # whose mean loss is that at the mean
            columns, at_mean = self._losses_at(int(cohort_index), mean_outcomes, profiles)
            losses[:, columns] = at_mean
        for index, (columns, rows) in enumerate(self.agent_columns()):
            imputed = self.imputed_losses(index)
            if imputed is not None:  # the outcome has moved: it is not charged a second time
                losses[:, columns] -= imputed[rows, profiles[:, columns]]
        return losses

    def _losses_at(
        self, cohort_index: int, outcomes: Array, profiles: Indices
    ) -> tuple[slice, Array]:
        """Return a cohort's columns, and what its n agents lose at outcomes (P, d): (P, n)."""
        columns, rows = self.agent_columns()[cohort_index]
        table = self.cohorts[cohort_index].loss.losses(outcomes)  # (P, K, A)
        all_profiles = np.arange(len(profiles))[:, np.newaxis]
        return columns, table[all_profiles, rows, profiles[:, columns]]

    def level_of_profiles(self, profiles: Indices) -> Array:
        """Return the level (P, c) at which the market rests, if everybody plays profiles (P, N)."""
        if not self.loads_of_actions:
            counts = [(profiles == action).sum(1) for action in range(1, self._actions)]
            level = np.stack(counts, axis=1).astype(np.float64)
        else:
            level = np.zeros((len(profiles), self.loads_of_actions[0].shape[2]))
            for loads, (columns, rows) in zip(
                self.loads_of_actions, self.agent_columns(), strict=True
            ):
                level += loads[rows, profiles[:, columns]].sum(1)
        return level / profiles.shape[1] if self.level_is_mean else level

    def losses_of_flows(self, strategies: Sequence[Array]) -> list[Array]:
        distribution = self.outcomes_of_flows(strategies)
        outcomes = distribution.points  # (m, d)
        mean_outcome = distribution.weights @ outcomes
        tables = []
        for cohort in self.cohorts:
            if cohort.loss.linear_weights is not None:
                tables.append(cohort.loss.losses(mean_outcome))
            else:
                losses = cohort.loss.losses(outcomes)  # (m, K, A)
                tables.append(np.tensordot(distribution.weights, losses, axes=1))
        return tables

    def outcomes_of_flows(self, strategies: Sequence[Array]) -> OutcomeDistribution:
        level = self._level_of_flows(strategies)
        fundamentals = self.fundamentals_that_matter(level[np.newaxis])
        outcomes = np.clip(self.rest(fundamentals.points, level), 0.0, 1.0)
        return OutcomeDistribution(outcomes, fundamentals.weights)

    def variance_of_draws(self, strategies: Sequence[Array]) -> Array:
        """Return by how much agents' own draws make each outcome vary (d,), at rest.

        Each agent draws its action by its row's shares (K, A), independently of the others and of
        earlier rounds. With C the covariance of the round's load, that of the level is
        adjustment / (2 - adjustment) C, as the level averages loads; outcomes answer it by their
        slope at rest. This is exact where an outcome is linear in the level and [0, 1] cuts none.
        """
        load_covariance = self._load_covariance(strategies)
        level_covariance = self.adjustment / (2 - self.adjustment) * load_covariance
        level = np.atleast_1d(self._level_of_flows(strategies))
        steps = SLOPE_STEP * np.eye(len(level))
        middle = np.full(self.goods, 0.5)
        change = self.rest(middle, level + steps) - self.rest(middle, level - steps)  # (c, d)
        slopes = change / (2 * SLOPE_STEP)
        return np.asarray(np.einsum("cd,ce,ed->d", slopes, level_covariance, slopes))

    def _load_covariance(self, strategies: Sequence[Array]) -> Array:
        """Return the covariance (c, c) of a round's load, if each agent draws for itself."""
        total: Array | float = 0.0
        for cohort_index, (cohort, shares) in enumerate(zip(self.cohorts, strategies, strict=True)):
            if self.loads_of_actions:
                loads = self.loads_of_actions[cohort_index]  # (K, A, c)
            else:
                one_action = np.eye(self._actions)[:, 1:]
                loads = np.broadcast_to(one_action, (len(shares), *one_action.shape))
            mean_loads = np.einsum("ka,kac->kc", shares, loads)
            from_mean = loads - mean_loads[:, np.newaxis]
            total = total + np.einsum(
                "k,ka,kac,kad->cd", cohort.counts, shares, from_mean, from_mean
            )
        return np.asarray(total) / self.agents**2 if self.level_is_mean else np.asarray(total)

    def _level_of_flows(self, strategies: Sequence[Array]) -> Array:
        """Return the level (c,) at which shares (K, A) of each cohort's rows rest."""
        total = 0.0
        for cohort_index, (cohort, shares) in enumerate(zip(self.cohorts, strategies, strict=True)):
            agents_by_action = cohort.counts[:, np.newaxis] * shares  # (K, A)
            if self.loads_of_actions:
                total = total + np.einsum(
                    "ka,kac->c", agents_by_action, self.loads_of_actions[cohort_index]
                )
            else:
                total = total + agents_by_action.sum(0)[1:]
        return np.asarray(total) / self.agents if self.level_is_mean else np.asarray(total)

    def fundamentals_that_matter(self, level: Array) -> OutcomeDistribution:
        """Return what fundamentals are drawn from; a point where none of them moves an outcome."""
        middle = np.full(self.goods, 0.5)
        corners = [self.rest(middle, level[:1])]
        corners += [self.rest(np.full(self.goods, end), level[:1]) for end in (0.0, 1.0)]
        if np.ptp(corners, axis=0).any():
            return self.expected_fundamentals()
        return OutcomeDistribution.pure(middle)

    @property
    def clipped_share(self) -> float:
        """Share of the rounds in which [0, 1] cut some outcome; 0 before the first."""
        return self.clipped / max(self.rounds, 1)

    def settle(self, load: Array) -> Array:
        """Let the level follow the load; return the level that moves this round's outcome."""
        level_before = self.level
        self.level = (1 - self.adjustment) * level_before + self.adjustment * load
        return self.level if self.answers_at_once else level_before

    def impact_of_one_agent(
        self, loads_of_actions: Array, *, outcome_per_load: Array | float
    ) -> Array:
        """Return by how much an agent of each row can move each coordinate of the outcome (K, d).

        ``loads_of_actions`` (K, A, d) are those of its actions, and a unit of load moves an outcome
        by ``outcome_per_load``, a number or (d,).
        """
        largest_change = np.ptp(loads_of_actions, axis=1)
        return np.asarray(self.adjustment * outcome_per_load * largest_change)

    def begin_outcome(self, fundamental: Array) -> Array:
        """Count a round whose outcome a kernel writes; return a copy of the fundamental (d,).

        The kernel turns the copy into the outcome, and adds it to ``outcomes``. UserError unless
        the fundamental is (d,), since kernels check no index.
        """
        if fundamental.shape != self.outcomes.mean.shape:
            fault = f"a fundamental of shape {fundamental.shape}"
            raise UserError(f"{fault}; give an array of {self.goods} numbers")
        self.rounds += 1
        self.outcomes.count += 1
        return np.array(fundamental)

    def within_cube(self, moved: Array) -> Array:
        """Return the outcome within [0, 1]; count the round, and whether the outcome had left."""
        outcome, was_cut = self.outcomes.add_cut(moved)
        self.clipped += was_cut
        self.rounds += 1
        return outcome

    def described(self) -> dict[str, Any]:
        return {
            "feedback": self.feedback,
            "adjustment": self.adjustment,
            "clipped_share": self.clipped_share,
            "mean": self.outcomes.mean.tolist(),
            "deviation": self.outcomes.deviation().tolist(),
        }
