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
from typing import Any, NamedTuple, Self, cast

import numpy as np
import scipy

from regretless.forecaster.minimax.cube import Simplex
from regretless.forecaster.minimax.game import (
    GOLDEN,
    LEAST_UNLIKE_SHARE,
    MIN_MASS,
    RANGE_OF_UNLIKE_SHARES,
    ROUNDING,
    WALK,
    Game,
    HullSolver,
    Solution,
    undominated,
)
from regretless.forecaster.minimax.program import best_mixture, mixture_of_least_value
from regretless.forecaster.minimax.support import least_row
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
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
        kept_weights = weights[kept]
        if len(kept) > images.shape[1] + 1:
            # Equal outcomes are often all that is too many, and reducing takes far longer.
            first_of_equal, kept_weights = merged_weights(outcomes[kept], kept_weights)
            kept = kept[first_of_equal]
        kept_weights = reduced_support(images[kept], kept_weights)
        kept = kept[kept_weights > 0]
        kept_weights = kept_weights[kept_weights > 0]
        ensemble = cls(outcomes[kept], kept_weights / kept_weights.sum(), images[kept])
        for array in (ensemble.outcomes, ensemble.weights, ensemble.images):
            array.flags.writeable = False
        return ensemble


def merged_weights(outcomes: Array, weights: Array) -> tuple[Indices, Array]:
    """Return the first index of each distinct outcome (m,) of (e, d), and the weights (m,) of all.

    Examples
    --------
    >>> merged_weights(np.array([[0.5], [0.2], [0.5]]), np.array([0.25, 0.5, 0.25]))
    (array([0, 1]), array([0.5, 0.5]))
    """
    first_index = np.empty(len(outcomes), dtype=np.intp)
    total_weights = np.zeros(len(outcomes))
    count = _write_merged_weights(outcomes, weights, first_index, total_weights)
    return first_index[:count], total_weights[:count]


@compiled()
def _write_merged_weights(
    outcomes: Array, weights: Array, first_index: Indices, total_weights: Array
) -> int:
    """Write the first index and the weight of each distinct outcome; return their number m.

    Compiled. ``outcomes`` (e, d) and ``weights`` (e,) are read. Of ``first_index`` (e,) and
    ``total_weights`` (e,), which is zeros, the first m entries are written.
    """
    count = 0
    for j in range(outcomes.shape[0]):
        slot = 0  # of the first outcome that is equal, or a new one
        while slot < count:
            i = 0
            while i < outcomes.shape[1] and outcomes[first_index[slot], i] == outcomes[j, i]:
                i += 1
            if i == outcomes.shape[1]:
                break
            slot += 1
        if slot == count:
            first_index[count] = j
            count += 1
        total_weights[slot] += weights[j]
    return count


def reduced_support(images: Array, weights: Array) -> Array:
    """Find weights (e,) with the same mean of ``images`` (e, n), at most n + 1 of them positive."""
    if len(images) <= images.shape[1] + 1:
        return weights
    equations = np.column_stack([images, np.ones(len(images))])  # A transposed, (e, n + 1)
    # Along these vectors (e, e - n - 1) weights can change and keep their sum and the mean.
    orthogonal = np.linalg.qr(equations, mode="complete")[0]
    null_vectors = orthogonal[:, equations.shape[1] :]
    remaining = weights.copy()
    while null_vectors.shape[1]:
        # Go along the first one, towards its larger entries, until the first weight is 0.
        direction = null_vectors[:, 0]
        if direction.max() < -direction.min():
            direction = -direction
        ratio = np.where(direction > 0, remaining / np.where(direction > 0, direction, 1.0), np.inf)
        dropped = int(ratio.argmin())
        remaining = np.maximum(remaining - ratio[dropped] * direction, 0.0)
        remaining[dropped] = 0.0
        # A Householder reflection: it turns the vectors so that the first alone moves the weight
        # that is 0, and that vector is dropped.
        normal = null_vectors[dropped].copy()
        normal[0] += np.copysign(np.linalg.norm(normal), normal[0])
        squared_norm = float(normal @ normal)
        turned = null_vectors
        if squared_norm > 0:
            turned = null_vectors - np.outer(null_vectors @ normal, 2 * normal / squared_norm)
        null_vectors = np.ascontiguousarray(turned[:, 1:])
        null_vectors[dropped] = 0.0  # which it is but for rounding
    return remaining


def extreme_outcomes(support: Support) -> tuple[Array, Array]:
    """Outcomes (K, d) and images (K, n) that are best in some direction, in fixed order."""
    rng = stream(0, "supports", "candidates")
    directions = rng.standard_normal((CANDIDATES, support.size))
    vertices = [support.best(direction) for direction in directions]
    images = np.array([vertex.image for vertex in vertices])
    _sorted_images, first_index = np.unique(images, axis=0, return_index=True)
    # ``np.unique`` sorts images; sorted indices have them in the order in which they were found
    index_of_distinct = np.sort(first_index)
    return np.array([vertices[i].outcome for i in index_of_distinct]), images[index_of_distinct]


def mean_of(ensembles: Sequence[WeightedOutcomes], mass: Array) -> WeightedOutcomes:
    """Mix ensembles, with masses (m,) that sum to 1, into one."""
    weights = []
    for share, ensemble in zip(mass, ensembles, strict=True):
        weights.append(share * ensemble.weights)
    outcomes = np.concatenate([ensemble.outcomes for ensemble in ensembles])
    images = np.concatenate([ensemble.images for ensemble in ensembles])
    return WeightedOutcomes.of(outcomes, images, np.concatenate(weights))


def nearest_outcomes(target: Array, support: Support, start: WeightedOutcomes) -> WeightedOutcomes:
    """Find the ensemble whose mean of s is nearest to ``target`` (n,), from another ensemble on."""
    outcomes = start.outcomes
    images = start.images
    # Nonnegative least squares for sum_e w_e (s(y_e) - target) = 0 and sum_e w_e = 1.
    right_hand_side = np.append(np.zeros(len(target)), 1.0)
    for _ in range(MAX_OUTCOMES_ADDED):
        equations = np.vstack([(images - target).T, np.ones(len(images))])
        weights = scipy.optimize.nnls(equations, right_hand_side, maxiter=MAX_NNLS_STEPS)[0]
        weights /= weights.sum()
        gap = target - weights @ images
        vertex = support.best(gap)
        if gap @ (vertex.image - weights @ images) <= MIN_IMPROVEMENT:
            break
        kept = weights > 0
        outcomes = np.vstack([outcomes[kept], vertex.outcome])
        images = np.vstack([images[kept], vertex.image])
    else:  # the outcome that was added last has no weight yet
        weights = np.append(weights[weights > 0], 0.0)
    return WeightedOutcomes.of(outcomes, images, weights)


class Walk(NamedTuple):
    """The undominated predictions of a walk, and the outcomes of which they are made."""

    points: Array  # (m, n)
    fields: Array  # (m, n)
    make_ensembles: list[partial[WeightedOutcomes]]  # make each point's ensemble when called
    outcomes: Array  # (e, d)
    images: Array  # (e, n) of the outcomes


@compiled()
def _write_next_step(
    point: Array,
    weights: Array,
    step: float,
    best: int,
    images: Array,
    next_point: Array,
    next_weights: Array,
) -> None:
    """Write the next prediction of a walk, and its ensemble (compiled).

    It is p + step (s(y) - p), y the outcome of the index ``best``, whose weight grows by the step
    while all others shrink.

    Parameters
    ----------
    point, weights : array (n,), array (e,)
        The prediction p, and the weights of all outcomes in its ensemble.
    step : float
        In [0, 1].
    best : int
        Index of y.
    images : array (e, n)
        s of all outcomes.
    next_point, next_weights : array (n,), array (e,)
        Written.
    """
    for i in range(point.shape[0]):
        next_point[i] = point[i] + step * (images[best, i] - point[i])
    for j in range(weights.shape[0]):
        next_weights[j] = (1.0 - step) * weights[j]
    next_weights[best] += step


class Image(HullSolver):
    """The game over conv s(Y), the convex hull of all s(y).

    Off ties, predictions move a little towards the mean of many outcomes with unlike weights, so
    that losses seldom tie.
    """

    hull: Hull = "image"
    has_ensembles = True

    def __init__(self, support: Support, *, off_ties: bool = False) -> None:
        self.support = support
        self.off_ties = off_ties
        self.size = support.size
        # outcomes that are best in some direction (e, d), and their images s(y) (e, n)
        self._outcomes, self._images = extreme_outcomes(support)
        even_weights = np.full(len(self._images), 1 / len(self._images))
        self._mean = WeightedOutcomes.of(self._outcomes, self._images, even_weights)
        self._atoms: tuple[WeightedOutcomes, ...] = ()  # the predictions of the last mixture
        # An inner point, towards which predictions move off ties. Its weights, between 1/4 and 3/4
        # by the fractional parts of multiples of the golden ratio, are all unlike, so that no
        # symmetry of the outcomes makes losses tie there as well.
        fractional_parts = np.arange(1, len(even_weights) + 1) * GOLDEN % 1
        unlike_weights = LEAST_UNLIKE_SHARE + RANGE_OF_UNLIKE_SHARES * fractional_parts
        self._unlike_weights = unlike_weights / unlike_weights.sum()
        self._inner = WeightedOutcomes.of(self._outcomes, self._images, self._unlike_weights)

    @property
    def origin(self) -> Solution:
        return Solution(self._mean.point[None], ensembles=(self._mean,))

    def single(self, point: Array) -> Solution:
        nearest = nearest_outcomes(np.asarray(point, np.float64), self.support, self._mean)
        nearest = self._moved_inside(nearest, OFF_TIES if self.off_ties else 0.0)
        return Solution(nearest.point[None], ensembles=(nearest,), unchanged=True)

    def worst_case(
        self, mass: Array, points: Array, fields: Array, enough: float = -np.inf
    ) -> float:
        """Worst case over every outcome, by the oracle's bound, no closer than ``enough``."""
        payment = float(mass @ (points * fields).sum(1))
        return payment + self.support.bound(-(mass @ fields), enough=enough - payment)

    def _play(self, game: Game) -> Solution:
        walk = self._walk(game)
        last_points = np.array([atom.point for atom in self._atoms]).reshape(-1, self.size)
        points = np.vstack([last_points, walk.points])
        fields = np.vstack([game.fields(last_points), walk.fields])
        make_last_ensembles = [partial(replace, atom) for atom in self._atoms]
        make_ensembles = [*make_last_ensembles, *walk.make_ensembles]
        outcomes = walk.outcomes
        images = walk.images
        max_points = len(points) + MAX_ANSWERS
        wanted_worst_case = SHARE_OF_MIXTURE * game.tolerance
        least_worst_case = np.inf
        mass = np.empty(0)  # of the points, in the mixture with the least worst case so far
        for _ in range(MAX_PROGRAMS):
            payments = (points * fields).sum(1)
            trial_mass, distribution = best_mixture(payments, fields @ images.T, simplex=True)
            payment = float(trial_mass @ payments)
            field = trial_mass @ fields
            vertex = self.support.best(-field)
            # what nature's best outcome adds to the payment: of all, and of the listed ones
            added_by_best = -float(field @ vertex.image)
            added_by_listed = -float((images @ field).min())
            if payment + added_by_best < least_worst_case:
                least_worst_case = payment + added_by_best
                mass = trial_mass
            is_poor_mixture = payment + added_by_listed > wanted_worst_case / 2
            needs_point = is_poor_mixture and len(points) < max_points
            needs_outcome = added_by_best > added_by_listed + wanted_worst_case / 10
            if least_worst_case <= wanted_worst_case or not (needs_point or needs_outcome):
                break
            if needs_point:
                answer = WeightedOutcomes.of(outcomes, images, distribution)
                answer = self._moved_inside(answer, game.distance_off_sides)
                make_ensembles.append(partial(replace, answer))
                points = np.vstack([points, answer.point])
                fields = np.vstack([fields, game.field(answer.point)])
            if needs_outcome:
                outcomes = np.vstack([outcomes, vertex.outcome])
                images = np.vstack([images, vertex.image])
        atoms = np.flatnonzero(mass > MIN_MASS)
        mass = mass[atoms] / mass[atoms].sum()
        # The very points of the game: on ties the mean of an ensemble, off by rounding, would be
        # another prediction.
        points = points[atoms]
        fields = fields[atoms]
        certificate = self.worst_case(mass, points, fields, SHARE_OF_CERTIFICATE * game.tolerance)
        ensembles = tuple(make_ensembles[j]() for j in atoms)
        return Solution(points, mass, certificate, ensembles)

    def _moved_inside(self, ensemble: WeightedOutcomes, share_of_way: float) -> WeightedOutcomes:
        """Move a prediction towards the inner one, by a share of the way."""
        if share_of_way == 0.0:
            return ensemble
        return mean_of((ensemble, self._inner), np.array([1 - share_of_way, share_of_way]))

    def _walk(self, game: Game) -> Walk:
        """Walk from the game's start, by steps towards the outcome that pays nature most."""
        earlier_ensembles = [*_ensembles_of(game.start), *self._atoms]
        start = earlier_ensembles[0]
        earlier_outcomes = [ensemble.outcomes for ensemble in earlier_ensembles]
        earlier_images = [ensemble.images for ensemble in earlier_ensembles]
        outcomes = np.vstack([*earlier_outcomes, self._outcomes])
        images = np.vstack([*earlier_images, self._images])
        n_earlier = len(images) - len(self._unlike_weights)
        inner_weights = np.append(np.zeros(n_earlier), self._unlike_weights)
        inner_point = inner_weights @ images
        points = np.empty((len(WALK), self.size))
        fields = np.empty_like(points)
        points[0] = start.point
        # Weights of all outcomes in the ensemble of each point. The start's outcomes come first.
        weights_of_points = np.zeros((len(WALK), len(images)))
        n_of_start = len(start.weights)
        weights_of_points[0, :n_of_start] = start.weights
        used_outcomes = set(range(n_of_start))
        for t, step in enumerate(WALK):
            point = points[t]
            weights = weights_of_points[t]
            if game.distance_off_sides > 0.0:
                point += game.distance_off_sides * (inner_point - point)
                weights += game.distance_off_sides * (inner_weights - weights)
            fields[t] = game.field(point)
            # nature's best answer: the payment h . (p - s(y)) is greatest where h . s(y) is least
            best = least_row(images, fields[t])
            used_outcomes.add(best)
            if t + 1 < len(WALK):
                _write_next_step(
                    point, weights, step, best, images, points[t + 1], weights_of_points[t + 1]
                )
        kept = undominated(points, fields)
        used = sorted(used_outcomes)
        make_ensembles = []
        for t in kept:
            make_ensemble = partial(WeightedOutcomes.of, outcomes, images, weights_of_points[t])
            make_ensembles.append(make_ensemble)
        return Walk(points[kept], fields[kept], make_ensembles, outcomes[used], images[used])

    def choices(self, game: Game) -> Solution:
        walk = self._walk(game)
        corners = []
        for outcome, image in zip(
            self._outcomes[:MAX_CORNERS], self._images[:MAX_CORNERS], strict=True
        ):
            single_outcome = WeightedOutcomes(outcome[None], np.ones(1), image[None])
            corners.append(self._moved_inside(single_outcome, game.distance_off_sides))
        points = np.vstack([walk.points, [corner.point for corner in corners]])
        ensembles = [make_ensemble() for make_ensemble in walk.make_ensembles]
        return Solution(points, ensembles=(*ensembles, *corners))

    def best_mixture_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        payments = (points * fields).sum(1)
        images = self._images  # of the outcomes against which the program holds the limit
        limit_of_program = limit
        for _ in range(MAX_PROGRAMS):
            mass = mixture_of_least_value(
                values, payments, fields @ images.T, limit=limit_of_program, box=False
            )
            if mass is None:
                return None
            mass /= mass.sum()
            excess = self.worst_case(mass, points, fields, limit) - limit
            if excess <= 0.0:
                return mass
            vertex = self.support.best(-(mass @ fields))
            images = np.vstack([images, vertex.image])
            attained = mass @ payments - mass @ fields @ vertex.image
            if attained <= limit_of_program + ROUNDING:  # the rest is between outcome and bound
                limit_of_program -= excess
        return None

    def remember(self, solution: Solution) -> None:
        self._atoms = _ensembles_of(solution)
        self._mean = mean_of(self._atoms, solution.mass)

    def state(self) -> dict[str, Any]:
        ensembles = [self._mean, *self._atoms]  # the mean of the last mixture, and its atoms
        # one after another, each as long as its entry of ``sizes``; images are s(outcomes)
        return {
            "sizes": np.array([len(ensemble.weights) for ensemble in ensembles]),
            "outcomes": np.vstack([ensemble.outcomes for ensemble in ensembles]),
            "weights": np.concatenate([ensemble.weights for ensemble in ensembles]),
            "images": np.vstack([ensemble.images for ensemble in ensembles]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        ends = np.cumsum(state["sizes"])[:-1]
        outcomes = np.split(np.array(state["outcomes"]), ends)
        weights = np.split(np.array(state["weights"]), ends)
        images = np.split(np.array(state["images"]), ends)
        mean, *atoms = map(WeightedOutcomes, outcomes, weights, images)
        self._mean = mean
        self._atoms = tuple(atoms)


def _ensembles_of(solution: Solution) -> tuple[WeightedOutcomes, ...]:
    """Return the ensembles of an ``Image``'s own solution, which all have images."""
    return cast("tuple[WeightedOutcomes, ...]", solution.ensembles)


def ensemble_solver(basis: Basis, *, off_ties: bool = False) -> HullSolver:
    """Make the solver over conv s(Y) whose predictions are ensembles; ValueError without one.

    Where s(y) are the indicators of cells, a prediction in the simplex is its own ensemble: the
    points of the cells with the prediction as weights. Any other basis has the game over conv s(Y).
    """
    if basis.points is not None:
        return Simplex(basis.size, cell_outcomes=basis.points, off_ties=off_ties)
    return Image(basis.support(), off_ties=off_ties)
