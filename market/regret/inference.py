r"""How sure a mean difference per round is: intervals that hold for all comparisons at once.

The rounds of a market follow one another, so that a difference of losses d_t is correlated over
time and its mean is less certain than that of T independent rounds. With the cosine transforms

    z_k = sqrt(2 / T) sum_t d_t cos(pi k (t - 1/2) / T),        k = 1 .. nu,

which are nearly independent, each with the long-run variance of d, the estimate sum_k z_k^2 / nu
has nu degrees of freedom and mean(d) is studentised by it: a t distribution with nu degrees of
freedom (equal-weighted cosine estimate; Lazarus, Lewis, Stock and Watson 2018, Journal of Business
& Economic Statistics 36(4), doi:10.1080/07350015.2018.1506926). The inverse transform of nu + 1
numbers turns mean and z back into nu + 1 **nearly independent rows** with this very t statistic.
From here on the rounds of a run are what the runs of a study are, and one rule says what the
greatest |t| of several differences exceeds (``critical``): the intervals hold together (max-t).

The **effective sample** is T (1 - r) / (1 + r), r the correlation of successive rounds, and at most
T. Below
``TRUSTED`` an interval is too short to be trusted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

LEVEL = 0.95
SIGNS = 4_000  # of rows, drawn at random
ROUNDING = 1e-12  # of the largest value: below, what differs is no variation
FEW = 10  # independent rows, below which their dependence is not estimated
MANY = 100  # differences whose t is drawn at a time
FEWEST = 8  # rounds, for an interval
FREEDOM, LEAST_FREEDOM = 1.3, 4  # nu = 1.3 T^0.4, at least 4
TRUSTED = 30  # rounds of effective sample


@dataclass(frozen=True, eq=False)
class MeanDifferences:
    """Means (J,) of differences, with intervals that hold for all of them at once."""

    mean: Array
    low: Array  # ends of the 95 % intervals, NaN with fewer than 8 rounds
    high: Array
    p_adjusted: Array  # that the mean is 0, by Holm's method
    effective: Array  # as many independent rounds would say as much


def mean_differences(differences: Array) -> MeanDifferences:
    """Say how sure the means of differences (T, J) are, per round or of equally many rounds."""
    rounds, many = differences.shape
    mean = differences.mean(0) if rounds else np.full(many, np.nan)
    if rounds < FEWEST or not many:
        nothing = np.full(many, np.nan)
        return MeanDifferences(mean, nothing, nothing, nothing, nothing)
    rank = 1 + max(LEAST_FREEDOM, int(FREEDOM * rounds**0.4))
    waves = dct(differences, type=2, norm="ortho", axis=0)[:rank] * np.sqrt(rank / rounds)
    rows = idct(waves, type=2, norm="ortho", axis=0)  # nearly independent, of the same means
    error = rows.std(0, ddof=1) / np.sqrt(len(rows))
    half = error * critical(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(mean) / error, np.where(mean == 0, 0.0, np.inf))
        centred = differences - mean
        power = (centred**2).sum(0)
        follows = np.where(power > 0, (centred[1:] * centred[:-1]).sum(0) / power, 0.0)
        effective = np.asarray(rounds * (1 - follows) / (1 + follows))
        effective = np.minimum(effective, rounds)  # alternation makes no more rounds than there are
    p = holm(2 * stdtr(len(rows) - 1, -t))
    return MeanDifferences(mean, mean - half, mean + half, p, effective)


def critical(samples: Array) -> float:
    """Return what the greatest |t| of J means of n independent rows (n, J) exceeds 5 % of the time.

    The rows' deviations from their mean are given random signs (wild bootstrap; Chernozhukov,
    Chetverikov and Kato 2013, Annals of Statistics 41(6), doi:10.1214/13-AOS1161): unlike the
    correlations of few rows these do not make many means look more alike than they are. It is at
    least Student's value for one mean and at most Bonferroni's, which fewer than 10 rows have.

    Examples
    --------
    >>> round(critical(np.array([[1.0], [2.0], [4.0]])), 3)  # Student's, of one mean
    4.303
    """
    rows, many = samples.shape
    alone, most = (float(stdtrit(rows - 1, 1 - (1 - LEVEL) / (2 * n))) for n in (1, many))
    left = samples - samples.mean(0)
    square = (left**2).mean(0)
    varies = square > (ROUNDING * np.abs(samples).max(0)) ** 2
    left, square = left[:, varies], square[varies]
    if rows < FEW or left.shape[1] < 2:
        return most
    signs = stream(0, "signs").choice([-1.0, 1.0], (SIGNS, rows))
    greatest = np.zeros(SIGNS)
    for first in range(0, left.shape[1], MANY):
        part = slice(first, first + MANY)
        mean = signs @ left[:, part] / rows
        spread = np.maximum(square[part] - mean**2, np.finfo(float).tiny)
        np.maximum(greatest, np.abs(mean / np.sqrt(spread)).max(1), out=greatest)
    return float(np.clip(np.quantile(greatest, LEVEL) * np.sqrt(rows - 1), alone, most))


def holm(p: Array) -> Array:
    """Adjust p-values (J,) for their number (Holm 1979, Scandinavian Journal of Statistics 6).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))  # 3 x 0.01, then 2 x 0.03, and no less for the last
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p, kind="stable")
    steps = np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted
