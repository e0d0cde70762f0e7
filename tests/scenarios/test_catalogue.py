"""Every named scenario runs, and its description holds; the longer ones are played in part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.market.exploitability.information_design import revenue_cap
from regretless.scenarios import load
from regretless.scenarios.config.files import catalogue, find, override, read
from regretless.scenarios.listing import REGISTRIES, listing

if TYPE_CHECKING:
    import pandas as pd


def test_a_claim_is_of_the_file_as_it_stands() -> None:
    assert load("pigou").spec.description
    assert not load("pigou", rounds=3).spec.description


@pytest.mark.parametrize("width", [None, 30, 100])
def test_the_list_tells_every_claim_within_the_terminal(width: int | None) -> None:
    lines, names = listing("scenarios", width, verbose=True), list(catalogue())
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == names
    told = " ".join(" ".join(lines).split())
    assert all(read(path)["description"] in told for path in map(find, names))
    if width is None:
        assert len(lines) == len(names)
    else:
        assert max(map(len, lines)) <= max(width, max(map(len, names)) + 2 + 20)


@pytest.mark.parametrize("kind", ["scenarios", "studies"])
def test_the_short_list_has_two_lines_of_80_columns_for_every_name_at_most(kind: str) -> None:
    whole = [line.split()[0] for line in listing(kind, verbose=True)]
    lines = listing(kind, 80)
    named = [line.split()[0] for line in lines if re.match(r"  \S", line)]
    assert sorted(named) == sorted(whole)
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.startswith("  ")]) <= 2 * len(named)


@pytest.mark.slow
def test_no_grower_would_have_gained_a_hundredth() -> None:
    model = worlds.played(load("crop-choice"), log_every=500)
    agents = model.agents_frame()
    regret = agents["decision_swap_regret"]
    assert len(agents) == 200
    assert regret.max() < 0.01
    assert (regret >= agents["omniprediction_regret"] - 1e-12).all()
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (regret <= agents["bound"]).all()
    forecaster = model.game.blocks[0].forecaster
    assert forecaster.certificate_sum <= 0.1 * np.sqrt(model.played)
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert bias.max() <= limits.bias(occupancy) + 1e-9


def exploited(name: str, *assignments: str) -> pd.DataFrame:
    """Play 1,000 rounds; a row per cohort: means over its agents, and what it paid the leader."""
    raw = override(read(find(name)), ["rounds=1000", *assignments])
    model = worlds.played(worlds.told(raw, origin=find(name).parent), log_every=500)
    means = model.agents_frame().groupby("cohort", sort=False).mean(numeric_only=True)
    paid = model.rounds_frame().filter(regex=r"leader_payoff_\d").mean()
    return means.assign(paid=paid.to_numpy())


@pytest.mark.slow
def test_only_mean_based_learners_are_beaten() -> None:
    frame = exploited("beating-mean-based-learners")
    mean_based = frame.loc[["hedge", "follow-the-leader", "regret-matching"]]
    others = frame.drop(index=mean_based.index)
    assert (mean_based["leader_surplus"] > 0.66).all()
    assert (mean_based["leader_surplus"] > 0.94 * mean_based["surplus_cap"]).all()
    assert set(others.index) == {"blum-mansour", "swap-regret-matching", "followers"}
    assert (others["leader_surplus"] < -0.5).all()
    assert (frame["leader_surplus"] <= frame["surplus_cap"]).all()
    assert frame["paid"].to_numpy() == pytest.approx(frame["leader_surplus"].to_numpy(), abs=1e-9)


@pytest.mark.slow
def test_learners_pay_a_seller_more_than_the_best_posted_price_does() -> None:
    """The revenues at T = 1000 that an independent reference measured for the learners."""
    cohorts = ("hedge", "regret-matching", "followers")
    arms = [f"cohort.{name}.actions=6" for name in cohorts]  # that many open in 1,000 rounds
    frame = exploited("selling-to-learners", "adversary.outcomes=12", *arms)
    myerson = revenue_cap([0.25, 0.5, 1.0], [0.5, 0.25, 0.25])
    assert myerson == pytest.approx(0.25)
    assert frame.loc["hedge", "paid"] == pytest.approx(0.398, abs=0.001)
    assert frame.loc["regret-matching", "paid"] == pytest.approx(0.440, abs=0.001)
    assert frame.loc["followers", "paid"] < 0.3 * myerson
    learners = frame.drop(index="followers")
    assert (learners["paid"] > 1.5 * myerson).all()
    assert (frame["leader_surplus"] < 0).all()  # it does not know whom it faces


@pytest.mark.slow
def test_pump_and_dump_takes_from_learners_and_not_from_followers() -> None:
    frame = exploited("pump-and-dump")
    learners = frame.drop(index="followers")
    assert learners["paid"].to_numpy() == pytest.approx(0.145, abs=0.002)
    assert frame.loc["followers", "paid"] < 0.0
    assert (frame["swap_regret"] < 0.002).all()
    value = frame["paid"] - frame["leader_surplus"]
    assert value.to_numpy() == pytest.approx(0.197, abs=0.001)
    assert frame.loc["followers", "mean_loss"] < learners["mean_loss"].min() - 0.02


@pytest.mark.parametrize("kind", ["studies", *REGISTRIES])
def test_names_that_files_may_use_are_listed_with_a_meaning(kind: str) -> None:
    lines = listing(kind, verbose=True)
    assert lines
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)
    with pytest.raises(UserError, match="list: unknown kind 'utilties'; did you mean 'utilities'"):
        listing("utilties")
