"""How a market presents itself: in a line, and in figures, which whoever loaded it can draw."""

from collections.abc import Callable
from typing import Any

import numpy as np

from regretless.market.core.errors import UserError
from regretless.market.game.presence import population


class Shown:
    """What ``market.model.MarketModel`` says of itself.

    Attributes
    ----------
    name : str
        Of its scenario; empty where it was put together by hand.
    notes : tuple of str
        What its scenario says beside the results, such as what was left out.
    warnings : tuple of str
        What can hardly be meant.
    drawer : callable or None
        Draws the model's figures: takes the model and the name of one, or None for all.
    """

    name: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    drawer: Callable[..., Any] | None = None

    def show(self, figure: str | None = None) -> Any:
        """Return a Plotly figure of the rounds so far by name, such as "regret", or all in a dict.

        A notebook displays them. UserError if no round is played yet, there is no such figure or
        nothing to draw in it, or the model was not made by ``load``.
        """
        if self.drawer is None:
            raise UserError("show: only a market that load() made knows its figures; use that")
        return self.drawer(self, figure)

    def __repr__(self: Any) -> str:
        cohorts = self.game.cohorts
        agents = sum(map(population, cohorts))
        title = f" {self.name}" if self.name else ""
        said = f"<MarketModel{title}: {agents:,} agents, round {self.played} of {self.rounds}"
        kept = [(place, m) for place in range(len(cohorts)) for m in ("decision_swap", "swap")]
        known = np.concatenate([self.measured(*which) for which in kept])
        known = known[~np.isnan(known)]
        if self.played and len(known):
            said += f", worst regret so far {max(known.max(), 0.0):.4f}"
        return f"{said}>"
