"""The catalogue uses every built-in name and basis, and its page has every scenario."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import worlds
from registered import built_in

from regretless.forecaster import bases
from regretless.forecaster.models import PANEL
from regretless.market import register
from regretless.market.markets.aggregate import FEEDBACKS
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import catalogue, find, read
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import MarketSpec, PricesSpec

PAGE = Path(__file__).parent.parent.parent / "docs" / "scenarios.md"
FEW = 5  # agents of a cohort
NATURE = ("replayed data",)
FORECASTERS = ("decision-swap", "calibration")  # those that no registry holds
TRAINED = ("plan", "cem", "es", "exp3")  # `regretless train` seats them in any scenario
TOGETHER = "DirectSumBasis"  # all blocks of a broadcast: no file names it


def expected() -> dict[str, list[str]]:
    """List what there is to use, by kind."""
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
    """Load a named scenario with few agents, whose bases are those of many."""
    path = find(name)
    raw = read(path)
    for cohort in raw["cohort"]:
        if "network" not in raw and cohort.get("count", 1) > FEW:
            cohort["count"] = FEW
    return worlds.told(raw, origin=path.parent)


@cache
def bases_of(name: str) -> frozenset[str]:
    """Return the classes of the bases of a scenario's blocks, as built."""
    return frozenset(type(block.basis).__name__ for block in scenario(name).build().game.blocks)


@cache
def uses() -> dict[tuple[str, str], list[str]]:
    """In which scenarios each kind and name occurs."""
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


def test_every_kind_of_basis_that_a_file_may_name_is_among_them() -> None:
    assert len(built_in(register.basis)) == len(expected()["basis"])


def test_the_page_has_every_scenario() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in catalogue() if f"**{name}**" not in page] == []
