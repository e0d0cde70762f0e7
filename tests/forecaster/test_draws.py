"""What draws add: a thousand runs stopped at their worst moment, runs watched in every round."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from streams import STREAMS, market

from regretless.forecaster.events import draws
from regretless.forecaster.events.draws import RISK, Draws, contextual_draws, drawn, swap_draws
from regretless.forecaster.events.protected import LossGroup, rows_of

Array = NDArray[np.float64]

RUNS, ROUNDS, ACTIONS = 1000, 400, 3


def worst_excess(seed: int, promises: int) -> Array:
    """Play runs against an adversary that pushes whatever draws gained so far; the worst excess.

    It knows the mixture and all past draws, and stops each run when the sum over the actions of
    the largest martingale is farthest above its bound (RUNS,).
    """
    rng = np.random.default_rng(seed)
    known = np.zeros((2, RUNS, ACTIONS))
    sums, worst = np.zeros((RUNS, ACTIONS, ACTIONS)), np.full(RUNS, -np.inf)
    for t in range(ROUNDS):
        law = rng.dirichlet(np.full(ACTIONS, 0.5), RUNS)
        law[law < 0.02] = 0.0
        law /= law.sum(1, keepdims=True)
        losses = (rng.random((RUNS, ACTIONS)) < 0.5).astype(float)
        if t % 3:  # an extreme loss for the action on whose side luck was, or a small one
            losses = np.zeros((RUNS, ACTIONS))
            losses[np.arange(RUNS), sums.max(2).argmax(1)] = rng.choice([0.1, 1.0])
        played = (rng.random(RUNS)[:, None] > law.cumsum(1)[:, :-1]).sum(1)
        step = np.eye(ACTIONS)[played] - law
        sums += step[:, :, None] * (losses[:, :, None] - losses[:, None, :])
        width = np.ptp(losses, axis=1)[:, None]
        mixed = (law > 0) & (law < 1)
        known[0] += law * (1 - law) * width**2
        known[1] += np.where(mixed, np.maximum(law, 1 - law) * width, 0)
        allowed = swap_draws(known, promises=promises, comparators=ACTIONS)
        worst = np.maximum(worst, sums.max(2).sum(1) - allowed)
    return worst


def test_no_run_in_a_hundred_passes_it_even_at_its_worst_moment() -> None:
    assert (worst_excess(0, promises=1) > 1e-9).mean() <= RISK


def test_a_bound_for_more_risk_is_passed_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is no wider than it must be: with a thousand times the risk runs pass it."""
    monkeypatch.setattr(draws, "RISK", 10.0)
    assert (worst_excess(1, promises=1) > 1e-9).any()


def test_one_martingale_is_held_at_all_times_at_its_own_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    coins = rng.random((RUNS, 2000)) < 0.3
    walk = (coins - 0.3).cumsum(1)
    known = np.stack([np.arange(1, 2001) * 0.21, np.arange(1, 2001) * 0.7])
    shares = []
    for risk in (0.01, 0.5):
        monkeypatch.setattr(draws, "RISK", risk)
        shares.append((walk > drawn(known, 1)).any(1).mean())
    assert shares[0] <= 0.01
    assert 0.02 < shares[1] <= 0.5


def test_what_is_sure_adds_nothing_and_range_scales() -> None:
    known = np.array([[[0.0, 4.0]], [[0.0, 30.0]]])
    assert drawn(known, 10)[0, 0] == 0
    assert swap_draws(known, promises=10, comparators=2)[0] > 0
    wide = swap_draws(4 * known, promises=10, comparators=2, width=2.0)
    assert wide == pytest.approx(2 * swap_draws(known, promises=10, comparators=2))
    more = contextual_draws(known, promises=10, policies=1, width=np.ones(1))
    assert more > swap_draws(known, promises=10, comparators=2)
    few = np.array([[[0.5]], [[1.0]]])
    assert drawn(few, 1000)[0, 0] == 1.0  # surely no more than what all rounds could bring


def test_variances_are_those_of_the_mixture() -> None:
    weights = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.5, 0.0]]])
    group = LossGroup(np.zeros((2, 2)), weights)
    known = Draws([group], rows_of([group]))
    truth = np.array([0.9, 0.1])
    known.add(np.array([0.25, 0.75, 1.0, 0.0]), truth)
    variance, most = known.of(group)
    assert variance == pytest.approx(np.array([[0.12, 0.12], [0, 0]]))
    assert most == pytest.approx(np.array([[0.6, 0.6], [0, 0]]))
    with pytest.raises(ValueError, match="not protected"):
        known.of(LossGroup(np.zeros((1, 2)), weights[:1]))


@pytest.mark.parametrize("stream", STREAMS)
def test_a_run_may_be_stopped_whenever_it_pleases(stream: str) -> None:
    """Bounds hold in every round, and fall with the rounds."""
    for seed in range(3):
        model = market(STREAMS[stream], {}, rounds=120, seed=seed).build(log_every=120)
        bounds = []
        while model.running and model.played < 120:
            model.step()
            agents = model.agents_frame()
            assert (agents["swap_regret"] <= agents["bound_from_variation"] + 1e-9).all()
            bounds.append(agents["bound"].max())
        assert bounds[-1] < bounds[19] < bounds[4]
