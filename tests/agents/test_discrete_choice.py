"""Discrete choice against its definition, in units of the utility."""

import numpy as np
import pytest
from small_scenarios import make_scenario

from regretless import UserError
from regretless.agents.learners import DiscreteChoice, Hedge
from regretless.market.core.arrays import Array

LOSSES = np.random.default_rng(0).random((40, 3))


def strategies_against(learner: DiscreteChoice | Hedge, losses: Array) -> Array:
    """Return the mixed strategies (T, A) of one row against losses (T, A)."""
    learner.start(1, losses.shape[1])
    strategies = []
    for round_losses in losses:
        strategies.append(learner.play()[0])
        learner.learn(round_losses[None], np.array([0]))
    return np.array(strategies)


@pytest.mark.parametrize("discount", [0.0, 0.6])
def test_choice_is_logit_of_discounted_past_profits(discount: float) -> None:
    strategies = strategies_against(DiscreteChoice(beta=2.0, discount=discount), LOSSES)
    for time in range(1, len(LOSSES)):
        ages = np.arange(time)[::-1]
        fitness = -(discount ** ages[:, None] * LOSSES[:time]).sum(0)
        weights = np.exp(2.0 * fitness)
        assert strategies[time] == pytest.approx(weights / weights.sum())


def test_without_discounting_it_is_hedge_at_a_constant_rate() -> None:
    strategies = strategies_against(DiscreteChoice(beta=0.7, discount=1.0), LOSSES)
    assert strategies == pytest.approx(strategies_against(Hedge(rate=0.7), LOSSES))


def test_an_intensity_of_0_chooses_uniformly() -> None:
    strategies = strategies_against(DiscreteChoice(beta=0.0), LOSSES)
    assert strategies == pytest.approx(1 / 3)


def test_the_intensity_is_per_unit_of_the_utility() -> None:
    """A gain of 4 y at beta = 1 is chosen like one of y at beta = 4."""
    mean_losses = []
    for scale, beta in ((4.0, 1.0), (1.0, 4.0)):
        cohort = {
            "name": "traders",
            "utility": "affine",
            "actions": 2,
            "parameters": {"weights": [[scale, 0.0], [0.0, scale]]},
            "response": "discrete-choice",
            "settings": {"beta": beta},
        }
        model = make_scenario(cohort, rounds=30, adversary={"kind": "iid", "outcomes": 2}).build()
        model.run()
        mean_losses.append(model.agents_frame()["mean_loss"][0])
    assert mean_losses[0] == pytest.approx(mean_losses[1])


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"beta": -1.0}, "beta = -1"), ({"beta": 1.0, "discount": 1.5}, "discount = 1.5")],
)
def test_a_setting_outside_its_range_is_refused(settings: dict[str, float], named: str) -> None:
    with pytest.raises(UserError, match=named):
        DiscreteChoice(**settings)
