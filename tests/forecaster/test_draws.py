"""What draws add: a thousand runs stopped at their worst moment, runs watched in every round."""

from itertools import product

import numpy as np
import pytest
from streams import STREAMS, market

from regretless.forecaster.events import realised
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.forecaster.events.realised import RISK, Draws, drawn, swap_draws
from regretless.market.core.arrays import Array

RUNS, ROUNDS, ACTIONS = 1000, 400, 3


def worst_excess(seed: int, promises: int) -> Array:
    """Play runs against an adversary that pushes whatever draws gained so far; the worst excess.

    It knows the mixture and all past draws, and stops each run when the sum over the actions of
    the largest martingale is farthest above its bound (RUNS,).
    """
    rng = np.random.default_rng(seed)
    group = ProtectedLosses(np.zeros((RUNS, ACTIONS)), np.tile(np.eye(ACTIONS), (RUNS, 1, 1)))
    sums, worst = np.zeros((RUNS, ACTIONS, ACTIONS)), np.full(RUNS, -np.inf)
    kept = Draws(LossTable([group]))
    for t in range(ROUNDS):
        distribution = rng.dirichlet(np.full(ACTIONS, 0.5), RUNS)
        distribution[distribution < 0.02] = 0.0
        distribution /= distribution.sum(1, keepdims=True)
        losses = (rng.random((RUNS, ACTIONS)) < 0.5).astype(float)
        if t % 3:  # an extreme loss for the action on whose side luck was, or a small one
            losses = np.zeros((RUNS, ACTIONS))
            losses[np.arange(RUNS), sums.max(2).argmax(1)] = rng.choice([0.1, 1.0])
        played = (rng.random(RUNS)[:, None] > distribution.cumsum(1)[:, :-1]).sum(1)
        step = np.eye(ACTIONS)[played] - distribution
        sums += step[:, :, None] * (losses[:, :, None] - losses[:, None, :])
        realised._add(kept._known[0], distribution, losses)
        known = kept.of(group, fixed=True)
        allowed = swap_draws(known, promises=promises, actions=ACTIONS, comparators=ACTIONS)
        worst = np.maximum(worst, sums.max(2).sum(1) - allowed)
    return worst


def test_no_run_in_a_hundred_passes_it_even_at_its_worst_moment() -> None:
    assert (worst_excess(0, promises=1) > 1e-9).mean() <= RISK


def test_a_bound_for_more_risk_is_passed_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is no wider than it must be: with a thousand times the risk runs pass it."""
    monkeypatch.setattr(realised, "RISK", 10.0)
    assert (worst_excess(1, promises=1) > 1e-9).any()


def test_one_martingale_is_held_at_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    coins = rng.random((RUNS, 2000)) < 0.3
    walk = (coins - 0.3).cumsum(1)
    known = np.stack([np.arange(1, 2001) * 0.21, np.arange(1, 2001) * 0.7])
    shares = []
    for risk in (0.01, 0.5):
        monkeypatch.setattr(realised, "RISK", risk)
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
    assert (known.of_anybody(np.full(3, 0.8)) >= known.of(group, fixed=True)).all()
    for distribution, at in ((seen[:2], 0), (seen[4:], 2)):  # of every assignment of comparators
        for assigned in ([0, 0], [0, 1], [1, 0], [1, 1]):
            gains = np.array([0.9, 0.1]) - np.array([0.9, 0.1])[assigned]
            assert distribution @ gains**2 - (distribution @ gains) ** 2 <= variance[at] + 1e-12
            assert (gains - distribution @ gains).max() <= surely[at] + 1e-12
    with pytest.raises(ValueError, match="not protected"):
        known.of(ProtectedLosses(np.zeros((1, 2)), np.ones((1, 2, 2))), fixed=True)


@pytest.mark.parametrize("stream", STREAMS)
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
