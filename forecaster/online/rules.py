"""Rules that a user could have followed: policies of an ``OnlineOmnipredictor``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regretless.market import register
from regretless.market.core.errors import UserError, brief, closest


@dataclass(frozen=True)
class Rule:
    """A policy that answers with the name or quantity of an action, as its place."""

    name: str
    answers: Callable[[Mapping[str, float]], Any]  # from the numbers of a context, by name
    actions: Sequence[Any]  # what they are called

    def __call__(self, context: Mapping[str, float]) -> int:
        """Return the place of the action; UserError if it is none, or a number is missing."""
        try:
            told = self.answers(context)
        except KeyError as error:
            known = closest(str(error.args[0]), list(context))
            raise UserError(f"policy '{self.name}': no {error} in the context; {known}") from error
        if told not in self.actions:
            wanted = f"return one of {', '.join(map(str, self.actions))}"
            raise UserError(f"policy '{self.name}' suggests {brief(told)}; {wanted}")
        return self.actions.index(told)


def rules(told: Mapping[str, Any], actions: Sequence[Any]) -> list[Rule]:
    """Make the policies of a loss: functions by name, or tables of registered ones.

    UserError if a table is of no registered policy, or lacks something.
    """
    return [Rule(name, _answers(name, one, actions), actions) for name, one in told.items()]


def _answers(name: str, told: Any, actions: Sequence[Any]) -> Callable[[Any], Any]:
    if callable(told):
        return told  # type: ignore[no-any-return]
    kind = str(told.get("kind") if isinstance(told, Mapping) else told)
    if kind not in register.policy:
        cure = closest(kind, register.policy.names())
        raise UserError(f"policies['{name}']: unknown kind {kind!r}; {cure}")
    try:
        made = register.policy[kind](**{key: v for key, v in told.items() if key != "kind"})
    except (TypeError, ValueError) as error:
        raise UserError(f"policies['{name}']: {error}") from error
    return lambda context: actions[made(context)]
