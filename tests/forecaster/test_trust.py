"""Bets on a surprise: what a calibrated reference cannot lose to, and how they are counted."""

from itertools import product

import numpy as np
import pytest

from regretless.forecaster import GainEvents, ProtectedLosses, Reference, UnbiasedPrediction
from regretless.forecaster.models import Constant
from regretless.forecaster.reference import ALARM, Bets


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_who_bets_against_a_calibrated_model_gains_nothing(p: float) -> None:
    """Over all sequences of 11 outcomes the mean of W is 1 at most, and at most alpha ever win."""
    mean = winning = 0.0
    for outcomes in product([0, 1], repeat=11):
        bets, won = Bets(), False
        for y in outcomes:
            bets.add((y - p) / p)  # of a loss y: it can fall short by p
            won |= bets.won
        chance = p ** sum(outcomes) * (1 - p) ** (11 - sum(outcomes))
        mean += chance * np.exp(bets.wealth).mean()
        winning += chance * won
    assert mean <= 1 + 1e-12
    assert p == 0.2 or mean == pytest.approx(1)  # where no gain is above 2
    assert winning <= ALARM


def test_the_worst_outcomes_are_found_within_eleven_rounds() -> None:
    bets = Bets()
    for _ in range(11):
        bets.add(1.0)
    assert bets.won


def test_a_surprise_is_told_in_units_of_the_most_that_losses_could_fall_short() -> None:
    """By brute force over the corners of the outcomes."""
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((5, 3)), rng.normal(size=(5, 3, 2)) / 4)
    for said in rng.random((20, 2)):
        player = UnbiasedPrediction(GainEvents([group]), reference=Reference(Told(said)))
        seen = list[float]()
        player.reference._bets.add = seen.append  # type: ignore[union-attr, method-assign]
        truth = rng.random(2)
        player.mixture()
        player.update(truth)
        action = (group.offset + group.weights @ said).argmin(1)
        slopes = group.weights[np.arange(5), action].sum(0)
        least = min(slopes @ (np.array(corner) - said) for corner in product([0, 1], repeat=2))
        assert seen == pytest.approx([slopes @ (truth - said) / -least])


class Told(Constant):
    """Says always the same vector."""

    def __init__(self, value: np.ndarray) -> None:
        super().__init__(len(value))
        self._value = value
