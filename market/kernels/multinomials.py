r"""Draws from many multinomial laws at once: how many of each crowd do what.

A multinomial is a chain of binomials: of the n who are left, Bin(n, w_a / (w_a + ... + w_A)) take
action a. Let mu and sigma be a binomial's mean and deviation, q = 1 - p, f its probabilities, and
k = floor(mu + sigma z + 1/2). From a sigma of ``LEAST[0]`` on it is drawn by rejection: z is thrown
under a hat of 1,024 pieces of equal area, 511 columns and an exponential tail on either side, and
kept with probability sqrt(2 pi) sigma f(k) over the hat's height. One word of 64 random bits holds
the piece, the place in it and the height; 49 of 50 (for a large sigma) lie so low that k is kept
whatever f is. These first tries have no branch; rows that they do not settle go on by themselves.
A smaller sigma is worth no hat: probabilities are added up from the mode on, on both sides in turn,
until they pass a random number; from 0 on where the mean is small.

The hat. Let s = k - mu, z' = s / sigma, t = |z'| / sigma, and D the divergence of k / n from p. By
Stirling's series, whose rest for m! is below 1 / (12 m), and by Taylor's for D,

    |log(sqrt(2 pi) sigma f(k)) + z^2 / 2| <= |z'|^3 / (6 sigma (1 - t)^2) + t / (2 (1 - t))
        + 1 / (12 sigma^2 (1 - t)^2) + |z| / (2 sigma) + 1 / (8 sigma^2),

where |z'| <= |z| + 1 / (2 sigma). The first term is what n D is off z'^2 / 2, the second half what
the logarithm of k (n - k) / n = sigma^2 (1 + s / (n p)) (1 - s / (n q)) is off its own, the last
two what z'^2 / 2 is off z^2 / 2. The bound falls with sigma: that of the least sigma does for all.
Where the right tail begins, at z_0, f falls at each step by a factor (1 - s / (n q)) /
(1 + s / (n p)) or more, which is at most exp(-(z_0 - z_0^2 / (2 sigma)) / sigma); on the left
likewise.

The words are those of SplitMix64, each a function of the seed and its place alone.

References
----------
Devroye, Non-Uniform Random Variate Generation (1986), II.3 (rejection), III.2 (adding up).
Loader, Fast and accurate computation of binomial probabilities (2000).
Marsaglia and Tsang, The ziggurat method for generating random variables (2000): equal areas.
Steele, Lea and Flood, Fast splittable pseudorandom number generators (2014): SplitMix64.
"""

import math
from functools import cache
from typing import Any

import numba
import numpy as np

from regretless.market.core.arrays import Array, Indices

LEAST = np.array([12.5, 25.0, 50.0, 100.0, 200.0])  # deviations from which hats are above
PIECES = 512  # of each side of a hat, the tail the last
INNER, WIDTH, HEIGHT, SURE = range(4)  # what is kept of a piece
STEPS = 1 << 14  # heights that a word tells apart
FEW = 8.0  # mean below which probabilities are added up from 0 on
BLOCK = 128  # rows whose numbers are near the processor together
WORDS = 1 << 16  # of one binomial
ROOT = math.sqrt(2 * math.pi)
REST = np.array(  # what Stirling's formula for log m! leaves, where its series is too short
    [0.0]
    + [math.lgamma(m + 1) - (m + 0.5) * math.log(m) + m - math.log(ROOT) for m in range(1, 16)]
)


def multinomial(seed: int, crowds: Indices, laws: Array) -> Array:
    """Draw how many of each crowd take each action.

    Parameters
    ----------
    seed : int
        Of all these draws, from 0 to 2^64 - 1.
    crowds : int array (K,)
        How many each crowd has, below 2^53.
    laws : array (K, A)
        Each crowd's law, up to a factor; at least 0, and not all 0.

    Returns
    -------
    array (K, A)
        Whole numbers; each row adds up to its crowd, and depends on no other.
    """
    left = np.array(crowds, dtype=np.float64)
    return np.asarray(_drawn(np.uint64(seed), left, np.ascontiguousarray(laws), hats()))


@cache
def hats() -> Array:
    """Return one side of each hat, above probabilities times sqrt(2 pi) sigma.

    Returns
    -------
    array (4, H * 512)
        Of each piece of each hat where it begins, in deviations from the mean; how wide it is;
        its height, where it begins; and how many of ``STEPS`` equal heights are below every
        probability. A tail is as wide as it falls by a factor e over, and none of it is below.
    """
    return np.hstack([_hat(float(least)) for least in LEAST])


def _hat(least: float) -> Array:
    """Return the hat (4, 512) whose tail has the area of a column, or a little less."""
    low, high = 0.0, ROOT / PIECES
    for _ in range(50):
        area = (low + high) / 2
        start = _edges(area, least)[-1]
        fall = _fall(start, least)
        tail = math.exp(_off(start, least) - start**2 / 2 + fall / least) / fall
        low, high = (low, area) if tail <= area else (area, high)
    edges = _edges(high, least)
    width = np.append(np.diff(edges), 1 / _fall(edges[-1], least))
    below = np.exp([-(z**2) / 2 - _off(z, least) for z in edges[1:]])
    sure = np.append(np.floor(STEPS * below * width[:-1] / high), 0.0)
    return np.stack([edges, width, high / width, sure])


@numba.njit(cache=True)
def _off(z: float, least: float) -> float:
    """Return by how much log(sqrt(2 pi) sigma f(k)) may be off -z^2 / 2, at that sigma or more."""
    near = z + 1 / (2 * least)
    t = near / least
    if t >= 1.0:
        return np.inf
    cubic = near**3 / (6 * least) + 1 / (12 * least**2)
    rounded = z / (2 * least) + 1 / (8 * least**2)
    return cubic / (1 - t) ** 2 + t / (2 * (1 - t)) + rounded


@numba.njit(cache=True)
def _edges(area: float, least: float) -> Array:
    """Place the columns of one side (512,), each of that area, from the mean outwards."""
    edges = np.zeros(PIECES)
    for j in range(PIECES - 1):
        width = 0.0
        for _ in range(8):  # the bound is taken where the column ends
            width = area * math.exp(edges[j] ** 2 / 2 - _off(edges[j] + width, least))
        edges[j + 1] = edges[j] + width
    return edges


def _fall(start: float, least: float) -> float:
    """Return the least rate at which probabilities fall where the tail has begun."""
    first = start - 1 / (2 * least)
    return first - first**2 / (2 * least)


@numba.njit(cache=True, nogil=True)
def _drawn(seed: Any, left: Array, laws: Array, hat: Array) -> Array:
    """Draw from laws (K, A), some rows at a time, which the processor's nearest memory holds."""
    rows, actions = laws.shape
    counts, share = np.empty((rows, actions)), np.empty((actions, BLOCK))
    for first in range(0, rows, BLOCK):
        part = slice(first, min(first + BLOCK, rows))
        _shared(laws[part], share)
        _chained(seed, first, left[part], share, hat, counts[part])
    return counts


@numba.njit(cache=True, nogil=True)
def _shared(laws: Array, share: Array) -> None:
    """Write the shares (A, K) of those who are left that take each action."""
    rows, actions = laws.shape
    whole = laws[:, actions - 1].copy()
    for a in range(actions - 2, -1, -1):
        for k in range(rows):
            whole[k] += laws[k, a]
            share[a, k] = laws[k, a] / whole[k] if whole[k] > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def _chained(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    seed: Any, first: int, left: Array, share: Array, hat: Array, counts: Array
) -> None:
    """Draw binomial after binomial, from those who are left, into counts (K, A)."""
    actions = counts.shape[1]
    words, drawn = np.empty(len(left), dtype=np.uint64), np.empty(len(left))
    for a in range(actions - 1):
        for k in range(len(left)):
            words[k] = _word(seed, (first + k) * actions + a, 0)
        _tried(words, left, share[a], hat, drawn)
        for k in range(len(left)):
            if drawn[k] < 0.0:
                place = (first + k) * actions + a
                drawn[k] = _settled(seed, place, left[k], share[a, k], hat)
            counts[k, a] = drawn[k]
            left[k] -= drawn[k]
    counts[:, actions - 1] = left


@numba.njit(cache=True, nogil=True)
def _tried(words: Any, left: Array, share: Array, hat: Array, drawn: Array) -> None:
    """Write a draw of each binomial, -1 where one try does not do.

    What is read from the hat is fetched one by one; vectors do the rest, in loops of its own.
    """
    deviation = np.empty(len(left))
    for k in range(len(left)):
        deviation[k] = math.sqrt(left[k] * share[k] * (1.0 - share[k]))
    for k in range(len(left)):
        side, piece, low, within = _parts(words[k])
        piece += _first(deviation[k])
        z = side * (hat[INNER, piece] + hat[WIDTH, piece] * within)
        sure = low < hat[SURE, piece] and deviation[k] >= LEAST[0]
        drawn[k] = z if sure else np.nan
    for k in range(len(left)):
        found = np.floor(left[k] * share[k] + deviation[k] * drawn[k] + 0.5)
        drawn[k] = found if found >= 0.0 else -1.0


@numba.njit(inline="always")
def _word(seed: Any, place: int, nth: int) -> Any:
    """Return a word of 64 random bits."""
    word = seed + np.uint64(place * WORDS + nth + 1) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(inline="always")
def _uniform(word: Any) -> float:
    """Return a word's number in [0, 1)."""
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@numba.njit(inline="always")
def _parts(word: Any) -> tuple[Any, Any, Any, Any]:
    """Read a word: side, piece, height in ``STEPS`` and place within the piece, in [0, 1)."""
    side = np.float64(np.int64(word & np.uint64(1))) * 2.0 - 1.0
    piece = np.int64((word >> np.uint64(1)) & np.uint64(PIECES - 1))
    low = np.float64(np.int64((word >> np.uint64(10)) & np.uint64(STEPS - 1)))
    return side, piece, low, np.float64(np.int64(word >> np.uint64(24))) * 2.0**-40


@numba.njit(inline="always")
def _first(deviation: float) -> int:
    """Return where the pieces of the nearest hat begin that is above a binomial."""
    nearer = 0
    for least in LEAST[1:]:
        nearer += int(deviation >= least)
    return PIECES * nearer


@numba.njit(cache=True, nogil=True)
def _settled(seed: Any, place: int, n: float, p: float, hat: Array) -> float:
    """Draw Bin(n, p), where one try did not do."""
    deviation = math.sqrt(n * p * (1.0 - p))
    if deviation < LEAST[0]:
        rare = _added(n, min(p, 1.0 - p), _uniform(_word(seed, place, 1)))
        return rare if p <= 0.5 else n - rare
    first, nth = _first(deviation), 0
    while True:
        side, piece, low, within = _parts(_word(seed, place, nth))
        throw = (low + _uniform(_word(seed, place, nth + 1))) / STEPS
        top, z = throw * hat[HEIGHT, first + piece], hat[INNER, first + piece]
        if piece < PIECES - 1:
            z += hat[WIDTH, first + piece] * within
        else:
            top *= 1.0 - within
            z -= hat[WIDTH, first + piece] * math.log1p(-within)
        k = float(math.floor(n * p + side * deviation * z + 0.5))
        if 0.0 <= k <= n and top <= ROOT * deviation * _probability(n, p, k):
            return k
        nth += 2


@numba.njit(cache=True, nogil=True)
def _added(n: float, p: float, u: float) -> float:
    """Draw Bin(n, p), p at most 1/2: add probabilities up until they pass u."""
    start = float(math.floor((n + 1.0) * p)) if n * p >= FEW else 0.0
    below = above = start
    down = up = _probability(n, p, above)
    odds = p / (1.0 - p)
    u -= up
    while u >= 0.0 and (up > 0.0 or down > 0.0):
        above += 1.0
        up *= (n - above + 1.0) / above * odds
        u -= up
        if u < 0.0:
            return above
        down *= below / ((n - below + 1.0) * odds) if below > 0.0 else 0.0
        below -= 1.0
        u -= down
        if u < 0.0:
            return below
    return start


@numba.njit(cache=True, nogil=True)
def _probability(n: float, p: float, k: float) -> float:
    """Return Bin(n, p) at k in 0..n."""
    if k <= 0.0:
        return math.exp(n * math.log1p(-p))
    if k >= n:
        return math.exp(n * math.log(p))
    others, away = n - k, k - n * p
    divergence = k * math.log1p(away / (n * p)) + others * math.log1p(-away / (n * (1.0 - p)))
    rest = _rest(n) - _rest(k) - _rest(others)
    return math.sqrt(n / (k * others)) / ROOT * math.exp(rest - divergence)


@numba.njit(cache=True, nogil=True)
def _rest(m: float) -> float:
    """Return log m! less Stirling's formula."""
    if m < len(REST):
        return float(REST[int(m)])
    square = 1.0 / (m * m)
    return (1 / 12 - (1 / 360 - square / 1260) * square) / m
