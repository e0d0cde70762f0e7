"""An audit measures what its tables say, in their unit, and refuses tables that do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from desk import Call, Refused

from regretless import UserError, audit, exploitability, swap_regret
from regretless.market.core.randomness import stream
from regretless.scenarios.config.files import DATA

TRAVEL = DATA / "travel-decisions.csv", DATA / "travel-costs.csv"
NAMES = {"round": "traveller", "action": "mode"}


def test_known_costs() -> None:
    """The umbrella of ``swap_regret``'s docstring, its costs in cents."""
    done = pd.DataFrame({"round": range(4), "action": ["leave", "take", "leave", "leave"]})
    costs = pd.DataFrame({"round": range(4), "leave": [100, 0, 0, 100], "take": [30] * 4})
    found = audit(done, costs)
    (row,) = found.agents.to_dict("records")
    assert row["mean_loss"] == pytest.approx(57.5)
    assert row["external_regret"] == pytest.approx(27.5)
    assert row["swap_regret"] == pytest.approx(35.0)
    known = exploitability([[0.5, 0.0], [0.25, 0.25]], [[1.0, 0.3], [0.0, 0.3]])
    assert row["exploitability"] == pytest.approx(known)
    assert found.swaps["best_replacement"].tolist() == ["take", "leave"]
    assert found.swaps["contribution"].sum() == pytest.approx(row["swap_regret"])


def test_orders_are_quantities_of_the_data() -> None:
    """A newsvendor's losses and regrets are in money, whatever the scale."""
    rng = stream(0, "demand")
    demand = pd.Series(np.clip(rng.normal(300, 80, 400), 0, 600))
    orders = rng.choice([200, 300, 400], 400)
    done = pd.DataFrame({"round": range(400), "action": orders})
    costs = 3 * np.maximum(demand - orders, 0) + np.maximum(orders - demand, 0)
    own, outcomes = {"underage": 3.0, "overage": 1.0}, done[["round"]].assign(demand=demand)
    for ends in ((0.0, 600.0), (-100.0, 900.0)):
        found = audit(done, outcomes, utility="newsvendor", parameters=own, scale={"demand": ends})
        assert found.agents["mean_loss"].item() == pytest.approx(costs.mean())
    each = [3 * np.maximum(demand - q, 0) + np.maximum(q - demand, 0) for q in (200, 300, 400)]
    wanted = swap_regret(np.stack(each, axis=1), orders // 100 - 2)
    assert found.agents["swap_regret"].item() == pytest.approx(wanted)


def test_a_chance_regret_is_no_gain() -> None:
    """Costs are noise: hindsight finds something better, the other half of the rounds does not."""
    rng = stream(0, "noise")
    held, regrets = 0, []
    for _ in range(60):
        costs = pd.DataFrame(rng.random((200, 3)), columns=["a", "b", "c"]).assign(round=range(200))
        done = pd.DataFrame({"round": range(200), "action": rng.choice(["a", "b", "c"], 200)})
        row = audit(done, costs).agents.iloc[0]
        regrets.append(row["swap_regret"])
        held += row["swap_low"] <= 0 <= row["swap_high"]
    assert np.mean(regrets) > 0.02
    assert held >= 50


def test_the_bundled_record() -> None:
    """210 travellers; with the constants beside a rule, decision swap is at least swap regret."""
    agents = audit(*TRAVEL, **NAMES, agent="alone", policies=["advice"]).agents
    assert agents["rounds"].sum() == 210
    assert (agents["decision_swap_regret"] >= agents["swap_regret"] - 1e-9).all()
    assert (agents["swap_regret"] >= agents["external_regret"] - 1e-9).all()
    whole, named = audit(*TRAVEL, **NAMES), audit(*(path.name for path in TRAVEL), **NAMES)
    pd.testing.assert_frame_equal(whole.agents, named.agents)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"round": "person"}, "decisions, --round: no column 'person'; choose one of"),
    ({"action": "party"}, "no column for the action '1'"),
    ({"policies": ["advise"]}, "policies: no column 'advise'"),
    ({"parameters": {"rho": 1}}, "parameters and scale are a utility's"),
    ({"utility": "sec"}, "utility: unknown 'sec'; choose one of: affine"),
    ({"utility": "ces"}, "needs the scale of the outcomes"),
    ({"utility": "linear", "scale": {"air": (0, 100)}}, "'air' runs from 56 to 197; widen it"),
    ({"utility": "linear", "scale": {"air": (5, 5)}}, "give two different numbers"),
    ({"agent": "who"}, "no column 'who'; choose one of"),
]


@pytest.mark.parametrize(("given", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_what_does_not_fit_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        audit(*TRAVEL, **NAMES | given)
    assert "\n" not in str(caught.value)


def test_rounds_must_be_known_and_there_once() -> None:
    costs = pd.DataFrame({"round": [1, 2, 2], "a": [0.0, 1.0, 1.0]})
    done, once = pd.DataFrame({"round": [1, 3], "action": ["a", "a"]}), costs.iloc[:2]
    twice = done.assign(round=1)
    for given, outcomes, said in (
        (done, costs, "'2' is there twice"),
        (done, once, "'3' is none of the rounds of the outcomes"),
        (twice, once, "'1' is there twice for 'all'; name with agent"),
        (done.assign(action=["a", None]), once, "'action' has no value in data row 2"),
    ):
        with pytest.raises(UserError, match=said):
            audit(given, outcomes)
    assert len(audit(twice.assign(agent=["x", "y"]), once).agents) == 2


def test_the_command_writes_both_tables_once(tmp_path: Path, call: Call, refused: Refused) -> None:
    asked = ["audit", TRAVEL[0], "--outcomes", TRAVEL[1], "--round", "traveller"]
    asked += ["--action", "mode", "--out", tmp_path / "found"]
    done = call(*asked)
    assert (done.status, done.err) == (0, "")
    assert "210" in done.out
    written = pd.read_csv(tmp_path / "found" / "agents.csv")
    pd.testing.assert_frame_equal(written, audit(*TRAVEL, **NAMES).agents)
    refused(*asked)
