"""Every named scenario runs, its description holds, and every built-in name is in one of them.

The longer ones are played in part, and at their own size, with all measures, by ``make catalogue``,
which takes minutes. There the figures on which descriptions rest are measured and compared with the
text: a figure that it bounds something by (``BELOW``), or one that it rounds to (``ABOUT``).
"""

import re
from collections.abc import Callable
from functools import cache, reduce
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import built_in_names, play_to_end, read_catalogue_scenario, read_scenario

from regretless.forecaster.models import PANEL
from regretless.forecaster.models.auto_series import MODEL_CLASSES
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.exploitability.information_design import revenue_cap
from regretless.market.markets.aggregate import FEEDBACKS
from regretless.market.model import MarketModel
from regretless.scenarios import load
from regretless.scenarios.config.files import catalogue
from regretless.scenarios.listing import REGISTRIES, listing
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run


def test_a_description_is_of_the_file_as_it_stands() -> None:
    assert load("pigou").spec.description
    assert not load("pigou", rounds=3).spec.description


@pytest.fixture(scope="module")
def crop_choice() -> MarketModel:
    """Return the model of the first scenario that a reader runs, at its own size."""
    return play_to_end(load("crop-choice"), log_every=500)


def test_no_grower_would_have_gained_a_hundredth(crop_choice: MarketModel) -> None:
    regret = crop_choice.agents_frame()["decision_swap_regret"]
    assert len(regret) == 200
    assert regret.max() < 0.01


def test_the_growers_regret_is_above_omniprediction_s_and_below_the_bounds(
    crop_choice: MarketModel,
) -> None:
    agents = crop_choice.agents_frame()
    regret = agents["decision_swap_regret"]
    assert (regret >= agents["omniprediction_regret"] - 1e-12).all()
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (regret <= agents["bound"]).all()


def test_biases_of_the_growers_events_are_below_their_bound(crop_choice: MarketModel) -> None:
    forecaster = crop_choice.game.blocks[0].forecaster
    assert forecaster.certificate_sum <= 0.1 * np.sqrt(crop_choice.played)
    bound = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert bias.max() <= bound.bias(occupancy) + 1e-9


@pytest.mark.parametrize("kind", ["studies", *REGISTRIES])
def test_names_that_files_may_use_are_listed_with_a_meaning(kind: str) -> None:
    lines = listing(kind, verbose=True)
    assert lines
    for line in lines:
        name_and_meaning = line.split(maxsplit=1)
        assert len(name_and_meaning) == 2


@pytest.mark.parametrize("kind", ["scenarios", "studies"])
def test_every_bundled_file_has_its_line(kind: str) -> None:
    bundled = {line.split()[0] for line in listing(kind, verbose=True)}
    listed = {line.split()[0] for line in listing(kind) if line.startswith("  ")}
    assert listed == bundled


def test_an_unknown_kind_of_names_is_refused_with_the_one_that_is_near() -> None:
    with pytest.raises(UserError, match="list: unknown kind 'utilties'; did you mean 'utilities'"):
        listing("utilties")


KINDS_IN_FILES = [
    "utility",
    "response",
    "learner",
    "agent",
    "adversary",
    "forecaster",
    "policy",
    "market",
    "basis",
]
# whom `regretless train` seats in any scenario, markets by feedback, models that are distributions
# or need a package,
# and the default models
IN_NO_FILE = {
    "always",
    "cma",
    "coin",
    "past-outcomes",
    "plan",
    "prices",
    "seasonal-regression",
    "with-errors",
    *MODEL_CLASSES,
    *(model["kind"] for model in PANEL.values()),
}


def default_bases(name: str) -> set[str]:
    """Return the bases that the blocks of a scenario have, chosen or by default."""
    cohorts = load(name).spec.cohort
    small = [f"cohort.{cohort.name}.count=3" for cohort in cohorts]
    return {block.name for block in read_scenario(name, *small).build().game.blocks}


def test_every_built_in_name_is_used() -> None:
    """A basis is also in use where it is the default of a cohort."""
    names = {*FEEDBACKS}
    for kind in KINDS_IN_FILES:
        names |= {*built_in_names(getattr(register, kind))}
    files = "".join(path.read_text(encoding="utf-8") for path in catalogue().values())
    used_by_default = default_bases("consumers") | default_bases("mixed-bazaar")
    unused = [name for name in names - IN_NO_FILE - used_by_default if f'"{name}"' not in files]
    assert sorted(unused) == []


def test_the_page_has_every_scenario() -> None:
    page = (Path(__file__).parents[2] / "docs/scenarios.md").read_text(encoding="utf-8")
    assert [name for name in catalogue() if f"**{name}**" not in page] == []


# Figures of descriptions.

Tables = dict[str, Any]
ABOUT = "about"  # the text rounds the figure
BELOW = "below"  # the text bounds it
PRICES = "cohort.traders.parameters.weights=[[0.0, -1.0], [-%s, 0.0]]"
CHANGES = {
    "running mean": 'forecaster={kind="running-mean"}',
    "decision swap": 'forecaster={kind="decision-swap"}',
    "seasonal": 'forecaster={kind="seasonal-naive", rate=0.2}',
    "myopic": 'adversary={kind="myopic"}',
    "takers": "cohort.firms.parameters.slope=0.0",
    "cheap": PRICES % "1.161834",  # exp(0.15)
    "dear": PRICES % "1.284025",  # exp(0.25)
    "censored": "market.seen='sales'",
    "herd": "cohort.followers.response='best-response'",
    "listen": "cohort.guests.response='best-response'",
    "few histories": "cohort.agents.settings={memory=3, strategies=2}",
    "toll": "market.toll=1.0",
    "full": "market.start=1.0",
}
COLUMN_OF = {"regret": "decision_swap_regret", "loss": "mean_loss"}
OPERATIONS: dict[str, Callable[[float, float], float]] = {" - ": sub, " min ": min, " max ": max}


@cache
def play_changed(name: str, change: str) -> Tables:
    """Play a named scenario at its own size with one key or table replaced."""
    model = play_to_end(read_catalogue_scenario(name, CHANGES[change]), log_every=10**6)
    market = {} if model.game.market is None else model.game.market.described()
    return {"agents": model.agents_frame(), "rounds": model.rounds_frame(), "market": market}


def figure(tables: Tables, text: str) -> float:
    """Return a figure in the words of ``CLAIMED``: ``FACTOR * HOW COLUMN COHORT... | CHANGE``.

    A number alone is itself. Figures are joined by ``-``, ``min`` and ``max``.
    """
    for operator, join in OPERATIONS.items():
        if operator in text:
            return reduce(join, [figure(tables, part) for part in text.split(operator)])
    text, _, change = text.partition(" | ")
    if change:
        tables = play_changed(tables["scenario"], change)
    factor, _, measure = text.rpartition(" * ")
    statistic, *names = measure.split()
    value = measured(tables, statistic, *names) if names else float(statistic)
    return float(factor or 1) * value


def measured(tables: Tables, statistic: str, column: str, *names: str) -> float:
    """Return a mean or greatest value of agents, of some cohorts, or of rounds.

    ``late``: the mean of the second half of the rounds; ``hops``: the regret of who hears so late;
    ``market``: what a market says, where there are many for a name or a place.
    """
    agents = tables["agents"]
    rounds = tables["rounds"]
    if statistic == "market":
        return market_value(tables["market"][column], *names)
    if statistic == "hops":
        return float(agents.loc[agents["distance"] == int(column), "decision_swap_regret"].mean())
    if statistic == "late":
        return float(rounds[column].iloc[len(rounds) // 2 :].mean())
    if column in rounds:
        return float(rounds[column].agg(statistic))
    members = agents[agents["cohort"].isin(names)] if names else agents
    return float(members[COLUMN_OF.get(column, column)].agg(statistic))


def market_value(value: Any, *names: str) -> float:
    """Return one number of what a market says: of a list by its place, of a table by its name."""
    if isinstance(value, list):
        return float(value[int(names[0])])
    if names:
        return float(value[names[0]])
    return float(value)


PLANTS = "plant-leontief plant-ramps plant-grid plant-exact"
MEAN_BASED = ("hedge", "follow-the-leader", "regret-matching")
SURPLUSES = [f"mean leader_surplus {name}" for name in MEAN_BASED]
LEADER = [f"mean leader_payoff_{place}" for place in range(3)]
CAUGHT = [f"100 * mean leader_payoff_{place}" for place in range(10) if place != 1]
EARNED_IN_LIMIT = "mean leader_payoff_0 - mean leader_surplus hedge"
POSTED_PRICE_REVENUE = str(revenue_cap([0.25, 0.5, 1], [0.5, 0.25, 0.25]))
CLAIMED = [  # of whom, how, a pattern around the figure, and what it is
    ("assembly-lines", BELOW, r"is below ([\d.]+)\.", "max swap_regret workshops"),
    ("assembly-lines", BELOW, r"at most ([\d.]+) in each", f"max swap_regret {PLANTS}"),
    ("bait", ABOUT, r"earns ([\d.]+) per round from followers", "mean leader_payoff_0"),
    ("bait", ABOUT, r"and ([\d.]+) from Hedge", "mean leader_payoff_1"),
    ("bait", ABOUT, r"than the ([\d.]+) of", POSTED_PRICE_REVENUE),
    ("bank-run", ABOUT, r"a share of ([\d.]+) withdraws", "late y_0"),
    ("bank-run", ABOUT, r"full queues ([\d.]+),", "late y_0 | full"),
    ("braess", BELOW, r"fewer than (\d+) in", "100 - 100 * late flow_4"),
    ("braess", ABOUT, r"takes ([\d.]+) hours", "late time_0"),
    ("braess", ABOUT, r"instead of ([\d.]+)\.", "late time_0 | toll"),
    ("call-auction", ABOUT, r"gain ([\d.]+) per round", "market gains_from_trade"),
    ("call-auction", ABOUT, r"prices of ([\d.]+),", "late price_0"),
    ("beating-mean-based-learners", ABOUT, r"surplus of ([\d.]+) to", " min ".join(SURPLUSES)),
    ("beating-mean-based-learners", ABOUT, r"to ([\d.]+) per round", " max ".join(SURPLUSES)),
    ("betting", ABOUT, r"own ([\d.]+) of all wealth", "market wealth_share followers"),
    ("cartel", BELOW, r"at most ([\d.]+), those", "max swap_regret importers"),
    ("cartel", BELOW, r"smoothly ([\d.]+)\.", "max swap_regret smooth"),
    ("chain-store", ABOUT, r"for ([\d.]+) per round\.", "mean leader_payoff"),
    ("chain-store", ABOUT, r"market, for ([\d.]+)\.", "mean leader_payoff | myopic"),
    ("chicken", BELOW, r"is below ([\d.]+)\.", "max swap_regret"),
    ("consumers", BELOW, r"is below ([\d.]+);", "max regret"),
    ("consumers", ABOUT, r"it is ([\d.]+)\.", "max regret | running mean"),
    ("crop-choice", BELOW, r"less than ([\d.]+) per day", "max regret"),
    ("crowding", ABOUT, r"\(concentration ([\d.]+);", "market concentration"),
    ("crowding", BELOW, r"is below ([\d.]+)\.", "max swap_regret followers"),
    ("currency-peg", ABOUT, r"loss ([\d.]+) higher", "mean external_regret"),
    ("currency-peg", ABOUT, r"swap regret is ([\d.]+)\.", "max regret | decision swap"),
    ("el-farol", ABOUT, r"has mean (\d+)", "100 * market mean 0"),
    ("el-farol", ABOUT, r"standard deviation (\d+),", "100 * market deviation 0"),
    ("el-farol", ABOUT, r"the deviation (\d+):", "100 * market deviation 0 | listen"),
    ("fundamentalists", ABOUT, r"rests ([\d.]+) away", "late deviation_0"),
    ("first-price-learners", ABOUT, r"seller earned ([\d.]+) per round", "market revenue"),
    ("investors", BELOW, r"less than ([\d.]+) per day", "max regret"),
    ("late-news", BELOW, r"regret below ([\d.]+),", "hops 0"),
    ("late-news", ABOUT, r"one hop away ([\d.]+),", "hops 1"),
    ("late-news", ABOUT, r"a week away ([\d.]+)\.", "hops 7"),
    ("minority-game", ABOUT, r"standard deviation of ([\d.]+),", "market deviation 0"),
    ("minority-game", ABOUT, r"it has ([\d.]+), as", "market deviation 0 | few histories"),
    ("mixed-bazaar", BELOW, r"is below ([\d.]+)\.", "max swap_regret"),
    ("oligopoly", ABOUT, r"price of ([\d.]+) and", "late y_0"),
    ("oligopoly", ABOUT, r"output of ([\d.]+);", "late quantity_0"),
    ("oligopoly", ABOUT, r"competitive ([\d.]+) and", "late y_0 | takers"),
    ("oligopoly", ABOUT, r"and ([\d.]+)\. The largest", "late quantity_0 | takers"),
    ("oligopoly", BELOW, r"is below ([\d.]+)\.", "max regret max max regret | takers"),
    ("paying-to-know", ABOUT, r"share of ([\d.]+) buys", "late share_0"),
    ("paying-to-know", ABOUT, r"0.15 it is ([\d.]+) and", "late share_0 | cheap"),
    ("paying-to-know", ABOUT, r"0.25 it is ([\d.]+),", "late share_0 | dear"),
    ("paying-to-know", BELOW, r"is below ([\d.]+)\.", "max regret"),
    ("own-draws", ABOUT, r"average loss of ([\d.]+) and", "mean loss"),
    ("own-draws", ABOUT, r"swap regret of ([\d.]+);", "mean swap_regret"),
    ("own-draws", ABOUT, r"a loss of ([\d.]+) and", "mean loss | herd"),
    ("own-draws", ABOUT, r"a regret of ([\d.]+)\.", "mean swap_regret | herd"),
    ("pigou", ABOUT, r"(\d+) in 100 drivers", "100 * late flow_1"),
    ("pigou", ABOUT, r"takes ([\d.]+) hours", "late time_0"),
    ("pigou", ABOUT, r"takes ([\d.]+)\.$", "late time_0 | toll"),
    ("producers", BELOW, r"is below ([\d.]+), and", "max swap_regret"),
    ("producers", ABOUT, r"loss is ([\d.]+) lower", "mean loss | running mean - mean loss"),
    ("pump-and-dump", ABOUT, r"earns ([\d.]+) per round", " min ".join(LEADER)),
    ("pump-and-dump", ABOUT, r"earned it ([\d.]+) from", EARNED_IN_LIMIT),
    ("quiet-times", BELOW, r"at most ([\d.]+)\.", "max swap_regret"),
    ("quiet-times", BELOW, r"less than ([\d.]+)\.", "max swap_regret | decision swap"),
    ("retailers", ABOUT, r"loss is ([\d.]+) per hour", "mean loss"),
    ("retailers", ABOUT, r"where it is ([\d.]+) with", "mean loss | running mean"),
    ("retailers", BELOW, r"less than ([\d.]+) for", "max regret"),
    ("rule-breaker", BELOW, r"wins less than ([\d.]+) per", "mean leader_payoff | myopic"),
    ("rush-hours", ABOUT, r"loss is ([\d.]+) per hour", "mean loss"),
    ("rush-hours", ABOUT, r"it is ([\d.]+) with the best", "mean loss | seasonal"),
    ("rush-hours", ABOUT, r"and ([\d.]+) with the running", "mean loss | running mean"),
    ("sealed-bids", ABOUT, r"seller earns ([\d.]+) per round", "late revenue_0"),
    ("sealed-bids", BELOW, r"at most ([\d.]+)\.", "max swap_regret"),
    ("second-price", ABOUT, r"seller earns ([\d.]+) per round", "late revenue_0"),
    ("second-price-learners", ABOUT, r"seller earned ([\d.]+) per round", "market revenue"),
    ("self-fulfilling", ABOUT, r"\(concentration ([\d.]+);", "market concentration"),
    ("self-fulfilling", ABOUT, r"to ([\d.]+), although", "mean loss"),
    ("selling-to-learners", ABOUT, r"earns ([\d.]+) per buyer", "mean leader_payoff_0"),
    ("selling-to-learners", ABOUT, r"and ([\d.]+) from regret matching", "mean leader_payoff_1"),
    ("selling-to-learners", ABOUT, r"forecast pay ([\d.]+)\.", "mean leader_payoff_2"),
    ("setting-a-standard", BELOW, r"at most ([\d.]+), from", "2 - " + " min ".join(LEADER)),
    ("shops", ABOUT, r"\(([\d.]+) on average", "market level"),
    ("shops", ABOUT, r"sales stock ([\d.]+) and", "market level | censored"),
    ("shops", BELOW, r"saw, below ([\d.]+) per", "max swap_regret | censored"),
    ("shops", ABOUT, r"instead of ([\d.]+)\.", "max swap_regret"),
    ("smugglers", ABOUT, r"catch (\d+) to", " min ".join(CAUGHT)),
    ("smugglers", ABOUT, r"to (\d+) in 100", " max ".join(CAUGHT)),
    ("spite", ABOUT, r"reaches ([\d.]+) in 1,000", "max swap_regret"),
    ("spite", ABOUT, r"would reach ([\d.]+)\.", "max swap_regret | running mean"),
    ("spite", ABOUT, r"average loss is ([\d.]+),", "mean loss"),
    ("spite", ABOUT, r"and ([\d.]+) with the running mean\.", "mean loss | running mean"),
    ("survival", ABOUT, r"own ([\d.]+), those", "market wealth_share followers"),
    ("survival", ABOUT, r"themselves ([\d.]+),", "market wealth_share learners"),
    ("survival", ABOUT, r"cash ([\d.]+):", "market wealth_share cautious"),
    ("trend-followers", ABOUT, r"have ([\d.]+) against", "max regret | decision swap"),
    ("umbrellas", ABOUT, r"gained ([\d.]+) per day", "mean regret"),
    ("umbrellas", ABOUT, r"it is ([\d.]+), and", "mean regret | decision swap"),
    ("umbrellas", ABOUT, r"loss is ([\d.]+) instead", "mean loss | decision swap"),
    ("umbrellas", ABOUT, r"instead of ([\d.]+)\.", "mean loss"),
    ("ways-of-listening", ABOUT, r"regret of ([\d.]+) per round", "mean swap_regret certain"),
    ("ways-of-listening", ABOUT, r"smoothly ([\d.]+)\.", "mean swap_regret smooth"),
    ("ways-of-listening", BELOW, r"is below ([\d.]+)\.", "mean swap_regret sophisticated"),
    ("ways-of-listening", BELOW, r"is below ([\d.]+)\.", "mean swap_regret ensemble"),
]


def is_true(relation: str, claimed: str, figure: float) -> bool:
    """Return whether a figure is what the text says; one that is rounded is so to its digits."""
    if relation == BELOW:
        return figure < float(claimed)
    n_digits = len(claimed.partition(".")[2])
    return abs(figure - float(claimed)) <= 0.5 * 10.0**-n_digits + 1e-9


@pytest.mark.parametrize(
    ("relation", "claimed", "inside", "outside"),
    [(ABOUT, "0.05", 0.0549, 0.0551), (BELOW, "0.02", 0.019, 0.021)],
)
def test_a_claim_is_true_to_its_last_digit(
    relation: str, claimed: str, inside: float, outside: float
) -> None:
    assert is_true(relation, claimed, inside)
    assert not is_true(relation, claimed, outside)


@pytest.mark.catalogue
@pytest.mark.parametrize("name", catalogue())
def test_a_scenario_has_all_measures_and_its_description_holds(name: str, tmp_path: Path) -> None:
    """No bound is exceeded, and every claim, as it stands in the file, has its figure."""
    scenario = load(name)
    options = Options(tmp_path / name)
    if scenario.spec.logs == "full":  # one that keeps sums alone logs no round unless it is asked
        options = Options(tmp_path / name, log_every=100)
    run(scenario, options)
    manifest, tables = read_run(tmp_path / name)
    check_complete(scenario.spec.rounds, manifest, tables)
    check_bounds(tables["agents"])
    assert len(tables["agents"]) == sum(cohort.count for cohort in scenario.spec.cohort)
    tables |= {"scenario": name, "market": manifest.get("market", {})}
    false_claims = {}
    for _, how, pattern, text in [row for row in CLAIMED if row[0] == name]:
        claim = re.search(pattern, scenario.spec.description)
        assert claim is not None, pattern
        value = figure(tables, text)
        if not is_true(how, claim[1], value):
            false_claims[f"{how} {claim[1]}: {pattern}"] = value
    assert false_claims == {}


def check_complete(n_rounds: int, manifest: Tables, tables: Tables) -> None:
    """Assert that a run is complete, and that everybody who is followed has an exploitability."""
    assert manifest["status"] == "complete"
    logs_every_round = manifest["config"]["logs"] == "full"
    assert len(tables["rounds"]) == (n_rounds if logs_every_round else 1)
    cohorts = manifest["exploitability"]["cohorts"].values()
    assert sum(cohort["unsolved"] for cohort in cohorts) == 0
    n_followed = sum(cohort["followed"] for cohort in cohorts)
    assert tables["agents"]["exploitability"].notna().sum() == n_followed


def check_bounds(agents: pd.DataFrame) -> None:
    """Assert that no agent's regret is above a bound; that from the bias it may reach."""
    for bound, slack in (("bound", 0.0), ("bound_from_bias", 1e-9)):
        bounded = agents[agents[bound].notna()]
        assert (bounded["decision_swap_regret"] <= bounded[bound] + slack).all()
