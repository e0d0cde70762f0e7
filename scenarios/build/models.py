"""From the names of models in a scenario to models of a block's numbers."""

import inspect
from dataclasses import dataclass
from typing import Any

from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.base import Base
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.outcomes import ColumnForecast
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.basis import Basis
from regretless.scenarios.build.construct import construct
from regretless.scenarios.spec.data import DataSpec
from regretless.scenarios.spec.forecaster import AGGREGATE, ForecasterSpec


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

    def made(self, where: str, kind: str, basis: Basis, **parameters: Any) -> Base:
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
            raise UserError(f"unknown {where}; {closest(kind, self.known())}")
        maker = register.forecaster[kind]
        asked = inspect.signature(maker).parameters
        given = {"basis": basis} if "basis" in asked and "basis" not in parameters else {}
        model = construct(where, maker, basis.size, **given, **parameters)
        try:
            return adapted(model, basis.size, basis)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error

    def _column(self, where: str, name: str, basis: Basis, parameters: dict[str, Any]) -> Base:
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
        chosen = None if spec.base.kind == AGGREGATE else spec.base.kind
        return Aggregate(models, basis.size, chosen=chosen)
