"""What alternatives would have cost: sums by hand, and intervals from means of batches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regretless.market.core import checkpoint
from regretless.market.regret.inference import mean_differences
from regretless.market.regret.model_comparison import BATCHES, Followed, Series

COUNTS = np.array([2.0, 1.0])  # three agents, two of them alike
NOTHING = np.zeros((0,), dtype=np.intp)


def scored(gaps: np.ndarray[Any, Any], kept: Followed | None = None, first: int = 0) -> Followed:
    """Let one agent lose so much less than with each model, round by round (T, M)."""
    models = gaps.shape[1]
    followed = kept or Followed(
        tuple(map(str, range(models))),
        np.ones(1),
        sizes=(0, models + 1),
        suggest=lambda: np.arange(1, models + 1)[None],
    )
    decision: Any = SimpleNamespace(choices=np.array([0]), probabilities=None, present=None)
    for t in range(first, len(gaps)):
        followed.add(t, decision, np.concatenate([[0.0], gaps[t]])[None], NOTHING)
    return followed


def known(followed: Followed) -> Series:
    """Return the differences of who has played."""
    series = followed.series()
    assert series is not None
    return series


def test_losses_are_summed_as_by_hand() -> None:
    rng = np.random.default_rng(0)
    losses, suggested = rng.random((50, 2, 3)), rng.integers(0, 3, (50, 2, 2))
    laws, policies = rng.dirichlet(np.ones(3), (50, 2)), rng.integers(0, 3, (50, 1))
    there = rng.random((50, 2)) < 0.7
    told: list[Any] = []
    followed = Followed(("a", "b"), COUNTS, sizes=(1, 3), suggest=lambda: told[-1])
    for t, (loss, law, own, present) in enumerate(zip(losses, laws, suggested, there, strict=True)):
        told.append(own)
        decision: Any = SimpleNamespace(
            choices=None, probabilities=law * present[:, None], present=present
        )
        followed.add(t, decision, loss, policies[t])
    at = np.take_along_axis(losses, suggested, axis=2) * there[..., None]
    np.testing.assert_allclose(followed.sums, at.sum(0), rtol=1e-12)
    rounds, weights = there.sum(0), COUNTS * there
    expected = at.sum(0) / rounds[:, None]
    np.testing.assert_allclose(followed.mean_loss(rounds), expected, rtol=1e-12)
    own = (laws * losses).sum(2) * there
    best = (losses * there[..., None]).sum(0).argmin(1)
    fixed = np.take_along_axis(losses, best[None, :, None], axis=2)[..., 0] * there
    policy = np.take_along_axis(losses, policies[:, None], axis=2)[..., 0] * there
    each = [at[..., 0], at[..., 1], policy, fixed]
    gaps = np.array([((one - own) * COUNTS).sum() for one in each]) / weights.sum()
    np.testing.assert_allclose(known(followed).means().mean(0), gaps, rtol=1e-9)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_the_interval_holds_for_a_correlated_difference(memory: float) -> None:
    """An AR(1) series around a mean: in about 95 % of 500 seeds the interval has the mean in it."""
    seeds, rounds, mean = 500, 1000, 0.02
    noise = np.random.default_rng(3).standard_normal((rounds, seeds))
    series, last = np.empty_like(noise), noise[0] / np.sqrt(1 - memory**2)
    for t in range(rounds):
        last = memory * last + noise[t] if t else last
        series[t] = mean + 0.1 * last
    batches = known(scored(series)).means()[:, :seeds]  # a model per seed
    found = [mean_differences(own[:, None]) for own in batches.T]
    held = np.mean([(one.low[0] <= mean) & (mean <= one.high[0]) for one in found])
    assert 0.92 <= held <= 0.97


def test_a_checkpoint_holds_the_sums_and_the_batches(tmp_path: Path) -> None:
    gaps = np.random.default_rng(0).random((3 * BATCHES, 2))
    whole, first, second = scored(gaps), scored(gaps[:170]), scored(gaps[:0])
    checkpoint.save(tmp_path / "kept", first.state())
    second.restore(checkpoint.load(tmp_path / "kept"))
    scored(gaps, second, 170)
    np.testing.assert_array_equal(known(second).sums, known(whole).sums)
    np.testing.assert_array_equal(second.sums, whole.sums)


def test_parts_are_joined_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    rows, models, counts = 50, 3, rng.integers(1, 9, 50).astype(float)
    told: list[Any] = []
    names, sizes = ("a", "b", "c"), (1, 4)
    whole = Followed(names, counts, sizes=sizes, suggest=lambda: told[-1])
    cuts = np.split(np.arange(rows), [7, 30])
    parts = [whole.part(own, counts[own], lambda own=own: told[-1][own]) for own in cuts]  # type: ignore[misc]
    alone = Followed(names, counts, sizes=sizes, suggest=lambda: told[-1])
    for t in range(3 * BATCHES):
        losses, choices = rng.random((rows, 4)), rng.integers(0, 4, rows)
        there = np.arange(rows) >= 7 if t > 20 else np.ones(rows, dtype=np.bool_)  # some leave
        policy = rng.integers(0, 4, 1)
        told.append(rng.integers(0, 4, (rows, models)))
        decision: Any = SimpleNamespace(choices=np.where(there, choices, -1), present=there)
        alone.add(t, decision, losses, policy)
        for own, part in zip(cuts, parts, strict=True):
            if there[own].any():
                decision = SimpleNamespace(
                    choices=np.where(there, choices, -1)[own], present=there[own]
                )
                part.add(t, decision, losses[own], policy)
    whole.join([part.kept(own) for own, part in zip(cuts, parts, strict=True)])
    np.testing.assert_array_equal(known(whole).sums, known(alone).sums)
    np.testing.assert_array_equal(known(whole).there, known(alone).there)
    np.testing.assert_array_equal(np.concatenate([part.sums for part in parts]), alone.sums)
