"""Agents of a user's own, all of a cohort at once: arrays in, arrays out, one call a round.

    @register.agent("contrarian")
    class Contrarian(ScriptedCrowd):
        columns = ("wealth",)

        def __init__(self, loss, rng, *, patience=1.0):  # settings of the cohort, drawn per agent
            super().__init__(loss, rng)
            self.wealth = np.ones(len(loss))

        def act_many(self, forecasts, contexts):
            return forecasts.losses(self.loss).argmax(1)

``columns`` names attributes that tables, ``model.agents.get`` and checkpoints see. A class of
``agents.cohorts.scripted`` answers for one agent; its instances sit side by side in a crowd, too.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.read_only import sealed
from regretless.market.losses import Loss
from regretless.market.records import Context, Forecast


@dataclass(frozen=True, eq=False)
class Heard:
    """What each agent of a cohort hears.

    Parameters
    ----------
    forecasts : tuple of Forecast
        The different ones.
    which : int array (N,)
        Which of them each agent hears.
    """

    forecasts: tuple[Forecast, ...]
    which: Indices

    def __getitem__(self, agent: int) -> Forecast:
        return self.forecasts[int(self.which[agent])]

    @cached_property
    def label(self) -> Array | None:
        """The forecast outcome of each agent (N, d); None where the basis has none."""
        labels = [forecast.label for forecast in self.forecasts]
        known = [label for label in labels if label is not None]
        return sealed(np.stack(known)[self.which]) if len(known) == len(labels) else None

    @cached_property
    def point(self) -> Array:
        """The prediction of s(y) that each agent hears (N, n)."""
        return sealed(np.stack([forecast.point for forecast in self.forecasts])[self.which])

    def losses(self, loss: Loss) -> Array:
        """Return what each of N losses would be at the forecast outcome it hears (N, A).

        UserError where the basis has no label forecast.
        """
        told = [forecast.label for forecast in self.forecasts]
        at = [loss.losses(label) for label in told if label is not None]
        if len(at) < len(told):
            raise UserError("there is no forecast outcome in this basis; read forecasts.point")
        return np.asarray(np.stack(at)[self.which, np.arange(len(loss))])


class OwnAgents:
    """What a user's own agents, one or many, have in common: a loss, a stream, columns.

    Parameters
    ----------
    loss : loss form
        One loss, or a stack of N.
    rng : numpy Generator
        Its own stream.

    Attributes
    ----------
    columns : tuple of str
        Attributes that hold a number for each agent: they are columns of the table ``states``, are
        read by ``model.agents.get`` and are kept in checkpoints.
    model : MarketModel
        In which it plays; known before the first round.
    number : int
        Its number in the tables, the first of them for a crowd; the others follow.
    affordable : bool array (A,), or (N, A) for a crowd, or None
        Which actions its account pays for in this round, in a cohort with ``within_means``; None
        for all.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    model: Any = None
    number: int = 0
    affordable: Mask | None = None

    def __init__(self, loss: Loss, rng: np.random.Generator) -> None:
        self.loss, self.rng = loss, rng

    @property
    def resumable(self) -> bool:
        """Whether there is a memory for checkpoints: columns, or a ``state`` of the class's own."""
        return bool(self.columns) or type(self).state is not OwnAgents.state

    def state(self) -> dict[str, Any]:
        """Return the columns; a class that remembers more writes its own, and ``restore``."""
        return {name: copy(getattr(self, name)) for name in self.columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name in self.columns:
            setattr(self, name, state[name])


class ScriptedCrowd(OwnAgents):
    """All agents of a cohort, with one method for all of them.

    Attributes
    ----------
    here : bool array (N,)
        Who takes part in this round; what the others would do is not played.
    """

    here: Mask

    @property
    def account(self) -> Any:
        """The agents' ``cash`` (N,) and ``goods`` (N, g); None where nobody keeps accounts."""
        return self.model.account(self.number, len(self.loss))

    def act_many(self, forecasts: Heard, contexts: Context) -> ArrayLike:
        """Return the actions (N,), or probabilities (N, A) to be charged in expectation.

        ``forecasts.label`` (N, d) are the forecast outcomes, ``forecasts.point`` (N, n) the
        predictions in the block's basis, ``contexts["month"]`` a feature that everybody sees and
        ``contexts["signal"]`` (N,) what each sees alone, where the cohort has a signal.
        """
        raise UserError(f"class {type(self).__name__} has no act_many(forecasts, contexts)")

    def learn_many(self, losses: Array, outcome: Array) -> None:
        """Be told the losses of all agents' actions (N, A) and the outcome (d,)."""


def columns_of(member: OwnAgents, names: Sequence[str], *, size: int) -> dict[str, Array]:
    """Read columns of a member, an array (size,) each.

    Raises
    ------
    UserError
        If one is no number, or of another length.
    """
    return {name: _column(member, name, size) for name in names}


def _column(member: OwnAgents, name: str, size: int) -> Array:
    where = f"column '{name}' of class {type(member).__name__}"
    if not hasattr(member, name):
        raise UserError(f"{where} is missing; set self.{name} in __init__")
    try:
        values = np.asarray(getattr(member, name), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} holds no number; give one for each agent") from error
    if values.ndim and values.shape != (size,):
        raise UserError(f"{where} has shape {values.shape}; give {size} numbers, one per agent")
    return np.broadcast_to(values, size).copy()
