"""Every promise on streams that nobody tuned for: biases, regrets and certificates.

Each kind of forecaster plays odd streams. Certificates over the cube are recomputed in every round;
at the end biases and regrets must lie below what `forecaster.events.bounds` says.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streams import market

from regretless import Adversary, register
from regretless.forecaster.events.bounds import GainBound
from regretless.forecaster.events.loss_table import responses_at
from regretless.forecaster.events.weights import Moment
from regretless.forecaster.minimax.cube import CubeSolver
from regretless.forecaster.unbiased import certificate_limit
from regretless.market.core.arrays import Array
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

ROUNDS = 120

STREAMS: dict[str, Callable[[int, Array, np.random.Generator], Array]] = {
    # calm, with rare disasters
    "spikes": lambda _, mean, rng: np.full_like(mean, 1.0 if rng.random() < 0.03 else 0.02),
    # a random corner of the cube
    "corners": lambda _, mean, rng: (rng.random(len(mean)) < 0.5).astype(float),
    # opposite corners in turn, where all actions of these agents tie
    "flip": lambda t, mean, _: np.full_like(mean, float(t % 2)),
    # as far from the forecast as possible, in every coordinate
    "mirror": lambda _, mean, __: (mean < 0.5).astype(float),
    # slowly from one end to the other
    "ramp": lambda t, mean, _: np.full_like(mean, t / ROUNDS),
    # follows the forecast, and strikes
    "bait": lambda t, mean, _: mean if t % 5 else 1 - mean,
}


class Odd(Adversary):
    """A stream by its name."""

    def __init__(self, outcomes: int, rng: np.random.Generator, *, stream: str) -> None:
        super().__init__(outcomes, rng)
        self.stream = STREAMS[stream]

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        outcome = self.stream(history.rounds, np.clip(announced.mean_label, 0, 1), self.rng)
        centre = np.full(self.outcomes, 0.5)
        return OutcomeDistribution(np.array([outcome, centre]), np.array([0.9, 0.1]))


FORECASTERS: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "exponential": {"weights": "exponential"},
    "scalar": {"events": "losses"},
    "image": {"hull": "image"},
    "scalar in the image": {"hull": "image", "events": "losses"},
    "anchored": {"reference": "last-value", "give_up": 0.0},
    "anchored, wide": {"reference": "running-mean", "band": 2.0},
    "trusting": {"reference": "last-value"},
}
COHORTS: dict[str, dict[str, Any]] = {
    "sophisticated": {},
    "quantal": {"utility": "linear", "parameters": {}, "response": "quantal", "eta": 30.0},
    "listening": {"response": "ensemble"},
}


# Three streams for every forecaster, four forecasters for every stream; agents take turns.
MET = [
    (forecaster, list(STREAMS)[(i + 2 * k) % len(STREAMS)], list(COHORTS)[(i + k) % len(COHORTS)])
    for i, forecaster in enumerate(FORECASTERS)
    for k in range(3)
]


@pytest.mark.parametrize(("forecaster", "stream", "agents"), MET)
def test_promises_are_kept_on_odd_streams(forecaster: str, stream: str, agents: str) -> None:
    register.adversary("odd")(Odd)
    given = {"kind": "odd", "stream": stream}, FORECASTERS[forecaster]
    scenario = market(*given, rounds=ROUNDS, seed=3, count=6, **COHORTS[agents])
    model = scenario.build(log_every=ROUNDS)
    player: Any = model.game.blocks[0].forecaster
    for _ in range(ROUNDS):
        if isinstance(player.solver, CubeSolver):  # the certificate is what its definition says
            moment = Moment(player.time + 1, player.events.experts, player.band)
            table = player.events.table_of(player.events.active(None), moment)
            mixture, worst, rows = player.mixture(None), None, player.events.rows
            if not player.trusting:
                fields = np.stack([responses_at(rows, p) @ table for p in mixture.points])
                worst = player.solver.worst(mixture.weights, mixture.points, fields)
            assert mixture.certificate == pytest.approx(worst, abs=1e-9)
        model.step()
    assert player.certificate_sum <= certificate_limit(ROUNDS)
    bound = player.bias_bound()
    for *_, occupancy, bias in player.events.table():
        if not isinstance(bound, GainBound):
            assert np.abs(bias).max() <= float(bound.bias(occupancy)) + 1e-9
    rows = model.agents_frame()
    assert (rows["guarantee"] != "none").all()
    assert (rows["swap_regret"] <= rows["bound_from_bias"] + 1e-9).all()
    assert (rows["bound_from_bias"] <= rows["bound"]).all()
