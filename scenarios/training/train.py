"""Training: a search tries plans against a cohort, run after run, and its best one is judged.

All plans of a generation meet one seed, another generation another. The best plan is judged in
``JUDGED`` runs with seeds that no training run has. What was found is a lower bound on what an
attacker can take from the cohort; a theorem on its swap regret, where one applies, gives an upper
one (``market.exploitability.commitment``).

The state of the search is kept in the output directory every few seconds, so that training resumes,
to the same bytes.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.agents.adversaries.learned import SEARCHES, Search
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor import Executor, mapper
from regretless.scenarios.logs.ownership import held
from regretless.scenarios.run import interrupts_between_rounds
from regretless.scenarios.training import results
from regretless.scenarios.training.attack import Attack, Rehearsals, attacks, written

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
    """What was tried against one cohort so far: a seed and what plans were paid, by generation."""

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


def train(  # noqa: PLR0913 - keyword-only from the fourth
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
    found, seed = prepared(scenario, order), scenario.spec.seed
    about = {"config": json.loads(found[0].attack.config), **asdict(order), "jobs": None}
    directory = results.TrainingDirectory(out, about, [one.attack.cohort for one in found])
    directory.check(resume=resume, overwrite=overwrite)
    for line in found[0].attack.warnings:
        warn(line)
    with held(out), mapper(order.jobs) as workers:
        directory.check(resume=resume, overwrite=overwrite)
        if not (resume and directory.restore(_state(found), partial(_restore, found))):
            directory.start()
        try:
            saved = time.monotonic()
            with interrupts_between_rounds() as stopped:
                for played in _generations(found, order.budget, seed, workers):
                    progress(played)
                    if stopped.is_set() or time.monotonic() - saved > PAUSE:
                        directory.save(_state(found))
                        saved = time.monotonic()
                    _unless(stopped)
            directory.save(_state(found))
            judged = []
            for one in found:
                plan = written(one.search.best())
                rng = stream(seed, "judge", one.attack.cohort)
                seeds = HALF + rng.integers(HALF, size=JUDGED)
                scores = Rehearsals(one.attack, workers).scores(plan, seeds.tolist())
                judged.append(results.Judged(one.attack, plan, scores, one.seeds, one.paid))
        except BaseException:
            directory.abandon()
            raise
        return directory.finish(partial(results.write, out, judged))


def _unless(stopped: threading.Event) -> None:
    if stopped.is_set():
        raise KeyboardInterrupt


def _generations(found: list[Training], budget: int, seed: int, workers: Executor) -> Iterator[int]:
    """Play the generations that are left; yield how many runs were played."""
    for number, training in enumerate(found):
        rehearsals = Rehearsals(training.attack, workers)
        while training.paid.size + training.search.generation <= budget:
            training.step(rehearsals, seed)
            yield number * budget + training.paid.size


def prepared(scenario: Scenario, order: Order) -> list[Training]:
    """Return what is to be trained; UserError if the order or the scenario does not fit."""
    if order.algorithm not in SEARCHES:
        cure = closest(order.algorithm, SEARCHES)
        raise UserError(f"--algorithm '{order.algorithm}' is unknown; {cure}")
    maker: Any = SEARCHES[order.algorithm]
    if order.budget < maker.generation:
        least = f"{order.algorithm} tries {maker.generation} plans at a time"
        raise UserError(f"--budget {order.budget}: {least}; give at least {maker.generation} runs")
    if order.phases > scenario.spec.rounds:
        raise UserError(f"--phases {order.phases}: there are {scenario.spec.rounds} rounds")
    found = attacks(scenario, phases=order.phases, looking=order.looking, cohort=order.cohort)
    return [Training(one, _search(one, order, scenario.spec.seed)) for one in found]


def _search(attack: Attack, order: Order, seed: int) -> Search:
    model = attack.model(seed)
    leader: Any = model.game.adversary
    values = leader.payoff.values(model.game.cohorts[attack.place(model)].loss, leader.support)
    paid = float(values.min()), float(values.max())
    if model.game.market is not None:
        paid = leader.payoff.range()
    return SEARCHES[order.algorithm](attack.shape, stream(seed, "search", attack.cohort), paid=paid)


def _state(found: list[Training]) -> dict[str, Any]:
    return {str(place): one.state() for place, one in enumerate(found)}


def _restore(found: list[Training], state: dict[str, Any]) -> None:
    for place, one in enumerate(found):
        one.restore(state[str(place)])
