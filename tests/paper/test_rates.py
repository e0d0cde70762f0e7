"""The table `rates` at a small size: theorems on every row, slopes on data with a known one."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from scipy.stats import linregress

from paper import rates
from paper.rates import THEORY, slope, slopes, verdict

pytestmark = pytest.mark.slow

EXACT, COARSE = "linear", "exponential of ln y"
ROUNDS, FIRST = 800, 100
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    done: list[int] = []
    instances = [(family, stream) for family in (EXACT, COARSE) for stream in rates.STREAMS]
    short = partial(rates.one_run, first=FIRST)
    small = replace(rates.TABLES["rates"], rows=short, instances=lambda: instances)
    measured = small.measure(rounds=ROUNDS, seeds=1, jobs=1, progress=done.append)
    assert done == [1, 2, 3, 4]
    return measured


def power_law(exponents: list[float], *, scale: float = 1.0, floor: float = 0.0) -> pd.DataFrame:
    """Return a table of one family and stream whose linear part is an exact power of T."""
    rows = [
        {"seed": seed, "rounds": T, "linear_regret": scale * T**exponent, "floor": floor}
        for seed, exponent in enumerate(exponents)
        for T in (1000, 2000, 4000, 8000)
    ]
    made = pd.DataFrame(rows).assign(family=EXACT, stream="iid", above=0)
    made["decision_swap_regret"] = made["linear_regret"] + floor
    made["bound_from_bias"] = 2 * made["decision_swap_regret"]
    made["bound"] = 3 * made["rounds"] ** -0.5 + floor
    return made


def test_regret_is_below_both_bounds_in_every_row(table: pd.DataFrame) -> None:
    regret = table["decision_swap_regret"]
    assert (regret <= table["bound"]).all()
    assert (regret <= table["bound_from_bias"] + ROUNDING).all()
    assert (table["above"] == 0).all()  # every other agent, too
    assert (table["certificate_sum"] <= 0.1 * np.sqrt(table["rounds"])).all()


def test_the_linear_part_differs_by_at_most_the_floor(table: pd.DataFrame) -> None:
    """In an exact basis they are one; in the other they differ, and by no more than 2 delta."""
    apart = (table["linear_regret"] - table["decision_swap_regret"]).abs()
    exact = table["family"] == EXACT
    assert (table.loc[exact, "floor"] == 0).all()
    assert (table.loc[~exact, "floor"] > 0).all()
    assert (apart <= table["floor"] + ROUNDING).all()
    assert (apart[~exact] > ROUNDING).any()


def test_one_run_gives_every_horizon(table: pd.DataFrame) -> None:
    """What a run has played at round T is the run of T rounds."""
    short = rates.one_run((COARSE, "adaptive"), 200, 0, first=200)
    cell = table[(table["family"] == COARSE) & (table["stream"] == "adaptive")]
    same = cell[cell["rounds"] == 200].drop(columns="milliseconds").reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.DataFrame(list(short)).drop(columns="milliseconds"), same)


@pytest.mark.parametrize("known", [-0.5, -0.25, -1.0])
def test_a_known_slope_is_found(known: float) -> None:
    horizons = np.array([1000.0, 2000, 4000, 8000])
    assert slope(horizons, 0.7 * horizons**known) == pytest.approx(known)
    noisy = horizons**known * np.exp(np.random.default_rng(0).normal(0, 0.2, 4))
    oracle = linregress(np.log(horizons), np.log(noisy)).slope
    assert slope(horizons, noisy) == pytest.approx(oracle)


@pytest.mark.parametrize(
    ("exponents", "told"),
    [
        ([-0.6, -0.61, -0.6], "as fast"),
        ([-0.5, -0.51, -0.49], "not ruled out"),
        ([-0.9, 0.1], "undecided"),
        ([-0.3, -0.31, -0.3], "slower"),
        ([-0.7], "no interval"),
    ],
)
def test_verdicts(exponents: list[float], told: str) -> None:
    ((_, fit),) = slopes(power_law(exponents)).iterrows()
    assert fit["verdict"] == told
    assert fit["no_worse"] == (told in {"as fast", "not ruled out", "undecided"})
    assert verdict({"slope": fit["slope"], "low": fit["low"], "high": fit["high"]}) == told


def test_a_floor_bends_the_regret_and_not_its_linear_part() -> None:
    """The bound less the floor falls like the theory."""
    ((_, fit),) = slopes(power_law([-0.5] * 3, floor=0.05)).iterrows()
    assert fit["linear_slope"] == pytest.approx(-0.5)
    assert fit["slope"] > -0.3
    assert fit["bound_slope"] == pytest.approx(THEORY)
    assert fit["paper"] == -0.5


def test_table_slopes_and_figure_are_written(table: pd.DataFrame, tmp_path: Path) -> None:
    rows, fits, figure = rates.TABLES["rates"].write(table, tmp_path / "rates")
    names = ["rates.csv", "rates.png", "slopes.csv"]
    assert sorted(path.name for path in rows.parent.iterdir()) == names
    pd.testing.assert_frame_equal(pd.read_csv(rows), table, check_exact=False)
    written = pd.read_csv(fits)
    assert {"family", "stream", "slope", "low", "high", "theory"} <= set(written.columns)
    assert len(written) == 2 * len(rates.STREAMS)
    assert (written["verdict"] == "no interval").all()  # one seed
    picture = imread(figure)
    assert picture.ndim == 3
    assert picture[..., :3].std() > 0.05
