"""Which folders the packages are; all else that setuptools asks is in pyproject.toml.

The rooms lie at the top of the repository, and ``regretless/`` holds links to them. A checkout
without symbolic links has files in their place: there the folders at the top are packed.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOMS = ("market", "forecaster", "agents", "scenarios")

missing = [room for room in ROOMS if not Path("regretless", room).is_dir()]
inside = find_packages(include=["regretless*"])
above = [name for name in find_packages() if name.partition(".")[0] in missing]
setup(
    packages=[*inside, *(f"regretless.{name}" for name in above)],
    package_dir={f"regretless.{room}": room for room in missing},
)
