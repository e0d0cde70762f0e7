"""Arguments of the public surface: a UserError refuses nonsense, and names it and the cure."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meaningless_arguments import MEANINGLESS, refuses_or_works

import regretless
from regretless import OnlineOmnipredictor, UserError
from regretless.agents import utilities
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.online import FeatureWarning
from regretless.market.losses import Linear

ORDERS = [0.0, 130.0, 260.0]
SHOP = utilities.Newsvendor(ORDERS, underage=4.0, overage=1.0)
ONE_MODEL = {"last": "last-value"}


def shop_server(**arguments: Any) -> OnlineOmnipredictor:
    """Return a small server that has learned two days."""
    scale = {"demand": (0.0, 260.0)}
    server = OnlineOmnipredictor(
        {"shop": SHOP}, **{"scale": scale, "models": ONE_MODEL} | arguments
    )
    name = server.names[0]
    for day, demand in enumerate((100.0, 150.0)):
        server.learn_one({"weekday": day}, {name: demand})
    return server


# the scale


def test_without_a_scale_the_largest_order_says_it() -> None:
    server = OnlineOmnipredictor({"shop": SHOP}, models=ONE_MODEL)
    assert server.scale == {"y": (0.0, 260.0)}
    server.learn_one(None, 130.0)
    assert server.counts["clipped"] == 0
    assert server.predict_one().act("shop") in ORDERS


def test_a_pair_is_the_scale_of_one_outcome() -> None:
    server = OnlineOmnipredictor({"shop": SHOP}, models=ONE_MODEL, scale=(0, 260))
    assert server.scale == {"y": (0.0, 260.0)}


def test_orders_within_the_unit_interval_keep_it() -> None:
    shop = utilities.Newsvendor([0.0, 0.5, 1.0], underage=4.0, overage=1.0)
    assert OnlineOmnipredictor({"shop": shop}, models=ONE_MODEL).scale == {}


def test_orders_beside_another_loss_need_a_scale() -> None:
    losses = {"shop": SHOP, "linear": Linear([[1.0], [0.5]])}
    with pytest.raises(UserError, match=r"'shop'.* has orders up to 260, above 1; give scale"):
        OnlineOmnipredictor(losses, models=ONE_MODEL)


# features of the context


def test_a_renamed_feature_is_said_once() -> None:
    server = shop_server()
    line = (
        "x lacks 'weekday', which earlier contexts had; x has 'wekday', which no earlier context "
        "had; use the old name if it is the same feature"
    )
    with pytest.warns(FeatureWarning, match=line):
        server.predict_one({"wekday": 3})
    server.predict_one({"wekday": 4})  # a warning would be an error


def test_a_missing_and_a_new_feature_are_said_once() -> None:
    server = shop_server()
    with pytest.warns(FeatureWarning, match="x lacks 'weekday'"):
        server.predict_one(None)
    server.predict_one({})  # a warning would be an error
    with pytest.warns(FeatureWarning, match="x has 'rain', which no earlier context had"):
        server.learn_one({"weekday": 1, "rain": 2.0}, 100.0)
    server.learn_one({"weekday": 1, "rain": 2.0}, 100.0)


def test_a_feature_without_a_value_is_there() -> None:
    shop_server().predict_one({"weekday": None})


# what is refused

REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("seed -1", lambda: shop_server(seed=-1), "seed is -1; give a whole number"),
    ("seed 1.5", lambda: shop_server(seed=1.5), "seed is 1.5; give a whole number"),
    ("seed text", lambda: shop_server(seed="x"), "seed is 'x'; give a whole number"),
    ("forecasts", lambda: shop_server(forecasts=5), "forecasts = 5: give columns"),
    ("scale", lambda: shop_server(scale=5), r"scale = 5: give \(low, high\)"),
    ("scale ends", lambda: shop_server(scale={"y": (3, 1)}), r"scale\['y'\] = \(3, 1\)"),
    ("actions", lambda: shop_server(actions={"shop": "abc"}), r"actions\['shop'\] = 'abc'"),
    ("policies", lambda: shop_server(policies={"shop": 4}), r"policies\['shop'\] = 4"),
    ("models", lambda: shop_server(models=5), "models = 5: give 'panel', or models"),
    ("x text", lambda: shop_server().predict_one("5"), "x = '5': give a dictionary"),
    ("x number", lambda: shop_server().predict_one(5), "x = 5: give a dictionary"),
    ("x names", lambda: shop_server().predict_one({None: 1}), "a feature called None"),
    ("x inf", lambda: shop_server().predict_one({"weekday": np.inf}), "'weekday' is inf"),
    ("x date", lambda: shop_server().predict_one({"weekday": "2026-13-45"}), "is no date"),
    ("key", lambda: shop_server().predict_one({"weekday": 1}, key=[1]), r"key = \[1\]: give"),
    ("y huge", lambda: shop_server().learn_one({"weekday": 1}, 10**39), "is 1000 scales away"),
    ("y digits", lambda: shop_server().learn_one({"weekday": 1}, 10**400), "give finite numbers"),
    ("y inf", lambda: shop_server().learn_one({"weekday": 1}, np.inf), "y = inf: give finite"),
    ("y text", lambda: shop_server().learn_one({"weekday": 1}, "50"), "y = '50': give a number"),
    ("y ragged", lambda: shop_server().learn_one({"weekday": 1}, [1, [2]]), "give a number for"),
]


@pytest.mark.parametrize(("name", "act", "reason"), REFUSED, ids=[row[0] for row in REFUSED])
def test_nonsense_is_refused_in_one_line(name: str, act: Callable[[], Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refusal:
        act()
    assert "\n" not in str(refusal.value), name


@pytest.mark.parametrize("q", ["x", None, 2, 0, 1, -0.5, np.nan, True, [0.5], 1j])
def test_what_is_no_probability_has_no_quantile(q: Any) -> None:
    with pytest.raises(UserError, match=r"q = .*: give a number between 0 and 1"):
        shop_server().predict_one({"weekday": 1}).quantile(q)


@pytest.mark.parametrize("name", [None, 5, [], {}, "shoq"])
def test_what_is_no_loss_has_no_action(name: Any) -> None:
    forecast = shop_server().predict_one({"weekday": 1})
    for ask in (forecast.act, forecast.loss):
        with pytest.raises(UserError, match=r"no loss .*choose one of: shop"):
            ask(name)


def test_an_array_of_no_dimension_is_one_number() -> None:
    """As NumPy returns it from a sum or a mean."""
    server = shop_server()
    other = shop_server()
    server.learn_one({"weekday": 1}, np.array(100.0))
    other.learn_one({"weekday": 1}, 100.0)
    loss = server.predict_one({"weekday": 2}).loss("shop")
    np.testing.assert_array_equal(loss, other.predict_one({"weekday": 2}).loss("shop"))


def test_a_refused_late_outcome_leaves_its_forecast_open() -> None:
    server = shop_server()
    server.predict_one({"weekday": 1}, key="monday")
    with pytest.raises(UserError, match="y = 'much'"):
        server.learn_late("monday", "much")
    server.learn_late("monday", 120.0)
    assert server.counts["late"] == 1


# any junk for any argument of the public surface

TABLE = [[0.5, 0.2], [0.1, 0.9]]
LOG: dict[str, Any] = {"losses": TABLE, "actions": [0, 1]}
ADVISED = LOG | {"policies": [[0, 1], [1, 1]]}
GAME: dict[str, Any] = {"leader_payoff": TABLE, "follower_loss": TABLE}
JOINT = [[0.25, 0.25], [0.5, 0.0]]
LINEAR = Linear([[1.0], [0.5]])

SURFACE: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "LinearUtility": (utilities.LinearUtility, {"weights": TABLE}),
    "CES": (utilities.CES, {"weights": TABLE, "rho": 0.5, "v": 1.0, "y_min": 0.1}),
    "CobbDouglas": (utilities.CobbDouglas, {"alpha": TABLE, "A": 1.0, "y_min": 0.1}),
    "Leontief": (utilities.Leontief, {"a": TABLE}),
    "CARA": (utilities.CARA, {"weights": TABLE, "risk_aversion": 2.0}),
    "MeanVariance": (
        utilities.MeanVariance,
        {"weights": TABLE, "risk_aversion": 2.0, "reference": 0.1},
    ),
    "Newsvendor": (
        utilities.Newsvendor,
        {"orders": ORDERS, "underage": 4.0, "overage": 1.0, "coordinate": 0, "outcomes": 1},
    ),
    "LpTarget": (utilities.LpTarget, {"targets": TABLE, "p": 2.0, "weights": 1.0}),
    "external_regret": (regretless.external_regret, LOG),
    "swap_regret": (regretless.swap_regret, LOG),
    "omniprediction_regret": (regretless.omniprediction_regret, ADVISED),
    "decision_swap_regret": (regretless.decision_swap_regret, ADVISED),
    "contextual_swap_regret": (regretless.contextual_swap_regret, ADVISED),
    "stackelberg": (regretless.stackelberg, GAME),
    "surplus_cap": (regretless.surplus_cap, GAME),
    "leader_surplus": (regretless.leader_surplus, GAME | {"joint": JOINT}),
    "exploitability": (
        regretless.exploitability,
        {"joint": JOINT, "follower_loss": TABLE, "tolerance": 0.0},
    ),
    "persuasion": (
        regretless.persuasion,
        {"prior": [0.5, 0.5], "sender_payoff": TABLE, "receiver_loss": TABLE},
    ),
    "DecisionSwap": (
        regretless.DecisionSwap,
        {"losses": [LINEAR], "policies": (), "weights": "adaptive", "horizon": 9, "seed": 0},
    ),
    "SmoothDecisionSwap": (
        regretless.SmoothDecisionSwap,
        {"losses": [LINEAR], "policies": (), "eta": 2.0, "basis": LinearBasis(1), "seed": 0},
    ),
    "NonLinearDecisionSwap": (
        regretless.NonLinearDecisionSwap,
        {"losses": [LINEAR], "basis": LinearBasis(1), "policies": (), "horizon": 9, "seed": 0},
    ),
    "OnlineOmnipredictor": (
        OnlineOmnipredictor,
        {
            "losses": {"shop": SHOP},
            "scale": {"y": (0, 260)},
            "models": ONE_MODEL,
            "forecasts": {},
            "policies": {},
            "actions": {},
            "seed": 0,
        },
    ),
}


@pytest.mark.parametrize("name", SURFACE)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_junk_for_any_argument_is_refused_or_works(name: str, data: st.DataObject) -> None:
    function, sound = SURFACE[name]
    argument = data.draw(st.sampled_from(sorted(sound)))
    refuses_or_works(function, {**sound, argument: data.draw(MEANINGLESS)})


@functools.cache
def learned_server() -> OnlineOmnipredictor:
    return shop_server()


VERBS = {
    "predict_one": {"x": {"weekday": 1}, "key": "monday"},
    "learn_one": {"x": {"weekday": 1}, "y": 100.0, "censored": False},
    "learn_late": {"key": "monday", "y": 100.0, "censored": False},
    "save": {"path": None},
    "quantile": {"q": 0.5},
    "act": {"name": "shop"},
    "loss": {"name": "shop"},
}


@pytest.mark.parametrize("name", VERBS)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_junk_for_a_verb_is_refused_or_works(
    name: str, data: st.DataObject, tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.getbasetemp())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server_or_forecast: Any = learned_server()
        if name in {"quantile", "act", "loss"}:
            server_or_forecast = server_or_forecast.predict_one({"weekday": 1})
    verb = getattr(server_or_forecast, name)
    assert set(VERBS[name]) == set(inspect.signature(verb).parameters)
    argument = data.draw(st.sampled_from(sorted(VERBS[name])))
    value = data.draw(st.one_of(MEANINGLESS, st.fixed_dictionaries({"weekday": MEANINGLESS})))
    refuses_or_works(verb, {**VERBS[name], argument: value})
