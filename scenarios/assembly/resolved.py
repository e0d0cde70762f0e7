"""A scenario of which nothing is open any more: what every step of ``build`` reads.

``resolve`` makes it once, from a validated specification. Cohorts without agents are left out, and
of all others it is settled whether their agents are counted by type or listed one by one; the data
file is read; the game file is read, and says how many outcomes there are and what actions are
called. The specification that was given is not changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from regretless.market.core.errors import UserError, closest
from regretless.market.exploitability.bimatrix import Bimatrix, read_game
from regretless.market.solutions import NormalForm
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import check_cohorts, settle_counts
from regretless.scenarios.config.world import MarketSpec, market_class


@dataclass(frozen=True, eq=False)
class ResolvedScenario:
    """A scenario with its files read, the sizes of its game filled in and its counts settled.

    ``spec.cohort`` has all cohorts as the file has them, for the manifest; whoever builds a market
    reads ``cohorts``.
    """

    spec: ScenarioSpec
    cohorts: tuple[CohortSpec, ...]  # those that have agents, counted or listed
    table: Table | None  # of the data that are replayed
    game: Bimatrix | None  # whose leader is the adversary
    # The least and the greatest loss in a market with payoffs of its own; None in others.
    loss_range: tuple[float, float] | None = None
    spare: Mapping[str, int] = field(
        default_factory=dict
    )  # by cohort: last agents, who never enter

    @property
    def rounds(self) -> int:
        """The length of the run."""
        return self.spec.rounds

    def with_spare(self, spare: Mapping[str, int]) -> "ResolvedScenario":
        """Return the scenario with so many more agents in some cohorts, who never enter.

        UserError if there is no cohort of a name.
        """
        names = [cohort.name for cohort in self.cohorts]
        for name in spare:
            if name not in names:
                raise UserError(f"spare: there is no cohort '{name}'; {closest(name, names)}")
        cohorts = []
        for cohort in self.cohorts:
            count = cohort.count + spare.get(cohort.name, 0)
            cohorts.append(cohort.model_copy(update={"count": count}))
        return replace(self, cohorts=tuple(cohorts), spare=spare)


def resolve(spec: ScenarioSpec) -> ResolvedScenario:
    """Read a scenario's files and settle what its specification leaves open.

    UserError if cohorts do not go together, or a data or game file cannot be used.
    """
    cohorts_with_agents = [cohort for cohort in spec.cohort if cohort.count]
    if not cohorts_with_agents:
        raise UserError("every cohort has count = 0; give one of them agents")
    cohorts = settle_counts(cohorts_with_agents, spec)
    check_cohorts(cohorts, rounds=spec.rounds)
    table = None if spec.data is None else _read_completed_table(spec.data, rounds=spec.rounds)
    game = _read_leader_game(spec)
    if game is not None:
        spec = _with_game_sizes(spec, game)
        cohorts = _with_game_actions(cohorts, game)
    cohorts = _with_names_of_players_actions(spec, cohorts)
    return ResolvedScenario(
        spec=spec,
        cohorts=tuple(cohorts),
        table=table,
        game=game,
        loss_range=_loss_range_of_market(spec),
    )


def _read_completed_table(data: DataSpec, *, rounds: int) -> Table:
    """Read the table of a data file, with estimates in place of outcomes that were cut off."""
    table = read_table(data)
    if table.is_censored is None:
        return table
    # Its models take as long to import as the whole of most other runs' set-up.
    from regretless.scenarios.assembly.censored_data import complete_table  # noqa: PLC0415

    return complete_table(table, data, rounds=rounds)


def _loss_range_of_market(spec: ScenarioSpec) -> tuple[float, float] | None:
    """Return the least and greatest loss in a market with payoffs of its own; None in others."""
    market = market_class(spec.market)
    if spec.market is None or market is None or not market.has_own_payoffs:
        return None
    where = f"market '{spec.market.kind}'"
    smallest, greatest = construct(where, market.loss_range, **spec.market.parameters)
    return float(smallest), float(greatest)


def _with_names_of_players_actions(
    spec: ScenarioSpec, cohorts: Sequence[CohortSpec]
) -> list[CohortSpec]:
    """Return cohorts that play a game from a file with the names that their actions have there."""
    if not isinstance(spec.market, MarketSpec) or spec.market.kind != "normal-form":
        return list(cohorts)
    game = NormalForm.read(spec.market.parameters["file"])
    named_cohorts = []
    first_player = 0
    for cohort in cohorts:
        names = set(game.actions[first_player : first_player + cohort.count])
        first_player += cohort.count
        if cohort.action_names is None and len(names) == 1:
            (common_names,) = names
            if len(common_names) == cohort.actions:
                cohort = cohort.model_copy(update={"action_names": list(common_names)})  # noqa: PLW2901
        named_cohorts.append(cohort)
    return named_cohorts


def _read_leader_game(spec: ScenarioSpec) -> Bimatrix | None:
    """Read the game that the adversary leads; None without one.

    UserError if its sizes are not those that the scenario names.
    """
    if spec.game is None or spec.adversary is None:
        return None
    game = read_game(spec.game.file)
    leader_actions, follower_actions = game.leader_payoff.shape
    if leader_actions < 2:
        raise UserError(f"game.file '{spec.game.file}': the leader has 1 action; give it more")
    if spec.adversary.outcomes not in {None, leader_actions}:
        setting = f"adversary.outcomes = {spec.adversary.outcomes}"
        has = f"the game's leader has {leader_actions} actions"
        raise UserError(f"{setting}: {has}; leave outcomes out")
    for cohort in spec.cohort:
        if cohort.utility == "game" and cohort.actions != follower_actions:
            setting = f"cohort.{cohort.name}.actions = {cohort.actions}"
            has = f"the game's follower has {follower_actions}"
            raise UserError(f"{setting}: {has}; write {follower_actions}")
    return game


def _with_game_sizes(spec: ScenarioSpec, game: Bimatrix) -> ScenarioSpec:
    """Return a specification with the outcomes and the names of actions that a game has."""
    adversary = spec.adversary
    assert adversary is not None  # noqa: S101 - a game has an adversary, who leads it
    outcomes = {
        "outcomes": len(game.leader_actions),
        "outcome_names": adversary.outcome_names or list(game.leader_actions),
    }
    sizes = {
        "adversary": adversary.model_copy(update=outcomes),
        "cohort": _with_game_actions(spec.cohort, game),
    }
    return spec.model_copy(update=sizes)


def _with_game_actions(cohorts: Sequence[CohortSpec], game: Bimatrix) -> list[CohortSpec]:
    """Return cohorts in which followers of a game have the names of its actions, if no others."""
    named_cohorts = []
    for cohort in cohorts:
        if cohort.utility == "game" and cohort.action_names is None:
            names = {"action_names": list(game.follower_actions)}
            named_cohorts.append(cohort.model_copy(update=names))
        else:
            named_cohorts.append(cohort)
    return named_cohorts
