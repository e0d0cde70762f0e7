"""What a live page may ask for: one record of a question, and what each control does to a session.

Every control of the page sends the name of an action (``ACTIONS``), with what the action needs to
know in the question's other fields.
"""

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import format_value
from regretless.scenarios.live.session import SPEEDS, Session

MAX_NAME_CHARACTERS = 1000
MAX_FIGURES_PER_QUESTION = 32


class Question(BaseModel):
    """What a page sends; every field that a question does not need may be left out.

    Attributes
    ----------
    session : str
        The secret name of the page's session.
    builds : int
        The number of the build whose controls the page has (``Session.n_builds``).
    figures : list of str
        The names of the figures that the page wants.
    agent : int or None
        Of whom the page wants to know more, counted from 1.
    action : str
        What a control asks for, one of ``ACTIONS``; with ``name``, ``role``, ``way`` and ``value``.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    session: str = Field("", max_length=MAX_NAME_CHARACTERS)
    builds: int = 0
    figures: list[str] = Field([], max_length=MAX_FIGURES_PER_QUESTION)
    agent: int | None = None
    action: str = Field("", max_length=MAX_NAME_CHARACTERS)
    name: str = Field("", max_length=MAX_NAME_CHARACTERS)
    role: str = Field("", max_length=MAX_NAME_CHARACTERS)
    way: str = Field("", max_length=MAX_NAME_CHARACTERS)
    value: FiniteFloat | None = None


def _play(session: Session, _question: Question) -> None:
    session.play()


def _pause(session: Session, _question: Question) -> None:
    session.pause()


def _step(session: Session, _question: Question) -> None:
    session.play_one_round()


def _restart(session: Session, _question: Question) -> None:
    session.restart(session.source)


def _load(session: Session, question: Question) -> None:
    session.load(question.name)


def _set(session: Session, question: Question) -> None:
    session.set(question.name, question.value)


def _replace(session: Session, question: Question) -> None:
    session.replace(question.role, question.name)


def _set_speed(session: Session, question: Question) -> None:
    if question.value not in SPEEDS:
        choices = ", ".join(map(str, SPEEDS))
        raise UserError(f"speed {question.value}: choose one of {choices}")
    session.speed = int(question.value)


def _save(session: Session, question: Question) -> None:
    ways = {
        "file": session.saving.file,
        "run": session.saving.run,
        "study": session.saving.study,
    }
    if question.way not in ways:
        raise UserError(f"save {format_value(question.way)}: choose one of {', '.join(ways)}")
    save = ways[question.way]
    save(session.source, question.name)


ACTIONS: dict[str, Callable[[Session, Question], None]] = {
    "play": _play,
    "pause": _pause,
    "step": _step,
    "restart": _restart,
    "load": _load,
    "set": _set,
    "replace": _replace,
    "speed": _set_speed,
    "save": _save,
}
