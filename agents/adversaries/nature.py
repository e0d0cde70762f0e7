r"""Outcomes without a motive: replayed data, nature, and the opponent of the forecast.

``Replay`` plays the rows of a table, which the assembly of a scenario reads from a file. The kinds
of ``Nature`` differ in the path of their mean: a subclass says it in ``mean_at``.

**Nature** keeps a mean path m_t in [0, 1]^d and draws y_t coordinate by coordinate from the beta
distribution with that mean and ``concentration`` c, Beta(c m, c (1 - m)), whose standard deviation
is sqrt(m (1 - m) / (c + 1)): c = 2 with mean 1/2 is uniform, large c is nearly the mean itself, and
small c nearly a coin toss between 0 and 1. c = 0 does not continue this: it stands for the mean
itself, without noise. So that nobody asks for little noise and gets the most that there can be,
0 < c < 0.05 needs ``extreme = true``.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from regretless.agents.adversaries.leader import Pure, support_of
from regretless.agents.parameters import check_int, check_range, numbers, require
from regretless.market import register
from regretless.market.core.arrays import Array, Integers, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import brief
from regretless.market.core.own_code import frozen
from regretless.market.core.randomness import stream
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

MIN_CONCENTRATION = 0.05  # unless more extreme outcomes are asked for
STRATA = 256  # of equal probability, in a distribution that stands for a beta distribution
MAX_SINGLE_DRAWS = 8  # coordinates that are drawn one by one; with more, one call is faster
MEAN_MARGIN = 1e-3  # means are kept this far from 0 and 1, where the beta distribution degenerates


class Replay(Checkpointable, Pure):
    """Plays the rows of a table of outcomes (T, d), from the start again when they run out.

    Parameters
    ----------
    outcomes : (T, d)
        A row per round.
    contexts : (T, f) or None
        The features that everybody sees before each row.
    names : tuple of str
        The names of the f features.
    logged : int or None
        Tables show the first so many features; None for all.
    index : (str, sequence of T str) or None
        What names the rows, such as "date", and each row's name.
    why_no_guarantee : str
        Why no theorem covers the outcomes, as where some of them are estimates; empty if one does.
    is_censored : bool array (T, d) or None
        Which outcomes are estimates, known to be at least so much; None where the table says
        nothing.
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
        why_no_guarantee: str = "",
        is_censored: Mask | None = None,
    ) -> None:
        self.why_no_guarantee = why_no_guarantee
        self._is_censored = is_censored
        self._outcome_table = np.asarray(outcomes, dtype=np.float64)
        self.outcomes = int(self._outcome_table.shape[1])
        if contexts is None:
            contexts = np.zeros((len(self._outcome_table), 0))
        self._contexts = frozen(contexts)  # (T, f); so a round's context copies no row of it
        self._names = names  # of the f features
        self._logged = logged  # tables show the first so many features; None for all
        self._row_names = index  # the word for what names a row, such as "date", and T names

    def context(self, history: History) -> Context:
        row = self._row_of_round(history)
        index = None
        if self._row_names is not None:
            column, names_of_rows = self._row_names
            index = (column, names_of_rows[row])
        return Context(self._names, self._contexts[row], self._logged, index)

    def context_for_tables(self) -> Context:
        return self.context(History(self.outcomes))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return np.asarray(self._outcome_table[self._row_of_round(history)])

    def round_columns(self, round_index: int) -> Mapping[str, Any]:
        """Return whether an outcome was censored, of several also which, where the table says."""
        if self._is_censored is None:
            return {}
        of_outcomes = self._is_censored[round_index % len(self._is_censored)]
        columns: dict[str, Any] = {"censored": bool(of_outcomes.any())}
        if len(of_outcomes) > 1:
            columns["censored_"] = of_outcomes
        return columns

    def fixed_distribution(self) -> OutcomeDistribution:
        n_rows = len(self._outcome_table)
        return OutcomeDistribution(self._outcome_table, np.full(n_rows, 1 / n_rows))

    @property
    def table(self) -> Array:
        """The rows (T, d), as they stand."""
        return self._outcome_table

    def of_coordinates(self, coordinates: list[int]) -> "Replay":
        """Return the same rows with some of their coordinates, and without contexts."""
        return Replay(self._outcome_table[:, coordinates], why_no_guarantee=self.why_no_guarantee)

    def rows_of(self, rounds: Integers | int) -> Array:
        """Return the rows (..., d) of rounds (...), counted from 0."""
        return np.asarray(self._outcome_table[np.asarray(rounds) % len(self._outcome_table)])

    def mean_of_first(self, rounds: int) -> Array:
        """Return the mean (d,) of the rows of so many rounds, at least one, from the first on."""
        n_repeats, n_more = divmod(rounds, len(self._outcome_table))
        total = n_repeats * self._outcome_table.sum(0) + self._outcome_table[:n_more].sum(0)
        return np.asarray(total / rounds)

    def _row_of_round(self, history: History) -> int:
        return history.rounds % len(self._outcome_table)


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
        if 0 < self.concentration < MIN_CONCENTRATION and not self.extreme:
            raise ValueError(
                f"concentration is {self.concentration}, so that nearly all outcomes are 0 or 1; "
                "add extreme = true if that is meant, or give 0 for the mean without noise, 20 for "
                "little noise"
            )

    @abstractmethod
    def mean_at(self, time: int) -> Array:
        """Return the mean (d,) of a round, counted from 0; called once per round, in order."""

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        mean = self.mean_at(history.rounds)
        if self.concentration == 0:
            return mean
        return self._distribution_about(mean).draw(self.rng)

    def _distribution_about(self, mean: Array) -> "BetaDistribution":
        """Return the beta distribution about a mean (d,)."""
        inner_mean = np.minimum(np.maximum(mean, MEAN_MARGIN), 1 - MEAN_MARGIN)
        return BetaDistribution(
            self.concentration * inner_mean, self.concentration * (1 - inner_mean)
        )


class BetaDistribution:
    """Independent beta distributions, by the parameters alpha and beta (d,) of each."""

    def __init__(self, alpha: Array, beta: Array) -> None:
        self.alpha = alpha
        self.beta = beta
        self._parameters: list[tuple[float, float]] | None = None  # of few: alpha and beta of each
        self._are_equal = False  # whether all coordinates have the same distribution
        if 0 < len(alpha) <= MAX_SINGLE_DRAWS:
            self._parameters = list(zip(alpha.tolist(), beta.tolist(), strict=True))
            self._are_equal = len(set(self._parameters)) == 1

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw a number from each (d,)."""
        if self._parameters is None:
            return rng.beta(self.alpha, self.beta)
        # The same numbers either way: checks of two arrays take the generator longer than these
        # draws, and five numbers of one distribution take it a third of five calls.
        if self._are_equal:
            alpha, beta = self._parameters[0]
            return rng.beta(alpha, beta, len(self._parameters))
        return np.array([rng.beta(alpha, beta) for alpha, beta in self._parameters])


@register.adversary("constant")
class Unchanging(Checkpointable, Pure):
    """The same outcome every round: ``value`` (one number or d), 1/2 by default."""

    sees = frozenset({"history"})

    def __init__(self, outcomes: int, rng: np.random.Generator, *, value: Any = 0.5) -> None:
        super().__init__(outcomes, rng)
        values = numbers("value", value)
        require("value", values, (values >= 0) & (values <= 1), "give numbers in [0, 1]")
        if values.shape not in ((), (1,), (outcomes,)):
            hint = f"give one number, or one for each of the {outcomes} outcomes"
            raise ValueError(f"value = {brief(value)}: {hint}")
        self.value = np.broadcast_to(values, (outcomes,))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return np.asarray(self.value)

    def fixed_distribution(self) -> OutcomeDistribution:
        return OutcomeDistribution.pure(self.value)


@register.adversary("iid")
@dataclass(eq=False, repr=False, kw_only=True)
class IID(Nature):
    """The same distribution every round, about a ``mean`` (one number or d), uniform by default."""

    mean: Any = 0.5
    concentration: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = numbers("mean", self.mean)
        require("mean", mean, (mean >= 0) & (mean <= 1), "give numbers in [0, 1]")
        if mean.shape not in ((), (1,), (self.outcomes,)):
            hint = f"give one number, or one for each of the {self.outcomes} outcomes"
            raise ValueError(f"mean = {brief(self.mean)}: {hint}")
        self.mean = np.broadcast_to(mean, (self.outcomes,))
        self._first_mean = self.mean
        self._first_concentration = self.concentration
        self._first_distribution = super()._distribution_about(self.mean)

    def mean_at(self, time: int) -> Array:
        return np.asarray(self.mean)

    def _distribution_about(self, mean: Array) -> BetaDistribution:
        # The same in every round, unless a script has set another mean or concentration.
        if mean is self._first_mean and self.concentration == self._first_concentration:
            return self._first_distribution
        return super()._distribution_about(mean)

    def fixed_distribution(self) -> OutcomeDistribution:
        """Return strata of equal probability, each at its mean, joined by chance over coordinates.

        Means of each coordinate are exact, and so are expectations of what is linear in them.
        """
        if self.concentration == 0:
            return OutcomeDistribution.pure(self.mean)
        inner_mean = np.clip(self.mean, MEAN_MARGIN, 1 - MEAN_MARGIN)[:, np.newaxis]
        alpha = self.concentration * inner_mean
        beta = self.concentration * (1 - inner_mean)
        edges = betaincinv(alpha, beta, np.linspace(0.0, 1.0, STRATA + 1))  # (d, strata + 1)
        # The integral of y over a stratum is the mean times what Beta(alpha + 1, beta) has there.
        stratum_means = inner_mean * np.diff(betainc(alpha + 1, beta, edges), axis=1) * STRATA
        points = np.empty((STRATA, self.outcomes))
        for coordinate, means in enumerate(np.clip(stratum_means, 0.0, 1.0)):
            order = stream(0, "strata", str(coordinate)).permutation(STRATA)
            points[:, coordinate] = means[order]
        return OutcomeDistribution(points, np.full(STRATA, 1 / STRATA))


@register.adversary("drifting")
@dataclass(eq=False, repr=False, kw_only=True)
class Drifting(Nature):
    """A mean that walks at random, by a standard deviation of ``step``, reflected at the walls."""

    REMEMBERED = ("_mean",)
    step: float = 0.01
    concentration: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("step", self.step, 0, np.inf)
        self._mean = self.rng.random(self.outcomes)

    def mean_at(self, time: int) -> Array:
        steps = self.step * self.rng.standard_normal(self.outcomes)
        moved = np.abs(self._mean + steps) % 2  # reflected at 0; at 1 in the next line
        self._mean = np.where(moved > 1, 2 - moved, moved)
        return self._mean


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
            raise ValueError(
                f"amplitude {self.amplitude} must lie in [0, 0.5], period {self.period} above 0"
            )

    def mean_at(self, time: int) -> Array:
        phase = time / self.period + np.arange(self.outcomes) / self.outcomes
        return np.clip(0.5 + self.amplitude * np.sin(2 * np.pi * phase), 0.0, 1.0)


@register.adversary("switching")
@dataclass(eq=False, repr=False, kw_only=True)
class Switching(Nature):
    """Regimes of ``length`` rounds, each with a mean that is drawn uniformly from the cube."""

    REMEMBERED = ("_regime_mean",)
    length: int = 400
    concentration: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("length", self.length, least=1)
        self._regime_mean = np.full(self.outcomes, 0.5)

    def mean_at(self, time: int) -> Array:
        if time % self.length == 0:
            self._regime_mean = self.rng.random(self.outcomes)
        return self._regime_mean


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
        squared_distance = ((self._vertices - announced.mean_label) ** 2).sum(1)
        return np.asarray(self._vertices[int(squared_distance.argmax())])
