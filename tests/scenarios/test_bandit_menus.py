"""What an audit of a bandit log does to menus, contexts and options before it estimates."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf

from regretless import UserError, audit
from regretless.market.core.arrays import draw_rows
from regretless.market.core.randomness import stream
from regretless.scenarios.audit.menus import MAX_GROUPS

SOLD = {"price": "price", "quantity": "sold"}


def sales_at(
    prices: list[float], *, rounds: int = 400, most: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Return rounds at prices drawn evenly; of dear goods less is sold."""
    rng = stream(seed, "menus")
    chosen = rng.integers(len(prices), size=rounds)
    chance = 0.8 - 0.6 * chosen / max(len(prices) - 1, 1)
    sold = rng.binomial(most, chance)
    table = pd.DataFrame({"price": np.array(prices)[chosen], "sold": sold.astype(float)})
    return table.assign(chance=1 / len(prices))


def cheap_and_dear() -> pd.DataFrame:
    cheap = sales_at([1.0, 2.0]).assign(seller="cheap", product="bread")
    dear = sales_at([100.0, 200.0], most=50).assign(seller="dear", product="lamps")
    return pd.concat([cheap, dear], ignore_index=True)


def test_each_seller_has_its_own_menu_scale_and_range_of_costs() -> None:
    both = audit(cheap_and_dear(), **SOLD, agent="seller", propensity="chance")
    for seller in ("cheap", "dear"):
        table = cheap_and_dear()
        rows = table[table["seller"] == seller]
        alone = audit(rows, **SOLD, agent="seller", propensity="chance")
        for name, expected in alone.tables.items():
            joint = both.tables[name]
            joint = joint[joint["agent"] == seller].reset_index(drop=True)
            pd.testing.assert_frame_equal(joint, expected)
    most_lamps = cheap_and_dear().query("seller == 'dear'")["sold"].max()
    assert both.verdicts["scale"].tolist() == [2.0, 200.0 * most_lamps]


def test_sellers_of_a_group_have_the_same_menu_and_scale() -> None:
    low = sales_at([1.0, 2.0]).assign(seller="low", product="bread")
    high = sales_at([3.0], rounds=100).assign(seller="high", product="bread", chance=1.0)
    with pytest.raises(UserError, match="'3' is the only action of 'high'"):
        audit(pd.concat([low, high]), **SOLD, agent="seller")
    table = pd.concat([low, high, cheap_and_dear().query("seller == 'dear'")])
    found = audit(table, **SOLD, cost=0.0, agent="seller", group="product", propensity="chance")
    menus = found.overlap.groupby("agent")["action"].apply(list)
    assert menus["low"] == menus["high"] == ["1", "2", "3"]
    assert menus["dear"] == ["100", "200"]
    assert found.verdicts.set_index("agent").loc[["low", "high"], "scale"].tolist() == [3.0, 3.0]


def test_a_seller_is_in_one_group() -> None:
    table = sales_at([1.0, 2.0]).assign(seller="s", product=["a", "b"] * 200)
    with pytest.raises(UserError, match="'s' is in the groups 'a' and 'b'"):
        audit(table, **SOLD, agent="seller", group="product")


def test_a_message_about_a_row_counts_the_rows_of_the_whole_table() -> None:
    table = cheap_and_dear()
    table.loc[600, "sold"] = -1.0
    with pytest.raises(UserError, match="holds -1 in data row 601"):
        audit(table, **SOLD, agent="seller")


def test_prices_that_differ_by_rounding_are_one_and_it_is_said() -> None:
    exact = sales_at([0.3, 0.6])
    rounded = exact.assign(
        price=exact["price"].where(exact.index % 2 == 0, exact["price"] * (1 + 4e-16))
    )
    assert rounded["price"].nunique() > 2
    found = audit(rounded, **SOLD, cost=0.0, propensity={0.3: "chance", 0.6: "chance"})
    assert found.overlap["action"].tolist() == ["0.3", "0.6"]
    assert "differ by rounding" in " ".join(found.notes["all"])
    expected = audit(exact, **SOLD, cost=0.0, propensity={0.3: "chance", 0.6: "chance"})
    assert expected.notes["all"] == []
    assert found.verdicts["regret"][0] == pytest.approx(expected.verdicts["regret"][0], abs=1e-9)


def test_prices_that_are_listed_may_differ_by_rounding_from_those_that_were_set() -> None:
    table = sales_at([0.1 + 0.2, 0.6])
    found = audit(table, **SOLD, cost=0.0, prices=[0.3, 0.6, 0.9])
    assert found.overlap["action"].tolist() == ["0.3", "0.6", "0.9"]


def test_actions_that_are_numbers_and_differ_by_rounding_are_one() -> None:
    table = pd.DataFrame(
        {"action": [0.3, 0.1 + 0.2, 1.0, 1.0] * 20, "loss": [0.0, 0.0, 1.0, 1.0] * 20}
    )
    found = audit(table, loss="loss")
    assert found.overlap["action"].tolist() == ["0.3", "1.0"]
    assert "differ by rounding" in found.notes["all"][0]


def test_many_prices_become_groups_whose_regret_is_that_of_the_mixed_groups() -> None:
    """The truth: what each group of prices, mixed evenly as the seller did, would have earned."""
    rng = stream(1, "groups")
    prices = np.linspace(1.0, 9.95, 180)
    rounds = 4_000
    chosen = rng.integers(180, size=rounds)
    demand = 1.0 - prices / 10.0
    sold = (rng.random((rounds, 1)) < demand).astype(float)
    table = pd.DataFrame({"price": prices[chosen], "sold": sold[np.arange(rounds), chosen]})
    columns = {}
    for price in prices:
        columns[f"c{price:.3f}"] = np.full(rounds, 1 / 180)
    table = pd.concat([table, pd.DataFrame(columns)], axis=1)
    logged = dict(zip(prices.tolist(), columns, strict=True))
    found = audit(table, **SOLD, cost=0.0, propensity=logged, min_propensity=0.001)
    names = found.overlap["action"]
    assert len(names) == MAX_GROUPS
    assert "180 prices are more than an audit" in found.notes["all"][0]

    group_of = np.zeros(180, dtype=int)
    for index, name in enumerate(names):
        low, high = (float(end) for end in name.split(" to "))
        group_of[(prices > low - 1e-4) & (prices < high + 1e-4)] = index
    profit = (prices * sold).mean(0)
    share = np.bincount(group_of) / 180
    mean_profit = np.bincount(group_of, profit) / np.bincount(group_of)
    regret = (share * (mean_profit.max() - mean_profit)).sum() / found.verdicts["scale"][0]
    row = found.verdicts.iloc[0]
    assert row["low"] <= regret <= row["high"]
    assert row["regret"] == pytest.approx(regret, abs=0.03)


def test_seldom_taken_actions_become_one() -> None:
    rng = stream(2, "choices")
    words = [f"answer {index}" for index in range(60)]
    weights = np.where(np.arange(60) < 3, 0.3, 0.1 / 57)
    table = pd.DataFrame({"action": rng.choice(words, 3_000, p=weights / weights.sum())})
    table["loss"] = rng.random(3_000)
    found = audit(table, loss="loss")
    assert len(found.overlap) == MAX_GROUPS
    assert found.overlap["taken"].sum() == 3_000
    assert "'others'" in found.notes["all"][0]


def bids_lost_more_often_when_low(*, rounds: int = 3_000) -> pd.DataFrame:
    """Return rounds at 60 bids from 0.25 to 15, drawn evenly."""
    rng = stream(4, "bids")
    bid = rng.integers(1, 61, rounds) / 4
    is_lost = rng.random(rounds) > bid / 15
    return pd.DataFrame({"bid": bid, "loss": is_lost.astype(float)})


def test_many_bids_become_groups_of_neighbouring_bids() -> None:
    found = audit(bids_lost_more_often_when_low(), action="bid", loss="loss")
    names = found.overlap["action"].tolist()
    assert len(names) == MAX_GROUPS
    ends = [float(end) for name in names for end in name.split(" to ")]
    assert ends == sorted(ends)
    assert (ends[0], ends[-1]) == (0.25, 15.0)
    assert found.overlap["taken"].min() > 3_000 / MAX_GROUPS / 2
    assert "groups of neighbouring numbers" in found.notes["all"][0]
    assert "If they are codes, write them as words." in found.notes["all"][0]


def test_bids_with_decimal_commas_become_the_groups_of_those_with_points(tmp_path: Path) -> None:
    table = bids_lost_more_often_when_low()
    table.to_csv(tmp_path / "bids.csv", index=False, sep=";", decimal=",")
    file = str(tmp_path / "bids.csv")
    found = audit(file, action="bid", loss="loss", separator=";", decimal=",")
    expected = audit(table, action="bid", loss="loss")
    names = found.overlap["action"].str.replace(",", ".").tolist()
    assert names == expected.overlap["action"].tolist()


def test_codes_that_are_written_as_words_are_joined_if_they_are_seldom() -> None:
    table = bids_lost_more_often_when_low()
    table["bid"] = "code " + table["bid"].astype(str)
    found = audit(table, action="bid", loss="loss")
    assert found.overlap["action"].tolist()[-1] == "others"


def test_a_probability_of_a_single_price_is_not_that_of_its_group() -> None:
    table = sales_at(np.linspace(1, 2, 40).tolist(), rounds=2_000)
    found = audit(table, **SOLD, cost=0.0, propensity="chance")
    assert found.verdicts["propensities"].tolist() == ["estimated by frequencies"]
    assert any("not of groups" in note for note in found.notes["all"])


def test_a_continuous_context_is_divided_into_bins_and_it_is_said() -> None:
    """Cells of one round would say that nothing else could have been, and find no regret."""
    rng = stream(3, "continuous")
    rounds = 4_000
    heat = rng.random(rounds)
    mixed = np.stack([0.2 + 0.6 * heat, 0.8 - 0.6 * heat], axis=1)
    chosen = draw_rows(mixed, rng.random(rounds))
    sold = (rng.random(rounds)[:, None] < np.array([0.9, 0.2])).astype(float)
    table = pd.DataFrame({"price": np.array([1.0, 2.0])[chosen], "heat": heat})
    table["sold"] = sold[np.arange(rounds), chosen]
    profit = sold * np.array([1.0, 2.0])
    regret = max((mixed[:, 1] * (profit[:, 0] - profit[:, 1])).mean(), 0.0) / 2
    found = audit(table, **SOLD, cost=0.0, context=["heat"])
    assert "'heat' was divided into 6 bins" in found.notes["all"][0]
    row = found.verdicts.iloc[0]
    assert row["low"] <= regret <= row["high"]
    assert row["low"] > 0.05
    propensity = found.overlap.set_index("action")["least_propensity"]
    assert propensity["1"] > 0.1


def test_contexts_with_few_rounds_are_one_and_it_is_said() -> None:
    table = sales_at([1.0, 2.0]).assign(visit=[f"visit {index}" for index in range(400)])
    found = audit(table, **SOLD, cost=0.0, context=["visit"], demand="means")
    assert "400 contexts of fewer than 30 rounds" in found.notes["all"][0]
    assert 0.2 < found.overlap["least_propensity"].min() < 0.8


PRICES = sales_at([1.0, 2.0], rounds=40)
LOSSES = pd.DataFrame({"action": ["a", "b"] * 20, "loss": [0.0, 1.0] * 20, "q": 0.5})
COSTS = pd.DataFrame({"round": range(4), "a": [1.0, 0.0, 0.0, 1.0], "b": [0.3] * 4})
DONE = pd.DataFrame({"round": range(4), "action": ["a", "b", "a", "a"]})
BANDIT_ONLY: dict[str, Any] = {
    "group": "action",
    "propensity": "q",
    "demand": "means",
    "context": ["q"],
    "classifier": object(),
    "threshold": 0.02,
    "error": 0.025,
    "min_propensity": 0.1,
    "intervals": "blocks",
    "estimator": "doubly robust",
}


@pytest.mark.parametrize(
    ("table", "kind", "option"),
    [
        *[(PRICES, SOLD, option) for option in ({"loss_range": (0, 1)}, {"actions": ["1", "2"]})],
        *[(PRICES, SOLD, option) for option in ({"action": "price"}, {"round": "price"})],
        (PRICES, SOLD, {"policies": ["price"]}),
        (PRICES, SOLD, {"scale": {"price": (0, 1)}}),
        *[(LOSSES, {"loss": "loss"}, {name: 1.0}) for name in ("max_quantity", "cost")],
        (LOSSES, {"loss": "loss"}, {"prices": [1.0]}),
        *[(DONE, {"outcomes": COSTS}, {name: value}) for name, value in BANDIT_ONLY.items()],
        (DONE, {"outcomes": COSTS}, {"max_quantity": 1.0}),
        (DONE, {"outcomes": COSTS}, {"prices": [1.0]}),
    ],
)
def test_an_option_of_the_other_kind_of_log_is_refused(
    table: pd.DataFrame, kind: dict[str, Any], option: dict[str, Any]
) -> None:
    with pytest.raises(UserError) as caught:
        audit(table, **(kind | option))
    message = str(caught.value)
    assert f"{next(iter(option))} does not belong to a log" in message
    assert "\n" not in message


NONSENSE: list[Any] = [
    "x",
    "",
    float("nan"),
    float("inf"),
    -1,
    3,
    0.5,
    True,
    [],
    [None],
    (1,),
    {},
    {"x": 1},
    b"x",
    object(),
]
PRICE_OPTIONS = (
    "price quantity cost prices max_quantity agent group propensity demand context classifier "
)
PRICE_OPTIONS += "threshold error min_propensity intervals estimator"
LOSS_OPTIONS = "loss action actions loss_range agent group propensity context"


@pytest.mark.parametrize("option", PRICE_OPTIONS.split())
def test_no_value_of_an_option_of_prices_is_more_than_a_line(option: str) -> None:
    for value in NONSENSE:
        _refused_or_used(PRICES, SOLD | {"cost": 0.0} | {option: value})


@pytest.mark.parametrize("option", LOSS_OPTIONS.split())
def test_no_value_of_an_option_of_losses_is_more_than_a_line(option: str) -> None:
    for value in NONSENSE:
        _refused_or_used(LOSSES, {"loss": "loss"} | {option: value})


@pytest.mark.parametrize(
    "option",
    [
        "decisions",
        "outcomes",
        "utility",
        "parameters",
        "scale",
        "actions",
        "policies",
        "round",
        "agent",
        "action",
    ],
)
def test_no_value_of_an_option_of_full_logs_is_more_than_a_line(option: str) -> None:
    for value in NONSENSE:
        _refused_or_used(DONE, {"outcomes": COSTS} | {option: value})
        _refused_or_used(DONE, {"outcomes": COSTS, "utility": "newsvendor"} | {option: value})


def _refused_or_used(table: pd.DataFrame, options: dict[str, Any]) -> None:
    """Check that an audit ends, or is refused in one line that is no traceback."""
    try:
        audit(**({"decisions": table} | options))
    except UserError as error:
        message = str(error)
    else:
        return
    assert message
    assert "\n" not in message


COMMAND_OPTIONS = (
    "--cost=nan --cost=1:2:3 --cost=2:1 --cost=missing --max-quantity=x --max-quantity=nan "
    "--max-quantity=0 --prices=x --prices=1 --prices= --propensity=missing --propensity=1=a=b "
    "--propensity=1 --propensity=price --demand=x --context=missing "
    "--context=price --context=sold --threshold=x "
    "--threshold=nan --threshold=2 --error=0 --error=0.5 --error=x --intervals=x --estimator=x "
    "--min-propensity=0 --min-propensity=x --loss=sold --loss-range=0:1 --group=missing "
    "--agent=missing --action=price --actions=1,2 --round=price --utility=ces --policy=price "
    "--scale=price=0:1 --scale=x --parameter=x --parameter=a=1 --price=missing --quantity=missing "
    "--outcomes=missing.csv --import=no_such_module"
)


@pytest.mark.parametrize("option", COMMAND_OPTIONS.split())
def test_a_wrong_option_of_the_command_is_one_line_and_status_2(
    option: str, tmp_path: Path, refusal_of: RefusalOf
) -> None:
    PRICES.to_csv(tmp_path / "sales.csv", index=False)
    out = tmp_path / "found"
    refusal_of(
        "audit", tmp_path / "sales.csv", "--price=price", "--quantity=sold", option, "--out", out
    )
    assert not out.exists()
