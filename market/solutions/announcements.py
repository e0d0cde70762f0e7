r"""What a constant announcement brings about: its risk, its stable point and its optimum.

``MarketModel.announcement_risk(grid)`` asks, for each announcement of a grid, what would come of it
if it were repeated and the market had come to rest: agents respond to it, their play moves
outcomes, and the announcement is a good or a bad forecast of these.

Mathematics
-----------
An announcement p says what outcome to expect; D(p) is the distribution of outcomes once everybody
responds to p. With the squared error as loss (Perdomo, Zrnic, Mendler-Dünner and Hardt 2020,
Performative prediction, arXiv:2002.06673, definitions 2.1 and 2.3)

    risk(p, q) = E |y - q|^2,  y from D(p)       of q where p was announced
    risk(p)    = risk(p, p)                      the performative risk
    stable     p minimises risk(p, q) over q: nobody who knows D(p) would announce anything else
    optimum    p minimises risk(p)

Minima are over the grid. As risk(p, q) = |E y - q|^2 + the variance of y, the q that is best where
p was announced is the one nearest to the mean outcome. A stable point need not exist, and need not
be the optimum.

Outcomes at rest are those of a continuum of agents, moved by the fundamental alone. Agents who draw
their actions add a variance of their own, about a (1 - a) / n of the share a of n agents who take
an action. A market that says it (``Market.variance_of_draws``) has it added to the risk; it does
not depend on q, so that no stable point moves, but the optimum may.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.round import Game
from regretless.market.records import Context, Mixture, OutcomeDistribution

MAX_ANNOUNCEMENTS = 100_000
TIE = 1e-12  # within which two risks are equal


def announcement_risk(game: Game, grid: ArrayLike) -> pd.DataFrame:
    """Return a row per announcement of the grid, with its risk and what it brings about.

    Parameters
    ----------
    game : Game
    grid : array (m,) or (m, d)
        Announced outcomes, in [0, 1]; of one number where there is one outcome.

    Returns
    -------
    DataFrame
        ``p_0..`` what is announced, ``y_0..`` the mean outcome, ``risk``, ``best`` the row of the
        announcement with the least risk where this one was made, ``mean_loss`` of the agents,
        ``variance_of_draws``, the part of the risk that is due to agents' own draws, and whether it
        ``is_stable`` and ``is_optimum``. Where the market does not say how draws move outcomes,
        ``variance_of_draws`` is empty and the risk is that of a continuum. So is ``mean_loss``
        always, which makes no difference where losses are linear in an outcome that rests.

    Raises
    ------
    UserError
        If somebody does not respond to the announcement alone, or the market does not say where it
        comes to rest.
    """
    announcements = _announcements(grid, game.adversary.outcomes)
    _check_responses(game)
    mean_outcomes = np.empty_like(announcements)
    risks_if_announced = np.empty((len(announcements), len(announcements)))
    mean_losses = np.empty(len(announcements))
    variances_of_draws = np.empty(len(announcements))
    for index, announcement in enumerate(announcements):
        strategies = _strategies(game, announcement)
        outcomes = _outcomes(game, strategies)
        squared_errors = ((outcomes.points[:, None] - announcements) ** 2).sum(2)
        variances_of_draws[index] = _variance_of_draws(game, strategies)
        risks_if_announced[index] = outcomes.weights @ squared_errors
        if not np.isnan(variances_of_draws[index]):
            risks_if_announced[index] += variances_of_draws[index]
        mean_outcomes[index] = outcomes.weights @ outcomes.points
        mean_losses[index] = _mean_loss(game, strategies, outcomes)
    risk = np.diagonal(risks_if_announced)
    columns: dict[str, Array] = {}
    for name, values in (("p", announcements), ("y", mean_outcomes)):
        for coordinate in range(values.shape[1]):
            columns[f"{name}_{coordinate}"] = values[:, coordinate]
    return pd.DataFrame(
        {
            **columns,
            "risk": risk,
            "best": risks_if_announced.argmin(1),
            "mean_loss": mean_losses,
            "variance_of_draws": variances_of_draws,
            "is_stable": risk <= risks_if_announced.min(1) + TIE,
            "is_optimum": risk <= risk.min() + TIE,
        }
    )


def _announcements(grid: ArrayLike, n_outcomes: int) -> Array:
    """Return the announcements (m, d); UserError if they are no outcomes."""
    try:
        announcements = np.array(grid, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"grid: {error}; give announced outcomes") from error
    if announcements.ndim == 1 and n_outcomes == 1:
        announcements = announcements[:, np.newaxis]
    if announcements.ndim != 2 or announcements.shape[1] != n_outcomes or not len(announcements):
        expected = f"give rows of {n_outcomes} numbers, an announced outcome each"
        raise UserError(f"grid has the shape {announcements.shape}; {expected}")
    if len(announcements) > MAX_ANNOUNCEMENTS:
        raise UserError(f"grid: {len(announcements):,} rows; give at most {MAX_ANNOUNCEMENTS:,}")
    if not ((announcements >= 0) & (announcements <= 1)).all():
        raise UserError("grid: an announced outcome is not in [0, 1]; mend it")
    return announcements


def _check_responses(game: Game) -> None:
    """Raise UserError unless everybody responds to what is announced, and the market rests."""
    for cohort in game.cohorts:
        if cohort.unguided:
            reason = f"agents of cohort.{cohort.name} do not respond to it ({cohort.unguided})"
            raise UserError(f"announcement_risk: {reason}; leave them out")
        if getattr(cohort, "relay", None) is not None:
            reason = f"agents of cohort.{cohort.name} hear it late"
            raise UserError(f"announcement_risk: {reason}; drop [network] for this question")
    if game.market is None:
        if game.adversary.fixed_distribution() is None:
            reason = f"the adversary {type(game.adversary).__name__} has no fixed distribution"
            raise UserError(f"announcement_risk: {reason}; take one, such as iid")
    elif not game.market.has_flows:
        reason = f"market {type(game.market).__name__} does not say where it comes to rest (rest)"
        raise UserError(f"announcement_risk: {reason}; see the page on solutions")


def _strategies(game: Game, announcement: Array) -> list[Array]:
    """Return how the rows of every cohort respond to an announced outcome (d,): (K, A) each."""
    strategies = []
    for cohort in game.cohorts:
        basis = game.blocks[cohort.block].basis
        label = announcement[np.newaxis]
        mixture = Mixture(basis.transform(label), np.ones(1), labels=label)
        try:
            strategies.append(np.asarray(cohort.strategy(mixture, Context())))
        except ValueError as error:
            raise UserError(f"announcement_risk: cohort.{cohort.name}: {error}") from error
    return strategies


def _outcomes(game: Game, strategies: Sequence[Array]) -> OutcomeDistribution:
    """Return the distribution of outcomes where everybody plays these strategies."""
    if game.market is not None:
        return game.market.outcomes_of_flows(strategies)
    distribution = game.adversary.fixed_distribution()
    assert distribution is not None  # noqa: S101 - it was checked
    return distribution


def _variance_of_draws(game: Game, strategies: Sequence[Array]) -> float:
    """Return what agents' own draws add to the risk; NaN if the market does not say."""
    if game.market is None:  # outcomes do not answer agents
        return 0.0
    variances = game.market.variance_of_draws(strategies)
    return np.nan if variances is None else float(variances.sum())


def _mean_loss(game: Game, strategies: Sequence[Array], outcomes: OutcomeDistribution) -> float:
    """Return what an agent loses on average, normalised."""
    total = 0.0
    n_agents = 0.0
    for cohort, strategy in zip(game.cohorts, strategies, strict=True):
        losses = np.tensordot(outcomes.weights, cohort.loss.losses(outcomes.points), axes=1)
        total += float(cohort.counts @ (losses * strategy).sum(1))
        n_agents += float(cohort.counts.sum())
    return total / n_agents
