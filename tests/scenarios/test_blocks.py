"""Which cohorts share a broadcast, in which basis, and what a mixed market keeps."""

from typing import Any

import families
import numpy as np
import pytest
import worlds
from registered import built_in

from regretless.agents.utilities import forms
from regretless.forecaster.bases.default import natural_kind
from regretless.market import losses, register
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario

# Every utility with parameters that give it a basis of its own.
UTILITIES: dict[str, tuple[str, dict[str, Any]]] = {
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
EIGHT = "linear ces cobb-douglas leontief cara mean-variance newsvendor lp-target"


def cohort(utility: str, **keys: Any) -> dict[str, Any]:
    name, parameters = UTILITIES[utility]
    return worlds.cohort(utility, 3, 3, name, parameters=parameters) | keys


def scenario(*cohorts: dict[str, Any], outcomes: int = 2, **keys: Any) -> Scenario:
    adversary = {"kind": "anti-forecast", "outcomes": outcomes, "strength": 0.5}
    return worlds.scenario(*cohorts, **{"rounds": 5, "adversary": adversary} | keys)


def market(*cohorts: dict[str, Any], **keys: Any) -> MarketModel:
    return scenario(*cohorts, **keys).build()


def blocks(*cohorts: dict[str, Any], **keys: Any) -> list[tuple[str, list[str]]]:
    model = market(*cohorts, **keys)
    return [
        (block.name, [seated.name for seated in model.game.cohorts if seated.block == index])
        for index, block in enumerate(model.game.blocks)
    ]


def attempt(*cohorts: dict[str, Any], **keys: Any) -> MarketModel | str:
    try:
        return market(*cohorts, **keys)
    except UserError as error:
        return str(error)


# The natural basis of a form.

SHARES = np.random.default_rng(0).dirichlet(np.ones(2), (4, 3))
MANY = np.random.default_rng(1).dirichlet(np.ones(6), (4, 3))


def powers_of_sum(**changed: Any) -> losses.PowerOfSum:
    given = {"exponent": 2.0, "power": 0.5, "floor": 0.1} | changed
    return losses.PowerOfSum(SHARES[:2], **{name: np.array(value) for name, value in given.items()})


def lipschitz(slope: float) -> losses.LipschitzLoss:
    return losses.LipschitzLoss(lambda y: y[:, None, :], np.array(slope), (1, 2), 2)


EXPONENTIALS = losses.ExponentialOfSum(SHARES[:2], np.array([0.0, 1.0]), np.array(0.1))
NATURAL: dict[str, tuple[losses.Loss, str]] = {
    "linear": (losses.Linear(SHARES), "linear"),
    "additive of exponent 1": (forms.CES(SHARES, 1.0), "linear"),
    "additive": (forms.CES(SHARES, [0.3, 0.5, 0.5, 1.0]), "powers"),
    "squared distance": (forms.LpTarget(SHARES, 2.0), "bernstein"),
    "even distances": (forms.LpTarget(SHARES, [2.0, 4.0, 2.0, 4.0]), "bernstein"),
    "absolute distance": (forms.LpTarget(SHARES, 1.0), "reduced"),
    "cubed distance": (forms.LpTarget(SHARES, [2.0, 2.0, 2.0, 3.0]), "reduced"),
    "broken distance": (forms.LpTarget(SHARES, 2.5), "reduced"),
    "distance to the origin": (forms.LpTarget(0 * SHARES, 3.0), "powers"),
    "whole ces": (forms.CES(SHARES, 0.5, 1.0), "monomials"),
    "ces": (forms.CES(SHARES, [0.3, 0.5, 0.5, 0.8], 1.0), "reduced"),
    "fractional ces": (forms.CES(SHARES, 0.4, 1.0), "reduced"),
    "ces of two functions": (forms.CES(SHARES, [0.5, 1.0] * 2, [1.0, 2.0] * 2), "reduced"),
    "ces below 0": (forms.CES(SHARES, -1.0, 1.0, 0.1), "reduced"),
    "two floors": (powers_of_sum(floor=[0.1, 0.2]), "reduced"),
    "one floor": (powers_of_sum(), "monomials"),
    "two exponents": (powers_of_sum(exponent=[2.0, 3.0]), "monomials"),
    "mean-variance": (forms.MeanVariance(SHARES, 1.0), "monomials"),
    "many monomials": (forms.CES(MANY, 0.2, 1.0), "reduced"),
    "cobb-douglas": (forms.CobbDouglas(SHARES), "chebyshev"),
    "cara": (forms.CARA(SHARES, [1.0, 2.0, 3.0, 4.0]), "chebyshev"),
    "exponentials of two functions": (EXPONENTIALS, "reduced"),
    "leontief": (forms.Leontief(SHARES + 0.1), "reduced"),
    "newsvendor": (forms.Newsvendor([0.1, 0.5, 0.9], [1.0, 2.0], 1.0, outcomes=2), "relu"),
    "lipschitz": (lipschitz(1.0), "lipschitz-grid"),
    "steep lipschitz": (lipschitz(10.0), "reduced"),
}


def test_every_form_has_its_natural_basis() -> None:
    for name, (loss, kind) in NATURAL.items():
        assert natural_kind(loss) == kind, name
        assert kind in register.basis.names()
    sums = losses.PowerOfSum, losses.ExponentialOfSum
    others = losses.Linear, losses.SeparablePower, losses.MinimumOfRatios, losses.LipschitzLoss
    parts = {*sums, *others, losses.Convex1D}
    assert {type(loss).form for loss, _ in NATURAL.values()} == {part.form for part in parts}


# Grouping.


def floored(name: str, floor: float) -> dict[str, Any]:
    return cohort("cobb-douglas", name=name, parameters={"y_min": floor})


BASES: dict[str, Any] = {"b": {"kind": "chebyshev"}, "c": {"kind": "chebyshev", "error": 0.001}}
BASES["d"] = {"error": 0.001}
SQUARE = cohort("ces", name="square", parameters={"rho": 1.0, "v": 3.0})
GROUPS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]] = {
    "logarithms above one floor, above another, and wealth itself": (
        [floored("a", 0.01), floored("b", 0.05), floored("c", 0.01), cohort("cara")],
        [("chebyshev", ["a", "c"]), ("chebyshev", ["b"]), ("chebyshev", ["cara"])],
    ),
    "all that have no basis of their own": (
        [cohort(name) for name in ("leontief", "linear", "ces", "kinked-target")],
        [("reduced", ["leontief", "ces", "kinked-target"]), ("linear", ["linear"])],
    ),
    "powers of wealth of two degrees, and a power of square roots": (
        [cohort("mean-variance"), SQUARE, cohort("whole-ces")],
        [("monomials", ["mean-variance", "square"]), ("monomials", ["whole-ces"])],
    ),
    "broken lines of one coordinate and of another": (
        [
            cohort("newsvendor", name=name, parameters={"coordinate": coordinate})
            for name, coordinate in {"one": 0, "two": 1, "three": 0}.items()
        ],
        [("relu", ["one", "three"]), ("relu", ["two"])],
    ),
    "powers of any exponents": (
        [cohort("additive"), cohort("additive", name="other", parameters={"rho": 0.45})],
        [("powers", ["additive", "other"])],
    ),
    "the same kind with the same parameters, whichever way it was asked for": (
        [floored("a", 0.01), *(floored(name, 0.01) | {"basis": BASES[name]} for name in BASES)],
        [("chebyshev", ["a", "b"]), ("chebyshev", ["c", "d"])],
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_who_shares_a_block_is_served_by_its_basis(case: str) -> None:
    crowd, groups = GROUPS[case]
    found = blocks(*crowd)
    assert [(name.partition("-")[0], heard) for name, heard in found] == groups
    assert len({name for name, _ in found}) == len(groups)
    exact = {"powers": 1e-12, "reduced": 0.1}
    model, outcomes = market(*crowd), np.random.default_rng(1).random((200, 2))
    for seated in model.game.cohorts:
        block = model.game.blocks[seated.block]
        error = block.basis.audit(seated.loss, outcomes)
        assert error <= exact.get(block.name, block.basis.error + 1e-9)
    if "parameters" in case:
        assert model.game.blocks[1].basis.size > model.game.blocks[0].basis.size


# Bases by name.

FEW = {"ramps": ["cobb-douglas"], "exact": ["ces"], "reduced": ["leontief"]}  # they serve all
FEW["lipschitz-grid"] = ["lp-target"]


@pytest.mark.parametrize("kind", built_in(register.basis))
def test_a_kind_serves_the_losses_or_says_in_one_line_that_it_does_not(kind: str) -> None:
    """Nothing but a UserError, which names the cohort."""
    tried = FEW.get(kind, UTILITIES)
    made = {name: attempt(cohort(name, basis={"kind": kind})) for name in tried}
    served = {name: model for name, model in made.items() if isinstance(model, MarketModel)}
    for name, said in made.items():
        assert name in served or (f"cohort.{name}" in str(said) and "\n" not in str(said))
    assert list(served) == ["linear"] if kind == "linear" else served
    for model in served.values():
        (block,) = model.game.blocks
        outcomes = np.random.default_rng(2).random((200, 2))
        measured = block.basis.audit(model.game.cohorts[0].loss, outcomes)
        assert (block.name, measured <= block.basis.error + 1e-9) == (kind, True)
        model.run()
        agents = model.agents_frame()
        assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
        assert np.isfinite(agents["bound"]).all()


# Covers and types.


def test_archetypes_are_shared_by_the_agents() -> None:
    """Forty agents of five types: five losses, each of several agents; parameters are theirs."""
    many = cohort("ces", count=40, types=5, parameters={"rho": [0.3, 0.9]})
    seated: Any = market(many).game.cohorts[0]
    assert len(seated.loss) == 5
    assert len(seated.row_of) == 40
    assert np.bincount(seated.row_of).min() >= 2
    assert len(np.unique(seated.loss.exponent)) == 5
    alone: Any = market(many | {"types": None}).game.cohorts[0]
    assert len(alone.loss) == 40
    one: Any = market(many | {"types": 1}).game.cohorts[0]
    assert len(one.loss) == 1


# Mixed markets.


def test_eight_utilities_hear_one_broadcast() -> None:
    """One block per form, within its error of the losses; regrets are below both bounds."""
    crowd = [cohort(name) for name in EIGHT.split()]
    model = worlds.played(scenario(*crowd, outcomes=3, rounds=150), log_every=150)
    names = [block.name for block in model.game.blocks]
    assert names[:4] == ["linear", "reduced", "chebyshev-1", "chebyshev-2"]
    assert names[4:] == ["monomials", "relu", "bernstein"]
    outcomes = np.random.default_rng(0).random((300, 3))
    for seated in model.game.cohorts:
        basis = model.game.blocks[seated.block].basis
        measured = basis.audit(seated.loss, outcomes)
        assert measured <= basis.certified_error(seated.loss) + 1e-9 < 0.2
    agents = model.agents_frame()
    regrets = agents[["external_regret", "swap_regret", "decision_swap_regret", "bound"]]
    assert np.isfinite(regrets.to_numpy()).all()
    assert len(agents) == 3 * 8
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert agents["mean_loss"].between(0, 1).all()
    assert set(model.forecasts_frame()["block"]) == set(names)


def test_a_user_utility_of_any_form_is_served() -> None:
    """A function with a Lipschitz constant, beside agents of other forms."""

    def bumpy(population: Any, *, waves: float = 2.0) -> losses.Loss:
        return families.waves(waves, population.goods)(population.rng, population.count)

    register.utility("bumpy")(bumpy)
    bumpers = cohort("leontief", name="bumpers", actions=families.ACTIONS) | {"utility": "bumpy"}
    for basis in ({"kind": "auto"}, {"kind": "exact"}, {"kind": "lipschitz-grid"}):
        model = market(bumpers | {"basis": basis}, cohort("leontief"), rounds=20)
        model.run()
        agents = model.agents_frame()
        assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    named = [name for name, _ in blocks(bumpers, cohort("leontief"))]
    assert named == ["lipschitz-grid", "reduced"]


def test_a_quick_basis_is_certified_for_the_coefficients_that_agents_use() -> None:
    """Losses that the quick fit did not look at have coefficients too, always the same."""
    crowd = cohort("leontief", count=220, basis={"kind": "reduced", "quick": True, "error": 0.1})
    model = market(crowd)
    seated: Any = model.game.cohorts[0]
    basis = model.game.blocks[0].basis
    again = basis.coefficients(seated.loss)
    assert again[0] == pytest.approx(seated.coefficients[0], abs=1e-9)
    assert again[1] == pytest.approx(seated.coefficients[1], abs=1e-9)


ALIKE = {  # all actions are equal, or all constant
    "linear": {"weights": [[0.0, 0.0]] * 3},
    "leontief": {"requirements": [[0.5, 0.5]] * 3},
    "newsvendor": {"orders": [[0.5, 0.5, 0.5]]},
}


@pytest.mark.parametrize("utility", ALIKE)
@pytest.mark.parametrize("kind", ["auto", "exact", "reduced"])
def test_who_cannot_go_wrong_has_no_regret_or_is_refused_in_a_line(kind: str, utility: str) -> None:
    made = attempt(cohort(utility, parameters=ALIKE[utility], basis={"kind": kind}))
    if isinstance(made, str):
        assert "constant" in made
        return
    made.run()
    assert (made.agents_frame()["swap_regret"].abs() <= 1e-12).all()
