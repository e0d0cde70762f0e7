r"""Correlated and coarse correlated equilibria: their best and worst welfare, and play's distance.

Mathematics
-----------
A distribution x over configurations is a correlated equilibrium (Aumann 1974) if nobody gains by
replacing an action that is recommended, and a coarse one (Moulin and Vial 1978; Hannan 1957) if
nobody gains by one action whatever is recommended:

    ce     sum_c x(c) n_ta(c) / n_t gain_t(a, b; c) <= 0            for all t, a, b
    cce    sum_c x(c) sum_a n_ta(c) / n_t gain_t(a, b; c) <= 0      for all t, b.

Total loss is linear in x, so that its ends over either polytope are linear programs, which HiGHS
solves (Papadimitriou and Roughgarden 2008 for counts). The empirical distribution of play whose
swap regret is 0 is a correlated equilibrium, one whose external regret is 0 a coarse one (Foster
and Vohra 1997; Hart and Mas-Colell 2000). How far play q is from either polytope in total variation
is a program, too:

    1 - max sum_c m(c)    with    m <= q,  m <= x,  x in the polytope.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.solutions.solution import Solution, best_and_worst, not_found
from regretless.market.solutions.stage_game import Configurations, StageGame

CONCEPTS = ("ce", "cce")
MAX_NONZEROS = 2_000_000  # of a polytope's constraints


@dataclass(frozen=True, eq=False)
class Polytope:
    """A set of distributions x over configurations: ``constraints @ x <= 0``, x a distribution.

    ``constraints`` (R, C) are gains in units. Of the rows of one group an agent can choose one, so
    that its deviation gains the sum over its groups of the greatest row of each.
    """

    constraints: sp.csr_array
    group_of_row: Indices  # (R,)
    type_of_group: Indices  # of the agents who deviate

    def greatest_gain(self, weights: Array) -> float:
        """Return the most that an agent gains by deviating from a distribution (C,)."""
        gain_of_group = np.zeros(len(self.type_of_group))
        np.maximum.at(gain_of_group, self.group_of_row, self.constraints @ weights)
        gain_of_type = np.bincount(self.type_of_group, gain_of_group)
        return float(gain_of_type.max(initial=0.0))


def polytope_of(game: StageGame, concept: str) -> Polytope:
    """Return the polytope of "ce" or "cce"; UserError if it is too large, or of another name."""
    if concept not in CONCEPTS:
        raise UserError(f"distance '{concept}': give one of {', '.join(CONCEPTS)}")
    configurations = game.configurations
    reason = _why_too_large(configurations, concept)
    if reason:
        raise UserError(f"{concept}: {reason}")
    row_of: dict[tuple[int, int, int], int] = {}  # by type, recommended action (-1: any), other
    group_of: dict[tuple[int, int], int] = {}  # by type and recommended action
    group_of_row: list[int] = []
    # Each begins with nothing: where all have one action, nobody can deviate.
    rows: list[Indices] = [np.empty(0, dtype=np.intp)]
    columns: list[Indices] = [np.empty(0, dtype=np.intp)]
    values: list[Array] = [np.empty(0)]
    for deviation in configurations.deviations():
        kind = deviation.kind
        recommended = deviation.action if concept == "ce" else -1
        row_key = (kind, recommended, deviation.other)
        if row_key not in row_of:
            row_of[row_key] = len(row_of)
            group_of_row.append(group_of.setdefault((kind, recommended), len(group_of)))
        n_members = len(game.members[kind])
        chance = configurations.counts[kind][deviation.rows, deviation.action] / n_members
        rows.append(np.full(len(deviation.rows), row_of[row_key], dtype=np.intp))
        columns.append(deviation.rows)
        values.append(chance * deviation.gains)
    shape = (len(row_of), len(configurations))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return Polytope(
        constraints=sp.coo_array(entries, shape=shape).tocsr(),
        group_of_row=np.array(group_of_row, dtype=np.intp),
        type_of_group=np.array([kind for kind, _ in group_of], dtype=np.intp),
    )


def _why_too_large(configurations: Configurations, concept: str) -> str:
    """Say that a polytope has too many numbers; empty where it has not."""
    nonzeros = 0
    for counts in configurations.counts:
        size = counts.shape[1]
        per_deviation = int((counts > 0).sum()) * (size - 1)
        nonzeros += per_deviation if concept == "ce" else len(counts) * size
    if nonzeros <= MAX_NONZEROS:
        return ""
    return f"a program of {nonzeros:,} numbers is more than {MAX_NONZEROS:,}"


@register.solution("ce")
def correlated_equilibria(game: StageGame) -> list[Solution]:
    """Correlated equilibria: the best and the worst."""
    return _ends(game, "ce")


@register.solution("cce")
def coarse_correlated_equilibria(game: StageGame) -> list[Solution]:
    """Coarse correlated equilibria: the best and the worst."""
    return _ends(game, "cce")


def _ends(game: StageGame, concept: str) -> list[Solution]:
    """Return the distributions of a polytope with the least and the greatest total loss."""
    regret = "swap" if concept == "ce" else "external"
    bound = f"play is within its own {regret} regret of one"
    if not game.is_enumerable:
        return [not_found(concept, f"{game.why_too_large}; {bound}")]
    try:
        polytope = polytope_of(game, concept)
    except UserError as error:
        return [not_found(concept, f"{str(error).removeprefix(f'{concept}: ')}; {bound}")]
    configurations = game.configurations
    ends = []
    for sign in (1.0, -1.0):
        weights = _extreme_point(polytope, sign * configurations.total_loss)
        if weights is None:
            return [not_found(concept, f"HiGHS did not solve its program; {bound}")]
        losses = configurations.mean_losses(weights)
        method = f"linear program over {len(configurations):,} profiles by counts"
        ends.append(Solution(concept, losses, method, polytope.greatest_gain(weights)))
    return best_and_worst(concept, ends)


def _extreme_point(polytope: Polytope, objective: Array) -> Array | None:
    """Return the distribution (C,) of a polytope with the least objective; None if unsolved."""
    n_configurations = len(objective)
    spread = max(float(np.ptp(objective)), 1e-300)
    result = linprog(
        (objective - objective.min()) / spread,
        A_ub=_scaled(polytope.constraints),
        b_ub=np.zeros(polytope.constraints.shape[0]),
        A_eq=sp.csr_array(np.ones((1, n_configurations))),
        b_eq=np.ones(1),
        method="highs",
    )
    if result.x is None or result.status != 0:
        return None
    weights = np.clip(result.x, 0.0, None)
    return np.asarray(weights / weights.sum())


def _scaled(constraints: sp.csr_array) -> sp.csr_array:
    """Return constraints with rows divided by their greatest number, which leaves them the same."""
    greatest = abs(constraints).max(axis=1).toarray().ravel()
    factors = np.where(greatest > 0, 1 / np.where(greatest > 0, greatest, 1.0), 1.0)
    return sp.csr_array(sp.diags_array(factors) @ constraints)


def distance(game: StageGame, concept: str, play: Array) -> float:
    """Return the total variation distance of a distribution (C,) from a polytope, in [0, 1].

    UserError if it cannot be computed, with the reason.
    """
    polytope = polytope_of(game, concept)
    n_configurations = len(play)
    played = np.flatnonzero(play)
    # Variables: x (C,), and m, the part that play and x share, on what was played.
    objective = np.concatenate([np.zeros(n_configurations), -np.ones(len(played))])
    n_rows = polytope.constraints.shape[0]
    no_shares = sp.csr_array((n_rows, len(played)))
    gains = sp.hstack([_scaled(polytope.constraints), no_shares])
    picked = sp.csr_array(
        (-np.ones(len(played)), (np.arange(len(played)), played)),
        shape=(len(played), n_configurations),
    )
    shares = sp.hstack([picked, sp.eye_array(len(played))])  # m - x <= 0
    total = np.concatenate([np.ones(n_configurations), np.zeros(len(played))])
    bounds = [(0.0, None)] * n_configurations + [(0.0, float(share)) for share in play[played]]
    result = linprog(
        objective,
        A_ub=sp.csr_array(sp.vstack([gains, shares])),
        b_ub=np.zeros(n_rows + len(played)),
        A_eq=sp.csr_array(total[np.newaxis]),
        b_eq=np.ones(1),
        bounds=bounds,
        method="highs",
    )
    if result.x is None or result.status != 0:
        raise UserError(f"distance to {concept}: HiGHS did not solve its program; ask a window")
    return float(np.clip(1 + result.fun, 0.0, 1.0))
