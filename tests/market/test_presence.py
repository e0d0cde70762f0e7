"""Agents who enter and leave: their own rounds, what they are promised, who notices, resuming."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.forecaster.events.bounds import BiasBound, GainBound, regret_since
from regretless.market.core.checkpoint import load as load_checkpoint
from regretless.market.core.checkpoint import save as save_checkpoint
from regretless.market.core.errors import UserError
from regretless.market.game.round import play_round
from regretless.market.game.seats import Stay, drawn_stays
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret import definitions
from regretless.market.regret.ledger import MEASURES
from regretless.scenarios.build.guarantees import over_stays
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.scenario import validated

ROUNDS = 60
EMPTY = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret", "bound"]
SMALL_WORLD = {"graph": "small-world", "neighbours": 2, "subscribers": 3}


def cohort(name: str = "guests", **keys: Any) -> dict[str, Any]:
    told = {"name": name, "utility": "linear", "count": 12, "actions": 3}
    return told | {"response": "best-response"} | keys


def rated(name: str = "guests", **keys: Any) -> dict[str, Any]:
    return cohort(name, entry_rate=0.03, exit_rate=0.04) | keys


def scenario(*cohorts: dict[str, Any], **keys: Any) -> Scenario:
    raw: dict[str, Any] = {"name": "inn", "rounds": ROUNDS, "seed": 5, "cohort": list(cohorts)}
    raw |= {"adversary": {"kind": "switching", "outcomes": 2, "length": 10}} | keys
    return Scenario(validated(raw, origin=Path()))


def watched(model: MarketModel) -> list[Round]:
    """Play to the end; return every round."""
    rounds = []
    while model.played < model.rounds:
        played = play_round(model.game)
        model.journal.add(played)
        rounds.append(played)
    return rounds


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(0, 20),
    st.integers(1, 20),
    st.sampled_from([None, 0.1, 1.0]),
    st.sampled_from([None, 0.1, 1.0]),
)
def test_stays_lie_in_their_window(
    seed: int, first: int, length: int, entry: float | None, leave: float | None
) -> None:
    rng = np.random.default_rng(seed)
    stay = drawn_stays(rng, 30, window=(first, first + length), rates=(entry, leave))
    assert ((first <= stay.entered) & (stay.entered <= stay.left)).all()
    assert (stay.left <= first + length).all()
    here = np.array([stay.here(t) for t in range(first + length + 2)])
    assert (here.sum(0) == stay.left - stay.entered).all()
    if entry in {None, 1.0}:
        assert (stay.entered == first).all()
    if leave == 1.0:
        assert (stay.left == np.minimum(stay.entered + 1, first + length)).all()
    if leave is None:
        assert (stay.left == first + length).all()


def test_waiting_and_staying_are_geometric() -> None:
    rng = np.random.default_rng(0)
    stay = drawn_stays(rng, 40_000, window=(0, 10_000), rates=(0.1, 0.25))
    assert stay.entered.mean() == pytest.approx(9.0, abs=0.2)  # (1 - p) / p rounds of waiting
    assert (stay.left - stay.entered).mean() == pytest.approx(4.0, abs=0.1)  # 1 / p rounds there
    assert (stay.entered == 0).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("network", [{}, {"network": SMALL_WORLD}], ids=["all", "network"])
def test_everybody_is_measured_over_own_rounds(network: dict[str, Any]) -> None:
    """Regrets equal those recomputed from the losses and laws of the rounds agents were there."""
    quantal = rated("smooth", response="quantal", eta=8.0, exit_rate=0.1)
    model = scenario(rated(), quantal, **network).build()
    rounds = watched(model)
    frame = model.agents_frame().set_index("agent")
    assert frame["entered"].isna().any()  # somebody never came
    assert frame["left"].lt(ROUNDS).any()
    agent = 0
    for place, who in enumerate(model.game.cohorts):
        for number in range(len(who.row_of)):
            agent += 1
            own = frame.loc[agent]
            there = [played for played in rounds if _there(played, place, number)]
            if pd.isna(own["entered"]):
                assert not there
                assert own[EMPTY].isna().all()
                assert np.isnan(own["exploitability"])
                continue
            numbers = [played.number for played in there]
            assert numbers == list(range(own["entered"], own["left"]))
            row = who.row_of[number]
            losses = np.array([played.losses[place][row] for played in there])  # type: ignore[index]
            laws = np.array([played.decisions[place].probabilities[row] for played in there])  # type: ignore[union-attr]
            assert own["mean_loss"] == pytest.approx((losses * laws).sum(1).mean())
            expected = definitions.external_regret(losses, laws)
            assert own["external_regret"] == pytest.approx(expected)
            assert own["swap_regret"] == pytest.approx(definitions.swap_regret(losses, laws))
            constants = np.tile(np.arange(3)[:, None], len(laws))
            swapped = definitions.decision_swap_regret(losses, laws, constants)
            assert own["decision_swap_regret"] == pytest.approx(swapped)
            assert own["decision_swap_regret"] <= own["bound_from_bias"] + 1e-9


def _there(played: Round, place: int, number: int) -> bool:
    decision = played.decisions[place]
    return decision is not None and bool(decision.actions[number] >= 0)


def test_the_log_and_the_views_leave_out_who_is_away() -> None:
    model = scenario(rated(), cohort("early", count=2, leaves=30), cohort("hosts")).build()
    model.run()
    agents = model.agents_frame().set_index("agent")
    log = model.regret_frame()
    for who, rows in log.groupby("agent"):
        own = agents.loc[who]
        assert rows["round"].tolist() == list(range(own["entered"], own["left"]))
        assert rows["swap_regret"].iloc[-1] == pytest.approx(own["swap_regret"])
    assert (log["action"] >= 0).all()
    assert set(log["agent"]) == set(agents.index[agents["entered"].notna()])
    views = list(model.agents)
    away = [view.unique_id for view in views if view.action < 0]
    assert away == agents.index[~(agents["left"] == ROUNDS).fillna(value=False)].tolist()
    assert agents.query("cohort == 'early'")["left"].tolist() == [30, 30]
    swaps = model.swaps_frame().groupby("agent")["contribution"].sum()
    assert swaps.to_numpy() == pytest.approx(agents["decision_swap_regret"].dropna().to_numpy())


@pytest.mark.parametrize("response", [{}, {"response": "quantal", "eta": 8.0}])
def test_who_stays_notices_nothing(response: dict[str, Any]) -> None:
    """What is predicted, and what the others do, is the same with and without comings and goings.

    Their bounds differ by the union over more rows alone.
    """
    moving = scenario(rated(**response), cohort("hosts", **response)).build()
    staying = scenario(cohort(**response), cohort("hosts", **response)).build()
    moving.run()
    staying.run()
    for name in ("rounds_frame", "forecasts_frame", "biases_frame"):
        pd.testing.assert_frame_equal(getattr(moving, name)(), getattr(staying, name)())
    logs = [m.regret_frame().query("agent > 12").reset_index(drop=True) for m in (moving, staying)]
    pd.testing.assert_frame_equal(*logs)


@pytest.mark.parametrize("weights", ["adaptive", "exponential"])
@pytest.mark.parametrize("stream", ["iid", "switching", "anti-forecast"])
def test_the_bound_over_own_rounds_holds(stream: str, weights: str) -> None:
    adversary = {"kind": stream, "outcomes": 2}
    forecaster = {"kind": "decision-swap", "weights": weights}
    guests = rated(count=40, entry_rate=0.2, exit_rate=0.01)
    given = scenario(guests, adversary=adversary, forecaster=forecaster, rounds=300)
    agents = given.build().agents_frame()
    assert agents["bound"].isna().all()
    model = given.build()
    model.run()
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    shorter = agents.assign(own=agents["left"] - agents["entered"]).sort_values("own")
    assert shorter["bound"].iloc[0] > shorter["bound"].iloc[-1]


def test_over_stays_is_the_theorem_row_by_row() -> None:
    weights = np.random.default_rng(0).random((4, 3, 2))
    bias = BiasBound(experts=24, rounds=100, slack=0.3)
    stay = Stay(np.array([0, 10, 40, 120]), np.array([200, 50, 41, 200]))
    found = over_stays(bias, weights, stay, policies=0)
    for row, (first, last) in enumerate([(0, 100), (10, 50), (40, 41)]):
        cut = BiasBound(experts=24, rounds=last, slack=0.3)
        alone = regret_since(cut, weights[[row]], joined=first)[0]
        assert found[row] == pytest.approx(alone)
    assert np.isnan(found[3])  # has not come yet
    scalar = over_stays(GainBound(experts=24, rounds=100, slack=0.3), weights, stay, policies=0)
    assert np.isnan(scalar).tolist() == [False, True, True, True]


def test_scalar_events_promise_nothing_to_who_comes_later() -> None:
    guests = rated(entry_rate=0.3)
    model = scenario(guests, forecaster={"kind": "decision-swap", "events": "losses"}).build()
    model.run()
    agents = model.agents_frame()
    first = (agents["entered"] == 0).fillna(value=False)
    assert first.any()
    assert (~first).any()
    assert ((agents["guarantee"] != "none") == first).all()
    assert (agents["bound"].notna() == first).all()


def test_a_late_cohort_may_come_one_by_one() -> None:
    """Late agents near protected losses keep the theorem over their own rounds."""
    weights = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]
    same = {"parameters": {"weights": weights}}
    model = scenario(
        cohort("hosts", **same), rated("late", joins=10, leaves=50, gamma=0.01, **same)
    ).build()
    model.run()
    late = model.agents_frame().query("cohort == 'late'").dropna(subset="entered")
    assert late["entered"].between(10, 49).all()
    assert late["left"].max() == 50
    assert (late["guarantee"] == "decision-swap").all()
    assert (late["decision_swap_regret"] <= late["bound"]).all()


def test_a_cohort_of_learners_leaves_as_a_whole() -> None:
    model = scenario(
        cohort("hosts"),
        cohort("hedge", response="hedge", joins=5, leaves=20, settings={"rate": "fixed"}),
    ).build()
    model.run()
    frame = model.agents_frame().query("cohort == 'hedge'")
    assert frame["entered"].tolist() == [5] * 12
    assert frame["left"].tolist() == [20] * 12
    learner = model.game.cohorts[1]
    assert learner.ledger.rounds == 15
    assert learner.horizon == 15  # type: ignore[attr-defined]


def test_leaders_face_those_who_are_there() -> None:
    """The payoff is per agent there; with nobody there it is empty, and the law of play zero."""
    model = scenario(
        rated(entry_rate=0.05, exit_rate=0.5, count=3), adversary={"kind": "myopic", "outcomes": 2}
    ).build()
    rounds = watched(model)
    paid = model.rounds_frame()["leader_payoff"]
    agents = 0
    for played, value in zip(rounds, paid, strict=True):
        decision, losses = played.decisions[0], played.losses[0]
        if decision is None or losses is None:
            assert np.isnan(value)
            continue
        here = decision.actions >= 0
        agents += here.sum()
        own = (decision.probabilities * losses).sum(1)[model.game.cohorts[0].row_of]
        assert value == pytest.approx(own[here].mean())
    assert 0 < agents < 3 * ROUNDS
    assert paid.isna().any()


@pytest.mark.parametrize("at", [1, 17, 45])
def test_a_run_with_network_and_rates_is_resumed_bit_for_bit(tmp_path: Path, at: int) -> None:
    measures = [*MEASURES, "exploitability"]
    given = scenario(
        rated(measures=measures),
        rated("smooth", response="quantal", eta=8.0),
        cohort("hedge", response="hedge", leaves=40),
        network=SMALL_WORLD,
    )
    whole, first, second = (given.build() for _ in range(3))
    whole.run()
    first.run(at)
    save_checkpoint(tmp_path / "state.npz", first.state())
    second.restore(load_checkpoint(tmp_path / "state.npz"))
    second.run()
    pd.testing.assert_frame_equal(second.agents_frame(), whole.agents_frame())
    rest = whole.regret_frame().query("round >= @at").reset_index(drop=True)
    pd.testing.assert_frame_equal(second.regret_frame(), rest)


def test_both_formats_tell_the_same(tmp_path: Path) -> None:
    tables = []
    for name in ("parquet", "csv"):
        run(scenario(rated(), network=SMALL_WORLD), Options(tmp_path / name, format=name))
        read = pd.read_parquet if name == "parquet" else pd.read_csv
        frame = read(tmp_path / name / f"agents.{name}")
        tables.append(frame[["agent", "entered", "left", "distance"]].astype("Int64"))
    pd.testing.assert_frame_equal(*tables)


def test_a_whole_stay_leaves_no_trace() -> None:
    assert "entered" not in scenario(cohort()).build().agents_frame()
    stays = [
        scenario(cohort(leaves=ROUNDS + 9)).build().game.seats[0].attendance.some(0)
        for _ in range(2)
    ]
    assert stays == [None, None]
    for first, second in pairwise([Stay(np.zeros(2, int), np.full(2, 5))] * 2):
        assert (first.here(4) == second.here(4)).all()


@pytest.mark.parametrize(
    ("cohorts", "says"),
    [
        ([cohort(leaves=0)], "cohort.guests.leaves = 0"),
        ([cohort(joins=9, leaves=9), cohort("x")], "leaves = 9 is not after joins = 9"),
        ([cohort(leaves=9)], "cohort.guests.leaves = 9: no cohort is left in that round"),
        ([cohort(leaves=9), cohort("x", joins=10)], "no cohort is left in that round"),
        ([cohort(entry_rate=0.0)], "cohort.guests.entry_rate = 0.0"),
        ([cohort(exit_rate=1.5)], "cohort.guests.exit_rate = 1.5"),
        ([cohort(exit_rat=0.5)], "unknown key 'cohort.guests.exit_rat'; did you mean"),
        ([cohort(), cohort("h", response="hedge", exit_rate=0.5)], "cohort.h.exit_rate = 0.5"),
    ],
)
def test_a_mistake_is_named(cohorts: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(UserError) as error:
        scenario(*cohorts)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_stay_is_checked() -> None:
    with pytest.raises(ValueError, match="leaves before it enters"):
        Stay(np.array([3]), np.array([2]))
    with pytest.raises(ValueError, match="at least 0"):
        Stay(np.array([-1]), np.array([2]))
