"""A bound on regret: what every theorem of the forecaster states of a run, and by which method.

``RegretBound`` holds what is known of the run (``weights.BoundInputs``) and a rule of weights,
which bounds every event's bias or gain. What follows for regret depends on the events:
``coordinate_bound``, ``gain_bound``, and for cells of one number ``universal.CellBound``.

Bounds of regret are per round, in expectation over each round's draw, without the errors of a basis
and of a response; ``draws`` adds what the draws do. ``coefficients`` (K, A, n) are those of
protected losses.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from regretless.forecaster.guarantees.norms import gain_range
from regretless.forecaster.weights import BoundInputs, WeightRule
from regretless.market.core.arrays import Array


@dataclass(frozen=True)
class RegretBound(ABC):
    """What is promised of one forecaster's events, and of regret through them."""

    bounds_both_signs: ClassVar[bool] = True  # of a bias; scalar gains are bounded from above alone

    rule: WeightRule
    inputs: BoundInputs
    # Whether it shall hold after every round so far, on either side of the moment when trust is
    # lost: for who comes and goes.
    holds_throughout: bool = False
    within: float | None = None  # range of scalar gains where predictions stay in conv s(Y)
    is_proved: bool = True  # otherwise bounds are NaN, but for what a switch test keeps
    max_rounds: int | None = None  # of a run that is longer nothing is proved either

    def with_inputs(self, **changes: Any) -> Self:
        """Return the bound with some of its inputs changed."""
        return replace(self, inputs=replace(self.inputs, **changes))

    @property
    def holds(self) -> bool:
        """Whether the bound is proved, for as many rounds as it is asked about."""
        is_short_enough = self.max_rounds is None or self.inputs.rounds <= self.max_rounds
        return self.is_proved and is_short_enough

    @property
    def exponent(self) -> float:
        """What the rule's proof leaves: Lambda for weights that adapt."""
        return self.rule.budget(self.inputs)

    def bias(self, occupancy: Array | float) -> Array:
        """Bound |B| in sup norm, or a gain, for events with this occupancy n_T(E).

        NaN where nothing is proved.
        """
        inputs = self.inputs
        if inputs.trusted:
            return self._bias_while_trusted(occupancy)
        if not self.holds:
            return np.full(np.shape(occupancy), np.nan)
        outside_band = self.rule.greatest(occupancy, self.exponent)
        in_games = inputs.band.factor * np.sqrt(occupancy) + outside_band
        if self.holds_throughout and inputs.switch_test is not None:
            return np.asarray(np.maximum(in_games, self._bias_while_trusted(occupancy)))
        return np.asarray(in_games)

    def _bias_while_trusted(self, occupancy: Array | float) -> Array:
        """Bound the same as long as a reference is trusted."""
        switch_test = self.inputs.switch_test
        if switch_test is not None and self.rule.squared:
            return switch_test.most(occupancy)
        if switch_test is not None:
            return switch_test.most_of_sizes(occupancy)
        if self.rule.squared:
            return np.full(np.shape(occupancy), math.inf)
        return np.array(occupancy, dtype=np.float64)

    def bias_at(self, variation: Array) -> Array:
        """Bound biases, or gains, of this variation so far, whatever they are."""
        # most events of a round never happen: only those that have varied are worked out
        has_varied = variation > 0
        greatest = np.zeros(variation.shape)
        greatest[has_varied] = self.bias(variation[has_varied])
        if self.rule.squared:
            return greatest
        return np.minimum(variation, greatest)

    @abstractmethod
    def a_priori(
        self, coefficients: Array, *, policies: int = 0, rounds: int | None = None
    ) -> Array:
        """Bound decision swap regret (K,), to so many ``policies`` beside the constants.

        Whatever happens in the rounds, by default those of the inputs.
        """

    def realised(self, coefficients: Array, *, policies: int = 0) -> Array | None:
        """Bound decision swap regret (K,) as drawn; None where only expectations are bounded."""
        return None

    def to_models(self, coefficients: Array) -> Array:
        """Bound the regret to each model that is a comparator (K,)."""
        return self.sum_over_actions(
            gain_range(coefficients, self.within),
            actions=coefficients.shape[1],
            extra_band_factor=self.inputs.band.extra_factor_of_models,
            rounds=self.inputs.rounds,
        )

    def contextual(self, coefficients: Array) -> Array | None:
        """Bound contextual swap regret to any one policy (K,); None where nothing is promised."""
        return None

    def event_bounds(self, occupancy: Array | float) -> tuple[Array, Array] | None:
        """Bound |B| of every event in sup norm, in expectation and as drawn; None for gains."""
        return None

    def over_window(
        self, coefficients: Array, lengths: Sequence[int], *, run: int, policies: int = 0
    ) -> Array:
        """Bound the sum of regret (K,) over intervals of a ``run``; it is 1 in a single round."""
        total = np.zeros(len(coefficients))
        for length in lengths:
            of_interval = replace(self.with_inputs(prior=length / run), holds_throughout=True)
            regret = of_interval.a_priori(coefficients, policies=policies, rounds=length)
            total += np.minimum(regret, 1.0) * length  # losses in [0, 1] regret no more a round
        return total

    def over_stay(self, coefficients: Array, *, joined: int, policies: int = 0) -> Array | None:
        """Bound the regret of an agent that came before round ``joined`` and stayed.

        None for gains of one sign: an old one far below zero may be regained. ValueError if no
        round was played since.
        """
        rounds = self.inputs.rounds
        if joined and not self.bounds_both_signs:
            return None
        if not 0 <= joined < rounds:
            raise ValueError(f"no round since round {joined} in a run of {rounds}")
        until_now = rounds * self.a_priori(coefficients, policies=policies)
        if not joined:
            return np.asarray(until_now / rounds)
        # It may have come while the reference was trusted still, whose biases are other ones.
        at_entry = replace(self.with_inputs(rounds=joined), holds_throughout=True)
        until_entry = joined * at_entry.a_priori(coefficients, policies=policies)
        return np.asarray((until_now + until_entry) / (rounds - joined))

    def sum_over_actions(
        self, scale: Array, *, actions: int, extra_band_factor: float, rounds: int
    ) -> Array:
        """Bound the sum of every action's greatest gain per round (K,), in a band of their own.

        ``scale`` (K,) is the range of the gains of each loss. Bounds are concave in occupancies, so
        that equal shares of the rounds are the worst.
        """
        occupancy = rounds / actions
        of_action = float(self.bias(occupancy)) + extra_band_factor * math.sqrt(occupancy)
        return np.asarray(scale * of_action / occupancy)
