"""A leader's seat against one cohort: a plan in the scenario, and what it is paid in rehearsals.

The leader keeps the payoff and the outcomes of the scenario's own adversary. Where no market moves
outcomes nobody matters to a cohort of learners but the leader, and to followers those who hear the
forecast with them: the others are left out of rehearsals.

A **rehearsal** plays a plan through a whole run, without logs. Learners whom nothing but outcomes
reaches are rehearsed side by side, all runs as rows of one learner, with the random numbers of the
run itself. All others are played one by one, by the game's own round.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, draw_rows
from regretless.market.core.errors import UserError, closest
from regretless.market.exploitability.tracker import Tracker, leader_figures
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import play_round
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import one_hot
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import DATA
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.executor import Executor
from regretless.scenarios.imports import import_modules

DIGITS = 6  # of a weight in a file


@dataclass(frozen=True)
class Attack:
    """A cohort to attack.

    ``config`` is the scenario as JSON, with an adversary of the kind ``plan``, ``rehearsed`` the
    same without those who do not matter to the cohort, ``shape`` that of a plan: phases, rows,
    outcomes of the support.
    """

    cohort: str
    config: str
    rehearsed: str
    shape: tuple[int, int, int]
    imports: tuple[str, ...]
    warnings: tuple[str, ...]

    def model(self, seed: int, plan: Array | None = None) -> MarketModel:
        """Build what is rehearsed, with a plan (P, S, m)."""
        model = _scenario(self.rehearsed, self.imports).build(seed=seed)
        leader: Any = model.game.adversary.innermost
        if plan is not None:
            leader.distributions = plan
        return model

    def place(self, model: MarketModel) -> int:
        """Return the cohort's place among those of a model."""
        return [cohort.name for cohort in model.game.cohorts].index(self.cohort)

    def file(self, plan: Array) -> dict[str, Any]:
        """Return the scenario with a plan, for a file that ``regretless run`` plays."""
        raw: dict[str, Any] = json.loads(self.config)
        raw["adversary"]["distributions"] = plan.tolist()
        return raw


def written(plan: Array) -> Array:
    """Return a plan as a file has it, with rounded weights."""
    rounded = np.round(plan, DIGITS)
    return np.asarray(rounded / rounded.sum(-1, keepdims=True))


def attacks(
    scenario: Scenario,
    *,
    phases: int,
    looking: bool,
    cohort: str | None,
    imports: tuple[str, ...] = (),
) -> list[Attack]:
    """Return an attack on every cohort, or on one; ``looking`` at what followers played last.

    UserError if no plan could go by the scenario's adversary, or there is no such cohort.
    """
    model = scenario.build()
    if model.game.has_personal_losses:
        why = "agents have losses of their own, against which no value of commitment is known"
        raise UserError(f"train: in this [market] {why}; take another market")
    names = [one.name for one in model.game.cohorts]
    if cohort is not None and cohort not in names:
        raise UserError(f"--cohort '{cohort}': {closest(cohort, names)}")
    raw = resolved(scenario.spec) | {"adversary": _seat(scenario, model)}
    raw.pop("description", None)
    if "game" in raw and Path(raw["game"]["file"]).parent == DATA / "games":  # a bundled one
        raw["game"]["file"] = Path(raw["game"]["file"]).name
    support = len(raw["adversary"]["distributions"][0])
    found = []
    for one in [own for own in model.game.cohorts if cohort in {None, own.name}]:
        shape = phases, one.loss.actions if looking else 1, support
        own = raw | {"adversary": raw["adversary"] | {"cohort": one.name}}
        near = own
        if model.game.market is None and model.game.network is None:
            heard = [c for c in model.game.cohorts if c is one or (c.listens and one.listens)]
            matter = {c.name for c in heard}
            near = own | {"cohort": [c for c in own["cohort"] if c["name"] in matter]}
        files = json.dumps(own), json.dumps(near)
        found.append(Attack(one.name, *files, shape, imports, model.warnings))
    return found


@lru_cache(maxsize=4)
def _scenario(config: str, imports: tuple[str, ...]) -> Scenario:
    import_modules(list(imports))  # for a worker
    return Scenario(validated(json.loads(config), origin=Path()))


def _seat(scenario: Scenario, model: MarketModel) -> dict[str, Any]:
    """Return the table of an adversary that goes by a plan, in the place of the scenario's own."""
    leader: Any = model.game.adversary
    payoff, support = leader.payoff, leader.support
    if scenario.spec.adversary is None:
        cure = "give a scenario with an [adversary], such as bait"
        raise UserError(f"train: outcomes are replayed from data; {cure}")
    if payoff is None or support is None:
        given = f"adversary={{ kind = 'up-then-down', outcomes = {leader.outcomes} }}"
        raise UserError(f'train: the adversary has no payoff; give one that has, --set "{given}"')
    if (motive := payoff.keys()) is None:
        kind = type(payoff).__name__
        raise UserError(f"train: a plan's payoff is linear or the followers' loss; drop {kind}")
    own = scenario.spec.adversary.model_dump(exclude_none=True)
    table = {key: own[key] for key in ("outcomes", "outcome_names") if key in own}
    plan = {"distributions": [[1.0] * len(support)], "support": np.asarray(support).tolist()}
    return table | {"kind": "plan"} | plan | dict(motive)


@dataclass(frozen=True)
class Score:
    """What a plan came to in one run, in the mean over the cohort's agents.

    ``surplus`` is above the commitment ``value``, ``cap`` its bound by the run's swap regret,
    ``certified`` that of any attacker before a run (NaN without a theorem), ``most`` by payoffs.
    """

    surplus: float
    value: float
    cap: float
    certified: float
    most: float


class Rehearsals:
    """Plays plans against a cohort, by workers where runs are played one by one.

    ``together``: whether only outcomes reach the cohort, and its learner's rows have nothing in
    common.
    """

    def __init__(self, attack: Attack, workers: Executor) -> None:
        self.attack, self._workers = attack, workers
        game = attack.model(0).game
        seat = replace(game.seats[0], comparison=NOT_COMPARED)  # which nobody hears of
        alone = seat == Seat(seat.cohort) and game.market is None and game.network is None
        self.together = len(game.cohorts) == 1 and seat.cohort.rows_apart and alone

    def paid(self, plans: Array, seed: int) -> Array:
        """Return what the leader is paid per round by each plan (E, P, S, m) at one seed (E,)."""
        if not self.together:
            parts = np.array_split(plans, min(self._workers.capacity, len(plans)))
            return np.concatenate(self._workers.map(partial(_paid, self.attack, seed), parts))
        model = self.attack.model(seed)
        cohort = model.game.cohorts[0]
        leader: Any = model.game.adversary
        values = leader.payoff.values(cohort.loss, leader.support)
        paid = np.einsum("ekam,mka,k->e", _joints(model, plans), values, cohort.counts)
        return np.asarray(paid / cohort.counts.sum())

    def scores(self, plan: Array, seeds: Sequence[int]) -> list[Score]:
        """Return what one plan comes to at several seeds."""
        if not self.together:
            return self._workers.map(partial(_score, self.attack, plan), list(seeds))
        found = []
        for model in map(self.attack.model, seeds):
            cohort, leader = model.game.cohorts[0], model.game.adversary
            joint, support = _joints(model, plan[None])[0], np.asarray(leader.support)
            taken = leader_figures(leader.payoff, cohort.loss, joint, support)
            found.append(_mean(taken, cohort.counts, _proved(cohort, model.rounds)))
        return found


def _joints(model: MarketModel, plans: Array) -> Array:
    """Play plans (E, P, S, m) against the learners of a model; joint distributions (E, K, A, m)."""
    cohort: Any = model.game.cohorts[0]
    leader: Any = model.game.adversary
    count, phases, rows, _ = plans.shape
    tables, own = cohort.loss.losses(leader.support), np.arange(count)
    joints = np.zeros((count, *tables.shape[1:], len(tables)))
    learner, shape = copy.deepcopy(cohort.learner), joints.shape[:3]
    learner.start(count * shape[1], shape[2], horizon=model.rounds)
    state = np.zeros(count, dtype=np.intp)
    thrown = model.game.outcome_stream.random(model.rounds)
    draws = [copy.deepcopy(cohort.rng) for _ in own] if learner.bandit else []
    actions = np.zeros(count * shape[1], dtype=np.intp)
    for t in range(model.rounds):
        distribution = learner.play()
        distributions = plans[own, t * phases // model.rounds, state]
        outcome = draw_rows(distributions, np.full(count, thrown[t]))
        if learner.bandit:
            shares = np.concatenate([rng.random(shape[1]) for rng in draws])
            actions = draw_rows(distribution, shares)
            distribution = one_hot(actions, shape[2])
        joints[own, :, :, outcome] += distribution.reshape(shape)
        learner.learn(tables[outcome].reshape(distribution.shape), actions)
        if rows > 1:
            state = distribution.reshape(shape)[:, cohort.row_of].mean(1).argmax(1)
    return joints / model.rounds


def _paid(attack: Attack, seed: int, plans: Array) -> Array:
    runs = (_played(attack, seed, plan) for plan in plans)
    return np.array([tracker.mean_leader_payoff(attack.place(model)) for model, tracker in runs])


def _score(attack: Attack, plan: Array, seed: int) -> Score:
    model, tracker = _played(attack, seed, plan)
    place = attack.place(model)
    cohort, promise = model.game.cohorts[place], model.guarantees[place]
    bound: Any = _proved(cohort, model.rounds)
    asked = {own["name"]: own for own in json.loads(attack.config)["cohort"]}[attack.cohort]
    if promise.beforehand is not None and asked["constants"]:  # then its regret is the more
        bound = promise.beforehand(model.rounds)
        bound = bound if promise.covers is None else np.where(promise.covers, bound, np.nan)
    if model.game.market is not None or tracker.extent(place).quantisation_error:
        bound = np.nan  # the outcomes that others would have met are not known
    rows, found = tracker.leader_figures_of(place)
    bound = np.broadcast_to(bound, len(cohort.ledger.count))[rows]
    return _mean(found, cohort.counts[rows], bound)


def _played(attack: Attack, seed: int, plan: Array) -> tuple[MarketModel, Tracker]:
    """Play one run, in which what is taken from the cohort is followed."""
    model = attack.model(seed, plan)
    game = model.game
    followed = [cohort.name == attack.cohort for cohort in game.cohorts]
    tracker = Tracker(game.cohorts, game.adversary, followed, seed=seed, market=game.market)
    for _ in range(model.rounds):
        played = play_round(game)
        model.passed(played)
        tracker.add(played)
    return model, tracker


def _proved(cohort: Cohort, rounds: int) -> float:
    """Return what a cohort's own rule proves of its swap regret; NaN if nothing."""
    bound = cohort.proved_swap(rounds)
    return float("nan") if bound is None else float(bound)


def _mean(found: dict[str, Array], counts: Array, bound: Array | float) -> Score:
    """Take the means over agents of what was taken from rows, ``counts`` agents in each."""
    found["certified"] = np.minimum(found["kappa"] * bound, found["most"])  # NaN without a bound
    names = "leader_surplus", "value", "surplus_cap", "certified", "most"
    return Score(*(float(found[name] @ counts / counts.sum()) for name in names))
