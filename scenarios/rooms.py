"""Where this project's own code lies."""

from __future__ import annotations

from pathlib import Path

import regretless

NAME = "regretless"


def rooms() -> list[Path]:
    """Return the folders of the four rooms; in a checkout they are links."""
    return [Path(home) / room for home in regretless.__path__ for room in ROOMS]


ROOMS = ("market", "forecaster", "agents", "scenarios")
