"""A wheel holds every file of the four packages, and no other: ``python tests/wheel.py WHEEL``."""

import sys
from pathlib import Path
from zipfile import ZipFile

HOME = Path(__file__).parents[1]
ROOMS = ("market", "forecaster", "agents", "scenarios")


def expected() -> set[str]:
    rooms = [file for room in ROOMS for file in (HOME / room).rglob("*") if file.is_file()]
    inside = {f"regretless/{file.relative_to(HOME).as_posix()}" for file in rooms}
    door = {f"regretless/{file.name}" for file in (HOME / "regretless").glob("*.*")}
    return {name for name in inside | door if "__pycache__" not in name}


def main() -> None:
    """Compare, and end with status 1 if they differ."""
    with ZipFile(sys.argv[1]) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    lacks, adds = sorted(expected() - found), sorted(found - expected())
    print(f"{len(found)} files; lacks {lacks}, adds {adds}")  # noqa: T201 - it is a command
    sys.exit(bool(lacks or adds))


if __name__ == "__main__":
    main()
