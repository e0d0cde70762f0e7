"""The works: ``works`` lists functions without arguments that each prepare one duel.

A function's inputs are made, also in the peer's own terms, before the clock starts.

**Agent steps**: rounds of a whole crowd. A plain copy moves as many bytes as a round has to touch
at the least: offsets and weights once, for the response and the losses together, both tables of
losses written and read, and the ledger rows of the actions played, read and written; the ratio is
the share of the machine's bandwidth reached. **Forecaster's rounds**: what a round does apart from
its linear program, the weights of all events from their biases, the field h(p) at as many points as
the walk visits, and the biases of a mixture charged; NumPy broadcasts over (losses, actions,
functions). **Peers**: OpenSpiel (Lanctot et al. 2019), whose Hedge for internal regret is Blum and
Mansour's reduction with a power method, whose ``solve_stackelberg`` are Conitzer and Sandholm's
programs in CVXPY and whose ``ce_dist`` sums the players' swap regrets; noregret, ``BlumMansour``
with eigenvectors; NumPy, a plain loop.
"""

import math
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import crowds, order_books, serving, small_games
from benchmarks.duels import Array, Duel, peer
from regretless.agents.learners import BlumMansour
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of, response_scratch
from regretless.forecaster.minimax.game import STEPS, field_at
from regretless.forecaster.weights import Moment
from regretless.market.core.compiled import over_rows
from regretless.market.core.randomness import stream
from regretless.market.exploitability import stackelberg
from regretless.market.regret.definitions import swap_regret

CROWD = 100_000  # agents beside Mesa's
LARGE_CROWD = 1_000_000  # agents beside NumPy's and a plain copy
COUNTED_CROWD = 10**9
SHARED_LOSSES = 500  # that the agents of a crowd have, where they share them
QUICK_CROWD = 2_000  # of a quick run, in place of CROWD
QUICK_LARGE_CROWD = 50_000
COPIED = 1 << 25  # numbers per copy, beyond every cache
ACTIONS = 10  # of the works below, beside the other peers
LEARNER_ROUNDS = 200
GAMES = 5
LOGGED_ROUNDS = 10_000


def steps_mesa(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round with the plain Mesa model's; the answer counts who played what."""
    crowd = make()
    mesa_model = crowd.in_mesa(peer("mesa"))

    def theirs() -> Array:
        mesa_model.step()
        actions = (agent.action for agent in mesa_model.agents)
        return action_counts(np.fromiter(actions, np.intp, crowd.agents))

    return Duel("agent-steps", crowd.size, "mesa", _round_of(crowd), theirs)


def steps_numpy(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round of agents who share losses; the answer is how often each action is played."""
    crowd = make()
    plain_crowd = crowds.PlainCrowd(crowd)

    def theirs() -> Array:
        return action_counts(plain_crowd.step(), crowd.multiplicity)

    return Duel("agent-steps", crowd.size, "numpy", _round_of(crowd), theirs)


def steps_copy(agents: int) -> Duel:
    """Compare a round with a plain copy of as many bytes; there is no answer to compare."""
    crowd = crowds.Crowd(agents)
    model = crowd.model()
    source = np.ones(COPIED)
    target = np.zeros(COPIED)
    numbers = bytes_of_a_round(agents) // (2 * source.itemsize)  # each is read and written
    full_copies, rest = divmod(numbers, COPIED)

    def ours() -> Array:
        model.step()
        return target[:1]

    def copy(first: int, last: int) -> None:
        np.copyto(target[first:last], source[first:last])

    def theirs() -> Array:
        for _ in range(full_copies):
            over_rows(copy, COPIED)
        over_rows(copy, rest)
        return target[:1]

    return Duel("agent-steps", crowd.size, "bandwidth", ours, theirs)


def action_counts(actions: NDArray[np.intp], multiplicity: NDArray[np.intp] | None = None) -> Array:
    """Count how many agents played each action (A,); ``multiplicity`` are the agents of a row."""
    return np.bincount(actions, multiplicity, minlength=crowds.ACTIONS).astype(np.float64)


def bytes_of_a_round(rows: int) -> int:
    """Return how many bytes a round of distinct linear losses has to move (module docstring)."""
    coefficients = crowds.ACTIONS * (crowds.GOODS + 1)
    tables = 2 * 2 * crowds.ACTIONS
    ledger = 2 * (2 * crowds.ACTIONS + 1)
    return 8 * rows * (coefficients + tables + ledger)


def peak_memory(*, quick: bool) -> dict[str, Any]:
    """Return the ``size`` of a large crowd and the ``bytes`` to build it and play two rounds."""
    agents = QUICK_LARGE_CROWD if quick else LARGE_CROWD
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as new_process:
        return new_process.submit(_measure_peak_memory, agents).result()


def _measure_peak_memory(agents: int) -> dict[str, Any]:
    """Play two rounds of a crowd in a process that has done nothing else."""
    crowd = crowds.Crowd(agents)
    model = crowd.model()
    model.run(2)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes in which the system counts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"size": crowd.size, "bytes": peak}


def _round_of(crowd: crowds.Crowd) -> Callable[[], Array]:
    """Return this project's way to play a round of a crowd."""
    model = crowd.model()

    def ours() -> Array:
        model.step()
        return action_counts(model.last_actions(0), crowd.multiplicity)

    return ours


class ForecasterRound:
    """K losses of A actions in n functions, a round's points and the vector that comes true.

    Attributes
    ----------
    weights : array (K, A, n)
        Of the losses, in the functions.
    points : array (P, n)
        At which the field is asked for; the first five have the mixture's ``mass`` (5,).
    truth : array (n,)
        The vector that comes true.
    bias, variation : array (K, A, n)
        Sums of the gains so far and of their absolute values, which ``theirs`` adds to in place;
        ``ours`` keeps its own in ``events``.
    """

    def __init__(self, *, losses: int = 200, actions: int = 8, functions: int = 9) -> None:
        rng = stream(0, "bench", "forecaster-round")
        self.weights = -rng.dirichlet(np.ones(functions), (losses, actions))
        self.points = rng.random((STEPS, functions))
        self.mass = np.full(5, 1 / 5)
        self.truth = rng.random(functions)
        self.events = VectorEvents([ProtectedLosses(np.ones((losses, actions)), self.weights)])
        self.bias = np.zeros((losses, actions, functions))
        self.variation = np.zeros_like(self.bias)

    def ours(self) -> Array:
        """Play a round by the forecaster's kernels; return the fields (P, n)."""
        active = self.events.active(None)
        rows = self.events.rows
        table = self.events.table_of(active, Moment(1, self.events.experts))
        scratch = response_scratch(rows.arrays)
        fields = np.array([field_at(rows, table, point, scratch) for point in self.points])
        played = played_of(rows, self.points[:5], self.mass, self.truth)
        self.events.charge(active, played)
        return fields

    def theirs(self) -> Array:
        """Play a round by broadcasting over (K, A, n); return the fields (P, n)."""
        table = self._weight_table()
        fields = [self._where_played(point, table).sum((0, 1)) for point in self.points]
        gain = np.zeros_like(self.bias)
        for mass, point in zip(self.mass, self.points[:5], strict=True):
            gain += mass * self._where_played(point, point - self.truth)
        self.bias += gain
        self.variation += np.abs(gain)
        return np.array(fields)

    def _weight_table(self) -> Array:
        """Return the difference of the weights of an event's two signs, normalised (K, A, n)."""
        gains = np.stack([self.bias, -self.bias])
        gain_if_won = np.maximum(gains + 1.0, 0.0)  # were the next round's gain 1, or -1
        gain_if_lost = np.maximum(gains - 1.0, 0.0)
        scale = 3.0 * (self.variation + 1.0)
        exponents = np.stack([gain_if_won**2 / scale, gain_if_lost**2 / scale])
        potentials = np.exp(exponents - exponents.max())
        weights = 0.5 * (potentials[0] - potentials[1])
        table: Array = (weights[0] - weights[1]) / weights.sum()
        return table

    def _where_played(self, point: Array, values: Array) -> Array:
        """Return ``values`` in the rows of the actions that are played at a point, else 0."""
        best_action = (self.weights * point).sum(axis=2).argmin(axis=1)
        actions = np.arange(self.weights.shape[1])
        is_played = actions == best_action[:, np.newaxis]
        return np.where(is_played[..., np.newaxis], values, 0.0)


def round_numpy(**sizes: int) -> Duel:
    """Compare the fields h(p) of every round, each of which depends on all rounds before."""
    forecaster_round = ForecasterRound(**sizes)
    losses, actions, functions = forecaster_round.weights.shape
    return Duel(
        "forecaster-round",
        f"{losses} losses, {actions} actions, {functions} functions",
        "numpy",
        ours=forecaster_round.ours,
        theirs=forecaster_round.theirs,
    )


class LearnerRounds:
    """Losses (T, A) that one learner without swap regret meets, and its rate."""

    work = "blum_mansour"

    def __init__(self) -> None:
        self.losses = stream(0, "bench", self.work).random((LEARNER_ROUNDS, ACTIONS))
        self.rate = math.sqrt(8 * ACTIONS * math.log(ACTIONS) / LEARNER_ROUNDS)
        self.size = f"1 row, {ACTIONS} actions, {LEARNER_ROUNDS} rounds"

    def play(self, strategy: Callable[[], Array], learn: Callable[[Array], object]) -> Array:
        """Play all rounds by a learner's two methods; return its mixed strategies (T, A)."""
        strategies = np.empty_like(self.losses)
        for round_index, losses in enumerate(self.losses):
            strategies[round_index] = strategy()
            learn(losses)
        return strategies

    def ours(self) -> Array:
        """Play all rounds by this project's learner."""
        learner = BlumMansour(rate=self.rate)
        learner.start(1, ACTIONS)
        unread_actions = np.zeros(1, dtype=np.intp)
        return self.play(
            strategy=lambda: learner.play()[0],
            learn=lambda losses: learner.learn(losses[np.newaxis], unread_actions),
        )


def blum_mansour_openspiel() -> Duel:
    """Compare with OpenSpiel's Hedge without internal regret."""
    hedge = peer("open_spiel.python.mfg.algorithms.regret.hedge")
    rounds = LearnerRounds()

    def theirs() -> Array:
        # It wants no game where the rewards are given; `_update_weights` is its learning step.
        learner = hedge.Hedge(None, [None] * ACTIONS, eta=rounds.rate, compute_internal_regret=True)
        return rounds.play(
            strategy=learner.get_nu,
            learn=lambda losses: learner._update_weights(-losses),  # noqa: SLF001
        )

    return Duel(rounds.work, rounds.size, "openspiel", rounds.ours, theirs)


def blum_mansour_noregret() -> Duel:
    """Compare with noregret's Blum-Mansour over multiplicative weights."""
    minimizers = peer("noregret.regret_minimizers")
    rounds = LearnerRounds()
    make_copy = partial(minimizers.MultiplicativeWeightsUpdate, learning_rate=rounds.rate)

    def theirs() -> Array:
        learner = minimizers.BlumMansour(ACTIONS, make_copy)
        return rounds.play(
            strategy=learner.next_strategy,
            learn=lambda losses: learner.observe_utility(-losses),
        )

    return Duel(rounds.work, rounds.size, "noregret", rounds.ours, theirs)


def stackelberg_openspiel() -> Duel:
    """Compare values of random games; OpenSpiel solves one CVXPY program per action."""
    solver = peer("open_spiel.python.algorithms.stackelberg_lp")
    spiel = peer("pyspiel")
    tables = stream(0, "bench", "stackelberg").random((GAMES, 2, ACTIONS, ACTIONS))
    games = []
    for leader_payoff, follower_loss in tables:
        game = spiel.create_matrix_game(leader_payoff.tolist(), (-follower_loss).tolist())
        games.append(game)

    def ours() -> Array:
        return np.array([stackelberg(payoff, loss).value for payoff, loss in tables])

    def theirs() -> Array:
        return np.array([solver.solve_stackelberg(game)[2] for game in games])

    size = f"{GAMES} games, {ACTIONS} x {ACTIONS}"
    return Duel("stackelberg", size, "openspiel", ours, theirs)


class PlayLog:
    """A log of uniform play by two players of a random game, and both swap regrets.

    Attributes
    ----------
    payoffs : array (2, A, A)
        Of the first and the second player, by the action of the first and of the second.
    actions : int array (2, T)
    losses : list of array (T, A)
        What each player's actions would have lost in each round.
    """

    work = "swap_regret"

    def __init__(self) -> None:
        rng = stream(0, "bench", self.work)
        self.payoffs = rng.random((2, ACTIONS, ACTIONS))
        self.actions: NDArray[np.int64] = rng.integers(ACTIONS, size=(2, LOGGED_ROUNDS))
        first_actions, second_actions = self.actions
        first_losses = -self.payoffs[0][:, second_actions].T
        second_losses = -self.payoffs[1][first_actions]
        self.losses = [first_losses, second_losses]
        self.size = f"2 players, {ACTIONS} actions, {LOGGED_ROUNDS} rounds"

    def ours(self) -> Array:
        """Compute both players' regrets (2,)."""
        return self.regrets(swap_regret)

    def regrets(self, measure: Callable[[Array, NDArray[np.int64]], float]) -> Array:
        """Return a measure of each player's losses (T, A) and actions (T,)."""
        return np.array([measure(self.losses[i], self.actions[i]) for i in range(2)])


def swap_regret_openspiel() -> Duel:
    """Compare with OpenSpiel's distance to correlated equilibrium.

    The rounds are counted for it, one recommendation per action profile and not per round: the
    answer is the same and it takes far less of its time.
    """
    spiel = peer("pyspiel")
    log = PlayLog()
    row_names = [f"r{action}" for action in range(ACTIONS)]
    column_names = [f"c{action}" for action in range(ACTIONS)]
    matrix_game = spiel.create_matrix_game("", "", row_names, column_names, *log.payoffs.tolist())
    game = spiel.convert_to_turn_based(matrix_game)  # the second moves without seeing the first
    state = game.new_initial_state()
    first_information = state.information_state_string()
    state.apply_action(0)
    second_information = state.information_state_string()
    device = []  # probabilities of profiles, and what they recommend to whom
    profiles, counts = np.unique(log.actions, axis=1, return_counts=True)
    for (first_action, second_action), count in zip(profiles.T, counts, strict=True):
        recommendations = {
            first_information: _pure_strategy(first_action),
            second_information: _pure_strategy(second_action),
        }
        device.append((count / LOGGED_ROUNDS, spiel.TabularPolicy(recommendations)))

    def theirs() -> Array:
        return np.array(spiel.ce_dist(game, device).deviation_incentives)

    return Duel(log.work, log.size, "openspiel", log.ours, theirs)


def _pure_strategy(action: int) -> list[tuple[int, float]]:
    """Return each action with its probability, as OpenSpiel wants them."""
    return [(other, float(other == action)) for other in range(ACTIONS)]


def swap_regret_numpy() -> Duel:
    """Compare with a loop over the rounds, one NumPy addition each."""
    log = PlayLog()

    def plain_swap_regret(losses: Array, actions: NDArray[np.int64]) -> float:
        sums = np.zeros((ACTIONS, ACTIONS))  # of all actions' losses, by the action played
        for losses_of_round, action in zip(losses, actions, strict=True):
            sums[action] += losses_of_round
        regret_of_actions = sums.diagonal() - sums.min(axis=1)
        return float(regret_of_actions.sum() / len(losses))

    def theirs() -> Array:
        return log.regrets(plain_swap_regret)

    return Duel(log.work, log.size, "numpy", log.ours, theirs)


PEERS = (
    blum_mansour_openspiel,
    blum_mansour_noregret,
    stackelberg_openspiel,
    swap_regret_openspiel,
    swap_regret_numpy,
)


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List all works; ``quick`` makes the crowds small."""
    agents = QUICK_CROWD if quick else CROWD
    many_agents = QUICK_LARGE_CROWD if quick else LARGE_CROWD
    traders = order_books.FEW_TRADERS if quick else order_books.TRADERS
    curved_crowds = [partial(crowds.CurvedCrowd, agents, family) for family in crowds.FAMILIES]
    return (
        *PEERS,
        partial(steps_mesa, partial(crowds.Crowd, agents)),
        partial(steps_mesa, partial(crowds.NarrowCrowd, agents)),
        partial(steps_mesa, partial(crowds.Crowd, agents, SHARED_LOSSES)),
        *(partial(steps_mesa, curved_crowd) for curved_crowd in curved_crowds),
        partial(steps_numpy, partial(crowds.Crowd, many_agents, SHARED_LOSSES)),
        partial(steps_numpy, partial(crowds.CountedCrowd, COUNTED_CROWD, SHARED_LOSSES)),
        partial(steps_copy, many_agents),
        round_numpy,
        *(partial(book_work, traders) for book_work in order_books.WORKS),
        partial(small_games.repeated_game_numba, 10_000 if quick else 1_000_000),
        partial(small_games.small_market_python, 100 if quick else 5_000),
        *serving.works(quick=quick),
    )
