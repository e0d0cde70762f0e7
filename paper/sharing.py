"""The table `sharing`: what it costs an agent that others hear the same forecast.

Agents with random linear losses of five actions and `d` outcomes meet an opponent that chooses
among corners of the cube: one that hunts the worst regret, one that costs everybody together most,
or fair coins. All hear one forecast, with events of three kinds; or each has a Blum-Mansour learner
of its own. Further methods try to close the gap: gains that are charged with the regret itself,
which is never more, and other rules of weights. Measured are the worst swap regret per round, the
mean loss, and the bound: from variation of a forecast, a priori of a learner. All opponents play
games of the middle size; the hunter of the worst alone plays games of others.

``short-runs``: twelve agents with forty actions each and three outcomes, in runs of 30 and 100
rounds: a forecast without a model, beside the mean of the panel or the running mean as a reference,
these two whatever they cost, and a learner each.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from paper.harness import Row, Table
from paper.listed import Crowd, against_listed, random_losses
from paper.trust import ACTIONS, greedy
from regretless.agents.learners import BlumMansour
from regretless.forecaster import (
    GainEvents,
    ProtectedLosses,
    Reference,
    RunningMean,
    UnbiasedPrediction,
    VectorEvents,
)
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.loss_events import Assignments, GainsOfRound
from regretless.forecaster.events.loss_table import Played
from regretless.forecaster.models import Aggregate
from regretless.forecaster.models.aggregate import PANEL, make_panel
from regretless.forecaster.weights import ExponentialWeights, SecondOrderWeights
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.records import Mixture

MAX_CORNERS = 32  # among which an opponent chooses


class Sizes(NamedTuple):
    """How large a game is."""

    rounds: int = 1000
    outcomes: int = 3
    agents: int = 12


class ChargedWithRegret(GainEvents):
    """Gains are the regret, in every round: never more than the gain of a best response."""

    def gains_of_round(self, active: list[Indices], played: Played) -> list[GainsOfRound]:
        """Return the regrets, without a margin."""
        return super().gains_of_round(active, played._replace(reference_is_trusted=True))


class AssignmentsChargedWithRegret(ChargedWithRegret, Assignments):
    """The same, with a potential over assignments."""


METHODS: dict[str, Callable[[ProtectedLosses], EventSet]] = {
    "assignments": lambda listed: Assignments([listed]),
    "gains alone": lambda listed: GainEvents([listed]),
    "coordinates": lambda listed: VectorEvents([listed]),
}
ATTEMPTS: dict[str, Callable[[ProtectedLosses], EventSet]] = {
    "gains, regret charged": lambda listed: ChargedWithRegret([listed]),
    "assignments, regret charged": lambda listed: AssignmentsChargedWithRegret([listed]),
    "gains, second-order": lambda listed: GainEvents([listed], SecondOrderWeights()),
    "coordinates, second-order": lambda listed: VectorEvents([listed], SecondOrderWeights()),
    "gains, exponential": lambda listed: GainEvents([listed], ExponentialWeights()),
}
LEARNER = "a learner each"
OPPONENTS = ("hunter of the worst", "greedy on all losses", "fair coins")
HUNTER = OPPONENTS[0]
Instance = tuple[Sizes, str, str]  # sizes, opponent, method


class SharedForecast:
    """One forecast, to which all agents best-respond."""

    def __init__(self, crowd: Crowd, make: Callable[[ProtectedLosses], EventSet]) -> None:
        self.crowd = crowd
        self.listed = ProtectedLosses(crowd.offset, crowd.weights)
        self.forecaster = UnbiasedPrediction(make(self.listed))

    def strategies(self) -> Array:
        """Return what the agents play (K, A), in expectation over the draw."""
        return self.crowd.strategies(self.forecaster.mixture())

    def learn(self, truth: Array) -> None:
        """Learn s(y)."""
        self.forecaster.update(truth)

    def bound(self, rounds: int) -> float:
        """Bound the worst agent's regret per round, from variation."""
        return float(self.forecaster.from_variation(self.listed).max() / rounds)


class OwnLearners:
    """A learner of each agent's own."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.learner = BlumMansour()
        self.learner.start(*crowd.offset.shape)

    def strategies(self) -> Array:
        """Return what the agents play (K, A)."""
        return self.learner.play()

    def learn(self, truth: Array) -> None:
        """Learn every action's loss."""
        losses = self.crowd.offset + self.crowd.weights @ truth
        self.learner.learn(losses, np.zeros(len(losses), dtype=np.intp))

    def bound(self, rounds: int) -> float:
        """Bound every agent's regret per round, a priori."""
        return self.learner.bound(rounds)


class PlayedCrowd(Crowd):
    """A crowd whose strategies of the round are known, whatever the mixture."""

    played: Array

    def strategies(self, mixture: Mixture) -> Array:
        """Return how often each action is played (K, A)."""
        return self.played


NOBODYS_MIXTURE: Any = None


def one_game(instance: Instance, seed: int) -> Iterator[Row]:
    """Play one game with one method."""
    sizes, opponent, method = instance
    rng = stream(seed, "sharing", str(sizes.outcomes), str(sizes.agents))
    shape = np.empty((sizes.agents, ACTIONS, sizes.outcomes))
    offset, weights = random_losses(shape, rng, count=sizes.agents)
    every_corner = np.array(list(product([0.0, 1.0], repeat=sizes.outcomes)))
    corners = every_corner
    if len(every_corner) > MAX_CORNERS:
        corners = rng.choice(every_corner, MAX_CORNERS, replace=False)
    crowd = PlayedCrowd(offset, weights)
    side: SharedForecast | OwnLearners
    if method == LEARNER:
        side = OwnLearners(crowd)
    else:
        side = SharedForecast(Crowd(offset, weights), (METHODS | ATTEMPTS)[method])
    for _ in range(sizes.rounds):
        crowd.played = side.strategies()
        if opponent == HUNTER:
            truth = against_listed(crowd, NOBODYS_MIXTURE, corners)
        elif opponent == "fair coins":
            truth = rng.integers(2, size=sizes.outcomes).astype(np.float64)
        else:
            truth = greedy(crowd, NOBODYS_MIXTURE, corners)
        crowd.add(crowd.played, truth)
        side.learn(truth)
    yield {
        "T": sizes.rounds,
        "d": sizes.outcomes,
        "agents": sizes.agents,
        "opponent": opponent,
        "method": method,
        "regret": crowd.regret().max() / sizes.rounds,
        "loss": crowd.cost.mean() / sizes.rounds,
        "bound": side.bound(sizes.rounds),
    }


def instances() -> list[Instance]:
    """List all opponents with all methods in the middle size, and the hunter in others."""
    middle = Sizes()
    games = list(product([middle], OPPONENTS, [*METHODS, LEARNER, *ATTEMPTS]))
    others = [
        middle._replace(rounds=500),
        middle._replace(rounds=4000),
        middle._replace(rounds=10_000),
        middle._replace(outcomes=2),
        middle._replace(outcomes=8),
        middle._replace(agents=1),
        middle._replace(agents=100),
    ]
    games += product(others, [HUNTER], [*METHODS, LEARNER])
    return games


MANY_ACTIONS = 40
SHORT_STREAMS = ("iid", "hunter of the worst")
NEVER = 1e6  # times what chance explains: a reference that is never given up
REFERENCES: dict[str, tuple[str, float]] = {  # what is broadcast, and when it is given up
    "panel": ("panel", 1.0),
    "running mean": ("running mean", 1.0),
    "panel, never given up": ("panel", NEVER),
    "running mean, never given up": ("running mean", NEVER),
}
WITHOUT_MODEL = "no model"


def short_forecaster(method: str, listed: ProtectedLosses, outcomes: int) -> UnbiasedPrediction:
    """Make a forecaster with a reference, or without one."""
    if method == WITHOUT_MODEL:
        return UnbiasedPrediction(Assignments([listed]))
    kind, give_up = REFERENCES[method]
    model: Any = RunningMean(outcomes)
    n_models = 0
    if kind == "panel":
        model = Aggregate(make_panel(PANEL, outcomes), outcomes)
        n_models = len(model.made_of)
    reference = Reference(model, give_up=give_up)
    return UnbiasedPrediction(Assignments([listed], models=n_models), reference=reference)


def short_run(instance: tuple[int, str, str], seed: int) -> Iterator[Row]:
    """Play a short run with many actions."""
    rounds, opponent, method = instance
    outcomes = Sizes().outcomes
    agents = Sizes().agents
    rng = stream(seed, "sharing", "short runs", opponent)
    shape = np.empty((agents, MANY_ACTIONS, outcomes))
    offset, weights = random_losses(shape, rng, count=agents)
    corners = np.array(list(product([0.0, 1.0], repeat=outcomes)))
    means = rng.random(outcomes)
    crowd = PlayedCrowd(offset, weights)
    learner = OwnLearners(crowd)
    forecaster = None
    if method != LEARNER:
        listed = ProtectedLosses(offset, weights)
        forecaster = short_forecaster(method, listed, outcomes)
    for _ in range(rounds):
        if forecaster is None:
            crowd.played = learner.strategies()
        else:
            crowd.played = Crowd.strategies(crowd, forecaster.mixture())
        if opponent == HUNTER:
            truth = against_listed(crowd, NOBODYS_MIXTURE, corners)
        else:
            truth = (rng.random(outcomes) < means).astype(np.float64)
        crowd.add(crowd.played, truth)
        if forecaster is None:
            learner.learn(truth)
        else:
            forecaster.update(truth)
    yield {
        "T": rounds,
        "opponent": opponent,
        "method": method,
        "worst regret": crowd.regret().max() / rounds,
        "mean regret": crowd.regret().mean() / rounds,
        "loss": crowd.cost.mean() / rounds,
    }


TABLES = {
    "short-runs": Table(
        short_run,
        ["T", "opponent", "method"],
        lambda: list(product((30, 100), SHORT_STREAMS, [WITHOUT_MODEL, *REFERENCES, LEARNER])),
        seeds=5,
    ),
    "sharing": Table(
        one_game,
        ["T", "d", "agents", "opponent", "method"],
        instances,
        seeds=2,
    ),
}
