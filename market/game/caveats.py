r"""What agents who draw for themselves are promised although outcomes answer the same round.

Every agent i of a cohort with private draws draws p_i from the round's mixture, independently of
everybody else given the past and the mixture, and plays a_i = a(p_i). Where the outcome does not
depend on actions of the round, p_i is a draw like the common one, with a union over agents in place
of distinct losses. In a market that answers at once let

    y = y(a_i; rest),       rest: fundamental, everybody else's draws and actions, the past,
    kappa_g = the most by which agent i's own action can move y_g (``Market.price_impact``),
    D_kappa = max_{a, b} sum_g |slope_ag - slope_bg| kappa_g       (2 L max_g kappa_g for a loss
              that is not linear, L its Lipschitz constant in sup norm).

Then with probability 1 - risk for all agents at once, in place of nothing,

    regret of what i did  <=  the theorem's bound with its term for realised draws  +  D_kappa.

Proof. Let q be the distribution of a(p) under the round's mixture and g(a, y) = l(a, y) - l(phi(a),
y) for an assignment phi of comparators. (1) The forecaster is charged its expected bias over the
mixture at the outcome that came, and its certificate is over every outcome, so that

    sum_t sum_a q_t(a) g(a, y_t)  <=  T x theorem       for any y_1, y_2, ..., whatever they answer.

(2) Let y' be the outcome had agent i's load been at the middle of its range in each coordinate.
It is a function of rest, hence independent of a_i given the past, and |y_g - y'_g| <= kappa_g / 2,
so that |g(a, y) - g(a, y')| <= D_kappa / 2 for every a. (3) g(a_i, y') - sum_a q(a) g(a, y') has
mean 0 given the past and rest, steps of at most 2 and a variance of at most 1: Freedman's
inequality gives the term for realised draws (``forecaster.guarantees.draws``), with V = T, as
what the forecaster knows of the variance is at y and not at y'. Summing g(a_i, y) <= g(a_i, y') +
D_kappa / 2 over the rounds, with (3), (2) once more under q, and (1), is the claim.

A common draw fails at (2): no rest of the round is independent of it. Nothing is asked of the
others, who may learn or follow the common draw. The bound is stated for agents who are there
throughout, in markets that know their price_impact; it falls as 1/N with it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.game.guarantee import Guarantee, unpromised
from regretless.market.game.round import Game


def effective_guarantees(game: Game, guarantees: Sequence[Guarantee]) -> tuple[Guarantee, ...]:
    """Return what stands of promises, given who sees or answers draws and can afford everything."""
    promises = list(guarantees)
    if game.why_no_guarantee:
        everybody_stays = all(seat.attendance.throughout for seat in game.seats)
        only_actions_move_outcomes = not (
            game.adversary_sees_draw or game.has_personal_losses or game.outcomes_are_estimates
        )
        no_promises = unpromised(game.cohorts, game.why_no_guarantee)
        for cohort_index, no_promise in enumerate(no_promises):
            weakened = None
            if everybody_stays and only_actions_move_outcomes:
                weakened = _with_price_impact(game, cohort_index, promises[cohort_index])
            promises[cohort_index] = weakened or no_promise
    within_budgets = []
    for promise, seat in zip(promises, game.seats, strict=True):
        within_budgets.append(seat.budget.with_limited_rounds(promise))
    return tuple(within_budgets)


def _with_price_impact(game: Game, cohort_index: int, promise: Guarantee) -> Guarantee | None:
    """Add what a cohort's own actions do to outcomes; None where no promise stands."""
    cohort = game.cohorts[cohort_index]
    bound = promise.bound
    market = game.market
    price_impact = None if market is None else market.price_impact(cohort_index)
    if price_impact is None or bound is None or not cohort.private:
        return None
    # Losses move by at most this (K,) where outcomes move by ``price_impact``.
    added_regret = cohort.loss.moved(price_impact)
    caveat = (
        f"{cohort.name}: an agent's own action moves outcomes by at most {price_impact.max():.2g}"
        f", which adds {added_regret.max():.2g} to its bound, and nothing else is bounded"
    )

    def bound_with_impact() -> Array:
        # The theorem is of agents who are there throughout.
        everybody_stays = all(seat.attendance.throughout for seat in game.seats)
        return np.asarray(bound() + (added_regret if everybody_stays else np.nan))

    notes = "; ".join(filter(None, (promise.note, caveat)))
    dropped = dict.fromkeys(("to_models", "from_variation", "take_note", "contextual", "window"))
    return replace(promise, bound=bound_with_impact, note=notes, **dropped)  # type: ignore[arg-type]
