r"""Decision calibration and decision cross calibration errors, recomputed from a raw log.

For a loss with coefficients in the predicted basis, action a, policy j and suggestion b,

    decision   || sum_t q_t(a) (p_t - s_t) ||_inf / T
    cross      || sum_t q_t(a) [c_j(x_t) = b] (p_t - s_t) ||_inf / T

where q_t(a) is 1 for the best response to p_t, or with ``smooth`` = eta its quantal weight
(the paper, Definitions 6 and 7, where the sums are not divided by T). Rows may be atoms of mixtures
with their weights: then the error is in expectation over the draws, which the forecaster controls.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.best_response import best_response, expected_losses, quantal_response
from regretless.market.core.arrays import Array
from regretless.market.records import one_hot


def decision_calibration(
    points: ArrayLike,
    truths: ArrayLike,
    coefficients: tuple[Array, Array],
    *,
    smooth: float | None = None,
    mass: ArrayLike | None = None,
) -> Array:
    """Bias of the predictions on the rounds in which each action is the response (K, A).

    Sup norm, per round. docs/measures.md has an example.

    Parameters
    ----------
    points, truths : array (M, n)
        Predictions p and what they predicted, s(y).
    coefficients : arrays (K, A), (K, A, n)
        Offset and weights of each loss.
    smooth : float, optional
        eta of a quantal response.
    mass : array (M,), optional
        Weight of each row, 1 by default; their sum is T.
    """
    nothing = np.zeros((1, len(np.atleast_2d(points))), dtype=np.intp)
    found = cross_calibration(points, truths, coefficients, nothing, smooth=smooth, mass=mass)
    return np.asarray(found[:, :, 0, 0])


def cross_calibration(  # noqa: PLR0913 - the names are promised to users
    points: ArrayLike,
    truths: ArrayLike,
    coefficients: tuple[Array, Array],
    suggestions: ArrayLike,
    *,
    smooth: float | None = None,
    mass: ArrayLike | None = None,
) -> Array:
    """Bias of the predictions by response and by what each policy suggested (C, M).

    Else as ``decision_calibration``. Returns array (K, A, C, A): sup norm of the bias per loss,
    action, policy and suggestion, per round.
    """
    predicted = np.atleast_2d(np.asarray(points, dtype=np.float64))
    gaps = predicted - np.asarray(truths, dtype=np.float64)
    share = np.ones(len(predicted)) if mass is None else np.asarray(mass, dtype=np.float64)
    actions = coefficients[0].shape[1]
    tables = np.stack([expected_losses(*coefficients, point) for point in predicted])
    if smooth is None:
        play = np.stack([one_hot(best_response(table), actions) for table in tables])
    else:
        play = quantal_response(tables, smooth)
    suggested = np.atleast_2d(np.asarray(suggestions, dtype=np.intp))
    said = np.stack([one_hot(row, actions) for row in suggested])
    weights = play * share[:, None, None]
    bias = np.einsum("mka,cmb,mn->kacbn", weights, said, gaps, optimize=True)
    return np.asarray(np.abs(bias).max(-1) / float(share.sum()))
