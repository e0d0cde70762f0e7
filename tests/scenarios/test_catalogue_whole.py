"""Every named scenario at its own size and seed, with all its measures: ``make catalogue``.

Minutes, not seconds, so the suite leaves it out; the other tests play the longer ones in part.
The figures on which claims rest are measured here and compared with the claim as it stands in the
file: a figure that it bounds something by (``BELOW``), or one that it rounds to (``ABOUT``).
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import worlds

from regretless.market.exploitability.information_design import revenue_cap
from regretless.scenarios import load
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run

pytestmark = pytest.mark.catalogue

Tables = dict[str, Any]
Measure = Callable[[Tables], float]
RUNNING_MEAN = 'forecaster={kind="running-mean"}'
DECISION_SWAP = 'forecaster={kind="decision-swap"}'
MYOPIC = 'adversary={kind="myopic"}'
TAKERS = "cohort.firms.parameters.slope=0.0"
CHEAP = "cohort.traders.parameters.weights=[[0.0, -1.0], [-1.161834, 0.0]]"  # exp(0.15)
DEAR = "cohort.traders.parameters.weights=[[0.0, -1.0], [-1.284025, 0.0]]"  # exp(0.25)
CENSORED = "market.seen='sales'"
HERD = "cohort.followers.response='best-response'"
LISTEN = "cohort.guests.response='best-response'"


@cache
def instead(name: str, assignment: str) -> Tables:
    """Play a named scenario at its own size with one table replaced."""
    model = worlds.played(worlds.lean(name, assignment), log_every=10**6)
    market = {} if model.game.market is None else model.game.market.described()
    return {
        "agents": model.agents_frame(),
        "rounds": model.rounds_frame(),
        "market": pd.DataFrame([market]),
    }


def worst(measure: str = "decision_swap_regret", *cohorts: str) -> Measure:
    """Return the greatest value of a measure over the agents of some cohorts, by default all."""
    return lambda tables: float(members(tables, *cohorts)[measure].max())


def mean(measure: str = "mean_loss", *cohorts: str) -> Measure:
    return lambda tables: float(members(tables, *cohorts)[measure].mean())


def members(tables: Tables, *cohorts: str) -> pd.DataFrame:
    agents = tables["agents"]
    return agents[agents["cohort"].isin(cohorts)] if cohorts else agents


def paid(place: int | None = None) -> Measure:
    """Return what the leader is paid a round, by one cohort or by everybody."""
    column = "leader_payoff" if place is None else f"leader_payoff_{place}"
    return lambda tables: float(tables["rounds"][column].mean())


def of_all(choose: Callable[[list[float]], float], measures: list[Measure]) -> Measure:
    """Return the least or the greatest of some values."""
    return lambda tables: choose([measure(tables) for measure in measures])


def under(assignment: str, measure: Measure) -> Measure:
    return lambda tables: measure(instead(tables["scenario"], assignment))


def less(first: Measure, second: Measure) -> Measure:
    return lambda tables: first(tables) - second(tables)


def of_market(key: str, place: int | str | None = None) -> Measure:
    """Return a number that the manifest says of a market, or an entry of a list or table."""
    return lambda tables: float(
        tables["market"][key][0] if place is None else tables["market"][key][0][place]
    )


def settled(column: str) -> Measure:
    """Return the mean of a column of the rounds over their second half."""
    return lambda tables: float(tables["rounds"][column].iloc[len(tables["rounds"]) // 2 :].mean())


def at_distance(hops: int) -> Measure:
    """Return the mean regret of agents who hear so many rounds late."""
    return lambda tables: REGRET({"agents": tables["agents"].query(f"distance == {hops}")})


def in_100(measure: Measure) -> Measure:
    return lambda tables: 100 * measure(tables)


PLANTS = [f"plant-{basis}" for basis in ("leontief", "ramps", "grid", "exact")]
MEAN_BASED = ("hedge", "follow-the-leader", "regret-matching")
SURPLUSES = [mean("leader_surplus", name) for name in MEAN_BASED]
LEADER = [paid(place) for place in range(3)]
CAUGHT = [in_100(paid(place)) for place in range(10) if place != 1]
SEASONAL = 'forecaster={kind="seasonal-naive", rate=0.2}'
POSTED: Measure = lambda _: revenue_cap([0.25, 0.5, 1], [0.5, 0.25, 0.25])  # noqa: E731
WHOLE: Measure = lambda _: 2.0  # noqa: E731
REGRET = mean("decision_swap_regret")
ABOUT, BELOW = "about", "below"
Claimed = tuple[str, str, str, Measure]  # of whom, how, a pattern around the figure, what it is of
CLAIMED: list[Claimed] = [
    ("assembly-lines", BELOW, r"is below ([\d.]+)\.", worst("swap_regret", "workshops")),
    ("assembly-lines", BELOW, r"at most ([\d.]+) in each", worst("swap_regret", *PLANTS)),
    ("bait", ABOUT, r"earns ([\d.]+) per round from followers", paid(0)),
    ("bait", ABOUT, r"and ([\d.]+) from Hedge", paid(1)),
    ("bait", ABOUT, r"than the ([\d.]+) of", POSTED),
    ("bank-run", ABOUT, r"a share of ([\d.]+) withdraws", settled("y_0")),
    ("bank-run", ABOUT, r"full queues ([\d.]+),", under("market.start=1.0", settled("y_0"))),
    ("braess", BELOW, r"fewer than (\d+) in", in_100(lambda tables: 1 - settled("flow_4")(tables))),
    ("braess", ABOUT, r"takes ([\d.]+) hours", settled("time_0")),
    ("braess", ABOUT, r"instead of ([\d.]+)\.", under("market.toll=1.0", settled("time_0"))),
    ("call-auction", ABOUT, r"gain ([\d.]+) per round", of_market("gains_from_trade")),
    ("call-auction", ABOUT, r"prices of ([\d.]+),", settled("price_0")),
    ("beating-mean-based-learners", ABOUT, r"surplus of ([\d.]+) to", of_all(min, SURPLUSES)),
    ("beating-mean-based-learners", ABOUT, r"to ([\d.]+) per round", of_all(max, SURPLUSES)),
    ("betting", ABOUT, r"own ([\d.]+) of all wealth", of_market("wealth_share", "followers")),
    ("cartel", BELOW, r"at most ([\d.]+), those", worst("swap_regret", "importers")),
    ("cartel", BELOW, r"smoothly ([\d.]+)\.", worst("swap_regret", "smooth")),
    ("chain-store", ABOUT, r"for ([\d.]+) per round\.", paid()),
    ("chain-store", ABOUT, r"market, for ([\d.]+)\.", under(MYOPIC, paid())),
    ("consumers", BELOW, r"is below ([\d.]+);", worst()),
    ("consumers", ABOUT, r"it is ([\d.]+)\.", under(RUNNING_MEAN, worst())),
    ("crop-choice", BELOW, r"less than ([\d.]+) per day", worst()),
    ("crowding", ABOUT, r"\(concentration ([\d.]+);", of_market("concentration")),
    ("crowding", BELOW, r"is below ([\d.]+)\.", worst("swap_regret", "followers")),
    ("currency-peg", ABOUT, r"loss ([\d.]+) higher", mean("external_regret")),
    ("currency-peg", ABOUT, r"swap regret is ([\d.]+)\.", under(DECISION_SWAP, worst())),
    ("el-farol", ABOUT, r"has mean (\d+)", in_100(of_market("mean", 0))),
    ("el-farol", ABOUT, r"standard deviation (\d+),", in_100(of_market("deviation", 0))),
    ("el-farol", ABOUT, r"the deviation (\d+):", in_100(under(LISTEN, of_market("deviation", 0)))),
    ("investors", BELOW, r"less than ([\d.]+) per day", worst()),
    ("late-news", BELOW, r"regret below ([\d.]+),", at_distance(0)),
    ("late-news", ABOUT, r"one hop away ([\d.]+),", at_distance(1)),
    ("late-news", ABOUT, r"a week away ([\d.]+)\.", at_distance(7)),
    ("mixed-bazaar", BELOW, r"is below ([\d.]+)\.", worst("swap_regret")),
    ("oligopoly", ABOUT, r"price of ([\d.]+) and", settled("y_0")),
    ("oligopoly", ABOUT, r"output of ([\d.]+);", settled("quantity_0")),
    ("oligopoly", ABOUT, r"competitive ([\d.]+) and", under(TAKERS, settled("y_0"))),
    ("oligopoly", ABOUT, r"and ([\d.]+)\. The largest", under(TAKERS, settled("quantity_0"))),
    ("oligopoly", BELOW, r"is below ([\d.]+)\.", of_all(max, [worst(), under(TAKERS, worst())])),
    ("paying-to-know", ABOUT, r"share of ([\d.]+) buys", settled("share_0")),
    ("paying-to-know", ABOUT, r"0.15 it is ([\d.]+) and", under(CHEAP, settled("share_0"))),
    ("paying-to-know", ABOUT, r"0.25 it is ([\d.]+),", under(DEAR, settled("share_0"))),
    ("paying-to-know", BELOW, r"is below ([\d.]+)\.", worst()),
    ("own-draws", ABOUT, r"average loss of ([\d.]+) and", mean()),
    ("own-draws", ABOUT, r"swap regret of ([\d.]+);", mean("swap_regret")),
    ("own-draws", ABOUT, r"a loss of ([\d.]+) and", under(HERD, mean())),
    ("own-draws", ABOUT, r"a regret of ([\d.]+)\.", under(HERD, mean("swap_regret"))),
    ("pigou", ABOUT, r"(\d+) in 100 drivers", in_100(settled("flow_1"))),
    ("pigou", ABOUT, r"takes ([\d.]+) hours", settled("time_0")),
    ("pigou", ABOUT, r"takes ([\d.]+)\.$", under("market.toll=1.0", settled("time_0"))),
    ("producers", BELOW, r"is below ([\d.]+), and", worst("swap_regret")),
    ("producers", ABOUT, r"loss is ([\d.]+) lower", less(under(RUNNING_MEAN, mean()), mean())),
    ("pump-and-dump", ABOUT, r"earns ([\d.]+) per round", of_all(min, LEADER)),
    ("pump-and-dump", ABOUT, r"earned it ([\d.]+) from", less(paid(0), SURPLUSES[0])),
    ("quiet-times", BELOW, r"at most ([\d.]+)\.", worst("swap_regret")),
    ("quiet-times", BELOW, r"less than ([\d.]+)\.", under(DECISION_SWAP, worst("swap_regret"))),
    ("retailers", ABOUT, r"loss is ([\d.]+) per hour", mean()),
    ("retailers", ABOUT, r"where it is ([\d.]+) with", under(RUNNING_MEAN, mean())),
    ("retailers", BELOW, r"less than ([\d.]+) for", worst()),
    ("rule-breaker", BELOW, r"wins less than ([\d.]+) per", under(MYOPIC, paid())),
    ("rush-hours", ABOUT, r"loss is ([\d.]+) per hour", mean()),
    ("rush-hours", ABOUT, r"it is ([\d.]+) with the best", under(SEASONAL, mean())),
    ("rush-hours", ABOUT, r"and ([\d.]+) with the running", under(RUNNING_MEAN, mean())),
    ("sealed-bids", ABOUT, r"seller earns ([\d.]+) per round", settled("revenue_0")),
    ("sealed-bids", BELOW, r"at most ([\d.]+)\.", worst("swap_regret")),
    ("second-price", ABOUT, r"seller earns ([\d.]+) per round", settled("revenue_0")),
    ("self-fulfilling", ABOUT, r"\(concentration ([\d.]+);", of_market("concentration")),
    ("self-fulfilling", ABOUT, r"to ([\d.]+), although", mean()),
    ("selling-to-learners", ABOUT, r"earns ([\d.]+) per buyer", paid(0)),
    ("selling-to-learners", ABOUT, r"and ([\d.]+) from regret matching", paid(1)),
    ("selling-to-learners", ABOUT, r"forecast pay ([\d.]+)\.", paid(2)),
    ("setting-a-standard", BELOW, r"at most ([\d.]+), from", less(WHOLE, of_all(min, LEADER))),
    ("shops", ABOUT, r"\(([\d.]+) on average", of_market("level")),
    ("shops", ABOUT, r"sales stock ([\d.]+) and", under(CENSORED, of_market("level"))),
    ("shops", BELOW, r"saw, below ([\d.]+) per", under(CENSORED, worst("swap_regret"))),
    ("shops", ABOUT, r"instead of ([\d.]+)\.", worst("swap_regret")),
    ("smugglers", ABOUT, r"catch (\d+) to", of_all(min, CAUGHT)),
    ("smugglers", ABOUT, r"to (\d+) in 100", of_all(max, CAUGHT)),
    ("spite", ABOUT, r"reaches ([\d.]+) in 1,000", worst("swap_regret")),
    ("spite", ABOUT, r"would reach ([\d.]+)\.", under(RUNNING_MEAN, worst("swap_regret"))),
    ("spite", ABOUT, r"average loss is ([\d.]+),", mean()),
    ("spite", ABOUT, r"and ([\d.]+) with the running mean\.", under(RUNNING_MEAN, mean())),
    ("survival", ABOUT, r"own ([\d.]+), those", of_market("wealth_share", "followers")),
    ("survival", ABOUT, r"themselves ([\d.]+),", of_market("wealth_share", "learners")),
    ("survival", ABOUT, r"cash ([\d.]+):", of_market("wealth_share", "cautious")),
    ("trend-followers", ABOUT, r"have ([\d.]+) against", under(DECISION_SWAP, worst())),
    ("umbrellas", ABOUT, r"gained ([\d.]+) per day", REGRET),
    ("umbrellas", ABOUT, r"it is ([\d.]+), and", under(DECISION_SWAP, REGRET)),
    ("umbrellas", ABOUT, r"loss is ([\d.]+) instead", under(DECISION_SWAP, mean())),
    ("umbrellas", ABOUT, r"instead of ([\d.]+)\.", mean()),
    ("ways-of-listening", ABOUT, r"regret of ([\d.]+) per round", mean("swap_regret", "certain")),
    ("ways-of-listening", ABOUT, r"smoothly ([\d.]+)\.", mean("swap_regret", "smooth")),
    ("ways-of-listening", BELOW, r"is below ([\d.]+)\.", mean("swap_regret", "sophisticated")),
    ("ways-of-listening", BELOW, r"is below ([\d.]+)\.", mean("swap_regret", "ensemble")),
]


def holds(how: str, claimed: str, measured: float) -> bool:
    """Whether a measured value is what the claim says; one that is rounded is so to its digits."""
    value = float(claimed)
    if how == ABOUT:
        digits = len(claimed.partition(".")[2])
        return abs(measured - value) <= 0.5 * 10.0**-digits + 1e-9
    return measured < value


def test_figures_are_read_as_they_are_written() -> None:
    assert holds(ABOUT, "0.05", 0.0549)
    assert not holds(ABOUT, "0.05", 0.0551)
    assert holds(BELOW, "0.001", 0.0009)
    assert not holds(BELOW, "0.02", 0.021)


@pytest.mark.parametrize("name", catalogue())
def test_a_scenario_has_all_measures_and_its_claim_holds(name: str, tmp_path: Path) -> None:
    scenario = load(name)
    run(scenario, Options(tmp_path / name, log_every=100))
    manifest, tables = read_run(tmp_path / name)
    check_complete(scenario, manifest, tables)
    claim = scenario.spec.description
    tables |= {"scenario": name, "market": pd.DataFrame([manifest.get("market", {})])}
    wrong = {}
    for _, how, pattern, measure in (row for row in CLAIMED if row[0] == name):
        found = re.search(pattern, claim)
        assert found is not None, f"{pattern} is not in the claim: {claim}"
        if not holds(how, found[1], measured := measure(tables)):
            wrong[f"{how} {found[1]}: {pattern}"] = measured
    assert wrong == {}


def check_complete(scenario: Scenario, manifest: dict[str, Any], tables: Tables) -> None:
    """Every agent has its measures, and no bound is exceeded."""
    agents = tables["agents"]
    assert manifest["status"] == "complete"
    assert len(tables["rounds"]) == scenario.spec.rounds
    assert len(agents) == sum(cohort.count for cohort in scenario.spec.cohort)
    followed = manifest["exploitability"]["cohorts"].values()
    assert sum(cohort["unsolved"] for cohort in followed) == 0
    assert agents["exploitability"].notna().sum() == sum(c["followed"] for c in followed)
    promised = agents[agents["bound"].notna()]
    assert (promised["decision_swap_regret"] <= promised["bound"]).all()
    measured = agents[agents["bound_from_bias"].notna()]
    assert (measured["decision_swap_regret"] <= measured["bound_from_bias"] + 1e-9).all()
