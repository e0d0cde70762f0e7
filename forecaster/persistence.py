"""Fitted models in files, written and read by skops: no pickle, and no code that is not known.

A file names the classes of what it holds. Those of scikit-learn, NumPy and SciPy that skops trusts
are read, those of this project, and those of the package of a model that the user gives again;
whatever else a file names is refused, on writing as well.
"""

import copy
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from regretless.market.core.archive import refuse_expanding
from regretless.market.core.checkpoint import DAMAGED, Own, replacing
from regretless.market.core.errors import UserError

READ = (  # of what skops does not trust; arrays that say where to go are checked below
    __name__.partition(".")[0] + ".",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.tree._tree.Tree",
)
PLAIN = ("builtins.frozenset", "collections.Counter", "collections.deque")
NO_CODE = (TypeError, AttributeError, NotImplementedError, RecursionError)


class Copy:
    """A copy of a model of another library, with a memory."""

    def __init__(self, model: Any) -> None:
        self.model = copy.deepcopy(model)
        self._read = (*PLAIN, type(model).__module__.partition(".")[0] + ".")

    @property
    def writable(self) -> bool:
        """Whether it can be written."""
        try:
            dumps(self.model, self._read)
        except UserError:
            return False
        return True

    def state(self) -> Own:
        """Return the bytes of the model."""
        return Own(file=np.frombuffer(dumps(self.model, self._read), dtype=np.uint8))

    def restore(self, state: Any) -> None:
        """Continue from a checkpoint; ValueError if it names other classes."""
        self.model = loads(state["file"].tobytes(), self._read)


def dumps(model: Any, read: tuple[str, ...] = READ) -> bytes:
    """Return a model as bytes; UserError where a part of it is code."""
    skops = _skops()
    try:
        data: bytes = skops.dumps(model)
    except NO_CODE as error:
        raise UserError(f"{error} and cannot be saved; use forms and policies") from error
    if code := [name for name in skops.get_untrusted_types(data=data) if not name.startswith(read)]:
        raise UserError(
            f"{', '.join(code)} is code and cannot be saved; use forms of market.losses and "
            "policies of forecaster.offline or scikit-learn"
        )
    return data


def loads(data: bytes, read: tuple[str, ...] = READ) -> Any:
    """Return the model of bytes; one of ``DAMAGED`` if there is none that may be read."""
    skops = _skops()
    refuse_expanding(BytesIO(data), len(data))
    named = skops.get_untrusted_types(data=data)
    if code := [name for name in named if not name.startswith(read)]:
        raise UnreadError(f"names {', '.join(code)}, which is not read")
    model = skops.loads(data, trusted=named)
    _check_trees(model, set())
    return model


class UnreadError(ValueError):
    """The file names code that is not known."""


def save(model: Any, path: Path) -> None:
    """Write a fitted model atomically; UserError where a part of it is code."""
    data = dumps(model)
    try:
        with replacing(path, contested=True) as draft:
            draft.write_bytes(data)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a file to write") from error


def load(kind: type[Any], path: Path) -> Any:
    """Read a model; UserError if there is none of this kind in the file."""
    if not path.is_file():
        raise UserError(f"model '{path}' does not exist; check the path")
    _skops()
    try:
        model = loads(path.read_bytes())
    except DAMAGED as error:
        told = str(error) if isinstance(error, UnreadError) else "is no readable model"
        raise UserError(f"'{path}' {told}; fit it again") from error
    if not isinstance(model, kind):
        raise UserError(f"'{path}' holds no {kind.__name__}; fit it again")
    return model


def _check_trees(part: Any, seen: set[int]) -> None:
    """Raise ValueError for a tree or a sparse table whose indices lead elsewhere."""
    if id(part) in seen or isinstance(part, str | bytes):
        return
    seen.add(id(part))
    if hasattr(part, "children_left"):  # a tree of scikit-learn, which need not be there
        left, right, places = part.children_left, part.children_right, np.arange(part.node_count)
        leaf = left < 0
        sides = left[~leaf], right[~leaf]
        below = all(((side > places[~leaf]) & (side < len(places))).all() for side in sides)
        asked = (part.feature[~leaf] >= 0) & (part.feature[~leaf] < part.n_features)
        if not (below and asked.all() and (right[leaf] < 0).all()):
            raise ValueError("these numbers are no tree")
    if sparse.issparse(part):
        part.check_format()
    objects = isinstance(part, np.ndarray) and part.dtype.hasobject
    inside = part.ravel().tolist() if objects else getattr(part, "__dict__", part)
    inside = list(inside.values()) if isinstance(inside, dict) else inside
    for one in inside if isinstance(inside, list | tuple | set) else ():
        _check_trees(one, seen)


def _skops() -> Any:
    try:
        from skops import io  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UserError("saving a model needs skops; install regretless[learn]") from error
    return io
