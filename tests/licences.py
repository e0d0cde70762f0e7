"""``python tests/licences.py``: print the page that lists the licences of all dependencies.

They are read from the metadata of what is installed here, dependencies of dependencies included.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE_HEAD = """\
# Licences of dependencies

What regretless and its extras install, with what these need in turn. Versions are those that the
page was made with (`python tests/licences.py > docs/licences.md`). Packages of an extra come only
with that extra.

| package | version | licence | needed by |
|---|---|---|---|"""
NAME_BY_SENTENCE = {  # how the texts of licences begin
    "Permission is hereby granted, free of charge": "MIT",
    "Redistribution and use in source and binary forms": "BSD",
}
PROJECT = "regretless"
EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
LONGEST_LICENCE_NAME = 60  # beyond it a field holds the text of the licence


def licence_of(package: Distribution) -> str:
    """Return the name of a package's licence, as its metadata have it."""
    metadata = package.metadata
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [
        text.rsplit(" :: ", 1)[1]
        for text in metadata.get_all("Classifier") or []
        if text.startswith("License ::") and text.count(" :: ") > 1
    ]
    if classifiers:
        return ", ".join(classifiers)
    name = str(metadata.get("License") or _licence_by_its_text(package)).splitlines()[0]
    return name if len(name) <= LONGEST_LICENCE_NAME else name[:LONGEST_LICENCE_NAME] + "..."


def _licence_by_its_text(package: Distribution) -> str:
    """Return a licence's name by the text that a package brings, where its metadata name none."""
    for file in package.files or []:
        if "licen" not in file.name.lower():
            continue
        text = file.read_text(encoding="utf-8")
        for sentence, name in NAME_BY_SENTENCE.items():
            if sentence in text:
                return name
    return "not named"


def direct_requirements() -> dict[str, str]:
    """Return what the project itself needs, by name, with the extra that does ("" for all)."""
    needed: dict[str, str] = {}
    for line in distribution(PROJECT).requires or []:
        requirement = Requirement(line)
        extra = EXTRA.search(str(requirement.marker or ""))
        is_project = requirement.name == PROJECT  # the extra that combines the others
        if not is_project:
            needed.setdefault(canonicalize_name(requirement.name), extra.group(1) if extra else "")
    return needed


def all_requirements() -> dict[str, str]:
    """Return all that is installed for the project, with what needs it."""
    needed = {
        name: f"extra `{extra}`" if extra else "regretless"
        for name, extra in direct_requirements().items()
    }
    waiting = list(needed)
    while waiting:
        name = waiting.pop(0)
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for line in requirements:
            requirement = Requirement(line)
            inner = canonicalize_name(requirement.name)
            is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_wanted and inner not in needed:
                needed[inner] = name
                waiting.append(inner)
    return needed


def rows() -> Iterator[str]:
    """Yield a row of the page's table for each package."""
    for name, needed_by in sorted(all_requirements().items()):
        try:
            package = distribution(name)
        except PackageNotFoundError:
            yield f"| {name} | not installed | | {needed_by} |\n"
            continue
        yield f"| {name} | {package.version} | {licence_of(package)} | {needed_by} |\n"


if __name__ == "__main__":
    sys.stdout.write(PAGE_HEAD + "\n")
    sys.stdout.writelines(rows())
