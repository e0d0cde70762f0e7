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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.minimax.cube import cube
from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.market.records import Mixture
from regretless.scenarios.studies.design import CATALOGUE, read_study

LISTED = 20  # agents whose losses the forecaster knows
ALIKE = 200  # agents of the same kind
OTHERS = 100  # agents with random losses
EVENTS: dict[str, Callable[[Sequence[ProtectedLosses]], EventSet]] = {
    "coordinates": VectorEvents,
    "listed losses": GainEvents,
    "with assignments": Assignments,
}
STREAMS: dict[str, dict[str, Any]] = dict(read_study("skill").spec.grid["stream"])
del STREAMS["adaptive"]
Nature = Callable[[int, "Crowd", Mixture], Array]  # from round, listed crowd and mixture to s(y)


class Crowd:
    """Losses in one basis, and the sums of what each would have gained by any replacement.

    Attributes
    ----------
    offset, weights : array (K, A), (K, A, n)
        Of the losses.
    sums : array (K, A, A)
        Entry [k, a, b] is what loss k would have gained by playing b wherever it played a.
    cost : array (K,)
        Sums of losses.
    """

    def __init__(self, offset: Array, weights: Array) -> None:
        self.offset = offset
        self.weights = weights
        self.sums = np.zeros((*offset.shape, offset.shape[1]))
        self.cost = np.zeros(len(offset))

    def strategies(self, mixture: Mixture) -> Array:
        """Return how often each action is a best response (K, A)."""
        expected_losses = self.offset + np.einsum("kan,mn->mka", self.weights, mixture.points)
        best_responses = np.eye(self.offset.shape[1])[expected_losses.argmin(2)]
        return np.asarray(np.tensordot(mixture.weights, best_responses, axes=1))

    def gains(self, strategy: Array, truth: Array) -> Array:
        """Return what a round adds to the sums (K, A, A)."""
        losses = self.offset + self.weights @ truth
        return np.asarray(strategy[:, :, None] * (losses[:, :, None] - losses[:, None]))

    def add(self, strategy: Array, truth: Array) -> None:
        """Add a round."""
        self.sums += self.gains(strategy, truth)
        self.cost += (strategy * (self.offset + self.weights @ truth)).sum(1)

    def regret(self) -> Array:
        """Return the sums of swap regret (K,)."""
        return np.asarray(self.sums.max(2).sum(1))


def random_losses(
    weights: Array, rng: np.random.Generator, *, count: int = OTHERS
) -> tuple[Array, Array]:
    """Draw losses in [0, 1] over the box, with as many actions as ``weights`` (K, A, n) have.

    Returns offsets (count, A) and weights (count, A, n).
    """
    random_weights = rng.standard_normal((count, *weights.shape[1:]))
    random_weights /= np.abs(random_weights).sum(2, keepdims=True)
    return np.maximum(-random_weights, 0.0).sum(2), random_weights


def play_listeners(keys: dict[str, Any], rounds: int, seed: int) -> MarketModel:
    """Play the scenario of the listeners, with outcomes that do not react to the forecast."""
    settings = {
        **keys,
        "rounds": rounds,
        "cohort.agents.count": LISTED + ALIKE,
        "forecaster.kind": "last-value",
    }
    model = load(str(CATALOGUE / "scenarios/listeners.toml"), **settings).build(seed=seed)
    model.run()
    return model


def against_mean(_: Crowd, mixture: Mixture, support: Array) -> Array:
    """Return what is farthest from the mean prediction, of the support (m, n)."""
    distance = ((support - mixture.mean) ** 2).sum(1)
    return np.asarray(support[distance.argmax()])


def against_listed(crowd: Crowd, mixture: Mixture, support: Array) -> Array:
    """Return what raises the worst listed regret most, of the support (m, n)."""
    strategy = crowd.strategies(mixture)
    worst_regrets = []
    for truth in support:
        sums = crowd.sums + crowd.gains(strategy, truth)
        worst_regrets.append(sums.max(2).sum(1).max())
    return np.asarray(support[int(np.argmax(worst_regrets))])


ANSWERS = {"against the mean": against_mean, "against listed": against_listed}


class Stream(NamedTuple):
    """What is played: the agents, how many rounds there are, and what gives s(y)."""

    model: MarketModel
    rounds: int
    nature: Nature


def stream_of(name: str, rounds: int, seed: int) -> Stream:
    """Return a stream of outcomes by its name; one from data ends with the data."""
    if name in ANSWERS:
        model = play_listeners(STREAMS["iid"], 2, seed)
        outcomes = np.array(list(product([0.0, 0.5, 1.0], repeat=3)))
        support = model.game.blocks[0].basis.transform(outcomes)
        answer = ANSWERS[name]
        return Stream(model, rounds, lambda _, crowd, mixture: answer(crowd, mixture, support))
    keys = STREAMS[name]
    if "data.file" in keys:
        rounds = min(rounds, len(load_rows(keys["data.file"])))
    model = play_listeners(keys, rounds, seed)
    outcomes = model.rounds_frame().filter(regex="^y_").to_numpy()
    truths = model.game.blocks[0].basis.transform(outcomes)
    return Stream(model, rounds, lambda round_index, *_: np.asarray(truths[round_index]))


def load_rows(file: str) -> pd.DataFrame:
    """Read a bundled series."""
    return pd.read_csv(CATALOGUE.parent.parent / "data" / file)


def on_stream(stream: str, rounds: int, seed: int) -> Iterator[Row]:
    """Play all events against a nature."""
    model, rounds, nature = stream_of(stream, rounds, seed)
    offset, weights = model.game.cohorts[0].coefficients
    random_offset, random_weights = random_losses(weights, np.random.default_rng(seed))
    basis = model.game.blocks[0].basis
    for name, make_events in EVENTS.items():
        listed = Crowd(offset[:LISTED], weights[:LISTED])
        crowds = {
            "listed": listed,
            "alike": Crowd(offset[LISTED:], weights[LISTED:]),
            "random": Crowd(random_offset, random_weights),
        }
        events = make_events([ProtectedLosses(listed.offset, listed.weights)])
        forecaster = UnbiasedPrediction(events, cube(basis.size, basis.hull))
        seconds = 0.0
        for round_index in range(rounds):
            start = process_time()
            mixture = forecaster.mixture()
            seconds += process_time() - start
            truth = nature(round_index, listed, mixture)
            for crowd in crowds.values():
                crowd.add(crowd.strategies(mixture), truth)
            start = process_time()
            forecaster.update(truth)
            seconds += process_time() - start
        row: Row = {"rounds": rounds, "outcomes": stream, "events": name}
        for kind, crowd in crowds.items():
            row[kind] = crowd.regret().max() / rounds
        for kind, crowd in crowds.items():
            row[f"loss of {kind}"] = crowd.cost.mean() / rounds
        row["ms"] = 1e3 * seconds / rounds
        yield row


TABLES = {
    "listed": Table(
        on_stream,
        ["rounds", "outcomes", "events"],
        lambda: [*STREAMS, *ANSWERS],
        rounds=2000,
        seeds=3,
    )
}
