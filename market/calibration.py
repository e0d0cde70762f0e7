r"""Decision calibration and decision cross calibration errors, recomputed from a raw log.

Users call these functions on predictions and what they predicted; tests and the paper's tables
compare the forecaster's own biases with them. Errors are per round, in units of the predicted
basis functions, which are in [0, 1].

Mathematics
-----------
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
    """Return the bias of the predictions where each action is the response (K, A).

    It is the sup norm of the bias, per round. docs/measures.md has an example.

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
    n_rows = len(np.atleast_2d(points))
    one_constant_suggestion = np.zeros((1, n_rows), dtype=np.intp)
    errors = cross_calibration(
        points, truths, coefficients, one_constant_suggestion, smooth=smooth, mass=mass
    )
    return np.asarray(errors[:, :, 0, 0])


def cross_calibration(
    points: ArrayLike,
    truths: ArrayLike,
    coefficients: tuple[Array, Array],
    suggestions: ArrayLike,
    *,
    smooth: float | None = None,
    mass: ArrayLike | None = None,
) -> Array:
    """Return the bias of the predictions by response and by what each policy suggested.

    Parameters are those of ``decision_calibration``, with ``suggestions`` (C, M): the action that
    each policy suggests in each row.

    Returns
    -------
    array (K, A, C, A)
        Sup norm of the bias per loss, action, policy and suggestion, per round.
    """
    predicted = np.atleast_2d(np.asarray(points, dtype=np.float64))
    differences = predicted - np.asarray(truths, dtype=np.float64)
    row_weights = np.ones(len(predicted))
    if mass is not None:
        row_weights = np.asarray(mass, dtype=np.float64)
    offset, weights = coefficients
    n_actions = offset.shape[1]
    expected = np.stack([expected_losses(offset, weights, point) for point in predicted])
    if smooth is None:
        responses = [one_hot(best_response(losses), n_actions) for losses in expected]
        play = np.stack(responses)  # (M, K, A)
    else:
        play = quantal_response(expected, smooth)
    suggested_actions = np.atleast_2d(np.asarray(suggestions, dtype=np.intp))
    suggested = np.stack([one_hot(actions, n_actions) for actions in suggested_actions])
    weighted_play = play * row_weights[:, None, None]
    # summed over rows m: (losses k, actions a, policies c, suggested actions b, outcomes n)
    bias = np.einsum("mka,cmb,mn->kacbn", weighted_play, suggested, differences, optimize=True)
    return np.asarray(np.abs(bias).max(-1) / float(row_weights.sum()))
