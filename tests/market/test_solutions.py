"""Solutions of games against published answers and against programs of their own."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog, minimize_scalar
from small_scenarios import read_scenario

from regretless import NormalForm, UserError, load, register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import load as load_checkpoint
from regretless.market.core.checkpoint import save
from regretless.market.core.randomness import stream
from regretless.market.solutions import Solution, StageGame, distance, solve, stage_game_of
from regretless.market.solutions.nash import pure_equilibria

DILEMMA = [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]  # cooperate or defect
CHICKEN = [[[0, 7], [2, 6]], [[0, 2], [7, 6]]]  # dare or swerve (Aumann 1974)
PENNIES = [[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]]


def game_of(payoffs: Any) -> StageGame:
    """Return the stage game of payoffs."""
    return stage_game_of(NormalForm.from_payoffs(payoffs))


def solve_by_name(game: StageGame, *names: str) -> dict[str, Solution]:
    """Solve a game by these concepts; return the solutions by name."""
    return {solution.name: solution for solution in solve(game, names)}


def market_game(name: str, **keys: Any) -> StageGame:
    """Return the stage game of a bundled scenario without noise."""
    quiet = {} if name == "sealed-bids" else {"market.noise": 0.0}
    return stage_game_of(load(name, **quiet, **keys).build().game.market)


# By definition, profile by profile, with payoffs (A_1, ..., A_N, N).


def deviations_by_definition(payoffs: Array, profile: tuple[int, ...], agent: int) -> list[float]:
    """Return what each action of an agent would gain over its own at a profile."""
    gains = []
    for action in range(payoffs.shape[agent]):
        other = (*profile[:agent], action, *profile[agent + 1 :])
        gains.append(float(payoffs[other][agent] - payoffs[profile][agent]))
    return gains


def pure_nash_by_definition(payoffs: Array) -> list[tuple[int, ...]]:
    n_agents = payoffs.shape[-1]
    equilibria = []
    for profile in itertools.product(*map(range, payoffs.shape[:-1])):
        gains = [deviations_by_definition(payoffs, profile, agent) for agent in range(n_agents)]
        if max(max(of_agent) for of_agent in gains) <= 1e-12:
            equilibria.append(profile)
    return equilibria


def welfare_range_by_definition(payoffs: Array, concept: str) -> tuple[float, float]:
    """Return the greatest and least welfare over a polytope, constraint by constraint."""
    n_agents = payoffs.shape[-1]
    profiles = list(itertools.product(*map(range, payoffs.shape[:-1])))
    rows = []
    for agent in range(n_agents):
        for other in range(payoffs.shape[agent]):
            recommendations = [[action] for action in range(payoffs.shape[agent])]
            if concept == "cce":
                recommendations = [list(range(payoffs.shape[agent]))]
            for recommended in recommendations:
                row = []
                for profile in profiles:
                    gain = deviations_by_definition(payoffs, profile, agent)[other]
                    row.append(gain if profile[agent] in recommended else 0.0)
                rows.append(row)
    welfare = np.array([payoffs[profile].sum() for profile in profiles])
    welfare_limits = []
    for sign in (-1, 1):
        result = linprog(
            sign * welfare,
            A_ub=np.array(rows),
            b_ub=np.zeros(len(rows)),
            A_eq=np.ones((1, len(profiles))),
            b_eq=[1.0],
        )
        welfare_limits.append(float(welfare @ result.x))
    return welfare_limits[0], welfare_limits[1]


def welfare_range(game: StageGame, concept: str) -> tuple[float, float]:
    solutions = solve_by_name(game, concept)
    if concept in solutions:
        return solutions[concept].welfare, solutions[concept].welfare
    return solutions[f"best {concept}"].welfare, solutions[f"worst {concept}"].welfare


@pytest.mark.parametrize(("n_agents", "n_games"), [(2, 200), (3, 50)])  # every tenth by programs
def test_random_games_have_the_solutions_of_their_definitions(n_agents: int, n_games: int) -> None:
    """Payoffs are whole numbers, so that there are ties, and several equilibria."""
    rng = stream(7, "random games", str(n_agents))
    for number in range(n_games):
        sizes = rng.integers(2, 4, size=n_agents)
        payoffs = rng.integers(0, 6, size=(*sizes, n_agents)).astype(np.float64)
        game = game_of(payoffs)
        configurations = game.configurations
        pure = configurations.profiles[np.flatnonzero(configurations.greatest_gains <= 1e-9)]
        assert {tuple(profile) for profile in pure.tolist()} == {*pure_nash_by_definition(payoffs)}
        assert solve_by_name(game, "optimum")["optimum"].welfare == payoffs.sum(-1).max()
        for concept in ("ce", "cce") if number % 10 == 0 else ():
            expected = welfare_range_by_definition(payoffs, concept)
            assert welfare_range(game, concept) == pytest.approx(expected, abs=1e-6)


def test_defection_is_all_that_there_is_in_the_dilemma() -> None:
    solutions = solve_by_name(game_of(DILEMMA), "ce", "cce", "optimum")
    assert solutions["ce"].welfare == pytest.approx(2)
    assert solutions["cce"].welfare == pytest.approx(2)
    assert solutions["optimum"].welfare == 6
    assert solutions["optimum"].certificate == 2  # who defects alone gains 5 - 3


@pytest.mark.parametrize("concept", ["ce", "cce"])
def test_players_with_one_action_each_are_in_equilibrium(concept: str) -> None:
    game = game_of([[[3.0]], [[1.0]]])
    assert solve_by_name(game, concept)[concept].losses == pytest.approx([-3.0, -1.0])
    assert distance(game, concept, np.ones(1)) == 0.0


def test_chicken_and_pennies_have_their_mixed_equilibria() -> None:
    """The best correlated equilibrium of chicken is above every Nash equilibrium."""
    pytest.importorskip("quantecon")
    pennies = solve_by_name(game_of(PENNIES), "nash")["nash"]
    assert pennies.losses == pytest.approx([0, 0])
    assert pennies.method.startswith("mixed")
    solutions = solve_by_name(game_of(CHICKEN), "nash", "ce")
    assert solutions["best nash"].welfare == pytest.approx(28 / 3)  # each dares with 1/3
    assert solutions["worst nash"].welfare == pytest.approx(9)
    # half of the time both swerve; the rest is shared evenly by the two outcomes with one daring
    assert solutions["best ce"].welfare == pytest.approx(10.5)
    assert all(solution.certificate < 1e-6 for solution in solutions.values())


def test_without_quantecon_a_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    (solution,) = solve(game_of(PENNIES), ["nash"])
    assert not solution.is_found
    assert "pip install 'regretless[games]'" in solution.method


def test_cournot_s_output_and_the_monopoly_s_are_found() -> None:
    """On a grid of 0.1: q = (0.9 - 0.3) / (0.1 (N + 1)) = 2 of two firms, together 3 at best."""
    firms = {"count": 2, "actions": 26}
    keys = {f"cohort.firms.{key}": value for key, value in firms.items()}
    game = market_game("oligopoly", **keys)
    outputs = {tuple(row) for row in game.configurations.profiles[
        np.flatnonzero(game.configurations.greatest_gains <= 1e-12)
    ].tolist()}  # fmt: skip
    assert (20, 20) in outputs
    assert -game.losses_at(np.array([[20, 20]])).sum() == pytest.approx(2 * 2 * (0.5 - 0.3))
    assert solve_by_name(game, "optimum")["optimum"].welfare == pytest.approx(3 * (0.6 - 0.3))
    # Who takes the price as given and counts its impact is at Cournot's output, without a grid.
    assert solve_by_name(game, "wardrop")["wardrop"].welfare == pytest.approx(
        2 * 2 * (0.5 - 0.3), abs=1e-4
    )


def test_selfish_roads_cost_a_third_more_than_pigou_s_optimum() -> None:
    game = market_game("pigou")
    solutions = solve_by_name(game, "nash", "wardrop", "optimum", "potential")
    drivers = np.arange(101)  # on the narrow road
    by_hand = 0.5 * (100 - drivers) + 0.5 * drivers / 100 * drivers
    assert -solutions["optimum"].welfare == pytest.approx(by_hand.min())
    assert -solutions["wardrop"].welfare == pytest.approx(50, abs=1e-3)
    assert solutions["worst nash"].welfare / solutions["optimum"].welfare == pytest.approx(4 / 3)
    assert solutions["potential"].welfare == solutions["best nash"].welfare  # 99 drivers


def test_a_new_road_costs_three_drivers_two_sevenths() -> None:
    """Braess's paradox: at best 7/9 hours, without the new road; all take it, for 1 hour."""
    model = load("braess", **{"cohort.drivers.count": 3}).build()
    assert solve_by_name(stage_game_of(model.game.market), "optimum")[
        "optimum"
    ].losses == pytest.approx(np.full(3, 7 / 9))
    assert model.price_of_anarchy() == pytest.approx(9 / 7)


def test_bidders_shade_by_a_third_in_a_first_price_auction_of_three() -> None:
    game = market_game("sealed-bids", **{"cohort.bidders.actions": 13})
    gains = game.configurations.greatest_gains
    equilibria = game.configurations.profiles[np.flatnonzero(gains <= 1e-12)]
    assert [8, 8, 8] in equilibria.tolist()  # bids of 8/12 of the value


def logit_profits(prices: Array, rival: Array) -> Array:
    """Return profits of firms in the baseline of Calvano et al. (2020)."""
    attraction = np.exp((2 - prices) / 0.25)
    shares = attraction / (attraction + np.exp((2 - rival) / 0.25) + 1)
    return (prices - 1) * shares


def test_logit_firms_have_the_prices_of_calvano_et_al() -> None:
    """Nash 1.473 and monopoly 1.925, on a grid of 0.001 to 0.01, and by root finding."""

    def slope(price: float) -> float:
        step = 1e-6
        above, below = logit_profits(np.array([price + step, price - step]), np.array(price))
        return float(above - below)

    nash_price = brentq(slope, 1.1, 1.9)
    monopoly = minimize_scalar(
        lambda price: -float(logit_profits(np.array(price), np.array(price))),
        bounds=(1.2, 2.5),
        method="bounded",
    )
    assert nash_price == pytest.approx(1.473, abs=5e-4)
    assert monopoly.x == pytest.approx(1.925, abs=5e-4)

    grid = np.round(np.arange(1.40, 2.0, 0.005), 3)
    own_price, rival = np.meshgrid(grid, grid, indexing="ij")
    game = game_of([logit_profits(own_price, rival), logit_profits(rival, own_price)])
    gains = game.configurations.greatest_gains
    nash_prices = grid[game.configurations.profiles[np.flatnonzero(gains <= 1e-12)]]
    assert np.abs(nash_prices - nash_price).max() <= 0.005
    best = game.configurations.profiles[game.configurations.total_loss.argmin()]
    assert grid[best] == pytest.approx(monopoly.x, abs=0.005)


@pytest.mark.parametrize("name", ["ce", "cce", "optimum", "potential"])
def test_counting_equal_agents_changes_no_solution(name: str) -> None:
    counted = market_game("el-farol", **{"cohort.guests.count": 5})
    profiles = np.array(list(itertools.product(range(2), repeat=5)))
    payoffs = -counted.losses_at(profiles).reshape(*[2] * 5, 5)
    told_apart = game_of(payoffs)
    assert counted.n_configurations == 6
    assert told_apart.n_configurations == 32
    welfare = {name: solution.welfare for name, solution in solve_by_name(counted, name).items()}
    assert welfare == pytest.approx(
        {n: solution.welfare for n, solution in solve_by_name(told_apart, name).items()}
    )


def test_a_game_of_too_many_profiles_is_searched_and_says_so() -> None:
    """Eight firms with costs of their own: 21^8 profiles."""
    parameters = {"cost": [0.2, 0.4], "capacity": 2.5, "slope": 0.1}
    game = market_game(
        "oligopoly", **{"cohort.firms.count": 8, "cohort.firms.parameters": parameters}
    )
    assert not game.is_enumerable
    solutions = solve_by_name(game, "nash", "ce", "optimum", "potential")
    equilibria = [solution for name, solution in solutions.items() if "nash" in name]
    assert equilibria
    assert all(solution.certificate < 1e-9 for solution in equilibria)
    assert "more than" in solutions["ce"].method
    assert "swap regret" in solutions["ce"].method  # the bound that there is
    assert "no lower bound" in solutions["optimum"].method


def test_a_game_without_a_potential_says_so() -> None:
    (solution,) = solve(game_of(PENNIES), ["potential"])
    assert "no exact potential" in solution.method


def test_play_in_one_cell_is_as_far_from_equilibria_as_they_are_from_the_cell() -> None:
    game = game_of(CHICKEN)
    swerve_both = np.array([0.0, 0.0, 0.0, 1.0])
    # At most half of the rounds may be (swerve, swerve) in a correlated equilibrium.
    assert distance(game, "ce", swerve_both) == pytest.approx(1 - 1 / 2)
    assert distance(game, "ce", np.array([0, 0.25, 0.25, 0.5])) == pytest.approx(0, abs=1e-9)
    assert distance(game, "cce", np.array([1.0, 0, 0, 0])) == pytest.approx(1 - 0.2)


def test_equilibria_of_constant_sum_games_in_decimals_are_found() -> None:
    """The sum of all losses has no range there, and decimals leave gains of 1e-17."""
    rng = np.random.default_rng(4)
    n_pure = 0
    for _ in range(100):
        of_price, of_quality = rng.integers(0, 4, size=(2, 3, 3)) / 10  # 0.1 + 0.2 is not 0.3
        first = of_price + of_quality
        payoffs = np.stack([first, 1.4 - first], axis=-1)
        exact = np.rint(10 * payoffs)
        equilibria = pure_nash_by_definition(exact)
        n_pure += len(equilibria)
        assert len(pure_equilibria(game_of(payoffs))) == len(equilibria)
    assert n_pure > 50


def test_an_agent_s_tolerance_is_by_its_own_losses() -> None:
    """The second agent's million hides no gain of the first."""
    payoffs = np.array([[[0.0, 0.0], [0.0, 1e6]], [[1e-4, 0.0], [1e-4, 1e6]]])
    (equilibrium,) = pure_equilibria(game_of(payoffs))
    assert equilibrium.losses is not None
    assert equilibrium.losses.tolist() == [-1e-4, -1e6]


def test_many_equal_agents_are_not_listed_at_every_profile() -> None:
    game = market_game("el-farol", **{"cohort.guests.count": 9000})
    assert game.n_configurations == 9001
    assert not game.is_enumerable
    (solution,) = solve(game, ["optimum"])
    assert not solution.is_found
    assert "81,009,000 numbers" in solution.method
    assert "agent by agent" in solution.method


def test_one_name_of_a_solution_may_stand_alone() -> None:
    game = game_of(CHICKEN)
    assert [solution.name for solution in solve(game, "optimum")] == ["optimum"]
    model = load("chicken", rounds=5).build()
    assert model.solutions("optimum")["name"].tolist() == ["optimum"]


# Beside a run.


def test_the_index_of_a_set_is_from_its_worst_end() -> None:
    model = load("pricing-algorithms", rounds=50).build(seed=1)
    model.run()
    assert model.index("nash", "optimum") == model.index("worst nash", "optimum")
    assert model.index("best nash", "optimum") < model.index("nash", "optimum")
    with pytest.raises(UserError, match="unknown solution 'finest nash'"):
        model.index("finest nash", "optimum")


def test_what_a_branch_plays_is_counted_from_where_its_game_begins() -> None:
    trunk = load("pigou", rounds=40, solutions=["optimum"]).build(seed=1)
    trunk.run(20)
    same = trunk.branch({"forecaster.kind": "running-mean"})
    other = trunk.branch({"market.noise": 0.2})
    for branch in (same, other):
        branch.run()
        assert branch.solved.play is not None
    assert same.solved.play.first_round == 0
    assert other.solved.play.first_round == 20
    assert sum(other.solved.play._counts[0].values()) == 20
    play = other.solutions().iloc[0]
    assert "from round 20 on" in play["method"]


def test_rounds_in_which_somebody_was_absent_are_said_to_be_left_out() -> None:
    model = load("pigou", rounds=10, solutions=["optimum"]).build(seed=1)
    model.run()
    assert model.solved.play is not None
    model.solved.play.left_out = 4
    assert "without 4 rounds" in model.solutions().iloc[0]["method"]


def test_a_model_knows_where_its_play_is() -> None:
    model = load("chicken", rounds=100, windows={"every": 50}).build(seed=1)
    profiles = []
    while model.played < 100:
        model.step()
        profiles.append(tuple(model.last_actions(0)))
    play = np.zeros(4)
    for row, column in profiles:
        play[2 * row + column] += 0.01
    game = stage_game_of(model.game.market)
    assert model.distance("ce") == pytest.approx(distance(game, "ce", play))
    second_half = np.bincount([2 * row + column for row, column in profiles[50:]], minlength=4) / 50
    assert model.distance("cce", window=(50, 99)) == pytest.approx(
        distance(game, "cce", second_half), abs=1e-9
    )
    with pytest.raises(UserError, match="declared"):
        model.distance("ce", window=(10, 20))
    losses = game.configurations.total_loss @ play
    optimum = game.configurations.total_loss.min()
    assert model.index("worst ce", "optimum") == pytest.approx(
        (losses + 7.2) / (optimum + 7.2), abs=1e-6
    )


def test_play_is_counted_on_after_a_checkpoint(tmp_path: Path) -> None:
    scenario = load("pigou", rounds=40, solutions=["cce"], windows={"every": 20})
    undisturbed_model = scenario.build()
    undisturbed_model.run(25)
    save(tmp_path / "checkpoint.npz", undisturbed_model.state())
    resumed = scenario.build()
    resumed.restore(load_checkpoint(tmp_path / "checkpoint.npz"))
    undisturbed_model.run()
    resumed.run()
    assert resumed.solutions().equals(undisturbed_model.solutions())


def test_agents_with_multiplicity_are_counted_as_if_they_were_listed() -> None:
    keys = {"cohort.drivers.types": 1, "cohort.drivers.count": 6, "rounds": 12}
    counted = load("pigou", **keys, **{"cohort.drivers.multiplicity": True}).build(seed=1)
    listed = load("pigou", **keys).build(seed=1)
    for model in (counted, listed):
        model.run()
    assert counted.solutions().equals(listed.solutions())


def test_rounds_that_are_played_at_once_are_counted_as_those_one_by_one() -> None:
    scenario = load("pricing-algorithms", rounds=300, windows={"every": 100})
    one_by_one = scenario.build(seed=1)
    one_by_one.run()
    at_once = scenario.build(seed=1, log_every=150)
    while at_once.played < 300:
        at_once.advance(300)
    assert at_once.compiled is not None
    assert at_once.solved.play is not None
    assert one_by_one.solved.play is not None
    for span in (None, (0, 99), (200, 299)):
        expected = one_by_one.solved.play.distribution(span)
        assert (at_once.solved.play.distribution(span) == expected).all()


def test_a_solution_of_one_s_own_is_a_row_with_its_certificate(registries: None) -> None:
    @register.solution("everybody-goes")
    def everybody_goes(game: StageGame) -> Indices:
        return np.ones(game.agents, dtype=np.intp)

    model = load("el-farol", rounds=5, **{"market.noise": 0.0}).build()
    row = model.solutions(["everybody-goes"]).iloc[0]
    assert row["mean_loss"] == pytest.approx(1)
    assert row["certificate"] == pytest.approx(1 - 0.6)  # who stays at home loses 0.6

    @register.solution("nobody")
    def nobody(game: StageGame) -> str:
        return "nobody"

    assert "return a profile" in model.solutions(["nobody"])["method"].iloc[0]


def test_what_has_no_stage_game_says_why_and_runs() -> None:
    model = load("shops", rounds=3, solutions=["nash", "optimum"]).build()
    model.run()
    table = model.solutions()
    assert table["name"].tolist() == ["nash", "optimum"]
    assert table["method"].str.contains("profile_losses").all()
    with pytest.raises(UserError, match="no stage game"):
        model.distance("ce")


def test_an_unknown_solution_is_refused_with_the_one_that_is_near() -> None:
    with pytest.raises(UserError, match="did you mean 'nash'"):
        read_scenario("chicken", 'solutions=["nsh"]').build()


def test_a_model_that_is_asked_for_an_unknown_solution_refuses_it() -> None:
    model = load("chicken", rounds=1).build()
    for ask in (model.solutions, model.price_of_anarchy):
        with pytest.raises(UserError, match="unknown solution 'optimu'; did you mean 'optimum'"):
            ask("optimu")
    with pytest.raises(UserError, match="unknown solution 'optimu'"):
        model.index("ce", "optimu")


def test_without_a_stage_game_there_is_no_price_of_anarchy_and_a_line_says_so() -> None:
    model = load("shops", rounds=1).build()
    with pytest.raises(UserError, match="there is no stage game: market Shops does not say"):
        model.price_of_anarchy()
