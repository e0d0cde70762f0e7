"""An audit measures what its tables say, in their unit, and refuses tables that do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand

from regretless import UserError, audit, exploitability, swap_regret
from regretless.market.core.randomness import stream
from regretless.scenarios.config.files import DATA

TRAVEL = DATA / "travel-decisions.csv", DATA / "travel-costs.csv"
NAMES = {"round": "traveller", "action": "mode"}


def test_regrets_of_decisions_at_known_costs_are_those_by_hand() -> None:
    """The umbrella of ``swap_regret``'s docstring, its costs in cents."""
    done = pd.DataFrame({"round": range(4), "action": ["leave", "take", "leave", "leave"]})
    costs = pd.DataFrame({"round": range(4), "leave": [100, 0, 0, 100], "take": [30] * 4})
    audited = audit(done, costs)
    (row,) = audited.agents.to_dict("records")
    regrets = [row[name] for name in ("mean_loss", "external_regret", "swap_regret")]
    assert regrets == pytest.approx([57.5, 27.5, 35.0])
    share = exploitability([[0.5, 0.0], [0.25, 0.25]], [[1.0, 0.3], [0.0, 0.3]])
    assert row["exploitability"] == pytest.approx(share)
    assert audited.swaps["best_replacement"].tolist() == ["take", "leave"]
    assert audited.swaps["contribution"].sum() == pytest.approx(row["swap_regret"])


def test_orders_are_quantities_of_the_data() -> None:
    """A newsvendor's losses and regrets are in money, whatever the scale."""
    rng = stream(0, "demand")
    demand = np.clip(rng.normal(300, 80, 400), 0, 600)[:, None]
    orders = rng.choice([200, 300, 400], 400)
    menu = np.array([200, 300, 400])
    costs = 3 * np.maximum(demand - menu, 0) + np.maximum(menu - demand, 0)
    done = pd.DataFrame({"round": range(400), "action": orders})
    costs_per_unit = {"underage": 3.0, "overage": 1.0}
    outcomes = done[["round"]].assign(demand=demand)
    for scale_of_demand in ((0.0, 600.0), (-100.0, 900.0)):
        audited = audit(
            done,
            outcomes,
            utility="newsvendor",
            parameters=costs_per_unit,
            scale={"demand": scale_of_demand},
        )
        chosen = orders // 100 - 2
        mean = costs[np.arange(400), chosen].mean()
        loss_and_regret = audited.agents[["mean_loss", "swap_regret"]].iloc[0].tolist()
        assert loss_and_regret == pytest.approx([mean, swap_regret(costs, chosen)])


def test_the_effective_sample_is_at_most_the_rounds_and_1_where_all_rounds_say_the_same() -> None:
    rounds = range(2000)
    costs = pd.DataFrame({"round": rounds, "leave": [0.0] * 2000, "take": [1.0] * 2000})
    alternating = pd.DataFrame({"round": rounds, "action": ["leave", "take"] * 1000})
    constant = pd.DataFrame({"round": rounds, "action": ["take"] * 2000})
    assert audit(alternating, costs).agents.loc[0, "external_effective"] == 2000
    assert audit(constant, costs).agents.loc[0, "external_effective"] == 1


@pytest.mark.parametrize("orders", [[0.0, 0.5, 1.0], [[0.0, 0.5, 1.0]]], ids=["menu", "row"])
def test_alternatives_are_all_orders_of_a_menu_that_is_known(orders: list[Any]) -> None:
    """Nobody took 20, which would have cost nothing."""
    done = pd.DataFrame({"round": range(20), "action": ["0", "10.0"] * 10})
    demand = pd.DataFrame({"round": range(20), "demand": [20.0] * 20})
    utility: dict[str, Any] = {"utility": "newsvendor", "scale": {"demand": (0.0, 20.0)}}
    audited = audit(done, demand, **utility, parameters={"orders": orders})
    assert set(audited.swaps["action"]) == {"0", "10.0"}
    assert set(audited.swaps["best_replacement"]) == {"20"}


def test_a_chance_regret_is_no_gain() -> None:
    """Costs are noise: hindsight finds something better, the other half of the rounds does not."""
    rng = stream(0, "noise")
    held = 0
    regrets = []
    for _ in range(60):
        costs = pd.DataFrame(rng.random((200, 3)), columns=["a", "b", "c"]).assign(round=range(200))
        done = pd.DataFrame({"round": range(200), "action": rng.choice(["a", "b", "c"], 200)})
        row = audit(done, costs).agents.iloc[0]
        regrets.append(row["swap_regret"])
        held += row["swap_low"] <= 0 <= row["swap_high"]
    assert np.mean(regrets) > 0.02
    assert held >= 50


def test_travellers_regret_more_to_rules_that_choose_among_more() -> None:
    """210 travellers; with the constants beside a rule, decision swap is at least swap regret."""
    agents = audit(*TRAVEL, **NAMES, agent="alone", policies=["advice"]).agents
    assert agents["rounds"].sum() == 210
    assert (agents["decision_swap_regret"] >= agents["swap_regret"] - 1e-9).all()
    assert (agents["swap_regret"] >= agents["external_regret"] - 1e-9).all()


AIR = {"utility": "linear", "scale": {"air": (0, 100)}}
ONE = {"round": [1], "action": ["a"]}
THREE = {"round": [1, 3], "action": ["a", "a"]}
ROUNDS = {"round": [1, 2], "a": [0.0, 1.0]}
ORDER = {"round": [1, 2], "action": [10, 30]}
SOLD = {"round": [1, 2], "sold": [5, 15]}
NEWSVENDOR = {"utility": "newsvendor", "scale": {"sold": (0, 20)}}
FAULTS: list[tuple[list[Any], dict[str, Any], str]] = [  # tables, if not the bundled ones
    ([], {"round": "person"}, "decisions, --round: no column 'person'; choose one of"),
    ([], {"action": "party"}, "no column for the action '1'"),
    ([], {"policies": ["advise"]}, "policies: no column 'advise'"),
    ([], {"parameters": {"rho": 1}}, "parameters and scale are a utility's"),
    ([], {"utility": "sec"}, "utility: unknown 'sec'; choose one of: affine"),
    ([], {"utility": "ces"}, "needs the scale of the outcomes"),
    ([], AIR, "'air' runs from 56 to 197; widen it"),
    ([], AIR | {"scale": {"air": (5, 5)}}, "give two different numbers"),
    ([], {"agent": "who"}, "no column 'who'; choose one of"),
    ([ONE, {"round": [1, 2, 2], "a": [0.0, 1.0, 1.0]}], {}, "'2' is there twice"),
    ([THREE, ROUNDS], {}, "'3' is none of the rounds of the outcomes"),
    ([THREE | {"round": [1, 1]}, ROUNDS], {}, "'1' is there twice for 'all'; name with agent"),
    ([ONE | {"action": [None]}, ROUNDS], {}, "'action' has no value in data row 1"),
    ([ORDER, SOLD], NEWSVENDOR, "scale.sold = 0, 20: the action '30' is beyond it; widen it"),
    ([ORDER, SOLD | {"sold": [5, -3]}], NEWSVENDOR, "'sold' falls to -3, below 0; correct the"),
]


@pytest.mark.parametrize(("tables", "given", "said"), FAULTS, ids=[said for *_, said in FAULTS])
def test_what_does_not_fit_is_one_line(tables: list[Any], given: dict[str, Any], said: str) -> None:
    frames = [pd.DataFrame(own) for own in tables]
    with pytest.raises(UserError, match=said) as caught:
        audit(*(frames or TRAVEL), **({} if frames else NAMES) | given)
    assert "\n" not in str(caught.value)


def test_two_may_decide_in_a_round() -> None:
    decisions = pd.DataFrame(THREE | {"round": [1, 1], "agent": ["x", "y"]})
    assert len(audit(decisions, pd.DataFrame(ROUNDS)).agents) == 2


def test_the_command_writes_both_tables_once(
    tmp_path: Path, run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    command = ["audit", TRAVEL[0].name, "--outcomes", TRAVEL[1], "--round", "traveller"]
    command += ["--action", "mode", "--out", tmp_path / "found"]
    done = run_command(*command)
    assert (done.status, done.err) == (0, "")
    assert "210" in done.out
    for name, table in vars(audit(*TRAVEL, **NAMES)).items():
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "found" / f"{name}.csv"), table)
    refusal_of(*command)
