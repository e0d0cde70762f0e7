r"""A regret estimated from gains, with limits that dependent rounds respect.

Mathematics
-----------
The regret is R = max_s theta(s), the greatest of the mean gains theta(s) = sum_k theta(k, s(k)) of
all ways s to replace. Let theta^(s) be the estimates, se(s) their standard errors, s^ the best of
them and R^ = theta^(s^).

- **Upper limit** max_s theta^(s) + c se(s), with c the quantile for one mean: R is the theta of one
  fixed s*, so that no more is needed for this to be above R.
- **Lower limit** R^ - q. R^ exceeds R by sum_k max_a [ e(k, a) - gap(k, a) ], with e the errors
  of the estimates and gap(k, a) by how much a is worse than the best replacement of k. The gaps are
  not known: a tenth of the error is spent on limits that they all exceed, and q is the quantile of
  the sum with these for the rest of the error (Romano, Shaikh and Wolf 2014, Econometrica 82(5),
  doi:10.3982/ECTA11011). Replacements that are clearly worse thus do not widen the interval.

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
from regretless.scenarios.audit.pair_gains import PairGains

KINDS = ("martingale", "blocks", "time-uniform")
N_DRAWS = 4_000  # of the greatest error
GAP_SHARE = 0.1  # of an error, that is spent on limits of the gaps
MAX_GAP = 12.0  # standard errors, beyond which a replacement cannot be the best
TUNED_ROUNDS = 1_000.0  # at which a time-uniform limit is closest
N_BISECTIONS = 25  # in search of the error at which a limit is a threshold
MAX_QUANTILE = 60.0  # standard errors, at which the search for that error begins
MAX_SWEEPS = 20  # over the actions, in search of the replacement with the greatest upper limit
CHUNK_ENTRIES = 4_000_000  # gains that are in memory at a time


@dataclass(frozen=True, eq=False)
class RegretEstimate:
    """A regret, in the unit of the gains, with its limits.

    Attributes
    ----------
    mean_gain : ndarray
        Mean gain of each replacement (K, A), -inf where it is not considered.
    covariance : ndarray
        Covariance of the mean gains (K A, K A).
    series : ndarray
        Gain of the best replacement in uncorrelated rows (n,), whose mean the regret is.
    freedom : int
        Degrees of freedom of a standard error.
    kind : str
        One of ``KINDS``.
    rounds : int
        Number of rounds.
    """

    mean_gain: Array
    covariance: Array
    series: Array
    freedom: int
    kind: str
    rounds: int

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
        flat_indices = _flat_indices_of_best(self.mean_gain)
        return float(np.sqrt(max(self.covariance[np.ix_(flat_indices, flat_indices)].sum(), 0.0)))

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
                flat_indices = other_rows * n_actions + other_actions
                variance_of_others = self.covariance[np.ix_(flat_indices, flat_indices)].sum()
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

    @property
    def _widening(self) -> float:
        """By how much a time-uniform quantile is greater than that of one look."""
        if self.kind != "time-uniform":
            return 1.0
        return self.quantile(0.025) / float(student.isf(0.025, self.freedom))

    def lower_limit(self, error: float) -> float:
        """Return a limit that the regret falls below with probability ``error`` at most."""
        if error not in self._lower_limits:
            self._lower_limits[error] = self._lower_limit(error, self._draw_errors())
        return self._lower_limits[error]

    @cached_property
    def _lower_limits(self) -> dict[float, float]:
        """Lower limits that were computed, by their error: several tables have the same."""
        return {}

    def _lower_limit(self, error: float, draws: Array) -> float:
        """Return the lower limit by draws (``N_DRAWS``, K, A) of the errors."""
        error_of_gaps = GAP_SHARE * error
        greatest = (draws - self._least_gaps(error_of_gaps)).max(2).sum(1)
        quantile = float(np.quantile(greatest, 1 - (error - error_of_gaps)))
        return self.regret - quantile

    def _draw_errors(self) -> Array:
        """Draw errors (``N_DRAWS``, K, A) of the mean gains, -inf of those that cannot be the best.

        They have the heavier tails of Student's distribution where standard errors are of few
        rows, and are as much wider as a time-uniform quantile is.
        """
        deficit, standard_error = self._deficits()
        may_be_best = deficit <= MAX_GAP * standard_error
        flat_indices = np.flatnonzero(may_be_best.ravel())
        values, vectors = np.linalg.eigh(self.covariance[np.ix_(flat_indices, flat_indices)])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = stream(0, "audit", "errors")
        errors = rng.standard_normal((N_DRAWS, len(flat_indices))) @ root.T
        scale = self._widening * np.sqrt(self.freedom / rng.chisquare(self.freedom, N_DRAWS))
        draws = np.full((N_DRAWS, may_be_best.size), -np.inf)
        draws[:, flat_indices] = errors * scale[:, None]
        return draws.reshape(N_DRAWS, *may_be_best.shape)

    def _deficits(self) -> tuple[Array, Array]:
        """Return by how much each replacement is worse than the best, and the standard error.

        Both are (K, A), by the estimates; what is not considered is infinitely worse.
        """
        n_rows, n_actions = self.mean_gain.shape
        standard_error = np.zeros((n_rows, n_actions))
        for row, best in enumerate(self.replacement):
            flat_indices = row * n_actions + np.arange(n_actions)
            covariance = self.covariance[np.ix_(flat_indices, flat_indices)]
            variance = np.diag(covariance) + covariance[best, best] - 2 * covariance[best]
            standard_error[row] = np.sqrt(np.maximum(variance, 0.0))
        return self.mean_gain.max(1, keepdims=True) - self.mean_gain, standard_error

    def _least_gaps(self, error: float) -> Array:
        """Return what all gaps (K, A) exceed, but with probability ``error`` at most.

        The probability is shared among all pairs of replacements of an action.
        """
        n_rows, n_actions = self.mean_gain.shape
        n_pairs = max(n_rows * n_actions * (n_actions - 1), 1)
        quantile = self._widening * float(student.isf(error / n_pairs, self.freedom))
        deficit, standard_error = self._deficits()
        return np.asarray(np.maximum(deficit - quantile * standard_error, 0.0))

    def error_of_passing(self, threshold: float, factor: float = 1.0) -> float:
        """Return the smallest error at which the upper limit is at most a threshold.

        ``factor`` is by how much quantiles are greater than that of one mean.
        """
        if self.regret > threshold:
            return 1.0
        low = 0.0
        high = MAX_QUANTILE
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            if self._greatest_limit(middle) <= threshold:
                low = middle
            else:
                high = middle
        return float(student.sf(low / (factor * self._widening), self.freedom))

    def error_of_failing(self, threshold: float) -> float:
        """Return the smallest error at which the lower limit is above a threshold.

        It is one of the numbers k / ``N_DRAWS``, and at most 1/2.
        """
        draws = self._draw_errors()
        low = 0
        high = N_DRAWS // 2
        while high - low > 1:
            middle = (low + high) // 2
            if self._lower_limit(middle / N_DRAWS, draws) > threshold:
                high = middle
            else:
                low = middle
        return high / N_DRAWS


def estimate_swap_regret(
    gains: PairGains, *, kind: str, considered: Mask | None = None
) -> RegretEstimate:
    """Estimate the swap regret: each action has its own replacement.

    Parameters
    ----------
    gains : PairGains
    kind : str
        One of ``KINDS``.
    considered : ndarray, optional
        Which of the A replacements are considered (A,); all by default.
    """
    n_actions = gains.n_actions
    if kind == "blocks" and gains.rounds >= MIN_ROUNDS:
        rows = [nearly_independent_rows(gains.of_action(action)) for action in range(n_actions)]
        mean_gain, covariance = _mean_and_covariance(np.concatenate(rows, axis=1))
    else:
        rows = []
        mean_gain, covariance = _mean_and_covariance_by_chunks(gains)
    mean_gain = _only_considered(mean_gain.reshape(n_actions, n_actions), considered)
    replacement = mean_gain.argmax(1)
    if rows:
        series = np.zeros(len(rows[0]))
        for action, rows_of_action in enumerate(rows):
            series += rows_of_action[:, replacement[action]]
    else:
        series = _series_of(gains, replacement)
    return RegretEstimate(
        mean_gain=mean_gain,
        covariance=covariance,
        series=series,
        freedom=len(series) - 1,
        kind=kind,
        rounds=gains.rounds,
    )


def mean_swap_gains(gains: PairGains, considered: Mask | None = None) -> Array:
    """Return the mean gain of each replacement (A, A), -inf where it is not considered."""
    n_actions = gains.n_actions
    mean_gain = np.empty((n_actions, n_actions))
    for action in range(n_actions):
        mean_gain[action] = gains.of_action(action).mean(0)
    return _only_considered(mean_gain, considered)


def _only_considered(mean_gain: Array, considered: Mask | None) -> Array:
    """Return mean gains (A, A) with -inf where a replacement is not considered (A,)."""
    if considered is None:
        return mean_gain
    # An action that is left as it is needs no estimate.
    is_considered = considered | np.eye(len(mean_gain), dtype=bool)
    return np.where(is_considered, mean_gain, -np.inf)


def estimate_external_regret(gains: PairGains, *, kind: str, considered: Mask) -> RegretEstimate:
    """Estimate the external regret: one action among those considered (A,) replaces all."""
    rows = gains.of_fixed_actions()
    if kind == "blocks" and gains.rounds >= MIN_ROUNDS:
        rows = nearly_independent_rows(rows)
    mean_gain, covariance = _mean_and_covariance(rows)
    mean_gain = np.where(considered, mean_gain, -np.inf)
    return RegretEstimate(
        mean_gain=mean_gain[None, :],
        covariance=covariance,
        series=rows[:, mean_gain.argmax()],
        freedom=len(rows) - 1,
        kind=kind,
        rounds=gains.rounds,
    )


def _flat_indices_of_best(mean_gain: Array) -> Indices:
    """Return where the best replacement of each action stands in a row of all gains (K,)."""
    n_rows, n_actions = mean_gain.shape
    return np.asarray(np.arange(n_rows) * n_actions + mean_gain.argmax(1))


def _mean_and_covariance(rows: Array) -> tuple[Array, Array]:
    """Return the mean (m,) of uncorrelated rows (n, m), and the covariance of that mean."""
    n_rows = len(rows)
    mean = rows.mean(0)
    deviations = rows - mean
    return mean, np.asarray(deviations.T @ deviations / (n_rows * (n_rows - 1)))


def _mean_and_covariance_by_chunks(gains: PairGains) -> tuple[Array, Array]:
    """Return the mean (A A,) of the gains, and its covariance, of some rounds at a time."""
    size = gains.n_actions**2
    length = max(CHUNK_ENTRIES // size, 1)
    chunks = [slice(start, start + length) for start in range(0, gains.rounds, length)]
    total = np.zeros(size)
    for chunk in chunks:
        total += gains.of_rounds(chunk).reshape(-1, size).sum(0)
    mean = total / gains.rounds
    products = np.zeros((size, size))
    for chunk in chunks:
        deviations = gains.of_rounds(chunk).reshape(-1, size) - mean
        products += deviations.T @ deviations
    return mean, products / (gains.rounds * (gains.rounds - 1))


def _series_of(gains: PairGains, replacement: Indices) -> Array:
    """Return the gain of a replacement (A,) in each round (T,)."""
    series = np.zeros(gains.rounds)
    for action, other in enumerate(replacement):
        if action != other:
            baseline = gains.baseline[action, other]
            alternative = gains.value[:, other] + gains.share[:, other] * baseline
            series += gains.probability[:, action] * alternative - gains.own_value[:, action]
    return series


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
