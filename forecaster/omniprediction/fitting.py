"""Fitting: the online forecaster over the rows in random order, some rounds' predictors kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regretless.forecaster.events.bounds import BiasBound, GainBound, regret_since
from regretless.forecaster.events.protected import LossGroup, moved_mass
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.omniprediction.batch_bounds import OnlineRegret, Trial
from regretless.forecaster.omniprediction.predictors import KeptPredictors, Snapshots, Suggests
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis

EventKind = Literal["coordinates", "losses"]

ROUNDING = 1e-9
CHUNK = 1024  # rows whose losses are computed at once
MOST_MEGABYTES = 2048.0


@dataclass(frozen=True, eq=False)
class Listed:
    """The losses that are protected, and their linear forms.

    Parameters
    ----------
    stacks : tuple of stacked losses
        Distinct within a stack, with values in [0, 1].
    offsets, weights : tuple of array (K, A), (K, A, n)
        One pair for each stack.
    """

    basis: Basis
    stacks: tuple[Loss, ...]
    offsets: tuple[Array, ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, losses: Sequence[Loss], basis: Basis) -> "Listed":
        """List losses in a basis; UserError where it does not span them."""
        stacks = [unique_losses(loss if loss.stack else loss.as_stack())[0] for loss in losses]
        try:
            tables = [basis.coefficients(stack) for stack in stacks]
        except ValueError as reason:
            raise UserError(f"basis {type(basis).__name__}: {reason}; leave basis out") from reason
        return cls(
            basis,
            tuple(stacks),
            tuple(np.ascontiguousarray(offset) for offset, _ in tables),
            tuple(np.ascontiguousarray(weights) for _, weights in tables),
        )

    @property
    def count(self) -> int:
        """Number of distinct losses, K."""
        return sum(len(offset) for offset in self.offsets)

    @property
    def singles(self) -> list[Loss]:
        """All losses, one by one."""
        return [stack[k] for stack in self.stacks for k in range(len(stack))]

    @property
    def actions(self) -> int | None:
        """Number of actions A, None where stacks differ."""
        counts = {offset.shape[1] for offset in self.offsets}
        return counts.pop() if len(counts) == 1 else None

    def groups(self, policies: int) -> list[LossGroup]:
        """Return what the forecaster protects, with this many policies each."""
        rules = tuple(Suggests(j) for j in range(policies))
        pairs = zip(self.offsets, self.weights, strict=True)
        return [LossGroup(offset, weights, rules) for offset, weights in pairs]


@dataclass(frozen=True)
class Settings:
    """How the online forecaster is run.

    Parameters
    ----------
    events : "coordinates" or "losses"
    weights : "adaptive" or "exponential"
    kept : int
        Rounds to keep, at most all.
    burn_in : float
        Share of the rounds, from the first, that neither count nor are kept; in [0, 1).
    """

    events: EventKind
    weights: str
    kept: int
    burn_in: float
    seed: int

    @classmethod
    def of(cls, estimator: Any, rounds: int) -> "Settings":
        """Return an estimator's, for so many rounds; 10 sqrt(T) are kept unless it says."""
        kept = estimator.rounds_kept or math.ceil(10 * math.sqrt(rounds))
        seed = estimator.random_state or 0
        return cls(estimator.events, estimator.weights, kept, estimator.burn_in, seed)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves.

    Parameters
    ----------
    online : tuple of OnlineRegret
        One for each stack.
    rounds, policies : int
        T, the rounds that count, and C.
    bias : BiasBound
        The a-priori bound of the run, with its certificates.
    """

    listed: Listed
    predictors: KeptPredictors
    online: tuple[OnlineRegret, ...]
    rounds: int
    policies: int
    bias: BiasBound

    def trial(self, actions: int, kappa: float) -> Trial:
        """Return what the bounds' probabilities are about."""
        return Trial(
            self.rounds,
            len(self.predictors.snapshots),
            self.listed.count,
            actions,
            actions + self.policies,
            kappa,
        )

    def online_bound(self, stack: int) -> Array | None:
        """Bound the online regret (K,) of a stack in expectation over the draws, a priori.

        None for scalar events after a burn-in: they promise nothing about a part of the rounds.
        """
        scalar = isinstance(self.bias, GainBound)
        if scalar and self.bias.rounds > self.rounds:
            return None
        weights = self.listed.weights[stack]
        own = self.listed.stacks[stack]
        burnt = self.bias.rounds - self.rounds
        if scalar:
            bound = self.bias.regret(weights, policies=self.policies)
        else:
            bound = regret_since(self.bias, weights, joined=burnt, policies=self.policies)
        return np.asarray(bound + 2 * self.listed.basis.certified_error(own))


def player_for(
    listed: Listed, policies: int, settings: Settings, rounds: int
) -> UnbiasedPrediction:
    """Return the online forecaster."""
    groups = listed.groups(policies)
    if settings.events not in ("coordinates", "losses"):
        raise UserError(f"events = {settings.events!r}: choose 'coordinates' or 'losses'")
    try:
        return UnbiasedPrediction(
            groups if settings.events == "coordinates" else LossEvents(groups),
            weights=settings.weights,
            horizon=rounds,
            hull=listed.basis.hull,
        )
    except ValueError as reason:
        raise UserError(str(reason)) from reason


def run(listed: Listed, suggestions: Indices, outcomes: Array, settings: Settings) -> Fitted:
    """Play the online forecaster over the rows in a random order.

    Parameters
    ----------
    suggestions : int array (m, C)
    outcomes : array (m, d)

    Raises
    ------
    UserError
        If the kept rounds would not fit into memory.
    """
    rounds, policies = suggestions.shape
    player = player_for(listed, policies, settings, rounds)
    burnt = int(settings.burn_in * rounds)
    kept = min(settings.kept, rounds - burnt)
    size = Snapshots.megabytes(player, kept)
    if size > MOST_MEGABYTES:
        raise UserError(
            f"rounds_kept = {kept}: they take {size:,.0f} MiB; keep fewer, or use events='losses'"
        )
    rng = stream(settings.seed, "omniprediction")
    order, chosen = rng.permutation(rounds), np.zeros(rounds, dtype=bool)
    chosen[burnt + rng.choice(rounds - burnt, kept, replace=False)] = True
    snapshots = Snapshots(player, kept)
    online = tuple(OnlineRegret(len(table), table.shape[1], policies) for table in listed.offsets)
    for first in range(0, rounds, CHUNK):
        rows = order[first : first + CHUNK]
        truths = listed.basis.transform(outcomes[rows])
        values = [checked_values(stack.losses(outcomes[rows])) for stack in listed.stacks]
        for i, row in enumerate(rows):
            if chosen[first + i]:
                snapshots.keep()
            mixture = player.mixture(suggestions[row])
            if first + i >= burnt:
                play, _ = moved_mass(player.events.rows, mixture.points, mixture.weights)
                charge(online, play, [table[i] for table in values], suggestions[row])
            player.update(truths[i])
    bias = player.bias_bound()
    return Fitted(listed, KeptPredictors(snapshots), online, rounds - burnt, policies, bias)


def charge(
    online: Sequence[OnlineRegret], play: Array, values: Sequence[Array], suggestions: Indices
) -> None:
    """Add a round to the regrets of all stacks; ``play`` (R,) has their rows in order."""
    place = 0
    for regret, table in zip(online, values, strict=True):
        regret.charge(play[place : place + table.size].reshape(table.shape), table, suggestions)
        place += table.size


def checked_values(values: Array) -> Array:
    """Return losses; UserError if one leaves [0, 1]."""
    if not ((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all():
        raise UserError("losses leave [0, 1] at these outcomes; use loss.normalised()")
    return values
