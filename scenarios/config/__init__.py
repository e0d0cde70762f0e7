"""Scenario files: what may stand in them, read and validated without playing anything."""
