"""Making the cohort that plays of the agents that were drawn, and what is protected for it.

``make_cohort`` is a step of ``build``: by what the response names, agents respond to the forecast
by a rule, are of a user's class, or learn. The ``ServedCohort`` that it returns holds the losses
that the forecaster of their block protects on their behalf, until a seat is made for them.

Learners with full information and equal losses share a row, unless all agents are to have rows of
their own; a bandit, told its own draw alone, has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.agents.cohorts.advised import Advice, AdvisedCohort
from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.cohorts.responding import PrivateCohort, RespondingCohort
from regretless.agents.cohorts.scripted_agents import CrowdCohort, ScriptedCohort, ScriptedCrowd
from regretless.agents.learners import LearnersByStay, RowLearner
from regretless.agents.responses import BUILT_IN, Checked, Response
from regretless.forecaster.bases.default import default_basis
from regretless.forecaster.events.cover import Cover, clustered, paper_gamma, snapped
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.guarantees.norms import recommended_eta
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.attendance import Attendance
from regretless.market.game.guarantee import Guarantee
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.market.numerics.storage import in_layout
from regretless.scenarios.assembly.blocks import BlockPlan, plan_of
from regretless.scenarios.assembly.construct import construct, drawn_values, offering
from regretless.scenarios.assembly.models import make_advisers
from regretless.scenarios.assembly.populations import DrawnPopulation, first_of
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.cohort import AnyCoverSpec, ClusterSpec, CohortSpec, LearnerSpec

RULE_ATTRIBUTES = ("name", "hears_label", "lipschitz", "gap", "predicted", "play")  # a rule offers
NO_GUARANTEE = Guarantee()


@dataclass(frozen=True, eq=False)
class ServedCohort:
    """A cohort of K rows that plays, how the forecaster serves it, and what it is promised."""

    spec: CohortSpec
    cohort: Any  # the market's Cohort, of the class that the response asks for
    attendance: Attendance  # of each row
    protected: ProtectedLosses | None  # on its behalf; None where nothing is
    cover: Cover | None = None  # how its losses are served through fewer
    loss_of_row: Indices | None = None  # (K,) distinct loss of each row; None for its own
    misreports: bool = False  # whether some of its agents report other losses than their own
    guarantee: Guarantee = NO_GUARANTEE  # found once its block has a forecaster

    @property
    def promises(self) -> int:
        """How many events a promise to all rows is about: distinct losses, stays and draws."""
        n_rows = len(self.cohort.loss)
        is_apart = not self.attendance.throughout or self.cohort.private
        if self.loss_of_row is None or is_apart:
            return n_rows
        return int(self.loss_of_row.max()) + 1

    @property
    def protected_index(self) -> Indices | slice:
        """Which of the protected losses each row is served through (K,)."""
        loss_index = slice(None) if self.loss_of_row is None else self.loss_of_row
        return loss_index if self.cover is None else self.cover.representative_of[loss_index]

    def hears_at_once(self) -> Mask | None:
        """Return the rows that hear every forecast at once (K,); None for all."""
        distance = self.cohort.distance
        return None if distance is None else np.asarray(distance == 0)


def make_cohort(
    population: DrawnPopulation,
    plans: Sequence[BlockPlan],
    scenario: ResolvedScenario,
    *,
    seed: int,
) -> ServedCohort:
    """Make the cohort that plays, by what its response names.

    Learners whom no plan names play beside the broadcast, and nothing is protected for them.
    UserError if a setting does not fit, or the basis of its block does not span its losses.
    """
    rounds = scenario.rounds
    plan = plan_of(population.spec.name, plans)
    if plan is None:
        learners = _make_learners(population, scenario, seed, block=0)
        attendance = population.attendance_of_rows(learners.row_of)
        return ServedCohort(population.spec, learners, attendance, protected=None)
    if population.spec.response in register.response:
        return _responding_cohort(population, plan, seed=seed, rounds=rounds)
    if population.spec.learns:
        return _learning_cohort(population, plan, scenario, seed=seed)
    return _scripted_cohort(population, plan, seed=seed, rounds=rounds)


# Agents who respond by a rule.


def _responding_cohort(
    population: DrawnPopulation, plan: BlockPlan, *, seed: int, rounds: int
) -> ServedCohort:
    spec = population.spec
    distinct_losses, type_of = unique_losses(population.declared)
    loss_of_row, row_of = population.rows_of(type_of)
    n_rows = len(loss_of_row)
    own_coefficients = coefficients_in(plan.basis, distinct_losses, spec.name)
    cover = None
    protected = own_coefficients
    if spec.cover is not None:
        cover = covered(spec.cover, own_coefficients, rounds)
        protected = (cover.offset, cover.weights)
    rule = make_response(spec, plan.basis, distinct_losses, rounds=rounds)

    # The losses by which each row responds, and their coefficients.
    response_losses = distinct_losses
    coefficients = own_coefficients
    if n_rows != len(distinct_losses):  # else a row for each loss, in order: nothing to copy
        offset, weights = own_coefficients
        response_losses = distinct_losses[loss_of_row]
        coefficients = (offset[loss_of_row], in_layout(weights[loss_of_row]))
    true_losses = response_losses
    if population.reported is not None:
        true_losses = population.loss[first_of(row_of)]
        if spec.acts_on == "truth":
            response_losses = true_losses
            coefficients = coefficients_in(plan.basis, true_losses, spec.name)
    representative_of = None
    if cover is not None and spec.cover is not None and spec.cover.play != "own":
        coefficients = protected
        representative_of = cover.representative_of[loss_of_row]

    multiplicity = None
    if population.multiplicity is not None:
        multiplicity = np.bincount(row_of, population.multiplicity).astype(np.intp)
    distance = None
    if population.distance is not None:
        distance = population.distance[first_of(row_of)]
    cohort_class: type[RespondingCohort] = RespondingCohort
    owner_of_stream = "cohort"
    if spec.draws_alone:  # the referee draws a prediction for each agent
        cohort_class = PrivateCohort
        owner_of_stream = "referee"
    cohort = cohort_class(
        name=spec.name,
        utility=spec.utility,
        block=plan.index,
        loss=true_losses,
        row_of=row_of if multiplicity is None else np.arange(n_rows),
        coefficients=coefficients,
        response=rule,
        ledger=population.empty_ledger(n_rows),
        rng=stream(seed, owner_of_stream, spec.name, "play"),
        policies=population.policies,
        representative_of=representative_of,
        distance=distance,
        relay=plan.relay,
        acts_on=response_losses,
        multiplicity=multiplicity,
        expects_own=response_losses is true_losses and representative_of is None,
    )
    return ServedCohort(
        spec=spec,
        cohort=cohort,
        attendance=population.attendance_of_rows(row_of),
        protected=ProtectedLosses(*protected, population.policies, **rule.protected()),
        cover=cover,
        loss_of_row=loss_of_row,
        misreports=population.reported is not None,
    )


def make_response(spec: CohortSpec, basis: Basis, losses: Loss, *, rounds: int) -> Response:
    """Make a cohort's response rule; the error of its block's basis sets a recommended eta."""
    eta = spec.eta
    if eta == "recommended":
        error = 0.0
        if basis.hull != "simplex":
            error = float(basis.certified_error(losses))
        eta = recommended_eta(spec.actions, error=error, rounds=rounds)
    settings = {} if eta is None else {"eta": eta}
    where = f"response '{spec.response}' of cohort.{spec.name}"
    response = construct(where, register.response[spec.response], **settings)
    rule = offering(where, response, RULE_ATTRIBUTES)
    if type(rule) in BUILT_IN:
        return rule  # type: ignore[no-any-return]
    if isinstance(rule, BUILT_IN) and rule.hears_ensemble:
        raise UserError(f"{where}: a rule of your own hears no ensembles; use BestResponse's table")
    return Checked(rule)


# Agents of a user's class.


def _scripted_cohort(
    population: DrawnPopulation, plan: BlockPlan, *, seed: int, rounds: int
) -> ServedCohort:
    """Make a cohort of a user's class, each agent with its own settings and stream."""
    spec = population.spec
    cohort_class, agents = _make_scripted_agents(population, seed)
    cohort = cohort_class(
        name=spec.name,
        utility=spec.utility,
        rule=spec.response,
        block=plan.index,
        loss=population.loss,
        agents=agents,
        ledger=population.empty_ledger(spec.count),
        policies=population.policies,
        distance=population.distance,
        relay=plan.relay,
    )
    protected = coefficients_in(plan.basis, population.declared, spec.name)
    cover = None
    if spec.cover is not None:
        cover = covered(spec.cover, protected, rounds)
        protected = (cover.offset, cover.weights)
    return ServedCohort(
        spec=spec,
        cohort=cohort,
        attendance=population.attendance_of_rows(cohort.row_of),
        protected=ProtectedLosses(*protected, population.public_policies),
        cover=cover,
        misreports=population.reported is not None,
    )


def _make_scripted_agents(
    population: DrawnPopulation, seed: int
) -> tuple[type[ScriptedCohort], list[Any]]:
    """Make the agents of a user's class, or the one crowd that stands for them all."""
    spec = population.spec
    maker = register.agent[spec.response]
    where = f"agent '{spec.response}'"
    rng = stream(seed, "cohort", spec.name, "settings")
    settings: dict[str, Any] = {}
    for key, value in spec.settings.items():
        key_of_setting = f"cohort.{spec.name}.settings.{key}"
        settings[key] = drawn_values(key_of_setting, value, rng, spec.count)
    if isinstance(maker, type) and issubclass(maker, ScriptedCrowd):
        rng_of_crowd = stream(seed, "cohort", spec.name, "agents")
        crowd = construct(where, maker, population.loss, rng_of_crowd, **settings)
        return CrowdCohort, [offering(where, crowd, ("rng",))]
    agents = []
    for i in range(spec.count):
        own_settings: dict[str, Any] = {}
        for key, value in settings.items():
            own_settings[key] = value[i].item() if isinstance(value, np.ndarray) else value
        own_rng = stream(seed, "cohort", spec.name, "agent", str(i))
        agent = construct(where, maker, population.loss[i], own_rng, **own_settings)
        agents.append(offering(where, agent, ("rng", "act", "learn")))
    return ScriptedCohort, agents


# Learners.


def _learning_cohort(
    population: DrawnPopulation, plan: BlockPlan, scenario: ResolvedScenario, *, seed: int
) -> ServedCohort:
    """Make learners for whom the forecast is made as if they trusted it."""
    spec = population.spec
    learners = _make_learners(population, scenario, seed, block=plan.index)
    distinct_losses, type_of = unique_losses(population.loss)
    protected = coefficients_in(plan.basis, distinct_losses, spec.name)
    loss_of_row = None
    if len(learners.loss) > len(distinct_losses):
        loss_of_row = type_of[first_of(learners.row_of)]
    return ServedCohort(
        spec=spec,
        cohort=learners,
        attendance=population.attendance_of_rows(learners.row_of),
        protected=ProtectedLosses(*protected, population.policies),
        loss_of_row=loss_of_row,
    )


def _make_learners(
    population: DrawnPopulation, scenario: ResolvedScenario, seed: int, *, block: int
) -> LearnerCohort:
    """Make learners, who tune themselves to the part of the rounds in which they are there."""
    spec = population.spec
    rounds = scenario.rounds
    where = f"cohort.{spec.name}.settings of learner '{spec.response}'"
    maker = register.learner[spec.response]
    losses, row_of = unique_losses(population.loss)
    try:
        learner = construct(where, maker, **spec.settings)
        if not isinstance(learner, RowLearner):
            complaint = f"learner '{spec.response}' is no learner; inherit from RowLearner"
            raise UserError(complaint)  # noqa: TRY301 - the rest is told below
        offering(f"learner '{spec.response}'", learner, ("name",))
        has_own_stays = spec.entry_rate is not None or spec.exit_rate is not None
        is_apart = learner.bandit or learner.has_distinct_rows
        if is_apart or spec.budget_constraint or population.has_own_rows:
            losses = population.loss
            row_of = np.arange(spec.count)
        elif has_own_stays:  # who has learned for as long, and lost the same, shares a row
            loss_of_row, row_of = population.rows_of(row_of)
            losses = losses[loss_of_row]
        if has_own_stays:
            stays = population.attendance_of_rows(row_of)
            learner = LearnersByStay(learner, entered=stays.entered, left=stays.left)
        cohort_class: type[LearnerCohort] = LearnerCohort
        of_cohort: dict[str, Any] = {}
        if isinstance(spec, LearnerSpec) and spec.advice is not None:
            cohort_class = AdvisedCohort
            of_cohort["advice"] = _make_advice(spec, losses, scenario)
        return cohort_class(
            name=spec.name,
            utility=spec.utility,
            block=block,
            loss=losses,
            row_of=row_of,
            learner=learner,
            ledger=population.empty_ledger(len(losses)),
            rng=stream(seed, "cohort", spec.name, "play"),
            policies=population.policies,
            horizon=(spec.exits or rounds) - spec.enters,
            **of_cohort,
        )
    except UserError as error:
        names_its_place = str(error).startswith((f"cohort.{spec.name}.", "learner"))
        raise UserError(str(error) if names_its_place else f"{where}: {error}") from error


def _make_advice(spec: LearnerSpec, losses: Loss, scenario: ResolvedScenario) -> Advice:
    """Make the advice of a cohort with these losses: models' best responses, and actions."""
    basis = default_basis([losses])
    names = [name for name in spec.advice or () if name != "actions"]
    try:
        advisers = make_advisers(scenario.spec, basis, names) if names else None
    except UserError as error:
        raise UserError(f"cohort.{spec.name}.advice: {error}") from error
    coefficients = coefficients_in(basis, losses, spec.name)
    return Advice(basis, coefficients, advisers, with_actions="actions" in (spec.advice or ()))


# What is protected.


def coefficients_in(basis: Basis, losses: Loss, cohort_name: str) -> tuple[Array, Array]:
    """Return the coefficients of a cohort's losses in a basis; UserError if it spans them not."""
    try:
        offset, weights = basis.coefficients(losses)
    except ValueError as reason:
        raise UserError(
            f"cohort.{cohort_name}.basis: {reason}; leave the basis out for the default"
        ) from reason
    return offset, in_layout(weights)


def covered(spec: AnyCoverSpec, coefficients: tuple[Array, Array], rounds: int) -> Cover:
    """Return the cover of a cohort's coefficients that its file asks for."""
    offset, weights = coefficients
    if isinstance(spec, ClusterSpec):
        return clustered(offset, weights, radius=spec.radius or 0.0, count=spec.count)
    gamma = spec.gamma or paper_gamma(weights.shape[-1], rounds)
    return snapped(offset, weights, gamma=gamma)
