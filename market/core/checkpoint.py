"""Checkpoints without pickle: a tree of arrays and plain values in one .npz file.

Arrays are stored under their path in the tree, everything else in one JSON text. Reading a
checkpoint can load numbers and text, nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from zipfile import BadZipFile

import numpy as np

PLAIN = "plain.json"
DAMAGED = (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, BadZipFile)


def save(path: Path, tree: dict[str, Any]) -> None:
    """Write a tree atomically.

    Parameters
    ----------
    path : Path
    tree : dict
        Nested dictionaries of arrays, numbers, text, lists and None.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(tree, "", arrays)
    draft = path.with_suffix(".tmp.npz")
    text = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    np.savez(draft, **{PLAIN: text}, **arrays)  # type: ignore[arg-type]
    draft.replace(path)


def load(path: Path) -> dict[str, Any]:
    """Read a tree that ``save`` wrote; one of ``DAMAGED`` if it is no such file."""
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    plain: dict[str, Any] = json.loads(arrays.pop(PLAIN).tobytes().decode())
    for name, array in arrays.items():
        *path_to, last = (unquote(step) for step in name.split("/"))
        table = plain
        for step in path_to:
            table = table[step]
        table[last] = array
    return plain


def _split(tree: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    plain: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            plain[key] = _split(value, f"{prefix}{quote(key, safe='')}/", arrays)
        elif isinstance(value, np.ndarray):
            arrays[f"{prefix}{quote(key, safe='')}"] = value
        else:
            plain[key] = value.item() if isinstance(value, np.generic) else value
    return plain
