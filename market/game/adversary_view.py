"""What an adversary sees before it commits, and learns after the round.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.own_code import is_ours, name_of, read_only
from regretless.market.game.lookahead import GameView, Rollout, strategies_of_play
from regretless.market.game.protocols import (
    Adversary,
    Cohort,
    Follower,
    Payoff,
    depends_on_losses_alone,
)
from regretless.market.game.seats import is_taking_part
from regretless.market.numerics.exact_sum import split
from regretless.market.records import (
    CERTAIN,
    AdversaryView,
    Context,
    Decision,
    Forecast,
    Mixture,
    Observation,
    Round,
)
from regretless.market.regret.played_losses import strategies_or_choices

SIGHTS = ("history", "mixture", "play", "losses", "draw")
NOTHING_PAID: Array = np.empty((0, 0))  # by followers of a leader without a payoff
SIGHTS_OF_PLAY = frozenset({"play", "draw"})  # with which it may ask what cohorts would do


def sight_of(adversary: Adversary) -> frozenset[str]:
    """Return what an adversary declares to see; UserError if there is no such thing."""
    declared = adversary.sees
    if isinstance(declared, frozenset):
        return _checked_sights(declared)
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise UserError(f"sees = {declared!r}: give a set of names, such as {{'mixture', 'play'}}")
    return _checked_sights(frozenset(declared))


@lru_cache(maxsize=64)  # asked several times a round
def _checked_sights(declared: frozenset[str]) -> frozenset[str]:
    """Return declared sights; UserError if there is no such thing."""
    for name in declared:
        if name not in SIGHTS:
            raise UserError(f"sees: unknown '{name}'; {closest(str(name), SIGHTS)}")
    return declared


def introduce(adversary: Adversary, cohorts: Sequence[Cohort]) -> None:
    """Tell an adversary that declares ``losses`` whom it plays against, by its ``meet``."""
    if "losses" in sight_of(adversary):
        followers = [
            Follower(cohort.name, cohort.loss, read_only(cohort.row_of), cohort.multiplicity)
            for cohort in cohorts
        ]
        adversary.meet(tuple(followers))


def make_adversary_view(
    declared_sights: frozenset[str],
    current: Round,
    *,
    players: GameView | None,
    outcomes_after_market: Callable[[Array], Array | None] | None,
) -> AdversaryView:
    """Return what an adversary that declared these sights is shown of a round before it commits.

    ``players`` are those of the round, for one who sees what they play (``SIGHTS_OF_PLAY``);
    ``outcomes_after_market`` is ``moved`` of that view.
    """
    # Each property is a function, so that nothing is worked out that the adversary does not read.
    makers: dict[str, Any] = {}
    if players is not None:
        makers = _makers_of_play(declared_sights, current, players)
    if outcomes_after_market is not None:
        makers["moved"] = lambda: outcomes_after_market
    shown_mixtures = current.mixtures if "mixture" in declared_sights else None
    return AdversaryView(shown_mixtures, **makers)


def _makers_of_play(
    declared_sights: frozenset[str], current: Round, players: GameView
) -> dict[str, Callable[[], Any]]:
    """Return functions that work out what players do at the mixtures, and at the drawn forecasts.

    They are by the name of the view's property, for sights that are declared.
    """
    context = current.context
    mixtures = current.mixtures
    forecasts = current.forecasts
    makers: dict[str, Callable[[], Any]] = {}
    if "play" in declared_sights:
        makers["play"] = lambda: strategies_of_play(players, mixtures, context)
        makers["rollout"] = lambda: Rollout(players, context, mixtures)
    if "draw" in declared_sights and forecasts:
        makers["drawn"] = lambda: forecasts
        makers["induced"] = lambda: _strategies_at_draw(players, forecasts, context)
    return makers


def _strategies_at_draw(
    players: GameView, forecasts: Sequence[Forecast], context: Context
) -> tuple[Array | None, ...]:
    """Return what cohorts do at the drawn forecasts (``AdversaryView.induced``)."""
    drawn_alone = tuple([certain_of_drawn(forecast) for forecast in forecasts])
    return strategies_of_play(players, drawn_alone, context)


def translated_view(
    announced: AdversaryView,
    declared_sights: frozenset[str],
    *,
    labels_for_it: Callable[[Array], Array],
    outcome_of: Callable[[Array], Array],
) -> AdversaryView:
    """Return what an adversary is shown that plays within another, in coordinates of its own.

    Parameters
    ----------
    announced : AdversaryView
        What the other one is shown.
    declared_sights : frozenset of str
        What the inner one declares to see.
    labels_for_it : callable
        Turns labels of a forecast (m, d) into its coordinates (m, c).
    outcome_of : callable
        Turns what it plays (c,) into an outcome (d,), for rounds that it imagines.
    """
    # Each entry is a function, so that nothing is worked out that the adversary does not read.
    makers: dict[str, Callable[[], Any]] = {}
    if "play" in declared_sights:
        makers["play"] = lambda: announced.play
        makers["rollout"] = lambda: _translated_rollout(announced.rollout, outcome_of)
    if "draw" in declared_sights:
        makers["drawn"] = lambda: announced.drawn
        makers["induced"] = lambda: announced.induced
    if "mixture" in declared_sights:
        makers["blocks"] = lambda: _translated_blocks(announced.blocks, labels_for_it)
    return AdversaryView(None, **makers)


def _translated_blocks(
    blocks: Sequence[Mixture], labels_for_it: Callable[[Array], Array]
) -> tuple[Mixture, ...]:
    """Return mixtures whose labels (m, d) are those of an inner adversary (m, c)."""
    translated_blocks = []
    for block in blocks:
        if block.labels is None:
            translated_blocks.append(block)
        else:
            translated_blocks.append(block.labelled(labels_for_it(block.labels)))
    return tuple(translated_blocks)


def _translated_rollout(
    rollout_of_outcomes: Callable[..., Any], outcome_of: Callable[[Array], Array]
) -> Callable[..., Any]:
    """Return a rollout as a function of what an inner adversary plays."""

    def rollout(played: Array, rounds: int, *, seed: int) -> Any:
        return rollout_of_outcomes(outcome_of(np.asarray(played)), rounds, seed=seed)

    return rollout


def certain_of_drawn(forecast: Forecast) -> Mixture:
    """Return the mixture that is certain of the drawn atom."""
    mixture = forecast.mixture
    atom = slice(forecast.index, forecast.index + 1)
    labels = mixture.labels
    if labels is not None:
        labels = labels[atom]
    ensembles = mixture.ensembles
    if ensembles is not None:
        ensembles = ensembles[atom]
    return Mixture(mixture.points[atom], CERTAIN, labels=labels, ensembles=ensembles)


def summed(
    payoff: Payoff | None,
    cohorts: Sequence[Cohort],
    played: Round,
    *,
    losses_are_personal: bool = False,
) -> dict[str, Array]:
    """Return what the agents of each cohort come to who were there, by its name (2, 2 + A).

    How many they are, what they paid by the leader's payoff (0 without one), and their mixed
    strategies added up; each as two numbers (``market.numerics.exact_sum``). Where losses are
    personal, no functions of the outcome, who is paid the followers' loss is paid what the market
    charged.
    """
    paid_by_all: Array | None = None  # for each action, whoever the followers are
    is_loss = False  # whether payoffs are the followers' losses themselves
    if payoff is not None:
        # A payoff of the user's own may have nothing but ``values``.
        values_of_all = getattr(payoff, "values_of_all", None)
        is_loss = getattr(payoff, "is_loss", False)
        if values_of_all is not None:
            paid_by_all = values_of_all(played.outcome)
    sums: dict[str, Array] = {}
    for cohort_index, cohort in enumerate(cohorts):
        # Rows: the two numbers whose sum is exact. Columns: agents, what they paid, play by action.
        sums_of_cohort = np.zeros((2, 2 + cohort.loss.actions))
        sums[cohort.name] = sums_of_cohort
        decision = played.decisions[cohort_index]
        losses = played.losses[cohort_index]
        if decision is None or losses is None:  # nobody was there
            continue
        values = NOTHING_PAID
        if paid_by_all is not None and len(paid_by_all) == losses.shape[1]:
            values = paid_by_all[np.newaxis]
        elif payoff is not None:
            if losses_are_personal:
                is_paid_as_charged = depends_on_losses_alone(payoff)  # what the market charged
            else:
                is_paid_as_charged = is_loss and _is_charged_at_outcome(
                    played, cohort_index, decision
                )
            if is_paid_as_charged:
                values = losses
            else:
                answer = payoff.values(cohort.loss, played.outcome[None])
                values = _checked_payoffs(payoff, answer, losses.shape)
        if decision.present is None:
            agents_of_row = cohort.counts
        else:
            taking_part = is_taking_part(decision, cohort)
            rows = cohort.row_of[taking_part]
            multiplicity = cohort.multiplicity_of(taking_part)
            counts = np.bincount(rows, multiplicity, minlength=len(losses))
            agents_of_row = counts.astype(np.float64)
        strategies, choices = strategies_or_choices(decision)
        _add_play(strategies, choices, values, agents_of_row, sums_of_cohort)
    return sums


def _is_charged_at_outcome(played: Round, cohort_index: int, decision: Decision) -> bool:
    """Whether a cohort without personal losses was charged those of its ``loss`` at the outcome.

    Not where actions sleep that an agent cannot pay for, and not of a user's own decisions, which
    may be charged otherwise.
    """
    return played.affordable[cohort_index] is None and is_ours(decision)


@compiled(inline="always")
def _expected_payment(strategy: Array, values: Array) -> float:
    """Return what an agent with a mixed strategy (A,) pays, given ``values`` (A,) by action.

    It is compiled. Even actions are added up by themselves, and odd ones, as NumPy's ``einsum``
    does in registers of two numbers: tables have had these digits, of up to seven actions.
    """
    paid_by_even = 0.0
    for action in range(0, len(strategy), 2):
        paid_by_even += strategy[action] * values[action]
    paid_by_odd = 0.0
    for action in range(1, len(strategy), 2):
        paid_by_odd += strategy[action] * values[action]
    return paid_by_even + paid_by_odd


def _checked_payoffs(payoff: Payoff, answer: Any, shape: tuple[int, ...]) -> Array:
    """Return what a payoff is at one outcome (K, A), for a kernel that reads it unchecked.

    One row stands for all. UserError if it is something else.
    """
    try:
        values = np.asarray(answer[0], dtype=np.float64)
        if values.shape != shape:
            values = np.broadcast_to(values, shape)
    except (IndexError, TypeError, ValueError) as error:
        expected = f"return numbers of shape (1, {shape[0]}, {shape[1]}) for one outcome"
        raise UserError(f"{name_of(payoff.values)} returned {brief(answer)}; {expected}") from error
    return values


@compiled()
def _add_play(
    strategies: Array, choices: Indices, values: Array, agents_of_row: Array, sums: Array
) -> None:
    """Add up agents, what they paid and their mixed strategies (compiled).

    Parameters
    ----------
    strategies : array (K, A), or empty
        Mixed strategies, zeros for an absent row.
    choices : int array (K,), or empty
        The action of each row, -1 for an absent one; they stand in place of ``strategies`` unless
        they are empty.
    values : array (K, A) or (1, A), or empty
        What an agent of each row, or of all rows, pays for each action; empty for nothing.
    agents_of_row : array (K,)
        How many agents of each row were there.
    sums : array (2, 2 + A)
        Each sum as the two numbers of ``market.numerics.exact_sum``; added to in place.
    """
    for k in range(len(agents_of_row)):
        agents = agents_of_row[k]
        sums[0, 0] += agents
        if len(values):
            row = k if len(values) > 1 else 0
            paid = 0.0
            if not len(choices):
                paid = _expected_payment(strategies[k], values[row])
            elif choices[k] >= 0:
                paid = values[row, choices[k]]
            coarse, fine = split(paid)
            sums[0, 1] += agents * coarse
            sums[1, 1] += agents * fine
        if len(choices):
            if choices[k] >= 0:
                sums[0, 2 + choices[k]] += agents
        else:
            for action in range(strategies.shape[1]):
                coarse, fine = split(strategies[k, action])
                sums[0, 2 + action] += agents * coarse
                sums[1, 2 + action] += agents * fine


def sums_of(payoff: Payoff | None, cohorts: Sequence[Cohort], played: Round) -> Mapping[str, Array]:
    """Return what the agents of each cohort come to: as the round has it, else as ``summed``."""
    if played.sums is not None:
        return played.sums
    return summed(payoff, cohorts, played)


def mean_payoffs(sums: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return what each cohort's agents paid on average (C,), NaN if none came, and how many.

    ``sums`` are those that ``summed`` returns.
    """
    rows = []
    for sums_of_cohort in sums.values():
        # The two numbers of each: how many agents there were, and what they paid.
        coarse, fine = sums_of_cohort[:, :2].tolist()
        n_agents = coarse[0] + fine[0]
        mean_paid = (coarse[1] + fine[1]) / n_agents if n_agents > 0 else np.nan
        rows.append((mean_paid, n_agents))
    columns = np.array(rows)  # (C, 2)
    return columns[:, 0], columns[:, 1]


def per_agent(mean_paid: Array, agents: Array) -> float:
    """Return the mean over all agents of what cohorts paid; NaN if nobody was there."""
    n_agents = float(np.add.reduce(agents))
    if n_agents == 0.0:
        return float("nan")
    paid_by_present = np.where(agents > 0, mean_paid, 0.0)
    return float(paid_by_present @ agents) / n_agents


def observed(played: Round, sums: Mapping[str, Array]) -> Observation:
    """Return what has come to light after a round, from the ``sums`` that ``summed`` returns."""
    mean_play = {}
    for cohort_name, (coarse, fine) in sums.items():
        totals = coarse + fine  # agents, what they paid, and their mixed strategies added up
        mean_play[cohort_name] = totals[2:] / max(totals[0], 1.0)
    return Observation(played.number, played.outcome, mean_play)


def teach(adversary: Adversary, played: Round, sums: Mapping[str, Array]) -> None:
    """Tell an adversary what it earned, NaN if it has no payoff, and what was seen.

    ``sums`` are those that ``summed`` returned of the round.
    """
    mean_payoff = np.nan
    if adversary.payoff is not None:
        mean_paid, agents = mean_payoffs(sums)
        mean_payoff = per_agent(mean_paid, agents)
    adversary.learn(mean_payoff, observed(played, sums))
