"""Scalar events: conditioning on what hurts, for a finite list of losses.

Other events are those of coordinates (``decision_events``).

For a protected loss k, played action a and comparator c (every fixed action, every policy) the
expert's gain is, with r the coefficients,

    g_t = E_{p ~ mixture_t}[ [BR_k(p) = a] <r(c) - r(a), p - s_t> ] / scale_k.

An agent that best-responds has r(a).p <= r(c).p: what it loses against c while playing a is at most
scale_k times the cumulative gain G, and swap and decision swap regret at most sum_a max_c scale_k
max(G_{k,a,c}, 0), without lambda and without n. The regret is the gain less the **margin**, by
which the prediction promised a to be better than c; what bounds gains by X bounds regret by sum_a
max_c (X - M), M the sum of margins (docs/theory.md, 17). While a reference is trusted the gain is
the regret itself. A **model** that predicts s(y) is a comparator too, another one for each loss: c
is then the best response of loss k to the model's prediction. Coordinates have the models' gains
beside their own events. Where all models have failed, their gains are noise: their band is wider.

``scale_k`` keeps gains in [-1, 1]: max ||r(c) - r(a)||_1 over the box, and at most 2 where
predictions stay in conv s(Y), since then expected and true losses lie in [0, 1] and the played
action is the best expected. A loss that was not listed is not protected.

**Assignments** (docs/theory.md, 6). For a loss k, with d_t(a, c) the mean gain given that a is
played, q_t(a) the chance of that, G(a, c) = sum_t q_t(a) d_t(a, c) and U the same of squares,

    F_k = sum_j prod_a sum_c exp(eta_j G - psi_j U) / C / J,    psi_j = -eta_j - ln(1 - eta_j).

With s(a, c) the current shares of c at a, x = eta d - psi d^2 and exp(x) <= 1 + eta d,

    prod_a sum_c s e^(q x) <= prod_a (sum_c s e^x)^q <= sum_a q sum_c s e^x
                           <= 1 + eta sum_a q(a) sum_c s(a, c) d(a, c),

as the q(a) add up to 1. So F_k grows with the mean gain of the weights eta_j F_kj s(a, c) / J, and
one game keeps W, the sum of the gains' potentials and r (N / K) sum_k F_k, r = 1 %, below N P, P =
e^(k S) (1 + r + l ln(1 + T)), and so T x regret of k <= scale_k min_j (L + psi_j U) / eta_j, U =
sum_a max_c U(a, c) <= T, L = A ln C + ln(J K / r) + ln P; or, with the known margins, regret of k
<= min_j { scale_k L / eta_j + sum_a max_c [scale_k psi_j U(a, c) / eta_j - M(a, c)] }. Gains keep
their own bound, with this P, and the lesser of both is printed. Where a reference was trusted the
F_k begin at 1 when the games begin; what was regretted before is added: known, or at most A L(T /
A) + A. **As drawn**, charged
with the prediction that was broadcast, P / risk stands for P in both, P the greatest of a stretch
of rounds (``weights.AdaptiveWeights.log_growth``); the gains stay charged in
expectation.
"""

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.events.base import (
    NO_SUMS,
    ROUNDING,
    EventSet,
    EventSums,
    WeightedEvents,
)
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.guarantees.gain_bound import (
    ASSIGNMENT_COSTS,
    ASSIGNMENT_RATES,
    GainBound,
)
from regretless.forecaster.guarantees.norms import gain_range
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import (
    AdaptiveWeights,
    BoundInputs,
    ExpertWeights,
    Moment,
    WeightRule,
)
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import is_ours
from regretless.market.losses.basis import Hull
from regretless.market.numerics.storage import without_unused_numbers
from regretless.market.records import Event, suggestions_to_all

PRIOR_OF_ASSIGNMENTS = 0.01  # r
MAX_GAINS = 200_000_000  # gains, of at most 40 bytes each


class GainsOfRound(NamedTuple):
    """What a round adds to the sums of one group, in units of each loss's scale.

    An action that is not played has neither gain nor margin, so that only P rows are listed: best
    responses play one action each.
    """

    rows: Indices  # (P,), loss k and action a that are played, as k A + a, ascending
    gain: Array  # (P, C)
    margin: Array  # (P, C), by how much the gain exceeds the regret


@compiled(error_model="numpy")  # what divides is positive
def _write_gains(
    rows: Indices,
    bias: Array,
    numbers: Indices,
    coefficients: Array,
    suggested: Indices,
    scale: Array,
    reference_is_trusted: bool,  # noqa: FBT001
    chance: Array,
    realised_losses: Array,
    gain: Array,
    margin: Array,
) -> None:
    """Write what a round adds to the gains and margins (compiled).

    With B the bias of "k plays a", r the coefficients, b the action of comparator c, D the scale, q
    the chance and l the losses,

        value[k, a, b] = <r_k(b), B_ka>,
        D gain[k, a, c] = value[k, a, b] - value[k, a, a],
        D margin[k, a, c] = D gain[k, a, c] - q[k, a] (l[k, a] - l[k, b]).

    The value is of the bias of p - s, so that the gain is what the played action a loses against b
    beyond what it was expected to. While a reference is trusted the gain is at most the regret, and
    at least -q: the gain itself is no less, so that increments stay in [-1, 1] even where D < 1 and
    a policy's regret is far below -D. Where this cut is felt every regret that this prediction
    leaves possible is below 0, so that it costs a calibrated reference nothing in expectation.

    Parameters
    ----------
    rows : int array (P,)
        The pairs k, a that are played, as k A + a.
    bias : array (K A, n)
        B of every pair.
    numbers : int array (K, m)
        The entries of B that each loss depends on, ascending.
    coefficients : array (K, A, m)
        r, at these numbers.
    suggested : int array (K, C - constants)
        What the comparators after the constant actions suggest.
    scale : array (K,)
        D, the range of the gains of each loss.
    reference_is_trusted : bool
        Whether a reference is trusted.
    chance : array (K A,)
        q, with which each action is played.
    realised_losses : array (K A,)
        l, at the outcome.
    gain, margin : array (P, C)
        Written.
    """
    n_actions = coefficients.shape[1]
    n_comparators = gain.shape[1]
    n_constants = n_comparators - suggested.shape[1]
    value = np.empty(n_actions)  # of every action b where k plays a
    gain_over = np.empty(n_actions)  # and what a gains over it, whoever suggests it
    margin_over = np.empty(n_actions)
    for p in range(rows.shape[0]):
        row = rows[p]
        k = row // n_actions
        first_row = k * n_actions  # of the loss
        for b in range(n_actions):
            product = 0.0
            for i in range(numbers.shape[1]):
                product += bias[row, numbers[k, i]] * coefficients[k, b, i]
            value[b] = product
        value_of_played = value[row - first_row]
        for b in range(n_actions):
            excess = value[b] - value_of_played
            regret = chance[row] * (realised_losses[row] - realised_losses[first_row + b])
            if reference_is_trusted:
                excess = max(min(excess, regret), -chance[row] * scale[k])
            gain_over[b] = excess / scale[k]
            margin_over[b] = 0.0
            if excess != regret:  # seldom, while a reference is trusted: divisions take long
                margin_over[b] = (excess - regret) / scale[k]
        for c in range(n_comparators):
            b = c
            if c >= n_constants:
                b = suggested[k, c - n_constants]
            gain[p, c] = gain_over[b]
            margin[p, c] = margin_over[b]


@compiled(error_model="numpy")  # what divides is positive
def _add_gains(
    rows: Indices,
    gain: Array,
    margin: Array,
    chance: Array,
    squared: bool,  # noqa: FBT001
    tests_go_on: bool,  # noqa: FBT001
    gains: Array,
    margins: Array,
    variation: Array,
    squares: Array,
    played_squares: Array,
) -> float:
    """Add the gains of a round to all sums (compiled).

    Parameters
    ----------
    rows : int array (P,)
        The pairs k, a that are played, as k A + a, ascending.
    gain, margin : array (P, C)
        g of the round, and by how much it exceeds the regret.
    chance : array (K A,)
        q, with which each action is played.
    squared, tests_go_on : bool
        Whether variations add up squares, not sizes; whether the switch test wants g^2 / q.
    gains, margins, variation, squares, played_squares : array (K, A, C)
        Added to in place: g, its margin, its size, g^2, and g^2 / q. Where variations add up
        squares, ``variation`` is ``squares``, and sizes are added to nothing.

    Returns
    -------
    float
        max_k sum_a max(0, max_c g[k, a, c]): by no more did the ``_greatest_sum`` of gains grow.
    """
    n_actions = gains.shape[1]
    greatest_growth = 0.0
    growth = 0.0  # of the sum of the loss whose rows are added
    loss = -1
    for p in range(rows.shape[0]):
        k = rows[p] // n_actions
        a = rows[p] - k * n_actions
        if k != loss:
            loss = k
            growth = 0.0
        greatest_gain = 0.0
        play_chance = chance[rows[p]]
        is_certain = play_chance == 1.0
        for c in range(gain.shape[1]):
            square = gain[p, c] * gain[p, c]
            greatest_gain = max(greatest_gain, gain[p, c])
            gains[k, a, c] += gain[p, c]
            if margin[p, c] != 0.0:  # it mostly is, and the sums would have to come from memory
                margins[k, a, c] += margin[p, c]
            squares[k, a, c] += square
            if not squared:
                variation[k, a, c] += abs(gain[p, c])
            if tests_go_on:
                # A best response is certain: a division would take as long as all else here.
                played_squares[k, a, c] += square if is_certain else square / play_chance
        growth += greatest_gain
        greatest_growth = max(greatest_growth, growth)
    return greatest_growth


@compiled()
def _add_to_assignments(
    rows: Indices,
    gain: Array,
    margin: Array,
    chance: Array,
    games_have_begun: bool,  # noqa: FBT001
    sums: Array,
) -> None:
    """Add the gains of a round to the sums of assignments (compiled).

    Parameters
    ----------
    rows : int array (P,)
        The pairs k, a that are played, as k A + a.
    gain, margin : array (P, C)
        g of the round, and by how much it exceeds the regret.
    chance : array (K A,)
        q, with which each action is played.
    games_have_begun : bool
        Whether the round is weighed. While a reference is trusted it is only known.
    sums : array (4, K, A, C)
        G, U, gains before the games began, and margins: g, g^2 / q, or g in the third place, and
        the margin are added in place.
    """
    n_actions = sums.shape[2]
    for p in range(rows.shape[0]):
        k = rows[p] // n_actions
        a = rows[p] - k * n_actions
        for c in range(gain.shape[1]):
            sums[3, k, a, c] += margin[p, c]
            if games_have_begun:
                sums[0, k, a, c] += gain[p, c]
                sums[1, k, a, c] += gain[p, c] * gain[p, c] / chance[rows[p]]
            else:
                sums[2, k, a, c] += gain[p, c]


@compiled()
def _greatest_sum(gains: Array) -> float:
    """Return max_k sum_a max(0, max_c gains[k, a, c]) of gains (K, A, C)."""
    greatest_sum = 0.0
    for k in range(gains.shape[0]):
        total = 0.0
        for a in range(gains.shape[1]):
            greatest = 0.0
            for c in range(gains.shape[2]):
                greatest = max(greatest, gains[k, a, c])
            total += greatest
        greatest_sum = max(greatest_sum, total)
    return greatest_sum


@dataclass(frozen=True)
class KindsOfTest:
    """The switch tests of each kind, whose risk is divided by the number of tests of that kind."""

    of_regrets: SwitchTest  # of single regrets
    of_assignments: SwitchTest | None  # of every assignment of comparators to actions
    of_models: SwitchTest | None  # of the regrets to models
    harmless: float  # the regret up to which none of them rejects, nor that of single regrets


@lru_cache(maxsize=256)
def _kinds_of_test(
    switch_test: SwitchTest, *, assignments: int, regrets_to_models: int
) -> KindsOfTest:
    """Return the tests beside ``switch_test``, that of single regrets; none for a number 0."""
    of_assignments = replace(switch_test, tests=assignments) if assignments else None
    of_models = replace(switch_test, tests=regrets_to_models) if regrets_to_models else None
    tests = [test for test in (switch_test, of_assignments, of_models) if test is not None]
    return KindsOfTest(
        of_regrets=switch_test,
        of_assignments=of_assignments,
        of_models=of_models,
        harmless=min(test.harmless for test in tests),
    )


class Gains:
    """The gains of one group's losses, by played action and comparator (K, A, C).

    Comparators are the ``constants`` first ones, which are actions, policies, and from ``fixed`` on
    models. ``scale`` (K,) divides a loss's gains into [-1, 1].
    """

    gain: Array
    variation: Array  # the squares themselves, under a rule whose variations add up squares
    squares: Array
    played_squares: Array  # of gains given that the action is played, times the chance of that
    margin: Array  # by how much the gains exceed the regrets
    scale: Array

    def __init__(
        self, group: ProtectedLosses, rows: LossTable, *, fixed: bool, models: int
    ) -> None:
        self.group = group
        self.rows = rows.slice(group)  # of the game's table: one for each loss and action
        self.losses = rows.losses(group)  # which of all losses are the group's
        self._numbers, self._coefficients = without_unused_numbers(group.weights)
        # Comparators: first the constant actions, then policies, then models.
        self.n_constants = group.offset.shape[1] if fixed else 0
        self.policies = group.policies if fixed else ()
        self.fixed = self.n_constants + len(self.policies)  # how many of them are not models
        self.models = models
        self.shape = (*group.offset.shape, self.fixed + models)  # (K, A, C)
        # What no loss's greatest gains of its actions add up to more than, but for rounding. The
        # sums are looked through only where this could matter to the switch test.
        self.greatest_sum_at_most = math.inf
        self._tests: KindsOfTest | None = None  # with the switch test that was asked last

    def excerpt(self, *, games_have_begun: bool) -> "Gains":
        """Return a copy of the sums of comparators that are not models, to be read only.

        Variations are left out until the games begin, and squares always.
        """
        excerpt = copy(self)
        excerpt.gain = self.gain[:, :, : self.fixed].copy()
        excerpt.margin = self.margin[:, :, : self.fixed].copy()
        excerpt.variation = NO_SUMS
        if games_have_begun:
            excerpt.variation = self.variation[:, :, : self.fixed].copy()
        excerpt.squares = NO_SUMS
        excerpt.played_squares = NO_SUMS
        return excerpt

    def suggestions(self, x: object, models: Indices | None) -> Indices:
        """Return what policies suggest given the context, to all alike, and models: (K, C - A)."""
        n_losses, n_actions, n_comparators = self.shape
        suggested = np.empty((n_losses, n_comparators - self.n_constants), dtype=np.intp)
        n_policies = len(self.policies)
        if n_policies:
            suggested[:, :n_policies] = suggestions_to_all(self.policies, x, n_actions)
        if models is not None:
            suggested[:, n_policies:] = models[self.losses]
        return suggested

    def of_round(self, suggested: Indices, played: Played) -> GainsOfRound:
        """Return what a round adds to the gains, and by how much that is above the regrets.

        gain[k, a, c] = <r_k(c) - r_k(a), bias of "k plays a"> / scale_k. While a reference is
        trusted it is the regret itself, where that is less: always for a best response.
        """
        chance = played.play_chance[self.rows]
        rows = (chance > 0.0).nonzero()[0]
        gain = np.empty((len(rows), self.shape[2]))
        margin = np.empty_like(gain)
        _write_gains(
            rows,
            played.bias[self.rows],
            self._numbers,
            self._coefficients,
            suggested,
            self.scale,
            played.reference_is_trusted,
            chance,
            played.realised_losses[self.rows],
            gain,
            margin,
        )
        return GainsOfRound(rows, gain, margin)

    def add(self, gains: GainsOfRound, played: Played, *, squared: bool) -> None:
        """Add a round to all sums; ``squared`` as of the rule."""
        self.greatest_sum_at_most += _add_gains(
            gains.rows,
            gains.gain,
            gains.margin,
            played.play_chance[self.rows],
            squared,
            played.reference_is_trusted,  # the switch test goes on
            self.gain,
            self.margin,
            self.variation,
            self.squares,
            self.played_squares,
        )

    def fold_onto_rows(self, weights: Array, suggested: Indices) -> Array:
        """Turn weights (K A C,) into those of rows (R, n): sum_c w_c (r(c) - r(a)) / scale."""
        coefficients = self.group.weights  # (K, A, n)
        n_losses, n_actions, _ = self.shape
        every_loss = np.arange(n_losses)
        weights = weights.reshape(self.shape)
        # weight_towards[k, a, b]: what is put on playing b where loss k plays a, whether b is a
        # constant comparator or somebody suggests it
        weight_towards = np.zeros((n_losses, n_actions, n_actions))
        weight_towards[:, :, : self.n_constants] = weights[:, :, : self.n_constants]
        for comparator, actions in enumerate(suggested.T, start=self.n_constants):
            weight_towards[every_loss, :, actions] += weights[:, :, comparator]
        weight_towards /= self.scale[:, None, None]
        weight_away = weight_towards.sum(2, keepdims=True)  # from the action that a loss plays
        signed_weights = weight_towards @ coefficients - weight_away * coefficients
        return np.asarray(signed_weights.reshape(-1, coefficients.shape[2]))

    def exceeds(self, switch_test: SwitchTest, losses: int, *, hint: bool) -> bool:
        """Whether some regret is more than chance explains, or adds up to more over actions.

        ``losses`` counts the losses that share a kind of test, as the switch test counts.
        """
        tests = self._tests
        if tests is None or tests.of_regrets is not switch_test:
            tests = self._kinds_of_test(switch_test, losses)
            self._tests = tests
        # No single regret, and no sum of regrets over actions, is above the greatest sum.
        if not hint and self._greatest_sum_is_at_most(tests.harmless):
            return False
        regret = np.where(np.isfinite(self.gain), self.gain, 0.0)
        if switch_test.rejects(regret, self.squares, hint=hint):
            return True
        regret_over_actions = regret.sum(1)  # to the same comparator whatever is played
        squares_over_actions = self.played_squares.sum(1)
        if hint:
            return switch_test.rejects(regret_over_actions, squares_over_actions, hint=True)
        rejected = False
        if tests.of_assignments is not None:
            rejected = self._rejected_by_best_assignment(tests.of_assignments, regret)
        if tests.of_models is not None:
            regret_to_models = regret_over_actions[:, self.fixed :]
            squares_to_models = squares_over_actions[:, self.fixed :]
            rejected |= tests.of_models.rejects(regret_to_models, squares_to_models)
        return rejected

    def _kinds_of_test(self, switch_test: SwitchTest, losses: int) -> KindsOfTest:
        """Return the tests beside that of single regrets; arguments as of ``exceeds``."""
        n_assignments = 0
        if self.fixed:
            n_assignments = losses * self.fixed ** self.shape[1]
        return _kinds_of_test(
            switch_test, assignments=n_assignments, regrets_to_models=losses * self.models
        )

    def _greatest_sum_is_at_most(self, limit: float) -> bool:
        """Whether no loss's greatest gains of its actions add up to more than a limit."""
        if self.greatest_sum_at_most <= limit - ROUNDING:
            return True
        self.greatest_sum_at_most = _greatest_sum(self.gain)
        return self.greatest_sum_at_most <= limit

    def _rejected_by_best_assignment(self, switch_test: SwitchTest, regret: Array) -> bool:
        """Whether regrets (K, A, C), each to the best comparator of its action, add up to more."""
        best_comparator = regret[:, :, : self.fixed].argmax(2)[:, :, None]
        greatest_regret = np.take_along_axis(regret, best_comparator, 2)[:, :, 0]
        squares = np.take_along_axis(self.played_squares, best_comparator, 2)[:, :, 0]
        total = np.maximum(greatest_regret, 0.0).sum(1)
        total_squares = np.where(greatest_regret > 0, squares, 0.0).sum(1)
        return switch_test.rejects(total, total_squares)


@dataclass(eq=False, kw_only=True)
class WeightedGains(WeightedEvents):
    """Scalar events: each pulls the row of its loss and played action towards its comparator."""

    gains: "GainEvents"
    suggested: list[Indices]  # by policies and models to the losses of every group, (K, C - A) each

    def add_to(self, signed_weights: Array, weights: Array) -> None:
        weights_of_rows = self.gains.fold_onto_rows(self.suggested, weights)
        signed_weights[: len(weights_of_rows)] += weights_of_rows


@dataclass(frozen=True, eq=False)
class AssignmentWeights(ExpertWeights):
    """Weights eta_j F_kj s(a, c) / J of every loss, played action and comparator."""

    # Of every group: the shares s (K, A, J, C), and the logarithms of eta_j r (N / K) F_kj / J.
    comparator_shares: list[Array]
    exponents: list[Array]  # (K, J)
    largest_exponent: float

    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        weights_of_groups = []
        total = 0.0
        for shares, exponents in zip(self.comparator_shares, self.exponents, strict=True):
            loss_and_rate_weights = prior * np.exp(exponents - exponent)
            weights = np.einsum("kj,kajc->kac", loss_and_rate_weights, shares)
            weights_of_groups.append(weights.ravel())
            total += float(loss_and_rate_weights.sum())
        return np.concatenate(weights_of_groups), total


class GainEvents(EventSet):
    """The gains of listed losses against actions and policies, where ``fixed``, and M ``models``.

    ``within`` is the range of the gains where predictions stay in conv s(Y): 2 + 4 delta for a
    basis of error delta. ``greatest_regret`` is the most that a loss in the basis can regret in a
    round, 1 + 2 delta; None where it is not known. Groups are all over the same basis; the rule is
    adaptive by default.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_played_squares", "_margin")
    counts_regret = True

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        rule: WeightRule | None = None,
        *,
        within: float | None = None,
        greatest_regret: float | None = None,
        models: int = 0,
        fixed: bool = True,
    ) -> None:
        self.rows = LossTable(groups)
        self.rule = rule or AdaptiveWeights()
        self.within = within
        self.greatest_regret: float | None = None
        if all(group.best_responds for group in self.groups):
            # Others may be charged with a gain that is less than the regret, down to -scale.
            self.greatest_regret = greatest_regret
        self.members = [
            Gains(group, self.rows, fixed=fixed, models=models) for group in self.groups
        ]
        self.models = models
        self.losses = len(self.rows.start) - 1
        self.has_fixed = fixed
        self.experts = 0
        for member in self.members:
            n_losses, n_actions, n_comparators = member.shape
            # where actions are comparators, none is compared with itself: one less
            self.experts += n_losses * n_actions * (n_comparators - fixed)
        if self.experts > MAX_GAINS:
            fault = f"{self.experts:,} gains of an action over another, above {MAX_GAINS:,}"
            raise UserError(f"forecaster.events = 'losses': {fault}; take 'coordinates'")
        # Gains of all groups lie side by side: where those of each end, but for the last, and all.
        ends_of_groups = np.cumsum([math.prod(member.shape) for member in self.members])
        self._ends_of_groups = ends_of_groups[:-1]
        end = ends_of_groups[-1]
        # Gains, squares, squares given the action, margins, and variations, of all groups side by
        # side; every group has views of its own part. Variations that add up squares are no sums of
        # their own: a round goes through less memory, which is what it takes its time for.
        sums = np.zeros((4 if self.rule.squared else 5, end))
        against_models = []
        for member, part in zip(
            self.members, np.split(sums, self._ends_of_groups, axis=1), strict=True
        ):
            by_kind = part.reshape(len(sums), *member.shape)
            member.gain, member.squares, member.played_squares, member.margin = by_kind[:4]
            member.variation = member.squares if self.rule.squared else by_kind[4]
            member.scale = gain_range(member.group.weights, within)
            actions = np.arange(member.n_constants)
            member.gain[:, actions, actions] = -np.inf  # never weighed against itself
            is_model = np.arange(member.shape[2]) >= member.fixed
            against_models.append(np.broadcast_to(is_model, member.shape).ravel())
        gain, squares, self._played_squares, self._margin = sums[:4]
        variation = squares if self.rule.squared else sums[4]
        self.views = [
            EventSums(
                slice(None),
                gain,
                variation,
                squares,
                occupancy=np.zeros(self.rows.shape[0]),
                predicted=np.zeros((self.rows.shape[0], 0)),
                both_signs=False,
                against_models=np.concatenate(against_models),
            )
        ]

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        for member in self.members:
            member.greatest_sum_at_most = math.inf

    def active(self, x: object, suggestions: Indices | None = None) -> list[Indices]:
        """Return what every group's policies and models suggest to its losses, (K, C - A) each."""
        return [member.suggestions(x, suggestions) for member in self.members]

    def weigh(self, active: list[Indices], moment: Moment) -> Iterator[WeightedEvents]:
        (view,) = self.views
        weights = self.rule.weigh(view.gain_in_band(moment.band), view.variation, moment)
        yield WeightedGains(weights, gains=self, suggested=active)

    def fold_onto_rows(self, suggestions_by_group: list[Indices], weights: Array) -> Array:
        """Turn the weights of the scalar events into signed weights of the losses' rows (R, n)."""
        tables_of_groups = []
        weights_of_groups = np.split(weights, self._ends_of_groups)
        for member, group_weights, suggested in zip(
            self.members, weights_of_groups, suggestions_by_group, strict=True
        ):
            tables_of_groups.append(member.fold_onto_rows(group_weights, suggested))
        return np.concatenate(tables_of_groups)

    def gains_of_round(
        self, suggestions_by_group: list[Indices], played: Played
    ) -> list[GainsOfRound]:
        """Return what a round adds to the gains of every group, and the margins."""
        return [
            member.of_round(suggested, played)
            for member, suggested in zip(self.members, suggestions_by_group, strict=True)
        ]

    def charge(self, active: list[Indices], played: Played) -> None:
        self._add_gains(self.gains_of_round(active, played), played)

    def _add_gains(self, gains: list[GainsOfRound], played: Played) -> None:
        """Add the gains of a round, of every group, to all sums."""
        for member, gains_of_group in zip(self.members, gains, strict=True):
            member.add(gains_of_group, played, squared=self.rule.squared)
        self.views[0].occupancy[:] += played.play_chance

    @property
    def alarms(self) -> int:
        """Count every kind of test as often as there are experts: they share alpha equally.

        The kinds are single regrets, sums over actions against actions and policies where these
        are comparators, and regrets to models where there are any.
        """
        kinds_of_test = 1 + self.has_fixed + (self.models > 0)
        return self.experts * kinds_of_test

    def exceeds(
        self, active: list[Indices], switch_test: SwitchTest, *, hint: bool = False
    ) -> bool:
        losses = self.losses * switch_test.tests // self.experts
        return any(member.exceeds(switch_test, losses, hint=hint) for member in self.members)

    def bound(self, inputs: BoundInputs, hull: Hull) -> GainBound:
        return GainBound(
            self.rule,
            inputs,
            within=self.within,
            greatest_regret=self.greatest_regret,
            losses=self.losses,
            gains=self.experts,
            models=self.models,
        )

    def excerpt(self, *, games_have_begun: bool) -> EventSet | None:
        if not is_ours(type(self)):
            return None
        excerpt = copy(self)
        excerpt.copy_sums(games_have_begun=games_have_begun)
        return excerpt

    def copy_sums(self, *, games_have_begun: bool) -> None:
        """Let the sums that bounds depend on be copies, of which another set has the originals.

        The others are left out: until the games begin, all but gains and margins.
        """
        (sums,) = self.views
        variation = sums.variation.copy() if games_have_begun else NO_SUMS
        self.views = [
            sums._replace(gain=NO_SUMS, variation=variation, squares=NO_SUMS, occupancy=NO_SUMS)
        ]
        self._margin = NO_SUMS
        self._played_squares = NO_SUMS
        self.members = [
            member.excerpt(games_have_begun=games_have_begun) for member in self.members
        ]

    def gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return the gains against actions and policies (k, A, C), without those against models."""
        member = self.members[self.rows.group_index(group)]
        gain = member.gain[losses][:, :, : member.fixed]
        finite_gain = np.where(np.isfinite(gain), gain, 0.0)
        return np.asarray(member.scale[losses, None, None] * finite_gain)

    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound the same by the rule's proof; while a reference is trusted, by the gains."""
        if bound.inputs.trusted:
            return self.gained(group, losses)
        member = self.members[self.rows.group_index(group)]
        greatest_gain = bound.bias_at(member.variation[losses][:, :, : member.fixed])
        return np.asarray(member.scale[losses, None, None] * greatest_gain)

    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return the sums of margins (k, A, C), without those against models."""
        member = self.members[self.rows.group_index(group)]
        margin = member.margin[losses][:, :, : member.fixed]
        return np.asarray(member.scale[losses, None, None] * margin)

    def to_models(self, bound: RegretBound, group: ProtectedLosses) -> Array | None:
        """Bound it by the sum over actions; by the regrets, while a reference is trusted."""
        if not self.models:
            return None
        member = self.members[self.rows.group_index(group)]
        models = slice(member.fixed, None)
        gain = member.gain[:, :, models]
        if not bound.inputs.trusted:
            variation = member.variation[:, :, models]
            models_band = bound.inputs.band.extra_factor_of_models * np.sqrt(variation)
            gain = bound.bias_at(variation) + models_band
        regret = member.scale[:, None, None] * (gain - member.margin[:, :, models])
        return np.asarray(regret.sum(1) + ROUNDING)

    def table(self) -> Iterator[Event]:
        """Yield loss, action, None, None, occupancy and gains (C,) in units of the loss."""
        for member in self.members:
            gains = np.where(np.isfinite(member.gain), member.gain, 0.0)
            occupancy = self.views[0].occupancy[member.rows].reshape(member.shape[:2])
            for k, action in np.ndindex(occupancy.shape):
                loss = member.losses.start + k
                gains_in_units = gains[k, action] * member.scale[k]
                yield Event(
                    loss=loss,
                    action=action,
                    policy=None,
                    suggestion=None,
                    occupancy=float(occupancy[k, action]),
                    bias=gains_in_units,
                )


class Assignments(GainEvents):
    """Gains, by adaptive weights, with a potential over the assignments of comparators beside.

    Another rule may weigh the gains; nothing is proved of both together, and bounds are NaN.
    ``prior_of_assignments`` is r. ``risk`` is the chance that its bounds fail, where the
    assignments are charged with the predictions that are broadcast; None for expectations, whose
    bounds never fail and leave out the draws. The rest is as in ``GainEvents``.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rounds_without_draw", "_assignment_sums")

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        rule: WeightRule | None = None,
        *,
        prior_of_assignments: float = PRIOR_OF_ASSIGNMENTS,
        risk: float | None = None,
        **gains: Any,
    ) -> None:
        super().__init__(groups, rule, **gains)
        self.prior_of_assignments = prior_of_assignments
        self.risk = risk  # that bounds of what was broadcast fail; None where they are expectations
        # Whether a round's gains are those of the prediction that was drawn from the mixture, and
        # in how many rounds it is not known which one was.
        self.charges_broadcast_predictions = risk is not None
        self.rounds_without_draw = 0
        # All assignments of all losses have r times the weight that all gains have. ln(r (N / K) /
        # J) is the logarithm of the prior of one loss's assignments at one rate.
        experts_per_loss = self.experts / self.losses
        n_rates = len(ASSIGNMENT_RATES)
        self._log_prior = math.log(prior_of_assignments * experts_per_loss / n_rates)
        # Of each group an array (4, K, A, C) by loss, played action and comparator: gains G, their
        # squares U, gains before the games began, and margins.
        self._kept_sums = [np.zeros((4, *member.shape)) for member in self.members]
        # Whether no game has been played, and every round was charged as to the gains. Then the
        # last two are what the members add up themselves, and are not added up twice.
        self._repeats_gains = True

    @property
    def _assignment_sums(self) -> list[Array]:
        """The sums of assignments, an array (4, K, A, C) of each group."""
        if self._repeats_gains:
            for member, sums in zip(self.members, self._kept_sums, strict=True):
                sums[2] = np.where(np.isfinite(member.gain), member.gain, 0.0)
                sums[3] = member.margin
        return self._kept_sums

    @_assignment_sums.setter
    def _assignment_sums(self, sums: list[Array]) -> None:
        self._kept_sums = sums
        self._repeats_gains = False

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned; from then on the sums are added up by themselves."""
        super().restore(state)
        self._repeats_gains = False  # the sums of a checkpoint may be of games

    def weigh(self, active: list[Indices], moment: Moment) -> Iterator[WeightedEvents]:
        """Yield the gains and then the assignments, which share the losses' rows."""
        yield from super().weigh(active, moment)
        log_rates = self._log_prior + np.log(ASSIGNMENT_RATES)
        comparator_shares = []
        exponents = []
        for gain, squares, _gain_before_games, _margin in self._assignment_sums:
            shares, log_sums = _comparator_shares(gain, squares)
            comparator_shares.append(shares)
            exponents.append(log_sums.sum(1) + log_rates)
        largest_exponent = max(float(exponent.max()) for exponent in exponents)
        weights = AssignmentWeights(comparator_shares, exponents, largest_exponent)
        yield WeightedGains(weights, gains=self, suggested=active)

    def charge(self, active: list[Indices], played: Played) -> None:
        """Add a round to the gains in expectation, and to the assignments as they are charged."""
        gains = self.gains_of_round(active, played)
        charged = played
        if self.charges_broadcast_predictions:
            self.rounds_without_draw += played.as_drawn is None
            charged = played.as_drawn or played
        is_charged_alike = charged.bias is played.bias
        games_have_begun = not charged.reference_is_trusted
        if games_have_begun or not is_charged_alike:
            # from this round on the sums are no repetition: they go on from those before it
            self._assignment_sums = self._assignment_sums
        self._add_gains(gains, played)
        if self._repeats_gains:
            return
        if not is_charged_alike:  # what was drawn is not the whole mixture
            gains = self.gains_of_round(active, charged)
        for member, gains_of_group, sums in zip(self.members, gains, self._kept_sums, strict=True):
            rows, gain, margin = gains_of_group
            chance = charged.play_chance[member.rows]
            _add_to_assignments(rows, gain, margin, chance, games_have_begun, sums)

    def copy_sums(self, *, games_have_begun: bool) -> None:
        kept_sums = []
        if games_have_begun:  # assignments are bounded from then on
            for member, sums in zip(self.members, self._assignment_sums, strict=True):
                kept_sums.append(sums[..., : member.fixed].copy())
        super().copy_sums(games_have_begun=games_have_begun)
        self._assignment_sums = kept_sums

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the potentials of the gains and, by their prior, assignments."""
        log_potentials = []
        for gain, squares, _gain_before_games, _margin in self._assignment_sums:
            _shares_of_comparators, log_sums = _comparator_shares(gain, squares)
            log_potentials.append((log_sums.sum(1) + self._log_prior).ravel())
        of_gains = super().log_potential(band)
        return float(np.logaddexp.reduce([of_gains, *np.concatenate(log_potentials)]))

    def bound(self, inputs: BoundInputs, hull: Hull) -> GainBound:
        inputs_beside = replace(
            inputs, added_potential=self.prior_of_assignments, risk=self.risk or 1.0
        )
        bound = super().bound(inputs_beside, hull)
        # The proof is for a rule that says how far all potentials together may have grown. Whether
        # it does is asked without a switch test, whose reach takes long to find.
        if self.rule.log_growth(replace(inputs_beside, switch_test=None)) is None:
            return replace(bound, is_proved=False)
        return bound

    def over_stay(
        self, bound: Any, group: ProtectedLosses, losses: Indices, regret_at_entry: Array
    ) -> Array:
        """Bound it by the gains, and by the assignments where they are charged in expectation."""
        by_gains = super().over_stay(bound, group, losses, regret_at_entry)
        if self.charges_broadcast_predictions:
            return by_gains
        by_assignments = self._regret_bound_of_assignments(bound, group, losses, regret_at_entry)
        if by_assignments is None:
            return by_gains
        return np.minimum(by_gains, by_assignments)

    def realised(self, bound: RegretBound, group: ProtectedLosses) -> Array | None:
        if not self.charges_broadcast_predictions:
            return None
        if self.rounds_without_draw > 0:  # what was played in these is not known
            return None
        every_loss = np.arange(len(group.weights))
        regret_at_entry = np.zeros(
            (1, 1, 1)
        )  # over all rounds: before the first nothing is regretted
        return self._regret_bound_of_assignments(bound, group, every_loss, regret_at_entry)

    def _regret_bound_of_assignments(
        self, bound: Any, group: ProtectedLosses, losses: Indices, regret_at_entry: Array
    ) -> Array | None:
        """Bound the regret of k of a group's losses (k,) since each stay began; None without one.

        An assignment phi gained G_0 before the games and since then, whichever the rate eta, at
        most (L + psi U) / eta. Its regret is that less its margins M and less what it regretted
        before, ``regret_at_entry`` (k, A, C): a sum over actions a, at most that of the greatest
        summand of each.
        """
        group_index = self.rows.group_index(group)
        member = self.members[group_index]
        level = bound.assignment_level(*member.shape[1:])
        if level is None:
            return None
        of_losses = self._assignment_sums[group_index][:, losses, :, : member.fixed]
        _gain, squares, gain_before_games, margin = of_losses
        scale = member.scale[losses]
        scale_of_gains = scale[:, None, None]
        known = scale_of_gains * (gain_before_games - margin) - regret_at_entry
        regrets = []
        for rate, cost in zip(ASSIGNMENT_RATES, ASSIGNMENT_COSTS, strict=True):
            of_squares = scale_of_gains * (cost / rate) * squares
            regrets.append(scale * level / rate + (known + of_squares).max(2).sum(1))
        return np.asarray(np.min(regrets, axis=0) + ROUNDING)


def _comparator_shares(gain: Array, squares: Array) -> tuple[Array, Array]:
    """Return the shares of comparators (K, A, J, C), and the logarithms of their sums (K, A, J)."""
    exponents = (  # (K, A, J, C)
        ASSIGNMENT_RATES[:, None] * gain[:, :, None]
        - ASSIGNMENT_COSTS[:, None] * squares[:, :, None]
    )
    largest = exponents.max(3, keepdims=True)
    potentials = np.exp(exponents - largest)
    total = potentials.sum(3, keepdims=True)
    log_sums = (largest + np.log(total / gain.shape[2]))[..., 0]
    return potentials / total, log_sums
