"""What a scenario file may say of the forecaster: its kind, models, and the reference of them."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, FiniteFloat, Tag, field_validator, model_validator

from regretless.forecaster.events.quantile_grid import (
    MAX_STEPS,
    checked_levels,
)
from regretless.forecaster.models.aggregate import MODELS_OF_PANEL, PANEL, PANEL_WITH_ERRORS
from regretless.scenarios.config import reasons
from regretless.scenarios.config.tables import ByName, Name, Open, Strict, Variant

Payoffs = dict[Name, list[FiniteFloat] | list[list[FiniteFloat]]]  # of a planner, by cohort
KINDS = {  # beside every model
    "decision-swap": "The forecaster of the theorem: small decision swap regret for every agent.",
    "none": "No forecast: agents learn, or decide for themselves.",
    "calibration": "The older recipe: calibrated, and unbiased where a policy suggests an action.",
}
AGGREGATE = "aggregate"  # the reference that is made of all models


class ReferenceSpec(Open):
    """The model whose forecast is kept where it is good; the parameters are the model's own."""

    kind: Name = "none"
    """"none", "aggregate" of all models, the name of one of them, or of another model."""

    @model_validator(mode="after")
    def _refuse_parameters_of_no_model(self) -> "ReferenceSpec":
        if self.parameters and self.kind in {"none", AGGREGATE}:
            given_key = next(iter(self.parameters))
            fault = f'{given_key} means nothing with kind = "{self.kind}"'
            raise ValueError(f"{fault}; drop it, or name a model that takes it")
        return self


class ModelSpec(Open):
    """A model; the parameters are its own."""

    kind: Name
    """The name of a model: a registered one, or forecasts in the data file."""


class ForecasterSpec(Variant):
    """The forecaster: who predicts, and how; its kind decides which subclass reads the table."""

    kind: Name = "decision-swap"
    """The forecaster of the theorem, or the name of a model."""
    weights: Literal["adaptive", "second-order", "exponential"] = "adaptive"
    """How the biases of events are weighed."""
    events: Literal["coordinates", "losses", "everyone"] | None = None
    """What is kept unbiased: all numbers of the forecast, or what listed losses need (the default
    where there are models). "everyone", for one outcome, adds what losses need that are not listed.
    To "calibration" the cells of its grid are the listed losses."""
    delay: Annotated[int, Field(ge=0)] = 0
    """How many rounds late an outcome reaches the forecaster."""
    intervals: bool = False
    """Whether regret is kept small over every stretch of rounds, and not from the start alone."""
    off_ties: bool = False
    """Whether predictions keep off ties, so that who breaks them otherwise is served as well."""
    objective: Literal["none", "welfare"] | Payoffs = "none"
    """What it prefers among forecasts that are good enough: how well off agents would be
    ("welfare"), or by cohort what each action is worth to a planner: a number per action, or a list
    of them per outcome, for each unit of it."""
    hull: Literal["basis", "image"] = "basis"
    """Where predictions lie: in the basis's box or simplex, or among means of possible values."""
    models: dict[Name, ModelSpec] | None = None
    """Models that nobody shall regret not to have followed: a list of names ("panel" for those that
    come with the forecaster, "panel-with-errors" for these and two that carry their past errors)
    and tables. By default, with data: the panel and the forecasts in the file; "panel-with-errors"
    in place of the panel where there is one outcome."""
    reference: Annotated[ReferenceSpec, ByName] = ReferenceSpec()
    """A model whose forecast is kept where it is good; where there are models, their aggregate."""
    band: Annotated[float, Field(ge=0)] | None = None
    """How many times its noise a bias must exceed before the reference is corrected."""
    give_up: Annotated[float, Field(ge=0)] | None = None
    """How many times what chance explains the reference may cost before any correction begins."""

    quantiles: list[FiniteFloat] | None = None
    """Levels between 0 and 1 whose quantiles of every outcome are announced each round, with a
    bound on how many outcomes lie below them, as a block of its own."""
    quantile_steps: Annotated[int, Field(ge=2, le=MAX_STEPS)] | None = None
    """Steps of the grid of values of an announced quantile, from 0 to 1; by default 40."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that are handed on to the maker of the kind."""
        return {}

    @field_validator("quantiles")
    @classmethod
    def _check_quantiles(cls, quantiles: list[float] | None) -> list[float] | None:
        return list(checked_levels("quantiles", quantiles)) or None

    @field_validator("models", mode="before")
    @classmethod
    def _name_models(cls, models: Any) -> Any:
        """Turn a name, or a list of names and tables, into tables by name."""
        if isinstance(models, str):
            models = [models]
        if not isinstance(models, list):
            return models
        named_tables: dict[str, Any] = {}
        for entry in models:
            if isinstance(entry, str) and entry in MODELS_OF_PANEL:
                entry_tables = {name: dict(table) for name, table in MODELS_OF_PANEL[entry].items()}
            elif isinstance(entry, str):
                entry_tables = {entry: {"kind": entry}}
            elif isinstance(entry, dict) and "kind" in entry:
                table = dict(entry)
                name = str(table.pop("name", table["kind"]))
                entry_tables = {name: table}
            else:
                hint = "write a name, or { kind = ..., rate = ... }"
                raise ValueError(f"{entry!r} is no model; {hint}")
            for name, table in entry_tables.items():
                if name in named_tables:
                    raise ValueError(f"two models are called '{name}'; give one another name = ...")
                named_tables[name] = table
        return named_tables

    @model_validator(mode="after")
    def _complete(self) -> "ForecasterSpec":
        self._choose_reference()
        return self

    def _choose_reference(self) -> None:
        """Let the reference be one of the models, or their aggregate.

        A reference that is no model yet becomes one, so that nobody regrets not following it.
        """
        if not self.models:
            return
        if AGGREGATE in self.models:
            raise ValueError(f"models: '{AGGREGATE}' is the name of their mean; give another name")
        kind = self.reference.kind
        parameters = self.reference.parameters
        is_listed = kind in self.models and not parameters
        if kind == "none":
            self.reference = ReferenceSpec(kind=AGGREGATE)
        elif kind != AGGREGATE and not is_listed:
            name = "reference" if kind in self.models else kind
            self.models[name] = ModelSpec(kind=kind, **parameters)
            self.reference = ReferenceSpec(kind=name)

    def settle(self, forecasts: Iterable[str] | None, *, n_outcomes: int) -> None:
        """Fill in the models and events that depend on the rest of the file.

        Parameters
        ----------
        forecasts : iterable of str, optional
            Forecasts in the data file; None if the scenario has no data. With data the panel and
            these are the models, where the file names none.
        n_outcomes : int
            How many outcomes the data have. With one the panel is that with errors: newsvendors
            lose less with it, while with several outcomes no loss was lower.

        Raises
        ------
        ValueError
            If a key speaks of a reference, or of quantiles, and there is none.
        """
        is_decision_swap = self.kind == "decision-swap"
        if self.models is None and is_decision_swap and forecasts is not None:
            panel = PANEL_WITH_ERRORS if n_outcomes == 1 else PANEL
            tables = panel | {name: {"kind": name} for name in forecasts}
            self.models = {name: ModelSpec(**table) for name, table in tables.items()}
            self._choose_reference()
        if self.events is None:
            self.events = "losses" if is_decision_swap and self.models else "coordinates"
        if self.quantile_steps is not None and "quantiles" not in self.model_fields_set:
            hint = "is the grid of quantiles; add quantiles = [0.05, 0.95]"
            raise ValueError(f"forecaster.quantile_steps = {self.quantile_steps} {hint}")
        if self.reference.kind != "none":
            return
        for key in ("band", "give_up"):
            value = vars(self)[key]
            if value is not None:
                hint = 'needs a reference; add reference = "running-mean"'
                raise ValueError(f"forecaster.{key} = {value}: {hint}")


class DecisionSwapSpec(ForecasterSpec, Strict):
    """The forecaster of the theorem: small decision swap regret for every agent."""

    kind: Literal["decision-swap"] = "decision-swap"


class CalibrationSpec(ForecasterSpec, Strict):
    """The older recipe: calibrated, and unbiased where a policy suggests an action."""

    kind: Literal["calibration"]
    cells: Annotated[int, Field(ge=2)] | None = None
    """How many grid points there are per coordinate; by default the most that leave 1,000."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that are handed on to the maker."""
        return {} if self.cells is None else {"cells": self.cells}


class NoForecastSpec(ForecasterSpec, Strict):
    """No forecast: agents learn, or decide for themselves."""

    BARRED: ClassVar = reasons.SILENT
    kind: Literal["none"]


class BaselineSpec(ForecasterSpec, Open):
    """A model, registered or forecasts in the data file, that forecasts alone."""

    BARRED: ClassVar = reasons.BASELINE
    kind: Name
    parameters = Open.parameters


def _choose_branch(table: Any) -> str:
    """Return the tag of the model that reads a [forecaster] table."""
    values = table if isinstance(table, dict) else getattr(table, "__dict__", {})
    kind = values.get("kind", "decision-swap")
    return kind if kind in reasons.OURS else "baseline"


AnyForecasterSpec = Annotated[
    Annotated[DecisionSwapSpec, Tag("decision-swap")]
    | Annotated[CalibrationSpec, Tag("calibration")]
    | Annotated[NoForecastSpec, Tag("none")]
    | Annotated[BaselineSpec, Tag("baseline")],
    Discriminator(_choose_branch),
]
