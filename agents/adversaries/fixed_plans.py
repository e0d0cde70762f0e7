r"""Leaders who commit (Stackelberg) or have another plan that no forecast changes, and sellers.

**Pump and dump.** A follower who plays a holds e_a units of a good, bought from the leader at the
fixed price ``level``; the leader is short, and pays what the good turns out to be worth, y. It can
buy influence on y: pushing the good all the way from ``low`` to ``high`` costs it ``cost`` for the
round, whoever holds it, and less in proportion. It is paid

    u(a, y) = e_a (level - y) - cost (y - low) / (high - low),

linear in the exposure. In the pump phase it pushes, and pays e_a (high - level) + cost per round to
those who hold. Then it lets the good fall, and earns e_a (level - low) per round until they stop
holding. Phases alternate. Against followers of an honest average it pays where they let go slowly.

**Sellers who face no-regret buyers** (Braverman, Mao, Schneider and Weinberg 2018). An arm is an
offer: an allocation x of the good and a price p, both in [0, 1]. An outcome lists the offers of all
arms, (x_0, p_0, x_1, p_1, ...), d = 2 x arms; arm 0 is the null arm, nothing for free. A buyer of
value v loses (1 + p - v x) / 2 on the arm that it plays, the seller earns p.

**Staggered offers.** With f = T^(3/4), arm 1 + k for k = 0, 1, ..., floor(3T / 4f) opens at round
(4/3) f k, gives the good free for f (1 - k / 100) rounds, and asks the price of 1 from then on;
before it opens it is nothing for free. A buyer that follows the past is lured from one free arm to
the next and keeps paying for arms that were good once: the seller extracts nearly all welfare,
more than Myerson's revenue.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.leader import Leader, Pure
from regretless.agents.parameters import check_int, check_range, numbers
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.exploitability.commitment import Commitment, stackelberg
from regretless.market.game.protocols import Follower
from regretless.market.numerics.linear_program import UnprovedError
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

STEP = 0.01  # by so much of f the free phase shortens from arm to arm


@register.adversary("stackelberg-committer")
@dataclass(eq=False, repr=False, kw_only=True)
class StackelbergCommitter(Leader):
    """Draws every outcome from the best distribution to commit to (Conitzer and Sandholm 2006).

    It is best against a follower, of the first cohort or that named, who best-responds to it and
    breaks ties the leader's way: the cohort's "first" row, or the "average" of payoff and loss over
    its agents, a type that need not exist. ``commitment`` has its distribution and value
    (``market.exploitability``), once it has met the followers.
    """

    sees = frozenset({"losses"})
    cohort: str | None = None
    follower: str = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.follower not in {"first", "average"}:
            raise ValueError(f"follower is {self.follower!r}; write 'first' or 'average'")
        self.commitment: Commitment | None = None

    def meet(self, followers: Sequence[Follower]) -> None:
        """Solve for the distribution; UserError without such a cohort or a proved optimum."""
        super().meet(followers)
        names = [who.name for who in followers]
        if self.cohort is not None and self.cohort not in names:
            raise UserError(f"adversary.cohort '{self.cohort}': {closest(self.cohort, names)}")
        place = 0 if self.cohort is None else names.index(self.cohort)
        counts = followers[place].counts
        shares = counts / counts.sum() if self.follower == "average" else np.eye(len(counts))[0]
        losses = followers[place].loss.losses(self.support)
        tables = (np.einsum("mka,k->ma", table, shares) for table in (self._values[place], losses))
        try:
            self.commitment = stackelberg(*tables)
        except UnprovedError as error:
            where = f"adversary.support or adversary.grid, of {len(self.support)} outcomes"
            raise UserError(f"{where}: {error}") from error

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        if self.commitment is None:
            raise ValueError("a leader commits against somebody; call meet first")
        mixture = self.commitment.mixture
        return OutcomeDistribution(self.support[mixture > 0], mixture[mixture > 0])


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
        up = history.rounds < self.share * self.rounds
        return np.asarray(self.support[self.first if up else self.then])


@register.adversary("pump-and-dump")
class PumpAndDump(Pure, Leader):
    """Pushes a good up at a cost, then lets it fall while it is short.

    ``exposure`` (A,) are the units of the good (which coordinate) that each action holds; it is
    worth ``low`` when let fall and ``high`` when pushed, at a cost per round, and is sold at
    ``level``. ``pump`` and ``dump`` are rounds; all other goods are worth ``rest``.
    """

    sees = frozenset({"history"})

    def __init__(  # noqa: PLR0913 - the parameters of a scenario file
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
        low, high = check_range("low", low, 0, 1), check_range("high", high, 0, 1)
        level, cost = check_range("level", level, 0, 1), check_range("cost", cost, 0, np.inf)
        if not low < high:
            raise ValueError(f"high is {high:g}; give more than low, {low:g}")
        held = numbers("exposure", exposure)
        if held.ndim != 1 or not len(held):
            raise ValueError(f"exposure = {brief(exposure)}: give one number per action")
        push = cost / (high - low)
        weights = np.zeros((len(held), outcomes))
        weights[:, good] = -held - push
        support = np.full((2, outcomes), check_range("rest", rest, 0, 1))
        support[:, good] = high, low
        offset = held * level + push * low
        super().__init__(outcomes, rng, weights=weights, offset=offset, support=support)
        self.pump, self.dump = check_int("pump", pump, least=1), check_int("dump", dump, least=1)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        pumping = history.rounds % (self.pump + self.dump) < self.pump
        return np.asarray(self.support[0 if pumping else 1])


class Seller(Pure, Leader):
    """Base of the sellers: paid the price of the arm that is bought, offers of its support (m, d).

    ``outcomes`` is twice the number of arms, the null arm included.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator, support: Array) -> None:
        prices = np.zeros((outcomes // 2, outcomes))
        prices[np.arange(outcomes // 2), 1::2] = np.eye(outcomes // 2)
        super().__init__(outcomes, rng, weights=prices, support=support)


@register.adversary("staggered-seller")
class StaggeredSeller(Seller):
    """Opens arm after arm, each free at first, for a run of ``rounds``; spare arms stay closed."""

    sees = frozenset({"history"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, rounds: int) -> None:
        span = check_int("rounds", rounds, least=1) ** 0.75
        number = np.arange(math.floor(3 * rounds / (4 * span)) + 1)
        arms = _arms(outcomes, least=len(number) + 1, why=f"for the schedule of {rounds} rounds ")
        self._opens, self._asks = np.full((2, arms), np.inf)
        used = slice(1, len(number) + 1)
        self._opens[used] = number * (4 / 3) * span
        self._asks[used] = self._opens[used] + span * (1 - STEP * number)
        turns = np.ceil(np.append(self._opens, self._asks))
        starts = np.unique(np.append(0.0, turns[turns < rounds]))
        super().__init__(outcomes, rng, np.array([self.offers(int(turn)) for turn in starts]))

    def offers(self, time: int) -> Array:
        """Return the offers (d,) of a round, counted from 0."""
        allocation, price = time >= self._opens, time >= self._asks
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
        arms = _arms(outcomes, least=2)
        offers = np.zeros((arms - 1, arms, 2))
        offers[:, 1:, 0] = 1.0
        offers[:, 1:, 1] = np.eye(arms - 1)
        super().__init__(outcomes, rng, offers.reshape(arms - 1, outcomes))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.play))


def _arms(outcomes: int, *, least: int, why: str = "") -> int:
    if outcomes % 2 or outcomes < 2 * least:
        raise UserError(f"outcomes = {outcomes}: {why}give an even number of at least {2 * least}")
    return outcomes // 2


def buyer_losses(values: Any, arms: int) -> tuple[Array, Array]:
    """Return losses of buyers over offers, weights (K, arms, 2 x arms) and offset (arms,).

    They are (1 + price - value x allocation) / 2, for what the good is worth to each (K,).
    """
    worth = np.atleast_1d(np.asarray(values, dtype=np.float64))
    weights = np.zeros((len(worth), arms, arms, 2))
    own = np.arange(arms)
    weights[:, own, own, 0] = -worth[:, None] / 2
    weights[:, own, own, 1] = 0.5
    return weights.reshape(len(worth), arms, 2 * arms), np.full(arms, 0.5)
