"""What a leader is paid, round by round: in the log, in the report, and where buyers pay it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.market.exploitability import stackelberg
from regretless.market.game.round import play_round
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario

DENG = {"file": "deng-2x3.csv"}
CLOSE = 1e-9


def cohort(response: str, **keys: Any) -> dict[str, Any]:
    return {"name": response, "utility": "game", "actions": 3, "response": response} | keys


def scenario(*cohorts: dict[str, Any], rounds: int = 60, **keys: Any) -> Scenario:
    given = {"seed": 2, "game": DENG, "adversary": {"kind": "up-then-down"}} | keys
    return worlds.scenario(*cohorts, rounds=rounds, **given)


def paid(model: MarketModel) -> pd.DataFrame:
    return model.rounds_frame().filter(like="leader_payoff")


CROWD = (
    cohort("hedge", count=3),
    cohort("exp3", count=2, enters=20),
    cohort("best-response", name="followers"),
)


def test_columns_agree_with_the_raw_log() -> None:
    """Sums over agents of <distribution, payoff>, over those who are there, by plain loops."""
    given = scenario(*CROWD, adversary={"kind": "anti-forecast"})
    frame = paid(worlds.played(given))
    model = given.build()
    payoff = model.game.adversary.payoff
    for t in range(model.rounds):
        entry = play_round(model.game)
        earned: list[list[float]] = []
        for who, decision in zip(model.game.cohorts, entry.decisions, strict=True):
            single = payoff.values(who.loss, entry.outcome[None])[0]
            rows = [] if decision is None else who.row_of.tolist()
            distributions = None if decision is None else decision.probabilities
            earned.append(
                [float(distributions[k] @ single[k]) for k in rows if distributions is not None]
            )
        everybody = [value for members in earned for value in members]
        assert frame["leader_payoff"][t] == pytest.approx(np.mean(everybody), abs=CLOSE)
        for i, members in enumerate(earned):
            mine = frame[f"leader_payoff_{i}"][t]
            assert mine == pytest.approx(np.mean(members), abs=CLOSE) if members else np.isnan(mine)
    assert frame["leader_payoff_1"].isna().sum() == 20


def test_payoff_less_surplus_is_the_commitment_value() -> None:
    """Of every cohort, whether it plays from the start or not; what the tracker says agrees."""
    model = worlds.played(scenario(*CROWD, rounds=200))
    surplus = model.agents_frame().groupby("cohort", sort=False)["leader_surplus"].mean()
    loss = model.game.cohorts[0].loss[:1]
    payoff = model.game.adversary.payoff.values(loss, np.eye(2))[:, 0]
    value = stackelberg(payoff, loss.losses(np.eye(2))[:, 0]).value
    for place, name in enumerate(surplus.index):
        mean = paid(model)[f"leader_payoff_{place}"].mean()
        assert mean - surplus[name] == pytest.approx(value, abs=1e-7)
        assert model.tracker is not None
        assert model.tracker.paid(place) == pytest.approx(mean, abs=CLOSE)


# The report.


# Buyers.


def buyers(outcomes: int = 4, **parameters: Any) -> Scenario:
    own = {"utility": "buyer", "actions": 2, "count": 3, "parameters": parameters}
    adversary = {"kind": "iid", "outcomes": outcomes}
    return scenario(cohort("hedge", **own), game=None, adversary=adversary)


def test_a_buyer_gains_its_value_and_pays_the_price() -> None:
    """Utility v x - p in the buyer's own units, from the loss and its map."""
    worth = [0.2, 0.5, 1.0]
    loss = buyers(value=worth).build().game.cohorts[0].loss
    offers = np.array([0.0, 0.0, 0.6, 0.3])
    own = -(loss.unit_offset[:, None] + loss.unit_scale[:, None] * loss.losses(offers))
    assert own[:, 0] == pytest.approx([0, 0, 0])
    assert own[:, 1] == pytest.approx([0.6 * v - 0.3 for v in worth])
