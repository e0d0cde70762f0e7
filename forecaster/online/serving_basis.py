"""The basis of what is served: exact for its losses wherever that is affordable.

A distribution has the statistics of any basis, so that a larger one costs no skill. Where losses
are exactly linear in s, the best action by the statistics is the best under the distribution.
"""

from collections.abc import Sequence

from regretless.forecaster.bases.convex import relu
from regretless.forecaster.bases.default import default_basis, natural_kind, variant
from regretless.forecaster.bases.exact import DirectSumBasis, ExactLossesBasis
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, Support

MAX_FUNCTIONS = 128  # actions of all losses that are functions of a basis themselves
EXACT = 1e-12  # error of a basis that is rounding


def serving_basis(losses: Sequence[Loss]) -> Basis:
    """Return the default basis of losses in [0, 1] where it is a single exact one.

    Convex losses of one coordinate that are piecewise linear have knots at all of their kinks, of
    which newsvendors with the same orders share theirs. Of other losses the basis is that of the
    losses themselves where these are few, and the default one of many.
    """
    are_hinges = all(natural_kind(loss) == "relu" for loss in losses)
    if are_hinges and len({variant("relu", loss) for loss in losses}) == 1:
        hinges = relu(losses, most_kinks=MAX_FUNCTIONS)
        if hinges.error <= EXACT:
            return hinges
    n_functions = sum(loss.offset.size for loss in losses)
    if n_functions > MAX_FUNCTIONS:
        return default_basis(losses)
    basis = default_basis(losses, listed=MAX_FUNCTIONS)
    is_single = not isinstance(basis, DirectSumBasis)
    if is_single and basis.error <= EXACT:
        return basis
    return ExactLossesBasis(losses)


def support_of(basis: Basis) -> Support | None:
    """Return the best outcomes of a basis, None where it does not know them."""
    try:
        return basis.support()
    except ValueError:
        return None
