"""The switch test by itself: its false alarms, and how soon it finds a model that is wrong.

``switch-alarms``: runs in which the test rejects a model that says the true chances of every
round, for the cells of ``events = "everyone"`` and for listed losses with their sums over actions,
without the bets on surprises. ``switch-found``: rounds until it rejects one that is wrong by .1.

Beside the limit in use stands the former one, w(V) = sqrt(2 (V + 1) (ln(1 + V) / 2 + ln(m /
alpha))), with m the number of all cells or, as it was, of twenty listed losses' biases.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import beta

from paper.harness import Row, Table
from regretless.forecaster.mixture_of_rates import COSTS, RATES
from regretless.forecaster.switch_test import FALSE_ALARMS, SwitchTest
from regretless.forecaster.universal import scales_for
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
from regretless.market.core.randomness import stream

LOSSES = 20
ACTIONS = 5
SIZE = 3  # numbers that are predicted, n
LISTED_BIASES = 2 * LOSSES * ACTIONS  # of one number, both signs
ALARM_ROUNDS = (1000, 5000)
FOUND_ROUNDS = 20_000
ERROR = 0.1  # of a model that is wrong
CHANCES = {"uniform": (0.0, 1.0), "middle": (0.35, 0.65), "rare": (0.0, 0.04)}
LIMITS = {  # of listed losses all are counted in any case
    "everyone": ("mixture", "w(V), all counted", "w(V), listed counted"),
    "losses": ("mixture", "w(V)"),
}


@compiled()
def exceeds_mixture(gain: float, squares: float, evidence: float) -> bool:
    """Whether ln M(R, V) is above the evidence; R is ``gain``, V ``squares``."""
    if gain * RATES[0] <= evidence:
        return False
    total = 0.0
    for j in range(RATES.shape[0]):
        total += np.exp(RATES[j] * gain - COSTS[j] * squares - evidence)
    return bool(total > RATES.shape[0])


@compiled()
def exceeds_former(gain: float, squares: float, evidence: float) -> bool:
    """Whether R is above w(V); ``evidence`` is ln(m / alpha)."""
    intrinsic_time = 1.0 + squares
    limit = np.sqrt(2.0 * intrinsic_time * (np.log(intrinsic_time) / 2.0 + evidence))
    return bool(gain > limit)


@compiled()
def first_alarms_of_cells(
    predictions: Array, outcomes: Array, scales: int, evidence: Array
) -> Integers:
    """Return the round (from 1, else 0) in which each limit first rejects a model of one number.

    Parameters
    ----------
    predictions, outcomes : array (T,)
    scales : int
        A prediction is in one cell of each: scale k has 2^k cells of equal width.
    evidence : array (3,)
        ln(m / alpha) of the limits: the mixture's, and the former one's with either m.
    """
    alarm = np.zeros(3, dtype=np.int64)
    cells = 2 ** (scales + 1) - 2
    bias = np.zeros(cells)
    squares = np.zeros(cells)
    for t in range(predictions.shape[0]):
        error = predictions[t] - outcomes[t]
        for scale in range(1, scales + 1):
            cell_of_scale = min(int(predictions[t] * 2**scale), 2**scale - 1)
            cell = 2**scale - 2 + cell_of_scale
            bias[cell] += error
            squares[cell] += error * error
            size = abs(bias[cell])
            if alarm[0] == 0 and exceeds_mixture(size, squares[cell], evidence[0]):
                alarm[0] = t + 1
            for limit in range(1, 3):
                if alarm[limit] == 0 and exceeds_former(size, squares[cell], evidence[limit]):
                    alarm[limit] = t + 1
    return alarm


@compiled()
def first_alarms_of_losses(
    best_actions: Indices,
    losses: Array,
    scale: Array,
    evidence_of_one: Array,
    evidence_of_sums: Array,
) -> Integers:
    """Return the round (from 1, else 0) in which each limit first rejects a model.

    Parameters
    ----------
    best_actions : int array (T, K)
        Best responses of the losses to its predictions.
    losses : array (T, K, A)
        What actions lost.
    scale : array (K,)
        The losses' ranges.
    evidence_of_one, evidence_of_sums : array (2,)
        ln(m / alpha) of the limits, the mixture's and the former one, for a regret of one action
        and for their greatest sum over actions.
    """
    alarm = np.zeros(2, dtype=np.int64)
    n_losses = losses.shape[1]
    actions = losses.shape[2]
    regret = np.zeros((n_losses, actions, actions))
    squares = np.zeros((n_losses, actions, actions))
    greatest_regret = np.zeros((n_losses, actions))  # over the actions to compare with
    squares_of_greatest = np.zeros((n_losses, actions))
    for t in range(losses.shape[0]):
        for k in range(n_losses):
            action = best_actions[t, k]
            greatest_regret[k, action] = 0.0
            squares_of_greatest[k, action] = 0.0
            for other in range(actions):
                gain = (losses[t, k, action] - losses[t, k, other]) / scale[k]
                regret[k, action, other] += gain
                squares[k, action, other] += gain * gain
                sum_of_gains = regret[k, action, other]
                sum_of_squares = squares[k, action, other]
                if sum_of_gains > greatest_regret[k, action]:
                    greatest_regret[k, action] = sum_of_gains
                    squares_of_greatest[k, action] = sum_of_squares
                if alarm[0] == 0 and exceeds_mixture(
                    sum_of_gains, sum_of_squares, evidence_of_one[0]
                ):
                    alarm[0] = t + 1
                if alarm[1] == 0 and exceeds_former(
                    sum_of_gains, sum_of_squares, evidence_of_one[1]
                ):
                    alarm[1] = t + 1
            total = greatest_regret[k].sum()
            total_squares = squares_of_greatest[k].sum()
            if alarm[0] == 0 and exceeds_mixture(total, total_squares, evidence_of_sums[0]):
                alarm[0] = t + 1
            if alarm[1] == 0 and exceeds_former(total, total_squares, evidence_of_sums[1]):
                alarm[1] = t + 1
    return alarm


def of_cells(chances: Array, predictions: Array, rng: np.random.Generator) -> Integers:
    """Play one number (T,) and return the first alarms of its cells."""
    scales = scales_for(len(chances))
    cells = 2 ** (scales + 1) - 2
    evidence_of_all = SwitchTest(2 * cells).evidence  # biases of both signs
    evidence_of_listed = math.log(LISTED_BIASES / FALSE_ALARMS)
    outcomes = (rng.random(len(chances)) < chances).astype(float)
    evidence = np.array([evidence_of_all, evidence_of_all, evidence_of_listed])
    return first_alarms_of_cells(predictions, outcomes, scales, evidence)


def of_losses(chances: Array, predictions: Array, rng: np.random.Generator) -> Integers:
    """Play several numbers (T, n) and return the first alarms of random listed losses."""
    weights = -rng.dirichlet(np.ones(SIZE), (LOSSES, ACTIONS))
    outcomes = (rng.random(chances.shape) < chances).astype(float)
    best_actions = np.einsum("kan,tn->tka", weights, predictions).argmin(2)
    losses = np.einsum("kan,tn->tka", weights, outcomes)
    scale = np.abs(weights[:, :, np.newaxis] - weights[:, np.newaxis]).sum(3).max((1, 2))
    evidence_of_one = _evidence(LOSSES * ACTIONS**2)
    evidence_of_sums = _evidence(LOSSES * ACTIONS**ACTIONS)
    return first_alarms_of_losses(best_actions, losses, scale, evidence_of_one, evidence_of_sums)


def _evidence(tested: int) -> Array:
    """Return ln(m / alpha) of both limits (2,), for so many regrets or sums of regrets.

    The limit in use shares alpha among two kinds of test: single regrets, and their sums.
    """
    kinds_of_test = 2
    in_use = SwitchTest(kinds_of_test * tested).evidence
    return np.array([in_use, math.log(tested / FALSE_ALARMS)])


def chances_of(events: str, kind: str, rounds: int, rng: np.random.Generator) -> Array:
    """Draw a chance for every round and number."""
    low, high = CHANCES[kind]
    shape = (rounds,) if events == "everyone" else (rounds, SIZE)
    return rng.uniform(low, high, shape)


def false_alarms(instance: tuple[str, str, int], seed: int) -> Iterator[Row]:
    """Tell which limits reject a model that is right."""
    events, kind, rounds = instance
    rng = stream(seed, "benchmarks", f"switch test {events} {kind} {rounds}")
    chances = chances_of(events, kind, rounds, rng)
    alarms = first_alarms(events, chances, chances, rng)
    for limit, first_round in zip(LIMITS[events], alarms, strict=True):
        yield {
            "events": events,
            "chances": kind,
            "rounds": rounds,
            "limit": limit,
            "runs": 1,
            "alarms": int(first_round > 0),
        }


def first_alarms(
    events: str, chances: Array, predictions: Array, rng: np.random.Generator
) -> Integers:
    """Play and return the first alarm of each limit."""
    if events == "everyone":
        return of_cells(chances, predictions, rng)
    return of_losses(chances, predictions, rng)


def rounds_until_found(instance: tuple[str, str], seed: int) -> Iterator[Row]:
    """Tell after how many rounds each limit rejects a model that is wrong by ``ERROR``.

    One number is said too high; of several each is said too high or too low in the whole run.
    """
    events, kind = instance
    rng = stream(seed, "benchmarks", f"switch test {events} {kind} wrong")
    chances = chances_of(events, kind, FOUND_ROUNDS, rng)
    sign = 1.0 if events == "everyone" else rng.choice([-1.0, 1.0], SIZE)
    predictions = np.clip(chances + sign * ERROR, 0.0, 1.0)
    alarms = first_alarms(events, chances, predictions, rng)
    for limit, first_round in zip(LIMITS[events], alarms, strict=True):
        yield {
            "events": events,
            "chances": kind,
            "limit": limit,
            "found": float(first_round > 0),
            "median round": float(first_round) if first_round else math.inf,
        }


class Alarms(Table):
    """Adds up alarms, with the upper 95 % limit of their share (Clopper and Pearson)."""

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a line for each case and limit."""
        lines = table.groupby(list(self.by), sort=False).agg({"runs": "sum", "alarms": "sum"})
        alarms = lines["alarms"]
        runs = lines["runs"]
        lines["share"] = alarms / runs
        lines["upper limit"] = beta.ppf(0.95, alarms + 1, runs - alarms)
        return lines


EVENTS = ("everyone", "losses")
TABLES = {
    "switch-alarms": Alarms(
        false_alarms,
        ["events", "chances", "rounds", "limit"],
        lambda: list(product(EVENTS, CHANCES, ALARM_ROUNDS)),
        seeds=400,
    ),
    "switch-found": Table(
        rounds_until_found,
        ["events", "chances", "limit"],
        lambda: list(product(EVENTS, CHANCES)),
        seeds=40,
        aggregations={"median round": "median"},
    ),
}
