"""What is conditioned on: ``EventSet``, the seam between a forecaster and its events.

A set is made with the rule that weighs it, and keeps the gains and variations that this rule
wants. Sets add up: ``a + b`` is one game for both. ``Intervals`` wraps any of them.

    VectorEvents    ``coordinate``   decision and cross events of all coordinates: the paper's
    GainEvents      ``scalar``       gains of listed losses against actions, policies and models
    Together        here             the sum of sets
    Intervals       ``intervals``    copies that know the rounds of one interval alone
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.protected import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import Band, Moment, WeightRule, Weights
from regretless.forecaster.trust import Trust
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated

Event = tuple[int, int, int | None, int | None, float, Array]


class EventSet(Checkpointable, ABC):
    """Events on which predictions shall have no bias, with what they have gained so far."""

    rows: LossTable  # the protected losses, all over the same basis, with R (loss, action) pairs
    rule: WeightRule
    experts: int  # N, how many gains are weighed
    crossed: bool = False  # whether it bounds contextual swap regret
    joinable: bool = False  # whether it promises anything to agents that come later
    lengths: tuple[int, ...] = ()  # of the intervals over which it bounds regret
    run: int = 0  # the rounds of the run, which set the intervals' shares
    drawn: bool = False  # whether it charges the prediction that was broadcast, beside expectations
    beyond: int = 0  # lines of the game's table that follow those of the losses

    @property
    def groups(self) -> tuple[ProtectedLosses, ...]:
        """The protected losses."""
        return self.rows.groups

    @property
    def size(self) -> int:
        """Number of basis functions, n."""
        return self.rows.shape[1]

    @abstractmethod
    def active(self, x: Any, suggestions: Indices | None = None) -> Any:
        """Return the events that can happen in a round, given the context.

        ``suggestions`` (losses, M) is what each model suggests to each loss. ValueError if a policy
        suggests an action that its group does not have.
        """

    @abstractmethod
    def top(self, active: Any, moment: Moment) -> float:
        """Return the greatest exponent of active events, to which weights are relative."""

    @abstractmethod
    def weigh(self, active: Any, moment: Moment, weights: Weights, share: float = 1.0) -> None:
        """Add the weights of active events to a round's; ``share`` is their part of the prior."""

    def table_of(self, active: Any, moment: Moment) -> Array:
        """Return H (R + beyond, n), the signed weights of active events, which add up to 1."""
        lines, size = self.rows.shape
        weights = Weights((lines + self.beyond, size), self.top(active, moment))
        self.weigh(active, moment, weights)
        return weights.normalised()

    @abstractmethod
    def charge(self, active: Any, played: Played) -> None:
        """Add a round to the gains, in expectation over the mixture."""

    def begin(self) -> None:
        """Note that the first game is played after rounds in which a reference was trusted."""

    @abstractmethod
    def exceeds(self, active: Any, trust: Trust, *, hint: bool = False) -> bool:
        """Whether a reference has cost some event that was active more than it may.

        With ``hint``, whether it has cost more than nothing.
        """

    @abstractmethod
    def spent(self) -> float:
        """Return the sum of ln(1 + C) over all experts."""

    @abstractmethod
    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the sum of all experts' potentials."""

    @abstractmethod
    def bound(self, **stand: Any) -> BiasBound:
        """Return the bound on all gains; ``stand`` are the fields of ``Stand`` but the rule."""

    @abstractmethod
    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,) so far."""

    def realised(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        """Bound the same of who acts on what was broadcast; None if only expectations are known."""
        return None

    def of_anybody(self, **stand: Any) -> BiasBound | None:
        """Return what bounds the regret of losses that are not listed; None where nothing does."""
        return None

    def anybody_from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of their expected regret (K,), with that bound at its own variations."""
        raise NotImplementedError

    def table(self) -> Iterator[Event]:
        """Yield every event: loss, action, policy, suggestion, occupancy, bias."""
        return iter(())

    @abstractmethod
    def reset(self) -> None:
        """Begin anew."""

    def __add__(self, other: "EventSet") -> "Together":
        """Return the sum: one game for both."""
        return Together([self, other])


Shared = list[tuple[EventSet, float, Any]]  # sets with their shares of the prior and active events


class Together(EventSet):
    """The sum of event sets over the same losses and rule: one game keeps all potentials down.

    The first one says what is promised to listed losses and what the tables show, the last one what
    is promised to others; all experts count.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("parts",)

    def __init__(self, parts: Sequence[EventSet]) -> None:
        self.parts, first = list(parts), parts[0]
        self.first, self.others = first, parts[-1]
        self.rows, self.rule = first.rows, first.rule
        self.experts = sum(part.experts for part in parts)
        self.crossed, self.joinable = first.crossed, first.joinable
        self.beyond = max(part.beyond for part in parts)

    def active(self, x: Any, suggestions: Indices | None = None) -> Shared:
        """Return the active events of every part, each with its share of the prior."""
        return [(part, 1.0, part.active(x, suggestions)) for part in self.parts]

    def top(self, active: Shared, moment: Moment) -> float:
        return max(part.top(own, moment) for part, _, own in active)

    def weigh(self, active: Shared, moment: Moment, weights: Weights, share: float = 1.0) -> None:
        for part, part_share, own in active:
            part.weigh(own, moment, weights, share * part_share)

    def charge(self, active: Shared, played: Played) -> None:
        for part, _, own in active:
            part.charge(own, played)

    def begin(self) -> None:
        """Tell every part."""
        for part in self.parts:
            part.begin()

    def exceeds(self, active: Shared, trust: Trust, *, hint: bool = False) -> bool:
        return any(part.exceeds(own, trust, hint=hint) for part, _, own in active)

    def spent(self) -> float:
        return sum(part.spent() for part in self.parts)

    def log_potential(self, band: Band) -> float:
        return float(np.logaddexp.reduce([part.log_potential(band) for part in self.parts]))

    bound = Delegated("first")
    from_variation = Delegated("first")
    table = Delegated("first")

    of_anybody = Delegated("others")
    anybody_from_variation = Delegated("others")

    def reset(self) -> None:
        for part in self.parts:
            part.reset()
