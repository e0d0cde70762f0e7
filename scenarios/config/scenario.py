"""The validated configuration of a scenario: what a TOML file may say.

Unknown keys are refused. ``validation`` reads a file by it, and words what is wrong.
"""

from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from regretless.market import register
from regretless.market.core.errors import closest
from regretless.market.logs.windows import Span
from regretless.scenarios.config import reasons
from regretless.scenarios.config.cohort import AnyCohortSpec
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.forecaster import AnyForecasterSpec, DecisionSwapSpec
from regretless.scenarios.config.tables import MAX_NAME_CHARACTERS, Count, Label, Name, Open, Strict
from regretless.scenarios.config.world import (
    AdversarySpec,
    AnyMarketSpec,
    AnyNetworkSpec,
    GameSpec,
    SpaceSpec,
)

Start = Annotated[int, Field(ge=0)]


class WindowsSpec(Strict):
    """Windows of equal length, or from given rounds on (``market.logs.windows``)."""

    every: Count | None = None
    """Length of windows that follow one another from round 0."""
    starts: Annotated[list[Start], Field(min_length=1)] | None = None
    """First rounds of the windows, in place of every."""
    length: Count | None = None
    """Length of each, with starts; without it one lasts until the next starts."""

    @model_validator(mode="after")
    def _check_keys_together(self) -> "WindowsSpec":
        if (self.every is None) == (self.starts is None):
            raise ValueError("give exactly one of every and starts")
        if self.length is not None and self.starts is None:
            raise ValueError("length goes with starts; drop it, or give starts instead of every")
        gaps = [after - before for before, after in pairwise(self.starts or ())]
        if gaps and min(gaps) < 1:
            raise ValueError(f"starts = {self.starts} do not ascend; sort them, each one once")
        if gaps and self.length is not None and self.length > min(gaps):
            raise ValueError(f"length = {self.length}: windows overlap; give at most {min(gaps)}")
        return self

    def spans(self, rounds: int) -> tuple[Span, ...]:
        """Return first and last round of every window; the last one ends with the run."""
        starts = list(range(0, rounds, self.every)) if self.every else list(self.starts or ())
        if starts[-1] >= rounds:
            fault = f"{starts[-1]} is not among {rounds} rounds, 0 to {rounds - 1}"
            raise ValueError(f"windows.starts: {fault}; start earlier or play more rounds")
        last_rounds = [*starts[1:], rounds]
        if self.length:
            last_rounds = [min(start + self.length, rounds) for start in starts]
        return tuple((start, end - 1) for start, end in zip(starts, last_rounds, strict=True))


class UntilSpec(Strict):
    """When a run ends before its last round."""

    greedy_unchanged: Count
    """So many rounds in which no Q-learner's greedy action has changed in any state."""


class ImpulseSpec(Strict):
    """Actions that one agent is made to play, and the rounds around them (``assembly.impulse``)."""

    round: Start | None = None
    """The first round of the impulse; without it the impulse follows the last round of the run."""
    cohort: Name
    """The cohort of the agent."""
    agent: Count = 1
    """Which agent of the cohort, from 1."""
    actions: Annotated[list[Start], Field(min_length=1)]
    """The numbers of the actions that it plays, round by round, from 0; the last is played on."""
    length: Count | None = None
    """For how many rounds it plays them, by default one for each action."""
    before: Start = 5
    """How many rounds before the impulse are shown."""
    after: Start = 20
    """How many rounds after it are shown."""

    @property
    def n_rounds(self) -> int:
        """How many rounds the impulse lasts."""
        return self.length or len(self.actions)

    @model_validator(mode="after")
    def _check_length(self) -> "ImpulseSpec":
        if self.n_rounds < len(self.actions):
            reason = f"length = {self.length}: there are {len(self.actions)} actions"
            raise ValueError(f"{reason}; give at least so many rounds")
        if self.round is not None and self.round < self.before:
            reason = f"round = {self.round} has no {self.before} rounds before it"
            raise ValueError(f"{reason}; give a later round, or a smaller before")
        return self


class PolicySpec(Open):
    """A benchmark policy."""

    kind: Name
    """A registered name; keys beside it are the policy's own."""


class ScenarioSpec(Strict):
    """A whole scenario."""

    name: Annotated[str, Field(pattern=r"^[^./\\][^/\\]*$", max_length=MAX_NAME_CHARACTERS)]
    """What the run and its folder are called."""
    description: str = ""
    """What the scenario shows, in a sentence."""
    source: str = ""
    """Where it comes from."""
    rounds: Count
    """How many rounds are played."""
    until: UntilSpec | None = None
    """A rule that ends the run earlier; rounds is its limit."""
    seed: Annotated[int, Field(ge=0)] = 0
    """The root of all randomness."""
    logs: Literal["full", "summary"] = "full"
    """What is logged of rounds: every one, or with "summary" those alone that the regret log has,
    by default the first, beside windows and the tables that close a run. No alternatives are
    followed then."""
    log_agents: Count | None = None
    """How many agents the regret log samples; without it all are logged."""
    measures: list[Name] = Field(default_factory=list)
    """Names of measures of your own, taken in every logged round."""
    solutions: list[Name] = Field(default_factory=list)
    """Solutions of the stage game beside the run: "nash", "ce", "cce", "optimum" and others."""
    impulse: ImpulseSpec | None = None
    """An agent is made to play something else, and the path after it is compared with the run's."""
    windows: WindowsSpec | None = None
    """Windows of rounds over which regret is taken as well."""
    data: DataSpec | None = None
    """Outcomes that are replayed; or give an [adversary]."""
    adversary: AdversarySpec | None = None
    """Who chooses the outcomes; or give [data]."""
    space: SpaceSpec | None = None
    """Where outcomes may lie, if not in the unit cube."""
    game: GameSpec | None = None
    """A game whose outcomes are a leader's actions, or that all agents play."""
    market: AnyMarketSpec | None = None
    """How what agents do moves outcomes."""
    network: AnyNetworkSpec | None = None
    """Who hears the forecast, and when."""
    forecaster: AnyForecasterSpec = DecisionSwapSpec()
    """Who predicts."""
    policy: dict[Label, PolicySpec] = Field(default_factory=dict)
    """Benchmarks to compare with, by name."""
    cohort: Annotated[list[AnyCohortSpec], Field(min_length=1)]
    """The agents, in groups of one kind."""

    @field_validator("cohort", mode="before")
    @classmethod
    def _require_list(cls, cohorts: Any) -> Any:
        if not isinstance(cohorts, dict):
            return cohorts
        raise ValueError("one table; write [[cohort]], with two brackets, above each cohort")

    @model_validator(mode="before")
    @classmethod
    def _with_own_payoffs(cls, raw: Any) -> Any:
        """Fill in what a market with payoffs of its own does not need: adversary and utilities."""
        if not isinstance(raw, dict):
            return raw
        filled = dict(raw)
        is_led = "adversary" in raw or "data" in raw
        if isinstance(raw.get("game"), dict) and not is_led and "market" not in raw:
            filled["market"] = {"kind": "normal-form", **filled.pop("game")}
        table = filled.get("market")
        kind = table.get("kind") if isinstance(table, dict) else None
        if not isinstance(kind, str) or kind not in register.market:
            return filled
        market = register.market[kind]
        if not getattr(market, "has_own_payoffs", False):
            return filled
        if not is_led:
            filled["adversary"] = {"kind": "constant", "outcomes": 1}
        if isinstance(filled.get("cohort"), list):
            cohorts = []
            for cohort in filled["cohort"]:
                is_table = isinstance(cohort, dict)
                utility = getattr(market, "own_utility", "payoffs")
                cohorts.append({"utility": utility, **cohort} if is_table else cohort)
            filled["cohort"] = cohorts
        return filled

    @property
    def outcome_names(self) -> list[str]:
        """What the coordinates of an outcome are called; empty where they have no names."""
        if self.data is not None:
            return self.data.outcomes
        return (self.adversary.outcome_names if self.adversary else None) or []

    @property
    def measured(self) -> "DataSpec | AdversarySpec | None":
        """What says how outcomes are measured, in ``scale`` and ``units``."""
        return self.data or self.adversary

    @model_validator(mode="after")
    def _check_tables_together(self) -> "ScenarioSpec":
        if self.data is None and self.adversary is None:
            raise ValueError("nothing chooses the outcomes; add a table [data] or [adversary]")
        if self.game is not None and (
            self.adversary is None or self.data is not None or self.space is not None
        ):
            raise ValueError("[game] needs an [adversary], who leads it; drop [data] and [space]")
        if self.market is not None and (self.game is not None or self.space is not None):
            raise ValueError(f"{reasons.MOVED}; drop one of them")
        if self.adversary is not None and self.data is not None:
            self._check_moves(self.adversary, self.data)
        elif self.adversary is not None and self.adversary.moves is not None:
            raise ValueError("adversary.moves: there are no rows to move; add [data], or drop it")
        elif self.game is None and self.adversary is not None and self.adversary.outcomes is None:
            raise ValueError("key 'adversary.outcomes' is missing; add it to the scenario file")
        if self.data is None:
            self.forecaster.settle(None, n_outcomes=0)
        else:
            self.forecaster.settle(self.data.forecasts, n_outcomes=len(self.data.outcomes))
        if self.windows is not None:
            self.windows.spans(self.rounds)  # complains of a window after the run
        if self.impulse is not None:
            self._check_impulse(self.impulse)
        for name, number in Counter(cohort.name for cohort in self.cohort).items():
            if number > 1:
                raise ValueError(f"two cohorts are called '{name}'; give each a name of its own")
        return self

    def _check_moves(self, adversary: AdversarySpec, data: DataSpec) -> None:
        """Raise ValueError unless an adversary can move the outcomes of data."""
        if adversary.moves is None:
            reason = "both [data] and [adversary] choose the outcomes; drop one of them"
            raise ValueError(f"{reason}, or add adversary.moves, how far it may move each outcome")
        if isinstance(adversary.moves, dict):
            for name in adversary.moves:
                if name not in data.outcomes:
                    raise ValueError(f"adversary.moves: '{name}'; {closest(name, data.outcomes)}")
        named = adversary.outcome_names or data.outcomes
        if adversary.outcomes not in {None, len(data.outcomes)} or named != data.outcomes:
            raise ValueError("adversary.outcomes: the outcomes are those of [data]; drop it")
        for key in ("scale", "units"):
            if getattr(adversary, key):
                raise ValueError(f"adversary.{key} is that of [data]; write data.{key}")
        if self.space is not None:
            raise ValueError("adversary.moves: outcomes stay near their rows; drop [space]")

    def _check_impulse(self, impulse: ImpulseSpec) -> None:
        """Raise ValueError unless there are the agent, the actions and the round of an impulse."""
        cohorts = {cohort.name: cohort for cohort in self.cohort}
        if impulse.cohort not in cohorts:
            raise ValueError(
                f"impulse.cohort '{impulse.cohort}'; {closest(impulse.cohort, cohorts)}"
            )
        cohort = cohorts[impulse.cohort]
        if impulse.agent > cohort.count:
            reason = f"impulse.agent = {impulse.agent}: cohort.{cohort.name} has {cohort.count}"
            raise ValueError(f"{reason} agents; give one of them, from 1")
        highest = max(impulse.actions)
        if highest >= cohort.actions:
            reason = f"impulse.actions = {impulse.actions}: cohort.{cohort.name} has the actions"
            raise ValueError(f"{reason} 0 to {cohort.actions - 1}; give these")
        if impulse.round is not None and impulse.round >= self.rounds:
            reason = f"impulse.round = {impulse.round}: the rounds are 0 to {self.rounds - 1}"
            raise ValueError(f"{reason}; give one of them")
