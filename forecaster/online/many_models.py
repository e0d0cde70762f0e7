"""The panel's models of many shops, in arrays with a row for each shop.

Each class here is a model of ``forecaster.models`` for S shops at once, of one outcome each: it
forecasts the same numbers as S models, up to rounding, and ``write_to`` puts what one shop has
learned into a model of its own. ``many_model`` says which models have such a class.

Outcomes are kept in the order in which a shop learned them, t = 0, 1, ...; a round whose outcome is
missing counts for regressions alone, which put their forecast in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.models.base import in_unit_cube
from regretless.forecaster.models.least_squares import MAX_FEATURES, Columns, LeastSquares
from regretless.forecaster.models.outcomes import MARKS_TO_TAKE_OVER
from regretless.forecaster.models.past_outcomes import PastOutcomes
from regretless.forecaster.models.seasonal_regression import (
    FIRST_SEARCH,
    GROWTH,
    MAX_HISTORY,
    MISSING,
    SeasonalRegression,
    find_seasons,
)
from regretless.forecaster.models.seasons import NO_SEASON, PastRounds
from regretless.forecaster.models.simple import LastValue
from regretless.forecaster.models.with_errors import ROUNDS_OF_ALL, WINDOW_OF_SEASON, WithErrors
from regretless.forecaster.online.many_contexts import Context, ManyContexts
from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.compiled import compiled, over_rows

FIRST_ROOM = 64  # rounds for which there is room at first
MAX_FOUND_SEASONS = 2  # that a regression finds
NO_ROUND = -1


class LearnedRounds:
    """The outcomes that shops have learned, their contexts, and which rounds share a season.

    Attributes
    ----------
    times : int array (S,)
        Rounds that each shop has learned.
    outcomes : array (S, room)
        In [0, 1].
    newest, earlier : int array (S, seasons), (S, room)
        The newest round of each season, and the last one before a round that has its season.
    contexts : list of list
        Of the learned rounds of each shop.
    """

    def __init__(self, n_shops: int) -> None:
        self.times = np.zeros(n_shops, dtype=np.int64)
        self.outcomes = np.zeros((n_shops, FIRST_ROOM))
        self.newest = np.full((n_shops, 1), NO_ROUND)
        self.earlier = np.full((n_shops, FIRST_ROOM), NO_ROUND)
        self.contexts: list[list[Context]] = [[] for _ in range(n_shops)]

    def add(self, outcomes: Array, is_learned: Mask, contexts: ManyContexts) -> None:
        """Add the outcomes (S,) of a round to the shops that learn it.

        Their contexts have been learned.
        """
        seasons = contexts.seasons
        self.outcomes = with_room(self.outcomes, self.times.max() + 1, 0.0)
        self.earlier = with_room(self.earlier, self.times.max() + 1, NO_ROUND)
        self.newest = with_room(self.newest, seasons.max(initial=0) + 1, NO_ROUND)
        shops = np.flatnonzero(is_learned)
        for shop in shops.tolist():
            memory = contexts.memory(shop)
            if memory.has_forgotten_seasons:
                self.newest[shop] = NO_ROUND
            if memory.replaced_season != NO_SEASON:
                self.newest[shop, memory.replaced_season] = NO_ROUND
            self.contexts[shop].append(contexts.current[shop])
        times = self.times[shops]
        self.outcomes[shops, times] = outcomes[shops]
        seasons_of_shops = seasons[shops]
        has_season = seasons_of_shops != NO_SEASON
        seasonal_shops = shops[has_season]
        codes = seasons_of_shops[has_season]
        self.earlier[seasonal_shops, times[has_season]] = self.newest[seasonal_shops, codes]
        self.newest[seasonal_shops, codes] = times[has_season]
        self.times[shops] += 1

    def state(self) -> dict[str, Any]:
        """Return what a file needs; shops are the last axis of every array."""
        n_rounds = int(self.times.max())
        places: dict[tuple[tuple[str, float], ...], int] = {}
        context_of_round = np.full((n_rounds, len(self.times)), NO_ROUND)
        for shop, contexts in enumerate(self.contexts):
            for t, context in enumerate(contexts):
                place = places.setdefault(tuple(context.items()), len(places))
                context_of_round[t, shop] = place
        return {
            "times": self.times.copy(),
            "outcomes": self.outcomes[:, :n_rounds].T.copy(),
            "newest": self.newest.T.copy(),
            "earlier": self.earlier[:, :n_rounds].T.copy(),
            "contexts": {str(place): dict(items) for items, place in places.items()},
            "context_of_round": context_of_round,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""
        self.times = state["times"]
        room = max(FIRST_ROOM, len(state["outcomes"]))
        self.outcomes = with_room(state["outcomes"].T.copy(), room, 0.0)
        self.newest = state["newest"].T.copy()
        self.earlier = with_room(state["earlier"].T.copy(), room, NO_ROUND)
        contexts = {int(place): context for place, context in state["contexts"].items()}
        self.contexts = []
        for shop, time in enumerate(self.times.tolist()):
            places = state["context_of_round"][:time, shop].tolist()
            self.contexts.append([contexts[place] for place in places])

    def write_to(self, past: PastRounds, shop: int, vectors: Array, *, seasonal: bool) -> None:
        """Put a shop's vectors (T,), one for each learned round, into the past of a model."""
        for vector, context in zip(vectors, self.contexts[shop], strict=True):
            past.add(np.array([vector]), context if seasonal else {}, newer=0)


def with_room(table: Any, wanted: int, empty: float) -> Any:
    """Return a table (S, room, ...) that has room for so many columns; new ones are ``empty``."""
    room = table.shape[1]
    if wanted <= room:
        return table
    larger = np.full((len(table), max(wanted, 2 * room), *table.shape[2:]), empty, table.dtype)
    larger[:, :room] = table
    return larger


@compiled(nogil=True)
def _write_past_outcomes(
    past: Array,
    times: Integers,
    newest_of_season: Integers,
    earlier: Integers,
    seasonal: bool,  # noqa: FBT001
    kept_share: float,
    outcomes: Array,
    weights: Array,
    first: int,
    last: int,
) -> None:
    """Write past outcomes with their weights, the newest first (compiled).

    Parameters
    ----------
    past : array (S, room)
        Outcomes of all learned rounds.
    times : int array (S,)
        How many these are.
    newest_of_season, earlier : int array (S,), (S, room)
        The newest round of the open round's season, and the one before each.
    seasonal : bool
        Whether rounds of the season alone count, where there are any.
    kept_share : float
        Of the weight, from a round to the one before.
    outcomes, weights : array (S, m)
        Written; what is not needed has weight 0.
    first, last : int
        Span of shops.
    """
    for s in range(first, last):
        weights[s, :] = 0.0
        outcomes[s, :] = 0.5
        if times[s] == 0:
            weights[s, 0] = 1.0
            continue
        t = times[s] - 1
        follows_season = seasonal and newest_of_season[s] >= 0
        if follows_season:
            t = newest_of_season[s]
        count = outcomes.shape[1]
        if seasonal and not follows_season:
            count = 1
        total = 0.0
        weight = 1.0
        n_rounds = 0
        while n_rounds < count and t >= 0:
            outcomes[s, n_rounds] = past[s, t]
            weights[s, n_rounds] = weight
            total += weight
            weight *= kept_share
            n_rounds += 1
            t = earlier[s, t] if follows_season else t - 1
        for j in range(n_rounds):
            weights[s, j] /= total


@compiled(nogil=True)
def _write_with_errors(
    forecasts: Array,
    errors: Array,
    times: Integers,
    newest_of_season: Integers,
    earlier: Integers,
    window: int,
    window_of_season: int,
    take_over: int,
    outcomes: Array,
    weights: Array,
    first: int,
    last: int,
) -> None:
    """Write forecasts with the last errors, those of the season, and none (compiled).

    Parameters
    ----------
    forecasts : array (S,)
        Of the outcome.
    errors : array (S, room)
        Of all learned rounds.
    times, newest_of_season, earlier : int array
        As in ``_write_past_outcomes``.
    window, window_of_season : int
        How many errors count, and how many of the season.
    take_over : int
        Rounds until errors have taken the place of the forecast alone.
    outcomes, weights : array (S, window + window_of_season + 1)
        Written; what is not needed has weight 0.
    first, last : int
        Span of shops.
    """
    for s in range(first, last):
        n_errors = min(times[s], window)
        share = min(times[s] / take_over, 1.0)
        outcomes[s, :] = 0.5
        weights[s, :] = 0.0
        n_of_season = 0
        t = newest_of_season[s]
        while n_of_season < window_of_season and t >= 0:
            y = forecasts[s] + errors[s, t]
            outcomes[s, window + n_of_season] = min(max(y, 0.0), 1.0)
            n_of_season += 1
            t = earlier[s, t]
        share_of_season = share * n_of_season / (n_of_season + ROUNDS_OF_ALL)
        for j in range(n_of_season):
            weights[s, window + j] = share_of_season / n_of_season
        for j in range(n_errors):
            y = forecasts[s] + errors[s, times[s] - n_errors + j]
            outcomes[s, j] = min(max(y, 0.0), 1.0)
            weights[s, j] = (share - share_of_season) / n_errors
        outcomes[s, -1] = forecasts[s]
        weights[s, -1] = 1.0 - share


@dataclass
class OpenRound:
    """What the models of all shops see of the round that is open."""

    rounds: LearnedRounds
    contexts: ManyContexts

    @property
    def newest_of_season(self) -> Indices:
        """The newest learned round of every shop's season (S,), -1 where there is none."""
        seasons = self.contexts.seasons
        newest = self.rounds.newest
        is_known = (seasons != NO_SEASON) & (seasons < newest.shape[1])
        shops = np.arange(len(seasons))
        return np.where(is_known, newest[shops, np.where(is_known, seasons, 0)], NO_ROUND)


class ManyModel:
    """A model of S shops that forecasts distributions of at most ``width`` outcomes each."""

    width: int

    def write_distributions(self, now: OpenRound, outcomes: Array, weights: Array) -> None:
        """Write the distributions of the open round: outcomes and weights (S, width)."""
        raise NotImplementedError

    def learn(self, now: OpenRound, outcomes: Array, is_learned: Mask) -> None:
        """Learn the outcomes (S,) of some shops, before they are added to the learned rounds."""

    def skip(self, now: OpenRound, is_missing: Mask) -> None:
        """Let a round pass whose outcome is missing for some shops (S,)."""

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        """Put what a shop has learned into a new model of its own."""
        model.time = int(now.rounds.times[shop])

    def state(self) -> dict[str, Any]:
        """Return what a file needs beside the learned rounds; shops are the last axis."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""


class ManyPastOutcomes(ManyModel):
    """``PastOutcomes`` of many shops."""

    def __init__(self, model: PastOutcomes) -> None:
        self.width = model._count  # outcomes that have a weight worth keeping
        self._seasonal = model.seasonal
        self._kept_share = 1.0 if model.rate is None else 1.0 - model.rate

    def write_distributions(self, now: OpenRound, outcomes: Array, weights: Array) -> None:
        over_rows(
            _write_past_outcomes,
            len(outcomes),
            now.rounds.outcomes,
            now.rounds.times,
            now.newest_of_season,
            now.rounds.earlier,
            self._seasonal,
            self._kept_share,
            outcomes,
            weights,
        )

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        super().write_to(model, shop, now)
        rounds = now.rounds
        vectors = rounds.outcomes[shop, : rounds.times[shop]]
        rounds.write_to(model._outcomes, shop, vectors, seasonal=self._seasonal)


class ManyPoints:
    """Forecasts of the outcome itself, of many shops."""

    def forecast(self, now: OpenRound) -> Array:
        """Return the forecasts (S,) of the open round, in [0, 1]."""
        raise NotImplementedError

    def learn(self, now: OpenRound, outcomes: Array, is_learned: Mask) -> None:
        """Learn as ``ManyModel`` does."""

    def skip(self, now: OpenRound, forecasts: Array, is_missing: Mask) -> None:
        """Let a round pass that some shops miss, with its ``forecasts`` (S,)."""

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        """Put what a shop has learned into a new model of its own."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return what a file needs beside the learned rounds; shops are the last axis."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""


class ManyLastValues(ManyPoints):
    """``LastValue`` of many shops."""

    def forecast(self, now: OpenRound) -> Array:
        rounds = now.rounds
        last = rounds.outcomes[np.arange(len(rounds.times)), np.maximum(rounds.times - 1, 0)]
        return np.where(rounds.times > 0, last, 0.5)

    def learn(self, now: OpenRound, outcomes: Array, is_learned: Mask) -> None:
        """Learn nothing: the learned rounds say it."""

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        model.time = int(now.rounds.times[shop])
        model._value = self.forecast(now)[[shop]]


@compiled(nogil=True)
def _add_to_regressions(
    features: Array,
    targets: Array,
    is_learned: Mask,
    forgetting: float,
    gram: Array,
    cross: Array,
    first: int,
    last: int,
) -> None:
    """Add a round to the discounted sums of some shops (compiled).

    Parameters
    ----------
    features, targets : array (S, p), (S,)
        f, and s(y) - 1/2.
    is_learned : bool array (S,)
        The shops that learn.
    forgetting : float
        Lambda.
    gram, cross : array (S, p, p), (S, p)
        G and C; changed in place.
    first, last : int
        Span of shops.
    """
    for s in range(first, last):
        if not is_learned[s]:
            continue
        for i in range(features.shape[1]):
            for j in range(features.shape[1]):
                gram[s, i, j] = forgetting * gram[s, i, j] + features[s, i] * features[s, j]
            cross[s, i] = forgetting * cross[s, i] + features[s, i] * targets[s]


class ManyRegressions(ManyPoints):
    """``LeastSquares`` of many shops, or ``SeasonalRegression``, whose seasons each shop finds.

    A shop's features are 1, the lags of its seasons, the last outcomes, and its context, as in the
    regression of one shop; what it does not have is 0.
    """

    def __init__(self, n_shops: int, model: LeastSquares | SeasonalRegression) -> None:
        self._finds_seasons = isinstance(model, SeasonalRegression)
        one_regression = model._regression if isinstance(model, SeasonalRegression) else model
        self._forgetting = one_regression.forgetting
        self._ridge = one_regression.ridge
        n_seasons = MAX_FOUND_SEASONS if self._finds_seasons else len(one_regression.seasons)
        n_found = len(one_regression.seasons)
        # how many rounds back each lag is; 0 where a shop has found no season
        self._lags = np.zeros((n_shops, n_seasons + len(one_regression.lags) - n_found), np.int64)
        self._lags[:, n_seasons - n_found :] = one_regression.lags
        self._n_seasons = n_seasons
        # Outcomes of all rounds since the first one that was learned, forecasts where one is
        # missing, and how many they are.
        self._past = np.zeros((n_shops, FIRST_ROOM))
        self._is_missing = np.zeros((n_shops, FIRST_ROOM), dtype=bool)
        self._n_past = np.zeros(n_shops, dtype=np.int64)
        n_features = 1 + self._lags.shape[1]
        self._gram = np.zeros((n_shops, n_features, n_features))
        self._cross = np.zeros((n_shops, n_features))
        self._next_search = np.full(n_shops, FIRST_SEARCH)
        # Columns of shops whose regression was made anew when older rounds had been forgotten.
        self._own_columns: dict[int, Columns] = {}

    def forecast(self, now: OpenRound) -> Array:
        features = self._features(now)
        gram = self._gram + self._ridge * np.eye(features.shape[1])
        solved = np.linalg.solve(gram, features[:, :, np.newaxis])[:, :, 0]
        forecasts = in_unit_cube(0.5 + (solved * self._cross).sum(1))
        return np.where(now.rounds.times > 0, forecasts, 0.5)

    def _features(self, now: OpenRound) -> Array:
        """Return the features (S, p) of the open round, and make room for new ones."""
        encoded = now.contexts.encoded
        for shop, columns in self._own_columns.items():
            context = now.contexts.current[shop]
            own_features = columns.encoded(context)
            encoded = _with_width(encoded, len(own_features)).copy()
            encoded[shop] = 0.0
            encoded[shop, : len(own_features)] = own_features
        n_fixed = 1 + self._lags.shape[1]
        n_new = n_fixed + encoded.shape[1] - self._cross.shape[1]
        if n_new > 0:
            self._gram = np.pad(self._gram, ((0, 0), (0, n_new), (0, n_new)))
            self._cross = np.pad(self._cross, ((0, 0), (0, n_new)))
        features = np.zeros(self._cross.shape)
        features[:, 0] = 1.0
        positions = self._n_past[:, np.newaxis] - self._lags
        is_there = (self._lags > 0) & (positions >= 0)
        lagged = np.take_along_axis(self._past, np.where(is_there, positions, 0), axis=1) - 0.5
        features[:, 1:n_fixed] = np.where(is_there, lagged, 0.0)
        features[:, n_fixed : n_fixed + encoded.shape[1]] = encoded
        return features

    def learn(self, now: OpenRound, outcomes: Array, is_learned: Mask) -> None:
        """Learn with the features that the contexts have once they are learned."""
        for shop in self._own_columns:
            if is_learned[shop]:
                remaining = self._own_columns[shop].learn(now.contexts.current[shop])
                self._keep_features(shop, remaining)
        for shop in np.flatnonzero(is_learned).tolist():
            if shop not in self._own_columns:
                self._keep_features(shop, now.contexts.memory(shop).remaining)
        over_rows(
            _add_to_regressions,
            len(outcomes),
            self._features(now),
            outcomes - 0.5,
            is_learned,
            self._forgetting,
            self._gram,
            self._cross,
        )
        self._add_to_past(outcomes, is_learned, is_missing=False)
        if self._finds_seasons:
            due = is_learned & (now.rounds.times + 1 >= self._next_search)
            for shop in np.flatnonzero(due).tolist():
                time = int(now.rounds.times[shop]) + 1
                self._next_search[shop] = int(GROWTH * time) + 1
                self._search(shop, now)

    def _keep_features(self, shop: int, remaining: Indices | None) -> None:
        """Keep those features of a shop's contexts that remain, in their new order."""
        if remaining is None:
            return
        n_fixed = 1 + self._lags.shape[1]
        # a feature that came with the same context is not among the sums yet
        known = remaining[remaining < self._cross.shape[1] - n_fixed]
        kept = np.concatenate([np.arange(n_fixed), n_fixed + known])
        gram = self._gram[shop][np.ix_(kept, kept)]
        cross = self._cross[shop][kept]
        self._gram[shop] = 0.0
        self._cross[shop] = 0.0
        self._gram[shop, : len(kept), : len(kept)] = gram
        self._cross[shop, : len(kept)] = cross

    def skip(self, now: OpenRound, forecasts: Array, is_missing: Mask) -> None:
        self._add_to_past(forecasts, is_missing & (now.rounds.times > 0), is_missing=True)

    def _add_to_past(self, outcomes: Array, is_added: Mask, *, is_missing: bool) -> None:
        self._past = with_room(self._past, self._n_past.max() + 1, 0.0)
        self._is_missing = with_room(self._is_missing, self._n_past.max() + 1, 0.0)
        shops = np.flatnonzero(is_added)
        self._past[shops, self._n_past[shops]] = outcomes[shops]
        self._is_missing[shops, self._n_past[shops]] = is_missing
        self._n_past[shops] += 1

    def _search(self, shop: int, now: OpenRound) -> None:
        """Look for a shop's seasons; if there are others than before, learn its rounds again."""
        n_past = int(self._n_past[shop])
        remembered = self._past[shop, max(n_past - MAX_HISTORY, 0) : n_past]
        if find_seasons(remembered[:, np.newaxis]) == self._seasons(shop):
            return
        model = SeasonalRegression(
            1,
            lags=self._lags.shape[1] - self._n_seasons,
            forgetting=self._forgetting,
            ridge=self._ridge,
        )
        self._write_memory(model, shop, [*now.rounds.contexts[shop], now.contexts.current[shop]])
        model._seasons = self._seasons(shop)
        model._search()
        regression = model._regression
        self._lags[shop, : self._n_seasons] = 0
        self._lags[shop, : len(regression.seasons)] = regression.seasons
        if n_past > MAX_HISTORY:
            self._own_columns[shop] = regression.regressors.columns
        features = self._features_of_one(shop, regression)
        missing_room = features.max(initial=0) + 1 - self._cross.shape[1]
        if missing_room > 0:
            self._gram = np.pad(self._gram, ((0, 0), (0, missing_room), (0, missing_room)))
            self._cross = np.pad(self._cross, ((0, 0), (0, missing_room)))
        self._gram[shop] = 0.0
        self._cross[shop] = 0.0
        self._gram[shop][np.ix_(features, features)] = regression.gram
        self._cross[shop, features] = regression._cross[:, 0]

    def _seasons(self, shop: int) -> list[int]:
        seasons = self._lags[shop, : self._n_seasons]
        return [int(season) for season in seasons if season > 0]

    def _features_of_one(self, shop: int, regression: LeastSquares) -> Indices:
        """Return which features of a shop here are those of its own regression, in their order."""
        is_used = np.concatenate([[True], self._lags[shop] > 0])
        n_columns = regression.regressors.columns.size
        return np.concatenate([np.flatnonzero(is_used), len(is_used) + np.arange(n_columns)])

    def _write_memory(
        self, model: SeasonalRegression, shop: int, contexts: Sequence[Context]
    ) -> None:
        """Let a model remember a shop's rounds, of which these are the contexts that it learned."""
        n_past = int(self._n_past[shop])
        remaining_contexts = iter(contexts)
        for t in range(n_past):
            outcome = self._past[shop, [t]]
            context: Context = {}
            statistics = np.full(1, MISSING)
            if not self._is_missing[shop, t]:
                context = next(remaining_contexts)
                statistics = outcome
            if t >= n_past - MAX_HISTORY:
                model.time = t - max(n_past - MAX_HISTORY, 0)
                model._remember(statistics, outcome, context)
        model.time = len(contexts)

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        regression = model
        if self._finds_seasons:
            self._write_memory(model, shop, now.rounds.contexts[shop])
            model._seasons = self._seasons(shop)
            model._next_search = int(self._next_search[shop])
            model._regression = model._new_regression()
            regression = model._regression
        time = int(now.rounds.times[shop])
        model.time = time
        regression.time = time
        regressors = regression.regressors
        regressors.rounds = time
        if not time:
            return
        regressors.columns = self._own_columns.get(shop) or now.contexts.columns(shop)
        features = self._features_of_one(shop, regression)
        regression.gram = self._gram[shop][np.ix_(features, features)]
        regression._cross = self._cross[shop, features][:, np.newaxis]
        n_past = int(self._n_past[shop])
        past = np.zeros((max(regression.lags, default=0), 1))
        n_known = min(len(past), n_past)
        past[:n_known, 0] = self._past[shop, n_past - n_known : n_past][::-1] - 0.5
        regressors.past = past

    def state(self) -> dict[str, Any]:
        n_shops = len(self._n_past)
        n_rounds = int(self._n_past.max())
        columns = {str(shop): columns.state() for shop, columns in self._own_columns.items()}
        return {
            "lags": self._lags.T.copy(),
            "past": self._past[:, :n_rounds].T.copy(),
            "is_missing": self._is_missing[:, :n_rounds].T.copy(),
            "n_past": self._n_past.copy(),
            "gram": self._gram.reshape(n_shops, -1).T.copy(),
            "cross": self._cross.T.copy(),
            "next_search": self._next_search.copy(),
            "own_columns": columns,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._lags = state["lags"].T.copy()
        room = max(FIRST_ROOM, len(state["past"]))
        self._past = with_room(state["past"].T.copy(), room, 0.0)
        self._is_missing = with_room(state["is_missing"].T.copy(), room, 0.0)
        self._n_past = state["n_past"]
        self._cross = state["cross"].T.copy()
        n_shops, n_features = self._cross.shape
        self._gram = state["gram"].T.reshape(n_shops, n_features, n_features).copy()
        self._next_search = state["next_search"]
        self._own_columns = {}
        for shop, state_of_columns in state["own_columns"].items():
            self._own_columns[int(shop)] = Columns(MAX_FEATURES)
            self._own_columns[int(shop)].restore(state_of_columns)


def _with_width(table: Array, width: int) -> Array:
    """Return a table (S, q) that is at least so wide."""
    return np.pad(table, ((0, 0), (0, max(width - table.shape[1], 0))))


class ManyWithErrors(ManyModel):
    """``WithErrors`` of many shops."""

    def __init__(self, n_shops: int, model: WithErrors, points: ManyPoints) -> None:
        self._window = model.window
        self._window_of_season = WINDOW_OF_SEASON if model.by_season else 0
        self._take_over = min(MARKS_TO_TAKE_OVER, model.window)
        self.width = self._window + self._window_of_season + 1
        self._points = points
        self._errors = np.zeros((n_shops, FIRST_ROOM))
        self._forecasts = np.full(n_shops, 0.5)  # of the open round

    def write_distributions(self, now: OpenRound, outcomes: Array, weights: Array) -> None:
        self._forecasts = self._points.forecast(now)
        over_rows(
            _write_with_errors,
            len(outcomes),
            self._forecasts,
            self._errors,
            now.rounds.times,
            now.newest_of_season,
            now.rounds.earlier,
            self._window,
            self._window_of_season,
            self._take_over,
            outcomes,
            weights,
        )

    def learn(self, now: OpenRound, outcomes: Array, is_learned: Mask) -> None:
        times = now.rounds.times
        self._errors = with_room(self._errors, times.max() + 1, 0.0)
        shops = np.flatnonzero(is_learned)
        self._errors[shops, times[shops]] = outcomes[shops] - self._forecasts[shops]
        self._points.learn(now, outcomes, is_learned)

    def skip(self, now: OpenRound, is_missing: Mask) -> None:
        self._points.skip(now, self._forecasts, is_missing)

    def write_to(self, model: Any, shop: int, now: OpenRound) -> None:
        super().write_to(model, shop, now)
        rounds = now.rounds
        vectors = self._errors[shop, : rounds.times[shop]]
        rounds.write_to(model._errors, shop, vectors, seasonal=True)
        self._points.write_to(model.model, shop, now)

    def state(self) -> dict[str, Any]:
        return {"errors": self._errors.T.copy(), "points": self._points.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._errors = state["errors"].T.copy()
        self._points.restore(state["points"])


def many_model(model: object, n_shops: int) -> ManyModel | None:
    """Return a new model in arrays for many shops; None where there is no such class."""
    if type(model) is PastOutcomes:
        return ManyPastOutcomes(model)
    if type(model) is not WithErrors:
        return None
    point_model = model.model
    if isinstance(point_model, LeastSquares) and len(point_model.lags) > MAX_FEATURES:
        return None  # it leaves some of them out
    if type(point_model) is LastValue:
        return ManyWithErrors(n_shops, model, ManyLastValues())
    if type(point_model) is LeastSquares or type(point_model) is SeasonalRegression:
        return ManyWithErrors(n_shops, model, ManyRegressions(n_shops, point_model))
    return None
