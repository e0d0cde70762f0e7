"""What a study compares is comparable: the same people, one unit, plain values, ranges kept."""

import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from page_session import command

from regretless.market import register
from regretless.scenarios.studies import Study, load_study

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
rounds = 1
measures = ["round", "near", "all_or_nothing", "whole"]
adversary = { kind = "iid", outcomes = 2 }
market = { feedback = "same-round", impact = 0.4 }
cohort = [
  { name = "followers", utility = "linear", count = 3, actions = 2 },
  { name = "learners", utility = "linear", count = 3, actions = 2, response = "hedge" },
]
"""
LISTEN = """
nobody = { "cohort.followers.response" = "hedge" }
half = {}
all = { "cohort.learners.response" = "best-response" }
"nobody, other people" = { "cohort.followers.count" = 0, "cohort.learners.count" = 6 }
"all, other people" = { "cohort.followers.count" = 6, "cohort.learners.count" = 0 }
"""
FIRMS = """\
name = "firms"
rounds = 40
adversary = { kind = "iid", outcomes = 1, concentration = 4.0 }
forecaster = { kind = "running-mean" }
[[cohort]]
name = "firms"
utility = "firm"
count = 2
actions = 5
parameters = { cost = 0.2, capacity = 1.0, slope = 0.0 }
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with scenarios and a module of measures, in which commands run."""
    home = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(register.measure, "_known", dict(register.measure._known))
        patch.setattr(register.measure, "within", dict(register.measure.within))
        for name, text in {"mine.py": MODULE, "crowd.toml": CROWD, "firms.toml": FIRMS}.items():
            (home / name).write_text(text, encoding="utf-8")
        yield home


@pytest.fixture(scope="module")
def arms(desk: Path) -> Study:
    """Return a study of who follows the forecast, with the same people and with others."""
    text = f'scenario = "crowd.toml"\nseeds = 5\n[grid.listen]{LISTEN}'
    (desk / "arms.toml").write_text(text, encoding="utf-8")
    command("regretless study arms.toml --out arms --quiet --jobs 1 --import mine")
    return load_study(desk / "arms")


def test_a_measure_of_the_round_has_a_contrast_whoever_is_there(arms: Study) -> None:
    found = arms.contrasts().query("measure == 'round' and cohort == 'everybody'")
    others = ["half", "all", "nobody, other people", "all, other people"]
    assert found["value"].tolist() == others
    said = found[["key", "against", "seeds", "mean"]].drop_duplicates()
    assert said.to_numpy().tolist() == [["listen", "nobody", 5, 0.0]]
    assert set(arms.effects()["value"]) == set(arms.parameters()["listen"])  # plain text
    assert set(arms.contrasts()["against"]) == {"nobody"}


def test_arms_that_switch_a_response_hold_the_same_people(arms: Study) -> None:
    agents = arms.agents().merge(arms.parameters(), on="run")
    same = [
        own.sort_values(["seed", "agent"])[["cohort", "loss_scale", "loss_offset"]]
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


def test_the_page_ranks_by_welfare_and_names_the_key_that_changes_the_unit(desk: Path) -> None:
    """A slope lowers the mean loss, by what losses are divided by, and lowers welfare."""
    key = "cohort.firms.parameters.slope"
    grid = f'[grid]\n"{key}" = [0.0, 0.5]\n"cohort.firms.count" = [2, 3]\n'
    (desk / "slopes.toml").write_text(f'scenario = "firms.toml"\nseeds = 3\n{grid}', "utf-8")
    printed = command("regretless study slopes.toml --out slopes --jobs 1")
    found = load_study("slopes").contrasts().set_index(["key", "measure"])
    assert found.loc[(key, "mean_loss"), "mean"] < 0
    change = found.loc[(key, "welfare_mean"), "mean"]
    assert change < 0
    assert not found.loc[(key, "welfare_mean"), "same_scale"]
    assert found.loc[("cohort.firms.count", "welfare_mean"), "same_scale"]
    command("regretless report slopes")
    page = Path("slopes/report.html").read_text(encoding="utf-8")
    claims = [unescape(text) for text in re.findall(r'<p class="claim">(.*?)</p>', page)]
    assert "welfare" in claims[0]
    assert "mean loss" not in claims[0]
    assert f"{change:+.3g}" in claims[0]
    assert key in claims[1]
    assert claims[1] in " ".join(printed.split())
