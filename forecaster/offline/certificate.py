r"""A bound on the regret of a fitted predictor, from rows that were held out of the fit.

Let the m held-out rows be independent draws from one distribution, p_i the probabilities with which
the predictor plays each action at row i, and c an assignment of a comparator c_a to every action a.
The gain of c is

    D_i(a, c_a) = l(a, y_i) - l(c_a(x_i), y_i)  in [-1, 1],     X_i = sum_a p_i(a) D_i(a, c_a),

and decision swap regret on fresh rows is the maximum over c of mu(c) = E X. If mu(c) >= u, the
capital of a bet of the share lambda on mu(c) < u is a supermartingale:

    prod_i (1 + lambda (u - X_i)),   0 <= lambda < 1,  u >= 0.

By Markov's inequality it exceeds 1 / q with probability at most q (Waudby-Smith and Ramdas 2024,
arXiv:2010.09686). Hence mu(c) < u as soon as its logarithm exceeds ln(1 / q). By concavity the
logarithm is at least

    sum_a B_a(c_a),    B_a(c_a) = sum_i p_i(a) ln(1 + lambda (u - D_i(a, c_a))),

with equality where the predictor does not randomise. A union bound covers all K losses, all values
of lambda in ``RATES`` and all (A + C)^A assignments: ln(1 / q) = ln(K |RATES| / kappa) +
sum_a r_a(c_a), with r_a(a) = -ln(1 - 1/A) (no change) and r_a(c) = ln A + ln(A + C - 1) (a change),
since the shares (1 - 1/A) and 1 / (A (A + C - 1)) sum to one. Both sums are over actions, so the
worst assignment is found action by action. The bound falls like 1 / m where no comparator gains,
and like sqrt(Var / m) otherwise.

Omniprediction regret has one comparator for all actions and ln(K |RATES| / kappa) + ln(A + C).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.regret import decision_swap_regret, omniprediction_regret

Measure = Literal["decision_swap", "omniprediction"]

RATES = np.geomspace(0.01, 0.99, 16)  # lambda; fixed before any row is seen
STEPS = 40  # of bisection


@dataclass(frozen=True)
class Certificate:
    """A bound (``total``) on the regret of one loss on fresh rows."""

    measured: float  # regret on those rows
    total: float
    rows: int  # held out


@dataclass(frozen=True)
class BatchBound:
    """A bound on regret on fresh examples, term by term (``online_to_batch``)."""

    online: float
    sampling: float
    kept: float
    basis: float = 0.0
    net: float = 0.0

    @property
    def total(self) -> float:
        """The bound."""
        return self.online + self.sampling + self.kept + self.basis + self.net


def certify(
    table: Array, play: Array, comparators: Indices, *, measure: Measure, kappa: float
) -> Certificate:
    """Certify one loss, but with a probability of ``kappa``.

    ``table`` and ``play`` (m, A) are losses in [0, 1] of every action on held-out rows, and
    probabilities of play; ``comparators`` (A + C, m) actions, of which the first A are the
    constants.
    """
    swap = measure == "decision_swap"
    rule = decision_swap_regret if swap else omniprediction_regret
    losses_of_comparators = np.take_along_axis(table, comparators.T, axis=1)  # (m, A + C)
    gains = table[:, :, None] - losses_of_comparators[:, None, :]
    weights = play
    charges = _charges(play.shape[1], len(comparators))
    if not swap:
        gains = (play[:, :, None] * gains).sum(1, keepdims=True)
        weights = np.ones((len(play), 1))
        charges = np.full((1, 1), math.log(len(comparators)))
    log_target = math.log(len(RATES) / kappa)
    bound = min(_bound(gains, weights, charges, rate=rate, log_target=log_target) for rate in RATES)
    return Certificate(rule(table, play, comparators), bound, len(table))


def _bound(
    gains: Array, weights: Array, charges: Array, *, rate: float, log_target: float
) -> float:
    """Find the least u that a bet at this rate refutes, for gains (m, A, A + C)."""
    low = 0.0
    high = 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        bets = np.einsum("ia,iac->ac", weights, np.log1p(rate * (middle - gains)))
        if (bets - charges).min(1).sum() >= log_target:
            high = middle
        else:
            low = middle
    return high


def _charges(actions: int, comparators: int) -> Array:
    if actions == 1:
        return np.full((1, comparators), math.log(comparators))
    charges = np.full((actions, comparators), math.log(actions) + math.log(comparators - 1))
    np.fill_diagonal(charges[:, :actions], -math.log1p(-1 / actions))
    return charges
