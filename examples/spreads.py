"""Does a public forecast narrow spreads when everybody hears it?

What a unit is worth follows a noisy season. Two market makers quote around what they expect it to
be and learn their spread (regret matching). Four informed traders know the value; six others have
to buy or to sell, and pay up to 0.15 more than they expect the unit to be worth. Who hears the
forecast expects what it says, who does not expects 1/2. Controls: nobody hears it, makers or the
six alone do, and all hear the last value (not corrected for bias) or a calibrated forecast
without a model, which says less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load, register
from regretless.agents.cohorts.traders import Trader

ROUNDS, SEEDS = 500, range(5)
CENTRES, SPREADS = np.arange(2, 15) / 16, np.arange(1, 13) / 32  # of the makers' quotes
LIMITS = np.arange(33) / 32
VALUE = {"kind": "cyclic", "outcomes": ["value"], "period": 60.0, "amplitude": 0.35}
FORECAST = {"kind": "decision-swap", "reference": {"kind": "exponential-smoothing", "rate": 0.5}}
CASES: dict[str, tuple[dict[str, Any], bool, bool]] = {  # forecast; whether makers, others hear it
    "nobody": (FORECAST, False, False),
    "makers": (FORECAST, True, False),
    "the six": (FORECAST, False, True),
    "all": (FORECAST, True, True),
    "all, last value": ({"kind": "last-value"}, True, True),
    "all, no model": ({"kind": "calibration"}, True, True),
}


class Hearing(Trader):
    """Trades by the forecast, or by 1/2 if it does not hear it."""

    def __init__(self, loss: Any, rng: np.random.Generator, *, hears: Any = True) -> None:
        super().__init__(loss, rng)
        self.hears = np.broadcast_to(hears, len(loss))

    def expected(self, forecasts: Any) -> np.ndarray:
        """Return what each expects a unit to be worth (N,)."""
        return np.where(self.hears, forecasts.label[:, 0], 0.5)


@register.agent("centred-maker")
class CentredMaker(Hearing):
    """Quotes around what it expects, at a spread that it learns by regret matching (plus)."""

    def __init__(self, loss: Any, rng: np.random.Generator, *, hears: Any = True) -> None:
        super().__init__(loss, rng, hears=hears)
        self.regret = np.zeros((len(loss), len(SPREADS)))

    def act_many(self, forecasts: Any, contexts: Any) -> np.ndarray:
        """Return probabilities of all pairs of a centre and a spread (N, A)."""
        agents = np.arange(len(self.loss))
        self.at = agents, np.abs(CENTRES[:, None] - self.expected(forecasts)).argmin(0)
        positive = self.regret + 1e-12  # even at the start
        self.strategy = positive / positive.sum(1, keepdims=True)
        pairs = np.zeros((len(agents), len(CENTRES), len(SPREADS)))
        pairs[self.at] = self.strategy
        return pairs.reshape(len(agents), -1)

    def learn_many(self, losses: np.ndarray, outcome: np.ndarray) -> None:
        """Learn from the exact loss of every spread at the centre that it chose."""
        own = losses.reshape(len(losses), len(CENTRES), len(SPREADS))[self.at]
        self.regret += (self.strategy * own).sum(1, keepdims=True) - own
        self.regret = np.maximum(self.regret, 0.0)


@register.agent("needy")
class Needy(Hearing):
    """Buys or sells, by the toss of a coin, at up to 0.15 from what it expects."""

    def act_many(self, forecasts: Any, contexts: Any) -> np.ndarray:
        """Return the order with the limit that trades most (N,)."""
        side = np.where(self.rng.random(len(self.loss)) < 0.5, 1.0, -1.0)[:, None]
        dearest = self.expected(forecasts)[:, None] + 0.15 * side
        units, limit = self.orders.units[..., 0], self.orders.limit[..., 0]
        fine = (units == side) & (side * (dearest - limit) >= 0)
        return np.where(fine, side * limit, -np.inf).argmax(1)


QUOTES = [[10, max(c - s / 2, 0), 0, -10, min(c + s / 2, 1), 0] for c in CENTRES for s in SPREADS]
ORDERS = [[0, 0, 0], *([side, limit, 0] for side in (1, -1) for limit in LIMITS)]


def cohort(name: str, count: int, menu: Any, **keys: Any) -> dict[str, Any]:
    """Describe agents who choose from a menu of orders."""
    own = {"common": 1.0, "menu": np.array(menu, dtype=float).tolist(), "rests": name == "makers"}
    own |= {"most": 20.0} if name == "makers" else {}
    sent = {"name": name, "utility": "orders", "count": count, "actions": len(menu)}
    return sent | {"response": name, "parameters": own, "measures": ["swap"]} | keys


def spread(case: str, seed: int) -> float:
    """Mean spread of the second half of a run."""
    forecast, makers, needy = CASES[case]
    cohorts = [
        cohort("makers", 2, QUOTES, response="centred-maker", settings={"hears": makers}),
        cohort("informed", 4, ORDERS, signal={"noise": 0.0}),
        cohort("needy", 6, ORDERS, settings={"hears": needy}),
    ]
    keys = {"forecaster": forecast, "cohort": cohorts, "adversary": VALUE | {"concentration": 15.0}}
    keys |= {"market.ticks": 64, "market.latency": {"informed": 1.0, "needy": 1.0}}
    model = load("adverse-selection", rounds=ROUNDS, **keys).build(seed=seed, log_every=10**6)
    model.run()
    quotes = model.quotes_frame().query("round >= @ROUNDS / 2")
    return float((quotes["ask"] - quotes["bid"]).mean())


runs = pd.DataFrame(
    [{"hear": case, "seed": seed, "spread": spread(case, seed)} for case in CASES for seed in SEEDS]
)
means = averages(runs, ["hear"], "spread")
of = means.set_index("hear").T
answer = (
    f"Is the spread below that where nobody hears the forecast, {said(of['nobody'])}? Where all "
    f"hear it: {below(of['all'], of['nobody'])}, {said(of['all'])}; makers alone: "
    f"{below(of['makers'], of['nobody'])}, {said(of['makers'])}; the six alone: "
    f"{below(of['the six'], of['nobody'])}, {said(of['the six'])}. Below that with the last "
    f"value? {below(of['all'], of['all, last value'])}, {said(of['all, last value'])}. With a "
    f"calibrated forecast? {below(of['all'], of['all, no model'])}, {said(of['all, no model'])}."
)
figure, axes = sheet("Spread, by who hears which forecast", "mean spread")
bars(axes, means.assign(what="spread"), "what", "hear")
axes.tick_params(axis="x", labelsize=8)
finish("spreads", means, figure, answer)
