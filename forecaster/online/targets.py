"""Losses of who wants a number: the squared distance to points of a scale."""

import numpy as np

from regretless.market.losses import Loss, SeparablePower

POINTS = 11


def targets(low: float, high: float) -> dict[str, Loss]:
    """Return the squared distance of an outcome to evenly spaced points, one action each."""
    points = np.linspace(low, high, POINTS)[:, None]
    return {"distance": SeparablePower(np.ones((POINTS, 1)), np.array(2.0), centre=points)}
