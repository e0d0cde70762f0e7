r"""A regression that finds its seasons: how long ago the outcomes were that tell the next.

    SeasonalRegression(1)      half hours of demand: lags 1 to 12, 48 (a day) and 336 (a week)

A context may name the hour, and still not say that today follows yesterday, and this Monday the
last one. The regression of ``least_squares`` can use outcomes of a season ago if it is told how
long a season is. This model reads it off the outcomes: from the autocorrelation of their
differences,

    r_k = sum_t z_t z_(t+k) / sum_t z_t^2,      z_t = y_(t+1) - y_t, less its mean,

summed over the coordinates of y. A season is a k with a local maximum of r_k, above
``MIN_AUTOCORRELATION`` and above ``DEVIATIONS`` / sqrt(n), the deviations of r_k where nothing is
correlated (Bartlett 1946, doi:10.2307/2983611). The first season is the shortest one whose r_k is
nearly the greatest; the second is the one of the greatest r_k among those at least twice as long,
where this is nearly the greatest, too.

It looks for seasons whenever the rounds have grown by ``GROWTH``. If they have changed, a new
regression learns all remembered rounds at once.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.forecaster.models.least_squares import MAX_FEATURES, LeastSquares
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.validation import check_positive, check_rate, check_whole
from regretless.market.records import RoundFeedback

MAX_HISTORY = 1024  # rounds that are remembered
FIRST_SEARCH = 48  # rounds before seasons are looked for
GROWTH = 1.25
MIN_AUTOCORRELATION = 0.2
DEVIATIONS = 4.0
MISSING = -1.0  # the statistics, in [0, 1] elsewhere, of a round whose outcome is missing
NEARLY = 0.9  # of the greatest autocorrelation
MAX_SHARE = 0.5  # of the remembered rounds that a season may last


def _with_row(table: Any, place: int, row: Any) -> Any:
    """Return the last ``MAX_HISTORY`` rows of a table with one more row at a place."""
    return np.concatenate((table[:place], row[None], table[place:]))[-MAX_HISTORY:]


def find_seasons(outcomes: Array) -> list[int]:
    """Return at most two seasons, in rounds, of a series of outcomes (T, d); the shorter one first.

    A series of less than two rounds has none.

    Examples
    --------
    >>> rounds = np.arange(120)
    >>> find_seasons(np.sin(2 * np.pi * rounds / 7)[:, None])  # two weeks tell as much as one
    [7, 14]
    >>> find_seasons(rounds[:, None] / 120)  # a trend has none
    []
    """
    if len(outcomes) < 2:
        return []
    changes = np.diff(outcomes, axis=0)
    changes = changes - changes.mean(0)
    n_changes = len(changes)
    spectrum = np.abs(np.fft.rfft(changes, 2 * n_changes, axis=0)) ** 2
    autocovariance = np.fft.irfft(spectrum, axis=0)[:n_changes].sum(1)
    if autocovariance[0] <= 1e-12:
        return []
    autocorrelation = autocovariance / autocovariance[0]
    longest = int(MAX_SHARE * n_changes)
    lags = np.arange(2, longest)
    least = max(MIN_AUTOCORRELATION, DEVIATIONS / np.sqrt(n_changes))
    is_season = autocorrelation[lags] > least
    is_season &= autocorrelation[lags] > autocorrelation[lags - 1]
    is_season &= autocorrelation[lags] >= autocorrelation[lags + 1]
    candidates = lags[is_season]
    if not len(candidates):
        return []
    nearly_greatest = NEARLY * autocorrelation[candidates].max()
    strong = candidates[autocorrelation[candidates] >= nearly_greatest]
    first = int(strong[0])
    longer = strong[strong >= 2 * first]
    if not len(longer):
        return [first]
    return [first, int(longer[autocorrelation[longer].argmax()])]


@register.forecaster("seasonal-regression")
class SeasonalRegression(Model):
    """Least squares from the context, the last outcomes, and those of seasons that it finds itself.

    ``lags``, ``forgetting`` and ``ridge`` are as in ``LeastSquares``. Without a season it is that
    regression.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("_seasons", "_statistics", "_outcomes", "_contexts", "_has_feature", "_names"),
        "_next_search",
    )

    def __init__(
        self, size: int, *, lags: int = 12, forgetting: float = 0.99, ridge: float = 1e-4
    ) -> None:
        super().__init__(size)
        self.lags = check_whole("lags", lags, least=0, most=MAX_FEATURES)
        self.forgetting = check_rate("forgetting", forgetting)
        self.ridge = check_positive("ridge", ridge)
        self._seasons: list[int] = []
        self._regression = self._new_regression()
        # The last rounds, the newest last: statistics (m, n), outcomes (m, d) that they are of, or
        # again the statistics where it observes none, and contexts (m, f) by the names of their
        # features, 0 where a round did not have one. Where the outcome is missing the statistics
        # are ``MISSING``, and the outcome is the forecast of it.
        self._statistics = np.zeros((0, size))
        self._outcomes = np.zeros((0, 0))
        self._contexts = np.zeros((0, 0))
        self._has_feature = np.zeros((0, 0), dtype=bool)
        self._names: list[str] = []
        self._next_search = FIRST_SEARCH

    @property
    def seasons(self) -> list[int]:
        """The seasons that it has found, in rounds."""
        return list(self._seasons)

    def _new_regression(self) -> LeastSquares:
        return LeastSquares(
            self.size,
            lags=self.lags,
            season=self._seasons,
            forgetting=self.forgetting,
            ridge=self.ridge,
        )

    def opened(self) -> Any:
        return self._regression.opened()

    def reopen(self, x: object, opened: Any) -> None:
        self._open_features = features(x)
        self._regression.ahead = self.ahead
        self._regression.reopen(x, opened)

    def _predicted(self, x: object) -> Array:
        self._open_features = features(x)
        self._regression.ahead = self.ahead
        return self._regression.point(x)

    def _learn(self, statistics: Array) -> None:
        observed = statistics if self._outcome is None else self._outcome
        self._outcome = None
        self._regression.newer = self.newer
        self._regression.learn_checked(statistics, observed)
        self._remember(statistics, observed, self._open_features)
        if self.time + 1 >= self._next_search:
            self._next_search = int(GROWTH * (self.time + 1)) + 1
            self._search()

    def skip_round(self, x: object = None) -> None:
        if not self.time:
            return
        stand_in = self.point(x)
        self._regression.newer = self.newer
        self._regression.skip_round_as(stand_in)
        self._remember(np.full(self.size, MISSING), stand_in, {})

    def _remember(self, statistics: Array, outcome: Array, context: Mapping[str, float]) -> None:
        """Remember a round, before the ``newer`` latest ones."""
        if not self.time:
            self._outcomes = np.zeros((0, len(outcome)))
        new_names = [name for name in context if name not in self._names]
        if new_names:
            self._names += new_names
            new_columns = ((0, 0), (0, len(new_names)))
            self._contexts = np.pad(self._contexts, new_columns)
            self._has_feature = np.pad(self._has_feature, new_columns)
        row = np.zeros(len(self._names))
        has_feature = np.zeros(len(self._names), dtype=bool)
        for column, name in enumerate(self._names):
            value = context.get(name, np.nan)
            if isfinite(value):
                row[column] = value
                has_feature[column] = True
        place = max(len(self._outcomes) - self.newer, 0)
        self._statistics = _with_row(self._statistics, place, statistics)
        self._outcomes = _with_row(self._outcomes, place, outcome)
        self._contexts = _with_row(self._contexts, place, row)
        self._has_feature = _with_row(self._has_feature, place, has_feature)

    def _search(self) -> None:
        """Look for seasons; if there are others than before, learn all remembered rounds again."""
        seasons = find_seasons(self._outcomes)
        if seasons == self._seasons:
            return
        self._seasons = seasons
        lead = max(self._regression.ahead, 0)
        self._regression = self._new_regression()
        self._regression.ahead = lead
        opened = []
        for round_index in range(len(self._outcomes) + lead):
            if round_index < len(self._outcomes):
                self._regression.open_round(self._context_of(round_index))
                opened.append(self._regression.opened())
            learned_round = round_index - lead  # later outcomes were not known to the open round
            if learned_round < 0:
                continue
            statistics = self._statistics[learned_round]
            outcome = self._outcomes[learned_round]
            if statistics[0] == MISSING:
                self._regression.skip_round_as(outcome)
                continue
            context = self._context_of(learned_round)
            self._regression.reopen(context, opened[learned_round])
            self._regression.observe(RoundFeedback(statistics, outcome))

    def _context_of(self, round_index: int) -> dict[str, float]:
        """Return the features that a remembered round had."""
        context = {}
        columns = np.flatnonzero(self._has_feature[round_index]).tolist()
        for column in columns:
            context[self._names[column]] = float(self._contexts[round_index, column])
        return context

    def state(self) -> dict[str, Any]:
        return super().state() | {"regression": self._regression.state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._regression = self._new_regression()
        self._regression.restore(state["regression"])
