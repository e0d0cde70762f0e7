"""``python -m paper.listed [--rounds T] [--seeds S]``: which events to choose without a model.

Twenty agents are listed; two hundred of the same kind and a hundred with random losses in the same
basis only listen. Events are all coordinates, gains of listed losses, and these with a potential
over assignments beside them. Printed is the worst swap regret per round of the listed, of the
others of their kind and of those with random losses, the mean loss of each kind, and milliseconds
of processor time a round; means over seeds. A series ends with its data.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from regretless import load
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.assignments import Assignments
from regretless.forecaster.minimax.cube import cube
from regretless.market.core.arrays import Array
from regretless.scenarios.studies.design import CATALOGUE, read_study

LISTED, ALIKE, OTHERS = 20, 200, 100
KINDS = ("listed", "alike", "random")
EVENTS: dict[str, Callable[[Sequence[ProtectedLosses]], Any]] = {
    "coordinates": VectorEvents,
    "listed losses": GainEvents,
    "with assignments": lambda groups: Assignments(GainEvents(groups)),
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


def natures(rounds: int, seed: int) -> Iterator[tuple[str, Any, int, Any]]:
    """Yield a name, a model, how many rounds there are, and what gives s(y)."""
    for name, keys in STREAMS.items():
        data = keys.get("data.file")
        length = min(rounds, len(load_rows(data))) if data else rounds
        model, outcomes = played_of(keys | ({"forecaster.models": []}), length, seed)
        vectors = model.game.blocks[0].basis.transform(outcomes)
        yield name, model, length, lambda t, *_, vectors=vectors: vectors[t]
    grid = np.array(list(product([0.0, 0.5, 1.0], repeat=3)))
    support = model_basis(seed).transform(grid)
    model, _ = played_of(STREAMS["iid"], 2, seed)
    for name, chooses in (("against the mean", against_mean), ("against listed", against_listed)):
        yield name, model, rounds, lambda _, crowd, m, f=chooses: f(crowd, m, support)


def model_basis(seed: int) -> Any:
    """Return the basis of the streams' agents."""
    return played_of(STREAMS["iid"], 2, seed)[0].game.blocks[0].basis


def load_rows(file: str) -> pd.DataFrame:
    """Read a bundled series."""
    return pd.read_csv(CATALOGUE.parent.parent / "data" / file)


def measure(rounds: int, seeds: int) -> pd.DataFrame:
    """Return the means over seeds, by stream and events."""
    rows = []
    for seed in range(seeds):
        for stream, model, length, nature in natures(rounds, seed):
            offset, weights = model.game.cohorts[0].coefficients
            other = random_losses(weights, np.random.default_rng(seed))
            for name, make in EVENTS.items():
                crowds = [
                    Crowd(offset[:LISTED], weights[:LISTED]),
                    Crowd(offset[LISTED:], weights[LISTED:]),
                    Crowd(*other),
                ]
                listed, basis = crowds[0], model.game.blocks[0].basis
                player = UnbiasedPrediction(
                    make([ProtectedLosses(listed.offset, listed.weights)]),
                    cube(basis.size, basis.hull),
                )
                spent = 0.0
                for t in range(length):
                    start = process_time()
                    mixture = player.mixture()
                    spent -= start - process_time()
                    truth = nature(t, listed, mixture)
                    for crowd in crowds:
                        crowd.add(crowd.strategies(mixture), truth)
                    start = process_time()
                    player.update(truth)
                    spent -= start - process_time()
                worst = [crowd.regret().max() / length for crowd in crowds]
                losses = [crowd.cost.mean() / length for crowd in crowds]
                rows.append((length, stream, name, *worst, *losses, 1e3 * spent / length))
    columns = ["rounds", "outcomes", "events", *KINDS, *(f"loss of {kind}" for kind in KINDS), "ms"]
    return pd.DataFrame(rows, columns=columns).groupby(columns[:3], sort=False).mean()


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    print(measure(**vars(parser.parse_args())).round(4).to_string())  # noqa: T201
