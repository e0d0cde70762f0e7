"""Attackers that are trained: the leader's seat of any scenario, rehearsed run after run."""
