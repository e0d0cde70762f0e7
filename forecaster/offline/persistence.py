"""A fitted model in one file, written and read by skops: no pickle, and no code but this project's.

A file names the classes of what it holds. Those of scikit-learn, NumPy and SciPy that skops trusts
are read, and those of this project; whatever else a file names is refused, on writing as well.
"""

from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from scipy import sparse

from regretless.market.core.checkpoint import DAMAGED, replacing
from regretless.market.core.errors import UserError

READ = (  # of what skops does not trust; arrays that say where to go are checked below
    __name__.partition(".")[0] + ".",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.tree._tree.Tree",
)


def save(model: Any, path: Path) -> None:
    """Write a fitted model atomically; UserError where a part of it is code."""
    skops = _skops()
    try:
        data = skops.dumps(model)
        code = _code(skops.get_untrusted_types(data=data))
    except (TypeError, AttributeError, NotImplementedError) as error:
        raise UserError(f"{path}: {error} and cannot be saved; use forms and policies") from error
    if code:
        raise UserError(
            f"{', '.join(code)} is code and cannot be saved; use forms of market.losses and "
            "policies of forecaster.offline or scikit-learn"
        )
    try:
        with replacing(path) as draft:
            draft.write_bytes(data)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a file to write") from error


def load(kind: type[Any], path: Path) -> Any:
    """Read a model; UserError if there is none of this kind in the file."""
    if not path.is_file():
        raise UserError(f"model '{path}' does not exist; check the path")
    skops = _skops()
    try:
        _refuse_expanding(path)
        named = skops.get_untrusted_types(file=path)
        code = _code(named)
        model = None if code else skops.load(path, trusted=named)
        _check_trees(model, set())
    except DAMAGED as error:
        raise UserError(f"'{path}' is no readable model; fit it again") from error
    if code:
        raise UserError(f"'{path}' names {', '.join(code)}, which is not read; fit it again")
    if not isinstance(model, kind):
        raise UserError(f"'{path}' holds no {kind.__name__}; fit it again")
    return model


def _refuse_expanding(path: Path) -> None:
    """Raise ValueError if more would be read than the file holds; ``save`` compresses nothing."""
    with ZipFile(path) as archive:
        members = archive.infolist()
    stored = all(member.compress_type == ZIP_STORED for member in members)
    if not stored or sum(member.file_size for member in members) > path.stat().st_size:
        raise ValueError("its members are compressed or overlap")


def _code(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(READ)]


def _check_trees(part: Any, seen: set[int]) -> None:
    """Raise ValueError for a tree or a sparse table whose indices lead elsewhere."""
    if id(part) in seen or isinstance(part, str | bytes):
        return
    seen.add(id(part))
    if hasattr(part, "children_left"):
        _check_tree(part)
    if sparse.issparse(part):
        part.check_format()
    objects = isinstance(part, np.ndarray) and part.dtype.hasobject
    inside = part.ravel().tolist() if objects else getattr(part, "__dict__", part)
    inside = list(inside.values()) if isinstance(inside, dict) else inside
    for one in inside if isinstance(inside, list | tuple | set) else ():
        _check_trees(one, seen)


def _check_tree(tree: Any) -> None:
    left, right, places = tree.children_left, tree.children_right, np.arange(tree.node_count)
    leaf = left < 0
    sides = left[~leaf], right[~leaf]
    below = all(((side > places[~leaf]) & (side < len(places))).all() for side in sides)
    asked = (tree.feature[~leaf] >= 0) & (tree.feature[~leaf] < tree.n_features)
    if not (below and asked.all() and (right[leaf] < 0).all()):
        raise ValueError("these numbers are no tree")


def _skops() -> Any:
    try:
        from skops import io  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UserError("saving a model needs skops; install regretless[learn]") from error
    return io
