"""What the agents of a cohort come to, for a leader that is paid by them."""

from dataclasses import dataclass

import numpy as np

from regretless import load
from regretless.market.core.arrays import Array
from regretless.market.game.adversary_view import summed
from regretless.market.game.protocols import Payoff
from regretless.market.game.round import play_round
from regretless.market.losses.base import Loss


@dataclass
class PaidByAction(Payoff):
    """Pays the number of the action, in so many rows: one for all losses, or one for each."""

    in_one_row: bool

    def values(self, loss: Loss, outcomes: Array) -> Array:
        rows = 1 if self.in_one_row else len(loss)
        return np.broadcast_to(np.arange(float(loss.actions)), (len(outcomes), rows, loss.actions))


def test_a_payoff_may_say_in_one_row_what_all_agents_pay() -> None:
    game = load("crop-choice", rounds=2).build(seed=1).game  # agents without dice
    played = play_round(game)
    sums_of_one_row = summed(PaidByAction(in_one_row=True), game.cohorts, played)
    sums_of_all_rows = summed(PaidByAction(in_one_row=False), game.cohorts, played)
    assert sums_of_one_row.keys() == sums_of_all_rows.keys()
    for name, sums in sums_of_all_rows.items():
        np.testing.assert_array_equal(sums_of_one_row[name], sums)
        agents_by_action = sums[:, 2:].sum(0)
        assert sums[:, 1].sum() == np.arange(len(agents_by_action)) @ agents_by_action
