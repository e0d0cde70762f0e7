"""The kernels of models beside the same formulas in NumPy, and what models are told once."""

import numpy as np
import pytest

from regretless.forecaster.models import LastValue, aggregate, least_squares, simple
from regretless.forecaster.models.base import Features, features, in_unit_cube, teach
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import in_round
from regretless.market.core.randomness import stream
from regretless.market.records import RoundFeedback

MODELS = 3
SIZE = 4


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_shares_are_positive_regrets_over_variations(seed: int, models: int) -> None:
    rng = stream(seed, "shares")
    sizes = [(models, SIZE), (models, 1), (2, SIZE)]
    regrets = [rng.normal(size=size) for size in sizes]
    variations = [rng.random(size) for size in sizes]
    regrets[0][:, 0] = -1.0  # no model gained in the first coordinate
    variations[1][0] = 0.0
    shares = [np.empty(size) for size in sizes]
    sums_of_kinds = [sums for pair in zip(regrets, variations, strict=True) for sums in pair]
    points = rng.random((models, SIZE))
    prediction = np.empty(SIZE)

    aggregate._weigh_and_combine(points, *sums_of_kinds, *shares, prediction)

    for regret, variation, share in zip(regrets, variations, shares, strict=True):
        weight = np.maximum(regret, 0.0) / (aggregate.VARIATION_OFFSET + variation)
        total = np.broadcast_to(weight.sum(0), weight.shape)
        expected = np.full(weight.shape, 1 / len(weight))
        np.divide(weight, total, out=expected, where=total > 0)
        assert share == pytest.approx(expected, abs=1e-15)
    own, common, choice = shares
    expected_prediction = ((choice[0] * own + choice[1] * common) * points).sum(0)
    assert prediction == pytest.approx(expected_prediction, abs=1e-15)


def test_models_are_combined_by_the_chosen_weights_in_every_coordinate() -> None:
    rng = stream(3, "aggregate")
    points = rng.normal(size=(MODELS, SIZE))
    own = rng.dirichlet(np.ones(MODELS), size=SIZE).T
    common = rng.dirichlet(np.ones(MODELS))[:, None]
    choice = rng.dirichlet(np.ones(2), size=SIZE).T
    points_in_cube = np.clip(points, 0.0, 1.0)
    expected = ((choice[0] * own + choice[1] * common) * points_in_cube).sum(0)
    prediction = np.empty(SIZE)

    aggregate.combine(points, own, common, choice, prediction)

    assert np.array_equal(points, points_in_cube)
    assert prediction == pytest.approx(expected, abs=1e-15)


def test_gains_of_models_are_those_of_the_formula() -> None:
    rng = stream(2, "aggregate")
    points = rng.random((MODELS, SIZE))
    statistics = rng.random(SIZE)
    own = rng.dirichlet(np.ones(MODELS), size=SIZE).T
    common = rng.dirichlet(np.ones(MODELS))[:, None]
    choice = rng.dirichlet(np.ones(2), size=SIZE).T
    sums_of_own = rng.random((2, MODELS, SIZE))
    sums_of_common = rng.random((2, MODELS, 1))
    sums_of_choice = rng.random((2, 2, SIZE))
    before = [sums.copy() for sums in (sums_of_own, sums_of_common, sums_of_choice)]

    aggregate._learn_gains(
        points,
        statistics,
        own,
        common,
        choice,
        *sums_of_own,
        *sums_of_common,
        *sums_of_choice,
    )

    means = np.array([(own * points).sum(0), (common * points).sum(0)])
    prediction = (choice * means).sum(0)
    gains_on_own = (means[0] - statistics) * (means[0] - points)
    gains_on_common = (means[1] - statistics) * (means[1] - points)
    gains_of_means = (prediction - statistics) * (prediction - means)
    expected = [gains_on_own, gains_on_common.mean(1, keepdims=True), gains_of_means]
    after = [sums_of_own, sums_of_common, sums_of_choice]
    for gain, (regret, variation), (new_regret, new_variation) in zip(
        expected, before, after, strict=True
    ):
        assert new_regret == pytest.approx(regret + gain, abs=1e-15)
        assert new_variation == pytest.approx(variation + gain**2, abs=1e-15)


def test_a_value_moves_by_its_share_of_the_way_and_stays_in_the_unit_interval() -> None:
    value = np.array([0.0, 0.5, 1.0, 0.25])
    target = np.array([1.0, 0.1, 0.0, -3.0])

    simple._move(value, target, 0.5, 2.0)

    assert value == pytest.approx([0.25, 0.4, 0.75, 0.0], abs=1e-15)


def test_of_a_vector_its_share_remains_and_the_target_has_the_rest() -> None:
    value = np.array([0.0, 0.5, 1.0])
    target = np.array([1.0, 0.1, 0.0])

    simple._blend(value, target, 0.25)

    assert value == pytest.approx([0.75, 0.2, 0.25], abs=1e-15)


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_a_seasonal_model_leaves_the_vectors_that_it_is_taught_as_they_are(rate: float) -> None:
    model = simple.SeasonalNaive(2, rate=rate)
    vectors = [np.array([0.1, 0.9]), np.array([0.7, 0.3]), np.array([0.5, 0.5])]
    before = [vector.copy() for vector in vectors]

    for vector in vectors:
        model.point({"hour": 7.0})
        teach(model, vector, None)

    assert np.array_equal(vectors, before)


def test_the_weights_of_an_open_round_stay_while_later_rounds_are_asked_for_and_learned() -> None:
    models = {"last": LastValue(2), "mean": simple.RunningMean(2)}
    combined = aggregate.Aggregate(models, 2)
    combined.point()
    combined.update(np.array([0.9, 0.2]))
    combined.point()
    opened = combined.opened()
    shares_when_opened = opened["own"].copy()

    for y in ([0.1, 0.8], [0.3, 0.4]):
        combined.update(np.array(y))
        combined.point()

    assert not np.array_equal(combined.opened()["own"], shares_when_opened)
    assert np.array_equal(opened["own"], shares_when_opened)


def test_an_aggregate_goes_back_to_a_round_without_changing_what_was_kept_of_it() -> None:
    models = {"last": LastValue(2), "mean": simple.RunningMean(2)}
    combined = aggregate.Aggregate(models, 2)
    for y in ([0.9, 0.2], [0.1, 0.8]):
        combined.point()
        combined.update(np.array(y))
    combined.point()
    opened = combined.opened()
    shares_when_opened = opened["own"].copy()

    combined.reopen(None, opened)
    combined.update(np.array([0.3, 0.4]))
    combined.point()

    assert np.array_equal(opened["own"], shares_when_opened)


def test_a_restored_aggregate_weighs_its_models_as_the_one_that_was_saved() -> None:
    def new_aggregate() -> aggregate.Aggregate:
        models = {"last": LastValue(2), "mean": simple.RunningMean(2)}
        return aggregate.Aggregate(models, 2)

    saved = new_aggregate()
    for y in ([0.9, 0.2], [0.1, 0.8], [0.3, 0.4]):
        saved.point()
        saved.update(np.array(y))
    restored = new_aggregate()

    restored.restore(saved.state())

    assert np.array_equal(restored.point(), saved.point())
    for model in (saved, restored):
        model.update(np.array([0.6, 0.7]))
    assert np.array_equal(restored.point(), saved.point())


def test_what_is_moved_into_the_unit_cube_is_a_copy_whose_unknown_numbers_stay() -> None:
    inside = np.array([0.0, 0.25, 1.0])

    copied = in_unit_cube(inside)

    copied[0] = 0.5
    assert inside[0] == 0.0
    assert in_unit_cube(np.array([[-0.1, 1.5], [0.5, 1.0]])).tolist() == [[0.0, 1.0], [0.5, 1.0]]
    assert np.isnan(in_unit_cube(np.array([np.nan, 2.0]))).tolist() == [True, False]


def test_a_round_of_a_regression_is_added_to_what_is_left_of_the_earlier_ones() -> None:
    rng = stream(2, "regression")
    row = rng.normal(size=SIZE)
    statistics = rng.random(2)
    forgetting = np.array([0.9, 1.0])
    grams = rng.normal(size=(2, SIZE, SIZE))
    cross = rng.normal(size=(SIZE, 2))
    expected_grams = forgetting[:, None, None] * grams + np.outer(row, row)
    expected_cross = 0.9 * cross + np.outer(row, statistics - 0.5)

    least_squares._add_to_grams(row, forgetting, grams)
    least_squares._add_to_cross(row, statistics, 0.9, cross)

    assert grams == pytest.approx(expected_grams, abs=1e-15)
    assert cross == pytest.approx(expected_cross, abs=1e-15)


def test_the_systems_of_a_round_are_its_features_and_the_sums_with_their_ridges() -> None:
    rng = stream(4, "regression")
    lagged_outcomes = rng.normal(size=(1, 2))
    encoded = rng.normal(size=1)
    grams = rng.normal(size=(2, SIZE, SIZE))
    ridges = np.array([0.5, 2.0])
    before = grams.copy()
    row = np.empty(SIZE)
    systems = np.empty_like(grams)

    least_squares._write_systems(lagged_outcomes, encoded, grams, ridges, row, systems)

    assert np.array_equal(row, [1.0, *lagged_outcomes[0], *encoded])
    assert np.array_equal(systems, before + ridges[:, None, None] * np.eye(SIZE))
    assert np.array_equal(grams, before)


def test_a_round_is_learned_with_the_features_that_it_has() -> None:
    rng = stream(5, "regression")
    lagged_outcomes = rng.normal(size=(1, 2))
    encoded = rng.normal(size=1)
    forgetting = np.array([0.9, 1.0])
    grams = rng.normal(size=(2, SIZE, SIZE))
    expected_row = np.concatenate([[1.0], lagged_outcomes[0], encoded])
    expected_grams = forgetting[:, None, None] * grams + np.outer(expected_row, expected_row)
    row = np.empty(SIZE)

    least_squares._learn_row(lagged_outcomes, encoded, forgetting, row, grams)

    assert np.array_equal(row, expected_row)
    assert grams == pytest.approx(expected_grams, abs=1e-15)


def test_features_that_do_not_fit_the_sums_are_refused() -> None:
    row = np.empty(SIZE)

    with pytest.raises(ValueError, match="another number of features"):
        least_squares._write_row(np.zeros((2, 2)), np.zeros(1), row)


def test_a_late_outcome_has_room_made_behind_the_newer_ones() -> None:
    past = np.array([[4.0], [3.0], [1.0]])

    least_squares._put_into_past(np.array([3.0]), 1, past)

    assert np.array_equal(past, [[4.0], [2.5], [3.0]])


def test_an_outcome_that_is_older_than_all_that_are_kept_is_left_out() -> None:
    past = np.array([[4.0], [3.0]])

    least_squares._put_into_past(np.array([3.0]), 2, past)

    assert np.array_equal(past, [[4.0], [3.0]])


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
