r"""The per-round game over conv s(Y), with predictions that are ensembles of outcomes.

As in ``minimax``, but both sides keep to the image of the basis: the forecaster chooses a law over
predictions p in conv s(Y), nature an outcome y in [0, 1]^d, and the forecaster pays

    E[ h(p) . (p - s(y)) ],        worst case   E[h(p) . p] + max_y -E[h(p)] . s(y).

The first predictions come from last round's law and from a walk like Frank and Wolfe's: from
last round's mean a step towards the outcome that pays nature most, with equal and then with
shrinking steps. A linear program mixes them against some outcomes. Its mixture's best outcome for
nature, from the support oracle, is a new row; the dual, nature's law over outcomes, is an ensemble
whose mean is a new prediction that pays 0 against it: a column. Both are added until the worst case
is small enough.

The certificate uses the oracle's bound, which covers every outcome.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.events.protected import RowArrays, Rows, arrays_of, room_for
from regretless.forecaster.minimax.box import WALK, field_at, field_into, undominated
from regretless.forecaster.minimax.ensembles import Cloud, candidates, mean_of
from regretless.forecaster.minimax.program import best_against
from regretless.forecaster.minimax.solver import LIGHTEST, WALKS, Solution
from regretless.forecaster.minimax.support import Support, values
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled
from regretless.market.game.basis import Hull

Source = Cloud | int  # an ensemble, or a step of the walk

AIM, ENOUGH = 0.1, 0.2  # shares of the tolerance: of the mixture, and of its certificate
TURNS = 40  # linear programs in a round


@compiled
def _walk(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    rows: RowArrays,
    table: Array,
    images: Array,
    steps: Array,
    points: Array,
    shares: Array,
    fields: Array,
    picked: Integers,
) -> None:
    """Walk towards nature's best outcomes; points (T, n) are means of images (M, n) by shares."""
    room = room_for(rows)
    for t in range(points.shape[0]):
        field_into(rows, table, points[t], room, fields[t])
        least, best = np.inf, 0
        for k in range(images.shape[0]):
            score = 0.0
            for i in range(images.shape[1]):
                score += fields[t, i] * images[k, i]
            if score < least:
                least, best = score, k
        picked[t] = best
        if t + 1 < points.shape[0]:
            for i in range(points.shape[1]):
                points[t + 1, i] = points[t, i] + steps[t] * (images[best, i] - points[t, i])
            for k in range(images.shape[0]):
                shares[t + 1, k] = (1.0 - steps[t]) * shares[t, k]
            shares[t + 1, best] += steps[t]


def _slow_walk(
    rows: Rows, table: Array, images: Array, points: Array, visited: tuple[Array, Array, Integers]
) -> None:
    """Do what ``_walk`` does, for response rules that are not compiled."""
    shares, fields, picked = visited
    for t, step in enumerate(WALK):
        fields[t] = field_at(rows, table, points[t])
        picked[t] = best = int(values(images, fields[t]).argmin())
        if t + 1 < len(WALK):
            points[t + 1] = points[t] + step * (images[best] - points[t])
            shares[t + 1] = (1 - step) * shares[t]
            shares[t + 1, best] += step


class ImageGame:
    """The game of some predictions against some outcomes, which grows.

    Minimise sum_j w_j h_j.p_j + max_k -sum_j w_j h_j.s_k over the weights w of the predictions.

    Parameters
    ----------
    points, fields : array (m, n)
        Predictions and their fields.
    images : array (r, n)
        s(y) of the outcomes.
    """

    def __init__(self, points: Array, fields: Array, images: Array) -> None:
        self.points, self.fields, self.images = points, fields, images
        self.payments = (points * fields).sum(1)

    def add_outcome(self, image: Array) -> None:
        """Let nature choose one outcome more."""
        self.images = np.vstack([self.images, image])

    def add_point(self, point: Array, field: Array) -> None:
        """Let the forecaster predict one point more."""
        self.points = np.vstack([self.points, point])
        self.fields = np.vstack([self.fields, field])
        self.payments = np.append(self.payments, field @ point)

    def solve(self) -> tuple[Array, Array]:
        """Return the best weights (m,) and nature's law (r,)."""
        return best_against(self.payments, self.fields @ self.images.T)


@dataclass(frozen=True, eq=False)
class _Walked:
    """A pool of outcomes, and the predictions that the walk made of them."""

    outcomes: Array
    images: Array
    points: Array
    shares: Array
    fields: Array
    picked: Integers

    def cloud(self, source: Source) -> Cloud:
        """Return an ensemble as it is, or that of a step of the walk."""
        if isinstance(source, Cloud):
            return source
        return Cloud.of(self.outcomes, self.images, self.shares[source])


class ImageSolver:
    """The game over the convex hull of all s(y).

    Parameters
    ----------
    support : Support
        The best outcomes of the basis in every direction.
    """

    hull: Hull = "image"

    def __init__(self, support: Support) -> None:
        self.support = support
        self._outcomes, self._images = candidates(support)
        even = np.full(len(self._images), 1 / len(self._images))
        self._origin = Cloud.of(self._outcomes, self._images, even)
        self._atoms: tuple[Cloud, ...] = ()

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture of ensembles with its certificate."""
        walked = self._walk(rows, table)
        game, sources, nature = self._open(walked, rows, table)
        mass = self._improve(game, sources, nature, rows, table, aim=AIM * tolerance)
        chosen = np.flatnonzero(mass > LIGHTEST)
        mass = mass[chosen] / mass[chosen].sum()
        # The very points of the game: on ties the mean of an ensemble, off by rounding, would be
        # another prediction.
        points, fields = game.points[chosen], game.fields[chosen]
        payment = float(mass @ (points * fields).sum(1))
        enough = ENOUGH * tolerance - payment
        certificate = payment + self.support.bound(-(mass @ fields), enough=enough)
        ensembles = tuple(walked.cloud(sources[j]) for j in chosen)
        return Solution(points, mass, certificate, ensembles)

    def _open(
        self, walked: _Walked, rows: Rows, table: Array
    ) -> tuple[ImageGame, list[Source], Array]:
        """Open the game; where each prediction comes from, and nature's outcomes (r, d)."""
        kept = np.empty(len(walked.points), dtype=np.int64)
        kept = kept[: undominated(walked.points, walked.fields, kept)]
        own = [cloud.point for cloud in self._atoms]
        points = np.array([*own, *walked.points[kept]])
        fields = np.array([*(field_at(rows, table, point) for point in own), *walked.fields[kept]])
        listed = np.unique(np.append(walked.picked, np.arange(len(self._origin.weights))))
        game = ImageGame(points, fields, walked.images[listed])
        return game, [*self._atoms, *kept.tolist()], walked.outcomes[listed]

    def _improve(  # noqa: PLR0913 - a round's whole game
        self,
        game: ImageGame,
        sources: list[Source],
        nature: Array,
        rows: Rows,
        table: Array,
        *,
        aim: float,
    ) -> Array:
        """Add predictions and outcomes to the game; the masses of the best mixture found."""
        most = len(sources) + WALKS
        best, mass = np.inf, np.empty(0)
        for _ in range(TURNS):
            trial, law = game.solve()
            payment, field = float(trial @ game.payments), trial @ game.fields
            vertex = self.support.best(-field)
            worst, known = -float(field @ vertex.image), -float((game.images @ field).min())
            if payment + worst < best:
                best, mass = payment + worst, trial
            new_point = payment + known > aim / 2 and len(sources) < most
            new_outcome = worst > known + aim / 10
            if best <= aim or not (new_point or new_outcome):
                break
            if new_point:
                cloud = Cloud.of(nature, game.images, law)
                sources.append(cloud)
                game.add_point(cloud.point, field_at(rows, table, cloud.point))
            if new_outcome:
                game.add_outcome(vertex.image)
                nature = np.vstack([nature, vertex.outcome])
        return mass

    def _walk(self, rows: Rows, table: Array) -> _Walked:
        """Walk from last round's mean over its outcomes, those of its law, and the candidates."""
        known = [self._origin, *self._atoms]
        outcomes = np.vstack([*(cloud.outcomes for cloud in known), self._outcomes])
        images = np.vstack([*(cloud.images for cloud in known), self._images])
        steps, size = len(WALK), images.shape[1]
        points, fields = np.empty((steps, size)), np.empty((steps, size))
        shares, picked = np.zeros((steps, len(images))), np.empty(steps, dtype=np.int64)
        points[0] = self._origin.point
        shares[0, : len(self._origin.weights)] = self._origin.weights
        if rows.custom:
            _slow_walk(rows, table, images, points, (shares, fields, picked))
        else:
            _walk(arrays_of(rows), table, images, WALK, points, shares, fields, picked)
        return _Walked(outcomes, images, points, shares, fields, picked)

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is in [0, 1]^n."""
        if truth.shape != (self.support.size,) or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(f"update needs {self.support.size} numbers in [0, 1]")

    def remember(self, solution: Solution) -> None:
        """Start the next round from this law and its mean."""
        self._atoms = tuple(e for e in solution.ensembles or () if isinstance(e, Cloud))
        self._origin = mean_of(self._atoms, solution.mass)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        known = [self._origin, *self._atoms]
        return {
            "sizes": np.array([len(cloud.weights) for cloud in known]),
            "outcomes": np.vstack([cloud.outcomes for cloud in known]),
            "weights": np.concatenate([cloud.weights for cloud in known]),
            "images": np.vstack([cloud.images for cloud in known]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        cuts = np.cumsum(state["sizes"])[:-1]
        parts = (np.split(np.array(state[n]), cuts) for n in ("outcomes", "weights", "images"))
        self._origin, *atoms = (Cloud(*part) for part in zip(*parts, strict=True))
        self._atoms = tuple(atoms)
