r"""What the rows of a cohort lose in a round as they play.

Comparisons and the regret log call these. Row k with the mixed strategy q and the losses l of all
actions loses

    sum_a q_a l_a,      added up in the order of the actions,

which is the loss of its action where it plays a pure choice.
"""

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
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


@compiled(nogil=True)
def fill_played_losses(
    strategies: Array, choices: Indices, losses: Array, rows: Indices, played_losses: Array
) -> None:
    """Write what each of some rows loses as it plays (compiled).

    It is sum_a strategies[k, a] losses[k, a] of row k, or losses[k, choices[k]].

    Parameters
    ----------
    strategies : array (K, A), or empty
        Mixed strategies, zeros for an absent row.
    choices : int array (K,), or empty
        The action of each row, -1 for an absent one, which loses nothing; they stand in place of
        ``strategies`` unless they are empty.
    losses : array (K, A)
        Losses of all actions.
    rows : int array (k,)
        The rows.
    played_losses : array (k,)
        Written.
    """
    are_pure = len(choices) > 0
    for place in range(len(rows)):
        row = rows[place]
        loss = 0.0
        if are_pure:
            if choices[row] >= 0:
                loss = losses[row, choices[row]]
        else:
            for action in range(losses.shape[1]):
                loss += strategies[row, action] * losses[row, action]
        played_losses[place] = loss


@compiled()
def fill_losses_of_rounds(
    strategies: Array,
    choices: Indices,
    losses: Array,
    is_wanted: Mask,
    rows: Indices,
    played_losses: Array,
) -> None:
    """Write what each of some rows loses as it plays in some rounds (compiled).

    Parameters
    ----------
    strategies, choices : arrays (T, K, A) and (T, K), one of them empty
        As in ``fill_played_losses``, by round.
    losses : array (T, K, A)
        Losses of all actions.
    is_wanted : bool array (T,)
        Which rounds, n of them.
    rows : int array (k,)
        The rows.
    played_losses : array (n, k)
        Written.
    """
    are_pure = len(choices) > 0
    no_strategies = np.empty((0, 0))
    no_choices = np.empty(0, dtype=np.intp)
    place = 0
    for t in range(len(losses)):
        if not is_wanted[t]:
            continue
        if are_pure:
            fill_played_losses(no_strategies, choices[t], losses[t], rows, played_losses[place])
        else:
            fill_played_losses(strategies[t], no_choices, losses[t], rows, played_losses[place])
        place += 1


def write_played_losses(
    decision: Decision, losses: Array, rows: Indices, played_losses: Array
) -> None:
    """Write what some rows (k,) lose as they play, given the losses (K, A) of all actions.

    ``played_losses`` (k,) is written: 0 for an absent row.
    """
    strategies, choices = strategies_or_choices(decision)
    fill_played_losses(strategies, choices, losses, rows, played_losses)
