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

import itertools
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

SAMPLE_OUTCOMES = 2000  # of the fit
UNSEEN_OUTCOMES = 6000  # on which the fit is checked
OUTCOMES_AT_ONCE = 1000  # of a check
FUNCTIONS_FROM_QR = 6  # before the greedy steps
PRECISION = 0.02  # share of the promise to which errors are minimised
MARGIN = 0.98  # share of the promise that the fit to the sample aims at
MAX_FUNCTIONS = 400
MAX_REPAIRS = 30
ROUNDS_NEAR_WORST = 2  # times that new outcomes are tried around the worst ones
SPREADS_NEAR_WORST = (0.01, 0.05)  # deviations of new outcomes from the worst ones, drawn evenly
STRIDE_OF_QR = 3  # of the sample the QR sees every third outcome, enough for a first choice
FIRST_WORKING_POINTS = 60  # outcomes of the sample that the program starts with, evenly spread
FEATURES_OF_NEIGHBOURS = 40  # about so many outcomes say which functions are alike
SHARE_ON_FACES = 1 / 3  # of scattered outcomes: how many coordinates lie at 0 or 1
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

    ValueError if ``MAX_FUNCTIONS`` functions do not keep the promise.

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
        population = ExactLossesBasis(losses)  # every distinct function of the losses
        if quick and population.size > QUICK_FUNCTIONS:
            rng = stream(seed, "quick")
            population = population.chosen(
                rng.choice(population.size, QUICK_FUNCTIONS, replace=False)
            )
        self.outcomes = population.outcomes
        self.promise = error
        search = _search_or_remember(population, error, cap, seed)
        self.functions = population.chosen(search.chosen)
        self.size = len(search.chosen)
        self._sample = search.sample
        self._fit = search.fitter(cap, error)
        fits = map(Fit, search.offset, search.weights, search.sampled_errors)
        self._fits: dict[Key, Fit] = dict(zip(population.index_of_key, fits, strict=True))
        self.lipschitz = float(np.abs(search.weights).sum(1).max())
        sampled_error = search.sampled_errors.max()
        self.report = Reduction(
            functions=population.size,
            size=self.size,
            lipschitz=self.lipschitz,
            cost=self.lipschitz * self.size**0.5,
            sampled_error=float(sampled_error),
            unseen_error=float(search.unseen_error),
        )
        self.error = float(max(sampled_error, search.unseen_error))

    transform = Delegated("functions")
    support = Delegated("functions")

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the fitted coefficients, or the best on the sample for a loss not listed."""
        self.check_outcomes(loss)
        stack = loss.as_stack()
        # One key per action of every loss, that of loss k's action a at the position k A + a.
        keys = list(itertools.chain.from_iterable(keys_of(stack)))
        # Fits are kept: best coefficients are not unique, and a function shall keep its own.
        without_fit = [position for position, key in enumerate(keys) if key not in self._fits]
        if without_fit:
            rows, actions = np.divmod(without_fit, stack.actions)
            distinct_rows, distinct_index = np.unique(rows, return_inverse=True)
            losses_on_sample = stack[distinct_rows].losses(self._sample)  # (M, distinct rows, A)
            values = losses_on_sample[:, distinct_index, actions].T  # (functions without fit, M)
            for index in order_of_neighbours(values):  # each fit starts from the one before
                key = keys[without_fit[index]]
                if key not in self._fits:  # equal functions are fitted once
                    self._fits[key] = self._fit(np.ascontiguousarray(values[index]))
        fits = [self._fits[key] for key in keys]
        offset = np.array([fit.offset for fit in fits]).reshape(loss.offset.shape)
        return self.contiguous(offset, np.array([fit.weights for fit in fits]))

    def certified_error(self, losses: Loss) -> float:
        """Prove a bound on the error of these losses over the whole cube, by branch and bound."""
        offset, weights = self.coefficients(losses)
        certificate = certify(
            losses,
            offset,
            weights,
            self.functions.enclosure,
            self.functions.slopes,
            budget=BUDGET,
            target=self.promise,
        )
        return certificate.upper


def scattered(count: int, outcomes: int, *, seed: int) -> Array:
    """Outcomes (count, d) in the cube: half of them denser towards 0, a third on its faces."""
    rng = stream(seed, "reduced basis")
    points = rng.random((count, outcomes))
    points[::2] **= 2  # denser towards 0, where losses may be steep
    on_face = rng.random((count, outcomes)) < SHARE_ON_FACES
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
    """Fits functions f with n given ones s, by their values on a sample of M outcomes.

    Its linear program has the columns r+ (n), r- (n), r_0 and e, with r = r+ - r-. Its first row is
    sum_i (r+_i + r-_i) <= ``max_weight_sum``; every working point adds two rows, which hold the
    linear form plus e above f and the form minus e below it, and whose bounds are set for each f.

    ``function_values`` (n, M) are those of s. ``working_indices``, indices of the sample, grow in
    place, so that they can be handed on: a point joins where its error exceeds the program's by
    more than ``precision``.
    """

    def __init__(
        self,
        function_values: Array,
        max_weight_sum: float,
        *,
        working_indices: list[int],
        precision: float = 2e-3,
    ) -> None:
        self.function_values = function_values
        self.max_weight_sum = max_weight_sum
        self.working_indices = working_indices
        self.precision = precision
        self._solver = new_highs()
        size = len(function_values)
        no_weights = np.zeros(2 * size)
        program = Program(
            cost=np.append(no_weights, [0.0, 1.0]),
            matrix=np.append(np.ones(2 * size), [0.0, 0.0])[None],
            row_upper=max_weight_sum,
            lower=np.append(no_weights, [-np.inf, 0.0]),
        )
        hand_over(self._solver, program)
        self._columns = np.arange(2 * size + 2, dtype=np.int32)
        for point in working_indices:
            self._add_rows_of(point)

    def __call__(self, values: Array) -> Fit:
        """Fit the function with these values (M,) on the sample."""
        size = len(self.function_values)
        while True:
            values_at_working_points = values[self.working_indices]
            no_limit = np.full(len(values_at_working_points), np.inf)
            lower = np.column_stack([values_at_working_points, -no_limit]).ravel()
            upper = np.column_stack([no_limit, values_at_working_points]).ravel()
            rows = np.arange(1, 1 + len(lower), dtype=np.int32)
            self._solver.changeRowsBounds(len(rows), rows, lower, upper)  # type: ignore[attr-defined]
            solution = fitted(self._solver)
            weights = solution[:size] - solution[size : 2 * size]
            # the sum may be above its bound by the solver's tolerance
            weights *= self.max_weight_sum / max(np.abs(weights).sum(), self.max_weight_sum)
            offset, error_at_working_points = solution[-2:].tolist()
            errors = np.abs(values - offset - weights @ self.function_values)
            worst = int(errors.argmax())
            accepted_error = max(
                SLACK * error_at_working_points, error_at_working_points + self.precision
            )
            is_full = len(self.working_indices) >= MAX_WORKING_POINTS
            cannot_grow = worst in self.working_indices or is_full
            if cannot_grow or errors[worst] <= accepted_error:
                return Fit(offset, weights, float(errors[worst]))
            self.working_indices.append(worst)
            self._add_rows_of(worst)

    def _add_rows_of(self, point: int) -> None:
        """Add the two rows of a working point: the form plus e above f, minus e below it."""
        values = self.function_values[:, point]
        for sign_of_error in (1.0, -1.0):
            row = np.concatenate([values, -values, [1.0, sign_of_error]])
            self._solver.addRow(-np.inf, np.inf, len(row), self._columns, row)


def order_of_neighbours(functions: Array) -> Indices:
    """Order functions (N, M) so that neighbours are alike, from the first one on.

    Programs that are solved in this order start from a near solution.
    """
    stride = max(functions.shape[1] // FEATURES_OF_NEIGHBOURS, 1)
    features = np.ascontiguousarray(functions[:, ::stride])
    squares = (features**2).sum(axis=1)
    distance_penalty = np.zeros(len(features))
    order = np.empty(len(features), dtype=np.intp)
    row = 0
    for step in range(len(features)):
        order[step] = row
        distance_penalty[row] = np.inf
        row = int((squares - 2 * features @ features[row] + distance_penalty).argmin())
    return order


class _SearchResult(NamedTuple):
    """What a search leaves: n functions of N in ascending order, all fits, and the last program."""

    chosen: list[int]  # (n,) which functions of the population are kept
    sample: Array  # (M, d) outcomes
    offset: Array  # (N,) of every function of the population, as are the next two
    weights: Array  # (N, n)
    sampled_errors: Array  # (N,) the greatest on the sample
    unseen_error: float  # the greatest of all functions on outcomes that the fits did not see
    function_values: Array  # (n, M) of the chosen functions on the sample
    working_indices: list[int]

    def fitter(self, cap: float, error: float) -> SupNormFit:
        """Return a program for functions that are not listed, as the search left it."""
        return SupNormFit(
            self.function_values,
            cap,
            working_indices=self.working_indices[:],
            precision=PRECISION * error,
        )


_remembered: dict[tuple[object, ...], _SearchResult] = {}


def _search_or_remember(
    population: ExactLossesBasis, error: float, cap: float, seed: int
) -> _SearchResult:
    """Search, or remember the result for the same functions, promise and seed."""
    key = population.identity, error, cap, seed
    remembered = _remembered.get(key)
    if remembered is not None:
        return remembered
    search = _Search(population, error=error, cap=cap, seed=seed)
    # from the order of choice to ascending functions, in which ``ExactLossesBasis.chosen`` has them
    ascending_order = np.argsort(search.chosen)
    weights = search.weights[:, ascending_order]
    search.chosen.sort()
    result = _SearchResult(
        chosen=search.chosen,
        sample=search.sample,
        offset=search.offset,
        weights=weights,
        sampled_errors=search.sampled_errors,
        unseen_error=float(search.unseen_errors.max()),
        function_values=search.values[search.chosen],
        working_indices=search.working_indices,
    )
    if weights.size <= MAX_REMEMBERED_NUMBERS:
        if len(_remembered) == MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[key] = result
    return result


class _Search:
    """Chooses functions and fits everybody, until the promise is kept.

    ``values`` (N, M) are all functions of the population on the sample, stretched onto [0, 1], and
    ``errors`` (N,) bounds on what each one's approximation by those ``chosen`` so far misses.
    """

    def __init__(
        self, population: ExactLossesBasis, *, error: float, cap: float, seed: int
    ) -> None:
        self.population = population
        self.error = error
        self.cap = cap
        self.sample = scattered(SAMPLE_OUTCOMES, population.outcomes, seed=seed)
        self._unseen_outcomes = scattered(UNSEEN_OUTCOMES, population.outcomes, seed=seed + 1)
        self.values = np.ascontiguousarray(population.transform(self.sample).T)
        losses = self._losses()
        losses_of_qr = losses[:, ::STRIDE_OF_QR]
        centred_losses = losses_of_qr - losses_of_qr.mean(axis=1, keepdims=True)
        # pivots are functions: each is the one that those before it explain least
        _triangle, pivots = qr(centred_losses.T, mode="r", pivoting=True)
        n_first_choices = min(FUNCTIONS_FROM_QR, population.size)
        self.chosen: list[int] = pivots[:n_first_choices].tolist()
        # indices of the sample's outcomes in the program; a fit adds those that it needs
        stride_of_working_points = SAMPLE_OUTCOMES // FIRST_WORKING_POINTS
        self.working_indices = list(range(0, SAMPLE_OUTCOMES, stride_of_working_points))
        self._order_of_fits = order_of_neighbours(losses)
        self.errors = np.full(population.size, np.inf)  # of nobody is anything known yet
        self._add_functions(MARGIN * error)

        # fit everybody with the functions that were chosen, and check on unseen outcomes
        all_functions = np.arange(population.size)
        self.offset = np.zeros(population.size)
        self.weights = np.zeros((population.size, len(self.chosen)))
        self.sampled_errors = np.zeros(population.size)
        self.unseen_errors = np.zeros(population.size)
        self._worst_outcome = np.zeros_like(all_functions)  # the index of an unseen one
        self._refit(all_functions)
        self._repair_on_unseen_outcomes()
        # new unseen outcomes around those where errors are greatest
        for round_number in range(ROUNDS_NEAR_WORST):
            worst_outcomes = np.unique(self._unseen_outcomes[self._worst_outcome], axis=0)
            # the seeds before are those of the sample and of the first unseen outcomes
            rng = stream(seed + 2 + round_number, "near the worst")
            centre_indices = rng.integers(len(worst_outcomes), size=UNSEEN_OUTCOMES // 2)
            centres = worst_outcomes[centre_indices]
            spread = rng.choice(SPREADS_NEAR_WORST, (len(centres), 1))
            nearby = centres + spread * rng.normal(size=centres.shape)
            self._unseen_outcomes = np.clip(nearby, 0.0, 1.0)
            self._check(all_functions)
            self._repair_on_unseen_outcomes()

    def _losses(self, rows: Any = slice(None)) -> Array:
        """Turn stretched functions back into losses on the sample (rows, M)."""
        low = self.population.low[rows, None]
        scale = self.population.scale[rows, None]
        return np.asarray(low + scale * self.values[rows])

    def fitter(self) -> SupNormFit:
        """Return the program for the present choice."""
        return SupNormFit(
            self.values[self.chosen],
            self.cap,
            working_indices=self.working_indices,
            precision=PRECISION * self.error,
        )

    def _add_functions(self, error: float) -> None:
        """Add functions until all are within ``error``; ValueError if there would be too many."""
        while True:
            fit = self.fitter()
            has_new_fit = np.isinf(self.errors)  # never fitted, or on another sample: fitted now
            rows_to_fit = self._order_of_fits[has_new_fit[self._order_of_fits]]
            for row in rows_to_fit:
                self.errors[row] = fit(self._losses([row])[0]).error
            # Find the worst function: others are refitted only where old errors leave doubt.
            worst = int(self.errors.argmax())
            while not has_new_fit[worst]:
                new_error = fit(self._losses([worst])[0]).error
                self.errors[worst] = min(self.errors[worst], new_error)
                has_new_fit[worst] = True
                worst = int(self.errors.argmax())
            greatest_error = self.errors[worst]
            count = len(self.chosen)
            if greatest_error <= error:
                return
            if count >= MAX_FUNCTIONS or worst in self.chosen:
                raise ValueError(
                    f"{count} functions leave an error of {greatest_error:.3g}, not {error:.3g}"
                )
            self.chosen.append(worst)

    def _repair_on_unseen_outcomes(self) -> None:
        """Add unseen outcomes where the promise is broken most, and refit those who broke it."""
        for _ in range(MAX_REPAIRS):
            broken = np.flatnonzero(self.unseen_errors > self.error)
            if not len(broken):
                return
            added_outcomes = self._unseen_outcomes[np.unique(self._worst_outcome[broken])]
            n_before = len(self.sample)
            self.working_indices += range(n_before, n_before + len(added_outcomes))
            self.sample = np.vstack([self.sample, added_outcomes])
            added_values = self.population.transform(added_outcomes).T
            self.values = np.hstack([self.values, added_values])
            self.errors = np.maximum(self.sampled_errors, self.unseen_errors)
            self.errors[broken] = (
                np.inf
            )  # so that ``_add_functions`` fits them to the larger sample
            self._add_functions(self.error)
            n_new_functions = len(self.chosen) - self.weights.shape[1]
            self.weights = np.pad(self.weights, ((0, 0), (0, n_new_functions)))
            self._refit(broken)
        raise ValueError(f"the promise {self.error} is still broken on unseen outcomes; raise it")

    def _refit(self, rows: Indices) -> None:
        """Fit these functions of the population to the sample, and check them."""
        fit_function = self.fitter()
        for row in self._order_of_fits[np.isin(self._order_of_fits, rows)]:
            fit = fit_function(self._losses([row])[0])
            self.offset[row] = fit.offset
            self.weights[row] = fit.weights
            self.sampled_errors[row] = fit.error
        self._check(rows)

    def _check(self, rows: Indices) -> None:
        """Measure errors on the unseen outcomes, and where they are greatest."""
        checked_functions = self.population.chosen(rows)
        chosen_functions = self.population.chosen(self.chosen)
        # ``population.chosen`` returns functions in ascending order, whereas the columns of the
        # weights are in the order in which functions were chosen: bring these into ascending order.
        ascending_order = np.argsort(self.chosen)
        weights = self.weights[rows][:, ascending_order]
        batches_of_errors = []
        for start in range(0, len(self._unseen_outcomes), OUTCOMES_AT_ONCE):
            outcomes = self._unseen_outcomes[start : start + OUTCOMES_AT_ONCE]
            linear_forms = self.offset[rows] + chosen_functions.transform(outcomes) @ weights.T
            # functions are losses, of which [low, low + scale] was mapped onto [0, 1]
            unit_values = checked_functions.transform(outcomes)
            losses = checked_functions.low + checked_functions.scale * unit_values
            batches_of_errors.append(np.abs(linear_forms - losses))
        errors = np.concatenate(batches_of_errors)  # (outcomes, rows)
        self._worst_outcome[rows] = errors.argmax(axis=0)
        self.unseen_errors[rows] = errors.max(axis=0)
