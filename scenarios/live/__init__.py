"""The live page: a market that is played while one looks at it, on this machine alone."""
