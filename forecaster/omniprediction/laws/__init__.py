"""Conditional laws of outcomes, learned from a table, as weights on its rows."""
