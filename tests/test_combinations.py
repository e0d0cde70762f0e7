"""Every pair of keys of [forecaster]: it builds, plays as asked, and keeps its promise."""

from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import worlds
from covering import covering

from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.scalar import Assignments, GainEvents
from regretless.forecaster.models.aggregate import PANEL
from regretless.market.model import MarketModel

ROUNDS = 40
COHORTS = [
    {"name": "linear", "utility": "linear", "count": 3, "actions": 3},
    {"name": "curved", "utility": "mean-variance", "count": 3, "actions": 3},
]


class Feature(NamedTuple):
    """Keys of [forecaster], and how a block's forecaster shows them."""

    keys: dict[str, Any]
    shown: Callable[[Any], bool]


def first(player: Any) -> Any:
    """Return what has the first turn."""
    return player.instances[0]


def parts(events: Any) -> Iterator[Any]:
    if not hasattr(events, "parts"):
        yield events
    for part in getattr(events, "parts", ()):
        yield from parts(part)


def solver(player: Any) -> Any:
    """Return what solves the game over a hull, without its objective."""
    own = first(player).solver
    return getattr(own, "solver", own)


FEATURES = {
    "delay": Feature({"delay": 2}, lambda p: len(p.instances) == 3),
    "intervals": Feature({"intervals": True}, lambda p: isinstance(first(p).events, Intervals)),
    "second-order": Feature(
        {"weights": "second-order"}, lambda p: first(p).events.rule.name == "second-order"
    ),
    "exponential": Feature(
        {"weights": "exponential"}, lambda p: first(p).events.rule.name == "exponential"
    ),
    "image": Feature({"hull": "image"}, lambda p: p.spelled and solver(p).hull == "image"),
    "off_ties": Feature({"off_ties": True}, lambda p: solver(p).off_ties),
    "objective": Feature(
        {"objective": "welfare"}, lambda p: all(own.solver.preferring for own in p.instances)
    ),
    "coordinates": Feature(
        {"events": "coordinates"}, lambda p: isinstance(next(parts(first(p).events)), VectorEvents)
    ),
    "losses": Feature(
        {"events": "losses"},
        lambda p: isinstance(next(parts(first(p).events)), GainEvents | Assignments),
    ),
    "models": Feature({"models": ["last-value"]}, lambda p: p.models == ("last-value",)),
    "alone": Feature({"models": []}, lambda p: p.models == ()),
    "band": Feature({"band": 0.5, "give_up": 0.7}, lambda p: p.described()["kept"] <= 1),
}


def together(*names: str) -> bool:
    """Whether keys go into one table; without a reference there is none that could have a band."""
    keys = [key for name in names for key in FEATURES[name].keys]
    return len(keys) == len({*keys}) and not {"alone", "band"} <= {*names}


GROUPS = covering(
    list(FEATURES), [p for p in combinations(FEATURES, 2) if together(*p)], together, 4
)
RESPONSES: dict[str, dict[str, Any]] = {
    "quantal": {"response": "quantal", "eta": 10.0},
    "ensemble": {"response": "ensemble"},
    "private": {"response": "private"},
    "certainty-equivalent": {"response": "certainty-equivalent"},
    "late": {"enters": 10, "utility": "mean-variance"},
    "leaving": {"exits": 30},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "series.csv"
    rng, t = np.random.default_rng(3), np.arange(ROUNDS)
    wave = 0.5 + 0.3 * np.sin(t[:, None] / 5 + np.arange(2)) * np.where(t[:, None] > 25, -1, 1)
    rows = np.clip(wave + 0.1 * rng.standard_normal((ROUNDS, 2)), 0, 1)
    lines = ["a,b", *(f"{a:.6f},{b:.6f}" for a, b in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def played(table: Path, forecaster: dict[str, Any], **cohort: Any) -> MarketModel:
    """Play the series before two utilities, the first of which responds in its own way."""
    raw = {
        "name": "pair",
        "rounds": ROUNDS,
        "seed": 1,
        "data": {"file": table.name, "outcomes": ["a", "b"], "scale": {"a": [0, 1], "b": [0, 1]}},
        "cohort": [COHORTS[0] | cohort, COHORTS[1]],
        "forecaster": forecaster,
    }
    return worlds.played(worlds.told(raw, origin=table.parent), log_every=ROUNDS)


def check_promises(model: MarketModel) -> None:
    """Check that no regret is above a bound, nor a bound from variation above the other."""
    agents = model.agents_frame()
    told = agents["bound"].notna()
    assert (told == (agents["guarantee"] != "none")).all()
    kept = agents[told]
    assert (kept["swap_regret"] <= kept["bound"]).all()
    assert (kept["bound_from_variation"] <= kept["bound"]).all()
    assert not any("nan" in note for note in model.notes)


@pytest.mark.parametrize("group", GROUPS, ids=", ".join)
def test_every_pair_of_keys_plays_as_asked_and_keeps_its_promise(
    group: tuple[str, ...], table: Path
) -> None:
    """A few keys at once, since all pairs are many."""
    features = [FEATURES[name] for name in group]
    model = played(table, {k: v for feature in features for k, v in feature.keys.items()})
    for block in model.game.blocks:
        assert all(feature.shown(block.forecaster) for feature in features)
        named = {"models", "alone"} & {*group}
        assert named or block.forecaster.models == tuple(PANEL)
    assert (model.agents_frame()["guarantee"] == "decision-swap").all()
    check_promises(model)


@pytest.mark.parametrize(
    ("feature", "response"),
    [
        (feature, response)
        for (i, feature), (j, response) in product(enumerate(FEATURES), enumerate(RESPONSES))
        if (i + j) % 3 == 0
    ],
)
def test_every_key_goes_with_every_response_and_stay(
    feature: str, response: str, table: Path
) -> None:
    """A promise is there where a theorem covers it; the other cohort has one in any case."""
    model = played(table, FEATURES[feature].keys, **RESPONSES[response])
    assert FEATURES[feature].shown(model.game.blocks[-1].forecaster)
    agents = model.agents_frame()
    assert (agents.loc[agents["cohort"] == "curved", "guarantee"] == "decision-swap").all()
    check_promises(model)


RETAIL = {
    "utility": "newsvendor",
    "count": 3,
    "actions": 2,
    "parameters": {"underage": [1.0, 9.0], "overage": 1.0, "orders": [[0.0, 1.0]]},
    "basis": {"kind": "relu", "error": 0.3},  # one number
}
WIDER = RETAIL["parameters"] | {"orders": [[0.0, 0.3, 0.7, 1.0]]}
ANYBODY = [
    RETAIL | {"name": "listed"},
    RETAIL | {"name": "liars", "reports": {"underage": 9.0}},
    RETAIL | {"name": "late", "enters": 10, "actions": 4, "parameters": WIDER},
]
del ANYBODY[2]["basis"]


def before_anybody(table: Path, keys: dict[str, Any], **cohort: Any) -> MarketModel:
    """Play one outcome before all of them, the listed ones responding in their own way."""
    raw = {
        "name": "anybody",
        "rounds": ROUNDS,
        "data": {"file": table.name, "outcomes": ["a"], "scale": {"a": [0, 1]}},
        "cohort": [ANYBODY[0] | cohort, *ANYBODY[1:]],
        "forecaster": {"events": "everyone"} | keys,
    }
    return worlds.played(worlds.told(raw, origin=table.parent), log_every=ROUNDS)


@pytest.mark.parametrize(
    "feature", [name for name in FEATURES if name not in ("coordinates", "losses")]
)
def test_whoever_it_is_has_a_bound_where_everyone_is_protected(feature: str, table: Path) -> None:
    """Of one outcome: who is listed, who reports something else, and who comes late."""
    model = before_anybody(table, FEATURES[feature].keys)
    assert FEATURES[feature].shown(model.game.blocks[0].forecaster)
    agents = model.agents_frame().set_index("cohort")
    check_promises(model)
    assert (agents.loc[["listed", "liars"], "guarantee"] == "decision-swap").all()
    assert (agents.loc["late", "guarantee"] == "decision-swap").all()


@pytest.mark.parametrize("response", [name for name in RESPONSES if name != "late"])
def test_everyone_is_protected_beside_every_response(response: str, table: Path) -> None:
    model = before_anybody(table, {}, **RESPONSES[response])
    check_promises(model)
    agents = model.agents_frame().set_index("cohort")
    assert (agents.loc[["liars", "late"], "guarantee"] == "decision-swap").all()


@pytest.mark.parametrize("feature", sorted({*FEATURES} - {"alone"}))
def test_the_calibrated_recipe_goes_with_what_it_wraps(feature: str, table: Path) -> None:
    """It promises no decision swap regret, whatever it is made of."""
    keys = FEATURES[feature].keys | ({"reference": "running-mean"} if feature == "band" else {})
    model = played(table, {"kind": "calibration", "cells": 3} | keys)
    for block in model.game.blocks:
        player = block.forecaster
        while not player.instances:
            player = player.inner
        assert FEATURES[feature].shown(player)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert len(model.biases_frame())


@pytest.mark.parametrize("keys", [{"delay": 3}, {"hull": "image"}, {"delay": 3, "hull": "image"}])
def test_a_model_alone_is_told_late_and_has_ensembles(keys: dict[str, Any], table: Path) -> None:
    """The last value, three rounds late, is that of four rounds ago."""
    model = played(table, {"kind": "last-value"} | keys)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert all(block.forecaster.spelled == ("hull" in keys) for block in model.game.blocks)
    said = model.forecasts_frame().query("block == 'linear'")[["p_0", "p_1"]].to_numpy()
    came = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    back = 1 + keys.get("delay", 0)
    assert said[back:] == pytest.approx(came[:-back], abs=1e-9)
