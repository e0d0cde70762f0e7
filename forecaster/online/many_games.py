"""What shops regret while their models are trusted, and when these are given up, in arrays.

It is what ``GainEvents``, ``Reference`` and ``SwitchTest`` keep of one series, for S shops at once,
as long as every forecast is the models' own: nothing is weighed, and a round changes the sums of
the actions that were played alone. A round in which some test may reject a shop's models is judged
by the shop's own ``GainEvents`` on the sums here, so that both decide alike.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.guarantees.norms import gain_range
from regretless.forecaster.switch_test import BET_SHARES, GREATEST_SURPRISE, Bets, SwitchTest
from regretless.forecaster.unbiased import ROUNDING
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled, over_rows

N_SUMS = 5  # gains, variations, squares, squares given the action, and margins


@compiled(nogil=True)
def write_expected(
    offset: Array, weights: Array, points: Array, expected: Array, first: int, last: int
) -> None:
    """Write the losses that shops expect (compiled).

    expected[s, k, a] = offset[s, k, a] + sum_i weights[s, k, i, a] points[s, i].

    Parameters
    ----------
    offset, weights : array (S, K, A), (S, K, n, A)
        Coefficients of every shop's losses.
    points : array (S, n)
        A prediction for each shop.
    expected : array (S, K, A)
        Written.
    first, last : int
        Span of shops.
    """
    for s in range(first, last):
        for k in range(offset.shape[1]):
            for a in range(offset.shape[2]):
                expected[s, k, a] = offset[s, k, a]
            for i in range(points.shape[1]):
                for a in range(offset.shape[2]):
                    expected[s, k, a] += weights[s, k, i, a] * points[s, i]


@compiled(nogil=True)
def _write_best_actions(
    offset: Array, weights: Array, points: Array, actions: Indices, first: int, last: int
) -> None:
    """Write the best response of every loss to every model (compiled).

    ``offset`` and ``weights`` are as in ``write_expected``, ``points`` (S, M, n) the models'
    predictions; ``actions`` (S, K, M) is written for the shops from ``first`` to before ``last``.
    """
    n_actions = offset.shape[2]
    expected = np.empty(n_actions)
    for s in range(first, last):
        for k in range(offset.shape[1]):
            for m in range(points.shape[1]):
                for a in range(n_actions):
                    expected[a] = offset[s, k, a]
                for i in range(points.shape[2]):
                    for a in range(n_actions):
                        expected[a] += weights[s, k, i, a] * points[s, m, i]
                best = 0
                for a in range(1, n_actions):
                    if expected[a] < expected[best]:
                        best = a
                actions[s, k, m] = best


@compiled(nogil=True)
def _charge(
    offset: Array,
    weights: Array,
    scale: Array,
    points: Array,
    statistics: Array,
    played: Indices,
    suggested: Indices,
    is_charged: Mask,
    squared: bool,  # noqa: FBT001
    sums: Array,
    greatest: Array,
    excess: Array,
    slopes: Array,
    first: int,
    last: int,
) -> None:
    """Add a round to the sums of gains (compiled); its formulas are those of ``loss_events``.

    Parameters
    ----------
    offset, weights : array (S, K, A), (S, K, n, A)
        Coefficients of every shop's losses.
    scale : array (S, K)
        D, the range of the gains of each loss.
    points, statistics : array (S, n)
        p, and s(y).
    played, suggested : int array (S, K), (S, K, M)
        The actions that were played, and those of the models.
    is_charged : bool array (S,)
        The shops that have learned the round.
    squared : bool
        Whether variations add up squares.
    sums : array (5, S, K, A, A + M)
        Gains, variations, squares, squares given the action and margins; added to in place.
    greatest : array (S, K, A)
        Of each action's gains the greatest, and at least 0; changed in place.
    excess : array (S,)
        Added to: by how much the losses of all kinds exceed what was expected of them.
    slopes : array (S, n)
        Added to: the coefficients of the actions that were played.
    first, last : int
        Span of shops.
    """
    n_actions = offset.shape[2]
    n_comparators = sums.shape[4]
    value = np.empty(n_actions)
    realised = np.empty(n_actions)
    for s in range(first, last):
        if not is_charged[s]:
            continue
        for k in range(offset.shape[1]):
            for b in range(n_actions):
                value[b] = 0.0
                realised[b] = offset[s, k, b]
            for i in range(points.shape[1]):
                bias = points[s, i] - statistics[s, i]
                for b in range(n_actions):
                    value[b] += weights[s, k, i, b] * bias
                    realised[b] += weights[s, k, i, b] * statistics[s, i]
            a = played[s, k]
            excess[s] -= value[a]
            for i in range(points.shape[1]):
                slopes[s, i] += weights[s, k, i, a]
            largest = 0.0
            for c in range(n_comparators):
                b = c if c < n_actions else suggested[s, k, c - n_actions]
                regret = realised[a] - realised[b]
                gain = max(min(value[b] - value[a], regret), -scale[s, k])
                margin = (gain - regret) / scale[s, k]
                gain /= scale[s, k]
                sums[0, s, k, a, c] += gain
                sums[1, s, k, a, c] += gain * gain if squared else abs(gain)
                sums[2, s, k, a, c] += gain * gain
                sums[3, s, k, a, c] += gain * gain
                sums[4, s, k, a, c] += margin
                largest = max(largest, sums[0, s, k, a, c])
            greatest[s, k, a] = largest


class ManyLosses:
    """The coefficients of a group of K losses with A actions, of all shops."""

    def __init__(self, groups: Sequence[ProtectedLosses], *, n_statistics: int) -> None:
        n_losses, n_actions = groups[0].offset.shape
        self.offset = np.array([group.offset for group in groups])
        self.weights = np.zeros((len(groups), n_losses, n_statistics, n_actions))
        for shop, group in enumerate(groups):
            of_shop = group.weights.swapaxes(1, 2)
            self.weights[shop, :, : of_shop.shape[1]] = of_shop

    def expected(self, points: Array) -> Array:
        """Return the losses (S, K, A) that shops expect at their predictions (S, n)."""
        expected = np.empty(self.offset.shape)
        over_rows(write_expected, len(points), self.offset, self.weights, points, expected)
        return expected

    def best_actions(self, points: Array) -> Indices:
        """Return the best responses (S, K, M) to M predictions of each shop (S, M, n)."""
        actions = np.empty((*self.offset.shape[:2], points.shape[1]), dtype=np.intp)
        over_rows(_write_best_actions, len(points), self.offset, self.weights, points, actions)
        return actions


class ManyGains:
    """The gains of a group of losses of all shops, of which one shop's events have views."""

    def __init__(self, losses: ManyLosses, scale: Array, *, models: int) -> None:
        n_shops, n_losses, n_actions = losses.offset.shape
        self.losses = losses
        self._scale = scale
        shape = (n_shops, n_losses, n_actions, n_actions + models)
        self.sums = np.zeros((N_SUMS, *shape))
        actions = np.arange(n_actions)
        self.sums[0, :, :, actions, actions] = -np.inf  # never weighed against itself
        self.greatest = np.zeros(shape[:3])

    def charge(
        self,
        points: Array,
        statistics: Array,
        *,
        played: Indices,
        suggested: Indices,
        is_charged: Mask,
        squared: bool,
        excess: Array,
        slopes: Array,
    ) -> None:
        """Add a round, as ``_charge`` describes it."""
        over_rows(
            _charge,
            len(points),
            self.losses.offset,
            self.losses.weights,
            self._scale,
            points,
            statistics,
            played,
            suggested,
            is_charged,
            squared,
            self.sums,
            self.greatest,
            excess,
            slopes,
        )

    @property
    def greatest_sums(self) -> Array:
        """Of every shop's losses the greatest sum of gains over actions (S,)."""
        return np.asarray(self.greatest.sum(2).max(1))


class ManyGames:
    """Regrets of all shops while their models are trusted, and the tests of these.

    Parameters
    ----------
    groups : sequence of sequence of ProtectedLosses
        Of each shop; all shops have as many losses and actions.
    n_statistics : int
        The most that a shop predicts.
    models : int
        How many models there are.

    Attributes
    ----------
    wealth : array (S, J)
        Logarithms of the shops' bets.
    """

    def __init__(
        self, groups: Sequence[Sequence[ProtectedLosses]], *, n_statistics: int, models: int
    ) -> None:
        self._groups = groups
        self._models = models
        events = GainEvents(groups[0], models=models)
        self._switch_test = SwitchTest(events.alarms)
        self._squared = events.rule.squared
        # a sum of gains up to which no kind of test rejects, however few share its risk
        self._harmless = SwitchTest(tests=1).harmless
        self.losses = []
        self.gains = []
        for index in range(len(groups[0])):
            group_of_shops = [groups_of_shop[index] for groups_of_shop in groups]
            losses = ManyLosses(group_of_shops, n_statistics=n_statistics)
            scale = np.array([gain_range(group.weights, None) for group in group_of_shops])
            self.losses.append(losses)
            self.gains.append(ManyGains(losses, scale, models=models))
        self.wealth = np.zeros((len(groups), len(BET_SHARES)))
        self._bets_evidence = Bets().evidence
        # Events of shops that came near to a limit, whose sums are views of those here.
        self._events: dict[int, GainEvents] = {}

    def charge(
        self,
        points: Array,
        statistics: Array,
        *,
        played: Sequence[Indices],
        suggested: Sequence[Indices],
        is_charged: Mask,
    ) -> Mask:
        """Add a round to the shops that learned it; which of them give up their models (S,).

        ``points`` and ``statistics`` (S, n) are p and s(y); ``played`` and ``suggested`` are, of
        each group, the actions (S, K) and those of the models (S, K, M).
        """
        excess = np.zeros(len(points))
        slopes = np.zeros(points.shape)
        greatest = np.full(len(points), -np.inf)
        for gains, played_of_group, suggested_of_group in zip(
            self.gains, played, suggested, strict=True
        ):
            gains.charge(
                points,
                statistics,
                played=played_of_group,
                suggested=suggested_of_group,
                is_charged=is_charged,
                squared=self._squared,
                excess=excess,
                slopes=slopes,
            )
            greatest = np.maximum(greatest, gains.greatest_sums - self._harmless)
        # s_t and m_t of the switch test
        above_best_outcome = (slopes * statistics).sum(1) - np.minimum(slopes, 0.0).sum(1)
        shortfall = above_best_outcome - excess
        can_bet = shortfall > ROUNDING
        surprise = np.where(can_bet, excess / np.where(can_bet, shortfall, 1.0), 0.0)
        payoff = np.minimum(surprise, GREATEST_SURPRISE)[:, np.newaxis]
        wealth = self.wealth + np.log1p(BET_SHARES * payoff)
        self.wealth[is_charged] = wealth[is_charged]
        log_mean_wealth = np.logaddexp.reduce(self.wealth, axis=1) - np.log(len(BET_SHARES))
        is_surprising = is_charged & (log_mean_wealth > self._bets_evidence)
        may_be_beyond = is_charged & (greatest > 0.0)
        given_up = np.zeros(len(points), dtype=bool)
        for shop in np.flatnonzero(is_surprising | may_be_beyond).tolist():
            events = self._events_of(shop)
            is_beyond = events.exceeds([], self._switch_test)
            is_doubtful = False
            if is_surprising[shop]:
                is_doubtful = events.exceeds([], self._switch_test, hint=True)
            given_up[shop] = is_beyond or is_doubtful
        return given_up

    def _events_of(self, shop: int) -> GainEvents:
        """Return a shop's events, whose sums are those here."""
        if shop not in self._events:
            events = GainEvents(self._groups[shop], models=self._models)
            for member, gains in zip(events.members, self.gains, strict=True):
                of_shop = gains.sums[:, shop]
                member.gain, member.variation, member.squares = of_shop[:3]
                member.played_squares, member.margin = of_shop[3:]
            self._events[shop] = events
        return self._events[shop]

    def state(self) -> dict[str, Any]:
        """Return what a file needs."""
        state: dict[str, Any] = {"wealth": self.wealth.copy()}
        for index, gains in enumerate(self.gains):
            state[f"sums_{index}"] = gains.sums.copy()
            state[f"greatest_{index}"] = gains.greatest.copy()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it; events have views of the sums, which are written in place."""
        self.wealth[...] = state["wealth"]
        for index, gains in enumerate(self.gains):
            gains.sums[...] = state[f"sums_{index}"]
            gains.greatest[...] = state[f"greatest_{index}"]

    def write_to(self, events: GainEvents, shop: int) -> None:
        """Put a shop's sums into events of its own."""
        for member, gains in zip(events.members, self.gains, strict=True):
            sums_of_member = (
                member.gain,
                member.variation,
                member.squares,
                member.played_squares,
                member.margin,
            )
            for sums, kept in zip(sums_of_member, gains.sums[:, shop], strict=True):
                sums[...] = kept
