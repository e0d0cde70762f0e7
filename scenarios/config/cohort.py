"""What a scenario file may say of a cohort: one model for each way to respond."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from regretless.market import register
from regretless.market.core.errors import closest
from regretless.market.exploitability import tracker
from regretless.market.regret.ledger import MEASURES
from regretless.scenarios.config import reasons
from regretless.scenarios.config.tables import (
    MAX_COUNT,
    ByName,
    Count,
    Counted,
    Label,
    Name,
    Open,
    Rate,
    Strict,
    Variant,
)


def _number_or_word(eta: Any) -> Any:
    if isinstance(eta, str) and eta != "recommended":
        raise ValueError(f'{eta!r}: give a positive number, or "recommended"')
    return eta


Positive = Annotated[float, Field(gt=0)]
Smoothness = Annotated[Positive | Literal["recommended"], BeforeValidator(_number_or_word)]


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

    kind: str
    play: Literal["representative", "own"] | None = None
    """Whose response an agent plays; "own" leaves it without a guarantee. By default it is the
    representative's where the response reads the loss in the basis."""


class SnapSpec(CoverSpec):
    """Representatives on a grid of losses."""

    kind: Literal["snap"]
    gamma: Positive | None = None
    """Width of the grid; by default the paper's."""


class ClusterSpec(CoverSpec):
    """Representatives by clustering, as many as a radius takes, or a count of them."""

    kind: Literal["cluster"]
    radius: Positive | None = None
    """How far an agent may be from its representative."""
    count: Count | None = None
    """How many representatives there are."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "ClusterSpec":
        if (self.radius is None) == (self.count is None):
            raise ValueError("a clustered cover takes either radius or count; give one of them")
        return self


AnyCoverSpec = Annotated[SnapSpec | ClusterSpec, Field(discriminator="kind")]


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


COHORTS: dict[str, type["CohortSpec"]] = {}  # by kind


class CohortSpec(Strict, Counted, Variant):
    """Agents of one kind; how they respond decides which of its subclasses reads the table."""

    name: Label
    """What tables and dotted keys call the cohort."""
    utility: Name
    """What its agents want: a registered name."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """The utility's: a number, [low, high] drawn per agent, or { choices = [...] }."""
    currency: Label | None = None
    """The money of its costs, prices or gains, such as "EUR": the unit of its losses."""
    reports: dict[str, Any] = Field(default_factory=dict)
    """Parameters that its agents report in place of their own: the forecaster protects those."""
    acts_on: Literal["truth", "report"] = "truth"
    """Which of them its agents respond with; they are charged by the truth."""
    count: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1
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
    gamma: Positive | None = None
    """How near a protected loss must be to cover an agent who joins late."""
    basis: Annotated[BasisSpec, ByName] = BasisSpec()
    """In which functions of the outcome the forecast is made for it."""
    cover: AnyCoverSpec | None = None
    """Serving the agents through few representatives."""
    actions: Annotated[int, Field(ge=2, le=MAX_COUNT)]
    """How many actions each agent has, or a list of their names."""
    action_names: list[Label] | None = None
    """What the actions are called; actions = ["wheat", "maize"] sets both."""
    response: Name = "best-response"
    """How they answer the forecast: a response rule, an agent's class or a learner."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The learner's parameters; those of an agent's class may be drawn per agent, as above."""
    eta: Smoothness | None = None
    """Smoothness of a quantal response, or of one over ensembles."""
    policies: list[Name] = Field(default_factory=list)
    """Names of [policy] tables to compare with."""
    constants: bool = True
    """Whether constant actions are compared with, too."""
    idiosyncratic: IdiosyncraticSpec | None = None
    """Noise of each agent's own around the outcome, such as local weather."""
    budget_constraint: bool = False
    """Whether its agents choose only what their accounts in the market can pay for."""
    signal: SignalSpec | None = None
    """What each of its agents learns of the outcome alone; for agents of your own."""
    measures: list[Literal[*MEASURES, *tracker.MEASURES]] = Field(  # type: ignore[valid-type]
        default=["external", "swap", "omniprediction", "decision_swap", "exploitability"]
    )
    """Which regrets are kept."""

    COUNTS: ClassVar = "actions"
    learns: ClassVar[bool] = False  # whether the response is a learner's name
    own_path: ClassVar[bool] = False  # whether agents of equal losses may act differently
    reads_basis: ClassVar[bool] = False  # whether they respond to their losses in the basis
    draws_alone: ClassVar[bool] = False  # whether each agent draws a prediction of its own

    def __init_subclass__(cls, kind: str, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.BARRED, COHORTS[kind] = reasons.COHORTS[kind], cls

    @property
    def entries(self) -> int:
        """How many losses its tables list: of agents, or of types where it is counted."""
        return self.types or 1 if self.multiplicity else self.count

    @field_validator("response")
    @classmethod
    def _known(cls, response: str) -> str:
        response_names = [name for kind in register.ANSWERS for name in kind.names()]
        # no name is known before the packages are imported
        if response_names and response not in response_names:
            cure = f"{closest(response, response_names)}; a name of your own needs --import MODULE"
            raise ValueError(f"unknown '{response}'; {cure}")
        return response

    @model_validator(mode="after")
    def _check_keys_together(self) -> "CohortSpec":
        if self.exits is not None and self.exits <= self.enters:
            fault = f"exits = {self.exits} is not after enters = {self.enters}"
            raise ValueError(f"{fault}; let them leave later")
        if self.types is not None and 0 < self.count < self.types:
            raise ValueError("there are more types than agents; lower types")
        if not self.constants and not self.policies:
            raise ValueError("constants = false leaves nothing to compare with; name policies")
        if not self.enters and self.gamma is not None:
            raise ValueError("gamma is for a cohort that enters late; give enters")
        if self.cover is not None:
            self._settle_cover(self.cover)
        return self

    def _settle_cover(self, cover: CoverSpec) -> None:
        """Settle whose response agents play; ValueError if a representative has none for them.

        It stands for the loss that an agent reports, so that who acts on another plays its own.
        """
        if cover.play == "representative" and not self.reads_basis:
            raise ValueError(f'cover.play = "representative": {reasons.COVERED}; use "own"')
        acts_on_another = bool(self.reports) and self.acts_on == "truth"
        if cover.play == "representative" and acts_on_another:
            reason = "a representative stands for what is reported, and agents act on the truth"
            raise ValueError(f'cover.play = "representative": {reason}; set acts_on = "report"')
        if cover.play is None:
            can_play_representative = self.reads_basis and not acts_on_another
            cover.play = "representative" if can_play_representative else "own"


class BestResponseSpec(CohortSpec, kind="best-response"):
    """Agents who take the action with the least loss at the forecast."""

    reads_basis: ClassVar = True
    response: Literal["best-response"] = "best-response"


class QuantalSpec(CohortSpec, kind="quantal"):
    """Agents who take better actions more often."""

    response: Literal["quantal"]
    eta: Smoothness
    """How fast the probability of an action falls with its loss."""


class EnsembleSpec(CohortSpec, kind="ensemble"):
    """Agents who average their losses over an ensemble of outcomes."""

    response: Literal["ensemble"]


class PrivateSpec(CohortSpec, kind="private"):
    """Agents who best-respond to a prediction that each draws for itself."""

    draws_alone: ClassVar = True
    own_path: ClassVar = True
    reads_basis: ClassVar = True
    response: Literal["private"]


class RuleSpec(CohortSpec, kind="rule"):
    """Agents who respond to the forecast by another rule, registered or of your own."""

    response: Name


class LearnerSpec(CohortSpec, kind="learner"):
    """Agents who learn from what their actions would have cost, and hear no forecast."""

    learns: ClassVar = True
    own_path: ClassVar = True
    response: Name
    advice: Annotated[list[Name], Field(min_length=1)] | None = None
    """What they learn to follow in place of their actions: best responses to models ("panel", or
    names of models), and each action for ever ("actions")."""

    @field_validator("advice")
    @classmethod
    def _list_once(cls, advice: list[str] | None) -> list[str] | None:
        for name in advice or ():
            if (advice or []).count(name) > 1:
                raise ValueError(f"'{name}' is listed twice; drop one of them")
        return advice


class AgentSpec(CohortSpec, kind="agent"):
    """Agents, or a crowd, of a class of your own."""

    own_path: ClassVar = True
    response: Name


def _choose_branch(cohort: Any) -> str:
    """Return the tag of the model that reads a [[cohort]] table."""
    values = vars(cohort) if isinstance(cohort, CohortSpec) else cohort
    if not isinstance(values, dict):
        return "best-response"  # its model says what is wrong with the value
    response = str(values.get("response", "best-response"))
    if response in ("best-response", "quantal", "ensemble", "private"):
        return response
    if response in register.learner:
        return "learner"
    if response in register.agent:
        return "agent"
    return "rule"


AnyCohortSpec = Annotated[
    Annotated[BestResponseSpec, Tag("best-response")]
    | Annotated[QuantalSpec, Tag("quantal")]
    | Annotated[EnsembleSpec, Tag("ensemble")]
    | Annotated[PrivateSpec, Tag("private")]
    | Annotated[RuleSpec, Tag("rule")]
    | Annotated[LearnerSpec, Tag("learner")]
    | Annotated[AgentSpec, Tag("agent")],
    Discriminator(_choose_branch),
]
