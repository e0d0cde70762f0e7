"""Attributes that a wrapper passes on to the object that it wraps."""

from typing import Any


class Delegated:
    """A class attribute that reads an attribute of a part of each instance.

    ``part`` is the name under which an instance holds the part; ``name`` is that of the part's
    attribute, by default the same as in the class itself.

    >>> class Engine:
    ...     power = 90
    >>> class Car:
    ...     power = Delegated("engine")
    ...     def __init__(self):
    ...         self.engine = Engine()
    >>> Car().power
    90
    """

    def __init__(self, part: str, name: str = "") -> None:
        self.part = part
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        if not self.name:
            self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:  # it was read from the class
            return self
        return getattr(getattr(instance, self.part), self.name)
