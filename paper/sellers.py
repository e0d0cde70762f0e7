"""Two sellers with a known demand, whose prices an audit is judged by.

Each round a buyer chooses between two sellers and neither. Seller i sells with the probability

    D_i(p) = exp((1 - p_i) / mu) / [ exp((1 - p_1) / mu) + exp((1 - p_2) / mu) + 1 ],

mu = 0.15, and has no cost. On the grid of prices (0.3, 0.3) and (0.5, 0.5) are Nash equilibria of a
round, and both sellers together earn most at (0.9, 0.9). Four kinds of sellers play against their
own kind, and each mixes its price with all prices alike (its **exploration**):

- ``hedge``: exponential weights on the profits that all prices would have had (external regret);
- ``swap``: Blum and Mansour's learner (2007, JMLR 8) on the same profits (swap regret);
- ``q-learning``: tabular Q-learning whose state is the pair of last prices (Calvano, Calzolari,
  Denicolo and Pastorello 2020, American Economic Review 110(10)), trained for ``TRAINING`` rounds;
  then its strategy is fixed and explores;
- ``monopoly``: always 0.9, the price that is best for both together.

``play`` returns a log of the first seller, with what every price would have sold.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.randomness import stream

PRICES = np.array([0.15, 0.3, 0.5, 0.7, 0.9])
N_PRICES = len(PRICES)
DIFFERENTIATION = 0.15  # mu
MONOPOLY = 4  # index of the price that is best for both together
KINDS = ("hedge", "swap", "q-learning", "monopoly")
TRAINING = 400_000  # rounds of Q-learning before the log
LEARNING_RATE = 0.15
DISCOUNT = 0.95
DECAY = 2e-5  # of the exploration in training, per round
FIXED_POINT_STEPS = 30  # of the power iteration of Blum and Mansour's learner, each round


@dataclass(frozen=True, eq=False)
class SellerLog:
    """The log of one seller, with what nobody outside a simulation knows.

    Attributes
    ----------
    chosen : ndarray
        Index of the price of each round (T,).
    probability : ndarray
        Of each price in each round (T, A).
    rival : ndarray
        Index of the rival's price of each round (T,).
    sold : ndarray
        What each price would have sold in each round (T, A), 0 or 1.
    """

    chosen: Indices
    probability: Array
    rival: Indices
    sold: Array

    def swap_regret(self) -> float:
        """Return the swap regret by its definition, as a share of the highest price."""
        profit = PRICES * self.sold
        mean_gain = np.zeros((N_PRICES, N_PRICES))
        for own in range(N_PRICES):
            gain = profit - profit[:, [own]]
            mean_gain[own] = (self.probability[:, [own]] * gain).mean(0)
        return float(mean_gain.max(1).sum() / PRICES[-1])

    def mean_price(self) -> float:
        """Return the mean price."""
        return float(PRICES[self.chosen].mean())


def demand_table() -> Array:
    """Return the probability (A, A) with which a seller sells, by own and the rival's price."""
    attraction = np.exp((1.0 - PRICES) / DIFFERENTIATION)
    return np.asarray(attraction[:, None] / (attraction[:, None] + attraction[None, :] + 1.0))


@compiled()
def _draw(probability: Array, uniform: float) -> int:
    """Return the index that a uniform number draws from probabilities (A,)."""
    total = 0.0
    for index in range(len(probability)):
        total += probability[index]
        if uniform < total:
            return index
    return len(probability) - 1


@compiled()
def _play_learners(
    profit: Array, uniforms: Array, exploration: float, steps: int, chosen: Indices, mixed: Array
) -> None:
    """Let two learners play.

    ``profit`` (A, A) is by own and the rival's price; ``uniforms`` (T, 2) draw prices. With
    ``steps`` = 0 the learners are Hedge, else Blum and Mansour's, with so many steps of the power
    iteration. Writes the prices ``chosen`` (T, 2) and the probabilities ``mixed`` (T, 2, A).
    """
    rounds = len(uniforms)
    n_prices = len(profit)
    n_experts = n_prices if steps > 0 else 1
    sums = np.zeros((2, n_experts, n_prices))
    weights = np.zeros((n_experts, n_prices))
    strategy = np.full((2, n_prices), 1.0 / n_prices)
    for t in range(rounds):
        rate = np.sqrt(8.0 * np.log(n_prices) / (t + 1.0))
        for seller in range(2):
            for expert in range(n_experts):
                greatest = sums[seller, expert].max()
                total = 0.0
                for price in range(n_prices):
                    weights[expert, price] = np.exp(rate * (sums[seller, expert, price] - greatest))
                    total += weights[expert, price]
                for price in range(n_prices):
                    weights[expert, price] /= total
            if steps == 0:
                for price in range(n_prices):
                    strategy[seller, price] = weights[0, price]
            for _ in range(steps):
                moved = np.zeros(n_prices)
                for expert in range(n_experts):
                    for price in range(n_prices):
                        moved[price] += strategy[seller, expert] * weights[expert, price]
                for price in range(n_prices):
                    strategy[seller, price] = moved[price]
            for price in range(n_prices):
                own = (1.0 - exploration) * strategy[seller, price]
                mixed[t, seller, price] = own + exploration / n_prices
            chosen[t, seller] = _draw(mixed[t, seller], uniforms[t, seller])
        for seller in range(2):
            rival = chosen[t, 1 - seller]
            for expert in range(n_experts):
                share = strategy[seller, expert] if steps > 0 else 1.0
                for price in range(n_prices):
                    sums[seller, expert, price] += share * profit[price, rival]


@compiled()
def _train_q_learners(profit: Array, uniforms: Array, explored: Indices) -> Indices:
    """Train two Q-learners and return the price of each in each state (2, A, A).

    ``uniforms`` (T, 2) say whether a round explores, ``explored`` (T, 2) which price it tries. The
    state is the pair of last prices, the own first.
    """
    n_prices = len(profit)
    values = np.zeros((2, n_prices, n_prices, n_prices))
    for price in range(n_prices):
        values[:, :, :, price] = profit[price].mean() / (1.0 - DISCOUNT)
    last = np.zeros(2, dtype=np.intp)
    now = np.zeros(2, dtype=np.intp)
    for t in range(len(uniforms)):
        for seller in range(2):
            now[seller] = values[seller, last[seller], last[1 - seller]].argmax()
            if uniforms[t, seller] < np.exp(-DECAY * t):
                now[seller] = explored[t, seller]
        for seller in range(2):
            rival = 1 - seller
            best_next = values[seller, now[seller], now[rival]].max()
            target = profit[now[seller], now[rival]] + DISCOUNT * best_next
            old = values[seller, last[seller], last[rival], now[seller]]
            updated = old + LEARNING_RATE * (target - old)
            values[seller, last[seller], last[rival], now[seller]] = updated
        last[0] = now[0]
        last[1] = now[1]
    strategy = np.zeros((2, n_prices, n_prices), dtype=np.intp)
    for seller in range(2):
        for own in range(n_prices):
            for other in range(n_prices):
                strategy[seller, own, other] = values[seller, own, other].argmax()
    return strategy


@compiled()
def _play_strategies(
    strategy: Indices, uniforms: Array, exploration: float, chosen: Indices, mixed: Array
) -> None:
    """Let two fixed strategies (2, A, A) play with exploration; writes as ``_play_learners``."""
    n_prices = strategy.shape[1]
    last = np.zeros(2, dtype=np.intp)
    for t in range(len(uniforms)):
        for seller in range(2):
            greedy = strategy[seller, last[seller], last[1 - seller]]
            for price in range(n_prices):
                mixed[t, seller, price] = exploration / n_prices
            mixed[t, seller, greedy] += 1.0 - exploration
            chosen[t, seller] = _draw(mixed[t, seller], uniforms[t, seller])
        last[0] = chosen[t, 0]
        last[1] = chosen[t, 1]


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
    demand = demand_table()
    profit = PRICES[:, None] * demand
    uniforms = stream(seed, "sellers", kind).random((rounds, 2))
    chosen = np.zeros((rounds, 2), dtype=np.intp)
    mixed = np.zeros((rounds, 2, N_PRICES))
    if kind in ("hedge", "swap"):
        steps = FIXED_POINT_STEPS if kind == "swap" else 0
        _play_learners(profit, uniforms, exploration, steps, chosen, mixed)
    else:
        strategy = np.full((2, N_PRICES, N_PRICES), MONOPOLY)
        if kind == "q-learning":
            rng = stream(seed, "sellers", "training")
            explores = rng.random((TRAINING, 2))
            explored = rng.integers(N_PRICES, size=(TRAINING, 2))
            strategy = _train_q_learners(profit, explores, explored)
        _play_strategies(strategy, uniforms, exploration * (kind != "monopoly"), chosen, mixed)
    buyer = stream(seed, "sellers", "buyers").random(rounds)
    sold = (buyer[:, None] < demand[:, chosen[:, 1]].T).astype(float)
    return SellerLog(chosen[:, 0], mixed[:, 0], chosen[:, 1], sold)
