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
INSTALLED = {"site-packages", "dist-packages"}  # folders of other packages
STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
READ_ONLY = "read-only", "mappingproxy"  # in what is said of arrays and tables not to be written
ROUNDING = 1e-9  # of probabilities that sum to 1
own_packages: set[str] = set()  # of what is registered, beside this project


def is_ours(code: Any) -> bool:
    """Whether a class, a method or an object's class comes with this project."""
    return package_of(getattr(code, "__module__", None)) == PROJECT


def package_of(module: str | None) -> str:
    """Return the name of the package at the top of a module's name."""
    return (module or "").partition(".")[0]


def name_of(method: Any) -> str:
    """Name a bound method by its object's class, anything else by its own name."""
    owner = getattr(method, "__self__", None)
    name = str(getattr(method, "__name__", method))
    return name if owner is None else f"{type(owner).__name__}.{name}"


def misfit(thing: Any) -> str | None:
    """Say which method of a class cannot take what the one it overrides is called with."""
    for name, own in vars(thing).items() if isinstance(thing, type) else ():
        base = next((vars(kind)[name] for kind in thing.__mro__[1:] if name in vars(kind)), None)
        if name.startswith("_") or not isfunction(own) or not isfunction(base):
            continue
        parameters = signature(base).parameters.values()
        given = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        try:
            signature(own).bind(*given)
        except TypeError:
            called = ", ".join(given[1:])  # without self
            return f"{thing.__name__}.{name} is called with ({called}); take these arguments"
    return None


@contextmanager
def in_round(number: int) -> Iterator[None]:
    """Turn faults of the user's own code, and mistakes, into one line that names the round."""
    try:
        yield
    except (Exception, SystemExit) as error:
        line = blamed(error) or (str(error) if isinstance(error, UserError) else None)
        if line is None:
            raise
        raise UserError(f"round {number}: {line}") from error


def blamed(error: BaseException) -> str | None:
    """Say which class and method of the user's own a fault came from; None if from none."""
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # a generator of ours was on the way
    frames = [pair for pair in traceback.walk_tb(error.__traceback__) if _is_own(pair[0])]
    if not frames:
        return None
    first, (frame, line) = frames[0][0], frames[-1]
    who = first.f_code.co_qualname.rpartition("<locals>.")[2]
    if first.f_code.co_argcount and first.f_code.co_varnames[0] == "self":
        who = f"{type(first.f_locals['self']).__name__}.{first.f_code.co_name}"
    if isinstance(error, UserError):
        return f"{who}: {error}"
    file = frame.f_code.co_filename
    where = f"{Path(file).name}, line {line}"
    if is_writing(error):
        written = traceback.FrameSummary(file, line, who).line
        return f"{who} writes into what it was given ({where}: {written}); copy it first"
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{who} ({where}): {said}; mend it"


def is_writing(error: BaseException) -> bool:
    """Whether an error is that of writing into what is read-only."""
    return isinstance(error, FrozenInstanceError) or any(word in str(error) for word in READ_ONLY)


def _is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of the user's own."""
    package, file = package_of(frame.f_globals.get("__name__")), Path(frame.f_code.co_filename)
    if package == PROJECT or package in own_packages:
        return package != PROJECT
    place = file.resolve()
    elsewhere = INSTALLED.intersection(place.parts) or place.is_relative_to(STDLIB)
    return place.is_file() and not elsewhere


Numbers = TypeVar("Numbers", bound=NDArray[Any])


def read_only(array: Numbers) -> Numbers:
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


def handed(method: Any, array: Numbers) -> Numbers:
    """Return what a method is handed: the array itself if it is ours, else a read-only view."""
    return array if is_ours(method) else read_only(array)


def lent(maker: Any, value: Any) -> Any:
    """Return a parameter as a maker is handed it: who is not ours may not change it."""
    if is_ours(maker) or not isinstance(value, np.ndarray | list | dict):
        return value
    return read_only(value) if isinstance(value, np.ndarray) else deepcopy(value)


def numbers_of(method: Any, answer: Any, wanted: str) -> NDArray[Any]:
    """Return a method's answer as an array; UserError, with what is wanted, if it is no numbers."""
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name_of(method)} returned {brief(answer)}; {wanted}")
    return array


def strategies_of(method: Any, answer: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a method's answer as mixed strategies (K, A); UserError unless it is that."""
    wanted = f"return probabilities of shape {shape} whose rows sum to 1"
    found = numbers_of(method, answer, wanted).astype(np.float64, copy=False)
    fine = found.shape == shape and (found >= 0).all(1) & (np.abs(found.sum(1) - 1) <= ROUNDING)
    if not np.all(fine):
        shown = found[int(np.argmin(fine))] if found.shape == shape else found
        raise UserError(f"{name_of(method)} returned {brief(shown)}; {wanted}")
    return found
