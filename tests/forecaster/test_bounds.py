"""The theorems as tests: measured biases and regrets below their bounds, the rate, and draws."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from small_scenarios import play_to_end
from streams_study import STREAMS, streams_scenario

from regretless import Adversary, DecisionSwap, LastValue, MarketModel, register
from regretless.forecaster import Reference, SeasonalNaive, VectorEvents
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events.draws import Draws
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.forecaster.guarantees import draws as cost_of_draws
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.draws import RISK, drawn, swap_draws
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.guarantees.norms import centred_norm, spread
from regretless.forecaster.minimax.cube import CubeSolver
from regretless.forecaster.unbiased import UnbiasedPrediction, certificate_limit
from regretless.forecaster.weights import BoundInputs, Moment, rule_of
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.game.attendance import Attendance
from regretless.market.losses import Linear
from regretless.market.records import OutcomeDistribution


def play_stream(stream: str, rounds: int, seed: int, **forecaster: Any) -> MarketModel:
    """Play the market of a stream of outcomes to the end."""
    scenario = streams_scenario(STREAMS[stream], forecaster, rounds=rounds, seed=seed)
    return play_to_end(scenario, log_every=rounds)


def check_regrets(agents: Any) -> None:
    """Check that nobody regrets more than is known, and that no more than is promised is known."""
    assert (agents["guarantee"] != "none").all()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()


def check_promises(model: MarketModel) -> Any:
    """Check regrets, biases and certificates against all of their bounds."""
    player = model.game.blocks[0].forecaster
    agents = model.agents_frame()
    check_regrets(agents)
    regret = agents["decision_swap_regret"].fillna(agents["swap_regret"])
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["bound_from_bias"] <= agents["bound"]).all()
    assert player.certificate_sum <= certificate_limit(model.played)
    limits = player.bias_bound()
    for *_, occupancy, bias in player.events.table():
        assert isinstance(limits, GainBound) or np.abs(bias).max() <= limits.bias(occupancy) + 1e-9
    return player


@pytest.mark.parametrize("weights", ["adaptive", "second-order", "exponential"])
@pytest.mark.parametrize("stream", STREAMS)
def test_biases_and_regrets_stay_below_their_bounds(stream: str, weights: str) -> None:
    """Certificates of the usual weights add up to 0.1 sqrt(T) at most, with a mean of 1e-3."""
    rounds = 1500 if weights == "adaptive" else 400
    total = check_promises(play_stream(stream, rounds, 1, weights=weights)).certificate_sum
    assert weights != "adaptive" or total <= min(0.1 * np.sqrt(rounds), 1e-3 * rounds)


ROUNDS = 6000
SHARE = 0.01
RUNS = 1000
DRAWN_ROUNDS = 400
ACTIONS = 3
ODD_ROUNDS = 120
ODD = "spikes", "corners", "flip", "mirror", "ramp", "bait"
FORECASTERS: list[dict[str, Any]] = [
    {}, {"weights": "exponential"}, {"events": "losses"},
    {"hull": "image"}, {"hull": "image", "events": "losses"},
    {"reference": "last-value"}, {"reference": "last-value", "give_up": 0.0},
    {"reference": "running-mean", "band": 2.0},
]  # fmt: skip
QUANTAL = {"utility": "linear", "parameters": {}, "response": "quantal", "eta": 30.0}
COHORTS: list[dict[str, Any]] = [{}, QUANTAL, {"response": "ensemble"}]
# Three streams for every forecaster, four forecasters for every stream; agents take turns.
PLACES = product(range(len(FORECASTERS)), range(3))
MET = [(FORECASTERS[i], ODD[(i + 2 * k) % 6], COHORTS[(i + k) % 3]) for i, k in PLACES]


class Odd(Adversary):
    """A stream by its name."""

    def __init__(self, outcomes: int, rng: np.random.Generator, *, stream: str) -> None:
        super().__init__(outcomes, rng)
        self.stream = stream

    def commit(self, context: Any, history: Any, announced: Any) -> OutcomeDistribution:
        t = history.rounds
        mean = np.clip(announced.mean_label, 0, 1)
        all_ones = np.ones(self.outcomes)
        outcome = {
            # calm, rare disasters
            "spikes": all_ones if self.rng.random() < 0.03 else 0.02 * all_ones,
            "corners": (self.rng.random(self.outcomes) < 0.5).astype(float),
            "flip": t % 2 * all_ones,  # opposite corners, where all actions of these agents tie
            "mirror": (mean < 0.5).astype(float),  # as far from the forecast as possible
            "ramp": t / ODD_ROUNDS * all_ones,  # slowly from one end to the other
            "bait": mean if t % 5 else 1 - mean,  # follows the forecast, and strikes
        }[self.stream]
        return OutcomeDistribution(np.array([outcome, 0.5 * all_ones]), np.array([0.9, 0.1]))


@pytest.mark.parametrize(("forecaster", "stream", "agents"), MET)
def test_promises_are_kept_on_odd_streams(forecaster: Any, stream: str, agents: Any) -> None:
    """Streams that nobody tuned for; certificates over the cube are what their definition says."""
    register.adversary("odd")(Odd)
    nature = {"kind": "odd", "stream": stream}
    scenario = streams_scenario(nature, forecaster, rounds=ODD_ROUNDS, seed=3, count=6, **agents)
    model = scenario.build(log_every=ODD_ROUNDS)
    player: Any = model.game.blocks[0].forecaster
    for _ in range(ODD_ROUNDS):
        if isinstance(player.solver, CubeSolver):
            moment = Moment(player.time + 1, player.events.experts, player.band)
            table = player.events.table_of(player.events.active(None), moment)
            mixture = player.mixture(None)
            worst = None
            rows = player.events.rows
            if not player.trusting:
                fields = np.stack([responses_at(rows, p) @ table for p in mixture.points])
                worst = player.solver.worst_case(mixture.weights, mixture.points, fields)
            assert mixture.certificate == pytest.approx(worst, abs=1e-9)
        model.step()
    check_promises(model)


def test_regret_falls_like_the_theorem_on_the_adaptive_stream() -> None:
    """The fitted slope of worst regret against T is at most -0.4."""
    regrets = {}
    for rounds, seeds in {250: 6, 1000: 6, 4000: 3}.items():
        runs = [play_stream("adaptive", rounds, seed) for seed in range(seeds)]
        regrets[rounds] = np.mean([run.agents_frame()["swap_regret"].max() for run in runs])
    slope = np.polyfit(np.log(list(regrets)), np.log(list(regrets.values())), 1)[0]
    assert slope <= -0.4, regrets


def test_a_rare_event_is_unbiased_at_its_own_scale() -> None:
    """The adaptive bound follows the square root of an event's occupancy, the printed one not."""
    bound = CoordinateBound(rule_of("adaptive"), BoundInputs(1000, 10_000, 1.0))
    assert bound.bias(100.0) == pytest.approx(bound.bias(10_000.0) / 10)
    printed = CoordinateBound(rule_of("exponential", 10_000), BoundInputs(1000, 10_000, 1.0))
    assert printed.bias(np.array([1.0, 1e4])) == pytest.approx(np.sqrt(2e4 * np.log(1000)) + 1.0)
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    assert (*spread(weights), *centred_norm(weights)) == (2.0, 1.0)
    shared = 2.0 * 3 * bound.bias(10_000 / 3) / 10_000  # by three actions, at worst equally
    assert bound.a_priori(weights) == pytest.approx([shared])


@pytest.mark.parametrize("order", [1, 2])
def test_the_spread_of_losses_is_the_greatest_norm_of_a_gap_between_two_actions(order: int) -> None:
    coefficients = np.random.default_rng(2).normal(size=(4, 5, 11))
    gaps = coefficients[:, :, None] - coefficients[:, None]

    greatest = spread(coefficients, order=order)

    assert np.array_equal(greatest, np.linalg.norm(gaps, ord=order, axis=3).max((1, 2)))


def play_decoy(*rule: Any, share: float = SHARE) -> Array:
    """Play a decoy: rare rounds, their greatest bias and it over its bound, at two times (3, 2)."""
    group = ProtectedLosses(np.array([[0.5, 0.0]]), np.array([[[0.0], [1.0]]]), [int])
    forecaster = UnbiasedPrediction(VectorEvents([group], rule_of(*rule)))
    rare = stream(0, "rare", "decoy").random(ROUNDS) < share
    measurements = []
    for t in range(ROUNDS):
        away = float(forecaster.mixture(rare[t]).mean[0] <= 0.5)
        forecaster.update([0.0 if rare[t] else away])
        if t + 1 in (ROUNDS / 4, ROUNDS):
            count_and_bias = [
                (n, b[0]) for *_, suggestion, n, b in forecaster.events.table() if suggestion == 1
            ]
            count, bias = np.abs(count_and_bias).T
            assert count.sum() == pytest.approx(rare[: t + 1].sum())
            used = bias / np.maximum(forecaster.bias_bound().bias(count), 1e-12)
            measurements.append((count.sum(), bias.max(), used.max()))
    return np.array(measurements).T


def test_exponential_weights_let_a_rare_bias_grow_with_all_rounds() -> None:
    """Measured at 6,000 rounds: 11.5 and 11.6 against 0.61 of the adaptive weights."""
    _, ours, used = play_decoy("adaptive")
    rare, anytime, _ = exponential_rows = play_decoy("exponential")
    _, fixed, _ = play_decoy("exponential", ROUNDS)
    # Of a bound that no event's count enters.
    assert max(used.max(), exponential_rows[2].max()) <= 1
    assert (np.minimum(anytime, fixed) >= [4 * ours[0], 15 * ours[1]]).all()
    more, often, _ = play_decoy("exponential", share=4 * SHARE)
    assert often[1] / often[0] == pytest.approx(2, rel=0.25)  # sqrt(4)
    assert more[1] >= 3 * rare[1]
    assert often[1] == pytest.approx(anytime[1], rel=0.25)  # whatever the event's count


def small_decision_swap() -> DecisionSwap:
    """Return a forecaster for three random linear losses of two outcomes."""
    weights = -np.random.default_rng(3).dirichlet(np.ones(2), 3)
    return DecisionSwap([Linear(weights, np.ones(3))])


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_a_prediction_owes_nothing_to_outcomes_that_have_not_arrived(delay: int) -> None:
    outcomes = np.random.default_rng(0).random((30, 2))
    changed = 12
    pair = Delayed(small_decision_swap, delay), Delayed(small_decision_swap, delay)
    for t, outcome in enumerate(outcomes):
        points, points_with_change = (player.mixture().points.copy() for player in pair)
        if t <= changed + delay + 1:
            assert np.array_equal(points, points_with_change) == (t <= changed + delay)
        pair[0].update(outcome)
        pair[1].update(np.abs(outcome - 0.4) if t == changed else outcome)


def test_the_bound_grows_like_the_root_of_the_delay() -> None:
    runs = [play_stream("iid", 320, 0, delay=delay) for delay in (0, 3, 15)]
    bounds = np.array([run.agents_frame()["bound"].max() for run in runs])
    ratios = bounds[1:] / bounds[:-1]
    assert ((ratios > 1.5) & (ratios < 2.1)).all()


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_who_comes_and_goes_is_promised_the_sum_over_turns(stream: str) -> None:
    model = play_to_end(
        streams_scenario(STREAMS[stream], {"delay": 2}, rounds=200, seed=0, exit_rate=0.02)
    )
    check_regrets(model.agents_frame())
    assert (model.agents_frame()["left"] < 200).any()
    (promise,) = model.guarantees
    assert (promise.beforehand(200) >= promise.bound() - 1e-9).all()


def test_a_stay_is_the_rounds_of_all_turns() -> None:
    stays = [(0, 1), (1, 9), (3, 3), (7, 8), (8, 40)]
    attendance = Attendance(*np.array(stays).T)
    for turn in range(3):
        stays_of_turn = attendance.turn(turn, 3)
        for row, stay in enumerate(stays):
            rounds = [t // 3 for t in range(*stay) if t % 3 == turn]
            assert rounds == list(range(stays_of_turn.entered[row], stays_of_turn.left[row]))


@pytest.mark.parametrize(("make", "back"), [(LastValue, 3), (SeasonalNaive, 5)])
def test_a_reference_is_told_two_rounds_late_and_predicts_two_ahead(make: Any, back: int) -> None:
    """The last value is that of three rounds ago; a season of five rounds keeps its phase."""
    rows = np.random.default_rng(2).random((30, 2))
    groups = small_decision_swap().events.groups
    model = make(2, **({"period": 5} if back == 5 else {}))
    reference = Reference(model, give_up=1000.0, turns=3)
    player = Delayed(lambda: UnbiasedPrediction(VectorEvents(groups), None, reference), 2)
    for t, row in enumerate(rows):
        points = player.mixture(t).points
        assert t < 2 * back or points == pytest.approx(rows[[t - back]])
        player.update(row)
    kept_all_through = {"kept": 1.0, "disproved_at": None, "first_correction": None}
    assert player.described() == kept_all_through


def worst_excess(seed: int) -> Array:
    """Worst excess of runs (RUNS,) against who knows all draws, pushes their gain and stops."""
    rng = np.random.default_rng(seed)
    every = np.arange(RUNS)
    group = ProtectedLosses(np.zeros((RUNS, ACTIONS)), np.tile(np.eye(ACTIONS), (RUNS, 1, 1)))
    sums = np.zeros((RUNS, ACTIONS, ACTIONS))
    worst = np.full(RUNS, -np.inf)
    draws = Draws(LossTable([group]))
    for t in range(DRAWN_ROUNDS):
        distribution = rng.dirichlet(np.full(ACTIONS, 0.5), RUNS)
        distribution[distribution < 0.02] = 0.0
        distribution /= distribution.sum(1, keepdims=True)
        losses = (rng.random((RUNS, ACTIONS)) < 0.5).astype(float)
        if t % 3:  # an extreme loss for the action on whose side luck was, or a small one
            losses = np.zeros((RUNS, ACTIONS))
            losses[every, sums.max(2).argmax(1)] = rng.choice([0.1, 1.0])
        played = (rng.random(RUNS)[:, None] > distribution.cumsum(1)[:, :-1]).sum(1)
        step = np.eye(ACTIONS)[played] - distribution
        sums += step[:, :, None] * (losses[:, :, None] - losses[:, None, :])
        draws.groups[0].add(distribution.ravel(), losses.ravel())
        known_variation = draws.of(group, fixed=True)
        allowed = swap_draws(known_variation, promises=1, actions=ACTIONS, comparators=ACTIONS)
        worst = np.maximum(worst, sums.max(2).sum(1) - allowed)
    return worst


def test_no_run_in_a_hundred_passes_it_even_at_its_worst_moment(monkeypatch: Any) -> None:
    """The bound is no wider than it must be: with a thousand times the risk runs pass it."""
    assert (worst_excess(0) > 1e-9).mean() <= RISK
    monkeypatch.setattr(cost_of_draws, "RISK", 10.0)
    assert (worst_excess(1) > 1e-9).any()


def test_one_martingale_is_held_at_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = ((np.random.default_rng(2).random((RUNS, 2000)) < 0.3) - 0.3).cumsum(1)
    variation = np.outer([0.21, 0.7], np.arange(1, 2001))
    shares = []
    for risk in (0.01, 0.5):
        monkeypatch.setattr(cost_of_draws, "RISK", risk)
        shares.append((walk > drawn(variation, 0.0)).any(1).mean())
    assert shares[0] <= 0.01
    assert 0.02 < shares[1] <= 0.5


def test_what_is_sure_adds_nothing_and_every_assignment_counts() -> None:
    """One that keeps actions, too; contextual ones choose for each pair of played and suggested."""
    variation = np.array([[0.0, 4.0, 30.0], [0.0, 30.0, 1e9]])
    for promises, actions, comparators, chances in (
        (10, 2, 3, len([*product(range(3), repeat=2)])),
        (10 * 3, 2**2, 2, len([*product(range(2), repeat=2 * 2)])),
        (10, 0, 1, 1),  # to a model
    ):
        counts = {"promises": promises, "actions": actions, "comparators": comparators}
        allowed = swap_draws(variation, **counts)
        assert allowed == pytest.approx(drawn(variation, np.log(promises * chances), 2.0))
        assert allowed[0] == 0 < allowed[1]
        wide = swap_draws(4 * variation, **counts, width=2.0)
        assert wide == pytest.approx(np.minimum(2 * allowed, 4 * variation[1]))
    assert drawn(np.array([0.5, 1.0]), 7.0) == 1.0  # surely no more than all rounds could bring


def test_variances_are_those_of_the_mixture() -> None:
    """By their definition; no assignment's step has a greater one, or is larger than is sure."""
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((4, 3)), rng.normal(size=(4, 3, 2)))
    rows = LossTable([group])
    draws_of_run = Draws(LossTable([group]))
    sums_of_anybody = np.zeros(2)
    (near, far, surely, widths) = np.zeros((4, 4))
    pairs = np.zeros((4, 3, 3))
    for _ in range(40):
        mass = rng.dirichlet(np.full(3, 0.3))
        truth = rng.random(2)
        draws_of_round = Draws(rows)
        seen = (np.eye(3)[rng.integers(3, size=(4, 3))] * mass[:, None]).sum(1)
        for draws in (draws_of_round, draws_of_run):
            draws.add(seen.ravel(), rows.offset + rows.weights @ truth, mass)
        known_variation = draws_of_round.of(group, fixed=True).T
        sums_of_anybody += min(2 * mass @ (1 - mass), 1.0), 2 * (1 - mass.min())
        for k, losses_of_agent in enumerate(group.offset + group.weights @ truth):
            pi = seen[k]
            width = np.ptp(losses_of_agent)
            squares = pi[:, None] * (losses_of_agent[:, None] - losses_of_agent) ** 2
            small = 2 * width**2 * pi @ (1 - pi)
            moments = squares.max(1).sum()
            if small < moments:
                near[k] += small
            else:
                far[k] += moments
                pairs[k] += squares
            surely[k] += 2 * width * (1 - pi[pi > 0].min())
            widths[k] = max(widths[k], width)
            for assigned in product(range(3), repeat=3):
                gains = losses_of_agent - losses_of_agent[[*assigned]]
                assert pi @ gains**2 - (pi @ gains) ** 2 <= known_variation[k, 0] + 1e-12
                assert (gains[pi > 0] - pi @ gains).max() <= known_variation[k, 1] + 1e-12
    for fixed, large_variances in ((True, pairs.max(2).sum(1)), (False, far)):
        expected = np.array([near + large_variances, surely])
        assert draws_of_run.of(group, fixed=fixed) == pytest.approx(expected)
        anybodys_variation = np.array([sums_of_anybody[0] * widths**2, sums_of_anybody[1] * widths])
        assert draws_of_run.of_anybody(widths) == pytest.approx(anybodys_variation)
        assert (anybodys_variation >= expected).all()
    with pytest.raises(ValueError, match="not protected"):
        draws_of_run.of(ProtectedLosses(np.zeros((1, 2)), np.ones((1, 2, 2))), fixed=True)


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_a_run_may_be_stopped_whenever_it_pleases(stream: str) -> None:
    """Bounds hold in every round, and fall with the rounds."""
    model = streams_scenario(STREAMS[stream], {}, rounds=120, seed=1).build(log_every=120)
    bounds = []
    for _ in range(120):
        model.step()
        agents = model.agents_frame()
        assert (agents["swap_regret"] <= agents["bound_from_variation"] + 1e-9).all()
        bounds.append(agents["bound"].max())
    assert bounds[-1] < bounds[19] < bounds[4]


def test_biases_as_drawn_stay_below_their_bound() -> None:
    """Calibration of what was broadcast: decision events' realised biases, round by round."""
    for seed in range(4):
        model = play_to_end(streams_scenario(STREAMS["adaptive"], {}, rounds=150, seed=seed))
        player = model.game.blocks[0].forecaster
        basis = model.game.blocks[0].basis
        rows = player.events.rows
        table = model.biases_frame()
        forecasts = model.forecasts_frame().query("drawn").filter(like="p_").to_numpy()
        images = basis.transform(model.rounds_frame().filter(like="y_").to_numpy())
        realised = np.zeros(rows.weights.shape)
        for point, image in zip(forecasts[:, : basis.size], images, strict=True):
            realised += responses_at(rows, point)[:, None] * (point - image)
        occupancy = np.array([row[4] for row in player.events.table()])
        expected, drawn_too = player.bias_bound().event_bounds(occupancy)
        assert (np.abs(realised).max(1) <= drawn_too).all()
        assert (expected < drawn_too).all()
        assert (table["bound_drawn"] > table["bound"]).all()
        assert (table.filter(like="bias_").abs().max(axis=1) <= table["bound"]).all()


def test_bounds_that_were_asked_for_on_the_way_are_those_of_the_end() -> None:
    scenario = streams_scenario(STREAMS["iid"], {}, rounds=60, seed=3)
    asked_at_the_end = scenario.build()
    asked_each_round = scenario.build()
    guarantee = asked_each_round.guarantees[0]
    while not asked_each_round.is_finished:
        asked_each_round.step()
        guarantee.bound()
        guarantee.from_variation()
    asked_at_the_end.run()

    unasked_guarantee = asked_at_the_end.guarantees[0]
    np.testing.assert_array_equal(guarantee.bound(), unasked_guarantee.bound())
    np.testing.assert_array_equal(guarantee.from_variation(), unasked_guarantee.from_variation())
