"""Normal-form games of a leader against a follower, read from a file.

CSV: one line per pair of actions, every pair exactly once, with the header

    leader,follower,leader_payoff,follower_loss

where the first two columns are names of actions, numbered in order of first appearance. Lines
that begin with # are comments. NPZ: arrays ``leader_payoff`` and ``follower_loss`` (m, A), and if
wanted the names ``leader_actions`` (m,) and ``follower_actions`` (A,). A follower's payoff is
written as minus a loss.

Losses are mapped onto [0, 1]; in the file's own units a loss is ``unit_offset + unit_scale * l``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.errors import UserError

Array = NDArray[np.float64]

COLUMNS = ("leader", "follower", "leader_payoff", "follower_loss")


@dataclass(frozen=True, eq=False)
class Game:
    """A game in which the leader's action is the outcome y.

    Parameters
    ----------
    leader_actions, follower_actions : tuple of str
        Names, m and A of them.
    leader_payoff : array (m, A)
        In the file's own units.
    follower_loss : array (m, A)
        In [0, 1].
    unit_scale, unit_offset : float
        The loss in the file's own units is ``unit_offset + unit_scale * follower_loss``.
    """

    leader_actions: tuple[str, ...]
    follower_actions: tuple[str, ...]
    leader_payoff: Array
    follower_loss: Array
    unit_scale: float
    unit_offset: float


def read_game(path: Path | str) -> Game:
    """Read a game from a .csv or .npz file.

    Parameters
    ----------
    path : Path or str

    Raises
    ------
    UserError
        If there is no such file, it is malformed, or a number in it is not finite.
    """
    file = Path(path)
    if file.suffix not in {".csv", ".npz"}:
        raise UserError(f"game '{file}' has the ending '{file.suffix}'; use .csv or .npz")
    if not file.is_file():
        raise UserError(f"game '{file}' does not exist; check the path")
    return _from_csv(file) if file.suffix == ".csv" else _from_npz(file)


def make_game(
    leader_payoff: ArrayLike,
    follower_loss: ArrayLike,
    *,
    leader_actions: Sequence[str] = (),
    follower_actions: Sequence[str] = (),
    name: str = "game",
) -> Game:
    """Make a game from arrays, with the loss mapped onto [0, 1].

    Parameters
    ----------
    leader_payoff, follower_loss : arrays (m, A)
    leader_actions, follower_actions : sequences of str
        Names; numbered from 0 where none are given.
    name : str
        For error lines.

    Raises
    ------
    UserError
        If the arrays or the names do not fit, or a number is not finite.
    """
    payoff, loss = _table(name, "leader_payoff", leader_payoff), _table(name, "loss", follower_loss)
    if payoff.shape != loss.shape:
        raise UserError(
            f"{name}: leader_payoff has shape {payoff.shape}, follower_loss {loss.shape}; "
            "make them equal"
        )
    low, high = float(loss.min()), float(loss.max())
    scale = high - low if high > low else 1.0
    return Game(
        _names(name, "leader_actions", leader_actions, payoff.shape[0]),
        _names(name, "follower_actions", follower_actions, payoff.shape[1]),
        payoff,
        (loss - low) / scale,
        scale,
        low,
    )


def _from_csv(file: Path) -> Game:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"game '{file}' cannot be read: {error}; give a UTF-8 text file") from error
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1)]
    kept = [(n, line) for n, line in numbered if line.strip() and not line.startswith("#")]
    rows = [
        (n, [value.strip() for value in row])
        for (n, _), row in zip(kept, csv.reader(line for _, line in kept), strict=True)
    ]
    if not rows or tuple(rows[0][1]) != COLUMNS:
        raise UserError(f"game '{file}' must begin with the header {','.join(COLUMNS)}")
    cells: dict[tuple[str, str], tuple[float, float]] = {}
    for n, row in rows[1:]:
        if len(row) != len(COLUMNS):
            raise UserError(f"game '{file}', line {n}: {len(row)} values; give {len(COLUMNS)}")
        if (row[0], row[1]) in cells:
            raise UserError(f"game '{file}', line {n}: {row[0]}, {row[1]} again; give it once")
        cells[row[0], row[1]] = (_number(file, n, row[2]), _number(file, n, row[3]))
    return _from_cells(file, cells)


def _from_cells(file: Path, cells: dict[tuple[str, str], tuple[float, float]]) -> Game:
    leaders = list(dict.fromkeys(leader for leader, _ in cells))
    followers = list(dict.fromkeys(follower for _, follower in cells))
    for leader in leaders:
        for follower in followers:
            if (leader, follower) not in cells:
                raise UserError(f"game '{file}': {leader}, {follower} is missing; add its line")
    if not cells:
        raise UserError(f"game '{file}' has no actions; add a line for every pair")
    table = np.array([[cells[leader, follower] for follower in followers] for leader in leaders])
    return make_game(
        table[..., 0],
        table[..., 1],
        leader_actions=leaders,
        follower_actions=followers,
        name=f"game '{file}'",
    )


def _number(file: Path, line: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise UserError(f"game '{file}', line {line}: '{text}' is no finite number; mend it")
    return number


def _from_npz(file: Path) -> Game:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is damaged"
        raise UserError(f"game '{file}' cannot be read: {reason}; write it by np.savez") from error
    for name in ("leader_payoff", "follower_loss"):
        if name not in held:
            raise UserError(f"game '{file}' has no array '{name}'; add it")
    names = {
        key: [str(name) for name in np.atleast_1d(held.get(key, np.array([], dtype=str)))]
        for key in ("leader_actions", "follower_actions")
    }
    return make_game(
        held["leader_payoff"],
        held["follower_loss"],
        leader_actions=names["leader_actions"],
        follower_actions=names["follower_actions"],
        name=f"game '{file}'",
    )


def _table(name: str, key: str, values: ArrayLike) -> Array:
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: {key} is no table of numbers; give (m, A)") from error
    if table.ndim != 2 or 0 in table.shape:
        raise UserError(f"{name}: {key} has shape {table.shape}; give (m, A)")
    if not np.isfinite(table).all():
        raise UserError(f"{name}: {key} holds a number that is not finite; mend it")
    return table


def _names(name: str, key: str, given: Sequence[str], count: int) -> tuple[str, ...]:
    if not len(given):
        return tuple(str(i) for i in range(count))
    if len(given) != count or len(set(given)) != count:
        raise UserError(f"{name}: {key} has {len(given)} names; give {count} different ones")
    return tuple(given)
