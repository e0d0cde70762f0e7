"""What the table of agents says of each: its parameters, and its losses in the data's unit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import TomlTable, cohort_table, play_to_end, read_scenario

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.run_figures import regret_by_parameter
from regretless.scenarios.verdict import regret_rows, sentences

ROUNDS = 60
COSTS = {"underage": [1.0, 6.0], "overage": 2.0}
SHOPS = cohort_table("shops", 4, 5, "newsvendor", parameters=COSTS, currency="EUR")
OTHERS = cohort_table("others", 3, 3, "ces", parameters={"rho": {"choices": [0.4, 0.8]}})


def play(*cohorts: TomlTable, origin: Path = Path(), seed: int = 2, **keys: Any) -> MarketModel:
    """Play 60 rounds of a scenario of these cohorts and keys."""
    raw = {"name": "units", "rounds": ROUNDS, "cohort": [*cohorts]} | keys
    return play_to_end(read_scenario(raw, origin=origin), seed=seed)


@pytest.fixture(scope="module")
def folder_with_demand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of pieces that are asked for."""
    folder = tmp_path_factory.mktemp("traits")
    demand = 100 + 60 * np.sin(np.arange(ROUNDS) / 3)
    pd.DataFrame({"pieces": demand}).to_csv(folder / "shop.csv", index=False)
    return folder


def play_demand(folder: Path, *cohorts: TomlTable) -> MarketModel:
    """Play cohorts against the demand, in pieces from 20 to 180."""
    data = {
        "file": "shop.csv",
        "outcomes": ["pieces"],
        "scale": {"pieces": [20.0, 180.0]},
        "units": {"pieces": "boxes"},
    }
    return play(*cohorts, origin=folder, seed=1, data=data)


@pytest.fixture(scope="module")
def shops_and_others(folder_with_demand: Path) -> MarketModel:
    """Return the played model of four shops and three agents of another utility."""
    return play_demand(folder_with_demand, SHOPS, OTHERS)


def in_own_units(agents: Any, column: str = "mean_loss") -> Any:
    """Return a mean loss in the agents' own units."""
    return agents["loss_offset"] + agents["loss_scale"] * agents[column]


def test_costs_are_those_of_the_orders_in_money(
    shops_and_others: MarketModel,
) -> None:
    model = shops_and_others
    log = model.regret_frame()
    demand = 20 + 160 * model.rounds_frame()["y_0"].to_numpy()
    orders = np.linspace(20, 180, 5)
    for _, shop in model.agents_frame()[:4].iterrows():
        ordered = orders[log.loc[log["agent"] == shop["agent"], "action"]]
        missing = np.maximum(demand - ordered, 0)
        left_over = np.maximum(ordered - demand, 0)
        costs = shop["param_underage"] * missing + shop["param_overage"] * left_over
        assert in_own_units(shop) == pytest.approx(costs.mean(), rel=1e-9)


def test_losses_of_shops_are_in_their_currency(shops_and_others: MarketModel) -> None:
    agents = shops_and_others.agents_frame()
    assert agents["unit"].tolist() == ["EUR"] * 4 + [""] * 3
    first_sentence = next(iter(sentences(shops_and_others.verdict_frame(), agents)))
    assert f"({in_own_units(agents)[:4].mean():.4g} EUR)" in first_sentence


def test_orders_of_shops_are_named_by_their_pieces(shops_and_others: MarketModel) -> None:
    names = shops_and_others.swaps_frame()["action_name"].dropna().unique()
    assert set(names) <= {f"order {pieces:g}" for pieces in np.linspace(20, 180, 5)}


def test_parameters_are_columns_of_those_who_have_them(shops_and_others: MarketModel) -> None:
    traits = shops_and_others.agents_frame().filter(like="param_")
    shops = traits[:4]
    others = traits[4:]
    assert shops["param_underage"].between(1, 6).all()
    assert len(shops["param_underage"].unique()) == 4
    assert (shops["param_overage"] == 2.0).all()
    assert set(others["param_rho"]) <= {0.4, 0.8}
    assert shops["param_rho"].isna().all()
    assert others["param_underage"].isna().all()


def test_parameters_are_drawn_by_the_seed(
    shops_and_others: MarketModel, folder_with_demand: Path
) -> None:
    repeated = play_demand(folder_with_demand, SHOPS, OTHERS).agents_frame()
    expected = shops_and_others.agents_frame()
    pd.testing.assert_frame_equal(repeated.filter(like="param_"), expected.filter(like="param_"))


def test_a_figure_draws_regret_by_parameter(shops_and_others: MarketModel) -> None:
    agents = shops_and_others.agents_frame()
    figure = regret_by_parameter(Run({}, {"agents": agents}))
    points_of_shops = [trace for trace in figure.data if len(trace.x) == 4]
    np.testing.assert_array_equal(points_of_shops[0].x, agents["param_underage"][:4])


@pytest.mark.parametrize("multiplicity", [{}, {"multiplicity": True}])
def test_types_have_the_parameters_of_their_agents(
    folder_with_demand: Path, multiplicity: TomlTable
) -> None:
    """Listed types hand their parameters out; with multiplicity a row is a type."""
    shops = SHOPS | {"count": 6, "types": 2} | multiplicity
    agents = play_demand(folder_with_demand, shops).agents_frame()
    worst_cost = np.maximum(agents["param_underage"], 2.0) * 160  # of an order as wrong as can be
    np.testing.assert_allclose(agents["loss_offset"] + agents["loss_scale"], worst_cost)


PRICE = {
    "kind": "iid",
    "outcomes": ["price"],
    "scale": {"price": [10.0, 210.0]},
    "units": {"price": "EUR"},
}
COURNOT = {"market": {"kind": "cournot", "intercept": 0.9, "slope": 0.1}}
COST = 10 + 200 * 0.3  # of a piece, in euros


@pytest.fixture(scope="module", params=[{}, COURNOT], ids=["no market", "cournot"])
def firms(request: pytest.FixtureRequest) -> MarketModel:
    """Return the played model of three firms, alone or with a market, which reads their units."""
    parameters = {"cost": 0.3, "capacity": [2.0, 3.0]}
    cohort = cohort_table("firms", 3, 5, "firm", parameters=parameters)
    return play(cohort, adversary=PRICE, **request.param)


def test_profits_and_regrets_of_firms_are_in_the_unit_of_the_price(firms: MarketModel) -> None:
    log = firms.regret_frame()
    margin = 10 + 200 * firms.rounds_frame()["y_0"].to_numpy() - COST
    for _, firm in firms.agents_frame().iterrows():
        quantities = firm["param_capacity"] * np.arange(5) / 4
        chosen = log.loc[log["agent"] == firm["agent"], "action"].to_numpy()
        profit = (quantities[chosen] * margin).mean()
        assert -in_own_units(firm) == pytest.approx(profit)
        best_fixed = max((quantity * margin).mean() for quantity in quantities)
        regret = firm["loss_scale"] * firm["external_regret"]
        assert regret == pytest.approx(best_fixed - profit)
    assert set(firms.agents_frame()["unit"]) == {"EUR"}


def test_actions_of_firms_are_named_by_what_each_sells(firms: MarketModel) -> None:
    agents = firms.agents_frame()
    swaps = firms.swaps_frame()
    for _, firm in agents.iterrows():
        quantities = firm["param_capacity"] * np.arange(5) / 4
        rows = swaps[swaps["agent"] == firm["agent"]]
        names = [f"sell {quantities[action]:.6g}" for action in rows["action"]]
        assert rows["action_name"].tolist() == names
    assert firms.called["firms"][0] == "sell 0"
    assert firms.called["firms"][4] == f"sell {agents['param_capacity'].mean():.6g} (mean)"


def test_the_table_of_regrets_has_the_worst_in_the_unit(firms: MarketModel) -> None:
    agents = firms.agents_frame()
    worst = (agents["swap_regret"] * agents["loss_scale"]).max()
    assert f"{worst:.4g}" in [row[4] for row in regret_rows(agents)]


def play_fund(
    scale_of_a: list[float],
    scale_of_b: list[float],
    utility: str,
    units: TomlTable | None = None,
    **parameters: Any,
) -> tuple[MarketModel, Any, Array]:
    """Play a fund that holds a, or both a and b.

    Return the market, the fund's row, and what it gained in each round by the scale of a.
    """
    weights = [[1.0, 0.0], [0.4, 0.6]]
    adversary = {
        "kind": "iid",
        "outcomes": ["a", "b"],
        "scale": {"a": scale_of_a, "b": scale_of_b},
        "units": units or {},
    }
    cohort = cohort_table("funds", 1, 2, utility, parameters=parameters | {"weights": weights})
    model = play(cohort, adversary=adversary)
    shares = model.rounds_frame()[["y_0", "y_1"]].to_numpy() @ np.transpose(weights)
    chosen = model.regret_frame()["action"].to_numpy()
    low, high = scale_of_a
    gains = low + (high - low) * shares[np.arange(ROUNDS), chosen]
    return model, model.agents_frame().iloc[0], gains


def test_utility_of_a_portfolio_is_in_returns() -> None:
    scale = [-0.1, 0.1]
    model, row, gains = play_fund(scale, scale, "mean-variance", risk_aversion=1.5, reference=0.5)
    utility = gains - 1.5 / 2 / 0.2 * gains**2  # variance in returns, about a return of 0
    assert -in_own_units(row) == pytest.approx(utility.mean())
    assert row["unit"] == "return"
    assert model.called["funds"] == ["hold 1 of a", "hold 0.6 of b, 0.4 of a"]


def test_costs_without_a_currency_are_no_pieces(folder_with_demand: Path) -> None:
    nameless = {key: value for key, value in SHOPS.items() if key != "currency"}
    agents = play_demand(folder_with_demand, nameless).agents_frame()
    assert set(agents["unit"]) == {"cost"}


def test_a_currency_takes_the_place_of_the_unit_of_prices() -> None:
    firms = cohort_table("firms", 2, 3, "firm", parameters={"cost": 0.3}, currency="EUR")
    agents = play(firms, adversary=PRICE).agents_frame()
    assert set(agents["unit"]) == {"EUR"}


@pytest.mark.parametrize("utility", ["lp-target", "mean-variance"])
def test_a_currency_of_what_is_no_money_is_refused(utility: str, folder_with_demand: Path) -> None:
    cohort = cohort_table("a", 1, 3, utility, currency="EUR")
    with pytest.raises(UserError, match=r"cohort\.a\.currency: .* are no money here; leave it out"):
        play_demand(folder_with_demand, cohort)


DOLLARS = {"a": "USD", "b": "USD"}


def test_a_sum_of_outcomes_of_one_scale_is_in_their_unit() -> None:
    scale = [-0.1, 0.3]
    _, row, gains = play_fund(scale, scale, "linear", DOLLARS)
    assert -in_own_units(row) == pytest.approx(gains.mean())
    assert row["unit"] == "USD"


def test_a_sum_of_outcomes_of_two_scales_has_no_unit() -> None:
    _, row, gains = play_fund([-0.1, 0.3], [-0.1, 0.1], "linear", DOLLARS)
    assert -in_own_units(row) != pytest.approx(gains.mean())
    assert row["unit"] != "USD"


def test_depositors_wait_or_withdraw() -> None:
    savers = cohort_table("savers", 2, 2, "depositor", parameters={"early": 1.2, "late": 1.5})
    model = play(savers, adversary={"kind": "iid", "outcomes": 1})
    assert model.called["savers"] == ["wait", "withdraw"]
    assert set(model.agents_frame()["unit"]) == {"deposits"}


def test_orders_are_named_by_side_units_and_price() -> None:
    market = {"kind": "order-book", "cash": 9.0, "stock": 9.0, "ticks": 64}
    menu = {"low": 0.25, "high": 0.75, "size": 2.0, "value": 0.5}
    cohorts = [
        cohort_table(side, 2, 4, "orders", response="hedge", parameters=menu | {"side": side})
        for side in ("buy", "sell")
    ]
    model = play(*cohorts, adversary=PRICE, market=market)
    names = ["no order", "buy 2 at 60 EUR", "buy 2 at 110 EUR", "buy 2 at 160 EUR"]
    assert model.called["buy"] == names
    agents = model.agents_frame()
    unit_scale = model.game.cohorts[0].loss.unit_scale[0]
    np.testing.assert_allclose(agents["loss_scale"][:2], 200 * unit_scale)
    assert set(agents["unit"]) == {"EUR"}
