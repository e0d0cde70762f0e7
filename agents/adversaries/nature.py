r"""Outcomes without a motive: replayed data, nature, and the opponent of the forecast.

**Replayed data** are outcomes and contexts row by row, from the start again when they run out.

**Nature** is i.i.d., drifting, cyclic or regime-switching, whatever is forecast. It keeps a mean
path m_t in [0, 1]^d and draws y_t coordinate by coordinate from the beta distribution with that
mean and ``concentration`` c, Beta(c m, c (1 - m)), whose standard deviation is sqrt(m (1 - m) / (c
+ 1)): c = 2 with mean 1/2 is uniform, large c is nearly the mean itself, and small c nearly a coin
toss between 0 and 1. c = 0 does not continue this: it stands for the mean itself, without noise. So
that nobody asks for little noise and gets the most that there can be, 0 < c < 0.05 needs ``extreme
= true``.

**The anti-forecast adversary** is where the forecast's mixture is not. Of the vertices ``1/2 +
strength (e_j - 1/2)`` (for one coordinate: its two ends) it picks the one farthest from the mean
label forecast. That is the vertex of the least predicted coordinate; ties go to the lowest index.
At strength 1 the outcomes are the unit vectors. A forecast that follows the past (last value,
smoothing) is wrong every round.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.leader import support_of
from regretless.agents.parameters import check_int, check_range, numbers, require
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.protocols import Adversary
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution


class Replay(Checkpointable, Adversary):
    """Plays the rows of a table.

    Parameters
    ----------
    outcomes : array (T, d)
        In [0, 1].
    contexts : array (T, f), optional
        What everybody sees before each row.
    names : tuple of str
        The features' names.
    logged : int, optional
        How many of the features tables show, from the first; all by default.
    index : (str, sequence of str), optional
        What names the rows, such as "date", and each row's name.
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

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        return OutcomeDistribution.pure(self._rows[history.rounds % len(self._rows)])


LEAST = 0.05  # of a concentration, unless more extreme outcomes are asked for
EDGE = 1e-3  # means are kept this far from 0 and 1, where the beta distribution degenerates


class Nature(Checkpointable, Adversary):
    """Draws around a mean path.

    Parameters
    ----------
    concentration : float
        Of the beta distribution; 0 for the mean itself, without noise.
    extreme : bool
        Whether a concentration below 0.05 is meant, with which nearly all outcomes are 0 or 1.
    """

    sees = frozenset({"history"})
    noise = "concentration"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        concentration: float,
        extreme: bool = False,
    ) -> None:
        super().__init__(outcomes, rng)
        check_range("concentration", concentration, 0, np.inf)
        if 0 < concentration < LEAST and not extreme:
            raise ValueError(
                f"concentration is {concentration}, so that nearly all outcomes are 0 or 1; add "
                "extreme = true if that is meant, or give 0 for the mean without noise, 20 for "
                "little noise"
            )
        self.concentration = concentration

    def mean(self, time: int) -> Array:
        """Return the mean (d,) of round ``time``."""
        raise NotImplementedError

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        mean = self.mean(history.rounds)
        if self.concentration == 0:
            return OutcomeDistribution.pure(mean)
        inner = np.clip(mean, EDGE, 1 - EDGE)
        return OutcomeDistribution.pure(
            self.rng.beta(self.concentration * inner, self.concentration * (1 - inner))
        )


@register.adversary("iid")
class IID(Nature):
    """The same distribution every round.

    Parameters
    ----------
    mean : float or sequence of d floats
        In [0, 1].
    concentration : float
        Of the beta distribution; the default of 2 with mean 1/2 is uniform.
    """

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        mean: ArrayLike = 0.5,
        concentration: float = 2.0,
        extreme: bool = False,
    ) -> None:
        super().__init__(outcomes, rng, concentration=concentration, extreme=extreme)
        given = numbers("mean", mean)
        require("mean", given, (given >= 0) & (given <= 1), "give numbers in [0, 1]")
        self._mean = np.broadcast_to(given, (outcomes,))

    def mean(self, time: int) -> Array:
        return self._mean


@register.adversary("drifting")
class Drifting(Nature):
    """A mean that walks at random, reflected at the walls.

    Parameters
    ----------
    step : float
        Standard deviation of the walk per round.
    """

    REMEMBERED = ("_place",)

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        step: float = 0.01,
        concentration: float = 20.0,
        extreme: bool = False,
    ) -> None:
        super().__init__(outcomes, rng, concentration=concentration, extreme=extreme)
        self.step = check_range("step", step, 0, np.inf)
        self._place = rng.random(outcomes)

    def mean(self, time: int) -> Array:
        place = np.abs(self._place + self.step * self.rng.standard_normal(self.outcomes)) % 2
        self._place = np.where(place > 1, 2 - place, place)
        return self._place


@register.adversary("cyclic")
class Cyclic(Nature):
    """Seasons: each coordinate a sine wave, the coordinates spread evenly over the cycle.

    Parameters
    ----------
    period : float
        Rounds per cycle.
    amplitude : float
        Half the height of the wave, in [0, 1/2].
    concentration : float
        The default of 0 gives the wave without noise.
    """

    def __init__(  # noqa: PLR0913 - the parameters of a scenario file
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        period: float = 200.0,
        amplitude: float = 0.5,
        concentration: float = 0.0,
        extreme: bool = False,
    ) -> None:
        super().__init__(outcomes, rng, concentration=concentration, extreme=extreme)
        if not 0 <= amplitude <= 0.5 or period <= 0:
            raise ValueError(f"amplitude {amplitude} must lie in [0, 0.5], period {period} above 0")
        self.period, self.amplitude = period, amplitude

    def mean(self, time: int) -> Array:
        phase = time / self.period + np.arange(self.outcomes) / self.outcomes
        return np.clip(0.5 + self.amplitude * np.sin(2 * np.pi * phase), 0.0, 1.0)


@register.adversary("switching")
class Switching(Nature):
    """Regimes: a mean that is drawn uniformly from the cube and kept for a number of rounds.

    Parameters
    ----------
    length : int
        Rounds per regime.
    """

    REMEMBERED = ("_regime",)

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        length: int = 400,
        concentration: float = 20.0,
        extreme: bool = False,
    ) -> None:
        super().__init__(outcomes, rng, concentration=concentration, extreme=extreme)
        self.length = check_int("length", length, least=1)
        self._regime = np.full(outcomes, 0.5)

    def mean(self, time: int) -> Array:
        if time % self.length == 0:
            self._regime = self.rng.random(self.outcomes)
        return self._regime


@register.adversary("anti-forecast")
class AntiForecast(Checkpointable, Adversary):
    """Moves away from the mean of the forecast's mixture.

    Parameters
    ----------
    strength : float
        Distance of the vertices from the centre, in (0, 1].
    """

    sees = frozenset({"mixture"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, strength: float = 1.0) -> None:
        super().__init__(outcomes, rng)
        if not 0 < strength <= 1:
            raise ValueError(f"strength is {strength}; give a number in (0, 1]")
        self._vertices = 0.5 + strength * (support_of(outcomes, None, None) - 0.5)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        distance = ((self._vertices - announced.mean_label) ** 2).sum(1)
        return OutcomeDistribution.pure(self._vertices[int(distance.argmax())])
