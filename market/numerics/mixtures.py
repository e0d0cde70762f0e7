r"""Mixtures of exponentials, sum_j s_j exp(eta_j x - c_j v), and the greatest x below a level.

The potential of second-order weights and the supermartingale of the draws have this form.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array

NEWTON = 4


@dataclass(frozen=True, eq=False)
class ExponentialMixture:
    """A mixture over J rates.

    Parameters
    ----------
    rates, costs, shares : array (J,)
        eta and c, above 0; s, which add up to 1.
    """

    rates: Array
    costs: Array
    shares: Array

    def greatest(self, variation: Array | float, exponent: Array | float) -> Array:
        """Return the greatest x at each v for which the mixture is at most exp(exponent).

        Newton's steps on a convex function from the right: every step is an upper bound. As
        {(x, v)} below the level is convex, the result is concave in v.
        """
        paid = self.costs * np.asarray(variation, dtype=np.float64)[..., None] - np.log(self.shares)
        x = ((exponent + paid) / self.rates).min(-1)
        for _ in range(NEWTON):
            powers = self.rates * x[..., None] - paid
            top = powers.max(-1)
            parts = np.exp(powers - top[..., None])
            total = parts.sum(-1)
            excess = top + np.log(total) - exponent
            x = x - excess * total / (parts @ self.rates)
        return np.asarray(x)
