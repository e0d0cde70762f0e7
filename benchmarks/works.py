"""The works: ``works`` lists functions without arguments that each prepare one duel.

A function's inputs are made, also in the peer's own terms, before the clock starts. A peer is
imported by ``peer`` in the function that needs it. ``PEERS`` are the works of this file.

OpenSpiel (Lanctot et al. 2019): its Hedge for internal regret is Blum and Mansour's reduction with
a power method, ``solve_stackelberg`` are Conitzer and Sandholm's programs in CVXPY, ``ce_dist``
sums the players' swap regrets. noregret: ``BlumMansour`` with eigenvectors. NumPy: a plain loop.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rounds, steps
from benchmarks.clock import Array, Duel
from benchmarks.peers import peer
from regretless.agents.learners import BlumMansour
from regretless.market.core.randomness import stream
from regretless.market.exploitability import stackelberg
from regretless.market.regret.reference import swap_regret

ACTIONS, PLAYED, GAMES, LOGGED = 10, 200, 5, 10_000


class Stream:
    """Losses for one learner, and this project's laws of play on them."""

    work = "blum_mansour"
    size = f"1 row, {ACTIONS} actions, {PLAYED} rounds"

    def __init__(self) -> None:
        self.losses = stream(0, "bench", self.work).random((PLAYED, ACTIONS))
        self.rate = math.sqrt(8 * ACTIONS * math.log(ACTIONS) / PLAYED)

    def ours(self) -> Array:
        """Play; laws (T, A)."""
        learner = BlumMansour(rate=self.rate)
        learner.start(1, ACTIONS)
        laws, unread = np.empty_like(self.losses), np.zeros(1, dtype=np.intp)
        for t, losses in enumerate(self.losses):
            laws[t] = learner.play()[0]
            learner.learn(losses[None], unread)
        return laws


def blum_mansour_openspiel() -> Duel:
    """Compare with OpenSpiel's Hedge without internal regret."""
    hedge, log = peer("open_spiel.python.mfg.algorithms.regret.hedge"), Stream()

    def theirs() -> Array:
        # it wants no game where the rewards are given; `_update_weights` is its learning step
        rule = hedge.Hedge(None, [None] * ACTIONS, eta=log.rate, compute_internal_regret=True)
        laws = np.empty_like(log.losses)
        for t, losses in enumerate(log.losses):
            laws[t] = rule.get_nu()
            rule._update_weights(-losses)  # noqa: SLF001 - its public step samples a game
        return laws

    return _against(log, "openspiel", theirs)


def blum_mansour_noregret() -> Duel:
    """Compare with noregret's Blum-Mansour over multiplicative weights."""
    rules, log = peer("noregret.regret_minimizers"), Stream()

    def copies(actions: int) -> Any:
        return rules.MultiplicativeWeightsUpdate(actions, learning_rate=log.rate)

    def theirs() -> Array:
        rule = rules.BlumMansour(ACTIONS, copies)
        laws = np.empty_like(log.losses)
        for t, losses in enumerate(log.losses):
            laws[t] = rule.next_strategy()
            rule.observe_utility(-losses)
        return laws

    return _against(log, "noregret", theirs)


def stackelberg_openspiel() -> Duel:
    """Compare values of random games; OpenSpiel solves one CVXPY program per action."""
    solver, spiel = peer("open_spiel.python.algorithms.stackelberg_lp"), peer("pyspiel")
    tables = stream(0, "bench", "stackelberg").random((GAMES, 2, ACTIONS, ACTIONS))
    games = [spiel.create_matrix_game(u.tolist(), (-loss).tolist()) for u, loss in tables]

    def ours() -> Array:
        return np.array([stackelberg(u, loss).value for u, loss in tables])

    def theirs() -> Array:
        return np.array([solver.solve_stackelberg(game)[2] for game in games])

    size = f"{GAMES} games, {ACTIONS} x {ACTIONS}"
    return Duel("stackelberg", size, "openspiel", ours, theirs)


class Log:
    """A log of uniform play by two players of a random game, and both swap regrets."""

    work = "swap_regret"
    size = f"2 players, {ACTIONS} actions, {LOGGED} rounds"

    def __init__(self) -> None:
        rng = stream(0, "bench", self.work)
        self.payoffs = rng.random((2, ACTIONS, ACTIONS))
        self.actions: NDArray[np.int64] = rng.integers(ACTIONS, size=(2, LOGGED))
        rows, columns = self.actions
        self.losses = [-self.payoffs[0][:, columns].T, -self.payoffs[1][rows]]

    def ours(self) -> Array:
        """Compute both players' regrets (2,)."""
        return np.array([swap_regret(*of) for of in zip(self.losses, self.actions, strict=True)])


def swap_regret_openspiel() -> Duel:
    """Compare with OpenSpiel's distance to correlated equilibrium.

    The rounds are counted for it, one recommendation per action profile and not per round: the
    answer is the same and it takes far less of its time.
    """
    spiel, log = peer("pyspiel"), Log()
    names = [[f"{side}{a}" for a in range(ACTIONS)] for side in "rc"]
    game = spiel.create_matrix_game("", "", *names, *log.payoffs.tolist())
    game = spiel.convert_to_turn_based(game)  # the second player moves without seeing the first
    state = game.new_initial_state()
    seen = [state.information_state_string()]
    state.apply_action(0)
    seen.append(state.information_state_string())
    device = []
    profiles, counts = np.unique(log.actions, axis=1, return_counts=True)
    for profile, count in zip(profiles.T, counts, strict=True):
        laws = [[(b, float(b == a)) for b in range(ACTIONS)] for a in profile]
        device.append((count / LOGGED, spiel.TabularPolicy(dict(zip(seen, laws, strict=True)))))

    def theirs() -> Array:
        return np.array(spiel.ce_dist(game, device).deviation_incentives)

    return _against(log, "openspiel", theirs)


def swap_regret_numpy() -> Duel:
    """Compare with a loop over the rounds, one NumPy addition each."""
    log = Log()

    def regret(table: Array, actions: NDArray[np.int64]) -> float:
        sums = np.zeros((ACTIONS, ACTIONS))
        for losses, a in zip(table, actions, strict=True):
            sums[a] += losses
        return float((sums.diagonal() - sums.min(1)).sum() / len(table))

    def theirs() -> Array:
        return np.array([regret(*of) for of in zip(log.losses, log.actions, strict=True)])

    return _against(log, "numpy", theirs)


def _against(log: Stream | Log, rival: str, theirs: Callable[[], Array]) -> Duel:
    return Duel(log.work, log.size, rival, log.ours, theirs)


PEERS = (
    blum_mansour_openspiel,
    blum_mansour_noregret,
    stackelberg_openspiel,
    swap_regret_openspiel,
    swap_regret_numpy,
)


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List all works; ``quick`` makes the crowds small."""
    return (*PEERS, *steps.works(quick=quick), rounds.against_numpy)
