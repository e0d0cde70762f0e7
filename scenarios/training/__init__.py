"""Attackers that are trained, and where what they learned is kept: a table, a curve, plans."""
