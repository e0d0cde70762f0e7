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
from regretless.market.core.checkpoint import DAMAGED, ForeignState, replacing
from regretless.market.core.errors import UserError

READABLE = (  # of what skops does not trust; arrays that say where to go are checked below
    __name__.partition(".")[0] + ".",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.tree._tree.Tree",
)
CONTAINERS = ("builtins.frozenset", "collections.Counter", "collections.deque")
NOT_WRITABLE = (TypeError, AttributeError, NotImplementedError, RecursionError)


class Copy:
    """A copy of a model of another library, with a memory."""

    def __init__(self, model: Any) -> None:
        self.model = copy.deepcopy(model)
        self._readable = (*CONTAINERS, type(model).__module__.partition(".")[0] + ".")

    @property
    def writable(self) -> bool:
        """Whether it can be written."""
        try:
            dumps(self.model, self._readable)
        except UserError:
            return False
        return True

    def state(self) -> ForeignState:
        """Return the bytes of the model."""
        return ForeignState(file=np.frombuffer(dumps(self.model, self._readable), dtype=np.uint8))

    def restore(self, state: Any) -> None:
        """Continue from a checkpoint; ValueError if it names other classes."""
        self.model = loads(state["file"].tobytes(), self._readable)


def dumps(model: Any, readable: tuple[str, ...] = READABLE) -> bytes:
    """Return a model as bytes; UserError where a part of it is code."""
    skops = _import_skops()
    try:
        data: bytes = skops.dumps(model)
    except NOT_WRITABLE as error:
        raise UserError(f"{error} and cannot be saved; use forms and policies") from error
    untrusted_types = skops.get_untrusted_types(data=data)
    unreadable_types = [name for name in untrusted_types if not name.startswith(readable)]
    if unreadable_types:
        raise UserError(
            f"{', '.join(unreadable_types)} is code and cannot be saved; "
            "use forms of market.losses and policies of forecaster.offline or scikit-learn"
        )
    return data


def loads(data: bytes, readable: tuple[str, ...] = READABLE) -> Any:
    """Return the model of bytes; one of ``DAMAGED`` if there is none that may be read."""
    skops = _import_skops()
    refuse_expanding(BytesIO(data), len(data))
    untrusted_types = skops.get_untrusted_types(data=data)
    unreadable_types = [name for name in untrusted_types if not name.startswith(readable)]
    if unreadable_types:
        raise UnreadError(f"names {', '.join(unreadable_types)}, which is not read")
    model = skops.loads(data, trusted=untrusted_types)
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
    _import_skops()  # a UserError where it is missing is not one of a damaged file
    try:
        model = loads(path.read_bytes())
    except DAMAGED as error:
        fault = str(error) if isinstance(error, UnreadError) else "is no readable model"
        raise UserError(f"'{path}' {fault}; fit it again") from error
    if not isinstance(model, kind):
        raise UserError(f"'{path}' holds no {kind.__name__}; fit it again")
    return model


def _check_trees(part: Any, visited: set[int]) -> None:
    """Raise ValueError for a tree or a sparse table whose indices lead elsewhere.

    ``visited`` are the ids of the parts that were checked before; it grows in place.
    """
    if id(part) in visited or isinstance(part, str | bytes):
        return
    visited.add(id(part))
    if hasattr(part, "children_left"):  # a tree of scikit-learn, which need not be there
        _check_tree(part)
    if sparse.issparse(part):
        part.check_format()
    for smaller_part in _parts_of(part):
        _check_trees(smaller_part, visited)


def _check_tree(tree: Any) -> None:
    """Raise ValueError for a tree of scikit-learn whose indices lead elsewhere."""
    left_children = tree.children_left
    right_children = tree.children_right
    nodes = np.arange(tree.node_count)
    is_leaf = left_children < 0
    inner_nodes = nodes[~is_leaf]
    leads_down = True
    for children in (left_children[~is_leaf], right_children[~is_leaf]):
        leads_down &= bool(((children > inner_nodes) & (children < len(nodes))).all())
    feature_exists = (tree.feature[~is_leaf] >= 0) & (tree.feature[~is_leaf] < tree.n_features)
    if not (leads_down and feature_exists.all() and (right_children[is_leaf] < 0).all()):
        raise ValueError("these numbers are no tree")


def _parts_of(whole: Any) -> list[Any]:
    """List the entries, attributes, values or items that something is made of, if it has any.

    Those are the entries of an array of objects, the attributes of an object, the values of a
    mapping, and the items of a list, tuple or set.
    """
    if isinstance(whole, np.ndarray) and whole.dtype.hasobject:
        return list(whole.ravel().tolist())
    contents = getattr(whole, "__dict__", whole)
    if isinstance(contents, dict):
        return list(contents.values())
    if isinstance(contents, list | tuple | set):
        return list(contents)
    return []


def _import_skops() -> Any:
    try:
        from skops import io  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UserError("saving a model needs skops; install regretless[learn]") from error
    return io
