"""The rules of the game and how it is scored; this package imports none of its siblings."""
