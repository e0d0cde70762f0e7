"""The border to a user's own code: faults are named, and what is handed over is read-only.

**Faults** are one line that names the class, the method and the round, by the traceback, so that a
round without one costs nothing. Code is a user's own where it belongs neither to this project nor
to Python nor to a package that is installed, unless something registered comes from there.

**Arrays** that it is handed are read-only, and its answer is checked. The project's own methods are
handed the arrays themselves: kernels are compiled for each of both.
"""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import FrozenInstanceError
from inspect import isfunction, signature
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.errors import UserError, brief

PROJECT = "regretless"
PACKAGE_FOLDERS = {"site-packages", "dist-packages"}  # folders of other packages
STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
READ_ONLY_MESSAGES = (
    "read-only",
    "mappingproxy",
)  # in what is said of arrays and tables not to be written
SUM_TOLERANCE = 1e-9  # of probabilities that sum to 1
user_packages: set[str] = set()  # of what is registered, beside this project


def is_ours(code: Any) -> bool:
    """Whether a class, a method or an object's class comes with this project."""
    return package_of(getattr(code, "__module__", None)) == PROJECT


def package_of(module: str | None) -> str:
    """Return the name of the package at the top of a module's name."""
    return (module or "").partition(".")[0]


def name_of(method: Any) -> str:
    """Name a bound method by its object's class, anything else by its own name."""
    instance = getattr(method, "__self__", None)
    name = str(getattr(method, "__name__", method))
    return name if instance is None else f"{type(instance).__name__}.{name}"


def signature_fault(user_class: Any) -> str | None:
    """Say which method of a class cannot take what the one it overrides is called with."""
    for name, method in vars(user_class).items() if isinstance(user_class, type) else ():
        overridden = next(
            (
                vars(base_class)[name]
                for base_class in user_class.__mro__[1:]
                if name in vars(base_class)
            ),
            None,
        )
        if name.startswith("_") or not isfunction(method) or not isfunction(overridden):
            continue
        parameters = signature(overridden).parameters.values()
        argument_names = [
            parameter.name
            for parameter in parameters
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        try:
            signature(method).bind(*argument_names)
        except TypeError:
            names = ", ".join(argument_names[1:])  # without self
            return f"{user_class.__name__}.{name} is called with ({names}); take these arguments"
    return None


@contextmanager
def in_round(round_index: int) -> Iterator[None]:
    """Turn faults of the user's own code, and mistakes, into one line that names the round."""
    try:
        yield
    except (Exception, SystemExit) as error:
        message = blamed(error) or (str(error) if isinstance(error, UserError) else None)
        if message is None:
            raise
        raise UserError(f"round {round_index}: {message}") from error


def blamed(error: BaseException) -> str | None:
    """Say which class and method of the user's own a fault came from; None if from none."""
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # a generator of ours was on the way
    user_frames = [
        pair for pair in traceback.walk_tb(error.__traceback__) if _is_user_code(pair[0])
    ]
    if not user_frames:
        return None
    entry_frame, (frame, line) = user_frames[0][0], user_frames[-1]
    method_name = entry_frame.f_code.co_qualname.rpartition("<locals>.")[2]
    if entry_frame.f_code.co_argcount and entry_frame.f_code.co_varnames[0] == "self":
        method_name = f"{type(entry_frame.f_locals['self']).__name__}.{entry_frame.f_code.co_name}"
    if isinstance(error, UserError):
        return f"{method_name}: {error}"
    file = frame.f_code.co_filename
    location = f"{Path(file).name}, line {line}"
    if is_writing(error):
        code = traceback.FrameSummary(file, line, method_name).line
        return f"{method_name} writes into what it was given ({location}: {code}); copy it first"
    fault = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{method_name} ({location}): {fault}; mend it"


def is_writing(error: BaseException) -> bool:
    """Whether an error is that of writing into what is read-only."""
    return isinstance(error, FrozenInstanceError) or any(
        word in str(error) for word in READ_ONLY_MESSAGES
    )


def _is_user_code(frame: FrameType) -> bool:
    """Whether a frame runs code of the user's own."""
    package, source_file = (
        package_of(frame.f_globals.get("__name__")),
        Path(frame.f_code.co_filename),
    )
    if package == PROJECT or package in user_packages:
        return package != PROJECT
    path = source_file.resolve()
    is_installed = PACKAGE_FOLDERS.intersection(path.parts) or path.is_relative_to(STDLIB)
    return path.is_file() and not is_installed


NumberArray = TypeVar("NumberArray", bound=NDArray[Any])


def read_only(array: NumberArray) -> NumberArray:
    """Return a view of an array that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(array: Any) -> NDArray[Any]:
    """Return what nobody can write: the array itself if it is read-only, else a copy."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return array
    copied = np.array(array)
    copied.flags.writeable = False
    return copied


def readonly_for_user(method: Any, array: NumberArray) -> NumberArray:
    """Return what a method is handed: the array itself if it is ours, else a read-only view."""
    return array if is_ours(method) else read_only(array)


def copy_for_user(maker: Any, value: Any) -> Any:
    """Return a parameter as a maker is handed it: who is not ours may not change it."""
    if is_ours(maker) or not isinstance(value, np.ndarray | list | dict):
        return value
    return read_only(value) if isinstance(value, np.ndarray) else deepcopy(value)


def numbers_of(method: Any, answer: Any, expected: str) -> NDArray[Any]:
    """Return a method's answer as an array; UserError, with what is wanted, if it is no numbers."""
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name_of(method)} returned {brief(answer)}; {expected}")
    return array


def strategies_of(method: Any, answer: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a method's answer as mixed strategies (K, A); UserError unless it is that."""
    expected = f"return probabilities of shape {shape} whose rows sum to 1"
    strategies = numbers_of(method, answer, expected).astype(np.float64, copy=False)
    is_distribution = strategies.shape == shape and (strategies >= 0).all(1) & (
        np.abs(strategies.sum(1) - 1) <= SUM_TOLERANCE
    )
    if not np.all(is_distribution):
        offending = (
            strategies[int(np.argmin(is_distribution))] if strategies.shape == shape else strategies
        )
        raise UserError(f"{name_of(method)} returned {brief(offending)}; {expected}")
    return strategies
