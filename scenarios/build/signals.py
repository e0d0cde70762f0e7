"""Private signals: each cohort's noise is drawn from its stream (``market.game.signals``)."""

from __future__ import annotations

import numpy as np

from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.game.signals import Signal
from regretless.scenarios.build.construct import drawn_values
from regretless.scenarios.spec.cohort import CohortSpec, SignalSpec
from regretless.scenarios.spec.scenario import ScenarioSpec


def drawn_signal(spec: CohortSpec, scenario: ScenarioSpec, root: int, goods: int) -> Signal | None:
    """Make a cohort's signal, None where it has none.

    UserError if there is no such coordinate, or a noise is no number of at least 0.
    """
    if spec.signal is None:
        return None
    where = f"cohort.{spec.name}.signal"
    rng = stream(root, "cohort", spec.name, "noise")
    drawn = drawn_values(f"{where}.noise", spec.signal.noise, rng, spec.count)
    if np.asarray(drawn).dtype.kind not in "iuf" or np.ndim(drawn) > 1 or np.min(drawn) < 0:
        raise UserError(f"{where}.noise = {spec.signal.noise}: give numbers of at least 0")
    coordinate = _coordinate(spec.signal, scenario, where, goods)
    noise = np.broadcast_to(np.asarray(drawn, dtype=np.float64), spec.count)
    own = stream(root, "referee", "signal", spec.name)
    return Signal(spec.signal.name, coordinate, noise=noise, rng=own)


def _coordinate(signal: SignalSpec, scenario: ScenarioSpec, where: str, goods: int) -> int:
    """Find the coordinate of the outcome that a signal is about."""
    at, names = signal.coordinate, scenario.outcome_names
    if isinstance(at, str):
        if at not in names:
            raise UserError(f"{where}.coordinate: no outcome '{at}'; {closest(at, names)}")
        return names.index(at)
    if at >= goods:
        raise UserError(f"{where}.coordinate = {at}: outcomes are numbered 0 to {goods - 1}")
    return at
