"""A wheel holds every file of the four packages, and no other.

    python tests/wheel_files.py WHEEL

prints how many files the wheel holds, which it lacks and which it should not have; the status is 1
if there are any of these.
"""

import sys
from pathlib import Path
from zipfile import ZipFile

PROJECT_FOLDER = Path(__file__).parents[1]
PACKAGES = ("market", "forecaster", "agents", "scenarios")


def expected_files() -> set[str]:
    """Return the names that the files of this checkout have in a wheel."""
    paths = list((PROJECT_FOLDER / "regretless").glob("*.*"))
    for package in PACKAGES:
        paths += (PROJECT_FOLDER / package).rglob("*")
    names = set()
    for path in paths:
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(PROJECT_FOLDER).as_posix()
            names.add(f"regretless/{name.removeprefix('regretless/')}")
    return names


def main() -> None:
    """Compare, and end with status 1 if they differ."""
    with ZipFile(sys.argv[1]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    missing = sorted(expected_files() - packed)
    unexpected = sorted(packed - expected_files())
    print(f"{len(packed)} files; lacks {missing}, adds {unexpected}")  # noqa: T201 - it is a command
    sys.exit(bool(missing or unexpected))


if __name__ == "__main__":
    main()
