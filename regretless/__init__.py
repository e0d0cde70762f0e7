"""Simulate markets in which many agents act on one public forecast, and measure their regret.

The shortest program:

    from regretless import load

    model = load("crop-choice", rounds=100).build(seed=7)  # a mesa.Model
    model.run()  # or model.step(), round by round
    print(model.agents_frame()[["agent", "swap_regret", "decision_swap_regret"]])

``load`` takes a name that ``regretless list`` prints or a path of your own; ``register`` holds the
decorators under which your own agents, adversaries and utilities become names that scenario files
may use; the forecasters work without a market. There are four packages, and each says in its
docstring what it holds: ``regretless.market``, ``regretless.forecaster``,
``regretless.agents`` and ``regretless.scenarios``. A name is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regretless.agents.adversaries import Adversary
    from regretless.agents.cohorts.own_agents import ScriptedAgent
    from regretless.forecaster import (
        Constant,
        DecisionSwap,
        ExponentialSmoothing,
        LastValue,
        NonLinearDecisionSwap,
        OfflineOmnipredictor,
        RunningMean,
        SmoothDecisionSwap,
        UniversalDecisionSwap,
    )
    from regretless.forecaster.online import OnlineOmnipredictor
    from regretless.forecaster.online.as_river import OmnipredictorRegressor
    from regretless.forecaster.online.as_sklearn import OmnipredictorEstimator
    from regretless.market import losses, register
    from regretless.market.core.errors import UserError
    from regretless.market.exploitability import (
        exploitability,
        leader_surplus,
        persuasion,
        stackelberg,
        surplus_cap,
    )
    from regretless.market.model import MarketModel
    from regretless.market.records import OutcomeDistribution
    from regretless.market.regret import (
        contextual_swap_regret,
        decision_swap_regret,
        external_regret,
        omniprediction_regret,
        swap_regret,
    )
    from regretless.scenarios import load
    from regretless.scenarios.audit import audit
    from regretless.scenarios.live.mesa_class import market_class
    from regretless.scenarios.logs.reading import read_run
    from regretless.scenarios.studies.results import load_study
    from regretless.scenarios.training.environments import FollowersEnv, LeaderEnv

_HOMES = {
    "audit": "scenarios.audit",
    "load": "scenarios",
    "market_class": "scenarios.live.mesa_class",
    "FollowersEnv": "scenarios.training.environments",
    "LeaderEnv": "scenarios.training.environments",
    "Adversary": "agents.adversaries",
    "ScriptedAgent": "agents.cohorts.own_agents",
    "losses": "market",
    "load_study": "scenarios.studies.results",
    "read_run": "scenarios.logs.reading",
    "MarketModel": "market.model",
    "OutcomeDistribution": "market.records",
    "UserError": "market.core.errors",
    "register": "market",
    "Constant": "forecaster",
    "DecisionSwap": "forecaster",
    "ExponentialSmoothing": "forecaster",
    "LastValue": "forecaster",
    "NonLinearDecisionSwap": "forecaster",
    "OfflineOmnipredictor": "forecaster",
    "OnlineOmnipredictor": "forecaster.online",
    "OmnipredictorEstimator": "forecaster.online.as_sklearn",
    "OmnipredictorRegressor": "forecaster.online.as_river",
    "RunningMean": "forecaster",
    "SmoothDecisionSwap": "forecaster",
    "UniversalDecisionSwap": "forecaster",
    "contextual_swap_regret": "market.regret",
    "decision_swap_regret": "market.regret",
    "external_regret": "market.regret",
    "omniprediction_regret": "market.regret",
    "swap_regret": "market.regret",
    "exploitability": "market.exploitability",
    "leader_surplus": "market.exploitability",
    "persuasion": "market.exploitability",
    "stackelberg": "market.exploitability",
    "surplus_cap": "market.exploitability",
}

__all__ = [
    "Adversary",
    "Constant",
    "DecisionSwap",
    "ExponentialSmoothing",
    "FollowersEnv",
    "LastValue",
    "LeaderEnv",
    "MarketModel",
    "NonLinearDecisionSwap",
    "OfflineOmnipredictor",
    "OmnipredictorEstimator",
    "OmnipredictorRegressor",
    "OnlineOmnipredictor",
    "OutcomeDistribution",
    "RunningMean",
    "ScriptedAgent",
    "SmoothDecisionSwap",
    "UniversalDecisionSwap",
    "UserError",
    "audit",
    "contextual_swap_regret",
    "decision_swap_regret",
    "exploitability",
    "external_regret",
    "leader_surplus",
    "load",
    "load_study",
    "losses",
    "market_class",
    "omniprediction_regret",
    "persuasion",
    "read_run",
    "register",
    "stackelberg",
    "surplus_cap",
    "swap_regret",
]

if not (Path(__file__).parent / "market").is_dir():  # git left a text file in place of the link
    __path__.append(str(Path(__file__).parents[1]))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        return version("regretless")
    if name not in _HOMES:
        raise AttributeError(f"module 'regretless' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"regretless.{_HOMES[name]}"), name, None)
    return found or importlib.import_module(f"regretless.{_HOMES[name]}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
