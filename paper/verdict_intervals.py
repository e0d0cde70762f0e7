"""How often the intervals of a verdict hold the true mean.

``verdict-coverage``: differences of ``ROUNDS`` rounds follow an autoregression of mean 0, whose
successive rounds have the correlation ``correlation``, and ``differences`` of them are drawn
independently of one another. ``coverage`` is the share of ``REPETITIONS`` in which all of their
95 % intervals hold 0 at once. ``too narrow`` is the share of all differences whose effective
sample is below ``MIN_EFFECTIVE_ROUNDS``, of which a run says that the interval may be too narrow.
"""

from collections.abc import Iterator

import numpy as np
from scipy.signal import lfilter

from paper.harness import Row, Table
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.regret.inference import MIN_EFFECTIVE_ROUNDS, mean_differences

ROUNDS = 1000
REPETITIONS = 1000
WARM_UP = 300  # rounds, after which an autoregression has forgotten that it began at 0
CORRELATIONS = (0.0, 0.5, 0.9, 0.98)
NUMBERS_OF_DIFFERENCES = (1, 12)  # twelve are about as many as a run compares


def autoregressions(correlation: float, n_differences: int) -> Iterator[Array]:
    """Yield ``REPETITIONS`` times independent autoregressions (ROUNDS, n_differences) of mean 0."""
    generator = stream(0, "verdict-coverage", str(correlation), str(n_differences))
    for _ in range(REPETITIONS):
        noise = generator.standard_normal((WARM_UP + ROUNDS, n_differences))
        yield np.asarray(lfilter([1.0], [1.0, -correlation], noise, axis=0)[WARM_UP:])


def coverage(correlation: float) -> Iterator[Row]:
    """Yield a row for each number of differences."""
    for n_differences in NUMBERS_OF_DIFFERENCES:
        all_hold = np.empty(REPETITIONS, dtype=bool)
        are_few = np.empty((REPETITIONS, n_differences), dtype=bool)
        for repetition, differences in enumerate(autoregressions(correlation, n_differences)):
            intervals = mean_differences(differences)
            all_hold[repetition] = ((intervals.low <= 0) & (intervals.high >= 0)).all()
            are_few[repetition] = intervals.effective_rounds < MIN_EFFECTIVE_ROUNDS
        yield {
            "correlation": correlation,
            "differences": n_differences,
            "coverage": all_hold.mean(),
            "too narrow": are_few.mean(),
        }


TABLES = {
    "verdict-coverage": Table(
        coverage, ("correlation", "differences"), instances=lambda: CORRELATIONS, digits=3
    )
}
