"""Claims of the catalogue hold, each at its own seed and in part of its rounds.

Those of the scenarios about growers, robbers, prices and networks are in tests of their own.
"""

from __future__ import annotations

import pandas as pd
import pytest

from regretless.forecaster.models import PANEL
from regretless.market.exploitability.information_design import revenue_cap
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.files import find, override, read
from regretless.scenarios.spec.scenario import validated

RUNNING_MEAN = 'forecaster={kind="running-mean"}'
DECISION_SWAP = 'forecaster={kind="decision-swap"}'
MYOPIC = 'adversary={kind="myopic"}'


def played(name: str, rounds: int, *assignments: str) -> MarketModel:
    """Play a named scenario with some keys replaced, and only the measures that are asserted."""
    path = find(name)
    raw = override(read(path), [f"rounds={rounds}", *assignments])
    for cohort in raw["cohort"]:
        cohort["measures"] = ["external", "swap", "decision_swap"]
    model = Scenario(validated(raw, origin=path.parent)).build(log_every=rounds)
    model.run()
    return model


def agents(name: str, rounds: int, *assignments: str) -> pd.DataFrame:
    """Play a named scenario; a row per agent."""
    return played(name, rounds, *assignments).agents_frame().set_index("cohort")


def paid(name: str, rounds: int, *assignments: str) -> pd.Series:
    """Play a named scenario; what the leader earned a round, from everybody and by cohort."""
    return played(name, rounds, *assignments).rounds_frame().filter(like="leader_payoff").mean()


def test_consumers_regret_nothing_and_by_the_running_mean_much() -> None:
    few = [f"cohort.{name}.count=4" for name in ("substitutes", "square-roots", "complements")]
    frame, naive = (agents("consumers", 300, *few, *more) for more in ([], [RUNNING_MEAN]))
    assert frame["swap_regret"].max() < 0.015
    assert naive["swap_regret"].max() > 0.05
    assert (frame["decision_swap_regret"] <= frame["bound_from_bias"] + 1e-9).all()


def test_producers_gain_from_a_smoothed_forecast_and_regret_nothing() -> None:
    frame = agents("producers", 600)
    naive = agents("producers", 600, RUNNING_MEAN)
    assert frame["decision_swap_regret"].max() < 0.002
    loss, without = (table.groupby("cohort")["mean_loss"].mean() for table in (frame, naive))
    assert (loss < without).all()
    assert (frame["guarantee"] == "decision-swap").all()


def test_the_plant_regrets_as_little_in_every_basis() -> None:
    model = played("assembly-lines", 250)
    frame = model.agents_frame().set_index("cohort")
    assert frame["swap_regret"].max() < 0.02
    assert frame.drop(index="workshops")["swap_regret"].max() < 0.01
    assert len({type(block.basis) for block in model.game.blocks}) == 5


def test_investors_regret_no_rule_and_gain_nothing_either() -> None:
    frame = agents("investors", 800)
    assert frame["decision_swap_regret"].max() < 0.004
    assert frame["external_regret"].abs().max() < 0.004


def test_retailers_lose_less_than_by_the_running_mean() -> None:
    frame, naive = agents("retailers", 720), agents("retailers", 720, RUNNING_MEAN)
    assert frame["mean_loss"].mean() < 0.85 * naive["mean_loss"].mean()
    assert frame["decision_swap_regret"].max() < 0.02


def test_an_aggregate_costs_less_than_each_of_its_models() -> None:
    together = agents("rush-hours", 720)["mean_loss"].mean()
    for name, table in PANEL.items():
        keys = ", ".join(f"{key} = {value!r}" for key, value in table.items())
        alone = agents("rush-hours", 720, f"forecaster={{{keys}}}")["mean_loss"].mean()
        assert together < alone, name


def test_calibration_leaves_commuters_more_to_regret() -> None:
    frame, ours = agents("umbrellas", 1461), agents("umbrellas", 1461, DECISION_SWAP)
    assert frame["decision_swap_regret"].mean() > 1.5 * ours["decision_swap_regret"].mean()
    assert frame["mean_loss"].mean() > ours["mean_loss"].mean() + 0.003
    assert (frame["guarantee"] == "none").all()
    assert frame["bound"].isna().all()
    assert (ours["decision_swap_regret"] <= ours["bound"]).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_the_running_mean_is_enough_where_nature_is_iid(seed: int) -> None:
    frame = agents("quiet-times", 300, f"seed={seed}")
    ours = agents("quiet-times", 300, f"seed={seed}", DECISION_SWAP)
    assert frame["swap_regret"].max() < 0.01
    assert frame["swap_regret"].mean() < ours["swap_regret"].mean()


def test_trend_followers_are_always_wrong() -> None:
    frame, ours = agents("trend-followers", 400), agents("trend-followers", 400, DECISION_SWAP)
    assert frame["mean_loss"].min() > 0.99
    assert frame["swap_regret"].min() > 0.99
    assert ours["swap_regret"].max() < 0.1
    assert ours["mean_loss"].mean() < 0.55


def test_spite_hurts_who_hears_the_mean_and_not_who_is_forecast_for() -> None:
    frame, ours = agents("spite", 300, RUNNING_MEAN), agents("spite", 300)
    assert frame["swap_regret"].max() > 0.5
    assert ours["swap_regret"].max() < 0.2
    assert (ours["swap_regret"] <= ours["bound_from_bias"]).all()


def test_who_trusts_a_broken_peg_loses_a_tenth() -> None:
    """Abroad the loss is 0.6 / 1.1 throughout; at home (0, then 0.3 x 1.1 / 1.1 more)."""
    frame, ours = agents("currency-peg", 600), agents("currency-peg", 600, DECISION_SWAP)
    assert frame["external_regret"].to_numpy() == pytest.approx(0.65 - 0.6 / 1.1, abs=1e-9)
    assert ours["decision_swap_regret"].max() < 0.002
    assert ours["external_regret"].max() < 0


def test_only_a_patient_incumbent_rules_alone() -> None:
    """5 a round if entrants stay out, 2 if they are let in."""
    assert paid("chain-store", 60)["leader_payoff"] > 4.8
    assert paid("chain-store", 60, MYOPIC)["leader_payoff"] == pytest.approx(2.0, abs=0.1)


def test_a_standard_earns_its_commitment_value_from_everybody() -> None:
    assert (paid("setting-a-standard", 400) - 2).between(-0.03, 0).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_only_the_herd_of_smugglers_is_always_caught(seed: int) -> None:
    frame = agents("smugglers", 500, f"seed={seed}").groupby("cohort")["mean_loss"].mean()
    assert frame["follow-the-leader"] == pytest.approx(1.0)
    others = frame.drop(index="follow-the-leader")
    assert len(others) == 9
    assert others.between(1 / 3 - 0.02, 0.42).all()


def test_who_sees_the_draw_always_wins() -> None:
    assert paid("rule-breaker", 400)["leader_payoff"] == 1.0
    assert paid("rule-breaker", 400, MYOPIC)["leader_payoff"] < 0.1


def test_a_bait_earns_less_than_the_best_posted_price() -> None:
    assert (paid("bait", 800) < revenue_cap([0.25, 0.5, 1.0], [0.5, 0.25, 0.25]) - 0.02).all()


def test_a_cartel_does_not_make_importers_regret() -> None:
    frame = agents("cartel", 800)
    assert frame.loc["importers", "swap_regret"].max() < 0.005
    assert frame.loc["smooth", "swap_regret"].max() < 0.015
    assert set(frame["guarantee"]) == {"decision-swap", "smooth-decision-swap"}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_mean_misleads_who_fears_risk(seed: int) -> None:
    means = agents("ways-of-listening", 250, f"seed={seed}").groupby("cohort")["swap_regret"].mean()
    assert means["certain"] > 0.1
    assert means["smooth"] > 0.08
    assert means[["sophisticated", "ensemble"]].max() < 0.03
