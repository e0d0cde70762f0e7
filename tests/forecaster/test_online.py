"""A forecaster that runs on one's own data: what it says, learns, keeps and refuses."""

import importlib
import os
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
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import check_estimator

from regretless import OmnipredictorEstimator, OnlineOmnipredictor, UserError
from regretless.agents.utilities import MeanVariance, Newsvendor
from regretless.market.losses import LipschitzLoss
from regretless.market.regret import decision_swap_regret, external_regret, swap_regret

SCALE, HALF = {"demand": (0.0, 400.0)}, np.array([0.5])


def demand(rounds: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return a beta demand, more of it on one day in seven."""
    days = np.arange(rounds)
    drawn = stats.beta(4, 4).rvs(rounds, random_state=seed)
    return 40 + 200 * drawn + 120 * (days % 7 == 5)


def online(costs: Any = None, **more: Any) -> OnlineOmnipredictor:
    """Protect newsvendors in pieces, by what a piece that lacks costs."""
    orders, costs = np.linspace(0, 400, 9), costs or {"a": 1.0}
    losses = {name: Newsvendor(orders, underage=c, overage=1.0) for name, c in costs.items()}
    return OnlineOmnipredictor(losses, **{"scale": SCALE} | more)


def taught(rounds: int, **kinds: Any) -> OnlineOmnipredictor:
    own = online({"lean": 1.0, "careful": 9.0}, **kinds)
    for day, y in enumerate(demand(rounds)):
        own.learn_one({"weekday": day % 7}, y)
    return own


def test_the_interval_covers_a_known_distribution() -> None:
    """Of what is drawn 90 %, within two standard errors; and in the middle the median."""
    own, inside, below, told = taught(300), 0, 0, demand(1100)
    for day in range(300, 1100):
        forecast = own.predict_one({"weekday": day % 7})
        inside += forecast.quantile(0.05) <= told[day] <= forecast.quantile(0.95)
        below += told[day] <= forecast.quantile(0.5)
        own.learn_one({"weekday": day % 7}, told[day])
    assert abs(inside / 800 - 0.9) <= 2 * np.sqrt(0.09 / 800)
    assert abs(below / 800 - 0.5) <= 2 * np.sqrt(0.25 / 800)


def test_a_forecast_is_a_distribution_with_the_broadcast_statistics() -> None:
    forecast = taught(300).predict_one({"weekday": 5})
    assert forecast.weights.sum() == pytest.approx(1.0)
    meant = forecast.weights @ forecast.basis.transform(forecast.likely)
    assert np.abs(meant - forecast.statistics).max() < 0.01
    assert forecast.mean == pytest.approx(float(forecast.weights @ forecast.outcomes[:, 0]))
    assert forecast.mean == pytest.approx(260, abs=15)
    for name, cost in (("lean", 1.0), ("careful", 9.0)):
        orders, drawn = np.linspace(0, 400, 9), forecast.outcomes
        costs = cost * np.maximum(drawn - orders, 0) + np.maximum(orders - drawn, 0)
        expected = forecast.weights @ costs
        assert forecast.act(name) == orders[expected.argmin()]
        assert forecast.loss(name) == pytest.approx(expected.min(), abs=400 * 0.02 * (cost + 1))
    assert forecast.act("careful") > forecast.act("lean")


def test_what_is_missing_late_or_beyond_the_scale_is_counted() -> None:
    own = taught(30)
    own.predict_one({"weekday": 1}, key="monday")
    own.predict_one({"weekday": 2}, key="tuesday")
    own.learn_one({"weekday": 2}, None)
    own.learn_one({"weekday": 2}, float("nan"))
    own.learn_one({"weekday": 2}, pd.NA)
    with pytest.warns(UserWarning, match="'demand' lies beyond its scale"):
        own.learn_one({"weekday": 2}, {"demand": 500.0})
    own.learn_late("monday", 120.0)
    own.learn_late("tuesday", None)
    assert own.counts == {"learned": 32, "missing": 4, "clipped": 1, "late": 1, "forgotten": 0}
    for closed in ("monday", "tuesday"):
        with pytest.raises(UserError, match=f"no forecast waits under '{closed}'"):
            own.learn_late(closed, 120.0)


def test_a_late_outcome_is_charged_to_what_was_said_of_it() -> None:
    own = taught(40)
    said = own.predict_one({"weekday": 5}, key=1).act("careful")
    for _ in range(20):
        own.learn_one({"weekday": 5}, 50.0)
    assert own.predict_one({"weekday": 5}).act("careful") < said
    before = own.regrets().set_index("loss").loc["careful"]
    own.learn_late(1, 250.0)
    after = own.regrets().set_index("loss").loc["careful"]
    cost = max(said - 250.0, 0) + 9.0 * max(250.0 - said, 0)
    assert after["mean_loss"] * 61 - before["mean_loss"] * 60 == pytest.approx(cost, rel=1e-9)


def test_a_saved_one_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    own = taught(90)
    own.predict_one({"weekday": 3, "shop": "north", "day": "2026-03-01"}, key="late")
    own.save(tmp_path / "a")
    other = OnlineOmnipredictor.load(tmp_path / "a")
    other.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for one, name in ((own, "c"), (other, "d")):
        for day in range(90, 120):
            one.learn_one({"weekday": day % 7, "shop": "north"}, 100.0 + day)
        one.learn_late("late", 90.0)
        one.save(tmp_path / name)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes()
    pd.testing.assert_frame_equal(own.regrets(), other.regrets())


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
    own = taught(20)
    own.save(tmp_path / "kept")
    whole = (tmp_path / "kept").read_bytes()
    words = [sys.executable, "-c", KILLED, str(tmp_path / "kept")]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "kept").read_bytes() == whole
    again = OnlineOmnipredictor.load(tmp_path / "kept")
    assert again.counts["learned"] == 20
    assert again.predict_one({"weekday": 3}).mean == own.predict_one({"weekday": 3}).mean


def test_a_long_stream_takes_no_more_room(tmp_path: Path) -> None:
    own, sizes = taught(520), []
    for _ in range(2):
        own.save(tmp_path / "kept")
        sizes.append((tmp_path / "kept").stat().st_size)
        for day, y in enumerate(demand(300, seed=len(sizes))):
            own.learn_one({"weekday": day % 7}, y)
            own.predict_one({"weekday": day % 7}, key=day % 50)
            own.learn_late(day % 50, y)
    own.save(tmp_path / "kept")
    assert (tmp_path / "kept").stat().st_size < 1.02 * sizes[1]
    assert own.regrets()["swap_regret"].max() < 2.0  # of costs up to 400, and 3,600


def test_several_outcomes_and_a_portfolio_in_returns() -> None:
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    fund = MeanVariance(shares, risk_aversion=4.0)
    own = OnlineOmnipredictor(
        {"fund": fund},
        scale={"bonds": (-0.1, 0.1), "shares": (-0.2, 0.2)},
        actions={"fund": ["bonds", "shares", "half"]},
    )
    rng = np.random.default_rng(0)
    for _ in range(80):
        own.learn_one(None, {"bonds": rng.normal(0.01, 0.005), "shares": rng.normal(0.0, 0.08)})
    forecast = own.predict_one()
    assert forecast.act("fund") == "bonds"
    assert forecast.mean["bonds"] == pytest.approx(0.01, abs=0.01)
    assert -forecast.loss("fund") == pytest.approx(0.01, abs=0.02)
    assert set(forecast.quantile(0.5)) == {"bonds", "shares"}
    assert f"bonds {forecast.mean['bonds']:.4g}" in repr(forecast)


def test_a_forecast_of_ones_own_is_a_model() -> None:
    """A planner who knows the demand is followed."""
    own = online(forecasts={"plan": "plan"})
    for y in np.random.default_rng(1).uniform(50, 350, 150):
        own.learn_one({"plan": float(y)}, float(y))
    assert own.predict_one({"plan": 300.0}).mean == pytest.approx(300, abs=25)
    assert own.regrets()["best_model"].item() == "plan"
    with pytest.raises(UserError, match="no forecast 'plan' in the context"):
        own.predict_one({})


def often_empty(context: Any) -> float:
    return 350.0 if context["weekday"] == 5 else 200.0


def test_regrets_are_those_of_what_it_said(tmp_path: Path) -> None:
    """A rule by the day, as a function and as a registered one, costs what it suggests."""
    steps = {"kind": "steps", "feature": "weekday", "edges": [5, 6], "actions": [4, 7, 4]}
    own = online({"lean": 3.0}, policies={"lean": {"own": often_empty, "table": steps}})
    orders, chosen, told, costs = np.linspace(0, 400, 9), [], [], []
    for day, y in enumerate(demand(200)):
        x = {"weekday": day % 7}
        chosen.append(int(np.flatnonzero(orders == own.predict_one(x).act("lean"))[0]))
        told.append(int(often_empty(x) / 50))
        costs.append(3.0 * np.maximum(y - orders, 0) + np.maximum(orders - y, 0))
        own.learn_one(x, y)
    table, played, row = np.array(costs), np.array(chosen), own.regrets().iloc[0]
    span = table.max()
    assert row["mean_loss"] == pytest.approx(table[np.arange(200), played].mean(), rel=1e-9)
    expected = {
        "external_regret": external_regret(table / span, played),
        "swap_regret": swap_regret(table / span, played),
        "decision_swap_regret": decision_swap_regret(table / span, played, np.array([told, told])),
    }
    expected["decision_swap_regret"] = max(expected.values())
    for name, regret in expected.items():
        assert row[name] == pytest.approx(span * regret, rel=1e-9, abs=1e-9)
        assert row[name] <= row["bound"]
    own.save(tmp_path / "kept")
    with pytest.raises(UserError, match=r"give policies\['lean'\]\['own'\], as it"):
        OnlineOmnipredictor.load(tmp_path / "kept")
    again = OnlineOmnipredictor.load(tmp_path / "kept", policies={"lean": {"own": often_empty}})
    pd.testing.assert_frame_equal(again.regrets(), own.regrets())


def follow(own: OnlineOmnipredictor) -> None:
    """Play two rounds: River's kind is not asked before the first outcome."""
    for demand in (10.0, 20.0):
        own.learn_one({"weekday": 1.0}, demand)


def ruled(rule: Any) -> None:
    follow(online(policies={"a": {"r": rule}}))


def modelled(**answers: Any) -> None:
    """Follow a model of one's own with these methods, each with its answer."""
    methods = {name: lambda *_, told=told: told for name, told in answers.items()}
    follow(online(models={"own": SimpleNamespace(**methods)}))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OnlineOmnipredictor({}), "losses: there are none"),
        (lambda: OnlineOmnipredictor({"a": 3}), r"losses\['a'\] is 3; give a single loss"),
        (lambda: online(scale={"d": (1, 1)}), "scale: "),
        (lambda: online(scale={"d": (0, 1), "e": (0, 1)}), "as many"),
        (lambda: online(models={"m": "last"}), "unknown kind 'last'"),
        (lambda: online(models={"m": object()}), "models"),
        (lambda: online(actions={"a": [1]}), "has 1 names; give 9"),
        (lambda: online(policies={"b": {}}), "no loss 'b'"),
        (lambda: ruled({"kind": "stepz"}), r"policies\['r'\]: unknown kind 'stepz'"),
        (lambda: ruled({"kind": "steps"}), r"policies\['r'\]: .*missing"),
        (lambda: ruled(lambda _: 3.0), "policy 'r' suggests 3.0; return one of 0.0, 50.0"),
        (lambda: ruled(lambda x: x["weekda"]), "no 'weekda' in the context.*'weekday'"),
        (lambda: taught(2).learn_one({}, {"demnd": 1.0}), "did you mean 'demand'"),
        (lambda: taught(2).learn_one({}, "much"), "give a number for each outcome, or None"),
        (lambda: taught(2).predict_one({"a": [1]}), "give a number, a word or a date"),
        (lambda: taught(2).predict_one({}).act("lea"), "did you mean 'lean'"),
        (lambda: taught(2).predict_one({}).quantile(1.0), "between 0 and 1"),
        (lambda: OnlineOmnipredictor.load(__file__), "is no saved OnlineOmnipredictor"),
        (lambda: modelled(predict=HALF, update=None), r"returned array\(\[0\.5\]\); return a Fore"),
        (lambda: modelled(predict_one="abc", learn_one=None), "returned 'abc'; return a number$"),
        (lambda: modelled(predict_one=np.ones(2), learn_one=None), "array.*; return a number$"),
    ],
)
def test_mistakes_get_one_line(make: Any, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        make()
    assert "\n" not in str(told.value)


def test_code_and_a_model_without_a_memory_are_not_saved(tmp_path: Path) -> None:
    own = LipschitzLoss(lambda y: np.concatenate([y, 1 - y], -1), np.array(1.0), (2,), 1)
    with pytest.raises(UserError, match=r"losses\['own'\] is code of its own"):
        OnlineOmnipredictor({"own": own}).save(tmp_path / "no")
    assert not (tmp_path / "no").exists()
    tree = pytest.importorskip("river.tree").HoeffdingTreeRegressor()
    with pytest.raises(UserError, match=r"models\['tree'\] cannot be saved; let it learn, give"):
        taught(40, models={"tree": tree, "last": "last-value"}).save(tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_river_says_that_it_is_one_of_its_regressors() -> None:
    """All checks of River; none has to be left out."""
    checks = pytest.importorskip("river.checks")
    from regretless.forecaster.online.as_river import OmnipredictorRegressor  # noqa: PLC0415

    checks.check_estimator(OmnipredictorRegressor(0.0, 100.0, models={"mean": "running-mean"}))


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_says_that_it_is_one_of_its_estimators() -> None:
    """All checks of scikit-learn but that of array interfaces, which wants a switch of SciPy's."""
    told = check_estimator(OmnipredictorEstimator(models={"m": "least-squares"}), on_fail=None)
    left = {one["check_name"] for one in told if one["status"] != "passed"}
    assert left <= {"check_array_api_input"}


class Steps:
    """A series model in statsforecast's habits that follows what comes."""

    def fit(self, y: Any) -> None:
        self.level = float(np.mean(y))

    def predict(self, h: int) -> dict[str, Any]:
        return {"mean": np.full(h, self.level)}

    def forward(self, y: Any, h: int) -> dict[str, Any]:
        return {"mean": np.full(h, (self.level + y[-1]) / 2)}


OTHERS: dict[str, Any] = {
    "river": lambda: pytest.importorskip("river.linear_model").LinearRegression(),
    "scikit-learn": Ridge,
    "steps": Steps,
    "sktime": lambda: pytest.importorskip(
        "sktime.forecasting.exp_smoothing"
    ).ExponentialSmoothing(),
    "statsforecast": lambda: pytest.importorskip("statsforecast.models").SeasonalNaive(7),
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_libraries_are_saved(tmp_path: Path, name: str) -> None:
    make = OTHERS[name]
    own = taught(40, models={"theirs": make(), "last": "last-value"})
    own.save(tmp_path / "kept")
    with pytest.raises(UserError, match=r"load: give models\['theirs'\], as it"):
        OnlineOmnipredictor.load(tmp_path / "kept")
    other = OnlineOmnipredictor.load(tmp_path / "kept", models={"theirs": make()})
    for one in (own, other):
        for day in range(40, 70):
            one.learn_one({"weekday": day % 7}, 100.0 + day)
    assert own.predict_one({"weekday": 3}).mean == other.predict_one({"weekday": 3}).mean
    pd.testing.assert_frame_equal(own.regrets(), other.regrets())


def test_how_tos_of_the_page_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nightly on a table, twice, and over HTTP where FastAPI is installed."""
    page = Path(__file__).parents[2] / "docs" / "serving.md"
    for name in ("nightly", "serve"):
        block = page.read_text(encoding="utf-8").split(f"```python\n# {name}.py\n")[1]
        (tmp_path / f"{name}.py").write_text(block.split("```")[0], encoding="utf-8")
    days = pd.date_range("2026-01-01", periods=60).strftime("%Y-%m-%d")
    table = pd.DataFrame(
        {"date": days, "weather": ["sun", "rain"] * 30, "demand": [60.0, 90.0] * 30}
    )
    words, told = [sys.executable, "nightly.py"], []
    for entered in (np.nan, 30.0):  # a gap, which is filled too late
        table.loc[[30, 59], "demand"] = entered, np.nan
        table.to_csv(tmp_path / "sales.csv", index=False)
        told.append(subprocess.check_output(words, cwd=tmp_path, text=True))
    first, again = told
    assert again == first
    assert "2026-03-01: order 90, expect" in first
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
