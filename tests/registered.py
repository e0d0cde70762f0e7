"""What the project itself registers: test modules register names of their own in one process."""

from regretless.market.core.own_code import PROJECT
from regretless.market.register import Registry


def built_in(registry: Registry) -> list[str]:
    """Names that the four packages registered, without those of tests and users."""
    return [n for n in registry.names() if registry[n].__module__.split(".")[0] == PROJECT]
