"""Games in normal form: from tensors, from OpenSpiel, from Gambit's files, and played."""

from pathlib import Path

import numpy as np
import pytest

from regretless import NormalForm, UserError, load
from regretless.market.records import Decision
from regretless.market.solutions import gambit_files

CHICKEN = [[[0, 7], [2, 6]], [[0, 2], [7, 6]]]  # dare or swerve
PAYOFFS_FORM = """NFG 1 R "three firms" { "a" "b" "c" }
{ { "in" "out" } { "in" "out" } { "in" "out" "wait" } }
"a comment"
""" + " ".join(str(number) for number in range(36))
OUTCOMES_FORM = """NFG 1 R "chicken" { "row" "column" } { 2 2 }
{ { "crash" 0 0 } { "loses" 1/2, 7.0 } { "wins" 7, 5e-1 } { "both" 6, -3 } }
0 2 1 4
"""


def write_game(folder: Path, text: str) -> Path:
    """Write a game file."""
    file = folder / "game.nfg"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_tensor_and_a_list_of_tables_are_the_same_game() -> None:
    of_tables = NormalForm.from_payoffs(CHICKEN)
    of_tensor = NormalForm.from_payoffs(np.moveaxis(np.array(CHICKEN), 0, -1))
    assert (of_tables.payoffs == of_tensor.payoffs).all()
    assert of_tables.players == ("player 1", "player 2")


def test_profile_losses_are_minus_payoffs() -> None:
    game = NormalForm.from_payoffs(CHICKEN)
    assert game.profile_losses(np.array([[0, 1], [1, 1]])).tolist() == [[-7, -2], [-6, -6]]


def test_the_first_player_of_a_gambit_file_changes_fastest(tmp_path: Path) -> None:
    game = NormalForm.read(write_game(tmp_path, PAYOFFS_FORM))
    assert game.sizes == (2, 2, 3)
    assert game.actions[2] == ("in", "out", "wait")
    assert game.payoffs[0, 0, 0].tolist() == [0, 1, 2]
    assert game.payoffs[1, 0, 0].tolist() == [3, 4, 5]
    assert game.payoffs[0, 1, 0].tolist() == [6, 7, 8]
    assert game.payoffs[1, 1, 2].tolist() == [33, 34, 35]


def test_outcomes_of_a_gambit_file_may_be_fractions_and_nothing(tmp_path: Path) -> None:
    game = NormalForm.read(write_game(tmp_path, OUTCOMES_FORM))
    assert game.payoffs[0, 0].tolist() == [0, 0]  # outcome 0
    assert game.payoffs[1, 0].tolist() == [0.5, 7]
    assert game.payoffs[0, 1].tolist() == [0, 0]
    assert game.payoffs[1, 1].tolist() == [6, -3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("EFG 2 R", "does not begin with NFG"),
        ('NFG 1 R "x" { "a" "b" } { 2 2 } 1 2 3', "ends too early"),
        ('NFG 1 R "x" { "a" "b" } { 2 2 } 1 2 3 4 5 6 7 8 9', "after the last profile"),
        ('NFG 1 R "x" { "a" "b" } { 2 2 }\n1 2 3 4 5 six 7 8', "line 2: 'six' is no number"),
        ('NFG 1 R "x" { "a" "b" } { 2 2 } { { "" 1 2 } } 1 1 1 2', "there is no outcome 2"),
        ('NFG 1 R "x" { "a" "a" } { 1 1 } 1 2', "different names"),
        ('NFG 1 R "x { "a" }', "a quotation mark is not closed"),
    ],
)
def test_a_malformed_file_is_refused_by_its_line(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        NormalForm.read(write_game(tmp_path, text))


@pytest.mark.parametrize("tensor", [[1.0, 2.0], np.zeros((2, 2, 3)), [[[np.nan]], [[1]]], "game"])
def test_payoffs_of_another_shape_are_refused(tensor: object) -> None:
    with pytest.raises(UserError, match="payoffs"):
        NormalForm.from_payoffs(tensor)  # type: ignore[arg-type]


def test_games_of_openspiel_have_its_payoffs() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    dilemma = NormalForm.from_openspiel(pyspiel.load_game("matrix_pd"))
    assert dilemma.payoffs[0, 1].tolist() == [0, 10]
    assert dilemma.actions[0] == ("Cooperate", "Defect")
    pennies = NormalForm.from_openspiel(pyspiel.load_game("matching_pennies_3p"))
    assert pennies.sizes == (2, 2, 2)
    with pytest.raises(UserError, match="too many plans"):
        NormalForm.from_openspiel(pyspiel.load_game("tic_tac_toe"))


def test_plans_of_a_game_tree_have_names_of_one_line() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game = NormalForm.from_openspiel(pyspiel.load_game("kuhn_poker"))
    assert game.sizes == (64, 64)
    for names in game.actions:
        assert not any("\n" in name for name in names)


class GameWithRepeatedNames:
    """A game as OpenSpiel has them, in which both actions of the row have the same name."""

    def max_game_length(self) -> int:
        return 1

    def shape(self) -> list[int]:
        return [2, 2]

    def action_name(self, player: int, action: int) -> str:
        return "wait" if player == 0 else ("left", "right")[action]

    def player_utilities(self, player: int) -> list[float]:
        return [0.0, 1.0, 2.0, 3.0]


def test_actions_of_one_name_are_numbered() -> None:
    game = NormalForm.from_openspiel(GameWithRepeatedNames())
    assert game.actions == (("0: wait", "1: wait"), ("left", "right"))


def test_what_is_no_game_of_openspiel_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"3 is no game; give one of pyspiel\.load_game"):
        NormalForm.from_openspiel(3)


def test_a_game_is_written_without_its_payoffs() -> None:
    game = NormalForm.from_payoffs(CHICKEN, players=["Ann", "Bob"], title="chicken")
    assert repr(game) == "<NormalForm chicken: Ann, Bob; 2 x 2 actions>"


def test_players_who_learn_a_game_from_a_file_are_charged_its_payoffs(tmp_path: Path) -> None:
    write_game(tmp_path, PAYOFFS_FORM)
    file = tmp_path / "firms.toml"
    file.write_text(
        """
name = "firms"
rounds = 30
game = { file = "game.nfg" }
cohort = [
  { name = "twins", count = 2, actions = 2, response = "hedge" },
  { name = "third", actions = 3, response = "regret-matching" },
]
""",
        encoding="utf-8",
    )
    model = load(str(file)).build(seed=1)
    game = NormalForm.read(tmp_path / "game.nfg")
    payoffs = []
    for _ in range(30):
        model.step()
        profile = np.concatenate([model.last_actions(0), model.last_actions(1)])
        payoffs.append(game.payoffs[tuple(profile)])
    described = model.game.market.described()["payoffs"]
    assert list(described.values()) == pytest.approx(np.mean(payoffs, axis=0))
    assert model.called["twins"] == ["in", "out"]

    # The third player's losses, in payoffs, are those of its actions against the last profile.
    third = model.game.cohorts[1]
    decisions = [Decision(strategy=None, actions=actions) for actions in (profile[:2], profile[2:])]
    losses = model.game.market.losses(decisions)[1]
    expected = game.payoffs[profile[0], profile[1], :, 2]
    assert -(third.loss.unit_offset + third.loss.unit_scale * losses[0]) == pytest.approx(expected)


def test_the_first_player_of_a_gambit_file_may_lead(tmp_path: Path) -> None:
    write_game(tmp_path, 'NFG 1 R "chicken" { "a" "b" } { 2 2 } 0 0 2 7 7 2 6 6')
    file = tmp_path / "led.toml"
    file.write_text(
        """
name = "led"
rounds = 20
game = { file = "game.nfg" }
adversary = { kind = "stackelberg-committer" }
cohort = [{ name = "follower", utility = "game", actions = 2 }]
""",
        encoding="utf-8",
    )
    model = load(str(file)).build(seed=1)
    model.run()
    assert model.game.adversary.payoff is not None  # who dares first earns 7
    assert (model.last_actions(0) == 1).all()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('NFG 1 R "nobody" { } { }', "no players"),
        ('NFG 1 R "large" { "a" "b" } { 1 1 } 1e400 0', "1e400' is too large"),
        ('NFG 1 R "large" { "a" "b" } { 1e400 1 } 0 0', "1e400' is too large"),
        ('NFG 1 R "none" { "a" "b" } { 0 1 } ', "0 strategies"),
        ('NFG 1 R "half" { "a" "b" } { 1/2 1 } 0 0', "1/2 strategies"),
        ('NFG 1 R "unnamed" { "a" "b" } { { } { "x" } }', "no strategies"),
        ('NFG 1 R "many" { "a" "b" } { 1000000 1000000 } 0', "ends too early"),
    ],
)
def test_files_of_gambit_that_mean_nothing_are_refused_in_a_line(text: str, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        gambit_files.parse(text)
