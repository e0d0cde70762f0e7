"""A run directory: written while a run goes on, read back afterwards."""
