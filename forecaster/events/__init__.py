"""Conditioning events, the weights of their biases, covers, and what is proved of them.

Losses become events in ``loss_events`` (each listed loss) and ``decision_events`` (coordinates);
``coverage_events`` are of announced quantiles.
"""
