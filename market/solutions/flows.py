r"""Equilibria in which nobody moves the outcome, and the minimum of a potential.

``wardrop``: a continuum of agents of each type is shared out over actions, and every action in use
is best at the outcome that the market rests at (Wardrop 1952). Of roads it is the equilibrium of
traffic; of firms that take the price as given the competitive one, and Cournot's if they count
their impact. It is what followers of a forecast reach who regret nothing in a market that is
settled before the round.

``potential``: where a change of action changes one function by what the agent gains, the game has
an exact potential (Monderer and Shapley 1996; of congestion games Rosenthal 1973), and its minimum
is a pure equilibrium. It is found by summing gains along paths, and checked on all of them.

Mathematics
-----------
With x_t the shares of type t over its actions and F(x) what each action loses at the outcome at
which x rests, a Wardrop equilibrium solves <F(x), z - x> >= 0 for all shares z. Extragradient steps
(Korpelevich 1976) x' = P(x - s F(x)), x <- P(x - s F(x')) converge where F is monotone, as where
times grow with traffic; s is halved until s |F(x') - F(x)| <= 0.7 |x' - x|. P projects onto
simplices. The certificate is the most that an agent could gain at the outcome,
max_t (<x_t, F_t> - min F_t).
"""

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.solutions.solution import Solution, not_found, tolerance_of
from regretless.market.solutions.stage_game import StageGame

MAX_STEPS = 20_000
SMALL_GAIN = 1e-10  # at which the steps end, as a share of the range of losses
CONTRACTION = 0.7


@register.solution("wardrop")
def wardrop(game: StageGame) -> Solution:
    """Return the equilibrium of a continuum of agents, none of whom moves the outcome."""
    market = game.market
    if market is None or not market.has_flows:
        return not_found("wardrop", "no outcome of shares of agents is known for such a game")
    strategies: list[Array] = []
    for cohort in market.cohorts:
        shape = (len(cohort.loss), cohort.loss.actions)
        strategies.append(np.full(shape, 1 / cohort.loss.actions))
    step = 1.0
    for _ in range(MAX_STEPS):
        losses = _normalised_losses(game, strategies)
        if _greatest_gain(losses, strategies) <= SMALL_GAIN:
            break
        while True:
            ahead = _projected(strategies, losses, step)
            losses_ahead = _normalised_losses(game, ahead)
            change = _norm(losses_ahead, losses)
            if step * change <= CONTRACTION * _norm(ahead, strategies) or step < 1e-12:
                break
            step /= 2
        strategies = _projected(strategies, losses_ahead, step)
        step *= 1.2
    losses_in_units = _losses_in_units(game, strategies)
    gain = _greatest_gain(losses_in_units, strategies)
    means = np.empty(game.agents)
    for cohort_index, (columns, rows) in enumerate(market.agent_columns()):
        losses_of_actions = losses_in_units[cohort_index]
        imputed = market.imputed_losses(cohort_index)
        if imputed is not None:  # it stands for a move of the outcome, and costs nothing by itself
            unit_scale = market.cohorts[cohort_index].loss.unit_scale[:, np.newaxis]
            losses_of_actions = losses_of_actions - unit_scale * imputed
        means[columns] = (losses_of_actions * strategies[cohort_index]).sum(1)[rows]
    return Solution("wardrop", means, "extragradient steps, agents without weight", max(gain, 0.0))


def _losses_in_units(game: StageGame, strategies: list[Array]) -> list[Array]:
    """Return what each action of each row loses (K, A), by cohort, in units."""
    assert game.market is not None  # noqa: S101 - the caller has looked
    tables = []
    losses_by_cohort = game.market.losses_of_flows(strategies)
    for cohort, losses in zip(game.market.cohorts, losses_by_cohort, strict=True):
        scale = cohort.loss.unit_scale[:, np.newaxis]
        tables.append(cohort.loss.unit_offset[:, np.newaxis] + scale * losses)
    return tables


def _normalised_losses(game: StageGame, strategies: list[Array]) -> list[Array]:
    """Return what each action of each row loses (K, A), by cohort, normalised."""
    assert game.market is not None  # noqa: S101 - the caller has looked
    return list(game.market.losses_of_flows(strategies))


def _greatest_gain(losses: list[Array], strategies: list[Array]) -> float:
    """Return the most that an agent could gain at the outcome."""
    gains = []
    for table, shares in zip(losses, strategies, strict=True):
        gains.append(float(((table * shares).sum(1) - table.min(1)).max()))
    return max(gains)


def _norm(tables: list[Array], others: list[Array]) -> float:
    """Return the Euclidean distance between two lists of tables."""
    squares = [
        float(((table - other) ** 2).sum()) for table, other in zip(tables, others, strict=True)
    ]
    return float(np.sqrt(sum(squares)))


def _projected(strategies: list[Array], losses: list[Array], step: float) -> list[Array]:
    """Return shares (K, A) moved against losses, and projected onto the simplex."""
    moved = []
    for shares, table in zip(strategies, losses, strict=True):
        moved.append(_onto_simplex(shares - step * table))
    return moved


def _onto_simplex(points: Array) -> Array:
    """Return the nearest distributions to points (K, A) (Held, Wolfe and Crowder 1974)."""
    descending = -np.sort(-points, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    n_kept = np.arange(1, points.shape[1] + 1)
    is_kept = descending - excess / n_kept > 0
    last = points.shape[1] - 1 - is_kept[:, ::-1].argmax(1)
    shift = excess[np.arange(len(points)), last] / (last + 1)
    return np.asarray(np.maximum(points - shift[:, np.newaxis], 0.0))


@register.solution("potential")
def potential_minimum(game: StageGame) -> Solution:
    """Return the minimum of an exact potential, which is a pure equilibrium."""
    if not game.is_enumerable:
        return not_found("potential", f"{game.why_too_large}; nash tries best responses")
    configurations = game.configurations
    potential = np.full(len(configurations), np.nan)
    potential[0] = 0.0
    deviations = list(configurations.deviations())
    targets = [
        configurations.moved(one.kind, one.action, one.other, one.rows) for one in deviations
    ]
    while np.isnan(potential).any():  # each pass follows all deviations once
        for deviation, target in zip(deviations, targets, strict=True):
            is_new = ~np.isnan(potential[deviation.rows]) & np.isnan(potential[target])
            reached = potential[deviation.rows] - deviation.gains
            potential[target[is_new]] = reached[is_new]
    discrepancy = 0.0
    for deviation, target in zip(deviations, targets, strict=True):
        differences = potential[deviation.rows] - deviation.gains - potential[target]
        discrepancy = max(discrepancy, float(np.abs(differences).max(initial=0.0)))
    limit = max(tolerance_of(losses_of_type) for losses_of_type in configurations.losses)
    if discrepancy > 100 * limit:
        reason = f"no exact potential: gains around a cycle do not add up to 0 ({discrepancy:.2g})"
        return not_found("potential", reason)
    least = int(potential.argmin())
    method = f"potential of {len(configurations):,} profiles by counts"
    gain = float(configurations.greatest_gains[least])
    return Solution("potential", configurations.losses_at(least), method, gain)
