"""Rounds of a market of built-in learners that are played as one compiled loop.

``compiled_rounds`` says whether a game can be played so, and returns the ``CompiledRounds`` to
which ``MarketModel`` hands the rounds between two logged ones. They are the rounds that the general
path would have played: the same actions, and sums that differ by rounding at most.

It is so where

- nobody hears a forecast, and the market's losses are those of its profiles in every round,
- all agents are learners of the project's whose rule has a kernel (``KERNELS``), each with a row of
  the ledger of its own, who stay for the whole run, and
- nothing else looks at single rounds: no policies, signals, budgets, deviations or comparisons, and
  no adversary that learns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.learners.base import RowLearner
from regretless.agents.learners.discrete_choice import DiscreteChoice
from regretless.agents.learners.external import EXP3, Hedge, RegretMatching, RegretMatchingPlus
from regretless.agents.learners.q_learning import QLearning
from regretless.agents.learners.repeated_game import (
    EXP3 as EXP3_RULE,
)
from regretless.agents.learners.repeated_game import (
    LOGIT,
    Q_LEARNING,
    REGRET_MATCHING,
    play_rounds,
)
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import over_rows
from regretless.market.core.randomness import generator_state, restore_generator
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.profiles import ProfileTable, profile_strides
from regretless.market.game.round import Game
from regretless.market.game.seats import PUBLIC
from regretless.market.regret.model_comparison import NOT_COMPARED

MAX_BLOCK_ROUNDS = 2**14  # of one call, so that progress shows and Ctrl-C is heard


@dataclass(frozen=True)
class Rule:
    """How a kernel plays a learner, for each of its rows."""

    number: int
    settings: Array  # (K, 4)


def _q_learning(learner: QLearning) -> Rule:
    settings = [learner.alpha, learner.gamma, learner.beta, learner.epsilon]
    return Rule(Q_LEARNING, np.tile(settings, (learner.rows, 1)))


def _hedge(learner: Hedge) -> Rule:
    rate, falls = _rate(learner)
    return Rule(LOGIT, np.tile([1.0, 1.0, rate, falls], (learner.rows, 1)))


def _discrete_choice(learner: DiscreteChoice) -> Rule:
    settings = np.tile([learner.discount, 1.0, learner.beta, 0.0], (learner.rows, 1))
    settings[:, 1] = learner.unit_scale
    return Rule(LOGIT, settings)


def _exp3(learner: EXP3) -> Rule:
    rate, falls = _rate(learner)
    settings = [rate, falls, float(learner.exploration), 0.0]
    return Rule(EXP3_RULE, np.tile(settings, (learner.rows, 1)))


def _regret_matching(learner: RegretMatching) -> Rule:
    settings = [float(learner.floored), 0.0, 0.0, 0.0]
    return Rule(REGRET_MATCHING, np.tile(settings, (learner.rows, 1)))


def _rate(learner: Hedge | EXP3) -> tuple[float, float]:
    """Return a rate, and 1 if it is divided by the square root of the round, else 0."""
    if learner.constant_rate is not None:
        return learner.constant_rate, 0.0
    anytime_scale, _ = learner.rate_scales()
    return anytime_scale, 1.0


# By the class of a learner itself, not of its relatives, who may learn otherwise.
KERNELS: dict[type[RowLearner], Callable[..., Rule]] = {
    QLearning: _q_learning,
    Hedge: _hedge,
    DiscreteChoice: _discrete_choice,
    EXP3: _exp3,
    RegretMatching: _regret_matching,
    RegretMatchingPlus: _regret_matching,
}


def compiled_rounds(game: Game) -> "CompiledRounds | None":
    """Return what plays rounds of a game as a compiled loop; None where it cannot be so."""
    table = table_of_all_rounds(game)
    if table is None:
        return None
    for cohort in game.cohorts:
        if type(cohort) is not LearnerCohort:  # not one that learns whom to follow
            return None
        has_own_rows = np.array_equal(cohort.row_of, np.arange(cohort.ledger.shape[0]))
        if not has_own_rows or type(cohort.learner) not in KERNELS:
            return None
    return CompiledRounds(game, table)


def table_of_all_rounds(game: Game) -> ProfileTable | None:
    """Return the table of a market in which profiles alone decide what a round brings, else None.

    Nobody hears a forecast, and nothing but learning and the sums of ledgers happens in a round.
    """
    market = game.market
    if market is None or market.profile_table is None or game.adversary.observes_play:
        return None
    if not all(block.forecaster.is_silent for block in game.blocks):
        return None
    for seat in game.seats:
        is_plain = (
            seat.attendance.throughout
            and seat.signal is PUBLIC
            and seat.budget is UNLIMITED
            and seat.comparison is NOT_COMPARED
            and not seat.deviations.agent_and_policy_of_row
            and not seat.cohort.policies
        )
        if not is_plain:
            return None
    return market.profile_table


class CompiledRounds:
    """Plays rounds of one game in blocks.

    Parameters
    ----------
    game : Game
        Whose learners, ledgers, market and history are changed by ``play``.
    table : ProfileTable
        What everybody loses at every profile, and the outcome there.
    """

    def __init__(self, game: Game, table: ProfileTable) -> None:
        self._game = game
        self._table = table
        self._cohorts: list[LearnerCohort] = [
            cohort for cohort in game.cohorts if isinstance(cohort, LearnerCohort)
        ]
        sizes = [cohort.ledger.shape[0] for cohort in self._cohorts]
        ends = np.cumsum(sizes)
        self._spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self._max_actions = int(table.action_counts.max())
        self._own_losses, self._own_strides = losses_by_own_action(table)

    can_play = True
    last_profiles: Integers  # of the last block (T,)

    def play(self, rounds: int, *, patience: int = 0) -> list[Indices]:
        """Play up to so many rounds, at most ``MAX_BLOCK_ROUNDS``, and return the last actions.

        With ``patience`` it ends when for so many rounds no greedy strategy has changed. The
        actions of the last round are returned by cohort (K,).
        """
        n_rounds = min(rounds, MAX_BLOCK_ROUNDS)
        states_before = [generator_state(cohort.rng) for cohort in self._cohorts]
        memory = _Memory(self._cohorts, self._spans, self._max_actions)
        profiles = np.empty((1, n_rounds), dtype=np.int64)
        played = np.zeros(1, dtype=np.int64)
        over_rows(
            play_rounds,
            1,
            self._own_losses,
            self._own_strides,
            self._table.strides,
            self._table.action_counts,
            memory.rules,
            memory.settings,
            memory.sees_all,
            memory.bases,
            memory.n_states,
            memory.first_entries,
            memory.first_states,
            self._game.history.rounds,
            patience,
            self._uniforms(n_rounds)[np.newaxis],
            memory.q,
            memory.greedy,
            memory.state_index,
            memory.changed_at,
            memory.total,
            memory.strategy,
            memory.count,
            memory.fixed,
            profiles,
            played,
        )
        n_played = int(played[0])
        memory.write_back(n_played)
        if n_played < n_rounds:  # the generators have gone too far
            for cohort, state in zip(self._cohorts, states_before, strict=True):
                restore_generator(cohort.rng, state)
            self._uniforms(n_played)
        self._record(profiles[0, :n_played])
        return self._actions_at(int(profiles[0, n_played - 1]))

    def forget_unfinished_round(self) -> None:
        """There is none: no code of a user's own is called in a round."""

    def _uniforms(self, rounds: int) -> Array:
        """Return the next random numbers of all agents (T, N), as in so many rounds."""
        uniforms = np.empty((rounds, len(self._table.action_counts)))
        for cohort, span in zip(self._cohorts, self._spans, strict=True):
            uniforms[:, span] = cohort.rng.random((rounds, span.stop - span.start))
        return uniforms

    def _record(self, profiles: Integers) -> None:
        """Add rounds to the game's history and to what the market counts."""
        self._game.history.extend(self._table.outcomes[profiles])
        market = self._game.market
        assert market is not None  # noqa: S101 - it has the table
        market.count_profiles(profiles)
        self.last_profiles = profiles

    def _actions_at(self, profile: int) -> list[Indices]:
        actions = profile // self._table.strides % self._table.action_counts
        return [actions[span] for span in self._spans]


def losses_by_own_action(table: ProfileTable) -> tuple[Array, Indices]:
    """Return each agent's losses (N, P) with its own action fastest, and strides (N, N) of all."""
    n_agents = len(table.action_counts)
    shape = tuple(table.action_counts)
    own_losses = np.empty((n_agents, len(table.losses)))
    own_strides = np.empty((n_agents, n_agents), dtype=np.intp)
    for agent in range(n_agents):
        others = [other for other in range(n_agents) if other != agent]
        order = [*others, agent]
        own_losses[agent] = table.losses[:, agent].reshape(shape).transpose(order).ravel()
        own_strides[agent, order] = profile_strides(table.action_counts[order])
    return own_losses, own_strides


class _Memory:
    """What the kernel changes: arrays of all cohorts together, with one market as their first axis.

    Where there is a single cohort they are views of its own arrays.
    """

    def __init__(
        self, cohorts: Sequence[LearnerCohort], spans: Sequence[slice], max_actions: int
    ) -> None:
        self._cohorts = cohorts
        self._spans = spans
        n_agents = spans[-1].stop
        self.rules = np.empty(n_agents, dtype=np.intp)
        self.settings = np.empty((n_agents, 4))
        self.sees_all = np.zeros(n_agents, dtype=np.intp)
        self.bases = np.ones(n_agents, dtype=np.int64)
        self.n_states = np.zeros(n_agents, dtype=np.int64)
        self.first_entries = np.zeros(n_agents, dtype=np.int64)
        self.first_states = np.zeros(n_agents, dtype=np.int64)
        self.state_index = np.zeros((1, n_agents), dtype=np.int64)
        self.changed_at = np.zeros((1, n_agents), dtype=np.int64)
        self.total = np.zeros((1, n_agents, max_actions))
        self.strategy = np.zeros((1, n_agents, max_actions))
        self.count = np.zeros((1, n_agents, max_actions))
        self.fixed = np.zeros((1, n_agents, max_actions, max_actions))
        values = [np.empty(0)]
        choices = [np.empty(0, dtype=np.int64)]
        n_values = 0
        n_choices = 0
        for cohort, span in zip(cohorts, spans, strict=True):
            learner = cohort.learner
            n_actions = learner.actions
            rule = KERNELS[type(learner)](learner)
            self.rules[span] = rule.number
            self.settings[span] = rule.settings
            self.strategy[0, span, :n_actions] = learner.strategy
            self.count[0, span, :n_actions] = cohort.ledger.count
            self.fixed[0, span, :n_actions, :n_actions] = cohort.ledger.fixed
            if isinstance(learner, QLearning):
                states = learner.q.shape[1]
                rows = np.arange(learner.rows)
                self.sees_all[span] = learner.watches_actions
                self.bases[span] = learner.base
                self.n_states[span] = states
                self.first_entries[span] = n_values + rows * states * n_actions
                self.first_states[span] = n_choices + rows * states
                self.state_index[0, span] = learner.state_index
                self.changed_at[0, span] = learner.changed_at
                values.append(learner.q.reshape(-1))
                choices.append(learner.greedy.reshape(-1))
                n_values += learner.q.size
                n_choices += learner.greedy.size
            else:
                self.total[0, span, :n_actions] = learner.total  # type: ignore[attr-defined]
        if len(values) == 2:
            self.q = values[1][np.newaxis]
            self.greedy = choices[1][np.newaxis]
        else:
            self.q = np.concatenate(values)[np.newaxis]
            self.greedy = np.concatenate(choices)[np.newaxis]

    def write_back(self, rounds: int) -> None:
        """Give the cohorts what they remember after so many more rounds."""
        for cohort, span in zip(self._cohorts, self._spans, strict=True):
            learner = cohort.learner
            ledger = cohort.ledger
            n_actions = learner.actions
            learner.rounds += rounds
            learner.strategy = self.strategy[0, span, :n_actions].copy()
            ledger.rounds = ledger.rounds + rounds
            ledger.expects = False
            ledger.count[:] = self.count[0, span, :n_actions]
            ledger.fixed[:] = self.fixed[0, span, :n_actions, :n_actions]
            if isinstance(learner, QLearning):
                learner.state_index = self.state_index[0, span].copy()
                learner.changed_at = self.changed_at[0, span].copy()
                first_entry = self.first_entries[span.start]
                first_state = self.first_states[span.start]
                q = self.q[0, first_entry : first_entry + learner.q.size]
                greedy = self.greedy[0, first_state : first_state + learner.greedy.size]
                learner.q[:] = q.reshape(learner.q.shape)
                learner.greedy[:] = greedy.reshape(learner.greedy.shape)
            else:
                learner.total[:] = self.total[0, span, :n_actions]  # type: ignore[attr-defined]
