"""Games from files, mimic regret, and what a sender who knows can get."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.exploitability import persuasion, stackelberg, swap_regret_of
from regretless.market.exploitability.bimatrix import read_game
from regretless.market.exploitability.information_design import mimic_regret, revenue_cap

HEADER = "leader,follower,leader_payoff,follower_loss\n"
PENNIES = HEADER + "H,H,1,2\nH,T,-1,0\nT,H,-1,0\nT,T,1,2\n"
TABLE, OBJECT = np.zeros((2, 2)), np.array([[{}]], dtype=object)


@pytest.mark.parametrize("rows", [PENNIES, HEADER + "H,H,1,2\nH,T,-1,0\n"])
def test_csv_and_npz_agree(rows: str, tmp_path: Path) -> None:
    text, arrays = tmp_path / "pennies.csv", tmp_path / "pennies.npz"
    text.write_text("# a comment\n" + rows, encoding="utf-8")
    game = read_game(text)
    assert (game.follower_actions, game.unit_scale, game.unit_offset) == (("H", "T"), 2.0, 0.0)
    assert game.leader_payoff.tolist() == [[1, -1], [-1, 1]][: len(game.leader_actions)]
    assert game.follower_loss.tolist() == [[1, 0], [0, 1]][: len(game.leader_actions)]
    names = {name: np.array(getattr(game, name)) for name in ("leader_actions", "follower_actions")}
    units = game.unit_offset + game.unit_scale * game.follower_loss
    np.savez(arrays, leader_payoff=game.leader_payoff, follower_loss=units, **names)
    other = read_game(str(arrays))
    for name in vars(game):
        assert np.array_equal(getattr(other, name), getattr(game, name))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("game.csv", "a,b\n1,2\n", "must begin with the header leader,follower"),
        ("game.csv", "", "must begin with the header"),
        ("game.csv", HEADER, "has no actions"),
        ("game.csv", HEADER + "H,H,1\n", "line 2: 3 values; give 4"),
        ("game.csv", HEADER + "# here\nH,H,one,0\n", "line 3: 'one' is no finite number"),
        ("game.csv", HEADER + "H,H,1,nan\n", "line 2: 'nan' is no finite number"),
        ("game.csv", HEADER + "H,H,1,0\nH,H,1,0\n", "line 3: H, H again"),
        ("game.csv", PENNIES.removesuffix("T,T,1,2\n"), "T, T is missing"),
        ("game.csv", HEADER + "\xe9,H,1,0\n", "UTF-8"),
        ("game.csv", None, "does not exist"),
        ("game.txt", HEADER, "use .csv or .npz"),
        ("game.npz", "no archive", "cannot be read"),
        ("game.npz", {"leader_payoff": OBJECT, "follower_loss": TABLE[:1, :1]}, "cannot be read"),
        ("game.npz", {"leader_payoff": TABLE}, "no array 'follower_loss'"),
        ("game.npz", {"leader_payoff": TABLE, "follower_loss": TABLE[:, :1]}, "make them equal"),
        (
            "game.npz",
            {"leader_payoff": TABLE, "follower_loss": TABLE, "leader_actions": ["a", "a"]},
            "give 2 different ones",
        ),
    ],
)
def test_a_malformed_file_is_one_line(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    if isinstance(content, dict):
        np.savez(tmp_path / name, **content)
    elif content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        read_game(tmp_path / name)
    assert "\n" not in str(caught.value)


# Mimic regret -----------------------------------------------------------------------------------

VALUES, FREQUENCIES = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.25, 0.25])


def test_mimic_regret_by_hand() -> None:
    losses = np.array([[[0.0, 1.0], [0.5, 0.2]], [[1.0, 0.0], [0.0, 0.4]]])
    actions = np.array([[0, 0], [1, 1]])
    # Type 0 pays 0 + 0.5, as type 1 it would pay 1 + 0.2; type 1 pays 0 + 0.4 against 1 + 0.
    expected = np.array([[0.0, (0.5 - 1.2) / 2], [(0.4 - 1.0) / 2, 0.0]])
    assert mimic_regret(losses, actions) == pytest.approx(expected)
    with_outside = mimic_regret(losses, np.eye(2)[actions], outside=1)
    assert with_outside[:, :2] == pytest.approx(expected)
    assert with_outside[:, 2] == pytest.approx([(0.5 - 1.2) / 2, 0.0])


def test_revenue_cap_of_the_published_buyers() -> None:
    """Myerson's revenue 0.25, and 1.75 per unit of mimic regret."""
    prices = [price * FREQUENCIES[price <= VALUES].sum() for price in VALUES]
    assert revenue_cap(VALUES, FREQUENCIES) == pytest.approx(max(prices))
    assert max(prices) == 0.25
    slope = (revenue_cap(VALUES, FREQUENCIES, 0.01) - 0.25) / 0.01
    assert slope == pytest.approx(1.75)
    assert revenue_cap(VALUES, FREQUENCIES, 0.656) <= 0.25 + 1.75 * 0.656


# Persuasion -------------------------------------------------------------------------------------

CONVICTED = np.array([[0.0, 1.0], [0.0, 1.0]])
JUDGE = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("guilty", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_the_prosecutor_of_kamenica_and_gentzkow_convicts_twice_as_many_as_are_guilty(
    guilty: float,
) -> None:
    found = persuasion([1 - guilty, guilty], CONVICTED, JUDGE)
    assert found.value == pytest.approx(min(1.0, 2 * guilty))
    assert found.candour == pytest.approx(guilty)
    assert found.silence == float(guilty >= 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_concave_closure_of_what_silence_pays(seed: int) -> None:
    """The best split of a prior over two outcomes into posteriors of a grid."""
    rng = stream(seed, "test persuasion")
    payoff, guilty = rng.random((2, 3)), float(rng.random())
    # actions tie at 1/3, 2/5 and 1/2, which lie on the grid
    loss, at = np.array([[0.0, 0.25, 0.5], [1.0, 0.5, 0.25]]), np.linspace(0, 1, 1201)
    posteriors = np.stack([1 - at, at], axis=1)
    tied = posteriors @ loss <= (posteriors @ loss).min(1, keepdims=True) + 1e-12
    worth = np.where(tied, posteriors @ payoff, -np.inf).max(1)
    brute = -linprog(-worth, A_eq=[np.ones(1201), at], b_eq=[1.0, guilty]).fun
    assert persuasion([1 - guilty, guilty], payoff, loss).value == pytest.approx(brute, abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_no_distribution_that_is_obeyed_pays_more_and_a_leader_gets_no_less(
    seed: int, outcomes: int, actions: int
) -> None:
    rng = stream(seed, "test orders")
    payoff, loss = rng.random((outcomes, actions)), rng.random((outcomes, actions))
    prior = rng.dirichlet(np.ones(outcomes))
    found = persuasion(prior, payoff, loss)
    assert max(found.silence, found.candour) <= found.value + 1e-9
    assert found.value <= stackelberg(payoff, loss).value + 1e-9
    assert found.joint.sum(1) == pytest.approx(prior)
    assert swap_regret_of(found.joint / found.joint.sum(), loss) <= 1e-8
    assert (found.joint * payoff).sum() == pytest.approx(found.value)


LOGGED, NO_PRIOR = np.zeros((2, 3, 2)), "give 2 numbers from 0 that sum to 1"


@pytest.mark.parametrize(
    ("measure", "told", "says"),
    [
        (mimic_regret, (TABLE, np.zeros(2)), "types, rounds, actions"),
        (mimic_regret, (LOGGED, np.full((2, 3), 2)), "from 0 to 1"),
        (mimic_regret, (LOGGED, np.zeros((3, 2), dtype=int)), "actions have shape"),
        (revenue_cap, (VALUES, FREQUENCIES / 2), "sum to 1"),
        (persuasion, ([0.5], CONVICTED, JUDGE), NO_PRIOR),
        (persuasion, ([0.7, 0.7], CONVICTED, JUDGE), NO_PRIOR),
        (persuasion, ([1.5, -0.5], CONVICTED, JUDGE), NO_PRIOR),
        (persuasion, ([np.nan, 1.0], CONVICTED, JUDGE), NO_PRIOR),
    ],
)
def test_bad_play_types_and_priors_are_refused(measure: Any, told: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        measure(*told)
