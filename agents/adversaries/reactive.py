r"""Adversaries that answer the announced play: leaders, and one that maximises regret.

They commit in every round, in sight of the mixed strategies that followers would play
(``announced.play``); ``agents.adversaries.leader`` says what an outcome is worth to them.

Shapes: m outcomes of the support, K rows and A actions of a cohort.

Looking ahead
-------------
For each outcome of the support, forecaster and population play H rounds in which that outcome
happens every time (``market.game.lookahead``), on copies with fresh random streams; the outcome
whose H rounds pay most is the one of this round. It costs at most m H rounds of forecasting and
responding per round, and m copies of the forecaster's and the learners' memory. Mostly it costs
less. A plan is left as soon as it cannot become the best, as its remaining rounds pay at most the
greatest payoff of its outcome (branch and bound). Where nothing that is drawn has an effect, the
plan that came true in the last round is not played again: it goes on by one round.

Seeing the draw
---------------
The rule that the adversary commits before the forecast is drawn is what makes a mixture of
predictions safe. ``DrawSeer`` breaks it, and in matching pennies wins every round. It exists to
show that the rule is needed; nothing is guaranteed in its presence.

Maximising regret
-----------------
Every outcome is the one that makes somebody regret most. The adversary counts what each follower's
expected swap regret would be after the round, at the announced mixed strategies q, for every
outcome y of its support,

    R_k(y) = sum_a max_b [ G_k[a, b] + q_k(a) (l_k(a, y) - l_k(b, y)) ],    G the sums so far,

and commits to the outcome at which the worst follower's R_k is the greatest: greedy on the very
quantity that the theorem bounds. No bound is known to be met by any opponent; this one says how
much of a bound is slack against greed. G is ``_regret_sums`` in the code, l ``_payoff_tables``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.agents.adversaries.leader import Leader, Pure, place_in_support
from regretless.agents.parameters import check_int
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import is_ours
from regretless.market.game.protocols import Follower
from regretless.market.numerics.pairwise_sum import pairwise_sum
from regretless.market.records import AdversaryView, History

PLAN_ROUNDING = 1e-9  # of a plan's payoff, relative to the greatest payoff


@register.adversary("myopic")
class Myopic(Pure, Leader):
    """Best outcome of its support against the announced play, the first of several.

    In a market, by what the market will make of it.
    """

    minds_market = True

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.play, announced.moved(self.support)))


@register.adversary("look-ahead")
@dataclass(eq=False, repr=False, kw_only=True)
class LookAhead(Pure, Leader):
    """Best first step of a constant plan of ``horizon`` rounds, by rollout; with 1 it is myopic.

    ``rng`` seeds the copies; all plans of a round meet the same draws.
    """

    REMEMBERED = ("rng",)
    horizon: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("horizon", self.horizon, least=1)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        first_tried = 0  # the plan of the last outcome: it is mostly the best again
        if history.rounds:
            first_tried = max(0, place_in_support(history.last()[0], self.support))
        return self.best(self.plans(announced, first_tried=first_tried))

    def plans(self, announced: AdversaryView, *, first_tried: int = 0) -> Array:
        """Return the payoff per agent and round (m,) of doing the same for H rounds.

        Of a plan that cannot be the best it is an upper bound, for which fewer rounds are played.
        All plans of a round meet the same random draws.
        """
        seed = int(self.rng.integers(2**63))
        most_per_round = self._most_per_round()
        rounding = PLAN_ROUNDING * max(1.0, float(np.abs(most_per_round).max()))
        payoffs = np.empty(len(self.support))
        best_payoff = -np.inf
        order = [first_tried, *(i for i in range(len(self.support)) if i != first_tried)]
        for i in order:
            payoffs[i] = self._payoff_of_plan(
                i,
                announced,
                seed=seed,
                most_per_round=float(most_per_round[i]),
                least_useful=best_payoff - rounding,
            )
            best_payoff = max(best_payoff, float(payoffs[i]))
        return payoffs

    def _payoff_of_plan(
        self,
        i: int,
        announced: AdversaryView,
        *,
        seed: int,
        most_per_round: float,
        least_useful: float,
    ) -> float:
        """Return what the support's i-th outcome in H rounds pays per round.

        As soon as it is known to be less than ``least_useful``, as no round pays more than
        ``most_per_round``, the upper bound that shows it.
        """
        payoffs = []
        for rounds in range(1, self.horizon + 1):
            play = announced.rollout(self.support[i], rounds, seed=seed)[-1]
            payoffs.append(float(self.worth(play)[i]))
            remaining_rounds = self.horizon - rounds
            if remaining_rounds:
                payoff_at_most = (sum(payoffs) + remaining_rounds * most_per_round) / self.horizon
                if payoff_at_most < least_useful:
                    return payoff_at_most
        return float(np.mean(payoffs))

    def _most_per_round(self) -> Array:
        """Bound what each outcome of the support can be worth (m,), however followers play."""
        if not is_ours(self.worth):
            return np.full(len(self.support), np.inf)
        # Worth is a mean over agents of payoffs, and those who are absent pay nothing.
        most = np.zeros(len(self.support))
        for payoffs in self._payoff_tables:
            most = np.maximum(most, payoffs.max(axis=(1, 2)))
        return most


@register.adversary("draw-seer")
class DrawSeer(Pure, Leader):
    """Best outcome of its support against the actions that the drawn forecast induces."""

    sees = Leader.sees | {"draw"}

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.induced))


@register.adversary("regret-maximiser")
@dataclass(eq=False, repr=False, kw_only=True)
class RegretMaximiser(Pure, Leader):
    """Chooses the outcome after which the worst follower has the most swap regret.

    With ``agent`` it is the regret of this row of the first cohort, from 0.
    """

    REMEMBERED = ("_regret_sums",)
    agent: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.agent is not None:
            check_int("agent", self.agent, least=0)
        self._regret_sums: list[Array] = []  # (K, A, A) of each cohort

    def meet(self, followers: Sequence[Follower]) -> None:
        """Begin to count; UserError if there is no such agent to aim at."""
        super().meet(followers)
        n_rows = len(followers[0].loss)
        if self.agent is not None and self.agent >= n_rows:
            raise UserError(
                f"adversary.agent = {self.agent}: the first cohort has {n_rows} different "
                "agents, from 0; choose one of them"
            )
        self._regret_sums = []
        for follower in followers:
            n_actions = follower.loss.actions
            self._regret_sums.append(np.zeros((*follower.loss.offset.shape, n_actions)))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        strategies = []
        for regret_sums, announced_play in zip(self._regret_sums, announced.play, strict=True):
            strategy = announced_play
            if strategy is None:  # nobody is there, or play cannot be foreseen
                strategy = np.zeros(regret_sums.shape[:2])
            strategies.append(strategy)
        largest_regrets = np.full(len(self.support), -np.inf)  # of those aimed at, by outcome
        n_aimed_at = len(strategies) if self.agent is None else 1
        for cohort_index in range(n_aimed_at):
            regret_sums = self._regret_sums[cohort_index]
            rows = (0, len(regret_sums)) if self.agent is None else (self.agent, self.agent + 1)
            _raise_to_swap_regrets(
                regret_sums,
                strategies[cohort_index],
                np.ascontiguousarray(self._payoff_tables[cohort_index]),
                *rows,
                largest_regrets,
            )
        outcome = self.best(largest_regrets)  # which a user's subclass may write
        chosen = max(0, place_in_support(np.asarray(outcome, np.float64).ravel(), self.support))
        sums_after = []
        for cohort_index, regret_sums in enumerate(self._regret_sums):
            sums = regret_sums.copy()
            losses_of_chosen = self._payoff_tables[cohort_index][chosen]
            _add_to_regret_sums(strategies[cohort_index], losses_of_chosen, sums)
            sums_after.append(sums)
        self._regret_sums = sums_after
        return outcome


@compiled()
def _add_to_regret_sums(strategy: Array, losses: Array, regret_sums: Array) -> None:
    """Add q_ka (l_ka - l_kb), what b in place of a would have gained in a round (compiled).

    Parameters
    ----------
    strategy : array (K, A)
        q, as it was announced.
    losses : array (K, A)
        l, of each action at the outcome.
    regret_sums : array (K, A, A)
        Added to in place.
    """
    n_actions = strategy.shape[1]
    for k in range(strategy.shape[0]):
        for a in range(n_actions):
            for b in range(n_actions):
                regret_sums[k, a, b] += strategy[k, a] * (losses[k, a] - losses[k, b])


@compiled()
def _raise_to_swap_regrets(
    regret_sums: Array,
    strategy: Array,
    losses: Array,
    first: int,
    last: int,
    largest_regrets: Array,
) -> None:
    """Raise each outcome's number to the largest swap regret that a row has after it (compiled).

    After outcome i, row k has the swap regret

        sum_a max_b (S_kab + q_ka (l_ika - l_ikb)),

    summed up as NumPy does.

    Parameters
    ----------
    regret_sums : array (K, A, A)
        S, of the rounds so far: what b in place of a would have gained.
    strategy : array (K, A)
        q, the announced play.
    losses : array (m, K, A)
        l, of each action at each outcome.
    first, last : int
        The span of rows k that count.
    largest_regrets : array (m,)
        Changed in place.
    """
    n_actions = strategy.shape[1]
    gain_of_best = np.empty(n_actions)  # in place of each action
    for i in range(losses.shape[0]):
        for k in range(first, last):
            for a in range(n_actions):
                greatest = -np.inf
                for b in range(n_actions):
                    difference = losses[i, k, a] - losses[i, k, b]
                    greatest = max(greatest, regret_sums[k, a, b] + strategy[k, a] * difference)
                gain_of_best[a] = greatest
            largest_regrets[i] = max(largest_regrets[i], pairwise_sum(gain_of_best))
