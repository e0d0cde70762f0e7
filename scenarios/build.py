"""The composition root: from a validated specification to a playable market.

    populations  each cohort's utilities are drawn from its stream; equal losses become one row
    bases        one block of the broadcast per loss form (``scenarios.bases``)
    forecasters  one independent instance per block, protecting the cohorts that hear it
    guarantees   which theorem covers a cohort, if any
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.adversaries import Replay
from agents.cohort import Cohort
from agents.policies import NamedPolicy
from agents.scripted import ScriptedCohort
from agents.utilities import Population
from forecaster.bases import DirectSumBasis, LinearBasis, PowerBasis
from forecaster.bounds import draw_term
from forecaster.events import LossGroup
from forecaster.unbiased import UnbiasedPrediction
from market import register
from market.basis import Basis
from market.errors import UserError, closest
from market.ledger import Ledger
from market.losses import SeparablePower, unique_losses
from market.model import Guarantee, MarketModel
from market.randomness import stream
from market.roles import Adversary, Forecaster
from market.round import Block, Game
from scenarios.data import Table, read_table
from scenarios.spec import CohortSpec, ScenarioSpec

MOST_EXACT = 6  # distinct exponents that are listed one by one; more are interpolated
BASIS_ERROR = 0.01  # declared error of an interpolating power basis


@dataclass(frozen=True, eq=False)
class Draft:
    """A cohort between its population and its seat in the game.

    Parameters
    ----------
    spec : CohortSpec
    loss : stack of losses, one per agent
    policies : tuple of NamedPolicy
    """

    spec: CohortSpec
    loss: SeparablePower
    policies: tuple[NamedPolicy, ...]

    @property
    def form(self) -> str:
        """Which block serves it."""
        return "linear" if (self.loss.exponent == 1).all() else "power"


class Scenario:
    """A validated scenario, ready to be built with any seed.

    Parameters
    ----------
    spec : ScenarioSpec
    """

    def __init__(self, spec: ScenarioSpec) -> None:
        self.spec = spec
        self.table: Table | None = read_table(spec.data) if spec.data else None

    def build(self, *, seed: int | None = None, log_every: int = 1) -> MarketModel:
        """Return a model that has played no round yet.

        Parameters
        ----------
        seed : int, optional
            Root seed; the scenario's own by default.
        log_every : int
            Rounds between two entries of the regret log.

        Raises
        ------
        UserError
            If a name is unknown or a parameter does not fit.
        """
        root = self.spec.seed if seed is None else seed
        adversary = self._adversary(root)
        drafts = [self._draft(cohort, root, adversary.outcomes) for cohort in self.spec.cohort]
        basis = direct_sum(drafts, adversary.outcomes)
        forms = list(dict.fromkeys(draft.form for draft in drafts))
        seats = [self._seat(d, forms.index(d.form), basis, root) for d in drafts]
        blocks = [
            Block(form, part, self._forecaster(part, self._groups(drafts, seats, i)))
            for i, (form, part) in enumerate(zip(forms, basis.parts, strict=True))
        ]
        losses = sum(len(seat.loss) for seat in seats)
        guarantees = [guarantee(seat, blocks[seat.block], losses) for seat in seats]
        game = Game(blocks, seats, adversary=adversary, seed=root)
        return MarketModel(
            game, guarantees, seed=root, rounds=self.spec.rounds, log_every=log_every
        )

    def _adversary(self, root: int) -> Adversary:
        if self.spec.data is not None and self.table is not None:
            names = tuple(self.spec.data.context)
            return Replay(self.table.outcomes, self.table.contexts, names)
        assert self.spec.adversary is not None  # noqa: S101 - the specification has one of the two
        kind = self.spec.adversary.kind
        return construct(
            f"adversary '{kind}'",
            register.adversary[kind],
            self.spec.adversary.outcomes,
            stream(root, "adversary"),
            **self.spec.adversary.parameters,
        )

    def _draft(self, spec: CohortSpec, root: int, goods: int) -> Draft:
        rng = stream(root, "cohort", spec.name, "population")
        population = Population(rng, spec.count, spec.actions, goods)
        drawn = {key: drawn_values(value, population) for key, value in spec.parameters.items()}
        where = f"cohort.{spec.name}.parameters of utility '{spec.utility}'"
        loss = construct(where, register.utility[spec.utility], population, **drawn)
        low, high = loss.range()
        if low.min() < -1e-9 or high.max() > 1 + 1e-9:
            loss = loss.normalised()
        return Draft(spec, loss, tuple(self._policy(name, spec) for name in spec.policies))

    def _policy(self, name: str, cohort: CohortSpec) -> NamedPolicy:
        where = f"policy '{name}' of cohort.{cohort.name}"
        if name in self.spec.policy:
            spec = self.spec.policy[name]
            rule = construct(where, register.policy[spec.kind], **spec.parameters)
        elif name in register.policy:
            rule = register.policy[name]
        else:
            known = [*self.spec.policy, *register.policy.names()]
            raise UserError(f"{where} is not defined; {closest(name, known)} or add [policy.{name}]")
        for action in getattr(rule, "actions", ()):
            if not 0 <= action < cohort.actions:
                raise UserError(f"{where} suggests action {action}; use 0 to {cohort.actions - 1}")
        feature = getattr(rule, "feature", None)
        features = self.spec.data.context if self.spec.data else []
        if feature is not None and feature not in features:
            raise UserError(f"{where}: no feature '{feature}'; {closest(feature, features)}")
        return NamedPolicy(name, rule)

    def _seat(
        self, draft: Draft, block: int, basis: DirectSumBasis, root: int
    ) -> Cohort | ScriptedCohort:
        spec = draft.spec
        if spec.response in register.response:
            types, row_of = unique_losses(draft.loss)
            eta = {} if spec.eta is None else {"eta": spec.eta}
            return Cohort(
                name=spec.name,
                utility=spec.utility,
                block=block,
                loss=types,
                row_of=row_of,
                coefficients=basis.parts[block].coefficients(types),
                response=register.response[spec.response](**eta),
                ledger=ledger(draft, len(types)),
                rng=stream(root, "cohort", spec.name, "play"),
                policies=draft.policies,
            )
        if spec.response not in register.agent:
            known = [*register.response.names(), *register.agent.names()]
            raise UserError(
                f"cohort.{spec.name}.response: unknown '{spec.response}'; "
                f"{closest(spec.response, known)}"
            )
        agent = register.agent[spec.response]
        players = [
            agent(draft.loss[i], stream(root, "cohort", spec.name, "agent", str(i)))
            for i in range(spec.count)
        ]
        return ScriptedCohort(
            name=spec.name,
            utility=spec.utility,
            rule=spec.response,
            block=block,
            loss=draft.loss,
            agents=players,
            ledger=ledger(draft, spec.count),
            policies=draft.policies,
        )

    def _groups(
        self, drafts: list[Draft], seats: list[Cohort | ScriptedCohort], block: int
    ) -> list[tuple[Draft, Cohort | ScriptedCohort]]:
        pairs = zip(drafts, seats, strict=True)
        return [(draft, seat) for draft, seat in pairs if seat.block == block]

    def _forecaster(
        self, basis: Basis, heard_by: list[tuple[Draft, Cohort | ScriptedCohort]]
    ) -> Forecaster:
        spec = self.spec.forecaster
        if spec.kind != "decision-swap":
            where = f"forecaster '{spec.kind}'"
            if spec.kind not in register.forecaster:
                known = ["decision-swap", *register.forecaster.names()]
                raise UserError(f"unknown {where}; {closest(spec.kind, known)}")
            return construct(where, register.forecaster[spec.kind], basis.size, **spec.parameters)
        if spec.parameters:
            unknown = next(iter(spec.parameters))
            raise UserError(
                f"unknown key 'forecaster.{unknown}'; {closest(unknown, ['kind', 'weights', 'base'])}"
            )
        groups = []
        for draft, seat in heard_by:
            offset, weights = basis.coefficients(seat.loss)
            groups.append(LossGroup(offset, weights, draft.policies, draft.spec.eta))
        return UnbiasedPrediction(groups, weights=spec.weights, horizon=self.spec.rounds)


def direct_sum(drafts: list[Draft], outcomes: int) -> DirectSumBasis:
    """Direct sum of one basis per loss form, in the order in which the cohorts bring them."""
    parts: dict[str, Basis] = {}
    for draft in drafts:
        if draft.form == "linear":
            parts["linear"] = LinearBasis(outcomes)
        elif "power" not in parts:
            stacked = [d.loss.exponent for d in drafts if d.form == "power"]
            parts["power"] = power_basis(np.unique(np.concatenate(stacked)), outcomes)
    return DirectSumBasis(list(parts.values()))


def power_basis(exponents: np.ndarray[Any, np.dtype[np.float64]], outcomes: int) -> PowerBasis:
    """Exact for a few exponents, interpolating for many."""
    if len(exponents) <= MOST_EXACT:
        return PowerBasis(exponents, outcomes)
    low, high = float(exponents[0]), float(exponents[-1])
    try:
        return PowerBasis.covering(low, high, outcomes, error=BASIS_ERROR)
    except ValueError as error:
        raise UserError(f"cohort parameters rho: {error}") from error


def ledger(draft: Draft, rows: int) -> Ledger:
    """Return an empty ledger for a cohort."""
    spec = draft.spec
    return Ledger(
        rows,
        spec.actions,
        policies=len(draft.policies),
        measures=spec.measures,
        constants=spec.constants,
    )


def guarantee(seat: Cohort | ScriptedCohort, block: Block, losses: int) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    Parameters
    ----------
    seat : cohort
    block : Block
        What it hears.
    losses : int
        Distinct losses of the whole run, for the union over all of them.
    """
    forecaster = block.forecaster
    if not isinstance(forecaster, UnbiasedPrediction) or not isinstance(seat, Cohort):
        return Guarantee()
    if seat.response.hears_label and (seat.response.eta is None or not block.basis.convex_image):
        return Guarantee()
    policies, actions = len(seat.policies), seat.loss.actions

    def bound() -> np.ndarray[Any, np.dtype[np.float64]]:
        expected = forecaster.bias_bound().regret(seat.coefficients[1], policies=policies)
        drawn = draw_term(
            forecaster.time, losses, actions=actions, comparators=actions + policies
        )
        return expected + drawn + 2 * block.basis.error + seat.gap()

    label = "smooth-decision-swap" if seat.response.hears_label else "decision-swap"
    return Guarantee(label, bound)


def drawn_values(value: Any, population: Population) -> Any:
    """Resolve a parameter: a range or choices are drawn per agent, a number is everybody's.

    Two numbers ``[low, high]`` are a range, ``{ choices = [...] }`` a list to draw from; anything
    else goes to the utility as it stands.
    """
    match value:
        case bool() | str():
            return value
        case [int() | float() as low, int() | float() as high]:
            return population.rng.uniform(low, high, population.count)
        case {"choices": [*options]} if options:
            return population.rng.choice(np.asarray(options, dtype=np.float64), population.count)
        case _:
            return value


def construct(where: str, maker: Any, *arguments: Any, **parameters: Any) -> Any:
    """Call a registered maker; a parameter that it does not know or accept is the user's mistake."""
    try:
        inspect.signature(maker).bind(*arguments, **parameters)
    except TypeError as error:
        known = [
            name
            for name, parameter in inspect.signature(maker).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY or name in parameters
        ] or list(inspect.signature(maker).parameters)
        raise UserError(f"{where}: {error}; it takes {', '.join(known)}") from error
    try:
        return maker(*arguments, **parameters)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {error}") from error
