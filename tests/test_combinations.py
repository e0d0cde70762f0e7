"""Every pair of features: it builds, plays and keeps what was asked for, or a table says why not.

Two cohorts with one utility and one with another follow a forecast of replayed outcomes. A feature
is a handful of keys; features of agents are those of the first cohort, and where two are about how
it responds, the second takes the other one.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, play_to_end, read_scenario

from regretless import register
from regretless.agents import ScriptedAgent
from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.models.aggregate import PANEL
from regretless.market.core.errors import UserError
from regretless.market.losses import Linear
from regretless.market.markets import Accounts, Market
from regretless.market.model import MarketModel
from regretless.scenarios.config.files import assign, read
from regretless.scenarios.config.validation import resolved

HOME = Path(__file__).parent / "golden" / "keys"
PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()
ROWS = [line.strip("| ").split(" | ") for line in LINES if line.startswith("| ")][1:]
FILE = read(HOME / "models-default.toml")
LINEAR, CARA = FILE["cohort"]
POLICY = {"kind": "threshold", "feature": "k", "at": 3, "below": 0, "above": 2}
BASE: dict[str, Any] = FILE | {
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
ONE = BASE | {  # an outcome of one number, in which all losses are linear
    "data": BASE["data"] | {"outcomes": ["a"], "scale": {"a": [0.0, 1.0]}},
    "cohort": [
        cohort_table(own["name"], own["count"], 3, "pair-tilt", parameters={"weights": TILTS})
        for own in BASE["cohort"]
    ],
}
RESPONSE = "cohort.first.response"
MOST = 5  # features at once
MEASURES = ["external", "swap", "decision_swap", "contextual_swap"]


@register.utility("pair-tilt")
def tilted(population: Any, *, weights: Any) -> Linear:
    """Losses that rise, stay or fall with the one number, in a tilt that an agent may misreport."""
    tilts = np.broadcast_to(population.table("weights", weights), (population.count, 3, 1))
    return Linear(tilts, offset=(1.0 - tilts[..., 0]) / 2.0)


@register.agent("pair-agent")
class Follower(ScriptedAgent):
    """Does what is best at the forecast outcome, of what it can afford."""

    def act(self, forecast: Any, context: Any) -> int:
        can = np.ones(3, dtype=bool) if self.affordable is None else self.affordable
        return int(np.where(can, self.loss.losses(np.asarray(forecast.label)), 2.0).argmin())


@register.market("pair-market")
class Crowded(Market):
    """The more agents take the first action, the lower the first outcome."""

    supports_multiplicity = True

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        crowd = [np.tile([1.0, 0.0, 0.0], (len(own.loss), 1))[..., None] for own in self.cohorts]
        load = self.chosen(crowd, decisions).sum() / self.agents
        return fundamental * np.where(np.arange(len(fundamental)), 1.0, 1.0 - 0.2 * min(load, 1.0))


@register.market("pair-bank")
class Bank(Market):
    """The first action costs a coin that agents own few of."""

    def __init__(self, cohorts: Any, rng: Any) -> None:
        super().__init__(cohorts, rng)
        self.accounts = Accounts(cohorts, cash=2.0)

    def affordable(self, place: int) -> Any:
        cash = self.accounts.cash[self.accounts.places[self.cohorts[place].name]]
        return np.stack([cash >= 1.0, cash >= 0.0, cash >= 0.0], axis=1)

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        price = [np.tile([1.0, 0.0, 0.0], (len(own.loss), 1))[..., None] for own in self.cohorts]
        due = self.chosen(price, decisions)[:, 0]
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
    "contextual": {"cohort.first.measures": MEASURES, "cohort.first.policies": ["late-hours"]},
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

PROMISED: dict[str, Callable[[Any], bool]] = {  # how a forecaster with a promise shows its keys
    "delay": lambda p: len(p.instances) == 3,
    "intervals": lambda p: isinstance(first(p).events, Intervals),
    "second-order weights": lambda p: first(p).events.rule.name == "second-order",
    "exponential weights": lambda p: first(p).events.rule.name == "exponential",
    "image": lambda p: p.has_ensembles and solver(p).hull == "image",
    "off-ties": lambda p: solver(p).off_ties,
    "welfare": lambda p: all(own.solver.preferring for own in p.instances),
    "events of coordinates": lambda p: isinstance(part(first(p).events), VectorEvents),
    "events of losses": lambda p: isinstance(part(first(p).events), GainEvents | Assignments),
    "models": lambda p: p.models == ("last-value", "running-mean"),
    "no models": lambda p: p.models == (),
    "band": lambda p: p.described()["kept"] <= 1,
}
OTHERS = [name for name in FEATURES if name not in ("no models", "band")]
RESPONSES = "quantal", "ensemble", "private", "certainty-equivalent"
STAYS = "entry by round", "exit by round"

NARROW: dict[str, dict[str, Any]] = {  # where the outcome is one number
    "reports": {"cohort.first.reports": {"weights": TILTS[::-1]}},
    "polytope": {"space": {"vertices": [[0.0], [1.0]]}},
}


def first(player: Any) -> Any:
    """Return what has the first turn."""
    return player.instances[0]


def part(events: Any) -> Any:
    """Return the first of events that are a sum, or all of one kind."""
    return part(events.parts[0]) if hasattr(events, "parts") else events


def solver(player: Any) -> Any:
    """Return what solves the game over a hull, without its objective."""
    own = first(player).solver
    return getattr(own, "solver", own)


def keys_of(*names: str) -> dict[str, Any] | None:
    """Join the keys of features; None where two give one key different values."""
    keys: dict[str, Any] = {}
    for name in names:
        own = (NARROW if "everyone" in names else {}).get(name, FEATURES[name])
        if RESPONSE in own and RESPONSE in keys:
            own = {key.replace("first", "second"): value for key, value in own.items()}
        if any(keys.get(key, value) != value for key, value in own.items()):
            return None
        keys |= own
    return dict(sorted(keys.items(), key=lambda item: item[0] != "forecaster.kind"))


def played(keys: dict[str, Any], **more: Any) -> MarketModel:
    raw = deepcopy(ONE if keys.get("forecaster.events") == "everyone" else BASE) | more
    for key, value in keys.items():
        assign(raw, key, value)
    scenario = read_scenario(raw, origin=HOME)
    check_kept(keys, resolved(scenario.spec))
    return play_to_end(scenario)


def check_kept(keys: dict[str, Any], config: dict[str, Any]) -> None:
    """Fail unless the resolved file, which the manifest holds, says what was asked for."""
    for key, given in keys.items():
        found: Any = config
        for step in key.split("."):
            named = {own["name"]: own for own in found} if isinstance(found, list) else found
            found = named[step]
        if isinstance(given, str) and isinstance(found, dict):
            found = found["kind"]
        if isinstance(given, list) and isinstance(found, dict):
            found = list(found)
        assert found == given or (isinstance(given, dict) and given.items() <= found.items()), key


def reasons(pair: tuple[str, str]) -> list[str]:
    """Return why the page says that a pair never goes together."""
    return [why for one, others, why in ROWS if one in pair and {*pair} & {*others.split(", ")}]


def playable(*names: str) -> bool:
    """Whether features fit into one scenario, and no row of the table speaks of any two."""
    return keys_of(*names) is not None and not any(map(reasons, combinations(names, 2)))


def covering(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], fits: Callable[..., bool], most: int
) -> list[tuple[str, ...]]:
    """Return groups of names that fit together, at most so many, in which every pair occurs."""
    left, made = list(pairs), []
    while left:
        group: tuple[str, ...] = left[0]
        while len(group) < most:
            new = {n: sum({n, *pair} <= {n, *group} and n in pair for pair in left) for n in names}
            more = [n for n in names if new[n] and n not in group and fits(*group, n)]
            if not more:
                break
            group = (*group, max(more, key=new.__getitem__))
        made.append(group)
        left = [pair for pair in left if not {*pair} <= {*group}]
    return made


def groups() -> list[tuple[str, ...]]:
    """Put features together so that all pairs are played; those of [forecaster] alone are not."""
    both = {n for n in OTHERS if all("forecaster" in key for key in FEATURES[n])}
    pairs = [p for p in combinations(OTHERS, 2) if playable(*p) and not {*p} <= both]
    return covering(OTHERS, pairs, playable, MOST)


@pytest.mark.parametrize("group", groups(), ids=", ".join)
def test_features_go_together(group: tuple[str, ...]) -> None:
    """Each pair of them plays and keeps both: a few at once, since all pairs are many."""
    check_together(group)


def check_together(group: tuple[str, ...]) -> None:
    try:
        model = played(keys_of(*group) or {})
    except UserError:
        if len(group) == 2:
            raise
        for pair in combinations(group, 2):  # a third may take away what one of two needs
            check_together(pair)
        return
    assert model.played == BASE["rounds"]
    agents = model.agents_frame()
    came = agents["mean_loss"].dropna()  # at a rate somebody may never come
    assert len(came) >= len(agents) - 3
    assert came.between(0, 1).all()
    for cohort, promise in zip(model.game.cohorts, model.guarantees, strict=True):
        own = agents[agents["cohort"] == cohort.name]
        bounded = own["guarantee"] != "none"
        # Of a stay that began late under listed losses the variation alone is bounded.
        has_bound = own["bound"].notna() | own["bound_from_variation"].notna()
        assert has_bound[bounded].all(), group
        assert own["mean_loss"].notna().any(), group
        heard = own.get("distance", 0 * own["agent"]).fillna(0) == 0  # others hear no forecast
        if not bounded[heard].all():  # it is said why
            assert cohort.name in " ".join([promise.note, *promise.unbounded]), group


def promising(*names: str) -> bool:
    """Whether features fit; without a reference there is none that could have a band."""
    return playable(*names) and not {"no models", "band"} <= {*names}


def promised() -> Iterator[tuple[str, ...]]:
    """All pairs of keys of [forecaster], and each with a third of the responses and stays."""
    pairs = [pair for pair in combinations(PROMISED, 2) if promising(*pair)]
    yield from covering(list(PROMISED), pairs, promising, 4)
    for (i, name), (j, response) in product(enumerate(PROMISED), enumerate(RESPONSES + STAYS)):
        if (i + j) % 3 == 0:
            yield name, response
        if j == 0 and keys_of("everyone", name):
            yield "everyone", "reports", name
            yield "everyone", "entry by round", name
        if i == 0:
            yield "everyone", response


@pytest.mark.parametrize("group", [*promised()], ids=", ".join)
def test_every_key_of_a_forecaster_plays_as_asked_and_keeps_its_promise(
    group: tuple[str, ...],
) -> None:
    """Who hears outcomes or comes unknown is promised nothing; all others are."""
    model = played(keys_of(*group) or {}, rounds=40)
    for block in model.game.blocks[-1:] if {*group} & {*RESPONSES, *STAYS} else model.game.blocks:
        assert all(PROMISED[name](block.forecaster) for name in PROMISED.keys() & group)
        assert {"models", "no models"} & {*group} or block.forecaster.models == tuple(PANEL)
    agents = model.agents_frame()
    alone = "everyone" not in group and {"certainty-equivalent", "entry by round"} & {*group}
    others = agents[agents["cohort"] != "first"] if alone else agents
    assert others["guarantee"].str.endswith("decision-swap").all()
    kept = agents[agents["bound"].notna()]
    assert (agents["bound"].isna() == (agents["guarantee"] == "none")).all()
    assert (kept["swap_regret"] <= kept["bound"]).all()
    assert (kept["bound_from_variation"] <= kept["bound"]).all()
    assert not any("nan" in note for note in model.notes)


@pytest.mark.parametrize("feature", sorted({*PROMISED} - {"no models"}))
def test_the_calibrated_recipe_goes_with_what_it_wraps(feature: str) -> None:
    """It promises no decision swap regret, whatever it is made of."""
    known = {"forecaster.reference": "running-mean"} if feature == "band" else {}
    model = played((keys_of("calibration", feature) or {}) | known, rounds=40)
    for block in model.game.blocks:
        player: Any = block.forecaster
        while not player.instances:
            player = player.inner
        assert PROMISED[feature](player)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert len(model.biases_frame())


@pytest.mark.parametrize("names", [["delay"], ["image"], ["delay", "image"]])
def test_a_model_alone_is_told_late_and_has_ensembles(names: list[str]) -> None:
    """The last value, two rounds late, is that of three rounds ago."""
    model = played(keys_of("model alone", *names) or {}, rounds=40)
    assert (model.agents_frame()["guarantee"] == "none").all()
    assert all(block.forecaster.has_ensembles == ("image" in names) for block in model.game.blocks)
    said = model.forecasts_frame().query("block == 'linear'")[["p_0", "p_1"]].to_numpy()
    came = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    back = 3 if "delay" in names else 1
    assert said[back:] == pytest.approx(came[:-back], abs=1e-9)


def test_at_most_ten_pairs_never_go_together() -> None:
    """Beside keys of another kind of forecaster, which a model alone does not have."""
    listed = [pair for pair in combinations(FEATURES, 2) if reasons(pair)]
    assert len([pair for pair in listed if "model alone" not in pair]) <= 10


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("cover", "quantal"), "agents act on their own losses, and representatives are protected"),
        (("cover", "own agent"), "first: no guarantee, since"),
        (("cover", "reports"), "first: no guarantee, since it reports other losses than its own"),
        (("multiplicity", "network"), "first: agents are listed one by one, since [network]"),
        (("multiplicity", "learner"), "since each agent has its own path of actions"),
        (("multiplicity", "accounts"), "'pair-bank' treats agents one by one"),
        (("welfare", "accounts"), "welfare is what agents expect to lose, since accounts"),
    ],
)
def test_what_goes_together_without_a_theorem_says_why(names: tuple[str, str], why: str) -> None:
    model = played(keys_of(*names) or {})
    said = [*model.notes, *(promise.note for promise in model.guarantees)]
    assert any(why in note for note in said), said


def test_agents_who_are_listed_in_place_of_a_count_have_a_row_each() -> None:
    agents = played(keys_of("multiplicity", "network") or {}).agents_frame()
    assert "count" not in agents
    assert len(agents) == sum(own["count"] for own in BASE["cohort"])


@pytest.mark.parametrize("pair", [*filter(reasons, combinations(FEATURES, 2))], ids=", ".join)
def test_what_does_not_go_together_is_refused_for_the_reason_in_the_table(
    pair: tuple[str, str],
) -> None:
    if (keys := keys_of(*pair)) is not None:
        with pytest.raises(UserError) as refused:
            played(keys)
        assert any(why in str(refused.value) for why in reasons(pair)), str(refused.value)
