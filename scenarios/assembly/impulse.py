"""Impulses: what follows if one agent is made to play something else for a few rounds.

``impulse_frame`` plays the rounds around an impulse twice, in two branches of one market that share
its past and all random numbers: in one of them the agent plays what the table [impulse] of the
scenario says, and learns from it; in the other nothing is changed. All that differs is the impulse
and everybody's answers to it. It is the experiment by which Calvano, Calzolari, Denicolò and
Pastorello (2020, section IV.B) look for the punishment of a price cut.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.model import MarketModel
from regretless.market.records import NO_DEVIATIONS, Round
from regretless.scenarios.assembly.branches import deviate
from regretless.scenarios.config.scenario import ImpulseSpec


class Script:
    """A policy that plays given actions, one after another; the last one is played on."""

    def __init__(self, actions: Sequence[int]) -> None:
        self._actions = list(actions)
        self.n_played = 0

    def __call__(self, _: Any) -> int:
        """Return the action of the present round."""
        return self._actions[min(self.n_played, len(self._actions) - 1)]


def impulse_frame(trunk: MarketModel, spec: ImpulseSpec) -> pd.DataFrame:
    """Play the rounds around an impulse with and without it, and return what everybody did.

    Parameters
    ----------
    trunk : MarketModel
        In the state from which both paths go on; it is not changed.
    spec : ImpulseSpec
        The impulse.

    Returns
    -------
    frame
        A row per round and agent: ``offset``, the round counted from the impulse, ``agent``,
        ``cohort``, ``action`` and ``loss`` in [0, 1] with the impulse, and ``action_without`` and
        ``loss_without``. Who is absent has the action -1 and no loss.
    """
    without = trunk.branch({})
    with_impulse = trunk.branch({})
    n_rounds = spec.before + spec.n_rounds + spec.after
    for branch in (without, with_impulse):
        branch.rounds = branch.played + n_rounds  # where the run has ended, too
    script = Script(spec.actions)
    number = _number_of(with_impulse, spec)
    parts = []
    for offset in range(-spec.before, spec.n_rounds + spec.after):
        if offset == 0:
            deviate(with_impulse, {number: script})
        if offset == spec.n_rounds:
            for seat in with_impulse.game.seats:
                seat.deviations = NO_DEVIATIONS
        changed = _play_round(with_impulse)
        script.n_played += offset >= 0
        unchanged = _play_round(without)
        part = changed.assign(action_without=unchanged["action"], loss_without=unchanged["loss"])
        part.insert(0, "offset", offset)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _number_of(model: MarketModel, spec: ImpulseSpec) -> int:
    """Return the number in the tables of the agent that the impulse moves."""
    number = spec.agent
    for cohort in model.game.cohorts:
        if cohort.name == spec.cohort:
            break
        number += len(cohort.row_of)
    return number


def _play_round(model: MarketModel) -> pd.DataFrame:
    """Play a round, and return a row per agent: ``agent``, ``cohort``, ``action``, ``loss``."""
    played: Round = model.conclude(model.begin())
    parts = []
    for cohort, decision, losses in zip(
        model.game.cohorts, played.decisions, played.losses, strict=True
    ):
        actions = np.full(len(cohort.row_of), -1)
        loss = np.full(len(cohort.row_of), np.nan)
        if decision is not None and losses is not None:
            actions = np.array(decision.actions)
            loss = np.where(actions >= 0, losses[cohort.row_of, actions], np.nan)
        columns = {"cohort": cohort.name, "action": actions, "loss": loss}
        parts.append(pd.DataFrame(columns))
    frame = pd.concat(parts, ignore_index=True)
    frame.insert(0, "agent", np.arange(1, len(frame) + 1))
    return frame
