r"""One outcome, and a promise to every task, listed or not.

Where the outcome y is one number in [0, 1] and a task's losses are linear in it (every task is, of
a binary outcome), an agent who best-responds to a prediction p plays an action a on an interval of
predictions. So it is enough that no interval has a bias. The forecaster conditions on **dyadic
cells**: for every scale s = 1..S the 2^s events [p in cell i of width 2^-s], with adaptive weights
(``events.weights``), S = ceil(log2 T), and it predicts middles of the finest cells alone.

**The game.** An event of scale s has the prior 1 / (2 S 2^s) for each sign. Let h(p) be the sum of
the S signed weights of the cells that hold p, relative to the sum of all weights. The prediction p
gains h(p) (p - y) on the outcome y. The reference's prediction (a model's, of one number) is
broadcast alone if it gains no more than the round's tolerance (``tolerance``): its biases do not
matter then. Otherwise, if h >= 0 at the first cell, its middle gains at most h 2^-S / 2; likewise
the last cell where h <= 0. If neither, two neighbours have h_i <= 0 <= h_j, and their mixture with
h = 0 on average gains 2^-S |h_i| h_j / (|h_i| + h_j), at most 2^-S / 2, whatever the outcome. A
search from the reference's prediction finds the neighbours with O(S) looks at S weights each, that
is O(log^2 T) a round. The certificate of each round is computed, and S_T is their sum.

**Biases.** As for listed events (``events.bounds``), with the prior in place of 1 / N: an event
with prior q, bias B and variation C = sum_t E[p in cell] |p - y| has

    |B| <= z sqrt(C) + sqrt(3 C Lambda_s),   Lambda_s = ln(1 + (P - 1) / q_s),
    P = e^(k S_T) (P_0 + l sum_e q_e ln((1 + C_e) / (1 + C_e0))),   k, l of ``events.lemma``,

where P_0 is the mean potential and C_e0 the variations when the first game is played: 1 and 0 if
no reference was trusted. While one is trusted |B| <= w sqrt(C) + 1.

**Regret.** An interval of predictions is a union of at most two cells a scale, and one that ends
at 0 or 1 of at most one. With slopes d_a in y, T x decision swap regret is

    sum_a max_c <d_a - d_c, sum over rounds with action a of y - p>
        <= sum_a max_c |d_a - d_c| sum over a's cells of (z sqrt(C) + sqrt(3 C Lambda)),

at most 2 D sqrt(3 S T Lambda) with two actions and D sqrt(6 S A T Lambda) with A of them: for any
task, known to nobody beforehand. Hu and Wu (2024, arXiv:2404.13503) reach O(sqrt(T) log T) for
every task of a binary outcome at once; the dyadic cells are this package's way there. Cells of one
width do not do: predictions change sides within a cell against y = [mean of the mixture < 1/2].

**Who enters late** meets the biases of its own rounds, |B_T| + |B_t| at most: twice the bound.

**Trust.** With w > z the reference is broadcast as it is until some |B| exceeds w sqrt(C); the
potentials of that moment stand in P for their start, as in ``events.bounds``.
"""

import math
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.weights import AdaptiveWeights, Band, Stand, potentials
from regretless.forecaster.models import ExponentialSmoothing
from regretless.forecaster.tolerance import tolerance_at
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.compiled import compiled
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear
from regretless.market.records import Mixture

WIDEST = 10.0  # standard deviations, beyond which potentials overflow


class UniversalDecisionSwap(Remembering, Forecaster):
    """No decision swap regret for any task of one outcome, whether or not it is known.

    Parameters
    ----------
    rounds : int
        T, at least 1; it sets the scales. A longer run has larger certificates.
    reference : Forecaster, optional
        A model of one number, which is broadcast where that is good enough; exponential smoothing
        by default.
    band : float
        z, at least 0: how many times sqrt(C) a bias may reach before it counts.
    give_up : float
        w: how many times sqrt(C) a bias may reach before the reference is corrected at all. At
        most z, as by default, the reference is never trusted.
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Attributes
    ----------
    scales : int
        S.
    time : int
        Rounds learned.
    slack : float
        Sum of the certificates so far.
    disproved_at : int or None
        After how many rounds the reference was given up; None while it is trusted.

    Raises
    ------
    ValueError
        If ``rounds`` or ``band`` is out of range or a call is out of order.

    Examples
    --------
    >>> forecaster = UniversalDecisionSwap(1000)
    >>> for y in [1.0, 0.0, 0.0, 1.0] * 250:
    ...     mixture = forecaster.mixture()
    ...     forecaster.update(y)
    >>> abs(float(mixture.mean[0]) - 0.5) < 0.1
    True
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "time",
        "slack",
        "disproved_at",
        "reference",
        "_cells",
        "_total",
        "_start",
        "_spent",
        "rng",
    )

    def __init__(
        self,
        rounds: int,
        *,
        reference: Forecaster | None = None,
        band: float = 0.0,
        give_up: float = 0.0,
        seed: int = 0,
    ) -> None:
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; give at least 1")
        if not 0 <= band <= WIDEST or not give_up <= WIDEST:
            given = f"band is {band} and give_up {give_up}"
            raise ValueError(f"{given}; give numbers of at most {WIDEST}, the band at least 0")
        self.scales = max(1, math.ceil(math.log2(rounds)))
        self.finest, self.band, self.give_up = 2**self.scales, float(band), float(give_up)
        sizes = [2, *(2**s for s in range(1, self.scales + 1))]
        prior = [0.0, *(0.5 / (self.scales * size) for size in sizes[1:])]
        # cell i of scale s is node 2^s + i of a heap, whose first two nodes stay unused
        self._cells, self._prior = np.zeros((2, 2 * self.finest)), np.repeat(prior, sizes)
        self._total = math.expm1(1 / 3) / 2  # the weights of all cells, with their prior
        self.reference: Any = reference or ExponentialSmoothing(1)
        self.time, self.slack = 0, 0.0
        self.disproved_at: int | None = None if self.give_up > self.band else 0
        self._start, self._spent = 1.0, 0.0  # P_0, and what stands for C_e0
        self.rng = stream(seed, "forecaster")
        self._open: tuple[int, int, float, float] | None = None

    @property
    def bias(self) -> Array:
        """B of every cell (2^(S+1),): cell i of scale s is number 2^s + i, the first two unused."""
        return np.asarray(self._cells[0])

    @property
    def variation(self) -> Array:
        """C of every cell (2^(S+1),)."""
        return np.asarray(self._cells[1])

    def mixture(self, x: Any = None) -> Mixture:
        """Return the law over predictions (m, 1), m at most 2, with its certificate.

        There is no certificate while the reference is trusted, since no game is played.
        """
        told = float(np.asarray(self.reference.predict(x).statistics, dtype=np.float64).item())
        first = min(max(int(told * self.finest), 0), self.finest - 1)
        self._open = first, first, 1.0, 0.0
        if self.disproved_at is not None:
            tolerance = tolerance_at(self.time + 1) * self._total
            self._open = _game(self.bias, self.variation, self._prior, self.band, first, tolerance)
        low, high, mass, worst = self._open
        law = [(low, mass)] if mass == 1.0 else [(low, mass), (high, 1.0 - mass)]
        points, masses = np.array(law).T
        certificate = None if self.disproved_at is None else worst / self._total
        return Mixture((points[:, None] + 0.5) / self.finest, masses, certificate)

    def update(self, y: ArrayLike) -> None:
        """Learn the outcome, a number in [0, 1] or an array of it."""
        if self._open is None:
            raise ValueError("update before a prediction; call mixture or predict first")
        truth = float(np.asarray(y, dtype=np.float64).item())
        if not 0 <= truth <= 1:
            raise ValueError(f"the outcome is {truth}; give a number in [0, 1]")
        low, high, mass, worst = self._open
        self.slack += worst / self._total
        self._total += _charge(
            self.bias, self.variation, self._prior, self.band, low, high, mass, truth
        )
        self._open = None
        self.time += 1
        if self.disproved_at is None and np.any(np.abs(self.bias) > self.give_up * self._noise()):
            self.disproved_at, self._start, self._spent = (
                self.time,
                self._potential(),
                self._grown(),
            )
        self.reference.update(np.array([truth]))

    def _noise(self) -> Array:
        return np.sqrt(self.variation)

    def _grown(self) -> float:
        """Return the mean of ln(1 + C) over the prior of all events."""
        return float(2 * (self._prior * np.log1p(self.variation)).sum())

    def _potential(self) -> float:
        """Return the mean potential of all events."""
        signs = self.bias, -self.bias
        both = sum(potentials(sign, self.variation, self.band) for sign in signs)
        return float((self._prior * both).sum())

    def _stand(self) -> Stand:
        return Stand(
            AdaptiveWeights(),
            experts=len(self._prior),
            rounds=self.time,
            slack=self.slack,
            band=Band(self.band),
            trust=self.give_up,
            start=self._start,
            spent=self._grown() - self._spent,
        )

    def bias_bound(self) -> Array:
        """Bound the bias of every cell so far (2^(S+1),), by its variation."""
        if self.disproved_at is None:
            bound = self.give_up * self._noise()
        else:
            total = math.exp(AdaptiveWeights.growth(self._stand()))
            prior = np.where(self._prior > 0, self._prior, 1.0)
            exponent = np.log1p((total - 1) / prior)
            bound = (self.band + np.sqrt(3 * exponent)) * self._noise()
        return np.asarray(np.minimum(bound, self.variation))

    def regret_bound(self, loss: Linear) -> Array:
        """Bound the expected decision swap regret per round so far, of tasks it need not know.

        Parameters
        ----------
        loss : Linear
            Single (A, 1) or a stack (K, A, 1), linear in the outcome.

        Returns
        -------
        array (K,)
            Per round; of constants as comparators.
        """
        offsets = np.atleast_2d(loss.offset)
        slopes = np.asarray(loss.weights, dtype=np.float64).reshape(offsets.shape)
        bound = self.bias_bound()
        totals = [self._regret(bound, *task) for task in zip(offsets, slopes, strict=True)]
        return np.array(totals) / max(self.time, 1)

    def _regret(self, bound: Array, offset: Array, slope: Array) -> float:
        """Bound the total of one task: its actions' intervals, and the cells of each."""
        middles = (np.arange(self.finest) + 0.5) / self.finest
        played = np.argmin(offset + slope * middles[:, None], axis=1)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(played)) + 1, [self.finest]])
        widest = np.abs(slope[:, None] - slope).max(1)
        return sum(
            float(widest[played[first]]) * _covered(bound, int(first), int(last))
            for first, last in pairwise(edges)
        )


def _covered(bound: Array, first: int, last: int) -> float:
    """Add the bounds of the fewest cells whose union is the finest cells ``first`` to ``last``."""
    cells = len(bound) // 2
    left, right, total = first + cells, last + cells, 0.0
    if last - first == cells:  # the two cells of the first scale
        return float(bound[2] + bound[3])
    while left < right:
        if left & 1:
            total += bound[left]
            left += 1
        if right & 1:
            right -= 1
            total += bound[right]
        left, right = left >> 1, right >> 1
    return float(total)


@compiled(inline="always")
def _weight(regret: float, scale: float) -> float:
    above, below = max(regret + 1.0, 0.0), max(regret - 1.0, 0.0)
    return 0.5 * float(np.exp(above * above * scale) - np.exp(below * below * scale))


@compiled
def _weights(bias: float, variation: float, zone: float) -> tuple[float, float]:
    """Return the adaptive weights of a bias with its own sign and with the other."""
    noise, scale = zone * np.sqrt(variation), 1.0 / (3.0 * (variation + 1.0))
    return _weight(abs(bias) - noise, scale), _weight(-abs(bias) - noise, scale)


@compiled
def _pull(bias: Array, variation: Array, prior: Array, zone: float, cell: int) -> float:
    """Return the sum of the signed weights of the cells that hold a finest one."""
    node, total = cell + bias.shape[0] // 2, 0.0
    while node > 1:
        own, other = _weights(bias[node], variation[node], zone)
        signed = prior[node] * (own - other)
        total += signed if bias[node] >= 0 else -signed
        node >>= 1
    return total


@compiled
def _bracket(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, variation: Array, prior: Array, zone: float, first: int, way: int
) -> tuple[int, int]:
    """Return finest cells with h <= 0 and h >= 0, from ``first`` on in strides that double.

    Equal cells are an end of the line, where no outcome gains.
    """
    last = bias.shape[0] // 2 - 1
    near, stride = first, 1
    while 0 < near < last or stride == 1:
        far = min(max(first + way * stride, 0), last)
        if _pull(bias, variation, prior, zone, far) * way >= 0.0:
            return (near, far) if way > 0 else (far, near)
        near, stride = far, 2 * stride
    return near, near


@compiled
def _game(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, variation: Array, prior: Array, zone: float, first: int, tolerance: float
) -> tuple[int, int, float, float]:
    """Return two finest cells, the mass of the first, and the most that an outcome gains on them.

    ``tolerance`` is what the cell ``first`` alone may gain, in the same units: weights that are
    not normalised.
    """
    cells = bias.shape[0] // 2
    pull = _pull(bias, variation, prior, zone, first)
    low, high = first, first
    if max(pull * (first + 0.5), -pull * (cells - first - 0.5)) / cells > tolerance:
        low, high = _bracket(bias, variation, prior, zone, first, -1 if pull > 0.0 else 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _pull(bias, variation, prior, zone, middle) > 0.0:
            high = middle
        else:
            low = middle
    if low == high:
        pull = _pull(bias, variation, prior, zone, low)
        return low, low, 1.0, max(pull * (low + 0.5), -pull * (cells - low - 0.5)) / cells
    down = -_pull(bias, variation, prior, zone, low)
    up = _pull(bias, variation, prior, zone, high)
    if down <= 0.0:
        return low, low, 1.0, 0.0
    return low, high, up / (down + up), down * up / (down + up) / cells


@compiled
def _add(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, variation: Array, prior: Array, zone: float, node: int, gain: float
) -> float:
    """Add a gain to a cell; return by how much its weights grow."""
    before = _weights(bias[node], variation[node], zone)
    bias[node] += gain
    variation[node] += abs(gain)
    after = _weights(bias[node], variation[node], zone)
    return float(prior[node] * (after[0] + after[1] - before[0] - before[1]))


@compiled
def _charge(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array,
    variation: Array,
    prior: Array,
    zone: float,
    low: int,
    high: int,
    mass: float,
    truth: float,
) -> float:
    """Add a round to the cells of both predictions, in expectation; return the weights' growth."""
    cells, grown = bias.shape[0] // 2, 0.0
    first = mass * ((low + 0.5) / cells - truth)
    second = (1.0 - mass) * ((high + 0.5) / cells - truth)
    left, right = low + cells, high + cells
    while left > 1:
        if left == right:
            grown += _add(bias, variation, prior, zone, left, first + second)
        else:
            grown += _add(bias, variation, prior, zone, left, first)
            grown += _add(bias, variation, prior, zone, right, second)
        left, right = left >> 1, right >> 1
    return grown
