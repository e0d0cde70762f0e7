"""A table to learn from, and losses and policies before it; it needs scikit-learn."""

import numpy as np

from regretless.agents.utilities import CES
from regretless.forecaster.offline import Threshold
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

SIDES = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))  # y for low, 1 - y for high
OTHER = Linear(np.array([[0.0], [-1.0]]), np.array([0.3, 1.0]))
RULES = (Threshold(0, 0.5, 0, 1), Threshold(1, 0.5, 2, 0))


def examples(rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw features (m, 2) and outcomes (m, 2) that depend on them."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 2))
    return features, np.clip(0.2 + 0.6 * features + 0.1 * rng.standard_normal((rows, 2)), 0, 1)


def losses(seed: int = 0) -> CES:
    rng = np.random.default_rng(seed)
    return CES(rng.dirichlet(np.ones(2), (4, 3)), np.array([0.5, 1.0, 0.5, 1.0]))
