"""Named child streams of random numbers from one root seed.

Every consumer (the forecaster's draw, the outcome's draw, each cohort) has a stream of its own,
derived from the root seed and its name alone: adding a consumer disturbs no other, and no player
can compute another's numbers from its own generator.
"""

import hashlib
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices


def stream(seed: int, *name: str) -> np.random.Generator:
    """Return the generator of one consumer.

    ``seed`` is the root seed, at least 0; the parts of ``name`` are joined by a slash.
    """
    digest = hashlib.sha256("/".join(name).encode()).digest()
    spawn_key = np.frombuffer(digest, dtype=np.uint32)[:4]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(spawn_key.tolist())))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator as plain values, for a checkpoint."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator back into a recorded state."""
    rng.bit_generator.state = state


class SubsetGenerator(np.random.Generator):
    """Draws one uniform number for each of ``total`` agents, and returns those of some of them.

    A worker that plays a part of a cohort draws by it exactly the numbers that these agents have
    in the whole cohort; numbers of the others are skipped without being computed. It takes over
    the bit generator of ``rng``, from which nobody else may draw from then on.

    Parameters
    ----------
    rng : numpy Generator
        The generator of the whole cohort.
    positions : int array (n,)
        The agents whose numbers are returned, ascending.
    total : int
        How many agents draw each time.
    """

    def __init__(self, rng: np.random.Generator, positions: Indices, total: int) -> None:
        super().__init__(rng.bit_generator)
        self.total = total
        # Stretches of positions without a gap, as (first position, how many).
        self._stretches: list[tuple[int, int]] = []
        gaps = np.flatnonzero(np.diff(positions) != 1) + 1
        for stretch in np.split(positions, gaps):
            if len(stretch):
                self._stretches.append((int(stretch[0]), len(stretch)))

    def random(self, size: int) -> Array:  # type: ignore[override]  # what agents draw by
        """Return the next number of each of the n positions (n,), as if all agents had drawn."""
        bit_generator: Any = self.bit_generator
        drawn_parts = [np.zeros(0)]
        position = 0
        for first, count in self._stretches:
            bit_generator.advance(first - position)
            drawn_parts.append(np.asarray(super().random(count)))
            position = first + count
        bit_generator.advance(self.total - position)
        return np.concatenate(drawn_parts)
