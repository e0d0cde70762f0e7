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
(Caratheodory). Weights w with A w = b, one column (s(y_e), 1) per outcome, move along the null
space of A until one of them is 0; the null space is then turned so that all but one of its vectors
leave that outcome alone, and so on. The ensemble nearest to a point that may lie outside of
conv s(Y) is found as by Wolfe (1976): least squares over the outcomes so far, then the best outcome
in the direction of what is left over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, cast

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
    undominated,
)
from regretless.forecaster.minimax.program import best_mixture, cheapest
from regretless.forecaster.minimax.support import values
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Basis, Hull, Support
from regretless.market.records import Ensemble

NEGLIGIBLE = 1e-12  # outcomes with less weight are dropped
CANDIDATES = 128
MIN_IMPROVEMENT = 1e-9  # how much nearer an outcome must bring an ensemble
MAX_OUTCOMES_ADDED = 200
MAX_NNLS_STEPS = 10_000
# shares of the tolerance: of the mixture, and of its certificate
SHARE_OF_MIXTURE = 0.1
SHARE_OF_CERTIFICATE = 0.2
# nature's answers that are predicted, and linear programs in a round
MAX_ANSWERS = 12
MAX_PROGRAMS = 40
OFF_TIES = 1e-6  # how far a single point is kept off ties
MAX_CORNERS = 64  # outcomes that an objective may choose


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
        """Take the outcomes with weight, and of them at most n + 1; read only."""
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        light_weights = fewest(images[kept], weights[kept])
        kept = kept[light_weights > 0]
        light_weights = light_weights[light_weights > 0]
        parts = outcomes[kept], light_weights / light_weights.sum(), images[kept]
        for array in parts:
            array.flags.writeable = False
        return cls(*parts)


def fewest(images: Array, weights: Array) -> Array:
    """Find weights (e,) with the same mean of ``images`` (e, n), at most n + 1 of them positive."""
    if len(images) <= images.shape[1] + 1:
        return weights
    table = np.column_stack([images, np.ones(len(images))])
    null_vectors = np.linalg.qr(table, mode="complete")[0][:, table.shape[1] :]
    remaining = weights.copy()
    while null_vectors.shape[1]:
        direction = null_vectors[:, 0]
        if direction.max() < -direction.min():
            direction = -direction
        ratio = np.where(direction > 0, remaining / np.where(direction > 0, direction, 1.0), np.inf)
        dropped = int(ratio.argmin())
        remaining = np.maximum(remaining - ratio[dropped] * direction, 0.0)
        remaining[dropped] = 0.0
        # Turn the vectors so that the first alone moves this outcome, and drop that one.
        mirror = null_vectors[dropped].copy()
        mirror[0] += np.copysign(np.linalg.norm(mirror), mirror[0])
        square = float(mirror @ mirror)
        turned = null_vectors
        if square > 0:
            turned = null_vectors - np.outer(null_vectors @ mirror, 2 * mirror / square)
        null_vectors = np.ascontiguousarray(turned[:, 1:])
        null_vectors[dropped] = 0.0
    return remaining


def candidates(support: Support) -> tuple[Array, Array]:
    """Outcomes (K, d) and images (K, n) that are best in some direction, in fixed order."""
    rng = stream(0, "supports", "candidates")
    vertices = [support.best(h) for h in rng.standard_normal((CANDIDATES, support.size))]
    images = np.array([vertex.image for vertex in vertices])
    distinct = np.sort(np.unique(images, axis=0, return_index=True)[1])
    return np.array([vertices[i].outcome for i in distinct]), images[distinct]


def mean_of(parts: Sequence[WeightedOutcomes], mass: Array) -> WeightedOutcomes:
    """Mix them into one."""
    weights = []
    for share, part in zip(mass, parts, strict=True):
        weights.append(share * part.weights)
    outcomes = np.concatenate([part.outcomes for part in parts])
    images = np.concatenate([part.images for part in parts])
    return WeightedOutcomes.of(outcomes, images, np.concatenate(weights))


def nearest_outcomes(target: Array, support: Support, start: WeightedOutcomes) -> WeightedOutcomes:
    """Find the ensemble whose mean of s is nearest to ``target`` (n,), from another ensemble on."""
    outcomes = start.outcomes
    images = start.images
    aim = np.append(np.zeros(len(target)), 1.0)
    for _ in range(MAX_OUTCOMES_ADDED):
        table = np.vstack([(images - target).T, np.ones(len(images))])
        weights = scipy.optimize.nnls(table, aim, maxiter=MAX_NNLS_STEPS)[0]
        weights /= weights.sum()
        gap = target - weights @ images
        vertex = support.best(gap)
        if gap @ (vertex.image - weights @ images) <= MIN_IMPROVEMENT:
            break
        kept = weights > 0
        outcomes = np.vstack([outcomes[kept], vertex.outcome])
        images = np.vstack([images[kept], vertex.image])
    else:
        weights = np.append(weights[weights > 0], 0.0)
    return WeightedOutcomes.of(outcomes, images, weights)


Walked = tuple[Array, Array, list[partial[WeightedOutcomes]], Array, Array]


class Image(HullSolver):
    """The game over conv s(Y), the convex hull of all s(y).

    Off ties, predictions move a little towards the mean of many outcomes with unlike weights, so
    that losses seldom tie.
    """

    hull: Hull = "image"
    spelled = True

    def __init__(self, support: Support, *, off_ties: bool = False) -> None:
        self.support = support
        self.off_ties = off_ties
        self.size = support.size
        self._outcomes, self._images = candidates(support)
        even_weights = np.full(len(self._images), 1 / len(self._images))
        self._mean = WeightedOutcomes.of(self._outcomes, self._images, even_weights)
        self._atoms: tuple[WeightedOutcomes, ...] = ()
        unequal_weights = 0.25 + 0.5 * (np.arange(1, len(even_weights) + 1) * GOLDEN % 1)
        self._unlike = unequal_weights / unequal_weights.sum()
        self._inner = WeightedOutcomes.of(self._outcomes, self._images, self._unlike)

    @property
    def origin(self) -> Solution:
        return Solution(self._mean.point[None], ensembles=(self._mean,))

    def single(self, point: Array) -> Solution:
        nearest = nearest_outcomes(np.asarray(point, np.float64), self.support, self._mean)
        nearest = self._kept_off(nearest, OFF_TIES if self.off_ties else 0.0)
        return Solution(nearest.point[None], ensembles=(nearest,), unchanged=True)

    def worst(self, mass: Array, points: Array, fields: Array, enough: float = -np.inf) -> float:
        """Worst case over every outcome, by the oracle's bound, no closer than ``enough``."""
        payment = float(mass @ (points * fields).sum(1))
        return payment + self.support.bound(-(mass @ fields), enough=enough - payment)

    def _play(self, game: Game) -> Solution:
        points, fields, ensemble_makers, outcomes, images = self._walk(game)
        last_points = np.array([atom.point for atom in self._atoms]).reshape(-1, self.size)
        points = np.vstack([last_points, points])
        fields = np.vstack([game.fields(last_points), fields])
        ensemble_makers = [*(partial(replace, atom) for atom in self._atoms), *ensemble_makers]
        max_points = len(points) + MAX_ANSWERS
        aim = SHARE_OF_MIXTURE * game.tolerance
        best = np.inf
        mass = np.empty(0)
        for _ in range(MAX_PROGRAMS):
            payments = (points * fields).sum(1)
            trial, distribution = best_mixture(payments, fields @ images.T, simplex=True)
            payment = float(trial @ payments)
            field = trial @ fields
            vertex = self.support.best(-field)
            worst = -float(field @ vertex.image)
            worst_listed = -float((images @ field).min())
            if payment + worst < best:
                best = payment + worst
                mass = trial
            new_point = payment + worst_listed > aim / 2 and len(points) < max_points
            new_outcome = worst > worst_listed + aim / 10
            if best <= aim or not (new_point or new_outcome):
                break
            if new_point:
                answer = WeightedOutcomes.of(outcomes, images, distribution)
                answer = self._kept_off(answer, game.inset)
                ensemble_makers.append(partial(replace, answer))
                points = np.vstack([points, answer.point])
                fields = np.vstack([fields, game.field(answer.point)])
            if new_outcome:
                outcomes = np.vstack([outcomes, vertex.outcome])
                images = np.vstack([images, vertex.image])
        weighted = np.flatnonzero(mass > LIGHTEST)
        mass = mass[weighted] / mass[weighted].sum()
        # The very points of the game: on ties the mean of an ensemble, off by rounding, would be
        # another prediction.
        points = points[weighted]
        fields = fields[weighted]
        certificate = self.worst(mass, points, fields, SHARE_OF_CERTIFICATE * game.tolerance)
        return Solution(points, mass, certificate, tuple(ensemble_makers[j]() for j in weighted))

    def _kept_off(self, ensemble: WeightedOutcomes, inset: float) -> WeightedOutcomes:
        """Move a prediction towards the inner one, by a share of the way."""
        if inset == 0.0:
            return ensemble
        return mean_of((ensemble, self._inner), np.array([1 - inset, inset]))

    def _walk(self, game: Game) -> Walked:
        """Return undominated predictions of a walk, their fields and ensembles.

        And the outcomes from which it made them, with their images.
        """
        known_ensembles = [*_spelled(game.start), *self._atoms]
        start = known_ensembles[0]
        outcomes = np.vstack([*(ensemble.outcomes for ensemble in known_ensembles), self._outcomes])
        images = np.vstack([*(ensemble.images for ensemble in known_ensembles), self._images])
        pull = np.append(np.zeros(len(images) - len(self._unlike)), self._unlike)
        point = start.point
        share = np.zeros(len(images))
        used_outcomes = set(range(len(start.weights)))
        share[: len(used_outcomes)] = start.weights
        points, fields = np.empty((2, len(WALK), self.size))
        shares = np.empty((len(WALK), len(images)))
        for t, step in enumerate(WALK):
            if game.inset > 0.0:
                point = point + game.inset * (pull @ images - point)
                share = share + game.inset * (pull - share)
            points[t] = point
            shares[t] = share
            fields[t] = game.field(point)
            best = int(values(images, fields[t]).argmin())
            used_outcomes.add(best)
            point = point + step * (images[best] - point)
            share = (1 - step) * share
            share[best] += step
        kept = undominated(points, fields)
        used = sorted(used_outcomes)
        ensemble_makers = [partial(WeightedOutcomes.of, outcomes, images, shares[t]) for t in kept]
        return points[kept], fields[kept], ensemble_makers, outcomes[used], images[used]

    def choices(self, game: Game) -> Solution:
        points, _, ensemble_makers, *_ = self._walk(game)
        corners = []
        for outcome, image in zip(
            self._outcomes[:MAX_CORNERS], self._images[:MAX_CORNERS], strict=True
        ):
            alone = WeightedOutcomes(outcome[None], np.ones(1), image[None])
            corners.append(self._kept_off(alone, game.inset))
        points = np.vstack([points, [corner.point for corner in corners]])
        ensembles = [make_ensemble() for make_ensemble in ensemble_makers]
        return Solution(points, ensembles=(*ensembles, *corners))

    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        payments = (points * fields).sum(1)
        images = self._images
        aim = limit
        for _ in range(MAX_PROGRAMS):
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
        self._atoms = _spelled(solution)
        self._mean = mean_of(self._atoms, solution.mass)

    def state(self) -> dict[str, Any]:
        ensembles = [self._mean, *self._atoms]
        return {
            "sizes": np.array([len(ensemble.weights) for ensemble in ensembles]),
            "outcomes": np.vstack([ensemble.outcomes for ensemble in ensembles]),
            "weights": np.concatenate([ensemble.weights for ensemble in ensembles]),
            "images": np.vstack([ensemble.images for ensemble in ensembles]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        cuts = np.cumsum(state["sizes"])[:-1]
        parts = (np.split(np.array(state[n]), cuts) for n in ("outcomes", "weights", "images"))
        self._mean, *atoms = (WeightedOutcomes(*part) for part in zip(*parts, strict=True))
        self._atoms = tuple(atoms)


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
