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
from dataclasses import replace
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

AHEAD = 50  # rounds that a planner looks ahead
WHERE = "forecaster.objective"
Strategies = list[Array | None]  # what every cohort would do, (K, A); None for those left out


def wish(game: Game, objective: str | Payoffs) -> None:
    """Let a game's forecasters prefer what is best for an objective.

    ``objective`` ("none", "welfare" or dict): or by cohort what each action is worth to a planner:
    numbers (A,), or (d, A) per unit of each outcome.
    """
    market = game.market
    for at, block in enumerate(game.blocks if objective != "none" else ()):
        if isinstance(objective, dict):
            block.forecaster.prefer(_planned(game, objective, at))
        elif market is not None and market.can_be_played_ahead:
            block.forecaster.prefer(partial(_moved, game, market, at))
        else:
            block.forecaster.prefer(_expected(game, at))


def _moved(game: Game, market: Market, at: int, solution: Solution) -> Array:
    """Return what agents lose in the next rounds of a market, after predictions of a block."""
    before, known, worth = market.state(), dict[bytes, float](), []
    for mixture in _each(solution):
        _, strategies = _answers(game, at, mixture)
        key = b"".join(own.tobytes() for own in strategies if own is not None)
        if key not in known:
            known[key] = _future(market, game.cohorts, strategies, before)
        worth.append(known[key])
    market.restore(before)
    return np.array(worth)


def _expected(game: Game, at: int) -> Objective:
    """Return what those who hear a block expect to lose by what they would do.

    In a market with losses of their own that is what the market says at the forecast outcome.
    Learners hear none and expect nothing at a prediction; no block need span their losses.
    """
    basis = game.blocks[at].basis
    tables = {
        place: cohort.coefficients if cohort.expects_own else basis.coefficients(cohort.loss)
        for place, cohort in enumerate(game.cohorts)
        if cohort.block == at and cohort.predictable and cohort.listens
    }

    def losses(solution: Solution) -> Array:
        total = np.zeros(len(solution.points))
        for j, mixture in enumerate(_each(solution)):
            label, strategies = _answers(game, at, mixture)
            for place, table in tables.items():
                cohort, strategy = game.cohorts[place], strategies[place]
                assert strategy is not None  # noqa: S101 - it is foreseen
                if cohort.market_losses is None:
                    expected = expected_losses(*table, solution.points[j])
                else:
                    expected = cohort.market_losses(label[1:])
                lost = (strategy * expected).sum(1)
                total[j] += cohort.counts @ (lost * cohort.loss.unit_scale)
        return total

    return losses


def _planned(game: Game, payoffs: Payoffs, at: int) -> Objective:
    """Return what a planner goes without after predictions of a block: its payoff, negative."""
    cohorts = {cohort.name: cohort for cohort in game.cohorts}
    if unknown := next((name for name in payoffs if name not in cohorts), None):
        raise UserError(f"{WHERE}: no cohort '{unknown}'; {closest(unknown, list(cohorts))}")
    tables = {}  # (1 + d, A): per action, and per outcome's unit
    for name, payoff in payoffs.items():
        shape = game.adversary.outcomes, cohorts[name].loss.actions
        table = np.array(payoff, dtype=np.float64)
        if table.shape not in {shape, shape[1:]}:
            wanted = f"{shape[1]} numbers, or {shape[0]} lists of {shape[1]}"
            raise UserError(f"{WHERE}.{name}: shape {table.shape}; give {wanted}")
        tables[name] = np.zeros((1 + shape[0], shape[1]))
        tables[name][0 if table.ndim == 1 else slice(1, None)] = table

    def losses(solution: Solution) -> Array:
        worth = np.zeros(len(solution.points))
        for j, mixture in enumerate(_each(solution)):
            label, strategies = _answers(game, at, mixture)
            for cohort, strategy in zip(game.cohorts, strategies, strict=True):
                if cohort.name in tables and cohort.block == at and strategy is not None:
                    worth[j] += cohort.counts @ strategy @ (label @ tables[cohort.name])
        return -worth / sum(own.population for own in game.cohorts)

    return losses


def _each(solution: Solution) -> list[Mixture]:
    """Return every point of a solution as a mixture of one."""
    known: list[Any] = [(own,) for own in solution.ensembles or ()]
    known = known or [None] * len(solution.points)
    pairs = zip(solution.points, known, strict=True)
    return [Mixture(point[None], np.ones(1), ensembles=own) for point, own in pairs]


def _answers(game: Game, at: int, mixture: Mixture) -> tuple[Array, Strategies]:
    """Return 1 and the outcome that a block's prediction speaks of, and what all would do."""
    labelled = []
    for place, block in enumerate(game.blocks):
        own = mixture if place == at else block.forecaster.latest
        labelled.append(own and replace(own, labels=block.basis.inverse(own.points)))
    strategies: Strategies = []
    for cohort in game.cohorts:
        heard = labelled[cohort.block] if cohort.predictable else None
        strategies.append(None if heard is None else cohort.strategy(heard, Context()))
    label = game.blocks[at].basis.inverse(mixture.points)[0]
    return np.append(1.0, label), strategies


def _future(market: Market, cohorts: Sequence[Any], strategies: Strategies, state: Any) -> float:
    """Return the mean loss per agent and round if these strategies are played from a state on."""
    market.restore(state)
    decisions = list[Decision | None]()
    for cohort, strategy in zip(cohorts, strategies, strict=True):
        if strategy is None:
            decisions.append(None)
        elif cohort.multiplicity is not None:
            shares = partial(np.multiply, strategy, cohort.multiplicity[:, None])
            decisions.append(Decision(strategy, strategy.argmax(1), counts=shares))
        else:
            ranks = (np.arange(len(cohort.row_of)) + 0.5) / len(cohort.row_of)  # shares, not draws
            decisions.append(Decision(strategy, draw_rows(strategy, ranks, cohort.row_of)))
    middle, total = np.full(market.goods, 0.5), 0.0
    outcomes = np.array([market.clear(middle, decisions) for _ in range(AHEAD)])
    for cohort, strategy in zip(cohorts, strategies, strict=True):
        if strategy is not None:
            lost = (strategy * cohort.loss.losses(outcomes).mean(0)).sum(1)
            total += float(cohort.counts @ (lost * cohort.loss.unit_scale))
    return total / market.agents
