"""What margins earn: the value of a known game, and a surplus for each margin."""

import pandas as pd
import pytest

from paper import commitments


def test_a_known_game_has_its_value_and_a_surplus_for_each_margin() -> None:
    """Conitzer and Sandholm's leader gets 3.5, of payoffs up to 4, by committing to a mixture."""
    game = commitments.conitzer_and_sandholm()
    rows = pd.DataFrame(commitments.commit(game, 20, seed=0))
    assert rows["margin"].tolist() == ["0.0", "0.06", "auto"]
    assert rows["value"].tolist() == pytest.approx([3.5 / 4] * 3)
    assert rows["surplus"].between(-1.0, 1.0).all()
    assert rows["surplus"].iloc[0] != rows["surplus"].iloc[1]  # the margin changes what is played
    assert (rows["its margin"] > 0.1).all()


def test_random_games_are_the_same_whenever_they_are_drawn() -> None:
    first_draw, second_draw = commitments.games(), commitments.games()
    assert len({game.name for game in first_draw}) == 1 + commitments.N_RANDOM_GAMES
    for game, again in zip(first_draw, second_draw, strict=True):
        assert game.leader_payoff.tolist() == again.leader_payoff.tolist()
        assert game.follower_loss.tolist() == again.follower_loss.tolist()
