"""Who is covered by a theorem and who is not: one change at a time to one small scenario.

The cases are those of the lists in docs/guarantee.md. Of who reports other losses than its own the
report is protected, the truth is charged, and the truthful keep their bound.
"""

from itertools import cycle
from typing import Any

import numpy as np
import pytest
from log_measures import BASIC_MEASURES
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end, read_scenario

from regretless.agents.responses import BestResponse
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.scenarios.config.files import find, read


@register.response("indifferent")
class Indifferent(BestResponse):
    """All actions with equal probability."""

    name = "indifferent"
    lipschitz = 1.0

    def gap(self, actions: int) -> float:
        return 1.0

    def play(self, predicted: Array) -> Array:
        return np.full(predicted.shape, 1 / predicted.shape[1])


def four_agents(name: str = "agents", **more: Any) -> TomlTable:
    """Return the table of a cohort of four agents."""
    return cohort_table(name, 4, 3) | more


CHANCE = {"kind": "iid", "outcomes": 2}
BASE = {"name": "base", "rounds": 12, "seed": 1, "adversary": CHANCE, "cohort": [four_agents()]}
NOW = {"market": {"feedback": "same-round"}}
TRUE = {"utility": "ces", "parameters": {"rho": 0.5}}
LIARS = four_agents("liars", **TRUE, reports={"rho": 0.9})
SMOOTH = {"response": "quantal", "eta": 9.0}
HARD = {"response": "certainty-equivalent"}
COVER = {"kind": "cluster", "count": 2}
OWN = four_agents("own", cover=COVER | {"play": "own"})
NEAR, FAR = (four_agents("late", enters=3, gamma=gamma) for gamma in (2.0, 0.001))
DECISION = "decision-swap"
NONE = "none"
CASES: dict[str, tuple[TomlTable, list[str]]] = {  # what is changed, guarantees by cohort
    "chance": ({}, [DECISION]),
    "an opponent": ({"adversary": CHANCE | {"kind": "anti-forecast"}}, [DECISION]),
    "a market, later": ({"market": {"feedback": "lagged"}}, [DECISION]),
    "a market, now": (NOW, [NONE]),
    "private draws": (NOW | {"cohort": [four_agents(response="private")]}, [DECISION]),
    "late news": ({"network": {"graph": "none", "subscribers": 1}}, ["decision-swap/none"]),
    "delay": ({"forecaster": {"delay": 2}}, [DECISION]),
    "leaving": ({"cohort": [four_agents(), four_agents("some", exits=6)]}, [DECISION, DECISION]),
    "entry near a protected loss": ({"cohort": [four_agents(), NEAR]}, [DECISION, DECISION]),
    "entry far from all": ({"cohort": [four_agents(), FAR]}, [DECISION, NONE]),
    "labels": (
        {
            "cohort": [
                four_agents("a", **SMOOTH),
                four_agents("b", **HARD),
                four_agents("c", response="ensemble"),
            ]
        },
        ["smooth-decision-swap", NONE, DECISION],
    ),
    "one's own": ({"cohort": [four_agents(response="indifferent")]}, ["smooth-decision-swap"]),
    "learners": ({"cohort": [four_agents(response="hedge")]}, [NONE]),
    "false reports": ({"cohort": [four_agents(**TRUE), LIARS]}, [DECISION, NONE]),
    "covers": ({"cohort": [four_agents(cover=COVER), OWN]}, [DECISION, NONE]),
    "a model alone": ({"forecaster": {"kind": "running-mean"}}, [NONE]),
    "an adversary that sees the draw": (read(find("rule-breaker")) | {"rounds": 12}, [NONE]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_agent_has_the_guarantee_that_its_situation_allows(case: str) -> None:
    """And nobody uncovered has a bound."""
    changes, expected = CASES[case]
    table = play_to_end(read_scenario(BASE | changes), seed=1).agents_frame()
    assert table.loc[table["guarantee"] == NONE, "bound"].isna().all()
    grouped = table.groupby("cohort", sort=False)["guarantee"]
    assert ["/".join(sorted(set(guarantees))) for _, guarantees in grouped] == expected


def test_a_line_says_how_many_hear_the_forecast_late_and_have_no_guarantee() -> None:
    changes, _ = CASES["late news"]
    (guarantee,) = read_scenario(BASE | changes).build(seed=1).guarantees
    note = "no guarantee for 3 of 4 agents, who hear the forecast late or never"
    assert guarantee.note.endswith(note)


SHARES = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
LIES: dict[str, list[list[float]]] = {
    "turned": [SHARES[1], SHARES[2], SHARES[0]],
    "one good": [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1]],
    "opposite": [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
    "indifferent": [[0.4, 0.3, 0.3]] * 3,
    "one action": [[0.01, 0.01, 0.98], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3]],
}
LIED = [*zip(LIES, cycle(["truth", "report"]), strict=False), ("turned", "report")]


def built(rounds: int, **liars: Any) -> MarketModel:
    """Build ten outsiders and four liars in a market that answers a round later."""
    crowd = {"parameters": {"weights": SHARES, "concentration": 6.0}, "measures": [*BASIC_MEASURES]}
    outsiders_and_liars = (
        cohort_table("outsiders", 10, 3, **crowd),
        cohort_table("liars", 4, 3, **crowd),
    )
    nature = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    market = {"feedback": "lagged", "impact": 0.4, "adjustment": 1.0}
    scenario = make_scenario(
        outsiders_and_liars[0],
        outsiders_and_liars[1] | liars,
        rounds=rounds,
        adversary=nature,
        market=market,
    )
    return scenario.build(seed=2)


@pytest.mark.parametrize(("lie", "acts_on"), LIED)
def test_truthful_cohorts_keep_their_bound_beside_any_liar(lie: str, acts_on: str) -> None:
    model = built(600, reports={"weights": LIES[lie]}, acts_on=acts_on)
    model.run()
    frame = model.agents_frame().set_index("cohort")
    outsiders = frame.loc["outsiders"]
    liars = frame.loc["liars"]
    assert (outsiders["guarantee"] == "decision-swap").all()
    assert (outsiders["decision_swap_regret"] <= outsiders["bound"]).all()
    assert outsiders["decision_swap_regret"].max() < 0.04
    assert (liars["guarantee"] == "none").all()
    assert liars["bound"].isna().all()
    assert (frame["decision_swap_regret"] <= frame["bound_from_bias"] + 1e-9).all()


@pytest.mark.parametrize("acts_on", ["truth", "report"])
def test_the_forecaster_hears_the_report_and_the_ledger_charges_the_truth(acts_on: str) -> None:
    lying = built(150, reports={"weights": LIES["turned"]}, acts_on=acts_on)
    cohort: Any = lying.game.cohorts[1]
    forecaster: Any = lying.game.blocks[0].forecaster
    truth: Any = built(150).game.cohorts[1].loss
    assert cohort.loss.rows() == pytest.approx(truth.rows())
    rows = np.arange(4)
    reported = forecaster.events.groups[1].weights[rows]
    assert not np.allclose(reported, truth.weights)
    reported_losses = cohort.acts_on
    assert reported_losses.weights == pytest.approx(
        reported if acts_on == "report" else truth.weights
    )
    charged = np.zeros(4)
    for _ in range(8):
        lying.step()
        point = lying.forecasts_frame().query("drawn").filter(like="p_").to_numpy()[-1]
        expects = reported_losses.losses(point)
        played = lying.last_actions(1)
        assert expects[rows, played] == pytest.approx(expects.min(1))
        y = lying.rounds_frame().filter(regex="^y_").to_numpy()[-1]
        charged += truth.losses(y)[rows, played] / 8
    assert cohort.ledger.mean_loss() == pytest.approx(charged)
