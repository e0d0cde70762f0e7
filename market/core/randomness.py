"""Named child streams from one root seed.

Every consumer (the forecaster's draw, the outcome's draw, each cohort) has a stream of its own,
derived from the root seed and its name alone: adding a consumer disturbs no other, and no player
can compute another's numbers from its own generator.
"""

import hashlib
from typing import Any

import numpy as np


def stream(seed: int, *name: str) -> np.random.Generator:
    """Return the generator of one consumer.

    Parameters
    ----------
    seed : int
        The root seed, at least 0.
    *name : str
        The consumer's name, e.g. ``"cohort", "growers"``.
    """
    digest = hashlib.sha256("/".join(name).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32)[:4]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(words.tolist())))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator as plain values, for a checkpoint."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator back into a recorded state."""
    rng.bit_generator.state = state
