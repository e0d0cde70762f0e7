"""What a class that names its memory puts into a checkpoint, and how it comes back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regretless.market.core import checkpoint
from regretless.market.core.checkpoint import Checkpointable


class Walker(Checkpointable):
    """A generator and where it went."""

    REMEMBERED: Any = ("rng", "_place")

    def __init__(self, seed: int) -> None:
        self.rng, self._place = np.random.default_rng(seed), np.zeros(2)

    def walk(self) -> list[float]:
        self._place = self._place + self.rng.random(2)
        return self._place.tolist()


class Group(Checkpointable):
    """Walkers, streams that it does not own, and values of every kind."""

    REMEMBERED: Any = ("walkers", "streams", "name", "best", "when", "paths", "table")

    def __init__(self, seed: int) -> None:
        self.walkers = (Walker(seed + 1), Walker(seed + 2))
        self.name, self.best, self.when, self.paths, self.table = "", None, (), [], {}  # type: Any

    @property
    def streams(self) -> list[np.random.Generator]:
        """Nobody could set this."""
        return [walker.rng for walker in self.walkers]


def test_every_kind_of_memory_comes_back(tmp_path: Path) -> None:
    first, second = Group(1), Group(5)
    for walker in first.walkers:
        walker.walk()
    first.name, first.best, first.when = "north", np.float64(0.5), (1, None, True)
    first.paths = [np.arange(3), 2, [np.ones(1), "x"]]
    first.table = {"flags": np.array([True]), "deep": {"er": np.int64(4)}}
    checkpoint.save(tmp_path / "there.npz", first.state())
    second.restore(checkpoint.load(tmp_path / "there.npz"))
    assert [one.walk() for one in first.walkers] == [one.walk() for one in second.walkers]
    assert (second.name, second.best, second.when) == ("north", 0.5, (1, None, True))
    assert second.paths[0].dtype == np.arange(3).dtype
    assert [np.array(part).tolist() for part in second.paths[:2]] == [[0, 1, 2], 2]
    assert second.table["flags"].tolist() == [True]
    assert second.table["deep"] == {"er": 4}
    assert second.streams == [walker.rng for walker in second.walkers]


def test_a_group_of_another_size_is_refused() -> None:
    group = Group(1)
    group.walkers = group.walkers[:1]
    with pytest.raises(ValueError, match="the state is of"):
        group.restore(Group(1).state())
    with pytest.raises(KeyError):
        group.restore(Walker(1).state())
