"""From a resolved scenario to a playable market, step by named step.

``build_model`` is the whole recipe. Its first half, ``make_players``, makes who plays, its second
half, ``seat_players``, seats them around a market; ``branches`` changes players in between. One
cohort is on its way a specification (``config.cohort``), a population (``populations``), a cohort
(``cohorts``) and a seat (``market.game.seats``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from regretless.agents.cohorts.compiled_rounds import compiled_rounds
from regretless.agents.cohorts.scripted_rounds import scripted_rounds
from regretless.forecaster.events.quantile_grid import DEFAULT_STEPS
from regretless.market.core.errors import UserError
from regretless.market.exploitability.tracker import MEASURES, Tracker
from regretless.market.game.network import Network
from regretless.market.game.protocols import Adversary
from regretless.market.game.round import Block, Game
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.blocks import assign_blocks, plan_quantiles
from regretless.scenarios.assembly.cohorts import ServedCohort, make_cohort
from regretless.scenarios.assembly.forecasters import make_blocks
from regretless.scenarios.assembly.guarantees import find_guarantees
from regretless.scenarios.assembly.objectives import prefer_objective
from regretless.scenarios.assembly.populations import DrawnPopulation, draw_populations
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.assembly.seats import make_seat
from regretless.scenarios.assembly.world import draw_network, make_adversary, make_market
from regretless.scenarios.logs.column_notes import named_columns_of


@dataclass(frozen=True)
class BuildOptions:
    """How a market is to be built."""

    seed: int  # the root seed
    log_every: int = 1  # rounds between two entries of the regret log
    apart: bool = False  # whether every agent has a row of its own
    spare: Mapping[str, int] = field(default_factory=dict)  # by cohort: who may be let in later
    drawer: Callable[..., Any] | None = None  # draws figures, given the specification first


@dataclass(frozen=True, eq=False)
class Players:
    """Everybody who takes part in a market, before they are seated."""

    adversary: Adversary
    network: Network | None
    populations: Sequence[DrawnPopulation]  # of the cohorts, in the order of the file
    blocks: Sequence[Block]
    cohorts: Sequence[ServedCohort]


def build_model(scenario: ResolvedScenario, options: BuildOptions) -> MarketModel:
    """Build a market that has played no round yet.

    UserError if a name is unknown or a parameter does not fit.
    """
    check_rows(scenario, options)
    players = make_players(scenario, options)
    model = seat_players(players, scenario, options)
    check_stopping_rule(scenario, model)
    return model


def make_players(scenario: ResolvedScenario, options: BuildOptions) -> Players:
    """Make the adversary, the network, the blocks of the broadcast and all cohorts."""
    seed = options.seed
    scenario = scenario.with_spare(options.spare)
    adversary = make_adversary(scenario, seed)
    network = draw_network(scenario, seed)
    populations = draw_populations(
        scenario,
        seed,
        n_outcomes=adversary.outcomes,
        network=network,
        all_have_own_rows=options.apart,
    )
    plans = assign_blocks(populations, network)
    plans += plan_quantiles(
        scenario.spec.forecaster.quantiles or (),
        n_outcomes=adversary.outcomes,
        steps=scenario.spec.forecaster.quantile_steps or DEFAULT_STEPS,
        existing=plans,
    )
    cohorts = [make_cohort(population, plans, scenario, seed=seed) for population in populations]
    blocks = make_blocks(plans, cohorts, scenario)
    windows = scenario.spec.windows
    promised_cohorts = find_guarantees(
        cohorts,
        plans,
        blocks,
        rounds=scenario.rounds,
        windows=windows.spans(scenario.rounds) if windows else (),
    )
    return Players(adversary, network, populations, blocks, promised_cohorts)


def seat_players(
    players: Players,
    scenario: ResolvedScenario,
    options: BuildOptions,
    *,
    altered: ResolvedScenario | None = None,
) -> MarketModel:
    """Seat players around a market, and return the model in which they play.

    ``altered``: the scenario of a branch, from which its market and its objective are taken.
    """
    seed = options.seed
    surroundings = scenario if altered is None else altered
    playing = [served.cohort for served in players.cohorts]
    market = make_market(surroundings, playing, seed)
    seats = [
        make_seat(
            served,
            players.blocks[served.cohort.block],
            market,
            scenario,
            seed,
            n_outcomes=players.adversary.outcomes,
        )
        for served in players.cohorts
    ]
    game = Game(
        players.blocks,
        seats,
        adversary=players.adversary,
        seed=seed,
        market=market,
        network=players.network,
    )
    prefer_objective(game, surroundings.spec.forecaster.objective)
    return make_model(game, players, scenario, options)


def make_model(
    game: Game, players: Players, scenario: ResolvedScenario, options: BuildOptions
) -> MarketModel:
    """Make the model that plays a game, keeps its logs and names what is in its tables."""
    spec = scenario.spec
    action_namers = {}
    action_names = {}
    traits = {}
    for population in players.populations:
        name = population.spec.name
        namer = population.action_namer
        if namer is not None:
            action_namers[name] = namer
        common_names = population.common_action_names
        if common_names is not None:
            action_names[name] = common_names
        traits[name] = population.traits
    model = MarketModel(
        game,
        [served.guarantee for served in players.cohorts],
        seed=options.seed,
        rounds=spec.rounds,
        tracker=make_tracker(game, players, options.seed),
        log_every=options.log_every,
        logs_every_round=spec.logs == "full",
        log_agents=spec.log_agents,
        measures=spec.measures,
        solutions=spec.solutions,
        namers=action_namers,
        called=action_names,
        traits=traits,
        windows=spec.windows.spans(spec.rounds) if spec.windows else (),
    )
    for index, cohort in enumerate(game.cohorts):
        if cohort.name in options.spare:
            model.keep_spare(index, options.spare[cohort.name])
    model.name = spec.name
    if spec.data is not None:
        model.named_columns = named_columns_of({"data": spec.data.model_dump()})
    if model.tracker is None:
        model.compiled = compiled_rounds(game) or scripted_rounds(game, model.note_block)
    if spec.until is not None and has_greedy_strategies(game):
        model.patience = spec.until.greedy_unchanged
    if options.drawer is not None:
        model.drawer = partial(options.drawer, spec)
    return model


def has_greedy_strategies(game: Game) -> bool:
    """Whether some agents have greedy strategies, as those of q-learning have."""
    return any(cohort.unchanged_rounds is not None for cohort in game.cohorts)


def check_stopping_rule(scenario: ResolvedScenario, model: MarketModel) -> None:
    """Raise UserError if a run is to end when strategies settle which nobody has.

    A branch in which nobody has them any more is played to its last round.
    """
    if scenario.spec.until is not None and not has_greedy_strategies(model.game):
        raise UserError(
            "until.greedy_unchanged: no cohort has a greedy strategy, as q-learning has; drop it"
        )


def make_tracker(game: Game, players: Players, seed: int) -> Tracker | None:
    """Make what follows the cohorts that keep their exploitability; None if none does."""
    is_followed = [
        not set(MEASURES).isdisjoint(population.spec.measures) for population in players.populations
    ]
    if not any(is_followed):
        return None
    return Tracker(game.cohorts, game.adversary, is_followed, seed=seed, market=game.market)


def check_rows(scenario: ResolvedScenario, options: BuildOptions) -> None:
    """Raise UserError if agents are to have rows of their own who are counted by type."""
    for cohort in scenario.cohorts:
        if cohort.multiplicity and (options.apart or cohort.name in options.spare):
            reason = "is counted, and no agent of it is apart from the others"
            raise UserError(f"build: cohort.{cohort.name} {reason}; give it multiplicity = false")
