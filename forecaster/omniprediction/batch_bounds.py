r"""From online to batch: what the measured online regret says about fresh examples.

Let (x_1, y_1), ..., (x_T, y_T) be independent draws from one law, p_t the forecaster's prediction
function of round t (a law over predictions for each x), which knows the first t - 1 examples only,
and k(p) the best response of a loss l with values in [0, 1]. For comparators c_a, one for each
action a, let

    g_t(x, y) = E_{p ~ p_t(x)}[ l(k(p), y) - l(c_{k(p)}(x), y) ]   in [-1, 1].

**online**    e = max over assignments of (1/T) sum_t g_t(x_t, y_t) is the decision swap regret of
the run. It is measured, with the true loss, so that no error of a basis enters. A priori it is at
most what ``bounds`` says from parameters and certificates.

**sampling**  g_t(x_t, y_t) - E g_t(x, y) is a martingale difference within an interval of length
2. By Azuma and Hoeffding, for K losses and N = (A + C)^A assignments at once, with probability
1 - kappa / 2,

    (1/T) sum_t E g_t  <=  e + sqrt(2 ln(2 K N / kappa) / T).

With a burn-in T counts the later rounds alone, and their regret is what is measured. One side is
enough, where the paper takes two and a constant each. Comparators are the A constants and the C
policies; policies must be chosen without sight of these rows.

**kept**      The predictor mixes S <= T of the rounds, drawn uniformly without replacement and
independently of the examples. Hoeffding's bound in Serfling's form (1974): with probability
1 - kappa / 2 the mean over the kept rounds is above the mean over all by at most

    sqrt(2 (1 - (S - 1) / T) ln(2 K N / kappa) / S),           0 for S = T.

**basis**     The above is for a loss that was listed. Any other loss l with coefficients in the
basis acts as the listed loss l' that is nearest over the box; with the radius r between their
linear forms and errors delta, delta' of these, |l - l'| <= r + delta + delta', which costs twice
that. (The paper has 2 delta online and 4 delta here, as it snaps all losses.)

**net**       Continuous actions: policies into [0, 1]^m are snapped to the net, L theta.

Omniprediction regret has one comparator for all actions: N = A + C. All terms are per example.
The bound is one of mathematics, with probability 1 - kappa over examples and kept rounds; rows
that are no independent draws of one law, such as most time series, are outside of it.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regretless.market.core.arrays import Array, Indices

Measure = Literal["decision_swap", "omniprediction"]


@dataclass(frozen=True)
class BatchBound:
    """A bound on regret on fresh examples, term by term.

    Parameters
    ----------
    online : float
        Measured regret of the online run.
    sampling : float
        The martingale's.
    kept : float
        Of keeping some rounds only.
    basis : float
        Of serving a loss through a listed one.
    net : float
        Of continuous actions.
    """

    online: float
    sampling: float
    kept: float
    basis: float = 0.0
    net: float = 0.0

    @property
    def total(self) -> float:
        """The bound."""
        return self.online + self.sampling + self.kept + self.basis + self.net


@dataclass(frozen=True)
class Trial:
    """How many statements are made at once, and from how many examples.

    Parameters
    ----------
    rounds, kept : int
        T and S.
    losses, actions, comparators : int
        K, A and A + C.
    kappa : float
        Probability that some statement fails.
    """

    rounds: int
    kept: int
    losses: int
    actions: int
    comparators: int
    kappa: float

    def logarithm(self, measure: Measure) -> float:
        """Compute ln(2 K N / kappa)."""
        choices = self.actions if measure == "decision_swap" else 1
        return math.log(2 * self.losses / self.kappa) + choices * math.log(self.comparators)

    def sampling(self, measure: Measure) -> float:
        """Bound what fresh examples add to the measured regret."""
        return math.sqrt(2 * self.logarithm(measure) / self.rounds)

    def keeping(self, measure: Measure) -> float:
        """Bound what the kept rounds add to all."""
        if self.kept == self.rounds:
            return 0.0
        left = 1 - (self.kept - 1) / self.rounds
        return math.sqrt(2 * left * self.logarithm(measure) / self.kept)


class OnlineRegret:
    """The online run's regret for one stack of losses, in running sums.

    Parameters
    ----------
    losses, actions, policies : int
        K, A and C.
    """

    def __init__(self, losses: int, actions: int, policies: int) -> None:
        self.sums = np.zeros((losses, actions, actions + policies))
        self.rounds = 0

    def charge(self, play: Array, values: Array, suggestions: Indices) -> None:
        """Add a round.

        Parameters
        ----------
        play, values : array (K, A)
            Law of play and losses.
        suggestions : int array (C,)
        """
        against = np.concatenate([values, values[:, suggestions]], axis=1)
        self.sums += play[:, :, None] * against[:, None, :]
        self.rounds += 1

    def regret(self, measure: Measure) -> Array:
        """Return the regret (K,) per round against constants and policies."""
        own = np.einsum("kaa->k", self.sums[:, :, : self.sums.shape[1]])
        if measure == "decision_swap":
            return np.asarray((own - self.sums.min(2).sum(1)) / self.rounds)
        return np.asarray((own - self.sums.sum(1).min(1)) / self.rounds)
