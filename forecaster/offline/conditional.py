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
MOST_POINTS = 1000  # of the support of one outcome
MOST_NEIGHBOURS = 2000  # rows around a forecast
MOST_ROWS = 5000  # that one tree sees
MOST_FUNCTIONS = 400  # losses' actions on which members are compared
CHUNK = 512  # rows whose weights are made at once
FLOOR = 1e-12  # weight of a row that is not similar: no distribution is empty
# of kernels, in standard deviations of the forecasts
WIDTH = 0.7
WIDTH_OF_ROWS = 0.2
LEAST_SPREAD = 1e-6
RIDGES = np.logspace(-3, 4, 15)  # penalties, per row
LEAST_SHARE = 1e-3  # below which a member is dropped
STEPS = 101  # outcomes at which distribution functions are computed
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
        given = self.outcomes[:, :1], weights[:, None]
        return weights, onto(self.points, np.arange(len(weights))[:, None], *given)


def support(outcomes: Array, weights: Array) -> Array:
    """Return values of one outcome that count, ascending, or all rows (m, d) of several."""
    if outcomes.shape[1] > 1:
        return outcomes
    values = np.unique(outcomes[weights > 0])
    kept = np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(np.intp)
    return np.asarray(values[np.unique(kept), None])


def onto(points: Array, places: Indices, values: Array, mass: Array) -> Any:
    """Put mass (m, r) of rows at ``places`` onto the support, sparse (m, S).

    One outcome, at ``values`` (m, r), is shared out between the two points beside it, so that its
    mean is kept.
    """
    knots = points[:, 0]
    if points.shape[1] > 1 or len(knots) == 1:
        return _sparse(places % len(knots), mass, len(knots))
    given = values.clip(knots[0], knots[-1])
    above = np.searchsorted(knots, given).clip(1, len(knots) - 1)
    up = (given - knots[above - 1]) / (knots[above] - knots[above - 1])
    beside = np.hstack([above - 1, above]), np.hstack([mass * (1 - up), mass * up])
    return _sparse(*beside, len(knots))


def _sparse(places: Indices, values: Array, columns: int) -> Any:
    ends = np.arange(0, places.size + 1, places.shape[1])
    return sparse.csr_matrix((values.ravel(), places.ravel(), ends), (len(places), columns))


class Member(ABC):
    """A conditional distribution."""

    @abstractmethod
    def weights(self, features: Array) -> Array:
        """Weights (m, S) on the support, at features (m, f)."""

    def expected(self, features: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) of functions with values (S, q) on the support."""
        return _in_parts(self.weights, features, table)


def _in_parts(weigh: Callable[[Array], Array], given: Array, table: Array) -> Array:
    found = np.empty((len(given), table.shape[1]))
    for i in range(0, len(given), CHUNK):
        found[i : i + CHUNK] = weigh(given[i : i + CHUNK]) @ table
    return found


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
        many = len(rows) > MOST_ROWS
        forest = ExtraTreesRegressor(
            sample.trees,
            min_samples_leaf=min(2, max(1, len(rows) // 4)),
            bootstrap=many,
            max_samples=MOST_ROWS if many else None,
            random_state=sample.seed(),
        )
        features, outcomes, own = sample.part(rows)
        target = np.concatenate([outcomes, rankdata(outcomes, axis=0)], axis=1)
        forest.fit(features, StandardScaler().fit_transform(target), own)
        weights, onto = sample.counted(rows)
        inside = _leaves(forest, sample.features).T.tocsr()
        mass = np.maximum(inside @ weights, FLOOR) * sample.trees
        self.forest = forest
        self.shares: Any = sparse.csr_matrix(sparse.diags(1 / mass) @ inside @ onto)

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
    missed: Array  # (r, d); the first errors ascend
    mass: Array  # (r,) weights of these rows
    width: Array  # (d,) of the kernel
    places: Indices  # (r,)
    points: Array  # (S, d)

    @classmethod
    def learned(
        cls, make: Callable[[Sample, Indices], Any], sample: Sample
    ) -> tuple["Around", Array]:
        """Learn a forecast and its errors by cross-fitting, and what is expected so (m, q)."""
        forecasts = np.full(sample.outcomes.shape, np.nan)
        for rows, tested in sample.folds:
            made = make(sample, rows).predict(sample.features[tested])
            forecasts[tested] = made.reshape(len(tested), -1)
        missed = sample.outcomes - forecasts
        known = np.flatnonzero(np.isfinite(missed[:, 0]))
        if len(known) > MOST_NEIGHBOURS:
            known = sample.rng.choice(known, MOST_NEIGHBOURS, replace=False)
        known = known[np.argsort(missed[known, 0], kind="stable")]
        own = forecasts[known], missed[known], sample.weights[known]
        scale = np.sqrt(StandardScaler().fit(own[0], sample_weight=own[2]).var_)
        width = (WIDTH if len(scale) == 1 else WIDTH_OF_ROWS) * np.maximum(scale, LEAST_SPREAD)
        model = make(sample, np.arange(len(missed)))
        found = cls(model, *own, width, known, sample.points)
        expected = np.full(sample.truth.shape, np.nan)
        for rows, tested in sample.folds:
            if (seen := np.isin(known, rows)).any():
                near = partial(found.at, seen=seen)
                expected[tested] = _in_parts(near, forecasts[tested], sample.table)
            else:  # the first fold of a time split: nobody was forecast before
                expected[tested] = np.average(sample.truth[rows], 0, sample.weights[rows])
        return found, expected

    def weights(self, features: Array) -> Array:
        return self.at(np.reshape(self.model.predict(features), (len(features), -1)))

    def at(self, here: Array, seen: Any = slice(None)) -> Array:
        """Weights (m, S) where forecasts are (m, d), by those of the rows that are seen."""
        apart = cdist(here / self.width, self.forecasts[seen] / self.width, "sqeuclidean")
        near = (np.exp(-0.5 * apart) + FLOOR) * self.mass[seen]
        near /= near.sum(1, keepdims=True)
        values = here[:, :1] + self.missed[seen, 0]
        places = self.places[seen]
        places = np.broadcast_to(places, near.shape)
        return np.asarray(onto(self.points, places, values, near).toarray())


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
        subsample=max(min(0.6, MOST_ROWS / len(rows)), 1 / len(rows)),
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


class ConditionalDistribution:
    """A mixture of members, with shares (B,) that add up to 1, on points (S, d) of the outcome.

    It is learned from rows, as an estimator's ``base`` says.
    """

    def __init__(self, estimator: Any, listed: Listed, rows: Rows) -> None:
        rng = stream(estimator.random_state or 0, "omniprediction", "law")
        outcomes = np.round(rows.outcomes, DIGITS)
        self.listed = listed
        self.rounds = len(outcomes)
        self.points = support(outcomes, rows.weights)
        table, truth = (
            # less each loss's mean over actions, side by side
            np.concatenate([(t - t.mean(-1, keepdims=True)).reshape(len(t), -1) for t in tables], 1)
            for tables in (listed.values(self.points), listed.values(outcomes))
        )
        if (functions := table.shape[1]) > MOST_FUNCTIONS:
            kept = np.sort(rng.choice(np.arange(functions), MOST_FUNCTIONS, replace=False))
            table = table[:, kept]
            truth = truth[:, kept]
        folds = list(folds_of(estimator.cv, rows, int(rng.integers(2**31))))
        own = rows.seen, outcomes, rows.weights, folds, estimator.trees, rng
        sample = Sample(*own, self.points, table, truth)

        names = MIXED[estimator.base] if rows.seen.shape[1] else ("marginal",)
        made = {name: MEMBERS[name](sample) for name in names}
        mixed = shares_of([expected for _, expected in made.values()], truth, rows.weights)
        chosen = mixed >= LEAST_SHARE
        self.members = {name: made[name][0] for name in np.array(names)[chosen].tolist()}
        self.shares = mixed[chosen] / mixed[chosen].sum()

    def expected(self, seen: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) of functions with values (S, q) on the support."""
        parts = zip(self.shares, self.members.values(), strict=True)
        return np.asarray(sum(v * member.expected(seen, table) for v, member in parts))

    def mean(self, seen: Array) -> Array:
        """Return the mean prediction (m, n) of s(y)."""
        return self.expected(seen, self.listed.basis.transform(self.points))

    def play(self, loss: AnyLoss, seen: Array) -> tuple[Array, Array]:
        """Return the mixed strategies (m, A) of a single loss and the losses (m,) it expects."""
        table = self.expected(seen, self.listed.finite(loss).losses(self.points))
        return one_hot(best_response(table), table.shape[1]), table.min(1)

    def outcomes(self, seen: Array) -> Array:
        """Forecast the outcome (m, d), in [0, 1]."""
        return self.expected(seen, self.points)

    def quantiles(self, seen: Array, levels: Sequence[float]) -> Array:
        """Return quantiles (m, d, levels), by the distribution function at ``STEPS`` values."""
        found = []
        for column in self.points.T:
            steps = np.quantile(column, np.linspace(0, 1, STEPS), method="higher")
            values = np.unique(column if len(np.unique(column)) <= STEPS else steps)
            below = self.expected(seen, (column[:, None] <= values).astype(np.float64))
            place = (below[:, None] < np.array(levels)[:, None] - ROUNDING).sum(2)
            found.append(values[place.clip(max=len(values) - 1)])
        return np.stack(found, axis=1)

    def alternatives(self, loss: Loss, seen: Array) -> Indices:
        """Return the actions (B, m) of comparators: what each member would do by itself."""
        table = loss.losses(self.points)
        members = self.members.values()
        return np.array([best_response(member.expected(seen, table)) for member in members])


def folds_of(cv: Any, rows: Rows, seed: int) -> Any:
    """Split rows for cross-fitting; the rows of a group stay in one fold."""
    if isinstance(cv, int | np.integer):
        most = len(np.unique(np.arange(len(rows.seen)) if rows.groups is None else rows.groups))
        kind = KFold if rows.groups is None else GroupKFold
        cv = kind(min(int(cv), most), shuffle=True, random_state=seed)
    return check_cv(cv).split(rows.seen, rows.outcomes, rows.groups)


def shares_of(expected: Sequence[Array], truth: Array, weights: Array) -> Array:
    """Mix members: v (B,), from what they expected of functions with values (m, q)."""
    tested = np.isfinite(expected[0]).all(1)
    root = np.sqrt(weights[tested])[:, None]
    residuals = np.array([(root * (own[tested] - truth[tested])).ravel() for own in expected])
    gram = residuals @ residuals.T
    values, vectors = np.linalg.eigh(gram / max(gram.trace(), 1e-300))
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    system = np.vstack([half, np.ones((1, len(expected)))])
    solution, _ = nnls(system, np.append(np.zeros(len(expected)), 1.0))
    return np.asarray(solution / solution.sum())
