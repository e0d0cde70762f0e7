"""Training: a search tries plans against a cohort, run after run, and its best one is judged.

Searches are in ``agents.adversaries.learned``.

All plans of a generation meet one seed, another generation another. The best plan is judged in
``JUDGED`` runs with seeds that no training run has. What was found is a lower bound on what an
attacker can take from the cohort; a theorem on its swap regret, where one applies, gives an upper
one (``market.exploitability.commitment``).

The state of the search is kept in the output directory every few seconds, so that training resumes,
to the same bytes.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from regretless.agents.adversaries.learned import SEARCHES, Search
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor import Executor, mapper
from regretless.scenarios.run import interrupts_between_rounds
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training.attack import Attack, Rehearsals, attacks, written
from regretless.scenarios.training.results import (
    COLUMNS,
    CURVE,
    TABLE,
    TrainingDirectory,
    file_of,
)

JUDGED = 20  # runs
HALF = 2**31  # seeds below are trained on, those above judge
PAUSE = 2.0  # seconds between two checkpoints


@dataclass(frozen=True)
class Order:
    """The options of ``regretless train``; ``budget`` counts runs per cohort."""

    algorithm: str
    budget: int
    phases: int = 8
    looking: bool = False
    cohort: str | None = None
    jobs: int | None = None
    imports: tuple[str, ...] = ()


class Training(Checkpointable):
    """What was tried against one cohort so far: seeds (n,) and what plans were paid (n, G)."""

    REMEMBERED = ("search", "seeds", "paid")

    def __init__(self, attack: Attack, search: Search) -> None:
        self.attack, self.search = attack, search
        self.seeds, self.paid = np.zeros(0, dtype=np.int64), np.zeros((0, search.generation))

    def step(self, rehearsals: Rehearsals, seed: int) -> None:
        """Try a generation, at a seed of its own that comes of the root seed, and learn."""
        own = stream(seed, "train", self.attack.cohort, str(len(self.seeds))).integers(HALF)
        paid = rehearsals.paid(self.search.propose(), int(own))
        self.search.feedback(paid)
        self.seeds, self.paid = np.append(self.seeds, own), np.vstack([self.paid, paid])

    @property
    def plan(self) -> Array:
        """The best plan (P, S, m), as its file has it."""
        return written(self.search.best())

    def judged(self, workers: Executor, seed: int) -> dict[str, Any]:
        """Return a row of the table: means over runs of the best plan at other seeds."""
        seeds = HALF + stream(seed, "judge", self.attack.cohort).integers(HALF, size=JUDGED)
        rehearsals = Rehearsals(self.attack, workers)
        scores = pd.DataFrame(rehearsals.scores(self.plan, seeds.tolist()))
        found = scores.mean().to_dict() | {"cohort": self.attack.cohort}
        found["surplus"], found["low"], found["high"] = interval(scores["surplus"].to_numpy())
        found["gap"] = found["certified"] - found["surplus"]
        return {name: found[name] for name in COLUMNS}

    def curve(self) -> pd.DataFrame:
        """Return a row per run: generation, run, seed, and what the leader was paid per round."""
        (count, size), runs = self.paid.shape, np.arange(self.paid.size)
        found: dict[str, Any] = {"generation": np.repeat(np.arange(count), size), "run": runs}
        found |= {"seed": np.repeat(self.seeds, size), "paid": self.paid.ravel()}
        return pd.DataFrame({"cohort": self.attack.cohort} | found)


def train(
    scenario: Scenario,
    order: Order,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], Any] = lambda _: None,
    warn: Callable[[str], Any] = lambda _: None,
) -> pd.DataFrame:
    """Train attackers of a scenario's cohorts, and write what they learned.

    ``progress`` is called with the number of runs played, ``warn`` with each of the scenario's
    warnings. Returns frame: a row per cohort (``results.COLUMNS``). UserError if nobody can be
    trained, or the folder cannot be used; KeyboardInterrupt after the state has been written.
    """
    found, seed, given = prepared(scenario, order), scenario.spec.seed, asdict(order)
    about = {"config": json.loads(found[0].attack.config), **given, "jobs": None}
    directory = TrainingDirectory(out, about, [one.attack.cohort for one in found])
    claimed = directory.claimed(resume=resume, overwrite=overwrite)
    with claimed as goes_on, mapper(order.jobs, warn) as workers:
        for line in found[0].attack.warnings:
            warn(line)
        if not (goes_on and directory.restore(found)):
            directory.start()
        saved = time.monotonic()
        try:
            with interrupts_between_rounds() as stopped:
                for place, one in enumerate(found):
                    rehearsals = Rehearsals(one.attack, workers)
                    while one.paid.size + one.search.generation <= order.budget:
                        one.step(rehearsals, seed)
                        progress(place * order.budget + one.paid.size)
                        if stopped.is_set() or time.monotonic() - saved > PAUSE:
                            directory.save(found)
                            saved = time.monotonic()
                        if stopped.is_set():
                            raise KeyboardInterrupt  # noqa: TRY301 - as Ctrl-C itself
            directory.save(found)
            table = pd.DataFrame([one.judged(workers, seed) for one in found])
            results = {
                file_of(one.attack.cohort): tomli_w.dumps(one.attack.file(one.plan))
                for one in found
            }
            curves = pd.concat([one.curve() for one in found], ignore_index=True)
            for name, rows in ((CURVE, curves), (TABLE, table)):
                results[name] = rows.to_csv(index=False, lineterminator="\n")
            directory.finish(results)
        except BaseException:
            directory.abandon()
            raise
    return table


def prepared(scenario: Scenario, order: Order) -> list[Training]:
    """Return what is to be trained; UserError if the order or the scenario does not fit."""
    if order.algorithm not in SEARCHES:
        cure = closest(order.algorithm, SEARCHES)
        raise UserError(f"--algorithm '{order.algorithm}' is unknown; {cure}")
    search: Any = SEARCHES[order.algorithm]
    if order.budget < search.generation:
        least = f"{order.algorithm} tries {search.generation} plans at a time"
        raise UserError(f"--budget {order.budget}: {least}; give at least {search.generation} runs")
    if order.phases > scenario.spec.rounds:
        raise UserError(f"--phases {order.phases}: there are {scenario.spec.rounds} rounds")
    found = []
    asked: dict[str, Any] = {"phases": order.phases, "looking": order.looking}
    for one in attacks(scenario, **asked, cohort=order.cohort, imports=order.imports):
        model = one.model(scenario.spec.seed)
        leader: Any = model.game.adversary
        values = leader.payoff.values(model.game.cohorts[one.place(model)].loss, leader.support)
        paid = float(values.min()), float(values.max())
        if model.game.market is not None:
            paid = leader.payoff.range()
        rng = stream(scenario.spec.seed, "search", one.cohort)
        found.append(Training(one, search(one.shape, rng, payoff_range=paid)))
    return found
