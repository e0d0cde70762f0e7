r"""The reduced basis: a few real losses in whose span a whole population nearly lies.

Real losses of the population, each stretched onto [0, 1], are chosen until every loss has a linear
form with sum |r_i| <= cap that is within the promised error on a sample of outcomes. Outcomes that
the fit did not see are checked next; where the promise is broken they join the sample, and what
broke it is fitted again. What counts for regret is lambda sqrt(n). ``error`` is the greatest that
was measured; ``certified_error`` bounds it over the whole cube from exact ranges over boxes. A loss
that was not listed gets its best coefficients on the same sample.

**Fits.** Best uniform approximation with a bounded sum of coefficients,

    minimise  max_y | f(y) - r_0 - sum_i r_i s_i(y) |    subject to  sum_i |r_i| <= cap,

is a linear program. Only the outcomes where the error is greatest matter, so the program holds a
few working points, shared by all f and grown until no other is clearly worse. From one f to the
next only the right-hand sides change, and HiGHS starts from the last solution: about a millisecond.

**Choice.** Column-pivoted QR takes the function that the chosen ones explain least in the mean
square. From there the greedy step adds the function that is approximated worst in sup norm. Errors
only fall with more functions, so that a step refits only functions whose old error exceeds the
greatest new one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr

from regretless.forecaster.bases.certify import certify
from regretless.forecaster.bases.exact import ExactLossesBasis, Key, keys_of
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.delegated import Delegated
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.market.numerics.linear_program import Program, fitted, hand_over, new_highs

SAMPLE = 2000
UNSEEN = 6000
CHUNK = 1000
START = 6  # functions from pivoted QR before the greedy steps
PRECISION = 0.02  # share of the promise to which errors are minimised
MARGIN = 0.98  # share of the promise that the fit to the sample aims at
MOST = 400
REPAIRS = 30
NEAR = 2  # times that new outcomes are tried around the worst ones
BUDGET = 1_000_000  # evaluations that a certificate may take, about a second
QUICK_FUNCTIONS = 600  # functions that the quick variant looks at
SLACK = 1.05  # a point joins the working points if its error exceeds the program's by this factor
MAX_WORKING_POINTS = 1200
# Searches that are remembered, since runs of a study share populations; coefficients of the largest
MAX_REMEMBERED = 24
MAX_REMEMBERED_NUMBERS = 500_000
# Default promise. The error enters regret, but a fine one takes minutes for many losses.
MAX_FINE_FUNCTIONS = 1000
FINE_ERROR = 0.04
COARSE_ERROR = 0.1


class Reduction(NamedTuple):
    """What a reduced basis achieves on its population."""

    functions: int  # distinct functions that it was fitted to
    size: int  # n, functions kept
    lipschitz: float  # greatest sum |r_i|
    cost: float  # lambda sqrt(n), the factor in regret
    sampled_error: float  # greatest error on the sample of the fit
    unseen_error: float  # and on outcomes that it did not see


@register.basis("reduced")
class ReducedBasis(Basis):
    """Real losses as basis functions, fitted to a population; its ``report`` is a ``Reduction``.

    ValueError if ``MOST`` functions do not keep the promise.

    Parameters
    ----------
    losses : sequence of Loss
        Stacks or single losses with values in [0, 1]: the family.
    error, cap : float
        The promise: greatest error on the sample and on unseen outcomes, by default a fine one for
        few losses. Bound on sum |r_i|.
    quick : bool
        Fit to a sample of ``QUICK_FUNCTIONS`` functions only.
    seed : int
        Of the samples.
    """

    proved = False

    def __init__(
        self,
        losses: Sequence[Loss],
        *,
        error: float | None = None,
        cap: float = 1.0,
        quick: bool = False,
        seed: int = 0,
    ) -> None:
        if not isinstance(quick, bool):
            raise TypeError("quick must be true or false")
        if error is None:
            distinct = sum(unique_losses(loss.as_stack())[0].offset.size for loss in losses)
            error = FINE_ERROR if distinct <= MAX_FINE_FUNCTIONS else COARSE_ERROR
        if error <= 0 or cap <= 0:
            raise ValueError("error and cap must be positive")
        listed = ExactLossesBasis(losses)
        if quick and listed.size > QUICK_FUNCTIONS:
            chosen_functions = stream(seed, "quick").choice(
                listed.size, QUICK_FUNCTIONS, replace=False
            )
            listed = listed.chosen(chosen_functions)
        self.outcomes = listed.outcomes
        self.promise = error
        search = _searched(listed, error, cap, seed)
        self.functions = listed.chosen(search.chosen)
        self.size = len(search.chosen)
        self._sample = search.sample
        self._fit = search.fitter(cap, error)
        fits = map(Fit, search.offset, search.weights, search.sampled)
        self._fits: dict[Key, Fit] = dict(zip(listed.found, fits, strict=True))
        self.lipschitz = float(np.abs(search.weights).sum(1).max())
        cost = self.lipschitz * self.size**0.5
        errors = (search.sampled.max(), search.unseen)
        self.report = Reduction(listed.size, self.size, self.lipschitz, cost, *map(float, errors))
        self.error = float(max(errors))

    transform = Delegated("functions")
    support = Delegated("functions")

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the fitted coefficients, or the best on the sample for a loss not listed."""
        self.check_outcomes(loss)
        stack = loss.as_stack()
        keys = [key for row in keys_of(stack) for key in row]
        # once and for all: best coefficients are not unique
        unlisted = [position for position, key in enumerate(keys) if key not in self._fits]
        if unlisted:
            rows, actions = np.divmod(unlisted, stack.actions)
            distinct, row_of_unlisted = np.unique(rows, return_inverse=True)
            values = stack[distinct].losses(self._sample)[:, row_of_unlisted, actions].T
            for index in tour(values):
                if (key := keys[unlisted[index]]) not in self._fits:
                    self._fits[key] = self._fit(np.ascontiguousarray(values[index]))
        offset, weights, _ = zip(*(self._fits[key] for key in keys), strict=True)
        return self.in_order(np.array(offset).reshape(loss.offset.shape), np.array(weights))

    def certified_error(self, losses: Loss) -> float:
        """Prove a bound on the error of these losses over the whole cube, by branch and bound."""
        offset, weights = self.coefficients(losses)
        ranges = self.functions.enclosure, self.functions.slopes
        return certify(losses, offset, weights, *ranges, budget=BUDGET, target=self.promise).upper


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


class Fit(NamedTuple):
    """Coefficients of one function, and its greatest error over the whole sample."""

    offset: float
    weights: Array
    error: float


class SupNormFit:
    """Fits functions with n given ones, by their values on a sample of M outcomes.

    ``table`` (n, M) has the values of s. The ``working`` points grow in place, so that they can be
    handed on: one joins where its error exceeds the program's by more than ``precision``.
    """

    def __init__(
        self, table: Array, cap: float, *, working: list[int], precision: float = 2e-3
    ) -> None:
        self.table = table
        self.cap = cap
        self.working = working
        self.precision = precision
        self._solver = new_highs()
        size = len(table)
        program = Program(  # r+, r-, r_0 and the error e; the values come later
            cost=np.append(np.zeros(2 * size + 1), 1.0),
            matrix=np.append(np.ones(2 * size), [0.0, 0.0])[None],
            row_upper=cap,
            lower=np.append(np.zeros(2 * size), [-np.inf, 0.0]),
        )
        hand_over(self._solver, program)
        self._columns = np.arange(2 * size + 2, dtype=np.int32)
        for point in working:
            self._require(point)

    def __call__(self, values: Array) -> Fit:
        size = len(self.table)
        while True:
            values_at_points = values[self.working]
            no_limit = np.full(len(values_at_points), np.inf)
            lower = np.column_stack([values_at_points, -no_limit]).ravel()
            upper = np.column_stack([no_limit, values_at_points]).ravel()
            rows = np.arange(1, 1 + len(lower), dtype=np.int32)
            self._solver.changeRowsBounds(len(rows), rows, lower, upper)  # type: ignore[attr-defined]
            solution = fitted(self._solver)
            weights = solution[:size] - solution[size : 2 * size]
            weights *= self.cap / max(np.abs(weights).sum(), self.cap)  # by the solver's tolerance
            offset, error = solution[-2:].tolist()
            errors = np.abs(values - offset - weights @ self.table)
            worst = int(errors.argmax())
            accepted_error = max(SLACK * error, error + self.precision)
            cannot_grow = worst in self.working or len(self.working) >= MAX_WORKING_POINTS
            if cannot_grow or errors[worst] <= accepted_error:
                return Fit(offset, weights, float(errors[worst]))
            self.working.append(worst)
            self._require(worst)

    def _require(self, point: int) -> None:
        """Add the two rows of a working point: the form plus e above f, minus e below it."""
        values = self.table[:, point]
        for side in (1.0, -1.0):
            row = np.concatenate([values, -values, [1.0, side]])
            self._solver.addRow(-np.inf, np.inf, len(row), self._columns, row)


def tour(table: Array) -> Indices:
    """Order rows (N, M) so that neighbours are alike: programs then start from a near solution."""
    features = np.ascontiguousarray(table[:, :: max(table.shape[1] // 40, 1)])
    squares = (features**2).sum(axis=1)
    distance_penalty = np.zeros(len(features))
    order = np.empty(len(features), dtype=np.intp)
    row = 0
    for step in range(len(features)):
        order[step] = row
        distance_penalty[row] = np.inf
        row = int((squares - 2 * features @ features[row] + distance_penalty).argmin())
    return order


class _Found(NamedTuple):
    """What a search found: functions in ascending order, everybody's fits, and the last program."""

    chosen: list[int]
    sample: Array
    offset: Array
    weights: Array
    sampled: Array
    unseen: float
    table: Array
    working: list[int]

    def fitter(self, cap: float, error: float) -> SupNormFit:
        """Return a program for functions that are not listed, as the search left it."""
        precision = PRECISION * error
        return SupNormFit(self.table, cap, working=self.working[:], precision=precision)


_remembered: dict[tuple[object, ...], _Found] = {}


def _searched(listed: ExactLossesBasis, error: float, cap: float, seed: int) -> _Found:
    """Search, or remember what was found for the same functions, promise and seed."""
    key = listed.identity, error, cap, seed
    if remembered := _remembered.get(key):
        return remembered
    search = _Search(listed, error=error, cap=cap, seed=seed)
    weights = search.weights[:, np.argsort(search.chosen)]
    search.chosen.sort()
    table = search.values[search.chosen]
    unseen = float(search.unseen.max())
    fits = search.offset, weights, search.sampled
    remembered = _Found(search.chosen, search.sample, *fits, unseen, table, search.working)
    if weights.size <= MAX_REMEMBERED_NUMBERS:
        if len(_remembered) == MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = remembered
    return remembered


class _Search:
    """Chooses functions and fits everybody, until the promise is kept.

    ``values`` (N, M) are all functions on the sample, stretched onto [0, 1], and ``errors`` (N,)
    bounds on what each one's approximation by those ``chosen`` so far misses.
    """

    def __init__(self, listed: ExactLossesBasis, *, error: float, cap: float, seed: int) -> None:
        self.listed = listed
        self.error = error
        self.cap = cap
        self.sample = scattered(SAMPLE, listed.outcomes, seed=seed)
        self._others = scattered(UNSEEN, listed.outcomes, seed=seed + 1)
        self.values = np.ascontiguousarray(listed.transform(self.sample).T)
        losses = self._losses()
        thinned = losses[:, ::3] - losses[:, ::3].mean(axis=1, keepdims=True)
        order = qr(thinned.T, mode="r", pivoting=True)[1][: min(START, listed.size)]
        self.chosen: list[int] = order.tolist()
        self.working = list(range(0, SAMPLE, SAMPLE // 60))
        self._tour = tour(losses)
        self.errors = np.full(listed.size, np.inf)
        self._grow(MARGIN * error)
        everyone = np.arange(listed.size)
        size = len(self.chosen)
        self.offset = np.zeros(listed.size)
        self.weights = np.zeros((listed.size, size))
        self.sampled = np.zeros(listed.size)
        self.unseen = np.zeros(listed.size)
        self._worst = np.zeros_like(everyone)  # of the unseen outcomes
        self._refit(everyone)
        self._mend()
        for round_number in range(
            NEAR
        ):  # new unseen outcomes around those where errors are greatest
            worst = np.unique(self._others[self._worst], axis=0)
            rng = stream(seed + 2 + round_number, "near the worst")
            centres = worst[rng.integers(len(worst), size=UNSEEN // 2)]
            spread = rng.choice([0.01, 0.05], (len(centres), 1))
            self._others = np.clip(centres + spread * rng.normal(size=centres.shape), 0.0, 1.0)
            self._check(everyone)
            self._mend()

    def _losses(self, rows: Any = slice(None)) -> Array:
        """Turn stretched functions back into losses on the sample (rows, M)."""
        low = self.listed.low[rows, None]
        scale = self.listed.scale[rows, None]
        return np.asarray(low + scale * self.values[rows])

    def fitter(self) -> SupNormFit:
        """Return the program for the present choice."""
        table = self.values[self.chosen]
        precision = PRECISION * self.error
        return SupNormFit(table, self.cap, working=self.working, precision=precision)

    def _grow(self, error: float) -> None:
        """Add functions until all are within ``error``; ValueError if it takes more than MOST."""
        while True:
            fit = self.fitter()
            is_refitted = np.isinf(self.errors)
            for row in self._tour[is_refitted[self._tour]]:
                self.errors[row] = fit(self._losses([row])[0]).error
            # which misses most: others are refitted only where old errors leave doubt
            while not is_refitted[row := int(self.errors.argmax())]:
                self.errors[row] = min(self.errors[row], fit(self._losses([row])[0]).error)
                is_refitted[row] = True
            greatest = self.errors[row]
            count = len(self.chosen)
            if greatest <= error:
                return
            if count >= MOST or row in self.chosen:
                raise ValueError(
                    f"{count} functions leave an error of {greatest:.3g}, not {error:.3g}"
                )
            self.chosen.append(row)

    def _mend(self) -> None:
        """Add unseen outcomes where the promise is broken most, and refit those who broke it."""
        for _ in range(REPAIRS):
            broken = np.flatnonzero(self.unseen > self.error)
            if not len(broken):
                return
            worst = self._others[np.unique(self._worst[broken])]
            self.working += range(len(self.sample), len(self.sample) + len(worst))
            self.sample = np.vstack([self.sample, worst])
            self.values = np.hstack([self.values, self.listed.transform(worst).T])
            self.errors = np.maximum(self.sampled, np.minimum(self.unseen, self.error))
            self.errors[broken] = np.inf
            self._grow(self.error)
            more = len(self.chosen) - self.weights.shape[1]
            self.weights = np.pad(self.weights, ((0, 0), (0, more)))
            self._refit(broken)
        raise ValueError(f"the promise {self.error} is still broken on unseen outcomes; raise it")

    def _refit(self, rows: Indices) -> None:
        fit = self.fitter()
        for row in self._tour[np.isin(self._tour, rows)]:
            self.offset[row], self.weights[row], self.sampled[row] = fit(self._losses([row])[0])
        self._check(rows)

    def _check(self, rows: Indices) -> None:
        """Measure errors on the unseen outcomes, and where they are greatest."""
        own = self.listed.chosen(rows)
        order = np.argsort(self.chosen)
        kept = self.listed.chosen(self.chosen)
        misfits = []
        for start in range(0, len(self._others), CHUNK):
            outcomes = self._others[start : start + CHUNK]
            linear = self.offset[rows] + kept.transform(outcomes) @ self.weights[rows][:, order].T
            misfits.append(np.abs(linear - (own.low + own.scale * own.transform(outcomes))))
        table = np.concatenate(misfits)
        self._worst[rows] = table.argmax(axis=0)
        self.unseen[rows] = table.max(axis=0)
