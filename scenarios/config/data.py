"""What a scenario file may say of replayed data: outcomes, contexts, and users' own forecasts."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from regretless.scenarios.config.tables import Label, Name, Range, Strict

Columns = Annotated[list[Name], Field(min_length=1)]
DecimalMark = Literal[".", ","]
ThousandsMark = Literal[".", ",", " ", "'", "none"]
Level = Annotated[float, Field(gt=0, lt=1)]
TAKEN = re.compile(
    r"round|certificate|atoms|(leader_payoff|censored)(_\d+)?|(x|y|fundamental|demand|price)_\d+"
)


class ForecastColumnsSpec(Strict):
    """Forecasts of a round's outcome that were made before it: columns of the data file."""

    point: Columns | None = None
    """A column per outcome, in their order: a value that is expected."""
    levels: Annotated[list[Level], Field(min_length=1)] | None = None
    """Of the quantiles, ascending, between 0 and 1."""
    quantiles: Annotated[list[Columns], Field(min_length=1)] | None = None
    """For each outcome a column per level."""
    samples: Annotated[list[Columns], Field(min_length=1)] | None = None
    """For each outcome a column per member of an ensemble."""

    @property
    def kind(self) -> str:
        """Which of the three it is."""
        kinds = {"point": self.point, "quantiles": self.quantiles, "samples": self.samples}
        return next(kind for kind, columns in kinds.items() if columns is not None)

    @property
    def columns(self) -> list[list[str]]:
        """The columns of each outcome, in the order of levels or members."""
        return [[column] for column in self.point or ()] or self.quantiles or self.samples or []

    @model_validator(mode="after")
    def _is_one_kind(self) -> "ForecastColumnsSpec":
        if [self.point, self.quantiles, self.samples].count(None) != 2:
            raise ValueError("give exactly one of point, quantiles and samples")
        if (self.levels is None) != (self.quantiles is None):
            raise ValueError("levels go with quantiles; give both or neither")
        if self.levels is not None and self.levels != sorted(set(self.levels)):
            raise ValueError(f"levels = {self.levels} do not ascend; order them")
        n_columns = len(self.levels or self.columns[0])
        for i, columns in enumerate(self.columns):
            if len(columns) != n_columns:
                fault = f"outcome {i + 1} has {len(columns)} columns in {self.kind}"
                raise ValueError(f"{fault}; give it {n_columns}")
        return self


class DataSpec(Strict):
    """Replayed outcomes."""

    file: Name
    """A CSV or Parquet file: bundled, or a path from the scenario file."""
    outcomes: Columns
    """Columns that are forecast."""
    context: list[Name] = Field(default_factory=list)
    """Columns that everybody sees beforehand."""
    scale: dict[str, Range] = Field(default_factory=dict)
    """For each outcome the values that become 0 and 1; what is beyond is clipped."""
    clip: bool = False
    """Whether clipping is meant; else a run in which a fifth of the rows are clipped warns."""
    units: dict[str, Label] = Field(default_factory=dict)
    """For outcomes the unit that figures name, as in units = { wind = "m/s" }."""
    index: Name | None = None
    """A column, such as dates, that names each round in the logs as it stands in the file."""
    dates: Literal["day first", "month first"] | None = None
    """How dates of the index such as 03/04/2024 are written; without it their column tells it."""
    separator: str | None = None
    """The character between the values of a CSV, by default a comma, in a .tsv a tab."""
    columns: Columns | None = None
    """Names of the columns of a CSV that has no header."""
    decimal: DecimalMark | dict[Name, DecimalMark] | None = None
    """The decimal mark within numbers that are text, by default a point; or marks by column."""
    thousands: ThousandsMark | dict[Name, ThousandsMark] | None = None
    """The mark between thousands in numbers that are text, by default none; or marks by column."""
    missing: Literal["previous", "drop"] | None = None
    """Missing values: take the row before's, or drop the row; without it they are refused."""
    missing_values: list[str | int | float] = Field(default_factory=list)
    """Further texts and numbers, such as -999, that stand for a missing value."""
    censored: Name | dict[Name, Name] | None = None
    """A column that is true where the outcome is known to be at least so much; or by outcome."""
    sort: bool = False
    """Whether rows are put in the order of the index; else they are rounds as they stand."""
    series: Name | None = None
    """A column that tells several series apart that stand in one file."""
    series_value: str | None = None
    """Which of the series is played, as the column has it."""
    codes: dict[Name, dict[str, float]] = Field(default_factory=dict)
    """For a column, numbers that stand for texts or for True and False."""
    bootstrap: Annotated[int, Field(ge=1)] | None = None
    """Each seed draws the rows anew, in blocks of this mean length, in place of their order."""
    forecasts: dict[str, ForecastColumnsSpec] = Field(default_factory=dict)
    """Forecasts that the file holds beside the outcomes, in their units, by name."""

    @field_validator("separator")
    @classmethod
    def _separates(cls, separator: str | None) -> str | None:
        if separator is not None and not re.fullmatch(r"[^\w.+\-\"\r\n]", separator):
            raise ValueError(f"{separator!r} is no separator; give one character, as ';'")
        return separator

    @field_validator("censored")
    @classmethod
    def _names_an_outcome(
        cls, censored: Name | dict[Name, Name] | None
    ) -> Name | dict[Name, Name] | None:
        if censored == {}:
            raise ValueError("{} names no column; write one, or one by outcome, or drop the key")
        return censored

    @field_validator("index")
    @classmethod
    def _is_no_other_column(cls, index: str | None) -> str | None:
        if index is not None and TAKEN.fullmatch(index):
            raise ValueError(f"the table of rounds has its own column '{index}'; rename the file's")
        return index

    @field_validator("columns")
    @classmethod
    def _are_named_once(cls, columns: list[str] | None) -> list[str] | None:
        for name in columns or ():
            if (columns or []).count(name) > 1:
                raise ValueError(f"'{name}' is there twice; give each column a name of its own")
        return columns

    @model_validator(mode="after")
    def _keys_need_one_another(self) -> "DataSpec":
        if self.sort and self.index is None:
            raise ValueError("sort = true puts rows in the order of the index; give index, too")
        if self.dates is not None and self.index is None:
            raise ValueError(f"dates = '{self.dates}' is of dates in the index; give index, too")
        if self.series_value is not None and self.series is None:
            raise ValueError("series_value is a value of the column series; give series, too")
        if isinstance(self.decimal, str) and self.decimal == self.thousands:
            mark = f'"{self.decimal}"'
            raise ValueError(f"decimal and thousands are both {mark}; give two different marks")
        return self

    @model_validator(mode="after")
    def _forecasts_fit(self) -> "DataSpec":
        for name, forecast in self.forecasts.items():
            if not name or "." in name:
                raise ValueError(f"forecasts: '{name}' is no name; give one without dots")
            if len(forecast.columns) != len(self.outcomes):
                fault = f"forecasts.{name}.{forecast.kind} is for {len(forecast.columns)} outcomes"
                raise ValueError(f"{fault}; give it one entry for each of {len(self.outcomes)}")
            levels = forecast.levels or []
            mirrored = all(abs(a + b - 1) < 1e-9 for a, b in zip(levels, levels[::-1], strict=True))
            for outcome, (low, high) in self.scale.items():
                if low > high and outcome in self.outcomes and not mirrored:
                    fault = f"forecasts.{name}.levels = {levels} under the reversed scale of"
                    raise ValueError(f"{fault} '{outcome}'; give levels that mirror around 0.5")
        for feature in self.features if self.forecasts else ():
            if self.features.count(feature) > 1:
                raise ValueError(f"'{feature}' would be there twice; name each column once")
        return self

    @property
    def censored_columns(self) -> dict[str, str]:
        """For outcomes that may be censored, the column that says where they are."""
        if isinstance(self.censored, dict):
            return self.censored
        return {} if self.censored is None else dict.fromkeys(self.outcomes, self.censored)

    @property
    def read(self) -> dict[str, list[str]]:
        """The columns that must be numbers, under the key that asks for them."""
        columns_by_key = {"data.outcomes": self.outcomes, "data.context": self.context}
        for name, forecast in self.forecasts.items():
            columns_by_key[f"data.forecasts.{name}"] = [
                column for row in forecast.columns for column in row
            ]
        return columns_by_key

    def features_of(self, name: str) -> list[list[str]]:
        """Return ``forecasts.NAME.OUTCOME.INDEX``: for each outcome one per level or member."""
        rows = zip(self.outcomes, self.forecasts[name].columns, strict=True)
        return [
            [f"forecasts.{name}.{outcome}.{i}" for i in range(len(columns))]
            for outcome, columns in rows
        ]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all that is seen before a round: the context, then the forecasts."""
        rows = [row for name in self.forecasts for row in self.features_of(name)]
        return (*self.context, *(feature for row in rows for feature in row))
