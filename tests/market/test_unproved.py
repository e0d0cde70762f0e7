"""Programs that no method solves within its limits: a bound that was proved, or one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import worlds

from regretless import UserError, persuasion, stackelberg, surplus_cap
from regretless.market.exploitability.information_design import revenue_cap
from regretless.market.numerics import linear_program
from regretless.market.numerics.linear_program import UnprovedError

GAMES = 30


def drawn() -> list[tuple[Any, Any, Any]]:
    rng = np.random.default_rng(4)
    return [(rng.dirichlet(np.ones(6)), *rng.random((2, 6, 4))) for _ in range(GAMES)]


def proved(solve: Callable[[], float]) -> tuple[float, float, str]:
    """Return the ends between which a value is known to lie, and what an error says."""
    try:
        value = solve()
    except UnprovedError as error:
        return error.low, error.high, str(error)
    return value, value, ""


@pytest.mark.parametrize(
    "value",
    [
        lambda _, payoff, loss: stackelberg(payoff, loss).value,
        lambda prior, payoff, loss: persuasion(prior, payoff, loss).value,
        lambda _, payoff, loss: revenue_cap(payoff[0], loss[0] / loss[0].sum(), 0.1),
    ],
)
def test_the_value_lies_within_what_is_proved(
    limits: Callable[[], None], value: Callable[..., float]
) -> None:
    sure = [value(*game) for game in drawn()]
    limits()
    found = [proved(lambda game=game: value(*game)) for game in drawn()]  # type: ignore[misc]
    for (low, high, told), known in zip(found, sure, strict=True):
        assert low - 1e-6 <= known <= high + 1e-6
        assert told.count("\n") == 0
    assert any("no method proved an optimum" in told for _, _, told in found)


def test_a_cap_is_at_least_what_is_proved(limits: Callable[[], None]) -> None:
    games = [game[1:] for game in drawn()]
    sure = [surplus_cap(*game) for game in games]
    limits()
    found = [proved(lambda game=game: surplus_cap(*game)) for game in games]  # type: ignore[misc]
    caps = [(low, cap) for (low, _, told), cap in zip(found, sure, strict=True) if "cap" in told]
    assert caps
    assert all(low <= cap + 1e-6 for low, cap in caps)


@pytest.mark.parametrize(
    ("keys", "own", "named"),
    [
        (
            {"adversary": {"kind": "stackelberg-committer", "outcomes": 3}},
            {},
            "adversary.support or adversary.grid, of 3 outcomes: stackelberg: ",
        ),
        (
            {},
            {"utility": "cobb-douglas", "basis": {"kind": "reduced"}},
            "cohort.own.basis 'reduced': fit by a basis: ",
        ),
    ],
)
def test_a_run_ends_in_one_line(
    limits: Callable[[], None], keys: worlds.Raw, own: worlds.Raw, named: str
) -> None:
    limits()
    with pytest.raises(UserError) as caught:
        worlds.played(worlds.scenario(worlds.cohort("own", 2, 3) | own, **keys))
    assert str(caught.value).startswith(f"{named}no method proved an optimum within its limits")
    assert "\n" not in str(caught.value)


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither when it is made nor when it runs: its banner would stand in what a run prints."""
    highs = linear_program.new_highs()
    highs.addVar(0, 1)
    linear_program.optimise(highs)
    assert capfd.readouterr() == ("", "")
