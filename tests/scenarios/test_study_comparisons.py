"""What a study compares is comparable, and is in its tables, on its page and in its files."""

import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import worlds
from page_session import command
from pages import check

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.frames import export
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.analysis.contrasts import EVERYBODY
from regretless.scenarios.studies.analysis.measures import MARKET
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct

SHARES = {"near": "1 - 0.05 * y**4", "all_or_nothing": "float(y > 0.55)", "whole": "1.0"}
MODULE = """
from regretless import register

@register.measure("round")
def round_number(model):
    return model.played

@register.measure("beyond", within=(0, 1))
def beyond(model):
    return 1.5
""" + "".join(
    f"""
@register.measure("{name}", within=(0, 1))
def {name}(model):
    y = model.game.history.last(1)[0][0]
    return {share}
"""
    for name, share in SHARES.items()
)
CROWD = """\
name = "crowd"
rounds = 2
measures = ["round", "near", "all_or_nothing", "whole"]
adversary = { kind = "iid", outcomes = 2 }
market = { feedback = "same-round", impact = 0.4 }
[[cohort]]
name = "followers"
utility = "ces"
parameters = { rho = [0.3, 0.9] }
count = 3
actions = 3
[[cohort]]
name = "learners"
utility = "ces"
parameters = { rho = [0.3, 0.9] }
count = 3
actions = 3
response = "hedge"
"""
ARMS = """\
scenario = "crowd.toml"
seeds = 3
control = "half"
margin = { mean_loss = 1.0 }
[grid]
"market.impact" = [0.2, 0.8]
[grid.listen]
nobody = { "cohort.followers.response" = "hedge" }
half = {}
"nobody, other people" = { "cohort.followers.count" = 0, "cohort.learners.count" = 6 }
"""
FIRMS = """\
name = "firms"
rounds = 20
adversary = { kind = "iid", outcomes = 1, concentration = 4.0 }
forecaster = { kind = "running-mean" }
[[cohort]]
name = "firms"
utility = "firm"
count = 2
actions = 5
parameters = { cost = 0.2, capacity = 1.0, slope = 0.0 }
"""
FILES = {"mine.py": MODULE, "crowd.toml": CROWD, "firms.toml": FIRMS, "arms.toml": ARMS}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with scenarios and a module of measures, in which commands run."""
    home = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(register.measure, "_known", dict(register.measure._known))
        patch.setattr(register.measure, "within", dict(register.measure.within))
        for name, text in FILES.items():
            (home / name).write_text(text, encoding="utf-8")
        yield home


@pytest.fixture(scope="module")
def arms(desk: Path) -> Study:
    """Return a study of who follows the forecast, with the same people and with others."""
    command("regretless study arms.toml --out arms --quiet --jobs 1 --import mine")
    command("regretless report arms --tables tables")
    return load_study(desk / "arms")


def test_a_measure_of_the_round_has_a_contrast_whoever_is_there(arms: Study) -> None:
    own = "measure == 'round' and cohort == 'everybody' and key == 'listen'"
    found = arms.contrasts().query(own)[["value", "against", "seeds", "mean"]].to_numpy().tolist()
    others = ["nobody", "nobody, other people"]
    assert found == [[other, "half", 3, 0.0] for other in others]
    values = set(arms.effects().query("key == 'listen'")["value"])
    assert values == set(arms.parameters()["listen"])  # plain text


def test_arms_that_switch_a_response_hold_the_same_people(arms: Study) -> None:
    agents = arms.agents().merge(arms.parameters(), on="run")
    same = [
        own.sort_values(["market.impact", "seed", "agent"])[["cohort", "loss_scale", "param_rho"]]
        for name, own in agents.groupby("listen")
        if "other" not in name
    ]
    for arm in same[1:]:
        pd.testing.assert_frame_equal(arm.reset_index(drop=True), same[0].reset_index(drop=True))
    contrasts = arms.contrasts()
    assert contrasts.loc[~contrasts["value"].str.contains("other"), "same_scale"].all()


@pytest.mark.parametrize("share", SHARES)
def test_intervals_of_shares_stay_in_their_range(arms: Study, share: str) -> None:
    """Extreme shares of y in [0, 1]: levels stay in [0, 1], changes in [-1, 1]."""
    own = f"measure == '{share}' and cohort == 'everybody'"
    level, change = arms.effects().query(own), arms.contrasts().query(own)
    assert len(level) == 5
    assert ((level["low"] >= 0) & (level["high"] <= 1)).all()
    assert ((level["low"] <= level["mean"]) & (level["mean"] <= level["high"])).all()
    assert ((change["low"] >= -1) & (change["high"] <= 1)).all()


def test_a_share_above_one_is_refused_in_one_line(desk: Path) -> None:
    text = CROWD.replace('"round"', '"beyond"')
    (desk / "beyond.toml").write_text(text, encoding="utf-8")
    said = command("regretless run beyond.toml --import mine --out beyond  # refused")
    assert "measure 'beyond' returned 1.5, not within 0 and 1" in said


def test_a_margin_is_of_its_measure_and_a_regression_of_every_key(arms: Study) -> None:
    margins = arms.contrasts().set_index("measure")["margin"].dropna()
    assert (set(margins.index), set(margins)) == ({"mean_loss"}, {1.0})
    terms = set(arms.regression("swap_regret")["term"])
    others = {f"listen = {other}" for other in ("nobody", "nobody, other people")}
    assert terms == {"constant", "rho", "market.impact"} | others


def test_the_market_is_compared_in_pairs(arms: Study) -> None:
    """Every number of the table of rounds, by hand from the runs."""
    rounds = arms.table("rounds").merge(arms.parameters(), on="run")
    deviation = rounds.groupby(["market.impact", "listen", "seed"])["y_0"].std(ddof=0)
    apart = deviation[0.8] - deviation[0.2]
    found = arms.contrasts().query("key == 'market.impact' and measure == 'y_0_deviation'")
    assert found["cohort"].tolist() == [MARKET]
    assert found["mean"].iloc[0] == pytest.approx(apart.mean())
    assert found["seeds"].iloc[0] == 3


def test_every_table_is_written_as_csv_and_latex(arms: Study, desk: Path) -> None:
    for name, table in arms.results().items():
        kept = pd.read_parquet(arms.path / f"{name}.parquet")
        pd.testing.assert_frame_equal(kept, table)
        read = pd.read_csv(desk / "tables" / f"{name}.csv")
        assert list(read) == list(table)
        assert len(read) == len(table)
        latex = (desk / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert f"\\label{{tab:{name}}}" in latex
        assert latex.count(r"\\") >= len(table)
    with pytest.raises(UserError, match="is not empty; give the tables a folder of their own"):
        export({}, desk / "tables")


def test_the_page_shows_what_was_tested(arms: Study) -> None:
    page = check((arms.path / "report.html").read_text(encoding="utf-8"))
    heads = [row for row in page.rows if "simultaneous interval" in row]
    assert len(heads) == 3  # effects, interactions, by parameter
    assert any("equivalent within 1" in row for row in page.rows)
    row = arms.interactions().query("measure == 'mean_loss'").iloc[0]
    words = [row[name] for name in ("key", "value", "against", "other_key", "other_value")]
    assert any(shown[:5] == words for shown in page.rows)
    slope = arms.regression("swap_regret").set_index(["cohort", "term"]).loc[("learners", "rho")]
    own = ["learners", "swap_regret", "rho"]
    (shown,) = [float(row[3]) for row in page.rows if row[:3] == own]
    most = slope[["coefficient", "low", "high"]].abs().max()
    assert shown == pytest.approx(slope["coefficient"], abs=0.005 * most)  # three digits of it


def test_the_page_ranks_by_welfare_and_names_the_key_that_changes_the_unit(desk: Path) -> None:
    """A slope lowers the mean loss, by what losses are divided by, and lowers welfare."""
    key = "cohort.firms.parameters.slope"
    grid = f'[grid]\n"{key}" = [0.0, 0.5]\n"cohort.firms.count" = [2, 3]\n'
    (desk / "slopes.toml").write_text(f'scenario = "firms.toml"\nseeds = 2\n{grid}', "utf-8")
    printed = command("regretless study slopes.toml --out slopes --jobs 1")
    found = load_study("slopes").contrasts().set_index(["key", "measure"])
    assert found.loc[(key, "mean_loss"), "mean"] < 0
    change = found.loc[(key, "welfare_mean"), "mean"]
    assert change < 0
    assert not found.loc[(key, "welfare_mean"), "same_scale"]
    assert found.loc[("cohort.firms.count", "welfare_mean"), "same_scale"]
    page = write_report(Path("slopes")).read_text(encoding="utf-8")
    claims = [unescape(text) for text in re.findall(r'<p class="claim">(.*?)</p>', page)]
    assert "welfare" in claims[0]
    assert "mean loss" not in claims[0]
    assert f"{change:+.3g}" in claims[0]
    assert key in claims[1]
    assert claims[1] in " ".join(printed.split())


PUMP = """\
name = "tiny"
rounds = 30
adversary = { kind = "pump-and-dump", outcomes = 2, exposure = [0.0, 1.0], pump = 5, dump = 5 }
cohort = [
  { name = "one", utility = "linear", count = 3, actions = 2 },
  { name = "two", utility = "linear", count = 1, actions = 2, response = "hedge" },
]
"""
BRANCHES = """
scenario = "tiny.toml"
seeds = 2
leave_out = ["forecasts"]
[branch]
at = 10
[branch.changes.nothing]
[branch.changes.calm]
"adversary.kind" = "iid"
"adversary.concentration" = 0.0
[branch.changes.stubborn]
"agent.2" = 1
"""


def test_branches_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = conduct(worlds.study(tmp_path, BRANCHES, PUMP), Options(tmp_path / "o", jobs=1))
    assert study.failures()["error"].tolist() == []
    table = study.table("branches").set_index(["branch", "run", "agent"]).sort_index()
    assert (table.loc["nothing", "gain"] == 0.0).all()
    assert (table.loc["calm", "gain"] != 0.0).any()
    others = table.loc["stubborn"].query("agent != 2")
    assert (others["gain"] == 0.0).all()  # no market: nobody notices
    found = study.contrasts().query("key == 'branch'")
    found = found.set_index(["value", "cohort", "measure"]).sort_index()
    own = table.loc["calm"].query("cohort == 'one'").groupby("run")["gain"].mean()
    assert found.loc[("calm", "one", "gain"), "mean"] == pytest.approx(own.mean())
    assert ("calm", EVERYBODY, "loss_gain") in found.index
    gains = study.gains().set_index(["branch", "agent"])
    own = table.loc["calm"].query("agent == 1")["gain"].to_numpy()
    half = 12.706205 * own.std(ddof=1) / np.sqrt(2)  # Student's quantile
    row = gains.loc[("calm", 1)]
    assert [row["seeds"], row["cohort"]] == [2, "one"]
    assert (row["low"], row["high"]) == pytest.approx((own.mean() - half, own.mean() + half))
    print_summary(study)
    assert "2 of 2 runs complete, 0 failed" in (told := capsys.readouterr().out)
    assert "stubborn" in told
    page = write_report(tmp_path / "o").read_text(encoding="utf-8")
    assert "nothing, calm, stubborn" in page
    assert "from round 10" in page
