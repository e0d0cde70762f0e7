"""Sellers of the market ``price-competition`` with a known regret, by whose logs audits are judged.

Two sellers of the same kind set prices in the scenario ``pricing-algorithms``, with another menu
and no cost. On the menu (0.3, 0.3) is the competitive equilibrium, and both together earn most at
(0.9, 0.9). Each seller mixes its price with all prices alike (its **exploration**):

- ``hedge`` and ``swap`` are the learners ``hedge`` and ``blum-mansour``, which are told what every
  price would have earned;
- ``q-learning`` is trained for ``TRAINING`` rounds, while its exploration fades. Then its log
  begins: it goes on learning with a constant exploration;
- ``monopoly`` always sets 0.9, and does not explore.

``play`` returns the log of the first seller, as the table ``sales`` of a run has it, with what
every price would have sold.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless import load, register
from regretless.agents.learners.base import Actions, RowLearner
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.markets.price_competition import PriceCompetition
from regretless.market.model import MarketModel

PRICES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
N_PRICES = len(PRICES)
CHANCES = [f"chance_{action}" for action in range(N_PRICES)]  # columns of ``sales``
MONOPOLY = 4  # index of the price that is best for both together
KINDS = ("hedge", "swap", "q-learning", "monopoly")
LEARNER_OF_KIND = {"hedge": "hedge", "swap": "blum-mansour"}
TRAINING = 200_000  # rounds of Q-learning before the log
DECAY = 4e-5  # of the exploration in training, per round
Q_LEARNING: dict[str, Any] = {
    "memory": 1,
    "sees": "all",
    "alpha": 0.15,
    "gamma": 0.95,
    "initial": "uniform-play",
}
MARKET: dict[str, Any] = {
    "market.differentiation": 0.15,
    "market.sales": True,
    "cohort.sellers.actions": N_PRICES,
    "cohort.sellers.parameters": {"cost": 0.0, "quality": 1.0, "lowest": 0.1, "highest": 0.9},
    "until": None,
    "windows": None,
}


@register.learner("exploring")
class Exploring(RowLearner):
    """A learner of the project's that mixes its strategy with all actions alike.

    Parameters
    ----------
    learner : str
        Its registered name. It learns from what every action would have lost.
    exploration : float
        The probability that is shared evenly among all actions.
    """

    name: ClassVar[str] = "exploring"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("learner",)

    def __init__(self, *, learner: str, exploration: float) -> None:
        self.learner: RowLearner = register.learner[learner]()
        self.exploration = exploration

    def begin(self) -> None:
        """Let the learner begin."""
        self.learner.start(self.rows, self.actions, horizon=self.horizon)
        self.strategy = self._mixed()

    def step(self, losses: Array, actions: Actions) -> Array:
        """Let the learner learn, and mix what it would play next."""
        self.learner.learn(losses, actions)
        return self._mixed()

    def _mixed(self) -> Array:
        own_share = (1.0 - self.exploration) * self.learner.strategy
        return np.asarray(own_share + self.exploration / self.actions)


@dataclass(frozen=True, eq=False)
class SellerLog:
    """The log of one seller, with what nobody outside a simulation knows.

    Attributes
    ----------
    sales : DataFrame
        The seller's rows of the table ``sales`` (T), and ``rival``, the rival's price.
    quantity_at : ndarray
        What each price would have sold in each round (T, A).
    """

    sales: pd.DataFrame
    quantity_at: Array

    @property
    def chosen(self) -> Indices:
        """Index of the price of each round (T,)."""
        price = self.sales["price"].to_numpy()
        return np.asarray(np.abs(price[:, None] - PRICES).argmin(1))

    @property
    def probability(self) -> Array:
        """The probability of each price in each round (T, A)."""
        return self.sales[CHANCES].to_numpy()

    def first(self, rounds: int) -> "SellerLog":
        """Return the log of the first rounds."""
        return SellerLog(self.sales.iloc[:rounds], self.quantity_at[:rounds])

    def with_buyers(self, buyers: int, seed: int) -> "SellerLog":
        """Return the log of a few buyers a round, in place of the share of very many that buy.

        Each buys at the prices that its draw from the shares allows, so that a lower price never
        sells less. Quantities are shares of the buyers.
        """
        drawn = stream(seed, "sellers", "buyers").random((len(self.sales), buyers, 1))
        buys_at = (drawn < self.quantity_at[:, None, :]).mean(1)
        sold = buys_at[np.arange(len(buys_at)), self.chosen]
        return SellerLog(self.sales.assign(quantity=sold), buys_at)

    def swap_regret(self) -> float:
        """Return the swap regret by its definition, as a share of the highest price."""
        profit = PRICES * self.quantity_at
        mean_gain = np.zeros((N_PRICES, N_PRICES))
        for own in range(N_PRICES):
            gain = profit - profit[:, [own]]
            mean_gain[own] = (self.probability[:, [own]] * gain).mean(0)
        return float(mean_gain.max(1).sum() / PRICES[-1])

    def mean_price(self) -> float:
        """Return the mean price."""
        return float(self.sales["price"].mean())


def play(kind: str, rounds: int, exploration: float, seed: int) -> SellerLog:
    """Let two sellers of a kind play, and return the log of the first.

    Parameters
    ----------
    kind : str
        One of ``KINDS``; ``monopoly`` does not explore.
    rounds : int
    exploration : float
        Probability that is shared evenly among all prices.
    seed : int
    """
    model = _sellers_of(kind, rounds, exploration, seed)
    market = model.game.market
    assert isinstance(market, PriceCompetition)  # noqa: S101 - as the scenario says
    rows_of_rounds = []
    for _ in range(rounds):
        model.step()
        rows_of_rounds.append(market.extra_tables()["sales"])
    names = ["price", "quantity", "cost", "chance", *CHANCES]
    columns = {name: np.array([rows[name] for rows in rows_of_rounds]) for name in names}
    sales = pd.DataFrame({name: of_sellers[:, 0] for name, of_sellers in columns.items()})
    sales["rival"] = columns["price"][:, 1]
    own_and_rival = np.empty((rounds, N_PRICES, 2))
    own_and_rival[:, :, 0] = PRICES
    own_and_rival[:, :, 1] = sales["rival"].to_numpy()[:, None]
    return SellerLog(sales, market.quantities(own_and_rival)[:, :, 0])


def _sellers_of(kind: str, rounds: int, exploration: float, seed: int) -> MarketModel:
    """Return a market whose log begins with the next round, and has so many more."""
    response = "cohort.sellers.response"
    settings = "cohort.sellers.settings"
    if kind in LEARNER_OF_KIND:
        explores = {"learner": LEARNER_OF_KIND[kind], "exploration": exploration}
        changes = {response: "exploring", settings: explores}
        return load("pricing-algorithms", rounds=rounds, **MARKET, **changes).build(seed=seed)
    if kind == "monopoly":
        changes = {response: "always", settings: {"action": MONOPOLY}}
        return load("pricing-algorithms", rounds=rounds, **MARKET, **changes).build(seed=seed)
    fading = Q_LEARNING | {"beta": DECAY}
    scenario = load("pricing-algorithms", rounds=TRAINING + rounds, **MARKET, **{settings: fading})
    trained = scenario.build(seed=seed)
    trained.run(TRAINING)
    return trained.branch({settings: Q_LEARNING | {"epsilon": exploration}})
