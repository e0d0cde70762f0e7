"""The border between this project and a user's own code.

Users register agents, adversaries, utilities and markets of their own. Two things are guaranteed
where their code is called:

**A fault is one line** that names the class, the method and the round (``raise_with_round``, or
``in_round`` around a block of code). It is worked out from the traceback, so that a round without a
fault costs nothing. Code is the user's where it belongs neither to this project nor to Python nor
to an installed package; a package from which something was registered is the user's as well
(``user_packages``).

**Arrays are protected.** A user's method receives read-only views (``readonly_unless_ours``), and
its answer is checked (``answer_as_numbers``, ``answer_as_strategies``). The project's own methods
receive the arrays themselves: a kernel would otherwise be compiled twice, for writable and for
read-only arrays.
"""

import sysconfig
import traceback
from copy import deepcopy
from dataclasses import FrozenInstanceError
from functools import cache
from inspect import Parameter, isfunction, signature
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.errors import UserError, brief

PROJECT = "regretless"
PACKAGE_FOLDERS = {"site-packages", "dist-packages"}  # where other packages are installed
STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
READ_ONLY_MESSAGES = "read-only", "mappingproxy"  # in errors of writing into an array or a table
SUM_TOLERANCE = 1e-9  # of probabilities that should sum to 1
user_packages: set[str] = set()  # packages from which something is registered, but this project


def is_ours(code: Any) -> bool:
    """Whether a class, a method or an object's class comes with this project."""
    return package_of(getattr(code, "__module__", None)) == PROJECT


@cache  # asked many times a round, of few modules
def package_of(module: str | None) -> str:
    """Return the name of the package at the top of a module's name."""
    return (module or "").partition(".")[0]


def name_of(method: Any) -> str:
    """Return a bound method's class and name, ``Class.method``, and anything else's own name."""
    name = str(getattr(method, "__name__", method))
    instance = getattr(method, "__self__", None)
    if instance is None:
        return name
    return f"{type(instance).__name__}.{name}"


def signature_fault(user_class: Any) -> str | None:
    """Return what is wrong with the first public method that cannot be called like its base's.

    None where every method takes the arguments of the one that it overrides, and for anything that
    is no class.
    """
    if not isinstance(user_class, type):
        return None
    for name, method in vars(user_class).items():
        overridden = _inherited(user_class, name)
        if name.startswith("_") or not isfunction(method) or not isfunction(overridden):
            continue
        parameters = signature(overridden).parameters.values()
        arguments = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
        try:
            signature(method).bind(*arguments)
        except TypeError:
            named = ", ".join(arguments[1:])  # without self
            return f"{user_class.__name__}.{name} is called with ({named}); take these arguments"
    return None


def _inherited(user_class: type, name: str) -> Any:
    """Return what the nearest base class defines under a name; None where none does."""
    for base_class in user_class.__mro__[1:]:
        if name in vars(base_class):
            return vars(base_class)[name]
    return None


def raise_with_round(error: BaseException, round_index: int) -> None:
    """Raise the line that a fault of the user's code, or a UserError, becomes; else do nothing.

    The line names the round. It is called where an error was caught, which goes on if it is another
    one:

        except BaseException as error:
            raise_with_round(error, round_index)
            raise
    """
    if not isinstance(error, Exception | SystemExit):
        return
    message = blamed(error)
    if message is None and isinstance(error, UserError):
        message = str(error)
    if message is not None:
        raise UserError(f"round {round_index}: {message}") from error


class in_round:  # noqa: N801 - it is used as ``with in_round(...)``
    """Turn a fault of the user's code, or a UserError, into one line that names the round."""

    def __init__(self, round_index: int) -> None:
        self.round_index = round_index

    def __enter__(self) -> None:
        """Begin a part of the round."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the line that a fault becomes; other errors go on as they are."""
        if error is not None:
            raise_with_round(error, self.round_index)


def blamed(error: BaseException) -> str | None:
    """Return which method of the user's an error came from, and why; None if from none.

    The method is the first one of the user's that this project called; the line is the last one of
    the user's that ran.
    """
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # a generator of this project turned it into a RuntimeError
    user_frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_user_code(frame):
            user_frames.append((frame, line))
    if not user_frames:
        return None
    entry_frame, _ = user_frames[0]
    last_frame, last_line = user_frames[-1]
    method_name = _method_name(entry_frame)
    if isinstance(error, UserError):
        return f"{method_name}: {error}"
    file = last_frame.f_code.co_filename
    location = f"{Path(file).name}, line {last_line}"
    if is_writing(error):
        statement = traceback.FrameSummary(file, last_line, method_name).line
        return (
            f"{method_name} writes into what it was given ({location}: {statement}); copy it first"
        )
    fault = type(error).__name__
    if str(error):
        fault = f"{fault}: {error}"
    return f"{method_name} ({location}): {fault}; mend it"


def _method_name(frame: FrameType) -> str:
    """Return the function that a frame runs, a method with the class of its instance."""
    code = frame.f_code
    if code.co_argcount and code.co_varnames[0] == "self":
        return f"{type(frame.f_locals['self']).__name__}.{code.co_name}"
    return code.co_qualname.rpartition("<locals>.")[2]


def is_writing(error: BaseException) -> bool:
    """Whether an error is that of writing into what is read-only."""
    if isinstance(error, FrozenInstanceError):
        return True
    return any(message in str(error) for message in READ_ONLY_MESSAGES)


def _is_user_code(frame: FrameType) -> bool:
    """Whether a frame runs code of the user's own."""
    package = package_of(frame.f_globals.get("__name__"))
    if package == PROJECT:
        return False
    if package in user_packages:
        return True
    path = Path(frame.f_code.co_filename).resolve()
    is_installed = bool(PACKAGE_FOLDERS.intersection(path.parts)) or path.is_relative_to(STDLIB)
    return path.is_file() and not is_installed


NumberArray = TypeVar("NumberArray", bound=NDArray[Any])


def read_only(array: NumberArray) -> NumberArray:
    """Return an array that cannot be written: itself if it is read-only, else a view of it."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view


def frozen(array: Any) -> NDArray[Any]:
    """Return an array that nobody can write: itself if it is read-only, else a read-only copy."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return array
    copied = np.array(array)
    copied.flags.writeable = False
    return copied


def readonly_unless_ours(method: Any, array: NumberArray) -> NumberArray:
    """Return an array as a method receives it: a user's own method cannot write into it."""
    if is_ours(method):
        return array
    return read_only(array)


def copy_for_user(maker: Any, value: Any) -> Any:
    """Return a parameter as a maker receives it: a user's own maker cannot change the original.

    It gets a read-only view of an array, and a copy of a list or a dict.
    """
    if is_ours(maker):
        return value
    if isinstance(value, np.ndarray):
        return read_only(value)
    if isinstance(value, list | dict):
        return deepcopy(value)
    return value


def answer_as_numbers(method: Any, answer: Any, expected: str) -> NDArray[Any]:
    """Return a method's answer as an array; UserError, which says ``expected``, if no numbers."""
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name_of(method)} returned {brief(answer)}; {expected}")
    return array


def answer_as_strategies(method: Any, answer: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a method's answer as mixed strategies of a shape (K, A); UserError if it is none.

    The method is named in the error.
    """
    expected = f"return probabilities of shape {shape} whose rows sum to 1"
    strategies = answer_as_numbers(method, answer, expected).astype(np.float64, copy=False)
    if strategies.shape != shape:
        raise UserError(f"{name_of(method)} returned {brief(strategies)}; {expected}")
    sums_to_one = np.abs(strategies.sum(axis=1) - 1) <= SUM_TOLERANCE
    is_distribution = (strategies >= 0).all(axis=1) & sums_to_one  # (K,)
    if not is_distribution.all():
        first_bad_row = strategies[int(np.argmin(is_distribution))]
        raise UserError(f"{name_of(method)} returned {brief(first_bad_row)}; {expected}")
    return strategies
