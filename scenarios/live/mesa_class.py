"""A scenario as a class, for ``mesa.batch_run`` and ``SolaraViz``, which make models of numbers.

No two iterations of ``batch_run`` are one run: without a seed each gets a random one, and of one
that all iterations are given the first takes it and the others take seeds that are drawn from it.
The column ``seed`` of the rows names them.
"""

import copyreg
import inspect
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pickle import PicklingError
from typing import Any, Self

import numpy as np

from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.model import OF_ITERATIONS, MarketModel
from regretless.market.records import Round
from regretless.scenarios import load

SEED_BITS = 48  # a float64, which tables may make of it, holds it exactly


class _PicklableClass(type):
    """A class of models that other processes make again, from the arguments of its maker."""

    maker_arguments: tuple[Any, ...]


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
        Makes the ``mesa.DataCollector`` of each model, which gets a reporter ``seed``. For several
        processes it is a function of a module, not one that is defined within another.
    **settings
        Keys that all models share; not ``seed``, which would make all of them the same run.
    """
    if "seed" in settings:
        raise UserError("seed: all models would be one run; give it to batch_run or to each call")
    key_of_parameter = {"seed": "seed", "rounds": "rounds"} | dict(keys or {})

    class Market(MarketModel, metaclass=_PicklableClass):
        """A market of one scenario, built from numbers."""

        maker_arguments = (scenario, keys, collector, settings)

        def __new__(cls, **values: Any) -> Self:
            keys_to_set = _keys_to_set(values, key_of_parameter, _iteration_of_batch_run())
            model: Any = load(scenario, **settings | keys_to_set).build()
            model.__class__ = cls
            if collector is not None:
                data_collector = collector()
                data_collector.model_reporters.setdefault("seed", lambda _: keys_to_set["seed"])
                data_collector.model_vars.setdefault("seed", [])
                model.datacollector = data_collector
            return model  # type: ignore[no-any-return]

        def __init__(self, **kwargs: Any) -> None:
            """Do nothing: it is built.

            SolaraViz lets parameters pass that the signature does not list if they are ``kwargs``.
            """

        def conclude(self, begun_round: Round) -> Round:
            played = super().conclude(begun_round)
            if hasattr(self, "datacollector"):
                _number_agents_as_models(self.datacollector, self.steps)
            return played

    return Market


def _number_agents_as_models(collector: Any, steps: int) -> None:
    """Give what agents reported after a round the number that models' reports of it have.

    ``mesa.batch_run`` joins entry k of the models' reports, counted from 0, with the agents'
    reports of step k. A collector that collects after every step, and not before the first,
    numbers the agents' from 1: a row would join two rounds, and the last one would be missing.
    """
    records = collector._agent_records  # noqa: SLF001 - ``batch_run`` reads it, too
    if steps in records:
        reports = [(steps - 1, *report[1:]) for report in records.pop(steps)]
        records[steps - 1] = reports


def _iteration_of_batch_run() -> int:
    """Return which iteration of ``mesa.batch_run`` makes a model now; 0 outside one.

    ``batch_run`` calls the class with equal arguments in every iteration, in whichever process is
    free, and does not say which one it is: only the variable of its own function tells. Without it
    all iterations of one seed would be copies of one run.
    """
    own_frame = inspect.currentframe()
    class_frame = own_frame.f_back if own_frame is not None else None
    caller = class_frame.f_back if class_frame is not None else None
    if caller is None or caller.f_globals.get("__name__") != "mesa.batchrunner":
        return 0
    return int(caller.f_locals["iteration"])


def _keys_to_set(
    values: Mapping[str, Any], key_of_parameter: Mapping[str, str], iteration: int
) -> dict[str, Any]:
    """Return the keys of the scenario that a call sets, the seed among them.

    Parameters
    ----------
    values : mapping
        The arguments of the call, by name; None stands for an argument that is not given.
    key_of_parameter : mapping of str to str
        Which key each parameter of the class sets.
    iteration : int
        Which iteration of ``mesa.batch_run`` this is; 0 outside one.
    """
    # ``rng`` is what Mesa has called the seed since 3.4
    key_of_argument = {"rng": "seed"} | dict(key_of_parameter)
    arguments = {}
    for name, value in values.items():
        if name not in key_of_argument:
            raise UserError(
                f"{name}: no parameter of this class; {closest(name, key_of_parameter)}"
            )
        if value is not None:
            arguments[name] = value.item() if isinstance(value, np.generic) else value
    if {"rng", "seed"} <= arguments.keys() and "rng" not in key_of_parameter:
        raise UserError(f"rng = {arguments['rng']}: the seed by another name; give one of them")
    keys_to_set = {key_of_argument[name]: value for name, value in arguments.items()}
    if "seed" not in keys_to_set:
        keys_to_set["seed"] = secrets.randbits(SEED_BITS)
    elif iteration and not OF_ITERATIONS & arguments.keys():
        generator = stream(keys_to_set["seed"], "iteration", str(iteration))
        keys_to_set["seed"] = int(generator.integers(2**SEED_BITS))
    return keys_to_set


def _reduce(market: _PicklableClass) -> tuple[Any, ...]:
    """Say to ``pickle`` how a class is made again; UserError if another process cannot."""
    scenario, keys, collector, settings = market.maker_arguments
    try:
        ForkingPickler.dumps(market.maker_arguments)
    except (PicklingError, AttributeError, TypeError) as error:
        raise UserError(
            f"market_class: other processes cannot get it: {error}; define collector at the top of "
            "a module, or give number_processes=1"
        ) from error
    make_again = partial(market_class, scenario, keys, collector=collector, **settings)
    return make_again, ()


copyreg.pickle(_PicklableClass, _reduce)
