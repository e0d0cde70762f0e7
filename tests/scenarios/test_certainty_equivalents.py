"""What an arm of a study is worth to agents by a parameter of theirs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_scenarios import write_study

from regretless import load_study
from regretless.agents.utilities import CARA, CES, MeanVariance
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss
from regretless.scenarios.studies.analysis.certainty_equivalents import (
    EQUIVALENT,
    certainty_equivalents,
    gains_by_parameter,
)
from regretless.scenarios.studies.conduct import Options, conduct

INVESTORS = """\
name = "investors"
rounds = 20
adversary = { kind = "drifting", outcomes = 2 }

[[cohort]]
name = "investors"
utility = "cara"
parameters = { risk_aversion = [0.5, 6.0] }
count = 8
actions = 3
"""
STUDY = """\
scenario = "tiny.toml"
seeds = 2
control = "constant"
grid = { "forecaster.kind" = ["decision-swap", "constant"] }
"""


def played(loss: Loss, utility: str, outcomes: list[list[float]], **parameters: float) -> float:
    """Return the certainty equivalent of one agent with one action at these outcomes."""
    row = {
        "utility": utility,
        "unit": "",
        "loss_scale": float(np.ravel(loss.unit_scale)[0]),
        "loss_offset": float(np.ravel(loss.unit_offset)[0]),
        "mean_loss": float(np.mean(loss.losses(np.array(outcomes)))),
    }
    row |= {f"param_{name}": value for name, value in parameters.items()}
    return float(certainty_equivalents(pd.DataFrame([row]), (0.0, 1.0))[0])


def test_a_sure_wealth_is_worth_itself_whatever_the_aversion_to_risk() -> None:
    for gamma in (0.5, 4.0):
        sure = played(CARA([[1.0]], gamma), "cara", [[0.3], [0.3]], risk_aversion=gamma)
        assert sure == pytest.approx(0.3)


def test_a_risk_is_worth_less_the_greater_the_aversion() -> None:
    """-ln(E exp(-gamma w)) / gamma for wealth of 0 or 1."""
    outcomes = [[0.0], [1.0]]
    for gamma in (0.5, 4.0):
        worth = played(CARA([[1.0]], gamma), "cara", outcomes, risk_aversion=gamma)
        assert worth == pytest.approx(-np.log((1 + np.exp(-gamma)) / 2) / gamma)


def test_a_sure_return_is_worth_itself_about_any_reference() -> None:
    for reference in (0.0, 0.5):
        loss = MeanVariance([[1.0]], 0.8, reference)
        worth = played(loss, "mean-variance", [[0.4]], risk_aversion=0.8, reference=reference)
        assert worth == pytest.approx(0.4)


def test_equal_goods_are_worth_their_amount_to_who_has_ces_utility() -> None:
    goods = [[0.4, 0.4]]
    additive = CES([[0.3, 0.7]], 0.5)
    with_returns_to_scale = CES([[0.3, 0.7]], 0.5, 0.8)
    assert played(additive, "ces", goods, rho=0.5) == pytest.approx(0.4)
    assert played(with_returns_to_scale, "ces", goods, rho=0.5, v=0.8) == pytest.approx(0.4)


def agents_who_gain(slope: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return agents and parameters of four runs; the arm adds 0.1 and a slope in the parameter."""
    aversion = np.array([1.0, 2.0, 3.0])
    parts = []
    runs = []
    for run, (arm, seed) in enumerate([("on", 0), ("off", 0), ("on", 1), ("off", 1)]):
        gain = 0.1 + slope * aversion + 0.01 * seed if arm == "on" else 0.0
        own = pd.DataFrame({"agent": [1, 2, 3], "param_risk": aversion})
        parts.append(own.assign(run=run, cohort="investors", **{EQUIVALENT: aversion + gain}))
        runs.append({"run": run, "seed": seed, "forecast": arm})
    return pd.concat(parts, ignore_index=True), pd.DataFrame(runs)


def test_the_slope_is_what_a_greater_parameter_adds_to_the_gain() -> None:
    agents, parameters = agents_who_gain(slope=0.05)
    table = gains_by_parameter(agents, parameters, "param_risk", controls={"forecast": "off"})
    assert list(table["range"]) == ["1", "2", "3", "slope"]
    assert table["mean"].to_numpy() == pytest.approx([0.155, 0.205, 0.255, 0.05])
    assert set(table["seeds"]) == {2}
    assert (table["low"][:3] < table["mean"][:3]).all()


def test_p_is_adjusted_for_the_rows_of_the_table() -> None:
    """The three ranges have equal gains per seed around other means, so that their p differ."""
    agents, parameters = agents_who_gain(slope=0.05)
    table = gains_by_parameter(agents, parameters, "param_risk", controls={"forecast": "off"})
    tested = table[table["p"].notna()]
    least_p = tested["p"].min()
    assert tested["p_adjusted"].min() == pytest.approx(len(tested) * least_p)
    assert (tested["p_adjusted"] >= tested["p"]).all()


def test_the_control_is_what_others_are_compared_with() -> None:
    agents, parameters = agents_who_gain(slope=0.05)
    table = gains_by_parameter(agents, parameters, "risk", controls={"forecast": "on"})
    assert set(table["against"]) == {"on"}
    assert table["mean"].to_numpy() == pytest.approx([-0.155, -0.205, -0.255, -0.05])


def test_a_parameter_that_nobody_has_is_refused() -> None:
    agents, parameters = agents_who_gain(slope=0.0)
    with pytest.raises(UserError, match="effects by 'param_rish': did you mean"):
        gains_by_parameter(agents, parameters, "param_rish", controls={})
    alike = agents.assign(param_risk=1.0)
    with pytest.raises(UserError, match="agents do not differ in it"):
        gains_by_parameter(alike, parameters, "risk", controls={})


def test_a_study_says_what_the_forecast_is_worth_to_the_risk_averse(tmp_path: Path) -> None:
    conduct(write_study(tmp_path, STUDY, INVESTORS), Options(tmp_path / "study", jobs=1))
    study = load_study(tmp_path / "study")
    table = study.effects(by="param_risk_aversion")
    assert list(table["range"])[-1] == "slope"
    assert set(table["against"]) == {"constant"}
    assert table["mean"].notna().all()
    assert "seeds" in study.latex(table)
