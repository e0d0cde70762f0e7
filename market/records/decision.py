"""What a cohort does in a round: a law of play per row and an action per agent.

Where all play is pure the law is a one-hot table of mostly zeros, so that one integer per row takes
its place and the table is made only for who reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.read_only import sealed

ARRAYS = ("law", "actions", "predicted", "present", "choices")


@dataclass(frozen=True, eq=False)
class Decision:
    """What a cohort's K rows do in a round.

    Parameters
    ----------
    law : array (K, A) or None
        The law of play; None where ``choices`` says it all.
    actions : int array (N,)
        The action that each of the cohort's N agents played; rows may stand for several agents.
    predicted : array (K, A) or None
        The losses that the row expected when it chose; None where it forms no expectation.
    present : bool array (K,) or None
        The rows that took part; None for all. The others have law of play 0 and action -1.
    choices : int array (K,) or None
        The action of each row where all play is pure, -1 for rows that took no part; it comes with
        ``predicted``, and then the law of play is spelled out only where somebody reads it.
    counts : callable or None
        Draws, once, how many agents of each row played each action (K, A), where a row is a crowd
        that is counted (``market.game.presence``) and draws; its action is that of one of them.

    Raises
    ------
    ValueError
        Without a law, if choices or predicted losses are missing.
    """

    law: Array | None
    actions: Indices
    predicted: Array | None = None
    present: Mask | None = None
    choices: Indices | None = None
    counts: Callable[[], Array] | None = None

    def __post_init__(self) -> None:
        if self.law is None and (self.choices is None or self.predicted is None):
            raise ValueError("a decision needs a law of play, or choices and predicted losses")

    def sealed(self) -> "Decision":
        """Return the same for who may not write into it."""
        parts = {name: getattr(self, name) for name in ARRAYS}
        shown: Any = {n: None if part is None else sealed(part) for n, part in parts.items()}
        return replace(self, **shown)

    @cached_property
    def probabilities(self) -> Array:
        """The law of play (K, A) that the ledger charges: one-hot for a pure choice."""
        if self.law is not None:
            return self.law
        choices: Any = self.choices
        predicted: Any = self.predicted
        spelled = one_hot(np.maximum(choices, 0), predicted.shape[1])
        spelled[choices < 0] = 0.0
        return spelled


def one_hot(actions: Indices, count: int) -> Array:
    """Turn actions (K,) into probabilities (K, count)."""
    rows = np.zeros((len(actions), count))
    rows[np.arange(len(actions)), actions] = 1.0
    return rows
