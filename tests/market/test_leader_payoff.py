"""What a leader is paid, round by round: in the log, in the report, and where buyers pay it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.agents.adversaries.leader import LinearPayoff
from regretless.market.core.errors import UserError
from regretless.market.exploitability import stackelberg
from regretless.market.game.round import play_round
from regretless.market.logs import journal
from regretless.market.logs.journal import Journal
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report import market_figures
from regretless.scenarios.report.run_data import Run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.scenario import validated

DENG = {"file": "deng-2x3.csv"}
CLOSE = 1e-9


def cohort(response: str, **keys: Any) -> dict[str, Any]:
    return {"name": response, "utility": "game", "actions": 3, "response": response} | keys


def scenario(*cohorts: dict[str, Any], rounds: int = 60, **keys: Any) -> Scenario:
    given = {"game": DENG, "adversary": {"kind": "up-then-down"}} | keys
    raw = {"name": "paid", "rounds": rounds, "seed": 2, "cohort": list(cohorts)}
    return Scenario(validated(raw | given, origin=Path()))


def finished(given: Scenario) -> MarketModel:
    model = given.build()
    model.run()
    return model


def paid(model: MarketModel) -> pd.DataFrame:
    return model.rounds_frame().filter(like="leader_payoff")


CROWD = (
    cohort("hedge", count=3),
    cohort("exp3", count=2, joins=20),
    cohort("best-response", name="followers"),
)


def test_columns_agree_with_the_raw_log() -> None:
    """Sums over agents of <law, payoff>, over those who are there, by plain loops."""
    given = scenario(*CROWD, adversary={"kind": "anti-forecast"})
    frame = paid(finished(given))
    model = given.build()
    payoff = model.game.adversary.payoff
    for t in range(model.rounds):
        entry = play_round(model.game)
        earned: list[list[float]] = []
        for who, decision in zip(model.game.cohorts, entry.decisions, strict=True):
            single = payoff.values(who.loss, entry.outcome[None])[0]
            rows = [] if decision is None else who.row_of.tolist()
            laws = None if decision is None else decision.probabilities
            earned.append([float(laws[k] @ single[k]) for k in rows if laws is not None])
        everybody = [value for members in earned for value in members]
        assert frame["leader_payoff"][t] == pytest.approx(np.mean(everybody), abs=CLOSE)
        for i, members in enumerate(earned):
            mine = frame[f"leader_payoff_{i}"][t]
            assert mine == pytest.approx(np.mean(members), abs=CLOSE) if members else np.isnan(mine)
    assert frame["leader_payoff_1"].isna().sum() == 20


def test_one_cohort_has_one_column_and_no_motive_none() -> None:
    assert list(paid(finished(scenario(cohort("hedge"))))) == ["leader_payoff"]
    plain = cohort("hedge", utility="linear")
    without = scenario(plain, game=None, adversary={"kind": "anti-forecast", "outcomes": 2})
    assert paid(finished(without)).empty


def test_payoff_less_surplus_is_the_commitment_value() -> None:
    """Of every cohort, whether it plays from the start or not; what the tracker says agrees."""
    model = finished(scenario(*CROWD, rounds=200))
    surplus = model.agents_frame().groupby("cohort", sort=False)["leader_surplus"].mean()
    loss = model.game.cohorts[0].loss[:1]
    payoff = model.game.adversary.payoff.values(loss, np.eye(2))[:, 0]
    value = stackelberg(payoff, loss.losses(np.eye(2))[:, 0]).value
    for place, name in enumerate(surplus.index):
        mean = paid(model)[f"leader_payoff_{place}"].mean()
        assert mean - surplus[name] == pytest.approx(value, abs=1e-7)
        assert model.tracker is not None
        assert model.tracker.paid(place) == pytest.approx(mean, abs=CLOSE)


def test_a_payoff_that_does_not_fit_a_cohort_is_refused_in_one_line() -> None:
    cohorts = scenario(cohort("hedge")).build().game.cohorts
    with pytest.raises(UserError, match=r"the adversary's payoff, cohort\.hedge: weights have"):
        Journal(cohorts, ["all"], payoff=LinearPayoff([[1.0, 0.0], [0.0, 1.0]]))


def test_an_interrupted_run_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 16)
    given = scenario(*CROWD)

    def stop(rounds: int) -> None:
        if rounds == 40:
            raise KeyboardInterrupt

    run(given, Options(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        run(given, Options(tmp_path / "parts"), progress=stop)
    run(given, Options(tmp_path / "parts", resume=True))
    ours, theirs = (tmp_path / where / "rounds.parquet" for where in ("whole", "parts"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert "leader_payoff_2" in pd.read_parquet(ours)


# The report.


@pytest.fixture(scope="module", params=["parquet", "csv"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("led") / "run"
    run(scenario(*CROWD, rounds=200), Options(out, request.param))
    return out


def test_curves_end_at_the_surplus_of_the_agents_table(directory: Path) -> None:
    tables = read_run(directory)[1]
    drawn = market_figures.surplus(Run({}, tables))
    assert drawn is not None
    curves, caps = drawn.data[::2], drawn.data[1::2]
    means = tables["agents"].groupby("cohort", sort=False)[["leader_surplus", "surplus_cap"]].mean()
    ends = [curve.y[-1] for curve in curves]
    assert ends == pytest.approx(means["leader_surplus"].tolist(), abs=1e-7)
    assert [curve.x[0] for curve in curves] == [0, 20, 0]
    assert [cap.y[0] for cap in caps] == pytest.approx(means["surplus_cap"].tolist())
    assert (means["leader_surplus"] <= means["surplus_cap"] + CLOSE).all()
    assert 'id="chart-surplus"' in write_report(directory).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "measures", [["swap"], ["swap", "exploitability"]], ids=["not measured", "no payoff"]
)
def test_there_is_no_figure_without_a_surplus(measures: list[str]) -> None:
    keys: dict[str, Any] = {}
    if "exploitability" in measures:
        keys = {"game": None, "adversary": {"kind": "anti-forecast", "outcomes": 2}}
    utility = "linear" if keys else "game"
    model = finished(scenario(cohort("hedge", utility=utility, measures=measures), **keys))
    tables = {"rounds": model.rounds_frame(), "agents": model.agents_frame()}
    assert market_figures.surplus(Run({}, tables)) is None


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


def test_values_may_be_drawn() -> None:
    model = buyers(value=[0.25, 0.75]).build()
    loss = model.game.cohorts[0].loss
    gains = 1 - 2 * loss.losses(np.array([0.0, 0.0, 1.0, 0.0]))[:, 1]
    assert ((gains >= 0.25) & (gains <= 0.75)).all()
    assert np.ptp(gains) > 0


@pytest.mark.parametrize(
    ("outcomes", "value", "line"),
    [
        (4, 1.5, "value = 1.5: give a number in [0, 1]"),
        (4, -0.1, "value = -0.1: give a number in [0, 1]"),
        (3, 0.5, "2 arms and 3 outcomes"),
        (4, [0.1, 0.2, 0.3, 0.4], "value = [0.1, 0.2, 0.3, 0.4]: write a number"),
    ],
)
def test_a_mistake_of_buyers_is_one_line(outcomes: int, value: Any, line: str) -> None:
    with pytest.raises(UserError) as error:
        buyers(outcomes, value=value).build()
    assert line in str(error.value)
    assert "\n" not in str(error.value)
