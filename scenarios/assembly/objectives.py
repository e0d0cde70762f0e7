"""What a forecaster wishes for among forecasts that are good enough: ``[forecaster] objective``.

A prediction p tells agents what to do. With q_i(p) the distribution of agent i's answer, its worth
is to ``"welfare"``, less what agents would lose, on average in their own units: what they expect at
p, or, where a market answers them, what they would lose in the next rounds as the market stands; to
a planner with a payoff u_c(a, y) for the agents of cohorts c, the mean over all agents of sum_a
q_i(a) u_c(a, y), with y the outcome that p speaks of. Each block prefers for itself, the others at
the mean of their last mixture; agents whose answers nobody foresees are left out, and from the
expected welfare learners, who hear no forecast.

A wish is no knowledge: where outcomes do not depend on forecasts, a planner gets in the long run
its payoff by best responses to the distribution of outcomes. A sender who knows the outcome before
it speaks has more (``market.exploitability.information_design``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.minimax.game import Objective, Solution
from regretless.market.best_response import expected_losses
from regretless.market.core.arrays import Array, draw_rows
from regretless.market.core.errors import UserError, closest
from regretless.market.game.market import Market
from regretless.market.game.round import Game
from regretless.market.records import Context, Decision, Mixture
from regretless.scenarios.config.forecaster import Payoffs

ROUNDS_AHEAD = 50  # that are played to see what a market answers
WHERE = "forecaster.objective"
Strategies = list[Array | None]  # what every cohort would do, (K, A); None for those left out


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What follows from a prediction of a block: the outcome it speaks of (d,), and all play."""

    outcome: Array
    strategies: Strategies


def prefer_objective(game: Game, objective: str | Payoffs) -> None:
    """Let a game's forecasters prefer what is best for an objective.

    ``objective`` ("none", "welfare" or dict): or by cohort what each action is worth to a planner:
    numbers (A,), or (d, A) per unit of each outcome. UserError if a payoff has another shape.
    """
    if objective == "none":
        return
    market = game.market
    preference: Objective
    for block_index, block in enumerate(game.blocks):
        if isinstance(objective, dict):
            preference = _loss_of_planner(game, objective, block_index)
        elif market is not None and market.can_be_played_ahead:
            preference = partial(_future_losses, game, market, block_index)
        else:
            preference = _loss_of_listeners(game, block_index)
        block.forecaster.prefer(preference)


def _future_losses(game: Game, market: Market, block_index: int, solution: Solution) -> Array:
    """Return what agents lose in the next rounds of a market, after predictions of a block."""
    state_before = market.state()
    known_losses: dict[bytes, float] = {}  # by the strategies that the predictions call forth
    losses = []
    for mixture in _single_points(solution):
        strategies = _foresee(game, block_index, mixture).strategies
        key = b"".join(strategy.tobytes() for strategy in strategies if strategy is not None)
        if key not in known_losses:
            known_losses[key] = _future_loss(market, game.cohorts, strategies, state_before)
        losses.append(known_losses[key])
    market.restore(state_before)
    return np.array(losses)


def _loss_of_listeners(game: Game, block_index: int) -> Objective:
    """Return what those who hear a block expect to lose by what they would do.

    In a market with losses of their own that is what the market says at the forecast outcome.
    Learners hear none and expect nothing at a prediction; no block need span their losses.
    """
    basis = game.blocks[block_index].basis
    coefficients = {}  # by index of the cohort
    for index, cohort in enumerate(game.cohorts):
        if cohort.block != block_index or not cohort.predictable or not cohort.listens:
            continue
        if cohort.expects_own:
            coefficients[index] = cohort.coefficients
        else:
            coefficients[index] = basis.coefficients(cohort.loss)

    def loss_of_points(solution: Solution) -> Array:
        total = np.zeros(len(solution.points))
        for j, mixture in enumerate(_single_points(solution)):
            foreseen = _foresee(game, block_index, mixture)
            for index, (offset, weights) in coefficients.items():
                cohort = game.cohorts[index]
                strategy = foreseen.strategies[index]
                assert strategy is not None  # noqa: S101 - it is foreseen
                if cohort.market_losses is None:
                    expected = expected_losses(offset, weights, solution.points[j])
                else:
                    expected = cohort.market_losses(foreseen.outcome)
                lost = (strategy * expected).sum(1)
                total[j] += cohort.counts @ (lost * cohort.loss.unit_scale)
        return total

    return loss_of_points


def _loss_of_planner(game: Game, payoffs: Payoffs, block_index: int) -> Objective:
    """Return what a planner goes without after predictions of a block: its payoff, negative."""
    tables = _payoff_tables(game, payoffs)

    def loss_of_points(solution: Solution) -> Array:
        payoff = np.zeros(len(solution.points))
        for j, mixture in enumerate(_single_points(solution)):
            foreseen = _foresee(game, block_index, mixture)
            one_and_outcome = np.append(1.0, foreseen.outcome)  # as the rows of a table
            for cohort, strategy in zip(game.cohorts, foreseen.strategies, strict=True):
                is_paid_for = cohort.name in tables and cohort.block == block_index
                if is_paid_for and strategy is not None:
                    agents_by_action = cohort.counts @ strategy
                    payoff_by_action = one_and_outcome @ tables[cohort.name]
                    payoff[j] += agents_by_action @ payoff_by_action
        return -payoff / sum(cohort.population for cohort in game.cohorts)

    return loss_of_points


def _payoff_tables(game: Game, payoffs: Payoffs) -> dict[str, Array]:
    """Return by cohort what its actions pay a planner (1 + d, A): in any case, and per outcome.

    UserError if there is no such cohort, or a payoff has another shape.
    """
    cohorts = {cohort.name: cohort for cohort in game.cohorts}
    for name in payoffs:
        if name not in cohorts:
            raise UserError(f"{WHERE}: no cohort '{name}'; {closest(name, list(cohorts))}")
    n_outcomes = game.adversary.outcomes
    tables = {}
    for name, payoff in payoffs.items():
        n_actions = cohorts[name].loss.actions
        payoff_values = np.array(payoff, dtype=np.float64)
        table = np.zeros((1 + n_outcomes, n_actions))
        if payoff_values.shape == (n_actions,):
            table[0] = payoff_values
        elif payoff_values.shape == (n_outcomes, n_actions):
            table[1:] = payoff_values
        else:
            expected = f"{n_actions} numbers, or {n_outcomes} lists of {n_actions}"
            raise UserError(f"{WHERE}.{name}: shape {payoff_values.shape}; give {expected}")
        tables[name] = table
    return tables


def _single_points(solution: Solution) -> list[Mixture]:
    """Return every point of a solution as a mixture of one."""
    mixtures = []
    for j, point in enumerate(solution.points):
        ensembles: Any = (solution.ensembles[j],) if solution.ensembles else None
        mixtures.append(Mixture(point[None], np.ones(1), ensembles=ensembles))
    return mixtures


def _foresee(game: Game, block_index: int, mixture: Mixture) -> Foreseen:
    """Return the outcome that a block's prediction speaks of, and what all would do."""
    mixtures: list[Mixture | None] = []  # of every block, with labels
    for index, block in enumerate(game.blocks):
        of_block = mixture if index == block_index else block.forecaster.latest
        if of_block is not None:
            of_block = of_block.labelled_by(block.basis)
        mixtures.append(of_block)
    strategies: Strategies = []
    for cohort in game.cohorts:
        announced = mixtures[cohort.block] if cohort.predictable else None
        strategies.append(None if announced is None else cohort.strategy(announced, Context()))
    outcome = game.blocks[block_index].basis.inverse(mixture.points)[0].copy()
    return Foreseen(outcome, strategies)


def _future_loss(
    market: Market, cohorts: Sequence[Any], strategies: Strategies, state: Any
) -> float:
    """Return the mean loss per agent and round if these strategies are played from a state on."""
    market.restore(state)
    decisions: list[Decision | None] = []
    for cohort, strategy in zip(cohorts, strategies, strict=True):
        if strategy is None:
            decisions.append(None)
        elif cohort.multiplicity is not None:
            shares = partial(np.multiply, strategy, cohort.multiplicity[:, None])
            decisions.append(Decision(strategy, strategy.argmax(1), counts=shares))
        else:
            n_agents = len(cohort.row_of)
            ranks = (np.arange(n_agents) + 0.5) / n_agents  # shares, not draws
            decisions.append(Decision(strategy, draw_rows(strategy, ranks, cohort.row_of)))
    middle = np.full(market.goods, 0.5)
    outcomes = np.array([market.clear(middle, decisions) for _ in range(ROUNDS_AHEAD)])
    total = 0.0
    for cohort, strategy in zip(cohorts, strategies, strict=True):
        if strategy is not None:
            lost = (strategy * cohort.loss.losses(outcomes).mean(0)).sum(1)
            total += float(cohort.counts @ (lost * cohort.loss.unit_scale))
    return total / market.agents
