"""Data of which some outcomes are known to be at least so much: sales of what was sold out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless import load
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.assembly.censored_data import completed_outcomes
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.starter import OrderCosts, starter
from regretless.scenarios.summary import lines_on_forecast
from regretless.scenarios.table_description import described
from regretless.scenarios.verdict import describe_play

N_DAYS = 120
SCALE = {"sold": [0.0, 200.0]}
SHOP = cohort_table(
    "shop", 1, 41, "newsvendor", parameters={"underage": 4.0, "overage": 1.0}, currency="EUR"
)


@pytest.fixture
def sales() -> pd.DataFrame:
    """Demand, what was sold of it on shelves that were too small by turns, and where they were."""
    demand = np.random.default_rng(4).normal(100.0, 15.0, N_DAYS).round()
    stock = np.tile([80.0, 100.0, 140.0], N_DAYS // 3)
    sold = np.minimum(demand, stock)
    return pd.DataFrame({"demand": demand, "sold": sold, "sold_out": demand >= stock})


def make_shop(folder: Path, sales: pd.DataFrame, **keys: Any) -> Scenario:
    """Write sales to a CSV, and return a scenario that forecasts them."""
    path = folder / "sales.csv"
    sales.to_csv(path, index=False)
    data = {"file": str(path), "outcomes": ["sold"], "scale": SCALE} | keys
    present = {key: value for key, value in data.items() if value is not None}
    return make_scenario(SHOP, rounds=N_DAYS, data=present)


def orders_of(scenario: Scenario) -> Array:
    """Return the mean order of the last half of a run, in pieces."""
    model = play_to_end(scenario)
    actions = model.regret_frame()["action"].to_numpy()
    return 200.0 / 40 * actions[N_DAYS // 2 :].mean()


def test_orders_from_censored_sales_are_near_those_from_demand(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    from_demand = orders_of(make_shop(tmp_path, sales.assign(sold=sales["demand"])))
    from_sales = orders_of(make_shop(tmp_path, sales))
    from_censored_sales = orders_of(make_shop(tmp_path, sales, censored="sold_out"))
    assert from_sales < from_demand - 10.0
    assert from_censored_sales == pytest.approx(from_demand, abs=5.0)


def test_what_was_seen_stays_and_what_was_not_is_more(sales: pd.DataFrame, tmp_path: Path) -> None:
    table = make_shop(tmp_path, sales, censored="sold_out").table
    assert table is not None
    learned = 200.0 * table.outcomes[:, 0]
    is_sold_out = sales["sold_out"].to_numpy()
    np.testing.assert_allclose(learned[~is_sold_out], sales["sold"][~is_sold_out])
    assert (learned[is_sold_out] > sales["sold"][is_sold_out]).all()


@pytest.mark.parametrize("name", ["sold_out", "Sold out", "stockout"])
def test_the_starter_takes_what_says_that_all_was_sold_for_no_context(
    sales: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    """It is known after the round only; whoever makes the comment a key has censored data."""
    promoted = np.where(np.arange(N_DAYS) % 3, "no", "yes")
    table = sales[["sold"]].assign(promoted=promoted, **{name: sales["sold_out"]})
    table.to_csv(tmp_path / "sales.csv", index=False)
    description = described(tmp_path / "sales.csv")
    costs = OrderCosts(underage=4.0, overage=1.0)
    text = starter(description, tmp_path, costs=costs)
    assert f'censored = "{name}" in [data]' in " ".join(description.notes)
    (tmp_path / "plain.toml").write_text(text, encoding="utf-8")
    (tmp_path / "censored.toml").write_text(text.replace("# censored", "censored"), "utf-8")
    plain = load(tmp_path / "plain.toml").spec.data
    censored = load(tmp_path / "censored.toml").spec.data
    assert plain is not None
    assert censored is not None
    assert plain.context == censored.context == ["promoted"]
    assert plain.censored is None
    assert censored.censored == name


@pytest.mark.parametrize("words", [{True: 1, False: 0}, {True: "yes", False: "no"}])
def test_a_column_that_is_yes_where_sales_equal_the_stock_is_told_whatever_its_name(
    sales: pd.DataFrame, tmp_path: Path, words: dict[bool, Any]
) -> None:
    stock = np.tile([80.0, 100.0, 140.0], N_DAYS // 3)
    table = sales[["sold"]].assign(shelf=stock, leer=sales["sold_out"].map(words))
    table["promoted"] = np.where(np.arange(N_DAYS) % 4, "no", "yes")
    table.to_csv(tmp_path / "sales.csv", index=False)
    description = described(tmp_path / "sales.csv")
    assert [column.name for column in description.named("censored")] == ["leer"]
    (note,) = description.notes
    assert note.startswith("'leer' says yes where 'sold' equals 'shelf', and never exceeds it")


def test_a_column_that_is_yes_in_other_rows_too_stays_context(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    stock = np.tile([80.0, 100.0, 140.0], N_DAYS // 3)
    is_yes = sales["sold_out"].copy()
    is_yes[np.flatnonzero(~is_yes)[0]] = True
    table = sales[["sold"]].assign(shelf=stock, leer=is_yes.astype(int))
    table.to_csv(tmp_path / "sales.csv", index=False)
    description = described(tmp_path / "sales.csv")
    assert not description.named("censored")
    assert description.notes == ()


def test_a_holiday_without_deliveries_stays_context(tmp_path: Path) -> None:
    is_holiday = np.arange(N_DAYS) % 9 == 0
    sold = np.where(is_holiday, 0, 10 + np.arange(N_DAYS) ** 2 % 17)
    delivered = np.where(is_holiday, 0, 30)
    table = {"sold": sold, "delivered": delivered, "holiday": is_holiday.astype(int)}
    pd.DataFrame(table).to_csv(tmp_path / "sales.csv", index=False)
    description = described(tmp_path / "sales.csv")
    assert "holiday" in [column.name for column in description.named("context")]
    assert description.notes == ()


def test_a_price_that_equals_the_list_price_is_not_taken_for_sales(tmp_path: Path) -> None:
    list_price = 5 + np.arange(N_DAYS) % 4
    is_regular = np.arange(N_DAYS) % 3 > 0
    sold = 10 + np.arange(N_DAYS) ** 2 % 101
    table = {"sold": sold, "price": list_price - ~is_regular, "list_price": list_price}
    pd.DataFrame({**table, "regular": is_regular.astype(int)}).to_csv(tmp_path / "sales.csv")
    description = described(tmp_path / "sales.csv")
    assert "sold" in [column.name for column in description.named("outcome")]
    assert not description.named("censored")


def write_weather(file: Path, *, every: int, coldest: int) -> None:
    """Write days of which every so many has fog, in which it is as warm by night as by day."""
    days = np.arange(N_DAYS)
    is_foggy = days % every == 0
    tmin = coldest + days**2 % 41 + days % 3 / 4
    tmax = tmin + np.where(is_foggy, 0, 1 + days % 7)
    table = {"tmin": tmin, "tmax": tmax, "fog": is_foggy.astype(int)}
    pd.DataFrame(table).to_csv(file, index=False)


def test_few_days_of_fog_on_which_two_temperatures_are_equal_stay_context(tmp_path: Path) -> None:
    write_weather(tmp_path / "weather.csv", every=15, coldest=1)  # eight days
    description = described(tmp_path / "weather.csv")
    assert "fog" in [column.name for column in description.named("context")]
    assert description.notes == ()


def test_temperatures_below_zero_are_no_sales(tmp_path: Path) -> None:
    write_weather(tmp_path / "weather.csv", every=4, coldest=-5)
    description = described(tmp_path / "weather.csv")
    assert "fog" in [column.name for column in description.named("context")]
    assert description.notes == ()


def test_sales_that_are_missing_in_the_first_row_that_says_yes_are_found(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    stock = np.tile([80.0, 100.0, 140.0], N_DAYS // 3)
    table = sales[["sold"]].assign(shelf=stock, leer=sales["sold_out"].astype(int))
    table.loc[np.flatnonzero(sales["sold_out"])[0], "sold"] = np.nan
    table.to_csv(tmp_path / "sales.csv", index=False)
    description = described(tmp_path / "sales.csv")
    assert [column.name for column in description.named("censored")] == ["leer"]


def test_the_starter_of_sales_that_were_cut_off_has_room_above_the_largest(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    costs = OrderCosts(underage=4.0, overage=1.0)
    sales[["sold", "sold_out"]].to_csv(tmp_path / "cut_off.csv", index=False)
    sales[["sold"]].to_csv(tmp_path / "sales.csv", index=False)
    texts = {}
    for name in ("cut_off", "sales"):
        texts[name] = starter(described(tmp_path / f"{name}.csv"), tmp_path, costs=costs)
    largest = sales["sold"].max()
    (tmp_path / "cut_off.toml").write_text(texts["cut_off"], encoding="utf-8")
    (tmp_path / "sales.toml").write_text(texts["sales"], encoding="utf-8")
    ends = {name: load(tmp_path / f"{name}.toml").spec.data.scale["sold"] for name in texts}
    assert largest <= ends["sales"][1] <= 1.1 * largest
    assert 1.3 * largest <= ends["cut_off"][1] <= 1.6 * largest


def test_later_rows_change_nothing_of_earlier_ones(sales: pd.DataFrame, tmp_path: Path) -> None:
    other_future = sales.copy()
    other_future.loc[60:, "sold"] = 10.0
    table = make_shop(tmp_path, sales, censored="sold_out").table
    table_with_other_future = make_shop(tmp_path, other_future, censored="sold_out").table
    assert table is not None
    assert table_with_other_future is not None
    np.testing.assert_array_equal(table.outcomes[:60], table_with_other_future.outcomes[:60])


def test_nothing_is_guaranteed_and_the_run_says_why(sales: pd.DataFrame, tmp_path: Path) -> None:
    scenario = make_shop(tmp_path, sales, censored="sold_out")
    model = play_to_end(scenario)
    agent = model.agents_frame().iloc[0]
    assert agent["guarantee"] == "none"
    assert np.isnan(agent["bound"])
    assert "censored outcomes are estimates" in model.guarantees[0].note
    assert "holds" not in " ".join(lines_on_forecast(scenario, model))


def test_no_bound_is_stated_not_even_from_the_biases(sales: pd.DataFrame, tmp_path: Path) -> None:
    """The biases are those to the estimates, so the bound would be of outcomes that nobody saw."""
    with_demand = play_to_end(make_shop(tmp_path, sales)).agents_frame()
    with_estimates = play_to_end(make_shop(tmp_path, sales, censored="sold_out")).agents_frame()
    assert with_demand["bound_from_bias"].notna().all()
    assert with_estimates["bound_from_bias"].isna().all()


def test_a_cohort_without_bounds_is_still_said_to_follow_the_forecast(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    model = play_to_end(make_shop(tmp_path, sales, censored="sold_out"))
    sentence = describe_play(model.verdict_frame(), model.agents_frame())
    assert "1 shop followed the forecast" in sentence


def test_the_table_of_rounds_says_which_outcomes_were_censored(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    rounds = play_to_end(make_shop(tmp_path, sales, censored="sold_out")).rounds_frame()
    assert rounds["censored"].tolist() == sales["sold_out"].tolist()
    without_key = play_to_end(make_shop(tmp_path, sales)).rounds_frame()
    assert "censored" not in without_key


def test_the_run_warns_that_context_tells_what_will_be_sold_out(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    """A starter of ``describe`` lists the column as context, before ``censored`` names it."""
    sales["sold_out"] = sales["sold_out"].astype(int)
    scenario = make_shop(tmp_path, sales, censored="sold_out", context=["sold_out"])
    (warning,) = scenario.build().warnings
    assert warning.startswith("data.context: everybody knows 'sold_out', where the outcome is")


def test_the_run_says_how_many_rows_are_censored(sales: pd.DataFrame, tmp_path: Path) -> None:
    table = make_shop(tmp_path, sales, censored="sold_out").table
    assert table is not None
    assert f"{sales['sold_out'].sum()} of {N_DAYS} rows are censored" in table.notes[0]


def test_the_run_says_that_the_last_orders_were_all_sold_out(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    sales.loc[N_DAYS - 10 :, "sold_out"] = True
    table = make_shop(tmp_path, sales, censored="sold_out").table
    assert table is not None
    assert "The last 10 rows are all censored" in table.notes[-1]


def test_rows_that_no_round_plays_are_not_counted(sales: pd.DataFrame, tmp_path: Path) -> None:
    longer = pd.concat([sales] * 2, ignore_index=True)
    table = make_shop(tmp_path, longer, censored="sold_out").table
    assert table is not None
    assert f"of {N_DAYS} rows are censored" in table.notes[0]


def test_a_missing_outcome_is_not_censored(sales: pd.DataFrame, tmp_path: Path) -> None:
    sales.loc[50, ["sold", "sold_out"]] = [None, True]
    table = make_shop(tmp_path, sales, censored="sold_out", missing="previous").table
    assert table is not None
    assert table.is_censored is not None
    assert not table.is_censored[50].any()


@pytest.mark.parametrize("mark", [None, "-", "n/e"])
def test_rows_that_do_not_say_whether_all_was_sold_may_be_dropped(
    sales: pd.DataFrame, tmp_path: Path, mark: str | None
) -> None:
    with_gaps = sales.astype({"sold_out": object})
    with_gaps.loc[[3, 60], "sold_out"] = mark
    table = make_shop(tmp_path, with_gaps, censored="sold_out", missing="drop").table
    rest = sales.drop(index=[3, 60])
    table_of_rest = make_shop(tmp_path, rest, censored="sold_out").table
    assert table is not None
    assert table_of_rest is not None
    np.testing.assert_array_equal(table.outcomes, table_of_rest.outcomes)
    assert any(note.startswith("2 rows lacked a value and were dropped") for note in table.notes)


def test_a_gap_in_what_was_sold_out_may_be_filled_from_the_row_before(
    sales: pd.DataFrame, tmp_path: Path
) -> None:
    with_gap = sales.astype({"sold_out": object})
    with_gap.loc[61, "sold_out"] = None
    with_gap.loc[60, "sold_out"] = True
    table = make_shop(tmp_path, with_gap, censored="sold_out", missing="previous").table
    assert table is not None
    assert table.is_censored is not None
    assert table.is_censored[61].all()


def test_under_a_reversed_scale_at_least_means_at_most(sales: pd.DataFrame, tmp_path: Path) -> None:
    upright = make_shop(tmp_path, sales, censored="sold_out").table
    reversed_scale = {"sold": [200.0, 0.0]}
    mirrored = make_shop(tmp_path, sales, censored="sold_out", scale=reversed_scale).table
    assert upright is not None
    assert mirrored is not None
    np.testing.assert_allclose(mirrored.outcomes, 1.0 - upright.outcomes)


def test_of_two_outcomes_one_may_be_censored(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    sales = pd.DataFrame(rng.uniform(0.0, 0.5, (30, 2)), columns=["bread", "milk"])
    sales["no_bread_left"] = np.where(np.arange(30) % 3 == 0, "yes", "no")
    path = tmp_path / "two.csv"
    sales.to_csv(path, index=False)
    data = {
        "file": str(path),
        "outcomes": ["bread", "milk"],
        "censored": {"bread": "no_bread_left"},
    }
    scenario = make_scenario(cohort_table("eaters", 2), rounds=30, data=data)
    table = scenario.table
    assert table is not None
    np.testing.assert_array_equal(table.outcomes[:, 1], sales["milk"])
    assert (table.outcomes[::3, 0] > sales["bread"][::3]).all()
    rounds = play_to_end(scenario).rounds_frame()
    assert rounds["censored"].tolist() == rounds["censored_0"].tolist()
    assert rounds["censored_0"].sum() == 10
    assert not rounds["censored_1"].any()


def test_a_context_tells_the_days_on_which_more_is_beyond() -> None:
    """Of a sold-out Saturday more is expected than of a sold-out Monday with the same sales."""
    weekday = np.arange(70) % 7
    outcomes = np.where(weekday == 5, 0.9, 0.4)[:, np.newaxis]
    outcomes[63:] = 0.3
    is_censored = np.zeros((70, 1), dtype=bool)
    is_censored[63:] = True
    contexts = weekday[:, np.newaxis].astype(float)
    completed = completed_outcomes(outcomes, is_censored, contexts, names=["weekday"])
    assert completed[63 + 5, 0] > completed[63, 0] + 0.2


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("perhaps", "column 'sold_out' holds 'perhaps' in data row 8 (line 9); write true"),
        (None, "column 'sold_out' has no value in data row 8 (line 9); write true"),
    ],
)
def test_a_column_that_says_neither_yes_nor_no_is_refused(
    sales: pd.DataFrame, tmp_path: Path, cell: str | None, line: str
) -> None:
    sales["sold_out"] = sales["sold_out"].astype(object)
    sales.loc[7, "sold_out"] = cell
    with pytest.raises(UserError) as refused:
        make_shop(tmp_path, sales, censored="sold_out")
    assert str(refused.value).startswith(f"data.censored: {line}")
    assert str(refused.value).endswith("in data.codes.sold_out") == (cell is not None)


def test_words_for_yes_and_no_may_have_codes(sales: pd.DataFrame, tmp_path: Path) -> None:
    plain = make_shop(tmp_path, sales, censored="sold_out").table
    in_german = sales.assign(sold_out=np.where(sales["sold_out"], "ja", "nein"))
    codes = {"sold_out": {"ja": 1.0, "nein": 0.0}}
    coded = make_shop(tmp_path, in_german, censored="sold_out", codes=codes).table
    assert plain is not None
    assert coded is not None
    np.testing.assert_array_equal(coded.outcomes, plain.outcomes)


def test_unknown_columns_and_outcomes_are_refused(sales: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.censored: no column 'soldout'"):
        make_shop(tmp_path, sales, censored="soldout")
    with pytest.raises(UserError, match=r"data\.censored: 'bread' is no outcome"):
        make_shop(tmp_path, sales, censored={"bread": "sold_out"})
