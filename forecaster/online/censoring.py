r"""Outcomes of which it is known only that they are at least so much: sales of what was sold out.

A shop sees min(order, demand). If it is sold out, demand y is at least what was sold, c: the
outcome is **censored** at c. Taken for the outcome, c makes forecasts too low, so that orders are
too low, and more is sold out. In place of c the models learn the mean of what lies beyond it,

    y*  =  E_D [y | y > c],      D = (1 - e) (the mixture of the models) + e (even from c to 1).

The weight of c is redistributed to the right, to the outcomes that the models with their own past
errors have there (Efron 1967, Proceedings of the Fifth Berkeley Symposium 4, 831-853: a
distribution of past outcomes that is redistributed by itself is that of Kaplan and Meier), and its
mean is learned, as in regressions with censored outcomes (Buckley and James 1979, Biometrika 66(3),
429-436, doi:10.1093/biomet/66.3.429). An outcome is redistributed once, when it comes, and not
again when D has changed. To learn a draw from what lies beyond in place of its mean cost more in
the one series on which both were tried: 1.71 of full demand's cost, against 1.32, on hourly
bicycles, since lags and last values then are noise.

How probable the forecast found such an outcome is not read off y*: it counts from F(c) to 1
(``models.recalibration``). Where it was read off y*, recalibrated forecasts lost what lies beyond
y*, and on hourly bicycles costs were 1.44 in place of 1.25 times full demand's.

The even part keeps D from ending at the largest order: beyond it nothing was ever seen. The
quantile at which outcomes are censored does not depend on what D is beyond it: if it is too low,
more than its share of rounds is sold out, and it rises. Quantiles above the orders are too narrow.

Nothing is guaranteed of regret or cost: y* is a guess, and no theorem here covers it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regretless.forecaster.models.outcomes import lattice
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.losses import Convex1D, Loss
from regretless.market.records import Ensemble

EVEN_SHARE = 0.002  # e, of the even part beyond c
SOLD_OUT_ROUNDS = 10  # outcomes in a row, all censored, of which a warning is given
COVERED = 0.95  # probability that an exploring order covers the outcome


class CensoringWarning(UserWarning):
    """The last outcomes were all censored, so that nothing is seen of what lies beyond them."""


def sold_out_line() -> str:
    """Say that the last outcomes were all censored, and what helps."""
    line = f"the last {SOLD_OUT_ROUNDS} outcomes were all censored: nothing is seen of what lies"
    return f"{line} beyond; order more now and then (exploring=0.05)"


def checked_censored(censored: Any, names: Sequence[str]) -> Mask:
    """Return of which outcomes (d,) only a lower limit is known.

    ``censored`` is true or false, for all outcomes, or a mapping by their ``names``. UserError if
    it is something else.
    """
    hint = "give True where the outcome is known to be at least y, else False"
    if isinstance(censored, Mapping):
        for name in censored:
            if name not in names:
                raise UserError(f"censored: no outcome {brief(name)}; {closest(str(name), names)}")
        values = [censored.get(name, False) for name in names]
    else:
        values = [censored] * len(names)
    for value in values:
        if not isinstance(value, bool | np.bool_):
            raise UserError(f"censored = {brief(censored)}: {hint}")
    return np.array(values, dtype=bool)


def mean_beyond(outcome: Array, is_censored: Mask, distribution: Ensemble) -> Array:
    """Return an outcome (d,) in place of one that is known to be at least ``outcome`` (d,).

    Parameters
    ----------
    outcome : array (d,)
        In the unit cube; exact in the coordinates that are not censored, which stay as they are.
    is_censored : bool array (d,)
        Which coordinates are lower limits. What the others are does not narrow the forecast: atoms
        of a distribution hardly ever have an exact coordinate in common with the outcome.
    distribution : Ensemble
        What was forecast of the round: outcomes of the unit cube with probabilities.

    Examples
    --------
    >>> forecast = Ensemble(np.array([[0.2], [0.4], [0.8]]), np.full(3, 1 / 3))
    >>> mean_beyond(np.array([0.3]), np.array([True]), forecast).round(2).tolist()
    [0.6]
    """
    evenly = lattice(len(outcome))
    even_outcomes = outcome + (1.0 - outcome) * evenly
    is_beyond = (distribution.outcomes[:, is_censored] > outcome[is_censored]).all(axis=1)
    candidates = np.concatenate([distribution.outcomes[is_beyond], even_outcomes])
    weights = (1.0 - EVEN_SHARE) * distribution.weights[is_beyond]
    weights = np.concatenate([weights, np.full(len(evenly), EVEN_SHARE / len(evenly))])
    mean = weights @ candidates / weights.sum()
    return np.where(is_censored, mean, outcome)


def check_orders(share: float, losses: Mapping[str, Loss]) -> None:
    """Raise UserError if orders are to explore and a loss has none."""
    for name, loss in losses.items():
        if share and not (isinstance(loss, Convex1D) and loss.kinks.shape[-1] == 1):
            raise UserError(
                f"exploring = {share:g}: losses['{name}'] has no orders; give losses of orders, "
                "such as Newsvendor, or leave exploring out"
            )


def exploring_order(orders: Array, best_order: int, high_quantile: float) -> int:
    """Return the index of an order that probably is not sold out.

    It is the least of the ``orders`` (A,), in any order, that is at least ``high_quantile`` and
    greater than the best one, or the greatest if there is none.

    Examples
    --------
    >>> exploring_order(np.array([0.0, 10.0, 20.0, 30.0]), best_order=1, high_quantile=17.0)
    2
    """
    is_large_enough = (orders >= high_quantile) & (orders > orders[best_order])
    if not is_large_enough.any():
        return int(orders.argmax())
    return int(np.where(is_large_enough, orders, np.inf).argmin())
