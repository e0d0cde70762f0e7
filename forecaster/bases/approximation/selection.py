r"""Choosing few functions that approximate many: pivoted QR to begin, then worst fit first.

Column-pivoted QR takes the function that the chosen ones explain least in the mean square. From
there the greedy step adds the function that is approximated worst in sup norm under the cap on
sum |r_i|. An approximation by fewer functions is one by more, so the error of every function can
only fall: errors from earlier steps are upper bounds, and a step refits only those functions
whose old error exceeds the greatest new one.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import qr

from regretless.forecaster.bases.approximation.sup_norm import SupNormFit
from regretless.market.core.arrays import Array, Indices


def pivots(table: Array, count: int) -> list[int]:
    """Return the first ``count`` rows of a table (N, M) that column-pivoted QR takes."""
    centred = table - table.mean(axis=1, keepdims=True)
    order = qr(centred.T, mode="r", pivoting=True)[1]
    return [int(row) for row in order[:count]]


def tour(table: Array) -> Indices:
    """Order rows (N, M) so that neighbours are alike: always on to the nearest one left.

    A linear program that starts from its neighbour's solution needs a fifth of the steps.
    """
    features = np.ascontiguousarray(table[:, :: max(table.shape[1] // 40, 1)])
    squares, left = (features**2).sum(axis=1), np.zeros(len(features))
    order = np.empty(len(features), dtype=np.intp)
    here = 0
    for step in range(len(features)):
        order[step], left[here] = here, np.inf
        here = int((squares - 2 * features @ features[here] + left).argmin())
    return order


@dataclass(eq=False)
class Selection:
    """A growing choice among candidate functions.

    Parameters
    ----------
    targets : array (N, M)
        Values on the sample of the functions to approximate.
    candidates : array (N, M)
        The same functions stretched onto [0, 1]; the choice is among these.
    cap : float
        Bound on sum |r_i|.
    chosen : list of int
        To begin with.
    precision : float
        To which errors are minimised.

    Attributes
    ----------
    errors : array (N,)
        Upper bound on each target's error with the present choice.
    order : int array (N,)
        A tour of the targets, in which neighbours are alike.
    """

    targets: Array
    candidates: Array
    cap: float
    chosen: list[int]
    precision: float
    working: list[int] = field(default_factory=list)
    errors: Array = field(init=False)
    order: Indices = field(init=False)

    def __post_init__(self) -> None:
        if not self.working:
            count = self.targets.shape[1]
            self.working = list(range(0, count, max(count // 60, 1)))
        self.errors = np.full(len(self.targets), np.inf)
        self.order = tour(self.targets)

    def extend(self, targets: Array, candidates: Array) -> None:
        """Add sample points (N, more); the errors so far are then no longer bounds."""
        first = self.targets.shape[1]
        self.targets = np.hstack([self.targets, targets])
        self.candidates = np.hstack([self.candidates, candidates])
        self.working += range(first, self.targets.shape[1])

    def fitter(self) -> SupNormFit:
        """Return the program for the present choice."""
        table = self.candidates[self.chosen]
        return SupNormFit(table, self.cap, working=self.working, precision=self.precision)

    def worst(self) -> int:
        """Find the target with the greatest error, refitting only where old errors leave doubt."""
        fit, fresh = self.fitter(), np.isinf(self.errors)
        for row in self.order[fresh[self.order]]:
            self.errors[row] = fit(self.targets[row]).error
        while True:
            row = int(self.errors.argmax())
            if fresh[row]:
                return row
            self.errors[row] = min(self.errors[row], fit(self.targets[row]).error)
            fresh[row] = True

    def grow(self, error: float, most: int) -> float:
        """Add functions until every target is within ``error``; return the greatest error.

        Raises
        ------
        ValueError
            If more than ``most`` functions would be needed.
        """
        row = self.worst()
        while self.errors[row] > error:
            if len(self.chosen) >= most or row in self.chosen:
                best = self.errors[row]
                raise ValueError(
                    f"{len(self.chosen)} functions leave an error of {best:.3g}; wanted {error:.3g}"
                )
            self.chosen.append(row)
            row = self.worst()
        return float(self.errors[row])
