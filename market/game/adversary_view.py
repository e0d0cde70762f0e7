"""What an adversary may see before it commits and is told after the round, and no more than that.

An adversary declares ``sees``, a set out of

    history   the outcomes of earlier rounds (shown to everybody)
    mixture   the forecast's distribution over predictions, per block
    play      the mixed strategy of every cohort given the mixtures, and what it would become under
              outcomes that are only imagined (``market.game.lookahead``)
    losses    whom it plays against: names, losses and rows of all cohorts, told once
    draw      the drawn forecasts, before it commits. This breaks the rule of the game on purpose:
              the draw then comes before the commitment, and nothing is guaranteed

and without a declaration sees history and mixture. The referee shows nothing that is not declared;
the draw does not even exist.

After the round one that has a method ``learn(payoff, observation)`` is told what was observed, the
outcome and what was played, and if it has a payoff u(a, y), what it earned: with q the mixed
strategy that the ledger charges,

    sum over agents of  sum_a q(a) u(a, y)  /  number of agents    over those that took part.

That is the past of the next round; of the next draw it says nothing, so that promises stand.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.core.own_code import read_only
from regretless.market.game.lookahead import GameView, Rollout, strategies_of_play
from regretless.market.game.protocols import Adversary, Cohort, Follower, Payoff
from regretless.market.game.seats import attending, present
from regretless.market.numerics.exact_sum import total
from regretless.market.records import AdversaryView, Forecast, Mixture, Observation, Round

SIGHTS = ("history", "mixture", "play", "losses", "draw")


def sight_of(adversary: Adversary) -> frozenset[str]:
    """Return what an adversary declares to see; UserError if there is no such thing."""
    declared = adversary.sees
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise UserError(f"sees = {declared!r}: give a set of names, such as {{'mixture', 'play'}}")
    for name in declared:
        if name not in SIGHTS:
            raise UserError(f"sees: unknown '{name}'; {closest(str(name), SIGHTS)}")
    return frozenset(declared)


def introduce(adversary: Adversary, cohorts: Sequence[Cohort]) -> None:
    """Tell an adversary that declares ``losses`` whom it plays against, by its ``meet``."""
    if "losses" in sight_of(adversary):
        known = [(own.name, own.loss, read_only(own.row_of), own.multiplicity) for own in cohorts]
        adversary.meet(tuple(Follower(*own) for own in known))


def announcement(sees: frozenset[str], view: GameView, offered: Round) -> AdversaryView:
    """Show a round's facts as far as they are declared; its forecasts, where they are drawn."""
    context, mixtures = offered.context, offered.mixtures
    told: dict[str, Any] = {} if view.moved is None else {"moved": lambda: view.moved}
    if "play" in sees:
        told["play"] = lambda: strategies_of_play(view, mixtures, context)
        told["rollout"] = lambda: Rollout(view, context)
    if "draw" in sees and offered.forecasts:
        certain = tuple(alone(forecast) for forecast in offered.forecasts)
        told["drawn"] = lambda: offered.forecasts
        told["induced"] = lambda: strategies_of_play(view, certain, context)
    return AdversaryView(mixtures if "mixture" in sees else None, **told)


def alone(forecast: Forecast) -> Mixture:
    """Return the mixture that is certain of the drawn atom."""
    whole, atom = forecast.mixture, slice(forecast.index, forecast.index + 1)
    labels = None if whole.labels is None else whole.labels[atom]
    ensembles = None if whole.ensembles is None else whole.ensembles[atom]
    return Mixture(whole.points[atom], np.ones(1), labels=labels, ensembles=ensembles)


def summed(payoff: Payoff | None, cohorts: Sequence[Cohort], played: Round) -> dict[str, Array]:
    """Return what the agents of each cohort come to who were there, by its name (2, 2 + A).

    How many they are, what they paid by the leader's payoff (0 without one), and their mixed
    strategies added up; each as two numbers (``market.numerics.exact_sum``).
    """
    sums = {cohort.name: np.zeros((2, 2 + cohort.loss.actions)) for cohort in cohorts}
    for _, cohort, decision, _ in present(cohorts, played):
        strategy, here = decision.probabilities, attending(decision, cohort)
        paid = np.zeros(len(strategy))
        if payoff is not None:
            values = payoff.values(cohort.loss, played.outcome[None])[0]
            paid = np.einsum("ka,ka->k", strategy, values)
        rows, many = cohort.row_of[here], cohort.multiplicity_of(here)
        count = np.bincount(rows, many, minlength=len(strategy)).astype(np.float64)
        sums[cohort.name] = total(np.column_stack([np.ones(len(strategy)), paid, strategy]), count)
    return sums


def earned(payoff: Payoff | None, cohorts: Sequence[Cohort], played: Round) -> tuple[Array, Array]:
    """Return what each cohort's agents paid on average (C,), NaN if none came, and how many."""
    sums = summed(payoff, cohorts, played) if played.sums is None else played.sums
    agents, paid = np.array([own.sum(0)[:2] for own in sums.values()]).T
    return np.divide(paid, agents, out=np.full(len(agents), np.nan), where=agents > 0), agents


def per_agent(paid: Array, agents: Array) -> float:
    """Return the mean over all agents of what cohorts paid; NaN if nobody was there."""
    return float(np.nan_to_num(paid) @ agents / agents.sum()) if agents.any() else float("nan")


def observed(cohorts: Sequence[Cohort], played: Round) -> Observation:
    """Return what has come to light after a round."""
    sums = summed(None, cohorts, played) if played.sums is None else played.sums
    came = {name: own.sum(0) for name, own in sums.items()}
    shares = {name: own[2:] / max(own[0], 1.0) for name, own in came.items()}
    return Observation(played.number, played.outcome, shares)


def teach(adversary: Adversary, cohorts: Sequence[Cohort], played: Round) -> None:
    """Tell an adversary what it earned, NaN if it has no payoff, and what was seen."""
    known = adversary.payoff is not None
    paid = per_agent(*earned(adversary.payoff, cohorts, played)) if known else np.nan
    adversary.learn(paid, observed(cohorts, played))
