"""Games of two agents: a bundled learner's rounds as a compiled loop, and agents of a user's own.

    repeated-game   two Q-learners with 15 prices, beside a loop written by hand for Numba that
                    keeps no regrets
    small-market    two agents of a user's own class in the same market, a round at a time, beside
                    a bare Python loop with the same agents

Each call plays on where the last one ended, in both ways, with the same random numbers.
"""

from typing import Any

import numpy as np

from benchmarks.duels import Array, Duel
from regretless import ScriptedAgent, load, register
from regretless.market.core.arrays import Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.randomness import stream

MAX_ROUNDS = 10**9  # of a run, of which each call plays a part
SEED = 1
EXPLORATION = 0.1
STEP = 0.1  # of the agents' estimates
QUIET: dict[str, Any] = {"forecaster": {"kind": "none"}, "logs": "summary"}


@compiled()
def plain_q_learning(
    losses: Array, uniforms: Array, q: Array, state: Indices, first_round: int, alpha: float,
    gamma: float, beta: float,
) -> None:  # fmt: skip
    """Play rounds of two Q-learners that remember both last prices (compiled).

    Parameters
    ----------
    losses : array (A, A, 2)
        What each agent loses by both actions; not modified.
    uniforms : array (T, 2)
        The random number by which each agent draws; not modified.
    q : array (2, S, A)
        The values; changed in place.
    state : int array (1,)
        The state in which both are; changed in place.
    first_round : int
        How many rounds have been played before.
    alpha, gamma, beta : float
        Learning rate, discount factor, and the rate at which exploration fades.
    """
    n_actions = q.shape[2]
    n_states = q.shape[1]
    played = np.empty(2, dtype=np.int64)
    for t in range(uniforms.shape[0]):
        share = np.exp(-beta * (first_round + t))
        s = state[0]
        for agent in range(2):
            greedy = q[agent, s].argmax()
            cumulative = 0.0
            played[agent] = n_actions - 1
            for action in range(n_actions - 1):
                cumulative += share / n_actions
                if action == greedy:
                    cumulative += 1.0 - share
                if uniforms[t, agent] < cumulative:
                    played[agent] = action
                    break
        newest = (played[0] + 1) * (n_actions + 1) + played[1] + 1
        next_state = newest % n_states
        for agent in range(2):
            reward = 1.0 - losses[played[0], played[1], agent]
            old_value = q[agent, s, played[agent]]
            best_next = q[agent, next_state].max()
            q[agent, s, played[agent]] = old_value + alpha * (
                reward + gamma * best_next - old_value
            )
        state[0] = next_state


def repeated_game_numba(rounds: int) -> Duel:
    """Compare the values of two Q-learners, which depend on all rounds before."""
    model = load("pricing-algorithms", rounds=MAX_ROUNDS, windows=None, until=None).build(seed=SEED)
    game: Any = model.game
    learner = game.cohorts[0].learner
    losses = game.market.profile_table.losses.reshape(15, 15, 2)
    q = learner.q.copy()
    state = np.zeros(1, dtype=np.intp)
    rng = stream(SEED, "cohort", "sellers", "play")
    n_played = 0

    def ours() -> Array:
        model.run(model.played + rounds)
        return np.array(learner.q)

    def theirs() -> Array:
        nonlocal n_played
        uniforms = rng.random((rounds, 2))
        plain_q_learning(
            losses, uniforms, q, state, n_played, learner.alpha, learner.gamma, learner.beta
        )
        n_played += rounds
        return np.array(q)

    size = f"two Q-learners, 15 prices, {rounds:,} rounds"
    return Duel("repeated-game", size, "numba", ours, theirs)


class Averaging(ScriptedAgent):
    """Mostly plays the price of least estimated loss."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.estimates = np.zeros(loss.actions)

    def act(self, forecast: Any, context: Any) -> int:
        """Explore with a fixed probability, else choose the least estimate."""
        if self.rng.random() < EXPLORATION:
            return int(self.rng.integers(len(self.estimates)))
        return int(self.estimates.argmin())

    def learn(self, losses: Array, outcome: Array) -> None:
        """Move all estimates towards the losses of the round."""
        self.estimates += STEP * (losses - self.estimates)


def small_market_python(rounds: int) -> Duel:
    """Compare the estimates of two agents, which depend on all rounds before."""
    if "benchmark-averaging" not in register.agent:
        register.agent("benchmark-averaging")(Averaging)
    cohort = {
        "name": "sellers",
        "utility": "seller",
        "count": 2,
        "actions": 15,
        "parameters": {"cost": 1.0, "quality": 2.0, "lowest": 1.4277, "highest": 1.9702},
        "response": "benchmark-averaging",
        "measures": ["external"],
    }
    keys = {"rounds": MAX_ROUNDS, "windows": None, "until": None, "cohort": [cohort]}
    model = load("pricing-algorithms", **keys, **QUIET).build(seed=SEED)
    sellers: Any = model.game.cohorts[0]
    loss = sellers.loss
    of_model = sellers.agents
    by_hand = [
        Averaging(loss[agent], stream(SEED, "cohort", "sellers", "agent", str(agent)))
        for agent in range(2)
    ]
    menu = loss.price[0]
    least_gain = -float(loss.unit_offset[0])
    scale = float(loss.unit_scale[0])

    def losses_against(rival_price: float) -> Array:
        """Return what each price loses against the rival's, by logit demand."""
        attractions = np.exp((2.0 - menu) / 0.25)
        total = attractions + np.exp((2.0 - rival_price) / 0.25) + 1.0
        profits = (menu - 1.0) * attractions / total
        return np.asarray((least_gain - profits) / scale)

    def ours() -> Array:
        model.run(model.played + rounds)
        return np.array([agent.estimates for agent in of_model])

    def theirs() -> Array:
        regrets = np.zeros((2, len(menu)))
        no_outcome = np.zeros(1)
        for _ in range(rounds):
            actions = [agent.act(None, None) for agent in by_hand]
            for agent in range(2):
                losses = losses_against(menu[actions[1 - agent]])
                regrets[agent] += losses[actions[agent]] - losses
                by_hand[agent].learn(losses, no_outcome)
        return np.array([agent.estimates for agent in by_hand])

    size = f"two agents of one's own, 15 prices, {rounds:,} rounds"
    return Duel("small-market", size, "python", ours, theirs)
