"""Training: a search tries plans against a cohort, run after run, and its best one is judged.

``regretless train`` calls ``train``. The searches are in ``agents.adversaries.learned``; what a run
with a plan comes to is in ``attack``; the plans that commit are in ``commitments``; the files are
in ``results``.

Commitments are rehearsed first, beside the budget, and the search begins with the best of them. All
plans of one generation of the search play with the same seed, and every generation has a seed of
its own. The best plan and the best commitment are then judged in the same ``JUDGING_RUNS`` runs,
with seeds that no training run can have, and the better of both is what was found: it never takes
less than the commitment. What was found is a lower bound on what an attacker can take from the
cohort. A theorem on the cohort's swap regret, where one applies, gives an upper bound
(``market.exploitability.commitment``).

The state of the search is written into the output directory every few seconds, so that training
resumes after an interruption and gives the same bytes.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from regretless.agents.adversaries.learned import SEARCHES, Search
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, closest
from regretless.market.core.interrupts import interrupts_between_rounds
from regretless.market.core.randomness import stream
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor.base import Executor
from regretless.scenarios.executor.choice import mapper
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training.attack import (
    Attack,
    Rehearsals,
    moves_rows,
    prepare_attacks,
    round_plan,
)
from regretless.scenarios.training.commitments import Commitment, commitments_to_try
from regretless.scenarios.training.results import (
    COLUMNS,
    COMMITMENT_COLUMNS,
    CURVE,
    TABLE,
    TrainingDirectory,
    file_of,
)

JUDGING_RUNS = 20
COMMITMENT_RUNS = 2  # in which each commitment is rehearsed
FIRST_JUDGING_SEED = 2**31  # training runs have the seeds below it
CHECKPOINT_INTERVAL_SECONDS = 2.0


@dataclass(frozen=True)
class TrainingOptions:
    """The options of ``regretless train``.

    Attributes
    ----------
    algorithm : str
        A name in ``SEARCHES``.
    budget : int
        How many runs may be played against each cohort.
    phases : int
        Into how many equal parts of the run a plan divides it.
    looking : bool
        Whether a plan may depend on what the followers played last.
    cohort : str, optional
        The cohort to attack; all of them one after another by default.
    jobs : int, optional
        How many worker processes play runs.
    imports : tuple of str
        Modules that workers import first, for agents of the user's own.
    sees : str
        What plans may be conditioned on: "history", or "mixture", the announced one.
    """

    algorithm: str
    budget: int
    phases: int = 8
    looking: bool = False
    cohort: str | None = None
    jobs: int | None = None
    imports: tuple[str, ...] = ()
    sees: str = "history"


@dataclass(frozen=True, eq=False)
class Judgement:
    """What was found against a cohort: the plan (P, S, m), and its row of the table."""

    plan: Array
    row: dict[str, Any]


class Training(Checkpointable):
    """The search for the best plan against one cohort, and everything that it tried.

    ``seeds`` has shape (n,) for n generations, ``paid`` shape (n, G): what the leader was paid per
    round by each of the G plans of a generation. ``commitment_paid`` (c,) is what each commitment
    was paid; it is empty until they have been rehearsed.
    """

    REMEMBERED = ("search", "seeds", "paid", "commitment_paid")

    def __init__(self, attack: Attack, search: Search) -> None:
        self.attack = attack
        self.search = search
        self.commitment_paid = np.zeros(0)
        self.seeds = np.zeros(0, dtype=np.int64)
        self.paid = np.zeros((0, search.generation))

    def step(self, rehearsals: Rehearsals, root_seed: int) -> None:
        """Play one generation of plans with a new seed, and let the search learn from it."""
        generation = str(len(self.seeds))
        seed = stream(root_seed, "train", self.attack.cohort, generation).integers(
            FIRST_JUDGING_SEED
        )
        paid = rehearsals.paid(self.search.propose(), int(seed))
        self.search.feedback(paid)
        self.seeds = np.append(self.seeds, seed)
        self.paid = np.vstack([self.paid, paid])

    @cached_property
    def commitments(self) -> list[Commitment]:
        """The commitments that are tried."""
        return commitments_to_try(self.attack)

    def rehearse_commitments(self, rehearsals: Rehearsals, root_seed: int) -> None:
        """Play every commitment, and let the search begin with the best one."""
        plans = np.array([each.plan(self.attack.shape) for each in self.commitments])
        seeds = stream(root_seed, "commit", self.attack.cohort).integers(
            FIRST_JUDGING_SEED, size=COMMITMENT_RUNS
        )
        paid = [rehearsals.paid(plans, int(seed)) for seed in seeds]
        self.commitment_paid = np.mean(paid, axis=0)
        self.search.suggest(self.best_commitment.plan(self.attack.shape))

    @property
    def best_commitment(self) -> Commitment:
        """The commitment that was paid most in rehearsals."""
        return self.commitments[int(np.nan_to_num(self.commitment_paid, nan=-np.inf).argmax())]

    def judge(self, workers: Executor, root_seed: int) -> Judgement:
        """Play the best plan and the best commitment with new seeds; return the better of both."""
        offsets = stream(root_seed, "judge", self.attack.cohort).integers(
            FIRST_JUDGING_SEED, size=JUDGING_RUNS
        )
        seeds = FIRST_JUDGING_SEED + offsets
        rehearsals = Rehearsals(self.attack, workers)
        commitment_plan = self.best_commitment.plan(self.attack.shape)
        trained_plan = round_plan(self.search.best())
        scores_of_commitment = pd.DataFrame(rehearsals.scores(commitment_plan, seeds.tolist()))
        scores_of_trained = pd.DataFrame(rehearsals.scores(trained_plan, seeds.tolist()))
        if scores_of_trained["paid"].mean() >= scores_of_commitment["paid"].mean():
            plan = trained_plan
            scores = scores_of_trained
        else:
            plan = commitment_plan
            scores = scores_of_commitment
        row = {"cohort": self.attack.cohort} | _mean_row(scores)
        row_of_commitment = _mean_row(scores_of_commitment)
        for name, column in COMMITMENT_COLUMNS.items():
            row[column] = row_of_commitment[name]
        row["margin"] = self.best_commitment.margin
        return Judgement(plan, {name: row[name] for name in COLUMNS})

    def curve(self) -> pd.DataFrame:
        """Return a row per run: generation, run, seed, and what the leader was paid per round."""
        generations, plans_per_generation = self.paid.shape
        return pd.DataFrame(
            {
                "cohort": self.attack.cohort,
                "generation": np.repeat(np.arange(generations), plans_per_generation),
                "run": np.arange(self.paid.size),
                "seed": np.repeat(self.seeds, plans_per_generation),
                "paid": self.paid.ravel(),
            }
        )


def _mean_row(scores: pd.DataFrame) -> dict[str, Any]:
    """Return the means of judged runs, with intervals of what was taken, and the gap to the cap."""
    row: dict[Any, Any] = scores.mean().to_dict()
    row["surplus"], row["low"], row["high"] = interval(scores["surplus"].to_numpy())
    row["paid"], row["paid_low"], row["paid_high"] = interval(scores["paid"].to_numpy())
    row["gap"] = row["certified"] - row["surplus"]
    return row


def train(
    scenario: Scenario,
    options: TrainingOptions,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], Any] = lambda _: None,
    warn: Callable[[str], Any] = lambda _: None,
) -> pd.DataFrame:
    """Train attackers of a scenario's cohorts, and write what they learned.

    Parameters
    ----------
    scenario : Scenario
        Its adversary has a payoff.
    options : TrainingOptions
        The algorithm, how long it may search, and against whom.
    out : Path
        The folder that the files of ``results`` are written into.
    resume, overwrite : bool
        What to do with an earlier training in that folder: go on with it, or replace it.
    progress : callable
        It is called with the number of runs played so far.
    warn : callable
        It is called with each of the scenario's warnings.

    Returns
    -------
    DataFrame
        A row per cohort, with the columns ``results.COLUMNS``.

    Raises
    ------
    UserError
        If nobody can be trained, or the folder cannot be used.
    KeyboardInterrupt
        After the state of the search has been written.
    """
    root_seed = scenario.spec.seed
    trainings = prepare_trainings(scenario, options)
    configuration = json.loads(trainings[0].attack.config)
    # The number of workers changes nothing, so that a resumed training may have another one.
    description = {"config": configuration, **asdict(options), "jobs": None}
    cohort_names = [training.attack.cohort for training in trainings]
    directory = TrainingDirectory(out, description, cohort_names)
    with (
        directory.claimed(resume=resume, overwrite=overwrite) as is_resumed,
        mapper(options.jobs, warn) as workers,
    ):
        for warning in trainings[0].attack.warnings:
            warn(warning)
        is_restored = is_resumed and directory.restore(trainings)
        if not is_restored:
            directory.start()
        try:
            _search(trainings, directory, options.budget, workers, root_seed, progress)
            judgements = [training.judge(workers, root_seed) for training in trainings]
            table = pd.DataFrame([judgement.row for judgement in judgements])
            directory.finish(_result_files(trainings, judgements, table))
        except BaseException:
            directory.abandon()
            raise
    return table


def _search(
    trainings: list[Training],
    directory: TrainingDirectory,
    budget: int,
    workers: Executor,
    root_seed: int,
    progress: Callable[[int], Any],
) -> None:
    """Play generation after generation, cohort after cohort, and keep the state on disk."""
    last_saved = time.monotonic()
    with interrupts_between_rounds() as interrupted:
        for index, training in enumerate(trainings):
            rehearsals = Rehearsals(training.attack, workers)
            if not training.commitment_paid.size:
                training.rehearse_commitments(rehearsals, root_seed)
            while training.paid.size + training.search.generation <= budget:
                training.step(rehearsals, root_seed)
                progress(index * budget + training.paid.size)
                is_due = time.monotonic() - last_saved > CHECKPOINT_INTERVAL_SECONDS
                if interrupted.is_set() or is_due:
                    directory.save(trainings)
                    last_saved = time.monotonic()
                if interrupted.is_set():
                    raise KeyboardInterrupt
    directory.save(trainings)


def _result_files(
    trainings: list[Training], judgements: list[Judgement], table: pd.DataFrame
) -> dict[str, str]:
    """Return the text of every file of results, by its name."""
    contents = {}
    for training, judgement in zip(trainings, judgements, strict=True):
        scenario_with_plan = training.attack.file(judgement.plan)
        contents[file_of(training.attack.cohort)] = tomli_w.dumps(scenario_with_plan)
    curves = pd.concat([training.curve() for training in trainings], ignore_index=True)
    contents[CURVE] = curves.to_csv(index=False, lineterminator="\n")
    contents[TABLE] = table.to_csv(index=False, lineterminator="\n")
    return contents


def prepare_trainings(scenario: Scenario, options: TrainingOptions) -> list[Training]:
    """Return a training per cohort to attack; UserError if options and scenario do not fit."""
    if options.algorithm not in SEARCHES:
        hint = closest(options.algorithm, SEARCHES)
        raise UserError(f"--algorithm '{options.algorithm}' is unknown; {hint}")
    search_class: Any = SEARCHES[options.algorithm]
    generation = search_class.generation
    if options.budget < generation:
        reason = f"{options.algorithm} tries {generation} plans at a time"
        raise UserError(f"--budget {options.budget}: {reason}; give at least {generation} runs")
    if options.phases > scenario.spec.rounds:
        rounds = scenario.spec.rounds
        raise UserError(
            f"--phases {options.phases}: there are {rounds} rounds; give at most {rounds}"
        )
    attacks = prepare_attacks(
        scenario,
        phases=options.phases,
        looking=options.looking,
        cohort=options.cohort,
        sees=options.sees,
        imports=options.imports,
    )
    trainings = []
    for attack in attacks:
        rng = stream(scenario.spec.seed, "search", attack.cohort)
        payoff_range = _payoff_range(attack, scenario.spec.seed)
        search = search_class(
            attack.shape,
            rng,
            payoff_range=payoff_range,
            takes_suggestion=True,
            begins_again=True,
        )
        trainings.append(Training(attack, search))
    return trainings


def _payoff_range(attack: Attack, seed: int) -> tuple[float, float]:
    """Return the least and the greatest payoff that the leader can have in a round."""
    model = attack.model(seed)
    leader: Any = model.game.adversary
    if model.game.market is not None or moves_rows(model):
        smallest, greatest = leader.payoff.range()
        return smallest, greatest
    cohort = model.game.cohorts[attack.cohort_index(model)]
    payoffs = leader.payoff.values(cohort.loss, leader.support)
    return float(payoffs.min()), float(payoffs.max())
