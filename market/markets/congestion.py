r"""Crowds: the share of agents who play each action, and roads on which times grow.

**Attendance.** The outcome is the share of agents who play each action but the first:

    share_g = (agents who play action g + 1) / (agents who are there)
    y_g     = always_g + (1 - sum_h always_h) share_g + noise (fundamental_g - 1/2), cut to [0, 1]

with ``always_g`` the share of a crowd that is not modelled and always plays it.
``market.markets.aggregate`` says which share counts: the smoothed level of before the round, or of
after it.

El Farol (Arthur 1994; the minority game of Challet and Zhang 1997). Action 1 is to go, worth 1 - y
against 1 - c for staying: nobody regrets where mean attendance is at the capacity c. If N agents
draw whether to go, each by itself, attendance has the deviation sqrt(c (1 - c) / N); if all follow
one draw, sqrt(c (1 - c)).

A bank run (Diamond and Dybvig 1983). Action 1 is to withdraw, the impatient always do; with utility
``depositor`` everybody's patience and everybody's run are both equilibria, and y at the start
decides between them, or what is forecast of it.

**Roads.** What a road takes grows with the share of all drivers on it:

    x_e = mean over agents of the slope of their loss in y_e:  1 where the route has road e, else 0
    t_e = free_e + load_e x_e                                  what road e takes
    y_e = t_e + toll load_e x_e + noise (fundamental_e - 1/2), cut to [0, 1]
    time = sum_e x_e t_e                                      mean travel time

Without a toll drivers who regret nothing are at Wardrop's equilibrium (1952); with
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
from regretless.market.game.market import check_key, slopes
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import Moments, Settling


@register.market("attendance")
class AttendanceMarket(Settling):
    """The share of agents who play each action but the first; ``start``, before the first round."""

    supports_multiplicity = True
    column_labels: ClassVar[Mapping[str, str]] = {"share": "share of these agents"}

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        always: float | list[float] = 0.0,
        noise: float = 0.0,
        start: float | list[float] = 0.0,
        feedback: str = "same-round",
        adjustment: float = 1.0,
    ) -> None:
        d = cohorts[0].loss.outcomes
        shares = [np.broadcast_to(np.asarray(s, np.float64), d).copy() for s in (always, start)]
        for name, share in zip(("always", "start"), shares, strict=True):
            fine = (share >= 0).all() and share.sum() <= 1
            check_key(name, share.tolist(), fine, "shares that sum to at most 1")
        fine = isinstance(noise, int | float) and np.isfinite(noise)
        check_key("noise", noise, fine, "a number")
        for cohort in cohorts:
            if cohort.loss.actions != d + 1:
                raise UserError(f"cohort.{cohort.name}.actions; give {d + 1}, outcomes and one")
        super().__init__(cohorts, rng, start=shares[1], feedback=feedback, adjustment=adjustment)
        self.always, self.noise = shares[0], noise

    def answer(self, fundamental: Array, load: Array) -> Array:
        share = load[1:] / max(load.sum(), 1)
        settled, shift = self.settle(share), self.noise * (fundamental - 0.5)
        self.last = {"fundamental": fundamental, "share": share}
        return self.within_cube(self.always + (1 - self.always.sum()) * settled + shift)

    def price_impact(self, place: int) -> Array:
        rows, modelled = len(self.cohorts[place].loss), 1 - self.always.sum()
        return np.full((rows, self.goods), self.adjustment * modelled / self.agents)

    def summary(self) -> str:
        mean, spread = self.outcomes.mean[0], self.outcomes.deviation()[0]
        return (
            f"Market: {100 * mean:.1f} % of the agents take part on average, with a standard "
            f"deviation of {100 * spread:.1f} %"
        )


@register.market("routes")
class Routes(Settling):
    """Travel times that grow with traffic.

    ``toll`` is the share of the delay caused to others that a driver is charged, ``start`` the
    flows before the first round.
    """

    REMEMBERED = ("flows", "times")
    supports_multiplicity = True
    column_labels: ClassVar[Mapping[str, str]] = {
        "flow": "share of drivers",
        "time": "mean travel time",
    }

    def __init__(
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
            fine = given.shape == (roads,) and (given >= 0).all()
            check_key(name, given.tolist(), fine, f"{roads} numbers from 0 on")
        check_key("toll", toll, toll >= 0, "a number of at least 0")
        taken = [slopes(cohort.loss) for cohort in cohorts]
        rules: Any = {"feedback": feedback, "adjustment": adjustment, "tables": taken}
        super().__init__(cohorts, rng, start=level, **rules)
        self.toll, self.noise = toll, noise
        self.flows, self.times = Moments(roads), Moments(1)

    def answer(self, fundamental: Array, load: Array) -> Array:
        drivers, *flows = load.sum(0)
        flow = np.array(flows) / max(drivers, 1)
        settled, shift = self.settle(flow), self.noise * (fundamental - 0.5)
        time = np.array([(settled * (self.free + self.load * settled)).sum()])
        self.flows.add(flow)
        self.times.add(time)
        self.last = {"fundamental": fundamental, "flow": flow, "time": time}
        return self.within_cube(self.free + (1 + self.toll) * self.load * settled + shift)

    def price_impact(self, place: int) -> Array:
        return self.swayed(self.tables[place], (1 + self.toll) * self.load / self.agents)

    def described(self) -> dict[str, Any]:
        measured = {"flow": self.flows.mean.tolist(), "time": float(self.times.mean[0])}
        return super().described() | measured

    def summary(self) -> str:
        return f"Market: roads, mean travel time {self.times.mean[0]:.4f} without tolls"
