"""A viewer's market: built from a scenario, stepped by a thread of its own, changed from the page.

A session is locked while a round is played or its market is changed, and one market plays at a
time, whoever watches: kernels share threads and memory. What goes wrong in a round stops the market
and leaves a line for the page; a change that does not fit leaves the market as it was.

A new forecaster is the one that the scenario would have had under that name, at its beginning; it
knows nothing of the rounds before. A new adversary chooses outcomes in place of the old one, or of
the data, whose context goes on.

What is remembered is bounded: at most ``POINTS`` of the course of regret, losses and actions (when
they are full every other one goes, and from then on half as many rounds have one), the tables of
the last ``WINDOW`` rounds, and at every point each agent's loss and regret among ``PATHS`` agents.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from regretless.agents.adversaries import Confined
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Adversary
from regretless.market.game.seats import taken_actions
from regretless.market.logs import user_columns
from regretless.market.losses.outcome_spaces import Box
from regretless.market.model import MarketModel
from regretless.market.records import Context, History
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.assembly.world import make_adversary
from regretless.scenarios.config.files import catalogue, format_value
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.config.world import AdversarySpec
from regretless.scenarios.live.source import Saving, Source, numeric_keys

TURN = threading.Lock()
BURST = 0.03  # seconds that rounds are played for before others may look
AWAY = 120.0  # seconds after which a page that asks for nothing is taken to be closed
SPEEDS = (1, 2, 5, 10, 25, 50, 100, 0)  # rounds per second; 0 for as many as there can be
DATA = "data"  # in place of an adversary's name, where the data choose the outcomes


class Session:
    """A market and the thread that plays it; ``lock`` is to be held by whoever reads it.

    ``version`` counts builds, rounds and replacements, ``seen`` is when its page last asked.
    ``named`` is who plays, by role; ``forecasters`` and ``rivals`` are who can, under the names of
    the menus.
    """

    def __init__(self, source: Source, saving: Saving) -> None:
        self.saving = saving
        self._offered = {*catalogue(), source.name}
        self.lock = threading.RLock()
        self.fault, self.version, self.builds = "", 0, 0
        self.speed, self.playing, self.ended = 10, False, False
        self.seen = time.monotonic()
        self._going = threading.Event()
        self.restart(source)
        threading.Thread(target=self._work, name="market", daemon=True).start()

    def restart(self, source: Source) -> None:
        """Begin at round 0, with the players that a scenario names, unless it cannot be built."""
        with self.lock, TURN:
            scenario = source.scenario()
            spec, model = scenario.spec, scenario.build()
            model.tracker = None  # exploitability takes a program per agent every time it is read
            adversary = DATA if spec.adversary is None else spec.adversary.kind
            rivals = [adversary]
            for name in (name for name in register.adversary.names() if name != adversary):
                with suppress(UserError):  # it needs to be told more than the number of outcomes
                    _adversary(scenario, name, model.game.adversary.outcomes)
                    rivals.append(name)
            keys, watched = numeric_keys(spec, source.raw), Watched(model)
            self.source, self.scenario, self.model = source, scenario, model
            self.keys, self.watched, self.rivals = keys, watched, rivals
            columns = [] if spec.data is None else list(spec.data.forecasts)
            every = [spec.forecaster.kind, *KINDS, *columns, *register.forecaster.names()]
            self.forecasters = list(dict.fromkeys(every))
            self.named = {"forecaster": spec.forecaster.kind, "adversary": adversary}
            self.replaced, self.fault = list[tuple[int, str]](), ""
            self.builds += 1
            self.version += 1

    def _work(self) -> None:
        """Play rounds while the market is on, until the session ends."""
        due = time.monotonic()
        while self._going.wait() and not self.ended:
            started = time.monotonic()
            due = max(due, started - BURST)
            while self.playing and time.monotonic() < started + BURST:
                with self.lock:
                    if self.playing:  # nobody paused it just now
                        self.step()
                due += 1 / self.speed if self.speed else 0.0
                if self.speed and due > time.monotonic():
                    break
            time.sleep(max(due - time.monotonic(), 0.001) if self.speed else 0.001)
            if time.monotonic() - self.seen > AWAY:
                self.pause()

    def play(self, *, once: bool = False) -> None:
        """Let the rounds go on by themselves, or play one of a market that stands still."""
        with self.lock:
            if once:
                self.pause()
            if self.model.played >= self.model.rounds:
                left = f"all {self.model.rounds:,} rounds are played"
                raise UserError(f"{left}; restart, or raise rounds")
            self.playing, self.fault = not once, ""
            if once:
                self.step()
            else:
                self._going.set()

    def pause(self) -> None:
        """Let no further round begin."""
        with self.lock:
            self.playing = False
            self._going.clear()

    def step(self) -> None:
        """Play a round; what goes wrong in it stops the market, and stays as its fault."""
        with self.lock, TURN:
            number = self.model.played
            try:
                self.model.step()
                self.watched.note()
            except Exception as error:  # noqa: BLE001 - of any player, and the page must not die
                kind = f"round {number}: {type(error).__name__}: "
                kind = "" if isinstance(error, UserError) else kind
                self.fault = f"{kind}{str(error) or 'no reason given'}"
            self.version += 1
            if self.fault or self.model.played >= self.model.rounds:
                self.pause()

    def load(self, name: str) -> None:
        """Play another scenario of the catalogue, or the one it began with, from round 0 on."""
        if name not in self._offered:
            raise UserError(
                f"unknown scenario {format_value(name)}; {closest(name, self._offered)}"
            )
        with self.lock:
            self.restart(Source.of(name))
            self.pause()

    def set(self, name: str, value: float | None) -> None:
        """Give a numeric key, or the seed, another value, and begin again."""
        if value is None:
            raise UserError(f"{format_value(name)}: no value; give a number")
        with self.lock:
            if name not in {"seed", *(key.name for key in self.keys)}:
                raise UserError(
                    f"{format_value(name)} = {value!r}: no numeric key of this scenario"
                )
            number = int(value) if float(value).is_integer() else value
            self.restart(self.source.changed(name, number))

    def replace(self, role: str, name: str) -> None:
        """Replace the "forecaster" or the "adversary" of the market; UserError if none fits."""
        with self.lock, TURN:
            spec, players = self.scenario.spec, dict[str, Any]()
            if role == "forecaster":  # of every block
                if name != spec.forecaster.kind:
                    own = resolved(spec) | {"forecaster": {"kind": name}}
                    spec = validated(own, origin=Path())
                blocks = Scenario(spec).build().game.blocks
                players = {block.name: block.forecaster for block in blocks}
            elif role == "adversary":
                before = self.model.game.adversary
                first = before.before if isinstance(before, Dated) else before
                players = {role: first}
                if name != DATA or spec.adversary is not None:
                    chosen = _adversary(self.scenario, name, before.outcomes)
                    players = {role: Dated(chosen, first)}
            else:
                raise UserError(f"replace {format_value(role)}: choose forecaster or adversary")
            self.model.replace(**players)
            self.replaced.append((self.model.played, f"{role}: {name}"))
            self.named[role] = name
            self.fault = ""
            self.version += 1

    def promises(self) -> Iterator[str]:
        """Yield what each cohort is promised now, and why where something was taken back."""
        for cohort, promise in zip(self.model.game.cohorts, self.model.guarantees, strict=True):
            yield promise.note or f"{cohort.name}: {promise.summary(cohort)}"

    def end(self) -> None:
        """Stop the thread; nothing is played any more.

        The lock is not taken: a round of an agent that never answers would hold it for ever.
        """
        self.playing = False
        self.ended = True
        self._going.set()


class Dated(Confined):
    """An adversary who takes over, in the context of the one before."""

    REMEMBERED = ("before",)

    def __init__(self, adversary: Adversary, before: Adversary) -> None:
        ends = np.zeros(adversary.outcomes), np.ones(adversary.outcomes)
        super().__init__(adversary, Box(*ends))
        self.before = before

    def context(self, history: History) -> Context:
        """Return the context of the one before."""
        return self.before.context(history)


def _adversary(scenario: Scenario, name: str, outcomes: int) -> Adversary:
    own = scenario.spec.adversary
    if own is None or own.kind != name:
        own = AdversarySpec(kind=name, outcomes=outcomes)
    spec = scenario.spec.model_copy(update={"data": None, "adversary": own})
    return make_adversary(replace(scenario.resolved, spec=spec, table=None), spec.seed)


POINTS = 400
WINDOW = 1000
PATHS = 2000
NEVER = 2**62  # rounds between entries of the regret log, which nothing here reads
COURSE = ["cohort", "kind", "name", "mean_loss"]
TABLES = {
    "regret_curves": ["cohort", "round", "mean", "max", "count", "kept"],
    "course": ["cohort", "round", "kind", "name", "mean_loss"],
    "owned": ["cohort", "round", "which", "value"],
    "actions": ["cohort", "round", "which", "value"],
    "measures": ["round", "measure", "cohort", "agent", "value"],
}


class Point(NamedTuple):
    """The rows that a round adds to tables, and every agent's loss and leading regret (2, N).

    ``chosen`` is how often each cohort has chosen each action so far.
    """

    round: int
    rows: dict[str, list[tuple[Any, ...]]]
    chosen: list[Array]
    path: np.ndarray[Any, Any]


class Watched:
    """The course so far of a model, before its first round; ``note`` is called after every one."""

    def __init__(self, model: MarketModel) -> None:
        self.model, self.stride = model, 1
        self.points, self.window = list[Point](), dict[str, pd.DataFrame]()
        self._chosen = [np.zeros(cohort.loss.actions) for cohort in model.game.cohorts]
        model.journal.log_every = NEVER
        model.stream_logs_to(self._take)

    def _take(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Keep the last rounds of a part of the logs."""
        forecasts = chunk["forecasts"]
        parts = {"rounds": chunk["rounds"], "forecasts": forecasts[forecasts["drawn"]]}
        for name, part in parts.items():
            both = pd.concat([self.window[name], part]) if name in self.window else part
            self.window[name] = both[both["round"] >= self.model.played - WINDOW]

    def note(self) -> None:
        """Take note of the round that has just been played."""
        model = self.model
        for place, last in model.last.items():
            sums = self._chosen[place]
            sums += taken_actions(model.game.cohorts[place], *last).per_action(len(sums))
        if model.played % self.stride == 0 or model.played == model.rounds:
            self.points.append(self._point(model.played - 1))
        if len(self.points) == POINTS:
            self.points, self.stride = self.points[1::2], 2 * self.stride

    def _point(self, number: int) -> Point:
        model, curves, paths = self.model, [], []
        for place, cohort in enumerate(model.game.cohorts):
            kinds = ("mean_loss", "decision_swap", "swap")
            loss, decision, swap = (model.measured(place, m) for m in kinds)
            regret, row_of = np.where(np.isnan(decision), swap, decision), cohort.row_of
            known, count = ~np.isnan(regret)[row_of], int((~np.isnan(decision))[row_of].sum())
            ends = np.nan, np.nan
            if known.any():
                many = cohort.multiplicity_of(known)
                mean = np.average(regret[row_of][known], weights=many)
                ends = float(mean), np.nanmax(regret)
            curves.append((cohort.name, number, *ends, int(known.sum()), count))
            paths.append([loss[row_of], regret[row_of]])
        path = np.concatenate(paths, axis=1).astype(np.float32)

        market, owned = model.game.market, list[Any]()
        if market is not None and market.accounts is not None:
            for name, own in market.accounts.places.items():
                means = [market.accounts.cash[own].mean(), *market.accounts.goods[own].mean(0)]
                owned += [(name, number, which, mean) for which, mean in enumerate(means)]
        measures = pd.DataFrame(user_columns.measures(model, model.own_measures))
        verdict = model.verdict_frame().reindex(columns=COURSE)
        rows = {
            "regret_curves": curves,
            "course": [(who, number, *rest) for who, *rest in verdict.to_numpy()],
            "owned": owned,
            "measures": [(number, *row) for row in measures.itertuples(index=False, name=None)],
        }
        chosen = [counts.copy() for counts in self._chosen]
        return Point(number, rows, chosen, path[:, : path.shape[1] * (path.shape[1] <= PATHS)])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return what figures are drawn of, the tables of a run directory among it."""
        model, rows = self.model, {name: list[Any]() for name in TABLES}
        model.journal.flush()
        before = [np.zeros(cohort.loss.actions) for cohort in model.game.cohorts]
        for point in self.points:
            for name, own in point.rows.items():
                rows[name] += own
            for cohort, now, then in zip(model.game.cohorts, point.chosen, before, strict=True):
                pairs = enumerate(now - then)
                rows["actions"] += [(cohort.name, point.round, *pair) for pair in pairs]
            before = point.chosen
        made = {name: pd.DataFrame(rows[name], columns=TABLES[name]) for name in TABLES}
        made["regret_curves"] = made["regret_curves"].set_index(["cohort", "round"])
        closing = {
            "agents": model.agents_frame(),
            "verdict": model.verdict_frame(),
            "bounds": model.bounds_frame(),
        }
        return made | closing | {"edges": model.edges_frame()} | self.window

    def path(self, agent: int) -> pd.DataFrame:
        """Return loss and regret so far of an agent, a row per point; empty among too many."""
        points = [point for point in self.points if point.path.shape[1]]
        values = [point.path[:, agent - 1] for point in points]
        return pd.DataFrame(values, [point.round for point in points], columns=["loss", "regret"])
