"""Models of outcomes by the names that a scenario file gives them.

Forecasters (``forecasters``) use them as baselines, references and comparators, cohorts
(``cohorts``) as advisers of their learners.
"""

import inspect
from collections.abc import Iterable
from typing import Any

from regretless.forecaster.models.aggregate import MODELS_OF_PANEL, PANEL_WITH_ERRORS, Aggregate
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.least_squares import LeastSquares
from regretless.forecaster.models.outcomes import ColumnForecast, DistributionModel
from regretless.forecaster.models.shared_distribution import (
    DistributionInBasis,
    SharedDistribution,
    is_shareable,
)
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.scenario import ScenarioSpec

IMPORT_HINT = "a name of your own needs --import MODULE"


class SharedModels:
    """What models of all blocks of a broadcast have in common: all that is of no basis.

    These are distributions of the outcome, where there are several blocks, and the features of
    regressions, of which a block may have several.
    """

    def __init__(self, *, has_several_blocks: bool) -> None:
        self._has_several_blocks = has_several_blocks
        # By the model's kind and parameters:
        self._distributions: dict[tuple[str, str], SharedDistribution] = {}
        # By the lags and seasons of their features:
        self._regressions: dict[tuple[tuple[int, ...], tuple[int, ...]], LeastSquares] = {}

    def in_basis(
        self, model: Forecaster, basis: Basis, kind: str, parameters: dict[str, Any]
    ) -> Forecaster:
        """Return a block's model, which shares what it can with an earlier one.

        Distributions share with the first one of the same kind and ``parameters``, which are those
        that the file gives, and regressions with the first one of the same features.
        """
        if type(model) is LeastSquares:
            features = tuple(model.lags), tuple(model.seasons)
            first = self._regressions.setdefault(features, model)
            if first is not model:
                model.share_regressors(first)
        elif self._has_several_blocks and is_shareable(model):
            assert isinstance(model, DistributionModel)  # noqa: S101 - all that are shareable are
            key = kind, repr(sorted(parameters.items()))
            shared = self._distributions.setdefault(key, SharedDistribution(model))
            return DistributionInBasis(shared, basis)
        return model


def make_model(
    scenario: ScenarioSpec,
    basis: Basis,
    kind: str,
    parameters: dict[str, Any],
    *,
    where: str,
    other_kinds: Iterable[str] = (),
) -> Forecaster:
    """Make a model that predicts s(y): forecasts in the data, or a registered one.

    Parameters
    ----------
    scenario : ScenarioSpec
        Its data may have forecasts.
    basis : Basis
        The functions s; a registered maker is given their number n, and the basis if it takes one.
    kind : str
        The name of forecasts in the data, or of a registered model.
    parameters : dict
        The model's own.
    where : str
        What error lines call the model.
    other_kinds : iterable of str
        What else could be meant where the kind is unknown.

    Raises
    ------
    UserError
        If the kind is unknown or a parameter does not fit.
    """
    data = scenario.data
    if data is not None and kind in data.forecasts:
        for key in parameters:
            raise UserError(f"{where}: forecasts in the data take no parameters; drop '{key}'")
        columns = data.features_of(kind)
        return ColumnForecast(basis, columns=columns, levels=data.forecasts[kind].levels)
    if kind not in register.forecaster:
        forecasts_in_data = data.forecasts if data else ()
        known_names = {*other_kinds, *forecasts_in_data, *register.forecaster.names()}
        raise UserError(f"unknown {where}; {closest(kind, known_names)}; {IMPORT_HINT}")
    maker = register.forecaster[kind]
    if "basis" in inspect.signature(maker).parameters:
        parameters = {"basis": basis, **parameters}
    model = construct(where, maker, basis.size, **parameters)
    try:
        return adapted(model, basis.size, basis)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def make_advisers(scenario: ScenarioSpec, basis: Basis, names: Iterable[str]) -> Aggregate:
    """Make the models that advise a cohort, as the members of one aggregate.

    A name is that of a model of the [forecaster] table, of the panel, one that carries its errors
    included, of forecasts in the data, or of a registered model; "panel" stands for all models of
    the panel, "panel-with-errors" for these and two that carry their errors. UserError if it is
    unknown.
    """
    tables: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in MODELS_OF_PANEL:
            tables |= MODELS_OF_PANEL[name]
            continue
        named = (scenario.forecaster.models or {}).get(name)
        if named is not None:
            tables[name] = {"kind": named.kind, **named.parameters}
        else:
            tables[name] = PANEL_WITH_ERRORS.get(name, {"kind": name})
    names_of_models = [*(scenario.forecaster.models or {}), *PANEL_WITH_ERRORS]
    models = {}
    for name, table in tables.items():
        parameters = {key: value for key, value in table.items() if key != "kind"}
        models[name] = make_model(
            scenario,
            basis,
            table["kind"],
            parameters,
            where=f"adviser '{name}'",
            other_kinds={"actions", *MODELS_OF_PANEL, *names_of_models},
        )
    return Aggregate(models, basis.size)
