"""Which folders the packages are; all else that setuptools asks is in pyproject.toml.

The rooms lie at the top of the repository, and ``regretless/`` holds links to them. A checkout
without symbolic links has files in their place: there the folders at the top are packed. Folders
of data are packages without ``__init__.py``.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOMS = ("market", "forecaster", "agents", "scenarios")

missing = [room for room in ROOMS if not Path("regretless", room).is_dir()]
compiled = ["*__pycache__*"]
inside = find_namespace_packages(include=["regretless*"], exclude=["*.egg-info*", *compiled])
above = find_namespace_packages(include=[f"{room}*" for room in missing], exclude=compiled)
setup(
    packages=[*inside, *(f"regretless.{name}" for name in above)],
    package_dir={f"regretless.{room}": room for room in missing},
)
