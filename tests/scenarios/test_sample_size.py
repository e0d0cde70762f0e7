"""Sample sizes: the theorem inverted, and what a run showed."""

import math

import numpy as np
import pandas as pd
import pytest
from small_scenarios import play_to_end

from regretless import load
from regretless.forecaster.events.cover import uniform_regret
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs
from regretless.market.core.errors import UserError
from regretless.scenarios import sample_size as sizes
from regretless.scenarios.sample_size import (
    PromisedLosses,
    format_rounds,
    least_rounds,
    promised_losses,
    rounds_until,
)


def example_losses(error: float = 0.0) -> PromisedLosses:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), (4, 3))
    return PromisedLosses(
        CoordinateBound(AdaptiveWeights(), BoundInputs(72, 1, 0.0)), weights, 0, error, 4
    )


def test_the_theorem_is_met_at_its_rounds_and_not_much_before() -> None:
    losses = example_losses()
    rounds = least_rounds(losses.listed_losses_bound, 0.2)
    assert losses.listed_losses_bound(int(rounds)) <= 0.2
    assert losses.listed_losses_bound(int(rounds * 0.98)) > 0.2


def test_the_rounds_grow_like_the_inverse_square_of_the_regret() -> None:
    bound = example_losses().listed_losses_bound
    assert 3.5 < least_rounds(bound, 0.1) / least_rounds(bound, 0.2) < 4.6


def test_no_number_of_rounds_is_enough_for_less_than_twice_the_basis_error() -> None:
    assert least_rounds(example_losses(error=0.1).listed_losses_bound, 0.15) == math.inf


def test_all_losses_at_once_cost_a_logarithm() -> None:
    losses = example_losses()
    assert losses.listed_losses_bound(10**6) < losses.family_bound(10**6)
    assert (
        least_rounds(losses.listed_losses_bound, 0.1)
        < least_rounds(losses.family_bound, 0.1)
        < 1000 * least_rounds(losses.listed_losses_bound, 0.1)
    )
    run = {"rounds": 10**6, "certificate_sum": 1.0, "reach": 1.0}
    few, many = (uniform_regret(size, 3, **run) for size in (3, 30))
    assert few[0] < many[0]
    assert few[1] < many[1]


def test_what_a_run_reached_and_what_is_carried_on() -> None:
    rounds = pd.Series([10, 20, 40])
    falling = pd.Series([0.4, 0.1, 0.05])
    assert rounds_until(rounds, falling, 0.2) == (20, True)
    assert rounds_until(rounds, falling, 0.5) == (10, True)
    assert rounds_until(rounds, falling, 0.025) == (160, False)
    assert math.isnan(rounds_until(rounds, falling * np.nan, 0.2)[0])
    texts = format_rounds(160.4, seen=False), format_rounds(math.inf), format_rounds(math.nan)
    assert texts == ("~160", "never", "none")


def test_measured_rounds_are_a_runs() -> None:
    scenario = load("crop-choice", rounds=60)
    (row,) = sizes.sample_size(scenario, 0.3).to_dict("records")
    assert row["losses"] == "growers"
    model = play_to_end(scenario)
    log = model.bounds_frame()
    within = log.loc[log["bound_from_variation"] <= 0.3, "round"]
    assert int(row["variation"].replace("~", "").replace(",", "")) >= within.min()
    assert dict(promised_losses(model)).keys() == {"growers"}
    plain = load("crop-choice", rounds=3, forecaster={"kind": "running-mean"})
    for regret, told in ((0.3, "no theorem applies"), (2.0, "regret 2: give a number above 0 and")):
        with pytest.raises(UserError, match=told):
            sizes.sample_size(plain, regret)
