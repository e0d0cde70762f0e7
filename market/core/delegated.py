"""Attributes and methods that are those of a part."""

from typing import Any


class Delegated:
    """The attribute of a part, perhaps by another ``name``: ``bound = Delegated("events")``."""

    def __init__(self, part: str, name: str = "") -> None:
        self.part, self.name = part, name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, whole: Any, owner: type | None = None) -> Any:
        return self if whole is None else getattr(getattr(whole, self.part), self.name)
