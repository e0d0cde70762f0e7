"""A viewer's market: built from a scenario, stepped by a thread of its own, changed from the page.

A session is locked while a round is played or its market is changed. One market plays at a time,
whoever watches, since kernels share threads and memory (``PLAYING_LOCK``). What goes wrong in a
round stops the market and leaves a line for the page; a change that does not fit leaves the market
as it was.

A new forecaster is the one that the scenario would have had under that name, at its beginning; it
knows nothing of the rounds before. A new adversary chooses outcomes in place of the old one, or of
the data, whose context goes on.

What is remembered of the rounds that were played is bounded (``live.course``).
"""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regretless.agents.adversaries import Confined
from regretless.forecaster.models.auto_series import lacks_its_package
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Adversary
from regretless.market.losses.outcome_spaces import Box
from regretless.market.model import MarketModel
from regretless.market.records import Context, History
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.assembly.world import make_adversary
from regretless.scenarios.config.files import catalogue, format_value
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.config.world import AdversarySpec
from regretless.scenarios.live.course import CourseRecorder
from regretless.scenarios.live.numeric_keys import numeric_keys
from regretless.scenarios.live.saving import Saving
from regretless.scenarios.live.source import Source

PLAYING_LOCK = threading.Lock()
BURST_SECONDS = 0.03  # that rounds are played for before others may look
SHORTEST_SLEEP_SECONDS = 0.001  # between two bursts
ABANDONED_AFTER_SECONDS = 120.0  # a page that asks for nothing for so long is taken to be closed
AS_FAST_AS_POSSIBLE = 0  # among the speeds
SPEEDS = (1, 2, 5, 10, 25, 50, 100, AS_FAST_AS_POSSIBLE)  # rounds per second
DATA = "data"  # stands for an adversary's name where the data choose the outcomes


class Session:
    """A market and the thread that plays it; ``lock`` is to be held by whoever reads it.

    Attributes
    ----------
    source, scenario, model
        The file as it was changed on the page, what it says, and the market built from it.
    version, n_builds : int
        The first counts builds, rounds and replacements, the second builds alone.
    speed : int
        Rounds per second, one of ``SPEEDS``.
    playing : bool
        Whether rounds go on by themselves.
    fault : str
        Why the last round failed, in one line; nothing if it did not.
    players : dict
        The name of who plays, by role: ``forecaster`` and ``adversary``.
    forecasters, adversaries : list of str
        Who can play, under the names of the menus.
    replacements : list
        Before which round which player was replaced, in words.
    keys : list of Key
        The numeric keys that can be changed.
    last_asked : float
        When the page last asked for something, by the monotonic clock.
    """

    source: Source
    scenario: Scenario
    model: MarketModel

    def __init__(self, source: Source, saving: Saving) -> None:
        self.saving = saving
        self._offered_scenarios = {*catalogue(), source.name}
        self.lock = threading.RLock()
        self.fault = ""
        self.version = 0
        self.n_builds = 0
        self.speed = 10
        self.playing = False
        self._has_ended = False
        self.last_asked = time.monotonic()
        self._is_switched_on = threading.Event()
        self.restart(source)
        threading.Thread(target=self._play_rounds, name="market", daemon=True).start()

    def restart(self, source: Source) -> None:
        """Begin at round 0, with the players that a scenario names, unless it cannot be built."""
        with self.lock, PLAYING_LOCK:
            scenario = source.scenario()
            model = scenario.build()
            model.tracker = None  # exploitability takes a program per agent every time it is read
            adversaries = _possible_adversaries(scenario, model.game.adversary.outcomes)
            keys = numeric_keys(scenario.spec, source.raw)  # that a viewer may set
            recorder = CourseRecorder(model)
            # everything could be made: from here on nothing fails
            self.source = source
            self.scenario = scenario
            self.model = model
            self.keys = keys
            self.recorder = recorder
            self.adversaries = adversaries
            self.forecasters = _possible_forecasters(scenario.spec)
            self.players = {
                "forecaster": scenario.spec.forecaster.kind,
                "adversary": _adversary_name(scenario.spec),
            }
            self.replacements: list[tuple[int, str]] = []
            self.fault = ""
            self.n_builds += 1
            self.version += 1

    def _play_rounds(self) -> None:
        """Play rounds while the market is on, until the session ends; a thread does this."""
        next_round_due = time.monotonic()
        while self._is_switched_on.wait() and not self._has_ended:
            burst_start = time.monotonic()
            next_round_due = max(next_round_due, burst_start - BURST_SECONDS)
            while self.playing and time.monotonic() < burst_start + BURST_SECONDS:
                with self.lock:
                    if self.playing:  # nobody paused it just now
                        self.step()
                if self.speed != AS_FAST_AS_POSSIBLE:
                    next_round_due += 1 / self.speed
                    if next_round_due > time.monotonic():
                        break
            seconds_to_wait = SHORTEST_SLEEP_SECONDS
            if self.speed != AS_FAST_AS_POSSIBLE:
                seconds_to_wait = max(seconds_to_wait, next_round_due - time.monotonic())
            time.sleep(seconds_to_wait)
            if time.monotonic() - self.last_asked > ABANDONED_AFTER_SECONDS:
                self.pause()

    def play(self) -> None:
        """Let the rounds go on by themselves; UserError if none are left."""
        with self.lock:
            self._check_rounds_left()
            self.playing = True
            self.fault = ""
            self._is_switched_on.set()

    def play_one_round(self) -> None:
        """Stand still, and play one round; UserError if none is left."""
        with self.lock:
            self.pause()
            self._check_rounds_left()
            self.fault = ""
            self.step()

    def _check_rounds_left(self) -> None:
        if self.model.is_finished:
            raise UserError(self.describe_end())

    def describe_end(self) -> str:
        """Say why no round is left to play; nothing if some are."""
        model = self.model
        if not model.is_finished:
            return ""
        if model.played >= model.rounds:
            return f"all {model.rounds:,} rounds are played; restart, or raise rounds"
        plural = "s" if model.played > 1 else ""
        return (
            f"the stopping rule holds after {model.played:,} round{plural}; "
            "restart, or raise until.greedy_unchanged"
        )

    def pause(self) -> None:
        """Let no further round begin."""
        with self.lock:
            self.playing = False
            self._is_switched_on.clear()

    def step(self) -> None:
        """Play a round; what goes wrong in it stops the market, and stays as its fault."""
        with self.lock, PLAYING_LOCK:
            round_index = self.model.played
            try:
                self.model.step()
                self.recorder.record_round()
            except UserError as error:
                self.fault = str(error) or "no reason given"
            except Exception as error:  # noqa: BLE001 - of any player, and the page must not die
                reason = str(error) or "no reason given"
                self.fault = f"round {round_index}: {type(error).__name__}: {reason}"
            self.version += 1
            if self.fault or self.model.is_finished:
                self.pause()

    def load(self, name: str) -> None:
        """Play another scenario of the catalogue, or the one it began with, from round 0 on."""
        if name not in self._offered_scenarios:
            suggestion = closest(name, self._offered_scenarios)
            raise UserError(f"unknown scenario {format_value(name)}; {suggestion}")
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
            is_whole = float(value).is_integer()
            self.restart(self.source.changed(name, int(value) if is_whole else value))

    def replace(self, role: str, name: str) -> None:
        """Replace the "forecaster" or the "adversary" of the market; UserError if none fits."""
        with self.lock, PLAYING_LOCK:
            if role == "forecaster":
                new_players = self._forecasters_named(name)
            elif role == "adversary":
                new_players = {role: self._adversary_named(name)}
            else:
                raise UserError(f"replace {format_value(role)}: choose forecaster or adversary")
            self.model.replace(**new_players)
            self.replacements.append((self.model.played, f"{role}: {name}"))
            self.players[role] = name
            self.fault = ""
            self.version += 1

    def _forecasters_named(self, name: str) -> dict[str, Any]:
        """Return a new forecaster of each block, by the block's name."""
        spec = self.scenario.spec
        if name != spec.forecaster.kind:
            # Of the scenario's forecaster only the kind fits another one. Its paths are absolute by
            # now: there is no folder from which they count.
            spec = validated(resolved(spec) | {"forecaster": {"kind": name}}, origin=Path())
        blocks = Scenario(spec).build().game.blocks
        return {block.name: block.forecaster for block in blocks}

    def _adversary_named(self, name: str) -> Adversary:
        """Return a new adversary of this name, in the context of the market's first one."""
        current = self.model.game.adversary
        first = current.first if isinstance(current, Successor) else current
        if name == DATA and self.scenario.spec.adversary is None:
            return first
        return Successor(_make_adversary(self.scenario, name, current.outcomes), first)

    def promises(self) -> Iterator[str]:
        """Yield what each cohort is promised now, and why where something was taken back."""
        guarantees = self.model.guarantees
        for cohort, guarantee in zip(self.model.game.cohorts, guarantees, strict=True):
            summary = guarantee.summary(cohort)
            if summary != "none" or not guarantee.note:
                yield f"{cohort.name}: {summary}"
            if guarantee.note:
                yield guarantee.note

    def end(self) -> None:
        """Stop the thread; nothing is played any more.

        The lock is not taken: a round of an agent that never answers would hold it for ever.
        """
        self.playing = False
        self._has_ended = True
        self._is_switched_on.set()


class Successor(Confined):
    """An adversary who takes over from the market's ``first`` one, in whose context it plays."""

    REMEMBERED = ("first",)

    def __init__(self, adversary: Adversary, first: Adversary) -> None:
        lowest_outcome = np.zeros(adversary.outcomes)
        highest_outcome = np.ones(adversary.outcomes)
        super().__init__(adversary, Box(lowest_outcome, highest_outcome))
        self.first = first

    def context(self, history: History) -> Context:
        """Return the context of the market's first adversary."""
        return self.first.context(history)

    def context_for_tables(self) -> Context:
        """Return a context of the market's first adversary."""
        return self.first.context_for_tables()


def _adversary_name(spec: ScenarioSpec) -> str:
    """Return the kind of a scenario's adversary, or ``DATA`` where the data stand for one."""
    return DATA if spec.adversary is None else spec.adversary.kind


def _possible_adversaries(scenario: Scenario, n_outcomes: int) -> list[str]:
    """Return who can choose the outcomes of a scenario, its own adversary first."""
    own_adversary = _adversary_name(scenario.spec)
    names = [own_adversary]
    for name in register.adversary.names():
        if name == own_adversary:
            continue
        with suppress(UserError):  # it needs to be told more than the number of outcomes
            _make_adversary(scenario, name, n_outcomes)
            names.append(name)
    return names


def _possible_forecasters(spec: ScenarioSpec) -> list[str]:
    """Return who can forecast in a scenario, its own forecaster first, each once.

    Nobody at all can, if some cohort responds to a forecast.
    """
    all_learn = all(cohort.learns for cohort in spec.cohort)
    kinds = [kind for kind in KINDS if all_learn or kind != "none"]
    columns_with_forecasts = [] if spec.data is None else list(spec.data.forecasts)
    names = [
        spec.forecaster.kind,
        *kinds,
        *columns_with_forecasts,
        *[name for name in register.forecaster.names() if not lacks_its_package(name)],
    ]
    return list(dict.fromkeys(names))


def _make_adversary(scenario: Scenario, name: str, n_outcomes: int) -> Adversary:
    """Make an adversary by name, with the scenario's settings if it is the scenario's own."""
    adversary_spec = scenario.spec.adversary
    if adversary_spec is not None and adversary_spec.kind == name:
        return make_adversary(scenario.resolved, scenario.spec.seed)
    adversary_spec = AdversarySpec(kind=name, outcomes=n_outcomes)
    spec = scenario.spec.model_copy(update={"data": None, "adversary": adversary_spec})
    return make_adversary(replace(scenario.resolved, spec=spec, table=None), spec.seed)
