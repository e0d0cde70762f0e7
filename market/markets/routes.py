r"""Roads with congestion: what a road takes grows with the share of all drivers on it.

    x_e = mean over agents of the slope of their loss in y_e:  1 where the route has road e, else 0
    t_e = free_e + load_e x_e                                  what road e takes
    y_e = t_e + toll load_e x_e + noise (fundamental_e - 1/2), cut to [0, 1]
    time = sum_e x_e t_e                                      mean travel time

``market.markets.settling`` says which flow x counts: the smoothed level of before the round, or of
after it. Without a toll drivers who regret nothing are at Wardrop's equilibrium (1952); with
toll = 1 each pays what it costs the others, and the equilibrium is the optimum (Pigou 1920). For
such affine times the equilibrium takes at most 4/3 of the optimum's (Roughgarden and Tardos 2002):

    Pigou    two roads, 1 and x          equilibrium 1, optimum 3/4
    Braess   x, 1, 1, x and a free link  equilibrium 2, optimum 3/2
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.markets import Decisions, slopes
from regretless.market.game.protocols import Cohort
from regretless.market.markets.settling import Moments, Settling


@register.market("routes")
class Routes(Settling):
    """Travel times that grow with traffic.

    Parameters
    ----------
    cohorts, rng, feedback, adjustment : as in ``Settling``
        Their loads are the flows.
    free, load : list of d
        What each road takes when it is empty, and what all drivers on it add; at least 0.
    toll : float
        Share of the delay that a driver causes to others which it is charged, at least 0.
    noise : float
        How far the fundamental moves times, from its least to its greatest value.
    start : list of d, optional
        Flows before the first round; 0 by default.

    Raises
    ------
    UserError
        If a list has another length or a number is negative.
    """

    REMEMBERED = ("flows", "times")
    weighs = True
    meant: ClassVar[Mapping[str, str]] = {"flow": "share of drivers", "time": "mean travel time"}

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        free: list[float],
        load: list[float],
        toll: float = 0.0,
        noise: float = 0.0,
        start: list[float] | None = None,
        feedback: str = "same-round",
        adjustment: float = 1.0,
    ) -> None:
        roads = cohorts[0].loss.outcomes
        level = np.asarray([0.0] * roads if start is None else start, dtype=np.float64)
        self.free, self.load = np.asarray(free, np.float64), np.asarray(load, np.float64)
        for name, given in (("free", self.free), ("load", self.load), ("start", level)):
            if given.shape != (roads,) or (given < 0).any():
                raise UserError(f"market.{name} = {given.tolist()}; give {roads} numbers from 0 on")
        if toll < 0:
            raise UserError(f"market.toll = {toll}; give a number of at least 0")
        taken = [slopes(cohort.loss) for cohort in cohorts]
        rules: Any = {"feedback": feedback, "adjustment": adjustment, "tables": taken}
        super().__init__(cohorts, rng, start=level, **rules)
        self.toll, self.noise = toll, noise
        self.flows, self.times = Moments(roads), Moments(1)

    def aggregate(self, decisions: Decisions) -> Array:
        """Count all drivers, and those on every road."""
        return self.spent(decisions)

    def answer(self, fundamental: Array, load: Array) -> Array:
        """Let them suffer what they do to each other."""
        drivers, *flows = load.sum(0)
        flow = np.array(flows) / max(drivers, 1)
        settled, shift = self.settle(flow), self.noise * (fundamental - 0.5)
        time = np.array([(settled * (self.free + self.load * settled)).sum()])
        self.flows.add(flow)
        self.times.add(time)
        self.last = {"fundamental": fundamental, "flow": flow, "time": time}
        return self.kept(self.free + (1 + self.toll) * self.load * settled + shift)

    def sway(self, place: int) -> Array:
        """Return what a driver adds to what every road takes (K, d)."""
        return self.swayed(self.tables[place], (1 + self.toll) * self.load / self.agents)

    def described(self) -> dict[str, Any]:
        """Describe flows and the mean travel time so far, without toll and noise."""
        measured = {"flow": self.flows.mean.tolist(), "time": float(self.times.mean[0])}
        return super().described() | measured

    def told(self) -> str:
        """Sum up the mean travel time."""
        return f"Market: roads, mean travel time {self.times.mean[0]:.4f} without tolls"
