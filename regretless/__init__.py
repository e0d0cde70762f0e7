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

if TYPE_CHECKING:  # what type checkers see; a test compares it with the table below
    from regretless.agents.adversaries import Adversary as Adversary
    from regretless.agents.cohorts.scripted_agents import ScriptedAgent as ScriptedAgent
    from regretless.forecaster import (
        Constant as Constant,
        DecisionSwap as DecisionSwap,
        ExponentialSmoothing as ExponentialSmoothing,
        LastValue as LastValue,
        NonLinearDecisionSwap as NonLinearDecisionSwap,
        OfflineOmnipredictor as OfflineOmnipredictor,
        RunningMean as RunningMean,
        SmoothDecisionSwap as SmoothDecisionSwap,
        UniversalDecisionSwap as UniversalDecisionSwap,
    )
    from regretless.forecaster.online import (
        ManyOmnipredictors as ManyOmnipredictors,
        OnlineOmnipredictor as OnlineOmnipredictor,
    )
    from regretless.forecaster.online.as_river import (
        OmnipredictorRegressor as OmnipredictorRegressor,
    )
    from regretless.forecaster.online.as_sklearn import (
        OmnipredictorEstimator as OmnipredictorEstimator,
    )
    from regretless.market import (
        losses as losses,
        register as register,
    )
    from regretless.market.core.errors import UserError as UserError
    from regretless.market.exploitability import (
        exploitability as exploitability,
        leader_surplus as leader_surplus,
        persuasion as persuasion,
        stackelberg as stackelberg,
        surplus_cap as surplus_cap,
    )
    from regretless.market.model import MarketModel as MarketModel
    from regretless.market.records import OutcomeDistribution as OutcomeDistribution
    from regretless.market.regret import (
        contextual_swap_regret as contextual_swap_regret,
        decision_swap_regret as decision_swap_regret,
        external_regret as external_regret,
        omniprediction_regret as omniprediction_regret,
        swap_regret as swap_regret,
    )
    from regretless.market.solutions import NormalForm as NormalForm
    from regretless.scenarios import load as load
    from regretless.scenarios.audit import audit as audit
    from regretless.scenarios.live.mesa_class import market_class as market_class
    from regretless.scenarios.logs.reading import read_run as read_run
    from regretless.scenarios.studies.results import load_study as load_study
    from regretless.scenarios.training.environments import (
        FollowersEnv as FollowersEnv,
        LeaderEnv as LeaderEnv,
    )

# The public names by the module that holds them; a module is imported when one is first asked for.
_PUBLIC_NAMES = {
    "agents.adversaries": ("Adversary",),
    "agents.cohorts.scripted_agents": ("ScriptedAgent",),
    "forecaster": (
        "Constant",
        "DecisionSwap",
        "ExponentialSmoothing",
        "LastValue",
        "NonLinearDecisionSwap",
        "OfflineOmnipredictor",
        "RunningMean",
        "SmoothDecisionSwap",
        "UniversalDecisionSwap",
    ),
    "forecaster.online": ("ManyOmnipredictors", "OnlineOmnipredictor"),
    "forecaster.online.as_river": ("OmnipredictorRegressor",),
    "forecaster.online.as_sklearn": ("OmnipredictorEstimator",),
    "market": ("losses", "register"),  # modules themselves
    "market.core.errors": ("UserError",),
    "market.exploitability": (
        "exploitability",
        "leader_surplus",
        "persuasion",
        "stackelberg",
        "surplus_cap",
    ),
    "market.model": ("MarketModel",),
    "market.solutions": ("NormalForm",),
    "market.records": ("OutcomeDistribution",),
    "market.regret": (
        "contextual_swap_regret",
        "decision_swap_regret",
        "external_regret",
        "omniprediction_regret",
        "swap_regret",
    ),
    "scenarios": ("load",),
    "scenarios.audit": ("audit",),
    "scenarios.live.mesa_class": ("market_class",),
    "scenarios.logs.reading": ("read_run",),
    "scenarios.studies.results": ("load_study",),
    "scenarios.training.environments": (
        "FollowersEnv",
        "LeaderEnv",
    ),
}
_MODULE_OF = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605

if not (Path(__file__).parent / "market").is_dir():  # git left a text file in place of the link
    __path__.append(str(Path(__file__).parents[1]))


def __getattr__(name: str) -> Any:
    """Import a public name from its module; AttributeError if it is none."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom asked for

        return version("regretless")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'regretless' has no attribute '{name}'")
    module_name = f"regretless.{_MODULE_OF[name]}"
    module = importlib.import_module(module_name)
    if hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"{module_name}.{name}")  # the name is that of a module


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
