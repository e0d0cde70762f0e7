r"""An asset whose price follows what traders believe, and beliefs that follow what they earned.

Scenario files choose this market by the kind ``heterogeneous-beliefs``. An action is a belief h, a
rule that predicts the price; the agents are learners, or switch with ``discrete-choice`` as in
Brock and Hommes (1998).

Mathematics
-----------
x is the deviation of the price from what dividends are worth, R > 1 the gross return of a bond, n_h
the share of agents who hold belief h. Belief h predicts b_h + g_h x of the last x that is known.
A trader of constant absolute risk aversion a demands its expected excess return over a sigma^2, and
the market clears where

    R x(t) = sum_h n_h(t) (b_h + g_h x(t - 1)) + noise (fundamental(t) - 1/2).

When x(t) is known, what belief h bought one round before has earned

    u_h(t) = (x(t) - R x(t - 1)) (b_h + g_h x(t - 2) - R x(t - 1)) / (a sigma^2) - C_h,

C_h what it costs to hold it. The outcome is y_h = 1/2 + u_h / (2 span), cut to [0, 1], so that with
the utility ``affine``, the weight 2 span on its own y and 0 on the others, an action gains u_h up
to a constant.

In the code g is ``trend``, b is ``bias``, C is ``cost``, R is ``gross_return`` and a sigma^2 is
``risk``.

A known answer: fundamentalists (g = b = 0, at cost C) against trend chasers (b = 0, g > R, free),
who choose by logit at intensity beta without memory. At x = 0 the chasers' share is
1 / (1 + exp(-beta C)), and x = 0 is stable while that share times g is below R: up to

    beta* = ln(R / (g - R)) / C,

where two other rest points appear (a pitchfork), x = +- sqrt((C - ln(R / (g - R)) / beta) a sigma^2
/ ((R - 1) g)) by u of both types at rest. With R = 1.1, g = 1.2 and C = 1 beta* is ln 11.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions, Market, check_key, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import Moments

MAX_DEVIATION = 1e9  # of the price; where no belief brings it back, it passes every number


@register.market("heterogeneous-beliefs")
class HeterogeneousBeliefs(Market):
    """Traders choose among beliefs about a price, and the price follows the beliefs.

    Parameters
    ----------
    trend, bias, cost : list of float
        Of each belief, as many as outcomes; bias and cost are 0 by default.
    gross_return : float
        R, above 1.
    risk : float
        a sigma^2, above 0.
    span : float
        The profits from -span to span are the outcomes from 0 to 1; beyond they are cut.
    start : float
        The deviation of the price in the two rounds before the first.
    noise : float
        How much the fundamental moves the price.

    Attributes
    ----------
    deviations : array (2,)
        x(t - 1) and x(t - 2).
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("deviations", "size", "clipped", "rounds")
    supports_multiplicity = True
    column_labels: ClassVar[Mapping[str, str]] = {
        "deviation": "price less fundamental value",
        "share": "share of agents who hold each belief",
    }

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        trend: list[float],
        bias: list[float] | None = None,
        cost: list[float] | None = None,
        gross_return: float = 1.1,
        risk: float = 1.0,
        span: float = 5.0,
        start: float = 0.1,
        noise: float = 0.0,
    ) -> None:
        super().__init__(cohorts, rng)
        zeros = [0.0] * self.goods
        self.trend = _checked("trend", trend, self.goods)
        self.bias = _checked("bias", zeros if bias is None else bias, self.goods)
        self.cost = _checked("cost", zeros if cost is None else cost, self.goods)
        for cohort in cohorts:
            if cohort.loss.actions != self.goods:
                raise UserError(f"cohort.{cohort.name}.actions: give one for each outcome")
        check_key("gross_return", gross_return, gross_return > 1, "a number above 1")
        check_key("risk", risk, risk > 0, "a positive number")
        check_key("span", span, span > 0, "a positive number")
        self.gross_return = gross_return
        self.risk = risk
        self.span = span
        self.noise = noise
        self.deviations = np.full(2, float(start))
        self.size = Moments(1)  # of the deviation, whatever its sign
        self.rounds = 0
        self.clipped = 0  # rounds in which some profit was beyond the span
        self.last = columns_before_clearing(deviation=1, share=self.goods)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Find the price at which the beliefs clear the market; return what each has earned."""
        last, before_last = self.deviations
        share = self._shares(decisions)
        beliefs = self.bias + self.trend * last
        shock = self.noise * (float(fundamental[0]) - 0.5)
        deviation = (share @ beliefs + shock) / self.gross_return
        if not abs(deviation) <= MAX_DEVIATION:
            raise UserError(
                f"market.trend = {self.trend.tolist()}: the price is {deviation:.2g} off its "
                "fundamental value and grows without bound; lower the trends"
            )
        excess_return = deviation - self.gross_return * last
        holdings = (self.bias + self.trend * before_last - self.gross_return * last) / self.risk
        profits = excess_return * holdings - self.cost
        places = 0.5 + profits / (2 * self.span)
        outcome: Array = np.clip(places, 0.0, 1.0)
        self.rounds += 1
        self.clipped += bool((outcome != places).any())
        self.size.add(np.array([abs(deviation)]))
        self.deviations = np.array([deviation, last])
        self.last = {"deviation": np.array([deviation]), "share": share}
        return outcome

    def _shares(self, decisions: Decisions) -> Array:
        """Return the share of agents who hold each belief (d,), 0 of all where nobody is there."""
        counts = np.zeros(self.goods)
        for taken in self.taken(decisions):
            counts += taken.per_action(self.goods)
        return np.asarray(counts / max(counts.sum(), 1.0))

    def described(self) -> dict[str, Any]:
        return {
            "deviation": float(self.deviations[0]),
            "size": float(self.size.mean[0]),
            "clipped": self.clipped / max(self.rounds, 1),
        }

    def summary(self) -> str:
        return (
            f"Market: the price is {self.size.mean[0]:.4g} off its fundamental value on average, "
            f"{abs(self.deviations[0]):.4g} in the last round"
        )


def _checked(key: str, values: list[float], size: int) -> Array:
    """Return numbers (size,), one per belief; UserError unless there are so many."""
    numbers = np.asarray(values, dtype=np.float64)
    is_fine = numbers.shape == (size,) and bool(np.isfinite(numbers).all())
    check_key(key, numbers.tolist(), is_fine, f"{size} numbers, one for each outcome")
    return numbers
