"""Small files of one key each play as they did, as far as another kind of processor does, too."""

import json
from typing import Any

import golden.figures as golden
import pytest

LOOSE = 0.06  # of losses and regrets: two kinds of processor differed by up to .04 in these files
KNOWN = json.loads((golden.HERE / "figures.json").read_text())
ROUNDING = 1e-9


@pytest.mark.parametrize("name", [n for n in golden.known() if n.startswith("keys/")])
def test_a_key_plays_as_it_did(name: str) -> None:
    seen = golden.figures(name)
    assert seen.keys() == KNOWN[name].keys()
    for cohort, row in seen.items():
        assert row.keys() == KNOWN[name][cohort].keys(), cohort
        assert row["agents"] == KNOWN[name][cohort]["agents"], cohort
        for column in [c for c in row if c.endswith(("_loss", "_regret"))]:
            assert row[column] == pytest.approx(KNOWN[name][cohort][column], abs=LOOSE), column
        _bounds_hold(row)


def _bounds_hold(row: dict[str, Any]) -> None:
    for bound in ("bound", "bound_from_bias", "bound_from_variation"):
        if bound in row and "decision_swap_regret" in row:
            assert row[bound][0] >= row["decision_swap_regret"][0] - ROUNDING, bound


@pytest.mark.parametrize("name", ["offline", "workers"])
def test_what_is_not_a_scenario_comes_out_as_it_did(name: str) -> None:
    for cohort, row in golden.figures(name).items():
        assert row["mean_loss"] == pytest.approx(KNOWN[name][cohort]["mean_loss"], abs=LOOSE)
