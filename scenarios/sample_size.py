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

MAX_ROUNDS = 1e18  # where a bound is not small enough by then, the basis itself is in the way
SCIENTIFIC_NOTATION_FROM = 1e9  # rounds


@dataclass(frozen=True, eq=False)
class PromisedLosses:
    """The losses of a cohort to which a theorem applies.

    Attributes
    ----------
    bound : RegretBound
        Of the forecaster that the cohort hears.
    weights : array (K, A, n)
        The coefficients of the K losses in the basis.
    policies : int
        How many policies they are compared with, beside constant actions.
    basis_error : float
        The error of the basis, delta.
    n_promises : int
        How many distinct losses of the run have a promise; the draws are bounded for all of them.
    """

    bound: RegretBound
    weights: Array
    policies: int
    basis_error: float
    n_promises: int

    def listed_losses_bound(self, rounds: int) -> float:
        """Return the bound on the regret of these losses after so many rounds."""
        bound = self.bound.with_inputs(
            rounds=rounds, certificate_sum=certificate_limit(rounds), trusted=False
        )
        expected_regret = float(bound.a_priori(self.weights, policies=self.policies).max())
        return self._with_draws_and_basis(expected_regret, rounds, math.log(self.n_promises))

    def family_bound(self, rounds: int) -> float:
        """Return the bound on the regret of all losses with such coefficients."""
        _, n_actions, basis_size = self.weights.shape
        expected_regret, log_cover_size = uniform_regret(
            basis_size,
            n_actions,
            rounds=rounds,
            certificate_sum=certificate_limit(rounds),
            reach=float(centred_norm(self.weights).max()),
            policies=self.policies,
        )
        return self._with_draws_and_basis(expected_regret, rounds, log_cover_size)

    def _with_draws_and_basis(
        self, expected_regret: float, rounds: int, log_promises: float
    ) -> float:
        """Add what realised draws and the error of the basis add, whatever the mixtures are."""
        n_actions = self.weights.shape[1]
        log_assignments = n_actions * math.log(n_actions + self.policies)
        size_and_variation = np.array([rounds, 2.0 * rounds])
        width = 2 * (1 + 2 * self.basis_error)
        cost_of_draws = float(
            drawn(size_and_variation * width**2 / 4, log_promises + log_assignments, width)
        )
        return expected_regret + cost_of_draws / rounds + 2 * self.basis_error


def least_rounds(bound: Callable[[int], float], regret: float) -> float:
    """Return the least T, within a thousandth, at which a bound that falls with T is at most this.

    Infinite where even ``MAX_ROUNDS`` are not enough.
    """
    high = 1
    while bound(high) > regret:
        high *= 2
        if high > MAX_ROUNDS:
            return math.inf
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        if bound(middle) > regret:
            low = middle
        else:
            high = middle
    return high


def rounds_until(
    rounds: pd.Series[int], values: pd.Series[float], regret: float
) -> tuple[float, bool]:
    """Return from which round on values stay within a regret, and whether that was seen.

    If they never do, the last value is carried on by T^(-1/2). NaN where a value is missing.
    """
    if values.isna().any() or values.empty:
        return math.nan, True
    rows_above = np.flatnonzero(values.to_numpy() > regret)
    if not len(rows_above):
        return float(rounds.iloc[0]), True
    last_row_above = rows_above[-1]
    if last_row_above == len(values) - 1:
        last_round = float(rounds.iloc[-1])
        return last_round * (float(values.iloc[-1]) / regret) ** 2, False
    return float(rounds.iloc[last_row_above + 1]), True


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
    log = model.bounds_frame()
    rows = []
    for cohort, losses in promised_losses(model):
        logged = log[log["cohort"] == cohort]
        by_variation = rounds_until(logged["round"], logged["bound_from_variation"], regret)
        by_measure = rounds_until(logged["round"], logged["decision_swap_regret"], regret)
        rows.append(
            {
                "losses": cohort,
                "n": losses.weights.shape[2],
                "delta": losses.basis_error,
                "theorem": format_rounds(least_rounds(losses.listed_losses_bound, regret)),
                "family": format_rounds(least_rounds(losses.family_bound, regret)),
                "variation": format_rounds(*by_variation),
                "measured": format_rounds(*by_measure),
            }
        )
    if not rows:
        raise UserError(f"scenario '{scenario.spec.name}': no theorem applies to any cohort of it")
    return pd.DataFrame(rows)


def promised_losses(model: MarketModel) -> Iterator[tuple[str, PromisedLosses]]:
    """Yield the name and the losses of each cohort to which a theorem applies."""
    members = list(zip(model.game.cohorts, model.guarantees, strict=True))
    n_promises = sum(len(cohort.loss) for cohort, guarantee in members if guarantee.bound)
    for cohort, guarantee in members:
        block = model.game.blocks[cohort.block]
        instances = block.forecaster.instances
        if guarantee.bound and len(instances) == 1:
            losses = PromisedLosses(
                bound=instances[0].bias_bound(),
                weights=cohort.coefficients[1],
                policies=len(cohort.policies),
                basis_error=block.basis.error,
                n_promises=n_promises,
            )
            yield cohort.name, losses


def format_rounds(rounds: float, seen: bool = True) -> str:  # noqa: FBT001, FBT002 - as ``rounds_until`` returns it
    """Return a number of rounds as text, with a tilde where it was not seen but carried on."""
    if math.isnan(rounds):
        return "none"
    if math.isinf(rounds):
        return "never"
    if rounds >= SCIENTIFIC_NOTATION_FROM:
        return f"{rounds:.1e}"
    return f"{rounds:,.0f}" if seen else f"~{rounds:,.0f}"
