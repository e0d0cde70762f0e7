"""Games in normal form: who plays, what each can do, and what everybody is paid at every profile.

``NormalForm`` is made of a tensor of payoffs, of a game of OpenSpiel, or of a file:

    NormalForm.from_payoffs(tensor)      # (A_1, ..., A_N, N)
    NormalForm.from_openspiel(game)      # pyspiel.load_game("matrix_pd")
    NormalForm.read("braess.nfg")        # Gambit's format, or .npz with an array ``payoffs``

``solve(game)`` of ``market.solutions`` finds its equilibria; ``[game]`` of a scenario file lets
learners play it, by the market ``normal-form``. Everywhere else in this project less is better: a
loss is minus a payoff.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import DAMAGED
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import read_only
from regretless.market.core.paths import expanded
from regretless.market.solutions import gambit_files

MAX_MOVES = 4  # of a game tree that is converted: its plans grow exponentially
MAX_PAYOFFS = 50_000_000  # numbers of a tensor


@dataclass(frozen=True, eq=False, repr=False)
class NormalForm:
    """A game of N players who choose at once.

    Attributes
    ----------
    payoffs : array (A_1, ..., A_N, N)
        What each player is paid at every profile of actions, in units of its own; read-only.
    players : tuple of str
        Their names.
    actions : tuple of tuple of str
        The names of each player's actions.
    title : str
        What the game is called; may be empty.
    """

    payoffs: Array
    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    title: str = ""

    @classmethod
    def from_payoffs(
        cls,
        tensor: ArrayLike | Sequence[ArrayLike],
        *,
        players: Sequence[str] | None = None,
        actions: Sequence[Sequence[str]] | None = None,
        title: str = "",
    ) -> Self:
        """Make a game of its payoffs.

        Parameters
        ----------
        tensor : array (A_1, ..., A_N, N), or N arrays (A_1, ..., A_N)
            What each player is paid at every profile; an array's last axis is over players, a list
            or a tuple has an array for each of them.
        players : sequence of str, optional
            Their names; "player 1" and so on by default.
        actions : sequence of sequence of str, optional
            The names of each player's actions; numbers from 0 by default.
        title : str
            What the game is called.

        Raises
        ------
        UserError
            If shapes or names do not fit, or a payoff is not finite.

        Examples
        --------
        >>> dilemma = NormalForm.from_payoffs([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])
        >>> dilemma.sizes
        (2, 2)
        >>> dilemma.profile_losses(np.array([[0, 1]]))  # the first cooperates, the second does not
        array([[ 0., -5.]])
        """
        payoffs = _payoff_array(tensor)
        n_players = payoffs.ndim - 1
        if n_players < 1 or payoffs.shape[-1] != n_players or 0 in payoffs.shape:
            expected = (
                "an axis for each player's actions and a last one over players, or a list of N "
                "arrays (A_1, ..., A_N)"
            )
            raise UserError(f"payoffs have the shape {payoffs.shape}; give {expected}")
        if payoffs.size > MAX_PAYOFFS:
            raise UserError(f"payoffs: {payoffs.size:,} numbers; give at most {MAX_PAYOFFS:,}")
        if not np.isfinite(payoffs).all():
            raise UserError("payoffs: a number is not finite; mend it")
        if players is None:
            players = [f"player {number}" for number in range(1, n_players + 1)]
        if actions is None:
            actions = [[str(number) for number in range(size)] for size in payoffs.shape[:-1]]
        _check_names("players", players, n_players)
        if len(actions) != n_players:
            raise UserError(f"actions: {len(actions)} lists of names; give {n_players}")
        for player, names, size in zip(players, actions, payoffs.shape[:-1], strict=True):
            _check_names(f"actions of {player}", names, size)
        return cls(
            payoffs=read_only(payoffs),
            players=tuple(players),
            actions=tuple(tuple(names) for names in actions),
            title=title,
        )

    @classmethod
    def from_openspiel(cls, game: Any) -> Self:
        """Make a game of one of OpenSpiel (Lanctot et al. 2019, arXiv:1908.09453).

        ``game`` is what ``pyspiel.load_game`` returns. One that is no matrix or tensor game is
        converted by OpenSpiel: its actions are then plans for the whole tree. UserError if it has
        no such form, or more than ``MAX_MOVES`` moves, of which there are too many plans.
        """
        if not hasattr(game, "max_game_length"):
            raise UserError(f"{brief(game)} is no game; give one of pyspiel.load_game")
        if hasattr(game, "row_utilities"):
            payoffs = [np.array(game.row_utilities()), np.array(game.col_utilities())]
            n_rows = game.num_rows()
            n_columns = game.num_cols()
            names_of_rows = [game.row_action_name(row) for row in range(n_rows)]
            names_of_columns = [game.col_action_name(column) for column in range(n_columns)]
            return cls.from_payoffs(
                [np.reshape(payoff_table, (n_rows, n_columns)) for payoff_table in payoffs],
                actions=[names_of_rows, names_of_columns],
                title=str(game),
            )
        if not hasattr(game, "player_utilities"):
            game = _as_tensor_game(game)
        shape = tuple(game.shape())
        players = range(len(shape))

        def action_names(player: int) -> list[str]:
            """Return the names of a player's actions, those of plans in one line."""
            names = [game.action_name(player, action) for action in range(shape[player])]
            return ["; ".join(name.split("\n")).strip("; ") for name in names]

        names = [action_names(player) for player in players]
        payoffs = [np.reshape(game.player_utilities(player), shape) for player in players]
        return cls.from_payoffs(payoffs, actions=_distinct(names), title=str(game))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a game from a file that ends in .nfg (Gambit's format) or .npz.

        An NPZ file has an array ``payoffs`` as ``from_payoffs`` takes it. UserError if there is no
        such file, or it is malformed.
        """
        file = expanded(path)
        if file.suffix not in {".nfg", ".npz"}:
            raise UserError(f"game '{file}' has the ending '{file.suffix}'; use .nfg or .npz")
        if not file.is_file():
            raise UserError(f"game '{file}' does not exist; check the path")
        try:
            if file.suffix == ".npz":
                with np.load(file, allow_pickle=False) as arrays:
                    return cls.from_payoffs(arrays["payoffs"], title=file.stem)
            text = file.read_text(encoding="utf-8-sig")
        except UserError as error:
            raise UserError(f"game '{file}': {error}") from error
        except KeyError as error:
            raise UserError(f"game '{file}' has no array 'payoffs'; add it") from error
        except DAMAGED as error:  # whatever NumPy or a decoder says of a file that is none
            reason = str(error).splitlines()[0] if str(error) else "it is damaged"
            raise UserError(f"game '{file}' cannot be read: {reason}; write it anew") from error
        try:
            parsed = gambit_files.parse(text)
            return cls.from_payoffs(
                parsed.payoffs, players=parsed.players, actions=parsed.actions, title=parsed.title
            )
        except UserError as error:
            raise UserError(f"game '{file}': {error}") from error

    def __repr__(self) -> str:
        """Return its title, players and numbers of actions, without payoffs."""
        numbers = " x ".join(map(str, self.sizes))
        title = f"{self.title}: " if self.title else ""
        return f"<NormalForm {title}{', '.join(self.players)}; {numbers} actions>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many actions each player has (N,)."""
        return self.payoffs.shape[:-1]

    def profile_losses(self, profiles: Indices) -> Array:
        """Return minus what each player is paid at profiles (P, N): array (P, N)."""
        chosen = tuple(np.asarray(profiles).T)
        return np.asarray(0.0 - self.payoffs[chosen])  # a payoff of 0 costs 0, not -0


def _as_tensor_game(game: Any) -> Any:
    """Return a game of OpenSpiel in normal form; UserError if it has none, or too many plans."""
    import pyspiel  # noqa: PLC0415 - it is installed where somebody has one of its games

    moves = game.max_game_length()
    if moves > MAX_MOVES:
        hint = f"give a game of at most {MAX_MOVES} moves"
        raise UserError(f"{game} has {moves} moves, and too many plans for a normal form; {hint}")
    try:
        return pyspiel.extensive_to_tensor_game(game)
    except (RuntimeError, pyspiel.SpielError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{game} has no normal form: {reason}; give another game") from error


def _payoff_array(tensor: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Return payoffs with players on the last axis; UserError if they are no numbers."""
    try:
        if isinstance(tensor, list | tuple):
            payoffs_of_players = [np.asarray(payoffs, dtype=np.float64) for payoffs in tensor]
            return np.stack(payoffs_of_players, axis=-1)
        return np.array(tensor, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"payoffs {brief(tensor)}: {error}; give a tensor of numbers") from error


def _check_names(what: str, names: Sequence[str], count: int) -> None:
    """Raise UserError unless there are so many different names."""
    if len(names) != count or len(set(names)) != count:
        raise UserError(f"{what}: {brief(list(names))}; give {count} different names")


def _distinct(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return names of actions by player, numbered where a player has the same name twice."""
    distinct = []
    for of_player in names:
        if len(set(of_player)) == len(of_player):
            distinct.append(list(of_player))
        else:
            distinct.append([f"{number}: {name}" for number, name in enumerate(of_player)])
    return distinct
