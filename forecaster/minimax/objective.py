r"""A solver with an objective: of the mixtures that are good enough, the best one for a purpose.

A round's game is solved until the certificate is at most what is let pass (``tolerance``). Many
mixtures are. With v_j the objective at point p_j, h_j its field and c_j = h_j . p_j (``walk``), one
is chosen by a second linear program,

    minimise  sum_j w_j v_j
    subject to  sum_j w_j c_j + sum_i s_i <= certificate,   s_i >= -sum_j w_j h_ji,   s, w >= 0,
                sum_j w_j = 1,

over the points of the solved game (a model's forecast among them, where it is good enough), of a
walk, and of a lattice. Over the simplex there is one s, at least -g_i for all i, and over
conv s(Y) one s, at least -g . s(y) for the outcomes that were found to be the worst. The
certificate is at most the greater of the tolerance and the solved game's: the bound counts it as
any other, and the guarantee is untouched whatever the objective is.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.numerics.linear_program import Program, UnsolvedError, solver


def cheapest(
    values: Array, payments: Array, gains: Array, *, limit: float, box: bool
) -> Array | None:
    """Return the masses (m,) of least mean value with a worst case within a limit; or None.

    ``gains`` (m, r) are the fields over the box, where nature chooses every one of the r numbers by
    itself; against r listed choices of nature what each takes off a payment.
    """
    count, size = gains.shape
    slacks = np.eye(size) if box else np.ones((size, 1))
    own = np.zeros(slacks.shape[1])
    program = Program(
        np.append(values, own),
        np.vstack(
            [
                np.append(payments, own + 1.0),
                np.append(np.ones(count), own),
                np.hstack([gains.T, slacks]),
            ]
        ),
        row_lower=np.append([-np.inf, 1.0], np.zeros(size)),
        row_upper=np.append([limit, 1.0], np.full(size, np.inf)),
        lower=np.append(np.zeros(count), own if box else own - np.inf),
    )
    try:
        return np.maximum(solver().solve(program).x[:count], 0.0)
    except UnsolvedError:
        return None
