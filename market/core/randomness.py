"""Named child streams from one root seed.

Every consumer (the forecaster's draw, the outcome's draw, each cohort) has a stream of its own,
derived from the root seed and its name alone: adding a consumer disturbs no other, and no player
can compute another's numbers from its own generator.
"""

import hashlib
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices


def stream(seed: int, *name: str) -> np.random.Generator:
    """Return the generator of one consumer from the root seed, at least 0, and its name."""
    digest = hashlib.sha256("/".join(name).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32)[:4]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(words.tolist())))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator as plain values, for a checkpoint."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator back into a recorded state."""
    rng.bit_generator.state = state


class Some(np.random.Generator):
    """Draws uniform numbers for everybody, and returns those of a few; unused draws are skipped.

    Everybody's generator is from now on drawn by nobody else. ``places`` (n,) says whose numbers
    are wanted, ascending; everybody draws ``total`` at a time.
    """

    def __init__(self, rng: np.random.Generator, places: Indices, total: int) -> None:
        super().__init__(rng.bit_generator)
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        self._runs = [(int(run[0]), len(run)) for run in runs if len(run)]
        self.total = total

    def random(self, size: int) -> Array:  # type: ignore[override]  # what agents draw by
        """Return the next number of each (n,), as if all had drawn."""
        bits: Any = self.bit_generator
        parts, at = [np.zeros(0)], 0
        for first, count in self._runs:
            bits.advance(first - at)
            parts.append(np.asarray(super().random(count)))
            at = first + count
        bits.advance(self.total - at)
        return np.concatenate(parts)
