"""How many rounds until nobody regrets more than is wanted: by the theorem, and measured.

    theorem     the least T at which the a-priori bound for the listed losses, for realised draws
                with probability 0.99, is within the wanted regret
    family      the same for all losses that the basis spans with such coefficients, through a
                forecaster that protects the paper's cover of them (``forecaster.events.cover``)
    variation   the round from which the bound from variation was within it, in a run
    measured    the round from which the worst agent's regret was

The first two take the most that the tolerance lets the sum of positive certificates be. Where a run
ends before what is wanted, its last value is carried on by T^(-1/2), marked by a tilde.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from regretless.forecaster.events.cover import uniform_regret
from regretless.forecaster.guarantees.draws import drawn
from regretless.forecaster.guarantees.norms import centred_norm
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.unbiased import certificate_limit
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario

MOST = 1e18  # rounds; beyond, the basis itself is in the way
FAR = 1e9


@dataclass(frozen=True, eq=False)
class Asked:
    """The losses of a cohort, of which a regret is wanted; ``promises``: distinct ones of a run."""

    bound: RegretBound  # of the forecaster that it hears
    weights: Array  # (K, A, n) coefficients
    policies: int
    error: float  # the basis's delta
    promises: int

    def listed(self, rounds: int) -> float:
        """Bound the regret of these losses after so many rounds."""
        most = certificate_limit(rounds)
        bound = self.bound.with_inputs(rounds=rounds, certificate_sum=most, trusted=False)
        expected = float(bound.a_priori(self.weights, policies=self.policies).max())
        return self._whole(expected, rounds, math.log(self.promises))

    def family(self, rounds: int) -> float:
        """Bound the regret of all losses with such coefficients."""
        _, actions, size = self.weights.shape
        most, reach = certificate_limit(rounds), float(centred_norm(self.weights).max())
        expected, log_losses = uniform_regret(
            size, actions, rounds=rounds, certificate_sum=most, reach=reach, policies=self.policies
        )
        return self._whole(expected, rounds, log_losses)

    def _whole(self, expected: float, rounds: int, log_promises: float) -> float:
        """Add what the draws and the basis add whatever the mixtures."""
        actions = self.weights.shape[1]
        assignments = actions * math.log(actions + self.policies)
        known = np.array([rounds, 2.0 * rounds])
        width = 2 * (1 + 2 * self.error)
        total = float(drawn(known * width**2 / 4, log_promises + assignments, width))
        return expected + total / rounds + 2 * self.error


def least(bound: Callable[[int], float], wanted: float) -> float:
    """Return the least T at which a bound that falls with T is within what is wanted."""
    high = 1
    while bound(high) > wanted:
        high *= 2
        if high > MOST:
            return math.inf
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > wanted else (low, middle)
    return high


def reached(rounds: pd.Series[int], values: pd.Series[float], wanted: float) -> tuple[float, bool]:
    """Return from which round on values were within what is wanted, and whether it was seen."""
    if values.isna().any() or values.empty:
        return math.nan, True
    above = np.flatnonzero(values.to_numpy() > wanted)
    last = float(rounds.iloc[-1])
    if len(above) and above[-1] == len(values) - 1:
        return last * (float(values.iloc[-1]) / wanted) ** 2, False
    return float(rounds.iloc[above[-1] + 1] if len(above) else rounds.iloc[0]), True


def sample_size(scenario: Scenario, regret: float) -> pd.DataFrame:
    """Say how many rounds a wanted regret takes: by the theorem, and measured in a run.

    Parameters
    ----------
    scenario : Scenario
        It is played at its own number of rounds.
    regret : float
        The decision swap regret per round that is wanted, above 0 and below 1.

    Returns
    -------
    DataFrame
        A row per cohort to which a theorem applies: ``losses``, the cohort's name; ``n`` and
        ``delta``, size and error of its basis; and four numbers of rounds (module docstring).

    Raises
    ------
    UserError
        If the regret is out of range or no theorem applies to any cohort.

    Examples
    --------
    >>> from regretless import load
    >>> sample_size(load("crop-choice", rounds=40), 0.3)["losses"].tolist()
    ['growers']
    """
    if not 0 < regret < 1:
        raise UserError(f"regret {regret:g}: give a number above 0 and below 1")
    model = scenario.build(log_every=scenario.spec.rounds)
    model.run()
    log, rows = model.bounds_frame(), []
    for cohort, asked in promised(model):
        own = log[log["cohort"] == cohort]
        bound, measured = (own[name] for name in ("bound_from_variation", "decision_swap_regret"))
        found = {"losses": cohort, "n": asked.weights.shape[2], "delta": asked.error}
        found["theorem"] = rounds_text(least(asked.listed, regret))
        found["family"] = rounds_text(least(asked.family, regret))
        found["variation"] = rounds_text(*reached(own["round"], bound, regret))
        rows.append(found | {"measured": rounds_text(*reached(own["round"], measured, regret))})
    if not rows:
        raise UserError(f"scenario '{scenario.spec.name}': no theorem applies to any cohort of it")
    return pd.DataFrame(rows)


def promised(model: MarketModel) -> Iterator[tuple[str, Asked]]:
    """Yield the cohorts to which a theorem applies, with what it asks of them."""
    members = list(zip(model.game.cohorts, model.guarantees, strict=True))
    promises = sum(len(cohort.loss) for cohort, promise in members if promise.bound)
    for cohort, promise in members:
        block = model.game.blocks[cohort.block]
        players, weights = block.forecaster.instances, cohort.coefficients[1]
        if promise.bound and len(players) == 1:
            about = players[0].bias_bound(), weights, len(cohort.policies), block.basis.error
            yield cohort.name, Asked(*about, promises)


def rounds_text(rounds: float, seen: bool = True) -> str:  # noqa: FBT001, FBT002 - as ``reached`` has it
    """Write a number of rounds, with a tilde where it was not seen but carried on."""
    if math.isnan(rounds):
        return "none"
    if math.isinf(rounds):
        return "never"
    return f"{'' if seen else '~'}{rounds:,.0f}" if rounds < FAR else f"{rounds:.1e}"
