"""What a model writes down: journal, windows, welfare, and the tables that close a run."""
