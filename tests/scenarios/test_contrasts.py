"""What is made of a study's runs: values, effects, contrasts, regressions, and sensitivities.

By hand, at published values, and at answers that were planted.
"""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from small_scenarios import NATURE_SCENARIO, write_study
from statsmodels.stats.multitest import multipletests

from regretless.market.core.errors import UserError
from regretless.market.regret.inference import critical, holm
from regretless.scenarios.studies import sampling as drawn
from regretless.scenarios.studies.analysis import contrasts, measures
from regretless.scenarios.studies.analysis.parameters import parted, regression_table
from regretless.scenarios.studies.answers import print_summary, sign_notes
from regretless.scenarios.studies.conduct import Options, conduct

SEEDS = 10
RNG = np.random.default_rng(11)
BEGUN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def begin() -> None:
    """Draw the same numbers, whichever tests were played before."""
    RNG.bit_generator.state = BEGUN


def runs_of(grid: dict[str, list[Any]], seeds: int = SEEDS) -> pd.DataFrame:
    """Return the parameters of a study: all settings of a grid with as many seeds."""
    rows = [
        dict(zip(grid, values, strict=True)) | {"seed": seed}
        for values in itertools.product(*grid.values())
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows).rename_axis("run").reset_index()


def table_of_cohorts(parameters: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """Return a table of cohorts, a row for each run, with these measures."""
    rows = pd.DataFrame({"run": parameters["run"], "cohort": "a", "agents": 1} | columns)
    return rows.reindex(columns=measures.COHORT_COLUMNS)


def test_the_value_of_a_forecast_by_hand() -> None:
    """Differences 1, 2, 6 at size 10; at size 20 a run is missing and its partner is left out."""
    key = "forecaster.kind"
    parameters = runs_of({key: ["running-mean", "decision-swap"], "size": [10, 20]}, 3)
    welfare = [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 2.0, 3.0, 7.0, 4.0, 8.0, np.nan]
    rows = table_of_cohorts(parameters, welfare_mean=welfare)
    table = measures.value_table(rows.drop(index=11), parameters)
    assert table[["cohort", "size", "baseline", "pairs"]].to_numpy().tolist() == [
        ["a", 10, "running-mean", 3],
        ["a", 20, "running-mean", 2],
    ]
    assert table["mean"].tolist() == [3.0, 1.0]
    half = 4.302652729911275 * np.sqrt(7.0) / np.sqrt(3.0)  # t with 2 degrees; variance (4+1+9)/2
    assert table[["low", "high"]].iloc[0].tolist() == pytest.approx([3 - half, 3 + half])
    for kinds in (["decision-swap"], ["running-mean", "constant"]):  # nothing to compare
        chosen_runs = parameters[parameters[key].isin(kinds)]
        assert list(measures.value_table(rows, chosen_runs)) == list(table)
        assert measures.value_table(rows, chosen_runs).empty


def test_effects_average_over_the_other_keys_by_seed() -> None:
    parameters = runs_of({"key": ["x", "y"], "size": [1, 2]}, 2)
    rows = table_of_cohorts(parameters, welfare_mean=[1.0, 2.0, 3.0, 6.0, 0.0, 0.0, 8.0, np.nan])
    effects = measures.effects_table(rows.drop(index=7), parameters)  # y, 2 and seed 1
    picked = effects[effects["measure"] == "welfare_mean"].set_index(["key", "value"])
    assert picked["seeds"].tolist() == [2, 1, 2, 1]
    assert picked["mean"].tolist() == [3.0, 4.0, 0.75, 5.5]
    assert picked["low"].isna().tolist() == [False, True, False, True]


def test_a_cohort_of_none_is_averaged_over_the_settings_that_have_it() -> None:
    parameters = runs_of({"other": ["a", "b"], "cohort.one.count": [0, 5]}, 2).drop(index=[3, 5, 7])
    always_there = table_of_cohorts(parameters, cohort="two", mean_loss=0.1 * parameters["run"])
    sometimes_there = table_of_cohorts(
        parameters[parameters["cohort.one.count"] == 5], cohort="one"
    )
    rows = pd.concat([always_there, sometimes_there.assign(mean_loss=[0.5, 0.7])])
    table = measures.effects_table(rows, parameters).query("measure == 'mean_loss'")
    by_cohort = table.set_index(["key", "value", "cohort"])[["seeds", "mean"]]
    assert by_cohort.loc[("other", "a", "one")].tolist() == [1, 0.5]
    assert by_cohort.loc[("cohort.one.count", "5", "one")].tolist() == [1, 0.6]
    assert ("cohort.one.count", "0", "one") not in by_cohort.index
    assert by_cohort.loc[("other", "a", "two")].tolist() == [1, 0.1]  # seed 1 lacks a run


def test_what_a_measure_of_ones_own_says_of_the_round_holds_for_all() -> None:
    agents = pd.DataFrame({"agent": [1, 2, 3], "cohort": ["a", "a", "b"]})
    rows = [("whole", "", np.nan, 4.0), ("one", "a", np.nan, 1.0), ("each", "", 3, 7.0)]
    table = pd.DataFrame(rows, columns=["measure", "cohort", "agent", "value"])
    expected = {"each": [-1.0, 7.0], "one": [1.0, -1.0], "whole": [4.0, 4.0]}
    assert measures.own_of(table, agents).fillna(-1).to_dict("list") == expected


def test_everybody_is_every_agent() -> None:
    rows = {"run": 0, "cohort": ["a", "b"], "mean_loss": [0.4, 0.8], "agents": [1, 3]}
    pooled = measures.with_everybody(pd.DataFrame(rows).reindex(columns=measures.COHORT_COLUMNS))
    row = pooled.set_index("cohort").loc[contrasts.EVERYBODY]
    assert row["mean_loss"] == pytest.approx(0.7)
    assert row["agents"] == 4
    assert np.isnan(row["swap_regret_mean"])


def test_an_interaction_is_a_difference_of_differences() -> None:
    """Noise of the seeds cancels, and so do effects of each key alone."""
    parameters = runs_of({"a": [0, 1, 2], "b": ["x", "y"], "c": [False, True]})
    a = parameters["a"].to_numpy()
    y = (parameters["b"] == "y").to_numpy()
    noise = RNG.normal(size=SEEDS)[parameters["seed"]] + RNG.normal(0, 1e-3, len(parameters))
    loss = 0.1 * a + 0.2 * y + 0.05 * a * y + 0.4 * parameters["c"] + noise
    table = contrasts.interactions_table(table_of_cohorts(parameters, mean_loss=loss), parameters)
    interactions = table[(table["key"] == "a") & (table["other_key"] == "b")].set_index("value")
    assert interactions["against"].tolist() == ["0", "0"]
    assert interactions["other_value"].tolist() == ["y", "y"]
    np.testing.assert_allclose(interactions["mean"], [0.05, 0.10], atol=2e-3)
    assert (interactions["simultaneous_low"] > 0).all()
    with_constant_key = table[table["other_key"] == "c"]
    assert len(with_constant_key) == 3  # a and c, b and c
    assert (with_constant_key["p_adjusted"] > 0.01).all()
    assert (with_constant_key["simultaneous_low"] < 0).all()


def test_a_family_is_tested_as_the_textbooks_say() -> None:
    """Student's tests and Schuirmann's two one-sided ones, by Holm's method, and Bonferroni's."""
    parameters = runs_of({"arm": ["one", "two", "none"]})
    names = ["mean_loss", "swap_regret_mean"]
    loss = RNG.normal([0.0, 0.02], [0.1, 0.01], (len(parameters), 2))
    rows = table_of_cohorts(
        parameters, **dict(zip(names, loss.T, strict=True)), welfare_mean=-loss[:, 0]
    )
    rules = contrasts.Rules(controls={"arm": "none"}, margin=0.05)
    family = contrasts.contrasts_table(rows, parameters, rules=rules)
    compared = family[["key", "value", "against", "seeds"]].to_numpy().tolist()
    assert compared == [["arm", arm, "none", SEEDS] for arm in ("one", "two") for _ in range(3)]
    arms = rows[family["measure"].unique()].to_numpy().reshape(3, SEEDS, 3)
    differences = np.concatenate([arms[0] - arms[2], arms[1] - arms[2]], axis=1)
    np.testing.assert_allclose(family["mean"], differences.mean(0))
    bonferroni = stats.t.ppf(1 - 0.05 / (2 * len(family)), SEEDS - 1)
    for prefix, reach in (("simultaneous_", bonferroni), ("", 2.262157)):  # Student's
        half = reach * differences.std(0, ddof=1) / np.sqrt(SEEDS)
        np.testing.assert_allclose(family[f"{prefix}low"], differences.mean(0) - half, rtol=1e-6)
        np.testing.assert_allclose(family[f"{prefix}high"], differences.mean(0) + half, rtol=1e-6)
    p = np.asarray(stats.ttest_1samp(differences, 0.0).pvalue)
    np.testing.assert_allclose(family["p_adjusted"], holm(p))
    shares = family["measure"].isin(names)  # welfare, in units of its own, has no margin
    sides = [
        stats.ttest_1samp(differences[:, shares], end, alternative=way).pvalue
        for end, way in ((-0.05, "greater"), (0.05, "less"))
    ]
    np.testing.assert_allclose(family["p_equivalence"][shares], holm(np.max(sides, axis=0)))
    assert family["p_equivalence"][~shares].isna().all()
    sentences = family.apply(contrasts.equivalent, axis=1)
    assert set(sentences) == {"", "equivalent within 0.05"}
    assert (sentences[family["measure"] == "swap_regret_mean"] != "").all()


def test_holms_method_is_that_of_statsmodels() -> None:
    p_values = RNG.uniform(size=40) ** 3
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(holm(p_values), expected, rtol=1e-14)


def study_of_differences(seeds: int, spread: float) -> pd.DataFrame:
    """Return the contrasts of three arms of which one is compared with, with random losses."""
    parameters = runs_of({"arm": ["one", "two", "none"]}, seeds=seeds)
    generator = np.random.default_rng(seeds)
    loss = generator.uniform(0.5 - spread, 0.5 + spread, len(parameters))
    return contrasts.contrasts_table(table_of_cohorts(parameters, mean_loss=loss), parameters)


def test_few_seeds_have_intervals_within_what_is_possible() -> None:
    rows_found = study_of_differences(seeds=3, spread=0.5)
    assert rows_found["simultaneous_low"].min() >= -1.0
    assert rows_found["simultaneous_high"].max() <= 1.0


def test_with_forty_seeds_intervals_follow_how_differences_depend_on_one_another() -> None:
    rows_found = study_of_differences(seeds=40, spread=0.1)
    half = (rows_found["simultaneous_high"] - rows_found["simultaneous_low"]) / 2
    student_half = (rows_found["high"] - rows_found["low"]) / 2
    ratio = half / student_half * stats.t.ppf(0.975, 39)
    assert (ratio < stats.t.ppf(1 - 0.05 / 4, 39)).all()  # narrower than Bonferroni's
    assert (ratio > stats.t.ppf(0.975, 39)).all()


def test_all_contrasts_hold_at_once_where_nothing_is_different() -> None:
    """Of 200 null studies 5 % at most have any contrast that is called different."""
    count = 200
    wrong = 0
    missed = 0
    for _ in range(count):
        arms = RNG.normal(size=(4, SEEDS, 3)) @ RNG.normal(size=(3, 5))
        differences = np.concatenate([*(arms[1:] - arms[0])], axis=1)  # (SEEDS, 15)
        t = differences.mean(0) / differences.std(0, ddof=1) * np.sqrt(SEEDS)
        wrong += bool((holm(2 * stats.t.sf(np.abs(t), SEEDS - 1)) < 0.05).any())
        missed += bool((np.abs(t) > critical(differences)).any())
    max_failures = 0.05 * count + 2 * np.sqrt(0.05 * 0.95 * count)
    assert wrong <= max_failures
    assert 1 <= missed <= max_failures  # not so wide that they never miss


def test_a_failed_run_costs_its_seed_and_no_more() -> None:
    parameters = runs_of({"arm": ["x", "y", "z"]})
    loss = pd.Series(RNG.normal(size=len(parameters)))
    rows = table_of_cohorts(parameters, mean_loss=loss)
    table_found = contrasts.contrasts_table(rows.drop(index=SEEDS + 2), parameters)
    assert table_found["seeds"].tolist() == [SEEDS - 1, SEEDS]
    assert table_found["simultaneous_low"].notna().all()


def agents_with_planted_effects(
    parameters: pd.DataFrame, *, slope: float, helped: float = 0.0
) -> pd.DataFrame:
    """Draw 20 agents a run; those of a seed are the same people with the same luck.

    Regret grows with rho by ``slope``, and where arm is 1 agents above 0.6 regret ``helped`` less.
    """
    seeds = parameters["seed"].nunique()
    rho = RNG.uniform(0.2, 0.8, (seeds, 20))
    luck = RNG.normal(0, 0.1, (seeds, 2, 1))
    noise = RNG.normal(0, 0.01, (len(parameters), 20))
    rho_of_run = rho[parameters["seed"]]
    arm = parameters["arm"].to_numpy()[:, None]
    common = (luck[:, 0] + luck[:, 1] * rho)[parameters["seed"]]
    regret = slope * rho_of_run + common + noise - helped * arm * (rho_of_run > 0.6)
    names = ["loss_scale", "loss_offset", "external_regret", "decision_swap_regret"]
    kinds = np.where(rho_of_run.ravel() > 0.5, "late", "early")
    columns = {
        "run": np.repeat(parameters["run"], 20),
        "cohort": "a",
        "swap_regret": regret.ravel(),
    }
    columns |= {"param_rho": rho_of_run.ravel(), "param_kind": kinds, "exploitability": np.nan}
    columns |= dict.fromkeys(names, 1.0) | {"mean_loss": 0.5}
    columns |= {"first_correction": np.nan, "trusted": pd.NA}  # no forecaster of these people
    return pd.DataFrame(columns).reset_index(drop=True)


def test_intervals_of_a_regression_cover_what_was_planted() -> None:
    """Luck that a seed's agents share in all runs is no information about the slope."""
    parameters = runs_of({"arm": [0, 1]}, 30)
    held = 0
    count = 200
    for _ in range(count):
        agents = agents_with_planted_effects(parameters, slope=0.3)
        fitted = regression_table(agents, parameters, ["swap_regret"], on=["rho", "arm"])
        row = fitted.set_index("term").loc["rho"]
        assert row["clusters"] == 30
        held += row["low"] <= 0.3 <= row["high"]
    assert 0.9 <= held / count <= 0.985


def test_a_regression_by_hand() -> None:
    """Without noise: coefficients exactly, words by value, and nothing twice."""
    parameters = runs_of({"arm": [0, 1], "rule": ["x", "y"]}, 3)
    agents = agents_with_planted_effects(parameters, slope=0.0)
    late = agents["param_kind"] == "late"
    arm, rule = (parameters.set_index("run")[k][agents["run"]].to_numpy() for k in ("arm", "rule"))
    agents["swap_regret"] = 0.1 + 0.5 * agents["param_rho"] + 0.2 * late + 0.03 * arm
    agents["swap_regret"] -= 0.07 * (rule == "x")
    agents["param_twice"] = 2 * agents["param_rho"]
    control = {"rule": "y", "kind": "early"}
    fitted = regression_table(agents, parameters, ["swap_regret"], controls=control)
    coefficients = dict(zip(fitted["term"], fitted["coefficient"], strict=True))
    assert coefficients == pytest.approx(
        {"constant": 0.1, "rho": 0.5, "kind = late": 0.2, "arm": 0.03, "rule = x": -0.07}
    )
    with pytest.raises(UserError, match="regression on 'rhoo': did you mean 'rho'"):
        regression_table(agents, parameters, ["swap_regret"], on=["rhoo"])


def test_the_third_that_a_value_helps_is_found() -> None:
    parameters = runs_of({"arm": [0, 1]})
    parts = parted(agents_with_planted_effects(parameters, slope=0.3, helped=0.05))
    contrasts_found = contrasts.contrasts_table(parts, parameters).query(
        "measure == 'swap_regret_mean'"
    )
    thirds = contrasts_found[contrasts_found["cohort"].str.contains("rho")]
    assert len(thirds) == 3
    np.testing.assert_allclose(thirds["mean"], [0.0, 0.0, -0.05], atol=0.006)
    assert (thirds["p_adjusted"] < 0.05).tolist() == [False, False, True]
    assert contrasts_found["cohort"].str.contains("kind").sum() == 2


STUDY = """
scenario = "tiny.toml"
seeds = 2
[sample]
points = 8
[sample.keys]
"cohort.farmers.count" = [2, 5]
"adversary.concentration" = { low = 0.5, high = 50.0, log = true }
"""


def sample_spec(points: int, *keys: str, ends: list[float], **more: Any) -> drawn.SampleSpec:
    """Return a sample of so many points, whose keys all have the same ends."""
    raw = {"points": points, "keys": dict.fromkeys(keys, ends)} | more
    return drawn.SampleSpec.model_validate(raw)


def tables(sample: drawn.SampleSpec, losses: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a study's cohorts and parameters, one run per setting, with these mean losses."""
    parameters = pd.DataFrame(sample.settings()).rename_axis("run").reset_index().assign(seed=0)
    return table_of_cohorts(parameters, mean_loss=losses(parameters)), parameters


def test_a_hypercube_has_one_point_in_each_stratum_and_seeds_of_its_own(tmp_path: Path) -> None:
    study = write_study(tmp_path, STUDY, NATURE_SCENARIO)
    rows = pd.DataFrame(study.parameters())
    assert len(study) == 16
    assert rows["seed"].tolist() == list(range(16))
    share = np.log(rows["adversary.concentration"][::2] / 0.5) / np.log(100)
    assert sorted(np.floor(share * 8)) == list(range(8))
    assert rows["cohort.farmers.count"].value_counts().to_dict() == dict.fromkeys(range(2, 6), 4)
    again = pd.DataFrame(study.sized(seeds=1).parameters())
    key = "adversary.concentration"
    assert again[key].tolist() == rows[key][::2].tolist()
    raw = study.task(5).raw
    assert (raw["seed"], raw["adversary"]["concentration"]) == (5, rows[key][5])


def test_the_blocks_of_a_sobol_design_differ_in_one_key() -> None:
    sample = sample_spec(8, "a", "b", ends=[2.0, 4.0], method="sobol")
    table = pd.DataFrame(sample.settings()).to_numpy().reshape(4, 8, 2)
    a, b, mixed_a, mixed_b = table
    assert len(sample) == 32
    np.testing.assert_array_equal(mixed_a, np.column_stack([b[:, 0], a[:, 1]]))
    np.testing.assert_array_equal(mixed_b, np.column_stack([a[:, 0], b[:, 1]]))


def test_published_indices_of_ishigami_s_function() -> None:
    """Sobol and Levitan 1999: with a = 7 and b = 0.1."""
    sample = sample_spec(1024, *"xyz", ends=[-np.pi, np.pi], method="sobol")

    def ishigami(p: pd.DataFrame) -> Any:
        return np.sin(p["x"]) * (1 + 0.1 * p["z"] ** 4) + 7 * np.sin(p["y"]) ** 2

    once, again = (drawn.sensitivity_table(*tables(sample, ishigami), sample) for _ in range(2))
    pd.testing.assert_frame_equal(once, again, check_exact=True)
    indices = once.set_index(["value", "key"])
    published = {"first order": [0.3139, 0.4424, 0.0], "total order": [0.5576, 0.4424, 0.2437]}
    for index, numbers in published.items():
        for key, number in zip("xyz", numbers, strict=True):
            row = indices.loc[(index, key)]
            assert abs(row["mean"] - number) < 0.05
            assert row["low"] < row["mean"] < row["high"]


def test_a_rank_correlation_sees_what_is_monotone() -> None:
    sample = sample_spec(40, "a", "b", ends=[0.0, 1.0])
    runs = tables(sample, lambda p: np.exp(p["a"]))
    correlations = drawn.sensitivity_table(*runs, sample).set_index("key")
    assert correlations["mean"]["a"] == pytest.approx(1.0)
    assert correlations["low"]["b"] < 0 < correlations["high"]["b"]
    assert correlations["runs"].tolist() == [40, 40]


def test_calibration_covers_what_was_planted() -> None:
    """Of linear moments with normal noise the interval holds the truth in 95 % of trials."""
    rng = np.random.default_rng(5)
    sample = sample_spec(400, "impact", ends=[0.0, 1.0])
    runs = tables(sample, lambda p: 2 * p["impact"] + rng.normal(0, 0.2, len(p)))
    held = 0
    widths = []
    truths = rng.uniform(0.2, 0.8, 200)
    for truth in truths:
        target = {"a.mean_loss": 2 * truth + rng.normal(0, 0.2)}
        aimed = sample.model_copy(update={"targets": target})
        row = drawn.calibration_table(*runs, aimed).iloc[0]
        held += row["low"] <= truth <= row["high"]
        widths.append(row["high"] - row["low"])
    far = sample.model_copy(update={"targets": {"a.mean_loss": 9.0}})  # no run comes near
    assert drawn.calibration_table(*runs, far)[["estimate", "low", "high"]].isna().all(axis=None)
    assert 180 <= held <= 198
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 0.1, rel=0.15)


def test_a_sampled_study_is_played_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY + '[sample.targets]\n"farmers.mean_loss" = 0.5\n'
    design = write_study(tmp_path, text, NATURE_SCENARIO).sized(rounds=5, seeds=1)
    played = conduct(design, Options(tmp_path / "out", jobs=1))
    names = ("effects", "sensitivity", "calibration")
    effects, sensitivities, fitted = (
        pd.read_parquet(played.path / f"{name}.parquet") for name in names
    )
    assert effects.empty
    assert set(sensitivities["key"]) == {"cohort.farmers.count", "adversary.concentration"}
    assert fitted["low"].le(fitted["estimate"]).all()
    print_summary(played)
    printed = capsys.readouterr().out
    assert "Values that give the" in printed
    assert "rank correlation" in printed
    with pytest.raises(UserError, match="every run measured it"):
        played.calibration({"one.unheard_of": 0.1})


def test_shares_and_values_are_inverse() -> None:
    for low, high, log in ((2.0, 8.0, False), (0.1, 10.0, True), (1, 9, False)):
        span = drawn.Span(low=low, high=high, log=log)
        values = span.values(np.linspace(0.01, 0.99, 7))
        np.testing.assert_allclose(span.values(span.shares(np.array(values))), values)


def test_a_contrast_that_pools_parts_of_opposite_sign_says_so() -> None:
    about = {"key": "kind", "value": "new", "against": "old", "cohort": "buyers"}
    contrast = pd.DataFrame([about | {"measure": "mean_loss"}])
    part = about | {"measure": "mean_loss", "parameter": "rho"}
    certain_parts = [
        part | {"range": "0.1 to 0.4", "mean": 0.2, "p_adjusted": 0.01},
        part | {"range": "0.4 to 0.7", "mean": 0.1, "p_adjusted": 0.50},
        part | {"range": "0.7 to 0.9", "mean": -0.3, "p_adjusted": 0.01},
    ]
    (note,) = sign_notes(pd.DataFrame(certain_parts), contrast)
    assert "rises at rho 0.1 to 0.4 and falls at 0.7 to 0.9" in note
    assert not list(sign_notes(pd.DataFrame(certain_parts[:2]), contrast))
