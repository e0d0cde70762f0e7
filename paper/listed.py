"""Which events to choose without a model.

Twenty agents are listed; two hundred of the same kind and a hundred with random losses in the same
basis only listen. Events are all coordinates, gains of listed losses, and these with a potential
over assignments beside them. Measured are the worst swap regret per round of the listed, of the
others of their kind and of those with random losses, the mean loss of each kind, and milliseconds
of processor time a round. A series ends with its data.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.minimax.cube import cube
from regretless.market.core.arrays import Array
from regretless.scenarios.studies.design import CATALOGUE, read_study

LISTED, ALIKE, OTHERS = 20, 200, 100
KINDS = ("listed", "alike", "random")
EVENTS: dict[str, Callable[[Sequence[ProtectedLosses]], Any]] = {
    "coordinates": VectorEvents,
    "listed losses": GainEvents,
    "with assignments": Assignments,
}
STREAMS = {k: v for k, v in read_study("skill").spec.grid["stream"].items() if k != "adaptive"}
Nature = Callable[[int, "Crowd", Any], Array]


class Crowd:
    """Losses in one basis, and the sums of what each would have gained by any replacement."""

    def __init__(self, offset: Array, weights: Array) -> None:
        self.offset, self.weights = offset, weights
        self.sums = np.zeros((*offset.shape, offset.shape[1]))
        self.cost = np.zeros(len(offset))

    def strategies(self, mixture: Any) -> Array:
        """Return how often each action is a best response (K, A)."""
        expected = self.offset + np.einsum("kan,mn->mka", self.weights, mixture.points)
        chosen = np.eye(self.offset.shape[1])[expected.argmin(2)]
        return np.asarray(np.tensordot(mixture.weights, chosen, axes=1))

    def added(self, strategy: Array, truth: Array) -> Array:
        """Return what a round adds to the sums (K, A, A)."""
        losses = self.offset + self.weights @ truth
        return np.asarray(strategy[:, :, None] * (losses[:, :, None] - losses[:, None]))

    def add(self, strategy: Array, truth: Array) -> None:
        """Add a round."""
        self.sums += self.added(strategy, truth)
        self.cost += (strategy * (self.offset + self.weights @ truth)).sum(1)

    def regret(self) -> Array:
        """Return the sums of swap regret (K,)."""
        return np.asarray(self.sums.max(2).sum(1))


def random_losses(
    weights: Array, rng: np.random.Generator, *, count: int = OTHERS
) -> tuple[Array, Array]:
    """Draw losses in [0, 1] over the box, with as many actions."""
    drawn = rng.standard_normal((count, *weights.shape[1:]))
    drawn /= np.abs(drawn).sum(2, keepdims=True)
    return np.maximum(-drawn, 0.0).sum(2), drawn


def played_of(keys: dict[str, Any], rounds: int, seed: int) -> tuple[Any, Array]:
    """Return a scenario's model, and its outcomes, which do not react."""
    own = {"rounds": rounds, "cohort.agents.count": LISTED + ALIKE, "forecaster.kind": "last-value"}
    model = load(str(CATALOGUE / "scenarios/listeners.toml"), **(keys | own)).build(seed=seed)
    model.run()
    table = model.rounds_frame()
    return model, table[[name for name in table if str(name).startswith("y_")]].to_numpy()


def against_mean(_: Crowd, mixture: Any, support: Array) -> Array:
    """Return what is farthest from the mean prediction."""
    return np.asarray(support[((support - mixture.mean) ** 2).sum(1).argmax()])


def against_listed(crowd: Crowd, mixture: Any, support: Array) -> Array:
    """Return what raises the worst listed regret most."""
    strategy = crowd.strategies(mixture)
    worst = [(crowd.sums + crowd.added(strategy, s)).max(2).sum(1).max() for s in support]
    return np.asarray(support[int(np.argmax(worst))])


ANSWERS = {"against the mean": against_mean, "against listed": against_listed}


def nature(name: str, rounds: int, seed: int) -> tuple[Any, int, Nature]:
    """Return a model, how many rounds there are, and what gives s(y)."""
    if name in ANSWERS:
        model, _ = played_of(STREAMS["iid"], 2, seed)
        corners = np.array(list(product([0.0, 0.5, 1.0], repeat=3)))
        support = model.game.blocks[0].basis.transform(corners)
        return model, rounds, lambda _, crowd, mixture: ANSWERS[name](crowd, mixture, support)
    keys = STREAMS[name]
    data = keys.get("data.file")
    length = min(rounds, len(load_rows(data))) if data else rounds
    model, outcomes = played_of(keys | {"forecaster.models": []}, length, seed)
    vectors = model.game.blocks[0].basis.transform(outcomes)
    return model, length, lambda t, *_: np.asarray(vectors[t])


def load_rows(file: str) -> pd.DataFrame:
    """Read a bundled series."""
    return pd.read_csv(CATALOGUE.parent.parent / "data" / file)


def on_stream(stream: str, rounds: int, seed: int) -> Iterator[Row]:
    """Play all events against a nature."""
    model, length, truths = nature(stream, rounds, seed)
    offset, weights = model.game.cohorts[0].coefficients
    other = random_losses(weights, np.random.default_rng(seed))
    parts = slice(LISTED), slice(LISTED, None)
    for name, make in EVENTS.items():
        crowds = [*(Crowd(offset[part], weights[part]) for part in parts), Crowd(*other)]
        listed, basis = crowds[0], model.game.blocks[0].basis
        events = make([ProtectedLosses(listed.offset, listed.weights)])
        player, spent = UnbiasedPrediction(events, cube(basis.size, basis.hull)), 0.0
        for t in range(length):
            start = process_time()
            mixture = player.mixture()
            spent -= start - process_time()
            truth = truths(t, listed, mixture)
            for crowd in crowds:
                crowd.add(crowd.strategies(mixture), truth)
            start = process_time()
            player.update(truth)
            spent -= start - process_time()
        row = {"rounds": length, "outcomes": stream, "events": name}
        row |= {k: c.regret().max() / length for k, c in zip(KINDS, crowds, strict=True)}
        row |= {f"loss of {k}": c.cost.mean() / length for k, c in zip(KINDS, crowds, strict=True)}
        yield row | {"ms": 1e3 * spent / length}


TABLES = {
    "listed": Table(
        on_stream, ["rounds", "outcomes", "events"], lambda: [*STREAMS, *ANSWERS], 2000, 3
    )
}
