"""Which cohorts share a broadcast, in which basis, and what a mixed market keeps."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import TomlTable, built_in_names, cohort_table, make_scenario

from regretless.agents.utilities import forms
from regretless.forecaster.bases.default import natural_kind
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
EIGHT = "linear ces cobb-douglas leontief cara mean-variance newsvendor lp-target"


def cohort(utility: str, **keys: Any) -> TomlTable:
    name, parameters = UTILITIES[utility]
    return cohort_table(utility, 3, 3, name, parameters=parameters) | keys


def market(*cohorts: TomlTable, outcomes: int = 2, rounds: int = 5) -> MarketModel:
    adversary = {"kind": "anti-forecast", "outcomes": outcomes, "strength": 0.5}
    return make_scenario(*cohorts, rounds=rounds, adversary=adversary).build(log_every=rounds)


def attempt(*cohorts: TomlTable) -> MarketModel | str:
    try:
        return market(*cohorts)
    except UserError as error:
        return str(error)


def blocks(model: MarketModel) -> list[tuple[str, list[str]]]:
    """Return each block's name and who hears it, after a look at its errors."""
    heard: list[list[str]] = [[] for _ in model.game.blocks]
    outcomes = np.random.default_rng(1).random((200, model.game.adversary.outcomes))
    for seated in model.game.cohorts:
        basis = model.game.blocks[seated.block].basis
        measured = basis.audit(seated.loss, outcomes)
        assert measured <= min(basis.certified_error(seated.loss), basis.error) + 1e-12 < 0.2
        heard[seated.block].append(seated.name)
    return [(block.name, own) for block, own in zip(model.game.blocks, heard, strict=True)]


def check_played(model: MarketModel) -> None:
    model.run()
    agents = model.agents_frame()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()


SHARES = np.random.default_rng(0).dirichlet(np.ones(2), (4, 3))
MANY = np.random.default_rng(1).dirichlet(np.ones(6), (4, 3))


def powers(exponent: Any, floor: Any) -> losses.PowerOfSum:
    given = {"exponent": exponent, "power": 0.5, "floor": floor}
    return losses.PowerOfSum(SHARES[:2], **{name: np.array(value) for name, value in given.items()})


def lipschitz(slope: float) -> losses.LipschitzLoss:
    return losses.LipschitzLoss(lambda y: y[:, None, :], np.array(slope), (1, 2), 2)


EXPONENTIALS = losses.ExponentialOfSum(SHARES[:2], np.array([0.0, 1.0]), np.array(0.1))
NATURAL: dict[str, list[losses.Loss]] = {
    "linear": [losses.Linear(SHARES), forms.CES(SHARES, 1.0)],
    "powers": [forms.CES(SHARES, [0.3, 0.5, 0.5, 1.0]), forms.LpTarget(0 * SHARES, 3.0)],
    "bernstein": [forms.LpTarget(SHARES, 2.0), forms.LpTarget(SHARES, [2.0, 4.0, 2.0, 4.0])],
    "monomials": [
        *(forms.CES(SHARES, 0.5, 1.0), forms.MeanVariance(SHARES, 1.0)),
        *(powers(2.0, 0.1), powers([2.0, 3.0], 0.1)),
    ],
    "chebyshev": [forms.CobbDouglas(SHARES), forms.CARA(SHARES, [1.0, 2.0, 3.0, 4.0])],
    "relu": [forms.Newsvendor([0.1, 0.5, 0.9], [1.0, 2.0], 1.0, outcomes=2)],
    "lipschitz-grid": [lipschitz(1.0)],
    "reduced": [
        *(forms.LpTarget(SHARES, p) for p in (1.0, [2.0, 2.0, 2.0, 3.0], 2.5)),
        forms.CES(SHARES, [0.3, 0.5, 0.5, 0.8], 1.0),
        forms.CES(SHARES, 0.4, 1.0),
        forms.CES(SHARES, [0.5, 1.0] * 2, [1.0, 2.0] * 2),
        forms.CES(SHARES, -1.0, 1.0, 0.1),
        forms.CES(MANY, 0.2, 1.0),  # many monomials
        powers(2.0, [0.1, 0.2]),
        *(EXPONENTIALS, forms.Leontief(SHARES + 0.1), lipschitz(10.0)),
    ],
}


def test_every_form_has_its_natural_basis() -> None:
    for kind, own in NATURAL.items():
        assert [natural_kind(loss) for loss in own] == [kind] * len(own)
        assert kind in register.basis.names()
    sums = losses.PowerOfSum, losses.ExponentialOfSum
    others = losses.Linear, losses.SeparablePower, losses.MinimumOfRatios, losses.LipschitzLoss
    seen = {type(loss).form for own in NATURAL.values() for loss in own}
    assert seen == {part.form for part in (*sums, *others, losses.Convex1D)}


def floored(name: str, floor: float, **keys: Any) -> TomlTable:
    return cohort("cobb-douglas", name=name, parameters={"y_min": floor}, **keys)


SQUARE = cohort("ces", name="square", parameters={"rho": 1.0, "v": 3.0})
Groups = list[tuple[str, list[str]]]
GROUPS: dict[str, tuple[list[TomlTable], Groups]] = {
    "logarithms above one floor, above another, and wealth itself": (
        [floored("a", 0.01), floored("b", 0.05), floored("c", 0.01), cohort("cara")],
        [("chebyshev-1", ["a", "c"]), ("chebyshev-2", ["b"]), ("chebyshev-3", ["cara"])],
    ),
    "all that have no basis of their own": (
        [cohort(name) for name in ("leontief", "linear", "ces", "kinked-target")],
        [("reduced", ["leontief", "ces", "kinked-target"]), ("linear", ["linear"])],
    ),
    "powers of wealth of two degrees, and a power of square roots": (
        [cohort("mean-variance"), SQUARE, cohort("whole-ces")],
        [("monomials-1", ["mean-variance", "square"]), ("monomials-2", ["whole-ces"])],
    ),
    "broken lines of one coordinate and of another": (
        [
            cohort("newsvendor", name=name, parameters={"coordinate": coordinate})
            for name, coordinate in {"one": 0, "two": 1, "three": 0}.items()
        ],
        [("relu-1", ["one", "three"]), ("relu-2", ["two"])],
    ),
    "powers of any exponents": (
        [cohort("additive"), cohort("additive", name="other", parameters={"rho": 0.45})],
        [("powers", ["additive", "other"])],
    ),
    "the same kind with the same parameters, whichever way it was asked for": (
        [
            *(floored("a", 0.01), floored("b", 0.01, basis={"kind": "chebyshev"})),
            floored("c", 0.01, basis={"kind": "chebyshev", "error": 0.001}),
            floored("d", 0.01, basis={"error": 0.001}),
        ],
        [("chebyshev-1", ["a", "b"]), ("chebyshev-2", ["c", "d"])],
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_who_shares_a_block_is_served_by_its_basis(case: str) -> None:
    crowd, groups = GROUPS[case]
    model = market(*crowd)
    assert blocks(model) == groups
    sizes = [block.basis.size for block in model.game.blocks]
    assert "parameters" not in case or sizes[1] > sizes[0]


FEW = {"ramps": ["cobb-douglas"], "exact": ["ces"], "reduced": ["leontief"]}  # they serve all
FEW["lipschitz-grid"] = ["lp-target"]


@pytest.mark.parametrize("kind", built_in_names(register.basis))
def test_a_kind_serves_the_losses_or_says_in_one_line_that_it_does_not(kind: str) -> None:
    """Nothing but a UserError, which names the cohort."""
    served = []
    for name in FEW.get(kind, UTILITIES):
        made = attempt(cohort(name, basis={"kind": kind}))
        if isinstance(made, str):
            assert f"cohort.{name}" in made
            assert "\n" not in made
            continue
        served.append(name)
        assert blocks(made) == [(kind, [name])]
        check_played(made)
    assert served == ["linear"] if kind == "linear" else served


def test_types_are_shared_by_the_agents() -> None:
    """Forty agents of five types: five losses, each of several agents; parameters are theirs."""
    many = cohort("ces", count=40, types=5, parameters={"rho": [0.3, 0.9]})
    seated: Any = market(many).game.cohorts[0]
    assert (len(seated.loss), len(seated.row_of)) == (5, 40)
    assert np.bincount(seated.row_of).min() >= 2
    assert len(np.unique(seated.loss.exponent)) == 5
    for types, rows in ((None, 40), (1, 1)):
        alone: Any = market(many | {"types": types}).game.cohorts[0]
        assert len(alone.loss) == rows


def test_eight_utilities_hear_one_broadcast() -> None:
    """One block per form, within its error of the losses; regrets are below both bounds."""
    model = market(*(cohort(name) for name in EIGHT.split()), outcomes=3, rounds=150)
    names = [name for name, _ in blocks(model)]
    assert names[:4] == ["linear", "reduced", "chebyshev-1", "chebyshev-2"]
    assert names[4:] == ["monomials", "relu", "bernstein"]
    check_played(model)
    agents = model.agents_frame()
    assert len(agents) == 3 * 8
    assert np.isfinite(agents[["external_regret", "swap_regret", "bound"]].to_numpy()).all()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert agents["mean_loss"].between(0, 1).all()
    assert set(model.forecasts_frame()["block"]) == set(names)


def test_a_user_utility_of_any_form_is_served() -> None:
    """A function with a Lipschitz constant, beside agents of other forms."""

    def bumpy(population: Any, *, waves: float = 2.0) -> losses.Loss:
        shifts = population.rng.random((population.count, 4))

        def function(y: Any) -> Any:
            return np.abs((waves * y.max(-1)[:, None, None] + 2 * shifts) % 2 - 1)

        return losses.LipschitzLoss(function, np.array(waves), shifts.shape, population.goods)

    register.utility("bumpy")(bumpy)
    bumpers = cohort("leontief", name="bumpers", actions=4) | {"utility": "bumpy"}
    for kind, name in (("auto", "lipschitz-grid"), ("exact", "exact"), ("lipschitz-grid",) * 2):
        model = market(bumpers | {"basis": {"kind": kind}}, cohort("leontief"), rounds=20)
        assert [block.name for block in model.game.blocks] == [name, "reduced"]
        check_played(model)


def test_a_quick_basis_is_certified_for_the_coefficients_that_agents_use() -> None:
    """Losses that the quick fit did not look at have coefficients too, always the same."""
    crowd = cohort("leontief", count=220, basis={"kind": "reduced", "quick": True, "error": 0.1})
    model = market(crowd)
    seated: Any = model.game.cohorts[0]
    again = model.game.blocks[0].basis.coefficients(seated.loss)
    for own, used in zip(again, seated.coefficients, strict=True):
        assert own == pytest.approx(used, abs=1e-9)


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
