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
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.market import check_key, columns_before_clearing, slopes
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import (
    Moments,
    Settling,
    add_observation,
    cut_and_add,
    follow,
)


def share_at_rest(
    fundamental: Any, level: Any, always: Any, modelled_share: float, noise: float
) -> Any:
    """Return y_g, not yet cut, of a share that rests at a level: numbers, or arrays of them."""
    shift = noise * (fundamental - 0.5)
    return always + modelled_share * level + shift


def road_at_rest(
    fundamental: Any, flow: Any, free_time: Any, time_per_flow: Any, toll: float, noise: float
) -> Any:
    """Return y_e, not yet cut, of a road that rests at a flow: numbers, or arrays of them."""
    shift = noise * (fundamental - 0.5)
    return free_time + (1 + toll) * time_per_flow * flow + shift


_share_at_rest = compiled(nogil=True)(share_at_rest)  # of numbers, for kernels
_road_at_rest = compiled(nogil=True)(road_at_rest)


@compiled(nogil=True)
def _answer_crowd(
    counts: Array,
    level: Array,
    adjustment: float,
    answers_at_once: bool,  # noqa: FBT001
    always: Array,
    modelled_share: float,
    noise: float,
    outcome: Array,
    share: Array,
    new_level: Array,
    n_outcomes: int,
    mean: Array,
    squares: Array,
) -> bool:
    """Let the level follow the shares of a round, and write the outcome (compiled).

    share_g = counts_g+1 / sum of counts, and y_g is that of ``share_at_rest`` at the level that
    ``follow`` returns, cut to [0, 1].

    Parameters
    ----------
    counts : array (d + 1,)
        How many agents play each action.
    level : array (d,)
        Before the round.
    adjustment, answers_at_once, always, modelled_share, noise
        Of the market, ``always`` (d,).
    outcome : array (d,)
        The fundamental, which becomes the outcome in place.
    share, new_level : array (d,)
        Written: the share of agents who play each action but the first, and the level after it.
    n_outcomes, mean, squares
        Of ``Moments``: how many there are with this one; the others (d,) are updated in place.

    Returns
    -------
    bool
        Whether [0, 1] cut the outcome.
    """
    n_agents = 0.0
    for count in counts:
        n_agents += count
    for g in range(len(outcome)):
        share[g] = counts[g + 1] / max(n_agents, 1.0)
    settled = follow(level, share, adjustment, answers_at_once, new_level)
    for g in range(len(outcome)):
        outcome[g] = _share_at_rest(outcome[g], settled[g], always[g], modelled_share, noise)
    return cut_and_add(outcome, n_outcomes, mean, squares)


@compiled(nogil=True)
def _answer_traffic(
    sums: Array,
    level: Array,
    adjustment: float,
    answers_at_once: bool,  # noqa: FBT001
    free_times: Array,
    time_per_flow: Array,
    toll: float,
    noise: float,
    outcome: Array,
    flow: Array,
    new_level: Array,
    time: Array,
    n_outcomes: int,
    mean: Array,
    squares: Array,
    mean_flow: Array,
    squares_of_flow: Array,
    mean_time: Array,
    squares_of_time: Array,
) -> bool:
    """Let the level follow the flows of a round, and write the outcome (compiled).

    With x the level that ``follow`` returns, y_e is that of ``road_at_rest`` at x_e, cut to [0, 1];
    the mean travel time is sum_e x_e (free_times_e + time_per_flow_e x_e).

    Parameters
    ----------
    sums : array (2, 1 + d)
        Drivers, and how many are on each road, as ``Settling.aggregate`` returns them.
    level : array (d,)
        Before the round.
    adjustment, answers_at_once, free_times, time_per_flow, toll, noise
        Of the market, times (d,).
    outcome : array (d,)
        The fundamental, which becomes the outcome in place.
    flow, new_level : array (d,)
        Written: the share of drivers on each road, and the level after it.
    time : array (1,)
        Written: the mean travel time.
    n_outcomes, mean, squares
        Of ``Moments``: how many there are with this one; the others (d,) are updated in place.
    mean_flow, squares_of_flow, mean_time, squares_of_time : arrays (d,) and (1,)
        Of the ``Moments`` of flows and of the mean travel time, updated in place.

    Returns
    -------
    bool
        Whether [0, 1] cut the outcome.
    """
    drivers = max(sums[0, 0] + sums[1, 0], 1.0)
    for e in range(len(outcome)):
        flow[e] = (sums[0, 1 + e] + sums[1, 1 + e]) / drivers
    settled = follow(level, flow, adjustment, answers_at_once, new_level)
    time[0] = 0.0
    for e in range(len(outcome)):
        time[0] += settled[e] * (free_times[e] + time_per_flow[e] * settled[e])
        outcome[e] = _road_at_rest(
            outcome[e], settled[e], free_times[e], time_per_flow[e], toll, noise
        )
    add_observation(flow, n_outcomes, mean_flow, squares_of_flow)
    add_observation(time, n_outcomes, mean_time, squares_of_time)
    return cut_and_add(outcome, n_outcomes, mean, squares)


@register.market("attendance")
class AttendanceMarket(Settling):
    """The share of agents who play each action but the first; ``start``, before the first round."""

    answers_by_kernel = True
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
        self._modelled_share = float(1 - always_shares.sum())  # of agents whose play is simulated
        self.noise = float(noise)
        self.last = columns_before_clearing(fundamental=self.goods, share=self.goods)

    def answer(self, fundamental: Array, load: Array) -> Array:
        outcome = self.begin_outcome(fundamental)
        share = np.empty(self.goods)
        level = np.empty(self.goods)
        self.clipped += _answer_crowd(
            load,
            self.level,
            self.adjustment,
            self.answers_at_once,
            self.always,
            self._modelled_share,
            self.noise,
            outcome,
            share,
            level,
            self.outcomes.count,
            self.outcomes.mean,
            self.outcomes.squares,
        )
        self.level = level
        self.last = {"fundamental": fundamental, "share": share}
        return outcome

    def rest(self, fundamental: Array, level: Array) -> Array:
        outcomes = share_at_rest(fundamental, level, self.always, self._modelled_share, self.noise)
        return np.asarray(outcomes)

    def price_impact(self, cohort_index: int) -> Array:
        n_rows = len(self.cohorts[cohort_index].loss)
        impact = self.adjustment * self._modelled_share / self.agents
        return np.full((n_rows, self.goods), impact)

    def summary(self) -> str:
        mean = self.outcomes.mean[0]
        deviation = self.outcomes.deviation()[0]
        who = "of the agents take part on average"
        always = float(self.always[0])
        if always:
            who = f"take part on average, with the {100 * always:.1f} % who always do"
        return (
            f"Market: {100 * mean:.1f} % {who}, with a standard "
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
    answers_by_kernel = True
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
        self.toll = float(toll)
        self.noise = float(noise)
        self.flows = Moments(n_roads)  # of the roads, over the rounds
        self.times = Moments(1)  # of the mean travel time
        self.last = columns_before_clearing(fundamental=n_roads, flow=n_roads, time=1)

    def answer(self, fundamental: Array, load: Array) -> Array:
        outcome = self.begin_outcome(fundamental)
        flow = np.empty(self.goods)
        level = np.empty(self.goods)
        time = np.empty(1)
        self.clipped += _answer_traffic(
            load,
            self.level,
            self.adjustment,
            self.answers_at_once,
            self.free_times,
            self.time_per_flow,
            self.toll,
            self.noise,
            outcome,
            flow,
            level,
            time,
            self.outcomes.count,
            self.outcomes.mean,
            self.outcomes.squares,
            self.flows.mean,
            self.flows.squares,
            self.times.mean,
            self.times.squares,
        )
        self.flows.count = self.outcomes.count
        self.times.count = self.outcomes.count
        self.level = level
        self.last = {"fundamental": fundamental, "flow": flow, "time": time}
        return outcome

    def rest(self, fundamental: Array, level: Array) -> Array:
        outcomes = road_at_rest(
            fundamental, level, self.free_times, self.time_per_flow, self.toll, self.noise
        )
        return np.asarray(outcomes)

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
