"""The Mesa model: one step is one round, and every agent is a thin view on its cohort's arrays.

``model.agents.select(...)``, ``model.agents.get("swap_regret")`` and ``mesa.DataCollector`` work
as on any model. The model's own logs do not go through them (see ``market.journal``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mesa
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from market import tables, transcript
from market.journal import Journal, Sink
from market.presence import present
from market.randomness import generator_state, restore_generator
from market.roles import Cohort, Resumable
from market.round import Game, play_round

Array = NDArray[np.float64]

MOST_VIEWS = 100_000  # beyond this a view is made when it is asked for


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What a cohort is promised.

    Parameters
    ----------
    label : str
        The theorem that applies, or ``none``.
    bound : callable or None
        Returns the theorem's bound on each row's decision swap regret so far (K,), for realised
        draws with probability 0.99; None without a theorem.
    note : str
        How the cohort is served, where that is worth saying.
    covers : bool array (K,) or None
        The rows to which label and bound apply; None for all of them.
    """

    label: str = "none"
    bound: Callable[[], Array] | None = None
    note: str = ""
    covers: NDArray[np.bool_] | None = None

    def labels(self, row_of: NDArray[np.intp]) -> NDArray[np.object_]:
        """Return each agent's label (N,), for agents in these rows."""
        own = np.full(len(row_of), self.label, dtype=object)
        if self.covers is not None:
            own[~self.covers[row_of]] = "none"
        return own

    def told(self, row_of: NDArray[np.intp]) -> str:
        """Sum the labels up: one where all agents agree, else how many of them it covers."""
        covered = int((self.labels(row_of) == self.label).sum())
        if covered == len(row_of):
            return self.label
        return f"{self.label} for {covered} of {len(row_of)}" if covered else "none"


def unpromised(cohorts: Sequence[Cohort]) -> tuple[Guarantee, ...]:
    """Return what cohorts are promised against an adversary that sees the draw: nothing."""
    why = "no promise, since the adversary sees the drawn forecast before it commits"
    return tuple(Guarantee(note=f"{cohort.name}: {why}") for cohort in cohorts)


class Trader(mesa.Agent):  # type: ignore[misc]
    """A view on one agent: its cohort and its number within it.

    Until an agent that joins late has played, its measures are NaN and its action is -1.
    """

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
        """The action played in the last round; -1 before the agent's first."""
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

    def _read(self, measure: str) -> float:
        return float(self.model.measured(self._cohort, measure)[self._mine.row_of[self.number]])


class MarketModel(mesa.Model):  # type: ignore[misc]
    """A market in which one forecast serves every agent.

    Parameters
    ----------
    game : Game
        The players.
    guarantees : sequence of Guarantee
        One per cohort; void where the adversary sees the draw.
    seed : int
        Root seed, for Mesa's own generator; the game has streams of its own.
    rounds : int
        How many rounds ``run`` plays in all.
    log_every : int
        Rounds between two entries of the regret log.
    """

    def __init__(
        self,
        game: Game,
        guarantees: Sequence[Guarantee],
        *,
        seed: int,
        rounds: int,
        log_every: int = 1,
    ) -> None:
        super().__init__(rng=seed)
        self.game = game
        broken = game.breaks_the_rule
        self.guarantees = unpromised(game.cohorts) if broken else tuple(guarantees)
        self.rounds = rounds
        names = [block.name for block in game.blocks]
        payoff = getattr(game.adversary, "payoff", None)
        self.journal = Journal(game.cohorts, names, log_every=log_every, payoff=payoff)
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
        """Play one round and log it."""
        played = play_round(self.game)
        self._cache.clear()
        self._last = {c: choice.actions for c, _, choice, _ in present(self.game.cohorts, played)}
        self.journal.add(played)

    def run(self, rounds: int | None = None, *, progress: Callable[[], Any] | None = None) -> None:
        """Play on until ``rounds`` (by default the model's own number) have been played.

        Parameters
        ----------
        rounds : int, optional
        progress : callable, optional
            Called after every round.
        """
        while self.played < (self.rounds if rounds is None else rounds):
            self.step()
            if progress is not None:
                progress()

    def last_actions(self, cohort: int) -> NDArray[np.intp]:
        """Return what a cohort's agents played last (N,); -1 before they have played."""
        if cohort not in self._last:
            return np.full(len(self.game.cohorts[cohort].row_of), -1)
        return self._last[cohort]

    def measured(self, cohort: int, measure: str) -> Array:
        """Return a measure of a cohort's rows (K,), computed once per round.

        NaN where it is not kept, and for a cohort that joins late until it has played.
        """
        key = cohort, measure
        if measure in transcript.MEASURES:
            return tables.exploited(self.game, cohort)[measure]
        if key not in self._cache:
            ledger = self.game.cohorts[cohort].ledger
            value = ledger.mean_loss() if measure == "mean_loss" else ledger.regret(measure)
            if self.game.awaited(cohort):
                value = None
            self._cache[key] = np.full(len(ledger.count), np.nan) if value is None else value
        return self._cache[key]

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

    def agents_frame(self) -> pd.DataFrame:
        """One row per agent: every measure so far."""
        return tables.agents_table(self.game, self.guarantees)

    def swaps_frame(self) -> pd.DataFrame:
        """One row per agent and action it played: where its regret comes from."""
        return tables.swaps_table(self.game)

    def biases_frame(self) -> pd.DataFrame:
        """One row per event with at least one per cent of the rounds."""
        return tables.biases_table(self.game)

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
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name, who in self.game.players().items():
            if isinstance(who, Resumable):
                who.restore(state["players"][name])
        restore_generator(self.game.forecast_stream, state["forecast_stream"])
        restore_generator(self.game.outcome_stream, state["outcome_stream"])
        self._cache.clear()
        self.steps = self.played
