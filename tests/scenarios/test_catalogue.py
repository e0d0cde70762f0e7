"""Every named scenario runs, its description holds, and every built-in name is in one of them.

The longer ones are played in part.
"""

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import worlds
from registered import built_in

from regretless.forecaster import bases
from regretless.forecaster.models import PANEL
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.exploitability.information_design import revenue_cap
from regretless.market.markets.aggregate import FEEDBACKS
from regretless.scenarios import load
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue, find, override, read
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import MarketSpec, PricesSpec
from regretless.scenarios.listing import REGISTRIES, listing


def test_a_claim_is_of_the_file_as_it_stands() -> None:
    assert load("pigou").spec.description
    assert not load("pigou", rounds=3).spec.description


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


# What the catalogue uses.


PAGE = Path(__file__).parent.parent.parent / "docs" / "scenarios.md"
FEW = 5  # agents of a cohort
NATURE = ("replayed data",)
FORECASTERS = ("decision-swap", "calibration")  # those that no registry holds
TRAINED = ("plan", "cem", "es", "exp3")  # `regretless train` seats them in any scenario
TOGETHER = "DirectSumBasis"  # all blocks of a broadcast: no file names it


def expected() -> dict[str, list[str]]:
    return {
        "utility": built_in(register.utility),
        "response": built_in(register.response),
        "learner": built_in(register.learner),
        "agent": built_in(register.agent),
        "adversary": [*(n for n in built_in(register.adversary) if n not in TRAINED), *NATURE],
        "forecaster": [*built_in(register.forecaster), *FORECASTERS],
        "policy": built_in(register.policy),
        "market": [*FEEDBACKS, *(n for n in built_in(register.market) if n != "prices")],
        "basis": [name for name in bases.__all__ if name != TOGETHER],
    }


def named(spec: ScenarioSpec) -> dict[str, set[str]]:
    """Find what a scenario file names, by kind; responses, learners and agents share a key."""
    adversary = NATURE[0] if spec.adversary is None else spec.adversary.kind
    members = [] if spec.adversary is None else spec.adversary.parameters.get("members", [])
    market = {spec.market.feedback} if isinstance(spec.market, PricesSpec) else set()
    market |= {spec.market.kind} if isinstance(spec.market, MarketSpec) else set()
    answers = {cohort.response for cohort in spec.cohort}
    kinds = {spec.forecaster.kind, spec.forecaster.reference.kind}
    kinds |= {model.kind for model in (spec.forecaster.models or {}).values()}
    panel = PANEL if spec.forecaster.kind == "aggregate" else {}
    return {
        "utility": {cohort.utility for cohort in spec.cohort},
        "response": answers,
        "learner": answers,
        "agent": answers,
        "adversary": {adversary, *(member["kind"] for member in members)},
        "forecaster": {*kinds, *(model["kind"] for model in panel.values())},
        "policy": {policy.kind for policy in spec.policy.values()},
        "market": market,
    }


@cache
def scenario(name: str) -> Scenario:
    path = find(name)
    raw = read(path)
    for cohort in raw["cohort"]:
        if "network" not in raw and cohort.get("count", 1) > FEW:
            cohort["count"] = FEW
    return worlds.told(raw, origin=path.parent)


@cache
def bases_of(name: str) -> frozenset[str]:
    return frozenset(type(block.basis).__name__ for block in scenario(name).build().game.blocks)


@cache
def uses() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    known = expected()
    for name in catalogue():
        here = named(scenario(name).spec) | {"basis": set(bases_of(name))}
        for kind, words in here.items():
            for word in sorted(words & set(known[kind])):
                found[kind, word].append(name)
    return found


def test_every_built_in_name_is_used() -> None:
    known, found = expected(), uses()
    assert [(k, name) for k in known for name in known[k] if not found[k, name]] == []
    assert len(built_in(register.basis)) == len(known["basis"])


def test_the_page_has_every_scenario() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in catalogue() if f"**{name}**" not in page] == []
