"""What it costs to share the agents of a run out, and what that would be on many machines.

    python -m benchmarks.shares [AGENTS ...]

plays a crowd with distinct linear losses (8 actions, 4 goods, running mean, 200 agents logged) on
two workers of this machine, once for each number of agents, and prints a line for each:

    a share's milliseconds per round; the part of the time for which the slower share had nothing to
    play; bytes sent per round and share; the conductor's own processor time per round, and beside
    the rounds per agent (building, and putting the tables together)

Then it plays few agents in two and in six shares: what a task costs the conductor. A line is fitted
to the shares' times, and with it the last table says what a number of machines with a million
agents each would do: an estimate, not a measurement.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.run import Options, run
from regretless.scenarios.shards.conduct import BLOCK, Conductor
from regretless.scenarios.shards.crews import Heard, LocalCrew
from regretless.scenarios.shards.shard import Answer, Task
from regretless.scenarios.spec.scenario import validated

ROUNDS, EACH = 600, 1_000_000
CROWD: dict[str, Any] = {
    "name": "crowd",
    "seed": 3,
    "log_agents": 200,
    "adversary": {"kind": "drifting", "outcomes": 4},
    "forecaster": {"kind": "running-mean"},
}
COHORT = {
    "name": "crowd",
    "utility": "linear",
    "actions": 8,
    "measures": ["external", "swap", "decision_swap"],
}


@dataclass
class Clock:
    """What is measured of a run."""

    began: float = 0.0
    ended: float = 0.0
    tasks: int = 0
    bytes: int = 0
    busy: dict[int, float] = field(default_factory=lambda: defaultdict(float))


class Timed(LocalCrew):
    """Processes of which is noted for how long they play, and what they are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self._closing: set[int] = set()

    def give(self, task: Task) -> None:
        """Note what a task holds."""
        if task.blocks:
            self.clock.began = self.clock.began or time.perf_counter()
            self.clock.tasks += 1
            self.clock.bytes += len(pickle.dumps(task))
        super().give(task)

    def hear(self, patience: float) -> Iterator[Heard]:
        """Note how long a share has played."""
        for place, heard in super().hear(patience):
            if isinstance(heard, Answer) and heard.closing is None and self.clock.began:
                self.clock.busy[place] += heard.seconds
                self.clock.ended = time.perf_counter()
            yield place, heard


def play(agents: int, shares: int, rounds: int) -> tuple[Clock, float]:
    """Play a crowd in shares; return the clock and the conductor's processor time."""
    raw = CROWD | {"rounds": rounds, "cohort": [COHORT | {"count": agents}]}
    with tempfile.TemporaryDirectory() as folder:
        scenario, options = Scenario(validated(raw, origin=Path())), Options(Path(folder) / "run")
        crew, began = Timed(), time.process_time()
        try:
            run(scenario, options, player=Conductor(scenario, crew, options, shares))
        finally:
            crew.close()
        return crew.clock, time.process_time() - began


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(sizes: list[int]) -> None:
    """Measure and print."""
    play(200, 2, 200)  # compiles
    rows = []
    for agents in sizes:
        clock, spent = play(agents, 2, ROUNDS)
        _, start = play(agents, 2, 1)
        wall, slower = clock.ended - clock.began, max(clock.busy.values())
        own = (spent - start) / (ROUNDS - 1)
        rows.append((agents / 2, slower / ROUNDS, own, start / agents))
        say(
            f"{agents:,} agents: {slower / ROUNDS * 1e3:.2f} ms a round and share, idle "
            f"{1 - slower / wall:.1%}, {clock.bytes / ROUNDS / 2:.0f} bytes a round and share, "
            f"conductor {own * 1e3:.2f} ms a round and {start / agents * 1e6:.1f} us an agent"
        )
    (two, few), (six, many) = (play(1200, shares, 4 * ROUNDS) for shares in (2, 6))
    task = (many - few) / (six.tasks - two.tasks)
    slope, rest = np.polyfit([row[0] for row in rows], [row[1] for row in rows], 1)
    own, beside = min(row[2] for row in rows), rows[-1][3]
    say(
        f"a task takes {task * 1e3:.2f} ms of the conductor, a share's round {rest * 1e3:.2f} ms "
        f"and {slope * 1e9:.1f} ns an agent"
    )
    say("machines  agents  ms a round  conductor busy  once, minutes")
    for machines in (2, 16, 64, 256):
        played = rest + slope * EACH
        busy = own + machines * task / BLOCK
        each, once = max(played, busy), beside * machines * EACH / 60
        say(
            f"{machines:8d} {machines * EACH:11,d} {each * 1e3:8.1f} {busy / each:8.1%} {once:8.1f}"
        )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [50_000, 200_000, 600_000])
