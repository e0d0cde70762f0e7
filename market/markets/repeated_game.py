"""A game in normal form that is played in every round: each agent is a player.

Scenario files choose this market by the kind ``normal-form``, or by a table ``[game]`` without an
``[adversary]``. Players are numbered through all cohorts in the order of the file. Losses are
minus payoffs, of a utility ``payoffs``: 0 is the greatest payoff of the whole game and 1 the least.
The outcome is a constant, which nobody's loss depends on.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions, Market
from regretless.market.game.protocols import Cohort
from regretless.market.solutions.normal_form import NormalForm


@register.market("normal-form")
class RepeatedGame(Market):
    """A game from a file (``NormalForm.read``), or one that is given.

    Parameters
    ----------
    file : str or Path
        A .nfg or .npz file.
    game : NormalForm, optional
        In place of the file.
    """

    REMEMBERED = ("payoff_sums", "rounds")
    has_own_payoffs = True

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        file: str | Path = "",
        game: NormalForm | None = None,
    ) -> None:
        super().__init__(cohorts, rng)
        self.normal_form = NormalForm.read(file) if game is None else game
        sizes = [cohort.loss.actions for cohort in cohorts for _ in cohort.row_of]
        if tuple(sizes) != self.normal_form.sizes:
            actions_of_players = ", ".join(map(str, self.normal_form.sizes))
            actions_of_agents = ", ".join(map(str, sizes))
            raise UserError(
                f"market.file: the game's players have {actions_of_players} actions, agents "
                f"{actions_of_agents}; give an agent to each player, in order"
            )
        self.payoff_sums = np.zeros(self.agents)
        self.rounds = 0

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        self._profile = self.actions_of_agents(decisions)
        if (self._profile < 0).any():
            raise UserError("a game needs all its players; drop enters, exits and rates")
        self.payoff_sums += self.normal_form.payoffs[tuple(self._profile)]
        self.rounds += 1
        return fundamental

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return minus what each action would have paid, normalised, against the others'."""
        tables = []
        for cohort, (columns, _) in zip(self.cohorts, self.agent_columns(), strict=True):
            table = np.empty((len(cohort.row_of), cohort.loss.actions))
            for row, player in enumerate(range(columns.start, columns.stop)):
                others: list[Any] = [*self._profile]
                others[player] = slice(None)
                table[row] = -self.normal_form.payoffs[(*others, player)]
            offset = cohort.loss.unit_offset[:, np.newaxis]
            tables.append(np.clip((table - offset) / cohort.loss.unit_scale[:, np.newaxis], 0, 1))
        return tables

    def profile_losses(self, profiles: Indices) -> Array:
        losses = self.normal_form.profile_losses(profiles)
        unit_offset = np.concatenate([cohort.loss.unit_offset for cohort in self.cohorts])
        unit_scale = np.concatenate([cohort.loss.unit_scale for cohort in self.cohorts])
        return np.asarray((losses - unit_offset) / unit_scale)

    @classmethod
    def loss_range(cls, **parameters: Any) -> tuple[float, float]:
        game = parameters.get("game") or NormalForm.read(parameters.get("file", ""))
        return float(-game.payoffs.max()), float(-game.payoffs.min())

    def described(self) -> dict[str, Any]:
        means = self.payoff_sums / max(self.rounds, 1)
        return {"payoffs": dict(zip(self.normal_form.players, means.tolist(), strict=True))}

    def summary(self) -> str:
        described = self.described()["payoffs"]
        payoffs = ", ".join(f"{name} {mean:.4g}" for name, mean in list(described.items())[:4])
        rest = ", ..." if len(described) > 4 else ""
        return f"Game: mean payoffs {payoffs}{rest}"
