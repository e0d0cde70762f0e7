"""What users keep of a round does not change in later rounds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import Adversary, MarketModel, OutcomeDistribution, ScriptedAgent, register
from regretless.forecaster.bases import PowerBasis
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import check_like
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions
from regretless.market.game.protocols import Cohort, Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.markets import Market
from regretless.market.records import (
    AdversaryView,
    Context,
    Ensemble,
    Forecast,
    History,
    Mixture,
    work_out_labels,
)


class InPlaceForecaster:
    """Forecasts a running average, and moves it in the array that it has returned."""

    def __init__(self, size: int) -> None:
        self.points = np.full((1, size), 0.5)

    def predict(self, x: Any = None) -> Forecast:
        return Forecast(Mixture(self.points, np.ones(1)), 0)

    def update(self, y: Array) -> None:
        self.points *= 0.9
        self.points += 0.1 * y

    def state(self) -> TomlTable:
        return {"points": self.points.copy()}

    def restore(self, state: TomlTable) -> None:
        self.points = state["points"].copy()


class NotingAgent(ScriptedAgent):
    """Writes a number of its own into the features of every round."""

    features_before_it_wrote: list[dict[str, float]]

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.features_before_it_wrote = []

    def act(self, forecast: Any, context: Context) -> int:
        self.features_before_it_wrote.append(dict(context.features))
        context.features["mine"] = 1.0  # type: ignore[index]
        return 0


def build(response: str, forecaster: str = "constant") -> MarketModel:
    agents = cohort_table("agents", 1, 3, response=response)
    return make_scenario(agents, forecaster={"kind": forecaster}, rounds=5).build()


@pytest.mark.usefixtures("registries")
def test_a_forecaster_that_writes_into_what_it_returned_changes_no_earlier_round() -> None:
    register.forecaster("in-place")(InPlaceForecaster)
    model = build("best-response", "in-place")
    rounds = []
    points_at_first = []
    while not model.is_finished:
        played = model.conclude(model.begin())
        rounds.append(played)
        points_at_first.append(played.mixtures[0].points.copy())
    assert not np.array_equal(points_at_first[0], points_at_first[-1])
    points_at_the_end = [played.mixtures[0].points for played in rounds]
    np.testing.assert_array_equal(points_at_the_end, points_at_first)
    logged_points = model.forecasts_frame()[["p_0", "p_1"]].to_numpy()
    np.testing.assert_array_equal(logged_points, np.concatenate(points_at_first))


@pytest.mark.usefixtures("registries")
def test_what_an_agent_writes_into_features_is_gone_in_the_next_round_and_market() -> None:
    register.agent("noting")(NotingAgent)
    for _ in range(2):
        model = build("noting")
        model.run()
        (agent,) = model.game.cohorts[0].agents  # type: ignore[attr-defined]
        assert agent.features_before_it_wrote == [{}] * 5


def test_a_copied_mixture_shares_no_array() -> None:
    ensemble = Ensemble(outcomes=np.zeros((1, 2)), weights=np.ones(1))
    mixture = Mixture(
        points=np.zeros((1, 2)),
        weights=np.ones(1),
        certificate=0.25,
        labels=np.zeros((1, 2)),
        ensembles=(ensemble,),
    )
    copied = mixture.copied()
    assert copied.certificate == 0.25
    assert copied.labels is not None
    assert mixture.labels is not None
    assert copied.ensembles is not None
    for array, original in (
        (copied.points, mixture.points),
        (copied.weights, mixture.weights),
        (copied.labels, mixture.labels),
        (copied.ensembles[0].outcomes, ensemble.outcomes),
        (copied.ensembles[0].weights, ensemble.weights),
    ):
        np.testing.assert_array_equal(array, original)
        assert not np.shares_memory(array, original)
        assert not array.flags.writeable


class CountingBasis(PowerBasis):
    """Counts how often it is asked for label forecasts."""

    def __init__(self) -> None:
        super().__init__([0.5], outcomes=1)
        self.times_asked = 0

    def inverse(self, points: Array) -> Array:
        self.times_asked += 1
        return super().inverse(points)


class CountingMixtures(CountingBasis):
    """Whose label forecasts are made for each mixture by itself."""

    inverse_is_rowwise = False


def mixtures_of(basis: Basis) -> list[Mixture]:
    """Return mixtures of one, two and three predictions."""
    mixtures = []
    for n_atoms in (1, 2, 3):
        points = np.linspace(0.25, 0.75, n_atoms)[:, np.newaxis]
        weights = np.full(n_atoms, 1 / n_atoms)
        mixtures.append(Mixture(points, weights, basis_of_labels=basis))
    return mixtures


def test_labels_are_made_once_when_they_are_first_read() -> None:
    basis = CountingBasis()
    mixture = Mixture(np.array([[0.5]]), np.ones(1), basis_of_labels=basis)
    assert mixture.has_labels
    assert basis.times_asked == 0

    for _ in range(2):
        np.testing.assert_array_equal(mixture.labels, [[0.25]])

    assert basis.times_asked == 1


def test_labels_of_many_mixtures_are_made_together_where_the_bits_allow() -> None:
    together = CountingBasis()
    apart = CountingMixtures()
    mixtures = [*mixtures_of(together), *mixtures_of(apart)]

    work_out_labels(mixtures)

    assert together.times_asked == 1
    assert apart.times_asked == 0
    for mixture in mixtures:
        np.testing.assert_array_equal(mixture.labels, mixture.points**2.0)


def test_labels_that_were_given_or_read_are_not_made_again() -> None:
    basis = CountingBasis()
    given_labels = np.array([[0.125]])
    with_given_labels = Mixture(np.array([[0.5]]), np.ones(1), labels=given_labels)
    read_before = mixtures_of(basis)
    labels_before = [mixture.labels for mixture in read_before]
    times_asked_before = basis.times_asked

    work_out_labels([with_given_labels, *read_before])

    assert basis.times_asked == times_asked_before
    np.testing.assert_array_equal(with_given_labels.labels, given_labels)
    for mixture, labels in zip(read_before, labels_before, strict=True):
        assert mixture.labels is labels


def test_a_mixture_without_ensembles_keeps_its_labels() -> None:
    ensemble = Ensemble(outcomes=np.array([[0.25]]), weights=np.ones(1))
    points = np.array([[0.5]])
    unread = Mixture(
        points, np.ones(1), ensembles=(ensemble,), basis_of_labels=PowerBasis([0.5], 1)
    )
    given = Mixture(points, np.ones(1), labels=np.array([[0.125]]), ensembles=(ensemble,))
    for mixture, labels in ((unread, [[0.25]]), (given, [[0.125]])):
        shown = mixture.without_ensembles
        assert shown.ensembles is None
        np.testing.assert_array_equal(shown.labels, labels)


class InPlaceAdversary(Adversary):
    """Shows the number of the round in an array and a table that it goes on using."""

    sees = frozenset({"history"})

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        super().__init__(outcomes, rng)
        self.columns = {"seen_": np.zeros(2), "number": 0}

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        self.columns["seen_"] += 1.0
        self.columns["number"] = history.rounds
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.1 * (history.rounds % 10)))

    def round_columns(self, round_index: int) -> dict[str, Any]:
        return self.columns


class InPlaceMarket(Market):
    """Lists as many trades as it was cleared, in an array that it goes on using."""

    def __init__(self, cohorts: Sequence[Cohort], rng: np.random.Generator) -> None:
        super().__init__(cohorts, rng)
        self.prices = np.zeros(1)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        self.prices += 1.0
        return fundamental

    def extra_tables(self) -> dict[str, dict[str, Array]]:
        return {"trades": {"price": self.prices}}


class InPlaceBasis(PowerBasis):
    """Returns the label forecasts of all rounds in one array."""

    def inverse(self, statistics: Array) -> Array:
        labels = super().inverse(statistics)
        buffers = vars(self).setdefault("buffers", {})
        buffer: Array = buffers.setdefault(labels.shape, np.zeros(labels.shape))
        buffer[:] = labels
        return buffer


@pytest.mark.usefixtures("registries")
def test_columns_that_an_adversary_and_a_market_overwrite_stay_in_the_tables_as_they_were() -> None:
    register.adversary("in-place")(InPlaceAdversary)
    register.market("in-place")(InPlaceMarket)
    agents = cohort_table("agents", 1, 3)
    adversary = {"kind": "in-place", "outcomes": 2}
    scenario = make_scenario(agents, adversary=adversary, market={"kind": "in-place"}, rounds=5)
    model = scenario.build()
    model.run()
    rounds = model.rounds_frame()
    assert rounds["number"].tolist() == [0, 1, 2, 3, 4]
    assert rounds["seen_0"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert model.trades_frame()["price"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("forecaster", [{}, {"kind": "running-mean"}])
def test_label_forecasts_that_a_basis_overwrites_stay_as_they_were(forecaster: TomlTable) -> None:
    register.basis("in-place")(lambda losses: InPlaceBasis([1.0], losses[0].outcomes))
    register.basis("plain")(lambda losses: PowerBasis([1.0], losses[0].outcomes))
    tables = []
    labels = []
    for basis in ("in-place", "plain"):
        agents = cohort_table("agents", 2, 3, basis=basis)
        model = make_scenario(agents, forecaster=forecaster, rounds=20).build()
        model.run()
        tables.append(model.forecasts_frame().filter(like="label_").to_numpy())
        labels.append(model.game.blocks[0].record.last(20))
    assert len(np.unique(tables[1])) > 2
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(labels[0], labels[1])


class FittingForecaster(Forecaster):
    """Returns the points and weights that it is made with."""

    def __init__(self, points: Any, weights: Any) -> None:
        self.mixture_to_return = Mixture(points, weights)

    def mixture(self, x: Any = None) -> Mixture:
        return self.mixture_to_return

    def update(self, y: Any) -> None:
        """Learn nothing."""


class FittingObject:
    """As ``FittingForecaster``, an object of no class of the project."""

    def __init__(self, points: Any, weights: Any) -> None:
        self.forecast = Forecast(Mixture(points, weights), 0)

    def predict(self, x: Any = None) -> Forecast:
        return self.forecast

    def update(self, y: Any) -> None:
        """Learn nothing."""


MIXTURES_THAT_DO_NOT_FIT = {
    "a number too many": (np.full((2, 3), 0.5), np.full(2, 0.5)),
    "a number too few": (np.full((2, 1), 0.5), np.full(2, 0.5)),
    "a vector in place of a table": (np.full(2, 0.5), np.full(2, 0.5)),
    "more weights than points": (np.full((2, 2), 0.5), np.full(3, 1 / 3)),
    "weights that sum to 2": (np.full((2, 2), 0.5), np.ones(2)),
    "a weight below 0": (np.full((2, 2), 0.5), np.array([1.5, -0.5])),
    "a weight that is no number": (np.full((2, 2), 0.5), np.array([np.nan, 1.0])),
    "points that are no numbers": (np.full((2, 2), np.nan), np.full(2, 0.5)),
    "points of words": (np.full((2, 2), "a"), np.full(2, 0.5)),
    "a number above 1": (np.array([[0.5, 1.2], [0.5, 0.5]]), np.full(2, 0.5)),
    "a number below 0": (np.array([[0.5, 0.5], [-0.001, 0.5]]), np.full(2, 0.5)),
    "an infinite number": (np.array([[0.5, np.inf], [0.5, 0.5]]), np.full(2, 0.5)),
}


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("case", MIXTURES_THAT_DO_NOT_FIT)
@pytest.mark.parametrize("forecaster", [FittingForecaster, FittingObject])
def test_a_mixture_that_does_not_fit_is_refused_before_a_kernel_reads_it(
    forecaster: Any, case: str
) -> None:
    points, weights = MIXTURES_THAT_DO_NOT_FIT[case]
    register.forecaster("fitting")(lambda _size: forecaster(points, weights))
    with pytest.raises(UserError, match=r"round 0: .* returned .*; return points \(m, 2\) in"):
        build("best-response", "fitting").step()


@pytest.mark.usefixtures("registries")
def test_the_number_of_a_mixture_that_lies_outside_the_unit_interval_is_named() -> None:
    points = np.full((40, 2), 0.5)
    points[37, 1] = 1.2
    weights = np.full(40, 1 / 40)
    register.forecaster("fitting")(lambda _size: FittingForecaster(points, weights))
    with pytest.raises(UserError, match=r"points \(40, 2\) and weights \(40,\), 1\.2 in points; "):
        build("best-response", "fitting").step()


@pytest.mark.usefixtures("registries")
def test_points_that_rounding_left_just_outside_the_unit_interval_are_moved_to_its_end() -> None:
    points = np.array([[1 + 1e-12, -1e-12]])
    register.forecaster("fitting")(lambda _size: FittingForecaster(points, np.ones(1)))
    model = build("best-response", "fitting")
    model.step()
    forecasts = model.forecasts_frame()
    assert forecasts[["p_0", "p_1"]].to_numpy().tolist() == [[1.0, 0.0]]


class ForecasterWithEnsembles(FittingForecaster):
    """Says of two points which ensembles they are."""

    ensembles: Any = None

    def mixture(self, x: Any = None) -> Mixture:
        return replace(super().mixture(x), ensembles=self.ensembles)


ENSEMBLE_OF_ONE = Ensemble(np.full((1, 2), 0.5), np.ones(1))


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("ensembles", [3, (3, 4), (ENSEMBLE_OF_ONE,)])
def test_what_are_no_ensembles_of_the_points_is_refused_in_one_line(ensembles: Any) -> None:
    forecaster = ForecasterWithEnsembles(np.full((2, 2), 0.5), np.full(2, 0.5))
    forecaster.ensembles = ensembles
    register.forecaster("fitting")(lambda _size: forecaster)
    expected = (
        r"returned ensembles .*; return a tuple of one Ensemble for each of 2 points, or None"
    )
    with pytest.raises(UserError, match=expected):
        build("best-response", "fitting").step()


@pytest.mark.usefixtures("registries")
def test_a_mixture_of_32_bits_or_integers_fits() -> None:
    weights = np.full(3, 1 / 3, dtype=np.float32)
    points = np.array([[0, 1], [1, 0], [1, 1]])
    register.forecaster("fitting")(lambda _size: FittingForecaster(points, weights))
    model = build("best-response", "fitting")
    model.run()
    assert len(model.rounds_frame()) == 5


class ModelsThatChangeShape(FittingForecaster):
    """Says that it has a model, which predicts one number too many in the second round."""

    models = ("mine",)

    def __init__(self, size: int) -> None:
        super().__init__(np.full((1, size), 0.5), np.ones(1))
        self.predicted = np.full((1, size), 0.5)

    @property
    def points(self) -> Array:
        return self.predicted

    def suggested(self, group: Any) -> Indices:
        return np.zeros((len(group.offset), 1), dtype=np.intp)

    def update(self, y: Any) -> None:
        self.predicted = np.full((1, len(y) + 1), 0.5)


@pytest.mark.usefixtures("registries")
def test_predictions_of_models_in_another_shape_are_refused_in_their_round() -> None:
    register.forecaster("changing")(ModelsThatChangeShape)
    with pytest.raises(UserError, match=r"round 1: ModelsThatChangeShape\.points is .*\(1, 2\)"):
        build("best-response", "changing").run()


@pytest.mark.parametrize("starts", [[0], [3]])
def test_a_checkpoint_fits_a_new_run_whether_or_not_a_window_is_open(starts: list[int]) -> None:
    windows = {"starts": starts, "length": 2}
    scenario = make_scenario(cohort_table("agents", 2, 3), windows=windows, rounds=8)
    whole = scenario.build()
    whole.run()
    for rounds in range(1, 8):
        first = scenario.build()
        first.run(rounds)
        second = scenario.build()
        check_like(first.state(), second.state())
        second.restore(first.state())
        second.run()
        assert second.journal.windows is not None
        assert whole.journal.windows is not None
        assert second.journal.windows.worst == whole.journal.windows.worst
