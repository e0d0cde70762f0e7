"""Files that are written whole or not at all, and checkpoints in them, without pickle.

A file that is there survives a loss of power. A class that inherits from ``Checkpointable`` names
its memory once and can be stopped and continued:

    class Counter(Checkpointable):
        REMEMBERED = ("rounds", "_sums")

Arrays are stored under their path in the tree, everything else in one JSON text, in an archive with
a format and a digest (``market/core/archive.py``). Reading a checkpoint can load numbers and text,
nothing else. Those of a run are written and read by ``scenarios/logs/run_directory.py``.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable
from urllib.parse import quote, unquote
from uuid import uuid4

import numpy as np

from regretless.market.core import archive
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import generator_state, restore_generator


@contextmanager
def replacing(path: Path, *, sync_folder: bool = True, contested: bool = False) -> Iterator[Path]:
    """Yield a draft beside a file that takes the file's name once the block is done.

    The draft, ``.NAME.tmp``, is synced before it is renamed and the folder after (if ``alone``;
    else who replaces several files does that once); whoever reads sees the old file or the new one.
    If the block raises or writes nothing the file stays. OSError with the file's own name if the
    draft cannot be written, or is a link, which is not followed.

    Where a path is ``contested``, that is where nothing keeps a second writer away, each writer has
    a draft of its own, ``.NAME.HEX.tmp``, and the last one that is done stays. A writer that is
    killed leaves its draft.
    """
    writer_part = f".{uuid4().hex}" if contested else ""
    draft = path.with_name(f".{path.name}{writer_part}.tmp")
    if draft.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", str(draft))
    try:
        yield draft
        if draft.exists():
            sync(draft)
            draft.replace(path)
            if sync_folder:
                sync(path.parent)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names (not on Windows), are on the disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PLAIN_MEMBER = "plain.json"
MAX_DEPTH = 50  # tables within one another
MAX_SHOWN_CHARACTERS = 80  # characters of a value in an error line
PLAIN_VALUES = bool | int | float | str | np.generic | None
DAMAGED = Exception  # what reading a file may raise that somebody else wrote


def save(path: Path, tree: dict[str, Any], *, contested: bool = False) -> None:
    """Write a tree of tables, arrays, numbers, text, lists and None, atomically; else UserError.

    ``contested`` is as in ``replacing``.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _extract_arrays(tree, (), arrays)
    text = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    with replacing(path, contested=contested) as draft:
        archive.write(draft, {PLAIN_MEMBER: text, **arrays})


def check_tree(tree: Any) -> None:
    """Raise UserError at the first thing in a tree that ``save`` cannot write."""
    _extract_arrays(tree, (), {})


def _extract_arrays(
    tree: Any, path: tuple[str, ...], arrays: dict[str, np.ndarray[Any, Any]]
) -> Any:
    """Take the arrays out of a tree, each under its path, and return the rest."""
    plain_value = tree.item() if isinstance(tree, np.generic) else tree
    if isinstance(tree, dict) and len(path) < MAX_DEPTH and all(isinstance(k, str) for k in tree):
        parts = {key: _extract_arrays(value, (*path, key), arrays) for key, value in tree.items()}
        return {key: value for key, value in parts.items() if value is not np.ndarray}
    if isinstance(tree, np.ndarray) and not tree.dtype.hasobject:
        arrays["/".join(quote(step, safe="") for step in path)] = tree
        return np.ndarray  # stands for one that was taken out
    with suppress(TypeError, ValueError, RecursionError):
        if not isinstance(tree, np.ndarray | dict):
            json.dumps(plain_value)
            return plain_value
    shown_value = (
        repr(tree)
        if len(repr(tree)) <= MAX_SHOWN_CHARACTERS
        else f"{repr(tree)[:MAX_SHOWN_CHARACTERS]}..."
    )
    hint = "give arrays, numbers, text, lists and None, in tables by text"
    raise UserError(f"state(): {'.'.join(path)} = {shown_value} cannot be kept in a file; {hint}")


def load(path: Path) -> dict[str, Any]:
    """Read a tree that ``save`` wrote.

    ArchiveError, which is among ``DAMAGED``, if the file is torn, edited, of an older format or of
    something else; OSError if it cannot be opened.
    """
    arrays = archive.read(path)
    try:
        plain: dict[str, Any] = json.loads(arrays.pop(PLAIN_MEMBER).tobytes().decode())
        for name, array in arrays.items():
            *path_to, last = (unquote(step) for step in name.split("/"))
            table = plain
            for step in path_to:
                table = table[step]
            table[last] = array
    except DAMAGED as error:
        raise archive.ArchiveError("its parts do not fit together") from error
    return plain


class ForeignState(dict[str, Any]):
    """What an object of somebody else's class remembers: any table, which may change its form."""


def memory(holder: "Memory") -> dict[str, Any]:
    """Return the state of an object, marked as ``Own`` unless its class is this project's."""
    is_of_this_project = type(holder).__module__.partition(".")[0] == __name__.partition(".")[0]
    state: dict[str, Any] = holder.state()
    return state if is_of_this_project else ForeignState(state)


def check_like(restored: Any, reference: Any, path: str = "state") -> None:
    """Raise ValueError unless a tree has the keys, types and shapes of a new object's.

    Where that is None, anything may have come; a table may have more keys; the first axis of an
    array, and any of length 0 or 1, may be longer.
    """
    if reference is None:
        return
    if isinstance(reference, dict):
        if not isinstance(restored, dict) or (
            reference.keys() - restored and not isinstance(reference, ForeignState)
        ):
            raise ValueError(f"{path} is no table of {', '.join(reference)}")
        for key in {} if isinstance(reference, ForeignState) else reference:
            check_like(restored[key], reference[key], f"{path}.{key}")
    elif isinstance(reference, np.ndarray):
        is_compatible = isinstance(restored, np.ndarray)
        is_compatible = is_compatible and (restored.dtype, restored.ndim) == (
            reference.dtype,
            reference.ndim,
        )
        axis_lengths = (
            enumerate(zip(restored.shape, reference.shape, strict=True)) if is_compatible else ()
        )
        for axis, (restored_length, reference_length) in axis_lengths:
            is_compatible = is_compatible and (
                restored_length == reference_length
                or reference_length <= 1
                or (axis == 0 and restored_length > reference_length)
            )
        if not is_compatible:
            raise ValueError(f"{path} is no array of {reference.dtype} and shape {reference.shape}")
    else:
        expected_type = type(reference.item() if isinstance(reference, np.generic) else reference)
        accepted_types = {int: (int, float), float: (int, float), tuple: (list,)}.get(
            expected_type, (expected_type,)
        )
        if type(restored) not in accepted_types:
            raise ValueError(
                f"{path} is {type(restored).__name__}, where {expected_type.__name__} belongs"
            )


class Checkpointable:
    """Offers ``state()``, ``restore(state)`` and ``resumable`` for the attributes that it names.

    ``REMEMBERED`` are attributes of this class, beside those that its bases name: arrays, numbers,
    text, None, numpy Generators, objects with ``state`` and ``restore`` of their own, and lists or
    dictionaries (by text) of all these. Generators and such objects must be there again before
    ``restore``, in equal number; what is None then becomes an array or a plain value. With
    ``IN_PLACE`` arrays are written into, where others hold views of them, and must fit; else they
    are replaced by copies.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    IN_PLACE: ClassVar[bool] = False

    @classmethod
    def _remembered(cls) -> list[str]:
        names_per_class = [
            base_class.__dict__.get("REMEMBERED", ()) for base_class in reversed(cls.__mro__)
        ]
        return list(dict.fromkeys(name for names in names_per_class for name in names))

    @property
    def resumable(self) -> bool:
        """Whether everything that is remembered offers a memory."""
        return all(remembers(getattr(self, name)) for name in self._remembered())

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs; nothing in it changes with this object."""
        return {name.lstrip("_"): _recorded(getattr(self, name)) for name in self._remembered()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint; KeyError, TypeError or ValueError if it does not fit."""
        for name in self._remembered():
            current = getattr(self, name)
            value = _restored(current, state[name.lstrip("_")], in_place=self.IN_PLACE)
            if value is not current:
                setattr(self, name, value)


@runtime_checkable
class Memory(Protocol):
    """What has a memory of its own: a ``Checkpointable``, or any such object of a user's."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""


OBJECTS_WITH_MEMORY = np.random.Generator | Memory  # is put back where it is, and never replaced


def remembers(value: Any) -> bool:
    """Whether a checkpoint can hold a value: plain ones, or what has ``state`` and ``restore``."""
    if isinstance(value, dict | list | tuple):
        return all(remembers(element) for element in _by_key(value).values())
    if isinstance(value, np.ndarray | np.random.Generator | PLAIN_VALUES):
        return True
    return value.resumable if isinstance(value, Checkpointable) else isinstance(value, Memory)


def _recorded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.random.Generator):
        return generator_state(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) and all(
        isinstance(element, PLAIN_VALUES) for element in value
    ):
        return [_recorded(element) for element in value]
    if isinstance(value, dict | list | tuple):
        return {key: _recorded(element) for key, element in _by_key(value).items()}
    return value if isinstance(value, PLAIN_VALUES) else memory(value)


def _restored(current: Any, value: Any, *, in_place: bool) -> Any:
    """Return ``current`` itself where it was put back, or what takes its place."""
    if isinstance(current, np.random.Generator):
        restore_generator(current, value)
    elif isinstance(current, Memory):
        current.restore(value)
    elif isinstance(current, dict | list | tuple):
        current_parts, saved_parts = _by_key(current), _by_key(value)
        if current_parts.keys() != saved_parts.keys() and any(
            isinstance(part, OBJECTS_WITH_MEMORY) for part in current_parts.values()
        ):
            raise ValueError(f"the state is of {list(saved_parts)}; here are {list(current_parts)}")
        restored_parts = {
            key: _restored(current_parts.get(key), saved_parts[key], in_place=in_place)
            for key in saved_parts
        }
        if current_parts.keys() != restored_parts.keys() or any(
            restored_parts[key] is not current_parts[key] for key in current_parts
        ):
            in_order = (restored_parts[str(i)] for i in range(len(restored_parts)))
            return restored_parts if isinstance(current, dict) else type(current)(in_order)
    elif in_place and isinstance(current, np.ndarray) and isinstance(value, np.ndarray):
        if current.shape != value.shape:
            raise ValueError(f"the state is of shape {value.shape}; here it is {current.shape}")
        np.copyto(current, value, casting="same_kind")
    else:
        return _recorded(value)
    return current


def _by_key(container: Any) -> dict[str, Any]:
    return (
        container
        if isinstance(container, dict)
        else {str(index): element for index, element in enumerate(container)}
    )
