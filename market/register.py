"""Names that scenario files may use, and the decorators that add a user's own.

    @register.adversary("shouter")
    class Shouter: ...

A scenario file names things; it never imports or evaluates anything. Packages register their
names when they are imported, a user's module when the command is given ``--import``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from regretless.market.core.errors import UserError, closest
from regretless.market.core.own_code import PROJECT, misfit, own_packages, package_of

Thing = TypeVar("Thing", bound=Callable[..., Any])


class Registry:
    """One kind of named building block, as error lines call it.

    Of a utility, ``units`` says what its losses and actions are in: a function that is handed the
    units of the outcomes, the losses and the parameters (``agents.utilities.units``). Of a measure,
    ``within`` is the range that it cannot leave: (0, 1) of one that measures a share.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.units: dict[str, Callable[..., Any]] = {}
        self.within: dict[str, tuple[float, float]] = {}
        self._known: dict[str, Callable[..., Any]] = {}

    def __call__(
        self,
        name: str,
        *,
        units: Callable[..., Any] | None = None,
        within: tuple[float, float] | None = None,
    ) -> Callable[[Thing], Thing]:
        """Register the decorated class or function; UserError if the name is taken."""
        if units is not None:
            self.units[name] = units
        if within is not None:
            low, high = map(float, within)
            if not low < high:
                raise UserError(f"{self.kind} '{name}': within = {within}; give (least, greatest)")
            self.within[name] = low, high

        def add(thing: Thing) -> Thing:
            if name in self._known:
                raise UserError(f"{self.kind} '{name}' is registered twice; choose another name")
            for other in ANSWERS if self in ANSWERS else ():
                if name in other:
                    taken = f"there is a {other.kind} of that name; choose another name"
                    raise UserError(f"{self.kind} '{name}': {taken}")
            if package_of(thing.__module__) != PROJECT and (told := misfit(thing)):
                raise UserError(f"{self.kind} '{name}': {told}")
            self._known[name] = thing
            own_packages.update({package_of(thing.__module__)} - {PROJECT})
            return thing

        return add

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._known:
            reason = f"unknown {self.kind} '{name}'; {closest(name, self._known)}"
            raise UserError(f"{reason}; a name of your own needs --import MODULE")
        return self._known[name]

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._known)


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

ANSWERS = (response, agent, learner)  # what a cohort's ``response`` may name: names differ
