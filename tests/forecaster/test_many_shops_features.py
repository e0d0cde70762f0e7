"""Many shops: a feature of the context that is missing or new is said as one shop alone says it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regretless import ManyOmnipredictors, OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.online import FeatureWarning

ORDERS = np.linspace(10.0, 90.0, 5)
SCALE = {"demand": (0.0, 100.0)}
STORES = Newsvendor(np.tile(ORDERS, (3, 1)), underage=[4.0, 1.0, 2.0], overage=[1.0, 4.0, 2.0])
DEMAND = [40.0, 50.0, 60.0]
# As rows of arrays, and one by one, as announced quantiles are served.
EACH_WAY = pytest.mark.parametrize(
    "options", [{}, {"quantiles": [0.1, 0.9]}], ids=["arrays", "one by one"]
)


def shops_that_learned(x: dict[str, Any], **options: Any) -> ManyOmnipredictors:
    shops = ManyOmnipredictors({"store": STORES}, scale=SCALE, **options)
    shops.learn_many(x, DEMAND)
    return shops


@EACH_WAY
def test_a_renamed_feature_is_said_once_of_all_shops(options: dict[str, Any]) -> None:
    shops = shops_that_learned({"day": "2026-03-01", "price": [1.0, 2.0, 3.0]}, **options)
    alone = OnlineOmnipredictor({"store": STORES[0]}, scale=SCALE, **options)
    alone.learn_one({"day": "2026-03-01", "price": 1.0}, 40.0)
    with pytest.warns(FeatureWarning) as said_alone:
        alone.predict_one({"date": "2026-03-02", "price": 1.0})
    renamed = {"date": "2026-03-02", "price": [1.0, 2.0, 3.0]}
    with pytest.warns(FeatureWarning) as said_of_all:
        shops.act_many("store", renamed)
    shops.predict_many(renamed)  # a warning would be an error
    shops.learn_many(renamed, DEMAND)
    assert len(said_of_all) == 1
    assert str(said_of_all[0].message) == str(said_alone[0].message)
    assert said_of_all[0].filename == __file__


@EACH_WAY
def test_a_feature_without_a_value_for_one_shop_is_there(options: dict[str, Any]) -> None:
    shops = shops_that_learned({"price": [1.0, 2.0, 3.0]}, **options)
    shops.predict_many({"price": [1.0, np.nan, 3.0]})  # a warning would be an error


@EACH_WAY
def test_shops_of_a_file_know_the_features_of_earlier_contexts(
    options: dict[str, Any], tmp_path: Path
) -> None:
    shops_that_learned({"price": 1.0}, **options).save(tmp_path / "shops")
    shops = ManyOmnipredictors.load(tmp_path / "shops")
    with pytest.warns(FeatureWarning, match="x lacks 'price', which earlier contexts had; check"):
        shops.predict_many({})


def test_shops_that_begin_to_be_served_one_by_one_say_no_name_again() -> None:
    shops = shops_that_learned({"day": "2026-03-01"})
    shops.predict_many({"day": "2026-03-02"}, key="tomorrow")  # a warning would be an error


def test_a_shop_that_is_taken_out_compares_the_names_that_were_given() -> None:
    shop = shops_that_learned({"day": "2026-03-01"}).omnipredictor(0)
    with pytest.warns(FeatureWarning, match="^x lacks 'day', which earlier contexts had; check"):
        shop.predict_one({})
