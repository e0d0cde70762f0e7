"""The Mesa model, of which a step is a round, and the per-agent views on its arrays.

``model.agents.select(...)``, ``model.agents.get("swap_regret")`` and ``mesa.DataCollector`` work
as on any model: one that is given to the model as its ``datacollector`` collects after every round,
as ``mesa.batch_run`` expects. The model's own logs are those of ``market.logs.journal``.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

import mesa
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import memory
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import in_round, read_only
from regretless.market.core.randomness import generator_state, restore_generator
from regretless.market.exploitability import tracker
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game import roster
from regretless.market.game.accounts import Account
from regretless.market.game.caveats import effective_guarantees
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game, commit_and_draw, decide, finish, offer
from regretless.market.game.seats import present
from regretless.market.logs import alternatives, final_tables, user_columns
from regretless.market.logs.bounds_log import BoundsLog
from regretless.market.logs.branch_gains import Fork
from regretless.market.logs.forecast_scores import scores_table
from regretless.market.logs.journal import Journal, Sink
from regretless.market.logs.sampling import logged_agents
from regretless.market.logs.windows import Span, Windows
from regretless.market.records import KEPT, Round


class _Numbers(WeakKeyDictionary[Any, Iterator[int]]):
    """From a model to its agents' next number; Mesa's own table keeps every model for ever."""

    def __getitem__(self, model: Any) -> Iterator[int]:
        return self.setdefault(model, itertools.count(1))


def _measure(name: str, says: str) -> Any:
    """Make a property of an agent that reads one of its measures."""

    def read(self: Any) -> float:
        values = self.model.measured(self._cohort, name)
        return float(values[self._mine.row_of[self.number]])

    return property(read, doc=says)


def _frame(table: str, says: str) -> Any:
    """Make a method of a model that returns a table of its journal."""

    def frame(self: "MarketModel") -> pd.DataFrame:
        return self.journal.frame(table)

    frame.__doc__ = says
    return frame


class Trader(mesa.Agent):  # type: ignore[misc]
    """A view on one agent: its cohort and its number within it; NaN until it has played."""

    _ids = _Numbers()

    def __init__(self, model: Any, cohort: int, number: int) -> None:
        super().__init__(model)
        self._cohort, self.number = cohort, number

    @property
    def cohort(self) -> str:
        """Name of the agent's cohort."""
        return self._mine.name

    @property
    def utility(self) -> str:
        """Name of the agent's utility."""
        return self._mine.utility

    @property
    def stands_for(self) -> int:
        """How many agents it is one of, with the same losses: 1 unless they are counted."""
        multiplicity = self._mine.multiplicity
        return 1 if multiplicity is None else int(multiplicity[self.number])

    @property
    def action(self) -> int:
        """The action played in the last round; -1 where the agent was absent."""
        return int(self.model.last_actions(self._cohort)[self.number])

    mean_loss = _measure("mean_loss", "Loss per round so far, in [0, 1].")
    external_regret = _measure("external", "External regret per round so far.")
    swap_regret = _measure("swap", "Swap regret per round so far.")
    omniprediction_regret = _measure("omniprediction", "Omniprediction regret per round so far.")
    decision_swap_regret = _measure("decision_swap", "Decision swap regret per round so far.")
    contextual_swap_regret = _measure(
        "contextual_swap", "Contextual swap regret per round so far; NaN where it is not kept."
    )
    exploitability = _measure(
        "exploitability", "Exploitability so far; NaN where it is not kept or not sampled."
    )

    @property
    def _mine(self) -> Cohort:
        cohort: Cohort = self.model.game.cohorts[self._cohort]
        return cohort

    def __getattr__(self, name: str) -> Any:
        """Read a column that the agent's own class declares, or one of its account."""
        if not name.startswith("_"):
            if name in self._mine.columns:
                return float(self.model.column(self._cohort, name)[self.number])
            account = self.model.account(self.unique_id)
            if account is not None and name in {"cash", "goods"}:
                return vars(account)[name]
        raise AttributeError(f"agent has no '{name}'")

    def remove(self) -> None:
        """End the agent's stay; UserError if it cannot go alone (``market.game.roster``)."""
        self.model.dismiss(self._cohort, self.number)
        super().remove()


Recipe = Callable[["MarketModel", Mapping[str, Any], Mapping[str, Any]], "MarketModel"]

__all__ = ["Guarantee", "MarketModel", "Trader"]

# Since Mesa 3.4 ``batch_run`` itself has ``rng``, under which each iteration is given another seed.
OF_ITERATIONS = {"rng"}.intersection(signature(mesa.batch_run).parameters)
MOST_VIEWS = 100_000  # beyond this a view is made when it is asked for


class MarketModel(mesa.Model):  # type: ignore[misc]
    """A market in which one forecast serves every agent; ``load(...).build()`` makes it.

    Parameters
    ----------
    game : Game
        The players.
    guarantees : sequence of Guarantee
        One per cohort; where the draw has a say in the outcome (``Game.flaw``) few of them stand.
    seed : int
        Root seed, for Mesa's own generator; the game has streams of its own.
    rounds : int
        How many rounds ``run`` plays in all.
    """

    name: str = ""  # of its scenario; empty where it was put together by hand
    notes: tuple[str, ...] = ()  # what its scenario says beside the results
    warnings: tuple[str, ...] = ()  # what of it can hardly be meant
    drawer: Callable[..., Any] | None = None  # draws the figure of a model and a name, None for all

    def show(self, figure: str | None = None) -> Any:
        """Return a Plotly figure of the rounds so far by name, or all in a dict; else UserError."""
        if self.drawer is None:
            raise UserError("show: only a market that load() made knows its figures; use that")
        return self.drawer(self, figure)

    def __repr__(self: Any) -> str:
        cohorts = self.game.cohorts
        agents = sum(own.population for own in cohorts)
        title = f" {self.name}" if self.name else ""
        said = f"<MarketModel{title}: {agents:,} agents, round {self.played} of {self.rounds}"
        kept = itertools.product(range(len(cohorts)), ("decision_swap", "swap"))
        known = np.concatenate([self.measured(*which) for which in kept])
        known = known[~np.isnan(known)]
        if self.played and len(known):
            said += f", worst regret so far {max(known.max(), 0.0):.4f}"
        return f"{said}>"

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        game: Game,
        guarantees: Sequence[Guarantee],
        *,
        seed: int,
        rounds: int,
        tracker: Tracker | None = None,  # None where no cohort keeps its exploitability
        log_every: int = 1,  # rounds between two entries of the regret log
        log_agents: int | None = None,  # how many logs and windows follow; all by default
        windows: Sequence[Span] = (),  # first and last rounds (``market.logs.windows``)
        measures: Sequence[str] = (),  # registered names (``market.logs.user_columns``)
        namers: final_tables.Namers | None = None,  # by cohort: names an action of each agent
        called: Mapping[str, Sequence[str]] | None = None,  # by cohort: the same of all its agents
        traits: final_tables.Traits | None = None,  # by cohort: more columns of the agents table
    ) -> None:
        super().__init__(rng=seed)
        self.game = game
        self.guarantees = effective_guarantees(game, guarantees)
        self.rounds, self.tracker = rounds, tracker
        self.namers, self.called, self.traits = namers or {}, called or {}, traits or {}
        logged = logged_agents(game.cohorts, log_agents, seed=seed)
        spans = Windows(game.cohorts, logged, windows, self.guarantees) if windows else None
        self.journal = Journal(game, logged, log_every=log_every, windows=spans)
        self._changed: list[list[Any]] = []  # who was added or left: cohort, agent and round
        self._spare: dict[int, list[Trader]] = {}
        self._playing, self._replaced = False, False
        self.recipe: Recipe | None = None  # how a scenario makes branches
        self.fork: Fork | None = None  # where this one left its trunk
        self.bounds = BoundsLog(game.cohorts, self.guarantees, rounds=rounds)
        self._cache: dict[tuple[int, str], Array] = {}
        self.last: dict[int, tuple[Any, ...]] = {}  # actions, and counts, of a ``Decision``
        self._before = np.cumsum([0, *(len(cohort.row_of) for cohort in game.cohorts)])
        self._views: list[Trader] = []
        if self._before[-1] <= MOST_VIEWS:
            for index, cohort in enumerate(game.cohorts):
                self._views += [Trader(self, index, i) for i in range(len(cohort.row_of))]
        for first, cohort in numbered(game.cohorts):
            cohort.enter(self, first)
        self.own_measures = {name: register.measure[name] for name in measures}
        self.journal.watchers["measures"] = lambda _: user_columns.measures(self, self.own_measures)

    @property
    def played(self) -> int:
        """Rounds played so far."""
        return self.game.history.rounds

    def step(self) -> None:
        """Play one round and log it; UserError after the last one."""
        if self.played >= self.rounds:
            raise UserError(f"all {self.rounds} rounds are played; build a run of more rounds")
        self.conclude(self.begin())

    def begin(self) -> Round:
        """Let everybody decide in the next round."""
        with in_round(self.played):
            self._playing = True
            return decide(self.game, commit_and_draw(self.game, offer(self.game)))

    def conclude(self, begun: Round) -> Round:
        """Finish a round in which everybody has decided, log it, and return it."""
        with in_round(self.played):
            played = finish(self.game, begun)
            self._playing = False
            self.passed(played)
            if self.tracker is not None:
                self.tracker.add(played)
            self.journal.add(played)
            self.bounds.add(self.played)
            self.running = self.played < self.rounds
            if hasattr(self, "datacollector"):
                self.datacollector.collect(self)
        return played

    def passed(self, played: Round) -> None:
        """Let the agents' views be of this round, the last one, which may go unlogged."""
        self._cache.clear()
        own = present(self.game.cohorts, played)
        self.last = {place: (choice.actions, choice.counts) for place, _, choice, _ in own}

    def replace(self, **players: Any) -> None:
        """Replace the ``adversary``, the ``market``, or a forecaster under its block's name.

        Promises are cut (``market.game.roster``); it cannot be resumed. UserError if one misfits.
        """
        self.promise(roster.replace_players(self.game, self.guarantees, **players))
        self._replaced = True
        if {"adversary", "market"} & set(players):
            self.tracker = None
            self.journal.face()
        self._cache.clear()

    def branch(self, changes: Mapping[str, Any] | None = None, **players: Any) -> "MarketModel":
        """Return a second market with this one's past and random numbers, and something changed.

        ``changes`` are dotted keys of the scenario and ``agent.NUMBER``, ``players`` those of
        ``replace``; its logs begin here. UserError if no scenario built this market.
        """
        if self.recipe is None:
            raise UserError("no scenario built this market; branch one that load(...).build() made")
        return self.recipe(self, changes or {}, players)

    def keep_spare(self, cohort: int, count: int) -> None:
        """Keep the last agents of a cohort, who never enter by themselves, to be added."""
        last = int(self._before[cohort + 1])
        self._spare[cohort] = [self.view(number) for number in range(last - count + 1, last + 1)]
        for view in self._spare[cohort]:
            self.deregister_agent(view)

    def add(self, cohort: str, count: int = 1) -> list[Trader]:
        """Let so many more agents take part from now on, of those of ``build(spare=...)``."""
        names = [own.name for own in self.game.cohorts]
        spare = self._spare.get(names.index(cohort), []) if cohort in names else []
        if len(spare) < count:
            cure = f"keep it by build(spare={{'{cohort}': {count}}})"
            raise UserError(f"cohort.{cohort} has {len(spare)} spare agents to be added; {cure}")
        added = [self._admit(names.index(cohort), self.played) for _ in range(count)]
        self._cache.clear()
        return added

    def _admit(self, cohort: int, at: int) -> Trader:
        view = self._spare[cohort].pop(0)
        number, row = view.unique_id, int(self.game.cohorts[cohort].row_of[view.number])
        roster.admit(self.game, cohort, row, at=at)
        self._uncover(cohort, row)
        self.register_agent(view)
        view.unique_id = number  # some versions of Mesa would give it a new one
        self._changed.append(["added", cohort, view.number, at])
        return view

    def dismiss(self, cohort: int, agent: int, before: int | None = None) -> None:
        """End the stay of one agent of a cohort, after the round that is being played, if any."""
        before = self.played + self._playing if before is None else before
        self._uncover(cohort, roster.dismiss(self.game, cohort, agent, before=before))
        self._changed.append(["left", cohort, agent, before])

    def _uncover(self, cohort: int, row: int) -> None:
        promises, rows = list(self.guarantees), len(self.game.cohorts[cohort].ledger.count)
        promises[cohort] = roster.uncovered(promises[cohort], row, rows)
        self.promise(tuple(promises))

    def promise(self, guarantees: tuple[Guarantee, ...]) -> None:
        """Go on with other guarantees, one per cohort."""
        self.guarantees = guarantees
        self.bounds.guarantees = guarantees
        if self.journal.windows is not None:
            self.journal.windows.guarantees = guarantees

    def reset_rng(self, rng: Any = None) -> None:
        """Refuse: the streams of the game come of its root seed."""
        raise UserError("the game's streams come of its root seed; build(seed=...) another run")

    reset_randomizer = reset_rng  # the game draws nothing from Mesa's own generator

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or pickled: parts of a game hold one another's arrays."""
        raise UserError("a market is not copied; take branch()")

    def run(self, rounds: int | None = None, *, progress: Callable[[], Any] | None = None) -> None:
        """Play on until ``rounds``, or all, are played; ``progress`` is called after each."""
        last = self.rounds if rounds is None else rounds
        if not isinstance(last, int | np.integer) or last < 0:
            raise UserError(f"run({last!r}): give how many rounds shall have been played")
        while self.played < last:
            self.step()
            if progress is not None:
                progress()

    def last_actions(self, cohort: int) -> NDArray[np.intp]:
        """Return what a cohort's agents played last (N,); -1 where they were not there."""
        nothing = np.full(len(self.game.cohorts[cohort].row_of), -1)
        return read_only(self.last[cohort][0] if cohort in self.last else nothing)

    def measured(self, cohort: int, measure: str) -> Array:
        """Return a measure of a cohort's rows (K,); NaN where not kept, or not played yet."""
        key = cohort, measure
        if measure in tracker.MEASURES:
            return self.exploited(cohort)[measure]
        if key not in self._cache:
            ledger, awaited = self.game.cohorts[cohort].ledger, self.game.awaited(cohort)
            value = ledger.mean_loss() if measure == "mean_loss" else ledger.regret(measure)
            known = np.nan if value is None else value
            self._cache[key] = read_only(np.where(awaited, np.nan, known))
        return self._cache[key]

    def exploited(self, cohort: int) -> dict[str, Array]:
        """Return exploitability of a cohort's rows (K,) by column; NaN where none is followed."""
        if self.tracker is not None:
            return self.tracker.measured(cohort)
        unknown = np.full(len(self.game.cohorts[cohort].ledger.count), np.nan)
        return dict.fromkeys(tracker.COLUMNS, unknown)

    def column(self, cohort: int, name: str) -> Array:
        """Return what a cohort's own agents show of themselves (N,), read once per round."""
        key = cohort, f"column {name}"
        if key not in self._cache:
            self._cache[key] = read_only(self.game.cohorts[cohort].column(name))
        return self._cache[key]

    def account(self, number: int, count: int | None = None) -> Account | None:
        """Return what an agent, or ``count`` from it on, owns; None without accounts."""
        market = self.game.market
        if market is None or market.accounts is None:
            return None
        first = number - 1
        return market.accounts.of(first if count is None else slice(first, first + count))

    def view(self, number: int) -> Trader:
        """Return the view of an agent by its number; UserError beyond ``MOST_VIEWS`` agents."""
        if not self._views:
            raise UserError(f"single agents are seen among at most {MOST_VIEWS}; play fewer")
        return self._views[number - 1]

    def neighbours(self, number: int) -> list[Trader]:
        """Return views of the agents next to one in the network, by its number in the tables."""
        network = self.game.network
        beside: Any = () if network is None else network.neighbours[number - 1]
        return [self.view(int(place) + 1) for place in beside]

    def stream_logs_to(self, sink: Sink) -> None:
        """Hand full chunks of the logs to ``sink`` from now on instead of keeping them."""
        self.journal.sink = sink

    rounds_frame = _frame("rounds", "One row per round.")
    forecasts_frame = _frame("forecasts", "One row per atom of a round's mixture.")
    regret_frame = _frame("regret_log", "One row per agent and logged round.")
    accounts_frame = _frame("accounts", "One row per agent and logged round: what it owned.")
    trades_frame = _frame("trades", "One row per trade; empty without an order book.")
    quotes_frame = _frame("quotes", "One row per round and good: the best quotes of a book.")
    windows_frame = _frame("windows", "One row per agent and window that has ended.")
    states_frame = _frame("states", "One row per agent that shows columns and logged round.")
    measures_frame = _frame("measures", "One row per logged round and what a user's measure says.")

    def bounds_frame(self) -> pd.DataFrame:
        """One row per cohort and round of a few: the greatest regret beside its bounds."""
        return self.bounds.frame()

    def agents_frame(self) -> pd.DataFrame:
        """One row per agent: every measure so far."""
        exploited = [self.exploited(place) for place in range(len(self.game.cohorts))]
        parts = self.game, self.guarantees, exploited
        table = final_tables.agents_table(*parts, rounds=self.rounds)
        return self.journal.marked(final_tables.with_traits(table, self.traits))

    def edges_frame(self) -> pd.DataFrame:
        """One row per edge of the network; empty where there is none."""
        network = self.game.network
        return pd.DataFrame() if network is None else network.frame()

    def swaps_frame(self) -> pd.DataFrame:
        """One row per agent and action it played: where its regret comes from."""
        return final_tables.swaps_table(self.game, self.namers)

    def models_frame(self) -> pd.DataFrame:
        """One row per agent and model it could have followed; empty where there are none."""
        return alternatives.models_table(self.game)

    def verdict_frame(self) -> pd.DataFrame:
        """One row per cohort and alternative: who would have been better off with what."""
        return alternatives.verdict_table(alternatives.losses_of_cohorts(self.game))

    def scores_frame(self) -> pd.DataFrame:
        """One row per forecast of an outcome, and per action: errors, and calibration."""
        records = {block.name: block.record for block in self.game.blocks}
        outcomes = self.game.history.last(KEPT)
        return scores_table(records, outcomes, alternatives.losses_of_cohorts(self.game))

    def biases_frame(self) -> pd.DataFrame:
        """One row per event with at least one per cent of the rounds."""
        return final_tables.biases_table(self.game)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs; ValueError names a player that has no state."""
        if forgetful := self.game.forgetful():
            raise ValueError(f"{', '.join(forgetful)} cannot be resumed: no state() and restore()")
        if self._replaced:
            raise ValueError("players were replaced, which no file says: it cannot be resumed")
        players = self.game.players()
        return {
            "changed": [list(change) for change in self._changed],
            "players": {name: memory(who) for name, who in players.items()},
            "forecast_stream": generator_state(self.game.forecast_stream),
            "outcome_stream": generator_state(self.game.outcome_stream),
            "journal": self.journal.state(),
            "bounds": self.bounds.state(),
            "tracker": None if self.tracker is None else self.tracker.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name, who in self.game.players().items():
            who.restore(state["players"][name])
        for what, cohort, agent, at in state["changed"]:
            if what == "added":
                self._admit(cohort, at)
            else:
                self.dismiss(cohort, agent, at)
                self.deregister_agent(self.view(int(self._before[cohort]) + agent + 1))
        restore_generator(self.game.forecast_stream, state["forecast_stream"])
        restore_generator(self.game.outcome_stream, state["outcome_stream"])
        self.journal.restore(state["journal"])
        self.bounds.restore(state["bounds"])
        if self.tracker is not None:
            self.tracker.restore(state["tracker"])
        self._cache.clear()
        self.steps, self.running = self.played, self.played < self.rounds
