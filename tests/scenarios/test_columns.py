"""The reference of columns in docs/columns.md names what runs and studies write, and no more."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
from small_scenarios import (
    NATURE_SCENARIO,
    cohort_table,
    make_scenario,
    read_scenario,
    write_study,
)

from regretless import audit
from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.scenarios.logs.column_notes import columns_of_data
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.conduct import Options as StudyOptions
from regretless.scenarios.studies.conduct import conduct

WHOLE_PAGE = (Path(__file__).parents[2] / "docs/columns.md").read_text(encoding="utf-8")
PAGE, _, PAGE_OF_AUDITS = WHOLE_PAGE.partition("## Tables of an audit\n")
OF_MARKETS = re.compile("fundamental|demand|price|volume|quantity|flow|share|time|level|sold|goods")
BUNDLED = "oligopoly pigou shops survival zero-intelligence late-news chain-store"
BUNDLED += " fundamentalists"
PLAYED = dict.fromkeys(BUNDLED.split(), "rounds=4") | {  # what else is set
    "beating-mean-based-learners": "rounds=6",
    "keys/turnover": "log_agents=4",
    "keys/counted": "rounds=4",
    "keys/prices-lagged": "rounds=4",
    "el-farol": 'solutions=["optimum"]',
    "keys/windows": "forecaster.intervals=true",
    "keys/quantiles": "rounds=4",
}


@register.agent("owner-of-a-column")
class Owner(ScriptedAgent):
    """Shows how rich it is."""

    columns = ("wealth",)
    wealth = 1.0

    def act(self, forecast: Any, context: Any) -> int:
        return 0


@register.measure("rounds-so-far")
def rounds_so_far(model: Any) -> float:
    return float(model.played)


STUDY = """\
scenario = "tiny.toml"
seeds = 1
rounds = 4
grid = { "forecaster.kind" = ["decision-swap", "running-mean"] }
set = { impulse = { cohort = "farmers", actions = [0], round = 1, before = 1, after = 1 } }
branch = { changes = { stubborn = { "agent.1" = 0 } } }
"""
STUDY_WITH_SOLUTIONS = """\
scenario = "pigou"
seeds = 1
rounds = 4
grid = { "forecaster.kind" = ["decision-swap", "running-mean"] }
set = { "cohort.drivers.count" = 4, solutions = ["nash", "ce", "cce", "optimum"] }
"""
SALES = ("rounds=4", "market.sales=true")
CENSORED_SALES = "bread,milk,none_left\n0.5,0.4,no\n0.5,0.7,yes\n"
OWN = ("cohort.farmers.response=owner-of-a-column", 'measures=["rounds-so-far"]')


def documented(page: str) -> dict[str, set[str]]:
    """Return the columns that the page names, by table."""
    documented_columns: dict[str, set[str]] = {}
    for name, section in re.findall(
        r"^### `(\S+)`\n(.*?)(?=^###? |\Z)", page, re.MULTILINE | re.DOTALL
    ):
        firsts = re.findall(r"^- ((?:`[^`]+`(?:,\s+| to )?)+)", section, re.MULTILINE)
        columns = [column for first in firsts for column in re.findall(r"`([^`]+)`", first)]
        assert len(columns) == len(set(columns)), name
        columns_of_others = [
            documented_columns[other] for other in re.findall(r"columns of `(\w+)`", section)
        ]
        documented_columns[name] = {re.sub(r"_\d+$", "_i", column) for column in columns}.union(
            *columns_of_others
        )
    return documented_columns


def general(column: str) -> str:
    """Name of a column with its number as a letter."""
    if column.startswith("param_"):
        return "param_NAME"
    letter = "g" if OF_MARKETS.match(column) else "i"
    return re.sub(r"_\d+$", f"_{letter}", column)


def test_every_table_and_column_is_described_and_real(tmp_path: Path) -> None:
    for name, setting in PLAYED.items():
        run(read_scenario(name, setting), Options(tmp_path / name))
    run(read_scenario(NATURE_SCENARIO, *OWN), Options(tmp_path / "own"))
    (tmp_path / "sales.csv").write_text(CENSORED_SALES, encoding="utf-8")
    censored = {"file": str(tmp_path / "sales.csv"), "outcomes": ["bread", "milk"]}
    censored_scenario = make_scenario(
        cohort_table("shop", 2), rounds=2, data=censored | {"censored": "none_left"}
    )
    run(censored_scenario, Options(tmp_path / "censored"))
    run(read_scenario("pricing-algorithms", *SALES), Options(tmp_path / "sales"))
    conduct(write_study(tmp_path, STUDY), StudyOptions(tmp_path / "study", jobs=1))
    with_solutions = write_study(tmp_path, STUDY_WITH_SOLUTIONS, name="with-solutions")
    conduct(with_solutions, StudyOptions(tmp_path / "with-solutions", jobs=1))
    columns_of_tables: dict[str, set[str]] = {}
    for file in tmp_path.rglob("*.parquet"):
        own_names = columns_of_data(file)  # of the data
        columns = pd.read_parquet(file, partitioning=None).drop(columns=own_names)
        columns_of_tables.setdefault(file.stem, set()).update(map(general, columns))
    for file in tmp_path.rglob("*.json"):
        columns_of_tables.setdefault(file.name, set()).update(
            json.loads(file.read_text(encoding="utf-8"))
        )
    columns_of_tables["parameters"] -= {"forecaster.kind"}  # the key that varies
    columns_of_tables["impulse_response"] -= {"forecaster.kind"}
    columns_of_tables["rounds"] -= {"date"}  # the name of an index in the data
    columns_of_tables["states"] -= {"wealth"}  # a name of the agent's own
    assert documented(PAGE) == columns_of_tables


def test_every_column_of_an_audit_is_described_and_real() -> None:
    sales = pd.DataFrame({"price": [1.0, 2.0] * 10, "sold": [1, 0] * 10})
    tables = audit(sales, price="price", quantity="sold", cost=0.0).tables
    assert documented(PAGE_OF_AUDITS) == {name: set(table) for name, table in tables.items()}
