"""Bounds on regret: one class for each theorem, and what the draws add."""
