"""What it would have cost to follow a model: sums by hand, and intervals from means of batches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from regretless.market.core import checkpoint
from regretless.market.numerics import exact_sum
from regretless.market.regret.model_comparison import BATCHES, Followed

COUNTS = np.array([2.0, 1.0])  # three agents, two of them alike


def scored(gaps: np.ndarray[Any, Any]) -> Followed:
    """Let one agent lose so much more than by each model, round by round (T, M)."""
    models = gaps.shape[1]
    followed = Followed(
        tuple(map(str, range(models))),
        np.ones(1),
        scale=np.ones(1),
        suggest=lambda: np.arange(1, models + 1)[None],
    )
    decision: Any = SimpleNamespace(choices=np.array([0]), probabilities=None, present=None)
    for gap in gaps:
        followed.add(decision, np.concatenate([[0.0], -gap])[None])
    return followed


def test_losses_are_summed_as_by_hand() -> None:
    rng = np.random.default_rng(0)
    losses, suggested = rng.random((50, 2, 3)), rng.integers(0, 3, (50, 2, 2))
    laws, scale = rng.dirichlet(np.ones(3), (50, 2)), np.array([2.0, 5.0])
    there = rng.random((50, 2)) < 0.7
    told: list[Any] = []
    followed = Followed(("a", "b"), COUNTS, scale=scale, suggest=lambda: told[-1])
    sums, gaps, counts = np.zeros((2, 2)), np.zeros(2), 0
    for loss, law, own, present in zip(losses, laws, suggested, there, strict=True):
        told.append(own)
        decision: Any = SimpleNamespace(
            choices=None, probabilities=law * present[:, None], present=present
        )
        followed.add(decision, loss)
        for m in range(2):
            lost = [present[k] * loss[k, own[k, m]] for k in range(2)]
            sums[:, m] += lost
        who = [k for k in (0, 0, 1) if present[k]]
        if who:
            counts += 1
            gaps += [
                np.mean([scale[k] * (law[k] @ loss[k] - loss[k, own[k, m]]) for k in who])
                for m in range(2)
            ]
    np.testing.assert_allclose(followed.sums, sums, rtol=1e-12)
    rounds = there.sum(0)
    np.testing.assert_allclose(followed.mean_loss(rounds), sums / rounds[:, None], rtol=1e-12)
    np.testing.assert_allclose(followed.gaps()[0], gaps / counts, rtol=1e-12)


def test_the_interval_holds_for_a_correlated_difference() -> None:
    """An AR(1) series around a mean: in about 95 % of 400 seeds the interval has the mean in it."""
    seeds, rounds, mean, memory = 400, 2000, 0.02, 0.5
    noise = np.random.default_rng(3).standard_normal((rounds, seeds))
    series, last = np.empty_like(noise), noise[0] / np.sqrt(1 - memory**2)
    for t in range(rounds):
        last = memory * last + noise[t] if t else last
        series[t] = mean + 0.1 * last
    means, halves = scored(series).gaps()  # a model per seed: they do not touch one another
    assert 0.925 < np.mean(np.abs(means - mean) <= halves) < 0.975
    independent = 1.96 * series.std(0) / np.sqrt(rounds)  # what forgets the correlation fails
    assert np.mean(np.abs(means - mean) <= independent) < 0.85


def test_a_checkpoint_holds_the_sums_and_the_batches(tmp_path: Path) -> None:
    gaps = np.random.default_rng(0).random((300, 2))
    whole, first, second = scored(gaps), scored(gaps[:170]), scored(gaps[:0])
    checkpoint.save(tmp_path / "kept", first.state())
    second.restore(checkpoint.load(tmp_path / "kept"))
    for t in range(170, 300):
        second._collect(exact_sum.total(gaps[t][None], np.ones(1)))
    for ours, theirs in zip(second.gaps(), whole.gaps(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(second.sums, first.sums)


def test_parts_are_joined_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    rows, models, counts = 50, 3, rng.integers(1, 9, 50).astype(float)
    told: list[Any] = []
    scale = rng.random(rows) * 1000
    whole = Followed(("a", "b", "c"), counts, scale=scale, suggest=lambda: told[-1])
    cuts = np.split(np.arange(rows), [7, 30])
    parts = [whole.part(own, counts[own], lambda own=own: told[-1][own]) for own in cuts]  # type: ignore[misc]
    alone = Followed(("a", "b", "c"), counts, scale=scale, suggest=lambda: told[-1])
    for _ in range(3 * BATCHES):
        losses, choices = rng.random((rows, 4)), rng.integers(0, 4, rows)
        told.append(rng.integers(0, 4, (rows, models)))
        decision: Any = SimpleNamespace(choices=choices, present=None)
        alone.add(decision, losses)
        for own, part in zip(cuts, parts, strict=True):
            decision = SimpleNamespace(choices=choices[own], present=None)
            part.add(decision, losses[own])
    whole.join([part.state() for part in parts])
    for ours, theirs in zip(whole.gaps(), alone.gaps(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.concatenate([part.sums for part in parts]), alone.sums)
