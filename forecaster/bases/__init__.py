"""Bases in which losses are linear, each in one file with its support and its registered maker.

A basis is n functions s(y) with values in [0, 1]. A loss is, within ``error``, an offset plus
<r(a), s(y)> for each action a, with sum |r_i| at most ``lipschitz``: delta and lambda of the paper,
whose theorem has lambda sqrt(n) before the root of T. In the table d is the number of coordinates
of an outcome and L a Lipschitz constant; rows that the paper has are marked.

==========================  ==========================  =============================  ==========
Losses                      Basis                       n; lambda; error               File
==========================  ==========================  =============================  ==========
linear                      ``LinearBasis``             d; 1; 0                        polynomial
additive CES (paper: L_p)   ``PowerBasis``              d m; Lebesgue constant of the  polynomial
                                                        m exponents; interpolation's
the same, small numbers     ``BernsteinBasis``          d (p + 1); d; 0                polynomial
powers of one sum: CES,     ``MonomialBasis``           C(d + b - 1, b); 1; 0          multisets
mean-variance (paper)
exponentials of one sum:    ``TaylorExponentialBasis``  C(d + k, k) - 1; e^reach;      multisets
Cobb-Douglas, CARA (paper)                              Taylor's remainder
the same, smaller           ``ChebyshevExponential-     C(d + k, k) - 1; less;         multisets
                            Basis``                     2 sum_(j > k) I_j
convex, d = 1               ``ReLUBasis``               knots; L; L / (4 n)            convex
convex, d = 1 (paper)       ``ConvexRankBasis``         2 to 3 times; L; L / (2 m)     convex
convex, d = 1, tabulated    ``OptimisedConvexBasis``    of its table, as certified     convex
any L-Lipschitz (paper)     ``LipschitzGridBasis``      cells^d; n / 2; L / (2 cells)  grid
CES and its limits          ``RampBasis``               (m + 1)^d - 1; 1; certified    grid
Leontief (paper)            ``LeontiefBasis``           of its lattice; 2 L / m        leontief
a finite population         ``ExactLossesBasis``        its distinct functions; 1; 0   exact
several populations         ``DirectSumBasis``          the parts' sum; their          exact
                                                        greatest
a large population          ``ReducedBasis``            few; its cap; certified        reduced
another basis's, and        ``WithIndicators``          d m more; of the other basis   indicators
whether y_j <= i / m
==========================  ==========================  =============================  ==========

Importing the package registers all of them; ``default`` says which one serves which losses, and any
other is there for whoever names it (docs/utilities.md).
"""

from regretless.forecaster.bases.convex import ConvexRankBasis, OptimisedConvexBasis, ReLUBasis
from regretless.forecaster.bases.exact import DirectSumBasis, ExactLossesBasis
from regretless.forecaster.bases.grid import LipschitzGridBasis, RampBasis
from regretless.forecaster.bases.indicators import WithIndicators
from regretless.forecaster.bases.leontief import LeontiefBasis
from regretless.forecaster.bases.multisets import (
    ChebyshevExponentialBasis,
    MonomialBasis,
    TaylorExponentialBasis,
)
from regretless.forecaster.bases.polynomial import BernsteinBasis, LinearBasis, PowerBasis
from regretless.forecaster.bases.reduced import ReducedBasis

__all__ = [
    "BernsteinBasis",
    "ChebyshevExponentialBasis",
    "ConvexRankBasis",
    "DirectSumBasis",
    "ExactLossesBasis",
    "LeontiefBasis",
    "LinearBasis",
    "LipschitzGridBasis",
    "MonomialBasis",
    "OptimisedConvexBasis",
    "PowerBasis",
    "RampBasis",
    "ReLUBasis",
    "ReducedBasis",
    "TaylorExponentialBasis",
    "WithIndicators",
]
