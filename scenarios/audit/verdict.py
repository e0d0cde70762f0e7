"""Whether a regret is below a threshold, how sure that is, and how many rounds would tell.

The verdict is on the pessimistic plausible swap regret: the greatest regret that the log allows,
at the cost in the range that makes it least.

- **passes**: its upper limit is at most the threshold.
- **fails**: its lower limit is above the threshold.
- **undecided**: neither.

Whoever has a regret above the threshold passes with probability ``error`` at most, and whoever has
a pessimistic regret at or below it fails with probability ``error`` at most, in large samples and
if the propensities are right. Whoever hardly tried an action may fail with a small true regret.
"""

import math
from dataclasses import dataclass

from scipy.stats import norm

from regretless.scenarios.audit.regret_curve import RegretCurve

PASSES = "passes"
FAILS = "fails"
UNDECIDED = "undecided"
POWER = 0.8  # probability of a verdict, with the number of rounds that is called needed
MEASURE = "pessimistic"


@dataclass(frozen=True)
class Verdict:
    """A verdict against a threshold.

    Attributes
    ----------
    verdict : str
        ``PASSES``, ``FAILS`` or ``UNDECIDED``.
    threshold : float
        As a share of the log's scale.
    regret, low, high : float
        The pessimistic plausible swap regret and its limits, as shares of the log's scale.
    cost : float
        At which it is least; NaN where actions are no prices.
    error_bound : float
        Probability with which each limit may be wrong.
    p_value : float
        Smallest such probability with which there would still be this verdict, or the verdict that
        the estimate leans to.
    rounds_needed : float
        Rounds that would lead to a verdict with probability ``POWER``, if further rounds are like
        these; infinite where the estimate is the threshold.
    is_decided_by_untried : bool
        Whether a failure rests on actions that were hardly tried: without them the regret is not
        shown to be above the threshold.
    """

    verdict: str
    threshold: float
    regret: float
    low: float
    high: float
    cost: float
    error_bound: float
    p_value: float
    rounds_needed: float
    is_decided_by_untried: bool


def find_verdict(curve: RegretCurve, threshold: float, error: float) -> Verdict:
    """Compare the pessimistic plausible regret of a curve with a threshold."""
    point = curve.plausible(MEASURE)
    estimate = point.pessimistic
    high = curve.upper_limit(MEASURE, error)
    low = curve.lower_limit(MEASURE, error)
    verdict = UNDECIDED
    if high <= threshold:
        verdict = PASSES
    elif low > threshold:
        verdict = FAILS

    is_below = estimate.regret <= threshold
    if is_below:
        factor = curve.quantile_factor(MEASURE, error)
        closest = curve.point_of_upper_limit(MEASURE, error)
        p_value = closest.pessimistic.error_of_passing(threshold, factor)
        distance = high - estimate.regret
    else:
        p_value = max(at_cost.pessimistic.error_of_failing(threshold) for at_cost in curve.points)
        distance = estimate.regret - low
    gap = abs(estimate.regret - threshold)
    needed = distance + float(norm.ppf(POWER)) * estimate.standard_error
    rounds_needed = math.inf if gap == 0 else estimate.rounds * (needed / gap) ** 2
    swap_low = curve.lower_limit("swap", error)
    return Verdict(
        verdict=verdict,
        threshold=threshold,
        regret=estimate.regret,
        low=max(low, 0.0),
        high=high,
        cost=point.cost,
        error_bound=error,
        p_value=p_value,
        rounds_needed=math.ceil(rounds_needed) if math.isfinite(rounds_needed) else math.inf,
        is_decided_by_untried=verdict == FAILS and swap_low <= threshold,
    )
