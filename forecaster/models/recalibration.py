r"""Distributions that are mended by how probable they found what came: too wide or too narrow ones.

A mixture of calibrated forecasts is wider than it should be (Gneiting and Ranjan 2013, Electronic
Journal of Statistics 7, 1747-1782, doi:10.1214/13-EJS823), and past errors are wider than those to
come while a model is still learning. Both show in the past: if F_t is the distribution function
forecast in round t, the values u_t = F_t(y_t) are even on [0, 1] where forecasts are calibrated. Of
their distribution function G the recalibrated forecast is

    F*(y)  =  G(F(y)),

whose own values F*_t(y_t) are even if the u_t keep their distribution. G is the mean of what was
seen, with weights that fall by ``RATE`` from round to round, and of ``PRIOR_ROUNDS`` rounds that
are even.

**In cells.** Outcomes are told apart by cells of [0, 1]. A cell that has the probability F(b) -
F(a) gets G(F(b)) - G(F(a)), and every outcome in it the same factor, so that no sorting is needed.
An outcome that falls into the cell from a to b is counted evenly from F(a) to F(b), as it is where
outcomes are discrete (Czado, Gneiting and Held 2009, Biometrics 65(4), 1254-1261,
doi:10.1111/j.1541-0420.2009.01191.x). G is linear between ``N_LEVELS`` even levels.

**Several rounds ahead.** The u of forecasts that are made h rounds ahead depend on each other over
h rounds. An outcome weighs 1 / h then, so that h of them count as one that was forecast one round
ahead, and G stays nearer to even. With the weight of 1, orders that were told outcomes six rounds
late cost 1.27 and 1.11 times those of forecasts that are not recalibrated, and with 1 / h 1.05 and
1.04 times (daily ridership and hourly temperature of ``paper.public_series``, 200 rounds).

**Censored outcomes.** Of an outcome that is known only to lie beyond c it is known only that u lies
beyond F(c). It is redistributed to the right (Efron 1967, Proceedings of the Fifth Berkeley
Symposium 4, 831-853): counted from F(c) to 1 as G is there, when it comes,

    dG(v) / (1 - G(F(c))),    F(c) <= v <= 1,

which is evenly as long as nothing else was seen there. If the u of all outcomes have the
distribution G, what is added has the mean that the outcomes themselves would have added: G does not
move, where a guess in place of the outcome would let it lose its upper end.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled

N_CELLS = 1024  # of [0, 1]
# ends of cells lie beside the numbers that outcomes often are
SHIFT_OF_CELLS = 0.381966
N_LEVELS = 100  # cells of probability
RATE = 0.03  # of the weight, from a round to the one before
PRIOR_ROUNDS = 5.0


@compiled(nogil=True, inline="always")
def _cell_of(outcome: float) -> int:
    """Return the cell of an outcome in [0, 1], from 0 to ``N_CELLS`` (compiled)."""
    return int(outcome * N_CELLS + SHIFT_OF_CELLS)


@compiled(nogil=True)
def write_recalibrated(
    outcomes: Array, weights: Array, levels: Array, probability: Array, recalibrated: Array
) -> None:
    """Write the recalibrated weights of one distribution, and its distribution function (compiled).

    Parameters
    ----------
    outcomes, weights : array (m,)
        The distribution; outcomes are in [0, 1].
    levels : array (``N_LEVELS`` + 1,)
        G at even levels, from 0 to 1.
    probability : array (``N_CELLS`` + 2,)
        Written: F before each cell, and 1.
    recalibrated : array (m,)
        Written.
    """
    probability[:] = 0.0
    for j in range(outcomes.shape[0]):
        probability[_cell_of(outcomes[j]) + 1] += weights[j]
    factors = np.zeros(N_CELLS + 1)
    below = 0.0
    level_below = 0.0
    for cell in range(N_CELLS + 1):
        share = probability[cell + 1]
        if share > 0.0:
            below = min(below + share, 1.0)
            place = below * N_LEVELS
            first = min(int(place), N_LEVELS - 1)
            level = levels[first] + (place - first) * (levels[first + 1] - levels[first])
            factors[cell] = max(level - level_below, 0.0) / share
            level_below = level
        probability[cell + 1] = below
    for j in range(outcomes.shape[0]):
        recalibrated[j] = weights[j] * factors[_cell_of(outcomes[j])]


@compiled(nogil=True)
def add_outcome(
    outcome: float, probability: Array, kept_share: float, weight: float, seen: Array
) -> None:
    """Count how probable a forecast found an outcome (compiled).

    Parameters
    ----------
    outcome : float
        In [0, 1].
    probability : array (``N_CELLS`` + 2,)
        The forecast's distribution function, as ``write_recalibrated`` writes it.
    kept_share : float
        Of the weight of what was seen before.
    weight : float
        Of the outcome.
    seen : array (``N_LEVELS``,)
        Discounted numbers of rounds whose u was in each cell of probability; changed in place.
    """
    cell = _cell_of(outcome)
    # at least a cell of probability, so that rounding never moves a round from one to the next
    half_length = max(probability[cell + 1] - probability[cell], 1.0 / N_LEVELS) / 2
    middle = (probability[cell + 1] + probability[cell]) / 2
    middle = min(max(middle, half_length), 1.0 - half_length)
    first = (middle - half_length) * N_LEVELS
    last = (middle + half_length) * N_LEVELS
    for i in range(N_LEVELS):
        covered = max(min(last, i + 1.0) - max(first, float(i)), 0.0)
        seen[i] = kept_share * seen[i] + weight * covered / (last - first)


@compiled(nogil=True)
def add_limit(
    limit: float, probability: Array, kept_share: float, weight: float, seen: Array
) -> None:
    """Count how probable a forecast found an outcome that lies beyond a limit (compiled).

    The parameters are those of ``add_outcome``, but for ``limit`` in place of an outcome.
    """
    # what lies in the last cell of probability is counted there
    first = min(probability[_cell_of(limit) + 1], 1.0 - 1.0 / N_LEVELS) * N_LEVELS
    total = 0.0
    for i in range(N_LEVELS):
        covered = min(max(i + 1.0 - first, 0.0), 1.0)
        total += covered * (seen[i] + PRIOR_ROUNDS / N_LEVELS)
    for i in range(N_LEVELS):
        covered = min(max(i + 1.0 - first, 0.0), 1.0)
        share = covered * (seen[i] + PRIOR_ROUNDS / N_LEVELS) / total
        seen[i] = kept_share * seen[i] + weight * share


def levels_of(seen: Array) -> Array:
    """Return G at even levels (..., ``N_LEVELS`` + 1), from discounted numbers (..., ``N_LEVELS``).

    Examples
    --------
    >>> levels_of(np.zeros(N_LEVELS))[[0, 50, 100]].round(6).tolist()
    [0.0, 0.5, 1.0]
    """
    weights = seen + PRIOR_ROUNDS / N_LEVELS
    levels = np.zeros((*seen.shape[:-1], N_LEVELS + 1))
    np.cumsum(weights, axis=-1, out=levels[..., 1:])
    levels /= levels[..., -1:]
    return levels


def steps_of(probability: Array) -> dict[str, NDArray[Any]]:
    """Return the ``cells`` after which a distribution function rises, and its ``values`` there.

    There are as many as cells with outcomes, a few hundred, so that they take half the memory or
    less.
    """
    cells = np.flatnonzero(probability[1:] != probability[:-1])
    return {"cells": cells.astype(np.int16), "values": probability[cells + 1]}


def distribution_function(steps: Mapping[str, NDArray[Any]]) -> Array:
    """Return the distribution function (``N_CELLS`` + 2,) that has these steps, bit by bit.

    Examples
    --------
    >>> _, probability = Recalibration().apply(np.array([0.2, 0.7]), np.array([0.25, 0.75]))
    >>> bool((distribution_function(steps_of(probability)) == probability).all())
    True
    """
    n_steps_before = np.searchsorted(steps["cells"], np.arange(N_CELLS + 2))
    return np.append(0.0, steps["values"])[n_steps_before]


class Recalibration(Checkpointable):
    """Recalibrates forecasts of one outcome, round by round.

    Examples
    --------
    >>> recalibration = Recalibration()
    >>> outcomes, weights = np.linspace(0, 1, 101), np.full(101, 1 / 101)
    >>> for day in range(100):  # much too wide
    ...     _, probability = recalibration.apply(outcomes, weights)
    ...     recalibration.learn(0.5, probability, number=day)
    >>> recalibrated, _ = recalibration.apply(outcomes, weights)
    >>> bool(recalibrated[45:56].sum() > 0.8)
    True
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_seen", "_newest")

    def __init__(self) -> None:
        self._seen = np.zeros(N_LEVELS)
        self._newest = 0  # number of the newest round that was learned

    def apply(self, outcomes: Array, weights: Array) -> tuple[Array, Array]:
        """Return recalibrated weights (m,) of a forecast, and what ``learn`` needs to know of it.

        ``outcomes`` (m,) are in [0, 1].
        """
        probability = np.empty(N_CELLS + 2)
        recalibrated = np.empty(len(weights))
        levels = levels_of(self._seen)
        write_recalibrated(outcomes, weights, levels, probability, recalibrated)
        return recalibrated, probability

    def learn(
        self, outcome: float, probability: Array, *, number: int, unknown_before: int = 0
    ) -> None:
        """Learn the outcome, in [0, 1], of a forecast whose distribution function is known.

        ``number`` is that of its round. Weights go by it, so that outcomes may come in any order:
        what is remembered is the same, unless some of them are limits (``learn_limit``).
        ``unknown_before`` is how many outcomes before it were not known when it was forecast: h - 1
        for a forecast h rounds ahead.
        """
        kept_share, weight = self._shares_of_round(number, unknown_before)
        add_outcome(outcome, probability, kept_share, weight, self._seen)
        self._newest = max(self._newest, number)

    def learn_limit(
        self, limit: float, probability: Array, *, number: int, unknown_before: int = 0
    ) -> None:
        """Learn that the outcome of a forecast lies beyond a limit, in [0, 1]; as in ``learn``."""
        kept_share, weight = self._shares_of_round(number, unknown_before)
        add_limit(limit, probability, kept_share, weight, self._seen)
        self._newest = max(self._newest, number)

    def _shares_of_round(self, number: int, unknown_before: int) -> tuple[float, float]:
        """Return how much of what was seen before is kept, and the weight of a round's outcome."""
        kept_share = (1.0 - RATE) ** max(number - self._newest, 0)
        weight = (1.0 - RATE) ** max(self._newest - number, 0) / (1 + unknown_before)
        return kept_share, weight
