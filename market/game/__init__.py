"""The game: a round, who hears what and when, what demand does, who is promised what."""

from regretless.market.game.network import by_distance

__all__ = ["by_distance"]
