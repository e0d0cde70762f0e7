"""The records that travel in a round, and the past that players may see.

In the order of a round: ``Context``, ``Mixture``, ``AdversaryView``, ``OutcomeDistribution``,
``Forecast``, ``Decision``, ``RoundFeedback``, ``Observation``. Each is frozen. A ``Round`` has all
of them; no player is handed it.

A frozen record refuses that anybody sets a field, and so its own initialiser, too. Those that every
round makes write into the dictionary of their fields there, ``self.__dict__``, a fifth of the time
that a dataclass takes to go past its own refusal field by field (.25 against 1.2 us for five).

Shapes: d coordinates of an outcome, n functions of a basis, m atoms of a distribution, f features,
K rows of a cohort's ledger, N agents, A actions.

**Deviations**: single agents play something else than their rule says, in the eyes of all. The rule
still decides, so that nobody's random numbers move; what the agent does in its place is
what the market clears, the ledger charges and an adversary foresees. Its regret stays exact. It no
longer chooses by what it expected, so that its expectation is left out, and with it its bound.

**The past** that players may see is read-only: outcomes of earlier rounds, in bounded memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import (
    Array,
    Indices,
    Mask,
    draw_index,
    is_within_unit_cube,
)
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, closest
from regretless.market.core.fixed import Fixed
from regretless.market.core.own_code import frozen, read_only
from regretless.market.core.validation import without_rounding
from regretless.market.losses.base import Loss
from regretless.market.losses.basis import Basis


@dataclass(frozen=True, eq=False, init=False)
class Decision:
    """What a cohort's K rows do in a round."""

    strategy: Array | None  # mixed (K, A); None where ``choices`` says it all
    actions: Indices  # that each of the cohort's agents played (N,)
    predicted: Array | None = None  # losses (K, A) that a row expected; None where it expects none
    present: Mask | None = None  # the rows (K,) that took part, others have action -1; None for all
    # The action of each row (K,) where all play is pure, -1 for rows that took no part; it comes
    # with ``predicted``, and the mixed strategy is spelled out only where somebody reads it.
    choices: Indices | None = None
    # Draws, once, how many agents of each row played each action (K, A), where a row with
    # multiplicity (``market.game.seats``) draws; its action is that of one of them.
    counts: Callable[[], Array] | None = None
    # The mixed strategy (K, A) from which the actions were drawn, where ``strategy`` is the draw.
    drawn_from: Array | None = None

    def __init__(
        self,
        strategy: Array | None,
        actions: Indices,
        predicted: Array | None = None,
        present: Mask | None = None,
        choices: Indices | None = None,
        counts: Callable[[], Array] | None = None,
        drawn_from: Array | None = None,
    ) -> None:
        fields = self.__dict__
        fields["strategy"] = strategy
        fields["actions"] = actions
        fields["predicted"] = predicted
        fields["present"] = present
        fields["choices"] = choices
        fields["counts"] = counts
        fields["drawn_from"] = drawn_from

    def changed(self, **parts: Any) -> "Decision":
        """Return the same but for some parts."""
        return replace(self, **parts)

    def masked(self, present: Mask, row_of: Indices) -> "Decision":
        """Return the decision without what absent rows and their agents would have done.

        ``present`` (K,) says which rows are there, ``row_of`` (N,) is the row of each agent. Absent
        rows have the mixed strategy 0, choice and action -1, and counts of 0.
        """
        strategy = self.strategy
        if strategy is not None:
            strategy = np.where(present[:, None], strategy, 0.0)
        choices = self.choices
        if choices is not None:
            choices = np.where(present, choices, -1)
        counts = self.counts
        if counts is not None:
            counts = partial(_masked_counts, counts, present)
        drawn_from = self.drawn_from
        if drawn_from is not None:
            drawn_from = np.where(present[:, None], drawn_from, 0.0)
        return self.changed(
            strategy=strategy,
            choices=choices,
            actions=np.where(present[row_of], self.actions, -1),
            counts=counts,
            present=present,
            drawn_from=drawn_from,
        )

    def losses(self, loss: Loss, outcome: Array) -> Array:
        """Return the losses (K, A) of all actions at the outcome (d,)."""
        return loss.losses(outcome)

    @property
    def probabilities(self) -> Array:
        """The mixed strategy (K, A) that the ledger charges: one-hot for a pure choice."""
        if self.strategy is not None:
            return self.strategy
        choices: Any = self.choices
        predicted: Any = self.predicted
        return one_hot(choices, predicted.shape[1])

    @property
    def chances(self) -> Array:
        """The probability (K, A) with which each row took each action, before it was drawn."""
        return self.probabilities if self.drawn_from is None else self.drawn_from


def _masked_counts(counts: Callable[[], Array], present: Mask) -> Array:
    """Return counts (K, A) with 0 in the rows that are not present (K,)."""
    return np.where(present[:, None], counts(), 0.0)


def one_hot(actions: Indices, count: int) -> Array:
    """Turn actions (K,) into probabilities (K, count), which are 0 for actions below 0."""
    probabilities = np.zeros((len(actions), count))
    _set_ones(actions, probabilities)
    return probabilities


@compiled(nogil=True)
def _set_ones(actions: Indices, probabilities: Array) -> None:
    """Set ``probabilities`` (K, A) to 1 at the action of each row (K,), if it has that one."""
    for row in range(len(actions)):
        if 0 <= actions[row] < probabilities.shape[1]:
            probabilities[row, actions[row]] = 1.0


NO_VALUES = frozen(np.empty(0))  # of a context without features


@dataclass(frozen=True, eq=False, init=False)
class Context:
    """What everybody sees before the round; ``context["month"]`` and ``context[0]`` read one."""

    names: tuple[str, ...]  # of the features (f)
    values: Array  # (f,)
    logged: int | None  # how many of them tables show, from the first; None for all
    # A column of the rounds table and what it says, where rounds have names, such as dates.
    index: tuple[str, str] | None
    # What each agent of a cohort sees alone, by name (N,) (``market.game.seats``).
    own: Mapping[str, Any]
    # What fixed policies suggested in it, by the identity of their tuple (``suggestions_to_all``).
    kept_suggestions: dict[int, "KeptSuggestions"] = field(init=False, repr=False)

    def __init__(
        self,
        names: tuple[str, ...] = (),
        values: Array = NO_VALUES,
        logged: int | None = None,
        index: tuple[str, str] | None = None,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        fields = self.__dict__
        fields["names"] = names
        fields["values"] = values if values is NO_VALUES else frozen(values)
        fields["logged"] = logged
        fields["index"] = index
        fields["own"] = {} if own is None else own
        fields["kept_suggestions"] = {}

    @cached_property
    def features(self) -> Mapping[str, float]:
        """The values by the names of the features, in their order; not to be changed.

        It is a plain dictionary because models keep it, and copies of models copy it.
        """
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def of(self, agent: int) -> "Context":
        """Return what one agent of a cohort sees: the context with its own signal alone."""
        if not self.own:
            return self
        signals = {name: float(signals[agent]) for name, signals in self.own.items()}
        return replace(self, own=MappingProxyType(signals))

    @property
    def shown(self) -> Array:
        """What tables show of the values."""
        return self.values[: self.logged]

    def __getitem__(self, key: str | int) -> Any:
        if key in self.own:
            return self.own[str(key)]
        if isinstance(key, str):
            if key not in self.names:
                hint = closest(key, [*self.names, *self.own])
                raise KeyError(f"no feature '{key}' in the context; {hint}")
            key = self.names.index(key)
        return float(self.values[key])


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A prediction spelled out as weighted outcomes whose mean of s(y) is the prediction."""

    outcomes: Array  # (e, d), at most n + 1 of them where a game was solved
    weights: Array  # (e,), probabilities

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", read_only(self.outcomes))
        object.__setattr__(self, "weights", read_only(self.weights))


@dataclass(frozen=True, eq=False, init=False)
class Mixture:
    """A distribution over predictions of one block, before the draw."""

    points: Array  # predictions (m, n) in the block's basis, each coordinate in [0, 1]
    weights: Array  # probabilities (m,)
    # Worst case of the mixture's normalised min-max value over every possible s(y), computed from
    # the mixture itself; None for a forecaster that plays no such game.
    certificate: float | None = None
    # The ensemble forecast of each, where predictions are kept in the hull of all s(y).
    ensembles: tuple[Ensemble, ...] | None = None
    # Whose ``inverse`` makes the labels; None where labels are given, or there are none.
    basis_of_labels: Basis | None = field(default=None, repr=False)

    def __init__(
        self,
        points: Array,
        weights: Array,
        certificate: float | None = None,
        labels: Array | None = None,
        ensembles: tuple[Ensemble, ...] | None = None,
        *,
        basis_of_labels: Basis | None = None,
    ) -> None:
        fields = self.__dict__
        fields["points"] = read_only(np.asarray(points))
        fields["weights"] = read_only(np.asarray(weights))
        fields["certificate"] = certificate
        fields["ensembles"] = ensembles
        fields["basis_of_labels"] = basis_of_labels
        if labels is not None:
            fields["labels"] = read_only(np.asarray(labels))

    @cached_property
    def labels(self) -> Array | None:
        """The label forecast of each atom, an outcome (m, d), where labels exist.

        They are made when they are first read. In most rounds nobody reads them before a table
        does, which reads those of many rounds (``work_out_labels``).
        """
        if self.basis_of_labels is None:
            return None
        return read_only(np.asarray(self.basis_of_labels.inverse(self.points)))

    @property
    def has_labels(self) -> bool:
        """Whether there are label forecasts, be they made already or not."""
        return self.basis_of_labels is not None or self.labels is not None

    def labelled(self, labels: Array) -> "Mixture":
        """Return the same with these label forecasts (m, d)."""
        return Mixture(self.points, self.weights, self.certificate, labels, self.ensembles)

    def labelled_by(self, basis: Basis) -> "Mixture":
        """Return the same with the label forecasts that this basis makes when they are read."""
        return Mixture(
            self.points,
            self.weights,
            self.certificate,
            ensembles=self.ensembles,
            basis_of_labels=basis,
        )

    def copied(self) -> "Mixture":
        """Return the same in arrays of its own, as of who may write into theirs later."""
        ensembles = self.ensembles
        if ensembles is not None:
            ensembles = tuple(
                Ensemble(ensemble.outcomes.copy(), ensemble.weights.copy())
                for ensemble in ensembles
            )
        return Mixture(
            points=self.points.copy(),
            weights=self.weights.copy(),
            certificate=self.certificate,
            labels=None if self.labels is None else self.labels.copy(),
            ensembles=ensembles,
        )

    @property
    def without_ensembles(self) -> "Mixture":
        """The same without its ensembles, which may be large."""
        return Mixture(
            self.points,
            self.weights,
            self.certificate,
            labels=self.__dict__.get("labels"),  # None where nobody has read them yet
            basis_of_labels=self.basis_of_labels,
        )

    @cached_property
    def mean(self) -> Array:
        """Mean prediction (n,)."""
        return read_only(np.asarray(self.weights @ self.points))

    def draw(self, rng: np.random.Generator) -> "Forecast":
        """Draw one prediction."""
        return Forecast(self, draw_index(self.weights, rng))


def work_out_labels(mixtures: Sequence[Mixture]) -> None:
    """Make the labels of many mixtures together that nobody has read yet.

    Only where the basis makes the same bits of many predictions as of each mixture's own
    (``Basis.inverse_is_rowwise``). Others make theirs when they are read.
    """
    mixtures_of_bases: dict[Basis, list[Mixture]] = {}
    for mixture in mixtures:
        basis = mixture.basis_of_labels
        if basis is None or not basis.inverse_is_rowwise:
            continue
        if "labels" not in mixture.__dict__:
            mixtures_of_bases.setdefault(basis, []).append(mixture)
    for basis, mixtures_of_basis in mixtures_of_bases.items():
        points = np.concatenate([mixture.points for mixture in mixtures_of_basis])
        labels = read_only(basis.inverse(points))
        first = 0
        for mixture in mixtures_of_basis:
            end = first + len(mixture.points)
            mixture.__dict__["labels"] = labels[first:end]
            first = end


@dataclass(frozen=True, eq=False, init=False)
class Forecast:
    """A mixture and the atom that was drawn from it and is broadcast, by its index."""

    mixture: Mixture
    index: int

    def __init__(self, mixture: Mixture, index: int) -> None:
        fields = self.__dict__
        fields["mixture"] = mixture
        fields["index"] = index

    @property
    def statistics(self) -> Array:
        """The prediction that is broadcast (n,)."""
        prediction: Array = self.mixture.points[self.index]
        return prediction

    @property
    def label(self) -> Array | None:
        """The label forecast that goes with it (d,), where one exists."""
        if self.mixture.labels is None:
            return None
        return np.asarray(self.mixture.labels[self.index])

    @property
    def ensemble(self) -> Ensemble | None:
        """The ensemble forecast that goes with it, where one exists."""
        if self.mixture.ensembles is None:
            return None
        return self.mixture.ensembles[self.index]

    @property
    def certificate(self) -> float | None:
        """The mixture's certificate."""
        return self.mixture.certificate


class AdversaryView:
    """What an adversary sees before it commits, as far as it declared (``adversary_view``).

    Each property is made when it is read, by the function of that name in ``makers``. UserError at
    what is not declared.
    """

    def __init__(
        self, blocks: tuple[Mixture, ...] | None = None, /, **makers: Callable[[], Any]
    ) -> None:
        self.makers = makers
        self._answers: dict[str, Any] = {}
        if blocks is not None:
            self._answers["blocks"] = blocks

    def _ask(self, name: str, sight: str) -> Any:
        if name not in self.makers:
            raise UserError(f"it reads {name} without having declared it; add '{sight}' to sees")
        return self.makers[name]()

    def _ask_once(self, name: str, sight: str) -> Any:
        """Return what ``_ask`` returned when this was first read."""
        if name not in self._answers:
            self._answers[name] = self._ask(name, sight)
        return self._answers[name]

    @property
    def blocks(self) -> tuple[Mixture, ...]:
        """The mixture of every block."""
        return tuple(self._ask_once("blocks", "mixture"))

    @property
    def play(self) -> tuple[Array | None, ...]:
        """Mixed strategy (K, A) of each cohort given the mixtures; None if absent or scripted."""
        return tuple(self._ask_once("play", "play"))

    @property
    def rollout(self) -> Any:
        """Play to come under outcomes that are only imagined: a ``Rollout``."""
        return self._ask_once("rollout", "play")

    @property
    def drawn(self) -> tuple[Forecast, ...]:
        """The drawn forecast of every block, for those alone who break the rule."""
        return tuple(self._ask("drawn", "draw"))

    @property
    def induced(self) -> tuple[Array | None, ...]:
        """Mixed strategy (K, A) of each cohort at the drawn forecasts; None as in ``play``."""
        return tuple(self._ask_once("induced", "draw"))

    def moved(self, outcomes: Array) -> Array:
        """Return outcomes (m, d) after a market that ignores this round's actions."""
        if "moved" not in self.makers:
            return outcomes
        after_market = self.makers["moved"]()
        return np.asarray(after_market(outcomes))

    @cached_property
    def mean_label(self) -> Array:
        """Mean label forecast (d,) over atoms, averaged over the blocks."""
        labels = [block.weights @ block.labels for block in self.blocks if block.labels is not None]
        if not labels:
            raise ValueError("no block of this forecast carries labels")
        if len(labels) == 1:
            return read_only(labels[0])
        return read_only(np.asarray(np.mean(labels, axis=0)))


CERTAIN = frozen(np.ones(1))  # the weights of one outcome


def _checked_weights(weights: ArrayLike, n_outcomes: int) -> Array:
    """Return weights as probabilities (m,) that nobody can write; UserError if they are none."""
    try:
        probabilities = np.array(weights, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError) as error:
        raise UserError("an outcome must be a number in [0, 1]") from error
    least_weight = np.minimum.reduce(probabilities, axis=None, initial=0.0)  # NaN if one is
    if probabilities.shape != (n_outcomes,) or not least_weight >= 0.0:
        raise UserError("a distribution of outcomes needs one weight of at least 0 per outcome")
    total = float(np.add.reduce(probabilities))
    if abs(total - 1) > 1e-9:
        raise UserError(f"the weights of the outcomes sum to {probabilities.sum()}, not 1")
    probabilities.setflags(write=False)
    return probabilities


@dataclass(frozen=True, eq=False, init=False)
class OutcomeDistribution:
    """The distribution over outcomes that an adversary commits to.

    UserError if an outcome leaves [0, 1], is not a number, or the weights are no probabilities.
    """

    points: Array  # outcomes (m, d)
    weights: Array  # probabilities (m,)

    def __init__(self, points: ArrayLike, weights: ArrayLike) -> None:
        try:
            outcomes = np.array(points, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError) as error:
            raise UserError("an outcome must be a number in [0, 1]") from error
        if outcomes.ndim != 2:
            fault = f"outcomes have the shape {outcomes.shape}"
            raise UserError(f"{fault}; give one number per coordinate, or a row per outcome")
        if not is_within_unit_cube(outcomes):
            outcomes = without_rounding(outcomes)
            beyond = outcomes[~((outcomes >= 0) & (outcomes <= 1))]
            if beyond.size:
                what = f"an outcome must be a number in [0, 1], not {beyond[0]!s}"
                raise UserError(f"{what}; clip it")
        outcomes.setflags(write=False)
        if weights is not CERTAIN or len(outcomes) != 1:
            weights = _checked_weights(weights, len(outcomes))
        fields = self.__dict__
        fields["points"] = outcomes
        fields["weights"] = weights

    @classmethod
    def pure(cls, y: ArrayLike) -> Self:
        """Return the distribution that is certain of one outcome."""
        return cls(np.asarray(y)[np.newaxis], CERTAIN)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw one outcome (d,)."""
        outcome: Array = self.points[draw_index(self.weights, rng)]
        return outcome


@dataclass(frozen=True, eq=False, init=False)
class RoundFeedback:
    """What a forecaster is told of a round once its outcome is known."""

    statistics: Array  # s(y) of the outcome, the vector that was predicted (n,)
    outcome: Array | None = None  # the outcome y itself (d,); None where only s(y) is known
    drawn: int | None = None  # index of the atom that was broadcast; None where none was drawn
    # What the outcome is known to exceed (d,), where it is an estimate in place of a censored one:
    # in coordinates that were seen the outcome itself. None where all of it was seen.
    limits: Array | None = None

    def __init__(
        self,
        statistics: Array,
        outcome: Array | None = None,
        drawn: int | None = None,
        limits: Array | None = None,
    ) -> None:
        fields = self.__dict__
        fields["statistics"] = statistics
        fields["outcome"] = outcome
        fields["drawn"] = drawn
        fields["limits"] = limits


@dataclass(slots=True, eq=False)
class Round:
    """A round as far as it is played, one entry per block or cohort; what is yet to come is empty.

    The functions of ``market.game.round`` fill it in one after another. No player holds it: each is
    shown some of its entries, which are frozen. A cohort of which nobody is there has None for
    decision and losses.
    """

    number: int  # counted from 0
    context: Context
    mixtures: tuple[Mixture, ...] = ()
    forecasts: tuple[Forecast, ...] = ()
    distribution: Any = None  # the OutcomeDistribution to which the adversary committed
    # Drawn from it (d,), and shown to signals alone; then what the market made of it.
    outcome: Array = field(default_factory=lambda: NO_VALUES)
    seen: tuple[Context, ...] = ()  # what each cohort saw before it decided
    affordable: tuple[Mask | None, ...] = ()  # which actions agents could pay for (N, A)
    decisions: tuple[Decision | None, ...] = ()
    losses: tuple[Array | None, ...] = ()  # of all actions at the outcome (K, A)
    # What the agents of each cohort come to (2, 2 + A), where the adversary is told
    # (``market.game.adversary_view.summed``).
    sums: Mapping[str, Array] | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """What an adversary that learns is told after a round: the outcome and the mean play."""

    number: int  # of the round, counted from 0
    outcome: Array  # (d,)
    # By the name of each cohort its agents' mean mixed strategy (A,): one-hot where an agent chose,
    # zeros where nobody was there.
    play: Mapping[str, Array]


Policy = Callable[..., int]  # from a context to an action


class Event(NamedTuple):
    """An event as tables show it: a loss plays an action, beside what a policy suggests."""

    loss: int
    action: int
    policy: int | None  # None where the event says nothing of policies
    suggestion: int | None  # the action that the policy suggests
    occupancy: float  # the expected number of rounds with the event
    bias: Array  # of the predictions in them, by number (n,); or the gains of scalar events


def policy_name(policy: Policy, otherwise: str) -> str:
    """Return the name that a policy, any callable, may have."""
    return str(getattr(policy, "name", otherwise))


def checked_suggestion(policy: Policy, x: object, actions: int) -> int:
    """Ask a policy and check its answer; UserError if it is not one of the actions."""
    answer = policy(x)
    if type(answer) is int and 0 <= answer < actions:  # as those of scenario files answer
        return answer
    try:
        suggestion = int(answer)
    except (TypeError, ValueError):
        suggestion = -1
    if not 0 <= suggestion < actions or suggestion != answer:
        name = policy_name(policy, getattr(policy, "__name__", repr(policy)))
        hint = f"return an action from 0 to {actions - 1}"
        raise UserError(f"policy '{name}' suggests {answer!r}; {hint}")
    return suggestion


class KeptSuggestions(NamedTuple):
    """What fixed policies suggested in a context."""

    policies: Sequence[Policy]  # a tuple
    n_actions: int  # among which they chose
    suggested: Indices  # (C,)


def suggestions_to_all(policies: Sequence[Policy], x: object, actions: int) -> Indices:
    """Return what policies suggest to all alike, given a context (C,); not to be written into.

    A forecaster and the seats of its round have the same ``Context``, which keeps what a tuple of
    fixed policies (``market.core.fixed``) suggested: these are asked once a round. Any other policy
    may have a memory, and is asked each time. UserError if a suggestion is none of the actions.
    """
    if isinstance(x, Context):
        kept = x.kept_suggestions.get(id(policies))
        if kept is not None and kept.policies is policies and kept.n_actions == actions:
            return kept.suggested
    answers = []
    are_fixed = isinstance(policies, tuple)
    for policy in policies:
        answers.append(checked_suggestion(policy, x, actions))
        are_fixed = are_fixed and isinstance(policy, Fixed) and policy.is_fixed
    suggested = np.array(answers, dtype=np.intp)
    if are_fixed and isinstance(x, Context):
        x.kept_suggestions[id(policies)] = KeptSuggestions(policies, actions, suggested)
    return suggested


@dataclass(frozen=True, eq=False)
class Deviations:
    """Who of a cohort deviates, and to what.

    Attributes
    ----------
    agent_and_policy_of_row : mapping
        By each deviating row its agent's index among the cohort's N, and the policy that it plays:
        a call from what it sees to an action.
    n_actions : int
        A.
    """

    agent_and_policy_of_row: Mapping[int, tuple[int, Policy]]
    n_actions: int

    def _policy_actions(self, context: Context) -> list[int]:
        """Return the action that each deviating row's policy says, in the order of the mapping."""
        actions = []
        for agent, policy in self.agent_and_policy_of_row.values():
            actions.append(checked_suggestion(policy, context.of(agent), self.n_actions))
        return actions

    def apply(self, decision: Decision, context: Context) -> Decision:
        """Return a decision with the deviations in the place of what the rows would have done."""
        if not self.agent_and_policy_of_row:
            return decision
        rows = list(self.agent_and_policy_of_row)
        agents = [agent for agent, _policy in self.agent_and_policy_of_row.values()]
        policy_actions = self._policy_actions(context)
        pure_strategies = np.eye(self.n_actions)[policy_actions]
        return decision.changed(
            actions=_copy_with(decision.actions, agents, policy_actions),
            # What a deviating row expected is not what it acts on.
            predicted=_copy_with(decision.predicted, rows, np.nan),
            strategy=_copy_with(decision.strategy, rows, pure_strategies),
            choices=_copy_with(decision.choices, rows, policy_actions),
            drawn_from=_copy_with(decision.drawn_from, rows, pure_strategies),
        )

    def apply_to_strategy(self, strategy: Array, context: Context) -> Array:
        """Return a mixed strategy (K, A) with that of the policies in the deviating rows."""
        if not self.agent_and_policy_of_row:
            return strategy
        pure_strategies = np.eye(self.n_actions)[self._policy_actions(context)]
        rows = list(self.agent_and_policy_of_row)
        return np.asarray(_copy_with(strategy, rows, pure_strategies))


def _copy_with(array: Any, indices: list[int], values: Any) -> Any:
    """Return a copy of an array with other values at some indices; None in place of no array."""
    if array is None:
        return None
    changed = array.copy()
    changed[indices] = values
    return changed


NO_DEVIATIONS = Deviations({}, 0)


MAX_RECENT = 4096  # rows, the last ones; a power of 2 times ``MIN_RECENT``
MIN_RECENT = 64  # for which there is room at first
MAX_NOTED_ROUNDS = 64  # whose label forecasts are worked out together
MAX_ROUNDS = 2**62  # beyond which no index of an array can count them


class Recent(Checkpointable):
    """The last ``MAX_RECENT`` of the arrays of one shape that were added, one per round."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rounds", "_ring")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.rounds = 0
        self._ring = np.zeros((MIN_RECENT, *shape))

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if not 0 <= self.rounds < MAX_ROUNDS:
            raise ValueError(f"rounds is {self.rounds}")

    def last(self, count: int = 1) -> Array:
        """Return the last arrays, at most ``MAX_RECENT``, stacked, oldest first (<= count, ...)."""
        count = min(count, self.rounds, MAX_RECENT)
        return self._ring[np.arange(self.rounds - count, self.rounds) % MAX_RECENT]

    def append(self, row: Array) -> None:
        """Append an array."""
        index = self.rounds % MAX_RECENT
        if index == len(self._ring):  # room for twice as many
            self._ring = np.concatenate([self._ring, self._ring])
        self._ring[index] = row
        self.rounds += 1

    def _append_all(self, rows: Array) -> None:
        """Append arrays (T, ...) in their order, as ``append`` does one after another."""
        self.rounds += len(rows)
        while len(self._ring) < min(self.rounds, MAX_RECENT):
            self._ring = np.concatenate([self._ring, self._ring])
        recent = rows[-MAX_RECENT:]
        self._ring[np.arange(self.rounds - len(recent), self.rounds) % MAX_RECENT] = recent


class History(Recent):
    """The last outcomes (of d coordinates) and the running mean of all."""

    REMEMBERED = ("_sum",)

    def __init__(self, outcomes: int) -> None:
        super().__init__((outcomes,))
        self._sum = np.zeros(outcomes)

    @property
    def latest(self) -> Array | None:
        """The last outcome (d,), a copy; None before the first."""
        if not self.rounds:
            return None
        return np.array(self._ring[(self.rounds - 1) % MAX_RECENT])

    @property
    def mean(self) -> Array:
        """Mean outcome so far (d,); one half before the first round."""
        return self._sum / self.rounds if self.rounds else np.full_like(self._sum, 0.5)

    def add(self, outcome: Array) -> None:
        """Append an outcome; for the referee only."""
        self.append(outcome)
        self._sum += outcome

    def extend(self, outcomes: Array) -> None:
        """Append outcomes (T, d) of rounds that follow one another; for the referee only."""
        sums = np.cumsum(np.concatenate([self._sum[np.newaxis], outcomes]), axis=0)
        self._append_all(outcomes)
        self._sum[:] = sums[-1]


class ForecastRecord(Recent):
    """The last label forecasts of a block (1 + M, d): the broadcast's, then each model's.

    Nobody asks for them in a round. So rounds are noted as they come, and their labels are worked
    out for many rounds together.
    """

    REMEMBERED = ("models",)

    def __init__(self) -> None:
        super().__init__((1, 0))
        self.models: list[str] = []
        # Rounds that are noted and not added yet: what was broadcast, and what each model predicted
        # (M, n); and the basis whose ``inverse`` makes labels of predictions.
        self._noted: list[tuple[Forecast, Array]] = []
        self._basis: Basis | None = None

    def note(
        self,
        forecast: Forecast,
        points: Array,
        models: Sequence[str],
        *,
        basis: Basis,
    ) -> None:
        """Note a round; with other models than before it begins anew.

        Parameters
        ----------
        forecast : Forecast
            What was broadcast.
        points : array (M, n)
            What each model predicted; it does not change later.
        models : sequence of str
            Their names.
        basis : Basis
            That of the predictions, the same in every round.
        """
        if list(models) != self.models:
            self._noted = []
            self.rounds = 0
            self.models = list(models)
        elif len(self._noted) == MAX_NOTED_ROUNDS:
            self._add_noted()
        self._basis = basis
        self._noted.append((forecast, points))

    def _add_noted(self) -> None:
        """Add the rounds that were noted."""
        if not self._noted or self._basis is None:
            return
        basis = self._basis
        n_rounds = len(self._noted)
        if basis.inverse_is_rowwise:  # of what was not drawn nobody here reads the labels
            broadcast = np.array([forecast.statistics for forecast, _points in self._noted])
            labels_of_broadcast = basis.inverse(broadcast)
        else:
            labels_of_broadcast = np.array([forecast.label for forecast, _points in self._noted])
        labels = labels_of_broadcast[:, np.newaxis]
        if self.models:
            points = np.concatenate([points for _forecast, points in self._noted])
            labels_of_models = basis.inverse(points).reshape(n_rounds, len(self.models), -1)
            labels = np.concatenate([labels, labels_of_models], axis=1)
        self._noted = []
        if not self.rounds:
            super().__init__(labels.shape[1:])
        self._append_all(labels)

    def last(self, count: int = 1) -> Array:
        self._add_noted()
        return super().last(count)

    def state(self) -> dict[str, Any]:
        self._add_noted()
        return super().state()

    def restore(self, state: dict[str, Any]) -> None:
        self._noted = []
        super().restore(state)

    def add(self, labels: Array, models: Sequence[str]) -> None:
        """Append a round; with other models than before it begins anew."""
        if list(models) != self.models or not self.rounds:
            super().__init__(labels.shape)
            self.models = list(models)
        self.append(labels)
