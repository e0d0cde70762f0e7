"""A cohort between its population and its seat in the game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.agents.policies import NamedPolicy
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.exploitability.bimatrix import Bimatrix
from regretless.market.game.presence import Stay
from regretless.market.losses import Linear, Loss
from regretless.market.regret.ledger import MEASURES, Ledger
from regretless.scenarios.build.construct import construct, drawn_values
from regretless.scenarios.spec.cohort import CohortSpec


@dataclass(frozen=True, eq=False)
class Draft:
    """A cohort between its population and its seat in the game.

    Parameters
    ----------
    spec : CohortSpec
    loss : stack of losses, one per agent
    policies : tuple of NamedPolicy
    stay : Stay or None
        When each agent is there; None for all throughout.
    distance : int array (N,) or None
        Of each agent from the forecaster; None where all hear at once.
    """

    spec: CohortSpec
    loss: Loss
    policies: tuple[NamedPolicy, ...]
    stay: Stay | None = None
    distance: NDArray[np.intp] | None = None


def drawn_losses(spec: CohortSpec, root: int, goods: int, game: Bimatrix | None = None) -> Loss:
    """Draw a cohort's losses from its stream, one per agent.

    Parameters
    ----------
    spec : CohortSpec
    root : int
        Root seed.
    goods : int
        Coordinates of an outcome, d.
    game : Bimatrix, optional
        Of the scenario. A follower's loss is in [0, 1] at mixed actions and needs no other range.

    Returns
    -------
    stack of N losses
        In [0, 1].

    Raises
    ------
    UserError
        If a parameter does not fit the utility.
    """
    rng = stream(root, "cohort", spec.name, "population")
    population = Population(rng, spec.archetypes or spec.count, spec.actions, goods, game)
    drawn = {
        key: drawn_values(f"cohort.{spec.name}.parameters.{key}", value, population)
        for key, value in spec.parameters.items()
    }
    where = f"cohort.{spec.name}.parameters of utility '{spec.utility}'"
    loss: Loss = construct(where, register.utility[spec.utility], population, **drawn)
    check_shape(where, loss, population)
    low, high = loss.range()
    if spec.utility != "game" and (low.min() < -1e-9 or high.max() > 1 + 1e-9):
        loss = loss.normalised()
    if spec.precision == "single":
        loss = rounded(f"cohort.{spec.name}.precision", loss)
    if spec.archetypes is not None:
        others = rng.integers(spec.archetypes, size=spec.count - spec.archetypes)
        loss = loss[rng.permutation([*range(spec.archetypes), *others])]
    return loss


def rounded(where: str, loss: Loss) -> Loss:
    """Return losses with weights that 32 bits hold; UserError for a form that cannot."""
    if not isinstance(loss, Linear):
        cure = "it is for utility 'linear'; leave it out"
        raise UserError(f'{where} = "single" does not fit a {loss.form} loss: {cure}')
    return loss.in_single_precision()


def check_shape(where: str, loss: Any, population: Population) -> None:
    """Raise UserError unless a utility gave one loss per agent, of the right shape."""
    wanted = population.count, population.actions, population.goods
    got = (*loss.offset.shape, loss.outcomes) if isinstance(loss, Loss) else type(loss).__name__
    if got != wanted:
        raise UserError(f"{where}: gave {got}; return a stacked loss of shape {wanted}")


def ledger(draft: Draft, rows: int) -> Ledger:
    """Return an empty ledger for a cohort."""
    spec = draft.spec
    return Ledger(
        rows,
        spec.actions,
        policies=len(draft.policies),
        measures=[measure for measure in spec.measures if measure in MEASURES],
        constants=spec.constants,
    )
