"""A viewer's market: built from a scenario, stepped by a thread of its own, changed from the page.

A session is locked while a round is played or its market is changed, and one market plays at a
time, whoever watches: kernels share threads and memory. What goes wrong in a round stops the market
and leaves a line for the page; a change that does not fit leaves the market as it was.

**Other players.** A new forecaster is the one that the scenario would have had under that name, at
its beginning; it knows nothing of the rounds before. A new adversary chooses outcomes in place of
the old one, or of the data, whose context goes on: what everybody sees before a round, such as the
month, and what the models' forecasts were, still comes from there.
"""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from regretless.agents.adversaries import Confined
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Adversary
from regretless.market.losses.outcome_spaces import Box
from regretless.market.model import MarketModel
from regretless.market.records import Context, History
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.assembly.world import make_adversary
from regretless.scenarios.config.files import catalogue, shown
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.scenario import resolved, validated
from regretless.scenarios.config.world import AdversarySpec
from regretless.scenarios.live.source import Key, Saving, Source, numeric_keys
from regretless.scenarios.live.watched import Watched

TURN = threading.Lock()
BURST = 0.03  # seconds that rounds are played for before others may look
AWAY = 120.0  # seconds after which a page that asks for nothing is taken to be closed
SPEEDS = (1, 2, 5, 10, 25, 50, 100, 0)  # rounds per second; 0 for as many as there can be


class Session:
    """A market and the thread that plays it; ``lock`` is to be held by whoever reads it.

    ``fault`` says why the market stopped, ``replaced`` who was replaced before which round,
    ``named`` who plays now, by role;
    ``version`` counts builds, rounds and replacements, ``seen`` is when its page last asked.
    """

    def __init__(self, source: Source, saving: Saving) -> None:
        self.saving = saving
        self._offered = {*catalogue(), source.name}
        self.lock = threading.RLock()
        self.fault, self.version, self.builds = "", 0, 0
        self.speed, self.playing, self.ended = 10, False, False
        self.seen = time.monotonic()
        self._going = threading.Event()
        self._build(source)
        threading.Thread(target=self._work, name="market", daemon=True).start()

    def _build(self, source: Source) -> None:
        """Build a market from round 0; nothing changes if it cannot be built."""
        with TURN:
            scenario = source.scenario()
            model = scenario.build()
            model.tracker = None  # exploitability takes a program per agent every time it is read
            rivals = adversaries(scenario, model.game.adversary.outcomes)
            watched = Watched(model)
        self.source, self.scenario, self.model, self.watched = source, scenario, model, watched
        self.keys: list[Key] = numeric_keys(scenario.spec, source.raw)
        self.rivals, self.replaced, self.fault = rivals, list[tuple[int, str]](), ""
        self.named = playing_now(scenario)
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

    def play(self) -> None:
        """Let the rounds go on by themselves; UserError where none is left."""
        with self.lock:
            self._check_left()
            self.playing, self.fault = True, ""
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

    def step_once(self) -> None:
        """Play one round of a market that stands still; UserError where none is left."""
        with self.lock:
            self.pause()
            self._check_left()
            self.fault = ""
            self.step()

    def _check_left(self) -> None:
        if self.model.played >= self.model.rounds:
            raise UserError(
                f"all {self.model.rounds:,} rounds are played; restart, or raise rounds"
            )

    def restart(self) -> None:
        """Begin again from round 0, with the players that the scenario names."""
        with self.lock:
            self._build(self.source)

    def load(self, name: str) -> None:
        """Play another scenario of the catalogue, or the one it began with, from round 0 on.

        UserError if it is none of these or cannot be built.
        """
        if name not in self._offered:
            raise UserError(f"unknown scenario {shown(name)}; {closest(name, self._offered)}")
        with self.lock:
            self._build(Source.of(name))
            self.pause()

    def set(self, name: str, value: float) -> None:
        """Give a numeric key, or the seed, another value, and begin again.

        UserError if there is no such key, or the scenario cannot be built with the value.
        """
        with self.lock:
            if name not in {"seed", *(key.name for key in self.keys)}:
                raise UserError(f"{shown(name)} = {value!r}: no numeric key of this scenario")
            number = int(value) if float(value).is_integer() else value
            self._build(self.source.changed(name, number))

    def replace(self, role: str, name: str) -> None:
        """Replace the "forecaster" or the "adversary" of the market that is being played.

        UserError if there is none of that name or it does not fit.
        """
        if role not in REPLACERS:
            raise UserError(f"replace {shown(role)}: choose {' or '.join(REPLACERS)}")
        with self.lock, TURN:
            REPLACERS[role](self.model, self.scenario, name)
            self.replaced.append((self.model.played, f"{role}: {name}"))
            self.named[role] = name
            self.fault = ""
            self.version += 1

    def promises(self) -> Iterator[str]:
        """Yield what each cohort is promised now, and why where something was taken back."""
        for cohort, promise in zip(self.model.game.cohorts, self.model.guarantees, strict=True):
            yield promise.note or f"{cohort.name}: {promise.summary(cohort)}"

    def end(self) -> None:
        """Stop the thread; nothing is played any more."""
        self.pause()
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


DATA = "data"  # in place of an adversary's name, where the data choose the outcomes


def playing_now(scenario: Scenario) -> dict[str, str]:
    """Return who plays in a scenario as it stands, by role, under the names of the menus."""
    own = scenario.spec.adversary
    adversary = DATA if own is None else own.kind
    return {"forecaster": scenario.spec.forecaster.kind, "adversary": adversary}


def adversaries(scenario: Scenario, outcomes: int) -> list[str]:
    """Return who plays, and the adversaries who need to be told but the number of outcomes."""
    known = [playing_now(scenario)["adversary"]]
    for name in register.adversary.names():
        if name in known:
            continue
        try:
            _adversary(scenario, name, outcomes)
        except UserError:
            continue
        known.append(name)
    return known


def _adversary(scenario: Scenario, name: str, outcomes: int) -> Adversary:
    table: dict[str, Any] = {"kind": name, "outcomes": outcomes}
    own = scenario.spec.adversary
    given = AdversarySpec(**table) if own is None or own.kind != name else own
    spec = scenario.spec.model_copy(update={"data": None, "adversary": given})
    return make_adversary(spec, spec.seed, game=scenario.game)


def forecasters(scenario: Scenario) -> list[str]:
    """Return the names of the scenario's own forecaster and of those that take its place."""
    data = scenario.spec.data
    columns = [] if data is None else list(data.forecasts)
    every = [playing_now(scenario)["forecaster"], *KINDS, *columns, *register.forecaster.names()]
    return list(dict.fromkeys(every))


def replace_adversary(model: MarketModel, scenario: Scenario, name: str) -> None:
    """Let another adversary choose the outcomes; UserError if it does not fit."""
    before = model.game.adversary
    first = before.before if isinstance(before, Dated) else before
    if name == DATA and scenario.spec.adversary is None:
        model.replace(adversary=first)
        return
    chosen = _adversary(scenario, name, model.game.adversary.outcomes)
    model.replace(adversary=Dated(chosen, first))


def replace_forecaster(model: MarketModel, scenario: Scenario, name: str) -> None:
    """Let another forecaster make every block; UserError if it does not fit."""
    spec = scenario.spec
    if name != spec.forecaster.kind:
        spec = validated(resolved(spec) | {"forecaster": {"kind": name}}, origin=Path())
    other = Scenario(spec).build()
    model.replace(**{block.name: block.forecaster for block in other.game.blocks})


REPLACERS: dict[str, Callable[[MarketModel, Scenario, str], None]] = {
    "forecaster": replace_forecaster,
    "adversary": replace_adversary,
}
