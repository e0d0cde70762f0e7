"""Published and own tables, re-measured: those that are studies in ``tables``, and four more."""
