"""Learners in a scenario: ``response = "hedge"`` and its like.

Learners do not listen. They do not shape the broadcast and the forecaster does not protect them,
but a run has a forecast all the same. Where nobody else is there from the start, it is made for
the losses of the learners who are, in their natural basis (or the one that the file names), exactly
as if they trusted it: a forecaster needs losses to protect, and adversaries that answer to the
forecast need one. They still do not listen to it, and nothing is promised to them.

Learners with full information and equal losses share a row. A bandit learner is told the loss of
its own draw alone, so every agent has a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import unique_losses
from regretless.scenarios.build.construct import construct, offering
from regretless.scenarios.build.populations import Draft
from regretless.scenarios.spec.cohort import CohortSpec

NEEDED = ("name", "bandit", "start", "play", "learn")


def audience(drafts: Sequence[Draft]) -> list[Draft]:
    """Return those for whom the forecast is made: all who are there and listen, if anybody does."""
    early = [draft for draft in drafts if not draft.spec.joins]
    return [draft for draft in early if not draft.spec.learns] or early


def learner_cohort(draft: Draft, root: int, *, rounds: int, block: int = 0) -> LearnerCohort:
    """Seat learners.

    Parameters
    ----------
    rounds : int
        Length of the run; learners tune themselves to the part of it in which they are there.

    Raises
    ------
    UserError
        If the settings do not fit the learner.
    """
    spec = draft.spec
    learner = _learner(spec)
    types, row_of = unique_losses(draft.loss)
    if learner.bandit or spec.within_means:
        types, row_of = draft.loss, np.arange(spec.count)
    try:
        return LearnerCohort(
            name=spec.name,
            utility=spec.utility,
            block=block,
            loss=types,
            row_of=row_of,
            learner=learner,
            ledger=draft.ledger(len(types)),
            rng=stream(root, "cohort", spec.name, "play"),
            policies=draft.policies,
            horizon=(spec.leaves or rounds) - spec.joins,
        )
    except UserError as error:
        raise UserError(f"cohort.{spec.name}.settings: {error}") from error


def _learner(spec: CohortSpec) -> Any:
    where = f"cohort.{spec.name}.settings of learner '{spec.response}'"
    try:
        learner = construct(where, register.learner[spec.response], **spec.settings)
    except UserError as error:
        told = str(error)
        raise UserError(told if told.startswith(where) else f"{where}: {told}") from error
    return offering(f"learner '{spec.response}'", learner, NEEDED)
