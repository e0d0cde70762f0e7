"""The forecaster's round against the same formulas in plain NumPy.

Timed is what a round does apart from its linear program, which HiGHS solves for both: the weights
of all events from their biases, the field h(p) at as many points as the walk visits, and the
biases of a mixture charged. NumPy broadcasts over (losses, actions, functions) and keeps the
tables between.
"""

import numpy as np

from benchmarks.clock import Array, Duel
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.weights import AdaptiveWeights
from regretless.forecaster.minimax.box import STEPS, field_at
from regretless.market.core.randomness import stream

LOSSES, ACTIONS, FUNCTIONS, ATOMS = 200, 8, 9, 5


class Rounds:
    """K losses of A actions in n functions, a round's points and the vector that comes true."""

    def __init__(
        self, *, losses: int = LOSSES, actions: int = ACTIONS, functions: int = FUNCTIONS
    ) -> None:
        rng = stream(0, "bench", "forecaster-round")
        self.weights = -rng.dirichlet(np.ones(functions), (losses, actions))
        self.points = rng.random((STEPS, functions))
        self.mass = np.full(ATOMS, 1 / ATOMS)
        self.truth = rng.random(functions)
        self.events = Events([LossGroup(np.ones((losses, actions)), self.weights)])
        self.bias = np.zeros((losses, actions, functions))
        self.variation = np.zeros_like(self.bias)

    def ours(self) -> Array:
        """Play a round by the forecaster's kernels; the fields (points, n)."""
        awake, rows = self.events.awake(None), self.events.rows
        table = self.events.weighted(awake, AdaptiveWeights(), 1)
        fields = np.array([field_at(rows, table, point) for point in self.points])
        self.events.charge(awake, self.points[:ATOMS], self.mass, self.truth)
        return fields

    def theirs(self) -> Array:
        """Play a round by broadcasting over (losses, actions, functions)."""
        table = self._table()
        fields = np.array([self._played(point, table).sum((0, 1)) for point in self.points])
        gain = sum(
            mass * self._played(point, point - self.truth)
            for mass, point in zip(self.mass, self.points[:ATOMS], strict=True)
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


def against_numpy() -> Duel:
    """Compare the fields h(p) of every round, each of which depends on all rounds before."""
    rounds = Rounds()
    size = f"{LOSSES} losses, {ACTIONS} actions, {FUNCTIONS} functions"
    return Duel("forecaster-round", size, "numpy", rounds.ours, rounds.theirs)
