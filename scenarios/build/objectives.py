"""What a forecaster wishes for among forecasts that are good enough: ``[forecaster] objective``.

A prediction p tells agents what to do. With q_i(p) the law of agent i's answer, its worth is

- to ``"welfare"``, less what agents would lose, each in its own units and on average, if all went
  on in this way for the next rounds as the market stands, fundamentals at their middle;
- to a planner who has declared a payoff u_c(a, y) for the agents of cohorts c, the mean over all
  agents of sum_a q_i(a) u_c(a, y), with y the outcome that p speaks of.

A wish is no knowledge: where outcomes do not depend on forecasts, what a planner can get in the
long run is its payoff by best responses to the law of outcomes, ties in its favour. A sender who
knows the outcome before it speaks has more (``market.exploitability.information_design``).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.minimax.objective import Objective, WithObjective
from regretless.market.core.arrays import Array, draw_rows
from regretless.market.core.errors import UserError, closest
from regretless.market.game.market import Market
from regretless.market.game.round import Game
from regretless.market.records import Context, Decision, Mixture
from regretless.scenarios.spec.forecaster import Payoffs

AHEAD = 50  # rounds that a planner looks ahead
WHERE = "forecaster.objective"


def wish(game: Game, objective: str | Payoffs) -> None:
    """Let a game's forecaster prefer what is best for an objective.

    Parameters
    ----------
    game : Game
        Its block's forecaster gets the objective.
    objective : "none", "welfare" or dict
        Or by cohort what each action is worth to a planner: numbers (A,), or (d, A) per unit of
        each outcome.

    Raises
    ------
    UserError
        With several blocks, where it is not known what agents would do, for "welfare" without a
        market, and for payoffs of no cohort or another shape.
    """
    if objective == "none":
        return
    if len(game.blocks) > 1:
        raise UserError(f"{WHERE}: there are {len(game.blocks)} blocks; give all one utility")
    solver: WithObjective = game.blocks[0].forecaster.solver  # type: ignore[attr-defined]
    solver.values = _planned(game, objective) if isinstance(objective, dict) else _welfare(game)


def _welfare(game: Game) -> Objective:
    """Return what agents lose, in their own units, after a prediction."""
    market = game.market
    if market is None or market.accounts is not None or market.personal:
        why = "there is no [market] without accounts and losses of each agent's own"
        why += "; drop it or add one"
        raise UserError(f"{WHERE} 'welfare': {why}")
    _check_foreseeable(game.cohorts)

    def losses(points: Array) -> Array:
        before = market.state()
        told = [_told(game, point)[1] for point in points]
        keys = [b"".join(law.tobytes() for law in laws) for laws in told]
        known = {
            key: _future(market, game.cohorts, laws, before)
            for key, laws in dict(zip(keys, told, strict=True)).items()
        }
        market.restore(before)
        return np.array([known[key] for key in keys])

    return losses


def _planned(game: Game, payoffs: Payoffs) -> Objective:
    """Return what a planner goes without after a prediction: its payoff, negative."""
    cohorts = {cohort.name: cohort for cohort in game.cohorts}
    if unknown := next((name for name in payoffs if name not in cohorts), None):
        raise UserError(f"{WHERE}: no cohort '{unknown}'; {closest(unknown, list(cohorts))}")
    _check_foreseeable([cohorts[name] for name in payoffs])
    tables = {name: _table_of(game, cohorts[name], payoffs[name]) for name in payoffs}

    def losses(points: Array) -> Array:
        worth = np.zeros(len(points))
        for j, point in enumerate(points):
            label, laws = _told(game, point)
            for cohort, law in zip(game.cohorts, laws, strict=True):
                if cohort.name in tables:
                    worth[j] += cohort.counts @ law @ (label @ tables[cohort.name])
        return -worth / sum(own.population for own in game.cohorts)

    return losses


def _table_of(game: Game, cohort: Any, payoff: Any) -> Array:
    """Return a payoff as (1 + d, A), its first row per action and the others per outcome's unit."""
    table, shape = (
        np.array(payoff, dtype=np.float64),
        (game.adversary.outcomes, cohort.loss.actions),
    )
    if table.shape not in {shape, shape[1:]}:
        wanted = f"{shape[1]} numbers, or {shape[0]} lists of {shape[1]}"
        raise UserError(f"{WHERE}.{cohort.name}: shape {table.shape}; give {wanted}")
    whole = np.zeros((1 + shape[0], shape[1]))
    whole[0 if table.ndim == 1 else slice(1, None)] = table
    return whole


def _check_foreseeable(cohorts: Sequence[Any]) -> None:
    for cohort in cohorts:
        if not cohort.foreseeable or cohort.private:
            why = "follows no common draw by a known rule"
            raise UserError(f"{WHERE}: cohort.{cohort.name} {why}; change its response")


def _told(game: Game, point: Array) -> tuple[Array, list[Array]]:
    """Return 1 and the outcome that a prediction speaks of, and what all would do, as laws."""
    block = game.blocks[0]
    meant = block.basis.inverse(point[None])
    mixture = Mixture(point[None], np.ones(1), labels=meant)
    laws = [
        cohort.law(mixture, Context()) if cohort.foreseeable else np.empty((0, 0))
        for cohort in game.cohorts
    ]
    return np.append(1.0, meant[0]), laws


def _future(market: Market, cohorts: Sequence[Any], laws: Sequence[Array], state: Any) -> float:
    """Return the mean loss per agent and round if these laws are played from a state on."""
    market.restore(state)
    decisions = []
    for cohort, law in zip(cohorts, laws, strict=True):
        if (heads := cohort.heads) is not None:
            shares = partial(np.multiply, law, heads[:, None])
            decisions.append(Decision(law, law.argmax(1), counts=shares))
            continue
        ranks = (np.arange(len(cohort.row_of)) + 0.5) / len(cohort.row_of)  # shares, not draws
        decisions.append(Decision(law, draw_rows(law, ranks, cohort.row_of)))
    middle, total = np.full(market.goods, 0.5), 0.0
    outcomes = np.array([market.clear(middle, decisions) for _ in range(AHEAD)])
    for cohort, law in zip(cohorts, laws, strict=True):
        lost = (law * cohort.loss.losses(outcomes).mean(0)).sum(1) * cohort.loss.unit_scale
        total += float(cohort.counts @ lost)
    return total / market.agents
