"""Solutions of the game behind a market: what play can be compared with.

A market with ``profile_losses`` has a stage game. ``NormalForm`` is a game that is given.
"""

from regretless.market.solutions.normal_form import NormalForm

__all__ = ["NormalForm"]
