"""The game: a round, who hears what and when, what demand does, who is promised what."""
