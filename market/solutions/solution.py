"""What a solution is: who loses what there, how it was found, and its certificate.

``solve(game, names)`` computes those that are named; each name is registered:

    @register.solution("collusion")
    def collusion(game: StageGame) -> Indices:
        return np.full(game.agents, 3)        # a profile: an action of each agent

Such a function returns a profile (N,), a ``Solution``, or a list of them. What cannot be computed
is a ``Solution`` without losses, whose ``method`` says why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import name_of
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.solutions.stage_game import StageGame

DEFAULT_NAMES = ("nash", "ce", "cce", "optimum")
TOLERANCE = 1e-9  # up to which a gain is none, times the range of losses
ROUNDING_STEPS = 16  # of the greatest number, by which rounding may tell equal losses apart
COLUMNS = ("name", "cohort", "mean_loss", "welfare", "method", "certificate")


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, or an end of a set, with which play can be compared.

    Attributes
    ----------
    name : str
        Such as "nash", "best cce" or "optimum".
    losses : array (N,) or None
        What each agent loses on average, in units of its utility; None where none was found.
    method : str
        How it was found, or why it was not.
    certificate : float
        The greatest gain of a deviation, in the same units: of one action for equilibria and
        optima, of a swap for correlated equilibria, of one action whatever is recommended for
        coarse ones, of one action at a fixed outcome for ``wardrop``. NaN where there is none.
    """

    name: str
    losses: Array | None
    method: str
    certificate: float = np.nan

    @property
    def is_found(self) -> bool:
        """Whether there are losses."""
        return self.losses is not None

    @property
    def total_loss(self) -> float:
        """The sum over agents; NaN where none was found."""
        return np.nan if self.losses is None else float(self.losses.sum())

    @property
    def welfare(self) -> float:
        """Minus the sum of all losses."""
        return -self.total_loss


def not_found(name: str, reason: str) -> Solution:
    """Return a solution that says why there is none."""
    return Solution(name=name, losses=None, method=f"none: {reason}")


def of_profile(game: StageGame, name: str, profile: Indices, method: str) -> Solution:
    """Return a profile (N,) as a solution, certified."""
    losses = game.losses_at(profile[np.newaxis])[0]
    return Solution(name, losses, method, game.greatest_gain(profile))


def best_and_worst(name: str, found: Sequence[Solution]) -> list[Solution]:
    """Return the solutions with the least and the greatest total loss; one if these are equal."""
    best = min(found, key=lambda solution: solution.total_loss)
    worst = max(found, key=lambda solution: solution.total_loss)
    if np.isclose(best.total_loss, worst.total_loss, rtol=1e-9, atol=1e-12):
        return [replace(best, name=name)]
    return [replace(best, name=f"best {name}"), replace(worst, name=f"worst {name}")]


def ratio_of_welfare(equilibrium: float, optimum: float) -> float | None:
    """Return how much worse the welfare of an equilibrium is than the optimum's, at least 1.

    Of costs, whose welfare is negative, it is the equilibrium's over the optimum's; of positive
    welfare it is the other way round. None where they have no such ratio.
    """
    if optimum < 0:
        return equilibrium / optimum
    if equilibrium > 0:
        return optimum / equilibrium
    return None


def solve(game: StageGame, names: str | Sequence[str] = DEFAULT_NAMES) -> list[Solution]:
    """Return the solutions of these registered names, in this order; one name may stand alone.

    UserError if a name is not registered, or a function of a user's own returns something else.
    """
    solutions: list[Solution] = []
    for name in listed(names):
        solver = register.solution[name]
        solutions += _as_solutions(game, name, solver(game), solver)
    return solutions


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple, of one name, too."""
    return (names,) if isinstance(names, str) else tuple(names)


def _as_solutions(game: StageGame, name: str, answer: Any, solver: Any) -> Iterator[Solution]:
    """Yield what a registered function returned as solutions."""
    if isinstance(answer, Solution):
        yield answer
        return
    if isinstance(answer, list) and all(isinstance(entry, Solution) for entry in answer):
        yield from answer
        return
    profile = np.asarray(answer)
    expected = f"return a profile, an action of each of {game.agents} agents, or a Solution"
    is_profile = profile.shape == (game.agents,) and profile.dtype.kind in "iu"
    if not is_profile or (profile < 0).any() or (profile >= np.array(game.sizes)).any():
        raise UserError(f"{name_of(solver)} returned {brief(answer)}; {expected}")
    yield of_profile(game, name, profile.astype(np.intp), "registered")


def solutions_table(game: StageGame, solutions: Sequence[Solution]) -> pd.DataFrame:
    """Return a row per solution and cohort, and a last one over all where there are several.

    ``mean_loss`` is normalised as in the table ``agents``; ``welfare`` is minus the sum of the
    cohort's losses in units of its utility.
    """
    groups = list(game.cohorts)
    if len(groups) > 1:
        groups.append((EVERYBODY, slice(None)))
    rows = []
    for solution in solutions:
        for cohort, agents in groups:
            mean_loss = np.nan
            welfare = np.nan
            if solution.losses is not None:
                normalised = (solution.losses - game.unit_offset) / game.unit_scale
                mean_loss = float(normalised[agents].mean())
                welfare = -float(solution.losses[agents].sum())
            rows.append(
                (solution.name, cohort, mean_loss, welfare, solution.method, solution.certificate)
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def tolerance_of(losses: Array) -> float:
    """Return the gain up to which an agent is not said to gain, given its losses; NaN are none.

    It is a share of their range, and never less than what rounding may leave of such numbers.
    """
    greatest = float(np.nanmax(losses))
    least = float(np.nanmin(losses))
    of_rounding = ROUNDING_STEPS * float(np.finfo(np.float64).eps) * max(abs(greatest), abs(least))
    return max(TOLERANCE * (greatest - least), of_rounding)
