"""Published and own tables, re-measured: one file per table."""
