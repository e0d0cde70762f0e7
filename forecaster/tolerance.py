"""Which certificate is let pass in a round, and what all of them may add up to.

A round's game is solved until its certificate is at most

    tolerance(t) = min( 0.05 / sqrt(t), 1.5 / t ),        rounds t counted from 1.

The sum S of the positive certificates stands inside Lambda (``events.bounds``), beside ln N and
ln ln T. A tolerance of the order 1 / sqrt(t) lets S grow like sqrt(T), and proves T^(-1/4) only.
With this one, from 1 / sqrt(t) <= 2 sqrt(t) - 2 sqrt(t - 1) and 1 / t <= ln t - ln(t - 1),

    S <= 0.05 (2 sqrt(T) - 1)                          T <= 900
    S <= 2.95 + 1.5 ln(T / 900) = 1.5 ln T - 7.25      T >= 900,

below ln T up to two million rounds, and T^(-1/2) is proved, up to logarithms. The two meet at round
900: on a stream that reacts, less was worth more regret (the page of decisions). A solver that
gives up logs the certificate that it has, and bounds count what was logged.
"""

import math

EARLY, LATE = 0.05, 1.5
START = round((LATE / EARLY) ** 2)  # 900, where the two meet


def tolerance_at(time: int) -> float:
    """Return the certificate that is let pass in a round, counted from 1."""
    return min(EARLY / math.sqrt(time), LATE / time)


def certificate_limit(rounds: int) -> float:
    """Bound S after T >= 1 rounds, if the solver never gives up.

    Examples
    --------
    >>> [round(certificate_limit(rounds), 2) for rounds in (1, 64, 1000, 1_000_000)]
    [0.05, 0.75, 3.11, 13.47]
    """
    early = EARLY * (2 * math.sqrt(min(rounds, START)) - 1)
    return early + LATE * math.log(max(rounds / START, 1.0))
