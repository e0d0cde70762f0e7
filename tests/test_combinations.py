"""Every pair of features: it builds, plays and keeps what was asked for, or a table says why not.

Two cohorts with one utility and one with another follow a forecast of replayed outcomes. A feature
is a handful of keys; features of agents are those of the first cohort, and where two are about how
it responds, the second takes the other one.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import cohort_table, play_to_end, read_scenario

from regretless import register
from regretless.agents import ScriptedAgent
from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.models.aggregate import PANEL, PANEL_WITH_ERRORS
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear
from regretless.market.markets import Accounts, Market
from regretless.market.model import MarketModel
from regretless.scenarios.config.files import assign, read
from regretless.scenarios.config.validation import resolved

GOLDEN_KEYS = Path(__file__).parent / "golden" / "keys"
PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"
GOLDEN_FILE = read(GOLDEN_KEYS / "models-default.toml")
LINEAR, CARA = GOLDEN_FILE["cohort"]
POLICY = {"kind": "threshold", "feature": "k", "at": 3, "below": 0, "above": 2}
TWO_UTILITIES: dict[str, Any] = GOLDEN_FILE | {
    "name": "pair",
    "rounds": 6,
    "policy": {"late-hours": POLICY},
    "cohort": [
        LINEAR | {"name": "first", "count": 3},
        LINEAR | {"name": "second", "count": 2},
        CARA | {"name": "third", "count": 2},
    ],
}
TILTS = [[-1.0], [0.0], [1.0]]
# for ``forecaster.events = "everyone"``: an outcome of one number, in which all losses are linear
ONE_NUMBER = TWO_UTILITIES | {
    "data": TWO_UTILITIES["data"] | {"outcomes": ["a"], "scale": {"a": [0.0, 1.0]}},
    "cohort": [
        cohort_table(name, count, 3, "pair-tilt", parameters={"weights": TILTS})
        for name, count in (("first", 3), ("second", 2), ("third", 2))
    ],
}
RESPONSE = "cohort.first.response"
MAX_FEATURES = 5  # at once
MAX_KEYS = 4  # of [forecaster] at once
ALL_MEASURES = ["external", "swap", "decision_swap", "contextual_swap"]


def page_rows() -> list[list[str]]:
    """Return the rows of the page's table: a feature, those that do not go with it, and why."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return rows[1:]


ROWS = page_rows()


@register.utility("pair-tilt")
def tilted(population: Any, *, weights: Any) -> Linear:
    """Losses that rise, stay or fall with the one number, in a tilt that an agent may misreport."""
    tilts = np.broadcast_to(population.table("weights", weights), (population.count, 3, 1))
    return Linear(tilts, offset=(1.0 - tilts[..., 0]) / 2.0)


@register.agent("pair-agent")
class Follower(ScriptedAgent):
    """Does what is best at the forecast outcome, of what it can afford."""

    def act(self, forecast: Any, context: Any) -> int:
        losses = self.loss.losses(np.asarray(forecast.label))
        if self.affordable is not None:
            losses = np.where(self.affordable, losses, 2.0)
        return int(losses.argmin())


def first_action_units(cohorts: Any) -> list[Any]:
    """Return for each cohort one unit where an agent takes the first action (agents, 3, 1)."""
    return [np.tile([1.0, 0.0, 0.0], (len(cohort.loss), 1))[..., None] for cohort in cohorts]


@register.market("pair-market")
class Crowded(Market):
    """The more agents take the first action, the lower the first outcome."""

    supports_multiplicity = True

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        share = self.chosen(first_action_units(self.cohorts), decisions).sum() / self.agents
        factors = np.ones(len(fundamental))
        factors[0] = 1.0 - 0.2 * min(share, 1.0)
        return fundamental * factors


@register.market("pair-bank")
class Bank(Market):
    """The first action costs a coin that agents own few of."""

    def __init__(self, cohorts: Any, rng: Any) -> None:
        super().__init__(cohorts, rng)
        self.accounts = Accounts(cohorts, cash=2.0)

    def affordable(self, cohort_index: int) -> Any:
        cash = self.accounts.cash[self.accounts.places[self.cohorts[cohort_index].name]]
        return np.stack([cash >= 1.0, cash >= 0.0, cash >= 0.0], axis=1)

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        due = self.chosen(first_action_units(self.cohorts), decisions)[:, 0]
        self.accounts.move(-np.minimum(due, self.accounts.cash[:-1]))
        return fundamental


FEATURES: dict[str, dict[str, Any]] = {
    "delay": {"forecaster.delay": 2},
    "intervals": {"forecaster.intervals": True},
    "second-order weights": {"forecaster.weights": "second-order"},
    "exponential weights": {"forecaster.weights": "exponential"},
    "image": {"forecaster.hull": "image"},
    "off-ties": {"forecaster.off_ties": True},
    "objective": {"forecaster.objective": {"first": [0.2, 0.5, 0.9]}},
    "welfare": {"forecaster.objective": "welfare"},
    "events of coordinates": {"forecaster.events": "coordinates"},
    "events of losses": {"forecaster.events": "losses"},
    "everyone": {"forecaster.events": "everyone"},
    "models": {"forecaster.models": ["last-value", "running-mean"]},
    "reference": {"forecaster.reference": "running-mean"},
    "no models": {"forecaster.models": []},
    "band": {"forecaster.band": 0.5, "forecaster.give_up": 0.7},
    "model alone": {"forecaster.kind": "last-value"},
    "calibration": {"forecaster.kind": "calibration"},
    "quantal": {RESPONSE: "quantal", "cohort.first.eta": 4.0},
    "ensemble": {RESPONSE: "ensemble"},
    "certainty-equivalent": {RESPONSE: "certainty-equivalent"},
    "private": {RESPONSE: "private"},
    "learner": {RESPONSE: "hedge"},
    "own agent": {RESPONSE: "pair-agent"},
    "entry by round": {"cohort.first.enters": 2},
    "exit by round": {"cohort.first.exits": 4},
    "learners of another utility": {"cohort.third.response": "hedge"},
    "entry of another utility": {"cohort.third.enters": 2},
    "entry by rate": {"cohort.first.entry_rate": 0.5},
    "exit by rate": {"cohort.first.exit_rate": 0.3},
    "multiplicity": {"cohort.first.types": 2, "cohort.first.multiplicity": True},
    "cover": {"cohort.first.cover": {"kind": "snap"}},
    "policies": {"cohort.first.policies": ["late-hours"]},
    "contextual": {"cohort.first.measures": ALL_MEASURES, "cohort.first.policies": ["late-hours"]},
    "idiosyncratic": {"cohort.first.idiosyncratic": {"deviation": 0.1}},
    "reports": {"cohort.first.reports": {"weights": [[0.8, 0.2]] * 3}},
    "network": {"network": {"graph": "small-world", "neighbours": 2, "subscribers": 0.5}},
    "lagged prices": {"market": {"feedback": "lagged"}},
    "same-round prices": {"market": {"feedback": "same-round"}},
    "another market": {"market": {"kind": "pair-market"}},
    "accounts": {"market": {"kind": "pair-bank"}},
    "budget": {"market": {"kind": "pair-bank"}, "cohort.first.budget_constraint": True},
    "polytope": {"space": {"vertices": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]}},
}

# how a forecaster with a promise shows each of its keys
SHOWS_KEY: dict[str, Callable[[Any], bool]] = {
    "delay": lambda p: len(p.instances) == 3,
    "intervals": lambda p: isinstance(first_turn(p).events, Intervals),
    "second-order weights": lambda p: first_turn(p).events.rule.name == "second-order",
    "exponential weights": lambda p: first_turn(p).events.rule.name == "exponential",
    "image": lambda p: p.has_ensembles and solver_of(p).hull == "image",
    "off-ties": lambda p: solver_of(p).off_ties,
    "welfare": lambda p: all(turn.solver.preferring for turn in p.instances),
    "events of coordinates": lambda p: isinstance(first_events(p), VectorEvents),
    "events of losses": lambda p: isinstance(first_events(p), GainEvents | Assignments),
    "models": lambda p: p.models == ("last-value", "running-mean"),
    "no models": lambda p: p.models == (),
    "band": lambda p: p.described()["kept"] <= 1,
}
PLAYED_IN_PAIRS = [name for name in FEATURES if name not in ("no models", "band")]
RESPONSES = ["quantal", "ensemble", "private", "certainty-equivalent"]
STAYS = ["entry by round", "exit by round"]

IN_ONE_NUMBER: dict[str, dict[str, Any]] = {  # features whose keys depend on the outcome's size
    "reports": {"cohort.first.reports": {"weights": TILTS[::-1]}},
    "polytope": {"space": {"vertices": [[0.0], [1.0]]}},
}


def first_turn(forecaster: Any) -> Any:
    """Return what has the first turn of a forecaster with a delay, or its only one."""
    return forecaster.instances[0]


def first_events(forecaster: Any) -> Any:
    """Return the first of events that are a sum, or all of one kind."""
    events = first_turn(forecaster).events
    while hasattr(events, "parts"):
        events = events.parts[0]
    return events


def solver_of(forecaster: Any) -> Any:
    """Return what solves the game over a hull, without its objective."""
    solver = first_turn(forecaster).solver
    return getattr(solver, "solver", solver)


def keys_of_feature(name: str, *, in_one_number: bool) -> dict[str, Any]:
    """Return the keys of a feature in the scenario that is played."""
    if in_one_number and name in IN_ONE_NUMBER:
        return IN_ONE_NUMBER[name]
    return FEATURES[name]


def keys_of(*names: str) -> dict[str, Any] | None:
    """Join the keys of features; None where two give one key different values.

    Of two features that are about a response the second is of the second cohort.
    """
    joined: dict[str, Any] = {}
    for name in names:
        keys = keys_of_feature(name, in_one_number="everyone" in names)
        if RESPONSE in keys and RESPONSE in joined:
            keys = {key.replace("first", "second"): value for key, value in keys.items()}
        if any(joined.get(key, value) != value for key, value in keys.items()):
            return None
        joined |= keys
    # the kind first: it makes the table anew
    return dict(sorted(joined.items(), key=lambda item: item[0] != "forecaster.kind"))


def play_keys(keys: dict[str, Any] | None, **scenario_keys: Any) -> MarketModel:
    """Play the scenario with these keys, after a look whether its resolved file has kept them."""
    assert keys is not None
    is_one_number = keys.get("forecaster.events") == "everyone"
    raw = deepcopy(ONE_NUMBER if is_one_number else TWO_UTILITIES) | scenario_keys
    for key, value in keys.items():
        assign(raw, key, value)
    scenario = read_scenario(raw, origin=GOLDEN_KEYS)
    check_kept(keys, resolved(scenario.spec))
    return play_to_end(scenario)


def value_at(config: dict[str, Any], key: str) -> Any:
    """Return what a file has at a dotted key, where cohorts are known by their names."""
    value: Any = config
    for step in key.split("."):
        if isinstance(value, list):
            value = {table["name"]: table for table in value}
        value = value[step]
    return value


def check_kept(keys: dict[str, Any], config: dict[str, Any]) -> None:
    """Fail unless the resolved file, which the manifest holds, says what was asked for."""
    for key, expected_value in keys.items():
        value = value_at(config, key)
        if isinstance(expected_value, dict):
            assert expected_value.items() <= value.items(), key
        elif isinstance(expected_value, str) and isinstance(value, dict):
            assert value["kind"] == expected_value, key
        elif isinstance(expected_value, list) and isinstance(value, dict):
            assert list(value) == expected_value, key
        else:
            assert value == expected_value, key


def reasons(pair: tuple[str, ...]) -> list[str]:
    """Return why the page says that a pair never goes together."""
    return [why for name, others, why in ROWS if name in pair and {*pair} & {*others.split(", ")}]


def is_playable(*names: str) -> bool:
    """Return whether features fit into one scenario, and no row of the table speaks of any two."""
    return keys_of(*names) is not None and not any(map(reasons, combinations(names, 2)))


def n_new_pairs(name: str, group: tuple[str, ...], pairs: list[tuple[str, str]]) -> int:
    """Return how many of the pairs a name would complete in a group."""
    return sum(name in pair and {name, *pair} <= {name, *group} for pair in pairs)


def covering(
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    fits: Callable[..., bool],
    max_names: int,
) -> list[tuple[str, ...]]:
    """Return groups of names that fit together, at most so many, in which every pair occurs."""
    uncovered = list(pairs)
    groups = []
    while uncovered:
        group: tuple[str, ...] = uncovered[0]
        while len(group) < max_names:
            gain = {name: n_new_pairs(name, group, uncovered) for name in names}
            candidates = [
                name for name in names if gain[name] and name not in group and fits(*group, name)
            ]
            if not candidates:
                break
            group = (*group, max(candidates, key=gain.__getitem__))
        groups.append(group)
        uncovered = [pair for pair in uncovered if not {*pair} <= {*group}]
    return groups


def groups_of_all_pairs() -> list[tuple[str, ...]]:
    """Put features together so that all pairs are played.

    Pairs of keys of [forecaster] alone are played by the test of those keys.
    """
    of_forecaster = {
        name for name in PLAYED_IN_PAIRS if all("forecaster" in key for key in FEATURES[name])
    }
    playable = [pair for pair in combinations(PLAYED_IN_PAIRS, 2) if is_playable(*pair)]
    pairs = [pair for pair in playable if not {*pair} <= of_forecaster]
    return covering(PLAYED_IN_PAIRS, pairs, is_playable, MAX_FEATURES)


def play_group_or_its_pairs(group: tuple[str, ...]) -> None:
    """Play features together; where a third takes away what one of two needs, play each pair."""
    try:
        model = play_keys(keys_of(*group))
    except UserError:
        if len(group) == 2:
            raise
        for pair in combinations(group, 2):
            play_group_or_its_pairs(pair)
        return
    assert model.played == TWO_UTILITIES["rounds"]
    check_losses(model.agents_frame())
    check_promises(model, group)


def check_losses(agents: pd.DataFrame) -> None:
    """Assert that losses are in [0, 1], and there of nearly all: at a rate some may never come."""
    mean_losses = agents["mean_loss"].dropna()
    assert len(mean_losses) >= len(agents) - 3
    assert mean_losses.between(0, 1).all()


def check_promises(model: MarketModel, group: tuple[str, ...]) -> None:
    """Assert that who has a guarantee has a bound, and that of others it is said why."""
    agents = model.agents_frame()
    for cohort, guarantee in zip(model.game.cohorts, model.guarantees, strict=True):
        members = agents[agents["cohort"] == cohort.name]
        assert members["mean_loss"].notna().any(), group
        is_guaranteed = members["guarantee"] != "none"
        # Of a stay that began late under listed losses the variation alone is bounded.
        has_bound = members["bound"].notna() | members["bound_from_variation"].notna()
        assert has_bound[is_guaranteed].all(), group
        distance = members.get("distance", 0 * members["agent"])
        hears_forecast = distance.fillna(0) == 0
        if not is_guaranteed[hears_forecast].all():
            assert cohort.name in " ".join([guarantee.note, *guarantee.unbounded]), group


@pytest.mark.parametrize("group", groups_of_all_pairs(), ids=", ".join)
def test_features_go_together(group: tuple[str, ...]) -> None:
    """Each pair of them plays and keeps both: a few at once, since all pairs are many."""
    play_group_or_its_pairs(group)


def may_be_promised(*names: str) -> bool:
    """Return whether features fit; without a reference there is none that could have a band."""
    return is_playable(*names) and not {"no models", "band"} <= {*names}


def groups_of_forecaster_keys() -> list[tuple[str, ...]]:
    """Return all pairs of keys of [forecaster] in groups."""
    pairs = [pair for pair in combinations(SHOWS_KEY, 2) if may_be_promised(*pair)]
    return covering(list(SHOWS_KEY), pairs, may_be_promised, MAX_KEYS)


def keys_with_responses_and_stays() -> Iterator[tuple[str, ...]]:
    """Yield each key of [forecaster] with a third of the responses and stays."""
    for i, name in enumerate(SHOWS_KEY):
        for j, behaviour in enumerate([*RESPONSES, *STAYS]):
            if (i + j) % 3 == 0:
                yield name, behaviour


def groups_with_everyone() -> Iterator[tuple[str, ...]]:
    """Yield events of everyone with every response and stay, and with each key that they take."""
    for behaviour in [*RESPONSES, *STAYS]:
        yield "everyone", behaviour
    for name in SHOWS_KEY:
        if keys_of("everyone", name):
            yield "everyone", "reports", name
            yield "everyone", "entry by round", name


GROUPS_WITH_A_PROMISE = [
    *groups_of_forecaster_keys(),
    *keys_with_responses_and_stays(),
    *groups_with_everyone(),
]


@pytest.mark.parametrize("group", GROUPS_WITH_A_PROMISE, ids=", ".join)
def test_every_key_of_a_forecaster_plays_as_asked_and_keeps_its_promise(
    group: tuple[str, ...],
) -> None:
    """Who hears outcomes or comes unknown is promised nothing; all others are."""
    model = play_keys(keys_of(*group), rounds=40)
    blocks = model.game.blocks
    if {*group} & {*RESPONSES, *STAYS}:
        blocks = blocks[-1:]  # of the third cohort, which responds and stays as by default
    for block in blocks:
        for key in SHOWS_KEY.keys() & group:
            assert SHOWS_KEY[key](block.forecaster), key
        if not {"models", "no models"} & {*group}:
            default_models = PANEL_WITH_ERRORS if "everyone" in group else PANEL
            assert block.forecaster.models == tuple(default_models)
    agents = model.agents_frame()
    promised = agents
    if "everyone" not in group and {"certainty-equivalent", "entry by round"} & {*group}:
        promised = agents[agents["cohort"] != "first"]
    assert promised["guarantee"].str.endswith("decision-swap").all()
    assert (agents["bound"].isna() == (agents["guarantee"] == "none")).all()
    bounded = agents[agents["bound"].notna()]
    assert (bounded["swap_regret"] <= bounded["bound"]).all()
    assert (bounded["bound_from_variation"] <= bounded["bound"]).all()
    assert not any("nan" in note for note in model.notes)


@pytest.mark.parametrize("feature", sorted({*SHOWS_KEY} - {"no models"}))
def test_the_calibrated_recipe_goes_with_what_it_wraps(feature: str) -> None:
    """It promises no decision swap regret, whatever it is made of."""
    keys = keys_of("calibration", feature)
    assert keys is not None
    if feature == "band":
        keys |= {"forecaster.reference": "running-mean"}
    model = play_keys(keys, rounds=40)
    for block in model.game.blocks:
        forecaster: Any = block.forecaster
        while not forecaster.instances:
            forecaster = forecaster.inner
        assert SHOWS_KEY[feature](forecaster)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert len(model.biases_frame())


@pytest.mark.parametrize("names", [["delay"], ["image"], ["delay", "image"]])
def test_a_model_alone_is_told_late_and_has_ensembles(names: list[str]) -> None:
    """The last value, two rounds late, is that of three rounds ago."""
    model = play_keys(keys_of("model alone", *names), rounds=40)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert all(block.forecaster.has_ensembles == ("image" in names) for block in model.game.blocks)
    forecasts = model.forecasts_frame().query("block == 'linear'")[["p_0", "p_1"]].to_numpy()
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    age = 3 if "delay" in names else 1
    assert forecasts[age:] == pytest.approx(outcomes[:-age], abs=1e-9)


def test_at_most_ten_pairs_never_go_together() -> None:
    """Beside keys of another kind of forecaster, which a model alone does not have."""
    listed = [pair for pair in combinations(FEATURES, 2) if reasons(pair)]
    assert len([pair for pair in listed if "model alone" not in pair]) <= 10


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("cover", "quantal"), "agents act on their own losses, and representatives are protected"),
        (("cover", "own agent"), "first: no guarantee, since"),
        (
            ("cover", "reports"),
            "first: no guarantee, since agents report other losses than their own",
        ),
        (("multiplicity", "network"), "first: agents are listed one by one, since [network]"),
        (("multiplicity", "learner"), "since each agent has its own path of actions"),
        (("multiplicity", "accounts"), "'pair-bank' treats agents one by one"),
        (("welfare", "accounts"), "welfare is what agents expect to lose, since accounts"),
    ],
)
def test_what_goes_together_without_a_theorem_says_why(names: tuple[str, str], why: str) -> None:
    model = play_keys(keys_of(*names))
    notes = [*model.notes, *(guarantee.note for guarantee in model.guarantees)]
    assert any(why in note for note in notes), notes


def test_agents_who_are_listed_in_place_of_a_count_have_a_row_each() -> None:
    agents = play_keys(keys_of("multiplicity", "network")).agents_frame()
    assert "count" not in agents
    assert len(agents) == sum(cohort["count"] for cohort in TWO_UTILITIES["cohort"])


def listed_pairs() -> list[tuple[str, str]]:
    """Return the pairs of which the page says why, and which one file can state."""
    listed = [pair for pair in combinations(FEATURES, 2) if reasons(pair)]
    return [pair for pair in listed if keys_of(*pair) is not None]


@pytest.mark.parametrize("pair", listed_pairs(), ids=", ".join)
def test_what_does_not_go_together_is_refused_for_the_reason_in_the_table(
    pair: tuple[str, str],
) -> None:
    with pytest.raises(UserError) as refusal:
        play_keys(keys_of(*pair))
    assert any(why in str(refusal.value) for why in reasons(pair)), str(refusal.value)
