"""The entry point of ``omnimarket``: first make sure that all four packages are ours.

Their names are generic. This module imports none of the others before it has looked.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOMS = ("market", "agents", "forecaster", "scenarios")


def shadowed() -> str | None:
    """Say in one line which package comes from elsewhere; None if none does."""
    home = Path(__file__).resolve().parent.parent
    for room in ROOMS:
        spec = importlib.util.find_spec(room)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            return (
                f"package '{room}' comes from {origin}, not from {home}; another package shadows "
                "it: rename that one or take it off the path"
            )
    return None


def main() -> None:
    """Check, then run the command."""
    complaint = shadowed()
    if complaint:
        sys.stderr.write(f"omnimarket: {complaint}\n")
        sys.exit(2)
    from scenarios.cli import main as run_command

    run_command()
