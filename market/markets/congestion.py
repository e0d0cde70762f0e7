r"""Crowds: the share of agents who play each action, and roads on which times grow.

Scenario files choose these markets by the kinds ``attendance`` and ``routes``. What they share,
how a load settles and when it is known, is in ``market.markets.aggregate``.

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
from regretless.market.game.market import check_key, columns_before_clearing, slopes
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
        n_outcomes = cohorts[0].loss.outcomes
        always_shares = _checked_shares("always", always, n_outcomes)
        start_shares = _checked_shares("start", start, n_outcomes)
        is_number = isinstance(noise, int | float) and np.isfinite(noise)
        check_key("noise", noise, is_number, "a number")
        for cohort in cohorts:
            if cohort.loss.actions != n_outcomes + 1:
                give = f"give {n_outcomes + 1}: to stay, and one for each outcome"
                raise UserError(f"cohort.{cohort.name}.actions; {give}")
        super().__init__(cohorts, rng, start=start_shares, feedback=feedback, adjustment=adjustment)
        self.always = always_shares
        self._modelled_share = 1 - always_shares.sum()  # of the agents whose play is simulated
        self.noise = noise
        self.last = columns_before_clearing(fundamental=self.goods, share=self.goods)

    def answer(self, fundamental: Array, load: Array) -> Array:
        share = load[1:] / max(np.add.reduce(load), 1)
        settled = self.settle(share)
        self.last = {"fundamental": fundamental, "share": share}
        return self.within_cube(self.rest(fundamental, settled))

    def rest(self, fundamental: Array, level: Array) -> Array:
        shift = self.noise * (fundamental - 0.5)
        return np.asarray(self.always + self._modelled_share * level + shift)

    def price_impact(self, cohort_index: int) -> Array:
        n_rows = len(self.cohorts[cohort_index].loss)
        impact = self.adjustment * self._modelled_share / self.agents
        return np.full((n_rows, self.goods), impact)

    def summary(self) -> str:
        mean = self.outcomes.mean[0]
        deviation = self.outcomes.deviation()[0]
        return (
            f"Market: {100 * mean:.1f} % of the agents take part on average, with a standard "
            f"deviation of {100 * deviation:.1f} %"
        )


def _checked_shares(key: str, shares: float | list[float], size: int) -> Array:
    """Return shares (size,); UserError unless they are at least 0 and sum to at most 1."""
    checked = np.broadcast_to(np.asarray(shares, np.float64), size).copy()
    are_shares = (checked >= 0).all() and checked.sum() <= 1
    check_key(key, checked.tolist(), are_shares, "shares that sum to at most 1")
    return checked


@register.market("routes")
class Routes(Settling):
    """Travel times that grow with traffic.

    Parameters
    ----------
    free : list of float
        What each road takes without traffic, in the unit of outcomes.
    load : list of float
        How much longer each road takes with all drivers on it.
    toll : float
        The share of the delay caused to others that a driver is charged.
    start : list of float, optional
        Flows before the first round; 0 by default.
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
        n_roads = cohorts[0].loss.outcomes  # an outcome has the travel time of each road
        if start is None:
            start = [0.0] * n_roads
        self.free_times = _checked_numbers("free", free, n_roads)
        self.time_per_flow = _checked_numbers("load", load, n_roads)
        start_flows = _checked_numbers("start", start, n_roads)
        check_key("toll", toll, toll >= 0, "a number of at least 0")
        # A route that has a road loses 1 for each unit of the road's travel time, others nothing.
        roads_of_routes = [slopes(cohort.loss) for cohort in cohorts]  # (K, A, d)
        super().__init__(
            cohorts,
            rng,
            start=start_flows,
            feedback=feedback,
            adjustment=adjustment,
            loads_of_actions=roads_of_routes,
        )
        self.toll = toll
        self.noise = noise
        self.flows = Moments(n_roads)  # of the roads, over the rounds
        self.times = Moments(1)  # of the mean travel time
        self.last = columns_before_clearing(fundamental=n_roads, flow=n_roads, time=1)

    def answer(self, fundamental: Array, load: Array) -> Array:
        drivers, *flows = load.sum(0)
        flow = np.array(flows) / max(drivers, 1)
        settled_flow = self.settle(flow)
        travel_times = self.free_times + self.time_per_flow * settled_flow
        mean_time = (settled_flow * travel_times).sum()
        time = np.array([mean_time])
        self.flows.add(flow)
        self.times.add(time)
        self.last = {"fundamental": fundamental, "flow": flow, "time": time}
        return self.within_cube(self.rest(fundamental, settled_flow))

    def rest(self, fundamental: Array, level: Array) -> Array:
        shift = self.noise * (fundamental - 0.5)
        return np.asarray(self.free_times + (1 + self.toll) * self.time_per_flow * level + shift)

    def price_impact(self, cohort_index: int) -> Array:
        charge_per_flow = (1 + self.toll) * self.time_per_flow
        return self.impact_of_one_agent(
            self.loads_of_actions[cohort_index], outcome_per_load=charge_per_flow / self.agents
        )

    def described(self) -> dict[str, Any]:
        return {
            **super().described(),
            "flow": self.flows.mean.tolist(),
            "time": float(self.times.mean[0]),
        }

    def summary(self) -> str:
        return f"Market: roads, mean travel time {self.times.mean[0]:.4f} without tolls"


def _checked_numbers(key: str, values: list[float], size: int) -> Array:
    """Return numbers (size,), one per road; UserError unless all are at least 0."""
    numbers = np.asarray(values, dtype=np.float64)
    are_fine = numbers.shape == (size,) and (numbers >= 0).all()
    check_key(key, numbers.tolist(), are_fine, f"{size} numbers from 0 on")
    return numbers
