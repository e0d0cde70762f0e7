"""What is reported is protected, the truth is charged, and the truthful keep their bound."""

from itertools import cycle
from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market.losses import Linear
from regretless.market.model import MarketModel

SHARES = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
LIES: dict[str, list[list[float]]] = {
    "turned": [SHARES[1], SHARES[2], SHARES[0]],
    "one good": [[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1]],
    "opposite": [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
    "indifferent": [[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]],
    "one action": [[0.01, 0.01, 0.98], [0.4, 0.3, 0.3], [0.3, 0.4, 0.3]],
}


def built(liars: dict[str, Any], *, rounds: int = 150, **more: Any) -> MarketModel:
    """Build ten outsiders and four liars in a market that answers a round later."""
    crowd = {"utility": "linear", "actions": 3, "measures": ["external", "swap", "decision_swap"]}
    crowd["parameters"] = {"weights": SHARES, "concentration": 6.0}
    both = crowd | {"name": "outsiders", "count": 10}, crowd | {"name": "liars", "count": 4} | liars
    nature = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    market = {"feedback": "lagged", "impact": 0.4, "adjustment": 1.0}
    given: dict[str, Any] = {"rounds": rounds, "adversary": nature, "market": market} | more
    return worlds.scenario(*both, **given).build(seed=2)


@pytest.mark.parametrize(
    ("lie", "acts_on"), [*zip(LIES, cycle(["truth", "report"]), strict=False), ("turned", "report")]
)
def test_truthful_cohorts_keep_their_bound_beside_any_liar(lie: str, acts_on: str) -> None:
    model = built({"reports": {"weights": LIES[lie]}, "acts_on": acts_on}, rounds=600)
    model.run()
    frame = model.agents_frame().set_index("cohort")
    outsiders, liars = frame.loc["outsiders"], frame.loc["liars"]
    assert (outsiders["guarantee"] == "decision-swap").all()
    assert (outsiders["decision_swap_regret"] <= outsiders["bound"]).all()
    assert outsiders["decision_swap_regret"].max() < 0.04
    assert (liars["guarantee"] == "none").all()
    assert liars["bound"].isna().all()
    assert (frame["decision_swap_regret"] <= frame["bound_from_bias"] + 1e-9).all()


def weights(loss: Any) -> Any:
    assert isinstance(loss, Linear)
    return loss.weights


@pytest.mark.parametrize("acts_on", ["truth", "report"])
def test_the_forecaster_hears_the_report_and_the_ledger_charges_the_truth(acts_on: str) -> None:
    honest, lying = built({}), built({"reports": {"weights": LIES["turned"]}, "acts_on": acts_on})
    truth = honest.game.cohorts[1].loss
    cohort, (block,) = lying.game.cohorts[1], lying.game.blocks
    assert isinstance(cohort, RespondingCohort)
    assert cohort.loss.rows() == pytest.approx(truth.rows())
    said, heard = cohort.acts_on, block.forecaster.events.groups[1]  # type: ignore[attr-defined]
    assert said is not None
    reported = heard.weights[np.arange(4)]
    assert not np.allclose(reported, weights(truth))
    responds = reported if acts_on == "report" else weights(truth)
    assert weights(said) == pytest.approx(responds)
    charged = np.zeros(4)
    for _ in range(8):
        lying.step()
        point = lying.forecasts_frame().query("drawn").filter(like="p_").to_numpy()[-1]
        expects, played = said.losses(point), lying.last_actions(1)
        assert expects[np.arange(4), played] == pytest.approx(expects.min(1))
        y = lying.rounds_frame().filter(regex="^y_").to_numpy()[-1]
        charged += truth.losses(y)[np.arange(4), played] / 8
    assert cohort.ledger.mean_loss() == pytest.approx(charged)
