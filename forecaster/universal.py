"""One outcome, and a promise to every task, listed or not.

``events.cells`` says what is proved of dyadic cells, ``minimax.line`` how a round is played.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.cells import CellEvents, scales_for
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.minimax.line import Line
from regretless.forecaster.models import ExponentialSmoothing
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear


class UniversalDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for any task of one outcome, whether or not it is known.

    Parameters
    ----------
    rounds : int
        T, at least 1; it sets the scales. A longer run has larger certificates.
    reference : Forecaster, optional
        A model of one number, which is broadcast where that is good enough; exponential smoothing
        by default.
    band : float
        z, at least 0: how many times sqrt(C) a bias may reach before it counts.
    give_up : float
        How many times what chance explains it may cost before the reference is corrected. At 0, as
        by default, it is never trusted.
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Raises
    ------
    ValueError
        If ``rounds`` or ``band`` is out of range or a call is out of order.

    Examples
    --------
    >>> forecaster = UniversalDecisionSwap(1000)
    >>> for y in [1.0, 0.0, 0.0, 1.0] * 250:
    ...     mixture = forecaster.mixture()
    ...     forecaster.update(y)
    >>> abs(float(mixture.mean[0]) - 0.5) < 0.1
    True
    """

    def __init__(
        self,
        rounds: int,
        *,
        reference: Forecaster | None = None,
        band: float = 0.0,
        give_up: float = 0.0,
        seed: int = 0,
    ) -> None:
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; give at least 1")
        nobody, scales = ProtectedLosses(np.zeros((1, 1)), np.zeros((1, 1, 1))), scales_for(rounds)
        model = Reference(reference or ExponentialSmoothing(1), band=band, give_up=give_up)
        super().__init__(CellEvents([nobody], scales), Line(scales), model, seed=seed)

    def update(self, y: ArrayLike) -> None:
        """Learn the outcome, a number in [0, 1] or an array of it."""
        super().update(np.atleast_1d(np.asarray(y, dtype=np.float64)))

    def regret_bound(self, loss: Linear) -> Array:
        """Bound the expected decision swap regret per round so far, of tasks it need not know.

        Parameters
        ----------
        loss : Linear
            Single (A, 1) or a stack (K, A, 1), linear in the outcome.

        Returns
        -------
        array (K,)
            Per round; of constants as comparators.
        """
        offset = np.atleast_2d(loss.offset)
        group = ProtectedLosses(offset, np.reshape(loss.weights, (*offset.shape, 1)))
        return self.from_variation(group) / max(self.time, 1)
