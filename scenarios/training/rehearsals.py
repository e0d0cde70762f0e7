r"""Rehearsals: a plan played through a whole run, again and again, without logs.

Learners of the package whom nothing but the outcomes reaches are rehearsed **side by side**: the
learners of all runs are rows of one, and a round of all runs is a few operations on arrays. Random
numbers are those of the run itself, so that a run is paid what its log says. All others are played
one by one, by the game's own round, in a process per processor.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, draw_rows
from regretless.market.exploitability.tracker import Tracker, led
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import play_round
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import one_hot
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.executor import Executor
from regretless.scenarios.training.attack import Attack


@dataclass(frozen=True)
class Score:
    """What a plan came to in one run, in the mean over the cohort's agents.

    The leader was paid ``surplus`` above its commitment ``value``, and at most ``cap`` by the swap
    regret of the run; any attacker gets at most ``certified`` by what is known before a run (NaN
    without a theorem), and ``most`` is what payoffs allow: the greatest one minus the value.
    """

    surplus: float
    value: float
    cap: float
    certified: float
    most: float


class Rehearsals:
    """Plays plans against a cohort, by workers where runs are played one by one."""

    def __init__(self, attack: Attack, workers: Executor) -> None:
        self.attack, self._workers = attack, workers
        self.together = _side_by_side(attack)

    def paid(self, plans: Array, seed: int) -> Array:
        """Return what the leader is paid per round by each plan (E, P, S, m) at one seed (E,)."""
        if not self.together:
            parts = np.array_split(plans, min(self._workers.capacity, len(plans)))
            return np.concatenate(self._workers.map(partial(_paid, self.attack, seed), parts))
        model = self.attack.model(seed)
        cohort = model.game.cohorts[0]
        leader: Any = model.game.adversary
        values = leader.payoff.values(cohort.loss, leader.support)
        counts = cohort.counts
        paid = np.einsum("ekam,mka,k->e", _joints(model, plans), values, counts)
        return np.asarray(paid / counts.sum())

    def scores(self, plan: Array, seeds: Sequence[int]) -> list[Score]:
        """Return what one plan comes to at several seeds."""
        if not self.together:
            return self._workers.map(partial(_score, self.attack, plan), list(seeds))
        return [self._alone(self.attack.model(seed), plan) for seed in seeds]

    @staticmethod
    def _alone(model: MarketModel, plan: Array) -> Score:
        """Score a plan against learners whom nothing but outcomes reaches."""
        cohort, leader = model.game.cohorts[0], model.game.adversary
        support = np.asarray(leader.support)
        found = led(leader.payoff, cohort.loss, _joints(model, plan[None])[0], support)
        return _mean(found, cohort.counts, _proved(cohort, model.rounds))


def _side_by_side(attack: Attack) -> bool:
    """Whether only outcomes reach the cohort, and its learner's rows have nothing in common."""
    game = attack.model(0).game
    seat = replace(game.seats[0], comparison=NOT_COMPARED)  # which nobody hears of
    alone = seat == Seat(seat.cohort) and game.market is None and game.network is None
    return len(game.cohorts) == 1 and seat.cohort.rows_apart and alone


def _joints(model: MarketModel, plans: Array) -> Array:
    """Play plans (E, P, S, m) against the learners of a model; joint distributions (E, K, A, m)."""
    cohort: Any = model.game.cohorts[0]
    leader: Any = model.game.adversary
    count, phases, rows, _ = plans.shape
    tables, own = cohort.loss.losses(leader.support), np.arange(count)
    joints = np.zeros((count, *tables.shape[1:], len(tables)))
    learner, shape = copy.deepcopy(cohort.learner), joints.shape[:3]
    learner.start(count * shape[1], shape[2], horizon=model.rounds)
    state = np.zeros(count, dtype=np.intp)
    thrown = model.game.outcome_stream.random(model.rounds)
    draws = [copy.deepcopy(cohort.rng) for _ in own] if learner.bandit else []
    actions = np.zeros(count * shape[1], dtype=np.intp)
    for t in range(model.rounds):
        distribution = learner.play()
        distributions = plans[own, t * phases // model.rounds, state]
        outcome = draw_rows(distributions, np.full(count, thrown[t]))
        if learner.bandit:
            actions = draw_rows(
                distribution, np.concatenate([rng.random(shape[1]) for rng in draws])
            )
            distribution = one_hot(actions, shape[2])
        joints[own, :, :, outcome] += distribution.reshape(shape)
        learner.learn(tables[outcome].reshape(distribution.shape), actions)
        if rows > 1:
            state = distribution.reshape(shape)[:, cohort.row_of].mean(1).argmax(1)
    return joints / model.rounds


def _paid(attack: Attack, seed: int, plans: Array) -> Array:
    runs = (_played(attack, seed, plan) for plan in plans)
    return np.array([tracker.paid(attack.place(model)) for model, tracker in runs])


def _score(attack: Attack, plan: Array, seed: int) -> Score:
    model, tracker = _played(attack, seed, plan)
    place = attack.place(model)
    cohort, promise = model.game.cohorts[place], model.guarantees[place]
    bound: Any = _proved(cohort, model.rounds)
    if promise.beforehand is not None and attack.constants:  # constants: its regret is the more
        bound = promise.beforehand(model.rounds)
        bound = bound if promise.covers is None else np.where(promise.covers, bound, np.nan)
    if model.game.market is not None or tracker.extent(place).quantisation_error:
        bound = np.nan  # the outcomes that others would have met are not known
    rows, found = tracker.led(place)
    bound = np.broadcast_to(bound, len(cohort.ledger.count))[rows]
    return _mean(found, cohort.counts[rows], bound)


def _played(attack: Attack, seed: int, plan: Array) -> tuple[MarketModel, Tracker]:
    """Play one run, in which what is taken from the cohort is followed."""
    model = attack.model(seed, plan)
    game = model.game
    followed = [cohort.name == attack.cohort for cohort in game.cohorts]
    tracker = Tracker(
        game.cohorts, game.adversary, followed, seed=seed, unmoved=game.market is None
    )
    for _ in range(model.rounds):
        played = play_round(game)
        model.passed(played)
        tracker.add(played)
    return model, tracker


def _proved(cohort: Cohort, rounds: int) -> float:
    """Return what a cohort's own rule proves of its swap regret; NaN if nothing."""
    bound = cohort.proved_swap(rounds)
    return float("nan") if bound is None else float(bound)


def _mean(found: dict[str, Array], counts: Array, bound: Array | float) -> Score:
    """Take the means over agents of what was taken from rows, ``counts`` agents in each."""
    found["certified"] = np.minimum(found["kappa"] * bound, found["most"])  # NaN without a bound
    names = "leader_surplus", "value", "surplus_cap", "certified", "most"
    return Score(*(float(found[name] @ counts / counts.sum()) for name in names))
