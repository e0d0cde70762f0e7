"""Bounds of events of coordinates: biases of either sign, and every regret through them.

An agent that best-responds to p plays a with r(a).p <= r(b).p, so that with the biases B

    T x regret <= sum_a max_c [ sum_b <r(b), B_{a, c = b}> - <r(a), B_a> ] + 2 T delta.

Against constants each term is at most D |B_a|, D = max_{a, b} ||r(a) - r(b)||_1; against a policy
at most lambda (|B_a| + sum_b |B_{a, c = b}|), where lambda = max_a ||r(a) - v||_1 for any common
v, and at most D sum_{b != a} |B_{a, c = b}|, both because a policy's cross biases add up to B_a.
With sum_a n_T(a) = T and Cauchy-Schwarz these are D, lambda (1 + sqrt A) and D sqrt(A - 1) times
sqrt(3 A T Lambda). A quantal agent adds ln(A) / eta.

**Contextual swap regret** needs the cross events alone: T x regret <= max_j sum_{a,b} max_c <r(c) -
r(a), B_{a, c_j = b}>. The A^2 events of a policy share T rounds: D A sqrt(3 T Lambda) at most.

**Simplex.** Where predictions and s(y) lie in the simplex, variations C_i of an event's coordinates
add up to at most 2 n_T(E), so that sum_i |d_i| sqrt(C_i) <= ||d||_2 sqrt(2 n_T(E)): with adaptive
weights every l1 norm above may be replaced by sqrt(2) times the l2 norm. While a reference is
trusted biases are within min(C, L(C) + 1), which is no multiple of sqrt(C), and so they count as
their greatest multiple, v sqrt(C) with v the ``reach`` of the switch test.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from regretless.forecaster.guarantees.draws import drawn
from regretless.forecaster.guarantees.norms import centred_norm, spread
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.market.core.arrays import Array
from regretless.market.losses.basis import Hull


@dataclass(frozen=True)
class CoordinateBound(RegretBound):
    """Bound on the bias of every decision and cross event, and on regret with it."""

    hull: Hull = "box"  # where predictions lie

    def a_priori(
        self, coefficients: Array, *, policies: int = 0, rounds: int | None = None
    ) -> Array:
        rounds = rounds or self.inputs.rounds
        actions = coefficients.shape[1]
        occupancy = rounds / actions  # biases are concave in occupancy: equal shares are worst
        bias = float(self.bias(occupancy))
        factor = self._norm(spread, coefficients, occupancy)
        if policies:  # biases of cells that share these rounds, relative to all in one
            of_all_cells = occupancy / actions
            of_other_cells = occupancy / (actions - 1)
            all_cells = actions * float(self.bias(of_all_cells) / bias)
            other_cells = (actions - 1) * float(self.bias(of_other_cells) / bias)
            by_other_cells = self._norm(spread, coefficients, of_other_cells) * other_cells
            greatest_centred_norm = np.maximum(
                self._norm(centred_norm, coefficients, occupancy),
                self._norm(centred_norm, coefficients, of_all_cells),
            )
            by_centred_norm = greatest_centred_norm * (1 + all_cells)
            factor = np.maximum(factor, np.minimum(by_other_cells, by_centred_norm))
        return np.asarray(factor * actions * bias / rounds)

    def contextual(self, coefficients: Array) -> Array | None:
        cells = coefficients.shape[1] ** 2  # a played action and a suggestion share the rounds
        occupancy = self.inputs.rounds / cells
        bias = float(self.bias(occupancy))
        factor = self._norm(spread, coefficients, occupancy)
        return np.asarray(factor * cells * bias / self.inputs.rounds)

    def event_bounds(self, occupancy: Array | float) -> tuple[Array, Array] | None:
        expected = self.bias(occupancy)
        variance = np.asarray(occupancy)
        variance_and_range = np.stack([variance, np.full_like(variance, np.inf)])
        of_draws = drawn(variance_and_range, math.log(self.inputs.experts), 2.0)
        return expected, expected + of_draws

    def _norm(self, norm: Callable[..., Array], coefficients: Array, occupancy: float) -> Array:
        """Take the norm that the hull allows, relative to a bias on events of this occupancy."""
        absolute = norm(coefficients)
        if self.hull != "simplex" or not self.rule.rooted:
            return absolute
        euclidean = math.sqrt(2) * norm(coefficients, order=2)
        return np.asarray(np.minimum(absolute, euclidean * self._root_over_bias(occupancy)))

    def _root_over_bias(self, occupancy: float) -> float:
        """Divide the multiple of sqrt(n_T(E)) that bounds biases at all variations by the bias.

        It is 1 in the games, where the bound is a multiple of the root.
        """
        inputs = self.inputs
        if not inputs.trusted or inputs.switch_test is None:
            return 1.0
        greatest_multiple = inputs.switch_test.reach(inputs.rounds)
        return greatest_multiple * math.sqrt(occupancy) / float(self.bias(occupancy))
