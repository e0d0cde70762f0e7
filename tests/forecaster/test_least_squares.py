"""Least squares: the batch solution, however the features come and go; no wind-up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regretless.forecaster.models.least_squares import LeastSquares

SIZE = 4


class Recorded(LeastSquares):
    """Shows the features that it used last."""

    def _row(self) -> Any:
        self.used = super()._row()
        return self.used


def batch(rows: list[Any], truths: Any, player: LeastSquares) -> Any:
    """Solve the discounted ridge regression anew; new features are last."""
    design = np.array([np.pad(row, (0, len(rows[-1]) - len(row))) for row in rows])
    weights = player.forgetting ** np.arange(len(rows))[::-1]
    gram = design.T @ (weights[:, None] * design) + player.ridge * np.eye(len(rows[-1]))
    return np.linalg.solve(gram, design.T @ (weights[:, None] * (truths[: len(rows)] - 0.5)))


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize("past", [2, SIZE], ids=["outcomes", "vectors"])
def test_it_is_the_batch_solution(forgetting: float, past: int) -> None:
    rng = np.random.default_rng(0)
    player = Recorded(SIZE, lags=2, season=5, forgetting=forgetting, ridge=0.7)
    outcomes = rng.random((80, 2))
    truths, rows = np.column_stack([outcomes, outcomes**2]), []
    for t in range(80):
        point = player.predict({"hour": int(rng.integers(0, 6)), "load": rng.normal()}).statistics
        if t:
            told = 0.5 + player.used @ batch(rows, truths, player)
            assert point == pytest.approx(np.clip(told, 0, 1), abs=1e-9)
        if past == 2:
            player.observe_outcome(outcomes[t])
        player.update(truths[t])
        rows.append(player.used)
    told = outcomes if past == 2 else truths
    lagged = told[[74, 78, 77]].ravel() - 0.5
    assert rows[-1][: 1 + 3 * past] == pytest.approx([1.0, *lagged])
    assert len(rows[-1]) == 1 + 3 * past + 2 + 6


def test_nothing_winds_up_under_forgetting() -> None:
    """A context that stays for 20,000 rounds, then moves: the forecast stays sane."""
    rng = np.random.default_rng(2)
    player = LeastSquares(2, forgetting=0.95)
    for t in range(20_000):
        player.predict({"hour": 3, "load": 1.5})
        y = np.clip(0.6 + 0.01 * rng.normal(size=2), 0, 1)
        player.observe_outcome(y)
        player.update(y)
        if t > 100:
            assert np.abs(player._gram).max() <= 21
    assert player.predict({"hour": 3, "load": 1.5}).statistics == pytest.approx(
        [0.6, 0.6], abs=0.05
    )
    moved = player.predict({"hour": 4, "load": 1e9}).statistics
    assert np.abs(moved - 0.6).max() < 0.3
