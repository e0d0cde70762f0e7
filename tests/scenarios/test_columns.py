"""The reference of columns in docs/columns.md names what runs and studies write, and no more."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w
import worlds

from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.scenarios.config.files import find, read
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.conduct import Options as StudyOptions
from regretless.scenarios.studies.conduct import conduct
from regretless.scenarios.studies.design import read_study

PAGE = (Path(__file__).parent.parent.parent / "docs/columns.md").read_text(encoding="utf-8")
OF_MARKETS = re.compile("fundamental|demand|price|volume|quantity|flow|share|time|level|sold|goods")
CLEARING = "call-auction oligopoly pigou el-farol shops survival zero-intelligence"


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
scenario = "base.toml"
seeds = 1
grid = { "forecaster.kind" = ["decision-swap", "running-mean"] }
branch = { changes = { stubborn = { "agent.1" = 0 } } }
"""
PLAIN: dict[str, Any] = {"utility": "linear", "count": 4, "actions": 3}
CROWD: dict[str, Any] = {
    "name": "crowd",
    "rounds": 80,
    "log_agents": 4,
    "windows": {"every": 40},
    "forecaster": {"intervals": True},
    "adversary": {"kind": "iid", "outcomes": 2},
    "market": {"feedback": "lagged"},
    "cohort": [
        {"name": "guests", "entry_rate": 0.5, **PLAIN},
        {"name": "hosts", **PLAIN},
        {"name": "masses", "multiplicity": True, "types": 2, **PLAIN},
    ],
}
CHANCE = {"adversary": {"kind": "iid", "outcomes": 2}}
LED: dict[str, Any] = {"name": "led", "rounds": 6, "adversary": {"kind": "up-then-down"}}
LED |= {"game": {"file": "deng-2x3.csv"}}
LED["cohort"] = [
    worlds.cohort(name, 1, 3, "game", response=response)
    for name, response in {"first": "best-response", "second": "hedge"}.items()
]
OWNERS = {"cohort": [{"name": "owners", "response": "owner-of-a-column", **PLAIN}]}
BASE = {"name": "base", "rounds": 4, **CHANCE, "cohort": [{"name": "agents", **PLAIN}]}
OWN: dict[str, Any] = BASE | OWNERS | {"name": "own", "measures": ["rounds-so-far"]}


def documented() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, section in re.findall(
        r"^### `(\S+)`\n(.*?)(?=^###? |\Z)", PAGE, re.MULTILINE | re.DOTALL
    ):
        firsts = re.findall(r"^- ((?:`[^`]+`(?:,\s+| to )?)+)", section, re.MULTILINE)
        columns = [column for first in firsts for column in re.findall(r"`([^`]+)`", first)]
        assert len(columns) == len(set(columns)), name
        others = [found[other] for other in re.findall(r"columns of `(\w+)`", section)]
        found[name] = {re.sub(r"_\d+$", "_i", column) for column in columns}.union(*others)
    return found


def general(column: str) -> str:
    """Name of a column with its number as a letter."""
    if column.startswith("param_"):
        return "param_NAME"
    letter = "g" if OF_MARKETS.match(column) else "i"
    return re.sub(r"_\d+$", f"_{letter}", column)


def add(found: dict[str, set[str]], folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        columns = {general(column) for column in pd.read_parquet(file, partitioning=None)}
        found.setdefault(file.stem, set()).update(columns)
    for file in folder.glob("*.json"):
        found.setdefault(file.name, set()).update(json.loads(file.read_text(encoding="utf-8")))


def test_every_table_and_column_is_described_and_real(tmp_path: Path) -> None:
    found: dict[str, set[str]] = {}
    bundled = [read(find(name)) | {"rounds": 4} for name in ("late-news", *CLEARING.split())]
    for raw in (CROWD, LED, OWN, *bundled):
        run(worlds.told(raw, origin=tmp_path), Options(tmp_path / raw["name"]))
        add(found, tmp_path / raw["name"])
    (tmp_path / "base.toml").write_text(tomli_w.dumps(BASE), encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    home = tmp_path / "study"
    conduct(read_study(str(tmp_path / "study.toml")), StudyOptions(home, jobs=1))
    for folder in (home, home / "runs/run=0000"):
        add(found, folder)
    found["parameters"] -= {"forecaster.kind"}  # the key that varies
    found["rounds"] -= {"date"}  # the name of an index in the data
    found["states"] -= {"wealth"}  # a name of the agent's own
    assert documented() == found
