"""The theorems as tests: measured biases and regrets below their bounds, the rate, and draws."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import worlds
from streams import STREAMS, market

from regretless import Adversary, DecisionSwap, LastValue, MarketModel, register
from regretless.forecaster import Reference, SeasonalNaive, VectorEvents
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events import cost_of_draws
from regretless.forecaster.events.bounds import BiasBound, GainBound, centred_norm, spread
from regretless.forecaster.events.cost_of_draws import RISK, Draws, drawn, swap_draws
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.forecaster.events.weights import (
    AdaptiveWeights,
    ExponentialWeights,
    Moment,
    rule_of,
)
from regretless.forecaster.minimax.cube import CubeSolver
from regretless.forecaster.unbiased import UnbiasedPrediction, certificate_limit
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.game.seats import Attendance
from regretless.market.losses import Linear
from regretless.market.records import OutcomeDistribution


def played(stream: str, rounds: int, seed: int, **forecaster: Any) -> MarketModel:
    made = market(STREAMS[stream], forecaster, rounds=rounds, seed=seed)
    return worlds.played(made, log_every=rounds)


def check_regrets(agents: Any) -> None:
    """Check that nobody regrets more than is known, and that no more than is promised is known."""
    assert (agents["guarantee"] != "none").all()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()


def check_promises(model: MarketModel) -> Any:
    """Check regrets, biases and certificates against all of their bounds."""
    player, agents = model.game.blocks[0].forecaster, model.agents_frame()
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
    total = check_promises(played(stream, rounds, 1, weights=weights)).certificate_sum
    assert weights != "adaptive" or total <= min(0.1 * np.sqrt(rounds), 1e-3 * rounds)


ODD_ROUNDS = 120
ODD: dict[str, Callable[[int, Array, np.random.Generator], Array]] = {
    # calm, with rare disasters
    "spikes": lambda _, mean, rng: np.full_like(mean, 1.0 if rng.random() < 0.03 else 0.02),
    # a random corner of the cube
    "corners": lambda _, mean, rng: (rng.random(len(mean)) < 0.5).astype(float),
    # opposite corners in turn, where all actions of these agents tie
    "flip": lambda t, mean, _: np.full_like(mean, float(t % 2)),
    # as far from the forecast as possible, in every coordinate
    "mirror": lambda _, mean, __: (mean < 0.5).astype(float),
    # slowly from one end to the other
    "ramp": lambda t, mean, _: np.full_like(mean, t / ODD_ROUNDS),
    # follows the forecast, and strikes
    "bait": lambda t, mean, _: mean if t % 5 else 1 - mean,
}


class Odd(Adversary):
    """A stream by its name."""

    def __init__(self, outcomes: int, rng: np.random.Generator, *, stream: str) -> None:
        super().__init__(outcomes, rng)
        self.stream = ODD[stream]

    def commit(self, context: Any, history: Any, announced: Any) -> OutcomeDistribution:
        outcome = self.stream(history.rounds, np.clip(announced.mean_label, 0, 1), self.rng)
        centre = np.full(self.outcomes, 0.5)
        return OutcomeDistribution(np.array([outcome, centre]), np.array([0.9, 0.1]))


FORECASTERS: list[dict[str, Any]] = [
    {},
    {"weights": "exponential"},
    {"events": "losses"},
    {"hull": "image"},
    {"hull": "image", "events": "losses"},
    {"reference": "last-value", "give_up": 0.0},
    {"reference": "running-mean", "band": 2.0},
    {"reference": "last-value"},
]
COHORTS: list[dict[str, Any]] = [
    {},
    {"utility": "linear", "parameters": {}, "response": "quantal", "eta": 30.0},
    {"response": "ensemble"},
]
# Three streams for every forecaster, four forecasters for every stream; agents take turns.
MET = [
    (keys, list(ODD)[(i + 2 * k) % len(ODD)], COHORTS[(i + k) % len(COHORTS)])
    for i, keys in enumerate(FORECASTERS)
    for k in range(3)
]


@pytest.mark.parametrize(("forecaster", "stream", "agents"), MET)
def test_promises_are_kept_on_odd_streams(forecaster: Any, stream: str, agents: Any) -> None:
    """Streams that nobody tuned for; certificates over the cube are what their definition says."""
    register.adversary("odd")(Odd)
    nature = {"kind": "odd", "stream": stream}
    scenario = market(nature, forecaster, rounds=ODD_ROUNDS, seed=3, count=6, **agents)
    model = scenario.build(log_every=ODD_ROUNDS)
    player: Any = model.game.blocks[0].forecaster
    for _ in range(ODD_ROUNDS):
        if isinstance(player.solver, CubeSolver):
            moment = Moment(player.time + 1, player.events.experts, player.band)
            table = player.events.table_of(player.events.active(None), moment)
            mixture, worst, rows = player.mixture(None), None, player.events.rows
            if not player.trusting:
                fields = np.stack([responses_at(rows, p) @ table for p in mixture.points])
                worst = player.solver.worst(mixture.weights, mixture.points, fields)
            assert mixture.certificate == pytest.approx(worst, abs=1e-9)
        model.step()
    check_promises(model)


def test_regret_falls_like_the_theorem_on_the_adaptive_stream() -> None:
    """The fitted slope of worst regret against T is at most -0.4."""
    regrets = {}
    for rounds, seeds in {250: 6, 1000: 6, 4000: 3}.items():
        runs = [played("adaptive", rounds, seed) for seed in range(seeds)]
        regrets[rounds] = np.mean([run.agents_frame()["swap_regret"].max() for run in runs])
    slope = np.polyfit(np.log(list(regrets)), np.log(list(regrets.values())), 1)[0]
    assert slope <= -0.4, regrets


def test_a_rare_event_is_unbiased_at_its_own_scale() -> None:
    """The adaptive bound follows the square root of an event's occupancy."""
    bound = BiasBound(AdaptiveWeights(), 1000, 10_000, 1.0)
    assert bound.bias(100.0) == pytest.approx(bound.bias(10_000.0) / 10)
    printed = BiasBound(ExponentialWeights(10_000), 1000, 10_000, 1.0)
    assert printed.bias(100.0) == printed.bias(10_000.0)
    assert printed.bias(1.0) == pytest.approx(np.sqrt(2 * 10_000 * np.log(1000)) + 1.0)


def test_norms_of_coefficients() -> None:
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    assert spread(weights) == pytest.approx([2.0])
    assert centred_norm(weights) == pytest.approx([1.0])


ROUNDS, SHARE = 6000, 0.01


def decoyed(*rule: Any, share: float = SHARE) -> Array:
    """Play a decoy: rare rounds, their greatest bias and it over its bound, at two times (3, 2)."""
    group = ProtectedLosses(np.array([[0.5, 0.0]]), np.array([[[0.0], [1.0]]]), [int])
    forecaster = UnbiasedPrediction(VectorEvents([group], rule_of(*rule)))
    rare, found = stream(0, "rare", "decoy").random(ROUNDS) < share, []
    for t in range(ROUNDS):
        away = float(forecaster.mixture(rare[t]).mean[0] <= 0.5)
        forecaster.update([0.0 if rare[t] else away])
        if t + 1 in (ROUNDS / 4, ROUNDS):
            told = [(n, b[0]) for *_, said, n, b in forecaster.events.table() if said == 1]
            count, bias = np.abs(told).T
            assert count.sum() == pytest.approx(rare[: t + 1].sum())
            used = bias / np.maximum(forecaster.bias_bound().bias(count), 1e-12)
            found.append((count.sum(), bias.max(), used.max()))
    return np.array(found).T


def test_exponential_weights_let_a_rare_bias_grow_with_all_rounds() -> None:
    """Measured at 6,000 rounds: 11.5 and 11.6 against 0.61 of the adaptive weights."""
    _, ours, used = decoyed("adaptive")
    rare, anytime, _ = told = decoyed("exponential")
    _, fixed, _ = decoyed("exponential", ROUNDS)
    assert max(used.max(), told[2].max()) <= 1  # of a bound that no event's count enters
    assert (np.minimum(anytime, fixed) >= [4 * ours[0], 15 * ours[1]]).all()
    more, often, _ = decoyed("exponential", share=4 * SHARE)
    assert often[1] / often[0] == pytest.approx(2, rel=0.25)  # sqrt(4)
    assert more[1] >= 3 * rare[1]
    assert often[1] == pytest.approx(anytime[1], rel=0.25)  # whatever the event's count


def plain() -> DecisionSwap:
    weights = -np.random.default_rng(3).dirichlet(np.ones(2), 3)
    return DecisionSwap([Linear(weights, np.ones(3))])


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_a_prediction_owes_nothing_to_outcomes_that_have_not_arrived(delay: int) -> None:
    rng, changed = np.random.default_rng(0), 12
    ways = []
    outcomes = rng.random((30, 2))
    for shift in (0.0, 0.4):
        player, seen = Delayed(plain, delay), []
        for t, outcome in enumerate(outcomes):
            seen.append(player.mixture().points.copy())
            player.update(np.abs(outcome - shift) if t == changed else outcome)
        ways.append(seen)
    same = [a.shape == b.shape and np.array_equal(a, b) for a, b in zip(*ways, strict=True)]
    assert all(same[: changed + delay + 1])
    assert not same[changed + delay + 1]


def test_the_bound_grows_like_the_root_of_the_delay() -> None:
    runs = [played("iid", 320, 0, delay=delay) for delay in (0, 3, 15)]
    bounds = np.array([run.agents_frame()["bound"].max() for run in runs])
    ratios = bounds[1:] / bounds[:-1]
    assert ((ratios > 1.5) & (ratios < 2.1)).all()


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_who_comes_and_goes_is_promised_the_sum_over_turns(stream: str) -> None:
    model = worlds.played(market(STREAMS[stream], {"delay": 2}, rounds=200, seed=0, exit_rate=0.02))
    check_regrets(model.agents_frame())
    assert (model.agents_frame()["left"] < 200).any()
    (promise,) = model.guarantees
    assert (promise.beforehand(200) >= promise.bound() - 1e-9).all()


def test_a_stay_is_the_rounds_of_all_turns() -> None:
    entered, left = np.array([0, 1, 3, 7, 8]), np.array([1, 9, 3, 8, 40])
    turns = [Attendance(entered, left).turn(turn, 3) for turn in range(3)]
    for row, (first, last) in enumerate(zip(entered, left, strict=True)):
        for turn, own in enumerate(turns):
            rounds = [t // 3 for t in range(first, last) if t % 3 == turn]
            assert rounds == list(range(own.entered[row], own.left[row]))


@pytest.mark.parametrize(("make", "back"), [(LastValue, 3), (SeasonalNaive, 5)])
def test_a_reference_is_told_two_rounds_late_and_predicts_two_ahead(make: Any, back: int) -> None:
    """The last value is that of three rounds ago; a season of five rounds keeps its phase."""
    rows, groups = np.random.default_rng(2).random((30, 2)), plain().events.groups

    def fresh() -> Delayed:
        model = make(2, **({"period": 5} if back == 5 else {}))
        reference = Reference(model, give_up=1000.0, turns=3)
        return Delayed(lambda: UnbiasedPrediction(VectorEvents(groups), None, reference), 2)

    player, twin = fresh(), fresh()
    for t, row in enumerate(rows):
        if t == 20:
            twin.restore(player.state())
        said = player.mixture(t).points
        assert t < 2 * back or said == pytest.approx(rows[[t - back]])
        if t >= 20:
            assert np.array_equal(twin.mixture(t).points, said)
            twin.update(row)
        player.update(row)
    assert player.described() == {"kept": 1.0, "disproved_at": None}


RUNS, DRAWN_ROUNDS, DRAWN_ACTIONS = 1000, 400, 3


def worst_excess(seed: int, promises: int) -> Array:
    """Play runs against an adversary that pushes whatever draws gained so far; the worst excess.

    It knows the mixture and all past draws, and stops each run when the sum over the actions of
    the largest martingale is farthest above its bound (RUNS,).
    """
    rng = np.random.default_rng(seed)
    group = ProtectedLosses(
        np.zeros((RUNS, DRAWN_ACTIONS)), np.tile(np.eye(DRAWN_ACTIONS), (RUNS, 1, 1))
    )
    sums, worst = np.zeros((RUNS, DRAWN_ACTIONS, DRAWN_ACTIONS)), np.full(RUNS, -np.inf)
    kept = Draws(LossTable([group]))
    for t in range(DRAWN_ROUNDS):
        distribution = rng.dirichlet(np.full(DRAWN_ACTIONS, 0.5), RUNS)
        distribution[distribution < 0.02] = 0.0
        distribution /= distribution.sum(1, keepdims=True)
        losses = (rng.random((RUNS, DRAWN_ACTIONS)) < 0.5).astype(float)
        if t % 3:  # an extreme loss for the action on whose side luck was, or a small one
            losses = np.zeros((RUNS, DRAWN_ACTIONS))
            losses[np.arange(RUNS), sums.max(2).argmax(1)] = rng.choice([0.1, 1.0])
        played = (rng.random(RUNS)[:, None] > distribution.cumsum(1)[:, :-1]).sum(1)
        step = np.eye(DRAWN_ACTIONS)[played] - distribution
        sums += step[:, :, None] * (losses[:, :, None] - losses[:, None, :])
        cost_of_draws._add(kept._known[0], distribution, losses)
        known = kept.of(group, fixed=True)
        allowed = swap_draws(
            known, promises=promises, actions=DRAWN_ACTIONS, comparators=DRAWN_ACTIONS
        )
        worst = np.maximum(worst, sums.max(2).sum(1) - allowed)
    return worst


def test_no_run_in_a_hundred_passes_it_even_at_its_worst_moment() -> None:
    assert (worst_excess(0, promises=1) > 1e-9).mean() <= RISK


def test_a_bound_for_more_risk_is_passed_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is no wider than it must be: with a thousand times the risk runs pass it."""
    monkeypatch.setattr(cost_of_draws, "RISK", 10.0)
    assert (worst_excess(1, promises=1) > 1e-9).any()


def test_one_martingale_is_held_at_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    coins = rng.random((RUNS, 2000)) < 0.3
    walk = (coins - 0.3).cumsum(1)
    known = np.stack([np.arange(1, 2001) * 0.21, np.arange(1, 2001) * 0.7])
    shares = []
    for risk in (0.01, 0.5):
        monkeypatch.setattr(cost_of_draws, "RISK", risk)
        shares.append((walk > drawn(known, 0.0)).any(1).mean())
    assert shares[0] <= 0.01
    assert 0.02 < shares[1] <= 0.5


def test_what_is_sure_adds_nothing_and_range_scales() -> None:
    known = np.array([[0.0, 4.0], [0.0, 30.0]])
    allowed = swap_draws(known, promises=10, actions=2, comparators=2)
    assert allowed[0] == 0 < allowed[1]
    wide = swap_draws(4 * known, promises=10, actions=2, comparators=2, width=2.0)
    assert wide[1] == pytest.approx(min(2 * allowed[1], 120))
    more = swap_draws(known, promises=10 * 3, actions=2**2, comparators=2)  # contextual
    to_model = swap_draws(known, promises=10, actions=0, comparators=1)
    assert more[1] > allowed[1] > to_model[1] * 0.9
    assert drawn(np.array([0.5, 1.0]), 7.0) == 1.0  # surely no more than all rounds could bring


def test_every_assignment_is_counted_those_that_keep_actions_included() -> None:
    """Two actions and a policy that is no constant, on two contexts, enumerated one by one."""
    comparators = [(0, 0), (1, 1), (0, 1)]  # what each suggests in either context
    swaps = {
        tuple(assigned[action][x] for action in range(2) for x in range(2))
        for assigned in product(comparators, repeat=2)
    }
    assert (0, 0, 1, 1) in swaps  # which keeps both actions
    assert (1, 1, 1, 1) in swaps  # which keeps one
    known = np.array([[30.0], [1e9]])
    allowed = swap_draws(known, promises=10, actions=2, comparators=3)
    assert allowed == pytest.approx(drawn(known, np.log(10 * len(swaps)), 2.0))
    contextual = list(product(range(2), repeat=2 * 2))  # an action for each played and suggested
    allowed = swap_draws(known, promises=10 * 3, actions=2**2, comparators=2)
    assert allowed == pytest.approx(drawn(known, np.log(10 * 3 * len(contextual)), 2.0))


def test_variances_are_those_of_the_mixture() -> None:
    """Two actions at 1/4 and 3/4, losses 0.9 and 0.1; one action alone; 1/100 and 99/100."""
    group = ProtectedLosses(np.zeros((3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    known = Draws(LossTable([group]))
    seen = np.array([0.25, 0.75, 1.0, 0.0, 0.01, 0.99])
    known.add(seen, np.array([0.9, 0.1]), np.array([0.01, 0.24, 0.75]))
    variance, surely = known.of(group, fixed=True)
    assert variance == pytest.approx([2 * 0.64 * 2 * 0.1875, 0, 2 * 0.64 * 2 * 0.0099])
    assert surely == pytest.approx([1.6 * 0.75, 0, 1.6 * 0.99])
    assert known.of(group, fixed=False)[0] == pytest.approx(variance)
    spread = 2 * (0.01 * 0.99 + 0.24 * 0.76 + 0.75 * 0.25)
    anybody = known.of_anybody(np.full(3, 0.8))
    assert anybody == pytest.approx(np.full((3, 2), [0.64 * spread, 0.8 * 2 * 0.99]).T)
    assert (anybody >= known.of(group, fixed=True)).all()
    known.add(np.array([0.5, 0.5, 1.0, 0.0, 0.9, 0.1]), np.array([0.9, 0.1]), np.array([0.5, 0.5]))
    more = known.of(group, fixed=False)[0] - variance
    assert more == pytest.approx([0.64, 0, 2 * 0.64 * 2 * 0.09])
    three = Draws(LossTable([ProtectedLosses(np.array([[0.9, 0.4, 0.1]]), np.zeros((1, 3, 1)))]))
    three.add(np.full(3, 1 / 3), np.zeros(1), np.full(3, 1 / 3))  # second moments are less here
    for fixed in (True, False):
        of = three.of(three._rows.groups[0], fixed=fixed)[0]
        assert of == pytest.approx((0.8**2 + 0.5**2 + 0.8**2) / 3)
    for distribution, at in ((seen[:2], 0), (seen[4:], 2)):  # of every assignment of comparators
        for assigned in ([0, 0], [0, 1], [1, 0], [1, 1]):
            gains = np.array([0.9, 0.1]) - np.array([0.9, 0.1])[assigned]
            assert distribution @ gains**2 - (distribution @ gains) ** 2 <= variance[at] + 1e-12
            assert (gains - distribution @ gains).max() <= surely[at] + 1e-12
    with pytest.raises(ValueError, match="not protected"):
        known.of(ProtectedLosses(np.zeros((1, 2)), np.ones((1, 2, 2))), fixed=True)


@pytest.mark.parametrize("stream", ["adaptive", "switching"])
def test_a_run_may_be_stopped_whenever_it_pleases(stream: str) -> None:
    """Bounds hold in every round, and fall with the rounds."""
    model = market(STREAMS[stream], {}, rounds=120, seed=1).build(log_every=120)
    bounds = []
    while model.running and model.played < 120:
        model.step()
        agents = model.agents_frame()
        assert (agents["swap_regret"] <= agents["bound_from_variation"] + 1e-9).all()
        bounds.append(agents["bound"].max())
    assert bounds[-1] < bounds[19] < bounds[4]


def test_biases_as_drawn_stay_below_their_bound() -> None:
    """Calibration of what was broadcast: decision events' realised biases, round by round."""
    for seed in range(4):
        model = market(STREAMS["adaptive"], {}, rounds=150, seed=seed).build()
        player = model.game.blocks[0].forecaster
        rows = player.events.rows
        realised = np.zeros(rows.weights.shape)
        model.run()
        forecasts = model.forecasts_frame().query("drawn").filter(like="p_").to_numpy()
        outcomes = model.rounds_frame().filter(like="y_").to_numpy()
        basis = model.game.blocks[0].basis
        for point, outcome in zip(forecasts, outcomes, strict=True):
            play = responses_at(rows, point[: basis.size])
            realised += play[:, None] * (point[: basis.size] - basis.transform(outcome[None])[0])
        occupancy = np.array([row[4] for row in player.events.table()])
        expected, drawn_too = player.bias_bound().of_events(occupancy)
        assert (np.abs(realised).max(1) <= drawn_too).all()
        assert (expected < drawn_too).all()
        table = model.biases_frame()
        assert (table["bound_drawn"] > table["bound"]).all()
        assert (table.filter(like="bias_").abs().max(axis=1) <= table["bound"]).all()
