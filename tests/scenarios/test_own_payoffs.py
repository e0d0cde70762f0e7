"""What a scenario file may leave out where a market has payoffs of its own."""

from pathlib import Path
from typing import Any

import pytest

from regretless import UserError
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import resolved, validated

GAME = 'NFG 1 R "chicken" { "a" "b" } { 2 2 } 0 0 2 7 7 2 6 6'
PLAYERS = {"name": "players", "count": 2, "actions": 2, "response": "hedge"}


@pytest.fixture
def game_folder(tmp_path: Path) -> Path:
    """Return a folder with a game of two players."""
    (tmp_path / "chicken.nfg").write_text(GAME, encoding="utf-8")
    return tmp_path


def scenario_table(**keys: Any) -> dict[str, Any]:
    """Return a scenario of two players who learn."""
    return {"name": "small", "rounds": 5, "cohort": [PLAYERS], **keys}


def test_a_game_of_all_agents_needs_no_adversary_and_no_utility(game_folder: Path) -> None:
    spec = validated(scenario_table(game={"file": "chicken.nfg"}), origin=game_folder)
    assert spec.market is not None
    assert spec.market.kind == "normal-form"
    assert spec.cohort[0].utility == "payoffs"


def test_a_specification_that_was_filled_in_can_be_read_again(game_folder: Path) -> None:
    spec = validated(scenario_table(game={"file": "chicken.nfg"}), origin=game_folder)
    assert validated(resolved(spec), origin=Path("/")) == spec


def test_without_a_game_somebody_must_choose_the_outcomes() -> None:
    with pytest.raises(UserError, match="nothing chooses the outcomes"):
        validated(scenario_table(cohort=[{**PLAYERS, "utility": "linear"}]), origin=Path())


def test_a_cohort_needs_a_utility_where_the_market_has_no_payoffs_of_its_own() -> None:
    market = {"kind": "attendance"}
    adversary = {"kind": "iid", "outcomes": 1}
    with pytest.raises(UserError, match="utility"):
        validated(scenario_table(market=market, adversary=adversary), origin=Path())


def test_a_game_of_all_agents_needs_its_file(game_folder: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        validated(scenario_table(game={"file": "dove.nfg"}), origin=game_folder)
    with pytest.raises(UserError, match=r"market\.file is missing"):
        validated(scenario_table(market={"kind": "normal-form"}), origin=game_folder)


def test_sellers_need_no_adversary_and_no_utility() -> None:
    sellers = {
        "name": "sellers",
        "count": 2,
        "actions": 5,
        "parameters": {"cost": 1.0, "quality": 2.0, "lowest": 1.2, "highest": 2.0},
        "response": "hedge",
    }
    table = scenario_table(market={"kind": "price-competition", "outside": 0.0}, cohort=[sellers])
    spec = validated(table, origin=Path())
    assert spec.cohort[0].utility == "seller"
    model = Scenario(spec).build()
    model.run()
    assert model.agents_frame()["mean_loss"].notna().all()


def test_a_market_that_nobody_registered_is_named_rather_than_what_it_would_fill_in() -> None:
    fault = r"market\.kind = 'bridge': unknown; .* needs --import MODULE"
    with pytest.raises(UserError, match=fault):
        validated(scenario_table(market={"kind": "bridge"}), origin=Path())
