r"""A regret estimated from gains, with limits that dependent rounds respect.

Mathematics
-----------
The regret is R = max_s theta(s), the greatest of the mean gains theta(s) = sum_k theta(k, s(k)) of
all ways s to replace. Let theta^(s) be the estimates, se(s) their standard errors, s^ the best of
them and R^ = theta^(s^).

- **Upper limit** max_s theta^(s) + c se(s), with c the quantile for one mean: R is the theta of one
  fixed s*, so that no more is needed for this to be above R.
- **Lower limit** R^ - q, with q the quantile of the greatest error sup_s theta^(s) - theta(s),
  which is a sum over k of maxima over actions: R^ exceeds R by no more than that. Only actions that
  may be the best are in the maximum, as in Chernozhukov, Lee and Rosen (2013, Econometrica 81(2),
  doi:10.3982/ECTA8718).

Standard errors are of one of three kinds. ``martingale``: with logged propensities the errors of
rounds are martingale differences, however rounds depend on earlier ones, and their variances add
up. ``blocks``: a few nearly independent rows take the place of the rounds
(``market.regret.inference``), for estimated propensities. ``time-uniform``: as ``martingale``, with
a quantile that holds in all rounds at once, so that one may look again after each round
(asymptotic confidence sequence; Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, arXiv:2103.06476).
All three hold in large samples; none is exact.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.randomness import stream
from regretless.market.regret.inference import MIN_ROUNDS, nearly_independent_rows

KINDS = ("martingale", "blocks", "time-uniform")
N_DRAWS = 2_000  # of the greatest error
TUNED_ROUNDS = 1_000.0  # at which a time-uniform limit is closest
N_BISECTIONS = 25  # in search of the error at which a limit is a threshold
MAX_SWEEPS = 20  # over the actions, in search of the replacement with the greatest upper limit


@dataclass(frozen=True, eq=False)
class RegretEstimate:
    """A regret, in the unit of the gains, with its limits.

    Attributes
    ----------
    mean_gain : ndarray
        Mean gain of each replacement (K, A), -inf where it is not considered.
    rows : ndarray
        Independent or uncorrelated rows (n, K A) whose mean the mean gains are.
    kind : str
        One of ``KINDS``.
    rounds : int
        Number of rounds.
    """

    mean_gain: Array
    rows: Array
    kind: str
    rounds: int

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the mean gains (K A, K A)."""
        n_rows = len(self.rows)
        deviations = self.rows - self.rows.mean(0)
        return np.asarray(deviations.T @ deviations / (n_rows * (n_rows - 1)))

    @property
    def replacement(self) -> Indices:
        """The best replacement of each of the K actions (K,), by the estimates; a new array."""
        return np.asarray(self.mean_gain.argmax(1))

    @property
    def regret(self) -> float:
        """The regret by the estimates, per round."""
        return float(self.mean_gain.max(1).sum())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean gain of the best replacement."""
        return self._error_of(self.replacement)

    def series(self) -> Array:
        """Return the gain of the best replacement in each row (n,)."""
        return np.asarray(self.rows[:, self._places(self.replacement)].sum(1))

    def _places(self, replacement: Indices) -> Indices:
        n_actions = self.mean_gain.shape[1]
        return np.asarray(np.arange(len(replacement)) * n_actions + replacement)

    def _error_of(self, replacement: Indices) -> float:
        places = self._places(replacement)
        return float(np.sqrt(max(self.covariance[np.ix_(places, places)].sum(), 0.0)))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a standard error."""
        return len(self.rows) - 1

    def quantile(self, error: float) -> float:
        """Return by how many standard errors one mean errs upwards with this probability at most.

        ``error`` is the probability.
        """
        if self.kind == "time-uniform":
            return time_uniform_quantile(self.rounds, error)
        return float(student.isf(error, self.freedom))

    def upper_limit(self, error: float, quantile: float | None = None) -> float:
        """Return a limit that the regret exceeds with probability ``error`` at most.

        ``quantile`` takes the place of that for one mean.
        """
        factor = self.quantile(error) if quantile is None else quantile
        return self._greatest_limit(factor)

    def _greatest_limit(self, factor: float) -> float:
        """Return max_s theta^(s) + factor se(s), by exchanges of one action's replacement.

        The search starts at the best replacement and at the one with the greatest limits of
        single gains.
        """
        n_rows, n_actions = self.mean_gain.shape
        single_errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        single_limits = self.mean_gain + factor * single_errors.reshape(n_rows, n_actions)
        by_limits = single_limits.argmax(1)
        greatest = self._climb(self.replacement, factor)
        if (by_limits == self.replacement).all():
            return greatest
        return max(greatest, self._climb(by_limits, factor))

    def _climb(self, replacement: Indices, factor: float) -> float:
        """Return the greatest limit that exchanges reach from a replacement (K,), changed here."""
        n_rows, n_actions = self.mean_gain.shape
        covariance = self.covariance.reshape(n_rows, n_actions, n_rows, n_actions)
        value = -np.inf
        for _ in range(MAX_SWEEPS):
            before = value
            for row in range(n_rows):
                others = np.arange(n_rows) != row
                other_actions = replacement[others]
                other_rows = np.flatnonzero(others)
                mean_of_others = self.mean_gain[other_rows, other_actions].sum()
                places = other_rows * n_actions + other_actions
                variance_of_others = self.covariance[np.ix_(places, places)].sum()
                with_others = covariance[row][:, other_rows, other_actions].sum(1)
                own_variance = np.diag(covariance[row, :, row, :])
                variances = own_variance + 2 * with_others + variance_of_others
                limits = self.mean_gain[row] + mean_of_others
                limits = limits + factor * np.sqrt(np.maximum(variances, 0.0))
                replacement[row] = limits.argmax()
                value = float(limits.max())
            if value <= before + 1e-12 * max(1.0, abs(before)):
                break
        return value

    @cached_property
    def greatest_errors(self) -> Array:
        """Draws (``N_DRAWS``,) of the greatest error of gains that may be the best, ascending.

        They have the heavier tails of Student's distribution where standard errors are of few
        rows, and are as much wider as a time-uniform quantile is.
        """
        may_be_best = self._may_be_best()
        places = np.flatnonzero(may_be_best.ravel())
        covariance = self.covariance[np.ix_(places, places)]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = stream(0, "audit", "errors")
        errors = rng.standard_normal((N_DRAWS, len(places))) @ root.T
        scale = np.sqrt(self.freedom / rng.chisquare(self.freedom, N_DRAWS))
        table = np.full((N_DRAWS, may_be_best.size), -np.inf)
        table[:, places] = errors * scale[:, None]
        greatest = table.reshape(N_DRAWS, *may_be_best.shape).max(2).sum(1)
        return np.sort(greatest)

    def _may_be_best(self) -> Array:
        """Return which replacements (K, A) are not clearly worse than the best of their action."""
        n_rows, n_actions = self.mean_gain.shape
        best = self.replacement
        slack = 2 * np.sqrt(2 * np.log(max(self.rounds, 3)))  # in standard errors of a difference
        may_be = np.zeros((n_rows, n_actions), dtype=bool)
        for row in range(n_rows):
            places = row * n_actions + np.arange(n_actions)
            own = self.covariance[np.ix_(places, places)]
            variance = np.diag(own) + own[best[row], best[row]] - 2 * own[best[row]]
            distance = self.mean_gain[row, best[row]] - self.mean_gain[row]
            may_be[row] = distance <= slack * np.sqrt(np.maximum(variance, 0.0))
        return may_be

    @property
    def _widening(self) -> float:
        """By how much a time-uniform quantile is greater than that of one look."""
        if self.kind != "time-uniform":
            return 1.0
        return self.quantile(0.025) / float(student.isf(0.025, self.freedom))

    def lower_limit(self, error: float) -> float:
        """Return a limit that the regret falls below with probability ``error`` at most."""
        greatest = float(np.quantile(self.greatest_errors, 1 - error))
        return self.regret - self._widening * greatest

    def error_of_passing(self, threshold: float, factor: float = 1.0) -> float:
        """Return the smallest error at which the upper limit is at most a threshold.

        ``factor`` is by how much quantiles are greater than that of one mean.
        """
        if self.regret > threshold:
            return 1.0
        low, high = 0.0, 60.0
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            if self._greatest_limit(middle) <= threshold:
                low = middle
            else:
                high = middle
        return float(student.sf(low / (factor * self._widening), self.freedom))

    def error_of_failing(self, threshold: float) -> float:
        """Return the smallest error at which the lower limit is above a threshold."""
        distance = (self.regret - threshold) / self._widening
        above = N_DRAWS - np.searchsorted(self.greatest_errors, distance)
        return float((above + 1) / (N_DRAWS + 1))


def estimate_regret(gains: Array, *, kind: str, considered: Mask | None = None) -> RegretEstimate:
    """Estimate the regret of gains (T, K, A): K actions, each with A replacements.

    Parameters
    ----------
    gains : ndarray
        (T, K, A)
    kind : str
        One of ``KINDS``.
    considered : ndarray, optional
        Which of the A replacements are considered (A,); all by default.
    """
    rounds, n_rows, n_actions = gains.shape
    mean_gain = gains.mean(0)
    flat = gains.reshape(rounds, n_rows * n_actions)
    if considered is not None:
        is_considered = np.broadcast_to(considered, (n_rows, n_actions))
        if n_rows == n_actions:  # an action that is left as it is needs no estimate
            is_considered = is_considered | np.eye(n_actions, dtype=bool)
        mean_gain = np.where(is_considered, mean_gain, -np.inf)
    is_blocks = kind == "blocks" and rounds >= MIN_ROUNDS
    rows = nearly_independent_rows(flat) if is_blocks else flat
    return RegretEstimate(mean_gain, rows, kind, rounds)


def time_uniform_quantile(rounds: int, error: float) -> float:
    """Return how many standard errors a one-sided limit is away that holds in all rounds at once.

    Of the normal mixture of Robbins (arXiv:2103.06476).

    >>> round(time_uniform_quantile(1_000, 0.025), 2)
    3.04
    """
    two_sided = 2 * error
    log_term = -2 * np.log(two_sided)
    mixture_variance = (log_term + np.log(log_term) + 1) / TUNED_ROUNDS
    information = rounds * mixture_variance
    bound = np.log(np.sqrt(information + 1) / two_sided)
    return float(np.sqrt(2 * (information + 1) / information * bound))
