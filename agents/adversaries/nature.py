r"""Outcomes without a motive: replayed data, nature, and the opponent of the forecast.

**Nature** keeps a mean path m_t in [0, 1]^d and draws y_t coordinate by coordinate from the beta
distribution with that mean and ``concentration`` c, Beta(c m, c (1 - m)), whose standard deviation
is sqrt(m (1 - m) / (c + 1)): c = 2 with mean 1/2 is uniform, large c is nearly the mean itself, and
small c nearly a coin toss between 0 and 1. c = 0 does not continue this: it stands for the mean
itself, without noise. So that nobody asks for little noise and gets the most that there can be,
0 < c < 0.05 needs ``extreme = true``.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from regretless.agents.adversaries.leader import Pure, support_of
from regretless.agents.parameters import check_int, check_range, numbers, require
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import brief
from regretless.market.records import AdversaryView, Context, History

LEAST = 0.05  # of a concentration, unless more extreme outcomes are asked for
EDGE = 1e-3  # means are kept this far from 0 and 1, where the beta distribution degenerates


class Replay(Checkpointable, Pure):
    """Plays the rows of a table of outcomes (T, d), from the start again when they run out.

    ``contexts`` (T, f) of these ``names`` are what everybody sees before each row, of which tables
    show the first ``logged``, by default all; ``index`` has what names the rows, such as "date",
    and each row's name.
    """

    sees = frozenset({"history"})

    def __init__(
        self,
        outcomes: Array,
        contexts: Array | None = None,
        names: tuple[str, ...] = (),
        *,
        logged: int | None = None,
        index: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        self._rows = np.asarray(outcomes, dtype=np.float64)
        self.outcomes = int(self._rows.shape[1])
        self._names, self._logged, self._index = names, logged, index
        self._contexts = np.zeros((len(self._rows), 0)) if contexts is None else contexts

    def context(self, history: History) -> Context:
        row = history.rounds % len(self._rows)
        index = None if self._index is None else (self._index[0], self._index[1][row])
        return Context(self._names, self._contexts[row], self._logged, index)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return np.asarray(self._rows[history.rounds % len(self._rows)])


@dataclass(eq=False, repr=False)
class Nature(Checkpointable, Pure):
    """Draws around a mean path.

    ``concentration`` is of the beta distribution, 0 for the mean itself; ``extreme`` says that one
    below 0.05 is meant, with which nearly all outcomes are 0 or 1.
    """

    outcomes: int
    rng: np.random.Generator
    _: KW_ONLY
    concentration: float
    extreme: bool = False
    sees = frozenset({"history"})
    noise = "concentration"
    REMEMBERED = ("rng",)

    def __post_init__(self) -> None:
        check_range("concentration", self.concentration, 0, np.inf)
        if 0 < self.concentration < LEAST and not self.extreme:
            raise ValueError(
                f"concentration is {self.concentration}, so that nearly all outcomes are 0 or 1; "
                "add extreme = true if that is meant, or give 0 for the mean without noise, 20 for "
                "little noise"
            )

    @abstractmethod
    def at(self, time: int) -> Array:
        """Return the mean (d,) of a round."""

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        mean, sure = self.at(history.rounds), self.concentration
        inner = np.clip(mean, EDGE, 1 - EDGE)
        return mean if sure == 0 else self.rng.beta(sure * inner, sure * (1 - inner))


@register.adversary("iid")
@dataclass(eq=False, repr=False, kw_only=True)
class IID(Nature):
    """The same distribution every round, about a ``mean`` (one number or d), uniform by default."""

    mean: Any = 0.5
    concentration: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = numbers("mean", self.mean)
        require("mean", given, (given >= 0) & (given <= 1), "give numbers in [0, 1]")
        if given.shape not in ((), (1,), (self.outcomes,)):
            cure = f"give one number, or one for each of the {self.outcomes} outcomes"
            raise ValueError(f"mean = {brief(self.mean)}: {cure}")
        self.mean = np.broadcast_to(given, (self.outcomes,))

    def at(self, time: int) -> Array:
        return np.asarray(self.mean)


@register.adversary("drifting")
@dataclass(eq=False, repr=False, kw_only=True)
class Drifting(Nature):
    """A mean that walks at random, by a standard deviation of ``step``, reflected at the walls."""

    REMEMBERED = ("_place",)
    step: float = 0.01
    concentration: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("step", self.step, 0, np.inf)
        self._place = self.rng.random(self.outcomes)

    def at(self, time: int) -> Array:
        place = np.abs(self._place + self.step * self.rng.standard_normal(self.outcomes)) % 2
        self._place = np.where(place > 1, 2 - place, place)
        return self._place


@register.adversary("cyclic")
@dataclass(eq=False, repr=False, kw_only=True)
class Cyclic(Nature):
    """Seasons of ``period`` rounds: each coordinate a sine wave, spread evenly over the cycle.

    ``amplitude`` is half the height of the wave, in [0, 1/2]; by default there is no noise.
    """

    period: float = 200.0
    amplitude: float = 0.5
    concentration: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.amplitude <= 0.5 or self.period <= 0:
            told = f"amplitude {self.amplitude} must lie in [0, 0.5], period {self.period} above 0"
            raise ValueError(told)

    def at(self, time: int) -> Array:
        phase = time / self.period + np.arange(self.outcomes) / self.outcomes
        return np.clip(0.5 + self.amplitude * np.sin(2 * np.pi * phase), 0.0, 1.0)


@register.adversary("switching")
@dataclass(eq=False, repr=False, kw_only=True)
class Switching(Nature):
    """Regimes of ``length`` rounds, each with a mean that is drawn uniformly from the cube."""

    REMEMBERED = ("_regime",)
    length: int = 400
    concentration: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("length", self.length, least=1)
        self._regime = np.full(self.outcomes, 0.5)

    def at(self, time: int) -> Array:
        if time % self.length == 0:
            self._regime = self.rng.random(self.outcomes)
        return self._regime


@register.adversary("anti-forecast")
class AntiForecast(Checkpointable, Pure):
    """Moves away from the mean of the forecast's mixture.

    Of the vertices ``1/2 + strength (e_j - 1/2)`` (for one coordinate: its two ends) it picks the
    one farthest from the mean label forecast, that of the least predicted coordinate, the lowest
    where several tie. A forecast that follows the past is wrong every round. ``strength`` is the
    distance of the vertices from the centre, in (0, 1].
    """

    sees = frozenset({"mixture"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, strength: float = 1.0) -> None:
        super().__init__(outcomes, rng)
        if not 0 < strength <= 1:
            raise ValueError(f"strength is {strength}; give a number in (0, 1]")
        self._vertices = 0.5 + strength * (support_of(outcomes, None, None) - 0.5)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        distance = ((self._vertices - announced.mean_label) ** 2).sum(1)
        return np.asarray(self._vertices[int(distance.argmax())])
