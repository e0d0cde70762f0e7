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
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled
from regretless.market.core.randomness import stream

LOSSES, ACTIONS, SIZE = 20, 5, 3
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
    """Whether ln M(R, V) is above the evidence."""
    if gain * RATES[0] <= evidence:
        return False
    total = 0.0
    for j in range(RATES.shape[0]):
        total += np.exp(RATES[j] * gain - COSTS[j] * squares - evidence)
    return bool(total > RATES.shape[0])


@compiled()
def exceeds_former(gain: float, squares: float, evidence: float) -> bool:
    """Whether R is above w(V)."""
    known = 1.0 + squares
    return bool(gain > np.sqrt(2.0 * known * (np.log(known) / 2.0 + evidence)))


@compiled()
def first_alarms_of_cells(
    predictions: Array, outcomes: Array, scales: int, evidence: Array
) -> Integers:
    """Return the round (from 1, else 0) in which each limit first rejects a model of one number.

    ``predictions`` and ``outcomes`` are (T,); ``evidence`` (3,) is ln(m / alpha) of the limits.
    """
    found = np.zeros(3, dtype=np.int64)
    cells = 2 ** (scales + 1) - 2
    bias, squares = np.zeros(cells), np.zeros(cells)
    for t in range(predictions.shape[0]):
        error = predictions[t] - outcomes[t]
        for scale in range(1, scales + 1):
            place = min(int(predictions[t] * 2**scale), 2**scale - 1)
            cell = 2**scale - 2 + place
            bias[cell] += error
            squares[cell] += error * error
            size = abs(bias[cell])
            if found[0] == 0 and exceeds_mixture(size, squares[cell], evidence[0]):
                found[0] = t + 1
            for limit in range(1, 3):
                if found[limit] == 0 and exceeds_former(size, squares[cell], evidence[limit]):
                    found[limit] = t + 1
    return found


@compiled()
def first_alarms_of_losses(
    chosen: Array, losses: Array, scale: Array, single: Array, together: Array
) -> Integers:
    """Return the round (from 1, else 0) in which each limit first rejects a model.

    ``chosen`` (T, K) are the best responses to it, ``losses`` (T, K, A) what actions lost,
    ``scale`` (K,) the losses' ranges, ``single`` and ``together`` (2,) the ln(m / alpha) of the
    limits for a regret of one action and for their greatest sum over actions.
    """
    found = np.zeros(2, dtype=np.int64)
    count, actions = losses.shape[1], losses.shape[2]
    regret = np.zeros((count, actions, actions))
    squares = np.zeros((count, actions, actions))
    greatest = np.zeros((count, actions))  # over comparators, and the squares there
    there = np.zeros((count, actions))
    for t in range(losses.shape[0]):
        for k in range(count):
            action = chosen[t, k]
            greatest[k, action] = 0.0
            there[k, action] = 0.0
            for other in range(actions):
                gain = (losses[t, k, action] - losses[t, k, other]) / scale[k]
                regret[k, action, other] += gain
                squares[k, action, other] += gain * gain
                size, spread = regret[k, action, other], squares[k, action, other]
                if size > greatest[k, action]:
                    greatest[k, action] = size
                    there[k, action] = spread
                if found[0] == 0 and exceeds_mixture(size, spread, single[0]):
                    found[0] = t + 1
                if found[1] == 0 and exceeds_former(size, spread, single[1]):
                    found[1] = t + 1
            total, spread = greatest[k].sum(), there[k].sum()
            if found[0] == 0 and exceeds_mixture(total, spread, together[0]):
                found[0] = t + 1
            if found[1] == 0 and exceeds_former(total, spread, together[1]):
                found[1] = t + 1
    return found


def of_cells(chances: Array, predictions: Array, rng: np.random.Generator) -> Integers:
    """Play one number (T,) and return the first alarms of its cells."""
    scales = scales_for(len(chances))
    every_cell = SwitchTest(2 * (2 ** (scales + 1) - 2)).evidence
    listed = math.log(LISTED_BIASES / FALSE_ALARMS)
    outcomes = (rng.random(len(chances)) < chances).astype(float)
    evidence = np.array([every_cell, every_cell, listed])
    return first_alarms_of_cells(predictions, outcomes, scales, evidence)


def of_losses(chances: Array, predictions: Array, rng: np.random.Generator) -> Integers:
    """Play several numbers (T, n) and return the first alarms of random listed losses."""
    weights = -rng.dirichlet(np.ones(SIZE), (LOSSES, ACTIONS))
    outcomes = (rng.random(chances.shape) < chances).astype(float)
    chosen = np.einsum("kan,tn->tka", weights, predictions).argmin(2)
    losses = np.einsum("kan,tn->tka", weights, outcomes)
    scale = np.abs(weights[:, :, None] - weights[:, None]).sum(3).max((1, 2))
    regrets, assignments = LOSSES * ACTIONS**2, LOSSES * ACTIONS**ACTIONS
    kinds = 2  # of test, which share alpha: single regrets, and their sums over actions
    single = [SwitchTest(kinds * regrets).evidence, math.log(regrets / FALSE_ALARMS)]
    together = [SwitchTest(kinds * assignments).evidence, math.log(assignments / FALSE_ALARMS)]
    return first_alarms_of_losses(chosen, losses, scale, np.array(single), np.array(together))


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
    found = (of_cells if events == "everyone" else of_losses)(chances, chances, rng)
    row = {"events": events, "chances": kind, "rounds": rounds}
    for name, first in zip(LIMITS[events], found, strict=True):
        yield row | {"limit": name, "runs": 1, "alarms": int(first > 0)}


def rounds_until_found(instance: tuple[str, str], seed: int) -> Iterator[Row]:
    """Tell after how many rounds each limit rejects a model that is wrong by ``ERROR``.

    One number is said too high; of several each is said too high or too low in the whole run.
    """
    events, kind = instance
    rng = stream(seed, "benchmarks", f"switch test {events} {kind} wrong")
    chances = chances_of(events, kind, FOUND_ROUNDS, rng)
    sign = 1.0 if events == "everyone" else rng.choice([-1.0, 1.0], SIZE)
    predictions = np.clip(chances + sign * ERROR, 0.0, 1.0)
    found = (of_cells if events == "everyone" else of_losses)(chances, predictions, rng)
    for name, first in zip(LIMITS[events], found, strict=True):
        after = float(first) if first else math.inf
        row = {"events": events, "chances": kind, "limit": name}
        yield row | {"found": float(first > 0), "median round": after}


class Alarms(Table):
    """Adds up alarms, with the upper 95 % limit of their share (Clopper and Pearson)."""

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a line for each case and limit."""
        lines = table.groupby(list(self.by), sort=False).agg({"runs": "sum", "alarms": "sum"})
        alarms, runs = lines["alarms"], lines["runs"]
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
