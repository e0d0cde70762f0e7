"""What the agents of a cohort come to, for a leader that is paid by them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from regretless import OutcomeDistribution, UserError, load
from regretless.agents.adversaries.leader import LinearPayoff, ZeroSum
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


def test_who_plays_a_mixed_strategy_pays_its_mean_over_the_actions() -> None:
    game = load("cartel", rounds=2).build(seed=1).game
    played = play_round(game)
    sums = summed(PaidByAction(in_one_row=True), game.cohorts, played)
    smooth = [cohort.name for cohort in game.cohorts].index("smooth")
    decision = played.decisions[smooth]
    assert decision is not None
    assert ((decision.probabilities > 0) & (decision.probabilities < 1)).any()
    agents_by_action = game.cohorts[smooth].counts @ decision.probabilities
    expected_payment = agents_by_action @ np.arange(float(len(agents_by_action)))
    assert sums["smooth"][:, 1].sum() == pytest.approx(expected_payment, rel=1e-12)


@dataclass
class PaidByAnswer(Payoff):
    """Pays what it is made with."""

    answer: Any

    def values(self, loss: Loss, outcomes: Array) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [None, [], [[["a"]]], np.ones((1, 1, 99)), np.ones((1, 99, 2))])
def test_a_payoff_of_another_shape_is_refused_before_a_kernel_reads_it(answer: Any) -> None:
    game = load("el-farol", rounds=1).build(seed=1).game
    played = play_round(game)
    with pytest.raises(UserError, match=r"PaidByAnswer\.values returned .*; return numbers of"):
        summed(PaidByAnswer(answer), game.cohorts, played)


class PaidLosses(Payoff):
    """Pays the followers' losses, and does not say that it does."""

    def values(self, loss: Loss, outcomes: Array) -> Array:
        return loss.losses(outcomes)


class PaidTwiceTheLosses(ZeroSum):
    """Pays twice what the class pays that it is made of."""

    def values(self, loss: Loss, outcomes: Array) -> Array:
        return 2 * loss.losses(outcomes)


@pytest.mark.parametrize("scenario", ["crop-choice", "cartel"])
def test_who_is_paid_the_followers_losses_is_paid_those_at_the_outcome(scenario: str) -> None:
    game = load(scenario, rounds=3).build(seed=1).game
    for _ in range(3):
        played = play_round(game)
        sums = summed(ZeroSum(), game.cohorts, played)
        worked_out_sums = summed(PaidLosses(), game.cohorts, played)
        for name, sums_of_cohort in worked_out_sums.items():
            np.testing.assert_array_equal(sums[name], sums_of_cohort)


class BarePayoff:
    """A payoff that is no subclass and has nothing but ``values``: those of ``PaidLosses``."""

    def values(self, loss: Loss, outcomes: Array) -> Array:
        return loss.losses(outcomes)


def test_a_payoff_may_have_nothing_but_its_values() -> None:
    game = load("crop-choice", rounds=1).build(seed=1).game
    played = play_round(game)
    bare_payoff: Any = BarePayoff()
    sums = summed(bare_payoff, game.cohorts, played)
    for name, sums_of_cohort in summed(PaidLosses(), game.cohorts, played).items():
        np.testing.assert_array_equal(sums[name], sums_of_cohort)


def test_losses_that_were_charged_are_not_worked_out_again() -> None:
    game = load("pigou", rounds=1).build(seed=1).game
    (cohort,) = game.cohorts
    played = play_round(game)
    (charged_losses,) = played.losses
    assert charged_losses is not None
    (decision,) = played.decisions
    assert decision is not None
    paid = (charged_losses * decision.probabilities).sum(1) @ cohort.counts
    played.outcome = np.full(cohort.loss.outcomes, np.nan)  # nobody reads it
    assert summed(ZeroSum(), game.cohorts, played)[cohort.name][:, 1].sum() == pytest.approx(paid)


def test_what_an_action_that_sleeps_was_charged_is_not_paid() -> None:
    game = load("pigou", rounds=1).build(seed=1).game
    (cohort,) = game.cohorts
    played = play_round(game)
    paid_at_outcome = summed(PaidLosses(), game.cohorts, played)[cohort.name][:, 1].sum()
    (charged_losses,) = played.losses
    assert charged_losses is not None
    played.losses = (charged_losses + 0.5,)  # as if some could not pay for what they lose least by
    played.affordable = (np.ones((len(cohort.row_of), cohort.loss.actions), dtype=np.bool_),)
    paid = summed(ZeroSum(), game.cohorts, played)[cohort.name][:, 1].sum()
    assert paid == paid_at_outcome


def test_who_writes_a_payoff_of_its_own_is_paid_that() -> None:
    game = load("pigou", rounds=1).build(seed=1).game
    (cohort,) = game.cohorts
    played = play_round(game)
    paid_once = summed(ZeroSum(), game.cohorts, played)[cohort.name][:, 1].sum()
    paid_twice = summed(PaidTwiceTheLosses(), game.cohorts, played)[cohort.name][:, 1].sum()
    assert paid_twice == pytest.approx(2 * paid_once)


class PaidTwiceByWeights(LinearPayoff):
    """Pays twice what its weights say, and nothing else of it is written anew."""

    def values(self, loss: Loss, outcomes: Array) -> Array:
        return 2 * super().values(loss, outcomes)


def test_what_is_paid_whoever_the_followers_are_is_what_each_cohort_is_asked_for() -> None:
    game = load("cartel", rounds=1).build(seed=1).game
    played = play_round(game)
    weights = np.arange(12.0).reshape(4, 3)
    sums = summed(LinearPayoff(weights, [1, 0, 2, 0]), game.cohorts, played)
    sums_of_twice = summed(PaidTwiceByWeights(weights, [1, 0, 2, 0]), game.cohorts, played)
    assert len(sums) == 2
    for name, sums_of_cohort in sums.items():
        paid = sums_of_cohort[:, 1].sum()
        assert paid > 0
        assert sums_of_twice[name][:, 1].sum() == pytest.approx(2 * paid, rel=1e-12)


def test_outcomes_in_a_table_of_tables_are_refused() -> None:
    with pytest.raises(UserError, match=r"the shape \(2, 2, 2\); give one number per coordinate"):
        OutcomeDistribution(np.zeros((2, 2, 2)), [0.5, 0.5])
