"""A leader's seat against one cohort: a plan in the scenario, and what it is paid in rehearsals.

The leader keeps the payoff and the outcomes of the scenario's own adversary. Where no market moves
outcomes nobody matters to a cohort of learners but the leader, and to followers those who hear the
forecast with them: the others are left out of rehearsals.

A **rehearsal** plays a plan through a whole run, without logs. Learners whom nothing but outcomes
reaches are rehearsed side by side, all runs as rows of one learner, with the random numbers of the
run itself. All others are played one by one, by the game's own round, without what a run does for
its logs alone: models are not compared with, and the leader is told nothing that its plan does not
look at.

Where agents have losses of their own no value of commitment is known, and no cap: there a score has
what the leader is paid, and nothing else.

Where the scenario's adversary moves the rows of a table, a plan draws moves, and its rehearsals are
runs on the same rows. The value of commitment is then, as in any run, that of a leader who may
choose each outcome that was met, whatever the row: a leader who moves rows may not come to it.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from regretless.agents.adversaries.learned import ANNOUNCED_PLAY, FORECAST, LAST_PLAY
from regretless.agents.adversaries.moved_rows import MovedRows
from regretless.agents.learners.base import RowLearner
from regretless.market.core.arrays import Array, draw_rows
from regretless.market.core.errors import UserError, closest
from regretless.market.exploitability.tracker import Tracker, leader_figures
from regretless.market.game.adversary_view import mean_payoffs, sums_of
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.game.round import play_round
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import (
    AdversaryView,
    Context,
    History,
    OutcomeDistribution,
    one_hot,
)
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import DATA
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.executor.base import Executor
from regretless.scenarios.imports import import_modules

WEIGHT_DIGITS = 6  # decimal places of a plan's weights in a file
SIGHTS = ("history", "mixture")  # what plans may be conditioned on
MAX_FORECAST_OUTCOMES = 8  # of a support whose plans have rows for what is forecast


@dataclass(frozen=True)
class Attack:
    """A cohort to attack.

    Attributes
    ----------
    cohort : str
        The name of the cohort.
    config : str
        The scenario as JSON, with an adversary of the kind ``plan``.
    rehearsed : str
        The same without the cohorts that do not matter to the one under attack.
    shape : tuple of int
        The shape (P, S, m) of a plan: P phases of the run; S combinations of what the leader looks
        at, 1 if it looks at nothing; m outcomes of the support.
    looks_at : tuple of str
        What it looks at (``agents.adversaries.learned``).
    imports : tuple of str
        Modules that a worker imports before it plays.
    warnings : tuple of str
        The scenario's warnings.
    """

    cohort: str
    config: str
    rehearsed: str
    shape: tuple[int, int, int]
    looks_at: tuple[str, ...]
    imports: tuple[str, ...]
    warnings: tuple[str, ...]

    def model(self, seed: int, plan: Array | None = None) -> MarketModel:
        """Build the model of a rehearsal; its leader follows ``plan`` (P, S, m), if given."""
        model = _scenario(self.rehearsed, self.imports).build(seed=seed)
        if plan is not None:
            planner_of(model).distributions = plan
        return model

    def cohort_index(self, model: MarketModel) -> int:
        """Return the index of the attacked cohort among the cohorts of a model."""
        return [cohort.name for cohort in model.game.cohorts].index(self.cohort)

    def file(self, plan: Array) -> dict[str, Any]:
        """Return the scenario with a plan, for a file that ``regretless run`` plays."""
        raw: dict[str, Any] = json.loads(self.config)
        raw["adversary"]["distributions"] = plan.tolist()
        return raw


def moves_rows(model: MarketModel) -> bool:
    """Whether a model's adversary moves the rows of a table."""
    return isinstance(model.game.adversary.innermost, MovedRows)


def planner_of(model: MarketModel) -> Any:
    """Return who chooses from a list of outcomes: where rows are moved, who moves them."""
    adversary = model.game.adversary.innermost
    if isinstance(adversary, MovedRows):
        return adversary.mover
    return adversary


def round_plan(plan: Array) -> Array:
    """Return a plan with the rounded weights that a file has."""
    rounded = np.round(plan, WEIGHT_DIGITS)
    return np.asarray(rounded / rounded.sum(-1, keepdims=True))


def prepare_attacks(
    scenario: Scenario,
    *,
    phases: int,
    looking: bool,
    cohort: str | None,
    sees: str = "history",
    imports: tuple[str, ...] = (),
) -> list[Attack]:
    """Return an attack on every cohort, or on the one that is named.

    ``looking``: whether a plan may depend on what the followers played last; ``sees`` ("history" or
    "mixture"): whether it may depend on the announced mixture. UserError if the scenario's
    adversary cannot be replaced by a plan, or if there is no such cohort.
    """
    if sees not in SIGHTS:
        raise UserError(f"--sees '{sees}' is unknown; {closest(sees, SIGHTS)}")
    model = scenario.build()
    names = [member.name for member in model.game.cohorts]
    if cohort is not None and cohort not in names:
        raise UserError(f"--cohort '{cohort}': {closest(cohort, names)}")
    configuration = resolved(scenario.spec)
    configuration["adversary"] = _plan_table(scenario, model)
    configuration.pop("description", None)
    if "game" in configuration:
        game_file = Path(configuration["game"]["file"])
        if game_file.parent == DATA / "games":  # a bundled game is found by its name alone
            configuration["game"]["file"] = game_file.name
    if "data" in configuration:
        data_file = Path(configuration["data"]["file"])
        if data_file.parent == DATA:  # so is a bundled table
            configuration["data"]["file"] = data_file.name
    support_size = len(configuration["adversary"]["distributions"][0])
    attacks = []
    for target in model.game.cohorts:
        if cohort not in {None, target.name}:
            continue
        looks_at = _looks_at(target, model, looking=looking, sees=sees, support_size=support_size)
        adversary = configuration["adversary"] | {"cohort": target.name}
        if looks_at:
            adversary["looks_at"] = list(looks_at)
        attacked = configuration | {"adversary": adversary}
        attacks.append(
            Attack(
                cohort=target.name,
                config=json.dumps(attacked),
                rehearsed=json.dumps(_without_bystanders(attacked, target, model)),
                shape=(phases, _count_rows(looks_at, target, support_size), support_size),
                looks_at=looks_at,
                imports=imports,
                warnings=model.warnings,
            )
        )
    return attacks


def _looks_at(
    target: Cohort, model: MarketModel, *, looking: bool, sees: str, support_size: int
) -> tuple[str, ...]:
    """Return what a plan against a cohort looks at.

    Of the announced mixture that is the play that it announces, unless a market moves outcomes: who
    sees play there would plan with outcomes that do not happen. It is also the outcome that the
    forecast is nearest to, if the cohort hears it and outcomes are few.
    """
    looks = [LAST_PLAY] if looking else []
    if sees == "mixture" and model.game.market is None:
        looks.append(ANNOUNCED_PLAY)
    hears_forecast = target.listens and not model.game.blocks[target.block].forecaster.is_silent
    if sees == "mixture" and hears_forecast and support_size <= MAX_FORECAST_OUTCOMES:
        looks.append(FORECAST)
    return tuple(looks)


def _count_rows(looks_at: Sequence[str], target: Cohort, support_size: int) -> int:
    """Count the rows that a plan has in each phase: combinations of what it looks at."""
    n_rows = 1
    for look in looks_at:
        n_rows *= support_size if look == FORECAST else target.loss.actions
    return n_rows


def _without_bystanders(
    configuration: dict[str, Any], target: Cohort, model: MarketModel
) -> dict[str, Any]:
    """Return a scenario without the cohorts that cannot change what the target plays.

    Only with a market or a network everybody matters. Otherwise a cohort that hears the forecast
    is reached by those who hear it too, because the forecast protects them all. Where all who
    would be left join late or leave early the scenario is returned as it is.
    """
    if model.game.market is not None or model.game.network is not None:
        return configuration
    relevant_names = {target.name}
    if target.listens:
        relevant_names |= {cohort.name for cohort in model.game.cohorts if cohort.listens}
    cohorts = [table for table in configuration["cohort"] if table["name"] in relevant_names]
    if all(table.get("enters") or table.get("exits") for table in cohorts):
        return configuration  # a scenario has somebody in every round
    return configuration | {"cohort": cohorts}


@lru_cache(maxsize=4)
def _scenario(config: str, imports: tuple[str, ...]) -> Scenario:
    import_modules(list(imports))  # a worker process has not imported them yet
    return Scenario(validated(json.loads(config), origin=Path()))


def _plan_table(scenario: Scenario, model: MarketModel) -> dict[str, Any]:
    """Return the table of an adversary that follows a plan, with the motive of the scenario's own.

    UserError if the scenario has no adversary, or one whose payoff a plan cannot have.
    """
    leader: Any = model.game.adversary
    payoff = leader.payoff
    support = planner_of(model).support
    if scenario.spec.adversary is None:
        hint = "give a scenario with an [adversary], such as bait"
        raise UserError(f"train: outcomes are replayed from data; {hint}")
    if payoff is None or support is None:
        example = f"adversary={{ kind = 'up-then-down', outcomes = {leader.outcomes} }}"
        if scenario.spec.data is not None:
            moves = json.dumps(scenario.spec.adversary.moves).replace(": ", " = ")
            example = f"adversary={{ kind = 'up-then-down', moves = {moves} }}"
        raise UserError(f'train: the adversary has no payoff; give one that has, --set "{example}"')
    motive = payoff.keys()
    if motive is None:
        kind = type(payoff).__name__
        raise UserError(f"train: a plan's payoff is linear or the followers' loss; drop {kind}")
    specification = scenario.spec.adversary.model_dump(exclude_none=True)
    table: dict[str, Any] = {}
    for key in ("outcomes", "outcome_names", "moves"):
        if key in specification:
            table[key] = specification[key]
    table["kind"] = "plan"
    table["distributions"] = [[1.0] * len(support)]
    table["support"] = np.asarray(support).tolist()
    return table | dict(motive)


@dataclass(frozen=True)
class Score:
    """What a plan took in one run, per round, as means over the agents of the cohort.

    Attributes
    ----------
    paid : float
        The payoff.
    surplus : float
        The payoff above ``value``.
    value : float
        The most that the leader gets by commitment.
    cap : float
        The bound on the surplus that follows from the swap regret of this run.
    certified : float
        The bound for every attacker that a theorem gives before a run; NaN without a theorem.
    most : float
        The greatest surplus that payoffs allow.

    All but ``paid`` are NaN where agents have losses of their own.
    """

    paid: float
    surplus: float
    value: float
    cap: float
    certified: float
    most: float


class _UntaughtLeader(Adversary):
    """Plays a leader's plan, and is told neither what it is paid nor what was played.

    That is a third of the time of a rehearsal, and changes nothing where the plan does not look at
    the last play. The outcomes of a plan lie in the scenario's space already, so that none has to
    be moved inside.
    """

    observes_play = False

    def __init__(self, leader: Adversary) -> None:
        self._plan = leader.innermost
        self.outcomes = leader.outcomes
        self.payoff = leader.payoff
        self.support = leader.support
        self.sees = leader.sees

    @property
    def innermost(self) -> Adversary:
        return self._plan

    def context(self, history: History) -> Context:
        return self._plan.context(history)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        return self._plan.commit(context, history, announced)


class Rehearsals:
    """Plays plans against a cohort; workers play them where they are played one by one.

    ``together`` says whether all runs are rows of one learner. They are if nothing but outcomes
    reaches the cohort, and the rows of its learner do not depend on each other.
    """

    def __init__(self, attack: Attack, workers: Executor) -> None:
        self.attack = attack
        self._workers = workers
        game = attack.model(0).game
        seat = replace(game.seats[0], comparison=NOT_COMPARED)  # comparisons reach nobody
        has_plain_seat = seat == Seat(seat.cohort)
        is_alone = len(game.cohorts) == 1 and game.market is None and game.network is None
        is_reached = FORECAST in attack.looks_at  # by what no learner's row holds
        rows_apart = seat.cohort.rows_apart and not is_reached
        # Of a plan that moves rows it is not known beforehand which outcomes are met.
        has_fixed_outcomes = not moves_rows(attack.model(0))
        self.together = is_alone and has_plain_seat and rows_apart and has_fixed_outcomes

    def paid(self, plans: Array, seed: int) -> Array:
        """Return what the leader is paid per round by each plan, (E,), for plans (E, P, S, m)."""
        if not self.together:
            parts = np.array_split(plans, min(self._workers.capacity, len(plans)))
            play_part = partial(_mean_payoffs, self.attack, seed)
            return np.concatenate(self._workers.map(play_part, parts))
        model = self.attack.model(seed)
        cohort = model.game.cohorts[0]
        leader: Any = model.game.adversary
        payoffs = leader.payoff.values(cohort.loss, leader.support)
        joints = _joint_distributions([model], plans, self.attack.looks_at)
        total_payoffs = np.einsum("ekam,mka,k->e", joints, payoffs, cohort.counts)
        return np.asarray(total_payoffs / cohort.counts.sum())

    def scores(self, plan: Array, seeds: Sequence[int]) -> list[Score]:
        """Return the score of one plan (P, S, m) for each seed."""
        if not self.together:
            return self._workers.map(partial(_score, self.attack, plan), list(seeds))
        models = [self.attack.model(seed) for seed in seeds]
        if _are_alike(models):
            plans = np.repeat(plan[None], len(models), axis=0)
            joints = _joint_distributions(models, plans, self.attack.looks_at)
        else:
            joints_of_seeds = [
                _joint_distributions([model], plan[None], self.attack.looks_at) for model in models
            ]
            joints = np.concatenate(joints_of_seeds)
        scores = []
        for model, joint in zip(models, joints, strict=True):
            cohort = model.game.cohorts[0]
            leader: Any = model.game.adversary
            support = np.asarray(leader.support)
            figures = leader_figures(leader.payoff, cohort.loss, joint, support)
            bound = _proved_swap_regret(cohort, model.rounds)
            scores.append(_mean_score(figures, cohort.counts, bound))
        return scores


def _are_alike(models: Sequence[MarketModel]) -> bool:
    """Whether the only cohorts of models differ in their random numbers alone.

    They do where losses are the same and learners have no parameters by row, which may be drawn.
    """
    first_cohort: Any = models[0].game.cohorts[0]
    if type(first_cohort.learner).part is not RowLearner.part:
        return False
    support = np.asarray(models[0].game.adversary.support)
    losses = first_cohort.loss.losses(support)
    for model in models[1:]:
        other_cohort = model.game.cohorts[0]
        has_same_rows = np.array_equal(first_cohort.row_of, other_cohort.row_of)
        if not has_same_rows or not np.array_equal(losses, other_cohort.loss.losses(support)):
            return False
    return True


def _joint_distributions(
    models: Sequence[MarketModel], plans: Array, looks_at: Sequence[str]
) -> Array:
    """Play plans against learners, all runs side by side.

    Parameters
    ----------
    models : sequence of MarketModel
        One for all plans, or one for each of them, which are alike but for their random numbers.
        Each has one cohort of K rows with A actions. Its stream of outcomes goes on.
    plans : array (E, P, S, m)
        Distributions over the m outcomes of the support, by phase and by what they look at.
    looks_at : sequence of str
        What that is: the play of the last round, the announced play, both or nothing.

    Returns
    -------
    array (E, K, A, m)
        How often each action met each outcome, as a share of the rounds.
    """
    model = models[0]
    cohort: Any = model.game.cohorts[0]
    leader: Any = model.game.adversary
    n_plans, n_phases, _, _ = plans.shape
    losses_at_support = cohort.loss.losses(leader.support)  # (m, K, A)
    n_outcomes, n_rows, n_actions = losses_at_support.shape
    joints = np.zeros((n_plans, n_rows, n_actions, n_outcomes))
    plan_indices = np.arange(n_plans)
    learner = copy.deepcopy(cohort.learner.part(np.tile(np.arange(n_rows), n_plans)))
    learner.start(n_plans * n_rows, n_actions, horizon=model.rounds)
    last_actions = np.zeros(n_plans, dtype=np.intp)  # what most agents of a run played last
    draws_of_models = [other.game.outcome_stream.random(model.rounds) for other in models]
    outcome_draws = np.broadcast_to(np.transpose(draws_of_models), (model.rounds, n_plans))
    action_streams: list[np.random.Generator] = []
    if learner.bandit:  # every run draws its actions as it would if it were played alone
        models_of_plans = list(models) * (n_plans // len(models))
        action_streams = [copy.deepcopy(other.game.cohorts[0].rng) for other in models_of_plans]
    actions = np.zeros(n_plans * n_rows, dtype=np.intp)
    for t in range(model.rounds):
        strategies = learner.play()
        if looks_at:
            announced_strategies = strategies.reshape(n_plans, n_rows, n_actions)
            announced_actions = announced_strategies[:, cohort.row_of].mean(1).argmax(1)
        rows_of_plans = np.zeros(n_plans, dtype=np.intp)
        for look in looks_at:
            seen_actions = last_actions if look == LAST_PLAY else announced_actions
            rows_of_plans = rows_of_plans * n_actions + seen_actions
        phase = t * n_phases // model.rounds
        distributions = plans[plan_indices, phase, rows_of_plans]
        outcomes = draw_rows(distributions, outcome_draws[t])
        if learner.bandit:
            action_draws = np.concatenate([rng.random(n_rows) for rng in action_streams])
            actions = draw_rows(strategies, action_draws)
            strategies = one_hot(actions, n_actions)
        strategies_by_plan = strategies.reshape(n_plans, n_rows, n_actions)
        joints[plan_indices, :, :, outcomes] += strategies_by_plan
        learner.learn(losses_at_support[outcomes].reshape(strategies.shape), actions)
        if LAST_PLAY in looks_at:
            mean_strategies = strategies_by_plan[:, cohort.row_of].mean(1)
            last_actions = mean_strategies.argmax(1)
    return joints / model.rounds


def _mean_payoffs(attack: Attack, seed: int, plans: Array) -> Array:
    """Play plans (E, P, S, m) one by one; return what each is paid per round, (E,)."""
    return np.array([_play(attack, seed, plan).mean_payoff for plan in plans])


def _score(attack: Attack, plan: Array, seed: int) -> Score:
    """Play a plan once by the game's own round; return its score."""
    rehearsal = _play(attack, seed, plan)
    model = rehearsal.model
    tracker = rehearsal.tracker
    if model.game.has_personal_losses:
        return Score(rehearsal.mean_payoff, *[float("nan")] * 5)
    index = attack.cohort_index(model)
    cohort = model.game.cohorts[index]
    guarantee = model.guarantees[index]
    bound: Any = _proved_swap_regret(cohort, model.rounds)
    tables = {table["name"]: table for table in json.loads(attack.config)["cohort"]}
    compares_with_constants = tables[attack.cohort]["constants"]
    # With constants among the policies the swap regret is at most the regret that is promised.
    if guarantee.beforehand is not None and compares_with_constants:
        bound = guarantee.beforehand(model.rounds)
        if guarantee.covers is not None:
            bound = np.where(guarantee.covers, bound, np.nan)
    outcomes_are_moved = model.game.market is not None or moves_rows(model)
    if outcomes_are_moved or tracker.extent(index).quantisation_error:
        bound = np.nan  # the outcomes that others would have met are not known
    rows, figures = tracker.leader_figures_of(index)
    bound_per_row = np.broadcast_to(bound, cohort.ledger.shape[0])[rows]
    return _mean_score(figures, cohort.counts[rows], bound_per_row)


@dataclass(frozen=True)
class _Rehearsal:
    """A run that was played: its model, a tracker of the cohort, what the leader was paid."""

    model: MarketModel
    tracker: Tracker
    mean_payoff: float


def _play(attack: Attack, seed: int, plan: Array) -> _Rehearsal:
    """Play one run; the payoff is the mean over rounds and agents of the attacked cohort."""
    model = attack.model(seed, plan)
    game = model.game
    for seat in game.seats:
        seat.comparison = NOT_COMPARED  # comparisons reach nobody
    if LAST_PLAY not in attack.looks_at and not game.has_personal_losses:
        game.adversary = _UntaughtLeader(game.adversary)
    index = attack.cohort_index(model)
    is_tracked = [cohort.name == attack.cohort for cohort in game.cohorts]
    tracker = Tracker(game.cohorts, game.adversary, is_tracked, seed=seed, market=game.market)
    total_payoff = 0.0
    total_agents = 0.0
    for _ in range(model.rounds):
        played = play_round(game)
        model.passed(played)
        tracker.add(played)
        if game.has_personal_losses:
            sums = sums_of(game.adversary.payoff, game.cohorts, played)
            mean_paid, agents = mean_payoffs(sums)
            total_payoff += float(np.nan_to_num(mean_paid[index]) * agents[index])
            total_agents += float(agents[index])
    if not game.has_personal_losses:
        mean_payoff = tracker.mean_leader_payoff(index)
    elif total_agents:
        mean_payoff = total_payoff / total_agents
    else:
        mean_payoff = float("nan")  # nobody was ever there
    return _Rehearsal(model, tracker, mean_payoff)


def _proved_swap_regret(cohort: Cohort, rounds: int) -> float:
    """Return the bound on swap regret that a cohort's own rule proves; NaN if it proves none."""
    bound = cohort.proved_swap(rounds)
    return float("nan") if bound is None else float(bound)


def _mean_score(figures: dict[str, Array], counts: Array, bound: Array | float) -> Score:
    """Return the means over agents of figures per row; ``counts`` agents stand in each row.

    ``bound`` is one on swap regret. The certified surplus is ``kappa`` times as much, and never
    above the greatest that payoffs allow; it is NaN without a bound.
    """
    certified = np.minimum(figures["kappa"] * bound, figures["largest_surplus"])

    def mean_over_agents(figure: Array) -> float:
        return float(figure @ counts / counts.sum())

    surplus = mean_over_agents(figures["leader_surplus"])
    value = mean_over_agents(figures["value"])
    return Score(
        paid=value + surplus,
        surplus=surplus,
        value=value,
        cap=mean_over_agents(figures["surplus_cap"]),
        certified=mean_over_agents(certified),
        most=mean_over_agents(figures["largest_surplus"]),
    )
