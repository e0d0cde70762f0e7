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


@pytest.mark.parametrize(
    "table_of_game",
    [{"game": {"file": "chicken.nfg"}}, {"market": {"kind": "normal-form", "file": "chicken.nfg"}}],
)
def test_players_of_a_game_from_a_file_have_its_numbers_of_actions(
    table_of_game: dict[str, Any], game_folder: Path
) -> None:
    game = 'NFG 1 R "wide" { "a" "b" } { { "u" "d" } { "l" "m" "r" } } "" 0 0 1 1 2 2 3 3 4 4 5 5'
    (game_folder / "chicken.nfg").write_text(game, encoding="utf-8")
    first = {"name": "first", "response": "hedge"}
    second = {"name": "second", "response": "hedge"}
    spec = validated(scenario_table(cohort=[first, second], **table_of_game), origin=game_folder)
    assert [cohort.actions for cohort in spec.cohort] == [2, 3]
    model = Scenario(spec).build()
    assert model.called["second"] == ["l", "m", "r"]


def test_followers_of_a_game_from_a_file_have_its_number_of_actions() -> None:
    adversary = {"kind": "up-then-down"}
    learner = {"name": "learner", "utility": "game", "response": "hedge"}
    table = scenario_table(cohort=[learner], game={"file": "deng-2x3.csv"}, adversary=adversary)
    assert validated(table, origin=Path()).cohort[0].actions == 3


def test_a_cohort_of_players_with_different_numbers_of_actions_must_give_one(
    game_folder: Path,
) -> None:
    game = 'NFG 1 R "wide" { "a" "b" } { 2 3 } 0 0 1 1 2 2 3 3 4 4 5 5'
    (game_folder / "wide.nfg").write_text(game, encoding="utf-8")
    both = {"name": "both", "count": 2, "response": "hedge"}
    with pytest.raises(UserError, match=r"key 'cohort\.both\.actions' is missing"):
        validated(scenario_table(cohort=[both], game={"file": "wide.nfg"}), origin=game_folder)


def test_the_actions_of_a_game_that_is_not_there_are_not_made_up(game_folder: Path) -> None:
    first = {"name": "first", "response": "hedge"}
    with pytest.raises(UserError, match=r"game\.file 'dove\.nfg' does not exist"):
        validated(scenario_table(cohort=[first], game={"file": "dove.nfg"}), origin=game_folder)


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
