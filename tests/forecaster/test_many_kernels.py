"""The kernels that serve many shops at once beside the same formulas in NumPy, shop by shop.

``test_many_shops.py`` compares whole servers.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from regretless.forecaster.models.recalibration import (
    N_CELLS,
    N_LEVELS,
    RATE,
    add_limit,
    add_outcome,
    levels_of,
    write_recalibrated,
)
from regretless.forecaster.models.with_errors import ROUNDS_OF_ALL
from regretless.forecaster.online import many_bases, many_games, many_mixtures, many_models
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.randomness import stream

SHOPS = 5
LOSSES = 2
ACTIONS = 3
MODELS = 2
SIZE = 4  # numbers of a prediction
KEPT_SHARE = 0.8
NO_ROUND = -1

each_seed = pytest.mark.parametrize("seed", [1, 2])


@each_seed
def test_statistics_are_means_of_outcomes_and_of_distances_from_knots(seed: int) -> None:
    """Shops have fewer knots than there is room for; the last one has none."""
    rng = stream(seed, "statistics")
    n_knots = np.array([3, 2, 3, 1, 0])
    knots = np.sort(rng.random((SHOPS, 3)), axis=1)
    distances = np.maximum(knots, 1 - knots)
    outcomes = np.round(rng.random((SHOPS, 7)), 1)
    outcomes[0, :2] = knots[0, :2]  # on a knot
    weights = rng.random((SHOPS, 7))
    weights[:, 3] = 0.0
    starts = np.array([0, 4, 7])
    for first, end in [(0, 4), (4, 7)]:
        weights[:, first:end] /= weights[:, first:end].sum(1, keepdims=True)
    means = np.full((SHOPS, MODELS, SIZE), np.nan)

    many_bases._write_statistics(
        outcomes, weights, starts, knots, distances, 1 + n_knots, means, 0, SHOPS
    )

    for shop in range(SHOPS):
        for model, (first, end) in enumerate([(0, 4), (4, 7)]):
            y = outcomes[shop, first:end]
            own_knots = knots[shop, : n_knots[shop]]
            far = np.abs(y[:, np.newaxis] - own_knots) / distances[shop, : n_knots[shop]]
            expected = np.zeros(SIZE)
            statistics = np.column_stack([y, far])
            expected[: 1 + n_knots[shop]] = weights[shop, first:end] @ statistics
            assert means[shop, model] == pytest.approx(expected, abs=1e-14)


class Games(NamedTuple):
    """Coefficients of every shop's losses; coarse, so that some expected losses are equal."""

    offset: Array  # (S, K, A)
    weights: Array  # (S, K, n, A)

    def expected(self, points: Array) -> Array:
        """Return expected losses (S, K, A) at a prediction (S, n) for each shop."""
        return np.asarray(self.offset + np.einsum("skia,si->ska", self.weights, points))


def draw_games(rng: np.random.Generator) -> Games:
    games = Games(
        rng.integers(0, 3, (SHOPS, LOSSES, ACTIONS)) / 8,
        rng.integers(-2, 3, (SHOPS, LOSSES, SIZE, ACTIONS)) / 8,
    )
    for coefficients in games:
        coefficients[0] = coefficients[0, ..., :1]  # all actions of the first shop are alike
    return games


@each_seed
def test_shops_expect_losses_and_respond_by_their_own_coefficients(seed: int) -> None:
    rng = stream(seed, "games")
    games = draw_games(rng)
    points = rng.integers(0, 9, (SHOPS, MODELS, SIZE)) / 8
    expected = np.empty((SHOPS, LOSSES, ACTIONS))
    actions = np.empty((SHOPS, LOSSES, MODELS), dtype=np.intp)

    many_games.write_expected(*games, points[:, 0].copy(), expected, 0, SHOPS)
    many_games._write_best_actions(*games, points, actions, 0, SHOPS)

    assert expected == pytest.approx(games.expected(points[:, 0]), abs=1e-15)
    for model in range(MODELS):
        best = games.expected(points[:, model]).argmin(2)
        assert np.array_equal(actions[:, :, model], best)


@each_seed
@pytest.mark.parametrize("squared", [False, True])
def test_gains_of_a_round_are_those_of_the_formula_of_each_shop(
    seed: int, *, squared: bool
) -> None:
    rng = stream(seed, "charges")
    games = draw_games(rng)
    scale = 0.2 + 0.3 * rng.random((SHOPS, LOSSES))  # so small that some gains are cut
    points = rng.random((SHOPS, SIZE))
    statistics = rng.random((SHOPS, SIZE))
    played = rng.integers(0, ACTIONS, (SHOPS, LOSSES))
    suggested = rng.integers(0, ACTIONS, (SHOPS, LOSSES, MODELS))
    is_charged = np.array([True, False, True, True, True])
    sums_before = rng.normal(size=(5, SHOPS, LOSSES, ACTIONS, ACTIONS + MODELS))
    sums = sums_before.copy()
    greatest = np.zeros((SHOPS, LOSSES, ACTIONS))
    excess = np.zeros(SHOPS)
    slopes = np.zeros((SHOPS, SIZE))

    many_games._charge(
        *games, scale, points, statistics, played, suggested, is_charged, squared, sums, greatest,
        excess, slopes, 0, SHOPS,
    )  # fmt: skip

    plays = played[..., np.newaxis] == np.arange(ACTIONS)  # (S, K, A)
    plays &= is_charged[:, np.newaxis, np.newaxis]
    actions = np.broadcast_to(np.arange(ACTIONS), (SHOPS, LOSSES, ACTIONS))
    comparators = np.concatenate([actions, suggested], axis=2)  # (S, K, C)
    value = np.einsum("skia,si->ska", games.weights, points - statistics)
    realised = games.expected(statistics)
    value_gap = np.take_along_axis(value, comparators, 2)
    value_gap = value_gap - np.take_along_axis(value, played[..., np.newaxis], 2)
    regret = np.take_along_axis(realised, played[..., np.newaxis], 2)
    regret = regret - np.take_along_axis(realised, comparators, 2)
    width = scale[..., np.newaxis]
    gain = np.maximum(np.minimum(value_gap, regret), -width) / width
    margin = gain - regret / width
    size = gain**2 if squared else np.abs(gain)
    added = np.array([gain, size, gain**2, gain**2, margin])
    expected_sums = sums_before + plays[..., np.newaxis] * added[:, :, :, np.newaxis]
    assert sums == pytest.approx(expected_sums, abs=1e-13)
    expected_greatest = np.where(plays, np.maximum(expected_sums[0].max(3), 0.0), 0.0)
    assert greatest == pytest.approx(expected_greatest, abs=1e-13)
    assert excess == pytest.approx(-(plays * value).sum((1, 2)), abs=1e-13)
    assert slopes == pytest.approx(np.einsum("ska,skia->si", plays, games.weights), abs=1e-13)


@each_seed
def test_mixtures_are_of_models_and_the_lattice_and_are_recalibrated(seed: int) -> None:
    rng = stream(seed, "mixtures")
    n_outcomes = 5
    n_even = 4
    starts = np.array([0, 2, n_outcomes])
    outcomes = rng.random((SHOPS, n_outcomes + n_even))
    weights = rng.random((SHOPS, n_outcomes))
    shares = rng.dirichlet(np.ones(MODELS), SHOPS)
    share_of_lattice = rng.random(SHOPS)
    share_of_lattice[0] = 0.0
    levels = levels_of(rng.random((SHOPS, N_LEVELS)))
    probability = np.empty((SHOPS, N_CELLS + 2))
    mixed = np.empty(outcomes.shape)

    many_mixtures._write_mixtures(
        outcomes, weights, starts, shares, share_of_lattice, levels, probability, mixed, 0, SHOPS
    )

    shares_of_outcomes = np.repeat(shares, np.diff(starts), axis=1)
    of_models = (1 - share_of_lattice[:, np.newaxis]) * shares_of_outcomes * weights
    of_lattice = np.repeat(share_of_lattice[:, np.newaxis] / n_even, n_even, axis=1)
    mixture = np.concatenate([of_models, of_lattice], axis=1)
    for shop in range(SHOPS):
        expected_probability = np.empty(N_CELLS + 2)
        expected = np.empty(n_outcomes + n_even)
        write_recalibrated(
            outcomes[shop], mixture[shop], levels[shop], expected_probability, expected
        )
        assert mixed[shop] == pytest.approx(expected, abs=1e-14)
        assert probability[shop] == pytest.approx(expected_probability, abs=1e-14)


def test_outcomes_and_limits_are_counted_for_the_shops_that_learn() -> None:
    rng = stream(1, "outcomes")
    probability = np.sort(rng.random((SHOPS, N_CELLS + 2)), axis=1)
    outcomes = rng.random(SHOPS)
    limits = np.array([np.nan, 0.3, np.nan, 0.7, np.nan])
    is_learned = np.array([True, True, False, True, True])
    seen = rng.random((SHOPS, N_LEVELS))
    expected = seen.copy()
    for shop in range(SHOPS):
        if not is_learned[shop]:
            continue
        if np.isnan(limits[shop]):
            add_outcome(outcomes[shop], probability[shop], 1 - RATE, 1.0, expected[shop])
        else:
            add_limit(limits[shop], probability[shop], 1 - RATE, 1.0, expected[shop])

    many_mixtures._add_outcomes(outcomes, limits, probability, is_learned, seen, 0, SHOPS)

    assert np.array_equal(seen, expected)


class PastRounds(NamedTuple):
    """Learned rounds of shops, each of one of two seasons; the first shop has learned none."""

    seasons: Indices  # (S, room)
    times: Integers  # (S,), how many there are
    newest_of_season: Integers  # (S,), of the open round's season; -1 for none
    earlier: Integers  # (S, room), the round of the same season before each

    def of_open_season(self, shop: int, season: int) -> list[int]:
        """Return a shop's rounds of a season, the newest first."""
        learned = self.seasons[shop, : self.times[shop]]
        return np.flatnonzero(learned == season)[::-1].tolist()


OPEN_SEASON = 1


def draw_past_rounds(rng: np.random.Generator) -> PastRounds:
    room = 9
    times = np.array([0, 1, 4, 9, 9])
    seasons = rng.integers(0, 2, (SHOPS, room))
    seasons[1] = OPEN_SEASON  # a shop whose only round was of the open season
    seasons[4] = 0  # and one that has not seen it
    rounds = PastRounds(seasons, times, np.full(SHOPS, NO_ROUND), np.full((SHOPS, room), NO_ROUND))
    for shop in range(SHOPS):
        for season in range(2):
            newest_first = rounds.of_open_season(shop, season)
            for newer, older in pairwise(newest_first):
                rounds.earlier[shop, newer] = older
            if season == OPEN_SEASON and newest_first:
                rounds.newest_of_season[shop] = newest_first[0]
    return rounds


@each_seed
@pytest.mark.parametrize("seasonal", [False, True])
def test_past_outcomes_count_less_the_older_they_are(seed: int, *, seasonal: bool) -> None:
    """Of the season alone, where it has any; else the newest round, or one half before any."""
    rng = stream(seed, "past outcomes")
    rounds = draw_past_rounds(rng)
    past = rng.random(rounds.seasons.shape)
    count = 4
    outcomes = np.empty((SHOPS, count))
    weights = np.empty((SHOPS, count))

    many_models._write_past_outcomes(
        past, rounds.times, rounds.newest_of_season, rounds.earlier, seasonal, KEPT_SHARE,
        outcomes, weights, 0, SHOPS,
    )  # fmt: skip

    for shop in range(SHOPS):
        newest_first = list(range(rounds.times[shop]))[::-1]
        if seasonal:
            newest_first = rounds.of_open_season(shop, OPEN_SEASON) or newest_first[:1]
        newest_first = newest_first[:count]
        expected_outcomes = np.full(count, 0.5)
        expected_outcomes[: len(newest_first)] = past[shop, newest_first]
        expected_weights = np.zeros(count)
        expected_weights[: max(len(newest_first), 1)] = KEPT_SHARE ** np.arange(
            max(len(newest_first), 1)
        )
        assert outcomes[shop] == pytest.approx(expected_outcomes, abs=1e-15)
        assert weights[shop] == pytest.approx(expected_weights / expected_weights.sum(), abs=1e-15)


@each_seed
def test_forecasts_carry_the_last_errors_of_all_and_of_the_season(seed: int) -> None:
    rng = stream(seed, "carried errors")
    rounds = draw_past_rounds(rng)
    forecasts = rng.random(SHOPS)
    errors = rng.normal(0.0, 0.4, rounds.seasons.shape)
    window, window_of_season, take_over = 4, 2, 6
    outcomes = np.empty((SHOPS, window + window_of_season + 1))
    weights = np.empty(outcomes.shape)

    many_models._write_with_errors(
        forecasts, errors, rounds.times, rounds.newest_of_season, rounds.earlier, window,
        window_of_season, take_over, outcomes, weights, 0, SHOPS,
    )  # fmt: skip

    for shop in range(SHOPS):
        of_all = list(range(rounds.times[shop]))[-window:]
        of_season = rounds.of_open_season(shop, OPEN_SEASON)[:window_of_season]
        share = min(rounds.times[shop] / take_over, 1.0)
        share_of_season = share * len(of_season) / (len(of_season) + ROUNDS_OF_ALL)
        weight_of_atom = {(forecasts[shop], -1): 1 - share}
        for t in of_all:
            weight_of_atom[forecasts[shop] + errors[shop, t], 0] = (share - share_of_season) / len(
                of_all
            )
        for t in of_season:
            weight_of_atom[forecasts[shop] + errors[shop, t], 1] = share_of_season / len(of_season)
        carries = weights[shop] > 0.0
        carries[-1] = True  # without an error, with weight 0 in the end
        atoms = sorted(zip(outcomes[shop, carries], weights[shop, carries], strict=True))
        expected = sorted(
            (float(np.clip(outcome, 0.0, 1.0)), weight)
            for (outcome, _), weight in weight_of_atom.items()
        )
        assert np.array(atoms) == pytest.approx(np.array(expected), abs=1e-15)


@each_seed
def test_a_round_is_added_to_the_regressions_of_the_shops_that_learn(seed: int) -> None:
    rng = stream(seed, "regressions")
    features = rng.normal(size=(SHOPS, 3))
    targets = rng.normal(size=SHOPS)
    is_learned = np.array([True, False, True, True, False])
    gram_before = rng.normal(size=(SHOPS, 3, 3))
    cross_before = rng.normal(size=(SHOPS, 3))
    gram = gram_before.copy()
    cross = cross_before.copy()

    many_models._add_to_regressions(features, targets, is_learned, 0.9, gram, cross, 0, SHOPS)

    new_gram = 0.9 * gram_before + np.einsum("si,sj->sij", features, features)
    new_cross = 0.9 * cross_before + features * targets[:, np.newaxis]
    learns = is_learned[:, np.newaxis]
    assert gram == pytest.approx(np.where(learns[..., np.newaxis], new_gram, gram_before))
    assert cross == pytest.approx(np.where(learns, new_cross, cross_before))
