"""What a scenario file may say of a cohort, and the rules of all its tables."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from regretless.market import register
from regretless.market.core.errors import closest
from regretless.market.exploitability import tracker
from regretless.market.regret.ledger import MEASURES

LONGEST = 100  # characters of a name that the file gives
Name = Annotated[str, Field(min_length=1)]
Label = Annotated[str, Field(min_length=1, max_length=LONGEST)]
MOST = 10**12  # of anything that is counted: below what the sizes of arrays overflow at
Count = Annotated[int, Field(ge=1, le=MOST)]
Rate = Annotated[float, Field(gt=0, le=1)]
Range = Annotated[list[float], Field(min_length=2, max_length=2)]


def _by_name(table: Any) -> Any:
    return {"kind": table} if isinstance(table, str) else table


ByName = BeforeValidator(_by_name)  # for a table that may be given by its kind alone


def counted(raw: Any, key: str) -> Any:
    """Turn a list of names under a key such as ``actions`` into their number and their names."""
    if not isinstance(raw, dict) or not isinstance(raw.get(key), list):
        return raw
    if not all(isinstance(name, str) for name in raw[key]):
        raise ValueError(f"{key} = {raw[key]}: give a number, or a list of names")
    return raw | {key: len(raw[key]), f"{key[:-1]}_names": raw[key]}


def check_names(names: list[str] | None, number: int | None, key: str) -> None:
    """Raise ValueError unless names under a key such as ``actions`` are of each one thing."""
    if names is not None and (len(names) != number or len(set(names)) < len(names)):
        raise ValueError(f"{key} = {names}: give each of the {number} a name of its own")


class Strict(BaseModel):
    """A table in which every key is known."""

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, strict=True, use_attribute_docstrings=True
    )


class Open(BaseModel):
    """Keys beyond the named ones are parameters of the building block that is named."""

    model_config = ConfigDict(
        extra="allow", allow_inf_nan=False, strict=True, use_attribute_docstrings=True
    )

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys beyond the named ones."""
        return dict(self.model_extra or {})


class BasisSpec(Open):
    """In which basis a cohort is served; the parameters are the basis's own."""

    kind: Name = "auto"
    """A basis; "auto" takes what is natural for the losses."""

    @property
    def given(self) -> bool:
        """Whether the file says anything of it."""
        return self.kind != "auto" or bool(self.parameters)


class CoverSpec(Strict):
    """Serving many losses through few representatives."""

    kind: Literal["snap", "cluster"]
    """How representatives are found: on a grid of losses ("snap"), or by clustering."""
    gamma: Annotated[float, Field(gt=0)] | None = None
    """Width of the grid, for "snap"."""
    radius: Annotated[float, Field(gt=0)] | None = None
    """How far an agent may be from its representative, for "cluster"."""
    count: Count | None = None
    """How many representatives there are, for "cluster"."""
    play: Literal["representative", "own"] = "representative"
    """Whose best response an agent plays; "own" leaves it without a guarantee."""

    @model_validator(mode="after")
    def _keys_fit(self) -> "CoverSpec":
        if self.kind == "snap" and (self.radius is not None or self.count is not None):
            raise ValueError("a snapped cover takes gamma alone; drop radius and count")
        if self.kind == "cluster" and (
            self.gamma is not None or (self.radius is None) == (self.count is None)
        ):
            raise ValueError("a clustered cover takes either radius or count, and no gamma")
        return self


class SignalSpec(Strict):
    """What each agent learns of the outcome alone, before it decides."""

    name: Label = "signal"
    """Under which its context, and its policies, find it."""
    coordinate: Annotated[int, Field(ge=0)] | Label = 0
    """Which coordinate of the outcome it is about: a number from 0, or the outcome's name."""
    noise: Any = 0.1
    """Standard deviation: a number, [low, high] drawn per agent, or { choices = [...] }."""


class IdiosyncraticSpec(Strict):
    """Noise of one's own around the outcome, by whose mean agents are charged."""

    deviation: Annotated[float, Field(ge=0, le=1)]
    """Its standard deviation, in units of the outcome."""
    coordinates: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    """Which coordinates of the outcome it shakes, numbered from 0; all by default."""


class CohortSpec(Strict):
    """Agents of one kind."""

    name: Label
    """What tables and dotted keys call the cohort."""
    utility: Name
    """What its agents want: a registered name."""
    parameters: dict[str, Any] = {}
    """The utility's: a number, [low, high] drawn per agent, or { choices = [...] }."""
    reports: dict[str, Any] = {}
    """Parameters that its agents report in place of their own: the forecaster protects those."""
    acts_on: Literal["truth", "report"] = "truth"
    """Which of them its agents respond with; they are charged by the truth."""
    count: Annotated[int, Field(ge=0, le=MOST)] = 1
    """How many agents there are; a cohort of none is left out."""
    types: Count | None = None
    """How many different losses they share; without it each has its own."""
    multiplicity: bool | None = None
    """Whether its agents are a count for each type, not a list; above a million they are."""
    mapped: bool | None = None
    """Whether its losses are a file that is mapped into memory; unasked if memory is short."""
    precision: Literal["single", "double"] = "double"
    """Of the weights of a linear utility; "single" rounds them to what 32 bits hold."""
    enters: Annotated[int, Field(ge=0)] = 0
    """The round before which they enter."""
    exits: Annotated[int, Field(ge=1)] | None = None
    """The round before which they leave; without it they stay."""
    entry_rate: Rate | None = None
    """Probability with which an agent who has not come yet enters in a round."""
    exit_rate: Rate | None = None
    """Probability with which one who has played a round leaves after it."""
    gamma: Annotated[float, Field(gt=0)] | None = None
    """How near a protected loss must be to cover an agent who joins late."""
    basis: Annotated[BasisSpec, ByName] = BasisSpec()
    """In which functions of the outcome the forecast is made for it."""
    cover: CoverSpec | None = None
    """Serving the agents through few representatives."""
    actions: Annotated[int, Field(ge=2, le=MOST)]
    """How many actions each agent has, or a list of their names."""
    action_names: list[Label] | None = None
    """What the actions are called; actions = ["wheat", "maize"] sets both."""
    response: Name = "best-response"
    """How they answer the forecast: a response rule, an agent's class or a learner."""
    settings: dict[str, Any] = {}
    """The learner's parameters; those of an agent's class may be drawn per agent, as above."""
    eta: Annotated[float, Field(gt=0)] | Literal["recommended"] | None = None
    """Smoothness of a quantal response, or of one over ensembles."""
    policies: list[Name] = []
    """Names of [policy] tables to compare with."""
    constants: bool = True
    """Whether constant actions are compared with, too."""
    idiosyncratic: IdiosyncraticSpec | None = None
    """Noise of each agent's own around the outcome, such as local weather."""
    budget_constraint: bool = False
    """Whether its agents choose only what their accounts in the market can pay for."""
    signal: SignalSpec | None = None
    """What each of its agents learns of the outcome alone; for agents of your own."""
    measures: list[Literal[*MEASURES, *tracker.MEASURES]] = [  # type: ignore[valid-type]
        "external",
        "swap",
        "omniprediction",
        "decision_swap",
        "exploitability",
    ]
    """Which regrets are kept."""

    @property
    def entries(self) -> int:
        """How many losses its tables list: of agents, or of types where it is counted."""
        return self.types or 1 if self.multiplicity else self.count

    @property
    def learns(self) -> bool:
        """Whether the response is a learner's name."""
        return self.response in register.learner and self.response not in register.response

    @property
    def draws_alone(self) -> bool:
        """Whether each agent draws a prediction of its own."""
        return self.response == "private"

    @model_validator(mode="before")
    @classmethod
    def _names_counted(cls, raw: Any) -> Any:
        return counted(raw, "actions")

    def _reports_are_heard(self) -> None:
        if not self.reports:
            return
        if self.response not in register.response:
            raise ValueError("reports are for those who respond to the forecast; drop them")
        if self.enters or self.cover is not None:
            raise ValueError("reports go neither with enters nor with a cover; drop one of them")

    @field_validator("response")
    @classmethod
    def _known(cls, response: str) -> str:
        known = [name for kind in register.ANSWERS for name in kind.names()]
        if known and response not in known:  # nothing is known before the packages are imported
            cure = f"{closest(response, known)}; a name of your own needs --import MODULE"
            raise ValueError(f"unknown '{response}'; {cure}")
        return response

    @field_validator("eta", mode="before")
    @classmethod
    def _number_or_word(cls, eta: Any) -> Any:
        if isinstance(eta, str) and eta != "recommended":
            raise ValueError(f'{eta!r}: give a positive number, or "recommended"')
        return eta

    @model_validator(mode="after")
    def _eta_goes_with_quantal(self) -> "CohortSpec":
        check_names(self.action_names, self.actions, "actions")
        if self.response != "ensemble" and (self.response == "quantal") == (self.eta is None):
            raise ValueError('eta is the smoothness of response = "quantal"; give both or neither')
        if self.cover is not None and self.response != "best-response":
            raise ValueError('a cover serves response = "best-response"; drop one of them')
        self._reports_are_heard()
        if self.exits is not None and self.exits <= self.enters:
            there = f"exits = {self.exits} is not after enters = {self.enters}"
            raise ValueError(f"{there}; let them leave later")
        if self.types is not None and 0 < self.count < self.types:
            raise ValueError("there are more types than agents; lower types")
        if not self.constants and not self.policies:
            raise ValueError("constants = false leaves nothing to compare with; name policies")
        return self
