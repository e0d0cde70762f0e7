"""News on its way: what was broadcast of a block, for those who hear it late or never.

An agent at distance h from the forecaster hears in round t the prediction that was drawn in round
t - h. Until the first one has come through to it, and for ever where none does, it goes by the
running mean of s(y) over the rounds that were played, outcomes being public: responding to it is a
best response to the empirical law of outcomes (follow the leader). Before the first outcome the
mean is 1/2 in every coordinate, as for the running-mean forecaster.
"""

from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.game.basis import Basis
from regretless.market.game.information import alone
from regretless.market.records import Ensemble, Forecast, Mixture

NEVER = -1  # the distance of whom no news reaches


class Relay:
    """The last predictions drawn of one block, and the mean of what came.

    Parameters
    ----------
    basis : Basis
        Of the block.
    depth : int
        Rounds that are remembered: the greatest distance of an agent.
    """

    def __init__(self, basis: Basis, depth: int) -> None:
        self.basis, self.depth = basis, depth
        self.past: tuple[Forecast, ...] = ()  # newest first
        self.mean, self.rounds = np.full(basis.size, 0.5), 0

    def add(self, forecast: Forecast, vector: Array) -> None:
        """Remember a round.

        Parameters
        ----------
        forecast : Forecast
            What was broadcast.
        vector : array (n,)
            s(y) of the outcome.
        """
        kept = Forecast(alone(forecast), 0)
        self.past = (kept, *self.past)[: self.depth]
        self.rounds += 1
        self.mean = self.mean + (vector - self.mean) / self.rounds

    def heard(self, distance: int) -> Forecast | None:
        """Return what reaches a distance of at least 1 now; None where nothing has yet."""
        return self.past[distance - 1] if 1 <= distance <= len(self.past) else None

    def stand_in(self) -> Forecast:
        """Return the running mean as a forecast, with the label that goes with it."""
        points = self.mean[None].copy()
        return Forecast(Mixture(points, np.ones(1), labels=self.basis.inverse(points)), 0)

    def copied(self) -> "Relay":
        """Return a copy that goes on by itself."""
        twin = Relay(self.basis, self.depth)
        twin.past, twin.mean, twin.rounds = self.past, self.mean, self.rounds
        return twin

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        past = {str(i): _packed(forecast) for i, forecast in enumerate(self.past)}
        return {"mean": self.mean, "rounds": self.rounds, "past": past}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.mean, self.rounds = np.array(state["mean"]), int(state["rounds"])
        self.past = tuple(_unpacked(state["past"][str(i)]) for i in range(len(state["past"])))


def _packed(forecast: Forecast) -> dict[str, Any]:
    packed: dict[str, Any] = {"point": forecast.point}
    if forecast.label is not None:
        packed["label"] = forecast.label
    if forecast.ensemble is not None:
        packed |= {"outcomes": forecast.ensemble.outcomes, "weights": forecast.ensemble.weights}
    return packed


def _unpacked(packed: dict[str, Any]) -> Forecast:
    labels = np.array(packed["label"])[None] if "label" in packed else None
    ensembles = None
    if "outcomes" in packed:
        ensembles = (Ensemble(np.array(packed["outcomes"]), np.array(packed["weights"])),)
    points = np.array(packed["point"])[None]
    return Forecast(Mixture(points, np.ones(1), labels=labels, ensembles=ensembles), 0)
