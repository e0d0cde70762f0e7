"""The seat of a cohort: what its agents see, can pay for and are compared with.

``make_seat`` is the last step in ``build`` that concerns one cohort. The models of a block are
named, and suggest actions to the cohorts that are compared with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.game.budget import UNLIMITED, BudgetConstraint, Unlimited
from regretless.market.game.market import Market
from regretless.market.game.protocols import Cohort, Forecaster
from regretless.market.game.round import Block
from regretless.market.game.seats import PUBLIC, NoSignal, Seat, Signal
from regretless.market.regret.model_comparison import NOT_COMPARED, Comparison, ModelComparison
from regretless.scenarios.assembly.cohorts import ServedCohort
from regretless.scenarios.assembly.construct import drawn_values
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.cohort import CohortSpec


def make_seat(
    served: ServedCohort,
    block: Block,
    market: Market | None,
    scenario: ResolvedScenario,
    seed: int,
    *,
    n_outcomes: int,
) -> Seat:
    """Seat a cohort that hears a block; ``n_outcomes`` is the number d of coordinates.

    UserError if its signal or its budget constraint does not fit.
    """
    return Seat(
        cohort=served.cohort,
        attendance=served.attendance,
        signal=make_signal(served.spec, scenario, seed, n_outcomes=n_outcomes),
        budget=make_budget(served.spec, served.cohort, market, seed),
        comparison=(
            compare_with_models(served, block) if scenario.spec.logs == "full" else NOT_COMPARED
        ),
    )


def make_signal(
    spec: CohortSpec, scenario: ResolvedScenario, seed: int, *, n_outcomes: int
) -> NoSignal:
    """Make what each of a cohort's agents sees of the outcome alone."""
    signal = spec.signal
    if signal is None:
        return PUBLIC
    where = f"cohort.{spec.name}.signal"
    rng = stream(seed, "cohort", spec.name, "noise")
    noise = np.asarray(drawn_values(f"{where}.noise", signal.noise, rng, spec.count))
    if noise.dtype.kind not in "iuf" or noise.ndim > 1 or noise.min() < 0:
        raise UserError(f"{where}.noise = {signal.noise}: give numbers of at least 0")
    known_names: list[int | str] = [*range(n_outcomes), *scenario.spec.outcome_names]
    if signal.coordinate not in known_names:
        hint = closest(str(signal.coordinate), map(str, known_names))
        raise UserError(f"{where}.coordinate = {signal.coordinate!r}: no outcome; {hint}")
    return Signal(
        signal.name,
        known_names.index(signal.coordinate) % n_outcomes,  # the names follow the numbers
        noise=np.broadcast_to(noise.astype(np.float64), spec.count),
        rng=stream(seed, "referee", "signal", spec.name),
    )


def make_budget(spec: CohortSpec, cohort: Cohort, market: Market | None, seed: int) -> Unlimited:
    """Return what limits a cohort's agents to what they can pay for."""
    if not spec.budget_constraint:
        return UNLIMITED
    if market is None or type(market).affordable is Market.affordable:
        where = f"cohort.{spec.name}.budget_constraint"
        raise UserError(f"{where}: no market says what its agents can afford; drop it")
    return BudgetConstraint(cohort, stream(seed, "referee", "means", spec.name))


def compare_with_models(served: ServedCohort, block: Block) -> Comparison:
    """Score what a cohort would lose with the models of its block, policies and fixed actions."""
    cohort = served.cohort
    models = block.forecaster.models
    protected = served.protected
    if not models or served.misreports:  # models would suit what it reports
        protected = None
    if protected is None:
        models = ()
    protected_index = served.protected_index
    if protected is not None:
        every_loss = np.arange(len(protected.offset))
        if not isinstance(protected_index, slice) and np.array_equal(protected_index, every_loss):
            protected_index = slice(None)  # what is suggested is not copied then
    suggest = Suggestions(block.forecaster, protected, protected_index, len(cohort.counts))
    sizes = (len(cohort.policies), cohort.loss.actions)
    return ModelComparison(models, cohort.counts, sizes=sizes, suggest=suggest)


@dataclass(frozen=True, eq=False)
class Suggestions:
    """What the models of a block suggest to the K rows of a cohort in the open round: (K, M).

    ``protected_index`` (slice or int array (K,)): which of the protected losses stand for the rows;
    nothing is suggested to a cohort for which nothing is protected.
    """

    forecaster: Forecaster
    protected: ProtectedLosses | None
    protected_index: slice | Indices
    rows: int

    def __call__(self) -> Indices:
        """Ask the forecaster, who has worked it out for the losses that it protects."""
        if self.protected is None:
            return self._nothing
        suggestions = self.forecaster.suggested(self.protected)
        if isinstance(self.protected_index, slice):
            return suggestions[self.protected_index]
        return suggestions.take(self.protected_index, axis=0)  # five times as fast as an index

    @cached_property
    def _nothing(self) -> Indices:
        """No suggestions to each row (K, 0)."""
        return np.zeros((self.rows, 0), dtype=np.intp)

    def at(self, rows: slice | Indices) -> Callable[[Array], Indices]:
        """Return a function that tells what points (M, n) suggest to some of the rows."""
        if self.protected is None:
            n_chosen = len(np.arange(self.rows)[rows])
            return lambda _: np.zeros((n_chosen, 0), dtype=np.intp)
        chosen = np.arange(len(self.protected.offset))[self.protected_index][rows]
        losses = ProtectedLosses(self.protected.offset[chosen], self.protected.weights[chosen])
        return LossTable([losses]).best_responses
