"""Models of several bases share what is of no basis, and predict what each would by itself."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
from small_scenarios import read_catalogue_scenario

from regretless.forecaster.bases import MonomialBasis, PowerBasis
from regretless.forecaster.models import ColumnForecast, LastValue, LeastSquares, WithErrors
from regretless.forecaster.models.aggregate import PANEL, Aggregate, aggregate, make_panel
from regretless.forecaster.models.base import Model
from regretless.forecaster.models.late_model import LateModel
from regretless.forecaster.models.outcomes import DistributionModel
from regretless.forecaster.models.shared_distribution import (
    DistributionInBasis,
    SharedDistribution,
    is_shareable,
)
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Basis
from regretless.market.records import Context, RoundFeedback

BASES = (PowerBasis([1.0, 2.0], 1), MonomialBasis(1, 3), PowerBasis([3.0], 1))
ROUNDS = 40


def outcomes_of_rounds() -> Array:
    return stream(3, "outcomes").random((ROUNDS, 1))


def context_of_round(round_index: int) -> Context:
    load = float(np.sin(round_index))
    return Context(("hour", "load"), np.array([round_index % 6, load]))


def regression_with_errors(basis: Basis) -> WithErrors:
    """Make a regression of the outcome that carries its errors, by season."""
    return WithErrors(LeastSquares(1, lags=2, forgetting=0.95), basis, window=12)


def sharing_distributions() -> list[Model]:
    shared = SharedDistribution(regression_with_errors(BASES[0]))
    return [DistributionInBasis(shared, basis) for basis in BASES]


def sharing_regressions() -> list[Model]:
    regressions = [make_regression(basis) for basis in BASES]
    for other in regressions[1:]:
        other.share_regressors(regressions[0])
    return list(regressions)


def make_regression(basis: Basis, forgetting: float = 0.95) -> LeastSquares:
    return LeastSquares(basis.size, lags=2, season=5, forgetting=forgetting)


def play_models(models: Sequence[Model], *, delay: int) -> list[list[bytes]]:
    """Return what each model predicted in each round, told outcomes so many rounds late."""
    late_models = [LateModel(model, delay) for model in models]
    predictions: list[list[bytes]] = []
    for round_index, outcome in enumerate(outcomes_of_rounds()):
        context = context_of_round(round_index)
        predictions.append([model.point(context).tobytes() for model in late_models])
        for model, basis in zip(late_models, BASES, strict=True):
            model.learn(basis.transform(outcome), outcome)
    return predictions


@pytest.mark.parametrize("delay", [0, 2])
def test_a_shared_distribution_predicts_what_one_for_each_basis_does(delay: int) -> None:
    separate_models: list[Model] = [regression_with_errors(basis) for basis in BASES]

    predictions = play_models(sharing_distributions(), delay=delay)

    assert predictions == play_models(separate_models, delay=delay)


@pytest.mark.parametrize("delay", [0, 2])
def test_regressions_that_share_features_predict_what_each_does_by_itself(delay: int) -> None:
    separate_models: list[Model] = [make_regression(basis) for basis in BASES]

    predictions = play_models(sharing_regressions(), delay=delay)

    assert predictions == play_models(separate_models, delay=delay)


@pytest.mark.parametrize("delay", [0, 2])
def test_regressions_that_forget_at_several_rates_share_features(delay: int) -> None:
    rates = (1.0, 0.9, 0.8)
    separate_models = [
        make_regression(basis, forgetting) for basis, forgetting in zip(BASES, rates, strict=True)
    ]
    sharing = copy.deepcopy(separate_models)
    for other in sharing[1:]:
        other.share_regressors(sharing[0])

    predictions = play_models(sharing, delay=delay)

    assert predictions == play_models(separate_models, delay=delay)
    for sharing_model, separate_model in zip(sharing, separate_models, strict=True):
        assert np.array_equal(sharing_model.gram, separate_model.gram)


@pytest.mark.parametrize("delay", [0, 2])
def test_the_default_aggregate_predicts_what_models_that_share_nothing_do(delay: int) -> None:
    sharing: list[Model] = [aggregate(basis.size) for basis in BASES]
    separate: list[Model] = [
        Aggregate(make_panel(PANEL, basis.size), basis.size) for basis in BASES
    ]

    predictions = play_models(sharing, delay=delay)

    assert predictions == play_models(separate, delay=delay)


def test_regressions_of_the_default_aggregate_learn_their_features_once() -> None:
    members = aggregate(2).members
    first = members["least-squares"]
    second = members["least-squares-0.99"]
    assert isinstance(first, LeastSquares)
    assert isinstance(second, LeastSquares)
    assert first.regressors is second.regressors


def test_a_regression_that_goes_on_alone_keeps_its_own_system_alone() -> None:
    rates = (1.0, 0.9, 0.8)
    sharing = [
        make_regression(basis, forgetting) for basis, forgetting in zip(BASES, rates, strict=True)
    ]
    for other in sharing[1:]:
        other.share_regressors(sharing[0])
    play_models(sharing, delay=0)
    gram = sharing[1].gram.copy()

    sharing[1]._go_on_alone()

    assert sharing[1].regressors is not sharing[0].regressors
    assert len(sharing[1].regressors.grams) == 1
    assert np.array_equal(sharing[1].gram, gram)


def test_a_shared_distribution_is_made_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    models = sharing_distributions()
    contexts_asked: list[object] = []
    make_distribution = WithErrors.distribution

    def count_call(model: WithErrors, x: object = None) -> object:
        contexts_asked.append(x)
        return make_distribution(model, x)

    monkeypatch.setattr(WithErrors, "distribution", count_call)

    play_models(models, delay=0)

    assert len(contexts_asked) == ROUNDS


def test_a_shared_system_is_solved_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    models = sharing_regressions()
    rows_solved: list[Array] = []
    solve = np.linalg.solve

    def count_call(system: Array, row: Array) -> Array:
        rows_solved.append(row)
        return np.asarray(solve(system, row))

    monkeypatch.setattr(np.linalg, "solve", count_call)

    play_models(models, delay=0)

    assert len(rows_solved) == ROUNDS - 1  # nothing is known in the first round


@pytest.mark.parametrize("make_models", [sharing_distributions, sharing_regressions])
def test_a_copy_of_one_model_plays_on_by_itself(make_models: object) -> None:
    assert callable(make_models)
    models = make_models()
    play_models(models, delay=0)
    context = context_of_round(ROUNDS)
    expected = [model.point(context).tobytes() for model in models]

    imagined = copy.deepcopy(models[1])
    for _ in range(5):
        imagined.point(context)
        outcome = np.array([1.0])
        imagined.observe(RoundFeedback(BASES[1].transform(outcome), outcome))

    assert [model.point(context).tobytes() for model in models] == expected
    assert imagined.point(context).tobytes() != expected[1]


@pytest.mark.parametrize("make_models", [sharing_distributions, sharing_regressions])
def test_models_that_share_go_on_from_what_each_has_kept(make_models: object) -> None:
    assert callable(make_models)
    models = make_models()
    play_models(models, delay=0)
    resumed = make_models()

    for model, state in zip(resumed, [model.state() for model in models], strict=True):
        model.restore(state)

    assert play_models(resumed, delay=0) == play_models(models, delay=0)


def test_a_regression_that_learns_statistics_alone_goes_on_by_itself() -> None:
    first, second, _third = sharing_regressions()
    assert isinstance(first, LeastSquares)
    assert isinstance(second, LeastSquares)

    first.point(context_of_round(0))
    first.update([0.2, 0.4])

    assert first.regressors is not second.regressors
    assert second.regressors.rounds == 0


def test_a_missing_outcome_passes_for_all_who_share_once() -> None:
    models = sharing_distributions()
    separate_models = [regression_with_errors(basis) for basis in BASES]
    play_models(models, delay=0)
    play_models(separate_models, delay=0)
    context = context_of_round(ROUNDS)

    for model in (*models, *separate_models):
        model.point(context)
    for model in (*models, *separate_models):
        model.skip_round(context)

    next_context = context_of_round(ROUNDS + 1)
    shared_predictions = [model.point(next_context).tobytes() for model in models]
    assert shared_predictions == [model.point(next_context).tobytes() for model in separate_models]


class DistributionOfAUser(DistributionModel):
    """A class of a user's own."""


def test_only_our_own_distributions_are_shared() -> None:
    assert is_shareable(ColumnForecast(BASES[0], columns=["forecast"]))
    assert not is_shareable(DistributionOfAUser(BASES[0]))
    assert not is_shareable(LastValue(1))


def test_blocks_of_one_broadcast_share_their_models_of_the_outcome() -> None:
    market = read_catalogue_scenario("retailers", "rounds=3").build(seed=1)

    references = [block.forecaster.reference.model.inner for block in market.game.blocks]

    with_errors_of_blocks = [model.members["last-value-with-errors"] for model in references]
    assert len({id(model.shared) for model in with_errors_of_blocks}) == 1
    regressions = [model.members["least-squares"] for model in references]
    assert len({id(model.regressors) for model in regressions}) == 1
    # those that forget have the same features
    forgetting_regressions = [model.members["least-squares-0.99"] for model in references]
    assert forgetting_regressions[0].regressors is regressions[0].regressors
    # of those that forget, and of the others
    assert len(forgetting_regressions[0].regressors.grams) == 2
