"""A scenario as a class, for tools of Mesa's that make models out of numbers.

``mesa.batch_run`` and ``SolaraViz`` call a model's class with parameters, whenever they want
another model; a ``MarketModel`` is made of a game's parts.

A model that is given no seed gets a random one, so that iterations of ``batch_run`` are different
runs; the column ``seed`` of its rows names it.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Self

from regretless.market.core.errors import UserError, closest
from regretless.market.model import MarketModel
from regretless.scenarios import load

SEED_BITS = 48  # a float64, which tables may make of it, holds it exactly


def market_class(
    scenario: str,
    keys: Mapping[str, str] | None = None,
    *,
    collector: Callable[[], Any] | None = None,
    **settings: Any,
) -> type[MarketModel]:
    """Return a class whose calls ``load`` and ``build`` a scenario.

    Parameters
    ----------
    keys : mapping of str to str, optional
        Which key of the scenario each parameter of the class sets, as
        ``{"growers": "cohort.growers.count"}``; ``seed`` and ``rounds`` are parameters anyway.
    collector : callable, optional
        Makes the ``mesa.DataCollector`` of each model, which gets a reporter ``seed``.
    **settings
        Keys that all models share; not ``seed``, which would make all of them the same run.
    """
    if "seed" in settings:
        raise UserError("seed: all models would be one run; give it to batch_run or to each call")
    named = {"seed": "seed", "rounds": "rounds"} | dict(keys or {})
    understood = {"rng": "seed"} | named  # ``rng`` is what Mesa has called it since 3.5

    class Market(MarketModel):
        """A market of one scenario, built from numbers."""

        def __new__(cls, **values: Any) -> Self:
            for name in values:
                if name not in understood:
                    raise UserError(f"{name}: no parameter of this class; {closest(name, named)}")
            given = {name: value for name, value in values.items() if value is not None}
            if {"rng", "seed"} <= given.keys() and "rng" not in named:
                raise UserError(f"rng = {given['rng']}: the seed by another name; give one of them")
            keyed = {"seed": secrets.randbits(SEED_BITS)} | {
                understood[name]: value for name, value in given.items()
            }
            made: Any = load(scenario, **settings | keyed).build()
            made.__class__ = cls
            if collector is not None:
                made.datacollector = _reporting(collector(), keyed["seed"])
            return made  # type: ignore[no-any-return]

        def __init__(self, **values: Any) -> None:
            """Do nothing: it is built."""

    return Market


def _reporting(collector: Any, seed: int) -> Any:
    """Let a model's collector name its seed, unless it has a reporter of that name."""
    if "seed" not in collector.model_reporters:
        collector.model_reporters["seed"] = lambda _: seed
        collector.model_vars["seed"] = []
    return collector
