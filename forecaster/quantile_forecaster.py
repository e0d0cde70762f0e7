"""The forecaster of announced quantiles in a market, and what became of its promise.

It predicts indicators of the outcome beside the outcome itself, protects the pinball losses of its
levels and keeps coverage unbiased (``events.coverage_events``). Nobody in the market responds to
it: ``[forecaster] quantiles`` adds it as a block of its own.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.forecaster.coverage import AnnouncedQuantiles, CoverageRecord
from regretless.forecaster.events.coverage_events import CoverageEvents, deviation_of_draws
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.minimax.game import HullSolver
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.weights import WeightRule
from regretless.market.core.arrays import Array
from regretless.market.records import RoundFeedback


class QuantileForecaster(UnbiasedPrediction):
    """Announces quantiles whose coverage is bounded, and counts it.

    Parameters
    ----------
    announced : AnnouncedQuantiles
        The levels and the grid.
    solver : HullSolver
    reference : Reference, optional
    rule : WeightRule
        Weighs all events.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (*UnbiasedPrediction.REMEMBERED, "record")

    def __init__(
        self,
        announced: AnnouncedQuantiles,
        solver: HullSolver,
        reference: Reference | None,
        *,
        rule: WeightRule,
    ) -> None:
        n_models = 0 if reference is None else len(reference.model.made_of)
        gains = GainEvents([announced.group], rule, models=n_models)
        self.coverage_events = CoverageEvents(
            gains.rows,
            announced.group,
            announced.grid,
            first_indicators=announced.first_indicators,
            rule=rule,
        )
        super().__init__(gains + self.coverage_events, solver, reference)
        self.record = CoverageRecord(announced)

    def observe(self, feedback: RoundFeedback) -> None:
        if self._pending is not None and feedback.outcome is not None:
            drawn = 0 if feedback.drawn is None else feedback.drawn
            self.record.note(self._pending[1].points[drawn], feedback.outcome)
        super().observe(feedback)

    def prefer(self, values: Callable[..., Array]) -> None:
        """Prefer nothing: what is announced is for coverage alone."""

    def coverage(
        self, names: Sequence[str], *, is_proved: bool, turns: Sequence[Any] = ()
    ) -> pd.DataFrame | None:
        forecasters: Sequence[QuantileForecaster] = turns or (self,)
        record = CoverageRecord(self.record.announced)
        deviations = None
        if is_proved:
            moments = [each.coverage_events.moments_of_draws for each in forecasters]
            deviations = deviation_of_draws(np.sum(moments, axis=0))
        for each in forecasters:
            record.add(each.record)
            if deviations is not None and each.time:
                bound = each.known_bound(each.coverage_events)
                deviations = deviations + each.coverage_events.deviation(bound)
        guarantee = "coverage" if is_proved else "none"
        return record.table(names, deviations, by_value=False, guarantee=guarantee)
