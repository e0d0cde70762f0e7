"""Names that scenario files may use, and the decorators that add a user's own.

    @register.adversary("shouter")
    class Shouter: ...

A scenario file names things; it never imports or evaluates anything. Packages register their
names when they are imported, a user's module when the command is given ``--import``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from regretless.market.core.errors import UserError, closest
from regretless.market.core.own_code import PROJECT, package_of, signature_fault, user_packages

Block = TypeVar("Block", bound=Callable[..., Any])


class Registry:
    """The registered names of one kind of building block, and the decorator that adds one.

    ``kind`` is how error lines call the kind. A utility may have ``units``: a function from the
    units of the outcomes, the losses and the parameters to those of its losses and actions
    (``agents.utilities.units``). A measure may have ``within``, the range that it cannot leave:
    (0, 1) for a share.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.units: dict[str, Callable[..., Any]] = {}
        self.within: dict[str, tuple[float, float]] = {}
        self._registered: dict[str, Callable[..., Any]] = {}

    def __call__(
        self,
        name: str,
        *,
        units: Callable[..., Any] | None = None,
        within: tuple[float, float] | None = None,
    ) -> Callable[[Block], Block]:
        """Register the decorated class or function; UserError if the name is taken."""
        if units is not None:
            self.units[name] = units
        if within is not None:
            low, high = map(float, within)
            if not low < high:
                raise UserError(f"{self.kind} '{name}': within = {within}; give (least, greatest)")
            self.within[name] = low, high

        def add(block: Block) -> Block:
            self._check_is_free(name)
            package = package_of(block.__module__)
            if package != PROJECT:
                fault = signature_fault(block)
                if fault:
                    raise UserError(f"{self.kind} '{name}': {fault}")
                user_packages.add(package)
            self._registered[name] = block
            return block

        return add

    def _check_is_free(self, name: str) -> None:
        """Raise UserError if the name is taken, here or by another answer of a cohort."""
        if name in self._registered:
            raise UserError(f"{self.kind} '{name}' is registered twice; choose another name")
        if self in ANSWERS:
            for registry in ANSWERS:
                if name in registry:
                    fault = f"there is a {registry.kind} of that name; choose another name"
                    raise UserError(f"{self.kind} '{name}': {fault}")

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._registered:
            reason = f"unknown {self.kind} '{name}'; {closest(name, self._registered)}"
            raise UserError(f"{reason}; a name of your own needs --import MODULE")
        return self._registered[name]

    def __contains__(self, name: str) -> bool:
        return name in self._registered

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._registered)


utility = Registry("utility")
response = Registry("response")
agent = Registry("agent")
learner = Registry("learner")
adversary = Registry("adversary")
policy = Registry("policy")
forecaster = Registry("forecaster")
measure = Registry("measure")
market = Registry("market")
basis = Registry("basis")
solution = Registry("solution")

ANSWERS = (response, agent, learner)  # what a cohort's ``response`` may name: names differ
