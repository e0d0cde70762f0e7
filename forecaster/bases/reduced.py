r"""The reduced basis: a few real losses in whose span a whole population nearly lies.

Real losses of the population, each stretched onto [0, 1], are chosen until every loss has a linear
form with sum |r_i| <= cap that is within the promised error on a sample of outcomes, denser
towards 0 where concave losses are steep. Outcomes that the fit did not see are checked next; where
the promise is broken they join the sample, and what broke it is fitted again. What counts for
regret is lambda sqrt(n).

``error`` is the greatest error that was measured, on the sample and on the unseen outcomes.
``certify`` gives an upper bound over the whole cube from exact ranges over boxes. A loss that was
not listed gets its best coefficients on the same sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.approximation.certify import certify
from regretless.forecaster.bases.approximation.functions import Key, LossFunctions, keys_of, stacked
from regretless.forecaster.bases.approximation.selection import Selection, pivots, tour
from regretless.forecaster.bases.approximation.sup_norm import Fit
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

SAMPLE, UNSEEN, CHUNK = 2000, 6000, 1000
START = 6  # functions from pivoted QR before the greedy steps
PRECISION = 0.02  # share of the promise to which errors are minimised
MARGIN = 0.98  # share of the promise that the fit to the sample aims at
MOST = 400
REPAIRS = 30
NEAR = 2  # times that new outcomes are tried around the worst ones
BUDGET = 1_000_000  # evaluations that a certificate may take, about a second
QUICK = 600  # functions that the quick variant looks at


@dataclass(frozen=True)
class Reduction:
    """What a reduced basis achieves on its population.

    Parameters
    ----------
    functions : int
        Distinct functions that it was fitted to.
    size : int
        n, functions kept.
    lipschitz : float
        Greatest sum |r_i|.
    cost : float
        lambda sqrt(n), the factor in regret.
    sampled_error, unseen_error : float
        Greatest error on the sample of the fit, and on outcomes that it did not see.
    """

    functions: int
    size: int
    lipschitz: float
    cost: float
    sampled_error: float
    unseen_error: float


class ReducedBasis(Basis):
    """Real losses as basis functions, fitted to a population.

    Parameters
    ----------
    losses : sequence of Loss
        Stacks or single losses with values in [0, 1]: the family.
    error : float
        The promise: greatest error on the sample and on unseen outcomes.
    cap : float
        Bound on sum |r_i|.
    quick : bool
        Fit to a sample of ``QUICK`` functions only.
    seed : int
        Of the samples.

    Attributes
    ----------
    report : Reduction

    Raises
    ------
    ValueError
        If ``MOST`` functions do not keep the promise.
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        *,
        error: float = 0.1,
        cap: float = 1.0,
        quick: bool = False,
        seed: int = 0,
    ) -> None:
        if error <= 0 or cap <= 0:
            raise ValueError("error and cap must be positive")
        listed = LossFunctions(losses)
        if quick and listed.size > QUICK:
            picked = stream(seed, "quick").choice(listed.size, QUICK, replace=False)
            listed = listed.chosen(picked)
        self.outcomes, self.promise = listed.outcomes, error
        search = _Search(listed, error=error, cap=cap, seed=seed)
        order = np.argsort(search.selection.chosen)
        self._listed, self._offset, self._weights = listed, search.offset, search.weights[:, order]
        self.functions = listed.chosen(search.selection.chosen)
        self.size = self.functions.size
        search.selection.chosen.sort()
        self._fit = search.selection.fitter()
        self._sample = search.sample
        self._others: dict[Key, Fit] = {}
        self.lipschitz = float(np.abs(self._weights).sum(1).max())
        self.report = Reduction(
            functions=listed.size,
            size=self.size,
            lipschitz=self.lipschitz,
            cost=self.lipschitz * self.size**0.5,
            sampled_error=float(search.sampled.max()),
            unseen_error=float(search.unseen.max()),
        )
        self.error = max(self.report.sampled_error, self.report.unseen_error)

    def transform(self, y: ArrayLike) -> Array:
        """Compute the chosen losses at outcomes (..., d): (..., n)."""
        return self.functions.values(y)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the fitted coefficients, or the best on the sample for a loss not listed."""
        self.check_outcomes(loss)
        many = stacked(loss)
        index, keys = self._listed.index(many), keys_of(many)
        offset, weights = self._offset[index], self._weights[index]
        unlisted = np.argwhere(index < 0)
        self._fit_others(many, [(k, a) for k, a in unlisted if keys[k][a] not in self._others])
        for k, a in unlisted:
            fitted = self._others[keys[k][a]]
            offset[k, a], weights[k, a] = fitted.offset, fitted.weights
        return offset.reshape(loss.offset.shape), weights.reshape(*loss.offset.shape, self.size)

    def _fit_others(self, many: Loss, places: list[tuple[int, int]]) -> None:
        """Fit actions that were not listed, once and for all: best coefficients are not unique."""
        if not places:
            return
        rows, actions = np.array(places).T
        distinct, at = np.unique(rows, return_inverse=True)
        values = many[distinct].losses(self._sample)[:, at, actions].T
        keys = keys_of(many)
        for one in tour(values):
            key = keys[rows[one]][actions[one]]
            if key not in self._others:
                self._others[key] = self._fit(np.ascontiguousarray(values[one]))

    def certified_error(self, losses: Loss) -> float:
        """Prove a bound on the error of these losses over the whole cube, by branch and bound."""
        offset, weights = self.coefficients(losses)
        return certify(
            losses,
            offset,
            weights,
            self.functions.enclosure,
            slopes=self.functions.slopes,
            budget=BUDGET,
            target=self.promise,
        ).upper


class _Search:
    """Choose functions and fit everybody, until the promise is kept on unseen outcomes.

    Attributes
    ----------
    selection : Selection
    sample : array (M, d)
    offset, weights : array (N,), (N, n)
        Coefficients of every listed function's loss.
    sampled, unseen : array (N,)
        Errors.
    """

    def __init__(self, listed: LossFunctions, *, error: float, cap: float, seed: int) -> None:
        self.listed, self.error = listed, error
        self.sample = scattered(SAMPLE, listed.outcomes, seed=seed)
        self._others = scattered(UNSEEN, listed.outcomes, seed=seed + 1)
        values = np.ascontiguousarray(listed.values(self.sample).T)
        losses = self._losses(values)
        start = pivots(losses[:, ::3], min(START, listed.size))
        self.selection = Selection(losses, values, cap, start, PRECISION * error)
        self.selection.grow(MARGIN * error, MOST)
        size = len(self.selection.chosen)
        self.offset, self.weights = np.zeros(listed.size), np.zeros((listed.size, size))
        self.sampled, self.unseen = np.zeros(listed.size), np.zeros(listed.size)
        self._worst = np.zeros((listed.size, listed.outcomes))
        self._refit(np.arange(listed.size))
        for near in range(NEAR + 1):
            if near:
                self._look_near(seed + 1 + near)
            self._mend()

    def _mend(self) -> None:
        """Repair until the promise holds on the unseen outcomes; ValueError if it never does."""
        for _ in range(REPAIRS):
            broken = np.flatnonzero(self.unseen > self.error)
            if not len(broken):
                return
            self._repair(broken)
        raise ValueError(f"the promise {self.error} is still broken on unseen outcomes; raise it")

    def _look_near(self, seed: int) -> None:
        """Take new unseen outcomes around those where somebody's error was greatest."""
        worst = np.unique(self._worst, axis=0)
        rng = stream(seed, "near the worst")
        picked = worst[rng.integers(len(worst), size=UNSEEN // 2)]
        spread = rng.choice([0.01, 0.05], (len(picked), 1))
        self._others = np.clip(picked + spread * rng.normal(size=picked.shape), 0.0, 1.0)
        self._check(np.arange(self.listed.size))

    def _losses(self, values: Array) -> Array:
        """Turn stretched functions (N, M) back into losses."""
        return np.asarray(self.listed.low[:, None] + self.listed.scale[:, None] * values)

    def _refit(self, rows: Indices) -> None:
        fit, wanted = self.selection.fitter(), np.isin(self.selection.order, rows)
        for row in self.selection.order[wanted]:
            fitted = fit(self.selection.targets[row])
            self.offset[row], self.weights[row] = fitted.offset, fitted.weights
            self.sampled[row] = fitted.error
        self._check(rows)

    def _check(self, rows: Indices) -> None:
        """Measure errors on the unseen outcomes, and where they are greatest."""
        misfits = self._misfits(rows)
        self._worst[rows] = self._others[misfits.argmax(axis=0)]
        self.unseen[rows] = misfits.max(axis=0)

    def _misfits(self, rows: Indices) -> Array:
        """Errors (T, rows) on the unseen outcomes."""
        own, order = self.listed.chosen(rows), np.argsort(self.selection.chosen)
        kept = self.listed.chosen(self.selection.chosen)
        parts = []
        for start in range(0, len(self._others), CHUNK):
            outcomes = self._others[start : start + CHUNK]
            linear = self.offset[rows] + kept.values(outcomes) @ self.weights[rows][:, order].T
            losses = own.low + own.scale * own.values(outcomes)
            parts.append(np.abs(linear - losses))
        return np.concatenate(parts)

    def _repair(self, broken: Indices) -> None:
        """Add the outcomes where the promise is broken most, and refit those who broke it."""
        misfits = self._misfits(broken)
        worst = np.unique(misfits.argmax(axis=0))
        values = np.ascontiguousarray(self.listed.values(self._others[worst]).T)
        self.sample = np.vstack([self.sample, self._others[worst]])
        self.selection.extend(self._losses(values), values)
        self.selection.errors[:] = np.maximum(self.sampled, np.minimum(self.unseen, self.error))
        self.selection.errors[broken] = np.inf
        self.selection.grow(self.error, MOST)
        more = len(self.selection.chosen) - self.weights.shape[1]
        self.weights = np.pad(self.weights, ((0, 0), (0, more)))
        self._refit(broken)


def scattered(count: int, outcomes: int, *, seed: int) -> Array:
    """Outcomes (count, d) in the cube: half of them denser towards 0, a third on its faces."""
    rng = stream(seed, "reduced basis")
    points = rng.random((count, outcomes))
    points[::2] **= 2
    on_face = rng.random((count, outcomes)) < 1 / 3
    on_face[count // 2 :] = False
    points[on_face] = rng.integers(0, 2, on_face.sum())
    points[:2] = [[0.0] * outcomes, [1.0] * outcomes]
    return points
