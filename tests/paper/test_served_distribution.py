"""What the served distribution costs beside its best model: a row for each critical ratio."""

import numpy as np
import pandas as pd
import pytest

from paper import served_distribution
from paper.decisions import COSTS
from paper.public_series import PublicSeries
from regretless.market.core.randomness import stream


def series_with_two_levels() -> PublicSeries:
    """Return a series whose level alternates, as its context says, with some noise."""
    contexts = [{"half": float(t % 2)} for t in range(60)]
    noise = stream(1, "tests", "served-distribution").normal(0.0, 0.05, 60)
    return PublicSeries(np.arange(60) % 2 + noise, contexts, (2,))


def test_a_series_has_a_row_for_each_ratio_and_coverage_after_the_first_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served_distribution, "FIRST_COVERED", 40)
    monkeypatch.setitem(served_distribution.PUBLIC_SERIES, "levels", series_with_two_levels)
    rows = pd.DataFrame(served_distribution.serve("levels", 60, seed=0))
    assert rows["critical_ratio"].tolist() == list(COSTS)
    assert (rows["rounds"] == 60).all()
    assert (rows["mean_loss"] > 0).all()
    assert (rows["loss_ratio"] > 0.5).all()
    assert rows["coverage"].between(0.5, 1.0).all()
    assert "geometric mean" in served_distribution.text(rows)
