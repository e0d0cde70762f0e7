"""Forecasts of y become E s(y): right where they are right, mended where they are not."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from regretless.forecaster.bases import MonomialBasis
from regretless.forecaster.models.outcomes import WINDOW, ColumnForecast
from regretless.market.core.errors import UserError

BASIS = MonomialBasis(2, 2)  # y_1, y_2, their squares and their product
NORMAL = {0.1: -1.2816, 0.3: -0.5244, 0.5: 0.0, 0.7: 0.5244, 0.9: 1.2816}


def drawn(rng: np.random.Generator, centre: Any, rounds: int = 1) -> Any:
    """Draw outcomes about a centre, correlated, with deviation 0.1."""
    first, other = rng.normal(size=(2, rounds))
    return np.column_stack([first, 0.8 * first + 0.6 * other]) * 0.1 + centre


@cache
def expected(*centre: float) -> Any:
    """E s(y) by Monte Carlo; every model is played the same centres."""
    outcomes = drawn(np.random.default_rng(9), np.array(centre), 200_000)
    return BASIS.transform(np.clip(outcomes, 0, 1)).mean(0)


def played(player: ColumnForecast, context: Any) -> tuple[Any, Any]:
    """Return predictions and what was expected, after the first 100 rounds."""
    rng = np.random.default_rng(1)
    told, wanted = [], []
    for t in range(2000):
        centre = np.array([0.5 + 0.2 * np.sin(t), 0.5 + 0.2 * np.cos(t)])
        told.append(player.predict(context(centre)).statistics)
        outcome = drawn(rng, centre)[0]
        if t >= 100:
            wanted.append(expected(*centre) if t % 50 == 0 else np.full(BASIS.size, np.nan))
        player.observe_outcome(outcome)
        player.update(BASIS.transform(outcome))
    kept = ~np.isnan(np.array(wanted)[:, 0])
    return np.array(told)[100:][kept], np.array(wanted)[kept]


# The mean of 64 draws errs by 0.1 / 8 in a coordinate, and by less in products of two below 1.
NOISE = 0.1 / np.sqrt(WINDOW)


def test_a_point_forecast_becomes_the_mean_over_its_residuals() -> None:
    player = ColumnForecast(BASIS, columns=["a", "b"])
    told, wanted = played(player, lambda centre: {"a": centre[0], "b": centre[1]})
    assert np.abs(told - wanted).max() < 3.5 * NOISE
    assert np.abs((told - wanted).mean(0)).max() < NOISE
    # The point itself would miss the variance, 0.01, in squares and in the product.
    assert np.sqrt(((told - wanted) ** 2).mean()) < 1.2 * NOISE


def test_a_biased_point_is_mended() -> None:
    player = ColumnForecast(BASIS, columns=["a", "b"])
    told, wanted = played(player, lambda centre: {"a": centre[0] - 0.2, "b": centre[1] + 0.1})
    assert np.abs((told - wanted).mean(0)).max() < NOISE


def quantiles(centre: Any, width: float) -> dict[str, float]:
    pairs = zip("ab", centre, strict=True)
    return {f"{n}{level}": c + width * z for n, c in pairs for level, z in NORMAL.items()}


@pytest.mark.parametrize("width", [0.005, 0.1, 0.3], ids=["too sure", "right", "too wide"])
def test_quantiles_are_mended(width: float) -> None:
    columns = [[f"{name}{level}" for level in NORMAL] for name in "ab"]
    player = ColumnForecast(BASIS, columns=columns, levels=list(NORMAL))
    told, wanted = played(player, lambda centre: quantiles(centre, width))
    assert np.abs((told - wanted).mean(0)).max() < NOISE
    assert np.sqrt(((told - wanted) ** 2).mean()) < 1.2 * NOISE


def test_samples_are_mended() -> None:
    """Twenty equally likely outcomes that are drawn too near their centre."""
    columns = [[f"{name}{i}" for i in range(20)] for name in "ab"]
    player, rng = ColumnForecast(BASIS, columns=columns), np.random.default_rng(5)

    def context(centre: Any) -> dict[str, float]:
        rows = centre + (drawn(rng, 0.0, 20)) * 0.3
        return {f"{name}{i}": rows[i, j] for j, name in enumerate("ab") for i in range(20)}

    told, wanted = played(player, context)
    assert np.abs((told - wanted).mean(0)).max() < NOISE


def test_a_forecast_is_believed_at_first() -> None:
    centre = np.array([0.4, 0.6])
    point = ColumnForecast(BASIS, columns=["a", "b"])
    assert point.predict({"a": 0.4, "b": 0.6}).statistics == pytest.approx(BASIS.transform(centre))
    columns = [[f"{name}{level}" for level in NORMAL] for name in "ab"]
    wide = ColumnForecast(BASIS, columns=columns, levels=list(NORMAL))
    told = wide.predict(quantiles(centre, 0.1)).statistics
    independent = np.clip(centre + 0.1 * np.random.default_rng(0).normal(size=(50_000, 2)), 0, 1)
    assert told == pytest.approx(BASIS.transform(independent).mean(0), abs=0.005)
    samples = ColumnForecast(BASIS, columns=[["a", "c"], ["b", "d"]])
    told = samples.predict({"a": 0.1, "b": 0.9, "c": 0.7, "d": 0.2}).statistics
    assert told == pytest.approx(BASIS.transform([[0.1, 0.9], [0.7, 0.2]]).mean(0))


@pytest.mark.parametrize(
    ("columns", "levels", "message"),
    [
        (["a"], None, r"columns is \[\['a'\]\]; give 2 outcomes"),
        ([], None, r"columns is \[\]; give 2 outcomes"),
        ([["a"], ["b", "c"]], None, "each as many, one per level"),
        ([["a", "b"], ["c", "d"]], [0.9, 0.1], "ascending"),
        (["a", "b"], [0.5], "at least two"),
    ],
)
def test_columns_and_levels_must_fit(columns: Any, levels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ColumnForecast(BASIS, columns=columns, levels=levels)


def test_a_column_that_is_missing_is_named() -> None:
    player = ColumnForecast(BASIS, columns=["hi", "lo"])
    with pytest.raises(UserError, match="no feature 'lo' in the context; did you mean 'low'"):
        player.predict({"hi": 0.1, "low": 0.2})
    with pytest.raises(UserError, match="feature 'lo' is nan"):
        player.predict({"hi": 0.1, "lo": np.nan})
