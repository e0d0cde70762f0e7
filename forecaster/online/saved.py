"""Save files of what serves forecasts: what is in them, and what is refused on the way in.

A file is an archive with a digest (``market/core/archive.py``) of one tree:

    kind      "OnlineOmnipredictor" or "ManyOmnipredictors"
    format    ``FORMAT``, which rises when the parts of the state change
    made      the arguments that it was made with, as plain values and arrays
    state     what it learned since

A file is written beside the old one and takes its name in one step, so that two writers at one path
leave the whole file of one of them. What is read is checked three times: its digest, its arguments
(they go through the constructor), and its state beside that of a new object.
"""

from typing import Any

import numpy as np

from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import check_path

KIND = "OnlineOmnipredictor"
KIND_OF_MANY = "ManyOmnipredictors"
# 1 had no digest, 2 models of statistics, 3 no censored outcomes, 4 no recalibration, and 5 kept
# whole distribution functions of open forecasts, which ``DistributionPool.reopen`` takes, too.
FORMAT = 6
READABLE_FORMATS = (5, FORMAT)
HINT = "give a file that save wrote, or learn again"
HINT_ON_FORMAT = "learn again from the table, or load it with the version that wrote it"


def write(path: Any, arguments: dict[str, Any], state: dict[str, Any], *, kind: str = KIND) -> None:
    """Write a file whole or not at all.

    UserError if the path cannot be written, or something in the tree cannot be kept in a file.
    """
    file = check_path("path", path)
    tree = {"kind": kind, "format": FORMAT, "made": arguments, "state": state}
    try:
        checkpoint.save(file, tree, contested=True)
    except OSError as error:
        hint = "give a file in a folder that can be written"
        raise UserError(f"'{file}' cannot be written: {reason_of(error)}; {hint}") from error


def read(path: Any, *, kind: str = KIND) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments and the state that ``write`` was given; UserError if it is no such file.

    The state is not yet checked: ``check_state`` does that.
    """
    file = check_path("path", path)
    try:
        tree = checkpoint.load(file)
    except OSError as error:
        hint = "give a file that save wrote"
        raise UserError(f"'{file}' cannot be read: {reason_of(error)}; {hint}") from error
    except checkpoint.DAMAGED as error:
        raise refused(file, error, kind=kind) from error
    if not isinstance(tree, dict) or tree.get("kind") != kind:
        raise refused(file, "it holds something else", kind=kind)
    if tree.get("format") not in READABLE_FORMATS:
        readable = " and ".join(str(number) for number in READABLE_FORMATS)
        fault = f"it is of format {brief(tree.get('format'))}; this version reads {readable}"
        raise refused(file, fault, kind=kind, hint=HINT_ON_FORMAT)
    if not isinstance(tree.get("made"), dict) or not isinstance(tree.get("state"), dict):
        raise refused(file, "it lacks a part", kind=kind)
    return tree["made"], tree["state"]


def check_state(state: dict[str, Any], new_state: dict[str, Any]) -> None:
    """Raise ValueError unless a state has the form of a new object's.

    It has the keys, types and shapes of the new one, as ``checkpoint.check_like`` compares them,
    and is finite where the new one is.
    """
    checkpoint.check_like(state, new_state)
    check_finite(state, new_state, "state")


def check_finite(value: Any, new_value: Any, location: str) -> None:
    """Raise ValueError if a number is not finite where the new object's is finite.

    What has no counterpart in a new object is not looked at, and neither is an array whose
    counterpart has numbers that are not finite: there they have a meaning.
    """
    if isinstance(new_value, checkpoint.ForeignState):  # the state of a user's own object
        return
    if isinstance(new_value, dict):
        for key in new_value:
            check_finite(value[key], new_value[key], f"{location}.{key}")
    elif is_floating(new_value) and np.isfinite(new_value).all() and not np.isfinite(value).all():
        raise ValueError(f"{location} holds a number that is not finite")


def is_floating(value: Any) -> bool:
    """Whether a value is a floating-point number, or an array of them."""
    return isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind in "fc"


def refused(
    path: Any, reason: str | BaseException, *, kind: str = KIND, hint: str = HINT
) -> UserError:
    """Return the one line that says why a file is not read."""
    text = reason if isinstance(reason, str) else reason_of(reason)
    return UserError(f"'{path}' is no saved {kind}: {text}; {hint}")


def reason_of(error: BaseException) -> str:
    """Return why something failed, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
