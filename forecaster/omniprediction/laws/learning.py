r"""Conditional laws learned from a table, by cross-fitting, and mixed.

**Members.** Random forest and extremely randomised trees (Breiman 2001; Geurts, Ernst, Wehenkel
2006), grown on the outcomes and on their ranks; laws around a ridge forecast and three boosted ones
(Friedman 2002), of trees of depth 2, 3 and 6; the marginal law. A forecast has two laws: what it
missed on rows with about the same forecast (near), and on most rows (far). Of two or three
outcomes, whose lattice is coarse, the first, and of more both are in place of that one law of the
neighbours in it, with the kernel's width that expects best. ``ridge`` has the laws around the ridge
forecast and the marginal law alone, and needs no scikit-learn.

**Mixture.** Let F_i be the losses of all listed losses' actions at row i, less each loss's mean
over actions (what is common to all actions decides nothing), and P_bi what member b expected there,
learned on other folds. The law is sum_b v_b w^b(x) with

    v = argmin over the simplex of  sum_i | F_i - sum_b v_b P_bi |^2      (Breiman 1996, stacking).

With R'R the Gram matrix of the members' residuals, v is proportional to the non-negative solution
of least squares in R v = 0 and 1'v = 1: along each ray the sum of squares is least at q / (1 + q),
and q is the objective above.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.stats import rankdata

from regretless.forecaster.omniprediction.laws import members
from regretless.forecaster.omniprediction.laws.trees import Trees
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError

BASES = ("auto", "ridge", "none")
WIDTHS = (0.1, 0.2, 0.35)  # of kernels, in standard deviations of the forecasts
NEAR, FAR = 0.35, 1.5  # likewise, of what was missed
FEWEST = {"forest": 5, "extra trees": 2}  # rows in a leaf
MOST_ROWS = 5000  # that one tree sees
MOST_NEIGHBOURS = 2000
MOST_FUNCTIONS = 400  # losses' actions on which members are compared
RIDGES = np.logspace(-3, 4, 15)  # penalties, per row
# Leaves of many rows, and drawn rows, keep noise out; of which there may be little.
DEPTH_2: dict[str, Any] = {"max_depth": 2, "learning_rate": 0.1}
DEPTH_3: dict[str, Any] = {
    "max_depth": 3,
    "learning_rate": 0.07,
    "max_features": 0.5,
    "min_samples_leaf": 8,
    "subsample": 0.6,
}
DEPTH_6: dict[str, Any] = {
    "max_depth": 6,
    "learning_rate": 0.05,
    "max_features": 0.8,
    "min_samples_leaf": 3,
    "subsample": 0.6,
    "times": 2,  # as many trees as others
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from.

    Parameters
    ----------
    features : array (m, f)
    outcomes : array (m, d)
    weights : array (m,)
        Positive.
    folds : list of pairs of int array
        Rows to learn from and rows to test on, which are in one test at most.
    trees : int
        Of each kind.
    rng : Generator
    """

    features: Array
    outcomes: Array
    weights: Array
    folds: Sequence[tuple[Indices, Indices]]
    trees: int
    rng: np.random.Generator

    @property
    def all(self) -> Indices:
        """All rows."""
        return np.arange(len(self.outcomes))

    @cached_property
    def lattice(self) -> members.Lattice:
        """Nodes between the outcomes of rows that count."""
        return members.Lattice.of(self.outcomes[self.weights > 0])

    @cached_property
    def support(self) -> Array:
        """What laws are weights on (S, d): outcomes of the rows, then the lattice's nodes."""
        return np.concatenate([self.outcomes, self.lattice.nodes])

    def seed(self) -> int:
        """Draw a seed for scikit-learn."""
        return int(self.rng.integers(2**31))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A member, and what it expected of rows that it had not seen, (m, q)."""

    name: str
    member: members.Predictor
    expected: Array


def candidates(sample: Sample, table: Array, base: str) -> list[Candidate]:
    """Learn all members; ``table`` (S, q) has the functions on which they will be compared."""
    makers: dict[str, Maker] = {"ridge": ridge}
    if base == "auto":
        shapes = (DEPTH_2, DEPTH_3, DEPTH_6)
        makers |= {f"boosted {own['max_depth']}": partial(boosted, shape=own) for own in shapes}
    if not sample.features.shape[1]:
        makers, base = {}, "none"
    found = [law for name, make in makers.items() for law in _around(sample, table, name, make)]
    if base == "auto":
        found += [_forest(sample, table, name) for name in FEWEST]
    blank = np.full((len(sample.outcomes), table.shape[1]), np.nan)
    for learned, tested in sample.folds:
        blank[tested] = np.average(table[learned], 0, sample.weights[learned])
    return [*found, Candidate("marginal", members.Marginal(sample.weights), blank)]


def _forest(sample: Sample, table: Array, name: str) -> Candidate:
    expected = np.full((len(sample.outcomes), table.shape[1]), np.nan)
    for learned, tested in sample.folds:
        law = leaves(sample, learned, name)
        expected[tested] = law.expected(sample.features[tested], table)
    return Candidate(name, leaves(sample, sample.all, name), expected)


def leaves(sample: Sample, rows: Indices, name: str) -> members.Leaf:
    """Grow a forest on some rows."""
    ensemble = _sklearn()
    many = len(rows) > MOST_ROWS
    shape: dict[str, Any] = {
        "n_estimators": sample.trees,
        "min_samples_leaf": min(FEWEST[name], max(1, len(rows) // 4)),
        "random_state": sample.seed(),
        "max_samples": MOST_ROWS if many else None,
    }
    if name == "forest":
        forest = ensemble.RandomForestRegressor(max_features=0.5, **shape)
    else:
        forest = ensemble.ExtraTreesRegressor(max_features=1.0, bootstrap=many, **shape)
    outcomes = sample.outcomes[rows]
    target = np.concatenate([outcomes, rankdata(outcomes, axis=0)], axis=1)
    target = (target - target.mean(0)) / np.maximum(target.std(0), 1e-9)
    own = sample.weights[rows]
    trees = Trees.of(forest.fit(sample.features[rows], target, own).estimators_)
    weights = np.zeros(len(sample.outcomes))
    weights[rows] = own
    return members.Leaf(trees, trees.leaves(sample.features), weights)


def _sklearn() -> Any:
    try:
        from sklearn import ensemble  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        told = "base = 'auto' needs scikit-learn; install regretless[learn], or choose base='ridge'"
        raise UserError(told) from error
    return ensemble


Maker = Callable[[Sample, Indices], members.Linear | members.Boosted]


def ridge(sample: Sample, rows: Indices) -> members.Linear:
    """Fit ridge regression, its penalty by generalised cross-validation (Golub et al. 1979)."""
    own = sample.weights[rows] / sample.weights[rows].mean()
    table, outcomes, root = sample.features[rows], sample.outcomes[rows], np.sqrt(own)[:, None]
    centre, mean = np.average(table, 0, own), np.average(outcomes, 0, own)
    spread = _spread(table, own)
    spread = np.where(spread > 0, spread, 1.0)
    u, s, vt = np.linalg.svd(root * (table - centre) / spread, full_matrices=False)
    common, left = u.T @ (root * (outcomes - mean)), root * (outcomes - mean)
    best, chosen = np.inf, np.zeros((table.shape[1], outcomes.shape[1]))
    for penalty in RIDGES * len(rows):
        shrunk = s**2 / (s**2 + penalty)
        error = ((left - u @ (shrunk[:, None] * common)) ** 2).sum()
        score = error / max(1 - (1 + shrunk.sum()) / len(rows), 1e-9) ** 2
        if score < best:
            best = score
            chosen = vt.T @ ((s / (s**2 + penalty))[:, None] * common) / spread[:, None]
    return members.Linear(np.vstack([mean - centre @ chosen, chosen]))


def _spread(table: Array, weights: Array) -> Array:
    """Return the weighted standard deviation of each column."""
    apart = table - np.average(table, 0, weights)
    return np.asarray(np.sqrt(np.average(apart**2, 0, weights)))


def boosted(sample: Sample, rows: Indices, *, shape: dict[str, Any]) -> members.Boosted:
    """Boost trees for every coordinate of the outcome."""
    ensemble, own, found = _sklearn(), sample.weights[rows], []
    given = {"min_samples_leaf": 1, "subsample": 1.0, "times": 1} | shape
    trees, share = sample.trees * given.pop("times"), given.pop("subsample")
    leaf = min(given.pop("min_samples_leaf"), max(1, len(rows) // 4))
    for column in sample.outcomes[rows].T:
        model = ensemble.GradientBoostingRegressor(
            n_estimators=trees,
            subsample=max(min(share, MOST_ROWS / len(rows)), 1 / len(rows)),
            min_samples_leaf=leaf,
            random_state=sample.seed(),
            init="zero",
            **given,
        )
        model.fit(sample.features[rows], column - np.average(column, weights=own), own)
        found.append(Trees.of(model.estimators_[:, 0], rate=model.learning_rate))
    return members.Boosted(np.average(sample.outcomes[rows], 0, own), tuple(found))


Around = members.Neighbours | members.Residuals


def _around(sample: Sample, table: Array, name: str, make: Maker) -> list[Candidate]:
    """Forecast by cross-fitting, and make laws of what was forecast and what came."""
    forecasts = np.full(sample.outcomes.shape, np.nan)
    for learned, tested in sample.folds:
        forecasts[tested] = make(sample, learned).forecast(sample.features[tested])
    model = make(sample, sample.all)
    known = np.flatnonzero(np.isfinite(forecasts[:, 0]))
    if len(known) > MOST_NEIGHBOURS:
        known = np.sort(sample.rng.choice(known, MOST_NEIGHBOURS, replace=False))
    spread = np.maximum(_spread(forecasts[known], sample.weights[known]), 1e-6)

    def near(seen: Indices, width: float) -> members.Neighbours:
        own = forecasts[seen], sample.weights[seen], width * spread
        return members.Neighbours(model, seen, *own)

    def missed(seen: Indices, width: float) -> Around:
        return members.Residuals.of(near(seen, width), sample.outcomes, sample.lattice)

    def candidate(called: str, law: Callable[[Indices, float], Around], width: float) -> Candidate:
        expected = _unseen(sample, table, forecasts, known, lambda seen: law(seen, width))
        return Candidate(called, law(known, width), expected)

    outcomes, found = sample.outcomes.shape[1], []
    if outcomes > 1:
        tried = [candidate(f"{name} near", near, width) for width in WIDTHS]
        rows, own = table[: len(sample.outcomes)], sample.weights[:, None]
        errors = [np.nansum((c.expected - rows) ** 2 * own) for c in tried]
        found.append(tried[int(np.argmin(errors))])
    else:
        found.append(candidate(f"{name} near", missed, NEAR))
    if outcomes <= max(members.MOST_KNOTS):
        found.append(candidate(f"{name} far", missed, FAR))
    return found


def _unseen(
    sample: Sample, table: Array, forecasts: Array, known: Indices, law: Callable[[Indices], Around]
) -> Array:
    """Expect each row from the known ones in other folds: (m, q)."""
    expected = np.full((len(sample.outcomes), table.shape[1]), np.nan)
    for learned, tested in sample.folds:
        seen = known[np.isin(known, learned)]
        if len(seen):
            expected[tested] = law(seen).around(forecasts[tested], table)
        else:  # the first fold of a time split: nobody was forecast before
            expected[tested] = np.average(table[learned], 0, sample.weights[learned])
    return expected


def shares(found: Sequence[Candidate], table: Array, weights: Array) -> Array:
    """Mix members: v (B,), from what they expected of ``table`` (m, q)."""
    tested = np.isfinite(found[0].expected[:, 0])
    root = np.sqrt(weights[tested])[:, None]
    residuals = [(root * (c.expected[tested] - table[tested])).ravel() for c in found]
    gram = np.array([[a @ b for b in residuals] for a in residuals])
    values, vectors = np.linalg.eigh(gram / max(gram.trace(), 1e-300))
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    one = np.ones((1, len(found)))
    solution, _ = nnls(np.vstack([half, one]), np.append(np.zeros(len(found)), 1.0))
    return np.asarray(solution / solution.sum())


def centred(tables: Sequence[Array], rng: np.random.Generator) -> Array:
    """Put losses (m, K, A) of several stacks side by side, less each loss's mean over actions."""
    flat = [(t - t.mean(-1, keepdims=True)).reshape(len(t), -1) for t in tables]
    whole = np.concatenate(flat, axis=1)
    if whole.shape[1] > MOST_FUNCTIONS:
        whole = whole[:, np.sort(rng.choice(whole.shape[1], MOST_FUNCTIONS, replace=False))]
    return np.asarray(whole)


def folds_of(
    cv: Any, features: Array, outcomes: Array, groups: Any, rng: np.random.Generator
) -> Iterator[tuple[Indices, Indices]]:
    """Split rows for cross-fitting: groups stay together; ``cv`` may be a splitter or splits.

    Raises
    ------
    UserError
        If there are fewer groups than folds.
    """
    if not isinstance(cv, int | np.integer):
        yield from (cv.split(features, outcomes, groups) if hasattr(cv, "split") else cv)
        return
    names = np.arange(len(outcomes)) if groups is None else np.asarray(groups)
    _, place = np.unique(names, return_inverse=True)
    count = int(place.max()) + 1
    fold = (rng.permutation(count) % min(int(cv), count))[place]
    for k in range(int(fold.max()) + 1):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)
