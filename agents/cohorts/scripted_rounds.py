"""Rounds of a market of a user's own agents, played without the market.

Where every loss is an entry of a table (``market.game.profiles``), a round that nobody looks at
needs no market, adversary or forecast: the agents are asked and told their losses, and sums and
history learn of many rounds at once. ``scripted_rounds`` says whether a game can be played so, and
returns the ``ScriptedRounds`` to which ``MarketModel`` hands the rounds between two logged ones.
They are the rounds that the general path would have played, bit by bit.

An agent may look at the model at any time: it is brought up to date before, and rounds are played
on the general path from then on. Who looks while it learns sees, as on the general path, the
ledgers of its own and earlier cohorts, and the market's counts, with the round that is played.

A round that an error or Ctrl-C cut off is played to its end when rounds are played again: who has
decided is not asked again, and who has learned is not told again. The agent in whose method it was
cut off is called once more.

It is so where the conditions of ``compiled_rounds`` hold, but all agents are objects of classes
that inherit from ``ScriptedAgent``, and the adversary is one of the project's that shows no
context.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from regretless.agents.cohorts.compiled_rounds import losses_by_own_action, table_of_all_rounds
from regretless.agents.cohorts.scripted_agents import ScriptedAgent, ScriptedCohort
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.own_code import in_round, is_ours, read_only
from regretless.market.game.profiles import ProfileTable
from regretless.market.game.protocols import Adversary
from regretless.market.game.round import Game
from regretless.market.records import Context, Forecast

MAX_BLOCK_ROUNDS = 2**12  # of one call, so that progress shows and Ctrl-C is heard
MAX_BLOCK_NUMBERS = 2**20  # of the mixed strategies of a block
# After which a block ends, so that Ctrl-C is heard before its round has had its time
# (``market.core.interrupts``) though agents are slow.
MAX_BLOCK_SECONDS = 0.5


def scripted_rounds(game: Game, note_block: Callable[..., None]) -> "ScriptedRounds | None":
    """Return what plays rounds of a user's own agents; None where the general path must.

    ``note_block`` is the model's method of that name.
    """
    table = table_of_all_rounds(game)
    adversary = type(game.adversary.innermost)
    if table is None or not is_ours(adversary) or adversary.context is not Adversary.context:
        return None
    for cohort in game.cohorts:
        if type(cohort) is not ScriptedCohort or cohort.relay is not None:
            return None
        for agent in cohort.agents:
            is_plain = isinstance(agent, ScriptedAgent)
            if not is_plain or type(agent).model is not ScriptedAgent.model:
                return None
    return ScriptedRounds(game, table, note_block)


class ScriptedRounds:
    """Plays rounds of one game in blocks.

    Parameters
    ----------
    game : Game
        Whose agents, ledgers, market and history are changed by ``play``.
    table : ProfileTable
        What everybody loses at every profile, and the outcome there.
    note_block : callable
        Tells the model of rounds that the game has learned of, before an agent looks at it.
    """

    last_profiles: Indices  # of rounds that the model was not told of yet (T,)

    def __init__(self, game: Game, table: ProfileTable, note_block: Callable[..., None]) -> None:
        self._game = game
        self._note_block = note_block
        self._cohorts = [cohort for cohort in game.cohorts if isinstance(cohort, ScriptedCohort)]
        self._agents: list[ScriptedAgent] = []
        self._cohort_indices: list[int] = []  # of the agents
        self._cohort_of_agent: list[ScriptedCohort] = []
        self._forecast_of_agent: list[Forecast] = []
        context = Context()
        for cohort_index, cohort in enumerate(self._cohorts):
            forecaster = game.blocks[cohort.block].forecaster
            forecast = Forecast(forecaster.mixture(context), 0)
            for agent in cohort.agents:
                self._agents.append(agent)
                self._cohort_indices.append(cohort_index)
                self._cohort_of_agent.append(cohort)
                self._forecast_of_agent.append(forecast)
        self._context = context
        self._strides = table.strides
        self._outcomes = read_only(table.outcomes)
        own_losses, own_strides = losses_by_own_action(table)
        self._own_losses = read_only(own_losses)  # (M, P), an agent's own action fastest
        # (M, M), by how much the others' actions count there
        self._strides_of_others = own_strides * (1 - np.eye(len(own_strides), dtype=np.intp))
        self._n_actions = table.action_counts.tolist()
        numbers_per_round = len(self._agents) * int(table.action_counts.max())
        self._max_rounds = min(MAX_BLOCK_ROUNDS, max(1, MAX_BLOCK_NUMBERS // numbers_per_round))
        # The block: how many of its rounds are finished, and of how many the game has learned.
        self._n_finished = 0
        self._n_learned = 0
        # The round that is played: how many agents have decided, how many have been told their
        # losses, and how many cohorts have it in their ledgers already.
        self._n_decided = 0
        self._n_told = 0
        self._n_charged = 0
        self._strategies = np.empty((0, 0, 0))  # (T, M, A)
        self._actions = np.empty((0, 0), dtype=np.intp)  # (T, M)

    @property
    def can_play(self) -> bool:
        """Whether no agent has looked at the model so far, or a round was cut off."""
        return self._n_decided > 0 or not self._has_been_looked_at

    @property
    def _has_been_looked_at(self) -> bool:
        return any(agent.has_looked for agent in self._agents)

    def play(self, rounds: int, *, patience: int = 0) -> list[Indices]:
        """Play up to so many rounds, at least one, and return the last actions by cohort (K,).

        A round in which an agent looks at the model is the last one.
        """
        n_rounds = min(rounds, self._max_rounds)
        first_round = self._game.history.rounds
        self._begin_block(n_rounds)
        for agent, cohort_index in zip(self._agents, self._cohort_indices, strict=True):
            agent.bring_up_to_date = partial(self._show_model_to, cohort_index)
        try:
            self._play_rounds(n_rounds)
        except BaseException:
            self._bring_model_up_to_date()
            with in_round(first_round + self._n_finished):
                raise
        finally:
            for agent in self._agents:
                agent.bring_up_to_date = None
        self._teach_game()
        return self._last_actions()

    def forget_unfinished_round(self) -> None:
        """Forget the round that was cut off: who plays it is about to be restored."""
        self._n_decided = 0
        self._n_told = 0
        self._n_charged = 0

    def _begin_block(self, rounds: int) -> None:
        """Make room for so many rounds; the first of them may have been cut off before."""
        strategies = np.zeros((rounds, len(self._agents), max(self._n_actions)))
        actions = np.zeros((rounds, len(self._agents)), dtype=np.intp)
        decided = slice(self._n_decided)
        if self._n_decided:
            strategies[0, decided] = self._strategies[self._n_finished, decided]
            actions[0, decided] = self._actions[self._n_finished, decided]
        self._strategies = strategies
        self._actions = actions
        self._n_finished = 0
        self._n_learned = 0

    def _play_rounds(self, rounds: int) -> None:
        """Play so many rounds, or until somebody has looked at the model, or time is up."""
        end_time = time.monotonic() + MAX_BLOCK_SECONDS
        for t in range(rounds):
            self._ask_agents(self._actions[t], self._strategies[t])
            self._tell_agents(self._actions[t])
            self._n_decided = 0
            self._n_told = 0
            self._n_finished = t + 1
            if self._has_been_looked_at or time.monotonic() > end_time:
                return

    def _ask_agents(self, actions: Indices, strategies: Array) -> None:
        """Ask all agents who have not decided yet, and write what they play.

        ``actions`` (M,) and ``strategies`` (M, A), of one round, are changed in place.
        """
        for number in range(self._n_decided, len(self._agents)):
            actions[number] = self._cohort_of_agent[number].ask_agent(
                self._agents[number],
                self._forecast_of_agent[number],
                self._context,
                strategy=strategies[number, : self._n_actions[number]],
            )
            self._n_decided = number + 1

    def _tell_agents(self, actions: Indices) -> None:
        """Tell the losses at actions (M,) to all agents who have not been told yet."""
        outcome = self._outcomes[actions @ self._strides]
        first_entries = (self._strides_of_others @ actions).tolist()
        for number in range(self._n_told, len(self._agents)):
            first = first_entries[number]
            losses = self._own_losses[number, first : first + self._n_actions[number]]
            self._agents[number].learn(losses, outcome)
            self._n_told = number + 1

    def _show_model_to(self, cohort_index: int) -> None:
        """Bring the model to where it is when an agent of a cohort looks at it."""
        self._bring_model_up_to_date()
        if self._n_decided == len(self._agents):  # they are told their losses
            present_round = slice(self._n_finished, self._n_finished + 1)
            self._charge(present_round, n_cohorts=cohort_index + 1)

    def _bring_model_up_to_date(self) -> None:
        """Let game and model learn of all rounds before the one that is played."""
        if self._n_finished > self._n_learned:
            self._teach_game()
            self._note_block(self._last_actions(), self.last_profiles)

    def _teach_game(self) -> None:
        """Add rounds that are finished to ledgers, history, and what the market counts."""
        new_rounds = slice(self._n_learned, self._n_finished)
        self._charge(new_rounds, n_cohorts=len(self._cohorts))
        self._n_charged = 0
        self._n_learned = self._n_finished
        self.last_profiles = self._actions[new_rounds] @ self._strides
        self._game.history.extend(self._outcomes[self.last_profiles])

    def _charge(self, rounds: slice, *, n_cohorts: int) -> None:
        """Add rounds to what the market counts, and to the ledgers of the first cohorts.

        Those ledgers that have the rounds already are left as they are.
        """
        profiles = self._actions[rounds]
        if self._n_charged == 0:
            market = self._game.market
            assert market is not None  # noqa: S101 - it has the table
            market.count_profiles(profiles @ self._strides)
        first_entries = profiles @ self._strides_of_others.T
        end = 0
        for index, cohort in enumerate(self._cohorts[:n_cohorts]):
            start = end
            end = start + len(cohort.agents)
            if index < self._n_charged:
                continue
            n_actions = cohort.loss.actions
            losses = np.empty((len(profiles), end - start, n_actions))
            for row in range(end - start):
                entries = first_entries[:, start + row, np.newaxis] + np.arange(n_actions)
                losses[:, row] = self._own_losses[start + row][entries]
            strategies = self._strategies[rounds, start:end, :n_actions]
            cohort.ledger.add_rounds(np.ascontiguousarray(strategies), losses)
        self._n_charged = max(self._n_charged, n_cohorts)

    def _last_actions(self) -> list[Indices]:
        """Return the actions of the last finished round by cohort (K,)."""
        actions = self._actions[self._n_finished - 1]
        ends = np.cumsum([len(cohort.agents) for cohort in self._cohorts])
        return np.split(actions, ends[:-1])
