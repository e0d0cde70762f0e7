"""Checkpoints without pickle, and files that are written whole or not at all.

A class that inherits from ``Checkpointable`` names the attributes that are its memory, and can then
be stopped and continued:

    class Counter(Checkpointable):
        REMEMBERED = ("rounds", "_sums")

``save`` writes such a state, a tree of tables, arrays and plain values, and ``load`` reads it
again: arrays are stored under their path in the tree, everything else in one JSON text, in an
archive with a format and a digest (``market/core/archive.py``). Reading a checkpoint can load
numbers and text, nothing else. Checkpoints of runs are written and read by
``scenarios/logs/run_directory.py``.

``replacing`` is how every file of this project is written: a reader sees the old file or the new
one, and a file that is there survives a loss of power.
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
    """Yield a draft beside a file; it takes the file's name when the block has ended.

    The draft, ``.NAME.tmp``, is synced before it is renamed. If the block raises, or writes
    nothing, the file stays as it was. A writer that is killed leaves its draft.

    Parameters
    ----------
    path : Path
        The file that is written.
    sync_folder : bool
        Whether the folder is synced after the renaming. A caller that replaces several files of one
        folder does that once, at the end.
    contested : bool
        Whether another process may write the same file at the same time. Then each writer has a
        draft of its own, ``.NAME.HEX.tmp``, and the file of the last one stays.

    Raises
    ------
    OSError
        With the file's own name, if the draft cannot be written, or is a link: links are not
        followed.
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
    """Wait until a file's content, or the names in a folder, are on the disk.

    Windows cannot sync a folder: there it does nothing for one.
    """
    is_windows = os.name == "nt"
    if is_windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if is_windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PLAIN_MEMBER = "plain.json"  # the archive's member that holds everything but the arrays
MAX_DEPTH = 50  # tables within one another
MAX_SHOWN_CHARACTERS = 80  # of a value in an error line
PLAIN_VALUES = bool | int | float | str | np.generic | None
DAMAGED = Exception  # what reading a file may raise that somebody else wrote


def save(path: Path, tree: dict[str, Any], *, contested: bool = False) -> None:
    """Write a tree of tables, arrays, numbers, text, lists and None, atomically; else UserError.

    ``contested`` is as in ``replacing``.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain_tree = _extract_arrays(tree, (), arrays)
    text = np.frombuffer(json.dumps(plain_tree).encode(), dtype=np.uint8)
    with replacing(path, contested=contested) as draft:
        archive.write(draft, {PLAIN_MEMBER: text, **arrays})


def check_tree(tree: Any) -> None:
    """Raise UserError at the first thing in a tree that ``save`` cannot write."""
    _extract_arrays(tree, (), {})


def _extract_arrays(
    tree: Any, path: tuple[str, ...], arrays: dict[str, np.ndarray[Any, Any]]
) -> Any:
    """Return a tree without its arrays, which are added to ``arrays`` under their paths.

    ``path`` is that of the tree itself. In place of a single array the class ``np.ndarray`` is
    returned, which is no value of a tree.
    """
    if isinstance(tree, dict) and len(path) < MAX_DEPTH and all(isinstance(k, str) for k in tree):
        plain_table = {}
        for key, value in tree.items():
            plain_value = _extract_arrays(value, (*path, key), arrays)
            if plain_value is not np.ndarray:
                plain_table[key] = plain_value
        return plain_table
    if isinstance(tree, np.ndarray) and not tree.dtype.hasobject:
        arrays["/".join(quote(step, safe="") for step in path)] = tree
        return np.ndarray
    with suppress(TypeError, ValueError, RecursionError):
        if not isinstance(tree, np.ndarray | dict):
            value = tree.item() if isinstance(tree, np.generic) else tree
            json.dumps(value)
            return value
    text = repr(tree)
    if len(text) > MAX_SHOWN_CHARACTERS:
        text = f"{text[:MAX_SHOWN_CHARACTERS]}..."
    hint = "give arrays, numbers, text, lists and None, in tables by text"
    raise UserError(f"state(): {'.'.join(path)} = {text} cannot be kept in a file; {hint}")


def load(path: Path) -> dict[str, Any]:
    """Read a tree that ``save`` wrote.

    ArchiveError, which is among ``DAMAGED``, if the file is torn, edited, of an older format or of
    something else; OSError if it cannot be opened.
    """
    arrays = archive.read(path)
    try:
        tree: dict[str, Any] = json.loads(arrays.pop(PLAIN_MEMBER).tobytes().decode())
        for name, array in arrays.items():
            *parents, key = (unquote(step) for step in name.split("/"))
            table = tree
            for parent in parents:
                table = table[parent]
            table[key] = array
    except DAMAGED as error:
        raise archive.ArchiveError("its parts do not fit together") from error
    return tree


class ForeignState(dict[str, Any]):
    """The state of an object of a user's own class: any table, which may change its form."""


def memory(holder: "HasMemory") -> dict[str, Any]:
    """Return the state of an object, as ``ForeignState`` unless its class is this project's."""
    state: dict[str, Any] = holder.state()
    package = type(holder).__module__.partition(".")[0]
    is_of_this_project = package == __name__.partition(".")[0]
    return state if is_of_this_project else ForeignState(state)


def check_like(restored: Any, reference: Any, path: str = "state") -> None:
    """Raise ValueError unless a restored tree has the keys, types and shapes of a reference.

    The reference is the state of a new object. Where it has None the restored tree may have
    anything. A restored table may have more keys. Of an array the first axis may be longer, and so
    may every axis whose reference length is 0 or 1. ``path`` names the tree in the error.
    """
    if reference is None:  # a new object cannot say what will be there
        return
    if isinstance(reference, dict):
        _check_table(restored, reference, path)
    elif isinstance(reference, np.ndarray):
        if not _is_compatible_array(restored, reference):
            raise ValueError(f"{path} is no array of {reference.dtype} and shape {reference.shape}")
    else:
        plain_reference = reference.item() if isinstance(reference, np.generic) else reference
        expected = type(plain_reference)
        # JSON does not tell 1 from 1.0, and has lists alone.
        accepted_types = {int: (int, float), float: (int, float), tuple: (list,)}
        if type(restored) not in accepted_types.get(expected, (expected,)):
            raise ValueError(
                f"{path} is {type(restored).__name__}, where {expected.__name__} belongs"
            )


def _check_table(restored: Any, reference: dict[str, Any], path: str) -> None:
    """Raise ValueError unless a restored table has a compatible value for each reference key."""
    is_table = isinstance(restored, dict)
    if isinstance(reference, ForeignState):
        if not is_table:
            raise ValueError(f"{path} is no table of {', '.join(reference)}")
        return
    if not is_table or reference.keys() - restored:
        raise ValueError(f"{path} is no table of {', '.join(reference)}")
    for key, value in reference.items():
        check_like(restored[key], value, f"{path}.{key}")


def _is_compatible_array(restored: Any, reference: np.ndarray[Any, Any]) -> bool:
    """Whether a restored array may take the place of a reference array (``check_like``)."""
    if not isinstance(restored, np.ndarray):
        return False
    if restored.dtype != reference.dtype or restored.ndim != reference.ndim:
        return False
    for axis, reference_length in enumerate(reference.shape):
        length = restored.shape[axis]
        may_be_longer = reference_length <= 1 or (axis == 0 and length > reference_length)
        if length != reference_length and not may_be_longer:
            return False
    return True


class Checkpointable:
    """Offers ``state()``, ``restore(state)`` and ``resumable`` for the attributes that it names.

    ``REMEMBERED`` are attributes of this class, beside those that its bases name: arrays, numbers,
    text, None, numpy Generators, objects with ``state`` and ``restore`` of their own, and lists or
    dictionaries (by text) of all these. Generators and such objects must be there again before
    ``restore``, in equal number; what is None then becomes an array or a plain value. With
    ``IN_PLACE`` arrays are written into, where others hold views of them, and must fit; else they
    are replaced by copies.

    >>> class Counter(Checkpointable):
    ...     REMEMBERED = ("rounds",)
    ...     rounds = 0
    >>> counter = Counter()
    >>> counter.restore({"rounds": 3})
    >>> counter.state()
    {'rounds': 3}
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    IN_PLACE: ClassVar[bool] = False

    @classmethod
    def _remembered(cls) -> list[str]:
        """Return the remembered attributes, those of the bases first, each once."""
        names: dict[str, None] = {}
        for base_class in reversed(cls.__mro__):
            names |= dict.fromkeys(base_class.__dict__.get("REMEMBERED", ()))
        return list(names)

    @property
    def resumable(self) -> bool:
        """Whether a checkpoint can hold everything that is remembered."""
        return all(remembers(getattr(self, name)) for name in self._remembered())

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs; nothing in it changes with this object."""
        state = {}
        for name in self._remembered():
            state[name.lstrip("_")] = _copy_for_checkpoint(getattr(self, name))
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint; KeyError, TypeError or ValueError if it does not fit."""
        for name in self._remembered():
            current = getattr(self, name)
            value = _value_after_restore(current, state[name.lstrip("_")], in_place=self.IN_PLACE)
            if value is not current:
                setattr(self, name, value)


@runtime_checkable
class HasMemory(Protocol):
    """An object with a memory of its own: a ``Checkpointable``, or one of a user's."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from it."""


RESTORED_IN_PLACE = np.random.Generator | HasMemory  # they take their state back and stay


def remembers(value: Any) -> bool:
    """Whether a checkpoint can hold a value: plain ones, or what has ``state`` and ``restore``."""
    if isinstance(value, dict | list | tuple):
        return all(remembers(element) for element in _by_key(value).values())
    if isinstance(value, np.ndarray | np.random.Generator | PLAIN_VALUES):
        return True
    if isinstance(value, Checkpointable):
        return value.resumable
    return isinstance(value, HasMemory)


def _copy_for_checkpoint(value: Any) -> Any:
    """Return a value of an attribute as a checkpoint holds it, copied."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.random.Generator):
        return generator_state(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) and all(isinstance(e, PLAIN_VALUES) for e in value):
        return [_copy_for_checkpoint(element) for element in value]
    if isinstance(value, dict | list | tuple):
        return {key: _copy_for_checkpoint(element) for key, element in _by_key(value).items()}
    if isinstance(value, PLAIN_VALUES):
        return value
    return memory(value)


def _value_after_restore(current: Any, saved: Any, *, in_place: bool) -> Any:
    """Return what an attribute is from now on, given its present value and the saved one.

    That is ``current`` itself where it could be put back as it is: generators and objects with a
    memory, containers of these alone, and with ``in_place`` arrays, into which the saved numbers
    are then written.
    """
    if isinstance(current, np.random.Generator):
        restore_generator(current, saved)
        return current
    if isinstance(current, HasMemory):
        current.restore(saved)
        return current
    if isinstance(current, dict | list | tuple):
        return _container_after_restore(current, saved, in_place=in_place)
    if in_place and isinstance(current, np.ndarray) and isinstance(saved, np.ndarray):
        if current.shape != saved.shape:
            raise ValueError(f"the state is of shape {saved.shape}; here it is {current.shape}")
        np.copyto(current, saved, casting="same_kind")
        return current
    return _copy_for_checkpoint(saved)


def _container_after_restore(current: Any, saved: Any, *, in_place: bool) -> Any:
    """Return a restored dict, list or tuple: the current one if all its elements are the same."""
    current_elements = _by_key(current)
    saved_elements = _by_key(saved)
    has_same_keys = current_elements.keys() == saved_elements.keys()
    holds_objects = any(isinstance(e, RESTORED_IN_PLACE) for e in current_elements.values())
    if holds_objects and not has_same_keys:
        raise ValueError(
            f"the state is of {list(saved_elements)}; here are {list(current_elements)}"
        )
    restored_elements = {}
    for key, saved_element in saved_elements.items():
        current_element = current_elements.get(key)
        restored_elements[key] = _value_after_restore(
            current_element, saved_element, in_place=in_place
        )
    if has_same_keys:
        is_unchanged = all(
            restored_elements[key] is current_elements[key] for key in saved_elements
        )
        if is_unchanged:
            return current
    if isinstance(current, dict):
        return restored_elements
    return type(current)(restored_elements[str(index)] for index in range(len(restored_elements)))


def _by_key(container: Any) -> dict[str, Any]:
    """Return the elements of a dict by its keys, of a list or tuple by "0", "1", ...."""
    if isinstance(container, dict):
        return container
    return {str(index): element for index, element in enumerate(container)}
