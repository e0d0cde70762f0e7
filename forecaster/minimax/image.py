r"""The per-round game over conv s(Y), with predictions that are ensembles of outcomes.

As in ``game``, but both sides keep to the image of the basis: the forecaster chooses a distribution
over predictions p in conv s(Y), nature an outcome y in [0, 1]^d, and the forecaster pays

    E[ h(p) . (p - s(y)) ],        worst case   E[h(p) . p] + max_y -E[h(p)] . s(y).

The first predictions come from last round's mixture and from a walk like Frank and Wolfe's: from
last round's mean a step towards the outcome that pays nature most, with equal and then with
shrinking steps. A linear program mixes them against some outcomes. Its mixture's best outcome for
nature, from the support oracle, is a new row; the dual, nature's distribution over outcomes, has a
mean that is a new prediction, which pays 0 against it: a column. Both are added until the worst
case is small enough.

The certificate uses the oracle's bound, which covers every outcome.

**Ensembles** are at most n + 1 weighted outcomes whose mean of s(y) is the prediction
(Caratheodory): the active set of nonnegative least squares (Lawson and Hanson 1974) over the
columns (s(y_e), 1) is linearly independent. The ensemble nearest to a point that may lie outside of
conv s(Y) is found as by Wolfe (1976): least squares over the outcomes so far, then the best outcome
in the direction of what is left over.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

import numpy as np
import scipy

from regretless.forecaster.minimax.cube import Simplex
from regretless.forecaster.minimax.game import (
    GOLDEN,
    LIGHTEST,
    WALK,
    Game,
    HullSolver,
    Solution,
)
from regretless.forecaster.minimax.program import best_mixture, cheapest
from regretless.forecaster.minimax.support import values
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Basis, Hull, Support
from regretless.market.records import Ensemble

NEGLIGIBLE = 1e-12  # outcomes with less weight are dropped
CANDIDATES = 128
CLOSE = 1e-9  # how much nearer an outcome must bring an ensemble
STEPS, MOST = 200, 10_000
AIM, ENOUGH = 0.1, 0.2  # shares of the tolerance: of the mixture, and of its certificate
ANSWERS, TURNS = 12, 40  # nature's answers that are predicted, and linear programs in a round
OFF_TIES = 1e-6  # how far a single point is kept off ties
CORNERS = 64  # outcomes that an objective may choose


@dataclass(frozen=True, eq=False)
class WeightedOutcomes(Ensemble):
    """An ensemble with the images s(y) (e, n) of its outcomes."""

    images: Array

    @property
    def point(self) -> Array:
        """The prediction (n,), the mean of s over the ensemble."""
        return np.clip(self.weights @ self.images, 0.0, 1.0)

    @classmethod
    def of(cls, outcomes: Array, images: Array, weights: Array) -> Self:
        """Take the outcomes with weight, and of them at most n + 1."""
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        light = fewest(images[kept], weights[kept])
        kept, light = kept[light > 0], light[light > 0]
        return cls(outcomes[kept], light / light.sum(), images[kept])


def fewest(images: Array, weights: Array) -> Array:
    """Find weights (e,) with the same mean of ``images`` (e, n), at most n + 1 of them positive."""
    if len(images) <= images.shape[1] + 1:
        return weights
    table = np.vstack([images.T, np.ones(len(images))])
    return np.asarray(scipy.optimize.nnls(table, table @ weights, maxiter=MOST)[0])


def candidates(support: Support) -> tuple[Array, Array]:
    """Outcomes (K, d) and images (K, n) that are best in some direction, in fixed order."""
    rng = stream(0, "supports", "candidates")
    found = [support.best(h) for h in rng.standard_normal((CANDIDATES, support.size))]
    images = np.array([vertex.image for vertex in found])
    first = np.sort(np.unique(images, axis=0, return_index=True)[1])
    return np.array([found[i].outcome for i in first]), images[first]


def nearest_outcomes(target: Array, support: Support, start: WeightedOutcomes) -> WeightedOutcomes:
    """Find the ensemble whose mean of s is nearest to ``target`` (n,), from another ensemble on."""
    outcomes, images = start.outcomes, start.images
    aim = np.append(np.zeros(len(target)), 1.0)
    for _ in range(STEPS):
        table = np.vstack([(images - target).T, np.ones(len(images))])
        weights = scipy.optimize.nnls(table, aim, maxiter=MOST)[0]
        weights /= weights.sum()
        rest = target - weights @ images
        vertex = support.best(rest)
        if rest @ (vertex.image - weights @ images) <= CLOSE:
            break
        kept = weights > 0
        outcomes = np.vstack([outcomes[kept], vertex.outcome])
        images = np.vstack([images[kept], vertex.image])
    else:
        weights = np.append(weights[weights > 0], 0.0)
    return WeightedOutcomes.of(outcomes, images, weights)


@dataclass(eq=False)
class _Known:
    """What is known in a round: outcomes, and predictions as shares of the first of them."""

    game: Game
    outcomes: Array  # (k, d)
    images: Array  # (k, n)
    inner: Array  # (k,) the shares towards which predictions are moved off ties
    shares: list[Array] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)
    fields: list[Array] = field(default_factory=list)

    def predict(self, share: Array, *, inset: float = 0.0) -> Array:
        """Add a prediction, moved towards the inner one by a share of the way; its field."""
        if inset > 0.0:
            share = (1 - inset) * share
            share[: len(self.inner)] += inset * self.inner
        self.shares.append(share)
        self.points.append(np.clip(share @ self.images[: len(share)], 0.0, 1.0))
        self.fields.append(self.game.field(self.points[-1]))
        return self.fields[-1]

    def spelled(self, place: int) -> WeightedOutcomes:
        """Spell a prediction out."""
        return WeightedOutcomes.of(self.outcomes, self.images, self.shares[place])


class Image(HullSolver):
    """The game over conv s(Y), the convex hull of all s(y).

    Off ties, predictions move a little towards the mean of many outcomes with unlike weights, so
    that losses seldom tie.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last",)
    hull: Hull = "image"
    spelled = True

    def __init__(self, support: Support, *, off_ties: bool = False) -> None:
        self.support, self.off_ties, self.size = support, off_ties, support.size
        self._outcomes, self._images = candidates(support)
        unlike = 0.25 + 0.5 * (np.arange(1, len(self._images) + 1) * GOLDEN % 1)
        self._unlike = unlike / unlike.sum()
        # outcomes and images of the last mixture, its predictions' shares (m, k) of them, its mass
        self._last = [self._outcomes[:0], self._images[:0], np.empty((0, 0)), np.empty(0)]

    @property
    def origin(self) -> Solution:
        outcomes, images, shares, mass = self._last
        mean = mass @ shares
        if not len(mass):
            outcomes, images, mean = self._outcomes, self._images, np.ones(len(self._images))
        spelled = WeightedOutcomes.of(outcomes, images, mean / mean.sum())
        return Solution(spelled.point[None], ensembles=(spelled,))

    def single(self, point: Array) -> Solution:
        start = _spelled(self.origin)[0]
        nearest = nearest_outcomes(np.asarray(point, np.float64), self.support, start)
        if self.off_ties:
            outcomes = np.vstack([nearest.outcomes, self._outcomes])
            images = np.vstack([nearest.images, self._images])
            shares = np.append((1 - OFF_TIES) * nearest.weights, OFF_TIES * self._unlike)
            nearest = WeightedOutcomes.of(outcomes, images, shares)
        return Solution(nearest.point[None], ensembles=(nearest,), unchanged=True)

    def worst(self, mass: Array, points: Array, fields: Array, enough: float = -np.inf) -> float:
        """Worst case over every outcome, by the oracle's bound, no closer than ``enough``."""
        payment = float(mass @ (points * fields).sum(1))
        return payment + self.support.bound(-(mass @ fields), enough=enough - payment)

    def _play(self, game: Game) -> Solution:
        known = self._walk(game)
        mass = self._improve(known, game)
        chosen = np.flatnonzero(mass > LIGHTEST)
        mass = mass[chosen] / mass[chosen].sum()
        # The very points of the game: on ties the mean of an ensemble, off by rounding, would be
        # another prediction.
        points, fields = np.array(known.points)[chosen], np.array(known.fields)[chosen]
        certificate = self.worst(mass, points, fields, ENOUGH * game.tolerance)
        return Solution(points, mass, certificate, tuple(known.spelled(int(j)) for j in chosen))

    def _improve(self, known: _Known, game: Game) -> Array:
        """Add predictions and outcomes that are known; the masses of the best mixture found."""
        most, aim = len(known.points) + ANSWERS, AIM * game.tolerance
        best, mass = np.inf, np.empty(0)
        for _ in range(TURNS):
            points, fields = np.array(known.points), np.array(known.fields)
            payments, gains = (points * fields).sum(1), fields @ known.images.T
            trial, distribution = best_mixture(payments, gains, simplex=True)
            payment, field = float(trial @ payments), trial @ fields
            vertex = self.support.best(-field)
            worst, listed = -float(field @ vertex.image), -float((known.images @ field).min())
            if payment + worst < best:
                best, mass = payment + worst, trial
            new_point = payment + listed > aim / 2 and len(points) < most
            new_outcome = worst > listed + aim / 10
            if best <= aim or not (new_point or new_outcome):
                break
            if new_point:
                known.predict(distribution, inset=game.inset)
            if new_outcome:
                known.outcomes = np.vstack([known.outcomes, vertex.outcome])
                known.images = np.vstack([known.images, vertex.image])
        return np.pad(mass, (0, len(known.points) - len(mass)))

    def _walk(self, game: Game) -> _Known:
        """Return the predictions of the last mixture and those of a walk."""
        start, (last, images, shares, _) = _spelled(game.start)[0], self._last
        outcomes = np.vstack([self._outcomes, start.outcomes, last])
        images = np.vstack([self._images, start.images, images])
        known, share = _Known(game, outcomes, images, self._unlike), np.zeros(len(outcomes))
        for own in shares:
            known.predict(np.append(share[: -len(own)], own))
        share[len(self._outcomes) :][: len(start.weights)] = start.weights
        for step in WALK:
            best = int(values(images, known.predict(share, inset=game.inset)).argmin())
            share = (1 - step) * known.shares[-1]
            share[best] += step
        return known

    def choices(self, game: Game) -> Solution:
        known = self._walk(game)
        for corner in np.eye(len(self._outcomes))[:CORNERS]:
            known.predict(corner, inset=game.inset)
        ensembles = tuple(known.spelled(j) for j in range(len(known.points)))
        return Solution(np.array(known.points), ensembles=ensembles)

    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        payments, images, aim = (points * fields).sum(1), self._images, limit
        for _ in range(TURNS):
            mass = cheapest(values, payments, fields @ images.T, limit=aim, box=False)
            if mass is None:
                return None
            mass /= mass.sum()
            excess = self.worst(mass, points, fields, limit) - limit
            if excess <= 0.0:
                return mass
            vertex = self.support.best(-(mass @ fields))
            images = np.vstack([images, vertex.image])
            attained = mass @ payments - mass @ fields @ vertex.image
            if attained <= aim + LIGHTEST:  # the rest is between outcome and bound
                aim -= excess
        return None

    def remember(self, solution: Solution) -> None:
        atoms = _spelled(solution)
        outcomes = np.vstack([atom.outcomes for atom in atoms])
        images = np.vstack([atom.images for atom in atoms])
        shares = scipy.linalg.block_diag(*(atom.weights for atom in atoms))
        self._last = [outcomes, images, shares, solution.mass]


def _spelled(solution: Solution) -> tuple[WeightedOutcomes, ...]:
    return cast("tuple[WeightedOutcomes, ...]", solution.ensembles)


def ensemble_solver(basis: Basis, *, off_ties: bool = False) -> HullSolver:
    """Make the solver over conv s(Y) whose predictions are ensembles; ValueError without one.

    Where s(y) are the indicators of cells, a prediction in the simplex is its own ensemble: the
    points of the cells with the prediction as weights. Any other basis has the game over conv s(Y).
    """
    if basis.points is not None:
        return Simplex(basis.size, places=basis.points, off_ties=off_ties)
    return Image(basis.support(), off_ties=off_ties)
