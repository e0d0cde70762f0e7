"""How often intervals of a verdict hold the mean: slow series are covered less, and are named."""

import pytest

from paper import verdict_intervals
from paper.verdict_intervals import coverage


@pytest.fixture
def hundred_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a coverage be a share of a hundred repetitions."""
    monkeypatch.setattr(verdict_intervals, "REPETITIONS", 100)


@pytest.mark.usefixtures("hundred_repetitions")
def test_independent_rounds_are_covered_and_none_is_too_narrow() -> None:
    alone, together = coverage(0.0)
    assert alone["differences"] == 1
    assert together["differences"] == 12
    assert alone["coverage"] >= 0.87  # 0.95 less three standard errors of a hundred
    assert together["coverage"] >= 0.87
    assert alone["too narrow"] == together["too narrow"] == 0


@pytest.mark.usefixtures("hundred_repetitions")
def test_rounds_that_hardly_change_are_covered_too_rarely_and_named() -> None:
    alone, together = coverage(0.98)
    assert together["coverage"] < alone["coverage"] < 0.92
    assert alone["too narrow"] > 0.9
