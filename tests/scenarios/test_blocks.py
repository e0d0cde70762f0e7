"""Which cohorts share a broadcast, in which basis, and what a mixed market keeps."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import TomlTable, built_in_names, cohort_table, make_scenario

from regretless.agents.utilities import forms
from regretless.forecaster.bases.default import natural_kind
from regretless.forecaster.guarantees.draws import ASSIGNED
from regretless.market import losses, register
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel

# Every utility with parameters that give it a basis of its own.
UTILITIES: dict[str, tuple[str, TomlTable]] = {
    "linear": ("linear", {}),
    "additive": ("ces", {"rho": {"choices": [0.3, 0.6, 1.0]}}),
    "ces": ("ces", {"rho": [0.3, 0.9], "v": 1.0}),
    "whole-ces": ("ces", {"rho": 0.5, "v": 1.0}),
    "cobb-douglas": ("cobb-douglas", {}),
    "leontief": ("leontief", {}),
    "cara": ("cara", {"risk_aversion": [1.0, 4.0]}),
    "mean-variance": ("mean-variance", {}),
    "newsvendor": ("newsvendor", {"underage": [1.0, 4.0]}),
    "lp-target": ("lp-target", {}),
    "kinked-target": ("lp-target", {"p": [1.0, 3.0]}),
}
EIGHT_UTILITIES = [
    "linear",
    "ces",
    "cobb-douglas",
    "leontief",
    "cara",
    "mean-variance",
    "newsvendor",
    "lp-target",
]


def cohort_with(utility: str, **keys: Any) -> TomlTable:
    """Return three agents with one of the utilities, and these keys."""
    name, parameters = UTILITIES[utility]
    return cohort_table(utility, 3, 3, name, parameters=parameters) | keys


def build_model(*cohorts: TomlTable, outcomes: int = 2, rounds: int = 5) -> MarketModel:
    """Return the model of a market whose adversary opposes the forecast."""
    adversary = {"kind": "anti-forecast", "outcomes": outcomes, "strength": 0.5}
    return make_scenario(*cohorts, rounds=rounds, adversary=adversary).build(log_every=rounds)


def build_or_refuse(*cohorts: TomlTable) -> MarketModel | str:
    """Return the model, or the line of refusal."""
    try:
        return build_model(*cohorts)
    except UserError as error:
        return str(error)


def names_and_hearers(model: MarketModel) -> list[tuple[str, list[str]]]:
    """Return each block's name and the cohorts that hear it."""
    blocks: list[tuple[str, list[str]]] = [(block.name, []) for block in model.game.blocks]
    for seat in model.game.cohorts:
        blocks[seat.block][1].append(seat.name)
    return blocks


def check_errors(model: MarketModel) -> None:
    """Assert that no basis is farther from its losses than it is certified for."""
    outcomes = np.random.default_rng(1).random((200, model.game.adversary.outcomes))
    for seat in model.game.cohorts:
        basis = model.game.blocks[seat.block].basis
        measured_error = basis.audit(seat.loss, outcomes)
        certified_error = min(basis.certified_error(seat.loss), basis.error)
        assert measured_error <= certified_error + 1e-12 < 0.2


def play_and_check_bounds(model: MarketModel) -> None:
    """Play to the end, and assert that no regret is above its bounds."""
    model.run()
    agents = model.agents_frame()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()


SHARES = np.random.default_rng(0).dirichlet(np.ones(2), (4, 3))
SHARES_OF_SIX = np.random.default_rng(1).dirichlet(np.ones(6), (4, 3))


def power_of_sum(exponent: Any, floor: Any) -> losses.PowerOfSum:
    """Return square roots of sums, to a power, above a floor."""
    return losses.PowerOfSum(
        SHARES[:2], exponent=np.array(exponent), power=np.array(0.5), floor=np.array(floor)
    )


def lipschitz(slope: float) -> losses.LipschitzLoss:
    """Return losses of which only a Lipschitz constant is known."""
    return losses.LipschitzLoss(lambda y: y[:, None, :], np.array(slope), (1, 2), 2)


EXPONENTIALS = losses.ExponentialOfSum(SHARES[:2], np.array([0.0, 1.0]), np.array(0.1))
LOSSES_OF_NATURAL_BASIS: dict[str, list[losses.Loss]] = {
    "linear": [losses.Linear(SHARES), forms.CES(SHARES, 1.0)],
    "powers": [forms.CES(SHARES, [0.3, 0.5, 0.5, 1.0]), forms.LpTarget(0 * SHARES, 3.0)],
    "bernstein": [forms.LpTarget(SHARES, 2.0), forms.LpTarget(SHARES, [2.0, 4.0, 2.0, 4.0])],
    "monomials": [
        forms.CES(SHARES, 0.5, 1.0),
        forms.MeanVariance(SHARES, 1.0),
        power_of_sum(2.0, 0.1),
        power_of_sum([2.0, 3.0], 0.1),
    ],
    "chebyshev": [forms.CobbDouglas(SHARES), forms.CARA(SHARES, [1.0, 2.0, 3.0, 4.0])],
    "relu": [forms.Newsvendor([0.1, 0.5, 0.9], [1.0, 2.0], 1.0, outcomes=2)],
    "lipschitz-grid": [lipschitz(1.0)],
    "reduced": [
        forms.LpTarget(SHARES, 1.0),
        forms.LpTarget(SHARES, [2.0, 2.0, 2.0, 3.0]),
        forms.LpTarget(SHARES, 2.5),
        forms.CES(SHARES, [0.3, 0.5, 0.5, 0.8], 1.0),
        forms.CES(SHARES, 0.4, 1.0),
        forms.CES(SHARES, [0.5, 1.0] * 2, [1.0, 2.0] * 2),
        forms.CES(SHARES, -1.0, 1.0, 0.1),
        forms.CES(SHARES_OF_SIX, 0.2, 1.0),  # many monomials
        power_of_sum(2.0, [0.1, 0.2]),
        EXPONENTIALS,
        forms.Leontief(SHARES + 0.1),
        lipschitz(10.0),
    ],
}


@pytest.mark.parametrize("kind", LOSSES_OF_NATURAL_BASIS)
def test_a_loss_has_its_natural_basis(kind: str) -> None:
    for loss in LOSSES_OF_NATURAL_BASIS[kind]:
        assert natural_kind(loss) == kind
    assert kind in register.basis.names()


def test_every_form_of_loss_has_a_natural_basis() -> None:
    classes = [
        losses.PowerOfSum,
        losses.ExponentialOfSum,
        losses.Linear,
        losses.SeparablePower,
        losses.MinimumOfRatios,
        losses.LipschitzLoss,
        losses.Convex1D,
    ]
    tested = set()
    for losses_of_kind in LOSSES_OF_NATURAL_BASIS.values():
        tested |= {type(loss).form for loss in losses_of_kind}
    assert tested == {loss_class.form for loss_class in classes}


def cohort_above(name: str, floor: float, **keys: Any) -> TomlTable:
    """Return agents with logarithms above a floor."""
    return cohort_with("cobb-douglas", name=name, parameters={"y_min": floor}, **keys)


def newsvendors(name: str, coordinate: int) -> TomlTable:
    """Return newsvendors of one coordinate of the outcome."""
    return cohort_with("newsvendor", name=name, parameters={"coordinate": coordinate})


SQUARE = cohort_with("ces", name="square", parameters={"rho": 1.0, "v": 3.0})
Blocks = list[tuple[str, list[str]]]
SHARED_BLOCKS: dict[str, tuple[list[TomlTable], Blocks]] = {
    "logarithms above one floor, above another, and wealth itself": (
        [
            cohort_above("a", 0.01),
            cohort_above("b", 0.05),
            cohort_above("c", 0.01),
            cohort_with("cara"),
        ],
        [("chebyshev-1", ["a", "c"]), ("chebyshev-2", ["b"]), ("chebyshev-3", ["cara"])],
    ),
    "all that have no basis of their own": (
        [
            cohort_with("leontief"),
            cohort_with("linear"),
            cohort_with("ces"),
            cohort_with("kinked-target"),
        ],
        [("reduced", ["leontief", "ces", "kinked-target"]), ("linear", ["linear"])],
    ),
    "powers of wealth of two degrees, and a power of square roots": (
        [cohort_with("mean-variance"), SQUARE, cohort_with("whole-ces")],
        [("monomials-1", ["mean-variance", "square"]), ("monomials-2", ["whole-ces"])],
    ),
    "broken lines of one coordinate and of another": (
        [newsvendors("one", 0), newsvendors("two", 1), newsvendors("three", 0)],
        [("relu-1", ["one", "three"]), ("relu-2", ["two"])],
    ),
    "powers of any exponents": (
        [
            cohort_with("additive"),
            cohort_with("additive", name="other", parameters={"rho": 0.45}),
        ],
        [("powers", ["additive", "other"])],
    ),
    "the same kind with the same parameters, whichever way it was asked for": (
        [
            cohort_above("a", 0.01),
            cohort_above("b", 0.01, basis={"kind": "chebyshev"}),
            cohort_above("c", 0.01, basis={"kind": "chebyshev", "error": 0.001}),
            cohort_above("d", 0.01, basis={"error": 0.001}),
        ],
        [("chebyshev-1", ["a", "b"]), ("chebyshev-2", ["c", "d"])],
    ),
}


@pytest.mark.parametrize("case", SHARED_BLOCKS)
def test_who_shares_a_block_is_served_by_its_basis(case: str) -> None:
    cohorts, blocks = SHARED_BLOCKS[case]
    model = build_model(*cohorts)
    assert names_and_hearers(model) == blocks
    check_errors(model)


def test_a_smaller_error_takes_a_larger_basis() -> None:
    coarse = cohort_above("coarse", 0.01)
    fine = cohort_above("fine", 0.01, basis={"error": 0.001})
    blocks = build_model(coarse, fine).game.blocks
    assert blocks[1].basis.size > blocks[0].basis.size


@pytest.mark.parametrize("delay", [0, 2])
def test_the_bounds_of_all_blocks_fail_together_no_more_often_than_is_said(delay: int) -> None:
    cohorts = [cohort_with(utility) for utility in ("linear", "cara", "cobb-douglas")]
    forecaster = {"kind": "decision-swap", "events": "losses", "delay": delay}
    model = make_scenario(*cohorts, rounds=9, forecaster=forecaster).build()
    risks = []
    for block in model.game.blocks:
        for player in block.forecaster.instances:
            events: Any = player.events
            risks.append(events.risk)
    assert len(risks) == 3 * (delay + 1)
    assert sum(risks) == pytest.approx(ASSIGNED)


# the losses with which a kind is tried that serves all
LOSSES_TRIED = {
    "ramps": ["cobb-douglas"],
    "exact": ["ces"],
    "reduced": ["leontief"],
    "lipschitz-grid": ["lp-target"],
}


@pytest.mark.parametrize("kind", built_in_names(register.basis))
def test_a_kind_serves_the_losses_or_says_in_one_line_that_it_does_not(kind: str) -> None:
    """Nothing but a UserError, which names the cohort."""
    for utility in LOSSES_TRIED.get(kind, UTILITIES):
        model = build_or_refuse(cohort_with(utility, basis={"kind": kind}))
        if isinstance(model, str):
            assert f"cohort.{utility}" in model
            assert "\n" not in model
        else:
            assert names_and_hearers(model) == [(kind, [utility])]
            check_errors(model)
            play_and_check_bounds(model)


def test_the_linear_basis_serves_linear_losses_alone() -> None:
    served = []
    for utility in UTILITIES:
        model = build_or_refuse(cohort_with(utility, basis={"kind": "linear"}))
        if not isinstance(model, str):
            served.append(utility)
    assert served == ["linear"]


FORTY_AGENTS = cohort_with("ces", count=40, parameters={"rho": [0.3, 0.9]})


def test_types_are_shared_by_the_agents() -> None:
    """Forty agents of five types: five losses, each of several agents; parameters are theirs."""
    seat: Any = build_model(FORTY_AGENTS | {"types": 5}).game.cohorts[0]
    assert len(seat.loss) == 5
    assert len(seat.row_of) == 40
    assert np.bincount(seat.row_of).min() >= 2
    assert len(np.unique(seat.loss.exponent)) == 5


@pytest.mark.parametrize(("types", "n_losses"), [(None, 40), (1, 1)])
def test_without_types_each_agent_has_a_loss_of_its_own(types: int | None, n_losses: int) -> None:
    seat: Any = build_model(FORTY_AGENTS | {"types": types}).game.cohorts[0]
    assert len(seat.loss) == n_losses


def test_eight_utilities_hear_one_broadcast() -> None:
    """One block per form, within its error of the losses; regrets are below both bounds."""
    cohorts = [cohort_with(utility) for utility in EIGHT_UTILITIES]
    model = build_model(*cohorts, outcomes=3, rounds=150)
    names = [block.name for block in model.game.blocks]
    assert names == [
        "linear",
        "reduced",
        "chebyshev-1",
        "chebyshev-2",
        "monomials",
        "relu",
        "bernstein",
    ]
    check_errors(model)
    play_and_check_bounds(model)
    agents = model.agents_frame()
    assert len(agents) == 3 * 8
    assert np.isfinite(agents[["external_regret", "swap_regret", "bound"]].to_numpy()).all()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert agents["mean_loss"].between(0, 1).all()
    assert set(model.forecasts_frame()["block"]) == set(names)


def bumpy(population: Any, *, waves: float = 2.0) -> losses.Loss:
    """Return losses that are a function with a Lipschitz constant."""
    shifts = population.rng.random((population.count, 4))

    def function(y: Any) -> Any:
        return np.abs((waves * y.max(-1)[:, None, None] + 2 * shifts) % 2 - 1)

    return losses.LipschitzLoss(function, np.array(waves), shifts.shape, population.goods)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("auto", "lipschitz-grid"), ("exact", "exact"), ("lipschitz-grid", "lipschitz-grid")],
)
def test_a_user_s_utility_of_any_form_is_served(kind: str, name: str) -> None:
    """Beside agents of other forms."""
    register.utility("bumpy")(bumpy)
    keys = {"name": "bumpers", "utility": "bumpy", "actions": 4, "basis": {"kind": kind}}
    model = build_model(cohort_with("leontief") | keys, cohort_with("leontief"), rounds=20)
    assert [block.name for block in model.game.blocks] == [name, "reduced"]
    play_and_check_bounds(model)


def test_a_quick_basis_is_certified_for_the_coefficients_that_agents_use() -> None:
    """Losses that the quick fit did not look at have coefficients too, always the same."""
    basis = {"kind": "reduced", "quick": True, "error": 0.1}
    model = build_model(cohort_with("leontief", count=220, basis=basis))
    seat: Any = model.game.cohorts[0]
    repeated = model.game.blocks[0].basis.coefficients(seat.loss)
    for coefficients, used in zip(repeated, seat.coefficients, strict=True):
        assert coefficients == pytest.approx(used, abs=1e-9)


ALIKE = {  # all actions are equal, or all constant
    "linear": {"weights": [[0.0, 0.0]] * 3},
    "leontief": {"requirements": [[0.5, 0.5]] * 3},
    "newsvendor": {"orders": [[0.5, 0.5, 0.5]]},
}


@pytest.mark.parametrize("utility", ALIKE)
@pytest.mark.parametrize("kind", ["auto", "exact", "reduced"])
def test_who_cannot_go_wrong_has_no_regret_or_is_refused_in_a_line(kind: str, utility: str) -> None:
    cohort = cohort_with(utility, parameters=ALIKE[utility], basis={"kind": kind})
    model = build_or_refuse(cohort)
    if isinstance(model, str):
        assert "constant" in model
        return
    model.run()
    assert (model.agents_frame()["swap_regret"].abs() <= 1e-12).all()
