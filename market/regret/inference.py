r"""How sure a mean difference per round is: intervals that hold for all comparisons at once.

The verdict of a run, an audit and the contrasts of a study call ``mean_differences`` or its parts
``critical`` and ``holm``. All results are reproducible: the only random numbers, signs of the
bootstrap, come from a stream with a fixed seed.

Mathematics
-----------
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
T. Below ``MIN_EFFECTIVE_ROUNDS`` an interval is too short to be trusted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

CONFIDENCE_LEVEL = 0.95
N_SIGN_VECTORS = 4_000  # draws of the bootstrap, each a random sign for every row
RELATIVE_ROUNDING = 1e-12  # of the largest value: below, what differs is no variation
MIN_ROWS_FOR_BOOTSTRAP = 10  # below, the dependence of the differences is not estimated
DIFFERENCES_PER_BATCH = 100  # whose t statistics are drawn at a time, to bound memory
MIN_ROUNDS = 8  # for an interval
MIN_EFFECTIVE_ROUNDS = 30  # for an interval that is trusted

# Degrees of freedom of T rounds: nu = 1.3 T^0.4, at least 4.
FREEDOM_FACTOR = 1.3
FREEDOM_EXPONENT = 0.4
MIN_FREEDOM = 4


@dataclass(frozen=True, eq=False)
class MeanDifferences:
    """Means of J differences, with intervals that hold for all of them at once.

    Attributes
    ----------
    mean : ndarray
        Mean of each difference (J,), NaN without a round.
    low, high : ndarray
        Ends of the 95 % intervals (J,), NaN with fewer than ``MIN_ROUNDS`` rounds.
    p_adjusted : ndarray
        p-values (J,) of the hypothesis that the mean is 0, adjusted by Holm's method.
    effective_rounds : ndarray
        How many independent rounds would say as much (J,).
    """

    mean: Array
    low: Array
    high: Array
    p_adjusted: Array
    effective_rounds: Array


def mean_differences(differences: Array) -> MeanDifferences:
    """Say how sure the means of differences (T, J) are, per round or of equally many rounds."""
    rounds, n_differences = differences.shape
    undefined = np.full(n_differences, np.nan)
    mean = differences.mean(0) if rounds else undefined
    if rounds < MIN_ROUNDS or not n_differences:
        return MeanDifferences(mean, undefined, undefined, undefined, undefined)

    rows = nearly_independent_rows(differences)
    standard_error = rows.std(0, ddof=1) / np.sqrt(len(rows))
    half_width = standard_error * critical(rows)

    with np.errstate(divide="ignore", invalid="ignore"):
        t_without_error = np.where(mean == 0, 0.0, np.inf)
        has_error = standard_error > 0
        t_statistic = np.where(has_error, np.abs(mean) / standard_error, t_without_error)
    p_values = 2 * stdtr(len(rows) - 1, -t_statistic)
    return MeanDifferences(
        mean=mean,
        low=mean - half_width,
        high=mean + half_width,
        p_adjusted=holm(p_values),
        effective_rounds=_effective_rounds(differences, mean),
    )


def nearly_independent_rows(differences: Array) -> Array:
    """Return few rows (n, J) with the means of dependent rounds (T, J), T >= ``MIN_ROUNDS``."""
    rounds = len(differences)
    n_rows = 1 + max(MIN_FREEDOM, int(FREEDOM_FACTOR * rounds**FREEDOM_EXPONENT))
    cosine_transforms = dct(differences, type=2, norm="ortho", axis=0)[:n_rows]
    scaled_transforms = cosine_transforms * np.sqrt(n_rows / rounds)
    return np.asarray(idct(scaled_transforms, type=2, norm="ortho", axis=0))


def _effective_rounds(differences: Array, mean: Array) -> Array:
    """Return how many independent rounds say as much as differences (T, J) with these means (J,).

    At most T: differences that alternate make no more rounds than there are.
    """
    rounds = len(differences)
    centred = differences - mean
    squares = (centred**2).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        products = (centred[1:] * centred[:-1]).sum(0)
        autocorrelation = np.where(squares > 0, products / squares, 0.0)
        effective = rounds * (1 - autocorrelation) / (1 + autocorrelation)
    return np.asarray(np.minimum(effective, rounds))


def critical(samples: Array) -> float:
    """Return what the greatest |t| of J means of n independent rows (n, J) exceeds 5 % of the time.

    The rows' deviations from their mean are given random signs (wild bootstrap; Chernozhukov,
    Chetverikov and Kato 2013, Annals of Statistics 41(6), doi:10.1214/13-AOS1161): unlike the
    correlations of few rows these do not make many means look more alike than they are. It is at
    least Student's value for one mean and at most Bonferroni's, which is returned for fewer than
    ``MIN_ROWS_FOR_BOOTSTRAP`` rows.

    Examples
    --------
    >>> round(critical(np.array([[1.0], [2.0], [4.0]])), 3)  # Student's, of one mean
    4.303
    """
    n_rows, n_means = samples.shape
    student = _student_value(n_rows, n_means=1)
    bonferroni = _student_value(n_rows, n_means=n_means)
    deviations = samples - samples.mean(0)
    variance = (deviations**2).mean(0)
    varies = variance > (RELATIVE_ROUNDING * np.abs(samples).max(0)) ** 2
    deviations = deviations[:, varies]
    variance = variance[varies]
    n_varying = deviations.shape[1]
    if n_rows < MIN_ROWS_FOR_BOOTSTRAP or n_varying < 2:
        return bonferroni

    signs = stream(0, "signs").choice([-1.0, 1.0], (N_SIGN_VECTORS, n_rows))
    greatest_t = np.zeros(N_SIGN_VECTORS)  # over all differences, of each draw of signs
    for first in range(0, n_varying, DIFFERENCES_PER_BATCH):
        batch = slice(first, first + DIFFERENCES_PER_BATCH)
        mean = signs @ deviations[:, batch] / n_rows
        spread = np.maximum(variance[batch] - mean**2, np.finfo(float).tiny)
        np.maximum(greatest_t, np.abs(mean / np.sqrt(spread)).max(1), out=greatest_t)
    quantile = np.quantile(greatest_t, CONFIDENCE_LEVEL) * np.sqrt(n_rows - 1)
    return float(np.clip(quantile, student, bonferroni))


def _student_value(n_rows: int, *, n_means: int) -> float:
    """Return what |t| of one of several means exceeds with 5 % shared out evenly among them."""
    return float(stdtrit(n_rows - 1, 1 - (1 - CONFIDENCE_LEVEL) / (2 * n_means)))


def holm(p_values: Array) -> Array:
    """Adjust p-values (J,) for their number (Holm 1979, Scandinavian Journal of Statistics 6).

    Every run's verdict needs it, and statsmodels, which has it too, is an extra: a test compares
    the two.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))  # 3 x 0.01, then 2 x 0.03, and no less for the last
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    n_hypotheses_left = np.arange(len(p_values), 0, -1)
    scaled = np.minimum(p_values[order] * n_hypotheses_left, 1.0)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(scaled)
    return adjusted
