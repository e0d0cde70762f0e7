r"""Conditional distributions of the outcome, learned from a table: weights on a support.

P(y | x) is a row of weights on S points, so that the expectation of any function of the outcome is
one product, without the error of a basis and also for a loss that nobody listed:

    E[f(y) | x] = sum_s w_s(x) f(y_s).

The support is at most 1,000 values of one outcome; of several outcomes it is the rows themselves.

**Members.** Extremely randomised trees: the weights are the shares of the rows in the same leaves
(Geurts, Ernst, Wehenkel 2006; Meinshausen 2006); they are grown on outcomes and their ranks.
Boosted trees (Friedman 2002) and ridge regression forecast one number per outcome; the distribution
around a forecast is the forecast plus what it missed on rows with a similar one, by a Gaussian
kernel. Of several outcomes it is the outcomes of those rows (Walz, Henzi, Ziegel, Gneiting 2024).
The marginal distribution of all rows is mixed in, for tables from which little can be learned.

**Mixture.** Let F_i be the losses of all listed losses' actions at row i, less each loss's mean
over actions (what all actions share decides nothing), and P_bi what member b expected there,
learned on other folds. The distribution is sum_b v_b w^b(x) with

    v = argmin over the simplex of  sum_i | F_i - sum_b v_b P_bi |^2      (Breiman 1996, stacking).

With R'R the Gram matrix of the members' residuals, v is proportional to the non-negative solution
of least squares in R v = 0 and 1'v = 1: along each ray the sum of squares is least at q / (1 + q),
and q is the objective above.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import nnls
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regretless.forecaster.offline.tables import AnyLoss, Listed, Rows
from regretless.market.best_response import best_response
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.records import one_hot

DIGITS = 12  # of outcomes: rounding in their own units is not to decide between equal splits
MAX_POINTS = 1000  # of the support of one outcome
MAX_NEIGHBOURS = 2000  # rows around a forecast
MAX_ROWS_OF_TREE = 5000  # that one tree sees
MAX_FUNCTIONS = 400  # losses' actions on which members are compared
ROWS_AT_ONCE = 512  # rows whose weights are made at once
FLOOR = 1e-12  # weight of a row that is not similar: no distribution is empty
# of kernels, in standard deviations of the forecasts
WIDTH = 0.7
WIDTH_OF_ROWS = 0.2
MIN_SPREAD = 1e-6
RIDGES = np.logspace(-3, 4, 15)  # penalties, per row
MIN_SHARE = 1e-3  # below which a member is dropped
MAX_VALUES = 101  # outcomes at which distribution functions are computed
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from."""

    features: Array  # (m, f)
    outcomes: Array  # (m, d)
    weights: Array  # (m,)
    folds: Sequence[tuple[Indices, Indices]]  # to learn from; to test on, each row once at most
    trees: int
    rng: np.random.Generator
    points: Array  # (S, d), the support
    table: Array  # (S, q), functions on which members are compared, on the support
    truth: Array  # (m, q), and at the outcomes

    def part(self, rows: Indices) -> tuple[Array, Array, Array]:
        """Features, outcomes and weights of some rows."""
        return self.features[rows], self.outcomes[rows], self.weights[rows]

    def seed(self) -> int:
        """Draw a seed for scikit-learn."""
        return int(self.rng.integers(2**31))

    def counted(self, rows: Indices) -> tuple[Array, Any]:
        """Weights (m,) of some rows, 0 for others, and these on the support, sparse (m, S)."""
        weights = np.zeros(len(self.outcomes))
        weights[rows] = self.weights[rows]
        row_numbers = np.arange(len(weights))[:, None]
        return weights, spread_on_support(
            self.points, row_numbers, self.outcomes[:, :1], weights[:, None]
        )


def support_points(outcomes: Array, weights: Array) -> Array:
    """Return values (m, 1) of one outcome that count, ascending, or all rows (m, d) of several.

    Values count if their weight is positive; of more than ``MAX_POINTS`` so many are kept.
    """
    if outcomes.shape[1] > 1:
        return outcomes
    values = np.unique(outcomes[weights > 0])
    # evenly spread by rank, and of fewer values every one
    ranks = np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(np.intp)
    return np.asarray(values[np.unique(ranks), np.newaxis])


def spread_on_support(points: Array, row_numbers: Indices, values: Array, mass: Array) -> Any:
    """Put the mass (m, r) of rows with these numbers onto the support, sparse (m, S).

    The support of several outcomes is the rows themselves. One outcome, with the ``values`` (m, r),
    is shared out between the two points beside it, so that its mean is kept.
    """
    knots = points[:, 0]
    if points.shape[1] > 1 or len(knots) == 1:
        return _sparse(row_numbers % len(knots), mass, len(knots))
    values_in_range = values.clip(knots[0], knots[-1])
    upper = np.searchsorted(knots, values_in_range).clip(1, len(knots) - 1)
    share_of_upper = (values_in_range - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    neighbours = np.hstack([upper - 1, upper])
    mass_of_neighbours = np.hstack([mass * (1 - share_of_upper), mass * share_of_upper])
    return _sparse(neighbours, mass_of_neighbours, len(knots))


def _sparse(column_indices: Indices, values: Array, columns: int) -> Any:
    """Make a sparse table (m, columns) whose rows have these values (m, r) in these columns."""
    row_starts = np.arange(0, column_indices.size + 1, column_indices.shape[1])
    shape = (len(column_indices), columns)
    return sparse.csr_matrix((values.ravel(), column_indices.ravel(), row_starts), shape)


class Member(ABC):
    """A conditional distribution."""

    @abstractmethod
    def weights(self, features: Array) -> Array:
        """Weights (m, S) on the support, at features (m, f)."""

    def expected(self, features: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) of functions with values (S, q) on the support."""
        return _in_parts(self.weights, features, table)


def _in_parts(weigh: Callable[[Array], Array], rows: Array, table: Array) -> Array:
    """Return weigh(rows) @ table (m, q), so many rows at a time as fit into memory."""
    expected = np.empty((len(rows), table.shape[1]))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        expected[part] = weigh(rows[part]) @ table
    return expected


def cross_fitted(grow: Callable[[Sample, Indices], Member], sample: Sample) -> tuple[Member, Array]:
    """Learn a member of all rows, and what it expects (m, q) of rows in folds left out."""
    expected = np.full(sample.truth.shape, np.nan)
    for rows, tested in sample.folds:
        expected[tested] = grow(sample, rows).expected(sample.features[tested], sample.table)
    return grow(sample, np.arange(len(expected))), expected


class Marginal(Member):
    """The distribution of some rows: one row of weights (S,)."""

    def __init__(self, sample: Sample, rows: Indices) -> None:
        mass = np.asarray(sample.counted(rows)[1].sum(0)).ravel()
        self.of_all = mass / mass.sum()

    def weights(self, features: Array) -> Array:
        return np.tile(self.of_all, (len(features), 1))


class Leaves(Member):
    """The rows in the same leaves of a forest, which is grown on some rows.

    ``shares``, sparse (nodes, S), are of the support's points in every leaf, divided by the trees.
    """

    def __init__(self, sample: Sample, rows: Indices) -> None:
        is_subsampled = len(rows) > MAX_ROWS_OF_TREE
        forest = ExtraTreesRegressor(
            sample.trees,
            min_samples_leaf=min(2, max(1, len(rows) // 4)),
            bootstrap=is_subsampled,
            max_samples=MAX_ROWS_OF_TREE if is_subsampled else None,
            random_state=sample.seed(),
        )
        features, outcomes, row_weights = sample.part(rows)
        target = np.concatenate([outcomes, rankdata(outcomes, axis=0)], axis=1)
        forest.fit(features, StandardScaler().fit_transform(target), row_weights)
        weights, rows_on_support = sample.counted(rows)
        is_in_leaf = _leaves(forest, sample.features).T.tocsr()
        mass = np.maximum(is_in_leaf @ weights, FLOOR) * sample.trees
        self.forest = forest
        self.shares: Any = sparse.csr_matrix(sparse.diags(1 / mass) @ is_in_leaf @ rows_on_support)

    def weights(self, features: Array) -> Array:
        return np.asarray((_leaves(self.forest, features) @ self.shares).toarray())


def _leaves(forest: Any, features: Array) -> Any:
    """0 and 1, sparse (m, nodes of all trees): which row is in which leaf."""
    firsts = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
    places = forest.apply(features) + firsts[:-1]
    return _sparse(places, np.ones(places.shape), firsts[-1])


@dataclass(frozen=True, eq=False)
class Around(Member):
    """Rows with a similar forecast, which lie at some places of the table."""

    model: Any
    forecasts: Array  # (r, d) of these rows, by a model that did not see them
    missed: Array  # (r, d) the errors of these forecasts; those of the first outcome ascend
    mass: Array  # (r,) weights of these rows
    width: Array  # (d,) of the kernel
    places: Indices  # (r,) which rows of the sample these are
    points: Array  # (S, d)

    @classmethod
    def learned(
        cls, make: Callable[[Sample, Indices], Any], sample: Sample
    ) -> tuple["Around", Array]:
        """Learn a forecast and its errors by cross-fitting, and what is expected so (m, q)."""
        forecasts = np.full(sample.outcomes.shape, np.nan)
        for rows, tested in sample.folds:
            predicted = make(sample, rows).predict(sample.features[tested])
            forecasts[tested] = predicted.reshape(len(tested), -1)
        errors = sample.outcomes - forecasts
        forecast_rows = np.flatnonzero(np.isfinite(errors[:, 0]))
        if len(forecast_rows) > MAX_NEIGHBOURS:
            forecast_rows = sample.rng.choice(forecast_rows, MAX_NEIGHBOURS, replace=False)
        order = np.argsort(errors[forecast_rows, 0], kind="stable")
        forecast_rows = forecast_rows[order]
        known_forecasts = forecasts[forecast_rows]
        mass = sample.weights[forecast_rows]
        scale = np.sqrt(StandardScaler().fit(known_forecasts, sample_weight=mass).var_)
        width_in_deviations = WIDTH if len(scale) == 1 else WIDTH_OF_ROWS
        member = cls(
            model=make(sample, np.arange(len(errors))),
            forecasts=known_forecasts,
            missed=errors[forecast_rows],
            mass=mass,
            width=width_in_deviations * np.maximum(scale, MIN_SPREAD),
            places=forecast_rows,
            points=sample.points,
        )
        expected = np.full(sample.truth.shape, np.nan)
        for rows, tested in sample.folds:
            is_learned = np.isin(forecast_rows, rows)  # which rows this fold is learned from
            if is_learned.any():
                weigh = partial(member.at, rows=is_learned)
                expected[tested] = _in_parts(weigh, forecasts[tested], sample.table)
            else:  # the first fold of a time split: nobody was forecast before
                expected[tested] = np.average(sample.truth[rows], 0, sample.weights[rows])
        return member, expected

    def weights(self, features: Array) -> Array:
        return self.at(np.reshape(self.model.predict(features), (len(features), -1)))

    def at(self, forecasts: Array, rows: Any = slice(None)) -> Array:
        """Return weights (m, S) where forecasts are (m, d), by some of the rows."""
        forecasts_of_rows = self.forecasts[rows]
        squared_distances = cdist(
            forecasts / self.width, forecasts_of_rows / self.width, "sqeuclidean"
        )
        gaussian_kernel = np.exp(-0.5 * squared_distances)
        similarity = gaussian_kernel + FLOOR  # rows count a little even where none is similar
        row_weights = similarity * self.mass[rows]  # (m, rows)
        row_weights /= row_weights.sum(1, keepdims=True)
        errors_of_rows = self.missed[rows, 0]
        # (m, rows) of the first outcome: what it would be with the error that each row had
        outcomes = forecasts[:, :1] + errors_of_rows
        row_numbers = np.broadcast_to(self.places[rows], row_weights.shape)
        return np.asarray(
            spread_on_support(self.points, row_numbers, outcomes, row_weights).toarray()
        )


def ridge(sample: Sample, rows: Indices) -> Any:
    """Fit ridge regression, its penalty by generalised cross-validation (Golub et al. 1979)."""
    features, outcomes, weights = sample.part(rows)
    model = make_pipeline(StandardScaler(), RidgeCV(RIDGES * len(rows)))
    return model.fit(features, outcomes, ridgecv__sample_weight=weights / weights.mean())


def boosted(sample: Sample, rows: Indices) -> Any:
    """Boost trees for every outcome, each on a part of the rows and features."""
    model = GradientBoostingRegressor(
        n_estimators=2 * sample.trees,
        learning_rate=0.07,
        max_depth=4,
        max_features=0.8,
        min_samples_leaf=min(3, max(1, len(rows) // 4)),
        subsample=max(min(0.6, MAX_ROWS_OF_TREE / len(rows)), 1 / len(rows)),
        random_state=sample.seed(),
    )
    return MultiOutputRegressor(model).fit(*sample.part(rows))


MEMBERS: dict[str, Callable[[Sample], tuple[Member, Array]]] = {
    "marginal": partial(cross_fitted, Marginal),
    "ridge": partial(Around.learned, ridge),
    "boosting": partial(Around.learned, boosted),
    "extra trees": partial(cross_fitted, Leaves),
}
MIXED = {"auto": tuple(MEMBERS), "ridge": ("marginal", "ridge")}


def _centred_losses(tables: Sequence[Array]) -> Array:
    """Return losses less each loss's mean over actions, side by side: (m, q) of (m, K, A)."""
    centred = []
    for table in tables:
        less_mean = table - table.mean(-1, keepdims=True)
        centred.append(less_mean.reshape(len(table), -1))
    return np.concatenate(centred, axis=1)


class ConditionalDistribution:
    """A mixture of members, with shares (B,) that add up to 1, on points (S, d) of the outcome.

    It is learned from rows, as an estimator's ``base`` says.
    """

    def __init__(self, estimator: Any, protected: Listed, rows: Rows) -> None:
        rng = stream(estimator.random_state or 0, "omniprediction", "law")
        outcomes = np.round(rows.outcomes, DIGITS)
        self.listed = protected
        self.rounds = len(outcomes)
        self.points = support_points(outcomes, rows.weights)
        table = _centred_losses(protected.values(self.points))
        truth = _centred_losses(protected.values(outcomes))
        n_functions = table.shape[1]
        if n_functions > MAX_FUNCTIONS:
            chosen = rng.choice(np.arange(n_functions), MAX_FUNCTIONS, replace=False)
            kept_functions = np.sort(chosen)
            table = table[:, kept_functions]
            truth = truth[:, kept_functions]
        folds = list(folds_of(estimator.cv, rows, int(rng.integers(2**31))))
        sample = Sample(
            features=rows.seen,
            outcomes=outcomes,
            weights=rows.weights,
            folds=folds,
            trees=estimator.trees,
            rng=rng,
            points=self.points,
            table=table,
            truth=truth,
        )
        names = MIXED[estimator.base] if rows.seen.shape[1] else ("marginal",)
        members = {}
        expectations = []
        for name in names:
            members[name], expected = MEMBERS[name](sample)
            expectations.append(expected)
        shares = shares_of(expectations, truth, rows.weights)
        is_kept = shares >= MIN_SHARE
        self.members = {name: members[name] for name in np.array(names)[is_kept].tolist()}
        self.shares = shares[is_kept] / shares[is_kept].sum()

    def expected(self, inputs: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) of functions with values (S, q) on the support."""
        members = zip(self.shares, self.members.values(), strict=True)
        return np.asarray(sum(share * member.expected(inputs, table) for share, member in members))

    def mean(self, inputs: Array) -> Array:
        """Return the mean prediction (m, n) of s(y)."""
        return self.expected(inputs, self.listed.basis.transform(self.points))

    def play(self, loss: AnyLoss, inputs: Array) -> tuple[Array, Array]:
        """Return the mixed strategies (m, A) of a single loss and the losses (m,) it expects."""
        table = self.expected(inputs, self.listed.finite(loss).losses(self.points))
        return one_hot(best_response(table), table.shape[1]), table.min(1)

    def outcomes(self, inputs: Array) -> Array:
        """Forecast the outcome (m, d), in [0, 1]."""
        return self.expected(inputs, self.points)

    def quantiles(self, inputs: Array, levels: Sequence[float]) -> Array:
        """Return quantiles (m, d, levels), by distribution functions at ``MAX_VALUES`` values."""
        return quantiles_of([self], inputs, levels)

    def alternatives(
        self, loss: Loss, inputs: Array, names: Sequence[str] | None = None
    ) -> Indices:
        """Return the actions (B, m) of comparators: what each member would do by itself.

        Of the members with these ``names``; by default of all. A member that has no share stands
        for the whole distribution.
        """
        table = loss.losses(self.points)
        actions = []
        for name in self.members if names is None else names:
            member = self.members.get(name, self)
            actions.append(best_response(member.expected(inputs, table)))
        return np.array(actions, dtype=np.intp).reshape(len(actions), len(inputs))


def quantiles_of(
    distributions: Sequence[ConditionalDistribution], inputs: Array, levels: Sequence[float]
) -> Array:
    """Return quantiles (m, d, levels) of the mean of distributions.

    By distribution functions at ``MAX_VALUES`` values of their supports.
    """
    supports = [distribution.points for distribution in distributions]
    least_probability = np.array(levels)[:, None] - ROUNDING  # off by what sums round
    quantiles_of_coordinates = []
    for coordinate in range(supports[0].shape[1]):
        numbers = np.concatenate([points[:, coordinate] for points in supports])
        values = np.unique(numbers)
        if len(values) > MAX_VALUES:
            shares = np.linspace(0, 1, MAX_VALUES)
            values = np.unique(np.quantile(numbers, shares, method="higher"))
        distribution_functions = []
        for distribution in distributions:
            is_at_most = (distribution.points[:, [coordinate]] <= values).astype(np.float64)
            distribution_functions.append(distribution.expected(inputs, is_at_most))
        distribution_function = np.mean(distribution_functions, axis=0)  # (m, values)
        is_below_level = distribution_function[:, None] < least_probability
        index_of_quantile = is_below_level.sum(2)  # (m, levels) the first value that is not
        quantiles_of_coordinates.append(values[index_of_quantile.clip(max=len(values) - 1)])
    return np.stack(quantiles_of_coordinates, axis=1)


def folds_of(cv: Any, rows: Rows, seed: int) -> Any:
    """Split rows for cross-fitting; the rows of a group stay in one fold."""
    if isinstance(cv, int | np.integer):
        if rows.groups is None:
            kind = KFold
            n_units = len(rows.seen)
        else:
            kind = GroupKFold
            n_units = len(np.unique(rows.groups))
        cv = kind(min(int(cv), n_units), shuffle=True, random_state=seed)
    return check_cv(cv).split(rows.seen, rows.outcomes, rows.groups)


def shares_of(expected: Sequence[Array], truth: Array, weights: Array) -> Array:
    """Mix members: v (B,), from what they expected of functions with values (m, q)."""
    is_tested = np.isfinite(expected[0]).all(1)  # rows of some fold: the same for all members
    root_weights = np.sqrt(weights[is_tested])[:, None]
    residuals_of_members = []
    for expected_of_member in expected:
        errors = expected_of_member[is_tested] - truth[is_tested]
        residuals_of_members.append((root_weights * errors).ravel())
    residuals = np.array(residuals_of_members)  # (B, rows times q)
    gram = residuals @ residuals.T
    # R with R'R the Gram matrix, and least squares in R v = 0, 1'v = 1 (see the top of the file)
    eigenvalues, eigenvectors = np.linalg.eigh(gram / max(gram.trace(), 1e-300))
    root_of_gram = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * eigenvectors.T
    # That shares add up to 1 is one more equation, the row of ones. It need not hold exactly: along
    # a ray of shares the least squares rise with those of R v, so that scaling at the end is exact.
    equations = np.vstack([root_of_gram, np.ones((1, len(expected)))])
    zeros_and_one = np.append(np.zeros(len(expected)), 1.0)
    solution, _ = nnls(equations, zeros_and_one)
    return np.asarray(solution / solution.sum())
