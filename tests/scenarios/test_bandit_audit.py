"""An audit of bandit logs estimates regrets that are known, bounds what was not tried, and judges.

Estimates are compared with exact expectations over all that could have been drawn, the pessimistic
regret with a linear program over all demands that fall with the price, and the limits of a regret
with brute force over all replacements.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_results import RefusalOf, RunCommand
from report_pages import chart_names, parse_page
from scipy.optimize import linprog

from regretless import UserError, audit
from regretless.market.core.arrays import Array, Indices, draw_rows
from regretless.market.core.randomness import stream
from regretless.scenarios.audit import regret_intervals
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.bandit_page import page_text
from regretless.scenarios.audit.demand_models import predict_results
from regretless.scenarios.audit.pair_gains import pair_gains
from regretless.scenarios.audit.regret_intervals import RegretEstimate
from regretless.scenarios.audit.untried_actions import (
    greatest_compatible_results,
    own_results,
)

PRICES = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
NAMES = [f"chance_{price:g}" for price in PRICES]
LOGGED: dict[str | float, str] = dict(zip(map(str, PRICES), NAMES, strict=True))
SOLD = {"price": "price", "quantity": "sold"}


def log_of(prices: Array, chosen: Indices, result: Array, logged: Array) -> BanditLog:
    """Return a log of prices with quantities in [0, 1] and cost 0."""
    return BanditLog(
        agent="all",
        names=tuple(f"{price:g}" for price in prices),
        prices=prices,
        set_price=prices[chosen],
        chosen=chosen,
        result=result,
        cost=(0.0, 0.0),
        logged=logged,
        context=pd.DataFrame(index=range(len(chosen))),
        largest=1.0,
        smallest=0.0,
        is_range_given=True,
    )


def simulated_sales(
    seed: int, rounds: int, mixed_price: Array, *, rival: Array | None = None
) -> tuple[pd.DataFrame, Array]:
    """Return a log of a seller with a mixed price (A,), and what each price would have sold.

    A buyer of each round buys where the price is at most a value that rises with the rival's price.
    """
    rng = stream(seed, "sales")
    if rival is None:
        rival = rng.choice([0.3, 0.7], rounds)
    chosen = draw_rows(np.broadcast_to(mixed_price, (rounds, 5)), rng.random(rounds))
    value = rng.random(rounds) + 0.4 * (rival - 0.5)
    sold = (value[:, None] >= PRICES).astype(float)
    table = pd.DataFrame({"price": PRICES[chosen], "sold": sold[np.arange(rounds), chosen]})
    table["rival"] = rival
    table["chance"] = mixed_price[chosen]
    for name, probability in zip(NAMES, mixed_price, strict=True):
        table[name] = probability
    return table, sold


def swap_regret_of(mixed_price: Array, sold: Array, cost: float) -> float:
    """Return the swap regret of a mixed price where every quantity is known, by its definition."""
    profit = (PRICES - cost) * sold
    mean_profit = profit.mean(0)
    return float((mixed_price * (mean_profit.max() - mean_profit)).sum())


@pytest.mark.parametrize("has_model", [False, True], ids=["inverse propensity", "doubly robust"])
def test_the_mean_of_an_estimate_over_all_draws_is_the_gain(*, has_model: bool) -> None:
    """Three rounds of three prices; probabilities depend on the last price."""
    rng = stream(1, "exact")
    prices = np.array([1.0, 2.0, 3.0])
    demand = rng.random((3, 3))
    after = rng.dirichlet(np.ones(3), 4)  # probabilities after each price, and at the start
    exact = np.zeros((3, 3))
    estimated = np.zeros((3, 3))
    for draws in product(range(3), repeat=3):
        chosen = np.array(draws)
        probability = after[[3, chosen[0], chosen[1]]]
        chance = probability[np.arange(3), chosen].prod()
        profit = prices * demand
        differences = profit[:, None, :] - profit[:, :, None]
        exact += chance * (probability[:, :, None] * differences).mean(0)
        log = log_of(prices, chosen, demand[np.arange(3), chosen], probability)
        predicted = predict_results(log, "means") if has_model else None
        stand_ins = own_results(probability)
        gains = pair_gains(log, probability, None, stand_ins, predicted)
        estimated += chance * gains.of_rounds(slice(None)).mean(0) * log.scale
    np.testing.assert_allclose(estimated, exact, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_pessimistic_regret_is_the_optimum_of_a_linear_program(seed: int) -> None:
    """Over all demands that fall with the price and agree where a price was tried."""
    rng = stream(seed, "program")
    rounds = 3
    prices = np.array([0.2, 0.5, 0.7, 1.0])
    demand = np.sort(rng.random((rounds, 4)))[:, ::-1]
    is_tried = rng.random((rounds, 4)) < 0.5
    is_tried[np.arange(rounds), rng.integers(4, size=rounds)] = True
    probability = is_tried * rng.random((rounds, 4))
    probability /= probability.sum(1, keepdims=True)
    cost = float(rng.choice([0.0, 0.3, 0.6]))
    log = log_of(prices, probability.argmax(1), np.zeros(rounds), probability)
    margins = log.margins(cost)

    stand_ins = greatest_compatible_results(log, probability, margins, 1e-9)
    assert stand_ins.result is not None
    has_stand_in = stand_ins.action >= 0
    borrowed = np.take_along_axis(demand, np.maximum(stand_ins.action, 0), axis=1)
    profit = margins * np.where(has_stand_in, borrowed, stand_ins.result)
    own_profit = margins * np.where(is_tried, demand, 0.0)
    gains = probability[:, :, None] * (profit[:, None, :] - own_profit[:, :, None])
    theta = gains.mean(0)
    np.fill_diagonal(theta, 0.0)

    bounds = []
    for is_known, quantity in zip(is_tried.ravel(), demand.ravel(), strict=True):
        bounds.append((quantity, quantity) if is_known else (0.0, 1.0))
    falls = []
    for round_index in range(rounds):
        for price_index in range(3):
            row = np.zeros((rounds, 4))
            row[round_index, price_index : price_index + 2] = [-1.0, 1.0]
            falls.append(row.ravel())
    greatest = -np.inf
    for replacement in product(range(4), repeat=4):
        value = np.zeros((rounds, 4))
        for action, replaced_by in enumerate(replacement):
            value[:, replaced_by] += probability[:, action] * margins[0, replaced_by]
            value[:, action] -= probability[:, action] * margins[0, action]
        objective = -value.ravel() / rounds
        solved = linprog(objective, A_ub=falls, b_ub=np.zeros(len(falls)), bounds=bounds)
        greatest = max(greatest, -solved.fun)
    assert theta.max(1).sum() == pytest.approx(greatest, abs=1e-9)


def test_limits_are_those_of_all_replacements() -> None:
    rng = stream(0, "limits")
    for _ in range(10):
        rows = rng.normal(size=(30, 9)) * rng.random(9)
        rows[:, [0, 4, 8]] = 0.0
        covariance = np.cov(rows, rowvar=False) / 30
        estimate = RegretEstimate(
            mean_gain=rows.mean(0).reshape(3, 3),
            covariance=covariance,
            series=rows.sum(1),
            freedom=29,
            kind="martingale",
            rounds=30,
        )
        limits = []
        for replacement in product(range(3), repeat=3):
            series = rows[:, np.arange(3) * 3 + replacement].sum(1)
            error = series.std(ddof=1) / np.sqrt(30)
            limits.append(series.mean() + estimate.quantile(0.025) * error)
        assert estimate.upper_limit(0.025) == pytest.approx(max(limits))
        assert estimate.lower_limit(0.025) < estimate.regret < estimate.upper_limit(0.025)


@pytest.mark.parametrize("demand", ["means", "linear", "logit"])
def test_intervals_hold_the_regret_whatever_the_model(demand: str) -> None:
    """Of 20 logs at most 3 may miss; each misses with probability 0.05."""
    mixed_price = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    misses = 0
    for seed in range(20):
        table, sold = simulated_sales(seed, 600, mixed_price)
        audited = audit(
            table, **SOLD, cost=0.1, propensity=LOGGED, demand=demand, context=["rival"]
        )
        row = audited.verdicts.iloc[0]
        regret = swap_regret_of(mixed_price, sold, 0.1)
        misses += not row["low"] <= regret <= row["high"]
    assert misses <= 3


def test_the_better_the_model_of_demand_the_shorter_the_interval() -> None:
    mixed_price = np.full(5, 0.2)
    rival = np.tile([0.0, 1.0], 2000)
    table, _ = simulated_sales(0, 4000, mixed_price, rival=rival)
    widths = {}
    for context in ((), ("rival",)):
        audited = audit(
            table, **SOLD, cost=0.1, propensity=LOGGED, demand="linear", context=context
        )
        widths[context] = audited.estimates.set_index(["measure", "estimator"])["standard_error"]
    row = ("swap", "doubly robust")
    assert widths["rival",][row] < 0.98 * widths[()][row]
    assert widths[()][row] < widths[()]["swap", "inverse propensity"]


def test_plausible_regret_is_the_least_over_costs() -> None:
    """The price 0.8 is the best one at costs from 0.4 on, and far too high at a cost of 0."""
    mixed_price = np.array([0.02, 0.02, 0.02, 0.92, 0.02])
    table, _ = simulated_sales(0, 6_000, mixed_price, rival=np.full(6_000, 0.5))
    verdicts = {}
    for cost in (0.0, (0.0, 0.8)):
        audited = audit(table, **SOLD, cost=cost, propensity=LOGGED)
        verdicts[cost] = audited.verdicts.iloc[0]
        curve = audited.costs["pessimistic_regret"]
        assert audited.verdicts["regret"].iloc[0] == pytest.approx(curve.min())
    assert verdicts[0.0]["verdict"] == "fails"
    assert verdicts[0.0, 0.8]["verdict"] == "passes"
    assert 0.3 < verdicts[0.0, 0.8]["cost"] < 0.8


@pytest.mark.parametrize("seed", range(4))
def test_plausible_regret_is_that_of_a_search_over_a_fine_grid_of_costs(seed: int) -> None:
    """Demand is the same in all rounds, so that the regret at a cost follows from its definition.

    The estimates with weights of mean 1 are then exact.
    """
    rng = stream(seed, "grid")
    prices = np.array([1.0, 2.0, 3.0, 4.0])
    demand = np.sort(rng.random(4))[::-1]
    mixed_price = rng.dirichlet(np.full(4, 3.0))
    chosen = draw_rows(np.broadcast_to(mixed_price, (500, 4)), rng.random(500))
    table = pd.DataFrame({"price": prices[chosen], "sold": demand[chosen]})
    columns = {}
    for price, probability in zip(prices, mixed_price, strict=True):
        table[f"chance_{price:g}"] = probability
        columns[f"{price:g}"] = f"chance_{price:g}"
    found = audit(
        table, **SOLD, cost=(0.0, 4.0), propensity=columns, estimator="self-normalised"
    ).verdicts.iloc[0]

    costs = np.linspace(0.0, 4.0, 8_001)
    profit = (prices - costs[:, None]) * demand
    regret = (mixed_price * (profit.max(1, keepdims=True) - profit)).sum(1)
    assert found["regret"] * found["scale"] == pytest.approx(regret.min(), abs=2e-3)
    assert found["cost"] == pytest.approx(costs[regret.argmin()], abs=0.02)


def test_the_mean_self_normalised_estimate_is_near_the_regret() -> None:
    """Over 200 logs of 400 rounds; demand depends on a rival, the price on the last price."""
    after = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])
    prices = np.array([0.3, 0.6, 1.0])
    bias: dict[bool, list[Array]] = {True: [], False: []}
    for seed in range(200):
        rng = stream(seed, "mean")
        sold = (rng.random((400, 1)) < np.array([0.9, 0.6, 0.3])).astype(float)
        chosen = np.zeros(400, dtype=np.intp)
        probability = np.empty((400, 3))
        uniform = rng.random(400)
        last = 0
        for round_index in range(400):
            probability[round_index] = after[last]
            last = int(np.searchsorted(after[last].cumsum(), uniform[round_index]))
            chosen[round_index] = min(last, 2)
        profit = prices * sold
        gains = profit[:, None, :] - profit[:, :, None]
        true_gains = (probability[:, :, None] * gains).mean(0)
        log = log_of(prices, chosen, sold[np.arange(400), chosen], probability)
        for self_normalised in (True, False):
            estimate = pair_gains(
                log,
                probability,
                None,
                own_results(probability),
                None if self_normalised else predict_results(log, "means"),
                self_normalised=self_normalised,
            )
            mean_gains = estimate.of_rounds(slice(None)).mean(0) * log.scale
            bias[self_normalised].append(mean_gains - true_gains)
    for errors in bias.values():
        standard_error = np.std(errors, axis=0) / np.sqrt(200)
        assert (np.abs(np.mean(errors, axis=0)) <= 4 * standard_error + 2e-3).all()


def test_rounds_in_chunks_have_the_same_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = simulated_sales(0, 300, np.full(5, 0.2))
    whole = audit(table, **SOLD, cost=0.1, propensity=LOGGED).estimates
    monkeypatch.setattr(regret_intervals, "CHUNK_ENTRIES", 1_000)
    chunked = audit(table, **SOLD, cost=0.1, propensity=LOGGED).estimates
    pd.testing.assert_frame_equal(whole, chunked)


def test_a_fixed_price_fails_since_nothing_else_was_tried() -> None:
    table = pd.DataFrame({"price": [0.5] * 400, "sold": [1, 0] * 200, "chance": [1.0] * 400})
    audited = audit(table, **SOLD, cost=0.0, propensity="chance", prices=[0.2, 0.5, 1.0])
    assert audited.verdicts["verdict"].tolist() == ["fails"]
    swap = audited.estimates.query("measure == 'swap'")["regret"]
    assert (swap == 0).all()
    # At the price 1 as much may have been sold as at 0.5: half a unit.
    assert audited.verdicts["regret"].iloc[0] == pytest.approx((1 - 0.5) * 0.5)
    assert any("price 1:" in line for line in audited.unknowns["all"])


def test_probabilities_that_were_not_logged_are_estimated_and_said_to_be() -> None:
    mixed_price = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    table, sold = simulated_sales(3, 6000, mixed_price)
    regret = swap_regret_of(mixed_price, sold, 0.1)
    for propensity, wording in ((None, "estimated"), ("chance", "logged for the action taken")):
        audited = audit(table, **SOLD, cost=0.1, propensity=propensity)
        row = audited.verdicts.iloc[0]
        assert row["propensities"].startswith(wording)
        assert row["intervals"] == "blocks"
        assert row["low"] <= regret <= row["high"]
        assert any("independently of demand" in line for line in audited.unknowns["all"])


def test_a_classifier_learns_probabilities_from_the_context() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = stream(0, "classifier")
    rival = rng.choice([0.3, 0.7], 4000)
    mixed = np.where(rival[:, None] > 0.5, [0.1, 0.1, 0.1, 0.1, 0.6], [0.6, 0.1, 0.1, 0.1, 0.1])
    chosen = draw_rows(mixed, rng.random(4000))
    table = pd.DataFrame({"price": PRICES[chosen], "sold": rng.random(4000), "rival": rival})
    classifier = linear_model.LogisticRegression(max_iter=500)
    audited = audit(table, **SOLD, cost=0.1, context=["rival"], classifier=classifier)
    overlap = audited.overlap.set_index("action")
    assert audited.verdicts["propensities"].tolist() == ["estimated by a classifier"]
    assert overlap.loc["1", "least_propensity"] == pytest.approx(0.1, abs=0.06)


def test_logged_probabilities_that_the_log_contradicts_are_named() -> None:
    table, _ = simulated_sales(0, 3000, np.full(5, 0.2))
    false_chances = [0.6, 0.1, 0.1, 0.1, 0.1]
    table[NAMES] = false_chances
    audited = audit(table, **SOLD, cost=0.1, propensity=LOGGED)
    assert audited.overlap["discrepancy"].iloc[0] < -10
    assert any("probabilities are true: 0.2" in line for line in audited.unknowns["all"])


def test_limits_for_all_rounds_at_once_are_wider() -> None:
    table, _ = simulated_sales(0, 2000, np.full(5, 0.2))
    width = {}
    for kind in ("martingale", "time-uniform"):
        row = audit(table, **SOLD, cost=0.1, propensity=LOGGED, intervals=kind).verdicts.iloc[0]
        width[kind] = row["high"] - row["low"]
    assert width["time-uniform"] > 1.3 * width["martingale"]


def test_a_log_of_losses_is_audited_by_the_names_of_its_actions() -> None:
    """A choice that loses 0.3 more than another and is made half of the time regrets 0.15."""
    rng = stream(0, "choices")
    is_left = rng.random(4000) < 0.5
    loss = np.where(is_left, 0.5, 0.2)
    loss[:2] = [0.0, 1.0]  # the range
    table = pd.DataFrame({"choice": np.where(is_left, "left", "right"), "loss": loss, "p": 0.5})
    audited = audit(table, action="choice", loss="loss", propensity="p")
    row = audited.verdicts.iloc[0]
    assert row["verdict"] == "fails"
    assert row["low"] <= 0.15 <= row["high"]
    assert audited.swaps["best_replacement"].tolist() == ["right", "right"]


def test_each_seller_has_a_verdict() -> None:
    table, _ = simulated_sales(0, 1000, np.full(5, 0.2))
    two_sellers = pd.concat([table.assign(seller="north"), table.assign(seller="south")])
    audited = audit(two_sellers, **SOLD, cost=0.1, propensity=LOGGED, agent="seller")
    audit_of_one = audit(table, **SOLD, cost=0.1, propensity=LOGGED)
    assert audited.verdicts["agent"].tolist() == ["north", "south"]
    assert audited.verdicts["regret"].tolist() == audit_of_one.verdicts["regret"].tolist() * 2
    assert [len(text) for text in audited.texts.values()] == [4, 4]


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_tables_of_polars_and_arrow(convert: Any) -> None:
    table, _ = simulated_sales(0, 300, np.full(5, 0.2))
    expected = audit(table, **SOLD, cost=0.1, propensity=LOGGED)
    audited = audit(convert(table), **SOLD, cost=0.1, propensity=LOGGED)
    for name, frame in expected.tables.items():
        pd.testing.assert_frame_equal(audited.tables[name], frame)
    done = pd.DataFrame({"round": range(4), "action": ["a", "b", "a", "a"]})
    costs = pd.DataFrame({"round": range(4), "a": [1.0, 0.0, 0.0, 1.0], "b": [0.3] * 4})
    full = audit(convert(done), convert(costs)).agents
    pd.testing.assert_frame_equal(full, audit(done, costs).agents)


SALES = pd.DataFrame({"price": [1.0, 2.0] * 4, "sold": [1.0, 0.0] * 4, "chance": [0.5] * 8})
REFUSED: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
    (SALES, {}, "give outcomes, or price and quantity, or loss"),
    (SALES, SOLD | {"price": "cost"}, "--price: no column 'cost'"),
    (SALES, SOLD | {"cost": (2.0, 1.0)}, "a range LOW:HIGH with LOW at most HIGH"),
    (SALES, SOLD | {"cost": "unit_cost"}, "--cost: no column 'unit_cost'"),
    (SALES, SOLD | {"loss": "sold"}, "price, quantity do not belong to a log of losses"),
    (SALES, SOLD | {"outcomes": SALES}, "price, quantity do not belong to a log with outcomes"),
    (SALES, SOLD | {"utility": "ces"}, "utility does not belong to a log without outcomes"),
    (SALES, SOLD | {"prices": [1.0, 3.0]}, "2 is none of the prices; add it"),
    (SALES, SOLD | {"max_quantity": 0.5}, "max_quantity: results run from 0 to 1"),
    (SALES, SOLD | {"demand": "probit"}, "demand: unknown 'probit'"),
    (SALES, SOLD | {"demand": 3}, "demand: 3 is no model"),
    (SALES, SOLD | {"threshold": -1.0}, "threshold"),
    (SALES, SOLD | {"error": 0.5}, "between 0 and 0.5"),
    (SALES, SOLD | {"intervals": "exact"}, "intervals"),
    (SALES, SOLD | {"propensity": {1.0: "chance"}}, "no column for the action '2'"),
    (SALES, SOLD | {"propensity": {3.0: "chance"}}, "no action '3'"),
    (SALES.assign(chance=1.5), SOLD | {"propensity": "chance"}, "a probability is in"),
    (SALES.assign(chance=0.0), SOLD | {"propensity": "chance"}, "with probability 0; correct"),
    (SALES.assign(sold=-1.0), SOLD, "a quantity is at least 0"),
    (SALES.assign(price=1.0), SOLD, "'1' is the only action"),
]


@pytest.mark.parametrize(("table", "given", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_does_not_fit_is_one_line(
    table: pd.DataFrame, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError) as caught:
        audit(table, **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_probability_of_1_says_that_nothing_else_could_have_been_taken() -> None:
    table = pd.DataFrame({"price": [1.0, 2.0] * 20, "sold": [1, 0] * 20, "chance": 1.0})
    audited = audit(table, **SOLD, cost=0.0, propensity="chance")
    assert audited.verdicts["propensities"].tolist() == ["logged"]
    assert audited.overlap["tried"].tolist() == [0.5, 0.5]


def test_the_page_has_each_verdict_its_four_sentences_and_what_is_not_known() -> None:
    table, _ = simulated_sales(0, 400, np.full(5, 0.2))
    two_sellers = pd.concat([table.assign(seller="north"), table.assign(seller="<b>south</b>")])
    audited = audit(two_sellers, **SOLD, cost=(0.0, 0.4), propensity=LOGGED, agent="seller")
    page = parse_page(page_text(audited, "sales.csv"))
    assert chart_names(page) == {"regrets", "costs", "overlap"}
    for agent, sentences in audited.texts.items():
        assert len(sentences) == 4
        for sentence in [*sentences, *audited.unknowns[agent]]:
            assert sentence in page.text
    audit_with_known_cost = audit(two_sellers, **SOLD, cost=0.1, propensity=LOGGED, agent="seller")
    assert chart_names(parse_page(page_text(audit_with_known_cost, "sales.csv"))) == {
        "regrets",
        "overlap",
    }


def test_the_command_prints_a_verdict_and_writes_tables_once(
    tmp_path: Path, run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    table, _ = simulated_sales(0, 500, np.full(5, 0.2))
    table.to_csv(tmp_path / "sales.csv", index=False)
    command = ["audit", tmp_path / "sales.csv", "--price", "price", "--quantity", "sold"]
    command += ["--cost", "0.2", "--out", tmp_path / "found"]
    for price, name in LOGGED.items():
        command += ["--propensity", f"{price}={name}"]
    done = run_command(*command)
    expected = audit(table, **SOLD, cost=0.2, propensity=LOGGED)
    assert (done.status, done.err) == (0, "")
    assert expected.verdicts["verdict"].iloc[0] in done.out
    for name, frame in expected.tables.items():
        written = pd.read_csv(tmp_path / "found" / f"{name}.csv", dtype={"agent": str})
        assert len(written) == len(frame)
    parse_page((tmp_path / "found" / "report.html").read_text(encoding="utf-8"))
    refusal_of(*command)
