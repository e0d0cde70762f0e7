"""Bounds of scalar events: gains of listed losses, and of the assignments of their comparators.

One expert per loss, action and comparator, gains divided by the range g of <r(c) - r(a), p - s>:
summed over actions regret is at most g sqrt(3 A T Lambda). In the box g = D; where predictions stay
in conv s(Y), expected and true losses lie in [-delta, 1 + delta] and g = 2 + 4 delta at most: no
lambda, and n nowhere. A **model**'s suggestion to each loss is such a comparator; where the models'
band is wider by y it is D y sqrt(A T) more.

**While a reference is trusted** the switch test bounds the greatest sum over actions: V <= T, and
V <= T (w / g)^2 where all best-respond, so that regrets are charged, and none exceeds w in size.

**Assignments** (``events.loss_events``, docs/theory.md, 6) have a potential beside the gains':
T x regret of k <= scale_k min_j (L + psi_j U) / eta_j, with L = A ln C + ln(J K / r) + ln P.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from regretless.forecaster.guarantees.norms import gain_range
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.switch_test import SwitchTest
from regretless.market.core.arrays import Array

ASSIGNMENT_RATES = 2.0 ** -np.arange(1, 11)  # eta
ASSIGNMENT_COSTS = -ASSIGNMENT_RATES - np.log1p(-ASSIGNMENT_RATES)  # psi


@dataclass(frozen=True)
class GainBound(RegretBound):
    """Bound on the gains of scalar events, on those of assignments, and on regret with both."""

    bounds_both_signs: ClassVar[bool] = False

    greatest_regret: float | None = None  # w, in size; None where gains are no regrets, or unknown
    losses: int = 1  # K, all that are protected
    gains: int = 1  # N, the gains of the run
    models: int = 0  # how many comparators are models

    def a_priori(
        self, coefficients: Array, *, policies: int = 0, rounds: int | None = None
    ) -> Array:
        """Bound decision swap regret (K,); policies cost a logarithm."""
        rounds_played = rounds or self.inputs.rounds
        actions = coefficients.shape[1]
        scale = gain_range(coefficients, self.within)
        by_gains = self.sum_over_actions(
            scale, actions=actions, extra_band_factor=0.0, rounds=rounds_played
        )
        assignments = (actions + policies) ** actions
        by_gains = self._within_switch_test(by_gains, assignments, scale, rounds_played)
        is_whole_run = rounds_played == self.inputs.rounds
        if self.inputs.risk < 1 or self.holds_throughout or not is_whole_run:
            return by_gains
        by_assignments = self._assignments(scale, actions, policies)
        if by_assignments is None:
            return by_gains
        return np.minimum(by_gains, by_assignments)

    def realised(self, coefficients: Array, *, policies: int = 0) -> Array | None:
        if self.inputs.risk == 1:
            return None
        scale = gain_range(coefficients, self.within)
        by_assignments = self._assignments(scale, coefficients.shape[1], policies)
        if by_assignments is not None and not self.holds:
            return np.full(len(coefficients), np.nan)
        return by_assignments

    def to_models(self, coefficients: Array) -> Array:
        by_gains = super().to_models(coefficients)
        scale = gain_range(coefficients, self.within)
        return self._within_switch_test(by_gains, self.models, scale, self.inputs.rounds)

    def assignment_level(self, actions: int, comparators: int) -> float | None:
        """Return L, by which assignments' gains are at most (L + psi_j U) / eta_j for every j.

        None without them.
        """
        inputs = self.inputs
        if inputs.trusted or not inputs.added_potential:
            return None
        log_growth = self.rule.log_growth(inputs)
        if log_growth is None:
            return None
        log_price = math.log(
            len(ASSIGNMENT_RATES)
            * self.losses
            * inputs.experts
            / (self.gains * inputs.added_potential)
        )
        return log_growth + actions * math.log(comparators) + log_price

    def _assignments(self, scale: Array, actions: int, policies: int) -> Array | None:
        """Bound decision swap regret (K,) by the assignments; None without them.

        ``scale`` (K,) is the range of the gains of each loss, with so many actions.
        """
        rounds = self.inputs.rounds
        level = self.assignment_level(actions, actions + policies + self.models)
        if level is None:
            return None
        gain: Array | float = float(((level + ASSIGNMENT_COSTS * rounds) / ASSIGNMENT_RATES).min())
        test = self.inputs.switch_test
        if test is not None:  # what was gained when the games began, at most
            action_by_action = actions * (test.limit(rounds / actions) + 1)
            tests = self._tested_losses(test) * (actions + policies) ** actions
            of_sums = replace(test, tests=tests)
            together = of_sums.limit(self._greatest_squares(scale, rounds)) + 1
            gain = gain + np.minimum(action_by_action, together)
        return np.asarray(scale * gain / rounds)

    def _within_switch_test(self, regret: Array, tests: int, scale: Array, rounds: int) -> Array:
        """Take the lesser of a regret (K,) and of what the switch test lets a trusted model cost.

        The test is of ``tests`` sums for each loss, whose gains have the range ``scale`` (K,).
        """
        test = self.inputs.switch_test
        if not self.inputs.trusted or test is None:
            return regret
        of_sums = replace(test, tests=self._tested_losses(test) * tests)
        greatest = of_sums.most(self._greatest_squares(scale, rounds))
        return np.minimum(regret, scale * greatest / rounds)

    def _greatest_squares(self, scale: Array, rounds: int) -> Array:
        """Return the greatest sum of squares (K,) of gains while a reference is trusted."""
        if self.greatest_regret is None:
            return np.full(len(scale), float(rounds))
        share_of_scale = np.minimum(self.greatest_regret / scale, 1.0)
        return np.asarray(rounds * share_of_scale**2)

    def _tested_losses(self, test: SwitchTest) -> int:
        """Count the losses that share a kind of the switch test, as ``GainEvents`` does."""
        return self.losses * test.tests // self.gains
