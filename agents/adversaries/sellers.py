r"""Sellers who face no-regret buyers (Braverman, Mao, Schneider and Weinberg 2018).

An arm is an offer: an allocation x of the good and a price p, both in [0, 1]. An outcome lists the
offers of all arms, (x_0, p_0, x_1, p_1, ...), d = 2 x arms; arm 0 is the null arm, nothing for
free. A buyer of value v loses (1 + p - v x) / 2 on the arm that it plays, the seller earns p.

**Staggered offers.** With f = T^(3/4), arm 1 + k for k = 0, 1, ..., floor(3T / 4f) opens at round
(4/3) f k, gives the good free for f (1 - k / 100) rounds, and asks the price of 1 from then on;
before it opens it is nothing for free. A buyer that follows the past is lured from one free arm to
the next and keeps paying for arms that were good once: the seller extracts nearly all welfare,
more than Myerson's revenue.

**Bait.** All arms but the null arm give the good; the one that the announced play favours (of
several the first) costs 1, all others nothing.
"""

import math
from typing import Any

import numpy as np

from regretless.agents.adversaries.strategic import Strategic, whole
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.records import Announcement, Context, History, OutcomeLaw

STEP = 0.01  # by so much of f the free phase shortens from arm to arm


class Seller(Strategic):
    """Base of the sellers: paid the price of the arm that is bought.

    Parameters
    ----------
    outcomes : int
        Twice the number of arms, the null arm included.
    rng : numpy Generator
        Unused.
    support : array (m, d)
        The lists of offers that it chooses among.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator, support: Array) -> None:
        prices = np.zeros((outcomes // 2, outcomes))
        prices[np.arange(outcomes // 2), 1::2] = np.eye(outcomes // 2)
        super().__init__(outcomes, rng, weights=prices, support=support)


@register.adversary("staggered-seller")
class StaggeredSeller(Seller):
    """Opens arm after arm, each free at first.

    Parameters
    ----------
    outcomes : int
        Twice the number of arms; arms beyond those of the schedule stay closed.
    rounds : int
        Length of the run, T.

    Raises
    ------
    ValueError
        If the schedule needs more arms.
    """

    sees = frozenset({"history"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, rounds: int) -> None:
        span = whole("rounds", rounds, least=1) ** 0.75
        number = np.arange(math.floor(3 * rounds / (4 * span)) + 1)
        arms = _arms(outcomes, least=len(number) + 1, why=f"for the schedule of {rounds} rounds ")
        self._opens = np.full(arms, np.inf)
        self._opens[1 : len(number) + 1] = number * (4 / 3) * span
        self._asks = np.full(arms, np.inf)
        self._asks[1 : len(number) + 1] = self._opens[1 : len(number) + 1] + span * (
            1 - STEP * number
        )
        turns = np.ceil(np.append(self._opens, self._asks))
        starts = np.unique(np.append(0.0, turns[turns < rounds]))
        super().__init__(outcomes, rng, np.array([self.offers(int(turn)) for turn in starts]))

    def offers(self, time: int) -> Array:
        """Return the offers (d,) of a round, counted from 0."""
        allocation, price = time >= self._opens, time >= self._asks
        return np.stack([allocation, price], axis=1).astype(np.float64).ravel()

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the offers of the schedule."""
        return OutcomeLaw.pure(self.offers(history.rounds))


@register.adversary("bait-seller")
class BaitSeller(Seller):
    """Asks the full price for what buyers are about to take.

    Parameters
    ----------
    outcomes : int
        Twice the number of arms, at least 2 of them.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        arms = _arms(outcomes, least=2)
        offers = np.zeros((arms - 1, arms, 2))
        offers[:, 1:, 0] = 1.0
        offers[:, 1:, 1] = np.eye(arms - 1)
        super().__init__(outcomes, rng, offers.reshape(arms - 1, outcomes))

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the offers in which the favoured arm has a price."""
        return OutcomeLaw.pure(self.best(self.worth(announced.play)))


def _arms(outcomes: int, *, least: int, why: str = "") -> int:
    if outcomes % 2 or outcomes < 2 * least:
        raise UserError(f"outcomes = {outcomes}: {why}give an even number of at least {2 * least}")
    return outcomes // 2


def buyer_losses(values: Any, arms: int) -> tuple[Array, Array]:
    """Losses of buyers over offers: (1 + price - value x allocation) / 2.

    Parameters
    ----------
    values : array (K,)
        What the good is worth to each.
    arms : int
        The null arm included.

    Returns
    -------
    weights : array (K, arms, 2 x arms)
    offset : array (arms,)
        As ``market.losses.Linear`` takes them; in [0, 1] for values in [0, 1].
    """
    worth = np.atleast_1d(np.asarray(values, dtype=np.float64))
    weights = np.zeros((len(worth), arms, arms, 2))
    own = np.arange(arms)
    weights[:, own, own, 0] = -worth[:, None] / 2
    weights[:, own, own, 1] = 0.5
    return weights.reshape(len(worth), arms, 2 * arms), np.full(arms, 0.5)
