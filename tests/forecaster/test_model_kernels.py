"""The kernels of models beside the same formulas in NumPy, and what models are told once."""

import numpy as np
import pytest

from regretless.forecaster.models import LastValue, aggregate, least_squares
from regretless.forecaster.models.base import Features, features, teach
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import in_round
from regretless.market.core.randomness import stream
from regretless.market.records import RoundFeedback

MODELS = 3
SIZE = 4


def test_gains_of_models_are_those_of_the_formula() -> None:
    rng = stream(2, "aggregate")
    points = rng.random((MODELS, SIZE))
    statistics = rng.random(SIZE)
    own = rng.dirichlet(np.ones(MODELS), size=SIZE).T
    common = rng.dirichlet(np.ones(MODELS))[:, None]
    choice = rng.dirichlet(np.ones(2), size=SIZE).T
    gains_on_own = np.empty((MODELS, SIZE))
    gains_on_common = np.empty((MODELS, SIZE))
    gains_of_means = np.empty((2, SIZE))

    aggregate._write_gains(
        points, statistics, own, common, choice, gains_on_own, gains_on_common, gains_of_means
    )

    means = np.array([(own * points).sum(0), (common * points).sum(0)])
    prediction = (choice * means).sum(0)
    expected_on_own = (means[0] - statistics) * (means[0] - points)
    expected_on_common = (means[1] - statistics) * (means[1] - points)
    expected_of_means = (prediction - statistics) * (prediction - means)
    assert gains_on_own == pytest.approx(expected_on_own, abs=1e-15)
    assert gains_on_common == pytest.approx(expected_on_common, abs=1e-15)
    assert gains_of_means == pytest.approx(expected_of_means, abs=1e-15)


def test_a_round_of_a_regression_is_added_to_what_is_left_of_the_earlier_ones() -> None:
    rng = stream(2, "regression")
    row = rng.normal(size=SIZE)
    statistics = rng.random(2)
    gram = rng.normal(size=(SIZE, SIZE))
    cross = rng.normal(size=(SIZE, 2))
    expected_gram = 0.9 * gram + np.outer(row, row)
    expected_cross = 0.9 * cross + np.outer(row, statistics - 0.5)

    least_squares._add_row(row, statistics, 0.9, gram, cross)

    assert gram == pytest.approx(expected_gram, abs=1e-15)
    assert cross == pytest.approx(expected_cross, abs=1e-15)


def test_a_context_is_checked_once() -> None:
    checked = Features({"hour": 7.0})

    assert features(checked) is checked


class Diary(LastValue):
    """Writes down what it is told; a class of a user's own."""

    def __init__(self) -> None:
        super().__init__(1)
        self.told: list[RoundFeedback] = []

    def observe(self, feedback: RoundFeedback) -> None:
        self.told.append(feedback)


def test_a_model_that_observes_in_its_own_way_is_told_by_observe() -> None:
    diary = Diary()
    statistics: Array = np.array([0.25])

    teach(diary, statistics, None)

    assert [feedback.statistics[0] for feedback in diary.told] == [0.25]


def test_a_model_refuses_an_outcome_beyond_the_unit_interval() -> None:
    model = LastValue(1)

    with pytest.raises(UserError, match="outcome"):
        model.observe(RoundFeedback(np.array([0.5]), np.array([1.5])))


def test_only_faults_of_users_become_a_line_that_names_the_round() -> None:
    with pytest.raises(UserError, match=r"^round 3: .*give less"), in_round(3):
        raise UserError("give less")
    with pytest.raises(KeyboardInterrupt), in_round(3):
        raise KeyboardInterrupt
