r"""A bound on the regret of fitted predictors, from rows that were held out of each fit.

Let the m held-out rows be independent draws from one distribution, p_i the probabilities with which
a predictor that was learned from other, earlier rows plays each action at row i, and c an
assignment of a comparator c_a to every action a. The gain of c is

    D_i(a, c_a) = l(a, y_i) - l(c_a(x_i), y_i)  in [-1, 1],     X_i = sum_a p_i(a) D_i(a, c_a),

with the mean mu_i(c) given all earlier rows: the same for all rows that one fit is tested on.
Decision swap regret on fresh rows is the maximum over c of mu(c), the mean of all mu_i(c): that of
the fit, or, where several fits are each tested on as many rows, of a fit drawn among them, and of
who plays the mean of their distributions of actions. For 0 <= theta < 1 the capital of a bet

    prod_i (1 - theta X_i) / (1 - theta mu_i)

is a martingale that begins at 1. By Markov's inequality it exceeds 1 / q with probability at most
q. As the logarithm is concave, sum_i ln(1 - theta mu_i) <= m ln(1 - theta mu). Hence

    mu(c) <= [1 - exp((B(c) - ln(1 / q)) / m)] / theta,      B(c) = sum_i ln(1 - theta X_i),

(for one fit the bets of Waudby-Smith and Ramdas 2024, arXiv:2010.09686, of the share theta / (1 -
theta u) on mu < u). By concavity B(c) is at least

    sum_a B_a(c_a),    B_a(c_a) = sum_i p_i(a) ln(1 - theta D_i(a, c_a)),

with equality where the predictor does not randomise. A union bound covers all K losses, all values
of theta in ``RATES`` and all (A + C)^A assignments: ln(1 / q) = ln(K |RATES| / kappa) +
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

# theta, which sets the share of the capital that is bet; fixed before any row is looked at
RATES = np.geomspace(0.01, 0.99, 16)


@dataclass(frozen=True)
class Certificate:
    """A bound (``total``) on the regret of one loss on fresh rows."""

    measured: float  # regret on those rows
    total: float
    rows: int  # held out
    mean_loss: float  # on those rows


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
    losses: Array, play: Array, comparators: Indices, *, measure: Measure, kappa: float
) -> Certificate:
    """Bound a loss's regret on fresh rows; the bound fails with a probability of ``kappa``.

    ``losses`` (m, A), in [0, 1], are those of every action on the held-out rows, ``play`` (m, A)
    the probabilities of the actions; ``comparators`` (A + C, m) are actions, of which the first A
    are the constants.
    """
    losses_of_comparators = np.take_along_axis(losses, comparators.T, axis=1)  # (m, A + C)
    gains = losses[:, :, None] - losses_of_comparators[:, None, :]  # D (m, A, A + C)
    if measure == "decision_swap":  # a comparator for every action
        measured = decision_swap_regret(losses, play, comparators)
        weights = play
        charges = _charges(play.shape[1], len(comparators))
    else:  # one comparator: all actions together are like a single one that is always played
        measured = omniprediction_regret(losses, play, comparators)
        gains = (play[:, :, None] * gains).sum(1, keepdims=True)
        weights = np.ones((len(play), 1))
        charges = np.full((1, 1), math.log(len(comparators)))
    # ln(1 / q), beside the sum of an assignment's charges
    log_target = math.log(len(RATES) / kappa)
    bounds = []
    for rate in RATES:
        # B_a(c) for every action a and comparator c
        log_products = np.einsum("ia,iac->ac", weights, np.log1p(-rate * gains))
        least = (log_products - charges).min(1).sum() - log_target
        bounds.append(-math.expm1(least / len(losses)) / rate)
    bound = float(np.clip(min(bounds), 0.0, 1.0))
    mean_loss = float((play * losses).sum(1).mean())
    return Certificate(measured, bound, len(losses), mean_loss)


def _charges(actions: int, comparators: int) -> Array:
    """Return r_a(c) (A, A + C): minus the logarithm of the share of c at a in the union bound."""
    if actions == 1:
        return np.full((1, comparators), math.log(comparators))
    log_of_change = math.log(actions) + math.log(comparators - 1)
    charges = np.full((actions, comparators), log_of_change)
    np.fill_diagonal(charges[:, :actions], -math.log1p(-1 / actions))
    return charges
