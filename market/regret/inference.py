r"""How sure a mean difference per round is: intervals that hold for all comparisons at once.

The rounds of a market follow one another, so that a difference of losses d_t is correlated over
time and its mean is less certain than that of T independent rounds. With the cosine transforms

    z_k = sqrt(2 / T) sum_t d_t cos(pi k (t - 1/2) / T),        k = 1 .. nu,

which are nearly independent, each with the long-run variance of d, the estimate sum_k z_k^2 / nu
has nu degrees of freedom and mean(d) is studentised by it: a t distribution with nu degrees of
freedom (equal-weighted cosine estimate; Lazarus, Lewis, Stock and Watson 2018, Journal of Business
& Economic Statistics 36(4), doi:10.1080/07350015.2018.1506926). Of several differences the
transforms keep the correlation between them, from which the distribution of the greatest |t| is
drawn: the intervals hold together (max-t). nu = 1.3 T^0.4 covers .95, .95 and .94 of the time at
autocorrelations .0, .5 and .9 and T = 1,000.

The **effective sample** is T (1 - r) / (1 + r), r the correlation of successive rounds. Below
``TRUSTED`` an interval is too short to be trusted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

LEVEL = 0.95
DRAWS = 20_000  # of the greatest |t|
SIGNS = 4_000  # of rows, drawn at random
FEW = 10  # independent rows, below which their dependence is not estimated
MANY = 100  # differences whose t is drawn at a time
FEWEST = 8  # rounds, for an interval
LEAST_FREEDOM = 4
TRUSTED = 30  # rounds of effective sample


@dataclass(frozen=True, eq=False)
class MeanDifferences:
    """Means of J differences, with intervals that hold for all of them at once.

    Parameters
    ----------
    mean : array (J,)
    low, high : array (J,)
        Ends of the 95 % intervals; NaN with fewer than 8 rounds.
    p_adjusted : array (J,)
        Of the hypothesis that the mean is 0, adjusted for J of them by Holm's method.
    effective : array (J,)
        As many independent rounds would say as much.
    """

    mean: Array
    low: Array
    high: Array
    p_adjusted: Array
    effective: Array


def mean_differences(differences: Array) -> MeanDifferences:
    """Say how sure the means of differences over rounds are.

    Parameters
    ----------
    differences : array (T, J)
        Per round, or means of batches of equally many rounds, in the order of time.
    """
    rounds, many = differences.shape
    mean = differences.mean(0) if rounds else np.full(many, np.nan)
    if rounds < FEWEST or not many:
        nothing = np.full(many, np.nan)
        return MeanDifferences(mean, nothing, nothing, nothing, nothing)
    waves = _transforms(differences)
    error = np.sqrt((waves**2).mean(0) / rounds)
    half = error * _critical(waves)
    freedom = len(waves)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(mean) / error, np.where(mean == 0, 0.0, np.inf))
    p = 2 * stdtr(freedom, -t)
    return MeanDifferences(mean, mean - half, mean + half, holm(p), _effective(differences))


def critical(samples: Array) -> float:
    """Return what the greatest |t| of J means of n independent rows (n, J) exceeds 5 % of the time.

    The rows' deviations from their mean are given random signs (wild bootstrap; Chernozhukov,
    Chetverikov and Kato 2013, Annals of Statistics 41(6), doi:10.1214/13-AOS1161): unlike the
    correlations of few rows these do not make many means look more alike than they are. It is at
    most Bonferroni's value, which fewer than 10 rows have.

    Examples
    --------
    >>> round(critical(np.array([[1.0], [2.0], [4.0]])), 3)  # Student's, of one mean
    4.303
    """
    rows, many = samples.shape
    most = float(stdtrit(rows - 1, 1 - (1 - LEVEL) / (2 * many)))
    left = samples - samples.mean(0)
    square = (left**2).mean(0)
    left, square = left[:, square > 0], square[square > 0]
    if rows < FEW or left.shape[1] < 2:
        return most
    signs = stream(0, "signs").choice([-1.0, 1.0], (SIGNS, rows))
    greatest = np.zeros(SIGNS)
    for first in range(0, left.shape[1], MANY):
        part = slice(first, first + MANY)
        mean = signs @ left[:, part] / rows
        spread = np.maximum(square[part] - mean**2, np.finfo(float).tiny)
        np.maximum(greatest, np.abs(mean / np.sqrt(spread)).max(1), out=greatest)
    return min(most, float(np.quantile(greatest, LEVEL) * np.sqrt(rows - 1)))


def holm(p: Array) -> Array:
    """Adjust p-values (J,) for their number (Holm 1979, Scandinavian Journal of Statistics 6)."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def _transforms(differences: Array) -> Array:
    """Return the first nu cosine transforms of each difference (nu, J)."""
    rounds = len(differences)
    freedom = max(LEAST_FREEDOM, int(1.3 * rounds**0.4))
    return np.asarray(dct(differences, type=2, norm="ortho", axis=0)[1 : freedom + 1])


def _critical(waves: Array) -> float:
    """Return what the greatest |t| of all differences exceeds 5 % of the time."""
    freedom = len(waves)
    alone = float(stdtrit(freedom, (1 + LEVEL) / 2))
    size = np.sqrt((waves**2).sum(0))
    kept = waves[:, size > 0] / size[size > 0]
    if kept.shape[1] < 2:
        return alone
    rng = stream(0, "max-t")
    drawn, greatest = rng.standard_normal((DRAWS, freedom)), np.zeros(DRAWS)
    for first in range(0, kept.shape[1], MANY):
        np.maximum(greatest, np.abs(drawn @ kept[:, first : first + MANY]).max(1), out=greatest)
    greatest /= np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)
    return max(alone, float(np.quantile(greatest, LEVEL)))


def _effective(differences: Array) -> Array:
    """Return the effective sample of each difference (J,)."""
    rounds = len(differences)
    centred = differences - differences.mean(0)
    power = (centred**2).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        follows = np.where(power > 0, (centred[1:] * centred[:-1]).sum(0) / power, 0.0)
    return np.asarray(rounds * (1 - follows) / (1 + follows))
