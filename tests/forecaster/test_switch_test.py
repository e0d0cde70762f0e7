"""The switch test: a calibrated model is kept, whatever can raise an alarm has its part of it."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from paper.switch_test import TABLES, of_cells
from regretless.forecaster import Constant, VectorEvents, switch_test
from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.mixture_of_rates import RATES, log_mixture
from regretless.forecaster.reference import Reference
from regretless.forecaster.switch_test import FALSE_ALARMS, Bets, SwitchTest
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.universal import CellEvents, scales_for
from regretless.market.core.randomness import stream
from regretless.scenarios import load

ROUNDS = 1000


def listed_losses(*, outcomes: int = 1, **response: Any) -> ProtectedLosses:
    """Make twenty losses with four actions."""
    rng = np.random.default_rng(0)
    weights = rng.random((20, 4, outcomes)) / 4
    return ProtectedLosses(rng.random((20, 4)) / 4, weights, **response)


def test_every_cell_can_raise_the_alarm_where_everyone_is_protected() -> None:
    scales = scales_for(ROUNDS)
    listed = VectorEvents([listed_losses()])
    cells = CellEvents([listed_losses()], scales, experts=listed.experts)
    player = UnbiasedPrediction(listed + cells, reference=Reference(Constant(1)))
    assert cells.alarms == 4092
    assert player.switch_test is not None
    assert player.switch_test.tests == listed.experts + 4092


def test_every_interval_can_raise_the_alarm() -> None:
    """Of 120 rounds: the whole, and [32, 64), [64, 96), [96, 120) and [64, 120)."""
    make = partial(VectorEvents, [listed_losses()])
    assert Intervals(make, rounds=120).alarms == 5 * make().alarms


def test_kinds_of_test_share_alpha() -> None:
    """Single regrets, sums over actions and regrets to models have a third of it each."""
    gains_alone = GainEvents([listed_losses()])
    beside_models = GainEvents([listed_losses()], models=3)
    assert gains_alone.alarms == 2 * gains_alone.experts
    assert beside_models.alarms == 3 * beside_models.experts


@pytest.mark.parametrize("shared", [{"turns": 3}, {"blocks": 3}])
def test_turns_and_blocks_share_alpha(shared: dict[str, int]) -> None:
    assert SwitchTest(100, **shared).evidence == pytest.approx(SwitchTest(300).evidence)
    assert Bets(**shared).evidence == pytest.approx(math.log(3 / FALSE_ALARMS))


@pytest.mark.parametrize("surprise", [-1.0, -0.1, 0.0, 0.3, 1.0, 5.0])
def test_bets_convince_where_the_mean_of_wealths_exceeds_its_level(surprise: float) -> None:
    """Whether it is asked before a round is settled or found out by settling it."""
    bets = Bets()
    shares = 0.9 * 0.5 ** np.arange(7)
    wealths = np.ones(7)
    answers = []
    for _ in range(40):
        expected_to_convince = bets.would_convince(surprise)
        wealths *= 1.0 + shares * min(surprise, 2.0)
        convinces = bets.add(surprise)
        assert convinces == expected_to_convince
        assert convinces == (math.log(wealths.mean()) > bets.evidence)
        answers.append(convinces)
    assert answers[-1] == (surprise > 0.0)


def test_settled_bets_grow_by_the_shares_of_a_payoff_that_is_cut() -> None:
    log_wealth = np.log([0.5, 1.0, 2.0])
    shares = np.array([0.9, 0.45, 0.225])
    after = np.empty(3)

    log_mean = switch_test._settle_bets(log_wealth, shares, 7.0, after)

    wealth = np.exp(log_wealth) * (1 + shares * switch_test.GREATEST_SURPRISE)
    assert after == pytest.approx(np.log(wealth), abs=1e-14)
    assert log_mean == pytest.approx(math.log(wealth.mean()), abs=1e-14)


def test_each_turn_bets_with_a_wealth_of_its_own() -> None:
    reference = Reference(Constant(1), turns=2)
    for surprise in (1.0, -0.5, 1.0, -0.5):
        reference.judge(unchanged=True, surprise=surprise)
    assert (reference.bets.wealth[0] > 0).all()
    assert (reference.bets.wealth[1] < 0).all()


def test_blocks_of_a_run_have_a_part_of_alpha_each() -> None:
    model = load("crop-choice", rounds=20).build(seed=0)
    references = [block.forecaster.reference for block in model.game.blocks]
    assert [reference.blocks for reference in references] == [len(references)] * len(references)


@pytest.mark.parametrize("chance", [0.001, 0.03, 0.5, 0.97])
def test_the_mixture_is_not_expected_to_grow_however_skewed_a_step_is(chance: float) -> None:
    """From any state (R, V) by the error of a coin whose chance is known, of either sign."""
    for sign in (1.0, -1.0):
        for gain, squares in ((0.0, 0.0), (15.0, 9.0), (40.0, 70.0)):
            steps = sign * np.array([1 - chance, -chance])
            after = np.exp(log_mixture(gain + steps, squares + steps**2))
            before = float(np.exp(log_mixture(np.array(gain), np.array(squares))))
            assert after @ np.array([chance, 1 - chance]) <= before * (1 + 1e-12)


def test_the_limit_is_the_inverse_of_the_mixture_and_concave() -> None:
    test = SwitchTest(500, 1.3, turns=2)
    squares = np.linspace(0.0, 3000.0, 2001)
    limit = test.limit(squares)
    level = log_mixture(limit, squares)
    assert (level >= test.evidence - 1e-9).all()
    assert (level <= test.evidence + 1e-5).all()
    assert (np.diff(limit) > 0).all()
    assert (np.diff(limit, n=2) <= 1e-9).all()
    assert not test.rejects(limit - 1e-4, squares)
    assert test.rejects(limit[-1:] + 1e-4, squares[-1:])


def test_no_regret_exceeds_the_sizes_of_its_increments_nor_what_the_test_lets_pass() -> None:
    test = SwitchTest(tests=200, turns=2)
    sizes = np.concatenate([np.linspace(0.0, 2 * test.harmless, 50), [1e3, 1e6]])

    greatest = test.most_of_sizes(sizes)

    assert np.array_equal(greatest, np.minimum(sizes, test.most(sizes)))
    assert test.most_of_sizes(1e3) == test.most(1e3)


@pytest.mark.parametrize("rounds", [1, 20, 500, 100_000])
def test_no_regret_passes_its_reach(rounds: int) -> None:
    test = SwitchTest(500)
    variation = np.geomspace(0.01, rounds, 5001)
    greatest = np.minimum(test.limit(variation) + 1.0, variation)
    roots = (greatest / np.sqrt(variation)).max()
    assert roots <= test.reach(rounds) <= 1.02 * roots


def test_a_sum_over_actions_counts_each_square_by_the_chance_of_its_action() -> None:
    """Two actions are played half the time each: the sum's square is not the squares' sum."""
    events = GainEvents([listed_losses(outcomes=2, eta=3.0)])
    (member,) = events.members
    rng = np.random.default_rng(1)
    for _ in range(40):
        point = rng.random((1, 2))
        truth = rng.random(2)
        played = played_of(events.rows, point, np.ones(1), truth)
        events.charge(events.active(None), played._replace(reference_is_trusted=True))
    gain = np.where(np.isfinite(member.gain), member.gain, 0.0)
    assert (member.played_squares >= member.squares).all()
    total = gain.sum(1)
    squares = member.played_squares.sum(1)
    assert (total**2 <= 40 * squares + 1e-9).all()  # Cauchy and Schwarz, rounds of chance 1


@pytest.mark.parametrize("eta", [None, 0.5, 8.0])
def test_a_calibrated_prediction_is_expected_to_cost_nobody_anything(eta: float | None) -> None:
    """Whatever is charged while a reference is trusted; the test is a supermartingale then.

    Quantal agents play actions that are expected to lose more than others, and a rare outcome costs
    these less by more than 1.
    """
    rng = stream(1, "tests", "calibrated")
    weights = rng.choice([-1.0, 0.0, 1.0], size=(20, 4, 2)) / 2
    offset = -np.minimum(weights, 0.0).sum(2)  # losses from 0 to 1
    events = GainEvents([ProtectedLosses(offset, weights, eta=eta)])
    (member,) = events.members
    outcomes = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for _ in range(50):
        chances = rng.dirichlet(np.full(4, 0.3))
        prediction = chances @ outcomes
        expected = np.zeros(member.shape)
        for chance, outcome in zip(chances, outcomes, strict=True):
            played = played_of(events.rows, prediction[None], np.ones(1), outcome)
            suggested = events.active(None)
            (gains,) = events.gains_of_round(suggested, played._replace(reference_is_trusted=True))
            expected.reshape(-1, member.shape[2])[gains.rows] += chance * gains.gain
            assert np.abs(gains.gain).max() <= 1 + 1e-12
            margins = events.gains_of_round(suggested, played)[0].margin
            np.testing.assert_allclose(gains.margin, np.minimum(margins, 0.0), atol=1e-12)
        assert expected.max() <= 1e-12


@pytest.mark.parametrize("eta", [None, 3.0])
def test_squares_are_at_most_what_the_bound_of_a_trusted_reference_counts(
    eta: float | None,
) -> None:
    """Regrets of best responses are at most 1; gains of others may be as wide as their scale."""
    rng = stream(2, "tests", "squares")
    weights = rng.choice([-1.0, 0.0, 1.0], size=(20, 4, 2)) / 2
    offset = -np.minimum(weights, 0.0).sum(2)
    events = GainEvents([ProtectedLosses(offset, weights, eta=eta)], greatest_regret=1.0)
    (member,) = events.members
    rounds = 30
    for _ in range(rounds):
        prediction = rng.integers(2, size=(1, 2)).astype(float)
        outcome = rng.integers(2, size=2).astype(float)
        played = played_of(events.rows, prediction, np.ones(1), outcome)
        events.charge(events.active(None), played._replace(reference_is_trusted=True))
    bound = events.bound(UnbiasedPrediction(events).bias_bound().inputs, "box")
    greatest = bound._greatest_squares(member.scale, rounds)
    assert (member.played_squares.max(2).sum(1) <= greatest + 1e-9).all()
    is_narrower = member.scale > 1
    assert (greatest[is_narrower] < rounds).all() == (eta is None)


def test_a_policy_that_loses_far_more_than_the_range_of_gains_hides_no_regret() -> None:
    """Gains are within 0.08 here, the regret to the policy's dear action is down to -0.95.

    Uncut, that regret would widen the limit of the test, and the reference would be trusted on.
    """
    offset = np.array([[0.0, 0.0, 0.0, 0.95]])
    weights = np.array([[[0.02, 0.02], [0.0, 0.04], [0.04, 0.0], [0.0, 0.0]]])
    losses = ProtectedLosses(offset, weights, policies=(int,))
    events = GainEvents([losses], within=2.0, greatest_regret=1.0)
    forecaster = UnbiasedPrediction(events, Box(2), Reference(Constant(2)))
    rounds = 400
    for round_index in range(rounds):
        is_dear = round_index % 80 == 5
        is_odd = round_index % 2
        forecaster.mixture(3 if is_dear else 2 - is_odd)
        outcome = [0.0, 0.0] if is_dear else [is_odd, 1 - is_odd]
        forecaster.update(np.array(outcome, dtype=float))
    (member,) = events.members
    assert member.squares.max() <= rounds
    assert not forecaster.trusting


def test_a_calibrated_model_of_rare_outcomes_is_kept_by_all_cells() -> None:
    """The former limit, with listed biases counted, gives up 2 to 31 % of such runs."""
    alarms = np.zeros(3, dtype=int)
    for seed in range(60):
        rng = stream(seed, "tests", "rare")
        chances = rng.uniform(0.0, 0.04, ROUNDS)
        alarms += of_cells(chances, chances, rng) > 0
    assert alarms[0] == 0
    assert alarms[2] > 0


def test_the_table_of_alarms_counts_runs_and_has_an_upper_limit() -> None:
    table = TABLES["switch-alarms"]
    lines = table.summed(table.measure(seeds=2, jobs=1))
    assert (lines["runs"] == 2).all()
    assert (lines.xs("mixture", level="limit")["alarms"] == 0).all()
    assert (lines["upper limit"] > lines["share"]).all()


def test_no_rate_of_the_switch_test_is_one() -> None:
    """At a rate of 1 the cost of a step is infinite."""
    assert RATES.max() < 1.0
