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

from benchmarks import crowds, order_books
from benchmarks.duels import Array, Duel, peer
from regretless.agents.learners import BlumMansour
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.minimax.game import STEPS, field_at
from regretless.forecaster.weights import Moment
from regretless.market.core.compiled import over_rows
from regretless.market.core.randomness import stream
from regretless.market.exploitability import stackelberg
from regretless.market.regret.definitions import swap_regret

CROWD, MULTITUDE, COUNTED, SHARED = 100_000, 1_000_000, 10**9, 500
FEW, SOME = 2_000, 50_000  # of a quick run
COPIED = 1 << 25  # numbers per copy, beyond every cache
ACTIONS, PLAYED, GAMES, LOGGED = 10, 200, 5, 10_000  # of the peers


def steps_mesa(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round with the plain Mesa model's; the answer counts who played what."""
    crowd = make()
    plain = crowd.in_mesa(peer("mesa"))

    def theirs() -> Array:
        plain.step()
        return counted(np.fromiter((agent.action for agent in plain.agents), np.intp, crowd.agents))

    return Duel("agent-steps", crowd.size, "mesa", _ours(crowd), theirs)


def steps_numpy(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round of agents who share losses; the answer is how often each action is played."""
    crowd = make()
    plain = crowds.PlainCrowd(crowd)

    def theirs() -> Array:
        return counted(plain.step(), crowd.multiplicity)

    return Duel("agent-steps", crowd.size, "numpy", _ours(crowd), theirs)


def steps_copy(agents: int) -> Duel:
    """Compare a round with a plain copy of as many bytes; there is no answer to compare."""
    crowd = crowds.Crowd(agents)
    model, touched = crowd.model(), bytes_of_a_round(agents)
    source, target = np.ones(COPIED), np.zeros(COPIED)
    copies, rest = divmod(touched // (2 * source.itemsize), COPIED)  # each is read and written

    def ours() -> Array:
        model.step()
        return target[:1]

    def copied(first: int, last: int) -> None:
        np.copyto(target[first:last], source[first:last])

    def theirs() -> Array:
        for count in (*[COPIED] * copies, rest):
            over_rows(copied, count)
        return target[:1]

    return Duel("agent-steps", crowd.size, "bandwidth", ours, theirs)


def counted(actions: NDArray[np.intp], multiplicity: NDArray[np.intp] | None = None) -> Array:
    """Count who played which action."""
    return np.bincount(actions, multiplicity, minlength=crowds.ACTIONS).astype(np.float64)


def bytes_of_a_round(rows: int) -> int:
    """Return how many bytes a round of distinct linear losses has to move (module docstring)."""
    coefficients = crowds.ACTIONS * (crowds.GOODS + 1)
    tables = 2 * 2 * crowds.ACTIONS
    ledger = 2 * (2 * crowds.ACTIONS + 1)
    return 8 * rows * (coefficients + tables + ledger)


def peak_memory(*, quick: bool) -> dict[str, Any]:
    """Return the ``size`` of a large crowd and the ``bytes`` to build it and play two rounds."""
    agents = SOME if quick else MULTITUDE
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        size, peak = fresh.submit(_peak, agents).result()
    return {"size": size, "bytes": peak}


def _peak(agents: int) -> tuple[str, int]:
    crowd = crowds.Crowd(agents)
    model = crowd.model()
    model.run(2)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return crowd.size, most * (1 if sys.platform == "darwin" else 1024)


def _ours(crowd: crowds.Crowd) -> Callable[[], Array]:
    model = crowd.model()

    def step() -> Array:
        model.step()
        return counted(model.last_actions(0), crowd.multiplicity)

    return step


class Rounds:
    """K losses of A actions in n functions, a round's points and the vector that comes true."""

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
        """Play a round by the forecaster's kernels; the fields (points, n)."""
        active, rows = self.events.active(None), self.events.rows
        table = self.events.table_of(active, Moment(1, self.events.experts))
        fields = np.array([field_at(rows, table, point) for point in self.points])
        self.events.charge(active, played_of(rows, self.points[:5], self.mass, self.truth))
        return fields

    def theirs(self) -> Array:
        """Play a round by broadcasting over (losses, actions, functions)."""
        table = self._table()
        fields = np.array([self._played(point, table).sum((0, 1)) for point in self.points])
        gain = sum(
            mass * self._played(point, point - self.truth)
            for mass, point in zip(self.mass, self.points[:5], strict=True)
        )
        self.bias += gain
        self.variation += np.abs(gain)
        return fields

    def _table(self) -> Array:
        """Weigh both signs of every event and coordinate; their difference, normalised."""
        gains = np.stack([self.bias, -self.bias])
        above, below = (np.maximum(gains + step, 0.0) for step in (1.0, -1.0))
        scale = 3.0 * (self.variation + 1.0)
        powers = np.stack([above**2 / scale, below**2 / scale])
        potentials = np.exp(powers - powers.max())
        weights = 0.5 * (potentials[0] - potentials[1])
        table: Array = (weights[0] - weights[1]) / weights.sum()
        return table

    def _played(self, point: Array, values: Array) -> Array:
        """Return ``values`` in the rows of the actions that are played at a point, else 0."""
        chosen = (self.weights * point).sum(2).argmin(1)
        return np.where(
            (np.arange(self.weights.shape[1]) == chosen[:, None])[..., None], values, 0.0
        )


def round_numpy(**sizes: int) -> Duel:
    """Compare the fields h(p) of every round, each of which depends on all rounds before."""
    own = Rounds(**sizes)
    losses, actions, functions = own.weights.shape
    size = f"{losses} losses, {actions} actions, {functions} functions"
    return Duel("forecaster-round", size, "numpy", own.ours, own.theirs)


def learned() -> tuple[Array, float, Callable[[], Array]]:
    """Draw losses for one learner and a rate, and return them with this project's way to play."""
    losses = stream(0, "bench", "blum_mansour").random((PLAYED, ACTIONS))
    rate = math.sqrt(8 * ACTIONS * math.log(ACTIONS) / PLAYED)

    def ours() -> Array:
        learner = BlumMansour(rate=rate)
        learner.start(1, ACTIONS)
        unread = np.zeros(1, dtype=np.intp)
        return distributions(
            losses, lambda: learner.play()[0], lambda lost: learner.learn(lost[None], unread)
        )

    return losses, rate, ours


def distributions(losses: Array, play: Callable[[], Array], learn: Callable[[Array], Any]) -> Array:
    """Play against a table of losses; distributions (T, A)."""
    played = np.empty_like(losses)
    for t, lost in enumerate(losses):
        played[t] = play()
        learn(lost)
    return played


def blum_mansour_openspiel() -> Duel:
    """Compare with OpenSpiel's Hedge without internal regret."""
    hedge, (losses, rate, ours) = peer("open_spiel.python.mfg.algorithms.regret.hedge"), learned()

    def theirs() -> Array:
        # it wants no game where the rewards are given; `_update_weights` is its learning step
        rule = hedge.Hedge(None, [None] * ACTIONS, eta=rate, compute_internal_regret=True)
        return distributions(losses, rule.get_nu, lambda lost: rule._update_weights(-lost))  # noqa: SLF001

    return _learning("openspiel", ours, theirs)


def blum_mansour_noregret() -> Duel:
    """Compare with noregret's Blum-Mansour over multiplicative weights."""
    rules, (losses, rate, ours) = peer("noregret.regret_minimizers"), learned()
    copies = partial(rules.MultiplicativeWeightsUpdate, learning_rate=rate)

    def theirs() -> Array:
        rule = rules.BlumMansour(ACTIONS, copies)
        return distributions(losses, rule.next_strategy, lambda lost: rule.observe_utility(-lost))

    return _learning("noregret", ours, theirs)


def _learning(rival: str, ours: Callable[[], Array], theirs: Callable[[], Array]) -> Duel:
    size = f"1 row, {ACTIONS} actions, {PLAYED} rounds"
    return Duel("blum_mansour", size, rival, ours, theirs)


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
        distributions = [[(b, float(b == a)) for b in range(ACTIONS)] for a in profile]
        device.append(
            (count / LOGGED, spiel.TabularPolicy(dict(zip(seen, distributions, strict=True))))
        )

    def theirs() -> Array:
        return np.array(spiel.ce_dist(game, device).deviation_incentives)

    return Duel(log.work, log.size, "openspiel", log.ours, theirs)


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
    crowd, multitude = (FEW, SOME) if quick else (CROWD, MULTITUDE)
    traders = order_books.FEW if quick else order_books.TRADERS
    return (
        *PEERS,
        partial(steps_mesa, partial(crowds.Crowd, crowd)),
        partial(steps_mesa, partial(crowds.NarrowCrowd, crowd)),
        partial(steps_mesa, partial(crowds.Crowd, crowd, SHARED)),
        *(
            partial(steps_mesa, partial(crowds.CurvedCrowd, crowd, kind))
            for kind in crowds.FAMILIES
        ),
        partial(steps_numpy, partial(crowds.Crowd, multitude, SHARED)),
        partial(steps_numpy, partial(crowds.CountedCrowd, COUNTED, SHARED)),
        partial(steps_copy, multitude),
        round_numpy,
        *(partial(book, traders) for book in order_books.BOOKS),
    )
