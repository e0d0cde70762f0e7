r"""Plans: how to draw outcomes in each phase of the run, after each of the followers' answers.

A plan is a table ``laws`` (P, S, m): a run of T rounds has P equally long phases; in phase p of
round t = 0, 1, ... the leader draws from

    laws[p, s],   p = floor(t P / T),   s = what followers played last,

a law over the m outcomes of its support. With S = 1 it does not look at them; with S = A, s is the
action that the cohort's agents played most in the round before (of several the lowest; 0 before the
first round). So a plan is plain data: a commitment has P = S = 1, up-then-down P = 2.
"""

from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.payoffs import LinearPayoff, ZeroSum
from regretless.agents.adversaries.strategic import Strategic, whole
from regretless.agents.parameters import numbers, require
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.records import Announcement, Context, History, Observation, OutcomeLaw

TURNS = (0.25, 0.5, 0.75)  # of the run, at which a listed plan goes over to its second outcome
WIDEST = 8  # outcomes of a support whose plans are listed


@register.adversary("plan")
class Planned(Strategic):
    """Draws by a plan: a law over outcomes for each phase, and each of the followers' answers.

    Parameters
    ----------
    rng : numpy Generator
        Unused: the referee draws.
    laws : table (P, S, m), or (P, m) for S = 1
        Weights of the support's outcomes, at least 0; each row is divided by its sum.
    rounds : int
        Length of the run; the plan begins again after it.
    cohort : str, optional
        Whose play it looks at; the first one's by default.
    **motive : weights, offset, support, grid
        As in ``Strategic``.

    Raises
    ------
    ValueError
        If the laws are no such table.
    """

    sees = frozenset({"history"})
    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last",)
    payoff: LinearPayoff | ZeroSum

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        laws: ArrayLike,
        rounds: int,
        cohort: str | None = None,
        **motive: Any,
    ) -> None:
        super().__init__(outcomes, rng, **motive)
        self.rounds, self.cohort, self._last = whole("rounds", rounds, least=1), cohort, 0
        table = numbers("laws", laws)
        table = table[:, None] if table.ndim == 2 else table
        if table.ndim != 3 or 0 in table.shape or table.shape[2] != len(self.support):
            wanted = f"phases x rows x {len(self.support)} outcomes of the support"
            raise ValueError(f"laws = {brief(laws)} have shape {table.shape}; give {wanted}")
        require("laws", table, table >= 0, "give weights of at least 0")
        total = table.sum(-1, keepdims=True)
        require("laws", total, total > 0, "give each law a weight above 0")
        self.laws = table / total

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the law of the phase and of what was played last."""
        phase = history.rounds % self.rounds * len(self.laws) // self.rounds
        return OutcomeLaw(self.support, self.laws[phase, self._last])

    def learn(self, payoff: float, observation: Observation) -> None:
        """Remember what followers played most, if the plan looks at it.

        Raises
        ------
        UserError
            If there is no such cohort, or the plan has not a row for each of its actions.
        """
        whom, rows = self.cohort or next(iter(observation.play)), self.laws.shape[1]
        if whom not in observation.play:
            raise UserError(f"adversary.cohort '{whom}': {closest(whom, observation.play)}")
        if rows == 1:
            return
        play = observation.play[whom]
        if len(play) != rows:
            told = f"the adversary's plan has {rows} rows a phase, '{whom}' {len(play)} actions"
            raise UserError(f"{told}; give a row for each, or one for all")
        if play.any():  # somebody was there
            self._last = int(play.argmax())


def softmax(scores: Array) -> Array:
    """Return the laws (..., m) in proportion to exp(scores)."""
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(grown / grown.sum(-1, keepdims=True))


def listed_plans(phases: int, outcomes: int) -> Array:
    """Return plans (L, P, 1, m) that do not look at play: what a bandit chooses among.

    Every outcome alone, an even draw of every two, and every outcome until a quarter, half or three
    quarters of the phases have passed, then another.

    Raises
    ------
    UserError
        If there are too many outcomes to list their plans.
    """
    if outcomes > WIDEST:
        told = f"exp3 lists plans over at most {WIDEST} outcomes, and there are {outcomes}"
        raise UserError(f"{told}; give a smaller support, or choose cem or es")
    pure = np.eye(outcomes)
    made = [np.tile(law, (phases, 1)) for law in pure]
    for i, j in permutations(range(outcomes), 2):
        turned = np.arange(phases)[:, None] >= np.unique(np.round(np.array(TURNS) * phases))
        made += [np.where(then[:, None], pure[j], pure[i]) for then in turned.T]
        made += [np.tile((pure[i] + pure[j]) / 2, (phases, 1))] if i < j else []
    return np.unique(np.array(made), axis=0)[:, :, None]
