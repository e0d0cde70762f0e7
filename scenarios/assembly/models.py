"""From the names of models to models of a block's numbers, and what these suggest to a cohort."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.events.protected import LossTable, ProtectedLosses, best_responses
from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.outcomes import ColumnForecast
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.game.round import Block
from regretless.market.losses.basis import Basis
from regretless.market.regret.model_comparison import ModelComparison, NotCompared
from regretless.scenarios.assembly.cohorts import Placement
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.forecaster import AGGREGATE, ForecasterSpec

OWN = "a name of your own needs --import MODULE"


@dataclass(frozen=True)
class Models:
    """The models that a scenario may name: forecasts in its data, and registered ones.

    Parameters
    ----------
    data : DataSpec or None
    """

    data: DataSpec | None = None

    def known(self) -> list[str]:
        """Names of all models."""
        return [*(self.data.forecasts if self.data else ()), *register.forecaster.names()]

    def made(self, where: str, kind: str, basis: Basis, **parameters: Any) -> Forecaster:
        """Make a model that predicts s(y) of a basis.

        A registered maker is given the number n of functions, and the basis if it takes one.

        Raises
        ------
        UserError
            If the name is unknown, a parameter does not fit, or it makes no model.
        """
        if self.data is not None and kind in self.data.forecasts:
            return self._column(where, kind, basis, parameters)
        if kind not in register.forecaster:
            raise UserError(f"unknown {where}; {closest(kind, self.known())}; {OWN}")
        maker = register.forecaster[kind]
        asked = inspect.signature(maker).parameters
        given = {"basis": basis} if "basis" in asked and "basis" not in parameters else {}
        model = construct(where, maker, basis.size, **given, **parameters)
        try:
            return adapted(model, basis.size, basis)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error

    def _column(
        self, where: str, name: str, basis: Basis, parameters: dict[str, Any]
    ) -> Forecaster:
        """Make a model of the forecasts that stand in the data."""
        assert self.data is not None  # noqa: S101 - it has such forecasts
        for key in parameters:
            raise UserError(f"{where}: forecasts in the data take no parameters; drop '{key}'")
        levels = self.data.forecasts[name].levels
        return ColumnForecast(basis, columns=self.data.features_of(name), levels=levels)

    def together(self, spec: ForecasterSpec, basis: Basis) -> Aggregate:
        """Make the models of a forecaster, which predicts as its base: one of them, or of all."""
        models = {
            name: self.made(f"model '{name}'", table.kind, basis, **table.parameters)
            for name, table in (spec.models or {}).items()
        }
        chosen = None if spec.reference.kind == AGGREGATE else spec.reference.kind
        return Aggregate(models, basis.size, chosen=chosen)


def followed(seat: Placement, block: Block) -> NotCompared:
    """Score what a cohort would lose with the models of its block, policies and fixed actions."""
    forecaster, group, cohort = block.forecaster, seat.group, seat.cohort
    sizes = len(cohort.policies), cohort.loss.actions
    if forecaster.models and group is not None and not seat.lies:  # models would suit the report
        told = Suggestions(forecaster, group, seat.lines)
        return ModelComparison(forecaster.models, cohort.counts, sizes=sizes, suggest=told)
    return ModelComparison((), cohort.counts, sizes=sizes, suggest=Nothing(len(cohort.counts)))


@dataclass(frozen=True)
class Nothing:
    """What no models suggest to so many rows: (K, 0)."""

    rows: int

    def __call__(self) -> Indices:
        """Return the empty table."""
        return np.zeros((self.rows, 0), dtype=np.intp)

    def at(self, rows: Indices) -> Callable[[Array], Indices]:
        """Return a function that tells the same some of the rows."""
        own = Nothing(len(rows))
        return lambda _: own()


@dataclass(frozen=True, eq=False)
class Suggestions:
    """What the models of a block suggest to the rows of a cohort in the open round: (K, M).

    Parameters
    ----------
    lines : slice or int array (K,)
        Which losses of the group stand for the rows.
    """

    forecaster: Forecaster
    group: ProtectedLosses
    lines: slice | Indices

    def __call__(self) -> Indices:
        """Ask the forecaster, who has worked it out for the losses that it protects."""
        return self.forecaster.suggested(self.group)[self.lines]

    def at(self, rows: slice | Indices) -> Callable[[Array], Indices]:
        """Return a function that tells what points (M, n) suggest to some of the rows."""
        lines = np.arange(len(self.group.offset))[self.lines][rows]
        own = ProtectedLosses(self.group.offset[lines], self.group.weights[lines])
        return partial(best_responses, LossTable.of([own]))
