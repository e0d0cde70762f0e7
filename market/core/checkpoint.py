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
def replacing(path: Path, *, alone: bool = True, contested: bool = False) -> Iterator[Path]:
    """Yield a draft beside a file that takes the file's name once the block is done.

    The draft, ``.NAME.tmp``, is synced before it is renamed and the folder after (if ``alone``;
    else who replaces several files does that once); whoever reads sees the old file or the new one.
    If the block raises or writes nothing the file stays. OSError with the file's own name if the
    draft cannot be written, or is a link, which is not followed.

    Where a path is ``contested``, that is where nothing keeps a second writer away, each writer has
    a draft of its own, ``.NAME.HEX.tmp``, and the last one that is done stays. A writer that is
    killed leaves its draft.
    """
    own_part = f".{uuid4().hex}" if contested else ""
    draft = path.with_name(f".{path.name}{own_part}.tmp")
    if draft.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", str(draft))
    try:
        yield draft
        if draft.exists():
            sync(draft)
            draft.replace(path)
            if alone:
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


PLAIN = "plain.json"
DEEPEST = 50  # tables within one another
SHOWN = 80  # characters of a value in an error line
PLAIN_VALUES = bool | int | float | str | np.generic | None
DAMAGED = Exception  # what reading a file may raise that somebody else wrote


def save(path: Path, tree: dict[str, Any], *, contested: bool = False) -> None:
    """Write a tree of tables, arrays, numbers, text, lists and None, atomically; else UserError.

    ``contested`` is as in ``replacing``.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(tree, (), arrays)
    text = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    with replacing(path, contested=contested) as draft:
        archive.write(draft, {PLAIN: text, **arrays})


def check_tree(tree: Any) -> None:
    """Raise UserError at the first thing in a tree that ``save`` cannot write."""
    _split(tree, (), {})


def _split(tree: Any, place: tuple[str, ...], arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Take the arrays out of a tree, each under its path, and return the rest."""
    plain = tree.item() if isinstance(tree, np.generic) else tree
    if isinstance(tree, dict) and len(place) < DEEPEST and all(isinstance(k, str) for k in tree):
        found = {key: _split(value, (*place, key), arrays) for key, value in tree.items()}
        return {key: value for key, value in found.items() if value is not np.ndarray}
    if isinstance(tree, np.ndarray) and not tree.dtype.hasobject:
        arrays["/".join(quote(step, safe="") for step in place)] = tree
        return np.ndarray  # stands for one that was taken out
    with suppress(TypeError, ValueError, RecursionError):
        if not isinstance(tree, np.ndarray | dict):
            json.dumps(plain)
            return plain
    what = repr(tree) if len(repr(tree)) <= SHOWN else f"{repr(tree)[:SHOWN]}..."
    cure = "give arrays, numbers, text, lists and None, in tables by text"
    raise UserError(f"state(): {'.'.join(place)} = {what} cannot be kept in a file; {cure}")


def load(path: Path) -> dict[str, Any]:
    """Read a tree that ``save`` wrote.

    ArchiveError, which is among ``DAMAGED``, if the file is torn, edited, of an older format or of
    something else; OSError if it cannot be opened.
    """
    arrays = archive.read(path)
    try:
        plain: dict[str, Any] = json.loads(arrays.pop(PLAIN).tobytes().decode())
        for name, array in arrays.items():
            *path_to, last = (unquote(step) for step in name.split("/"))
            table = plain
            for step in path_to:
                table = table[step]
            table[last] = array
    except DAMAGED as error:
        raise archive.ArchiveError("its parts do not fit together") from error
    return plain


class Own(dict[str, Any]):
    """What an object of somebody else's class remembers: any table, which may change its form."""


def memory(holder: "Memory") -> dict[str, Any]:
    """Return the state of an object, marked as ``Own`` unless its class is this project's."""
    ours = type(holder).__module__.partition(".")[0] == __name__.partition(".")[0]
    state: dict[str, Any] = holder.state()
    return state if ours else Own(state)


def check_like(found: Any, fresh: Any, place: str = "state") -> None:
    """Raise ValueError unless a tree has the keys, types and shapes of a new object's.

    Where that is None, anything may have come; a table may have more keys; the first axis of an
    array, and any of length 0 or 1, may be longer.
    """
    if fresh is None:
        return
    if isinstance(fresh, dict):
        if not isinstance(found, dict) or (fresh.keys() - found and not isinstance(fresh, Own)):
            raise ValueError(f"{place} is no table of {', '.join(fresh)}")
        for key in {} if isinstance(fresh, Own) else fresh:
            check_like(found[key], fresh[key], f"{place}.{key}")
    elif isinstance(fresh, np.ndarray):
        fits = isinstance(found, np.ndarray)
        fits = fits and (found.dtype, found.ndim) == (fresh.dtype, fresh.ndim)
        sizes = enumerate(zip(found.shape, fresh.shape, strict=True)) if fits else ()
        for axis, (now, new) in sizes:
            fits = fits and (now == new or new <= 1 or (axis == 0 and now > new))
        if not fits:
            raise ValueError(f"{place} is no array of {fresh.dtype} and shape {fresh.shape}")
    else:
        kind = type(fresh.item() if isinstance(fresh, np.generic) else fresh)
        fitting = {int: (int, float), float: (int, float), tuple: (list,)}.get(kind, (kind,))
        if type(found) not in fitting:
            raise ValueError(f"{place} is {type(found).__name__}, where {kind.__name__} belongs")


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
        named = [kind.__dict__.get("REMEMBERED", ()) for kind in reversed(cls.__mro__)]
        return list(dict.fromkeys(name for names in named for name in names))

    @property
    def resumable(self) -> bool:
        """Whether everything that is remembered offers a memory."""
        return all(remembers(getattr(self, name)) for name in self._remembered())

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs; nothing in it changes with this object."""
        return {name.lstrip("_"): _record(getattr(self, name)) for name in self._remembered()}

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


LIVING = np.random.Generator | Memory  # is put back where it is, and never replaced


def remembers(value: Any) -> bool:
    """Whether a checkpoint can hold a value: plain ones, or what has ``state`` and ``restore``."""
    if isinstance(value, dict | list | tuple):
        return all(remembers(held) for held in _keyed(value).values())
    if isinstance(value, np.ndarray | np.random.Generator | PLAIN_VALUES):
        return True
    return value.resumable if isinstance(value, Checkpointable) else isinstance(value, Memory)


def _record(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.random.Generator):
        return generator_state(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) and all(isinstance(held, PLAIN_VALUES) for held in value):
        return [_record(held) for held in value]
    if isinstance(value, dict | list | tuple):
        return {key: _record(held) for key, held in _keyed(value).items()}
    return value if isinstance(value, PLAIN_VALUES) else memory(value)


def _restored(current: Any, value: Any, *, in_place: bool) -> Any:
    """Return ``current`` itself where it was put back, or what takes its place."""
    if isinstance(current, np.random.Generator):
        restore_generator(current, value)
    elif isinstance(current, Memory):
        current.restore(value)
    elif isinstance(current, dict | list | tuple):
        here, there = _keyed(current), _keyed(value)
        if here.keys() != there.keys() and any(isinstance(held, LIVING) for held in here.values()):
            raise ValueError(f"the state is of {list(there)}; here are {list(here)}")
        found = {key: _restored(here.get(key), there[key], in_place=in_place) for key in there}
        if here.keys() != found.keys() or any(found[key] is not here[key] for key in here):
            listed = (found[str(i)] for i in range(len(found)))
            return found if isinstance(current, dict) else type(current)(listed)
    elif in_place and isinstance(current, np.ndarray) and isinstance(value, np.ndarray):
        if current.shape != value.shape:
            raise ValueError(f"the state is of shape {value.shape}; here it is {current.shape}")
        np.copyto(current, value, casting="same_kind")
    else:
        return _record(value)
    return current


def _keyed(group: Any) -> dict[str, Any]:
    return group if isinstance(group, dict) else {str(i): held for i, held in enumerate(group)}
