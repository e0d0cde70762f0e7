r"""What the rows of a cohort lose in a round as they play.

Comparisons and the regret log call these. Row k with the mixed strategy q and the losses l of all
actions loses

    sum_a q_a l_a,      added up in the order of the actions,

which is the loss of its action where it plays a pure choice.
"""

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.records import Decision

NO_STRATEGIES: Array = np.empty((0, 0))  # of rows that play pure choices
NO_CHOICES: Indices = np.empty(0, dtype=np.intp)  # of rows that play mixed strategies


def strategies_or_choices(decision: Decision) -> tuple[Array, Indices]:
    """Return what rows play as a kernel takes it: mixed strategies (K, A), or choices (K,).

    The other one is empty.
    """
    choices = decision.choices
    if choices is None:
        return decision.probabilities, NO_CHOICES
    return NO_STRATEGIES, choices


@compiled(nogil=True, inline="always")
def loss_as_played(strategies: Array, choices: Indices, losses: Array, row: int) -> float:
    """Return what a row loses as it plays (compiled).

    Parameters
    ----------
    strategies : array (K, A), or empty
        Mixed strategies, zeros for an absent row.
    choices : int array (K,), or empty
        The action of each row, -1 for an absent one, which loses nothing; they stand in place of
        ``strategies`` unless they are empty.
    losses : array (K, A)
        Losses of all actions.
    row : int
        k.
    """
    if len(choices):
        action = choices[row]
        return losses[row, action] if action >= 0 else 0.0
    loss = 0.0
    for action in range(losses.shape[1]):
        loss += strategies[row, action] * losses[row, action]
    return loss


@compiled(nogil=True)
def _write_played_losses(
    strategies: Array, choices: Indices, losses: Array, rows: Indices, played_losses: Array
) -> None:
    """Write what each of some ``rows`` (k,) loses as it plays into ``played_losses`` (k,).

    Compiled; the other arguments are those of ``loss_as_played``.
    """
    for place, row in enumerate(rows):
        played_losses[place] = loss_as_played(strategies, choices, losses, row)


def write_played_losses(
    decision: Decision, losses: Array, rows: Indices, played_losses: Array
) -> None:
    """Write what some rows (k,) lose as they play, given the losses (K, A) of all actions.

    ``played_losses`` (k,) is written: 0 for an absent row.
    """
    strategies, choices = strategies_or_choices(decision)
    _write_played_losses(strategies, choices, losses, rows, played_losses)
