"""The Mesa model: one step is one round, and every agent is a thin view on its cohort's arrays.

``model.agents.select(...)``, ``model.agents.get("swap_regret")`` and ``mesa.DataCollector`` work
as on any model: one that is given to the model as its ``datacollector`` collects after every round,
as ``mesa.batch_run`` expects. The model's own logs do not go through them (see
``market.logs.journal``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import mesa
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import generator_state, restore_generator
from regretless.market.exploitability import tracker
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game.guarantees import Guarantee, unpromised
from regretless.market.game.presence import present
from regretless.market.game.protocols import Cohort, Resumable
from regretless.market.game.round import Game, play_round
from regretless.market.logs import closing_tables, verdict
from regretless.market.logs.bounds import BoundsLog
from regretless.market.logs.journal import Journal, Sink
from regretless.market.logs.sample import logged_agents
from regretless.market.logs.windows import Span, Windows

Array = NDArray[np.float64]

__all__ = ["Guarantee", "MarketModel", "Trader"]

MOST_VIEWS = 100_000  # beyond this a view is made when it is asked for


class _Numbers(WeakKeyDictionary["MarketModel", Iterator[int]]):
    """From a model to its agents' next number; Mesa's own table keeps every model for ever."""

    def __getitem__(self, model: MarketModel) -> Iterator[int]:
        return self.setdefault(model, itertools.count(1))


class Trader(mesa.Agent):  # type: ignore[misc]
    """A view on one agent: its cohort and its number within it.

    Its action is -1 while it is not there, and its measures are NaN until it has played.
    """

    _ids = _Numbers()

    def __init__(self, model: MarketModel, cohort: int, number: int) -> None:
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
    def action(self) -> int:
        """The action played in the last round; -1 where the agent was absent."""
        return int(self.model.last_actions(self._cohort)[self.number])

    @property
    def mean_loss(self) -> float:
        """Loss per round so far, in [0, 1]."""
        return self._read("mean_loss")

    @property
    def external_regret(self) -> float:
        """External regret per round so far."""
        return self._read("external")

    @property
    def swap_regret(self) -> float:
        """Swap regret per round so far."""
        return self._read("swap")

    @property
    def omniprediction_regret(self) -> float:
        """Omniprediction regret per round so far."""
        return self._read("omniprediction")

    @property
    def decision_swap_regret(self) -> float:
        """Decision swap regret per round so far."""
        return self._read("decision_swap")

    @property
    def contextual_swap_regret(self) -> float:
        """Contextual swap regret per round so far; NaN where it is not kept."""
        return self._read("contextual_swap")

    @property
    def exploitability(self) -> float:
        """Exploitability so far; NaN where it is not kept or not sampled."""
        return self._read("exploitability")

    @property
    def _mine(self) -> Cohort:
        cohort: Cohort = self.model.game.cohorts[self._cohort]
        return cohort

    def remove(self) -> None:
        """Refuse: agents come and go as the scenario says."""
        raise UserError(
            f"agent {self.unique_id} stays; who leaves is said by leaves and exit_rate of a cohort"
        )

    def _read(self, measure: str) -> float:
        return float(self.model.measured(self._cohort, measure)[self._mine.row_of[self.number]])


class MarketModel(mesa.Model):  # type: ignore[misc]
    """A market in which one forecast serves every agent.

    Parameters
    ----------
    game : Game
        The players.
    guarantees : sequence of Guarantee
        One per cohort; void where the draw has a say in the outcome (``Game.flaw``).
    seed : int
        Root seed, for Mesa's own generator; the game has streams of its own.
    rounds : int
        How many rounds ``run`` plays in all.
    tracker : Tracker or None
        Follows what can be taken from the agents; None where no cohort keeps its exploitability.
    log_every : int
        Rounds between two entries of the regret log.
    log_agents : int, optional
        Size of the sample of agents that logs and windows follow; all by default.
    windows : sequence of (int, int)
        First and last round of every window over which regret is taken (``market.logs.windows``).
    """

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        game: Game,
        guarantees: Sequence[Guarantee],
        *,
        seed: int,
        rounds: int,
        tracker: Tracker | None = None,
        log_every: int = 1,
        log_agents: int | None = None,
        windows: Sequence[Span] = (),
    ) -> None:
        super().__init__(rng=seed)
        self.game = game
        flaw = game.flaw
        self.guarantees = unpromised(game.cohorts, flaw) if flaw else tuple(guarantees)
        self.rounds, self.tracker = rounds, tracker
        names = [block.name for block in game.blocks]
        payoff = getattr(game.adversary, "payoff", None)
        logged = logged_agents(game.cohorts, log_agents, seed=seed)
        self.journal = Journal(
            game.cohorts,
            names,
            log_every=log_every,
            payoff=payoff,
            market=game.market,
            logged=logged,
            windows=Windows(game.cohorts, logged, windows, self.guarantees) if windows else None,
        )
        self.bounds = BoundsLog(game.cohorts, self.guarantees, rounds=rounds)
        self._cache: dict[tuple[int, str], Array] = {}
        self._last: dict[int, NDArray[np.intp]] = {}
        if sum(len(cohort.row_of) for cohort in game.cohorts) <= MOST_VIEWS:
            for index, cohort in enumerate(game.cohorts):
                for number in range(len(cohort.row_of)):
                    Trader(self, index, number)

    @property
    def played(self) -> int:
        """Rounds played so far."""
        return self.game.history.rounds

    def step(self) -> None:
        """Play one round and log it; UserError after the last one."""
        if self.played >= self.rounds:
            raise UserError(f"all {self.rounds} rounds are played; build a run of more rounds")
        played = play_round(self.game)
        self._cache.clear()
        self._last = {c: choice.actions for c, _, choice, _ in present(self.game.cohorts, played)}
        if self.tracker is not None:
            self.tracker.add(played)
        self.journal.add(played)
        self.bounds.add(self.played)
        self.running = self.played < self.rounds
        if hasattr(self, "datacollector"):
            self.datacollector.collect(self)

    def reset_rng(self, rng: Any = None) -> None:
        """Refuse: the streams of the game come of its root seed."""
        raise UserError("the game's streams come of its root seed; build(seed=...) another run")

    def run(self, rounds: int | None = None, *, progress: Callable[[], Any] | None = None) -> None:
        """Play on until ``rounds`` (by default the model's own number) have been played.

        Parameters
        ----------
        progress : callable, optional
            Called after every round.
        """
        while self.played < (self.rounds if rounds is None else rounds):
            self.step()
            if progress is not None:
                progress()

    def last_actions(self, cohort: int) -> NDArray[np.intp]:
        """Return what a cohort's agents played last (N,); -1 where they were not there."""
        if cohort not in self._last:
            return np.full(len(self.game.cohorts[cohort].row_of), -1)
        return self._last[cohort]

    def measured(self, cohort: int, measure: str) -> Array:
        """Return a measure of a cohort's rows (K,), computed once per round.

        NaN where it is not kept, and for rows that come late until they have played.
        """
        key = cohort, measure
        if measure in tracker.MEASURES:
            return self.exploited(cohort)[measure]
        if key not in self._cache:
            ledger = self.game.cohorts[cohort].ledger
            value = ledger.mean_loss() if measure == "mean_loss" else ledger.regret(measure)
            awaited = self.game.awaited(cohort)
            if value is not None and awaited.any():
                value = np.where(awaited, np.nan, value)
            self._cache[key] = np.full(len(ledger.count), np.nan) if value is None else value
        return self._cache[key]

    def exploited(self, cohort: int) -> dict[str, Array]:
        """Return exploitability of a cohort's rows (K,) by column; NaN where none is followed."""
        if self.tracker is None:
            unknown = np.full(len(self.game.cohorts[cohort].ledger.count), np.nan)
            return dict.fromkeys(tracker.COLUMNS, unknown)
        return self.tracker.measured(cohort)

    def stream_logs_to(self, sink: Sink) -> None:
        """Hand full chunks of the logs to ``sink`` from now on instead of keeping them."""
        self.journal.sink = sink

    def rounds_frame(self) -> pd.DataFrame:
        """One row per round."""
        return self.journal.frame("rounds")

    def forecasts_frame(self) -> pd.DataFrame:
        """One row per atom of a round's mixture."""
        return self.journal.frame("forecasts")

    def regret_frame(self) -> pd.DataFrame:
        """One row per agent and logged round."""
        return self.journal.frame("regret_log")

    def windows_frame(self) -> pd.DataFrame:
        """One row per agent and window that has ended."""
        return self.journal.frame("windows")

    def bounds_frame(self) -> pd.DataFrame:
        """One row per cohort and round of a few: the greatest regret beside its bounds."""
        return self.bounds.frame()

    def agents_frame(self) -> pd.DataFrame:
        """One row per agent: every measure so far."""
        exploited = [self.exploited(place) for place in range(len(self.game.cohorts))]
        table = closing_tables.agents_table(
            self.game, self.guarantees, exploited, rounds=self.rounds
        )
        return self.journal.marked(table)

    def edges_frame(self) -> pd.DataFrame:
        """One row per edge of the network; empty where there is none."""
        network = self.game.network
        return pd.DataFrame() if network is None else network.frame()

    def swaps_frame(self) -> pd.DataFrame:
        """One row per agent and action it played: where its regret comes from."""
        return closing_tables.swaps_table(self.game)

    def models_frame(self) -> pd.DataFrame:
        """One row per agent and model it could have followed; empty where there are none."""
        return verdict.models_table(self.game)

    def verdict_frame(self) -> pd.DataFrame:
        """One row per cohort and alternative: who would have been better off with what."""
        return verdict.verdict_table(self.game)

    def biases_frame(self) -> pd.DataFrame:
        """One row per event with at least one per cent of the rounds."""
        return closing_tables.biases_table(self.game)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs; ValueError names a player that has no state."""
        forgetful = self.game.forgetful()
        if forgetful:
            raise ValueError(f"{', '.join(forgetful)} cannot be resumed: no state() and restore()")
        players = self.game.players()
        return {
            "players": {n: who.state() for n, who in players.items() if isinstance(who, Resumable)},
            "forecast_stream": generator_state(self.game.forecast_stream),
            "outcome_stream": generator_state(self.game.outcome_stream),
            "journal": self.journal.state(),
            "bounds": self.bounds.state(),
            "tracker": None if self.tracker is None else self.tracker.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name, who in self.game.players().items():
            if isinstance(who, Resumable):
                who.restore(state["players"][name])
        restore_generator(self.game.forecast_stream, state["forecast_stream"])
        restore_generator(self.game.outcome_stream, state["outcome_stream"])
        self.journal.restore(state["journal"])
        self.bounds.restore(state["bounds"])
        if self.tracker is not None:
            self.tracker.restore(state["tracker"])
        self._cache.clear()
        self.steps, self.running = self.played, self.played < self.rounds
