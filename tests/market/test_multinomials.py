"""Draws from many multinomial laws at once."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare
from scipy.stats import multinomial as law_of_counts

from regretless.market.kernels import multinomials as kernel
from regretless.market.kernels.multinomials import multinomial

PLACES = np.array([0.0, 0.03, 0.5, 0.97, 1.0])  # within a piece
BINOMIALS = [
    (1, 0.3),
    (7, 0.5),
    (30, 0.02),
    (400, 0.9),
    (2_000, 0.4),
    (10**6, 2e-4),
    (40_000, 0.2),
    (10**5, 0.97),
    (10**6, 0.125),
    (10**9, 1e-4),
    (2**50, 3e-12),
]


def test_words_are_those_of_splitmix64() -> None:
    words = [int(kernel._word(np.uint64(1234567), 0, nth)) for nth in range(3)]
    assert words == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(
    tier=st.integers(0, len(kernel.LEAST) - 1),
    more=st.floats(0.0, 6.0),
    share=st.floats(1e-6, 1 - 1e-6),
    side=st.sampled_from([-1, 1]),
)
@example(tier=0, more=0.0, share=1e-6, side=1)
@example(tier=0, more=0.0, share=0.5, side=-1)
def test_a_hat_is_above_every_binomial_and_what_is_sure_below(
    tier: int, more: float, share: float, side: int
) -> None:
    deviation = kernel.LEAST[tier] * math.exp(more)
    n = math.ceil(deviation**2 / (share * (1 - share)))
    deviation = math.sqrt(n * share * (1 - share))
    own = slice(tier * kernel.PIECES, (tier + 1) * kernel.PIECES)
    inner, width, height, sure = (kernel.hats()[part, own, None] for part in range(4))
    z = inner + width * PLACES * (1 - 1e-12)
    z[-1] = inner[-1] + width[-1] * np.linspace(0, 12, len(PLACES))
    top = np.broadcast_to(height, z.shape).copy()
    top[-1] *= np.exp(-(z[-1] - inner[-1]) / width[-1])
    k = np.floor(n * share + side * deviation * z + 0.5)
    true = kernel.ROOT * deviation * binom.pmf(k, n, share)
    assert (true <= top * (1 + 1e-9)).all()
    assert (true >= height * sure / kernel.STEPS * (1 - 1e-9)).all()
    assert np.ptp(height * width) < 1e-12


@pytest.mark.parametrize(("n", "p"), BINOMIALS)
def test_a_binomial_has_its_law(n: int, p: float) -> None:
    rows = 200_000
    counts = multinomial(5, np.full(rows, n), np.tile([p, 1 - p], (rows, 1)))
    assert (counts.sum(1) == n).all()
    edges = np.unique(binom.ppf(np.linspace(0, 1, 60)[1:-1], n, p))
    expected = np.diff(np.concatenate([[0.0], binom.cdf(edges, n, p), [1.0]]))
    found = np.bincount(np.searchsorted(edges, counts[:, 0]), minlength=len(expected))
    keep = expected > 0
    assert not found[~keep].any()
    assert chisquare(found[keep], expected[keep] / expected[keep].sum() * rows).pvalue > 1e-3


@pytest.mark.parametrize("n", [3, 5])
def test_all_counts_of_a_few_come_as_often_as_they_should(n: int) -> None:
    rows, law = 300_000, np.array([0.2, 0.5, 0.0, 0.3])
    counts = multinomial(1, np.full(rows, n), np.tile(7.0 * law, (rows, 1)))
    cells = [cell for cell in product(range(n + 1), repeat=4) if sum(cell) == n and not cell[2]]
    found = [(counts == cell).all(1).sum() for cell in cells]
    assert sum(found) == rows
    assert chisquare(found, law_of_counts.pmf(cells, n, law) * rows).pvalue > 1e-3


@pytest.mark.parametrize("n", [1_000, 10**5, 10**7])
def test_actions_that_many_take_vary_together_as_they_should(n: int) -> None:
    rows, law = 100_000, np.array([0.05, 0.25, 0.4, 0.3])
    counts = multinomial(2, np.full(rows, n), np.tile(law, (rows, 1)))
    scaled = (counts - n * law) / math.sqrt(n)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=4 * 0.5 / math.sqrt(rows))
    wanted = np.diag(law) - np.outer(law, law)
    np.testing.assert_allclose(np.cov(scaled.T), wanted, atol=4 * 0.4 / math.sqrt(rows))


@given(
    seed=st.integers(0, 2**64 - 1),
    crowds=st.lists(st.integers(0, 2**53 - 1), min_size=1, max_size=300),
    actions=st.integers(1, 6),
)
def test_a_row_adds_up_and_knows_of_no_other(seed: int, crowds: list[int], actions: int) -> None:
    laws = np.random.default_rng(seed).random((len(crowds), actions)).round(1)
    laws[:, 0] += laws.sum(1) == 0
    counts = multinomial(seed, np.array(crowds), laws)
    assert (counts.sum(1) == crowds).all()
    assert (counts >= 0).all()
    assert (counts == counts.round()).all()
    assert not counts[laws == 0].any()
    first = multinomial(seed, np.array(crowds[:1]), laws[:1])
    assert np.array_equal(first, counts[:1])
    assert np.array_equal(counts, multinomial(seed, np.array(crowds), laws))


@given(n=st.integers(1, 10**12), p=st.floats(1e-9, 1 - 1e-9), z=st.floats(-8, 8))
def test_probabilities_are_scipys(n: int, p: float, z: float) -> None:
    k = float(np.clip(np.floor(n * p + z * math.sqrt(n * p * (1 - p))), 0, n))
    wanted = binom.pmf(k, n, p)
    assert kernel._probability(float(n), p, k) == pytest.approx(wanted, rel=1e-6, abs=1e-300)
