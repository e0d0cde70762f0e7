"""What the page asks the server, checked: a ``Question``, or ``Refused`` with an HTTP status."""

from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

TEXT = 1000  # characters of a name
DRAWN = 32  # figures in a question


class Refused(Exception):  # noqa: N818 - no fault: the answer to a bad request
    """A request that is not answered; its text is one line that says why.

    Parameters
    ----------
    status : HTTPStatus
        What the response says.
    reason : str
        One line with the cure.
    """

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Question(BaseModel):
    """What a page sends: its session, what it has, what it wants, and what a control asks for."""

    model_config = ConfigDict(extra="forbid", strict=True)

    session: str = Field("", max_length=TEXT)
    builds: int = 0
    figures: list[str] = Field([], max_length=DRAWN)
    agent: int | None = None
    action: str = Field("", max_length=TEXT)
    name: str = Field("", max_length=TEXT)
    role: str = Field("", max_length=TEXT)
    way: str = Field("", max_length=TEXT)
    value: FiniteFloat | None = None


def parsed(body: bytes) -> Question:
    """Read a question from JSON; Refused, with the first fault, where it is none."""
    try:
        return Question.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the body"
        reason = f"{place}: {fault['msg'][0].lower()}{fault['msg'][1:]}; send another"
        raise Refused(HTTPStatus.BAD_REQUEST, reason) from error
