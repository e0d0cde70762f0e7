"""Settings of the whole suite: no test depends on the machine's speed or on the day."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
