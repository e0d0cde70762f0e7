"""``MarketModel``, a Mesa model in which a step is a round of the game.

``load(...).build()`` makes one; a script steps it, reads its tables and changes its players:

    model = load("crop-choice", rounds=100).build(seed=7)
    model.run()                                        # or model.step(), round by round
    model.agents_frame()                               # a row per agent: losses, regrets, bounds
    model.agents.get("swap_regret")                    # as of any Mesa model
    model.replace(adversary=MyAdversary(...))          # between two rounds

A ``mesa.DataCollector`` that is given to the model as its ``datacollector`` collects after every
round, as ``mesa.batch_run`` expects. The model's own logs are those of ``market.logs.journal``. The
agents that Mesa sees are views (``market.agent_view``).
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import Any, Protocol

import mesa
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.agent_view import AgentView
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.checkpoint import memory
from regretless.market.core.errors import UserError
from regretless.market.core.interrupts import interrupts_between_rounds
from regretless.market.core.own_code import raise_with_round, read_only
from regretless.market.core.randomness import generator_state, restore_generator
from regretless.market.exploitability import tracker
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game import roster
from regretless.market.game.accounts import Account
from regretless.market.game.caveats import effective_guarantees
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import numbered
from regretless.market.game.round import Game, begin, finish
from regretless.market.logs import alternatives, final_tables, user_columns
from regretless.market.logs.bounds_log import BoundsLog
from regretless.market.logs.branch_gains import Fork
from regretless.market.logs.forecast_scores import scores_table
from regretless.market.logs.journal import Journal, Sink
from regretless.market.logs.named_columns import NamedColumn, with_named_columns
from regretless.market.logs.sampling import logged_agents
from regretless.market.logs.windows import Span, Windows
from regretless.market.records import MAX_RECENT, Round
from regretless.market.solutions.announcements import announcement_risk
from regretless.market.solutions.solution import DEFAULT_NAMES
from regretless.market.solutions.solved_game import SolvedGame

Recipe = Callable[["MarketModel", Mapping[str, Any], Mapping[str, Any]], "MarketModel"]

__all__ = ["AgentView", "Guarantee", "MarketModel"]

# Since Mesa 3.4 ``batch_run`` itself has ``rng``, under which each iteration is given another seed.
OF_ITERATIONS = {"rng"}.intersection(signature(mesa.batch_run).parameters)
MAX_VIEWS = 100_000  # agents; in larger markets no agent is seen by itself


class RoundPlayer(Protocol):
    """Plays many rounds at once (``compiled_rounds``, ``scripted_rounds`` of ``agents.cohorts``).

    A fault in a round is a UserError that names the round. A round that was cut off, by a fault or
    by Ctrl-C, is played to its end when rounds are played again.
    """

    # Of each round that was not noted yet the number of its profile (T,) (``game.profiles``).
    last_profiles: Integers

    @property
    def can_play(self) -> bool:
        """Whether the next rounds can be played so."""

    def play(self, rounds: int, *, patience: int = 0) -> Sequence[Indices]:
        """Play up to so many rounds, at least one; return each cohort's last actions (N,)."""

    def forget_unfinished_round(self) -> None:
        """Forget a round that was cut off, before the players' memories are replaced."""


class MarketModel(mesa.Model):  # type: ignore[misc]
    """A market in which one forecast serves every agent.

    >>> from regretless import load
    >>> model = load("crop-choice", rounds=20).build(seed=7)
    >>> model.run(15)
    >>> model.played
    15
    >>> len(model.rounds_frame())
    15

    Parameters
    ----------
    game : Game
        The players.
    guarantees : sequence of Guarantee
        One per cohort; where the draw has a say in the outcome few of them stand
        (``Game.why_no_guarantee``).
    seed : int
        Root seed, for Mesa's own generator; the game has streams of its own.
    rounds : int
        How many rounds ``run`` plays in all.
    tracker : Tracker, optional
        Follows exploitability; left out where no cohort keeps it.
    log_every : int
        Rounds between two entries of the regret log.
    logs_every_round : bool
        Whether rounds between two entries of the regret log are logged, too.
    log_agents : int, optional
        How many agents logs and windows follow; all by default.
    windows : sequence of (first, last)
        Rounds over which regret is measured by itself (``market.logs.windows``).
    measures : sequence of str
        Registered names of a user's measures (``market.logs.user_columns``).
    solutions : sequence of str
        Registered names of solutions of the stage game that the run's tables have.
    namers : mapping, optional
        By cohort: names an action of each agent.
    called : mapping, optional
        By cohort: the names of actions, where all its agents have the same.
    traits : mapping, optional
        By cohort: further columns of the agents table.
    """

    name: str = ""  # of its scenario; empty where it was put together by hand
    notes: tuple[str, ...] = ()  # what its scenario says beside the results
    warnings: tuple[str, ...] = ()  # what of its scenario can hardly be meant
    compiled: RoundPlayer | None = None  # plays rounds that nobody looks at, where it can be so
    patience: int = 0  # rounds without a change of any greedy strategy that end a run; 0 for never
    drawer: Callable[..., Any] | None = None  # draws the figure of a model and a name, None for all
    # Of the table of rounds the columns that have names in the data, such as y_0.
    named_columns: Mapping[str, NamedColumn] = MappingProxyType({})

    def __init__(
        self,
        game: Game,
        guarantees: Sequence[Guarantee],
        *,
        seed: int,
        rounds: int,
        tracker: Tracker | None = None,
        log_every: int = 1,
        logs_every_round: bool = True,
        log_agents: int | None = None,
        windows: Sequence[Span] = (),
        measures: Sequence[str] = (),
        solutions: Sequence[str] = (),
        namers: final_tables.Namers | None = None,
        called: Mapping[str, Sequence[str]] | None = None,
        traits: final_tables.Traits | None = None,
    ) -> None:
        super().__init__(rng=seed)
        self.game = game
        self.guarantees = effective_guarantees(game, guarantees)
        self.rounds = rounds
        self.tracker = tracker
        self.namers = namers or {}
        self.called = called or {}
        self.traits = traits or {}
        logged = logged_agents(game.cohorts, log_agents, seed=seed)
        logged_windows = (
            Windows(game.cohorts, logged, windows, self.guarantees) if windows else None
        )
        self.journal = Journal(
            game,
            logged,
            log_every=log_every,
            logs_every_round=logs_every_round,
            windows=logged_windows,
        )
        self.bounds = BoundsLog(game.cohorts, self.guarantees, rounds=rounds)
        self.recipe: Recipe | None = None  # how a scenario makes branches
        self.fork: Fork | None = None  # where this market left the one that it branched from
        # By cohort that was present in the last round: its decision's actions and counts.
        self.last: dict[int, tuple[Any, ...]] = {}
        # Who was added or left, for checkpoints: what, cohort, agent and round.
        self._roster_changes: list[list[Any]] = []
        self._spare_agents: dict[int, list[AgentView]] = {}  # by cohort
        self._is_round_open = False
        self._has_replaced_players = False
        self._cut_off_player: RoundPlayer | None = None  # can play a round that it was cut off in
        self._cache: dict[tuple[int, str], Array] = {}  # of measures, until the next round
        cohort_sizes = [len(cohort.row_of) for cohort in game.cohorts]
        self._agents_before = np.cumsum([0, *cohort_sizes])  # the agents of earlier cohorts
        self._views: list[AgentView] = []
        if self._agents_before[-1] <= MAX_VIEWS:
            for index, size in enumerate(cohort_sizes):
                self._views += [AgentView(self, index, number) for number in range(size)]
        for first, cohort in numbered(game.cohorts):
            cohort.enter(self, first)
        for solution_name in solutions:
            register.solution[solution_name]  # which refuses one that is unknown
        self.solved = SolvedGame(game.market, names=solutions, spans=windows)
        self.own_measures = {name: register.measure[name] for name in measures}
        if self.own_measures:
            self.journal.watchers["measures"] = self._rows_of_measures

    def __repr__(self: Any) -> str:
        agents = sum(cohort.population for cohort in self.game.cohorts)
        title = f" {self.name}" if self.name else ""
        text = f"<MarketModel{title}: {agents:,} agents, round {self.played} of {self.rounds}"
        regrets = []
        for cohort_index in range(len(self.game.cohorts)):
            regrets.append(self.measured(cohort_index, "decision_swap"))
            regrets.append(self.measured(cohort_index, "swap"))
        regrets_of_rows = np.concatenate(regrets)
        is_measured = ~np.isnan(regrets_of_rows)  # a regret that is not kept is NaN
        measured_regrets = regrets_of_rows[is_measured]
        if self.played and len(measured_regrets):
            # Where only policies are comparators all of them may have been worse: no regret.
            worst_regret = max(measured_regrets.max(), 0.0)
            text += f", worst regret so far {worst_regret:.4f}"
        return f"{text}>"

    def _rows_of_measures(self, _played: Round) -> user_columns.Columns:
        return user_columns.measures(self, self.own_measures)

    # Playing.

    @property
    def played(self) -> int:
        """Rounds played so far."""
        return self.game.history.rounds

    def step(self) -> None:
        """Play one round and log it; UserError after the last one, or after one that was cut off.

        A round that was cut off in a block is played to its end.
        """
        if self.played >= self.rounds:
            raise UserError(f"all {self.rounds} rounds are played; build a run of more rounds")
        if self._cut_off_player is not None and self._cut_off_player is self.compiled:
            self._play_block(self.compiled, 1)
            return
        self.conclude(self.begin())

    def run(self, rounds: int | None = None, *, progress: Callable[[], Any] | None = None) -> None:
        """Play on until ``rounds``, or all, are played; ``progress`` is called after each.

        model.run(50)        # until 50 rounds have been played in all
        model.run()          # the rest

        After Ctrl-C the round in hand is played to its end, so that the market can go on
        (``market.core.interrupts``).
        """
        target = self.rounds if rounds is None else rounds
        if not isinstance(target, int | np.integer) or target < 0:
            raise UserError(f"run({target!r}): give how many rounds shall have been played")
        with interrupts_between_rounds() as interrupted:
            while self.played < target and not self.is_finished:
                self.advance(target - self.played)
                if progress is not None:
                    progress()
                if interrupted.is_set():
                    raise KeyboardInterrupt

    @property
    def is_finished(self) -> bool:
        """Whether all rounds are played, or the stopping rule holds."""
        return self.game.history.rounds >= self.rounds or (
            self.patience > 0 and self.unchanged_rounds() >= self.patience
        )

    def unchanged_rounds(self) -> int:
        """Return for how many rounds no learner's greedy strategy has changed.

        A cohort of which nobody took part in the last round changes nothing.
        """
        numbers = [self.played]
        for index, cohort in enumerate(self.game.cohorts):
            unchanged = cohort.unchanged_rounds
            # Nothing is known of the last round where the market was just restored.
            may_have_changed = not self.last or index in self.last
            if may_have_changed and unchanged is not None and len(unchanged):
                numbers.append(int(unchanged.min()))
        return min(numbers)

    def advance(self, rounds: int) -> None:
        """Play at least one and at most so many rounds.

        Rounds between two logged ones are played as a block where ``compiled`` can.
        """
        player = self.compiled
        n_unlogged = 0
        if player is not None and player.can_play and not hasattr(self, "datacollector"):
            n_unlogged = self.journal.unlogged_rounds(self.played)
        n_block = min(rounds, n_unlogged, self.rounds - self.played)
        if player is None or n_block < 1:
            self.step()
            return
        self._play_block(player, n_block)

    def _play_block(self, player: RoundPlayer, rounds: int) -> None:
        """Play up to so many rounds as a block, the first of which may have been cut off in one."""
        if player is self._cut_off_player:
            self.game.cut_off = ""
        self.game.refuse_after_cut_off()
        self._is_round_open = True
        self.steps = self.played + 1  # as in ``step``, Mesa counts a round when it begins
        try:
            last_actions = player.play(rounds, patience=self.patience)
        except BaseException as error:
            self.game.note_cut_off(self.played, error)
            self._cut_off_player = player
            raise
        self._cut_off_player = None
        self._is_round_open = False
        self.note_block(last_actions, player.last_profiles)

    def note_block(self, last_actions: Sequence[Indices], profiles: Integers) -> None:
        """Take note of rounds that were played as a block, when the game has learned of them.

        ``last_actions`` are those of each cohort in the last of them (N,), ``profiles`` the numbers
        of the profiles that were played in each of them (T,).
        """
        if self.solved.play is not None:
            self.solved.play.add_profiles(self.played - len(profiles), profiles)
        self.journal.add_unlogged(self.played - 1)
        self._cache.clear()
        self.last = {index: (actions, None) for index, actions in enumerate(last_actions)}
        self.steps = self.played + self._is_round_open
        self.running = not self.is_finished

    def begin(self) -> Round:
        """Let everybody decide in the next round, and return it; ``conclude`` takes it.

        An environment or a worker acts between the two. Everybody else calls ``step``. If an error,
        or Ctrl-C, cuts this off, the market refuses to go on.
        """
        game = self.game
        if game.cut_off:
            raise UserError(game.cut_off)
        self._is_round_open = True
        try:
            return begin(game)
        except BaseException as error:
            raise_with_round(error, game.history.rounds)
            raise

    def conclude(self, begun: Round) -> Round:
        """Finish a round in which everybody has decided, log it, and return it.

        It is the same object, with the rest filled in: the outcome is now what the market made of
        it. Nothing writes into it, or into its arrays, after that.

        If an error, or Ctrl-C, cuts this off, the market refuses to go on.
        """
        game = self.game
        if game.cut_off:
            raise UserError(game.cut_off)
        first_unplayed = game.history.rounds
        try:
            played = finish(game, begun)
            self._is_round_open = False
            self.passed(played)
            if self.tracker is not None:
                self.tracker.add(played)
            self.journal.add(played)
            if self.solved.play is not None:
                self.solved.play.add(played.number, played.decisions)
            self.bounds.add(game.history.rounds)
            self.running = not self.is_finished
            if hasattr(self, "datacollector"):
                self.datacollector.collect(self)
        except BaseException as error:
            game.note_cut_off(begun.number, error)
            raise_with_round(error, first_unplayed)
            raise
        return played

    # Tables, each a pandas.DataFrame of the rounds so far.

    def agents_frame(self) -> pd.DataFrame:
        """Return one row per agent: every measure so far.

        model.agents_frame()[["agent", "cohort", "decision_swap_regret", "bound"]]
        """
        exploitability = [
            self.exploitability_columns(index) for index in range(len(self.game.cohorts))
        ]
        table = final_tables.agents_table(
            self.game, self.guarantees, exploitability, rounds=self.rounds
        )
        return self.journal.marked(final_tables.with_traits(table, self.traits))

    def rounds_frame(self) -> pd.DataFrame:
        """Return one row per round: outcome, context and certificate.

        With data outcomes and contexts stand there again, under their names and in their units.
        """
        return with_named_columns(self.journal.frame("rounds"), self.named_columns)

    def forecasts_frame(self) -> pd.DataFrame:
        """Return one row per atom of a round's mixture."""
        return self.journal.frame("forecasts")

    def regret_frame(self) -> pd.DataFrame:
        """Return one row per agent and logged round: regrets per round so far."""
        return self.game.regret_log_of_all(self.journal.frame("regret_log"))

    def bounds_frame(self) -> pd.DataFrame:
        """Return one row per cohort and selected round: the worst regret and its bounds."""
        self.game.refuse_if_agents_are_elsewhere()
        return self.bounds.frame()

    def windows_frame(self) -> pd.DataFrame:
        """Return one row per agent and window that has ended."""
        self.game.refuse_if_agents_are_elsewhere()
        return self.journal.frame("windows")

    def swaps_frame(self) -> pd.DataFrame:
        """Return one row per agent and action that it played: where its regret comes from."""
        return final_tables.swaps_table(self.game, self.namers)

    def models_frame(self) -> pd.DataFrame:
        """Return one row per agent and model it could have followed; empty where there are none."""
        return alternatives.models_table(self.game)

    def verdict_frame(self) -> pd.DataFrame:
        """Return one row per cohort and alternative: who would have been better off with it."""
        return alternatives.verdict_table(alternatives.losses_of_cohorts(self.game))

    def scores_frame(self) -> pd.DataFrame:
        """Return one row per forecast of an outcome, and per action: errors, and calibration."""
        records = {}
        for block in self.game.blocks:
            if not block.forecaster.is_silent:
                records[block.name] = block.record
        outcomes = self.game.history.last(MAX_RECENT)
        return scores_table(records, outcomes, alternatives.losses_of_cohorts(self.game))

    def coverage_frame(self) -> pd.DataFrame:
        """Return one row per outcome and announced quantile; empty where none is announced."""
        names = [f"y_{j}" for j in range(self.game.adversary.outcomes)]
        for block in self.game.blocks:
            table = block.forecaster.coverage(names, is_proved=not self.game.why_no_guarantee)
            if table is not None:
                return table
        return pd.DataFrame()

    def biases_frame(self) -> pd.DataFrame:
        """Return one row per event with at least one per cent of the rounds."""
        return final_tables.biases_table(self.game)

    def accounts_frame(self) -> pd.DataFrame:
        """Return one row per agent and logged round: what it owned."""
        return self.journal.frame("accounts")

    def trades_frame(self) -> pd.DataFrame:
        """Return one row per trade; empty without an order book."""
        return self.journal.frame("trades")

    def quotes_frame(self) -> pd.DataFrame:
        """Return one row per round and good: the best quotes of an order book."""
        return self.journal.frame("quotes")

    def sales_frame(self) -> pd.DataFrame:
        """Return one row per round and seller: price, quantity, cost and chance of each price.

        It is empty unless the market is one of price competition whose ``sales`` are logged.
        """
        return self.journal.frame("sales")

    def states_frame(self) -> pd.DataFrame:
        """Return one row per logged round and agent whose class declares columns."""
        return self.journal.frame("states")

    def measures_frame(self) -> pd.DataFrame:
        """Return one row per logged round and value of a user's measure."""
        return self.journal.frame("measures")

    def edges_frame(self) -> pd.DataFrame:
        """Return one row per edge of the network; empty where there is none."""
        if self.game.network is None:
            return pd.DataFrame()
        return self.game.network.frame()

    # Solutions of the stage game (``market.solutions``).

    def solutions(self, names: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row per solution of the stage game and cohort, after those of play.

            model.solutions()                        # those of the scenario, or the default ones
            model.solutions("nash")
            model.solutions(["nash", "optimum"])

        Columns are those of the table ``solutions``. What cannot be computed has a row without
        numbers, whose ``method`` says why. UserError if a name is not registered.
        """
        if names is None:
            names = self.solved.names or DEFAULT_NAMES
        return self.solved.table(names)

    def price_of_anarchy(self, concept: str = "nash") -> float:
        """Return the total loss of the worst equilibrium over the optimum's (``SolvedGame``).

        ``concept`` is "nash", "ce", "cce", "wardrop" or "potential". Of welfare the ratio is the
        other way round. UserError where there is none.
        """
        return self.solved.price_of_anarchy(concept)

    def distance(self, concept: str, *, window: tuple[int, int] | None = None) -> float:
        """Return how far play is from the correlated equilibria, in total variation: in [0, 1].

            model.distance("cce", window=(1000, 1999))    # one of the scenario's windows

        ``concept`` is "ce" or "cce". UserError where it cannot be computed, with the reason.
        """
        return self.solved.distance(concept, window)

    def index(self, first: str, second: str, *, window: tuple[int, int] | None = None) -> float:
        """Return where play is between two solutions: 0 at the first, 1 at the second.

            model.index("nash", "optimum")    # of firms, the profit gain of Calvano et al. (2020)

        It is linear in the sum of all losses. Of a name with two ends, such as "nash", the worst
        counts; give "best nash" for the other one. UserError where it cannot be computed.
        """
        return self.solved.index(first, second, window)

    def announcement_risk(self, grid: Any) -> pd.DataFrame:
        """Return what each constant announcement brings about, and its risk as a forecast.

            model.announcement_risk(np.linspace(0, 1, 101))    # rows of d numbers for d outcomes

        A row per announced outcome, once agents respond to it and the market has come to rest:
        ``risk`` is the mean squared error, and a row ``is_stable`` or ``is_optimum`` in the sense
        of Perdomo, Zrnic, Mendler-Dünner and Hardt (2020). It counts the ``variance_of_draws``, by
        which the actions that n agents draw move outcomes; where the market does not say it that
        is empty, and the risk is that of a continuum. UserError where it cannot be computed,
        with the reason (``market.solutions.announcements``).
        """
        return announcement_risk(self.game, grid)

    def show(self, figure: str | None = None) -> Any:
        """Return a Plotly figure of the rounds so far by its name, or all of them in a dict.

            model.show()         # a dict of figures by name

        UserError if the market was not made by ``load``.
        """
        if self.drawer is None:
            raise UserError("show: only a market that load() made knows its figures; use that")
        return self.drawer(self, figure)

    # Single agents.

    def view(self, number: int) -> AgentView:
        """Return the view of an agent by its number in the tables, from 1.

            model.view(3).decision_swap_regret

        UserError in a market of more than ``MAX_VIEWS`` agents.
        """
        if not self._views:
            raise UserError(f"single agents are seen among at most {MAX_VIEWS}; play fewer")
        return self._views[number - 1]

    def neighbours(self, number: int) -> list[AgentView]:
        """Return the views of an agent's neighbours in the network; ``number`` as in ``view``."""
        network = self.game.network
        if network is None:
            return []
        return [self.view(int(agent) + 1) for agent in network.neighbours[number - 1]]

    def add(self, cohort: str, count: int = 1) -> list[AgentView]:
        """Let spare agents of a cohort take part from now on; return their views.

            model = load("crop-choice").build(spare={"growers": 2})
            model.run(50)
            model.add("growers", 2)

        UserError if the cohort has fewer spare agents.
        """
        names = [existing.name for existing in self.game.cohorts]
        spare = self._spare_agents.get(names.index(cohort), []) if cohort in names else []
        if len(spare) < count:
            hint = f"keep it by build(spare={{'{cohort}': {count}}})"
            raise UserError(f"cohort.{cohort} has {len(spare)} spare agents to be added; {hint}")
        added = [self._admit_next_spare(names.index(cohort), self.played) for _ in range(count)]
        self._cache.clear()
        return added

    def dismiss(self, cohort: int, agent: int, before: int | None = None) -> None:
        """End the stay of an agent, by the index of its cohort and its place there.

        It plays no round from ``before`` on; by default none after the round that is being played.
        """
        if before is None:
            before = self.played + self._is_round_open
        row = roster.dismiss(self.game, cohort, agent, before=before)
        self.compiled = None  # it knows of nobody who leaves
        self._withdraw_promise(cohort, row)
        self._roster_changes.append(["left", cohort, agent, before])

    # Another market.

    def replace(self, **players: Any) -> None:
        """Replace the ``adversary``, the ``market``, or a forecaster under its block's name.

            model.replace(adversary=IID(...))

        Promises are cut (``market.game.roster``), and the market cannot be resumed. UserError if a
        player does not fit.
        """
        self.promise(roster.replace_players(self.game, self.guarantees, **players))
        self._has_replaced_players = True
        self.compiled = None  # it plays the game as it was
        if {"adversary", "market"} & set(players):
            self.solved = SolvedGame(
                self.game.market, names=self.solved.names, spans=self.solved.spans
            )
            self.solved.count_from(self.played)
            self.tracker = None
            self.journal.begin_columns_of_leader_and_market()
        self._cache.clear()

    def branch(self, changes: Mapping[str, Any] | None = None, **players: Any) -> "MarketModel":
        """Return a second market with this one's past and random numbers, and something changed.

            other = model.branch({"forecaster.kind": "running-mean"})
            other.run()

        ``changes`` are dotted keys of the scenario and ``agent.NUMBER``, ``players`` those of
        ``replace``; its logs begin here. UserError if no scenario built this market.
        """
        if self.recipe is None:
            raise UserError("no scenario built this market; branch one that load(...).build() made")
        return self.recipe(self, changes or {}, players)

    # Arrays of cohorts, which are named by their index.

    def last_actions(self, cohort: int) -> NDArray[np.intp]:
        """Return what a cohort's agents played last (N,); -1 where they were not there."""
        if cohort in self.last:
            actions = self.last[cohort][0]
        else:
            actions = np.full(len(self.game.cohorts[cohort].row_of), -1)
        return read_only(actions)

    def measured(self, cohort: int, measure: str) -> Array:
        """Return a measure of a cohort's rows (K,); NaN where not kept, or not played yet."""
        if measure in tracker.MEASURES:  # those of exploitability; the ledger has the others
            return self.exploitability_columns(cohort)[measure]
        key = cohort, measure
        if key not in self._cache:
            ledger = self.game.cohorts[cohort].ledger
            if measure == "mean_loss":
                values: Array | None = ledger.mean_loss()
            else:
                values = ledger.regret(measure)
            has_not_entered = self.game.rows_yet_to_enter(cohort)
            if values is None:
                values = np.full(len(has_not_entered), np.nan)
            self._cache[key] = read_only(np.where(has_not_entered, np.nan, values))
        return self._cache[key]

    def exploitability_columns(self, cohort: int) -> dict[str, Array]:
        """Return exploitability of a cohort's rows (K,) by column; NaN where none is followed."""
        n_rows = self.game.cohorts[cohort].ledger.shape[0]  # refused of agents elsewhere
        if self.tracker is not None:
            return self.tracker.measured(cohort)
        unknown = np.full(n_rows, np.nan)
        return dict.fromkeys(tracker.COLUMNS, unknown)

    def column(self, cohort: int, name: str) -> Array:
        """Return what a cohort's own agents show of themselves (N,), read once per round."""
        key = cohort, f"column {name}"
        if key not in self._cache:
            self._cache[key] = read_only(self.game.cohorts[cohort].column(name))
        return self._cache[key]

    def account(self, number: int, count: int | None = None) -> Account | None:
        """Return what agent ``number`` owns, or ``count`` agents from it on.

        None in a market without accounts.
        """
        market = self.game.market
        if market is None or market.accounts is None:
            return None
        first = number - 1
        if count is None:
            return market.accounts.of(first)
        return market.accounts.of(slice(first, first + count))

    # For the packages that build and store a market.

    def passed(self, played: Round) -> None:
        """Let the agents' views be of this round, the last one, which may go unlogged."""
        self._cache.clear()
        self.last = {}
        for index, decision in enumerate(played.decisions):
            if decision is not None:
                self.last[index] = (decision.actions, decision.counts)

    def keep_spare(self, cohort: int, count: int) -> None:
        """Keep the last agents of a cohort, who never enter by themselves, to be added."""
        last = int(self._agents_before[cohort + 1])
        numbers = range(last - count + 1, last + 1)
        self._spare_agents[cohort] = [self.view(number) for number in numbers]
        for view in self._spare_agents[cohort]:
            self.deregister_agent(view)

    def promise(self, guarantees: tuple[Guarantee, ...]) -> None:
        """Go on with other guarantees, one per cohort."""
        self.guarantees = guarantees
        self.bounds.guarantees = guarantees
        if self.journal.windows is not None:
            self.journal.windows.guarantees = guarantees

    def stream_logs_to(self, sink: Sink) -> None:
        """Pass full chunks of the logs to ``sink`` from now on instead of keeping them."""
        self.journal.sink = sink

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs.

        ValueError names a player that has no state, or a round that was cut off.
        """
        self.game.refuse_after_cut_off()
        forgetful = self.game.forgetful()
        if forgetful:
            raise ValueError(f"{', '.join(forgetful)} cannot be resumed: no state() and restore()")
        if self._has_replaced_players:
            raise ValueError("players were replaced, which no file says: it cannot be resumed")
        players = self.game.players()
        return {
            "changed": [list(change) for change in self._roster_changes],
            "players": {name: memory(player) for name, player in players.items()},
            "forecast_stream": generator_state(self.game.forecast_stream),
            "outcome_stream": generator_state(self.game.outcome_stream),
            "journal": self.journal.state(),
            "bounds": self.bounds.state(),
            "tracker": None if self.tracker is None else self.tracker.state(),
            "play": None if self.solved.play is None else self.solved.play.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        if self.compiled is not None:
            self.compiled.forget_unfinished_round()
        self._cut_off_player = None
        self._is_round_open = False
        self.game.cut_off = ""
        for name, player in self.game.players().items():
            player.restore(state["players"][name])
        self.game.forget_imagined_paths()
        # ``_admit_next_spare`` and ``dismiss`` note each change of the roster again, as in the run.
        for change, cohort_index, agent_index, round_index in state["changed"]:
            if change == "added":
                self._admit_next_spare(cohort_index, round_index)
            else:
                self.dismiss(cohort_index, agent_index, round_index)
                number = int(self._agents_before[cohort_index]) + agent_index + 1  # from 1
                self.deregister_agent(self.view(number))  # a view that leaves does so by itself
        restore_generator(self.game.forecast_stream, state["forecast_stream"])
        restore_generator(self.game.outcome_stream, state["outcome_stream"])
        self.journal.restore(state["journal"])
        self.bounds.restore(state["bounds"])
        if self.tracker is not None:
            self.tracker.restore(state["tracker"])
        if self.solved.play is not None:
            self.solved.play.restore(state["play"])
        self._cache.clear()
        self.last = {}
        self.steps = self.played
        self.running = not self.is_finished

    # What Mesa offers and a market refuses.

    def reset_rng(self, rng: Any = None) -> None:
        """Refuse: the streams of the game come of its root seed."""
        raise UserError("the game's streams come of its root seed; build(seed=...) another run")

    reset_randomizer = reset_rng  # the game draws nothing from Mesa's own generator

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled: parts of a game hold one another's arrays."""
        raise UserError("a market is not copied; take branch()")

    def _admit_next_spare(self, cohort: int, round_index: int) -> AgentView:
        """Let the next spare agent of a cohort take part from a round on, without a promise."""
        view = self._spare_agents[cohort].pop(0)
        unique_id = view.unique_id
        row = int(self.game.cohorts[cohort].row_of[view.number])
        roster.admit(self.game, cohort, row, round_index=round_index)
        self.compiled = None  # it knows of nobody who enters
        self._withdraw_promise(cohort, row)  # its entry may depend on what was drawn
        self.register_agent(view)
        view.unique_id = unique_id  # some versions of Mesa would give it a new one
        self._roster_changes.append(["added", cohort, view.number, round_index])
        return view

    def _withdraw_promise(self, cohort: int, row: int) -> None:
        """Leave a row out of its cohort's guarantee."""
        guarantees = list(self.guarantees)
        rows = self.game.cohorts[cohort].ledger.shape[0]
        guarantees[cohort] = roster.uncovered(guarantees[cohort], row, rows)
        self.promise(tuple(guarantees))
