"""Learners of one cohort who enter and leave at different rounds: one learner for each stay.

A learner's rows learn together: it counts rounds, and tunes its rate to their number. Agents who
enter and leave at rates of their own have learned for different numbers of rounds.
``LearnersByStay`` therefore keeps a learner for each different stay, which starts at its entry and
learns in the rounds of its stay alone. ``LearnerCohort`` asks it as any other learner.
"""

from copy import deepcopy
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, GameFacts, RowLearner
from regretless.market.core.arrays import Array, Indices, Integers, Mask


class LearnersByStay(RowLearner):
    """A learner for each different stay of the rows.

    Parameters
    ----------
    learner : RowLearner
        Is copied for every stay.
    entered, left : int arrays (K,)
        The rounds before which each row enters and leaves.

    Attributes
    ----------
    learners : list of RowLearner
        One for each stay.
    rows_of_learner : list of int arrays
        The rows with that stay, ascending.
    changed_at : int array (K,)
        After how many rounds of the cohort some greedy action of each row changed last.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("learners", "rounds", "changed_at")
    IN_PLACE = False

    def __init__(self, learner: RowLearner, *, entered: Indices, left: Indices) -> None:
        self.learner = learner
        self.entered = entered
        self.left = left
        stay_per_row = np.stack([entered, left], axis=1)
        stays, stay_of_row = np.unique(stay_per_row, axis=0, return_inverse=True)
        self.rounds_of_stay = (stays[:, 1] - stays[:, 0]).tolist()
        self.rows_of_learner = [
            np.flatnonzero(stay_of_row.ravel() == stay) for stay in range(len(stays))
        ]
        self.learners = [deepcopy(learner) for _ in stays]
        self.name = learner.name  # type: ignore[misc]
        self.bandit = learner.bandit  # type: ignore[misc]
        self._is_present: Mask | None = None
        self.changed_at: Integers = np.zeros(0, dtype=np.int64)

    @property
    def rule_class(self) -> type[RowLearner]:
        return self.learner.rule_class

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        """Prepare every learner for its rows, and for the rounds of their stay as its horizon."""
        self.rows = rows
        self.actions = actions
        self.rounds = 0
        self.strategy = np.empty((rows, actions))
        self.changed_at = np.zeros(rows, dtype=np.int64)
        for learner, own_rows, rounds in zip(
            self.learners, self.rows_of_learner, self.rounds_of_stay, strict=True
        ):
            learner.start(len(own_rows), actions, horizon=max(rounds, 1))
            self.strategy[own_rows] = learner.play()

    def part(self, rows: Indices) -> "LearnersByStay":
        return LearnersByStay(self.learner, entered=self.entered[rows], left=self.left[rows])

    def attend(self, present_rows: Mask | None) -> None:
        self._is_present = present_rows

    @property
    def unchanged_rounds(self) -> Integers | None:
        # Who is absent changes nothing: its rounds count as unchanged.
        if self.learners[0].unchanged_rounds is None:
            return None
        return self.rounds - self.changed_at

    @property
    def watches_actions(self) -> bool:
        return self.learner.watches_actions

    def meet(self, facts: GameFacts) -> None:
        for learner, own_rows in zip(self.learners, self.rows_of_learner, strict=True):

            def mean_losses_of_own_rows(own_rows: Indices = own_rows) -> Array:
                return facts.mean_losses()[own_rows]

            facts_of_own_rows = GameFacts(
                facts.action_counts,
                facts.unit_scale[own_rows],
                mean_losses_of_own_rows,
                facts.rng,
            )
            learner.meet(facts_of_own_rows)
            self.strategy[own_rows] = learner.play()

    def observe_actions(self, actions: Indices) -> None:
        for learner in self.learners:
            learner.observe_actions(actions)

    def learn(self, losses: Array, actions: Actions) -> None:
        """Be told a round, of which the rows that take part learn."""
        self._check_started()
        self.rounds += 1
        for learner, own_rows in zip(self.learners, self.rows_of_learner, strict=True):
            if self._is_present is None or self._is_present[own_rows[0]]:
                learner.learn(losses[own_rows], actions[own_rows])
                self.strategy[own_rows] = learner.play()
                unchanged_rounds = learner.unchanged_rounds
                if unchanged_rounds is not None:
                    self.changed_at[own_rows[unchanged_rounds == 0]] = self.rounds
