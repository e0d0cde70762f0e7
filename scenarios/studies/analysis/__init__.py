"""What a study compares: contrasts, interactions, parts by parameter, regressions, and tests."""
