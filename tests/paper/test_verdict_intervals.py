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
    one_difference, twelve_differences = coverage(0.0)
    assert one_difference["differences"] == 1
    assert twelve_differences["differences"] == 12
    assert one_difference["coverage"] >= 0.87  # 0.95 less three standard errors of a hundred
    assert twelve_differences["coverage"] >= 0.87
    assert one_difference["too narrow"] == twelve_differences["too narrow"] == 0


@pytest.mark.usefixtures("hundred_repetitions")
def test_rounds_that_hardly_change_are_covered_too_rarely_and_named() -> None:
    one_difference, twelve_differences = coverage(0.98)
    assert twelve_differences["coverage"] < one_difference["coverage"] < 0.92
    assert one_difference["too narrow"] > 0.9
