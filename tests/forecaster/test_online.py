"""A forecaster that runs on one's own data: what it says, learns, keeps and refuses."""

import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

from regretless import OmnipredictorEstimator, OnlineOmnipredictor, UserError
from regretless.agents.utilities import MeanVariance, Newsvendor
from regretless.forecaster.models import LastValue, RunningMean
from regretless.forecaster.online import FeatureWarning
from regretless.market.core.arrays import Array
from regretless.market.losses import LipschitzLoss
from regretless.market.regret import decision_swap_regret, external_regret, swap_regret

ORDERS = np.linspace(0, 400, 9)
SCALE = {"demand": (0.0, 400.0)}
HALF = np.array([0.5])


def weekly_demand(rounds: int, seed: int = 0) -> Array:
    """Draw demands that are higher on one day of the week."""
    drawn = stats.beta(4, 4).rvs(rounds, random_state=seed)
    return np.asarray(40 + 200 * drawn + 120 * (np.arange(rounds) % 7 == 5))


def cost_of(underage: float, order: Any, y: Any) -> Any:
    """Return what an order costs at a demand."""
    return underage * np.maximum(y - order, 0) + np.maximum(order - y, 0)


def make_server(costs: Any = None, **more: Any) -> OnlineOmnipredictor:
    """Protect newsvendors in pieces, by what a piece that lacks costs."""
    costs = costs or {"a": 1.0}
    losses = {name: Newsvendor(ORDERS, underage=c, overage=1.0) for name, c in costs.items()}
    return OnlineOmnipredictor(losses, **{"scale": SCALE} | more)


def taught_server(rounds: int, **kinds: Any) -> OnlineOmnipredictor:
    """Return a server of two shops that has learned some days."""
    server = make_server({"lean": 1.0, "careful": 9.0}, **kinds)
    for day, y in enumerate(weekly_demand(rounds)):
        server.learn_one({"weekday": day % 7}, y)
    return server


def test_the_interval_covers_a_known_distribution() -> None:
    """Of what is drawn 90 %, within two standard errors; and in the middle the median."""
    server = taught_server(300)
    demands = weekly_demand(1100)
    quantiles = []
    for day in range(300, 1100):
        forecast = server.predict_one({"weekday": day % 7})
        quantiles.append([forecast.quantile(level) for level in (0.05, 0.5, 0.95)])
        server.learn_one({"weekday": day % 7}, demands[day])
    low, middle, high = np.array(quantiles).T
    inside = ((low <= demands[300:]) & (demands[300:] <= high)).mean()
    below = (demands[300:] <= middle).mean()
    assert abs(inside - 0.9) <= 2 * np.sqrt(0.09 / 800)
    assert abs(below - 0.5) <= 2 * np.sqrt(0.25 / 800)


def test_a_forecast_is_a_distribution_with_the_broadcast_statistics() -> None:
    forecast = taught_server(300).predict_one({"weekday": 5})
    assert forecast.weights.sum() == pytest.approx(1.0)
    meant = forecast.weights @ forecast.basis.transform(forecast.likely)
    assert np.abs(meant - forecast.statistics).max() < 0.01
    assert forecast.mean == pytest.approx(float(forecast.weights @ forecast.outcomes[:, 0]))
    assert forecast.mean == pytest.approx(260, abs=15)
    for name, cost in (("lean", 1.0), ("careful", 9.0)):
        expected = forecast.weights @ cost_of(cost, ORDERS, forecast.outcomes)
        assert forecast.act(name) == ORDERS[expected.argmin()]
        assert forecast.loss(name) == pytest.approx(expected.min(), abs=400 * 0.02 * (cost + 1))
    assert forecast.act("careful") > forecast.act("lean")


def test_what_is_missing_late_or_beyond_the_scale_is_counted() -> None:
    server = taught_server(30)
    for day, key in enumerate(("monday", "tuesday"), start=1):
        server.predict_one({"weekday": day}, key=key)
    for nothing in (None, float("nan"), pd.NA):
        server.learn_one({"weekday": 2}, nothing)
    with pytest.warns(UserWarning, match="'demand' lies beyond its scale"):
        server.learn_one({"weekday": 2}, {"demand": 500.0})
    server.learn_late("monday", 120.0)
    server.learn_late("tuesday", None)
    counts = {"learned": 32, "missing": 4, "clipped": 1, "late": 1, "forgotten": 0}
    assert server.counts == counts | {"censored": 0}
    for closed in ("monday", "tuesday"):
        with pytest.raises(UserError, match=f"no forecast waits under '{closed}'"):
            server.learn_late(closed, 120.0)


def test_a_late_outcome_is_charged_to_what_was_said_of_it() -> None:
    server = taught_server(40)
    order = server.predict_one({"weekday": 5}, key=1).act("careful")
    for _ in range(20):
        server.learn_one({"weekday": 5}, 50.0)
    assert server.predict_one({"weekday": 5}).act("careful") < order
    before = server.regrets().set_index("loss").loc["careful", "mean_loss"]
    server.learn_late(1, 250.0)
    after = server.regrets().set_index("loss").loc["careful", "mean_loss"]
    assert after * 61 - before * 60 == pytest.approx(cost_of(9.0, order, 250.0), rel=1e-9)


def test_a_saved_one_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    server = taught_server(90)
    with pytest.warns(FeatureWarning, match="x has 'shop', 'day', which no earlier context had"):
        server.predict_one({"weekday": 3, "shop": "north", "day": "2026-03-01"}, key="late")
    server.save(tmp_path / "a")
    other = OnlineOmnipredictor.load(tmp_path / "a")
    other.save(tmp_path / "b")
    for continued, name in ((server, "c"), (other, "d")):
        for day in range(90, 120):
            continued.learn_one({"weekday": day % 7, "shop": "north"}, 100.0 + day)
        continued.learn_late("late", 90.0)
        continued.save(tmp_path / name)
    for continued, same in ("ab", "cd"):
        assert (tmp_path / continued).read_bytes() == (tmp_path / same).read_bytes()
    pd.testing.assert_frame_equal(server.regrets(), other.regrets())


KILLED = """
import os, signal, sys
from regretless import OnlineOmnipredictor
own = OnlineOmnipredictor.load(sys.argv[1])
own.learn_one({"weekday": 1}, 77.0)
os.rename = os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
own.save(sys.argv[1])
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is not there")
def test_killed_before_or_while_it_saves_it_is_as_it_was_saved(tmp_path: Path) -> None:
    server = taught_server(20)
    server.save(tmp_path / "kept")
    bytes_before = (tmp_path / "kept").read_bytes()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "kept")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "kept").read_bytes() == bytes_before
    again = OnlineOmnipredictor.load(tmp_path / "kept")
    assert again.counts["learned"] == 20
    assert again.predict_one({"weekday": 3}).mean == server.predict_one({"weekday": 3}).mean


def test_a_long_stream_takes_no_more_room(tmp_path: Path) -> None:
    """The file stays as large after one, two and four times as many rounds."""
    server = taught_server(520)
    sizes = []
    for n_rounds in (300, 100, 100, 200):
        for day, y in enumerate(weekly_demand(n_rounds, seed=len(sizes) + 1)):
            server.learn_one({"weekday": day % 7}, y)
            server.predict_one({"weekday": day % 7}, key=day % 50)
            server.learn_late(day % 50, y)
        server.save(tmp_path / "kept")
        sizes.append((tmp_path / "kept").stat().st_size)
    assert max(sizes) < 1.01 * sizes[0]
    assert server.regrets()["swap_regret"].max() < 2.0  # of costs up to 400, and 3,600


def test_several_outcomes_and_a_portfolio_in_returns() -> None:
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    fund = MeanVariance(shares, risk_aversion=4.0)
    scale = {"bonds": (-0.1, 0.1), "shares": (-0.2, 0.2)}
    named = {"fund": ["bonds", "shares", "half"]}
    server = OnlineOmnipredictor({"fund": fund}, scale=scale, actions=named)
    rng = np.random.default_rng(0)
    for _ in range(80):
        server.learn_one(None, {"bonds": rng.normal(0.01, 0.005), "shares": rng.normal(0.0, 0.08)})
    forecast = server.predict_one()
    assert forecast.act("fund") == "bonds"
    assert forecast.mean["bonds"] == pytest.approx(0.01, abs=0.01)
    assert -forecast.loss("fund") == pytest.approx(0.01, abs=0.02)
    assert set(forecast.quantile(0.5)) == {"bonds", "shares"}
    assert f"bonds {forecast.mean['bonds']:.4g}" in repr(forecast)


def test_a_forecast_of_ones_own_is_a_model() -> None:
    """A planner who knows the demand is followed."""
    server = make_server(forecasts={"plan": "plan"})
    for y in np.random.default_rng(1).uniform(50, 350, 150):
        server.learn_one({"plan": float(y)}, float(y))
    assert server.predict_one({"plan": 300.0}).mean == pytest.approx(300, abs=25)
    assert server.regrets()["best_model"].item() == "plan"
    with pytest.raises(UserError, match="no forecast 'plan' in the context"):
        server.predict_one({"plan": None})


def test_two_forecasts_may_share_a_column() -> None:
    portfolio = MeanVariance([[0.0, 1.0], [1.0, 0.0]], risk_aversion=1.0)
    server = OnlineOmnipredictor(
        {"fund": portfolio},
        scale={"bonds": (0.0, 100.0), "shares": (0.0, 100.0)},
        models={},
        forecasts={"p": ["bonds a", "shares a"], "q": ["bonds a", "shares b"]},
    )
    for bonds in np.random.default_rng(0).uniform(10, 90, 40).tolist():
        x = {"bonds a": bonds, "shares a": 40.0, "shares b": 40.0}
        server.learn_one(x, {"bonds": bonds, "shares": 40.0})
    mean = server.predict_one({"bonds a": 80.0, "shares a": 40.0, "shares b": 40.0}).mean
    assert mean == pytest.approx({"bonds": 80.0, "shares": 40.0}, abs=0.5)


def test_a_column_of_outcomes_with_different_scales_is_refused() -> None:
    portfolio = MeanVariance([[0.0, 1.0], [1.0, 0.0]], risk_aversion=1.0)
    scale = {"bonds": (0.0, 100.0), "shares": (0.0, 50.0)}
    with pytest.raises(UserError, match="'a' is of outcomes with different scales; give each"):
        OnlineOmnipredictor({"fund": portfolio}, scale=scale, forecasts={"p": ["a", "a"]})


def test_a_policy_reads_a_forecast_in_its_own_units() -> None:
    seen = set[float]()

    def order_much(context: Any) -> float:
        seen.add(context["plan"])
        return 400.0 if context["plan"] > 150 else 0.0

    server = make_server(forecasts={"plan": "plan"}, policies={"a": {"by plan": order_much}})
    server.predict_one({"plan": 300.0}, key="late")
    for plan in (100.0, 300.0) * 20:
        server.predict_one({"plan": plan})
        server.learn_one({"plan": plan}, plan)
    server.learn_late("late", 300.0)
    assert seen == {100.0, 300.0}
    assert server.predict_one({"plan": 300.0}).mean == pytest.approx(300, abs=25)


def order_by_weekday(context: Any) -> float:
    """Order more on the day of high demand."""
    return 350.0 if context["weekday"] == 5 else 200.0


def test_regrets_are_those_of_what_it_said(tmp_path: Path) -> None:
    """A rule by the day, as a function and as a registered one, costs what it suggests."""
    steps = {"kind": "steps", "feature": "weekday", "edges": [5, 6], "actions": [4, 7, 4]}
    server = make_server(
        {"lean": 3.0}, policies={"lean": {"own": order_by_weekday, "table": steps}}
    )
    chosen = []
    suggested_actions = []
    costs = []
    for day, y in enumerate(weekly_demand(200)):
        x = {"weekday": day % 7}
        chosen.append([*ORDERS].index(server.predict_one(x).act("lean")))
        suggested_actions.append(int(order_by_weekday(x) / 50))
        costs.append(cost_of(3.0, ORDERS, y))
        server.learn_one(x, y)
    table = np.array(costs)
    played = np.array(chosen)
    row = server.regrets().iloc[0]
    log = table / table.max(), played
    assert row["mean_loss"] == pytest.approx(table[np.arange(200), played].mean(), rel=1e-9)
    expected = {"external_regret": external_regret(*log), "swap_regret": swap_regret(*log)}
    constants = np.repeat(np.arange(len(ORDERS))[:, None], 200, axis=1)
    comparators = np.vstack(
        [constants, suggested_actions]
    )  # each action is compared with all of them
    expected["decision_swap_regret"] = decision_swap_regret(*log, comparators)
    for name, regret in expected.items():
        assert row[name] == pytest.approx(table.max() * regret, rel=1e-9, abs=1e-9)
        assert row[name] <= row["bound"]
    server.save(tmp_path / "kept")
    with pytest.raises(UserError, match=r"give policies\['lean'\]\['own'\], as it"):
        OnlineOmnipredictor.load(tmp_path / "kept")
    again = OnlineOmnipredictor.load(
        tmp_path / "kept", policies={"lean": {"own": order_by_weekday}}
    )
    pd.testing.assert_frame_equal(again.regrets(), server.regrets())


def ask_question(of: str, question: str, *arguments: Any) -> None:
    """Ask one that has learned a little, or its forecast."""
    server = taught_server(2)
    getattr(server.predict_one({"weekday": 1}) if of == "forecast" else server, question)(
        *arguments
    )


def play_two_rounds(**more: Any) -> None:
    """Play two rounds: River's kind is not asked before the first outcome."""
    server = make_server(**more)
    for y in (10.0, 20.0):
        server.learn_one({"weekday": 1.0}, y)


def play_with_policy(rule: Any) -> None:
    """Play two rounds beside a policy of one's own."""
    play_two_rounds(policies={"a": {"r": rule}})


def play_with_model(**answers: Any) -> None:
    """Follow a model of one's own with these methods, each with its answer."""
    methods = {name: lambda *_, answer=answer: answer for name, answer in answers.items()}
    play_two_rounds(models={"own": SimpleNamespace(**methods)})


def words_of(message: str) -> str:
    """Return the words of a pattern that a line must match."""
    return re.sub(r"\\|\.\*|\$$", "", message)


MISTAKES: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (OnlineOmnipredictor, ({},), {}, "losses: there are none"),
    (OnlineOmnipredictor, ({"a": 3},), {}, r"losses\['a'\] is 3; give a single loss"),
    (make_server, (), {"scale": {"d": (1, 1)}}, r"scale\['d'\] = \(1, 1\)"),
    (make_server, (), {"scale": {"d": (0, 1), "e": (0, 1)}}, "as many"),
    (make_server, (), {"models": {"m": "last"}}, "unknown kind 'last'"),
    (make_server, (), {"models": {"m": object()}}, "models"),
    (make_server, (), {"actions": {"a": [1]}}, "has 1 names; give 9"),
    (make_server, (), {"policies": {"b": {}}}, "no loss 'b'"),
    (play_with_policy, ({"kind": "stepz"},), {}, r"policies\['r'\]: unknown kind 'stepz'"),
    (play_with_policy, ({"kind": "steps"},), {}, r"policies\['r'\]: .*missing"),
    (play_with_policy, (lambda _: 3.0,), {}, "policy 'r' suggests 3.0; return one of 0.0, 50.0"),
    (play_with_policy, (lambda x: x["weekda"],), {}, "no 'weekda' in the context.*'weekday'"),
    (
        ask_question,
        ("it", "learn_one", {"weekday": 1}, {"demnd": 1.0}),
        {},
        "did you mean 'demand'",
    ),
    (
        ask_question,
        ("it", "learn_one", {"weekday": 1}, "much"),
        {},
        "give a number for each outcome, or None",
    ),
    (ask_question, ("it", "predict_one", {"a": [1]}), {}, "give a number, a word or a date"),
    (ask_question, ("forecast", "act", "lea"), {}, "did you mean 'lean'"),
    (ask_question, ("forecast", "quantile", 1.0), {}, "between 0 and 1"),
    (OnlineOmnipredictor.load, (__file__,), {}, "is no saved OnlineOmnipredictor"),
    (
        play_with_model,
        (),
        {"predict": HALF, "update": None},
        r"returned array\(\[0\.5\]\); return a Fore",
    ),
    (
        play_with_model,
        (),
        {"predict_one": "abc", "learn_one": None},
        "returned 'abc'; return a number$",
    ),
    (
        play_with_model,
        (),
        {"predict_one": np.ones(2), "learn_one": None},
        "array.*; return a number$",
    ),
]


@pytest.mark.parametrize(
    ("make", "arguments", "keywords", "message"),
    MISTAKES,
    ids=[words_of(row[3]) for row in MISTAKES],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    make: Any, arguments: Any, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        make(*arguments, **keywords)
    assert "\n" not in str(refusal.value)


def test_code_and_a_model_without_a_memory_are_not_saved(tmp_path: Path) -> None:
    coded_loss = LipschitzLoss(lambda y: np.concatenate([y, 1 - y], -1), np.array(1.0), (2,), 1)
    with pytest.raises(UserError, match=r"losses\['own'\] is code of its own"):
        OnlineOmnipredictor({"own": coded_loss}).save(tmp_path / "no")
    tree = pytest.importorskip("river.tree").HoeffdingTreeRegressor()
    with pytest.raises(UserError, match=r"models\['tree'\] cannot be saved; let it learn, give"):
        taught_server(40, models={"tree": tree, "last": "last-value"}).save(tmp_path / "no")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::regretless.forecaster.online.FeatureWarning")
def test_river_says_that_it_is_one_of_its_regressors() -> None:
    """All checks of River; none has to be left out."""
    checks = pytest.importorskip("river.checks")
    from regretless.forecaster.online.as_river import OmnipredictorRegressor  # noqa: PLC0415

    checks.check_estimator(OmnipredictorRegressor(0.0, 100.0, models={"mean": "running-mean"}))


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_says_that_it_is_one_of_its_estimators() -> None:
    """All checks of scikit-learn but that of array interfaces, which wants a switch of SciPy's."""
    checks = check_estimator(OmnipredictorEstimator(models={"m": "least-squares"}), on_fail=None)
    unpassed = {check["check_name"] for check in checks if check["status"] != "passed"}
    assert unpassed <= {"check_array_api_input"}


class Steps:
    """A series model in statsforecast's habits that follows what comes."""

    def fit(self, y: Any) -> None:
        self.level = float(np.mean(y))

    def predict(self, h: int) -> dict[str, Any]:
        return {"mean": np.full(h, self.level)}

    def forward(self, y: Any, h: int) -> dict[str, Any]:
        return {"mean": np.full(h, (self.level + y[-1]) / 2)}


OTHERS: dict[str, tuple[Any, ...]] = {  # module, class and what it needs
    "river": ("river.linear_model", "LinearRegression"),
    "scikit-learn": ("sklearn.linear_model", "Ridge"),
    "steps": (__name__, "Steps"),
    "sktime": ("sktime.forecasting.exp_smoothing", "ExponentialSmoothing"),
    "statsforecast": ("statsforecast.models", "SeasonalNaive", 7),
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_libraries_are_saved(tmp_path: Path, name: str) -> None:
    module, kind, *needs = OTHERS[name]
    make = getattr(pytest.importorskip(module), kind)
    server = taught_server(40, models={"theirs": make(*needs), "last": "last-value"})
    server.save(tmp_path / "kept")
    with pytest.raises(UserError, match=r"load: give models\['theirs'\], as it"):
        OnlineOmnipredictor.load(tmp_path / "kept")
    loaded = OnlineOmnipredictor.load(tmp_path / "kept", models={"theirs": make(*needs)})
    for continued in (server, loaded):
        for day in range(40, 70):
            continued.learn_one({"weekday": day % 7}, 100.0 + day)
    assert server.predict_one({"weekday": 3}).mean == loaded.predict_one({"weekday": 3}).mean
    pd.testing.assert_frame_equal(server.regrets(), loaded.regrets())


def test_how_tos_of_the_page_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nightly on a table, twice, and over HTTP where FastAPI is installed."""
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    for name in ("nightly", "serve"):
        block = page.split(f"```python\n# {name}.py\n")[1].split("```")[0]
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    table = pd.DataFrame({"date": pd.date_range("2026-01-01", periods=60).strftime("%Y-%m-%d")})
    table["weather"] = ["sun", "rain"] * 30
    table["demand"] = [60.0, 90.0] * 30
    command = [sys.executable, "nightly.py"]
    printed = []
    for entered in (np.nan, 30.0):  # a gap, which is filled too late
        table.loc[[30, 59], "demand"] = entered, np.nan
        table.to_csv(tmp_path / "sales.csv", index=False)
        printed.append(subprocess.check_output(command, cwd=tmp_path, text=True))
    assert printed[0] == printed[1]
    assert re.match(r"2026-03-01: order (90|100), expect 9\d\n", printed[0])  # 90 to 92 are likely
    counts = OnlineOmnipredictor.load(tmp_path / "server.bin").counts
    assert (counts["learned"], counts["missing"]) == (58, 1)
    client = pytest.importorskip("fastapi.testclient")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    http = client.TestClient(importlib.import_module("serve").app)
    x = {"date": "2026-03-02", "weather": "sun"}
    assert http.post("/forecast", params={"key": "a"}, json=x).json()["act"] == {"store": 60.0}
    assert http.post("/outcome", params={"key": "a", "y": 61}).json()["late"] == 1
    assert http.post("/outcome", params={"key": "a", "y": 61}).status_code == 404


@pytest.mark.parametrize("kind", ["least-squares", "with-errors"])
def test_a_misspelt_parameter_of_a_model_is_named(kind: str) -> None:
    with pytest.raises(UserError, match=rf"models\['a'\]: '{kind}' has no parameter 'lgas'"):
        taught_server(0, models={"a": {"kind": kind, "lgas": 3}})


def test_a_model_of_another_class_than_was_saved_is_refused(tmp_path: Path) -> None:
    taught_server(20, models={"mine": LastValue(1)}).save(tmp_path / "kept")
    with pytest.raises(
        UserError, match=r"models\['mine'\] is of type RunningMean, .* of LastValue"
    ):
        OnlineOmnipredictor.load(tmp_path / "kept", models={"mine": RunningMean(1)})
