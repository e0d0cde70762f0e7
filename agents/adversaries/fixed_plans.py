r"""Leaders who commit (Stackelberg) or have another plan that no forecast changes, and sellers.

Scenario files name them as the ``kind`` of ``[adversary]``; ``agents.adversaries.leader`` says what
leaders have in common.

Shapes: m outcomes of the support, d coordinates of an outcome, A actions of the followers.

Pump and dump
-------------
A follower who plays a holds e_a units of a good, bought from the leader at the fixed price
``level``; the leader is short, and pays what the good turns out to be worth, y. It can buy
influence on y: pushing the good all the way from ``low`` to ``high`` costs it ``cost`` for the
round, whoever holds it, and less in proportion. It is paid

    u(a, y) = e_a (level - y) - cost (y - low) / (high - low),

linear in the exposure e (``exposure``). In the pump phase it pushes, and pays e_a (high - level) +
cost per round to those who hold. Then it lets the good fall, and earns e_a (level - low) per round
until they stop holding. Phases alternate. Against followers of an honest average it pays where they
let go slowly.

Sellers who face no-regret buyers
---------------------------------
Braverman, Mao, Schneider and Weinberg 2018. An arm is an offer: an allocation x of the good and a
price p, both in [0, 1]. An outcome lists the offers of all arms, (x_0, p_0, x_1, p_1, ...), d = 2 x
arms; arm 0 is the null arm, nothing for free. A buyer of value v loses (1 + p - v x) / 2 on the arm
that it plays, the seller earns p.

Staggered offers: with f = T^(3/4), arm 1 + k for k = 0, 1, ..., floor(3T / 4f) opens at round
(4/3) f k, gives the good free for f (1 - k / 100) rounds, and asks the price of 1 from then on;
before it opens it is nothing for free. A buyer that follows the past is lured from one free arm to
the next and keeps paying for arms that were good once: the seller extracts nearly all welfare,
more than Myerson's revenue. In the code f is ``free_rounds``, T ``rounds`` and k ``arm_numbers``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.leader import Leader, Pure
from regretless.agents.parameters import check_int, check_range, numbers
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, UserError, brief, closest
from regretless.market.exploitability.commitment import Commitment, stackelberg
from regretless.market.exploitability.sampled_commitment import commitment_for_run
from regretless.market.game.protocols import Follower
from regretless.market.numerics.linear_program import UnprovedError
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

FREE_PHASE_DECREMENT = 0.01  # the share of f by which the free phase shortens from arm to arm


@register.adversary("stackelberg-committer")
@dataclass(eq=False, repr=False, kw_only=True)
class StackelbergCommitter(Leader):
    """Draws every outcome from the best distribution to commit to (Conitzer and Sandholm 2006).

    It is best against a follower, of the first cohort or that named, who best-responds to it and
    breaks ties the leader's way: the cohort's "first" row, or the "average" of payoff and loss over
    its agents, a type that need not exist. Where that distribution leaves the follower indifferent,
    one who learns it from drawn outcomes errs for ever: by ``margin`` the follower loses less with
    the induced action than with every other. "auto" chooses what earns most in a run of ``rounds``
    from a follower of the average outcome (``market.exploitability.sampled_commitment``); 0 is the
    optimum itself. ``commitment`` has the distribution, and its value, and ``margin_played`` the
    margin, once it has met the followers.
    """

    sees = frozenset({"losses"})
    cohort: str | None = None
    follower: str = "first"
    margin: Literal["auto"] | float = "auto"
    rounds: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.margin == "auto":
            if self.rounds is None:
                raise ValueError("margin = 'auto' is chosen for a length; give rounds, or a number")
            check_int("rounds", self.rounds, least=1)
        else:
            check_range("margin", self.margin, 0, np.inf)
        if self.follower not in {"first", "average"}:
            raise ValueError(f"follower is {self.follower!r}; write 'first' or 'average'")
        self.commitment: Commitment | None = None
        self.margin_played: float | None = None

    def meet(self, followers: Sequence[Follower]) -> None:
        """Solve for the distribution; UserError without such a cohort or a proved optimum."""
        super().meet(followers)
        i = self._index_of_follower(followers)
        counts = followers[i].counts
        if self.follower == "average":
            row_weights = counts / counts.sum()
        else:
            row_weights = np.eye(len(counts))[0]
        losses = followers[i].loss.losses(self.support)
        leader_payoff = np.einsum("mka,k->ma", self._payoff_tables[i], row_weights)
        follower_loss = np.einsum("mka,k->ma", losses, row_weights)
        try:
            self._choose_commitment(leader_payoff, follower_loss)
        except ParameterError as error:
            raise UserError(f"adversary.{error}") from error
        except UnprovedError as error:
            raise UserError(
                f"adversary.support or adversary.grid, of {len(self.support)} outcomes: {error}"
            ) from error

    def _choose_commitment(self, leader_payoff: Array, follower_loss: Array) -> None:
        """Solve the game (m, A), by the margin of the run's length or the one that was given."""
        if isinstance(self.margin, str):
            assert self.rounds is not None  # noqa: S101 - checked when the leader was made
            chosen = commitment_for_run(leader_payoff, follower_loss, rounds=self.rounds)
            self.commitment, self.margin_played = chosen
        else:
            self.commitment = stackelberg(leader_payoff, follower_loss, margin=self.margin)
            self.margin_played = self.margin

    def _index_of_follower(self, followers: Sequence[Follower]) -> int:
        if self.cohort is None:
            return 0
        cohort_names = [follower.name for follower in followers]
        if self.cohort not in cohort_names:
            raise UserError(
                f"adversary.cohort '{self.cohort}': {closest(self.cohort, cohort_names)}"
            )
        return cohort_names.index(self.cohort)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        if self.commitment is None:
            raise ValueError("a leader commits against somebody; call meet first")
        mixture = self.commitment.mixture
        is_played = mixture > 0
        return OutcomeDistribution(self.support[is_played], mixture[is_played])


@register.adversary("up-then-down")
@dataclass(eq=False, repr=False, kw_only=True)
class UpThenDown(Pure, Leader):
    """The ``first`` outcome of the support for a ``share`` of the run's ``rounds``, then another.

    A learner that follows the past is still committed to its answer to the first when the second
    comes (Deng, Schneider and Sivan 2019).
    """

    sees = frozenset({"history"})
    rounds: int
    first: int = 0
    then: int = 1
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "then"):
            check_int(name, getattr(self, name), least=0, below=len(self.support))
        check_range("share", self.share, 0, 1)
        check_int("rounds", self.rounds, least=1)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        is_first_phase = history.rounds < self.share * self.rounds
        return np.asarray(self.support[self.first if is_first_phase else self.then])


@register.adversary("pump-and-dump")
class PumpAndDump(Pure, Leader):
    """Pushes a good up at a cost, then lets it fall while it is short.

    ``exposure`` (A,) are the units of the good (which coordinate) that each action holds; it is
    worth ``low`` when let fall and ``high`` when pushed, at a cost per round, and is sold at
    ``level``. ``pump`` and ``dump`` are rounds; all other goods are worth ``rest``.
    """

    sees = frozenset({"history"})

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        exposure: ArrayLike,
        good: int = 0,
        low: float = 0.0,
        high: float = 1.0,
        level: float = 0.5,
        cost: float = 0.05,
        pump: int = 100,
        dump: int = 100,
        rest: float = 0.5,
    ) -> None:
        good = check_int("good", good, least=0, below=outcomes)
        low = check_range("low", low, 0, 1)
        high = check_range("high", high, 0, 1)
        level = check_range("level", level, 0, 1)
        cost = check_range("cost", cost, 0, np.inf)
        if not low < high:
            raise ValueError(f"high is {high:g}; give more than low, {low:g}")
        held_units = numbers("exposure", exposure)  # (A,)
        if held_units.ndim != 1 or not len(held_units):
            raise ValueError(f"exposure = {brief(exposure)}: give one number per action")
        cost_per_worth = cost / (high - low)  # of raising the good's worth by 1
        weights = np.zeros((len(held_units), outcomes))
        weights[:, good] = -held_units - cost_per_worth
        offset = held_units * level + cost_per_worth * low
        pushed_and_fallen = np.full((2, outcomes), check_range("rest", rest, 0, 1))
        pushed_and_fallen[:, good] = (high, low)
        super().__init__(outcomes, rng, weights=weights, offset=offset, support=pushed_and_fallen)
        self.pump = check_int("pump", pump, least=1)
        self.dump = check_int("dump", dump, least=1)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        is_pumping = history.rounds % (self.pump + self.dump) < self.pump
        return np.asarray(self.support[0 if is_pumping else 1])


class Seller(Pure, Leader):
    """Base of the sellers: paid the price of the arm that is bought, offers of its support (m, d).

    ``outcomes`` is twice the number of arms, the null arm included.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator, support: Array) -> None:
        n_arms = outcomes // 2
        weights = np.zeros((n_arms, outcomes))
        weights[:, 1::2] = np.eye(n_arms)  # every second coordinate is the price of an arm
        super().__init__(outcomes, rng, weights=weights, support=support)


@register.adversary("staggered-seller")
class StaggeredSeller(Seller):
    """Opens arm after arm, each free at first, for a run of ``rounds``; spare arms stay closed."""

    sees = frozenset({"history"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, rounds: int) -> None:
        free_rounds = check_int("rounds", rounds, least=1) ** 0.75
        arm_numbers = np.arange(math.floor(3 * rounds / (4 * free_rounds)) + 1)
        n_arms = _count_arms(
            outcomes,
            min_arms=len(arm_numbers) + 1,
            reason=f"for the schedule of {rounds} rounds ",
        )
        # Of each arm; the null arm and spare ones never open.
        self._opening_time = np.full(n_arms, np.inf)
        self._pricing_time = np.full(n_arms, np.inf)
        used_arms = slice(1, len(arm_numbers) + 1)
        free_time = free_rounds * (1 - FREE_PHASE_DECREMENT * arm_numbers)
        self._opening_time[used_arms] = arm_numbers * (4 / 3) * free_rounds
        self._pricing_time[used_arms] = self._opening_time[used_arms] + free_time
        change_times = np.ceil(np.append(self._opening_time, self._pricing_time))
        change_rounds = np.unique(np.append(0.0, change_times[change_times < rounds]))
        support = np.array([self.offers(int(round_index)) for round_index in change_rounds])
        super().__init__(outcomes, rng, support)

    def offers(self, round_index: int) -> Array:
        """Return the offers (d,) of a round, counted from 0."""
        allocation = round_index >= self._opening_time
        price = round_index >= self._pricing_time
        return np.stack([allocation, price], axis=1).astype(np.float64).ravel()

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.offers(history.rounds)


@register.adversary("bait-seller")
class BaitSeller(Seller):
    """Asks the full price for what buyers are about to take.

    All arms but the null arm give the good; the one that the announced play favours (of several the
    first) costs 1, all others nothing.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        n_arms = _count_arms(outcomes, min_arms=2)
        offers = np.zeros((n_arms - 1, n_arms, 2))  # an outcome for each arm but the null arm
        offers[:, 1:, 0] = 1.0  # allocations
        offers[:, 1:, 1] = np.eye(n_arms - 1)  # prices
        super().__init__(outcomes, rng, offers.reshape(n_arms - 1, outcomes))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.play))


def _count_arms(outcomes: int, *, min_arms: int, reason: str = "") -> int:
    """Return how many arms so many coordinates are; UserError, with the reason, if too few."""
    if outcomes % 2 or outcomes < 2 * min_arms:
        raise UserError(
            f"outcomes = {outcomes}: {reason}give an even number of at least {2 * min_arms}"
        )
    return outcomes // 2


def buyer_losses(values: Any, n_arms: int) -> tuple[Array, Array]:
    """Return losses of buyers over offers, weights (K, arms, 2 x arms) and offset (arms,).

    They are (1 + price - value x allocation) / 2, for what the good is worth to each (K,).
    """
    values_of_buyers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    n_buyers = len(values_of_buyers)
    weights = np.zeros((n_buyers, n_arms, n_arms, 2))  # buyer, arm played, arm offered, (x, p)
    arms = np.arange(n_arms)
    weights[:, arms, arms, 0] = -values_of_buyers[:, None] / 2
    weights[:, arms, arms, 1] = 0.5
    return weights.reshape(n_buyers, n_arms, 2 * n_arms), np.full(n_arms, 0.5)
