"""Models: whatever the context, predictions are finite and in [0, 1]; seasons are remembered."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.forecaster import Aggregate, Constant, LeastSquares, SeasonalNaive
from regretless.forecaster.models.aggregate import PANEL, SCALE, made
from regretless.forecaster.models.base import MOST
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.records import Context

SIZE = 3

NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 0.1]),
    st.floats(-5, 5),
)
CONTEXTS = st.one_of(
    st.none(),
    NUMBERS,
    st.lists(NUMBERS, max_size=3),
    st.dictionaries(st.sampled_from(["hour", "3 hour", "load"]), NUMBERS),
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: Context(("hour", "load"), np.array(pair))),
)


def lived(player: Any, contexts: list[Any], seed: int = 0, start: int = 0) -> np.ndarray[Any, Any]:
    """Let a model predict, observe and learn; return what it predicted."""
    told = []
    for t, x in enumerate(contexts, start):
        told.append(player.predict(x).statistics)
        outcome = np.random.default_rng([seed, t]).random(2)
        player.observe_outcome(outcome)
        player.update(np.array([outcome[0], outcome[1], outcome[0] ** 2]))
    return np.array(told)


@pytest.mark.parametrize("name", register.forecaster.names())
@settings(max_examples=25, deadline=None)
@given(contexts=st.lists(CONTEXTS, min_size=1, max_size=12), seed=st.integers(0, 100))
def test_predictions_stay_in_the_unit_cube(name: str, contexts: list[Any], seed: int) -> None:
    told = lived(register.forecaster[name](SIZE), contexts * 2, seed)
    assert np.isfinite(told).all()
    assert ((told >= 0) & (told <= 1)).all()


@pytest.mark.parametrize("name", register.forecaster.names())
def test_witnesses_resume_and_are_copied(name: str, tmp_path: Path) -> None:
    contexts = [{"hour": t % 4, "load": np.sin(t), "day": t} for t in range(80)]
    whole = lived(register.forecaster[name](SIZE), contexts)
    first, second = register.forecaster[name](SIZE), register.forecaster[name](SIZE)
    lived(first, contexts[:60])
    checkpoint.save(tmp_path / "kept", first.state())
    second.restore(checkpoint.load(tmp_path / "kept"))
    copied = copy.deepcopy(first)
    lived(first, contexts[60:], seed=1, start=60)
    for player in (second, copied):
        assert (lived(player, contexts[60:], start=60) == whole[60:]).all()


def test_a_season_is_a_period_or_a_combination_of_integers() -> None:
    truths = np.random.default_rng(0).random((40, SIZE))
    by_period, by_context = SeasonalNaive(SIZE, period=7), SeasonalNaive(SIZE)
    for t, truth in enumerate(truths):
        x = {"hour": t % 7, "load": 0.1 + t}
        expected = truths[t - 7] if t >= 7 else truths[t - 1] if t else np.full(SIZE, 0.5)
        for player in (by_period, by_context):
            assert (player.predict(x).statistics == expected).all()
            player.update(truth)


def test_seasons_are_bounded_and_the_oldest_makes_way() -> None:
    player = SeasonalNaive(1)
    for t in range(MOST + 10):
        player.predict({"day": t})
        player.update([t / 2000])
    assert len(player._seasons) == MOST
    assert player.predict({"day": 10}).statistics == [10 / 2000]
    assert player.predict({"day": 9}).statistics == [(MOST + 9) / 2000]


def told(player: Aggregate, rows: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    """Play rows, or against the aggregate where they are nan: its predictions, models, truths."""
    own, models, truths = [], [], []
    for t, row in enumerate(rows):
        own.append(player.predict(t).statistics)
        models.append(player.points)
        truths.append(np.where(np.isnan(row), own[-1] < 0.5, row))
        player.update(truths[-1])
    return np.array(own), np.array(models), np.array(truths)


@pytest.mark.parametrize("stream", ["uniform", "shifting", "jump", "adverse"])
@pytest.mark.parametrize("seed", range(3))
def test_an_aggregate_keeps_its_bound_against_every_model(stream: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    player = Aggregate({f"at {v}": Constant(SIZE, value=v) for v in (0.0, 0.3, 0.6, 1.0)}, SIZE)
    if stream == "adverse":
        player = Aggregate(made(PANEL, SIZE), SIZE)
    rows = {
        "uniform": lambda: rng.random((400, SIZE)),
        "shifting": lambda: np.repeat(rng.integers(0, 2, (8, SIZE)), 50, axis=0).astype(float),
        "jump": lambda: np.r_[np.full((300, SIZE), 0.6), np.zeros((300, SIZE))],
        "adverse": lambda: np.full((400, SIZE), np.nan),
    }[stream]()
    own, models, truths = told(player, rows)
    assert ((own >= models.min(1) - 1e-12) & (own <= models.max(1) + 1e-12)).all()
    gain = (own - truths)[:, None] * (own[:, None] - models)
    regret, variation, largest = gain.sum(0), (gain**2).sum(0), np.abs(gain).max()
    growth = (largest**2 / SCALE + np.log1p(variation / SCALE)).sum(0)
    assert (regret <= np.sqrt((SCALE + variation) * growth)).all()
    error = ((own - truths) ** 2).sum(0)
    assert (error - ((models - truths[:, None]) ** 2).sum(0) <= 2 * regret + 1e-9).all()


def test_every_coordinate_follows_its_own_model() -> None:
    player = Aggregate({"low": Constant(2, value=0.2), "high": Constant(2, value=0.7)}, 2)
    told(player, np.tile([0.2, 0.7], (50, 1)))
    assert player.made_of == ("low", "high")
    assert player.predict().statistics == pytest.approx([0.2, 0.7], abs=0.01)
    with pytest.raises(ValueError, match="needs a model"):
        Aggregate({}, 2)


FITTED = 4


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
@pytest.mark.parametrize("past", [2, FITTED], ids=["outcomes", "vectors"])
def test_it_is_the_batch_solution(forgetting: float, past: int) -> None:
    rng = np.random.default_rng(0)
    player = Recorded(FITTED, lags=2, season=5, forgetting=forgetting, ridge=0.7)
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
    """A context stays until no double has the past's weight, then moves: the forecast is sane."""
    rng = np.random.default_rng(2)
    player = LeastSquares(2, forgetting=0.85)
    for t in range(5000):
        player.predict({"hour": 3, "load": 1.5})
        y = np.clip(0.6 + 0.01 * rng.normal(size=2), 0, 1)
        player.observe_outcome(y)
        player.update(y)
        if t > 100:
            assert np.abs(player._gram).max() <= 1 + 1 / 0.15
    assert player.predict({"hour": 3, "load": 1.5}).statistics == pytest.approx(
        [0.6, 0.6], abs=0.05
    )
    moved = player.predict({"hour": 4, "load": 1e9}).statistics
    assert np.abs(moved - 0.6).max() < 0.3
