"""What is reported is protected, the truth is charged, and the truthful keep their bound."""

from itertools import cycle
from typing import Any

import numpy as np
import pytest
import worlds

from regretless.market.model import MarketModel

SHARES = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
LIES: dict[str, list[list[float]]] = {
    "turned": [SHARES[1], SHARES[2], SHARES[0]],
    "one good": [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1]],
    "opposite": [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
    "indifferent": [[0.4, 0.3, 0.3]] * 3,
    "one action": [[0.01, 0.01, 0.98], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3]],
}
CASES = [*zip(LIES, cycle(["truth", "report"]), strict=False), ("turned", "report")]


def built(rounds: int, **liars: Any) -> MarketModel:
    """Build ten outsiders and four liars in a market that answers a round later."""
    crowd = {"parameters": {"weights": SHARES, "concentration": 6.0}, "measures": [*worlds.FEW]}
    both = worlds.cohort("outsiders", 10, 3, **crowd), worlds.cohort("liars", 4, 3, **crowd)
    nature = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    market = {"feedback": "lagged", "impact": 0.4, "adjustment": 1.0}
    given = worlds.scenario(
        both[0], both[1] | liars, rounds=rounds, adversary=nature, market=market
    )
    return given.build(seed=2)


@pytest.mark.parametrize(("lie", "acts_on"), CASES)
def test_truthful_cohorts_keep_their_bound_beside_any_liar(lie: str, acts_on: str) -> None:
    model = built(600, reports={"weights": LIES[lie]}, acts_on=acts_on)
    model.run()
    frame = model.agents_frame().set_index("cohort")
    outsiders, liars = frame.loc["outsiders"], frame.loc["liars"]
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
    said = cohort.acts_on
    assert said.weights == pytest.approx(reported if acts_on == "report" else truth.weights)
    charged = np.zeros(4)
    for _ in range(8):
        lying.step()
        point = lying.forecasts_frame().query("drawn").filter(like="p_").to_numpy()[-1]
        expects, played = said.losses(point), lying.last_actions(1)
        assert expects[rows, played] == pytest.approx(expects.min(1))
        y = lying.rounds_frame().filter(regex="^y_").to_numpy()[-1]
        charged += truth.losses(y)[rows, played] / 8
    assert cohort.ledger.mean_loss() == pytest.approx(charged)
