"""A fit that starts from a conditional law: what is learned, held out, and answered from it.

The law (``laws``) sees all features and what the policies suggest. Everybody best-responds to the
expected losses under it: a predictor that does not randomise, fast, and good for any later loss.
The paper's theorem is about the online run (``fitting``) and says nothing of it; what is promised
is certified on rows that nothing was learned from (``certificates``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.omniprediction.fitting import ROUNDING, Listed, checked_values
from regretless.forecaster.omniprediction.laws.learning import Sample, folds_of
from regretless.forecaster.omniprediction.laws.mixture import ConditionalLaw, learn
from regretless.forecaster.omniprediction.suggestions import (
    checked_features,
    checked_outcomes,
    ends_of,
    scaled,
)
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.response import best_response

ENOUGH = 1000  # rows from which some are held out; with fewer the law needs them more
HELD = 0.2
FEWEST_HELD, MOST_HELD = 300, 2000
DIGITS = 12  # of outcomes: rounding in their own units is not to decide between equal splits
CHUNK = 4096  # rows whose losses are expected at once


@dataclass(frozen=True, eq=False)
class Seen:
    """What a predictor sees of some rows.

    Parameters
    ----------
    features : array (m, f)
    suggestions : int array (m, C)
    """

    features: Array
    suggestions: Indices

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> "Seen":
        return Seen(self.features[rows], self.suggestions[rows])

    @property
    def joined(self) -> Array:
        """Features and suggestions (m, f + C)."""
        return np.concatenate([self.features, self.suggestions.astype(np.float64)], axis=1)


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of which everything is known.

    Parameters
    ----------
    outcomes : array (m, d)
        In [0, 1].
    weights : array (m,)
    groups : array (m,) or None
    """

    seen: Seen
    outcomes: Array
    weights: Array
    groups: Any = None

    def __getitem__(self, rows: Mask) -> "Examples":
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        return Examples(self.seen[rows], self.outcomes[rows], self.weights[rows], groups)

    @property
    def exchangeable(self) -> bool:
        """Whether nothing says that rows depend on each other or count unequally."""
        return self.groups is None and bool((self.weights == self.weights[0]).all())


@dataclass(frozen=True, eq=False)
class Conditional:
    """What a fit of a conditional law leaves.

    Parameters
    ----------
    rounds : int
        Rows that were learned from.
    """

    listed: Listed
    law: ConditionalLaw
    rounds: int

    def mean(self, seen: Seen) -> Array:
        """Return E[s(y) | x] (m, n)."""
        return self.law.expected(seen.joined, self.listed.basis.transform(self.law.outcomes))

    def expected(self, losses: Sequence[Loss], seen: Seen) -> list[Array]:
        """Return the expected losses (m, A) of all actions, for each of some single losses."""
        return self._together([loss.losses(self.law.outcomes) for loss in losses], seen)

    def forecast(
        self, losses: Sequence[Loss], seen: Seen, levels: Sequence[float]
    ) -> tuple[list[Array], Array, Array]:
        """Return ``expected``, mean outcomes (m, d) and their quantiles (m, d, levels), at once."""
        steps, outcomes = self.law.steps(), self.law.outcomes
        tables = [loss.losses(outcomes) for loss in losses]
        found = self._together([outcomes, *(below for _, below in steps), *tables], seen)
        quantiles = np.empty((len(seen), len(steps), len(levels)))
        for j, (values, _) in enumerate(steps):
            for k, level in enumerate(levels):
                place = (found[1 + j] < level - ROUNDING).sum(1)
                quantiles[:, j, k] = values[place.clip(max=len(values) - 1)]
        return found[1 + len(steps) :], found[0], quantiles

    def _together(self, tables: Sequence[Array], seen: Seen) -> list[Array]:
        """Expect many functions in one pass over the rows."""
        whole, joined = np.concatenate(tables, axis=1), seen.joined
        starts = range(0, len(joined), CHUNK)
        parts = [self.law.expected(joined[i : i + CHUNK], whole) for i in starts]
        ends = np.cumsum([table.shape[1] for table in tables])[:-1]
        return np.split(np.concatenate(parts), ends, axis=1)

    def instead(self, loss: Loss, seen: Seen) -> Indices:
        """Return what the law's members do for a loss, each by itself: (B, m)."""
        table, joined = loss.losses(self.law.outcomes), seen.joined
        members = self.law.members.values()
        return np.array([best_response(m.expected(joined, table)) for m in members])


def held_out(estimator: Any, rows: Examples) -> Mask:
    """Mark the rows that nothing is learned from, by an estimator's ``holdout``.

    Raises
    ------
    UserError
        If rows are to be held out that are no independent draws of one law.
    """
    count, share = len(rows.outcomes), estimator.holdout
    chosen = np.zeros(count, dtype=bool)
    plain = rows.exchangeable and isinstance(estimator.cv, int | np.integer)
    if share == "auto":
        apt = plain and estimator.base != "none" and count >= ENOUGH
        held = int(np.clip(HELD * count, FEWEST_HELD, MOST_HELD)) if apt else 0
    else:
        held = round(share * count)
        if held and not plain:
            raise UserError(
                f"holdout = {share!r}: groups, sample_weight and time splits say that rows are not "
                "alike, and no certificate holds; leave one of them out"
            )
    rng = stream(estimator.random_state or 0, "omniprediction", "holdout")
    chosen[rng.choice(count, min(held, count - 1), replace=False)] = True
    return chosen


def learn_law(estimator: Any, listed: Listed, rows: Examples) -> Conditional:
    """Learn the law of an estimator's ``base`` from examples."""
    rng = stream(estimator.random_state or 0, "omniprediction", "law")
    features, outcomes = rows.seen.joined, np.round(rows.outcomes, DIGITS)
    if len(outcomes) < 2:
        raise UserError("Found array with 1 sample(s) while a minimum of 2 is required; add rows")
    folds = list(folds_of(estimator.cv, features, outcomes, rows.groups, rng))
    if len(folds) < 2:
        raise UserError("groups: all rows are in one group; give at least two, or leave groups out")
    sample = Sample(features, outcomes, rows.weights, folds, estimator.trees, rng)
    tables = [checked_values(stack.losses(sample.support)) for stack in listed.stacks]
    return Conditional(listed, learn(sample, tables, estimator.base), len(outcomes))


def examples(ends: Any, X: Any, Y: Any, sample_weight: Any, groups: Any) -> tuple[Examples, Array]:
    """Check a table and scale its outcomes; suggestions are left out, the ends come along."""
    given = checked_outcomes(Y)
    features = checked_features(X, len(given))
    if len(features) != len(given):
        raise UserError(f"X has {len(features)} rows and Y {len(given)}; give as many")
    names = None if groups is None else np.asarray(groups)
    if names is not None and names.shape != (len(given),):
        raise UserError(f"groups has shape {names.shape} and Y {len(given)} rows; give one each")
    found = ends_of(ends, given)
    weights = checked_weights(sample_weight, len(given))
    seen = Seen(features, np.empty((len(given), 0), dtype=np.intp))
    return Examples(seen, scaled(given, found), weights, names), found


def checked_weights(given: Any, rows: int) -> Array:
    """Return ``sample_weight`` (m,), ones if it is None; UserError where one is not positive."""
    if given is None:
        return np.ones(rows)
    weights = np.asarray(given, dtype=np.float64)
    fine = weights.shape == (rows,) and np.isfinite(weights).all()
    if not (fine and (weights >= 0).all() and weights.any()):
        raise UserError("sample_weight: give one number of at least 0 for each row, not all zero")
    return weights
