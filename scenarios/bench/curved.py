"""Crowds with curved losses, whose rounds cost powers or exponentials beside passes over memory.

The agents hear the running mean of the outcomes as a label forecast and respond to their own losses
there (certainty equivalent): no basis, the form itself, at the forecast and at the outcome. An
agent of the plain Mesa model does the same with small NumPy expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.agents.responses import CertaintyEquivalent, Response
from regretless.agents.utilities.forms import CARA, CES, CobbDouglas
from regretless.forecaster.bases import LinearBasis
from regretless.scenarios.bench.crowds import Crowd

Array = NDArray[np.float64]
LEAST = 0.1  # of a good, for Cobb-Douglas


Formula = Callable[[Array], Array]


def _ces(rng: np.random.Generator, shares: Array) -> Any:
    return CES(shares, rng.uniform(0.3, 0.9, len(shares)), np.ones(len(shares)))


def _ces_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    power, exponent = float(loss.power[row]), float(loss.exponent[row])
    return lambda y: offset + amplitude * (weights @ y**power) ** exponent


def _cara(rng: np.random.Generator, shares: Array) -> Any:
    return CARA(shares, rng.uniform(0.5, 3.0, len(shares)))


def _cara_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ y)


def _cobb_douglas(_: np.random.Generator, shares: Array) -> Any:
    return CobbDouglas(shares, y_min=LEAST)


def _cobb_douglas_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ np.log(np.maximum(y, LEAST)))


def _own(loss: Any, row: int) -> tuple[Array, ...]:
    return tuple(np.array(table[row]) for table in (loss.weights, loss.offset, loss.amplitude))


FAMILIES: Mapping[str, tuple[Callable[..., Any], Callable[[Any, int], Formula]]] = {
    "CES": (_ces, _ces_alone),
    "CARA": (_cara, _cara_alone),
    "Cobb-Douglas": (_cobb_douglas, _cobb_douglas_alone),
}


class CurvedCrowd(Crowd):
    """Agents with random losses of one family, one each.

    Parameters
    ----------
    agents : int
        N.
    family : str
        One of ``FAMILIES``.
    """

    def __init__(self, agents: int, family: str) -> None:
        self.family, self.kind = family, f"{family} "
        super().__init__(agents)

    def _losses(self, rng: np.random.Generator) -> Any:
        shares = rng.random((self.rows, self.actions, self.goods)) / self.goods
        return FAMILIES[self.family][0](rng, shares)

    def _response(self, basis: LinearBasis) -> tuple[Response, tuple[Array, Array]]:
        unread = np.broadcast_to(0.0, self.loss.weights.shape)
        return CertaintyEquivalent(), (self.loss.offset, unread)

    def _grower(self, mesa: Any) -> Any:
        loss, actions, alone = self.loss, self.actions, FAMILIES[self.family][1]

        class Grower(mesa.Agent):  # type: ignore[misc]
            """An agent with its own losses and table of sums."""

            def __init__(self, model: Any, row: int) -> None:
                super().__init__(model)
                self.losses = alone(loss, row)
                self.sums, self.action = np.zeros((actions, actions)), 0

            def step(self) -> None:
                """Respond, suffer and record."""
                self.action = int(self.losses(self.model.forecast).argmin())
                self.sums[self.action] += self.losses(self.model.outcome)

        return Grower
